"""Listings of the contract are told apart, and what breaks is told from what is added."""

from __future__ import annotations

from typing import Any

import pytest

from golden_listings.differences import differences

OPTION = {"required": False, "names": ["--seed"], "default": 0, "choices": ["a", "b"]}


def found(old: Any, new: Any) -> list[tuple[str, bool]]:
    return [(d.place, d.breaking) for d in differences(old, new)]


def test_equal_listings_do_not_differ() -> None:
    assert found({"fit": OPTION}, {"fit": dict(OPTION)}) == []


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"default": 1}, "fit.default"),
        ({"default": None}, "fit.default"),
        ({"default": False}, "fit.default"),
        ({"required": True}, "fit.required"),
        ({"names": ["--sead"]}, "fit.names"),
        ({"choices": ["a"]}, "fit.choices"),
    ],
)
def test_an_option_with_another_meaning_is_a_break(change: dict[str, Any], place: str) -> None:
    assert (place, True) in found({"fit": OPTION}, {"fit": OPTION | change})


def test_a_removed_option_is_a_break_and_a_new_one_an_addition() -> None:
    assert found({"a": OPTION}, {"b": OPTION}) == [("a", True), ("b", False)]


def test_a_new_required_argument_is_a_break() -> None:
    assert found({}, {"b": {"required": True}}) == [("b", True)]


def test_an_argument_that_becomes_optional_breaks_nothing() -> None:
    old, new = {"k": {"required": True, "position": 0}}, {"k": {"position": 0, "default": "1"}}
    assert [d for d in differences(old, new) if d.breaking] == []


def test_a_new_choice_is_an_addition() -> None:
    assert found(OPTION, OPTION | {"choices": ["c", "a", "b"]}) == [("choices", False)]


def test_numbers_differ_beyond_seven_digits_alone() -> None:
    assert found({"objective": 1.0}, {"objective": 1.0 + 1e-11}) == []
    assert found({"objective": [1.0]}, {"objective": [1.0 + 1e-6]}) == [("objective[0]", True)]


@pytest.mark.parametrize("new", [[1.0], [1.0, 2.0, 3.0], [1.0, None], "12", {"a": 1}])
def test_lists_of_another_length_or_kind_break(new: Any) -> None:
    assert found({"x": [1.0, 2.0]}, {"x": new})[0][1] is True
