"""Models that are not rational, made so: same trajectories, relations that hold, same ranks."""

from __future__ import annotations

import cmath
import math
from typing import Any

import numpy as np
import pytest

from odefit.problem.problem import Problem
from odefit.structure.rank.ranks import local_rank
from odefit.structure.series.differentiated_system import DifferentiatedSystem, NoTaylorSeriesError
from odefit.structure.solutions.auxiliary_states import fill_dependent_states
from tests.structure.models import problem

FUNCTIONS: dict[str, Any] = {
    "exp": cmath.exp,
    "log": cmath.log,
    "log10": cmath.log10,
    "sqrt": cmath.sqrt,
    "sin": cmath.sin,
    "cos": cmath.cos,
    "tan": cmath.tan,
    "asin": cmath.asin,
    "acos": cmath.acos,
    "atan": cmath.atan,
    "sinh": cmath.sinh,
    "cosh": cmath.cosh,
    "tanh": cmath.tanh,
}

FORMS = {
    **{f"{name}(x/2 + a*t)": f for name, f in FUNCTIONS.items()},
    "(x + t)^a": lambda e: e,
    "x^2.5": lambda e: e,
    "2^x": lambda e: e,
    "x^(1/3)": lambda e: e,
    "(1 + x)^(a*x)": lambda e: e,
    "sqrt(2)*x + log(3)": lambda e: e,
    "exp(sin(x))*a": lambda e: e,
    "sqrt(1 + exp(x))": lambda e: e,
}
"""Functions of a state and a parameter, all smooth at the point of the tests."""

POINT = {"a": 0.3, "x": 0.8}
T0 = 0.25


def of(form: str, **more: Any) -> Problem:
    """``x' = -x + form/4``, all observed."""
    return problem(
        {"x": f"-x + ({form})/4"}, {"x": "x", "y": form}, ["a"], **{"initial": {}, **more}
    )


def value(form: str, x: complex, t: complex) -> complex:
    names = {**FUNCTIONS, "x": x, "t": t, "a": POINT["a"]}
    return complex(eval(form.replace("^", "**"), {}, names))


def integrated(form: str, span: float, steps: int = 400) -> complex:
    """The state after `span`, by Runge and Kutta's method, with the function itself."""
    x, t, h = complex(POINT["x"]), T0, span / steps

    def rate(x: complex, t: float) -> complex:
        return -x + value(form, x, t) / 4

    for _ in range(steps):
        k1 = rate(x, t)
        k2 = rate(x + h / 2 * k1, t + h / 2)
        k3 = rate(x + h / 2 * k2, t + h / 2)
        k4 = rate(x + h * k3, t + h)
        x, t = x + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4), t + h
    return x


def series_at_point(form: str, order: int) -> tuple[DifferentiatedSystem, np.ndarray, Any]:
    system = DifferentiatedSystem(of(form), free_states=False)
    start = np.array([POINT.get(n, 1.0) for n in system.names], dtype=complex)
    values = fill_dependent_states(system, 0, start, T0)
    known, functions = system.expansions[0].expansion_point(T0, order)
    return system, values, system.run(0, values[None], order, known[None], functions[None])


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_the_lifted_trajectory_is_the_original_one(form: str) -> None:
    _, _, taylor = series_at_point(form, 16)
    span = 0.1
    powers = span ** np.arange(17)
    x = complex(taylor.outputs[0, :, 0] @ powers)
    assert x == pytest.approx(integrated(form, span), rel=1e-9)
    y = complex(taylor.outputs[0, :, 1] @ powers)
    assert y == pytest.approx(value(form, x, T0 + span), rel=1e-9)


@pytest.mark.parametrize("form", FORMS)
def test_polynomial_relations_hold_at_every_order(form: str) -> None:
    system, _, taylor = series_at_point(form, 10)
    expansion = system.expansions[0]
    zeros = taylor.outputs[0, :, len(expansion.observables) : expansion.outputs]
    assert np.abs(zeros).max(initial=0.0) < 1e-9


@pytest.mark.parametrize("form", FORMS)
def test_relations_between_differentials_hold_along_the_trajectory(form: str) -> None:
    """``w' = sum of factor * argument'``, with all three read from the series."""
    system, _, taylor = series_at_point(form, 2)
    assert bool(system.expansions[0].differentials) == ("sqrt(2)" not in form)
    for place, pairs in system.expansions[0].differentials:
        outputs = taylor.outputs[0]
        followed = sum(outputs[0, factor] * outputs[1, argument] for factor, argument in pairs)
        generic = {t.index for t in system.expansions[0].lifting.generic}
        tape = system.expansions[0].lifting.tape
        program = system.expansions[0].program.equations
        if any(tape.depends(program.outputs[f]) & generic for f, _ in pairs):
            continue  # any number stands for the logarithm where the exponent rests
        assert abs(outputs[1, place] - followed) < 1e-10


