"""The Local Linearization integrator, many trajectories at once.

After section 3.1 of the paper on multiple shooting with local linearization. Over a step the
field is replaced by its linearisation in states and time, and the linear problem is solved
exactly by one block exponential: of order 2 in the states, equation (25), exact where the field
is linear, and stable however stiff it is (A-stable). The sensitivities, equations (26) and (27),
have the field's derivatives frozen over the step, and need nothing but more columns in the same
exponential: of order 1.

With ``order=3`` both are corrected by what the linearisation has left out at the end of the
step. That defect is the error estimate of the step anyway. The states are then of order 3, the
sensitivities of order 2, at the price of one more evaluation of the field.

Every trajectory has its own time, step and list of times to hit, a lane; all lanes take one step
at a time together, in NumPy.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Literal

import numpy as np
import numpy.typing as npt

from odefit.problem.arrays import Array, BoolArray
from odefit.problem.errors import InputError
from odefit.problem.vector_field import Structure, VectorField
from odefit.simulation.engine import Broken, Bundle, Leg, Path, Seed, Stop, Stretches
from odefit.simulation.exponentials import phi_product
from odefit.simulation.linearization import Linearization, Tangent, driven, mixed

Order = Literal[2, 3]

SAFETY, SHRINK, GROW = 0.9, 0.2, 5.0
"""Of the step controller: aim below the tolerance; least and largest change of a step."""

GENTLE = 0.5
"""Norm of hJ up to which the estimate of the error needs no linear system."""

ROUNDING = 4e-16
"""A step shorter than this, relative to the time and to the stretch, leads nowhere."""

ESCAPED, ABRUPT = 1e6, 1e-8
"""A blow-up is recognised where the states have grown by the first factor and double within the
second fraction of the time so far: following it to the largest number would take ten times as
many steps."""

UNBOUNDED = "the solution grows without bound or is not defined"
UNDEFINED = "the right-hand side or its derivatives are not finite"


@dataclass(eq=False)
class _Front:
    """Where the active lanes stand, one entry for each.

    Attributes
    ----------
    lane
        Their numbers in the bundle.
    target, last
        The next and the last time to hit, as indices into the times of all grids.
    step
        Proposed.
    shrunk
        Whether the last attempt failed: the next step must not grow.
    size
        Of each state at the start of its stretch.
    largest
        Of all of them.
    """

    lane: npt.NDArray[np.intp]
    target: npt.NDArray[np.intp]
    last: npt.NDArray[np.intp]
    time: Array
    start: Array
    states: Array
    sensitivities: Array
    step: Array
    shrunk: BoolArray
    size: Array
    largest: Array
    polynomials: Array

    def keep(self, lanes: BoolArray) -> None:
        for f in fields(self):
            setattr(self, f.name, getattr(self, f.name)[lanes])


class LocalLinearizationLanes:
    """Adaptive Local Linearization of many stretches at once.

    Parameters
    ----------
    field
        Without algebraic variables that have to be solved for; kinks are allowed.
    structure
        Which sensitivities are wanted. They do not take part in the error control.
    relative
        Tolerance for the error of a step, on the largest component.
    absolute
        The same in units of each state's size at the start of its stretch.
    order
        2 as published, or 3: see the module.
    step
        Fixed steps of this length, without error control, to measure orders.

    Raises
    ------
    InputError
        The field has algebraic equations.
    """

    name = "local-linearization"

    def __init__(
        self,
        field: VectorField,
        structure: Structure,
        relative: float,
        absolute: float,
        *,
        order: Order = 2,
        step: float | None = None,
    ) -> None:
        if field.algebraic:
            raise InputError(
                "the local-linearization engine cannot solve algebraic equations; "
                "use engine='casadi'"
            )
        self._field = field
        self._n, self._m = len(field.states), structure.directions
        self._active = np.array(sorted({j for j, _ in structure.entries}), dtype=np.intp)
        self._timed = driven(field)
        self._relative, self._absolute = relative, absolute
        self._coarse = relative ** (2 / 3)
        self._order, self._fixed = order, step

    def bundle(self, stretches: Stretches, max_steps: int) -> Bundle | Broken:
        """See :class:`odefit.simulation.engine.Lanes`."""
        return self.march(stretches, max_steps)

    def march(
        self,
        stretches: Stretches,
        max_steps: int,
        renew: Callable[[Array, Array], Array] | None = None,
    ) -> Bundle | Broken:
        """The bundle, with `renew` called after every sweep of steps.

        `renew` gets the times and sensitivities of all active lanes, shapes (k,) and (k, n, m),
        and says with which sensitivities to go on: the Lyapunov exponents orthonormalise them.
        """
        with np.errstate(all="ignore"):
            return self._march(stretches, max_steps, renew)

    def _march(
        self,
        stretches: Stretches,
        max_steps: int,
        renew: Callable[[Array, Array], Array] | None,
    ) -> Bundle | Broken:
        count = len(stretches.starts)
        targets = np.concatenate([np.zeros(0), *stretches.grids])
        bundle = Bundle(
            np.empty((len(targets), self._n)),
            np.empty((len(targets), self._n, self._m)),
            np.zeros(count, dtype=np.intp),
        )
        linear = Linearization(
            self._field, self._active, stretches.scalars, stretches.scalar_sensitivities
        )
        front = self._front(stretches)
        tangent = linear.tangent(front.time, front.states, front.polynomials)
        wrong = np.flatnonzero(~tangent.finite)
        if len(wrong):
            return Broken(int(wrong[0]), Stop(float(front.time[wrong[0]]), UNDEFINED))
        front.step = self._first_steps(front, tangent, targets, linear)
        while len(front.lane):
            passed, tangent = self._sweep(front, tangent, targets, linear)
            if renew is not None:
                front.sensitivities = renew(front.time, front.sensitivities)
            bundle.steps[front.lane] += 1
            if passed.any():
                rows = front.target[passed]
                bundle.states[rows] = front.states[passed]
                bundle.sensitivities[rows] = front.sensitivities[passed]
                front.target = front.target + passed
                going = front.target < front.last
                if not going.all():
                    front.keep(going)
                    tangent = tangent.take(going)
            broken = self._broken(front, tangent, targets, bundle.steps, max_steps)
            if broken is not None:
                return broken
        return bundle

    def _front(self, stretches: Stretches) -> _Front:
        count = len(stretches.starts)
        ends = np.cumsum([len(grid) for grid in stretches.grids], dtype=np.intp)
        sensitivities = np.broadcast_to(
            stretches.sensitivities, (count, *stretches.sensitivities.shape)
        )
        return _Front(
            np.arange(count),
            np.concatenate([np.zeros(1, dtype=np.intp), ends[:-1]])[:count],
            ends,
            np.array(stretches.starts, dtype=float),
            np.array(stretches.starts, dtype=float),
            np.array(stretches.states, dtype=float),
            sensitivities.copy(),
            np.zeros(count),
            np.zeros(count, dtype=bool),
            _sizes(stretches.states),
            np.abs(stretches.states).max(axis=1, initial=1e-300),
            stretches.polynomials,
        )

    def _sweep(
        self, front: _Front, tangent: Tangent, targets: Array, linear: Linearization
    ) -> tuple[BoolArray, Tangent]:
        """One step in every lane: which of them hit their target, and the tangents from now on."""
        goal = targets[front.target]
        left = goal - front.time
        if self._fixed is None:
            hits = front.step >= left
            # Two steps of equal length rather than a tiny one at the end.
            h = np.where(hits, left, np.minimum(front.step, 0.5 * np.maximum(left, front.step)))
        else:
            hits = left <= self._fixed * (1 + 1e-9)
            h = np.where(hits, left, self._fixed)
        time = np.where(hits, goal, front.time + h)
        dx, dS = self._increments(tangent, h, front.sensitivities)
        states, sensitivities = front.states + dx, front.sensitivities + dS
        hJ = tangent.jacobian * h[:, None, None]
        then: Tangent | None = None
        if self._order == 2:
            then = linear.tangent(time, states, front.polynomials)
            slopes = then.slopes
        else:
            slopes = linear.slopes(time, states, front.polynomials)
        defect = slopes - tangent.slopes - _times(tangent.jacobian, dx) - h[:, None] * tangent.drift
        error = damped(hJ, (h[:, None] * defect)[:, :, None] / 3)[:, :, 0]
        size = np.maximum(np.abs(front.states), np.abs(states))
        scaled = np.abs(error) / (self._absolute * front.size + self._relative * size)
        ratio = scaled.max(axis=1, initial=0.0)
        if then is None:
            states = states + error
            then = linear.tangent(time, states, front.polynomials)
            if self._m:
                missed = (then.jacobian - tangent.jacobian) @ sensitivities
                missed += then.forcing - tangent.forcing
                correction = damped(hJ, missed * (0.5 * h[:, None, None]))
                sensitivities += correction
                size = np.maximum(np.abs(sensitivities), (front.size + size)[:, :, None])
                scaled = (np.abs(correction) / (self._coarse * size)).max(axis=(1, 2))
                ratio = np.maximum(ratio, scaled**1.5)
        finite = then.finite & np.isfinite(ratio)
        good = finite & ((ratio <= 1.0) | (self._fixed is not None))
        factor = np.clip(SAFETY * ratio ** (-1 / 3), SHRINK, GROW)
        factor = np.where(finite, np.where(front.shrunk, np.minimum(factor, 1.0), factor), SHRINK)
        proposed = h * factor
        # A step cut short by a target says nothing against the longer one proposed before.
        keep = good & ~front.shrunk & (h < front.step)
        front.step = np.where(keep, np.maximum(proposed, front.step), proposed)
        front.shrunk = ~good
        if good.all():
            front.time, front.states, front.sensitivities = time, states, sensitivities
            return hits, then
        front.time = np.where(good, time, front.time)
        front.states = mixed(good, states, front.states)
        front.sensitivities = mixed(good, sensitivities, front.sensitivities)
        return hits & good, then.mixed(good, tangent)

    def _increments(self, tangent: Tangent, h: Array, S: Array) -> tuple[Array, Array]:
        """Of states and sensitivities over a step, by one exponential.

        As x' = f + J (x - x0) + f_t (t - t0), (x, t) is a linear problem with constant
        coefficients, whose increment is h phi(h A) applied to its slope, A = [[J, f_t], [0, 0]];
        so are the sensitivities with the slope J S + f_p P.
        """
        n, m = self._n, self._m
        wide = n + 1 if self._timed else n
        A = np.zeros((len(h), wide, wide))
        R = np.zeros((len(h), wide, 1 + m))
        step = h[:, None, None]
        np.multiply(tangent.jacobian, step, out=A[:, :n, :n])
        np.multiply(tangent.slopes, h[:, None], out=R[:, :n, 0])
        if m:
            R[:, :n, 1:] = (tangent.jacobian @ S + tangent.forcing) * step
        if self._timed:
            drift = tangent.drift * h[:, None]
            # In a unit of time in which f_t is as large as J: it must not cost squarings.
            size = np.abs(drift).sum(axis=1)
            unit = np.maximum(np.abs(A).sum(axis=1).max(axis=1), 1e-2) / size
            unit[~np.isfinite(unit)] = 1.0
            A[:, :n, n] = drift * unit[:, None]
            R[:, n, 0] = h / unit
        found = phi_product(A, R)
        return found[:, :n, 0], found[:, :n, 1:]

    def _first_steps(
        self, front: _Front, tangent: Tangent, targets: Array, linear: Linearization
    ) -> Array:
        """Steps to begin with: the defect is measured a hundredth of the states' change ahead."""
        span = targets[front.last - 1] - front.time
        if self._fixed is not None:
            return np.full(len(span), self._fixed)
        size = np.abs(front.states) + front.size
        speed = (np.abs(tangent.slopes) / size).max(axis=1, initial=0.0)
        probe = np.minimum(0.01 / np.maximum(speed, 1e-300), 0.01 * span)
        h = probe[:, None]
        second = _times(tangent.jacobian, tangent.slopes) + tangent.drift
        states = front.states + h * tangent.slopes
        slopes = linear.slopes(front.time + probe, states, front.polynomials)
        defect = np.abs(slopes - tangent.slopes - h * second)
        scale = self._absolute * front.size + self._relative * np.abs(front.states)
        curvature = (defect / scale).max(axis=1, initial=0.0) / probe**2
        step = SAFETY * (3.0 / curvature) ** (1 / 3)
        return np.asarray(np.where(np.isfinite(curvature), np.minimum(step, span), probe))

    def _broken(
        self,
        front: _Front,
        tangent: Tangent,
        targets: Array,
        steps: npt.NDArray[np.intp],
        max_steps: int,
    ) -> Broken | None:
        """The first of the active lanes that cannot go on."""
        elapsed = front.time - front.start
        largest = np.abs(front.states).max(axis=1, initial=0.0)
        speed = np.abs(tangent.slopes).max(axis=1, initial=0.0)
        lost = (largest > ESCAPED * front.largest) & (largest < ABRUPT * elapsed * speed)
        if front.shrunk.any():
            ends = targets[front.last - 1]
            least = ROUNDING * np.maximum(np.abs(front.time), 1e-3 * (ends - front.start))
            left = targets[front.target] - front.time
            lost |= front.shrunk & (front.step <= least) & (front.step < left)
        late = steps[front.lane] >= max_steps
        wrong = np.flatnonzero(lost | late)
        if not len(wrong):
            return None
        i = wrong[0]
        lane, time, taken = int(front.lane[i]), float(front.time[i]), int(steps[front.lane[i]])
        if lost[i]:
            return Broken(lane, Stop(time, UNBOUNDED, steps=taken))
        ahead = float((targets[front.last[i] - 1] - time) / front.step[i])
        reason = f"more than {taken} steps are needed"
        return Broken(lane, Stop(time, reason, True, taken, ahead))


