"""One fit as a script written by hand: `whole_fit.py` starts it and reads what it prints.

    python evidence/peers/fit_by_hand.py NAME DATA.csv SEED

What people write: the right-hand side as a Python function, `solve_ivp`, `least_squares` with
bounds and its finite-difference Jacobian, ten random starts uniform in the bounds, the best wins.
"""

from __future__ import annotations

import time

BEGAN = time.perf_counter()

import csv
import json
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import solve_ivp
from scipy.optimize import least_squares

IMPORTED = time.perf_counter()

Array = NDArray[np.float64]
STARTS = 10


@dataclass(frozen=True)
class Model:
    """A model as a script holds it.

    Attributes
    ----------
    rhs
        Right-hand side: t, states, parameters.
    names
        Of the unknowns: parameters, then initial values if they are fitted.
    lower, upper
        Bounds of the unknowns.
    initial
        Known initial values; None if they are fitted.
    observe
        From states, shape (n, times), to rows of the data.
    """

    rhs: Callable[[float, Array, Any], list[float]]
    names: str
    lower: list[float]
    upper: list[float]
    initial: list[float] | None
    observe: Callable[[Array], Any] = lambda x: x


def alpha_pinene(t: float, x: Array, p: Any) -> list[float]:
    """Thermal isomerisation."""
    x1, _, x3, _, x5 = x
    p1, p2, p3, p4, p5 = p
    return [
        -(p1 + p2) * x1,
        p1 * x1,
        p2 * x1 - (p3 + p4) * x3 + p5 * x5,
        p3 * x3,
        p4 * x3 - p5 * x5,
    ]


def bbg(t: float, x: Array, p: Any) -> list[float]:
    """Batch growth."""
    cb, cs = x
    mu, ks, kd, y = p
    growth = mu * cs * cb / (ks + cs)
    return [growth - kd * cb, -growth / y]


def fitzhugh_nagumo(t: float, x: Array, p: Any) -> list[float]:
    """A spiking neuron."""
    v, r = x
    g, a, b = p
    return [g * (v - v**3 / 3 + r), -(v - a + b * r) / g]


def harmonic(t: float, x: Array, p: Any) -> list[float]:
    """An oscillator."""
    return [-p[0] * x[1], x[0] / p[1]]


def lotka_volterra(t: float, x: Array, p: Any) -> list[float]:
    """Predator and prey."""
    r, w = x
    return [p[0] * r - p[1] * r * w, p[1] * r * w - p[2] * w]


def mammillary(t: float, x: Array, p: Any) -> list[float]:
    """Three compartments."""
    x1, x2, x3 = x
    a21, a31, a01, a12, a13 = p
    return [-(a21 + a31 + a01) * x1 + a12 * x2 + a13 * x3, a21 * x1 - a12 * x2, a31 * x1 - a13 * x3]


def hiv(t: float, s: Array, p: Any) -> list[float]:
    """Virus and immune answer."""
    x, y, v, w, z = s
    lam, d, beta, a, k, u, c, q, b, h = p
    return [
        lam - d * x - beta * x * v,
        beta * x * v - a * y,
        k * y - u * v,
        c * x * y * w - c * q * y * w - b * w,
        c * q * y * w - h * z,
    ]


def crauste(t: float, s: Array, p: Any) -> list[float]:
    """Differentiation of T cells."""
    n, e, l, m, g = s  # noqa: E741 - late effector cells
    mu_n, d_ne, mu_ee, d_el, rho_e, d_lm, mu_ll, mu_le, mu_m, rho_p, mu_p, mu_pe, mu_pl = p
    return [
        -mu_n * n - d_ne * n * g,
        d_ne * n * g - mu_ee * e**2 - d_el * e + rho_e * e * g,
        d_el * l - l * d_lm - mu_ll * l**2 - mu_le * e * l,
        d_lm * l - mu_m * m,
        rho_p * g**2 - mu_p * g - mu_pe * e * g - mu_pl * l * g,
    ]


