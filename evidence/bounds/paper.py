"""Tables 1 to 4 as Miró et al. published them.

Deterministic global optimization algorithm based on outer approximation for the parameter
estimation of nonlinear dynamic biological systems (2012).
"""

from __future__ import annotations

from collections.abc import Mapping

# Sizes of the master problem in the last iteration (Table 1)
SIZES: Mapping[str, Mapping[str, int]] = {
    "alpha-pinene": {
        "MILP equations": 1836,
        "MILP variables": 1096,
        "MILP binaries": 380,
        "NLP equations": 186,
        "NLP variables": 196,
    },
    "hiv-proteinase": {
        "MILP equations": 138_128,
        "MILP variables": 53_321,
        "MILP binaries": 3_625,
        "NLP equations": 16_306,
        "NLP variables": 16_361,
    },
}

# The figures of Tables 2 and 4: lower and upper bound, gap, iterations, processor seconds. BARON
# found no feasible point of HIV proteinase in 12 hours
BOUNDS: Mapping[str, Mapping[str, tuple[float, float, float, int, float]]] = {
    "alpha-pinene": {
        "BARON (paper)": (4.112, 19.87, 0.7931, 60_614, 43_200.0),
        "outer approximation (paper)": (19.26, 19.87, 0.03056, 2, 8_916.0),
    },
    "hiv-proteinase": {"outer approximation (paper)": (0.01595, 0.01961, 0.1864, 3, 4_351.0)},
}

# Sums of squares found by Rodriguez-Fernandez et al. and by the paper. HIV proteinase's are those
# of measured series that are not published: ours are a replicate
SUMS: Mapping[str, tuple[float, float]] = {
    "alpha-pinene": (19.87, 19.87),
    "hiv-proteinase": (0.01997, 0.01961),
}

# The values of Table 3 by our names of the unknowns: Rodriguez-Fernandez et al., the paper
PARAMETERS: Mapping[str, tuple[float, float]] = {
    "k3": (6.235, 5.764),
    "k42": (8772.0, 968.7),
    "k22": (473.0, 129.9),
    "k52": (0.09726, 0.01612),
    "k6": (0.01417, 0.01337),
    "S0[exp 1]": (24.63, 24.61),
    "S0[exp 2]": (23.32, 23.4),
    "S0[exp 3]": (26.93, 27.05),
    "S0[exp 4]": (13.34, 13.97),
    "S0[exp 5]": (12.5, 12.5),
    "E0[exp 1]": (0.005516, 0.005286),
    "E0[exp 2]": (0.005321, 0.005168),
    "E0[exp 3]": (0.006, 0.006),
    "E0[exp 4]": (0.004391, 0.004428),
    "E0[exp 5]": (0.003981, 0.004105),
    "offset[exp 1]": (-0.004339, -0.004234),
    "offset[exp 2]": (-0.001577, -0.003478),
    "offset[exp 3]": (-0.01117, -0.0142),
    "offset[exp 4]": (-0.001661, -0.005177),
    "offset[exp 5]": (0.007133, 0.00486),
}
