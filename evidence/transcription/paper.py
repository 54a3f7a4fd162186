"""Tables 3 to 6 and B.7 to B.12 as Fernandez de Dios et al. published them.

Each entry has the columns SOLVED, FOUND, NEAR, ALTERN, TIME and SUCCESS. Names of problems are
those of odefit's library. The tables of appendix B hold the ten best rows by FOUND only.
"""

from __future__ import annotations

Figures = tuple[float, float, float, float, float, float]
COLUMNS = ("SOLVED", "FOUND", "NEAR", "ALTERN", "TIME", "SUCCESS")
GLOBAL_SOLVERS = ("Couenne", "BARON", "Octeract")  # global solvers; all others are local
EXECUTIONS = 5280  # number of runs in all: 660 for each of eight solvers

# Table 3
PROBLEMS: dict[str, Figures] = {
    "mammillary-3-f": (0.735, 0.885, 0.022, 0.002, 0.029, 0.965),
    "lotka-volterra-f": (0.743, 0.835, 0.022, 0.000, 0.026, 0.960),
    "harmonic": (0.715, 0.733, 0.002, 0.000, 0.032, 0.927),
    "hiv-f": (0.820, 0.688, 0.122, 0.082, 0.033, 0.975),
    "bbg": (0.595, 0.438, 0.052, 0.000, 0.084, 0.802),
    "alpha-pinene": (0.250, 0.365, 0.005, 0.000, 1.786, 0.667),
    "mammillary-3-p": (0.665, 0.342, 0.092, 0.030, 0.028, 0.958),
    "crauste-f": (0.796, 0.298, 0.173, 0.362, 0.054, 0.958),
    "hiv-p": (0.792, 0.195, 0.082, 0.490, 0.103, 0.965),
    "crauste-p": (0.781, 0.185, 0.144, 0.375, 0.069, 0.969),
    "fitzhugh-nagumo": (0.415, 0.117, 0.007, 0.030, 0.514, 0.802),
    "lotka-volterra-p": (0.694, 0.024, 0.376, 0.393, 0.033, 0.867),
}

# Table 4
SOLVERS: dict[str, Figures] = {
    "BARON": (0.667, 0.518, 0.135, 0.168, 0.076, 0.992),
    "Couenne": (0.691, 0.482, 0.130, 0.089, 0.138, 0.841),
    "Knitro": (0.961, 0.430, 0.130, 0.156, 0.026, 0.994),
    "Octeract": (0.524, 0.408, 0.115, 0.182, 1.286, 0.867),
    "BONMIN": (0.897, 0.403, 0.111, 0.117, 0.038, 0.897),
    "Ipopt": (0.886, 0.395, 0.124, 0.211, 0.038, 0.933),
    "CONOPT": (0.000, 0.306, 0.098, 0.215, 0.044, 0.921),
    "SNOPT": (0.752, 0.221, 0.045, 0.212, 0.040, 0.764),
}

# Table 5
SCHEMES: dict[str, Figures] = {
    "Trapezoid": (0.723, 0.462, 0.104, 0.177, 0.026, 0.951),
    "Adams-Moulton": (0.693, 0.399, 0.104, 0.160, 0.029, 0.891),
    "Simpson": (0.691, 0.396, 0.126, 0.149, 0.028, 0.914),
    "Runge-Kutta": (0.604, 0.365, 0.097, 0.166, 0.093, 0.813),
    "Euler": (0.650, 0.356, 0.125, 0.192, 0.029, 0.937),
}

# Table 6
FORMULATIONS: dict[str, Figures] = {
    "Baseline": (0.643, 0.441, 0.081, 0.146, 0.032, 0.872),
    "ExtraTol": (0.716, 0.410, 0.141, 0.203, 0.028, 0.911),
    "SoftCons": (0.637, 0.356, 0.092, 0.142, 0.026, 0.904),
}

