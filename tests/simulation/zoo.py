"""Small problems with a vector of unknowns each, one for every feature of the problem file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from odefit import Event, Experiment, Model, Noise, Parameter, Problem
from tests.simulation.numerics import Array

Case = tuple[Problem, Array]
NAN = float("nan")

ZOO: dict[str, Callable[[], Case]] = {}


def case(build: Callable[[], Case]) -> Callable[[], Case]:
    ZOO[build.__name__.replace("_", " ")] = build
    return build


def at(problem: Problem, **values: float) -> Case:
    return problem, problem.vector(values)


@case
def scale_and_offset() -> Case:
    problem = Problem(
        Model(ode={"x": "-k*x"}, observables={"y": "scale*x + offset", "z": "log(x + 1)^2"}),
        {"t": [0.0, 1.0, 2.0], "y": [1.0, 2.0, 3.0], "z": [0.1, 0.2, 0.3]},
        {"k": {}, "scale": {}, "offset": {}},
        {"x": {}},
    )
    return at(problem, k=0.5, scale=2.0, offset=-0.3, x=1.5)


@case
def initial_values_as_expressions() -> Case:
    problem = Problem(
        Model(ode={"x": "-k*x + y", "y": "-y"}, constants={"c": 2.0}),
        {"t": [0.5, 1.0, 2.0], "x": [1.0, 2.0, 3.0], "y": [0.1, NAN, 0.3]},
        {"k": {}, "a": {}},
        {"x": "a*c/k", "y": "sqrt(a)"},
        t0=0.0,
    )
    return at(problem, k=0.5, a=1.7)


@case
def experiments_with_their_own_values() -> Case:
    data = {"t": [1.0, 3.0], "y": [1.0, 0.5]}
    problem = Problem(
        Model(ode={"x": "-k*x + u0*x^2"}, observables={"y": "s*x"}, constants={"u0": 0.1}),
        parameters={"k": {}, "mutant": {}, "s": {"per_experiment": True}},
        initial={"x": Parameter(per_experiment=True)},
        experiments=[
            Experiment("plain", data, t0=0.0),
            Experiment("other", data, t0=-1.0, constants={"u0": "mutant*k"}),
            Experiment("known", {"t": [2.0], "y": [0.2]}, t0=0.5, initial={"x": "2*k"}),
            Experiment("free", data, initial={"x": {"lower": 0.0}}, constants={"u0": 0.0}),
        ],
    )
    values = {"k": 0.4, "mutant": 0.6}
    rest = {key: 1.0 + i / 10 for i, key in enumerate(k for k in problem.keys if k not in values)}
    return at(problem, **values, **rest)


@case
def replicates_gaps_and_unsorted_rows() -> Case:
    problem = Problem(
        Model(ode={"x": "-k*x", "y": "k*x - m*y"}),
        {
            "t": [2.0, 0.0, 1.0, 1.0, 1.0, 4.0, 0.0],
            "x": [0.2, 1.0, NAN, 0.5, 0.55, NAN, 1.1],
            "y": [NAN, 0.0, 0.3, 0.31, NAN, 0.1, NAN],
        },
        {"k": {}, "m": {}},
        {"x": {}, "y": 0.1},
    )
    return at(problem, k=0.8, m=0.3, x=1.2)


@case
def doses_and_switches() -> Case:
    problem = Problem(
        Model(
            ode={"gut": "-ka*gut", "blood": "ka*gut - ke*blood*on"},
            observables={"c": "blood/V"},
            constants={"on": 1.0},
        ),
        parameters={"ka": {}, "ke": {}, "V": {}, "F": {}},
        initial={"gut": "F*10", "blood": 0.0},
        experiments=[
            Experiment(
                "run",
                {"t": [0.0, 1.0, 5.0, 6.0, 9.0], "c": [0.0, 1.0, 2.0, 1.0, 0.5]},
                events=[
                    Event((0.0, 5.0), {"gut": "gut + F*100"}),
                    Event((2.0,), {"on": "0.1"}),
                    Event((5.0,), {"on": "ke + 1", "blood": "blood*0.5"}),
                ],
            )
        ],
    )
    return at(problem, ka=1.1, ke=0.3, V=20.0, F=0.7)


@case
def an_input_and_the_time() -> Case:
    problem = Problem(
        Model(
            ode={"x": "a*u - k*x*(1 + 0.3*cos(w*t))"},
            observables={"y": "x + b*u + t/10"},
            inputs={"u": "linear"},
        ),
        {"t": [0.0, 1.0, 2.5, 4.0], "u": [0.0, 2.0, NAN, 1.0], "y": [0.0, 1.0, 2.0, 1.5]},
        {"a": {}, "k": {}, "w": {}, "b": {}},
        {"x": {}},
    )
    return at(problem, a=0.9, k=0.4, w=2.0, b=0.05, x=0.3)


@case
def kinks() -> Case:
    problem = Problem(
        Model(ode={"x": "-k*max(x, 0.5)", "y": "min(x, 1) - abs(y - 1)"}),
        {"t": [0.0, 0.4, 1.5], "x": [1.0, 0.5, 0.2], "y": [0.0, 0.3, 0.5]},
        {"k": {}},
        {"x": {}, "y": {}},
    )
    return at(problem, k=0.7, x=2.0, y=0.1)


@case
def linear_algebra() -> Case:
    problem = Problem(
        Model(
            ode={"x": "-k*z"},
            algebraic={"z": "2*z - x - c*v", "v": "v - x - 1"},
            observables={"y": "s*z + v"},
            constants={"c": 0.3},
        ),
        {"t": [0.0, 1.0, 2.0], "y": [1.0, 2.0, 3.0]},
        {"k": {}, "s": {}},
        {"x": {}},
    )
    return at(problem, k=0.5, s=2.0, x=1.5)


@case
def nonlinear_algebra() -> Case:
    problem = Problem(
        Model(
            ode={"x": "-k*z"},
            algebraic={"z": "z + a*z^3 - x"},
            observables={"y": "s*z", "x": "x"},
        ),
        {"t": [0.0, 1.0, 2.0], "y": [1.0, 2.0, 3.0], "x": [1.0, NAN, 0.1]},
        {"k": {}, "a": {}, "s": {}},
        {"x": {}, "z": 1.0},
    )
    return at(problem, k=0.5, a=0.6, s=2.0, x=1.5)


@case
def a_parameter_that_does_nothing() -> Case:
    problem = Problem(
        Model(ode={"x": "-k*x", "q": "dead*q"}, observables={"y": "x"}),
        {"t": [0.0, 1.0, 2.0], "y": [1.0, 2.0, 3.0]},
        {"k": {}, "dead": {}},
        {"x": {}, "q": 0.0},
    )
    return at(problem, k=0.5, dead=1.0, x=1.5)


@case
def fixed_values() -> Case:
    problem = Problem(
        Model(ode={"x": "-k*x + f"}, observables={"y": "g*x"}),
        {"t": [0.0, 1.0, 2.0], "y": [1.0, 2.0, 3.0]},
        {"k": {}, "f": 0.25, "g": {"fixed": 2.0}},
        {"x": {"lower": 1.0, "upper": 1.0}},
    )
    return at(problem, k=0.5)


def measured_with(noise: Any, **more: Any) -> Case:
    """Two observables of a decay with scale, the first of them with `noise`."""
    data = {"t": [0.0, 1.0, 2.0, 3.0], "y": [2.0, 1.1, 0.8, NAN], "z": [0.1, 0.5, 0.6, 0.9]}
    sds = more.pop("sds", None)
    if sds is not None:
        data["y_sd"] = sds
    k = more.pop("k", {})
    extra = more.pop("parameters", {})
    problem = Problem(
        Model(
            ode={"x": "-k*x"},
            observables={"y": "s*x", "z": "1 - x/2"},
        ),
        data,
        {"k": k, "s": {}, **{key: {} for key in extra}},
        {"x": {}},
        noise=noise,
    )
    return at(problem, k=0.4, s=1.3, x=1.5, **extra, **more)


PLAIN = Noise(sd=0.2)

NOISE: dict[str, Callable[[], Case]] = {
    "none": lambda: measured_with(None),
    "a number": lambda: measured_with({"y": {"sd": 0.3}, "z": PLAIN}),
    "a column": lambda: measured_with({"z": PLAIN}, sds=[0.1, 0.2, 0.3, NAN]),
    "relative": lambda: measured_with({"y": {"relative": 0.1}, "z": PLAIN}),
    "an expression in an observable": lambda: measured_with(
        {"y": {"sd": "0.1 + 0.2*y"}, "z": PLAIN}
    ),
    "an expression in parameters and another observable": lambda: measured_with(
        {"y": {"sd": "sigma*abs(y) + tau*z"}, "z": {"sd": "sigma"}},
        parameters={"sigma": 0.3, "tau": 0.2},
    ),
    "estimated": lambda: measured_with({"y": {"sd": "estimate"}, "z": PLAIN}, y_sd=0.4),
    "estimated twice": lambda: measured_with(
        {"y": {"sd": "estimate"}, "z": {"sd": "estimate"}}, y_sd=0.4, z_sd=0.2
    ),
    "log": lambda: measured_with({"y": {"sd": 0.3, "transform": "log"}, "z": PLAIN}),
    "log10": lambda: measured_with({"y": {"sd": 0.3, "transform": "log10"}, "z": PLAIN}),
    "log, unweighted": lambda: measured_with({"y": {"transform": "log"}}),
    "log10, estimated": lambda: measured_with(
        {"y": {"sd": "estimate", "transform": "log10"}, "z": PLAIN}, y_sd=0.15
    ),
    "log, an expression": lambda: measured_with(
        {"y": {"sd": "sigma*(1 + y)", "transform": "log"}, "z": PLAIN}, parameters={"sigma": 0.2}
    ),
    "a prior": lambda: measured_with(None, k={"prior": {"mean": 0.5, "sd": 0.1}}),
    "a prior and an estimate": lambda: measured_with(
        {"y": {"sd": "estimate"}, "z": PLAIN}, y_sd=0.4, k={"prior": {"mean": 0.5, "sd": 0.1}}
    ),
}
