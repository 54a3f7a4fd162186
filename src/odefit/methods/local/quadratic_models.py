"""Quadratic models of a cost at a point, and their minima within bounds and a trust radius.

Bounds are part of the step: a component that would leave its interval stops at the bound, and the
rest of the step is computed again with that component held. The damping is found from the trust
radius (J. J. More, The Levenberg-Marquardt algorithm, 1978).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from functools import cached_property
from typing import NamedTuple

import numpy as np

from odefit.common.arrays import Array, BoolArray
from odefit.methods.local.decompositions import singular_value_decomposition

MAX_ACTIVE_SET_CHANGES = 3  # changes of the set of held components in a step, for each component
ONE_BY_ONE = 4000  # changes times components above which all change at once
BLOCKS = 3  # such changes without progress before a single change
MAX_NEWTON_STEPS = 60  # largest number of steps for the damping of a trust radius
ONE = np.ones((1, 1))  # singular vectors of a number


class Region(NamedTuple):
    """A point, the weights of unknowns in a trust radius around it, and bounds, shape (n,) each."""

    weight: Array
    x: Array
    lower: Array
    upper: Array


class BoundedModel(ABC):
    """A quadratic model g'd + d'Hd/2 of a cost around a point, in scaled variables, with bounds."""

    def __init__(self, gradient: Array, region: Region) -> None:
        self._weight = region.weight
        self._gradient = gradient
        self._low = region.lower - region.x
        self._high = region.upper - region.x
        at_low = (self._low >= 0) & (gradient > 0)
        at_high = (self._high <= 0) & (gradient < 0)
        self._free = ~(at_low | at_high)
        self._all_free = bool(self._free.all())
        self._solvers: dict[bytes, _Damped | _Shifted] = {}
        # The step without a radius and its length, if no bound holds it.
        self._whole: tuple[Array, float] | None = None
        self._last: tuple[BoolArray, _Damped | _Shifted, float] | None = None

    @abstractmethod
    def decrease(self, d: Array) -> float:
        """Return the decrease of the model along the step `d`."""

    @cached_property
    def promised(self) -> float:
        """The decrease of the model from the point to its minimum within the bounds."""
        return self.decrease(self.step(math.inf))

    def promises(self, decrease: float) -> bool:
        """Return whether the model within the bounds falls by at least `decrease`.

        Usually the projected gradient suffices, which takes far less time than the minimum.
        """
        cauchy = self._cauchy_step()
        if cauchy is not None and self.decrease(cauchy) > decrease:
            return True
        return not self.promised <= decrease  # an overflowing value cannot be called small

    def _cauchy_step(self) -> Array | None:
        """Return the step to the minimum of the model along the gradient, cut off at the bounds.

        Returns None if the model has no minimum along it.
        """
        downhill = np.where(self._free, -self._gradient / self._weight, 0.0)
        square = float(downhill @ downhill)
        d = downhill / self._weight
        bend = 2.0 * (square - self.decrease(d))
        if not 0.0 < bend < math.inf:
            return None
        return within(square / bend * d, self._low, self._high)

    @abstractmethod
    def _made(self, free: BoolArray) -> _Damped | _Shifted:
        """Return the solver for the free components."""

    @abstractmethod
    def _right_side(self, scaled: Array, free: BoolArray) -> Array:
        """Return the right-hand side for the free components, with the others held at a step."""

    @abstractmethod
    def _slope(self, scaled: Array) -> Array:
        """Return the gradient of the model, in scaled variables, at a scaled step."""

    @property
    @abstractmethod
    def _slack(self) -> float:
        """Largest slope that may be rounding."""

    def step(self, radius: float) -> Array:
        """Return the step to the minimum of the model within the radius and the bounds.

        In this active set method, components that would leave their intervals stop at the bounds,
        and the rest is computed again. A component is released if the model then falls on the way
        back. Each change needs a decomposition. With many components, all on a wrong side soon
        change at once (block pivoting; J. Kim and H. Park, SIAM J. Sci. Comput. 33, 2011, 3261).
        """
        if self._whole is not None and self._whole[1] <= radius:
            self._last = (self._free, self._solver(self._free), 0.0)
            return self._whole[0]
        held = np.zeros(len(self._weight))
        if self._all_free:
            # Usually no bound limits the step.
            whole = self._solver(self._free)
            rhs = self._right_side(held, self._free)
            damping = whole.damping(rhs, radius)
            d = whole.solve(rhs, damping) / self._weight
            if not ((d < self._low) | (d > self._high)).any() and self.decrease(d) > 0:
                self._last = (self._free, whole, damping)
                if math.isinf(radius):
                    self._whole = d, norm(d * self._weight)
                return d
        free = self._free.copy()
        best, most = held, 0.0
        fewest, left = len(held) + 1, BLOCKS
        for change in range(MAX_ACTIVE_SET_CHANGES * len(held) + 1):
            d, solver, damping = self._solved(free, held, radius)
            if solver is not None:
                out = free & ((d < self._low) | (d > self._high))
                if change * len(held) >= ONE_BY_ONE and left > 0:
                    inside = within(d, self._low, self._high)
                    if (decrease := self.decrease(inside)) > most:
                        best, most = inside, decrease
                    inward = self._inward(d, free, solver, damping) > self._slack
                    if (count := int(out.sum() + inward.sum())) == 0:
                        self._last = (free.copy(), solver, damping)
                        break
                    fewest, left = (count, BLOCKS) if count < fewest else (fewest, left - 1)
                    held = np.where(out, inside, np.where(inward, 0.0, held))
                    free = (free & ~out) | inward
                    continue
                if out.any():
                    # Hold the component that would leave its interval first.
                    with np.errstate(divide="ignore", invalid="ignore"):
                        room = np.where(d > 0, self._high / d, self._low / d)
                    first = int(np.argmin(np.where(out, room, math.inf)))
                    held[first] = self._high[first] if d[first] > 0 else self._low[first]
                    free[first] = False
                    continue
                self._last = (free.copy(), solver, damping)
            d = within(d, self._low, self._high)
            decrease = self.decrease(d)
            if decrease > most:
                best, most = d, decrease
            wrong = None if free.all() else self._wrong(d, free, solver, damping)
            if wrong is None:
                if math.isinf(radius) and best is d and free.all():
                    self._whole = d, norm(d * self._weight)
                break
            free[wrong], held[wrong] = True, 0.0
        return best

    def _solved(
        self, free: BoolArray, held: Array, radius: float
    ) -> tuple[Array, _Damped | _Shifted | None, float]:
        """Return the step with some components held; without a solver if none is free."""
        scaled = held * self._weight
        left = radius**2 - float(np.sum(scaled**2))
        d = held.copy()
        if not free.any() or left <= 0:
            return d, None, 0.0
        solver = self._solver(free)
        rhs = self._right_side(scaled, free)
        damping = solver.damping(rhs, math.sqrt(left))
        d[free] = solver.solve(rhs, damping) / self._weight[free]
        return d, solver, damping

    def _solver(self, free: BoolArray) -> _Damped | _Shifted:
        """Return the decomposition for the free components, which serves every radius."""
        key = free.tobytes()
        if key not in self._solvers:
            self._solvers[key] = self._made(free)
        return self._solvers[key]

    def _wrong(
        self, d: Array, free: BoolArray, solver: _Damped | _Shifted | None, damping: float
    ) -> int | None:
        """Return the held component whose release lowers the model most, if any."""
        inward = self._inward(d, free, solver, damping)
        worst = int(np.argmax(inward)) if len(inward) else 0
        return worst if len(inward) and inward[worst] > self._slack else None

    def _inward(
        self, d: Array, free: BoolArray, solver: _Damped | _Shifted | None, damping: float
    ) -> Array:
        """Return the decrease of the model as each held component leaves its bound, shape (n,)."""
        scaled = d * self._weight
        slope = self._slope(scaled)
        if solver is not None:
            slope = slope + solver.drawn(damping, scaled)
        inward = np.where(d <= self._low, -slope, 0.0)
        inward = np.where(d >= self._high, np.maximum(inward, slope), inward)
        # A component that cannot move at all stays.
        inward[free | (self._high <= self._low)] = 0.0
        return np.asarray(inward)


class GaussNewtonModel(BoundedModel):
    """The Gauss-Newton (Fisher) model: the gradient is J'r, the Hessian J'J."""

    def __init__(self, residuals: Array, jacobian: Array, region: Region) -> None:
        super().__init__(jacobian.T @ residuals, region)
        # One QR factorisation serves every radius and every set of held components.
        self._q, self._r = _factorised(jacobian / region.weight)
        self._rhs = self._q.T @ residuals

    def decrease(self, d: Array) -> float:
        """Return the decrease of the model along the step `d`."""
        jd = self._r @ (d * self._weight)
        return float(-(self._gradient @ d) - 0.5 * (jd @ jd))

    def acceleration(self, curvature: Array) -> Array:
        """Return half the step that cancels the residuals' `curvature` along the last step."""
        bend = np.zeros(len(self._weight))
        if self._last is not None:
            free, solver, damping = self._last
            answer = solver.solve(self._q.T @ curvature, damping)
            bend[free] = 0.5 * answer / self._weight[free]
        return bend

    def _made(self, free: BoolArray) -> _Damped | _Shifted:
        return _Damped(self._r[:, free])

    def _right_side(self, scaled: Array, free: BoolArray) -> Array:
        return self._rhs if free.all() else self._rhs + self._r @ scaled

    def _slope(self, scaled: Array) -> Array:
        return np.asarray(self._r.T @ (self._r @ scaled + self._rhs))

    @property
    def _slack(self) -> float:
        return 1e-12 * norm(self._rhs)


