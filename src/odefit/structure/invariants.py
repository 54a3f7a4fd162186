"""Sums of equations that do not depend on hidden states.

If a sum of right-hand sides with constant weights depends on measured states alone, its integral
gives the same sum of states: S + I of an SIR model, from I. As many such sums as there are hidden
states determine all of these.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence

import numpy as np

from odefit.common.arrays import Array
from odefit.expressions.algebras import DUAL, Dual
from odefit.expressions.expressions import TIME
from odefit.problem.problem import Problem
from odefit.problem.variants.data_scales import largest_input, time_scale
from odefit.problem.variants.sizes import expected_sizes, typical_sizes
from odefit.problem.vector_field import VectorField
from odefit.structure.linearity import MAX_REMEMBERED, identity
from odefit.structure.segments import scalar_segments

POINTS = 12
"""Number of random points, each with random values of all unknowns, states and inputs."""

ZERO_SINGULAR_VALUE = 1e-10
"""Size, relative to the largest, up to which a singular value or a weight counts as zero."""


def invariants(problem: Problem, hidden: Sequence[str]) -> Array | None:
    """Return the weights of as many sums of equations as there are `hidden` states, or None.

    The weights have shape (hidden, states), with an identity in the columns of the hidden states.
    """
    states = problem.model.states
    if not hidden:
        return np.zeros((0, len(states)))
    if any(c.events and c.inputs for c in problem.conditions):
        # The assigned value of an event may depend on an input.
        return _invariants(problem, hidden)
    key = identity(problem), tuple(hidden)
    if key not in _remembered:
        if len(_remembered) >= MAX_REMEMBERED:
            _remembered.pop(next(iter(_remembered)))
        _remembered[key] = _invariants(problem, hidden)
    weights = _remembered[key]
    return None if weights is None else weights.copy()


_remembered: dict[Hashable, Array | None] = {}
"""Sums found earlier: a study may fit one model to many series."""


def _invariants(problem: Problem, hidden: Sequence[str]) -> Array | None:
    """Compute the result of :func:`invariants`."""
    states = problem.model.states
    field = VectorField.of(problem.model, problem.conditions)
    # Random points may miss a kink; without measurements nothing could be matched.
    if field.algebraic or not field.smooth or len(hidden) == len(states):
        return None
    # In units in which the sizes of terms differ by many decades, the small ones are not zero: so
    # all values have their typical sizes, and so have the rates.
    of_unknowns, of_states = expected_sizes(problem), typical_sizes(problem).states
    scale = np.array([of_states[s] for s in states])
    columns = [states.index(name) for name in hidden]
    sizes = {TIME: math.sqrt(math.prod(time_scale(problem)))} | {s: of_states[s] for s in states}
    sizes |= {name: largest_input(problem, name) or 1.0 for name in problem.model.inputs}
    rng = np.random.default_rng(0)
    rows = []
    with np.errstate(all="ignore"):
        for condition in problem.conditions:
            for _ in range(POINTS):
                vector = of_unknowns * rng.uniform(0.5, 1.5, len(problem.unknowns))
                unknowns = [Dual(v) for v in vector]
                known = {n: Dual(size * rng.uniform(0.5, 1.5)) for n, size in sizes.items()}
                known |= {s: Dual(known[s].value, {i: 1.0}) for i, s in enumerate(hidden)}
                others = {name: Dual(value.value) for name, value in known.items()}
                for _, scalars in scalar_segments(condition, unknowns, others, DUAL):
                    rates = field.rhs({**known, **scalars}, DUAL)
                    rows.append(np.array([r.gradient(len(hidden)) for r in rates]).T)
    matrix = np.concatenate(rows) * np.tile(scale[columns], len(rows))[:, None] / scale
    if not np.isfinite(matrix).all():
        return None
    _, s, vt = np.linalg.svd(matrix)
    s = np.append(s, np.zeros(len(vt) - len(s)))
    null = vt[s <= ZERO_SINGULAR_VALUE * max(float(s[0]), 1e-300)]
    if len(null) < len(hidden) or np.linalg.matrix_rank(null[:, columns], tol=1e-8) < len(hidden):
        return None
    weights = np.linalg.lstsq(null[:, columns].T, np.eye(len(hidden)), rcond=None)[0].T @ null
    weights[np.abs(weights) < ZERO_SINGULAR_VALUE] = 0.0
    return np.asarray(weights * scale[columns][:, None] / scale)
