"""The campaign `unseen`: the coverage of prediction bands for new measurements of unseen runs.

Five problems with known truths are fitted to simulated data, and a run with another input, dose,
initial value or constant is predicted. SciPy simulates both, so that the truth uses no code of
odefit. The table counts new measurements, with their own noise, inside the bands of 95 %.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.integrate import solve_ivp

from evidence.running.batches import batch_options, batches, data_sets, standard_error
from evidence.running.campaign import Record, Task
from odefit import Experiment, Model, Problem, Scenario, fit
from odefit.common.arrays import Array

DATA_SETS = 200  # number of data sets of each problem
LEVEL = 0.95


@dataclass(frozen=True)
class Unseen:
    """A problem, and the truth of its experiments and of the unseen run."""

    description: str
    model: Model
    truth: Mapping[str, float]
    bounds: Mapping[str, tuple[float, float]]
    initial: Mapping[str, Any]
    noise: Mapping[str, Mapping[str, Any]]  # of the one observable
    experiments: Sequence[Experiment]  # without measurements
    scenario: Scenario
    # The rates dx/dt at a time, for a state x, in the run of that name; jumps at times of doses
    rates: Callable[[str, float, Array], list[float]]
    starts: Mapping[str, list[float]]
    doses: Mapping[str, Sequence[tuple[float, int, float]]]  # time, number of the state, amount
    sd: float  # of the noise, of the logarithm where `logarithmic`
    measured: int  # number of the state that is measured
    logarithmic: bool = False

    def exact(self, run: str, times: Array) -> Array:
        """Return the true values of the observable, by SciPy."""
        state, start, found = np.array(self.starts[run], dtype=float), 0.0, np.zeros(len(times))
        moments = [*self.doses.get(run, ()), (float(times[-1]), 0, 0.0)]
        for moment, number, amount in moments:
            inside = (times > start) & (times <= moment) if start > 0 else times <= moment
            if moment > start:
                solved = solve_ivp(
                    lambda t, x: self.rates(run, t, x),
                    (start, moment),
                    state,
                    method="LSODA",
                    dense_output=True,
                    rtol=1e-9,
                    atol=1e-11,
                    max_step=0.25,
                )
                assert solved.sol is not None
                found[inside] = solved.sol(times[inside])[self.measured]
                state = solved.y[:, -1]
            else:
                found[inside] = state[self.measured]
            state[number] += amount
            start = moment
        return found

    def noisy(self, exact: Array, random: np.random.Generator) -> Array:
        """Return measurements."""
        noise = self.sd * random.standard_normal(len(exact))
        return exact * np.exp(noise) if self.logarithmic else exact + noise


def _grid(last: float, count: int) -> Array:
    return np.linspace(last / count, last, count)


HOURS = _grid(12.0, 12)
STEP = {"t": [0.0, 2.0, 6.0], "u": [0.0, 2.0, 0.5]}
PULSES = {"t": [0.0, 1.0, 3.0, 5.0, 8.0], "u": [1.0, 3.0, 0.0, 2.0, 1.0]}
SINE = {"t": np.linspace(0.0, 12.0, 49)}
SINE["u"] = np.sin(1.3 * SINE["t"])
RAMP = {"t": np.linspace(0.0, 12.0, 49)}
RAMP["u"] = np.where(RAMP["t"] < 4.0, 0.5 * RAMP["t"], 2.0 - 0.25 * (RAMP["t"] - 4.0))


def _held(table: Mapping[str, Any], t: float) -> float:
    place = int(np.searchsorted(table["t"], t, side="right")) - 1
    return float(table["u"][max(place, 0)])


def _between(table: Mapping[str, Any], t: float) -> float:
    return float(np.interp(t, table["t"], table["u"]))


HEATING = Unseen(
    "heating by a stepped input, then by unseen pulses",
    Model(ode={"x": "b*u - k*x"}, observables={"y": "x"}, inputs={"u": "constant"}),
    {"b": 1.5, "k": 0.6},
    {"b": (0.01, 20.0), "k": (0.01, 10.0)},
    {"x": 0.0},
    {"y": {"sd": "estimate"}},
    [Experiment("step", {**STEP}, t0=0.0)],
    Scenario("pulses", data=PULSES, times=HOURS),
    lambda run, t, x: [1.5 * _held(STEP if run == "step" else PULSES, t) - 0.6 * x[0]],
    {"step": [0.0], "pulses": [0.0]},
    {},
    0.15,
    0,
)

DOSING = Unseen(
    "one oral dose, then three unseen smaller ones",
    Model(ode={"g": "-ka*g", "c": "ka*g/V - k*c"}, observables={"y": "c"}),
    {"ka": 1.2, "k": 0.3, "V": 2.0},
    {"ka": (0.05, 20.0), "k": (0.01, 0.9), "V": (0.1, 50.0)},
    {"g": 20.0, "c": 0.0},
    {"y": {"sd": 0.25}},
    [Experiment("single", {}, t0=0.0)],
    Scenario(
        "repeated",
        initial={"g": 0.0},
        doses=[{"times": [0.0, 4.0, 8.0], "amount": 10.0, "into": "g"}],
        times=HOURS,
    ),
    lambda run, t, x: [-1.2 * x[0], 1.2 * x[0] / 2.0 - 0.3 * x[1]],
    {"single": [20.0, 0.0], "repeated": [0.0, 0.0]},
    {"repeated": [(0.0, 0, 10.0), (4.0, 0, 10.0), (8.0, 0, 10.0)]},
    0.25,
    1,
)

ENZYME = Unseen(
    "substrate from two initial values, then from an unseen one",
    Model(ode={"s": "-Vm*s/(Km + s)"}, observables={"y": "s"}),
    {"Vm": 1.5, "Km": 3.0},
    {"Vm": (0.01, 50.0), "Km": (0.01, 100.0)},
    {"s": 10.0},
    {"y": {"sd": "estimate"}},
    [Experiment("high", {}, t0=0.0), Experiment("low", {}, t0=0.0, initial={"s": 3.0})],
    Scenario("middle", initial={"s": 6.0}, times=HOURS),
    lambda run, t, x: [-1.5 * x[0] / (3.0 + x[0])],
    {"high": [10.0], "low": [3.0], "middle": [6.0]},
    {},
    0.2,
    0,
)

LEVELS = {"none": 0.0, "little": 1.0, "much": 4.0, "unseen": 2.0}

GROWTH = Unseen(
    "growth at three concentrations of an inhibitor, then at an unseen one; log-normal noise",
    Model(ode={"x": "r*x*(1 - x/K)/(1 + c/I)"}, observables={"y": "x"}, constants={"c": 0.0}),
    {"r": 0.9, "K": 8.0, "I": 1.5},
    {"r": (0.01, 10.0), "K": (1.0, 50.0), "I": (0.05, 50.0)},
    {"x": 0.3},
    {"y": {"sd": "estimate", "transform": "log"}},
    [
        Experiment(name, {}, t0=0.0, constants={"c": LEVELS[name]})
        for name in ("none", "little", "much")
    ],
    Scenario("unseen", constants={"c": LEVELS["unseen"]}, times=HOURS),
    lambda run, t, x: [0.9 * x[0] * (1.0 - x[0] / 8.0) / (1.0 + LEVELS[run] / 1.5)],
    {name: [0.3] for name in LEVELS},
    {},
    0.1,
    0,
    logarithmic=True,
)

OSCILLATOR = Unseen(
    "a damped oscillator under a ramp, then under an unseen sine",
    Model(ode={"x": "v", "v": "u - w*x - d*v"}, observables={"y": "x"}, inputs={"u": "linear"}),
    {"w": 2.0, "d": 0.4},
    {"w": (0.1, 20.0), "d": (0.01, 10.0)},
    {"x": 0.0, "v": 0.0},
    {"y": {"sd": "estimate"}},
    [Experiment("ramp", {**RAMP}, t0=0.0)],
    Scenario("sine", data=SINE, times=HOURS),
    lambda run, t, x: [
        x[1],
        _between(RAMP if run == "ramp" else SINE, t) - 2.0 * x[0] - 0.4 * x[1],
    ],
    {"ramp": [0.0, 0.0], "sine": [0.0, 0.0]},
    {},
    0.08,
    0,
)

PROBLEMS = {
    "heating": HEATING,
    "dosing": DOSING,
    "enzyme": ENZYME,
    "growth": GROWTH,
    "oscillator": OSCILLATOR,
}

OPTIONS = batch_options(DATA_SETS, tuple(PROBLEMS), "heating,dosing")

tasks = batches


def problem_of(unseen: Unseen, random: np.random.Generator) -> Problem:
    """Return the problem with simulated measurements of its experiments."""
    experiments = []
    for experiment in unseen.experiments:
        values = unseen.noisy(unseen.exact(experiment.name, HOURS), random)
        given = dict(experiment.data)
        known = np.asarray(given.get("t", []), dtype=float)
        data: dict[str, Any] = {"t": np.concatenate([known, HOURS])}
        if "u" in given:
            data["u"] = np.concatenate([given["u"], np.full(len(HOURS), np.nan)])
        data["y"] = np.concatenate([np.full(len(known), np.nan), values])
        experiments.append(
            Experiment(
                experiment.name,
                data,
                t0=0.0,
                initial=experiment.initial,
                constants=experiment.constants,
            )
        )
    return Problem(
        unseen.model,
        parameters=dict(unseen.bounds),
        initial=dict(unseen.initial),
        noise=dict(unseen.noise),
        experiments=experiments,
    )


def run(task: Task) -> Mapping[str, Any]:
    """Fit each data set of a batch, and count new measurements inside the bands."""
    unseen = PROBLEMS[task["problem"]]
    exact = unseen.exact(unseen.scenario.name, HOURS)
    found = []
    for number in range(task["first"], task["last"] + 1):
        random = np.random.default_rng([number, len(task["problem"])])
        result = fit(problem_of(unseen, random), seed=number, jobs=1)
        table = result.predict(experiment=unseen.scenario, level=LEVEL).query("name == 'y'")
        new = unseen.noisy(exact, random)
        low, high = table["pi_low"].to_numpy(), table["pi_high"].to_numpy()
        curve = table["ci_low"].to_numpy(), table["ci_high"].to_numpy()
        found.append(
            {
                "number": number,
                "status": result.status.value,
                "measurements": len(new),
                "inside": int(((low <= new) & (new <= high)).sum()),
                "curve inside": int(((curve[0] <= exact) & (exact <= curve[1])).sum()),
            }
        )
    return {"data sets": found}


def tables(records: Sequence[Record]) -> Mapping[str, pd.DataFrame]:
    rows = [{"problem": name, **data_set} for name, data_set in data_sets(records)]
    columns = ["problem", "number", "status", "measurements", "inside", "curve inside"]
    every = pd.DataFrame(rows, columns=columns)
    found = []
    for name, part in every.groupby("problem", sort=False):
        shares = part["inside"] / part["measurements"]
        found.append(
            {
                "problem": name,
                "what is unseen": PROBLEMS[str(name)].description,
                "data sets": len(part),
                "new measurements": int(part["measurements"].sum()),
                "in the prediction band": part["inside"].sum() / part["measurements"].sum(),
                "standard error": standard_error(shares),
                "curve in the confidence band": part["curve inside"].sum()
                / part["measurements"].sum(),
            }
        )
    return {"unseen": pd.DataFrame(found)}
