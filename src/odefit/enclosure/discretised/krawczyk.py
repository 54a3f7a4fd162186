"""Solutions of the equations of a step over boxes of unknowns, by Krawczyk's operator.

The solution of ``A x = B f(x)`` is expanded in the box by Newton's iteration, which gains one
degree each time. Y is the inverse of the Jacobian G' in the middle of the box. The deviation e of
the true solution from that polynomial satisfies ``e = (1 - Y G') e - Y G``. The polynomial's defect
G and bounds of ``1 - Y G'`` over the box give a bound of e (R. Krawczyk, Newton-Algorithmen zur
Bestimmung von Nullstellen mit Fehlerschranken, 1969). It holds for the solution that continues the
previous one; a nonlinear scheme may have other solutions, which are not enclosed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from odefit.common.arrays import Array, BoolArray, IntArray
from odefit.enclosure.arithmetic.rounding import ROUNDING_MARGIN, UNIT_ROUNDOFF
from odefit.enclosure.arithmetic.taylor_models import Monomials, TaylorModel
from odefit.enclosure.discretised.projection_bound import Readout
from odefit.enclosure.discretised.right_hand_sides import RightHandSides, StepEquations
from odefit.enclosure.error_propagation import ErrorBound, in_frame_coordinates, mapped_error
from odefit.simulation.engines.cut_off import count_work

PER_STEP, PER_ENTRY = 120_000, 0.5
"""Numbers of operations (:mod:`odefit.simulation.engines.cut_off`) of the equations of a step, and
of each coefficient of an entry of their Jacobian in a box."""

NEWTON_ITERATIONS = 12
"""Largest number of Newton iterations in the middle of a box."""

NEWTON_TOLERANCE = 1e-13
"""Relative size of a correction after which Newton's iteration ends."""

CONTINUATION_WIDTH = 0.1
"""Relative half width of boxes up to which a solution is continued in the step size, starting near
zero, if Newton's iteration fails."""

FIRST_STEP_SHARE = 1e-6
"""Share of the step size at which a continuation begins."""

CONTINUATION_STAGES = 14
"""Number of step sizes of a continuation."""

STAGE_ITERATIONS = 3
"""Number of Newton iterations in each stage of a continuation but the last."""

MAX_CONTRACTION_NORM = 1e3
"""Norm of the bound of ``1 - Y G'`` above which the deviation is not bounded."""

ATTEMPTS = 4
"""Number of attempts at a bound of the deviation that Krawczyk's operator confirms."""


@dataclass(eq=False)
class PointEnclosure:
    """The enclosed states, and right-hand sides, at one point of a mesh.

    Polynomials c, shape (n, M, B), with a bound of the deviation, shape (n, B). The right-hand
    sides f have one more degree, shape (n, M', B), None until needed, and remainders at c.
    """

    c: Array
    deviation: Array
    f: Array | None = None
    f_remainder: Array | None = None

    @staticmethod
    def of(models: Sequence[TaylorModel]) -> PointEnclosure:
        """Return the point with these Taylor models of the states."""
        c = np.stack([m.c[:, 0] for m in models])
        return PointEnclosure(c, np.stack([m.remainder for m in models]))

    def models(self, monomials: Monomials) -> list[TaylorModel]:
        """Return the states as Taylor models."""
        return [
            TaylorModel(monomials, c[:, None, :], None, deviation)
            for c, deviation in zip(self.c, self.deviation, strict=True)
        ]

    def error_bound(self) -> ErrorBound:
        """Return the deviation as an error bound without a frame."""
        return ErrorBound.of(self.deviation.T)

    def take(self, boxes: IntArray) -> PointEnclosure:
        """Return the enclosure in the selected boxes."""
        f = None if self.f is None else self.f[:, :, boxes]
        f_remainder = None if self.f_remainder is None else self.f_remainder[:, boxes]
        return PointEnclosure(self.c[:, :, boxes], self.deviation[:, boxes], f, f_remainder)


