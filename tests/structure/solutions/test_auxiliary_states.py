"""Auxiliary states and algebraic variables have the values that follow from the rest."""

from __future__ import annotations

import cmath
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from odefit import Problem
from odefit.common.arrays import ComplexArray
from odefit.structure.series.differentiated_system import DifferentiatedSystem
from odefit.structure.solutions.auxiliary_states import fill_dependent_states
from tests.structure.models import problem


def filled(given: Problem, values: Mapping[str, complex], time: float = 0.0) -> dict[str, complex]:
    """The value of each state, auxiliary ones included, after it was filled in."""
    system = DifferentiatedSystem(given, free_states=True)
    states = system.expansions[0].states
    vector: ComplexArray = np.full(len(system.names), 0.7, dtype=complex)
    for name, value in values.items():
        vector[system.names.index(states.get(name, name))] = value
    found = fill_dependent_states(system, 0, vector, time)
    assert system.names
    return {s: complex(found[system.names.index(n)]) for s, n in states.items()}


@pytest.mark.parametrize(
    ("term", "expected"),
    [
        ("exp(-k*x)", [cmath.exp(-0.6)]),
        ("log(x)", [cmath.log(2.0)]),
        ("sqrt(x + k)", [cmath.sqrt(2.3)]),
        ("x^k", [2.0**0.3]),
        ("sin(k*x)", [cmath.sin(0.6), cmath.cos(0.6)]),
        ("exp(sin(x))", [cmath.sin(2.0), cmath.cos(2.0), cmath.exp(cmath.sin(2.0))]),
        ("atan(k*x)", [cmath.atan(0.6)]),
    ],
)
def test_auxiliary_states_equal_the_functions_that_they_replace(
    term: str, expected: Sequence[complex]
) -> None:
    given = problem({"x": f"-x*{term}"}, {"y": "x"}, ["k"] if "k" in term else [])
    values = {"x": 2.0, **({"k": 0.3} if "k" in term else {})}
    found = filled(given, values)
    new = [v for s, v in found.items() if s != "x"]
    assert len(new) == len(expected)
    for value in expected:
        assert min(abs(n - value) for n in new) < 1e-14


def test_a_complex_state_has_complex_functions() -> None:
    given = problem({"x": "-k*x*exp(x)"}, {"y": "x"}, ["k"])
    found = filled(given, {"x": 1.0 + 2.0j, "k": 1.0})
    assert found["x"] == 1.0 + 2.0j
    (new,) = (v for s, v in found.items() if s != "x")
    assert new == pytest.approx(cmath.exp(1.0 + 2.0j), rel=1e-14)


def test_functions_of_time_are_taken_at_the_time() -> None:
    given = problem({"x": "-x*sin(k*t)"}, {"y": "x"}, ["k"])
    found = filled(given, {"x": 1.0, "k": 2.0}, time=0.4)
    new = [v for s, v in found.items() if s != "x"]
    for value in (np.sin(0.8), np.cos(0.8)):
        assert min(abs(n - value) for n in new) < 1e-14


@pytest.mark.parametrize(
    ("constraint", "guess", "expected"),
    [
        ("z - x*k", 0.0, 0.6),
        ("z^2 + z - x", 0.5, 1.0),
        ("z^2 + z - x", -3.0, -2.0),
        ("exp(z) - x", 0.1, np.log(2.0)),
    ],
)
def test_algebraic_variables_solve_their_equation(
    constraint: str, guess: float, expected: float
) -> None:
    """From where they are: of two roots, the near one."""
    given = problem({"x": "-k*z"}, {"y": "x"}, ["k"], {"z": guess}, algebraic={"z": constraint})
    found = filled(given, {"x": 2.0, "k": 0.3, "z": guess})
    assert found["z"] == pytest.approx(expected, rel=1e-12)


def test_auxiliary_states_follow_the_algebraic_variable() -> None:
    given = problem({"x": "-k*exp(z)"}, {"y": "x"}, ["k"], {"z": 0.5}, algebraic={"z": "z - x^2"})
    found = filled(given, {"x": 1.5, "k": 0.3, "z": 0.0})
    (new,) = (v for s, v in found.items() if s not in ("x", "z"))
    assert new == pytest.approx(np.exp(2.25), rel=1e-13)


def test_models_without_auxiliary_states_do_not_change() -> None:
    given = problem({"x": "-k*x"}, {"y": "x"}, ["k"])
    system = DifferentiatedSystem(given, free_states=True)
    vector = np.array([0.1, 0.2], dtype=complex)
    assert fill_dependent_states(system, 0, vector, 0.0) is vector


def test_an_undefined_value_is_nan() -> None:
    """log(0), as arithmetic has it; no exception."""
    given = problem({"x": "-k*log(x)"}, {"y": "x"}, ["k"])
    found = filled(given, {"x": 0.0, "k": 1.0})
    (new,) = (v for s, v in found.items() if s != "x")
    assert cmath.isnan(new)


def test_given_values_are_left_alone() -> None:
    given = problem({"x": "-k*exp(x)"}, {"y": "x"}, ["k"])
    system = DifferentiatedSystem(given, free_states=True)
    vector: Any = np.full(len(system.names), 0.7, dtype=complex)
    kept = vector.copy()
    fill_dependent_states(system, 0, vector, 0.0)
    assert np.array_equal(vector, kept)
