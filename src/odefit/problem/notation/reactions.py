"""Reactions as they are written: ``2 A + B -> C, k1``, read into sides and the text of the rate."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from odefit.common.errors import one_of, shown
from odefit.expressions.expressions import NAME_PATTERN, TIME, ExpressionError
from odefit.expressions.grammar import MAX_LENGTH, RESERVED
from odefit.problem.inputs.issues import Issues
from odefit.problem.notation.arrays import Arrays, number_text, split_arguments

KEYS = ("equation", "rate")
"""Keys of a reaction that is written as a table."""

FORM = 'write such as "A + B -> C, k1", or "A <-> B, kf, kr"'

MAX_STOICHIOMETRY = 1000
"""The largest stoichiometric number."""

_ARROW = re.compile(r"<->|<=>|<-->|-->|->|=>|\u2192|\u21cc|\u21c4")
_BACKWARD = re.compile(r"<-(?!-?>)|<=(?!>)|\u2190")
_TERM = re.compile(
    r"\s*(?:(?P<number>\d+(?:\.\d+)?(?:\s*/\s*\d+)?)\s*\*?\s*)?"
    r"(?P<name>[A-Za-z_]\w*)\s*(?:\[(?P<index>[^\[\]]*)\])?\s*\Z"
)
_PLUS = re.compile(r"\+(?![^\[]*\])")
_NOTHING = frozenset(("", "0", "\u2205", "null", "nothing"))

REVERSIBLE = frozenset(("<->", "<=>", "<-->", "\u21cc", "\u21c4"))


@dataclass(frozen=True)
class Reaction:
    """A reaction."""

    name: str  # its name, with the index if it is one of an array
    place: str
    # stoichiometric numbers by the plain names of the species
    reactants: Mapping[str, Fraction]
    products: Mapping[str, Fraction]
    reversible: bool  # whether it goes both ways
    law: tuple[str, ...]  # what stands behind the comma: constants of mass action, or a named law
    rate: str | None  # the rate, where it is given as a whole
    indices: Mapping[str, int]  # values of ``i`` and ``j`` in `law` and `rate`

    @property
    def species(self) -> tuple[str, ...]:
        """Plain names of its species."""
        return tuple(dict.fromkeys([*self.reactants, *self.products]))

    @property
    def changes(self) -> dict[str, Fraction]:
        """By how much each species changes when it happens once; species that stay are zero."""
        return {s: self.products.get(s, ZERO) - self.reactants.get(s, ZERO) for s in self.species}


ZERO = Fraction(0)


def read_reactions(
    table: Mapping[str, object], arrays: Arrays, issues: Issues
) -> tuple[list[Reaction], list[str]]:
    """Return the reactions of a table, and the elements of arrays among their species.

    Reactions are texts or tables with :data:`KEYS`, by name or by the key of an array.
    """
    found: list[Reaction] = []
    members: dict[str, None] = {}
    for key, value in table.items():
        place = f"[reactions] {key}"
        try:
            for element in arrays.elements(key):
                if not NAME_PATTERN.match(element.name):
                    raise ExpressionError(
                        "the name of a reaction is letters without accents, digits and _, not "
                        "starting with a digit"
                    )
                made = _reaction(
                    element.name, place, value, element.indices, arrays, members, issues
                )
                if made is not None:
                    found.append(made)
        except ExpressionError as error:
            issues.error(place, str(error))
    return found, list(members)


def _reaction(
    name: str,
    place: str,
    value: object,
    indices: Mapping[str, int],
    arrays: Arrays,
    members: dict[str, None],
    issues: Issues,
) -> Reaction | None:
    rate = None
    text: object = value
    if isinstance(value, Mapping):
        for key in value:
            if key not in KEYS:
                issues.error(place, f"unknown key {shown(key)}{one_of(str(key), KEYS)}")
        text, rate = value.get("equation"), value.get("rate")
        if rate is None:
            raise ExpressionError('the rate is missing; write rate = "..."')
        rate = number_text(rate) or rate
        if not isinstance(rate, str):
            raise ExpressionError(f"rate: expected an expression, got {shown(rate)}")
    if not isinstance(text, str):
        raise ExpressionError(f"expected a text in quotes, got {shown(text)}; {FORM}")
    if len(text) > MAX_LENGTH:
        raise ExpressionError(f"longer than {MAX_LENGTH} characters; split it into several")
    left, reversible, right, law = _parts(text)
    if rate is not None and law:
        raise ExpressionError(f"{shown(text)} has a rate behind the comma, and rate another one")
    if rate is None and not law:
        raise ExpressionError(f"{shown(text)} has no rate; {FORM}")
    sides = [_side(side, text, indices, arrays, members) for side in (left, right)]
    if not any(sides):
        raise ExpressionError(f"{shown(text)} has no species")
    return Reaction(name, place, sides[0], sides[1], reversible, law, rate, indices)


def _parts(text: str) -> tuple[str, bool, str, tuple[str, ...]]:
    """Return the left side, whether there is a way back, the right side, and the law."""
    sides, *law = (part.strip() for part in split_arguments(text))
    arrows = list(_ARROW.finditer(sides))
    if not arrows:
        backward = _BACKWARD.search(sides) or "=" in sides
        hint = "the arrow is -> or <->" if backward else "there is no arrow"
        raise ExpressionError(f"{hint} in {shown(text)}; {FORM}")
    if len(arrows) > 1:
        raise ExpressionError(
            f"{shown(text)} has more than one arrow; write a reaction for each step"
        )
    arrow = arrows[0]
    if any(not part for part in law):
        raise ExpressionError(f"{shown(text)} has nothing behind a comma; {FORM}")
    return sides[: arrow.start()], arrow[0] in REVERSIBLE, sides[arrow.end() :], tuple(law)


def _side(
    side: str,
    text: str,
    indices: Mapping[str, int],
    arrays: Arrays,
    members: dict[str, None],
) -> dict[str, Fraction]:
    found: dict[str, Fraction] = {}
    if side.strip() in _NOTHING:
        return found
    for term in _PLUS.split(side):
        match = _TERM.match(term)
        if match is None:
            raise ExpressionError(
                f"{shown(term.strip())} in {shown(text)} is no species with a number before it, as "
                "in 2 A"
            )
        name = match["name"]
        if match["index"] is not None:
            key = arrays.member(name, match["index"], indices)
            members[key] = None
            name = arrays.elements(key)[0].name
        if name in RESERVED or name == TIME:
            raise ExpressionError(f"'{name}' in {shown(text)} cannot be a species; choose another")
        number = match["number"] or "1"
        try:
            amount = Fraction(number.replace(" ", ""))
        except (ValueError, ZeroDivisionError):
            amount = ZERO
        if not 0 < amount <= MAX_STOICHIOMETRY:
            raise ExpressionError(
                f"the stoichiometric number {shown(number)} in {shown(text)} is not between 0 and "
                f"{MAX_STOICHIOMETRY}"
            )
        found[name] = found.get(name, ZERO) + amount
    return found