HIV = "lambda d beta a k u c q b h x y v w z"
CRAUSTE = (
    "mu_N delta_NE mu_EE delta_EL rho_E delta_LM mu_LL mu_LE mu_M rho_P mu_P mu_PE mu_PL N E S M P"
)
MODELS = {
    "alpha-pinene": Model(
        alpha_pinene, "p1 p2 p3 p4 p5", [0.0] * 5, [1.0] * 5, [100.0, 0.0, 0.0, 0.0, 0.0]
    ),
    "bbg": Model(bbg, "mu_max K_s k_d yield", [1e-4] * 4, [100.0] * 4, [2.0, 30.0]),
    "fitzhugh-nagumo": Model(
        fitzhugh_nagumo, "g a b", [1e-5] * 3, [1e5] * 3, [-1.0, 1.0], lambda x: x[:1]
    ),
    "harmonic": Model(
        harmonic, "p1 p2 x1 x2", [1e-4, 1e-4, 0.0, 0.0], [10.0, 10.0, 1.5, 1.5], None
    ),
    "lotka-volterra-f": Model(
        lotka_volterra, "k1 k2 k3 r w", [1e-4] * 3 + [90.0] * 2, [1.0] * 3 + [110.0] * 2, None
    ),
    "lotka-volterra-p": Model(
        lotka_volterra,
        "k1 k2 k3 r w",
        [1e-4] * 3 + [90.0] * 2,
        [1.0] * 3 + [110.0] * 2,
        None,
        lambda x: x[:1],
    ),
    "mammillary-3-f": Model(
        mammillary, "a21 a31 a01 a12 a13 x1 x2 x3", [-1.0] * 8, [2.0] * 8, None
    ),
    "mammillary-3-p": Model(
        mammillary, "a21 a31 a01 a12 a13 x1 x2 x3", [-1.0] * 8, [2.0] * 8, None, lambda x: x[:2]
    ),
    "hiv-f": Model(hiv, HIV, [1e-4] * 10 + [1e-3] * 5, [1.0] * 10 + [2.0] * 5, None),
    "hiv-p": Model(
        hiv,
        HIV,
        [1e-4] * 10 + [1e-3] * 5,
        [1.0] * 10 + [2.0] * 5,
        None,
        lambda x: np.array([x[0], x[1] + x[2], x[3], x[4]]),
    ),
    "crauste-f": Model(crauste, CRAUSTE, [-2.0] * 13 + [-1.1] * 5, [2.0] * 13 + [1.1] * 5, None),
    "crauste-p": Model(
        crauste,
        CRAUSTE,
        [-2.0] * 13 + [-1.1] * 5,
        [2.0] * 13 + [1.1] * 5,
        None,
        lambda x: np.array([x[0], x[1], x[2] + x[3], x[4]]),
    ),
}


def residuals(vector: Array, model: Model, times: Array, data: Array) -> Array:
    """What `least_squares` gets; large where the integration fails."""
    if model.initial is None:
        states = 5 if len(vector) > 8 else 3 if len(vector) == 8 else 2
        parameters, initial = vector[:-states], vector[-states:]
    else:
        parameters, initial = vector, np.array(model.initial)
    end = (0.0, float(times[-1]))
    solution = solve_ivp(
        model.rhs, end, initial, "LSODA", times, args=(parameters,), rtol=1e-8, atol=1e-10
    )
    if not solution.success or not np.isfinite(solution.y).all():
        return np.full(data.size, 1e6)
    return np.asarray(model.observe(solution.y) - data).ravel()


def main(arguments: list[str]) -> None:
    """Fit and print the outcome as JSON."""
    name, file, seed = arguments
    warnings.simplefilter("ignore")  # scripts of this kind warn without end when starts blow up
    model = MODELS[name]
    with open(file, newline="", encoding="utf-8") as stream:  # noqa: PTH123 - as people write it
        table = np.array([[float(v) for v in row] for row in list(csv.reader(stream))[1:]])
    times, data = table[:, 0], table[:, 1:].T
    rng = np.random.default_rng(int(seed))
    found = []
    for _ in range(STARTS):
        start = rng.uniform(model.lower, model.upper)
        try:
            fit = least_squares(
                residuals, start, bounds=(model.lower, model.upper), args=(model, times, data)
            )
        except ValueError:
            continue
        found.append((2 * float(fit.cost), fit.x.tolist()))
    objective, solution = min(found)
    print(
        json.dumps(
            {
                "objective": objective,
                "unknowns": dict(zip(model.names.split(), solution, strict=True)),
                "import": IMPORTED - BEGAN,
                "work": time.perf_counter() - IMPORTED,
                "all": [o for o, _ in found],
            }
        )
    )


if __name__ == "__main__":
    main(sys.argv[1:])
