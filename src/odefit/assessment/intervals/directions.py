"""Directions that the data do not determine, in words.

A null vector of the Jacobian applies only to infinitesimal changes. If it looks like a product,
ratio, sum or difference of the unknowns, they are moved along that curve by a finite amount. The
words are used only if the residuals then stay the same.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np

from odefit.assessment.parts import Direction
from odefit.common.arrays import Array, BoolArray
from odefit.common.effects import column_norms, null_space
from odefit.common.errors import listed
from odefit.problem.problem import Problem
from odefit.problem.variants.sizes import sizes_at
from odefit.simulation import Evaluation, ForwardMap

CHANGE_FACTOR = 1.3
"""Factor by which unknowns are changed to test the words."""

MAX_POWER = 3
"""Largest power or weight of an unknown in the words."""

EQUAL_DIGITS = 6  # digits of relative changes: those that agree in them count as equal


def describe_directions(
    forward: ForwardMap, vector: Array, evaluation: Evaluation, basis: Array
) -> tuple[Direction, ...]:
    """Describe each undetermined direction, a row of `basis` in natural units, in words."""
    sizes = sizes_at(forward.problem, vector, part=0.0)
    rows = relative_directions(forward.problem, vector, basis)
    return tuple(_describe(forward, vector, evaluation, row, sizes) for row in rows)


def relative_directions(problem: Problem, vector: Array, basis: Array) -> Array:
    """Return a basis of the same directions that involves few unknowns each, shape (d, n).

    It is relative to the sizes of the unknowns; `basis` is in natural units.
    """
    return _sparse_basis(basis / sizes_at(problem, vector, part=0.0))


def null_directions(problem: Problem, vector: Array, information: Array, among: BoolArray) -> Array:
    """Return the relative directions among some unknowns that the data do not determine, (d, n).

    `information` is that of :class:`odefit.simulation.Evaluation`, and `among`, shape (n,), marks
    unknowns with an effect.
    """
    norms = column_norms(information)[among]
    null = null_space(information[:, among] / norms)
    basis = np.zeros((len(null), len(vector)))
    basis[:, among] = null / norms
    return relative_directions(problem, vector, basis) if len(basis) else basis


def _sparse_basis(basis: Array) -> Array:
    """Return a basis of the same space in reduced echelon form, whose rows involve few unknowns."""
    rows = basis / np.linalg.norm(basis, axis=1, keepdims=True)
    pivots: list[int] = []
    for i in range(len(rows)):
        candidates = np.abs(rows[i:])
        candidates[:, pivots] = 0.0
        r, c = np.unravel_index(int(np.argmax(candidates)), candidates.shape)
        rows[[i, i + r]] = rows[[i + r, i]]
        rows[i] /= rows[i, c]
        for other in range(len(rows)):
            if other != i:
                rows[other] -= rows[other, c] * rows[i]
        pivots.append(int(c))
    rows[np.abs(rows) < 1e-4] = 0.0
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


def _describe(
    forward: ForwardMap, vector: Array, evaluation: Evaluation, relative: Array, sizes: Array
) -> Direction:
    keys = forward.problem.keys
    # Rounding does not decide between equal shares, which stay in the order of the problem.
    order = np.argsort(-np.round(np.abs(relative), EQUAL_DIGITS), kind="stable")
    involved = [int(k) for k in order if relative[k] != 0]
    names = tuple(keys[k] for k in involved)
    weights = tuple(float(relative[k]) for k in involved)
    words = _product(forward, vector, evaluation, relative, involved)
    words = words or _sum(forward, vector, evaluation, relative * sizes, involved, sizes)
    if words is None:
        changes = ", ".join(
            f"{keys[k]} by {relative[k] / relative[order[0]]:+.3g} x" for k in involved
        )
        words = (
            f"{listed(names)} cannot be told apart: a joint relative change of {changes} "
            "has no effect on the data."
        )
    return Direction(names, weights, words)


def _product(
    forward: ForwardMap,
    vector: Array,
    evaluation: Evaluation,
    relative: Array,
    involved: list[int],
) -> str | None:
    """Return words for a direction that conserves a product of powers, or None."""
    keys = forward.problem.keys
    ratios = _integers([relative[k] for k in involved])
    if ratios is None or any(vector[k] == 0 for k in involved):
        return None
    exponents = dict(zip(involved, ratios, strict=True))

    def move(factor: float) -> Array:
        moved = vector.copy()
        for k, power in exponents.items():
            moved[k] *= factor**power
        return moved

    if not _unseen(forward, evaluation, move, 1.0 / max(abs(r) for r in ratios)):
        return None
    if len(involved) == 1:
        return f"The data do not determine {keys[involved[0]]} at all."
    if len(involved) == 2:
        a, b = involved
        p, q = exponents[a], exponents[b]
        # Along the direction a grows as s^p and b as s^q: a^q / b^p stays.
        product = _monomial(keys[a], q, keys[b], -p)
        return f"The data determine {keys[a]} and {keys[b]} only as {product}."
    powers = ", ".join(f"{keys[k]} by s^{exponents[k]}" for k in involved)
    return (
        f"The data determine {listed([keys[k] for k in involved])} only up to a common factor s: "
        f"a change of {powers} has no effect on them."
    )


def _sum(
    forward: ForwardMap,
    vector: Array,
    evaluation: Evaluation,
    absolute: Array,
    involved: list[int],
    sizes: Array,
) -> str | None:
    """Return words for a direction that conserves a sum with small integer weights."""
    keys = forward.problem.keys
    ratios = _integers([absolute[k] for k in involved])
    if ratios is None:
        return None
    size = max(sizes[k] for k in involved)
    step = 0.3 * size / max(abs(r) for r in ratios)

    def move(factor: float) -> Array:
        moved = vector.copy()
        for k, r in zip(involved, ratios, strict=True):
            moved[k] += r * step * np.sign(np.log(factor))
        return moved

    if not _unseen(forward, evaluation, move, 1.0):
        return None
    if len(involved) == 2:
        a, b = involved
        p, q = ratios
        sign = "+" if -p * q > 0 else "-"
        left = keys[a] if abs(q) == 1 else f"{abs(q)}*{keys[a]}"
        right = keys[b] if abs(p) == 1 else f"{abs(p)}*{keys[b]}"
        kind = "sum" if sign == "+" else "difference"
        both = f"{keys[a]} and {keys[b]}"
        return f"The data determine {both} only as the {kind} {left} {sign} {right}."
    changes = ", ".join(f"{keys[k]} by {r:+d}*s" for k, r in zip(involved, ratios, strict=True))
    return (
        f"The data determine {listed([keys[k] for k in involved])} only up to a common shift s: "
        f"a change of {changes} has no effect on them."
    )


def _unseen(
    forward: ForwardMap, evaluation: Evaluation, move: Callable[[float], Array], power: float
) -> bool:
    """Tell whether finite moves both ways leave the residuals unchanged."""
    for factor in (CHANGE_FACTOR**power, CHANGE_FACTOR**-power):
        evaluated = forward.evaluate(move(factor), evaluation.choice)
        if not isinstance(evaluated, Evaluation):
            return False
        if evaluated.residuals.shape != evaluation.residuals.shape:
            return False  # on nodes, which a finite move does not change
        change, size = column_norms(
            np.column_stack([evaluated.residuals - evaluation.residuals, evaluation.residuals])
        )
        # For comparison: the effect of the same move of a single unknown.
        typical = max(
            size,
            0.3 * np.abs(evaluation.jacobian * np.abs(move(1.0))).max(initial=0.0),
        )
        if change > 1e-5 * typical:
            return False
    return True


def _integers(values: list[float]) -> list[int] | None:
    """Return small integers in the ratio of `values`, if there are any."""
    first = values[0]
    fractions = [Fraction(v / first).limit_denominator(MAX_POWER) for v in values]
    if any(
        f == 0 or abs(float(f) - v / first) > 1e-3 for f, v in zip(fractions, values, strict=True)
    ):
        return None
    common = int(np.lcm.reduce([f.denominator for f in fractions]))
    integers = [int(f * common) for f in fractions]
    return integers if max(abs(i) for i in integers) <= MAX_POWER else None


def _monomial(a: str, p: int, b: str, q: int) -> str:
    """Return ``a^p b^q`` in the usual notation."""
    if p < 0 and q < 0:
        p, q = -p, -q
    if p < 0:
        a, p, b, q = b, q, a, p

    def power(name: str, n: int) -> str:
        return name if n == 1 else f"{name}^{n}"

    if q < 0:
        return f"the ratio {power(a, p)}/{power(b, -q)}"
    return f"the product {power(a, p)}*{power(b, q)}"
