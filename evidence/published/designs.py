"""The campaign `published-designs`: designs of papers and of other programs, planned again.

The information of the published and of the planned design is computed by SciPy alone, with central
differences of a second writing of each model. This computation uses no code of odefit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.integrate import solve_ivp

from evidence.running.campaign import Option, Record, Task
from odefit import Design, Event, Experiment, Model, Problem, design
from odefit.common.arrays import Array


@dataclass(frozen=True)
class Published:
    """A published design, and how it is planned again."""

    source: str
    criterion: str
    setting: str  # of the published design, as a table shows it
    published: Array
    plan: Callable[[], tuple[Array, str]]  # the design that odefit finds, and its text in a table
    value: Callable[[Array], float]  # logarithm of a determinant, by SciPy
    unknowns: int  # of which it is the determinant
    stated: float | None = None  # the value that the source prints
    other: Callable[[Array], float] | None = None  # a second criterion of the source


def differences(function: Callable[[Array], Array], values: Array) -> Array:
    """Return the relative derivatives of a function by central differences, shape (m, n)."""
    columns = []
    for i, value in enumerate(values):
        step = np.zeros(len(values))
        step[i] = 1e-5 * value
        columns.append((function(values + step) - function(values - step)) / 2e-5)
    return np.column_stack(columns)


def log_determinant(matrix: Array) -> float:
    """Return the logarithm of the determinant of an information matrix."""
    return float(np.linalg.slogdet(matrix)[1])


def _times(found: Design, name: str) -> Array:
    times = found.times[name] if isinstance(found.times, dict) else found.times
    return np.sort(np.array(times))


# Box and Lucas ------------------------------------------------------------------------------------

RATES = np.array([0.7, 0.2])


def consecutive(times: Array) -> float:
    """Return the D-criterion of measurements of B in A -> B -> C, with unit variance."""

    def measured(rates: Array) -> Array:
        k1, k2 = rates
        return np.asarray(k1 / (k1 - k2) * (np.exp(-k2 * times) - np.exp(-k1 * times)))

    rows = differences(measured, RATES) / RATES
    return log_determinant(rows.T @ rows)


def _consecutive() -> tuple[Array, str]:
    problem = Problem(
        Model(ode={"a": "-k1*a", "b": "k1*a - k2*b"}, observables={"y": "b"}),
        data={"t": [0.0, 20.0], "y": [0.0, 0.1]},
        parameters={"k1": {}, "k2": {}},
        initial={"a": 1.0, "b": 0.0},
        noise={"y": {"sd": 1.0}},
    )
    found = design(problem, {"k1": 0.7, "k2": 0.2}, times=(0.0, 20.0), count=2)
    times = _times(found, "y")
    return times, _shown(times)


# The reactor of Pyomo.DoE -------------------------------------------------------------------------

REACTOR = np.array([84.79, 371.72, 7.78, 15.05])  # A1, A2, E1, E2
NINE = np.linspace(0.0, 1.0, 9)
EARLIER = [np.array([5.0, *[temperature] * 8]) for temperature in (500.0, 300.0)]


def _reactor_runs(setting: Array, values: Array) -> Array:
    """Return the three concentrations at nine times: initial CA and temperatures are set."""
    a1, a2, e1, e2 = values
    state, found = np.array([setting[0], 0.0, 0.0]), [np.array([setting[0], 0.0, 0.0])]
    for start, end, kelvin in zip(NINE[:-1], NINE[1:], setting[1:], strict=True):
        first = a1 * np.exp(-e1 * 1000 / (8.314 * kelvin))
        second = a2 * np.exp(-e2 * 1000 / (8.314 * kelvin))

        def rates(_t: float, x: Array, k: float = first, m: float = second) -> list[float]:
            return [-k * x[0], k * x[0] - m * x[1], m * x[1]]

        solved = solve_ivp(rates, (start, end), state, method="LSODA", rtol=1e-11, atol=1e-12)
        state = solved.y[:, -1]
        found.append(state)
    return np.concatenate(found)


def reactor(setting: Array) -> float:
    """Return the D-criterion of relative unknowns, with the two existing experiments."""
    rows = differences(
        lambda values: np.concatenate([_reactor_runs(s, values) for s in (*EARLIER, setting)]),
        REACTOR,
    )
    return log_determinant(rows.T @ rows)


def _reactor() -> tuple[Array, str]:
    names = ("CA", "CB", "CC")
    blank = {"t": NINE, **{name: np.ones(9) for name in names}}
    problem = Problem(
        Model(
            ode={"CA": "-r1", "CB": "r1 - r2", "CC": "r2"},
            definitions={
                "r1": "A1*exp(-E1*1000/(8.314*T))*CA",
                "r2": "A2*exp(-E2*1000/(8.314*T))*CB",
            },
            constants={"T": 300.0},
        ),
        experiments=[
            Experiment("hot", blank, constants={"T": 500.0}),
            Experiment("cold", blank, constants={"T": 300.0}),
        ],
        parameters={key: {} for key in ("A1", "A2", "E1", "E2")},
        initial={"CA": 5.0, "CB": 0.0, "CC": 0.0},
        noise={name: {"sd": 1.0} for name in names},
    )
    pieces = {"lower": 300.0, "upper": 700.0, "at": NINE[:-1].tolist()}
    found = design(
        problem,
        dict(zip(("A1", "A2", "E1", "E2"), REACTOR.tolist(), strict=True)),
        vary={"CA": (1.0, 5.0), "T": pieces},
        times=NINE.tolist(),
        count=9,
        together=True,
        replicates=1,
        runs=1,
        existing=True,
        experiments=["cold"],
    )
    settings = found.runs[0].settings
    setting = np.array([settings["CA"], *(settings[f"T@{t:g}"] for t in NINE[:-1])])
    kelvins = " ".join(f"{kelvin:.0f}" for kelvin in setting[1:])
    return setting, f"CA {setting[0]:g}; {kelvins} K"


# The introduction of PopED ------------------------------------------------------------------------

POPULATION = np.array([72.8, 0.25, 3.75])  # V, KA, CL: L, 1/h, L/h
VARIANCES = np.array([0.09, 0.09, 0.0625])  # of the logarithms between subjects
PROPORTIONAL, ADDITIVE = 0.04, 5e-6  # variances of the residual error
SUBJECTS = 20  # in each group
DOSES = (20.0, 40.0)  # mg every 24 h
AVAILABLE = 0.9
HOURS = (*map(float, range(11)), *map(float, range(240, 249)))


def concentration(times: Array, values: Array, dose: float) -> Array:
    """Return the sum of the concentrations of all doses so far."""
    volume, ka, clearance = values
    ke = clearance / volume
    since = times[:, None] - 24.0 * np.arange(11)
    one = np.exp(-ke * since) - np.exp(-ka * since)
    share = AVAILABLE * dose * ka / (volume * (ka - ke))
    return np.asarray(share * np.where(since >= 0.0, one, 0.0).sum(axis=1))


def population(times: Array) -> Array:
    """Return PopED's information matrix: fixed effects, variances, and the proportional error.

    It is the reduced one of the first-order approximation, with all blocks between fixed effects
    and variances zero.
    """
    found = np.zeros((7, 7))
    for dose in DOSES:

        def measured(values: Array, dose: float = dose) -> Array:
            return concentration(times, values, dose)

        relative = differences(measured, POPULATION)
        squares = np.diag(measured(POPULATION) ** 2)
        error = PROPORTIONAL * squares + ADDITIVE * np.eye(len(times))
        inverse = np.linalg.inv(relative @ np.diag(VARIANCES) @ relative.T + error)
        fixed = relative / POPULATION
        found[:3, :3] += SUBJECTS * fixed.T @ inverse @ fixed
        spread = [inverse @ np.outer(column, column) for column in relative.T]
        spread.append(inverse @ squares)
        found[3:, 3:] += (
            SUBJECTS / 2 * np.array([[np.trace(a @ b) for b in spread] for a in spread])
        )
    return found


def _population(times: Any, kept: Sequence[float] = ()) -> Callable[[], tuple[Array, str]]:
    """Return the plan of five samples, some of which are fixed.

    A subject of each group stands for all. The effects of a subject are unknowns with a prior,
    whose elimination leaves the fixed effects' block of the information matrix. The error does not
    depend on unknowns there, so its size is that of a copy of the model with numbers.
    """

    def plan() -> tuple[Array, str]:
        ode, observables, doses = {}, {}, {}
        initial: dict[str, Any] = {}
        for one, dose in zip(("low", "high"), DOSES, strict=True):
            absorbed = f"KA*exp(eKA_{one})*gut_{one}"
            ode[f"gut_{one}"] = f"-{absorbed}"
            ode[f"{one}"] = f"{absorbed} - CL*exp(eCL_{one})/(V*exp(eV_{one}))*{one}"
            observables[f"c_{one}"] = f"{one}/(V*exp(eV_{one}))"
            initial |= {f"gut_{one}": AVAILABLE * dose, one: 0.0}
            doses[f"gut_{one}"] = f"gut_{one} + {AVAILABLE * dose}"
        volume, ka, clearance = POPULATION
        ode |= {"gut": f"-{ka}*gut", "typical": f"{ka}*gut - {clearance}/{volume}*typical"}
        initial |= {"gut": AVAILABLE, "typical": 0.0}
        doses["gut"] = f"gut + {AVAILABLE}"
        observables["per_mg"] = f"typical/{volume}"
        parameters: dict[str, Any] = {"V": {}, "KA": {}, "CL": {}}
        for name, variance in zip(parameters.copy(), VARIANCES, strict=True):
            prior = {"mean": 0.0, "sd": float(np.sqrt(variance))}
            parameters |= {f"e{name}_{one}": {"prior": prior} for one in ("low", "high")}
        existing = list(kept) or [0.0]
        measured = {f"c_{one}": np.full(len(existing), 0.1) for one in ("low", "high")}
        problem = Problem(
            Model(ode=ode, observables=observables),
            experiments=[
                Experiment(
                    "subjects",
                    {"t": existing, **measured},
                    t0=0.0,
                    events=[Event(times=(24.0 * np.arange(1, 11)).tolist(), assign=doses)],
                )
            ],
            parameters=parameters,
            initial=initial,
            noise={
                f"c_{one}": {"sd": f"sqrt({PROPORTIONAL}*({dose}*per_mg)^2 + {ADDITIVE})"}
                for one, dose in zip(("low", "high"), DOSES, strict=True)
            },
        )
        values = dict.fromkeys(parameters, 0.0)
        values |= dict(zip(("V", "KA", "CL"), POPULATION.tolist(), strict=True))
        found = design(
            problem,
            values,
            observables=["c_low", "c_high"],
            times=times,
            count=5 - len(kept),
            together=True,
            criterion="Ds",
            of=["V", "KA", "CL"],
            runs=1,
            existing=bool(kept),
        )
        planned = np.sort([*_times(found, "c_low"), *kept])
        return planned, _shown(planned)

    return plan


def fixed_effects(times: Array) -> float:
    """Return the criterion Ds of the fixed effects, which is PopED's default choice for Ds."""
    return log_determinant(population(times)[:3, :3])