class LocalLinearizationEngine:
    """Local Linearization of one trajectory after the other.

    Parameters
    ----------
    field, structure, relative, absolute, order
        As for :class:`LocalLinearizationLanes`.

    Raises
    ------
    InputError
        The field has algebraic equations.
    """

    name = "local-linearization"

    def __init__(
        self,
        field: VectorField,
        structure: Structure,
        relative: float,
        absolute: float,
        *,
        order: Order = 2,
    ) -> None:
        self._lanes = LocalLinearizationLanes(field, structure, relative, absolute, order=order)

    def integrate(self, leg: Leg, seed: Seed, max_steps: int) -> Path | Stop:
        """See :class:`odefit.simulation.engine.Engine`."""
        states, sensitivities = seed.states, seed.sensitivities
        rows: list[Array] = []
        columns: list[Array] = []
        steps = 0
        for start, times, polynomials, wanted in leg.stretches:
            stretch = Stretches(
                np.array([start]),
                [times],
                polynomials[None],
                states[None],
                seed.scalars,
                sensitivities,
                seed.scalar_sensitivities,
            )
            found = self._lanes.bundle(stretch, max(max_steps - steps, 1))
            if isinstance(found, Broken):
                stop = found.stop
                return Stop(
                    stop.time, stop.reason, stop.out_of_steps, stop.steps + steps, stop.ahead
                )
            steps += int(found.steps[0])
            states, sensitivities = found.states[-1], found.sensitivities[-1]
            count = len(times) if wanted else len(times) - 1
            rows.append(found.states[:count])
            columns.append(found.sensitivities[:count])
        values = np.concatenate(rows)
        count, m = len(values), sensitivities.shape[1]
        return Path(
            values, np.concatenate(columns), np.zeros((count, 0)), np.zeros((count, 0, m)), steps
        )


