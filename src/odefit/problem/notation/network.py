"""Reactions as differential equations, and the sums that they conserve."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import gcd, lcm
from operator import neg
from typing import Any, NamedTuple

from odefit.common.errors import one_of, shown
from odefit.common.exact_linear_algebra import null_space
from odefit.expressions.expressions import ExpressionError, parse
from odefit.expressions.formulas import Part, name, number
from odefit.problem.inputs.issues import Issues
from odefit.problem.notation.arrays import Arrays, number_text
from odefit.problem.notation.reactions import ZERO, Reaction, rates_of

MAX_RAYS = 200
"""So many sums with positive weights are kept while all of them are looked for."""

MAX_SPECIES = 60
"""Where sums have more species than these in common, their weights may be negative."""

COMPARTMENT_KEYS = ("size", "species")

WriteOut = Callable[[str, Mapping[str, int]], str]
"""Writes an expression without the user's own notation; raises ExpressionError."""


class Compartment(NamedTuple):
    """A compartment: its size, an expression, and its species."""

    size: str
    species: tuple[str, ...]


@dataclass(frozen=True)
class Network:
    """What reactions say."""

    terms: Mapping[str, Part]  # the right-hand sides of the species that they change
    conserved: tuple[Part, ...]  # weighted sums of species that they leave as they are


def read_compartments(
    table: Mapping[str, object], arrays: Arrays, issues: Issues
) -> dict[str, Compartment]:
    """Return the compartments of a table by name; mistakes go to `issues`."""
    found: dict[str, Compartment] = {}
    owner: dict[str, str] = {}
    for key, value in table.items():
        place = f"[compartments] {key}"
        if not isinstance(value, Mapping):
            issues.error(
                place,
                f'expected {{ size = 1.0, species = ["A", "B"] }} or the like, got {shown(value)}',
            )
            continue
        for other in value:
            if other not in COMPARTMENT_KEYS:
                what = f"unknown key {shown(str(other))}"
                issues.error(place, f"{what}{one_of(str(other), COMPARTMENT_KEYS)}")
        size, species = value.get("size"), value.get("species")
        size = number_text(size) or size
        if not isinstance(size, str):
            issues.error(place, f"expected size = 1.0 or an expression, got {shown(size)}")
            continue
        if not isinstance(species, (list, tuple)):
            issues.error(place, f'expected species = ["A", "B"] or the like, got {shown(species)}')
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
        found[str(key)] = Compartment(size, tuple(names))
    return found