# Table B.7
PROBLEM_SOLVER: dict[tuple[str, str], Figures] = {
    ("mammillary-3-f", "BARON"): (0.880, 1.000, 0.000, 0.000, 0.076, 1.000),
    ("mammillary-3-f", "Couenne"): (1.000, 1.000, 0.000, 0.000, 0.220, 1.000),
    ("harmonic", "Octeract"): (0.720, 0.980, 0.020, 0.000, 1.286, 1.000),
    ("harmonic", "BARON"): (0.760, 0.960, 0.000, 0.000, 0.143, 1.000),
    ("mammillary-3-f", "BONMIN"): (1.000, 0.960, 0.000, 0.000, 0.046, 1.000),
    ("mammillary-3-f", "CONOPT"): (0.000, 0.920, 0.080, 0.000, 0.072, 1.000),
    ("mammillary-3-f", "Ipopt"): (1.000, 0.920, 0.000, 0.000, 0.056, 1.000),
    ("lotka-volterra-f", "BONMIN"): (1.000, 0.900, 0.000, 0.000, 0.038, 1.000),
    ("lotka-volterra-f", "Ipopt"): (0.980, 0.880, 0.000, 0.000, 0.038, 0.980),
    ("lotka-volterra-f", "BARON"): (0.580, 0.860, 0.000, 0.000, 0.097, 1.000),
}

# Table B.8
PROBLEM_SCHEME: dict[tuple[str, str], Figures] = {
    ("lotka-volterra-f", "Simpson"): (0.775, 0.988, 0.013, 0.000, 0.028, 1.000),
    ("lotka-volterra-f", "Trapezoid"): (0.775, 0.975, 0.025, 0.000, 0.026, 1.000),
    ("mammillary-3-f", "Euler"): (0.700, 0.925, 0.025, 0.000, 0.029, 1.000),
    ("mammillary-3-f", "Trapezoid"): (0.750, 0.925, 0.025, 0.000, 0.031, 1.000),
    ("lotka-volterra-f", "Adams-Moulton"): (0.863, 0.900, 0.013, 0.000, 0.029, 0.912),
    ("mammillary-3-f", "Simpson"): (0.725, 0.887, 0.013, 0.000, 0.038, 0.938),
    ("mammillary-3-f", "Runge-Kutta"): (0.750, 0.875, 0.025, 0.013, 0.093, 0.938),
    ("lotka-volterra-f", "Runge-Kutta"): (0.725, 0.825, 0.050, 0.000, 0.102, 0.900),
    ("mammillary-3-f", "Adams-Moulton"): (0.750, 0.812, 0.025, 0.000, 0.055, 0.950),
    ("harmonic", "Trapezoid"): (0.787, 0.800, 0.000, 0.000, 0.039, 0.950),
}

# Table B.9
PROBLEM_FORMULATION: dict[tuple[str, str], Figures] = {
    ("mammillary-3-f", "Baseline"): (0.725, 0.938, 0.000, 0.000, 0.032, 0.975),
    ("hiv-f", "Baseline"): (0.838, 0.925, 0.000, 0.000, 0.056, 0.938),
    ("mammillary-3-f", "ExtraTol"): (0.738, 0.875, 0.056, 0.006, 0.029, 0.956),
    ("mammillary-3-f", "SoftCons"): (0.738, 0.869, 0.000, 0.000, 0.040, 0.969),
    ("harmonic", "ExtraTol"): (0.812, 0.863, 0.000, 0.000, 0.034, 0.981),
    ("lotka-volterra-f", "SoftCons"): (0.738, 0.844, 0.038, 0.000, 0.026, 0.975),
    ("lotka-volterra-f", "ExtraTol"): (0.769, 0.838, 0.019, 0.000, 0.030, 0.963),
    ("lotka-volterra-f", "Baseline"): (0.700, 0.812, 0.000, 0.000, 0.044, 0.925),
    ("harmonic", "SoftCons"): (0.619, 0.650, 0.000, 0.000, 0.120, 0.894),
    ("hiv-f", "ExtraTol"): (0.856, 0.644, 0.150, 0.206, 0.033, 1.000),
}

