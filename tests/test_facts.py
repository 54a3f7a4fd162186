"""Facts travel as values: no program text looks for words in a sentence of the package."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[1] / "src" / "odefit"

WORDS = re.compile(r"[A-Za-z]{2,}[ ,]+[A-Za-z]")
"""Two words: part of a sentence, and no name, key, unit or operator."""

TEXT_METHODS = {
    *("startswith", "endswith", "find", "index", "count", "rfind", "rindex"),
    *("removeprefix", "removesuffix", "replace", "partition", "rpartition", "split"),
}

SENTENCES = {"message", "sentence", "scope", "warning", "warnings", "note", "reason"}
"""Names of attributes and variables that hold sentences."""

FOREIGN = {
    "if not": "the name of an operation",
    "option": "a message of CasADi",
    "without GMP": "a message of SCIP",
    "Error in model string, ": "a message of libAntimony",
    "cannot be empty.": "a message of libsbml",
    "(at end of document)": "a message of tomllib",
    "CREATE TABLE": "a definition that SQLite keeps",
}
"""Texts of other programs, which give no codes, and names of two words; with the reason."""


@cache
def trees() -> dict[str, ast.Module]:
    """Return the syntax tree of each module by its path."""
    return {
        path.relative_to(SOURCE).as_posix(): ast.parse(path.read_text(encoding="utf-8"))
        for path in sorted(SOURCE.rglob("*.py"))
    }


@cache
def constants() -> dict[str, str]:
    """Return the texts of module constants by name."""
    return {
        target.id: node.value.value
        for tree in trees().values()
        for node in tree.body
        if isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def literal(node: ast.expr) -> str:
    """Return the text that a literal, a constant or a collection of them holds; else nothing."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    if isinstance(node, ast.Name):
        return constants().get(node.id, "")
    if isinstance(node, ast.JoinedStr):
        return " ".join(literal(part) for part in node.values)
    if isinstance(node, ast.Tuple | ast.List | ast.Set):
        return " | ".join(filter(None, map(literal, node.elts)))
    return ""


def holds_sentence(node: ast.expr) -> bool:
    """Return whether a value is a sentence, by the name of its variable or attribute."""
    while isinstance(node, ast.Call | ast.Attribute):
        if isinstance(node, ast.Attribute) and node.attr in SENTENCES:
            return True
        node = node.func if isinstance(node, ast.Call) else node.value
    return isinstance(node, ast.Name) and node.id in SENTENCES


def compared(tree: ast.Module) -> Iterator[ast.expr]:
    """Yield the comparisons of texts with sentences, and of values of enumerations with texts."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(attr=name), args=[first, *_]) if (
                name in TEXT_METHODS and WORDS.search(literal(first))
            ):
                yield node
        if not isinstance(node, ast.Compare):
            continue
        operands = [node.left, *node.comparators]
        for left, operator, right in zip(operands, node.ops, operands[1:], strict=False):
            inside = isinstance(operator, ast.In | ast.NotIn)
            if not (inside or isinstance(operator, ast.Eq | ast.NotEq)):
                continue
            # A dictionary or a set of constants, looked up by its name, is no sentence.
            sides = [left] if inside and isinstance(right, ast.Name) else [left, right]
            value = any(isinstance(s, ast.Attribute) and s.attr == "value" for s in sides)
            if (
                any(WORDS.search(literal(side)) for side in sides)
                or (inside and holds_sentence(right) and bool(literal(left)))
                or (value and any(literal(side) for side in sides))
            ):
                yield node


def foreign(node: ast.expr) -> bool:
    """Return whether the text of a comparison comes from another program."""
    texts = [literal(part) for part in ast.walk(node) if isinstance(part, ast.expr)]
    return any(known in text for known in FOREIGN for text in texts)


@pytest.mark.slow
def test_no_text_is_compared_with_text() -> None:
    lines = [
        f"{module}:{node.lineno}: {ast.unparse(node)}"
        for module, tree in trees().items()
        for node in compared(tree)
        if not foreign(node)
    ]
    assert not lines, "compare a value: an enumeration's member, a number, a name"


def test_templates_compare_no_values_of_enumerations() -> None:
    for path in SOURCE.rglob("*.html"):
        assert not re.search(r"\.value\s*[!=]=", path.read_text(encoding="utf-8")), path.name


@pytest.mark.parametrize(
    "code",
    [
        'if "the answer" in result.message: pass',
        'if "answer" in result.message.lower(): pass',
        'if warning == "Some starts failed": pass',
        'if status.value == "converged": pass',
        'if status.value in ("failed", "converged"): pass',
        'text.startswith("No two integrators")',
        'if f"{count} starts failed" not in note: pass',
    ],
)
def test_the_search_finds_comparisons_of_texts(code: str) -> None:
    assert list(compared(ast.parse(code)))
