"""Sums of states that differential equations leave as they are."""

from __future__ import annotations

from fractions import Fraction

import pytest

import odefit
from odefit import Model
from odefit.enclosure.system import System
from odefit.structure.conserved_sums import conserved_by, conserved_sums, in_words
from odefit.structure.series.tape import Tape
from tests.enclosure.solutions import observed


@pytest.mark.parametrize(
    ("ode", "sums"),
    [
        # Mass action: two moieties, as of reactions.
        (
            {
                "S": "-k1*E*S + km*C",
                "E": "-k1*E*S + (km + k2)*C",
                "C": "k1*E*S - (km + k2)*C",
                "P": "k2*C",
            },
            ["E + C", "S + C + P"],
        ),
        # Rates that are no polynomials count as symbols, wherever they stand.
        (
            {"a": "-v*a/(K + a) - exp(-t)*abs(a)", "b": "v*a/(K + a)/2 + abs(a)*exp(-t)/2"},
            ["a + 2*b"],
        ),
        ({"x": "k*(y - x)", "y": "k*(x - y)"}, ["x + y"]),
        ({"x": "k*x", "y": "k*x"}, ["x - y"]),
        # Conserved for one value of a parameter alone, or not at all, or a state by itself.
        ({"x": "-k*x", "y": "m*x"}, []),
        ({"x": "-k*x^2", "v": "x"}, []),
        ({"x": "0", "y": "k"}, []),
        ({"x": "-x"}, []),
        ({"x": "1/(k - k)", "y": "-1/(k - k)"}, []),
    ],
)
def test_sums_that_stay_are_found_whatever_the_parameters_are(
    ode: dict[str, str], sums: list[str]
) -> None:
    assert [in_words(weights) for weights in conserved_sums(Model(ode=ode))] == sums


def test_conserved_sums_agree_with_those_of_reactions() -> None:
    model = Model(reactions={"r": "2 A + B <-> C, kf, kr", "s": "C -> D, k"})
    given = [total.text for total in model.notation.conserved]
    assert [in_words(weights) for weights in conserved_sums(model)] == given


def weights_of(ode: dict[str, str], *parameters: str) -> list[list[Fraction]]:
    problem = observed(ode, [1.0], dict.fromkeys(ode, 1.0), parameters)
    return conserved_by(System(problem, problem.conditions[0]).modes[0].right_hand_sides.terms)


def test_a_library_network() -> None:
    problem = odefit.library.load("alpha-pinene")
    system = System(problem, problem.conditions[0])
    assert conserved_by(system.modes[0].right_hand_sides.terms) == [[Fraction(1)] * 5]


def test_stoichiometry_gives_the_weights_of_conserved_sums() -> None:
    """Two of A make one B, which makes C and back."""
    found = weights_of({"A": "-2*k*A^2", "B": "k*A^2 - m*B + n*C", "C": "m*B - n*C"}, "k", "m", "n")
    assert found == [[Fraction(1, 2), Fraction(1), Fraction(1)]]


def test_quotients_cancel_as_wholes() -> None:
    assert weights_of({"A": "-v*A/(m + A)", "B": "v*A/(m + A)"}, "v", "m") == [[1, 1]]
    assert weights_of({"A": "-A/3", "B": "A/(2 + 1)"}) == [[1, 1]]


def test_a_sum_that_changes_is_not_conserved() -> None:
    assert weights_of({"A": "-k*A", "B": "k*A - m*B"}, "k", "m") == []
    assert weights_of({"A": "-k*A", "B": "k*A*(1 + 1e-12)"}, "k") != [[1, 1]]
    assert weights_of({"x": "-p*y", "y": "x/q"}, "p", "q") == []
    assert weights_of({"A": "0", "B": "-B"}) == [[1, 0]]


def test_long_expansions_are_left_alone() -> None:
    tape = Tape()
    total = tape.number(0)
    for k in range(30):
        total = total + tape.variable(f"x{k}")
    assert conserved_by([total * total, tape.number(0) - total * total]) == []
    assert conserved_by([]) == []
