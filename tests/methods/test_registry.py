"""The registry says the truth: about classes, their options, and the pages that explain them."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

import odefit
from docs import reference_pages
from odefit.common.errors import InputError
from odefit.methods.estimate import Estimate
from odefit.methods.registry import DEFAULT_METHOD, METHODS, OPTIONS, as_method, make_method
from odefit.methods.running.control import Control
from odefit.problem.problem import Problem

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("name", METHODS)
def test_a_method_matches_its_entry(name: str) -> None:
    entry = METHODS[name]
    method = make_method(name)
    assert type(method) is getattr(odefit, entry.class_name)
    assert method == type(method)()
    assert set(entry.options) <= {f.name for f in fields(method)}  # type: ignore[arg-type]
    assert ("starts" in entry.options) == (not entry.without_starts)
    assert f"odefit.{entry.class_name}" in (DOCS / entry.page).read_text(encoding="utf-8")


def test_the_page_of_commands_names_every_method_and_option() -> None:
    page = reference_pages.commands_page()
    missing = [name for name in METHODS if f"{name}," not in page and f", {name}" not in page]
    missing += [f"--{name}" for name in OPTIONS if f"| `--{name} " not in page]
    assert not missing


def test_every_option_belongs_to_a_method() -> None:
    assert {option for entry in METHODS.values() for option in entry.options} == set(OPTIONS)


def test_without_a_name_the_default_is_made_with_the_options_given() -> None:
    assert make_method() == make_method(DEFAULT_METHOD)
    assert make_method(None, {"starts": 3, "mesh": None}) == odefit.Automatic(starts=3)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("multistart", {}, "unknown method 'multistart'; did you mean 'multi-start'"),
        ("algebraic", {"starts": 3}, "it finds all solutions"),
        (None, {"nodes": 3}, "--nodes: is an option of --method multiple-shooting"),
    ],
)
def test_wrong_use_is_refused_with_a_remedy(
    name: str | None, options: dict[str, int], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        make_method(name, options)


def test_a_name_and_a_verb_are_enough_for_a_method_of_a_user() -> None:
    class Own:
        name = "mine"

        def solve(self, problem: Problem, control: Control) -> Estimate:
            return odefit.SingleShooting().solve(problem, control)

    method = as_method(Own)
    assert (method.name, method.answer_is_final, method.start_option) == ("mine", False, "")
    problem = odefit.library.load("harmonic")
    assert method.solve(problem, Control()).best is not None