@pytest.mark.parametrize("form", FORMS)
def test_a_parameter_and_an_initial_value_behind_a_function_are_identifiable(form: str) -> None:
    if "a" not in form.replace("tan", "").replace("acos", "").replace("asin", ""):
        form = f"a*({form})"
    rank = local_rank(DifferentiatedSystem(of(form), free_states=False))
    assert rank.proved


@pytest.mark.parametrize(
    ("form", "identifiable"),
    [
        ("exp(a + b)", False),
        ("exp(a + b*x)", True),
        ("sin(a*b)", False),
        ("x^a*x^b", False),
        ("exp(a)*b", False),
        ("exp(a)*x + b*x^2", True),
        ("sqrt(a)*sqrt(b)", False),
        ("log(a*x) + b", False),
        ("log(x + a)*b", True),
        ("a*exp(-b*t)", True),
        ("(a*x)^b", True),
        ("cos(a)^2 + sin(b)^2", False),
    ],
)
def test_the_rank_counts_two_parameters_inside_functions(form: str, identifiable: bool) -> None:
    model = problem({"x": f"-x + {form}"}, {"y": "x"}, ["a", "b"])
    rank = local_rank(DifferentiatedSystem(model, free_states=False))
    assert rank.proved == identifiable
    found = dict(zip(rank.names, rank.best.determined, strict=True))
    assert found["x"]
    assert (found["a"], found["b"]) == (identifiable, identifiable)


def test_an_initial_value_may_be_a_function_of_a_parameter() -> None:
    model = problem({"x": "-k*x"}, {"y": "x"}, ["k", "p"], {"x": "2*exp(p) + sqrt(p)"})
    system = DifferentiatedSystem(model, free_states=False)
    start = np.array([0.5 if n == "k" else 0.49 for n in system.names], dtype=complex)
    values = fill_dependent_states(system, 0, start, 0.0)
    known, functions = system.expansions[0].expansion_point(0.0, 1)
    taylor = system.run(0, values[None], 1, known[None], functions[None])
    x0 = 2 * math.exp(0.49) + 0.7
    np.testing.assert_allclose(taylor.outputs[0, :, 0], [x0, -0.5 * x0], rtol=1e-12)
    assert local_rank(system).proved


def test_functions_of_the_time_alone_are_known() -> None:
    model = problem({"x": "-k*x + sin(3*t) + sqrt(1 + t^2)"}, {"y": "x"}, ["k"])
    system = DifferentiatedSystem(model, free_states=False)
    assert system.names == ["k", "x"]
    known, functions = system.expansions[0].expansion_point(0.4, 3)
    point = np.array([[0.5, 2.0]], dtype=complex)
    taylor = system.run(0, point, 3, known[None], functions[None])
    rate = -1.0 + math.sin(1.2) + math.sqrt(1.16)
    assert taylor.outputs[0, 1, 0].real == pytest.approx(rate, rel=1e-13)


@pytest.mark.parametrize("function", ["abs(x)", "min(x, k)", "max(x, k)", "piecewise(x, x > k, k)"])
def test_a_kink_is_refused(function: str) -> None:
    with pytest.raises(NoTaylorSeriesError, match="kink"):
        DifferentiatedSystem(problem({"x": f"-k*{function}"}, {"y": "x"}, ["k"]), free_states=False)


def test_an_algebraic_equation_is_differentiated() -> None:
    """``z^3 + z = x`` with ``x' = -z``: against the series of the inverse function."""
    model = problem({"x": "-k*z"}, {"y": "z"}, ["k"], algebraic={"z": "z^3 + z - x"})
    system = DifferentiatedSystem(model, free_states=False)
    start = {"k": 0.7, "x": 2.0}
    values = np.array([start.get(n, 0.9) for n in system.names], dtype=complex)
    values = fill_dependent_states(system, 0, values, 0.0)
    known, functions = system.expansions[0].expansion_point(0.0, 3)
    taylor = system.run(0, values[None], 3, known[None], functions[None])
    # z = 1 at x = 2; (3 z^2 + 1) z' = x' = -k z.
    assert taylor.outputs[0, 0, 0] == pytest.approx(1.0)
    assert taylor.outputs[0, 1, 0] == pytest.approx(-0.7 / 4)
    # (3 z^2 + 1) z'' + 6 z z'^2 = -k z'.
    second = (0.49 / 4 - 6 * 0.49 / 16) / 4
    assert 2 * taylor.outputs[0, 2, 0] == pytest.approx(second)
    assert np.abs(taylor.outputs[0, :, 1]).max() < 1e-12
