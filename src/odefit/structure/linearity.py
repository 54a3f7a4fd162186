"""The unknowns in which the equations are linear: the separation (3) of integral matching.

Random points decide whether a second derivative with respect to two unknowns is zero everywhere.
The derivatives of an analytic right-hand side vanish at random points only if they vanish
everywhere, with probability one.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from odefit.common.arrays import Array, BoolArray
from odefit.expressions.algebras import DUAL, Dual
from odefit.expressions.expressions import NON_SMOOTH, TIME, Expression
from odefit.problem.binding import bound_value
from odefit.problem.problem import Problem
from odefit.problem.vector_field import VectorField
from odefit.structure.segments import scalar_segments

POINTS = 4
"""Number of random points at which derivatives are compared."""

STATE_RANGES = ((0.5, 1.5), (2.0, 9.0), (-1.5, -0.5), (0.05, 0.3))
"""Ranges of random states, tried in order until all right-hand sides are defined."""

SAME_DERIVATIVE = 1e-9
"""Relative difference up to which two derivatives are the same."""

MAX_EXACT_SEARCH = 20
"""Largest number of unknowns for an exact search for a maximum independent set; beyond, a greedy
search is used."""

MAX_REMEMBERED = 100
"""Largest number of problems whose interactions are cached."""


def interactions(problem: Problem) -> tuple[BoolArray, BoolArray]:
    """Find which unknowns appear in which equation, and which interact.

    The first array, shape (conditions, states, n), marks unknowns that appear in a state's equation
    or initial value. The second, symmetric, shape (n, n), marks pairs with a nonzero second
    derivative.
    """
    key = identity(problem)
    if key not in _remembered:
        if len(_remembered) >= MAX_REMEMBERED:
            _remembered.pop(next(iter(_remembered)))
        _remembered[key] = _interactions(problem)
    return _remembered[key]


def identity(problem: Problem) -> Hashable:
    """Return the parts of a problem on which its structure depends: all but the data's values."""
    model = problem.model
    return (
        _texts(model.ode),
        _texts(model.algebraic),
        problem.keys,
        tuple(
            (
                _texts(c.scalars),
                _texts(c.initial),
                tuple((t, _texts(event)) for t, event in c.events),
                tuple(c.inputs) if c.events else (),
            )
            for c in problem.conditions
        ),
    )


def _texts(quantities: Mapping[str, int | float | Expression]) -> Hashable:
    """Return quantities with expressions replaced by their texts, which are compared faster."""
    return tuple((k, q.text if isinstance(q, Expression) else q) for k, q in quantities.items())


_remembered: dict[Hashable, tuple[BoolArray, BoolArray]] = {}
"""Interactions found earlier: a study may fit one model to many series."""


def _interactions(problem: Problem) -> tuple[BoolArray, BoolArray]:
    """Compute the result of :func:`interactions`."""
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
            for low, high in STATE_RANGES:
                known = _random_states(problem, rng, low, high)
                base = _derivatives(field, problem, number, known, vectors[:1])
                if all(np.isfinite(values).all() for _, _, values in base):
                    break
            for state, keys, derivatives in _derivatives(field, problem, number, known, vectors):
                rows = derivatives[[0, *(k + 1 for k in keys)]]
                first, second = rows[0], rows[1:]
                # NaN does not count as zero.
                acting = (first != 0).any(axis=0)
                acts[number, state, keys] |= acting
                size = np.maximum(np.abs(first), np.abs(second)).max(axis=1, keepdims=True)
                differs = (np.abs(second - first) > SAME_DERIVATIVE * size).any(axis=1)
                # Terms that cannot be evaluated at random values are not known to be linear.
                differs |= ~np.isfinite(second).all(axis=1) & acting[:, None]
                if not np.isfinite(first).all():
                    differs |= acting[:, None] & acting
                together[np.ix_(keys, keys)] |= differs
            for state, (inside, kinked) in enumerate(_kinks(field, problem, number)):
                acts[number, state, sorted(inside)] = True
                together[np.ix_(sorted(kinked), sorted(inside))] = True
    return acts, together | together.T


def linear_unknowns(problem: Problem, together: BoolArray | None = None) -> tuple[int, ...]:
    """Return the numbers of a largest set of unknowns in which, given the others, all is linear.

    Initial values may be among them, since the integrated equations are linear in initial values
    unless these are expressions in parameters. Unknowns of the noise are never among them.
    `together` is the second result of :func:`interactions`, computed by default.
    """
    if together is None:
        _, together = interactions(problem)
    candidates = [
        k
        for k, u in enumerate(problem.unknowns)
        if u.kind != "noise" and u.parameter.scale != "log10" and not together[k, k]
    ]
    return tuple(sorted(independent_set(candidates, together)))


def acting_together(jacobian: Callable[[Array], Array], base: Array) -> BoolArray:
    """Find which arguments of a function interact: derivatives by one change with the other.

    `jacobian` returns derivatives, shape (rows, n); they are compared at the generic vector `base`
    and nearby.
    """
    first = jacobian(base)
    together = np.zeros((len(base), len(base)), dtype=bool)
    for k in range(len(base)):
        moved = base.copy()
        moved[k] *= 1.3
        second = jacobian(moved)
        size = np.maximum(np.abs(first), np.abs(second)).max(axis=0, keepdims=True)
        with np.errstate(invalid="ignore"):  # unbounded derivatives differ
            change = np.abs(second - first)
        differs = (change > SAME_DERIVATIVE * size) | ~np.isfinite(change)
        together[k] = differs.any(axis=0)
    return together | together.T


