"""Sums of states that differential equations leave as they are."""

from __future__ import annotations

import pytest

from odefit import Model
from odefit.enclosure.conserved_sums import conserved_sums, in_words


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


def test_they_agree_with_those_of_reactions() -> None:
    model = Model(reactions={"r": "2 A + B <-> C, kf, kr", "s": "C -> D, k"})
    given = [total.text for total in model.notation.conserved]
    assert [in_words(weights) for weights in conserved_sums(model)] == given