class SecondOrderModel(BoundedModel):
    """A model with an estimate of the second-order part of the Hessian, which may be indefinite."""

    def __init__(self, gradient: Array, hessian: Array, region: Region) -> None:
        super().__init__(gradient, region)
        self._hessian = hessian / np.outer(region.weight, region.weight)
        self._scaled = gradient / region.weight

    def decrease(self, d: Array) -> float:
        """Return the decrease of the model along the step `d`."""
        scaled = d * self._weight
        return float(-(self._scaled @ scaled) - 0.5 * (scaled @ (self._hessian @ scaled)))

    def _made(self, free: BoolArray) -> _Damped | _Shifted:
        return _Shifted(self._hessian[np.ix_(free, free)])

    def _right_side(self, scaled: Array, free: BoolArray) -> Array:
        return np.asarray(self._slope(scaled)[free])

    def _slope(self, scaled: Array) -> Array:
        return np.asarray(self._scaled + self._hessian @ scaled)

    @property
    def _slack(self) -> float:
        return 1e-12 * norm(self._scaled)


class _Damped:
    """The minimum of |a y + b|^2 + damping |y|^2, by the singular value decomposition of a.

    Singular values are squared in their own unit, and steps in that of the radius. Both units are
    powers of two, so that squares neither overflow nor vanish, whatever the units of the residuals;
    otherwise no bit changes.
    """

    def __init__(self, a: Array) -> None:
        if a.shape == (1, 1):
            size = float(a[0, 0])
            self._u, self._s, self._vt = ONE, np.array([abs(size)]), ONE if size > 0 else -ONE
        else:
            self._u, self._s, self._vt = singular_value_decomposition(a)
        if len(self._s) and not self._s[-1] > 1e-15 * self._s[0]:
            keep = self._s > 1e-15 * self._s[0]
            self._u, self._s, self._vt = self._u[:, keep], self._s[keep], self._vt[keep]
        self._unit = _unit(self._s)
        self._s = self._s / self._unit

    def solve(self, b: Array, damping: float) -> Array:
        """Return the minimiser y for this damping."""
        s = self._s
        y = s * (self._u.T @ b / self._unit) / (s * s + damping)
        return np.asarray(-(self._vt.T @ y))

    def damping(self, b: Array, radius: float) -> float:
        """Return the damping for which |y| is `radius` to a tenth; 0 if |y| is less without it."""
        if not math.isfinite(radius):
            return 0.0
        if not radius > 0.0:
            return math.inf
        s = self._s
        radius, unit = _in_own_unit(radius, self._unit)
        c = s * (self._u.T @ b / unit)
        if norm(c / (s * s)) <= radius:
            return 0.0
        return _damping(s * s, c, radius, 0.0, _safe_norm(c) / radius)

    def drawn(self, damping: float, y: Array) -> Array:
        """Return half the gradient of the term damping |y|^2."""
        return damping * y * self._unit * self._unit


