"""The campaign `unknown-functions`: the coverage of bands of estimated functions.

Functions of time and of a state are estimated from simulated data whose truth is known: in closed
form, or by SciPy. The tables count the places along a function inside its band of 95 %. Where a
step is estimated, they count the data sets whose profile holds its time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import numpy as np
import pandas as pd
from scipy.integrate import solve_ivp

from evidence.running.batches import batch_options, batches, data_sets, standard_error
from evidence.running.campaign import Record, Task
from odefit import Model, Problem, SingleShooting, fit
from odefit.common.arrays import Array

DATA_SETS = 200  # number of data sets of each problem
LEVEL = 0.95

LINEAR = np.linspace(0.0, 15.0, 31)
DAYS = np.linspace(0.0, 40.0, 41)
RATE = 0.4  # of elimination, in the deconvolution
NOISE = 0.3
FROM, TO = 0.9, 9.9  # glucose at which the growth law is compared, between the data's ends
CHANGE = 15.0  # day of the step


@dataclass(frozen=True)
class Unknown:
    """A problem with an unknown function, and the truth."""

    description: str
    table: Mapping[str, Any]  # of the unknown function
    make: Callable[[Mapping[str, Any], np.random.Generator], Problem]
    name: str  # of the function
    times: Array  # at which its band is compared
    truth: Callable[[Array], Array]  # of time, or of the argument
    of: str | None = None  # the observable that it depends on
    profiled: tuple[str, float] | None = None  # an unknown with its true value
    by: Literal["linear", "profile"] = "linear"  # the kind of band


def absorption(times: Array) -> Array:
    """Return the input of the deconvolution."""
    return np.asarray(10 * (np.exp(-0.3 * times) - np.exp(-1.5 * times)))


def amount(times: Array) -> Array:
    """Return the amount in one compartment under this input, in closed form."""
    slow = (np.exp(-0.3 * times) - np.exp(-RATE * times)) / (RATE - 0.3)
    fast = (np.exp(-1.5 * times) - np.exp(-RATE * times)) / (RATE - 1.5)
    return np.asarray(10 * (slow - fast))


def smooth(times: Array) -> Array:
    """Return a rate of transmission that falls and rises again."""
    return np.asarray(0.3 + 0.15 * np.cos(2 * np.pi * times / 40.0) + 0.05 * np.sin(times / 5.0))


def stepwise(times: Array) -> Array:
    """Return a rate of transmission that falls in a single step."""
    return np.where(times < CHANGE, 0.5, 0.15)


def monod(glucose: Array) -> Array:
    """Return the rate of growth at a concentration."""
    return np.asarray(0.6 * glucose / (1.5 + glucose))


@cache
def _epidemic(name: str) -> Array:
    rate = {"smooth": smooth, "stepwise": stepwise}[name]
    found, state, start = np.zeros(len(DAYS)), np.array([990.0, 10.0]), 0.0
    for end in (CHANGE, 40.0):  # a step is no place to integrate across

        def rates(t: float, x: Array, at: float = (start + end) / 2) -> list[float]:
            beta = float(rate(np.array([t if name == "smooth" else at]))[0])
            return [-beta * x[0] * x[1] / 1000, beta * x[0] * x[1] / 1000 - 0.2 * x[1]]

        inside = np.clip(DAYS, start, end) == DAYS
        solved = solve_ivp(
            rates, (start, end), state, t_eval=DAYS[inside], rtol=1e-10, atol=1e-10, method="LSODA"
        )
        found[inside], state, start = solved.y[1], solved.y[:, -1], end
    return found


@cache
def _growth() -> Array:
    solved = solve_ivp(
        lambda t, x: [-2 * monod(x[0]) * x[1], monod(x[0]) * x[1]],
        (0.0, 12.0),
        [10.0, 0.1],
        t_eval=np.linspace(0.0, 12.0, 37),
        rtol=1e-10,
        atol=1e-10,
        method="LSODA",
    )
    return np.asarray(solved.y)


def _deconvolution(table: Mapping[str, Any], random: np.random.Generator) -> Problem:
    model = Model(ode={"x": f"u - {RATE}*x"}, observables={"y": "x"}, inputs={"u": table})
    y = amount(LINEAR) + NOISE * random.standard_normal(len(LINEAR))
    return Problem(
        model, data={"t": LINEAR, "y": y}, initial={"x": 0.0}, noise={"y": {"sd": NOISE}}
    )


def _sir(truth: str) -> Callable[[Mapping[str, Any], np.random.Generator], Problem]:
    def make(table: Mapping[str, Any], random: np.random.Generator) -> Problem:
        model = Model(
            ode={"S": "-beta*S*I/1000", "I": "beta*S*I/1000 - 0.2*I"},
            observables={"cases": "I"},
            inputs={"beta": table},
        )
        cases = _epidemic(truth) * np.exp(0.1 * random.standard_normal(len(DAYS)))
        return Problem(
            model,
            data={"t": DAYS, "cases": cases},
            initial={"S": 990.0, "I": 10.0},
            noise={"cases": {"sd": 0.1, "transform": "log"}},
        )

    return make


def culture(inputs: Mapping[str, Any], definitions: Mapping[str, str], y: Array) -> Problem:
    """Return the problem of a culture, with an estimated or a known law of growth."""
    model = Model(
        ode={"S": "-2*mu*X", "X": "mu*X"},
        observables={"glucose": "S", "biomass": "X"},
        inputs=dict(inputs),
        definitions=dict(definitions),
    )
    return Problem(
        model,
        data={"t": np.linspace(0.0, 12.0, 37), "glucose": y[0], "biomass": y[1]},
        parameters={"mumax": (0.01, 10.0), "ks": (0.01, 100.0)} if definitions else {},
        initial={"S": 10.0, "X": 0.1},
        noise={"glucose": {"sd": 0.1}, "biomass": {"sd": 0.05}},
    )


def _culture(table: Mapping[str, Any], random: np.random.Generator) -> Problem:
    sds = np.array([[0.1], [0.05]])
    return culture({"mu": table}, {}, _growth() + sds * random.standard_normal(_growth().shape))


GROWTH = np.linspace(0.0, 12.0, 121)
LAW: dict[str, Any] = {
    "estimate": "spline",
    "of": "S",
    "knots": 6,
    "range": [0.0, 10.0],
    "guess": 0.4,
}


def _shaped(words: str, table: dict[str, Any]) -> Unknown:
    # coefficients lie at bounds, where the guide takes bands by profile
    return Unknown(
        f"growth after Monod, {words} and without a penalty; bands by profile",
        LAW | table,
        _culture,
        "mu",
        GROWTH,
        monod,
        of="glucose",
        by="profile",
    )


def _positive(words: str, table: dict[str, Any]) -> Unknown:
    table = LAW | {"scale": "log10", "smooth": "reml"} | table
    return Unknown(words, table, _culture, "mu", GROWTH, monod, of="glucose")


PROBLEMS = {
    "absorption": Unknown(
        "deconvolution of an absorption in closed form",
        {"estimate": "spline", "smooth": "reml", "guess": 2.0},
        _deconvolution,
        "u",
        LINEAR,
        absorption,
    ),
    "absorption-adaptive": Unknown(
        "the same with a smoothness that may change along the function by request",
        {"estimate": "spline", "smooth": "adaptive", "guess": 2.0},
        _deconvolution,
        "u",
        LINEAR,
        absorption,
    ),
    "epidemic": Unknown(
        "epidemic with a smooth rate of transmission",
        {"estimate": "spline", "knots": 12, "smooth": "reml", "scale": "log10", "guess": 0.3},
        _sir("smooth"),
        "beta",
        DAYS,
        smooth,
    ),
    "epidemic-step": Unknown(
        "epidemic with a stepwise rate of transmission, the time of the step unknown",
        {"estimate": "constant", "changes": 1, "guess": 0.3, "lower": 0.01, "upper": 3.0},
        _sir("stepwise"),
        "beta",
        DAYS,
        stepwise,
        profiled=("beta_time_1", CHANGE),
    ),
    "growth": Unknown(
        "growth after Monod, found as a function of the state",
        LAW | {"smooth": "reml"},
        _culture,
        "mu",
        GROWTH,
        monod,
        of="glucose",
    ),
    "growth-increasing": _shaped("increasing", {"shape": "increasing"}),
    "growth-concave": _shaped("concave", {"shape": "concave"}),
    "growth-positive": _positive(
        "growth after Monod, positive: its logarithm is estimated, smooth", {}
    ),
    "growth-positive-fine": _positive("the same with twelve knots instead of six", {"knots": 12}),
}

OPTIONS = batch_options(DATA_SETS, tuple(PROBLEMS), "absorption-adaptive,epidemic")

tasks = batches


def run(task: Task) -> Mapping[str, Any]:
    """Fit each data set of a batch, and count the places inside the bands."""
    unknown = PROBLEMS[task["problem"]]
    found = []
    for number in range(task["first"], task["last"] + 1):
        random = np.random.default_rng([number, len(task["problem"])])
        problem = unknown.make(unknown.table, random)
        result = fit(problem, SingleShooting(), seed=number, jobs=1)
        table = result.predict(unknown.times, level=LEVEL, by=unknown.by)
        band = table[table["name"] == unknown.name]
        low, high = band["ci_low"].to_numpy(), band["ci_high"].to_numpy()
        at, kept = unknown.times, np.ones(len(unknown.times), dtype=bool)
        if unknown.of is not None:
            at = table[table["name"] == unknown.of]["value"].to_numpy()
            kept = (at >= FROM) & (at <= TO)
        if unknown.profiled is not None:
            # near the step the band of a smooth curve does not apply
            kept = np.abs(unknown.times - unknown.profiled[1]) > 1.0
        truth = unknown.truth(at)
        inside = ((low <= truth) & (truth <= high))[kept]
        row = {
            "number": number,
            "status": result.status.value,
            "places": int(kept.sum()),
            "inside": int(inside.sum()),
            "width": float(np.median((high - low)[kept])),
            "error": float(np.sqrt(np.mean((band["value"].to_numpy() - truth)[kept] ** 2))),
        }
        if unknown.profiled is not None:
            key, value = unknown.profiled
            profile = result.profile([key], jobs=1)[key]
            row["profile"] = int(profile.lower <= value <= profile.upper)
        found.append(row)
    return {"data sets": found}


def tables(records: Sequence[Record]) -> Mapping[str, pd.DataFrame]:
    """Return a row for each problem."""
    rows = [{"problem": name, **data_set} for name, data_set in data_sets(records)]
    columns = ["problem", "number", "status", "places", "inside", "width", "error", "profile"]
    every = pd.DataFrame(rows, columns=columns)
    found = []
    for name, part in every.groupby("problem", sort=False):
        shares = part["inside"] / part["places"]
        found.append(
            {
                "problem": name,
                "what is unknown": PROBLEMS[str(name)].description,
                "data sets": len(part),
                "places": int(part["places"].sum()),
                "in the band": part["inside"].sum() / part["places"].sum(),
                "standard error": standard_error(shares),
                "median width": part["width"].median(),
                "median error": part["error"].median(),
                "time in its profile": part["profile"].mean(),
            }
        )
    return {"unknown-functions": pd.DataFrame(found)}