def network_of(
    reactions: Sequence[Reaction],
    compartments: Mapping[str, Compartment],
    held: frozenset[str],
    start: Mapping[str, Part],
    write_out: WriteOut,
    own: Mapping[str, Any],
    issues: Issues,
) -> Network:
    """Return what reactions say of the right-hand sides.

    Reactions leave the `held` species as they are: constants, inputs and so on. They add to the
    right-hand sides `start`; sums of these states are not conserved. `own` has functions and
    definitions of the user, which `write_out` writes out.
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
            rates = rates_of(reaction, own)
            for rate, sign, side in (
                (rates.forward, 1, reaction.reactants),
                (rates.backward, -1, reaction.products),
            ):
                if rate is None:
                    continue
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
    """Return the compartment by whose size the rate of one direction counts."""
    for species in (side, reaction.changes):
        found = {home[s].size: home[s] for s in species if s in home}
        if len(found) > 1:
            raise ExpressionError(
                f"{', '.join(species)} are in different compartments, so that it is open by whose "
                "size the rate counts; give the equations in [ode] instead"
            )
        if found:
            return next(iter(found.values()))
    return None


def _ratio(volume: Compartment | None, own: Compartment | None, write_out: WriteOut) -> Part:
    if volume is None or own is None or volume.size == own.size:
        return number(1.0)
    above, below = (Part(parse(write_out(c.size, {})).program) for c in (volume, own))
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
    """Return a whole number as a part, written without a decimal point."""
    return Part(parse(str(value)).program)


def _at_first_factor(part: Part, change: Callable[[Part], Part]) -> Part:
    """Return a product with its first factor changed, as signs and numbers are written by hand."""
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
    """Return the conserved sums: those with positive weights first, as far as there are any."""
    found = []
    for weights in conserved_weights(species, columns):
        total = number(0.0)
        for s in species:
            if s in weights:
                part = name(s)
                if s in home:
                    part = Part(parse(write_out(home[s].size, {})).program) * part
                total = _added(total, weights[s], part)
        found.append(total)
    return found


_Weights = dict[str, Fraction]


def conserved_weights(
    species: Sequence[str], columns: Sequence[Mapping[str, Fraction]]
) -> list[dict[str, Fraction]]:
    """Return a basis of the weights that all columns map to zero, positive ones where possible."""
    found: list[_Weights] = []
    for basis in _separate(_left_null_space(species, columns)):
        used = {s for weights in basis for s in weights}
        names = [s for s in species if s in used]
        if len(names) > MAX_SPECIES:
            found += [dict(zip(w, _whole([*w.values()]), strict=True)) for w in basis]
            continue
        rows = {tuple(column.get(s, ZERO) for s in names): None for column in columns}
        dense = [[weights.get(s, ZERO) for s in names] for weights in basis]
        for vector in _positive_first([list(row) for row in rows if any(row)], dense, len(names)):
            found.append({s: w for s, w in zip(names, vector, strict=True) if w})
    return found


def _left_null_space(
    species: Sequence[str], columns: Sequence[Mapping[str, Fraction]]
) -> list[_Weights]:
    """Return a basis of the weights that all columns map to zero, by sparse elimination."""
    rows: dict[str, _Weights] = {}  # by pivot: equations for weights, solved for the pivot
    holders: dict[str, set[str]] = {}  # by species: pivots of the equations in which it is
    for column in columns:
        row = {s: w for s, w in column.items() if w}
        for pivot in [s for s in row if s in rows]:
            _subtract(row, row[pivot], rows[pivot])
        if not row:
            continue
        pivot = min(row, key=lambda s: len(holders.get(s, ())))
        factor = row[pivot]
        row = {s: w / factor for s, w in row.items()}
        for other in holders.pop(pivot, set()):
            own = rows[other]
            _subtract(own, own[pivot], row)
            for s in row:
                if s in own:
                    holders.setdefault(s, set()).add(other)
                else:
                    holders.get(s, set()).discard(other)
        rows[pivot] = row
        for s in row:
            if s != pivot:
                holders.setdefault(s, set()).add(pivot)
    free = [s for s in species if s not in rows]
    return [
        {s: Fraction(1), **{p: -rows[p][s] for p in holders.get(s, ()) if s in rows[p]}}
        for s in free
    ]


def _subtract(row: _Weights, factor: Fraction, other: Mapping[str, Fraction]) -> None:
    for s, w in other.items():
        value = row.get(s, ZERO) - factor * w
        if value:
            row[s] = value
        else:
            row.pop(s, None)


def _separate(basis: Sequence[_Weights]) -> list[list[_Weights]]:
    """Return vectors in groups that share no species."""
    groups: list[tuple[set[str], list[_Weights]]] = []
    for weights in basis:
        names, members = set(weights), [weights]
        apart = []
        for own, vectors in groups:
            if own & names:
                names |= own
                members = [*vectors, *members]
            else:
                apart.append((own, vectors))
        groups = [*apart, (names, members)]
    return [vectors for _, vectors in groups]


def _positive_first(
    rows: Sequence[Sequence[Fraction]], basis: Sequence[list[Fraction]], width: int
) -> list[list[Fraction]]:
    chosen: list[list[Fraction]] = []
    candidates = sorted(_rays(rows, width), key=lambda v: (sum(map(bool, v)), sum(v)))
    for vector in [*candidates, *basis]:
        if len(chosen) == len(basis):
            break
        # Independent of those chosen, if fewer vectors are orthogonal to all.
        if len(null_space([*chosen, vector], width)) < width - len(chosen):
            chosen.append(_whole(vector))
    return chosen


def _rays(rows: Sequence[Sequence[Fraction]], width: int) -> list[list[Fraction]]:
    """Return the vectors without negative entries that span all such, by Farkas' algorithm.

    Source: S. Schuster and T. Höfer, J. Chem. Soc. Faraday Trans. 87 (1991) 2561, on conserved
    moieties. The list is empty if there are too many.
    """
    found = [
        ([row[k] for row in rows], [Fraction(k == j) for j in range(width)]) for k in range(width)
    ]
    for k in range(len(rows)):
        positive = [v for v in found if v[0][k] > 0]
        negative = [v for v in found if v[0][k] < 0]
        zero = [v for v in found if v[0][k] == 0]
        if len(positive) * len(negative) + len(zero) > MAX_RAYS:
            return []
        made = [
            (
                [a * -q[0][k] + b * p[0][k] for a, b in zip(p[0], q[0], strict=True)],
                _whole([a * -q[0][k] + b * p[0][k] for a, b in zip(p[1], q[1], strict=True)]),
            )
            for p in positive
            for q in negative
        ]
        found = _minimal([*zero, *(_rescaled(v, rows) for v in made)])
    return [v[1] for v in found]


_Ray = tuple[list[Fraction], list[Fraction]]


def _rescaled(ray: _Ray, rows: Sequence[Sequence[Fraction]]) -> _Ray:
    """Return a ray with the products that belong to its weights, after these were scaled."""
    weights = ray[1]
    return [sum((a * w for a, w in zip(row, weights, strict=True)), ZERO) for row in rows], weights


def _minimal(rays: Sequence[_Ray]) -> list[_Ray]:
    """Return the rays whose species no other ray has a part of."""
    supports = [frozenset(i for i, w in enumerate(ray[1]) if w) for ray in rays]
    kept = []
    for k, ray in enumerate(rays):
        smaller = (supports[m] < supports[k] for m in range(len(rays)))
        same = (supports[m] == supports[k] for m in range(k))
        if not any(smaller) and not any(same):
            kept.append(ray)
    return kept


def _whole(vector: Sequence[Fraction]) -> list[Fraction]:
    """Return a vector as the smallest whole numbers, the first of them positive."""
    scale = lcm(*(w.denominator for w in vector))
    numbers = [int(w * scale) for w in vector]
    divisor = gcd(*numbers) or 1
    if next((n for n in numbers if n), 0) < 0:
        divisor = -divisor
    return [Fraction(n // divisor) for n in numbers]
