"""Sums that do not change, found exactly."""

from __future__ import annotations

from fractions import Fraction

import odefit
from odefit.enclosure.invariants import invariants
from odefit.enclosure.system import System
from odefit.structure.series.tape import Tape
from tests.enclosure.solutions import observed


def of(ode: dict[str, str], *parameters: str) -> list[list[Fraction]]:
    problem = observed(ode, [1.0], dict.fromkeys(ode, 1.0), parameters)
    return invariants(System(problem, problem.conditions[0]).modes[0].right_hand_sides.terms)


def test_a_library_network() -> None:
    problem = odefit.library.load("alpha-pinene")
    system = System(problem, problem.conditions[0])
    assert invariants(system.modes[0].right_hand_sides.terms) == [[Fraction(1)] * 5]


def test_stoichiometry() -> None:
    """Two of A make one B, which makes C and back."""
    found = of({"A": "-2*k*A^2", "B": "k*A^2 - m*B + n*C", "C": "m*B - n*C"}, "k", "m", "n")
    assert found == [[Fraction(1, 2), Fraction(1), Fraction(1)]]


def test_quotients_cancel_as_wholes() -> None:
    assert of({"A": "-v*A/(m + A)", "B": "v*A/(m + A)"}, "v", "m") == [[1, 1]]
    assert of({"A": "-A/3", "B": "A/(2 + 1)"}) == [[1, 1]]


def test_what_changes_is_not_found() -> None:
    assert of({"A": "-k*A", "B": "k*A - m*B"}, "k", "m") == []
    assert of({"A": "-k*A", "B": "k*A*(1 + 1e-12)"}, "k") != [[1, 1]]
    assert of({"x": "-p*y", "y": "x/q"}, "p", "q") == []
    assert of({"A": "0", "B": "-B"}) == [[1, 0]]


def test_long_expansions_are_left_alone() -> None:
    tape = Tape()
    total = tape.number(0)
    for k in range(30):
        total = total + tape.variable(f"x{k}")
    assert invariants([total * total, tape.number(0) - total * total]) == []
    assert invariants([]) == []