class KrawczykSolver:
    """Solves the equations of the steps of one segment, in B boxes.

    `coefficient_error` is the largest relative error of A and B, far below the rounding margin.
    """

    def __init__(self, right_hand_sides: RightHandSides, coefficient_error: float = 0.0) -> None:
        self.rhs = right_hand_sides
        self.states, self.boxes = right_hand_sides.states, right_hand_sides.boxes
        self._monomials = right_hand_sides.monomials
        self._coefficient_error = coefficient_error
        self._groups = right_hand_sides.groups
        self._dependence = right_hand_sides.dependence

    def read(self, points: Mapping[int, PointEnclosure], readout: Readout) -> PointEnclosure:
        """Return the states at a time between points, by the scheme's polynomial."""
        some = next(iter(points.values()))
        c, deviation = np.zeros_like(some.c), np.zeros_like(some.deviation)
        total = np.zeros_like(deviation)
        for k, weight in readout.states.items():
            c += weight * points[k].c
            deviation += abs(weight) * points[k].deviation
            total += abs(weight) * np.abs(points[k].c).sum(1)
        for k, weight in readout.right_hand_sides.items():
            f, remainder = self.rhs.around(points[k].c, points[k].deviation, k)
            c += weight * f
            deviation += abs(weight) * remainder
            total += abs(weight) * np.abs(f).sum(1)
        terms = len(readout.states) + len(readout.right_hand_sides) + 2
        deviation += 2 * terms * UNIT_ROUNDOFF * total
        return PointEnclosure(c, deviation * ROUNDING_MARGIN)

    def step(self, step: StepEquations, point: PointEnclosure) -> PointEnclosure:
        """Return the last point of a one-step scheme's step, from the only previous one."""
        points = {step.old[0]: point}
        self.solve(step, points, point.error_bound())
        return points[step.new[-1]]

    def solve(
        self, step: StepEquations, points: dict[int, PointEnclosure], error: ErrorBound
    ) -> ErrorBound:
        """Add the new points of a step to `points`, and return the error bound of the last one."""
        n, boxes, q, m = self.states, self.boxes, len(step.new), len(self._monomials)
        count_work(PER_STEP + PER_ENTRY * (n * q) ** 2 * self.rhs.finer * boxes)
        a, b = step.a_new, step.b_new
        constant, remainder, rounding = self._old_terms(step, points)
        x = np.repeat(points[step.old[-1]].c[:, None], q, axis=1)
        x[:, :, :1] = self._solve_in_middle(step, constant[:, :, :1], x[:, :, :1])
        inverse = self._inverse_jacobian(a, b, x, step.new)
        # Starting from the middle, each iteration gains one degree.
        for _ in range(max(self._monomials.degree, 1)):
            f = self.rhs.polynomials(x, step.new)
            x = x - _applied(inverse, constant[:, :, :m] + _rows(a, x) - _rows(b, f))
        # With the next degree, of which Y removes the common part of the equations.
        f, f_remainder = self.rhs.to_next_degree(x, step.new)
        defect = constant - _rows(b, f)
        defect[:, :, :m] += _rows(a, x)
        rounding += np.einsum("rp,npb->nrb", np.abs(a), np.abs(x).sum(2))
        rounding += np.einsum("rp,npb->nrb", np.abs(b), np.abs(f).sum(2))
        remainder += np.einsum("rp,npb->nrb", np.abs(b), f_remainder)
        terms = 4 * (q + len(step.old) + 2)
        remainder += (terms * UNIT_ROUNDOFF + 2 * self._coefficient_error) * rounding
        image = np.abs(_applied(inverse, defect)).sum(2)
        absolute = np.abs(inverse)
        image += 4 * n * q * UNIT_ROUNDOFF * np.abs(_applied(absolute, np.abs(defect))).sum(2)
        bound = image.reshape(n * q, boxes)
        bound += np.einsum("bij,jb->ib", absolute, remainder.reshape(n * q, boxes))
        deviation, error = self._deviation(
            step, points, x, inverse, bound.T * ROUNDING_MARGIN, error
        )
        for p, place in enumerate(step.new):
            points[place] = PointEnclosure(x[:, p], deviation[:, p], f[:, p], f_remainder[:, p])
        points[step.new[-1]].deviation = np.minimum(deviation[:, -1], error.sizes.T)
        return error

    def _old_terms(
        self, step: StepEquations, points: Mapping[int, PointEnclosure]
    ) -> tuple[Array, Array, Array]:
        """Return ``A_old x_old - B_old f_old``, its remainders, and the rounded magnitudes.

        Shapes (n, q, M', B), (n, q, B) and (n, q, B).
        """
        n, boxes, q, m = self.states, self.boxes, len(step.new), len(self._monomials)
        constant = np.zeros((n, q, self.rhs.finer, boxes))
        remainder, rounding = np.zeros((n, q, boxes)), np.zeros((n, q, boxes))
        for j, old in enumerate(step.old):
            a, b = step.a_old[:, j], step.b_old[:, j]
            point = points[old]
            constant[:, :, :m] += a[None, :, None, None] * point.c[:, None]
            rounding += np.abs(a)[None, :, None] * np.abs(point.c).sum(1)[:, None]
            if b.any():
                if point.f is None or point.f_remainder is None:
                    f, rest = self.rhs.to_next_degree(point.c[:, None], [old])
                    point.f, point.f_remainder = f[:, 0], rest[:, 0]
                constant -= b[None, :, None, None] * point.f[:, None]
                remainder += np.abs(b)[None, :, None] * point.f_remainder[:, None]
                rounding += np.abs(b)[None, :, None] * np.abs(point.f).sum(1)[:, None]
        return constant, remainder, rounding

    def _solve_in_middle(self, step: StepEquations, constant: Array, x: Array) -> Array:
        """Return the solution in the middle of the boxes, from a guess x, shape (n, q, 1, B)."""
        a, b, new = step.a_new, step.b_new, step.new
        iterations = 1 if self.rhs.linear else NEWTON_ITERATIONS
        solution, converged = self._newton(a, b, constant, x, new, iterations)
        lost = ~converged & (self.rhs.relative_width <= CONTINUATION_WIDTH)
        if self.rhs.linear or not lost.any():
            return solution
        # The step grows from almost zero, and the solution with it.
        path = x
        for share in np.geomspace(FIRST_STEP_SHARE, 1.0, CONTINUATION_STAGES):
            path, _ = self._newton(a, share * b, constant, path, new, STAGE_ITERATIONS)
        path, _ = self._newton(a, b, constant, path, new, NEWTON_ITERATIONS)
        return np.where(lost & np.isfinite(path).all(axis=(0, 1, 2)), path, solution)

    def _newton(
        self, a: Array, b: Array, constant: Array, x: Array, new: Sequence[int], iterations: int
    ) -> tuple[Array, BoolArray]:
        """Iterate in the middle of the boxes; the mask marks convergence, shape (B,)."""
        for _ in range(iterations):
            inverse = self._inverse_jacobian(a, b, x, new)
            defect = constant + _rows(a, x) - _rows(b, self.rhs.in_middle(x, new))
            correction = _applied(inverse, defect)
            x = x - correction
            size = np.abs(x).max(axis=(0, 1, 2), initial=1e-300)
            largest = np.abs(correction).max(axis=(0, 1, 2))
            converged: BoolArray = largest <= NEWTON_TOLERANCE * size
            if (converged | ~np.isfinite(size)).all():
                break
        return x, converged

    def _inverse_jacobian(self, a: Array, b: Array, x: Array, new: Sequence[int]) -> Array:
        """Return Y, the inverse of G' in the middle of the boxes, shape (B, nq, nq)."""
        n, q = self.states, len(new)
        jacobian = _derivative(a, b, self.rhs.jacobian_in_middle(x, new))
        usable: BoolArray = np.all(np.isfinite(jacobian), axis=(1, 2))
        jacobian = np.where(usable[:, None, None], jacobian, np.eye(n * q))
        try:
            inverse = np.linalg.inv(jacobian)
        except np.linalg.LinAlgError:
            inverse = np.linalg.pinv(jacobian)
        # It is zero between independent states: a lost state spoils no others.
        inverse = inverse * np.kron(self._dependence, np.ones((q, q)))
        return np.where(usable[:, None, None], inverse, np.nan)

    def _deviation(
        self,
        step: StepEquations,
        points: Mapping[int, PointEnclosure],
        x: Array,
        inverse: Array,
        bound: Array,
        error: ErrorBound,
    ) -> tuple[Array, ErrorBound]:
        """Return bounds of the deviation at all new points, shape (n, q, B), and at the last one.

        `x`, shape (n, q, M, B), are the states' polynomials, `bound`, shape (B, nq), that of ``Y
        G`` there, and `error` that of the last old point.
        """
        n, q, boxes = self.states, len(step.new), self.boxes
        through, added = self._carried(step, points, inverse)
        added += bound
        carried = _product(np.abs(through), points[step.old[-1]].deviation.T)
        total = (carried + added) * ROUNDING_MARGIN
        guess = 2.0 * total + 1e-300
        for attempt in range(ATTEMPTS):
            matrix = self._contraction(step, x, inverse, guess)
            deviations = self._least_solution(matrix, total, q)
            held = (deviations <= guess) | ~np.isfinite(deviations)
            if held.all() or attempt == ATTEMPTS - 1:
                break
            guess = np.where(held, guess, 1.2 * np.minimum(deviations, 1e300))
        # The matrix holds for deviations up to the guess: only bounds within that are confirmed.
        deviations = np.where(held, deviations, np.inf)
        for group in self._groups:
            # An unconfirmed bound invalidates all bounds derived from it.
            unconfirmed = np.isinf(deviations.reshape(boxes, n, q)).any(axis=2)
            lost: BoolArray = np.any(unconfirmed @ self._dependence[group].T > 0, axis=1)
            places = (np.array(group)[:, None] * q + np.arange(q)).ravel()
            deviations[:, places] = np.where(lost[:, None], np.inf, deviations[:, places])
        # The last point, in the frame: the carried deviation, and the rest.
        rest = added + _product(matrix, deviations)
        last = np.arange(n) * q + q - 1
        framed = mapped_error(
            error,
            (through[:, last], 0.0),
            rest[:, last] * ROUNDING_MARGIN,
            (np.eye(n)[None], 0.0),
        )
        least = np.minimum(deviations[:, last], framed.sizes)
        back = np.abs(np.swapaxes(framed.frame, 1, 2))
        lengths = in_frame_coordinates(framed.frame, _product(back, least) * ROUNDING_MARGIN)
        by_state = np.moveaxis(deviations.reshape(boxes, n, q), 0, 2)
        return by_state, ErrorBound(least, framed.frame, np.fmin(framed.lengths, lengths))

    def _carried(
        self, step: StepEquations, points: Mapping[int, PointEnclosure], inverse: Array
    ) -> tuple[Array, Array]:
        """Return the effect of deviations at old points on the new ones.

        The first is the matrix from the deviation at the last old point, shape (B, nq, n). The
        second, shape (B, nq), bounds the other contributions: of other old points, of derivatives
        that vary over the box, and of rounding.
        """
        n, boxes = self.states, self.boxes
        size = inverse.shape[1]
        absolute = np.abs(inverse)
        added = np.zeros((boxes, size))
        through = np.zeros((boxes, size, n))
        for j, old in enumerate(step.old):
            a, b = step.a_old[:, j], step.b_old[:, j]
            point = points[old]
            matrix = np.einsum("r,ik->irk", a, np.eye(n))[None].repeat(boxes, axis=0)
            if b.any():
                parts, rest = self.rhs.jacobian(point.c[:, None], point.deviation[:, None], [old])
                varying = np.abs(parts[:, :, 1:]).sum(axis=2) + rest
                varying = varying * ROUNDING_MARGIN + 4 * UNIT_ROUNDOFF * np.abs(parts[:, :, 0])
                matrix = matrix - np.einsum("r,bik->birk", b, parts[:, 0, 0])
                moved = np.abs(b) * _product(varying[:, 0], point.deviation.T)[:, :, None]
                added += _product(absolute, moved.reshape(boxes, size))
            product = -inverse @ matrix.reshape(boxes, size, n)
            magnitude = absolute @ np.abs(matrix).reshape(boxes, size, n)
            rounding = (4 * size * UNIT_ROUNDOFF + 2 * self._coefficient_error) * magnitude
            added += _product(rounding, point.deviation.T)
            if old == step.old[-1]:
                through = product
            else:
                added += _product(np.abs(product), point.deviation.T)
        return through, added

    def _least_solution(self, matrix: Array, g: Array, q: int) -> Array:
        """Return the least s with ``s >= g + matrix s``, one group of states after the other."""
        solution = np.full_like(g, np.inf)
        before: list[int] = []
        for group in self._groups:
            rows = [i * q + p for i in group for p in range(q)]
            right = g[:, rows]
            if before:
                right = right + _product(matrix[:, rows][:, :, before], solution[:, before])
            solution[:, rows] = _least_solution(
                matrix[:, rows][:, :, rows], right * ROUNDING_MARGIN
            )
            before += rows
        return solution

    def _contraction(
        self, step: StepEquations, x: Array, inverse: Array, deviation: Array
    ) -> Array:
        """Return a bound of ``|1 - Y G'|`` over the boxes, shape (B, nq, nq).

        It holds up to the `deviation` of the states from x, shape (B, nq).
        """
        n, q, boxes = self.states, len(step.new), self.boxes
        size = n * q
        by_state = np.moveaxis(deviation.reshape(boxes, n, q), 0, 2)
        parts, remainder = self.rhs.jacobian(x, by_state, step.new)
        # Including the rounding of the products below, which may cancel.
        remainder = remainder + 4 * UNIT_ROUNDOFF * np.abs(parts[:, :, 0])
        a, b = step.a_new, step.b_new
        middle = _derivative(a, b, parts[:, :, 0])
        absolute = np.abs(inverse)
        contraction = np.abs(np.eye(size) - inverse @ middle)
        rounding = 4 * size * UNIT_ROUNDOFF + 2 * self._coefficient_error
        magnitude = np.abs(middle)
        if self._coefficient_error:
            # Cancellation in the middle is less exact than it appears.
            magnitude = _derivative(np.abs(a), -np.abs(b), np.abs(parts[:, :, 0]))
        contraction += rounding * (absolute @ magnitude + np.eye(size))
        nothing = np.zeros_like(a)
        for k in range(1, parts.shape[2]):
            # Each direction separately: signs within it matter.
            varying = _derivative(nothing, -b, parts[:, :, k])
            contraction += np.abs(inverse @ varying) + rounding * (absolute @ np.abs(varying))
        contraction += absolute @ _derivative(nothing, -np.abs(b), remainder)
        return np.asarray(contraction * ROUNDING_MARGIN)


