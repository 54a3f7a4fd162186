"""Names in expressions replaced by expressions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from odefit.problem.expressions import MAX_LENGTH, ExpressionError
from odefit.problem.sbml.terms import ATOM, EITHER, Term

_NAME = re.compile(r"(?<![A-Za-z0-9_.])[A-Za-z_][A-Za-z0-9_]*")
_SIMPLE = re.compile(r"(?:[A-Za-z_][A-Za-z0-9_]*|[0-9]+\.?[0-9]*(?:[eE][+-]?[0-9]+)?)\Z")


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
    whole = replacements.get(text)
    if whole is not None:
        return whole

    def replaced(match: re.Match[str]) -> str:
        value = replacements.get(match[0])
        if value is None:
            return match[0]
        return value if _SIMPLE.match(value) else f"({value})"

    result = _NAME.sub(replaced, text)
    if len(result) > MAX_LENGTH:
        raise ExpressionError(f"written out, it is longer than {MAX_LENGTH} characters")
    return result


def as_term(text: str) -> Term:
    """Return an expression as a term, of which nothing is known unless it is a name or number."""
    return Term(text, ATOM if _SIMPLE.match(text) else EITHER)


def names_in(text: str) -> list[str]:
    """Return the names in an expression, functions among them, in order."""
    return _NAME.findall(text)


def replaced_in(term: Term, replacements: Mapping[str, Term]) -> Term:
    """Return a term with names replaced by terms.

    Raises
    ------
    ExpressionError
        The result is longer than an expression may be.
    """
    whole = replacements.get(term.text)
    if whole is not None:
        return whole
    texts = {
        name: replacements[name].text
        if replacements[name].level == ATOM
        else f"({replacements[name].text})"
        for name in names_in(term.text)
        if name in replacements
    }
    if not texts:
        return term
    result = _NAME.sub(lambda match: texts.get(match[0], match[0]), term.text)
    if len(result) > MAX_LENGTH:
        raise ExpressionError(f"written out, it is longer than {MAX_LENGTH} characters")
    return Term(result, term.level, term.logical)


def expanded(definitions: Mapping[str, Term]) -> dict[str, Term]:
    """Return definitions with all names that are defined among them written out.

    Raises
    ------
    ExpressionError
        They define each other in a circle, or one becomes too long.
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
