"""Which unknowns enter the equations linearly: the separation (3) of integral matching.

Whether a second derivative by two unknowns is zero everywhere is decided at random points. A
right-hand side that is analytic has derivatives that vanish at random points only if they vanish
everywhere, with probability one.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from odefit.problem.algebras import DUAL, Dual
from odefit.problem.arrays import Array, BoolArray
from odefit.problem.binding import bound_value
from odefit.problem.expressions import NON_SMOOTH, TIME
from odefit.problem.problem import Problem
from odefit.problem.vector_field import VectorField
from odefit.structure.segments import scalar_segments

POINTS = 4
"""Random points at which derivatives are compared."""

RANGES = ((0.5, 1.5), (2.0, 9.0), (-1.5, -0.5), (0.05, 0.3))
"""Of random states, until right-hand sides are defined."""

ROUNDING = 1e-9
"""Relative difference of derivatives that counts as none."""

EXACT = 20
"""Unknowns up to which a largest set is searched for exactly; beyond, greedily."""

KEPT = 100
"""Problems whose interactions are remembered."""


def interactions(problem: Problem) -> tuple[BoolArray, BoolArray]:
    """Which unknowns act in which equation, and which act on each other.

    Returns
    -------
    acts
        Shape (conditions, states, n): whether the unknown appears in the state's equation, its
        initial value included.
    together
        Shape (n, n), symmetric: whether some second derivative by both is not zero.
    """
    key = _identity(problem)
    if key not in _known:
        if len(_known) >= KEPT:
            _known.pop(next(iter(_known)))
        _known[key] = _interactions(problem)
    return _known[key]


def _identity(problem: Problem) -> Hashable:
    """What the interactions depend on."""
    model = problem.model
    return (
        tuple(model.ode.items()),
        tuple(model.algebraic.items()),
        problem.keys,
        tuple(
            (
                tuple(c.scalars.items()),
                tuple(c.initial.items()),
                tuple((t, tuple(event.items())) for t, event in c.events),
                tuple(c.inputs) if c.events else (),
            )
            for c in problem.conditions
        ),
    )


_known: dict[Hashable, tuple[BoolArray, BoolArray]] = {}
"""Interactions found before: a study fits one model to many series."""


def _interactions(problem: Problem) -> tuple[BoolArray, BoolArray]:
    n, states = len(problem.unknowns), problem.model.states
    acts = np.zeros((len(problem.conditions), len(states), n), dtype=bool)
    together = np.zeros((n, n), dtype=bool)
    rng = np.random.default_rng(0)
    field = VectorField.of(problem.model, problem.conditions)
    with np.errstate(all="ignore"):
        for number in range(len(problem.conditions)):
            # Row 0 is the base; in row k + 1, unknown k has another value.
            vectors = np.tile(rng.uniform(0.5, 1.5, n), (n + 1, 1))
            vectors[1:] += np.diag(rng.uniform(0.2, 0.4, n))
            for low, high in RANGES:
                known = _random_states(problem, rng, low, high)
                base = _slopes(field, problem, number, known, vectors[:1])
                if all(np.isfinite(slopes).all() for _, _, slopes in base):
                    break
            for state, keys, slopes in _slopes(field, problem, number, known, vectors):
                rows = slopes[[0, *(k + 1 for k in keys)]]
                first, second = rows[0], rows[1:]
                # What is not a number is not zero either.
                own = (first != 0).any(axis=0)
                acts[number, state, keys] |= own
                size = np.maximum(np.abs(first), np.abs(second)).max(axis=1, keepdims=True)
                differs = (np.abs(second - first) > ROUNDING * size).any(axis=1)
                # What cannot be evaluated at random values is not known to be linear.
                differs |= ~np.isfinite(second).all(axis=1) & own[:, None]
                if not np.isfinite(first).all():
                    differs |= own[:, None] & own
                together[np.ix_(keys, keys)] |= differs
            for state, (inside, kinked) in enumerate(_kinks(field, problem, number)):
                acts[number, state, sorted(inside)] = True
                together[np.ix_(sorted(kinked), sorted(inside))] = True
    return acts, together | together.T


def linear_unknowns(problem: Problem) -> tuple[int, ...]:
    """A largest set of unknowns in which every equation is linear, the others held.

    Initial values count where equations are linear in them: they are integrated, so that they
    are, but where they are expressions in parameters. Unknowns of the noise are none.
    """
    _, together = interactions(problem)
    return largest_linear(problem, together)


def largest_linear(problem: Problem, together: BoolArray) -> tuple[int, ...]:
    """A largest set of unknowns none of which acts on itself or another one.

    Parameters
    ----------
    together
        Which act on each other, shape (n, n).
    """
    candidates = [
        k
        for k, u in enumerate(problem.unknowns)
        if u.kind != "noise" and u.parameter.scale != "log10" and not together[k, k]
    ]
    return tuple(sorted(independent(candidates, together)))


def acting_together(slopes: Callable[[Array], Array], base: Array) -> BoolArray:
    """Which arguments of a function act on each other: its slopes by one change with another.

    Parameters
    ----------
    slopes
        Derivatives at a vector, shape (rows, n).
    base
        Where to look, shape (n,); nothing there should be special.
    """
    first = slopes(base)
    together = np.zeros((len(base), len(base)), dtype=bool)
    for k in range(len(base)):
        moved = base.copy()
        moved[k] *= 1.3
        second = slopes(moved)
        size = np.maximum(np.abs(first), np.abs(second)).max(axis=0, keepdims=True)
        differs = (np.abs(second - first) > ROUNDING * size) | ~np.isfinite(second - first)
        together[k] = differs.any(axis=0)
    return together | together.T


def independent(candidates: Sequence[int], together: BoolArray) -> list[int]:
    """A largest subset no two of which act on each other; greedy where that takes long."""
    free = [k for k in candidates if not together[k, list(candidates)].any()]
    rest = [k for k in candidates if k not in set(free)]
    if len(rest) <= EXACT:
        return free + _largest(rest, together)
    chosen: list[int] = []
    # Those that exclude the fewest others first.
    while rest:
        best = min(rest, key=lambda k: (int(together[k, rest].sum()), k))
        chosen.append(best)
        rest = [k for k in rest if k != best and not together[best, k]]
    return free + chosen


def _largest(rest: Sequence[int], together: BoolArray) -> list[int]:
    if not rest:
        return []
    pivot = max(rest, key=lambda k: (int(together[k, list(rest)].sum()), -k))
    if not together[pivot, list(rest)].any():
        return list(rest)
    with_it = [k for k in rest if k != pivot and not together[pivot, k]]
    without = [k for k in rest if k != pivot]
    one = [pivot, *_largest(with_it, together)]
    other = _largest(without, together)
    return one if len(one) >= len(other) else other


def _random_states(
    problem: Problem, rng: np.random.Generator, low: float, high: float
) -> dict[str, Array]:
    names = [TIME, *problem.model.states, *problem.model.inputs, *problem.model.algebraic]
    return {name: rng.uniform(low, high, POINTS) for name in names}


def _slopes(
    field: VectorField, problem: Problem, number: int, known: dict[str, Array], vectors: Array
) -> Iterator[tuple[int, list[int], Array]]:
    """Derivatives of initial values and right-hand sides, state by state.

    Algebraic variables that the field eliminates are functions of the unknowns. Where events
    assign parameters or constants, right-hand sides are there before and after.

    Yields
    ------
    The state's number, the unknowns that are in the expression, and the derivatives by them,
    shape (vectors, POINTS, unknowns).
    """
    condition, count = problem.conditions[number], len(vectors)
    unknowns = [Dual(np.repeat(v, POINTS), {k: 1.0}) for k, v in enumerate(vectors.T)]
    values = {name: Dual(np.tile(v, count)) for name, v in known.items()}

    def slopes(value: Dual) -> tuple[list[int], Array]:
        keys = list(value.partials)
        found = np.empty((count * POINTS, len(keys)))
        for i, k in enumerate(keys):
            found[:, i] = value.partials[k]
        return keys, found.reshape((count, POINTS, len(keys)))

    for i, state in enumerate(problem.model.states):
        start: Dual = bound_value(condition.initial[state], condition.scalars, unknowns, DUAL)
        yield i, *slopes(start)
    for _, scalars in scalar_segments(condition, unknowns, values, DUAL):
        for i, value in enumerate(field.rhs({**values, **scalars}, DUAL)):
            yield i, *slopes(value)


@dataclass(frozen=True)
class _Seen:
    """Unknowns in an expression, and those of them inside a function with a kink."""

    inside: frozenset[int] = frozenset()
    kinked: frozenset[int] = frozenset()

    def _with(self, other: _Seen) -> _Seen:
        return _Seen(self.inside | other.inside, self.kinked | other.kinked)

    __add__ = __sub__ = __mul__ = __truediv__ = _with

    def __neg__(self) -> _Seen:
        return self


class _Seeing:
    """The algebra of :class:`_Seen`: at random points a kink may not be seen."""

    def number(self, text: str) -> _Seen:
        return _Seen()

    def power(self, base: _Seen, exponent: _Seen) -> _Seen:
        return base + exponent

    def call(self, function: str, arguments: Sequence[_Seen]) -> _Seen:
        union = _Seen()
        for argument in arguments:
            union = union + argument
        return _Seen(union.inside, union.inside) if function in NON_SMOOTH else union


def _kinks(
    field: VectorField, problem: Problem, number: int
) -> list[tuple[frozenset[int], frozenset[int]]]:
    """By state, unknowns that act through kinks with all that act; none if there is no kink."""
    if field.smooth:
        return []
    condition, algebra = problem.conditions[number], _Seeing()
    unknowns = [_Seen(frozenset([k])) for k in range(len(problem.unknowns))]
    names = [TIME, *problem.model.states, *problem.model.inputs, *problem.model.algebraic]
    values = dict.fromkeys(names, _Seen())
    found = [_Seen()] * len(problem.model.states)
    for _, scalars in scalar_segments(condition, unknowns, values, algebra):
        rates = field.rhs({**values, **scalars}, algebra)
        found = [f + rate for f, rate in zip(found, rates, strict=True)]
    return [(f.inside, f.kinked) if f.kinked else (f.kinked, f.kinked) for f in found]