def independent_set(candidates: Sequence[int], together: BoolArray) -> list[int]:
    """Return a maximum independent set: no two of its members interact.

    With many candidates a greedy search is used, and the set may not be a largest one.
    """
    free = [k for k in candidates if not together[k, list(candidates)].any()]
    rest = [k for k in candidates if k not in set(free)]
    if len(rest) <= MAX_EXACT_SEARCH:
        return free + _maximum_independent_set(rest, together)
    chosen: list[int] = []
    # Candidates that exclude the fewest others come first.
    while rest:
        best = min(rest, key=lambda k: (int(together[k, rest].sum()), k))
        chosen.append(best)
        rest = [k for k in rest if k != best and not together[best, k]]
    return free + chosen


def _maximum_independent_set(rest: Sequence[int], together: BoolArray) -> list[int]:
    """Return a maximum independent set, by branching on the candidate with most interactions."""
    if not rest:
        return []
    pivot = max(rest, key=lambda k: (int(together[k, list(rest)].sum()), -k))
    if not together[pivot, list(rest)].any():
        return list(rest)
    with_it = [k for k in rest if k != pivot and not together[pivot, k]]
    without = [k for k in rest if k != pivot]
    one = [pivot, *_maximum_independent_set(with_it, together)]
    other = _maximum_independent_set(without, together)
    return one if len(one) >= len(other) else other


def _random_states(
    problem: Problem, rng: np.random.Generator, low: float, high: float
) -> dict[str, Array]:
    """Return random values of time, states, inputs and algebraic variables at all points."""
    names = [TIME, *problem.model.states, *problem.model.inputs, *problem.model.algebraic]
    return {name: rng.uniform(low, high, POINTS) for name in names}


def _derivatives(
    field: VectorField, problem: Problem, number: int, known: dict[str, Array], vectors: Array
) -> Iterator[tuple[int, list[int], Array]]:
    """Yield each state's number, the unknowns in its expressions, and the derivatives by them.

    The derivatives, of initial values and right-hand sides, have shape (vectors, POINTS, unknowns).
    Algebraic variables that the field eliminates are functions of the unknowns. Right-hand sides
    are differentiated in every segment between events that assign parameters or constants.
    """
    condition, count = problem.conditions[number], len(vectors)
    unknowns = [Dual(np.repeat(v, POINTS), {k: 1.0}) for k, v in enumerate(vectors.T)]
    values = {name: Dual(np.tile(v, count)) for name, v in known.items()}

    def partials(value: Dual) -> tuple[list[int], Array]:
        """Return the unknowns in a value, and the derivatives by them."""
        keys = list(value.partials)
        derivatives = np.empty((count * POINTS, len(keys)))
        for i, k in enumerate(keys):
            derivatives[:, i] = value.partials[k]
        return keys, derivatives.reshape((count, POINTS, len(keys)))

    for i, state in enumerate(problem.model.states):
        start: Dual = bound_value(condition.initial[state], condition.scalars, unknowns, DUAL)
        yield i, *partials(start)
    for _, scalars in scalar_segments(condition, unknowns, values, DUAL):
        for i, value in enumerate(field.rhs({**values, **scalars}, DUAL)):
            yield i, *partials(value)


@dataclass(frozen=True)
class _Dependence:
    """The numbers of the unknowns in an expression, and of those in the argument of a kink."""

    inside: frozenset[int] = frozenset()
    kinked: frozenset[int] = frozenset()

    def _with(self, other: _Dependence) -> _Dependence:
        return _Dependence(self.inside | other.inside, self.kinked | other.kinked)

    __add__ = __sub__ = __mul__ = __truediv__ = _with

    def __neg__(self) -> _Dependence:
        return self


class _DependenceAlgebra:
    """The algebra of :class:`_Dependence`: random points may not show a kink."""

    def number(self, text: str) -> _Dependence:
        return _Dependence()

    def power(self, base: _Dependence, exponent: _Dependence) -> _Dependence:
        return base + exponent

    def call(self, function: str, arguments: Sequence[_Dependence]) -> _Dependence:
        union = _Dependence()
        for argument in arguments:
            union = union + argument
        return _Dependence(union.inside, union.inside) if function in NON_SMOOTH else union


def _kinks(
    field: VectorField, problem: Problem, number: int
) -> list[tuple[frozenset[int], frozenset[int]]]:
    """Return the unknowns on which each state's equation depends, and those in a kink.

    The pair of sets is empty for an equation without a kink, and so is the list for a model without
    any.
    """
    condition, algebra = problem.conditions[number], _DependenceAlgebra()
    texts = [*condition.scalars.values(), *(e for a in condition.assignments for e in a.values())]
    if field.smooth and not any(
        isinstance(e, Expression) and e.functions & NON_SMOOTH for e in texts
    ):
        return []
    unknowns = [_Dependence(frozenset([k])) for k in range(len(problem.unknowns))]
    names = [TIME, *problem.model.states, *problem.model.inputs, *problem.model.algebraic]
    values = dict.fromkeys(names, _Dependence())
    dependences = [_Dependence()] * len(problem.model.states)
    for _, scalars in scalar_segments(condition, unknowns, values, algebra):
        rates = field.rhs({**values, **scalars}, algebra)
        dependences = [f + rate for f, rate in zip(dependences, rates, strict=True)]
    return [(f.inside, f.kinked) if f.kinked else (f.kinked, f.kinked) for f in dependences]
