"""Engines of compiled kernels: segments of a model, integrated part by part."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from odefit.common.arrays import Array
from odefit.problem.vector_field import SensitivityPattern, VectorField
from odefit.simulation.engines.bdf.adjoint import RecordedPart
from odefit.simulation.engines.bdf.equations import ScalarTerms, compiled_field
from odefit.simulation.engines.bdf.integration import (
    CUT_OFF,
    FINISHED,
    NO_CONVERGENCE,
    TOO_MANY_STEPS,
    TOO_STEEP,
    UNDEFINED,
)
from odefit.simulation.engines.bdf.small_sizes import MARGIN, SMALL
from odefit.simulation.engines.cut_off import REASON
from odefit.simulation.engines.engine import (
    ABSOLUTE_OVER_RELATIVE,
    EngineFailure,
    SegmentSolution,
    Values,
)
from odefit.simulation.engines.narrow_features import NOTHING, NarrowFeatures
from odefit.simulation.engines.segments import Segment, SmoothPart

PLACES = 17
"""Number of times at which rates that depend on time give the sizes of states that begin at
zero."""

LANES = 8
"""Multiple of directions in a tile: the number of doubles in the widest processor vectors."""

MAX_TILE = 96
"""Largest number of directions in a tile.

Measured on 14 to 500 states: up to about this number, long rows save more than cache misses cost.
"""

TOO_LARGE = 1e3
"""Ratio of the assumed size of a state that begins at zero to its largest value above which the
segment is integrated again. Its absolute tolerance is then at least as large as its relative one.
For a state that begins extremely small, the ratio is larger by the margin of its coarse size.
"""

REASONS = {
    TOO_MANY_STEPS: "more than {steps} steps are needed; the solution may grow without bound",
    NO_CONVERGENCE: "the implicit step does not converge; the solution may grow without bound",
    TOO_STEEP: "the solution becomes too steep, grows without bound or jumps",
    UNDEFINED: "the right-hand side is not defined at the start",
    CUT_OFF: REASON,
}
"""The meaning of the end of an integration for a model."""


class PartToSolve(NamedTuple):
    """A smooth part of a segment as arrays for the kernels."""

    start: float
    times: Array  # Output times, counted from the start
    horizon: float  # Time until which the constants hold, counted from the start
    ahead: float  # Time after which states that begin at zero have their sizes
    states: Array  # Shape (n,), in the order of the compiled field, like all following arrays
    constants: Array
    sensitivities: Array  # Shape (tiles, n, w)
    terms: ScalarTerms
    sizes: Array  # The largest magnitudes of the states, which a kernel updates
    places: int  # Number of times at which rates give the sizes of states that begin at zero
    watching: int  # One of the values of :mod:`odefit.simulation.engines.narrow_features`
    max_steps: int
    proposed: float  # Length of the first step; zero if unknown
    recording: bool
    out: Array  # States at the times, shape (k, n), which a kernel writes
    out_sensitivities: Array  # Sensitivities at the times, shape (tiles, k, n * w)


class SolvedPart(NamedTuple):
    """The end of the integration of a part."""

    status: int
    time: float  # The end of the integration, counted from the start of the part
    steps: int  # Number of attempted steps
    step: float  # Length of the last step, or of the next one
    record: Array  # The steps, if they were to be recorded


class KernelEngine(ABC):
    """An engine of compiled kernels, on states and sensitivities.

    The equations have no algebraic variables that need solving; they may have kinks. Without error
    control of the sensitivities, it takes fewer steps. `absolute` is the ratio of the absolute to
    the relative tolerance, in units of each state's largest magnitude so far along the trajectory.
    States that begin at zero have the size that they reach by the end, or by the first output if
    the tolerance is smaller than usual; those that begin extremely small, a share of it.
    """

    name: str

    def __init__(
        self,
        field: VectorField,
        pattern: SensitivityPattern,
        tolerance: float,
        controlled: bool = True,
        absolute: float = ABSOLUTE_OVER_RELATIVE,
        features: NarrowFeatures | None = None,
    ) -> None:
        self._compiled = compiled = compiled_field(field, features)
        self._features = features
        self._order = compiled.order
        # Where a pulse begins its rate is rounding alone, and gives no size.
        self._places = PLACES if field.nonautonomous else 1
        self._m = m = pattern.directions
        self._tolerance = tolerance
        self._absolute = absolute
        self._controlled = controlled
        self._tiles = math.ceil(m / MAX_TILE)
        self._width = math.ceil(m / self._tiles / LANES) * LANES if m else 0
        entries = sorted(pattern.entries)
        self._entries = tuple(np.array(entries, dtype=np.intp).reshape(-1, 2).T)
        by_scalar: dict[int, list[tuple[int, int]]] = {}
        for e, (j, q) in enumerate(entries):
            by_scalar.setdefault(j, []).append((q, e))
        places = zip(compiled.scalar_rows.tolist(), compiled.scalar_columns.tolist(), strict=True)
        terms = [
            (q // self._width, row, q % self._width, k, e)
            for k, (row, j) in enumerate(places)
            for q, e in by_scalar.get(j, [])
        ]
        self._terms = np.array(sorted(terms), dtype=np.uint32).reshape(-1, 5).T
        tile, row, column, derivative, _ = (np.ascontiguousarray(part) for part in self._terms)
        start = np.searchsorted(tile, np.arange(self._tiles + 1)).astype(np.uint32)
        self._all_terms = ScalarTerms(
            start=start,
            row=row,
            column=column,
            derivative=derivative,
            multiplier=np.zeros(len(tile)),
        )
        self._equations = compiled.equations
        # Whether the last segment was integrated twice: the first time is then not recorded.
        self._repeats = False

    def integrate(
        self, segment: Segment, initial: Values, max_steps: int
    ) -> SegmentSolution | EngineFailure:
        """See :class:`odefit.simulation.engines.engine.Engine`."""
        solved = self._integrate(segment, initial, max_steps, recording=False)
        return solved if isinstance(solved, EngineFailure) else solved[0]

    @abstractmethod
    def _solve(self, part: PartToSolve) -> SolvedPart:
        """Integrate a part by the kernels."""

    def _integrate(
        self, segment: Segment, initial: Values, max_steps: int, *, recording: bool
    ) -> tuple[SegmentSolution, list[RecordedPart]] | EngineFailure:
        """Integrate a segment; again if small states stayed far below their assumed sizes."""
        begin = np.abs(initial.states)
        if segment.left_zero is not None:
            begin = np.where(segment.left_zero, 0.0, begin)
        sizes = begin[self._order]
        recorded = recording and not self._repeats
        solved = self._integrated(segment, initial, max_steps, sizes, recorded)
        if isinstance(solved, EngineFailure):
            return solved
        largest = np.abs(solved[0].states).max(axis=0)
        assumed = np.empty(len(begin))
        assumed[self._order] = sizes
        small = (begin == 0.0) | (begin < SMALL * sizes.max(initial=0.0))
        allowed = np.where(begin == 0.0, TOO_LARGE, TOO_LARGE / MARGIN)
        wrong = small & (largest > 0.0) & (assumed > allowed * np.maximum(largest, begin))
        self._repeats = False
        if wrong.any():
            sizes = np.where(wrong, largest, begin)[self._order]
            again = self._integrated(segment, initial, max_steps, sizes, recording)
            if not isinstance(again, EngineFailure):
                self._repeats = True
                return again
        if recording and not recorded:
            return self._integrated(segment, initial, max_steps, begin[self._order], recording)
        return solved

    def _integrated(
        self,
        segment: Segment,
        initial: Values,
        max_steps: int,
        sizes: Array,
        recording: bool,
    ) -> tuple[SegmentSolution, list[RecordedPart]] | EngineFailure:
        order = self._order
        n, m, tiles, width = len(order), self._m, self._tiles, self._width
        states = np.asarray(initial.states, dtype=float)[order]
        early = self._absolute < ABSOLUTE_OVER_RELATIVE
        sensitivities = self._in_tiles(initial.sensitivities)
        terms = self._scalar_terms(initial.scalar_sensitivities)
        count = len(segment.times)
        values, derivatives = np.empty((count, n)), np.empty((count, n, m))
        watching = (
            NOTHING if self._features is None else self._features.watching_at(initial.scalars)
        )
        done = steps = 0
        step = 0.0
        parts = []
        smooth = segment.smooth_parts
        horizons = _horizons(smooth)
        for part, horizon in zip(smooth, horizons, strict=True):
            start, times, polynomials, end_is_wanted = part
            out = np.empty((len(times), n))
            out_sensitivities = np.empty((tiles, len(times), n * width))
            since_start = np.ascontiguousarray(times, dtype=float) - start
            constants = np.concatenate([initial.scalars, polynomials.ravel()])
            status, time, tried, step, record = self._solve(
                PartToSolve(
                    start=float(start),
                    times=since_start,
                    horizon=horizon - float(start),
                    ahead=(float(times[0]) if early else horizon) - float(start),
                    states=states,
                    constants=constants,
                    sensitivities=sensitivities,
                    terms=terms,
                    sizes=sizes,
                    places=self._places,
                    watching=watching,
                    max_steps=max_steps - steps,
                    proposed=step,
                    recording=recording,
                    out=out,
                    out_sensitivities=out_sensitivities,
                )
            )
            steps += tried
            time += float(start)
            if status != FINISHED:
                out_of_steps = status == TOO_MANY_STEPS
                ahead = float(segment.times[-1] - time) / step if step > 0 else math.inf
                reason = REASONS[status].format(steps=max_steps)
                return EngineFailure(
                    time=time,
                    reason=reason,
                    out_of_steps=out_of_steps,
                    steps=steps,
                    steps_ahead=ahead,
                )
            if not np.isfinite(out[-1]).all():
                return EngineFailure(time, "the solution is not finite", steps=steps)
            stop = done + len(times) - (not end_is_wanted)
            rows = slice(done, stop)
            parts.append(
                RecordedPart(
                    start=float(start),
                    times=since_start,
                    states=states,
                    constants=constants,
                    record=record,
                    rows=rows,
                )
            )
            states = out[-1].copy()
            sensitivities = out_sensitivities[:, -1].reshape(tiles, n, width)
            values[done:stop, order] = out[: stop - done]
            for tile in range(tiles):
                sensitivities_now = out_sensitivities[tile, : stop - done].reshape(
                    stop - done, n, width
                )
                at = tile * width
                derivatives[done:stop, order, at : at + width] = sensitivities_now[:, :, : m - at]
            done = stop
        solution = SegmentSolution.without_algebraic(values, derivatives, steps)
        return solution, parts

    def _scalar_terms(self, sensitivities: Array) -> ScalarTerms:
        """Return the terms of scalars' sensitivities, shape (p, m), in those of the states."""
        multipliers = sensitivities[self._entries][self._terms[4]]
        if multipliers.all():
            return ScalarTerms(*self._all_terms[:4], multipliers)
        nonzero = np.flatnonzero(multipliers)
        start = np.searchsorted(nonzero, self._all_terms.start).astype(np.uint32)
        row, column, derivative = (part[nonzero] for part in self._all_terms[1:4])
        return ScalarTerms(
            start=start,
            row=row,
            column=column,
            derivative=derivative,
            multiplier=multipliers[nonzero],
        )

    def _in_tiles(self, sensitivities: Array) -> Array:
        """Return sensitivities, shape (n, m), in tiles, shape (tiles, n, w), padded with zeros."""
        tiles, width = self._tiles, self._width
        padded = np.zeros((tiles, len(self._order), width))
        for tile in range(tiles):
            columns = sensitivities[self._order, tile * width : (tile + 1) * width]
            padded[tile, :, : columns.shape[1]] = columns
        return padded


def _horizons(parts: Sequence[SmoothPart]) -> list[float]:
    """Return the times until which the polynomials of the inputs of each part hold."""
    horizons: list[float] = []
    for part, following in zip(reversed(parts), [None, *reversed(parts[1:])], strict=True):
        same = following is not None and np.array_equal(part.polynomials, following.polynomials)
        horizons.append(horizons[-1] if same else float(part.times[-1]))
    return horizons[::-1]