def _rows(weights: Array, values: Array) -> Array:
    """Return sums over points for each row, of shapes (r, q) and (n, q, M, B)."""
    return np.asarray(np.einsum("rp,npmb->nrmb", weights, values))


def _applied(matrices: Array, values: Array) -> Array:
    """Return products of matrices (B, nq, nq) and polynomials (n, q, M, B)."""
    flat = values.reshape(-1, *values.shape[2:])
    return np.asarray(np.einsum("bij,jmb->imb", matrices, flat).reshape(values.shape))


def _derivative(a: Array, b: Array, jacobian: Array) -> Array:
    """Return the derivative of ``A x - B f(x)``, shape (B, nq, nq), for f' of (B, q, n, n)."""
    boxes, q, n, _ = jacobian.shape
    derivative = np.einsum("rp,ij->irjp", a, np.eye(n))[None] - np.einsum(
        "rp,bpij->birjp", b, jacobian
    )
    return np.asarray(derivative.reshape(boxes, n * q, n * q))


def _product(matrices: Array, vectors: Array) -> Array:
    """Return products of matrices (B, i, j) and vectors (B, j); zero times infinity is zero."""
    infinite = np.isinf(vectors)
    if not infinite.any():
        return np.asarray(np.matmul(matrices, vectors[:, :, None])[:, :, 0])
    products = np.matmul(matrices, np.where(infinite, 0.0, vectors)[:, :, None])[:, :, 0]
    reached = np.matmul((matrices != 0).astype(float), infinite.astype(float)[:, :, None])
    return np.asarray(np.where(reached[:, :, 0] > 0, np.inf, products))


def _least_solution(matrix: Array, g: Array) -> Array:
    """Return approximately the least s with ``s >= g + matrix s``; infinite without one."""
    size = matrix.shape[1]
    usable: BoolArray = np.all(np.isfinite(matrix), axis=(1, 2))
    usable &= np.isfinite(g).all(axis=1)
    usable &= matrix.sum(axis=2).max(axis=1) < MAX_CONTRACTION_NORM
    solution = np.full_like(g, np.inf)
    if not usable.any():
        return solution
    usable_matrix, right = matrix[usable], g[usable]
    s: Array = right.copy()
    try:
        right_sides = (right * (1 + 1e-9) + 1e-300)[:, :, None]
        s = np.linalg.solve(np.eye(size) - usable_matrix, right_sides)[:, :, 0].astype(float)
    except np.linalg.LinAlgError:
        # One of the matrices is singular: an iteration identifies it.
        for _ in range(200):
            s = (right + _product(usable_matrix, s)) * (1 + 1e-9)
    confirmed: BoolArray = np.all(s > 0, axis=1)
    confirmed &= ((right + _product(usable_matrix, s)) * ROUNDING_MARGIN <= s).all(axis=1)
    solution[usable] = np.where(confirmed[:, None], s, np.inf)
    return solution
