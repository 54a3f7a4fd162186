"""Reactions as written, such as ``2 A + B -> C, k1``: sides and rates."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from odefit.common.errors import one_of, shown
from odefit.expressions.expressions import NAME_PATTERN, TIME, ExpressionError
from odefit.expressions.grammar import MAX_LENGTH, RESERVED
from odefit.problem.inputs.issues import Issues
from odefit.problem.notation.arrays import Arrays, number_text, split_arguments

KEYS = ("equation", "rate")
"""Keys of a reaction written as a table."""

FORM = 'write, for example, "A + B -> C, k1", or "A <-> B, kf, kr"'

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

    name: str  # its name, with the index of an array element
    place: str
    # stoichiometric numbers by plain species name
    reactants: Mapping[str, Fraction]
    products: Mapping[str, Fraction]
    reversible: bool  # True if reversible
    law: tuple[str, ...]  # the text after the comma: mass-action constants, or a named law
    rate: str | None  # the full rate, if given
    indices: Mapping[str, int]  # values of ``i`` and ``j`` in `law` and `rate`

    @property
    def species(self) -> tuple[str, ...]:
        """Plain names of its species."""
        return tuple(dict.fromkeys([*self.reactants, *self.products]))

    @property
    def changes(self) -> dict[str, Fraction]:
        """The net change of each species per event; zero for unchanged species."""
        return {s: self.products.get(s, ZERO) - self.reactants.get(s, ZERO) for s in self.species}


ZERO = Fraction(0)


def read_reactions(
    table: Mapping[str, object], arrays: Arrays, issues: Issues
) -> tuple[list[Reaction], list[str]]:
    """Return the reactions of a table, and the elements of arrays among their species.

    Reactions are texts or tables with :data:`KEYS`, by name or by the key of an array.
    """
    reactions: list[Reaction] = []
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
                    reactions.append(made)
        except ExpressionError as error:
            issues.error(place, str(error))
    return reactions, list(members)


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
        raise ExpressionError(f"{shown(text)} has a rate after the comma, and another one in rate")
    if rate is None and not law:
        raise ExpressionError(f"{shown(text)} has no rate; {FORM}")
    sides = [_side(side, text, indices, arrays, members) for side in (left, right)]
    if not any(sides):
        raise ExpressionError(f"{shown(text)} has no species")
    return Reaction(name, place, sides[0], sides[1], reversible, law, rate, indices)


def _parts(text: str) -> tuple[str, bool, str, tuple[str, ...]]:
    """Return the left side, whether the reaction is reversible, the right side, and the law."""
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
        raise ExpressionError(f"{shown(text)} has nothing after the comma; {FORM}")
    return sides[: arrow.start()], arrow[0] in REVERSIBLE, sides[arrow.end() :], tuple(law)


def _side(
    side: str, text: str, indices: Mapping[str, int], arrays: Arrays, members: dict[str, None]
) -> dict[str, Fraction]:
    counts: dict[str, Fraction] = {}
    if side.strip() in _NOTHING:
        return counts
    for term in _PLUS.split(side):
        match = _TERM.match(term)
        if match is None:
            raise ExpressionError(
                f"{shown(term.strip())} in {shown(text)} is not a species with a number before it, "
                "as in 2 A"
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
        counts[name] = counts.get(name, ZERO) + amount
    return counts


class Law(NamedTuple):
    """A rate law."""

    arguments: tuple[str, ...]  # its arguments
    # the rate, in the arguments, the substrate ``S`` and, in laws both ways, the product ``P``
    rate: str
    reversible: bool = False  # True for a reversible law


LAWS: Mapping[str, Law] = {
    "michaelis_menten": Law(("vmax", "km"), "vmax*S/(km + S)"),
    "hill": Law(("vmax", "k", "n"), "vmax*S^n/(k^n + S^n)"),
    "competitive_inhibition": Law(
        ("vmax", "km", "inhibitor", "ki"), "vmax*S/(km*(1 + inhibitor/ki) + S)"
    ),
    "noncompetitive_inhibition": Law(
        ("vmax", "km", "inhibitor", "ki"), "vmax*S/((km + S)*(1 + inhibitor/ki))"
    ),
    "uncompetitive_inhibition": Law(
        ("vmax", "km", "inhibitor", "ki"), "vmax*S/(km + S*(1 + inhibitor/ki))"
    ),
    "substrate_inhibition": Law(("vmax", "km", "ki"), "vmax*S/(km + S + S^2/ki)"),
    "constant": Law(("v",), "v"),
    "reversible_michaelis_menten": Law(
        ("vf", "ks", "vr", "kp"), "(vf*S/ks - vr*P/kp)/(1 + S/ks + P/kp)", reversible=True
    ),
}
"""The laws by name; a rate without a name is ``mass_action(k)``."""

_CALL = re.compile(r"\s*([A-Za-z_]\w*)\s*\((.*)\)\s*\Z", re.DOTALL)


class Rates(NamedTuple):
    """The texts of the forward rate and, unless None, the backward rate, in plain names."""

    forward: str
    backward: str | None = None


def rates_of(reaction: Reaction, functions: Mapping[str, object]) -> Rates:
    """Return the rates of a reaction; the user's functions precede laws of the same name."""
    if reaction.rate is not None:
        return Rates(f"({reaction.rate})")
    call = _CALL.match(reaction.law[0]) if len(reaction.law) == 1 else None
    if call and call[1] in LAWS and call[1] not in functions:
        return Rates(_by_name(reaction, call[1], list(split_arguments(call[2]))))
    constants = reaction.law
    if call and call[1] == "mass_action" and call[1] not in functions:
        constants = tuple(split_arguments(call[2]))
    expected = 2 if reaction.reversible else 1
    if len(constants) != expected:
        arrow, needs = ("<->", "two constants") if reaction.reversible else ("->", "one constant")
        raise ExpressionError(
            f"mass action with {arrow} has {needs}, got {len(constants)} "
            f"({', '.join(c.strip() for c in constants)}); {FORM}"
        )
    forward = _mass_action(constants[0], reaction.reactants)
    return Rates(
        forward, _mass_action(constants[1], reaction.products) if reaction.reversible else None
    )