class _Shifted:
    """The minimum of y'Hy/2 + b'y + damping |y|^2/2, by the eigenvalues of a symmetric H.

    The units of H and b are powers of two, as in :class:`_Damped`.
    """

    def __init__(self, hessian: Array) -> None:
        values, self._vectors = np.linalg.eigh(hessian)
        self._unit = _unit(values)
        self._values = values / self._unit

    def solve(self, b: Array, damping: float) -> Array:
        """Return the minimiser y for a damping above minus the lowest eigenvalue."""
        shifted = self._values + damping
        return np.asarray(-(self._vectors @ ((self._vectors.T @ b / self._unit) / shifted)))

    def damping(self, b: Array, radius: float) -> float:
        """Return the damping for which |y| is `radius` to a tenth; 0 if it is less without damping.

        If the lowest eigenvalues are not positive, the damping makes them so. In the hard case,
        with no gradient along their vectors, y stays shorter than the radius.
        """
        values, c = self._values, self._vectors.T @ b
        radius, unit = _in_own_unit(radius, self._unit)
        c = c / unit
        least = max(1e-15 * float(np.abs(values).max(initial=0.0)), 1e-300)
        bottom = max(0.0, least - float(values[0]))
        if bottom == 0.0 and norm(c / values) <= radius:
            return 0.0
        return _damping(values, c, radius, bottom, bottom + _safe_norm(c) / radius)

    def drawn(self, damping: float, y: Array) -> Array:
        """Return the gradient of damping |y|^2/2."""
        return damping * y * self._unit


