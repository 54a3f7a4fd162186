"""Mistakes are collected and raised together."""

from __future__ import annotations

import pytest

from odefit.common.errors import InputError
from odefit.problem.inputs.issues import Issues


def test_all_errors_are_raised_at_once_with_the_file_they_are_in() -> None:
    issues = Issues("a.toml")
    issues.error("[ode] x", "wrong")
    issues.error("[ode] y", "wrong too")
    with pytest.raises(InputError) as caught:
        issues.raise_errors()
    assert caught.value.messages == ("a.toml: [ode] x: wrong", "a.toml: [ode] y: wrong too")


def test_the_same_mistake_counts_once() -> None:
    issues = Issues()
    issues.error("x", "wrong")
    issues.error("x", "wrong")
    assert issues.errors == ["x: wrong"]


def test_a_mistake_at_many_places_is_one_message() -> None:
    issues = Issues()
    for k in range(12):
        issues.error(f"[noise] x{k}", "wrong")
    for k in range(3):
        issues.error(f"[ode] x{k}", "no number")
    issues.errors.append("from elsewhere: unknown")
    with pytest.raises(InputError) as caught:
        issues.raise_errors()
    first, *others = caught.value.messages
    assert first.startswith("[noise] x0: wrong; the same at [noise] x1, [noise] x2, ")
    assert first.endswith(" more")
    assert others == [
        *(f"[ode] x{k}: no number" for k in range(3)),
        "from elsewhere: unknown",
    ]


def test_a_mistake_is_found_by_its_place_or_a_part_of_it() -> None:
    issues = Issues("a.toml")
    issues.error("data.csv, column y1, row 3", "wrong")
    assert issues.has_errors("data.csv")
    assert issues.has_errors("data.csv, column y1")
    assert not issues.has_errors("data.csv, column y")


@pytest.mark.parametrize(
    "value",
    [True, None, [], {}, [1, [2]], object(), pytest.param(10**400, id="huge"), float("nan")],
)
def test_a_value_that_is_not_an_expression_is_reported(value: object) -> None:
    issues = Issues()
    assert issues.expression("here", value) is None
    assert len(issues.errors) == 1


def test_warnings_raise_nothing() -> None:
    issues = Issues()
    issues.warn("x", "odd")
    issues.raise_errors()
    assert issues.warnings == ["x: odd"]


@pytest.mark.parametrize("text", ["1e308", "-k*x + 1e200", "1e100*1e100"])
def test_numbers_in_expressions_whose_squares_overflow_are_refused(text: str) -> None:
    issues = Issues("p.toml")
    assert issues.expression("[ode] x", text) is None
    (message,) = issues.errors
    assert message.startswith(f"p.toml: [ode] x: in '{text}', 1e+")
    assert message.endswith(
        "is too large, since its square overflows; expected at most 1e+150 in size: "
        "correct it, or choose another unit"
    )
