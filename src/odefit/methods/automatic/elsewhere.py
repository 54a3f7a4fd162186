"""Starts elsewhere, where the best end is in doubt: beyond the usual ranges, and on other scales.

Starts from the usual ranges share a choice: if the correct value of an unknown lies outside, all
may end where it has lost its effect. The starts of this module take points of all orders of
magnitude within the bounds, some decades around the usual range. Every second one searches in the
logarithms of unknowns that are not negative, where no step leads to zero.

If unknowns have lost their effect at the best end, starts return to it in turns. Each holds one of
these unknowns at a value where it acts until the others are fitted.
"""

from __future__ import annotations

import math
from copy import copy
from dataclasses import dataclass, field, replace

import numpy as np

from odefit.common.arrays import Array
from odefit.methods.bounded_problem import with_held
from odefit.methods.estimate import Start, Status
from odefit.methods.local.variable_projection import VariableProjection
from odefit.methods.running.control import Control
from odefit.methods.single_shooting import SingleShooting
from odefit.methods.starts import lowest
from odefit.problem.parameters import Unknown
from odefit.problem.problem import Problem
from odefit.problem.variants.start_ranges import Range, ranges
from odefit.simulation import ForwardMap
from odefit.simulation.blocks import Block, block_with
from odefit.simulation.engines.engine_choice import UNDECIDED

DECADES = (2.0, 4.0, 8.0)
"""Decades by which the ranges of start values are widened on each side, in turns."""

SCREENED = 64
"""Number of points of which a start takes the best, or of values tried for an effect of an
unknown."""

FAR = (0.75, 0.5, 0.25)
"""Positions, as fractions, among the values at which an unknown acts, sorted by cost. Every second
start holds the unknown at one of them, in turns; the others hold it near the value where its effect
begins."""

ACTS = 1e-6  # relative change of the cost above which an unknown acts

DESIGN = 3 * 10**7
"""Number of the design of points for the first start; see :func:`odefit.methods.starts.sample`."""


@dataclass(frozen=True)
class WideSearch:
    """Starts of single shooting from wider ranges than usual."""

    method: SingleShooting

    def run(self, forward: ForwardMap, index: int, control: Control) -> Start:
        """Return the end of start number `index`."""
        problem, method = forward.problem, self.method
        points = wide_points(problem, index, control.seed)
        point, _ = lowest(VariableProjection(forward, method.eliminate), points, control)
        if index % 2 == 0:
            return method.run(forward, index, point, control)
        begun = method.run(forward.of(in_logarithms(problem)), index, point, control)
        return _gone_on(begun, method, forward, control)


@dataclass(frozen=True, eq=False)
class HeldSearch:
    """Starts at an end, shape (n,), at which the unknowns with some numbers are lost."""

    method: SingleShooting
    end: Array
    lost: tuple[int, ...]
    # The values at which an unknown acts, by its number; the starts have them in common.
    known: dict[int, Array] = field(default_factory=dict)

    def run(self, forward: ForwardMap, index: int, control: Control) -> Start:
        """Return the end of start number `index`, which at first holds one of them fixed.

        An unknown that acts on some experiments alone is first searched for among these, with all
        that they share with others held.
        """
        k, number = self.lost[index % len(self.lost)], index // len(self.lost)
        block = block_with(forward, k, self.end)
        if block is None:
            result = self._held(forward, self.end, (k, k), number, index, control)
        else:
            place = int(np.flatnonzero(block.places == k)[0])
            end = self.end[block.places]
            result = self._held(block.forward, end, (place, k), number, index, control)
            result = None if result is None else _as_all(result, self.end, block)
        if result is None:
            return WideSearch(self.method).run(forward, index, control)
        return result if block is None else _gone_on(result, self.method, forward, control)

    def _held(
        self,
        forward: ForwardMap,
        end: Array,
        held: tuple[int, int],
        number: int,
        index: int,
        control: Control,
    ) -> Start | None:
        """Return the end of a search that holds an unknown at first; None where it never acts.

        `held` has the number of the unknown in the block, and among all unknowns.
        """
        k, of_all = held
        values = self.known.get(of_all)
        if values is None:
            values = _acting(forward, end, k)
            if not control.should_stop():  # which would end integrations
                self.known[of_all] = values
        if not len(values):
            return None
        point = end.copy()
        turn, far = divmod(number, 2)
        place = FAR[turn % len(FAR)] * len(values) if far else (turn + 1) * (turn + 2) // 2
        point[k] = values[int(place) % len(values)]
        without = forward.of(with_held(forward.problem, k, point[k]))
        begun = self.method.run(without, index, point, control)
        return _gone_on(begun, self.method, forward, control)


