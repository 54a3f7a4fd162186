"""Right-hand sides and their Jacobian at points of a mesh, and the equations of a scheme.

The equations are divided into the smallest sets that determine one or more points of the mesh.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from odefit.common.arrays import Array
from odefit.common.errors import InputError
from odefit.discretisation.mesh import Segment
from odefit.enclosure.arithmetic.rounding import ROUNDING_MARGIN, UNDERFLOW
from odefit.enclosure.arithmetic.taylor_evaluation import TapeProgram
from odefit.enclosure.arithmetic.taylor_models import CONSTANT, Monomials, TaylorModel
from odefit.enclosure.system import Mode, System


@dataclass(frozen=True, eq=False)
class _Evaluation:
    """One way to evaluate the right-hand sides or their Jacobian.

    `constant` holds the entries that are the same at all points, by number of points, on demand.
    """

    program: TapeProgram
    monomials: Monomials
    unknowns: Mapping[int, TaylorModel]
    constant: dict[int, dict[int, TaylorModel]] = field(default_factory=dict)


class RightHandSides:
    """The right-hand sides of one segment, in B boxes.

    `finer` is the number of monomials up to one more degree. `relative_width`, shape (B,), is the
    largest half width of each box relative to its middle. `groups` of states act on each other, and
    `dependence` marks which state depends on which.
    """

    def __init__(
        self,
        system: System,
        segment: Segment,
        monomials: Monomials,
        unknowns: Mapping[int, TaylorModel],
        boxes: int,
    ) -> None:
        self._system, self._segment = system, segment
        self.boxes, self.monomials = boxes, monomials
        mode = system.mode_at(float(segment.mesh[0]))
        variables, degree = monomials.variables, monomials.degree
        none = Monomials.of(variables, 0)
        low = Monomials.of(variables, min(1, degree))
        high = Monomials.of(variables, degree + 1)
        middle = {i: TaylorModel(none, m.c[:1], CONSTANT) for i, m in unknowns.items()}
        lower = {i: m.lowered(low) for i, m in unknowns.items()}
        higher = {i: m.raised(high) for i, m in unknowns.items()}
        self._polynomials = _Evaluation(mode.right_hand_sides, monomials, unknowns)
        self._finer = _Evaluation(mode.right_hand_sides, high, higher)
        self._middle = _Evaluation(mode.right_hand_sides, none, middle)
        self._jacobian = _Evaluation(mode.jacobian, low, lower)
        self._middle_jacobian = _Evaluation(mode.jacobian, none, middle)
        self.states = len(system.states)
        self.groups, self.dependence = mode.groups, mode.dependence
        self.linear = not depends_on_states(system, mode)
        self.finer = len(high)
        widths = [
            m.c[1:, 0].sum(0) / np.maximum(np.abs(m.c[0, 0]), UNDERFLOW) for m in unknowns.values()
        ]
        self.relative_width = np.max(np.abs(widths), axis=0) if widths else np.zeros(boxes)

    def _evaluate(
        self,
        how: _Evaluation,
        c: Array,
        points: Sequence[int],
        deviation: Array | None = None,
        bounded: bool = True,
    ) -> tuple[Array, Array]:
        """Return coefficients and remainders of k values, shapes (k, M, q, B) and (k, q, B).

        `c`, shape (n, q, M', B), are the states at q points, with a bound of their deviation, shape
        (n, q, B), or None for zero. Remainders are zero unless `bounded`.
        """
        count, boxes, m = len(points), self.boxes, len(how.monomials)
        if count not in how.constant:
            wide = {i: model.tiled(count) for i, model in how.unknowns.items()}
            how.constant[count] = how.program.constants(how.monomials, wide, count * boxes)
        known = dict(how.constant[count])
        for i, entry in enumerate(self._system.states):
            flat = np.moveaxis(c[i], 0, 1)  # (M', q, B)
            rest = np.abs(flat[m:]).sum(0)
            if deviation is not None:
                rest = rest + deviation[i]
            kept_terms = min(m, len(flat))
            retained = np.zeros((m, 1, count * boxes))
            retained[:kept_terms, 0] = flat[:kept_terms].reshape(kept_terms, -1)
            support = None if kept_terms == m else frozenset(range(kept_terms))
            remainder = (rest * ROUNDING_MARGIN).reshape(-1)
            known[entry] = TaylorModel(how.monomials, retained, support, remainder)
        times = self._segment.relations.times[list(points)]
        inputs = self._segment.inputs(times)
        columns = [(self._system.time, times)]
        columns += [(entry, inputs[:, k]) for k, entry in enumerate(self._system.inputs.values())]
        for entry, values in columns:
            known[entry] = TaylorModel.constant(how.monomials, np.repeat(values, boxes))
        evaluated = how.program.evaluate(how.monomials, known, count * boxes, bounded)
        models = [evaluated[term.index] for term in how.program.terms]
        coefficients = np.stack([model.c[:, 0].reshape(m, count, boxes) for model in models])
        return coefficients, np.stack([model.remainder.reshape(count, boxes) for model in models])

    def polynomials(self, c: Array, points: Sequence[int]) -> Array:
        """Return the right-hand sides without their remainders, shape (n, q, M, B)."""
        f, _ = self._evaluate(self._polynomials, c, points, bounded=False)
        return np.moveaxis(f, 1, 2)

    def to_next_degree(self, c: Array, points: Sequence[int]) -> tuple[Array, Array]:
        """Return right-hand sides to one more degree, shape (n, q, M', B), and remainders."""
        f, remainder = self._evaluate(self._finer, c, points)
        return np.moveaxis(f, 1, 2), remainder

    def in_middle(self, c: Array, points: Sequence[int]) -> Array:
        """Return values in the middle of the boxes, for states of the same shape (n, q, 1, B)."""
        f, _ = self._evaluate(self._middle, c, points, bounded=False)
        return np.moveaxis(f, 1, 2)

    def around(self, c: Array, deviation: Array, point: int) -> tuple[Array, Array]:
        """Return right-hand sides and remainders at one point, shapes (n, M, B) and (n, B).

        `deviation`, shape (n, B), bounds that of the states from their polynomials c.
        """
        f, remainder = self._evaluate(
            self._polynomials, c[:, None], [point], deviation=deviation[:, None]
        )
        return f[:, :, 0], remainder[:, 0]

    def jacobian_in_middle(self, c: Array, points: Sequence[int]) -> Array:
        """Return the Jacobian in the middle of the boxes, shape (B, q, n, n)."""
        n, count = self.states, len(points)
        values, _ = self._evaluate(self._middle_jacobian, c[:, :, :1], points, bounded=False)
        return np.moveaxis(values.reshape(n, n, count, self.boxes), (2, 3), (1, 0))

    def jacobian(self, c: Array, deviation: Array, points: Sequence[int]) -> tuple[Array, Array]:
        """Return the Jacobian over the boxes to degree one.

        The coefficients of degrees 0 and 1 have shape (B, q, M, n, n), their remainders (B, q, n,
        n). `deviation`, shape (n, q, B), bounds that of the states from their polynomials c.
        """
        n, q, boxes = self.states, len(points), self.boxes
        values, rest = self._evaluate(self._jacobian, c, points, deviation)
        parts = np.moveaxis(values.reshape(n, n, -1, q, boxes), (4, 3, 2), (0, 1, 2))
        return parts, np.moveaxis(rest.reshape(n, n, q, boxes), (3, 2), (0, 1))


def depends_on_states(system: System, mode: Mode) -> bool:
    """Return whether the Jacobian depends on the states: whether the equations are nonlinear."""
    states = set(system.states)
    return any(system.tape.depends(term) & states for term in mode.jacobian.terms)


@dataclass(frozen=True, eq=False)
class StepEquations:
    """Equations ``A x = B f(x)`` of points that have to be solved together.

    They belong to one finite element of a collocation scheme, or to one step or a few steps of
    another scheme. `old` points are already known. Coefficients have shape (rows, points).
    """

    old: list[int]
    new: list[int]
    a_old: Array
    a_new: Array
    b_old: Array
    b_new: Array

    @property
    def explicit(self) -> bool:
        """True if each point follows from earlier ones: then the solution is unique."""
        return not (np.triu(self.a_new, 1).any() or np.triu(self.b_new).any())

    @property
    def one_step(self) -> bool:
        """True if the new points depend only on the last point before them."""
        return self.old == [self.new[0] - 1]

    def difference(self, other: StepEquations) -> float:
        """Return the largest relative difference of the coefficients.

        It is infinite if different coefficients are zero.
        """
        largest = 0.0
        for name in ("a_old", "a_new", "b_old", "b_new"):
            a, b = getattr(self, name), getattr(other, name)
            if a.shape != b.shape or ((a == 0) != (b == 0)).any():
                return np.inf
            used = a != 0
            largest = max(largest, float((np.abs(b - a)[used] / np.abs(a)[used]).max(initial=0.0)))
        return largest


def step_equations(segment: Segment) -> Iterator[StepEquations]:
    """Yield the equations of a segment in the order of time.

    Raises InputError if the scheme's equations do not determine its points step by step.
    """
    if len(segment.mesh) < 2:
        return
    relations = segment.relations
    a, b = relations.states, relations.rhs
    rows = a.shape[0]
    last = np.zeros(rows, dtype=np.intp)
    used: list[set[int]] = []
    for row in range(rows):
        columns = set(a.indices[a.indptr[row] : a.indptr[row + 1]].tolist())
        columns |= set(b.indices[b.indptr[row] : b.indptr[row + 1]].tolist())
        used.append(columns)
        last[row] = max(columns)
    order = np.argsort(last, kind="stable")
    done, begin = 0, 0
    for boundary in relations.boundary[1:].tolist():
        points_now = order[begin : int(np.searchsorted(last[order], boundary, side="right"))]
        if len(points_now) != boundary - done:
            continue
        new = list(range(done + 1, boundary + 1))
        old = sorted({c for row in points_now for c in used[row]} - set(new))
        parts = [m[points_now][:, points].toarray() for m in (a, b) for points in (old, new)]
        yield StepEquations(old, new, *parts)
        done, begin = boundary, begin + len(points_now)
    if done + 1 < len(relations.times):
        raise InputError(
            "BranchAndBound, scheme: its equations do not determine its points step by step; "
            "take one of the listed schemes"
        )
