"""Checks of the data that were given: against the hand-written models, within stated errors."""

from __future__ import annotations

import csv
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import numpy as np
from mpmath import mpf
from scipy.integrate import solve_ivp

from library_data import systems
from library_data.integrator import RightHandSide, trajectory
from library_data.series import Column, state, total

# problem -> right-hand side, names of its parameters and states in the order it takes them,
# observed columns
RATIONAL: dict[str, tuple[Callable[..., RightHandSide], str, str, list[Column]]] = {
    "rational-harmonic": (systems.harmonic, "a b", "x1 x2", [state(0), state(1)]),
    "rational-van-der-pol": (systems.van_der_pol, "a b", "x1 x2", [state(0), state(1)]),
    "rational-lotka-volterra": (systems.lotka_volterra, "k1 k2 k3", "r w", [state(0)]),
    "rational-fitzhugh-nagumo": (systems.fitzhugh_nagumo_rational, "g a b", "V R", [state(0)]),
    "rational-hiv": (
        systems.hiv,
        "lm d beta a k uu c q b h",
        "x yy vv w z",
        [state(3), state(4), state(0), total(1, 2)],
    ),
    "rational-mammillary-3": (
        systems.mammillary_3,
        "a21 a31 a01 a12 a13",
        "x1 x2 x3",
        [state(0), state(1)],
    ),
    "rational-mammillary-4": (
        systems.mammillary_4,
        "k01 k12 k13 k14 k21 k31 k41",
        "x1 x2 x3 x4",
        [state(0), state(1), total(2, 3)],
    ),
    "rational-crauste": (
        systems.crauste,
        "muN deltaNE muEE deltaEL rhoE deltaLM muLL muLE muM rhoP muP muPE muPL",
        "n e s m p",
        [state(0), state(1), total(2, 3), state(4)],
    ),
    "rational-seir": (systems.seir, "a b nu", "S E In NN", [state(2), state(3)]),
    "rational-biohydrogenation": (
        systems.biohydrogenation,
        "k5 k6 k7 k8 k9 k10",
        "x4 x5 x6 x7",
        [state(0), state(1)],
    ),
}
RATIONAL_ERROR = 1e-9  # the given files come from a double-precision solver
INHIBITOR = [0.0, 0.0015, 0.003, 0.004, 0.004]  # outer-approximation (57), uM


def _table(path: Path) -> tuple[list[str], np.ndarray]:
    """Return the times as texts, and the other columns as an array (times x columns)."""
    with path.open(encoding="utf-8", newline="") as stream:
        rows = list(csv.reader(stream))[1:]
    return [row[0] for row in rows], np.array([[float(v) for v in row[1:]] for row in rows])


def _reference(folder: Path) -> dict[str, Any]:
    return tomllib.loads((folder / "reference.toml").read_text(encoding="utf-8"))


def _double_precision(
    f: RightHandSide,
    times: list[str],
    initial: list[float],
    method: Literal["DOP853", "LSODA", "Radau", "BDF"],
) -> np.ndarray:
    """States at `times` (shape times x states) from t = 0 by a solver for stiff systems."""
    grid = [float(t) for t in times]
    solution = solve_ivp(
        lambda t, x: np.array(f(t, list(x)), dtype=float),
        (0.0, grid[-1]),
        initial,
        method=method,
        t_eval=grid,
        rtol=1e-10,
        atol=1e-13,
    )
    if not solution.success:
        raise RuntimeError(solution.message)
    states: np.ndarray = solution.y.T
    return states


def rational_discrepancy(folder: Path, data_set: int) -> float:
    """Largest absolute difference between the simulated truth and a given data set."""
    build, parameters, states, columns = RATIONAL[folder.name]
    truth = _reference(folder)["datasets"][str(data_set)]
    times, values = _table(folder / f"data_{data_set}.csv")
    f = build(*(mpf(str(truth["parameters"][name])) for name in parameters.split()))
    initial = [mpf(str(truth["initial"][name])) for name in states.split()]
    points = trajectory(f, mpf(times[0]), initial, [mpf(t) for t in times])
    simulated = np.array([[float(column(x)) for column in columns] for x in points])
    return float(np.abs(simulated - values).max())


def alpha_pinene_objective(folder: Path) -> float:
    """Sum of squares of the measurements at the reference parameters."""
    parameters = _reference(folder)["parameters"]
    times, values = _table(folder / "alpha_pinene.csv")
    f = systems.alpha_pinene(*(parameters[f"p{i}"] for i in range(1, 6)))
    states = _double_precision(f, times, [100.0, 0.0, 0.0, 0.0, 0.0], "DOP853")
    return float(((states - values) ** 2).sum())


def hiv_proteinase_objective(folder: Path) -> float:
    """Sum of squares of the five series at the generating values."""
    values = _reference(folder)["parameters"]
    f = systems.hiv_proteinase(*(values[k] for k in ("k3", "k42", "k22", "k52", "k6")))
    objective = 0.0
    for number, inhibitor in enumerate(INHIBITOR, 1):
        times, signal = _table(folder / f"exp{number}.csv")
        own = {name: values[f"{name}[exp {number}]"] for name in ("S0", "E0", "offset")}
        initial = [0.0, 0.0, own["S0"], inhibitor, 0.0, 0.0, own["E0"], 0.0, 0.0]
        product = _double_precision(f, times, initial, "Radau")[:, 1]
        objective += float(((0.024 * product + own["offset"] - signal[:, 0]) ** 2).sum())
    return objective


def check_given(problems: Path, wanted: set[str]) -> tuple[int, list[str]]:
    """Return the number of given files that were checked, and a sentence for each that disagrees.

    Parameters
    ----------
        problems: the folder with one folder a problem. wanted: names of the problems to check; all
        if it is empty.
    """
    checked = 0
    complaints = []
    for name in RATIONAL:
        if wanted and name not in wanted:
            continue
        for data_set in range(5):
            checked += 1
            error = rational_discrepancy(problems / name, data_set)
            if not error < RATIONAL_ERROR:
                complaints.append(f"{name}/data_{data_set}.csv: {error:.2g} from the simulation")
    for name, files, objective in (
        ("alpha-pinene", 1, alpha_pinene_objective),
        ("hiv-proteinase", 5, hiv_proteinase_objective),
    ):
        if wanted and name not in wanted:
            continue
        checked += files
        expected = _reference(problems / name)["objective"]
        found = objective(problems / name)
        if not abs(found - expected) < 1e-4 * expected:
            complaints.append(f"{name}: sum of squares {found:.8g}, reference {expected:.8g}")
    return checked, complaints
