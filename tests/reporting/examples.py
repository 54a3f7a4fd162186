"""Results made by hand, which the tests of tables, figures and reports look at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import odefit
from odefit.assessment.parts import Assessment, Direction, Local, Trouble, Uncertainty
from odefit.common.arrays import Array
from odefit.expressions.expressions import parse
from odefit.methods.estimate import Completeness, Route, Start, Status
from odefit.problem.experiment import Event, Experiment
from odefit.problem.model import Model
from odefit.problem.noise import Noise
from odefit.problem.problem import Problem
from odefit.result.result import Result, Solution
from odefit.result_data import values_at

VERSIONS = {"odefit": "0.1.0", "numpy": "2.1.0"}

HOSTILE_RUN = '<img src=x onerror=alert(1)> & "q"'
"""The same for an experiment, in whose name there can be no brackets."""

PRODUCT = "The data determine k2 and k5 only as the product k2*k5."

HOSTILE = "<script>alert(\"x\")</script> & $\\frac{$ [bold] 'q'"
"""A name that is harmless only if it is escaped everywhere."""


def alpha_pinene_problem() -> Problem:
    csv = Path(odefit.__file__).parent / "library/problems/alpha-pinene/alpha_pinene.csv"
    names = csv.read_text(encoding="utf-8").splitlines()[0].split(",")
    values = np.loadtxt(csv, delimiter=",", skiprows=1)
    model = Model(
        ode={
            "x1": "-(p1 + p2)*x1",
            "x2": "p1*x1",
            "x3": "p2*x1 - (p3 + p4)*x3 + p5*x5",
            "x4": "p3*x3",
            "x5": "p4*x3 - p5*x5",
        },
        observables={f"y{i}": f"x{i}" for i in range(1, 6)},
    )
    return Problem(
        model,
        experiments=[Experiment("run 1", dict(zip(names, values.T, strict=True)), t0=0.0)],
        parameters={f"p{i}": {"lower": 0.0, "upper": 1.0, "unit": "1/min"} for i in range(1, 6)},
        initial={"x1": 100.0, **{f"x{i}": 0.0 for i in range(2, 6)}},
        name="alpha-pinene",
        description="Thermal isomerisation of alpha-pinene, in per cent.",
        time_unit="min",
    )


ALPHA_PINENE = np.array([5.92584877e-5, 2.96340211e-5, 2.047284e-5, 2.744679325e-4, 3.99794999e-5])


def alpha_pinene() -> Result:
    """Everything is well determined."""
    problem = alpha_pinene_problem()
    errors = np.array([2.6e-7, 1.9e-7, 6.2e-7, 8.6e-6, 1.9e-6])
    correlation = np.eye(5) * 0.5
    for (i, j), value in {
        (0, 1): -0.21,
        (1, 2): 0.18,
        (1, 3): 0.08,
        (2, 3): 0.62,
        (2, 4): 0.71,
        (3, 4): 0.97,
        (0, 3): -0.02,
        (0, 4): 0.03,
        (1, 4): 0.12,
        (0, 2): 0.01,
    }.items():
        correlation[i, j] = value
    correlation = correlation + correlation.T
    starts = [
        Start(
            i,
            ALPHA_PINENE * (2 + i),
            ALPHA_PINENE,
            19.872166934,
            Status.CONVERGED,
            "the step is small",
            40 + i,
            0.1,
        )
        for i in range(14)
    ]
    starts += [
        Start(
            14 + i,
            ALPHA_PINENE * 9,
            ALPHA_PINENE * (3 + i),
            240.0 * (2 + i) ** 3,
            Status.NOT_CONVERGED,
            "the most evaluations (400) were used",
            400,
            0.9,
        )
        for i in range(4)
    ]
    starts += [
        Start(
            18 + i,
            ALPHA_PINENE * 1e5,
            ALPHA_PINENE * 1e5,
            np.inf,
            Status.FAILED,
            f'experiment "run 1", t = {1230 + 40 * i}: the step size became too small',
            3,
            0.02,
        )
        for i in range(2)
    ]
    return result_of(
        problem,
        ALPHA_PINENE,
        objective=19.872166934,
        starts=starts,
        uncertainty=uncertainty_of(problem.keys, ALPHA_PINENE, errors, correlation, 35.0),
    )


def troubled_problem() -> Problem:
    """Every reason for a missing number, two experiments, a dose, noise of three kinds."""
    model = Model(
        ode={
            "gut": "-k_a*gut",
            "blood": "k_a*gut - k2*k5*blood - V_max*blood/(K_m + blood)",
            "effect": "alpha*(blood^2/(EC50^2 + blood^2)) - delta_E*effect*exp(-mu_N*t/10)",
        },
        observables={
            "y_blood": "blood",
            "y_effect": "effect + 0.01",
            "y_gut": "sqrt(gut*gut + 1e-6)",
        },
        constants={"EC50": 0.3},
    )
    parameters: dict[str, Any] = {
        "k_a": {"lower": 0.0, "upper": 10.0, "guess": 1.0, "unit": "1/h"},
        "k2": {"lower": 0.0, "unit": "1/h"},
        "k5": {"lower": 0.0},
        "V_max": {"lower": 0.0, "upper": 5.0},
        "K_m": {"lower": 1e-6, "upper": 100.0, "scale": "log10"},
        "alpha": {"lower": 0.0, "prior": {"mean": 1.0, "sd": 0.2}},
        "delta_E": 0.3,
        "mu_N": {},
        "unused": {},
    }
    times = np.array([0.0, 0.5, 1.0, 2.0, 4.0, 6.0, 8.0, 12.0])
    first = {
        "t": times,
        "y_blood": np.array([np.nan, 0.35, 0.52, 0.55, 0.33, 0.9, 0.6, 0.2]),
        "y_blood_sd": np.full(8, 0.04),
        "y_effect": np.array([0.01, 0.08, 0.25, 0.7, 1.2, 1.5, 1.8, 1.6]),
        "y_gut": np.array([1.0, 0.6, 0.37, 0.14, 0.02, 0.37, 0.05, 0.001]),
    }
    second = {"t": times[1:5] * 2, "y_effect": np.array([0.3, 0.9, 1.4, 1.9])}
    return Problem(
        model,
        experiments=[
            Experiment("oral", first, t0=0.0, events=[Event((5.0,), {"gut": "gut + 1"})]),
            Experiment(HOSTILE_RUN, second, t0=0.0, initial={"gut": 2.0}, constants={"EC50": 0.2}),
        ],
        parameters=parameters,
        initial={
            "gut": 1.0,
            "blood": {"lower": 0.0, "upper": 1.0, "per_experiment": True},
            "effect": "alpha*0.01",
        },
        noise={
            "y_blood": Noise(sd=0.05),
            "y_effect": Noise(sd=parse("0.02 + 0.05*y_effect")),
            "y_gut": Noise(sd="estimate", transform="log10"),
        },
        name=f"oral {HOSTILE}",
        description=f"A dose at 5 h. {HOSTILE}",
        time_unit="h",
    )


TROUBLED = {
    "k_a": 1.02,
    "k2": 0.4,
    "k5": 0.31,
    "V_max": 0.0,
    "K_m": 2.2,
    "alpha": 0.55,
    "mu_N": -0.02,
    "unused": 0.0,
    "blood[oral]": 0.011,
    f"blood[{HOSTILE_RUN}]": 0.35,
    "y_gut_sd": 0.08,
}


def troubled() -> Result:
    """A result in which most numbers have to be taken with care."""
    problem = troubled_problem()
    vector = problem.vector(TROUBLED)
    trouble: dict[str, Trouble] = {
        "k2": Trouble.NOT_DETERMINED,
        "k5": Trouble.NOT_DETERMINED,
        "V_max": Trouble.AT_A_BOUND,
        "K_m": Trouble.NO_EFFECT,
        "unused": Trouble.NO_EFFECT,
        "mu_N": Trouble.WEAKLY_DETERMINED,
    }
    without = {"k2", "k5", "V_max", "K_m", "unused"}
    errors = np.array(
        [
            np.nan if key in without else 0.2 if key == "mu_N" else 0.06 * abs(TROUBLED[key])
            for key in problem.keys
        ]
    )
    n = len(problem.keys)
    correlation = np.where(np.isfinite(errors[:, None] + errors[None, :]), np.eye(n), np.nan)
    uncertainty = uncertainty_of(problem.keys, vector, errors, correlation, np.inf)
    uncertainty = replace(
        uncertainty,
        rank=n - 4,
        trouble=trouble,
        directions=(Direction(("k2", "k5"), (1.0, -1.0), PRODUCT),),
        sentence=f"{PRODUCT} The data determine 7 of 11 unknowns.",
    )
    result = result_of(
        problem, vector, objective=31.4, log_likelihood=12.5, uncertainty=uncertainty, starts=()
    )
    return replace(
        result,
        warnings=(f"[parameters] unused: occurs in no equation {HOSTILE}",),
        assessment=replace(
            result.assessment, complete=Completeness(2, 1, "1 of 2 solutions found.")
        ),
    )


def failed() -> Result:
    """No solution at all."""
    problem = alpha_pinene_problem()
    start = Start(
        0,
        ALPHA_PINENE,
        ALPHA_PINENE,
        np.inf,
        Status.FAILED,
        'experiment "run 1", t = 12: x1 is not finite',
        1,
        0.1,
    )
    return Result(
        problem=problem,
        method="Multiple shooting",
        status=Status.FAILED,
        message="every start failed",
        solutions=(),
        starts=(start,),
        assessment=Assessment(),
        uncertainty=None,
        warnings=(),
        seconds=0.2,
        seed=7,
        versions=VERSIONS,
    )


def many(experiments: int, observables: int) -> Result:
    """A decay, measured often."""
    names = [f"y{i}" for i in range(1, observables + 1)]
    model = Model(ode={"x": "-k*x"}, observables={n: f"{i}*x" for i, n in enumerate(names, 1)})
    times = np.linspace(0.0, 4.0, 9)
    runs = [
        Experiment(
            f"run {j + 1}",
            {
                "t": times,
                **{
                    n: i * (1 + j) * (np.exp(-0.7 * times) + 0.03 * np.cos(9 * times + j))
                    for i, n in enumerate(names, 1)
                },
            },
            initial={"x": float(1 + j)},
        )
        for j in range(experiments)
    ]
    problem = Problem(
        model, experiments=runs, parameters={"k": {"lower": 0.0}}, initial={"x": 1.0}, name="decay"
    )
    vector = np.array([0.7])
    return result_of(
        problem,
        vector,
        objective=0.5,
        starts=(),
        uncertainty=uncertainty_of(("k",), vector, np.array([0.01]), np.eye(1), 40.0),
    )


def by_subject() -> Result:
    """Each of thirteen subjects has constants of its own, of which the same is to be said."""
    own = {"lower": 0.0, "unit": "L/h", "per_experiment": True}
    subjects = [
        Experiment(f"subject {i}", {"t": [0.0, 1.0, 2.0], "c": [1.0, 0.4, 0.1]})
        for i in range(1, 14)
    ]
    problem = Problem(
        Model(ode={"c": "-CL*c"}),
        experiments=subjects,
        parameters={"CL": own},
        initial={"c": {**own, "unit": "mg/L"}},
        name="by subject",
    )
    vector = np.linspace(0.123, 9.87, 26)
    errors = (
        np.where(np.arange(26) < 23, 0.01, np.array([1.2, 2.1, 3.2])[np.arange(26) % 3]) * vector
    )
    uncertainty = uncertainty_of(problem.keys, vector, errors, np.eye(26), np.inf)
    bends = (
        "the linear interval cannot be trusted, as the model bends within it; a profile can "
        "tell more"
    )
    weak, crooked = problem.keys[23:], problem.keys[:13]
    uncertainty = replace(
        uncertainty,
        trouble=dict.fromkeys(weak, Trouble.WEAKLY_DETERMINED)
        | dict.fromkeys(crooked, Trouble.NOT_LINEAR),
        notes=dict.fromkeys(crooked, bends),
    )
    return result_of(problem, vector, objective=3.0, uncertainty=uncertainty, starts=())


def uncertainty_of(
    keys: Sequence[str], vector: Array, errors: Array, correlation: Array, freedom: float
) -> Uncertainty:
    return Uncertainty(
        keys=tuple(keys),
        standard_errors=errors,
        intervals=np.stack([vector - 2.03 * errors, vector + 2.03 * errors], axis=1),
        covariance=correlation * np.outer(errors, errors),
        correlation=correlation,
        level=0.95,
        degrees_of_freedom=freedom,
        variance=1.0,
        rank=len(keys),
        sentence=f"The data determine all {len(keys)} unknowns.",
    )


def result_of(
    problem: Problem,
    vector: Array,
    objective: float,
    uncertainty: Uncertainty | None,
    starts: Sequence[Start],
    log_likelihood: float | None = None,
) -> Result:
    parameters, initial = values_at(problem, vector)
    best = Solution(vector, parameters, initial, objective, log_likelihood, hits=14)
    local = Local(
        True,
        3e-9,
        1e-6,
        2e-4,
        "A local optimum on the integrated trajectories: the projected gradient is 3e-9.",
    )
    return Result(
        problem=problem,
        method="Multiple shooting",
        status=Status.CONVERGED,
        message="",
        solutions=(best,),
        starts=starts,
        assessment=Assessment(local=local),
        uncertainty=uncertainty,
        warnings=(),
        seconds=3.2468,
        seed=20240601,
        versions=VERSIONS,
    )


def routed() -> Result:
    """Several methods, of which two found the answer, one something worse and one was not tried."""
    return replace(
        alpha_pinene(),
        method="Automatic",
        message="the routes disagree: A and B found a lower objective than C. Three starts agree",
        routes=(
            Route("integral matching", 1, 0, 1, 19.8721666, 0.125, "converged"),
            Route("single shooting", 4, 1, 2, 19.8721666, 1.5, "converged"),
            Route("multiple shooting", 2, 2, 0, np.inf, 2.25, f"it failed {HOSTILE}"),
            Route("direct transcription", 0, 0, 0, np.inf, 0.0, "not needed"),
        ),
    )


@cache
def dense() -> Result:
    """A result of 30,000 measurements of a swinging value."""
    times = np.linspace(0.0, 20.0, 30_000)
    noise = 0.05 * np.random.default_rng(3).standard_normal(len(times))
    problem = Problem(
        Model(ode={"x": "v", "v": "-w*x"}, observables={"y": "x"}),
        {"t": times, "y": np.cos(2.0 * times) + noise},
        {"w": {"lower": 1.0, "upper": 9.0, "guess": 4.0}},
        {"x": 1.0, "v": 0.0},
        noise={"y": {"sd": "estimate"}},
    )
    return odefit.fit(problem, odefit.SingleShooting(), jobs=1)