def poped_objective(times: Array) -> float:
    """Return the objective that PopED prints: ln det of the whole matrix."""
    return log_determinant(population(times))


def _shown(times: Array) -> str:
    return " ".join(f"{t:.4g}" for t in times)


def _poped(source: str, published: Sequence[float], stated: float, plan: Any) -> Published:
    return Published(
        source,
        "Ds of V, KA and CL",
        _shown(np.array(published)),
        np.array(published),
        plan,
        fixed_effects,
        3,
        stated,
        poped_objective,
    )


WINDOWS = [*np.linspace(0.0, 10.0, 101).tolist(), *np.linspace(240.0, 248.0, 81).tolist()]
CONTINUOUS, WHOLE = (0.4573, 10.0, 10.0, 240.0, 240.9), (1.0, 10.0, 10.0, 240.0, 241.0)

DESIGNS = {
    "box-lucas": Published(
        "Box and Lucas, Biometrika 46, 1959",
        "D",
        "1.23 6.86",
        np.array([1.23, 6.86]),
        _consecutive,
        consecutive,
        2,
    ),
    "reactor": Published(
        "the reactor of Pyomo.DoE; Wang and Dowling, AIChE J. 68, 2022",
        "D, relative unknowns",
        "CA 5; 570 K, then 300 K",
        np.array([5.0, 570.0, *[300.0] * 7]),
        _reactor,
        reactor,
        4,
    ),
    "poped-early": _poped(
        "PopED's introduction; its last two samples kept, three planned in 0 to 10 h",
        CONTINUOUS,
        40.5277,
        _population((0.0, 10.0), CONTINUOUS[3:]),
    ),
    "poped-early-hours": _poped(
        "the same at whole hours", WHOLE, 40.3782, _population(HOURS[:11], WHOLE[3:])
    ),
    "poped": _poped(
        "PopED's introduction; five samples, as many as one likes in each of its windows",
        CONTINUOUS,
        40.5277,
        _population(WINDOWS),
    ),
    "poped-hours": _poped("the same at whole hours", WHOLE, 40.3782, _population(HOURS)),
}