# Table B.10
SOLVER_SCHEME: dict[tuple[str, str], Figures] = {
    ("Couenne", "Trapezoid"): (0.795, 0.591, 0.144, 0.098, 0.138, 0.917),
    ("BARON", "Trapezoid"): (0.758, 0.576, 0.114, 0.182, 0.078, 1.000),
    ("BARON", "Adams-Moulton"): (0.758, 0.568, 0.129, 0.144, 0.102, 0.985),
    ("Knitro", "Trapezoid"): (0.977, 0.530, 0.098, 0.174, 0.026, 1.000),
    ("Octeract", "Trapezoid"): (0.568, 0.523, 0.106, 0.167, 1.286, 0.939),
    ("Couenne", "Simpson"): (0.780, 0.523, 0.182, 0.083, 0.148, 0.894),
    ("BARON", "Simpson"): (0.689, 0.500, 0.159, 0.167, 0.095, 1.000),
    ("BARON", "Runge-Kutta"): (0.667, 0.485, 0.121, 0.136, 0.306, 0.977),
    ("Couenne", "Adams-Moulton"): (0.720, 0.477, 0.121, 0.106, 0.236, 0.924),
    ("BARON", "Euler"): (0.462, 0.462, 0.152, 0.212, 0.076, 1.000),
}

# Table B.11
SOLVER_FORMULATION: dict[tuple[str, str], Figures] = {
    ("Knitro", "Baseline"): (0.888, 0.576, 0.096, 0.128, 0.032, 0.984),
    ("BARON", "ExtraTol"): (0.786, 0.572, 0.182, 0.133, 0.076, 0.996),
    ("Couenne", "Baseline"): (0.664, 0.536, 0.096, 0.040, 0.212, 0.784),
    ("BONMIN", "Baseline"): (0.856, 0.504, 0.120, 0.024, 0.046, 0.856),
    ("Couenne", "ExtraTol"): (0.705, 0.491, 0.158, 0.109, 0.138, 0.849),
    ("BARON", "Baseline"): (0.624, 0.488, 0.096, 0.264, 0.134, 1.000),
    ("BARON", "SoftCons"): (0.552, 0.472, 0.100, 0.160, 0.097, 0.984),
    ("Octeract", "Baseline"): (0.616, 0.456, 0.056, 0.176, 1.563, 0.856),
    ("Knitro", "ExtraTol"): (0.975, 0.449, 0.168, 0.186, 0.028, 0.993),
    ("Ipopt", "ExtraTol"): (0.902, 0.449, 0.154, 0.175, 0.056, 0.937),
}

# Table B.12
SCHEME_FORMULATION: dict[tuple[str, str], Figures] = {
    ("Trapezoid", "Baseline"): (0.715, 0.530, 0.065, 0.145, 0.032, 0.950),
    ("Trapezoid", "ExtraTol"): (0.750, 0.474, 0.125, 0.206, 0.028, 0.950),
    ("Adams-Moulton", "Baseline"): (0.700, 0.445, 0.075, 0.145, 0.093, 0.870),
    ("Simpson", "Baseline"): (0.635, 0.430, 0.105, 0.130, 0.046, 0.870),
    ("Adams-Moulton", "ExtraTol"): (0.724, 0.425, 0.149, 0.189, 0.041, 0.897),
    ("Simpson", "ExtraTol"): (0.741, 0.419, 0.140, 0.193, 0.037, 0.925),
    ("Trapezoid", "SoftCons"): (0.695, 0.415, 0.100, 0.160, 0.026, 0.953),
    ("Runge-Kutta", "Baseline"): (0.545, 0.405, 0.055, 0.140, 0.106, 0.760),
    ("Euler", "Baseline"): (0.620, 0.395, 0.105, 0.170, 0.032, 0.910),
    ("Runge-Kutta", "ExtraTol"): (0.664, 0.371, 0.138, 0.189, 0.093, 0.840),
}


def scopes() -> dict[str, Figures]:
    """Return means of Table 4's rows over local and over global solvers, with the smallest TIME.

    The paper does not print them; all its solvers have the same number of runs.
    """
    found: dict[str, Figures] = {}
    for scope in ("local", "global"):
        rows = [f for s, f in SOLVERS.items() if (s in GLOBAL_SOLVERS) == (scope == "global")]
        mean = [round(sum(column) / len(rows), 3) for column in zip(*rows, strict=True)]
        time = min(row[COLUMNS.index("TIME")] for row in rows)
        found[scope] = (mean[0], mean[1], mean[2], mean[3], time, mean[5])
    return found
