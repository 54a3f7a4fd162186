"""A factor of a product left out, where a division by it follows."""

from __future__ import annotations

from odefit.problem.sbml.terms import ATOM, ONE, PRODUCT, SUM, Term


def without_factor(term: Term, name: str) -> Term | None:
    """Return a product without one factor `name`, None if it has none.

    Examples
    --------
    >>> without_factor(Term("V*k*(a + b)", PRODUCT), "V").text
    'k*(a + b)'
    """
    if term.text == name:
        return ONE
    if term.level != PRODUCT or name not in term.text:
        return None
    pieces = _factors(term.text)
    if ("*", name) not in pieces:
        return None
    pieces.remove(("*", name))
    if pieces[0][0] == "/":
        pieces.insert(0, ("*", "1"))
    if len(pieces) == 1:
        return _bare(pieces[0][1])
    text = "".join(f"{operator}{factor}" for operator, factor in pieces)[1:]
    return Term(text, PRODUCT)


def _factors(text: str) -> list[tuple[str, str]]:
    """Return the factors of a product, each with the operator before it."""
    pieces: list[tuple[str, str]] = []
    operator, start, depth = "*", 0, 0
    for i, character in enumerate(text):
        if character == "(":
            depth += 1
        elif character == ")":
            depth -= 1
        elif depth == 0 and character in "*/":
            pieces.append((operator, text[start:i]))
            operator, start = character, i + 1
    return [*pieces, (operator, text[start:])]


def _bare(text: str) -> Term:
    """Return one factor without the parentheses around it."""
    if not (text.startswith("(") and text.endswith(")")):
        level = ATOM if text.isidentifier() else PRODUCT
        return Term(text, level)
    depth = 0
    for i, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if depth == 0:
            return Term(text[1:-1], SUM) if i == len(text) - 1 else Term(text, PRODUCT)
    return Term(text, PRODUCT)