def _mass_action(constant: str, side: Mapping[str, object]) -> str:
    for species in side:
        if re.search(rf"(?<!\w){species}(?!\w|\s*[\[(])", constant):
            raise ExpressionError(
                f"the constant {shown(constant.strip())} of mass action contains the reactant "
                f"'{species}', by which it is multiplied; give the constant alone, or the whole "
                'rate as { equation = "...", rate = "..." }'
            )
    factors = [f"({constant})"]
    for species, number in side.items():
        order = str(number)
        if "/" in order:
            raise ExpressionError(
                f"{order} {species} has no rate by mass action; give the whole rate as "
                '{ equation = "...", rate = "..." }'
            )
        factors.append(species if order == "1" else f"{species}^{order}")
    return "*".join(factors)


def _by_name(reaction: Reaction, name: str, arguments: list[str]) -> str:
    law = LAWS[name]
    if len(arguments) != len(law.arguments) or not all(g.strip() for g in arguments):
        raise ExpressionError(
            f"{name}({', '.join(law.arguments)}) takes {len(law.arguments)} values, got "
            f"{sum(bool(g.strip()) for g in arguments)}"
        )
    if law.reversible != reaction.reversible:
        needed = "<->" if law.reversible else "->"
        raise ExpressionError(f"{name} is a law of reactions with {needed}")
    values = {a: f"({g})" for a, g in zip(law.arguments, arguments, strict=True)}
    for letter, sign, verb in (("S", -1, "uses up"), ("P", 1, "makes")):
        if not re.search(rf"\b{letter}\b", law.rate):
            continue
        species = [s for s, change in reaction.changes.items() if change * sign > 0]
        if len(species) != 1:
            count = "none" if not species else ", ".join(species)
            raise ExpressionError(
                f"{name} is a law of reactions that {verb.replace('uses', 'use')} one species, "
                f"this one {verb}: {count}; give the whole rate as "
                '{ equation = "...", rate = "..." }'.replace("make:", "makes:")
            )
        values[letter] = species[0]
    return re.sub(r"[A-Za-z_]\w*", lambda m: values[m[0]], law.rate)
