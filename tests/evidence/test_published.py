"""Published estimates: their tables are those of the sources, and a few quick ones are found."""

from __future__ import annotations

import numpy as np
import pytest

from evidence.published.estimates import (
    PROBLEMS,
    compared,
    differences,
    last_digit,
    mapping,
    published,
    squares_by_hand,
)
from odefit.problem import problem_from_mapping

CLOSED = [name for name, entry in PROBLEMS.items() if "closed" in entry and "squares" in entry]
QUICK = (
    "Misra1c",
    "BoxBOD",
    "Rat42",
    "Lanczos3",
    "gas-oil",
    "marine",
    "chloride",
    "BOD",
    "theoph-4",
)


@pytest.mark.parametrize("name", CLOSED)
def test_the_closed_form_has_the_published_sum_of_squares(name: str) -> None:
    squares = PROBLEMS[name]["squares"]
    found = squares_by_hand(name, published(name)[0])
    if name == "Lanczos1":  # its residuals are the rounding of its data
        assert found < 1e-20
    elif name == "chloride":  # three digits of the book
        assert found == pytest.approx(float(squares), rel=0.05)
    else:
        assert abs(found - float(squares)) <= max(1e-6 * float(squares), last_digit(squares))


@pytest.mark.parametrize("name", PROBLEMS)
def test_unknowns_are_those_of_the_published_values(name: str) -> None:
    keys = problem_from_mapping(mapping(name)).keys
    assert set(PROBLEMS[name]["published"]) <= set(keys)
    assert {k for group in PROBLEMS[name].get("alike", ()) for k in group} <= set(keys)


@pytest.mark.slow
@pytest.mark.parametrize("name", QUICK)
def test_published_values_are_found(name: str) -> None:
    assert compared(name, 1, 30.0)["wrong"] == []


def test_equal_terms_may_be_exchanged() -> None:
    estimates, errors = published("Lanczos3")
    other = {"b1": "b5", "b2": "b6", "b5": "b1", "b6": "b2"}
    keys = [other.get(k, k) for k in estimates]
    squares = float(PROBLEMS["Lanczos3"]["squares"])
    vector, spread = (np.array(list(v.values())) for v in (estimates, errors))
    assert differences("Lanczos3", keys, vector, spread, squares)["wrong"] == []
    assert differences("Lanczos3", list(estimates), vector[::-1], spread, squares)["wrong"]
