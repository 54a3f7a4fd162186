"""Residuals of equations with elementary functions, against those of an integrator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from odefit import Event, Experiment, Model, Problem, library
from odefit.common.arrays import Array
from odefit.enclosure import Enclosure
from tests.enclosure.containment import box, checked
from tests.enclosure.solutions import observed


def zeros(times: Sequence[float], *names: str) -> dict[str, list[float]]:
    return {"t": list(times), **{name: [0.0] * len(times) for name in names}}


def pendulum() -> tuple[Problem, Array]:
    problem = Problem(
        Model(ode={"p": "v", "v": "-g*sin(p) - c*v"}),
        zeros([0.5, 1.5, 3.0], "p", "v"),
        {"g": {}, "c": {}},
        {"p": {}, "v": 0.0},
    )
    return problem, problem.vector({"g": 2.0, "c": 0.1, "p": 1.2})


def gene() -> tuple[Problem, Array]:
    """A Hill function whose exponent is not known, driven by a rhythm."""
    problem = Problem(
        Model(ode={"m": "a*(1 + 0.3*cos(t))/(1 + (p/K)^n) - m", "p": "m - d*p"}),
        zeros([0.4, 1.0, 2.5], "m", "p"),
        {"a": {}, "K": {}, "n": {}, "d": {}},
        {"m": 0.5, "p": 1.0},
    )
    return problem, problem.vector({"a": 2.0, "K": 0.8, "n": 2.6, "d": 0.7})


def everywhere() -> tuple[Problem, Array]:
    """In observables, events, initial values and constants."""
    model = Model(
        ode={"x": "-k*x^1.3 + c*exp(-t)", "y": "x/(1 + exp(-y)) - sqrt(y)"},
        observables={
            "a": "log10(x) + atan(y*t)",
            "b": "asin(x/9)*acos(y/9)",
            "e": "tanh(x) - sinh(y/3) + cosh(k)",
        },
        constants={"c": 0.2},
    )
    events = [Event((0.7,), {"x": "x*exp(k)/2"}), Event((1.1,), {"c": "log(2 + k)"})]
    problem = Problem(
        model,
        parameters={"k": {}, "s": {}},
        initial={"x": "sqrt(s)", "y": "2^s"},
        experiments=[
            Experiment("run", zeros([0.0, 0.5, 0.7, 1.4, 2.0], "a", "b", "e"), events=events)
        ],
    )
    return problem, problem.vector({"k": 0.8, "s": 1.4})


@pytest.mark.slow
@pytest.mark.parametrize("build", [pendulum, gene, everywhere])
@pytest.mark.parametrize("degree", [1, 2])
def test_solutions_of_an_integrator_lie_in_the_enclosures(build: Any, degree: int) -> None:
    problem, vector = build()
    enclosure = Enclosure(problem, degree)
    for relative in (0.0, 0.01):
        found = checked(problem, *box(vector, relative), enclosure, count=4)
        assert found.remainder.max() < (1e-3, 0.1)[relative > 0]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["seasonal-lotka-volterra", "bock"])
def test_library_problems_have_finite_enclosures(name: str) -> None:
    problem, known = library.load(name), library.reference(name)
    values = {**known.parameters, **known.initial}
    vector = np.array([values[u.name] for u in problem.unknowns])
    found = checked(problem, *box(vector, 1e-4), Enclosure(problem, 1), count=2)
    assert np.isfinite(found.remainder).all()


def test_a_state_that_may_leave_the_domain_has_no_bounds() -> None:
    problem = observed({"x": "-k", "y": "sqrt(x)"}, [0.5, 1.5], {"x": {}, "y": 0.0}, ["k"])
    found = Enclosure(problem)(*box(np.array([1.0, 1.0]), 0.01))
    assert np.isfinite(found.remainder[[0, 2]]).all()
    assert np.isinf(found.remainder[3]).all()
