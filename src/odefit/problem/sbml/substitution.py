"""Names in expressions replaced by expressions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from odefit.expressions.expressions import MAX_LENGTH, ExpressionError
from odefit.problem.sbml.terms import ATOM, EITHER, POWER, PRODUCT, SIGN, SUM, Term

_NAME = re.compile(r"(?<![A-Za-z0-9_.])[A-Za-z_][A-Za-z0-9_]*")
_TOKEN = re.compile(
    r"(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[A-Za-z_][A-Za-z0-9_]*|\*\*|\S"
)
_LOOSE_BEFORE = frozenset("(,+<>=&|")
_LOOSE_AFTER = frozenset("),+-<>=&|!")
"""What may stand before and after a sum that needs no parentheses."""


def substituted(text: str, replacements: Mapping[str, str]) -> str:
    """Return an expression with names replaced by expressions, all of them at once.

    Raises
    ------
    ExpressionError
        The result is longer than an expression may be.

    Examples
    --------
    >>> substituted("k*x - x_0", {"x": "a + b", "x_0": "2"})
    'k*(a + b) - 2'
    """
    terms = {n: as_term(replacements[n]) for n in names_in(text) if n in replacements}
    return replaced_in(Term(text), terms).text


def as_term(text: str) -> Term:
    """Return an expression as a term."""
    if text.isidentifier() or text.isdecimal():
        return Term(text)
    tokens = _TOKEN.findall(text)
    level, depth, operand = ATOM, 0, False
    for token in tokens:
        if token in {"(", ")"}:
            depth += 1 if token == "(" else -1
        elif depth == 0:
            level = min(level, _level(token, operand))
        operand = token == ")" or token[0].isalnum() or token[0] in "_."
    return Term(text, level)


def _level(token: str, after_operand: bool) -> int:
    """Return how tightly a token binds, as an operator after an operand or as a sign."""
    if token in {"+", "-"}:
        return SUM if after_operand else SIGN
    if token in {"*", "/"}:
        return PRODUCT
    if token in {"^", "**"}:
        return POWER
    return EITHER if token in {"<", ">", "=", "!", "&", "|", "and", "or", "not"} else ATOM


def names_in(text: str) -> list[str]:
    """Return the names in an expression, functions among them, in order."""
    return _NAME.findall(text)


def replaced_in(term: Term, replacements: Mapping[str, Term]) -> Term:
    """Return a term with names replaced by terms; raise ExpressionError if it becomes too long."""
    whole = replacements.get(term.text)
    if whole is not None:
        return whole

    def inserted(match: re.Match[str]) -> str:
        value = replacements.get(match[0])
        if value is None:
            return match[0]
        if value.level == ATOM or (value.level >= SUM and _stands_loose(match, value)):
            return value.text
        return f"({value.text})"

    result = _NAME.sub(inserted, term.text)
    if len(result) > MAX_LENGTH:
        raise ExpressionError(f"written out, it is longer than {MAX_LENGTH} characters")
    return Term(result, term.level, term.logical)


def _stands_loose(match: re.Match[str], value: Term) -> bool:
    """Whether a sum or product needs no parentheses where a name stands."""
    text, before, after = match.string, match.start() - 1, match.end()
    while before >= 0 and text[before] == " ":
        before -= 1
    while after < len(text) and text[after] == " ":
        after += 1
    if after < len(text) and text[after] not in _LOOSE_AFTER:
        return False
    if before < 0 or text[before] in _LOOSE_BEFORE:
        return True
    return text[before] == "-" and value.level in {PRODUCT, POWER} and value.text[0] != "-"


def expanded(definitions: Mapping[str, Term]) -> dict[str, Term]:
    """Return definitions with all names that are defined among them written out.

    Raises ExpressionError if they define each other in a circle, or one becomes too long.
    """
    done: dict[str, Term] = {}
    for first in definitions:
        _expand(first, definitions, done)
    return done


def _expand(first: str, definitions: Mapping[str, Term], done: dict[str, Term]) -> None:
    path: dict[str, Iterable[str]] = {}
    pending = [first]
    while pending:
        name = pending[-1]
        if name in done:
            pending.pop()
            continue
        needed = [n for n in dict.fromkeys(names_in(definitions[name].text)) if n in definitions]
        missing = [n for n in needed if n not in done]
        if not missing:
            done[name] = replaced_in(definitions[name], done)
            path.pop(name, None)
            pending.pop()
            continue
        path[name] = missing
        for other in missing:
            if other in path:
                circle = [n for n in path if n in pending]
                around = " -> ".join([*circle[circle.index(other) :], other])
                raise ExpressionError(f"defined by itself: {around}")
        pending.append(missing[0])
