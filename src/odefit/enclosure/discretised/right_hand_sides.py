"""Right-hand sides at points of a mesh, over boxes of unknowns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from odefit.discretisation.mesh import Segment
from odefit.enclosure.flow import lowered
from odefit.enclosure.monomials import Monomials
from odefit.enclosure.rounding import ROUNDING_MARGIN, UNDERFLOW
from odefit.enclosure.system import Mode, System
from odefit.enclosure.taylor_models import TaylorModel
from odefit.problem.arrays import Array


class Slopes:
    """Of one segment, in B boxes.

    Parameters
    ----------
    system, segment, motion
        Whose equations.
    monomials
        Of the solution.
    unknowns
        Models by entry of the tape.
    boxes
        Their number.

    Attributes
    ----------
    states
        Their number n.
    linear
        Whether the equations are linear in the states.
    fine
        Monomials of :meth:`sharp`.
    widest
        Largest half width of a box, relative to its middle, shape (B,).
    """

    def __init__(
        self,
        system: System,
        segment: Segment,
        motion: Mode,
        monomials: Monomials,
        unknowns: Mapping[int, TaylorModel],
        boxes: int,
    ) -> None:
        self._system, self._segment, self.motion = system, segment, motion
        self.boxes, self.monomials, self._unknowns = boxes, monomials, unknowns
        self._low = Monomials.of(monomials.variables, min(1, monomials.degree))
        self._fine = Monomials.of(monomials.variables, monomials.degree + 1)
        self._slow = {i: lowered(m, self._low) for i, m in unknowns.items()}
        self._sharp = {i: _extended(m, self._fine) for i, m in unknowns.items()}
        self._centre = {
            i: TaylorModel(m.c[:1], frozenset([0]), np.zeros(boxes), np.zeros(boxes))
            for i, m in unknowns.items()
        }
        self.states = len(system.states)
        states = set(system.states)
        self.linear = not any(system.tape.depends(t) & states for t in motion.slopes.terms)
        self.fine = len(self._fine)
        spans = [
            m.c[1:, 0].sum(0) / np.maximum(np.abs(m.c[0, 0]), UNDERFLOW) for m in unknowns.values()
        ]
        self.widest = np.max(np.abs(spans), axis=0) if spans else np.zeros(boxes)
        self._stills: dict[tuple[int, int], dict[int, TaylorModel]] = {}

    def _evaluate(
        self, which: int, c: Array, sizes: Array, points: Sequence[int], bounded: bool = True
    ) -> list[TaylorModel]:
        """Slopes (0), their derivatives to degree 1 (1), or in the middle (2), at some points.

        Or slopes with the next degree (3), or in the middle (4).

        Parameters
        ----------
        c, sizes
            Polynomials of the states at the points, shape (n, q, M, B), and how far these are
            from what is meant, shape (n, q, B).
        """
        middle = Monomials.of(self._low.variables, 0)
        monomials = (self.monomials, self._low, middle, self._fine, middle)[which]
        given = (self._unknowns, self._slow, self._centre, self._sharp, self._centre)[which]
        program = self.motion.slopes if which in (1, 2) else self.motion.rates
        count, boxes = len(points), self.boxes
        if (which, count) not in self._stills:
            wide = {i: repeated(m, count) for i, m in given.items()}
            self._stills[which, count] = program.still(monomials, wide, count * boxes)
        known = dict(self._stills[which, count])
        m = len(monomials)
        for i, entry in enumerate(self._system.states):
            flat = np.moveaxis(c[i], 0, 1)  # (M, q, B)
            rest = (np.abs(flat[m:]).sum(0) + sizes[i]) * ROUNDING_MARGIN
            own = min(m, len(flat))
            kept = np.zeros((m, 1, count * boxes))
            kept[:own, 0] = flat[:own].reshape(own, -1)
            support = None if own == m else frozenset(range(own))
            known[entry] = TaylorModel(kept, support, rest.reshape(-1), np.zeros(count * boxes))
        times = self._segment.relations.times[list(points)]
        inputs = self._segment.inputs(times)
        columns = [(self._system.time, times)]
        columns += [(entry, inputs[:, k]) for k, entry in enumerate(self._system.inputs.values())]
        for entry, values in columns:
            known[entry] = TaylorModel.constant(monomials, np.repeat(values, boxes))
        found = program.static(monomials, known, count * boxes, bounded)
        return [found[term.index] for term in program.terms]

    def sharp(self, c: Array, points: Sequence[int]) -> tuple[Array, Array]:
        """Of the next degree, shape (n, q, M', B), and what they leave out, shape (n, q, B)."""
        count, boxes = len(points), self.boxes
        models = self._evaluate(3, c, np.zeros((self.states, count, boxes)), points)
        f = np.stack([m.c[:, 0].reshape(-1, count, boxes) for m in models])
        rest = np.stack([m.remainder.reshape(count, boxes) for m in models])
        return np.moveaxis(f, 1, 2), rest

    def polynomials(self, c: Array, points: Sequence[int]) -> Array:
        """Slopes without a bound of what they leave out, shape (n, q, M, B)."""
        count, boxes = len(points), self.boxes
        models = self._evaluate(0, c, np.zeros((self.states, count, boxes)), points, bounded=False)
        f = np.stack([m.c[:, 0].reshape(-1, count, boxes) for m in models])
        return np.moveaxis(f, 1, 2)

    def middles(self, c: Array, points: Sequence[int]) -> Array:
        """In the middle of the boxes, for states of shape (n, q, 1, B); the same shape."""
        count, boxes = len(points), self.boxes
        models = self._evaluate(4, c, np.zeros((self.states, count, boxes)), points, bounded=False)
        return np.stack([m.c[0, 0].reshape(count, 1, boxes) for m in models])

    def around(self, c: Array, sizes: Array, place: int) -> tuple[Array, Array]:
        """At one point, with deviations of the states, shape (n, B), in what is left out."""
        models = self._evaluate(0, c[:, None], sizes[:, None], [place])
        f = np.stack([m.c[:, 0] for m in models])
        return f, np.stack([m.remainder for m in models])

    def centre(self, c: Array, points: Sequence[int]) -> Array:
        """Derivatives of the slopes in the middle of the boxes, shape (B, q, n, n)."""
        n, count = self.states, len(points)
        nothing = np.zeros((n, count, self.boxes))
        models = self._evaluate(2, c[:, :, :1], nothing, points, bounded=False)
        values = np.stack([m.c[0, 0].reshape(count, self.boxes) for m in models])
        return np.moveaxis(values.reshape(n, n, count, self.boxes), (2, 3), (1, 0))

    def varied(self, c: Array, sizes: Array, points: Sequence[int]) -> tuple[Array, Array]:
        """Derivatives of the slopes over boxes, of degree 0 and 1, shape (B, q, L, n, n).

        With a bound of what they leave out, shape (B, q, n, n), for states that deviate by `sizes`,
        shape (n, q, B).
        """
        n, q, boxes, low = self.states, len(points), self.boxes, len(self._low)
        models = self._evaluate(1, c, sizes, points)
        values = np.stack([m.c[:, 0].reshape(low, q, boxes) for m in models])
        rest = np.stack([m.remainder.reshape(q, boxes) for m in models])
        parts = np.moveaxis(values.reshape(n, n, low, q, boxes), (4, 3, 2), (0, 1, 2))
        return parts, np.moveaxis(rest.reshape(n, n, q, boxes), (3, 2), (0, 1))


def _extended(model: TaylorModel, monomials: Monomials) -> TaylorModel:
    """With more monomials."""
    c = np.zeros((len(monomials), *model.c.shape[1:]))
    c[: len(model.c)] = model.c
    return TaylorModel(c, model.support, model.remainder, model.late)


def repeated(model: TaylorModel, count: int) -> TaylorModel:
    """In all boxes again and again."""
    return TaylorModel(
        np.tile(model.c, (1, 1, count)),
        model.support,
        np.tile(model.remainder, count),
        np.tile(model.late, count),
    )
