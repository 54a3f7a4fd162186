"""Solutions over whole boxes of unknowns in compiled code, one box after the other.

The steps are chosen as in :mod:`odefit.enclosure.flow`, and give the same bounds to within
rounding. A box takes some hundredths of the time that NumPy needs for a batch of few boxes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from odefit.common.arrays import Array, BoolArray, IntArray
from odefit.enclosure.arithmetic.taylor_models import TaylorModel
from odefit.enclosure.error_propagation import ErrorBound
from odefit.enclosure.flow import MAX_STEPS, MAX_UNCONFIRMED, SHORTEST_STEP, Flow, StepControl
from odefit.enclosure.kernels.compiling import called_from_python, rigorous
from odefit.enclosure.kernels.programs import PlacedProgram, is_compiled, placed
from odefit.enclosure.kernels.propagation import put_dependent, without
from odefit.enclosure.kernels.step import (
    Equations,
    error_at_end,
    polynomials,
    put_constants,
    workspace,
)
from odefit.enclosure.state_enclosure import StateEnclosure
from odefit.enclosure.system import Mode
from odefit.enclosure.taylor_step import HOPED_GROWTH, JACOBIAN_ORDERS, StepMethod, dependent
from odefit.simulation.engines.cut_off import count_work

PER_STEP, PER_PRODUCT = 600, 0.1
"""Numbers of operations (:mod:`odefit.simulation.engines.cut_off`) of a step, and of each product
of two coefficients in its polynomials."""


class _Boxes(NamedTuple):
    """The states of B boxes, which the kernel updates.

    Coefficients c have shape (B, n, M); `unknown` (B, n); the others are an error bound and a step
    control.
    """

    c: Array
    unknown: BoolArray
    sizes: Array
    frame: Array
    lengths: Array
    steps: Array
    tried: Array
    stability_cost: Array


class _Constants(NamedTuple):
    """The constants of the right-hand sides and of the Jacobian, by box."""

    rates: Array
    rates_remainder: Array
    jacobian: Array
    jacobian_remainder: Array


@rigorous
def _add(states: BoolArray, others: BoolArray) -> None:
    """Add states to a set of states, both of shape (n,)."""
    for i in range(len(states)):
        states[i] |= others[i]


@rigorous
def _fewer(states: BoolArray, others: BoolArray) -> int:
    """Return the number of states that are in one set and not in another."""
    count = 0
    for i in range(len(states)):
        count += states[i] and not others[i]
    return count


@called_from_python
def _advance(
    equations: Equations, boxes: _Boxes, constants: _Constants, begin: float, end: float
) -> int:
    """Follow all boxes from one time to another; return the number of steps tried."""
    count, n, m = boxes.c.shape
    rates_space = workspace(equations.rates, equations.order)
    jacobian_space = workspace(equations.jacobian, equations.jacobian_orders)
    t = np.zeros((n, m, equations.order))
    defect, truncation = np.zeros(n), np.zeros(n)
    span = end - begin
    spacing = np.nextafter(max(abs(begin), abs(end)), np.inf) - max(abs(begin), abs(end))
    shortest = max(SHORTEST_STEP * span, 4 * spacing)
    steps = 0
    for b in range(count):
        put_constants(
            equations.rates, rates_space, constants.rates[b], constants.rates_remainder[b]
        )
        put_constants(
            equations.jacobian,
            jacobian_space,
            constants.jacobian[b],
            constants.jacobian_remainder[b],
        )
        unknown = boxes.unknown[b].copy()
        sizes, frame, lengths = (
            boxes.sizes[b].copy(),
            boxes.frame[b].copy(),
            boxes.lengths[b].copy(),
        )
        size, tried = boxes.steps[b], boxes.tried[b]
        now = end if unknown.all() else begin
        while now < end:
            left = end - now
            remaining = np.ceil(left / size - 1e-9)
            stop = min(end, max(now + left / max(remaining, 1.0), np.nextafter(now, np.inf)))
            if remaining <= 1:
                stop = end
            h = stop - now
            steps += 1
            polynomials(equations, rates_space, boxes.c[b], unknown, now, h, t, defect, truncation)
            step = error_at_end(
                equations, jacobian_space, t, defect, unknown, sizes, frame, lengths, now, h
            )
            exact, accurate, nothing = True, True, True
            too_long, limiting, given_up = step.too_long, step.limiting, step.unknown.copy()
            for i in range(n):
                allowed = equations.tolerance[i] * (h / span)
                coarse = np.isfinite(truncation[i]) and truncation[i] > max(
                    allowed, 0.05 * defect[i]
                )
                too_long[i] = (too_long[i] or coarse) and not unknown[i]
                accurate &= not too_long[i]
                nothing &= step.unknown[i]
                if not truncation[i] <= 0.02 * allowed:
                    exact = False
                    limiting[i] = True
            cost = boxes.stability_cost[b] if exact and not step.easy and not nothing else 1.0
            cost *= equations.step_cost
            tried += MAX_STEPS / MAX_UNCONFIRMED if step.unconfirmed else cost
            # Steps of this size would be too many, which is better detected now.
            ahead = tried + cost * (end - stop) / (HOPED_GROWTH * h)
            exhausted = ahead > MAX_STEPS
            if not (accurate or h <= shortest or exhausted):
                size = h / 2
                continue
            for i in range(n):
                for j in range(m):
                    boxes.c[b, i, j] = 0.0
                    if not step.unknown[i]:
                        for k in range(equations.order):
                            boxes.c[b, i, j] += t[i, j, k]
            sizes, frame, lengths = step.sizes, step.frame, step.lengths
            now = stop
            if step.easy and exact:
                size = max(size, 1.5 * h)
            # If steps are exhausted, states are given up with all that depend on them: those for
            # which this step is too long, or else those that limit longer steps, or all.
            if exhausted:
                _add(given_up, too_long)
                if _fewer(given_up, unknown) == 0:
                    _add(given_up, limiting)
                if _fewer(given_up, unknown) == 0:
                    _add(given_up, ~unknown)
            put_dependent(given_up, equations.dependence)
            if _fewer(given_up, unknown):
                _add(unknown, given_up)
                for i in range(n):
                    if unknown[i]:
                        for j in range(m):
                            boxes.c[b, i, j] = 0.0
                sizes, frame, lengths = without(sizes, frame, lengths, unknown)
                size = span
                tried = min(tried, MAX_STEPS / 2)
                if unknown.all():
                    now = end
        boxes.unknown[b] = unknown
        boxes.sizes[b], boxes.frame[b], boxes.lengths[b] = sizes, frame, lengths
        boxes.steps[b], boxes.tried[b] = size, tried
    return steps


class _PlacedMode:
    """The programs of one mode for the kernels."""

    def __init__(self, method: StepMethod, mode: Mode, unknowns: Mapping[int, TaylorModel]) -> None:
        system, low = method.system, method.linear_monomials
        constants = method.constants(mode, {i: m.take(_ONE) for i, m in unknowns.items()}, 1)
        supports = {i: m.support for i, m in constants.right_hand_sides.items()}
        self.rates = placed(system, mode.right_hand_sides, method.monomials, method.order, supports)
        supports = {i: m.support for i, m in constants.jacobian.items()}
        self.jacobian_orders = min(JACOBIAN_ORDERS, method.order)
        self.jacobian: PlacedProgram = placed(
            system, mode.jacobian, low, self.jacobian_orders, supports
        )
        # Each pair of monomials is multiplied in all pairs of orders.
        self.products = len(self.rates.program.pairs) * method.order * (method.order + 1) / 2


_ONE: IntArray = np.array([0])


class CompiledFlow(Flow):
    """The solutions of a system over boxes, by compiled code."""

    def __init__(self, method: StepMethod) -> None:
        super().__init__(method)
        self._modes: dict[Mode, _PlacedMode] = {}

    @staticmethod
    def suits(method: StepMethod) -> bool:
        """Return whether all equations of a system consist of operations that are compiled."""
        return all(
            is_compiled(mode.right_hand_sides) and is_compiled(mode.jacobian)
            for mode in method.system.modes
        )

    def advance(
        self,
        states: StateEnclosure,
        unknowns: Mapping[int, TaylorModel],
        begin: float,
        end: float,
        control: StepControl,
    ) -> StateEnclosure:
        """Return the states at a later time, without events or input knots on the way."""
        method = self._method
        mode = method.system.mode_at(begin)
        if mode not in self._modes:
            self._modes[mode] = _PlacedMode(method, mode, unknowns)
        programs = self._modes[mode]
        constants = method.constants(mode, unknowns, states.boxes)
        unknown = dependent(~np.isfinite(states.error.sizes), mode.dependence)
        error = states.error.without(unknown)
        c = np.where(unknown[:, :, None], 0.0, np.moveaxis(states.c, 2, 0))
        boxes = _Boxes(
            np.ascontiguousarray(c),
            unknown,
            error.sizes,
            error.frame,
            error.lengths,
            control.sizes,
            control.tried,
            control.stability_cost,
        )
        input_pieces = [
            method.system.input_polynomial(name, begin) for name in method.system.inputs
        ]
        equations = Equations(
            programs.rates.program,
            programs.jacobian.program,
            method.order,
            programs.jacobian_orders,
            mode.dependence,
            method.tolerance,
            method.step_norm,
            method.step_cost,
            np.array([p for p, _ in input_pieces]).reshape(-1, 4),
            np.array([origin for _, origin in input_pieces]),
        )
        of_boxes = _Constants(
            *programs.rates.constants(constants.right_hand_sides, states.boxes),
            *programs.jacobian.constants(constants.jacobian, states.boxes),
        )
        steps = _advance(equations, boxes, of_boxes, begin, end)
        count_work(steps * (PER_STEP + PER_PRODUCT * programs.products))
        bound = ErrorBound(boxes.sizes, boxes.frame, boxes.lengths).unknown(boxes.unknown)
        after = np.ascontiguousarray(np.moveaxis(boxes.c, 0, 2))
        return StateEnclosure(states.monomials, after, bound)