def _as_all(start_in_block: Start, end: Array, block: Block) -> Start:
    """Return an end of all unknowns: those of the block from a search, the others from `end`."""
    start, vector = end.copy(), end.copy()
    start[block.places], vector[block.places] = start_in_block.start, start_in_block.vector
    return replace(start_in_block, start=start, vector=vector)


def _acting(forward: ForwardMap, end: Array, k: int) -> Array:
    """Return the values of an unknown at which it changes the cost, the lowest cost first."""
    problem = forward.problem
    u = (np.arange(SCREENED) + 0.5) / SCREENED
    points = np.tile(end, (SCREENED, 1))
    points[:, k] = _spread(problem.unknowns[k], ranges(problem)[k], DECADES[0], u)
    points = np.clip(points, problem.lower, problem.upper)
    base, costs = (
        forward.cost(end, UNDECIDED),
        np.array([forward.cost(point, UNDECIDED) for point in points]),
    )
    acts = np.isfinite(costs) & (np.abs(costs - base) > ACTS * abs(base))
    return np.asarray(points[acts, k][np.argsort(costs[acts], kind="stable")])


def _gone_on(begun: Start, method: SingleShooting, forward: ForwardMap, control: Control) -> Start:
    """Return the end of a search that continues where another one of the same start has ended."""
    if begun.status is Status.FAILED or control.should_stop():
        return begun
    end = method.run(forward, begun.index, begun.vector, control)
    return replace(
        end,
        start=begun.start,
        evaluations=begun.evaluations + end.evaluations,
        seconds=begun.seconds + end.seconds,
    )


def wide_points(problem: Problem, index: int, seed: int) -> Array:
    """Return the points of which start number `index` takes the best, shape (count, n)."""
    rng = np.random.default_rng([seed, DESIGN + index])
    n = len(problem.unknowns)
    cells = rng.permuted(np.tile(np.arange(SCREENED), (n, 1)), axis=1).T
    u = (cells + rng.random((SCREENED, n))) / SCREENED
    decades = DECADES[index // 2 % len(DECADES)]
    columns = [
        _spread(unknown, usual, decades, u[:, i])
        for i, (unknown, usual) in enumerate(zip(problem.unknowns, ranges(problem), strict=True))
    ]
    return np.clip(np.column_stack(columns), problem.lower, problem.upper)


def _spread(unknown: Unknown, usual: Range, decades: float, u: Array) -> Array:
    """Return values of an unknown at `u` in [0, 1], some decades beyond its usual range.

    Values of either sign have sizes of all orders of magnitude up to that range and beyond.
    """
    if not _widens(unknown, usual):
        return usual.at(u)
    factor = 10.0**decades
    if not _signed(unknown, usual):
        lower, upper = unknown.parameter.lower, unknown.parameter.upper
        return Range(max(usual.low / factor, lower), min(usual.high * factor, upper), True).at(u)
    size = max(abs(usual.low), abs(usual.high))
    sizes = Range(size / factor, size * factor, True).at(np.abs(2 * u - 1))
    return np.asarray(np.sign(u - 0.5) * sizes)


def in_logarithms(problem: Problem) -> Problem:
    """Return the problem with logarithmic scales for non-negative unknowns, for searches alone."""
    scaled = copy(problem)
    scaled.unknowns = tuple(
        replace(u, parameter=replace(u.parameter, scale="log10"))
        if u.parameter.lower >= 0 and u.parameter.upper > 0
        else u
        for u in problem.unknowns
    )
    return scaled


def can_widen(problem: Problem) -> bool:
    """Return whether any unknown can be searched beyond its usual range, or on another scale."""
    return any(
        _widens(u, usual) and u.parameter.scale != "log10"
        for u, usual in zip(problem.unknowns, ranges(problem), strict=True)
    )


def _widens(unknown: Unknown, usual: Range) -> bool:
    """Return whether a range covers no more than a likely part of the possible values.

    Ranges taken from data, as of a measured initial value, and ranges of noise are likely enough.
    """
    return unknown.kind != "noise" and (usual.logarithmic or _signed(unknown, usual))


def _signed(unknown: Unknown, usual: Range) -> bool:
    parameter = unknown.parameter
    return usual.low < 0 and not (math.isfinite(parameter.lower) and math.isfinite(parameter.upper))
