"""Reactions as differential equations, and the sums that they conserve."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from operator import neg
from typing import Any, NamedTuple

from odefit.common.errors import one_of, shown
from odefit.common.exact_linear_algebra import conserved_weights
from odefit.expressions.expressions import ExpressionError, parse
from odefit.expressions.formulas import Part, name, number
from odefit.problem.inputs.issues import Issues
from odefit.problem.notation.arrays import Arrays, number_text
from odefit.problem.notation.reactions import Reaction, rates_of

COMPARTMENT_KEYS = ("size", "species")

WriteOut = Callable[[str, Mapping[str, int]], str]
"""Expands the user's notation in an expression; raises ExpressionError."""


class Compartment(NamedTuple):
    """A compartment: its size, an expression, and its species."""

    size: str
    species: tuple[str, ...]


@dataclass(frozen=True)
class Network:
    """The equations that follow from reactions."""

    terms: Mapping[str, Part]  # right-hand sides of the species that change
    conserved: tuple[Part, ...]  # conserved weighted sums of species


def read_compartments(
    table: Mapping[str, object], arrays: Arrays, issues: Issues
) -> dict[str, Compartment]:
    """Return the compartments of a table by name; mistakes go to `issues`."""
    compartments: dict[str, Compartment] = {}
    owner: dict[str, str] = {}
    for key, value in table.items():
        place = f"[compartments] {key}"
        if not isinstance(value, Mapping):
            issues.expected(place, '{ size = 1.0, species = ["A", "B"] } or the like', value)
            continue
        for other in value:
            if other not in COMPARTMENT_KEYS:
                mistake = f"unknown key {shown(str(other))}"
                issues.error(place, f"{mistake}{one_of(str(other), COMPARTMENT_KEYS)}")
        size, species = value.get("size"), value.get("species")
        size = number_text(size) or size
        if not isinstance(size, str):
            issues.expected(place, "size = 1.0 or an expression", size)
            continue
        if not isinstance(species, (list, tuple)):
            issues.expected(place, 'species = ["A", "B"] or the like', species)
            continue
        names: list[str] = []
        for one in species:
            try:
                names += [element.name for element in arrays.elements(one)]
            except ExpressionError as error:
                issues.error(place, str(error))
        for one in names:
            if one in owner:
                issues.error(place, f"'{one}' is in {owner[one]} already")
            owner.setdefault(one, str(key))
        compartments[str(key)] = Compartment(size, tuple(names))
    return compartments


def network_of(
    reactions: Sequence[Reaction],
    compartments: Mapping[str, Compartment],
    held: frozenset[str],
    start: Mapping[str, Part],
    write_out: WriteOut,
    functions: Mapping[str, Any],
    issues: Issues,
) -> Network:
    """Return the right-hand sides and conserved sums that follow from reactions.

    Reactions do not change the `held` species: constants, inputs and so on. They add to the
    right-hand sides `start`; sums of these states are not conserved. `functions` has functions and
    definitions of the user, which `write_out` expands.
    """
    home = {s: c for c in compartments.values() for s in c.species}
    terms: dict[str, Part] = {}
    columns: list[dict[str, Fraction]] = []
    for reaction in reactions:
        changing = {s: c for s, c in reaction.changes.items() if s not in held}
        columns.append(changing)
        for species in changing:
            terms.setdefault(species, start.get(species, number(0.0)))
        try:
            rates = rates_of(reaction, functions)
            sides = [(rates.forward, 1, reaction.reactants)]
            if rates.backward is not None:
                sides.append((rates.backward, -1, reaction.products))
            for rate, sign, side in sides:
                part = Part(parse(write_out(rate, reaction.indices)).program)
                volume = _volume(reaction, side, home)
                for species, change in changing.items():
                    if change:
                        scaled = part * _ratio(volume, home.get(species), write_out)
                        terms[species] = _added(terms[species], sign * change, scaled)
        except ExpressionError as error:
            issues.error(reaction.place, str(error))
    known = {s for r in reactions for s in r.species}
    for compartment, (_, members) in compartments.items():
        for species in members:
            if species not in known:
                issues.error(
                    f"[compartments] {compartment}",
                    f"'{species}' is in no reaction{one_of(species, sorted(known))}",
                )
    if issues.errors:
        return Network(terms, ())
    columns += [{s: Fraction(1)} for s in terms if s in start]
    return Network(terms, tuple(_sums(list(terms), columns, home, write_out)))


def _volume(
    reaction: Reaction, side: Mapping[str, Fraction], home: Mapping[str, Compartment]
) -> Compartment | None:
    """Return the compartment whose size scales the rate of one direction."""
    for species in (side, reaction.changes):
        sizes = {home[s].size: home[s] for s in species if s in home}
        if len(sizes) > 1:
            raise ExpressionError(
                f"{', '.join(species)} are in different compartments, so it is not clear to whose "
                "size the rate refers; give the equations in [ode] instead"
            )
        if sizes:
            return next(iter(sizes.values()))
    return None


def _ratio(volume: Compartment | None, other: Compartment | None, write_out: WriteOut) -> Part:
    if volume is None or other is None or volume.size == other.size:
        return number(1.0)
    above, below = (Part(parse(write_out(c.size, {})).program) for c in (volume, other))
    return above / below


def _added(total: Part, change: Fraction, rate: Part) -> Part:
    size = abs(change)
    scaled = rate if size == 1 else _at_first_factor(rate, lambda first: _fraction(size) * first)
    if total.number == 0.0:
        return scaled if change > 0 else _at_first_factor(scaled, neg)
    return total + scaled if change > 0 else total - scaled


def _fraction(value: Fraction) -> Part:
    if value.denominator == 1:
        return number_of(value.numerator)
    as_float = float(value)
    if Fraction(repr(as_float)) == value:
        return number(as_float)
    return number_of(value.numerator) / number_of(value.denominator)


def number_of(value: int) -> Part:
    """Return an integer as a part, written without a decimal point."""
    return Part(parse(str(value)).program)


def _at_first_factor(part: Part, change: Callable[[Part], Part]) -> Part:
    """Return a product with its first factor changed; signs and numbers look handwritten."""
    last = part.program[-1]
    if last.kind == "binary" and last.text in "*/":
        left, right = part.operands()
        return Part((*_at_first_factor(left, change).program, *right.program, last))
    return change(part)


def _sums(
    species: Sequence[str],
    columns: Sequence[Mapping[str, Fraction]],
    home: Mapping[str, Compartment],
    write_out: WriteOut,
) -> list[Part]:
    """Return the conserved sums, with those of positive weights first."""
    sums = []
    for weights in conserved_weights(species, columns):
        total = number(0.0)
        for s in species:
            if s in weights:
                part = name(s)
                if s in home:
                    part = Part(parse(write_out(home[s].size, {})).program) * part
                total = _added(total, weights[s], part)
        sums.append(total)
    return sums
