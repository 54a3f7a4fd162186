"""Combinations are identifiable where single unknowns are not."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

import pytest

from odefit.structure.rank.combinations import (
    IdentifiableCombinations,
    identifiable_combinations,
    rational,
)
from odefit.structure.rank.ranks import local_rank
from odefit.structure.series.deadline import NEVER, Deadline
from odefit.structure.series.differentiated_system import DifferentiatedSystem
from odefit.structure.series.number_fields import MODULAR, PRIME
from tests.structure.models import problem


def of(
    ode: Mapping[str, str],
    output: str,
    parameters: str,
    initial: Mapping[str, float] | None = None,
    deadline: Deadline = NEVER,
) -> IdentifiableCombinations:
    model = problem(ode, {"y": output}, parameters.split(), initial)
    return identifiable_combinations(
        local_rank(DifferentiatedSystem(model, free_states=False)), model.keys, deadline
    )


@pytest.mark.parametrize(
    ("rate", "parameters", "expected"),
    [
        ("a*b", "a b", ["a*b"]),
        ("a/b", "a b", ["a/b"]),
        ("a + b", "a b", ["a + b"]),
        ("a - b", "a b", ["a - b"]),
        ("2*a - b", "a b", ["2*a - b"]),
        ("a^2*b", "a b", ["a^2*b"]),
        ("a*b*c", "a b c", ["a*b*c"]),
        ("a*b/c", "a b c", ["a*b/c"]),
        ("a + b - c", "a b c", ["a + b - c"]),
        ("a*b*c*d/e", "a b c d e", ["a*b*c*d/e"]),
        ("a + 2*b - c + d", "a b c d", ["a + 2*b - c + d"]),
        ("exp(a)*exp(b)", "a b", ["a + b"]),
        ("exp(a*b)", "a b", ["a*b"]),
    ],
)
def test_one_combination_in_a_rate(rate: str, parameters: str, expected: list[str]) -> None:
    found = of({"x": f"-({rate})*x"}, "x", parameters)
    assert [str(c) for c in found.combinations] == expected
    assert found.missing == 0
    assert set(found.involved) == set(parameters.split())


def test_several_independent_combinations_are_found_at_once() -> None:
    found = of({"x": "-(m + n)*x"}, "s*x", "m n s")
    assert [str(c) for c in found.combinations] == ["m + n", "s*x"]
    assert found.missing == 0
    assert found.involved == ("m", "n", "s", "x")


def test_a_combination_neither_product_nor_sum_is_counted_as_missing() -> None:
    found = of({"x": "-(a*b + c*d)*x"}, "x", "a b c d")
    assert (found.combinations, found.missing) == ((), 1)
    found = of({"x": "-k*x + (m + n)*z", "z": "-p*z"}, "s*x", "k m n p s")
    assert ([str(c) for c in found.combinations], found.missing) == (["s*x"], 1)


def test_a_name_without_effect_is_in_no_combination() -> None:
    found = of({"x": "-a*b*x", "z": "-c*z"}, "x", "a b c")
    assert found.involved == ("a", "b")


def test_there_is_no_remark_where_everything_is_identifiable() -> None:
    assert of({"x": "-a*x"}, "x", "a") == IdentifiableCombinations((), 0, ())


@pytest.mark.parametrize("value", [Fraction(1), Fraction(-3), Fraction(2, 3), Fraction(-5, 6)])
def test_small_fractions_are_recognised(value: Fraction) -> None:
    assert rational(MODULAR.exact(value)) == value


def test_random_residues_are_not_taken_for_small_fractions() -> None:
    assert rational(123_456_789) is None
    assert rational(0) == 0
    assert rational(PRIME - 2) == -2


def test_combinations_beyond_the_work_limit_are_counted_as_missing() -> None:
    """400 unknowns took 10 s and 1.2 GB beside the limit, which nothing here looked at."""
    parameters = "a b c d"
    found = of({"x": "-(a*b + c - d)*x"}, "x", parameters, deadline=Deadline(work=1.0))
    assert found.combinations == ()
    assert found.missing == of({"x": "-(a*b + c - d)*x"}, "x", parameters).missing + len(
        of({"x": "-(a*b + c - d)*x"}, "x", parameters).combinations
    )
    assert found.involved == tuple(parameters.split())


@pytest.mark.parametrize(
    ("rate", "output", "parameters"),
    [
        ("-(a + b + c - d)*x", "x", "a b c d"),
        ("-a*b/c*x", "x", "a b c"),
        ("-(m + n)*x", "s*x", "m n s"),
        ("-a*x + b*x", "c*x", "a b c"),
    ],
)
def test_null_spaces_that_are_reduced_already_lead_to_as_many_combinations(
    rate: str, output: str, parameters: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    built = of({"x": rate}, output, parameters)
    monkeypatch.setattr("odefit.structure.rank.combinations.MANY_ROWS", 0)
    taken = of({"x": rate}, output, parameters)
    assert (len(taken.combinations), taken.missing) == (len(built.combinations), built.missing)
    assert taken.involved == built.involved
