"""Expressions written in programming languages."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from odefit.expressions.expressions import PIECEWISE, Expression
from odefit.expressions.grammar import CONDITIONS

ATOM, POWER, SIGN, PRODUCT, SUM, COMPARISON, LOOSEST = 10, 9, 7, 6, 5, 4, 0
"""Binding strengths of the last operation of a text."""

PRECEDENCE = {"*": PRODUCT, "/": PRODUCT, "+": SUM, "-": SUM}


@dataclass(frozen=True)
class Language:
    """The spelling of expressions and statements in a language.

    Attributes
    ----------
    functions
        Names of functions, where they differ from those of expressions.
    power
        The text of a power of two texts; the third argument is an integer exponent, if it is one.
    chosen
        The text that stands for one of two texts, by a condition.
    signs
        The signs of conditions, where they differ from those of expressions.
    reserved
        Words that cannot be names.
    declared, stored
        The statement that gives a name a value, and the one that puts a value into an array.
    element
        An element of an array, by its place from 0.
    text
        A text as a literal.
    branch, otherwise_branch, end
        The beginning of a branch, by a variable and its value from 0; of one after the first; and
        the line after the last.
    """

    functions: Mapping[str, str]
    power: Callable[[str, str, int | None], str]
    chosen: Callable[[str, str, str], str]
    signs: Mapping[str, str]
    reserved: frozenset[str]
    declared: str
    stored: str
    element: str
    branch: str
    otherwise_branch: str
    end: str
    remark: str
    first_index: int

    def call(self, function: str, arguments: Sequence[str]) -> str:
        """Return the text of a function of arguments; least and largest values have two each."""
        name = self.functions.get(function, function)
        if len(arguments) == 1:
            return f"{name}({arguments[0]})"
        text = arguments[0]
        for other in arguments[1:]:
            text = f"{name}({text}, {other})"
        return text

    def at(self, array: str, place: int) -> str:
        """Return the text of an element of an array, by its place from 0."""
        return self.element.format(array=array, place=place + self.first_index)


def written(expression: Expression, language: Language, names: Mapping[str, str]) -> str:
    """Return the text of an expression in a language, where `names` has its names there."""
    stack: list[tuple[str, int]] = []
    for kind, text, arity in expression.program:
        if kind == "name":
            stack.append((names[text], ATOM))
            continue
        if kind == "number":
            stack.append((number_text(text), ATOM))
            continue
        arguments = stack[len(stack) - arity :]
        del stack[len(stack) - arity :]
        if kind == "negate":
            stack.append((f"-{_inner(arguments[0], POWER)}", SIGN))
        elif kind == "binary" and text in PRECEDENCE:
            stack.append(_operation(text, arguments[0], arguments[1]))
        elif kind == "binary":
            base, exponent = arguments
            whole = _integer(exponent[0])
            stack.append((language.power(_inner(base, ATOM), _inner(exponent, ATOM), whole), POWER))
        else:
            stack.append((_called(text, [a for a, _ in arguments], language), ATOM))
    return stack[0][0]


def _operation(sign: str, left: tuple[str, int], right: tuple[str, int]) -> tuple[str, int]:
    tight = PRECEDENCE[sign]
    space = " " if tight == SUM else ""
    return f"{_inner(left, tight)}{space}{sign}{space}{_inner(right, tight + 1)}", tight


def _called(function: str, arguments: list[str], language: Language) -> str:
    if function == PIECEWISE:
        text = arguments[-1]
        pairs = list(zip(arguments[0:-1:2], arguments[1:-1:2], strict=True))
        for value, condition in reversed(pairs):
            text = language.chosen(condition, value, text)
        return text
    if function == "!":
        return f"({language.signs.get('!', '!')}{arguments[0]})"
    if function in CONDITIONS:
        return f"({arguments[0]} {language.signs.get(function, function)} {arguments[1]})"
    return language.call(function, arguments)


def _inner(part: tuple[str, int], least: int) -> str:
    text, tight = part
    return text if tight >= least else f"({text})"


def number_text(text: str) -> str:
    """Return the text of a number with a decimal point, so that no language reads an integer."""
    return text if re.search(r"[.eE]", text) else f"{text}.0"


def float_text(value: float) -> str:
    """Return the shortest text of a number that reads back to the same double."""
    return number_text(repr(float(value)))


def _integer(text: str) -> int | None:
    """Return a small whole exponent, if `text` is one."""
    match = re.fullmatch(r"\(?(-?)(\d{1,2})\.0*\)?", text)
    return int(match[1] + match[2]) if match else None


def safe_names(
    names: Iterable[str], language: Language, taken: Collection[str] = ()
) -> dict[str, str]:
    """Return for each name one that the language allows, different for different names.

    In languages that ignore case, no two names differ by case alone.
    """
    every = dict.fromkeys(names)
    used = {word.lower() for word in (*language.reserved, *taken)}
    chosen: dict[str, str] = {}
    for name in every:
        text = re.sub(r"[^A-Za-z0-9_]", "_", name).lstrip("_") or "x"
        text = text if text[0].isalpha() else f"x{text}"
        while text.lower() in used:
            text += "_"
        used.add(text.lower())
        chosen[name] = text
    return chosen
