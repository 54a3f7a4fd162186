"""Solutions of equations with elementary functions: exact ones, and those of an integrator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mpmath
import numpy as np
import pytest

from odefit import Event, Experiment, Model, Problem, library
from odefit.enclosure import Enclosure
from odefit.problem.arrays import Array
from tests.enclosure.containment import box, checked
from tests.enclosure.test_flow import TIMES, Solution, holds, observed


def cooling(t: Any, v: Sequence[Any]) -> Sequence[Any]:
    return [mpmath.log(mpmath.exp(v[1]) - v[0] * t)]


def draining(t: Any, v: Sequence[Any]) -> Sequence[Any]:
    return [(mpmath.sqrt(v[1]) - v[0] * t / 2) ** 2]


def of_order(t: Any, v: Sequence[Any]) -> Sequence[Any]:
    g, x = v
    return [(x ** (1 - g) - (1 - g) * t) ** (1 / (1 - g))]


def gompertz(t: Any, v: Sequence[Any]) -> Sequence[Any]:
    return [mpmath.exp(mpmath.log(v[1]) * mpmath.exp(-v[0] * t))]


def forced(t: Any, v: Sequence[Any]) -> Sequence[Any]:
    a, w, phi = v
    return [1 + a / w * (mpmath.cos(phi) - mpmath.cos(w * t + phi))]


def fading(t: Any, v: Sequence[Any]) -> Sequence[Any]:
    a, x = v
    return [x * mpmath.exp(-(1 - mpmath.exp(-a * t)) / a)]


def turning(t: Any, v: Sequence[Any]) -> Sequence[Any]:
    return [mpmath.atan(mpmath.tan(v[1]) + v[0] * t)]


def saturating(t: Any, v: Sequence[Any]) -> Sequence[Any]:
    return [mpmath.asinh(mpmath.sinh(v[1]) * mpmath.exp(-v[0] * t))]


def falling(t: Any, v: Sequence[Any]) -> Sequence[Any]:
    return [mpmath.asin(mpmath.sin(v[1]) * mpmath.exp(-v[0] * t))]


CASES: dict[str, tuple[Problem, Array, Solution]] = {
    "exp": (
        observed({"x": "-k*exp(-x)"}, TIMES, {"x": {}}, ["k"]), np.array([0.3, 1.5]), cooling
    ),
    "sqrt": (
        observed({"x": "-k*sqrt(x)"}, TIMES, {"x": {}}, ["k"]), np.array([0.4, 2.0]), draining
    ),
    "an unknown power": (
        observed({"x": "-x^g"}, TIMES, {"x": {}}, ["g"]), np.array([1.7, 1.2]), of_order
    ),
    "log": (
        observed({"x": "-k*x*log(x)"}, TIMES, {"x": {}}, ["k"]), np.array([0.8, 0.3]), gompertz
    ),
    "sin": (
        observed({"x": "a*sin(w*t + phi)"}, TIMES, {"x": 1.0}, ["a", "w", "phi"]),
        np.array([0.9, 2.1, 0.4]),
        forced,
    ),
    "exp of the time": (
        observed({"x": "-exp(-a*t)*x"}, TIMES, {"x": {}}, ["a"]), np.array([0.7, 1.1]), fading
    ),
    "cos": (
        observed({"x": "k*cos(x)^2"}, TIMES, {"x": {}}, ["k"]), np.array([0.5, -0.4]), turning
    ),
    "tanh": (
        observed({"x": "-k*tanh(x)"}, TIMES, {"x": {}}, ["k"]), np.array([0.6, 1.3]), saturating
    ),
    "tan": (
        observed({"x": "-k*tan(x)"}, TIMES, {"x": {}}, ["k"]), np.array([0.6, 0.9]), falling
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("degree", range(4))
@pytest.mark.parametrize("relative", [0.0, 1e-2, 0.1])
def test_exact_solutions_are_inside(case: str, degree: int, relative: float) -> None:
    problem, vector, solution = CASES[case]
    enclosure = Enclosure(problem, degree)
    found = holds(problem, enclosure, *box(vector, relative), solution, count=5)
    assert np.isfinite(found.remainder).all() or (degree < 2 and relative == 0.1)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("order", [1, 4, 20])
def test_at_every_order_in_time(case: str, order: int) -> None:
    problem, vector, solution = CASES[case]
    holds(problem, Enclosure(problem, 2, order), *box(vector, 0.05), solution, count=4)


@pytest.mark.parametrize("case", CASES)
def test_points_are_enclosed_to_rounding(case: str) -> None:
    problem, vector, solution = CASES[case]
    found = holds(problem, Enclosure(problem, 1, 24), *box(vector, 0.0), solution)
    assert found.remainder.max() < 3e-11


@pytest.mark.parametrize("case", CASES)
def test_the_remainder_is_of_the_next_degree(case: str) -> None:
    problem, vector, _ = CASES[case]
    for degree in (1, 2):
        enclosure = Enclosure(problem, degree, 20)
        wide, narrow = (enclosure(*box(vector, r)).remainder.max() for r in (4e-3, 1e-3))
        assert wide / narrow > 0.8 * 4 ** (degree + 1)


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


@pytest.mark.parametrize("build", [pendulum, gene, everywhere])
@pytest.mark.parametrize("degree", [1, 2])
def test_solutions_of_an_integrator_are_inside(build: Any, degree: int) -> None:
    problem, vector = build()
    enclosure = Enclosure(problem, degree)
    for relative in (0.0, 0.01):
        found = checked(problem, *box(vector, relative), enclosure, count=4)
        assert found.remainder.max() < (1e-3, 0.1)[relative > 0]


@pytest.mark.parametrize("name", ["seasonal-lotka-volterra", "bock"])
def test_problems_of_the_library(name: str) -> None:
    problem, known = library.load(name), library.reference(name)
    values = {**known.parameters, **known.initial}
    vector = np.array([values[u.name] for u in problem.unknowns])
    found = checked(problem, *box(vector, 1e-4), Enclosure(problem, 1), count=2)
    assert np.isfinite(found.remainder).all()


def test_where_a_state_may_leave_the_domain_nothing_is_known() -> None:
    problem = observed({"x": "-k", "y": "sqrt(x)"}, [0.5, 1.5], {"x": {}, "y": 0.0}, ["k"])
    found = Enclosure(problem)(*box(np.array([1.0, 1.0]), 0.01))
    assert np.isfinite(found.remainder[[0, 2]]).all()
    assert np.isinf(found.remainder[3]).all()
