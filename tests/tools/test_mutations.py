"""Mutations of code: one expression is another, and everything else is as it was."""

from __future__ import annotations

from pathlib import Path

import pytest

from mutations import Mutation, mutations

CODE = '''
"""A text, with a + b."""

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    x: int = 1 + 2


@register(order=3)
def f(a: int | None, b: Literal[1] = 1) -> list[int]:
    é = "é" + "text"
    total = (
        a
        + b
    )
    if a and not b:
        return f"{a + b}"
    return total if a < b else -min(a, 2.5)
'''


@pytest.fixture
def found(tmp_path: Path) -> list[Mutation]:
    (tmp_path / "code.py").write_text(CODE, encoding="utf-8")
    return list(mutations(tmp_path, "code.py"))


def test_operators_conditions_and_whole_numbers_change_and_nothing_else(
    found: list[Mutation],
) -> None:
    changes = {(" ".join(m.before.split()), " ".join(m.after.split()), m.kind) for m in found}
    assert changes == {
        ("a + b", "(a - b )", "arithmetic"),
        ("1", "(2)", "constant"),
        ("a and not b", "(a or not b)", "boolean"),
        ("a and not b", "(not (a and (not b)))", "condition"),
        ("not b", "(b)", "not"),
        ("a < b", "(a <= b)", "comparison"),
        ("a < b", "(a >= b)", "comparison"),
        ("-min(a, 2.5)", "(min(a, 2.5))", "sign"),
        ("min(a, 2.5)", "(max(a, 2.5))", "extreme"),
    }


def test_every_mutant_compiles_and_all_other_lines_stay_where_they_are(
    found: list[Mutation],
) -> None:
    for mutation in found:
        changed = mutation.of(CODE.encode()).decode()
        compile(changed, "mutant", "exec")
        before, after = CODE.splitlines(), changed.splitlines()
        assert len(after) == len(before)
        rows = mutation.before.count("\n") + 1
        first = mutation.line - 1
        assert after[:first] == before[:first]
        assert after[first + rows :] == before[first + rows :]


def test_a_mutant_belongs_to_the_package_of_its_file() -> None:
    def package(path: str) -> str:
        return Mutation(path, 1, 0, 1, "1", "(2)", "constant").package

    assert package("methods/shooting/search.py") == "methods"
    assert package("fit.py") == "odefit"