def damped(hJ: Array, columns: Array) -> Array:
    """About (1 - hJ/4)^-1 applied to columns, shapes (k, n, n) and (k, n, c).

    6 phi_3(z) = 1 + z/4 + z^2/20 + ... turns a third of h times the defect at the end of a step,
    which grows quadratically over it, into its effect on the states. For large hJ the inverse
    damps it as phi_3 does: stiff components do not count for more than they are.
    """
    gentle = np.abs(hJ).sum(axis=1).max(axis=1, initial=0.0) <= GENTLE
    if gentle.all():
        first = hJ @ columns
        return np.asarray(columns + first / 4 + (hJ @ first) / 20)
    found = np.empty_like(columns)
    if gentle.any():
        found[gentle] = damped(hJ[gentle], columns[gentle])
    stiff = ~gentle
    matrices = np.eye(hJ.shape[1]) - hJ[stiff] / 4
    usable = np.isfinite(matrices).all(axis=(1, 2))
    matrices[~usable] = np.eye(hJ.shape[1])
    try:
        solved = np.linalg.solve(matrices, columns[stiff])
    except np.linalg.LinAlgError:  # an eigenvalue of hJ is 4: growth, which wants no damping
        solved = columns[stiff]
    solved[~usable] = np.nan
    found[stiff] = solved
    return found


def _sizes(states: Array) -> Array:
    """What the absolute tolerance of each state is measured in, shape (k, n).

    Its own value at the start; where that is zero the smallest of the others; at least a
    millionth of the largest, so that a state that starts next to zero does not ask for more
    digits than there are; 1 where all are zero.
    """
    size = np.abs(states)
    largest = size.max(axis=1, keepdims=True, initial=0.0)
    smallest = np.where(size > 0, size, np.inf).min(axis=1, keepdims=True, initial=np.inf)
    found = np.maximum(np.where(size > 0, size, smallest), 1e-6 * largest)
    return np.asarray(np.where(largest > 0, found, 1.0))


def _times(matrices: Array, vectors: Array) -> Array:
    return np.asarray((matrices @ vectors[:, :, None])[:, :, 0])