def _damping(values: Array, c: Array, radius: float, low: float, high: float) -> float:
    """Return the damping between `low` and `high` for which |c / (values + damping)| is `radius`.

    Newton's method on the secular equation 1/|y(damping)| = 1/radius, safeguarded, to a tenth.
    """
    damping = low + 1e-3 * (high - low)
    for _ in range(MAX_NEWTON_STEPS):
        y = c / (values + damping)
        length = norm(y)
        if abs(length - radius) <= 0.1 * radius:
            break
        if length > radius:
            low = damping
        else:
            high = damping
        slope = -float(np.sum(y * y / (values + damping))) / max(length, 1e-300)
        damping -= (length / radius) * (length - radius) / min(slope, -1e-300)
        if not low < damping < high:
            damping = math.sqrt(low * high) if low > 0 else 0.1 * high
    return damping


def _unit(values: Array) -> float:
    """Return the power of two below the largest of some values; 1 if it is zero or not finite."""
    largest = float(np.abs(values).max(initial=0.0))
    if not 0.0 < largest < math.inf:
        return 1.0
    return math.ldexp(1.0, math.frexp(largest)[1] - 1)


def _in_own_unit(radius: float, unit: float) -> tuple[float, float]:
    """Return a radius in its own unit, and that unit times another one; both are powers of two."""
    if not 0.0 < radius < math.inf:
        return radius, unit
    fraction, exponent = math.frexp(radius)
    both = exponent + math.frexp(unit)[1] - 1
    return fraction, math.ldexp(1.0, min(max(both, -1000), 1000))


def _safe_norm(vector: Array) -> float:
    """Return the Euclidean norm of a vector whose squares may overflow."""
    unit = _unit(vector)
    return norm(vector / unit) * unit


def _factorised(matrix: Array) -> tuple[Array, Array]:
    """Return the QR factors of a matrix, without LAPACK for one column, where it takes longer."""
    if matrix.shape[1] == 1:
        length = norm(matrix[:, 0])
        if 0 < length < math.inf:
            return matrix / length, np.array([[length]])
    return np.linalg.qr(matrix)


def norm(vector: Array) -> float:
    """Return the Euclidean norm, faster than NumPy's function for short vectors."""
    return math.sqrt(vector @ vector)


def within(vector: Array, lower: Array, upper: Array) -> Array:
    """Return a vector clipped to bounds, faster than NumPy's function for few components."""
    return np.minimum(np.maximum(vector, lower), upper)


def column_norms(matrix: Array) -> Array:
    """Return the norms of the columns of a matrix."""
    return np.asarray(np.sqrt(np.einsum("ij,ij->j", matrix, matrix)))