OPTIONS = (Option("designs", tuple(DESIGNS), "designs, e.g. box-lucas,poped", tuple(DESIGNS)),)


def tasks(designs: Sequence[str]) -> list[Task]:
    """Return a task for each design."""
    return [{"key": name, "design": name} for name in designs]


def run(task: Task) -> Mapping[str, Any]:
    """Plan a design, and compute the information of both by SciPy."""
    one = DESIGNS[task["design"]]
    found, shown = one.plan()
    return {
        "found": found.tolist(),
        "shown": shown,
        "published value": one.value(one.published),
        "found value": one.value(found),
        "others": [] if one.other is None else [one.other(one.published), one.other(found)],
    }


def tables(records: Sequence[Record]) -> Mapping[str, pd.DataFrame]:
    """Return a row for each design."""
    rows = []
    for record in records:
        if record.result is None:
            continue
        one, result = DESIGNS[record.task["design"]], record.result
        gain = (result["found value"] - result["published value"]) / one.unknowns
        others = "; ".join(f"{value:.4f}" for value in result["others"])
        rows.append(
            {
                "design": one.source,
                "criterion": one.criterion,
                "published": one.setting,
                "planned by odefit": result["shown"],
                "ln det of the published one": f"{result['published value']:.5f}",
                "ln det of the planned one": f"{result['found value']:.5f}",
                "efficiency relative to the published one": f"{np.exp(gain):.5f}",
                "PopED's objective: printed; published design; planned one": (
                    "" if one.stated is None else f"{one.stated}; {others}"
                ),
            }
        )
    return {"published-designs": pd.DataFrame(rows)}
