"""Segments: the time spans between events, their inputs, and their order in time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from odefit.common.arrays import Array, BoolArray, IntArray
from odefit.expressions.expressions import Expression
from odefit.problem.condition import Condition


class SmoothPart(NamedTuple):
    """The part of a segment between two breakpoints of the inputs."""

    start: float
    # Times at which the engine returns values, increasing; the last one is the part's end.
    times: Array
    # Polynomials of the inputs on this part, shape (inputs, 5), see :class:`Segment`.
    polynomials: Array
    end_is_wanted: bool  # Whether the caller needs the values at the end of the part


@dataclass(frozen=True, eq=False)
class Segment:
    """A time span between two events."""

    start: float
    # Output times, shape (k,), increasing, after `start`; never empty. If the last one is infinite,
    # the output is the final steady state.
    times: Array
    # Times strictly inside the segment at which an input has a corner or a jump, shape (c,),
    # increasing. No integration step may cross one.
    breakpoints: Array
    # Inputs between breakpoints, shape (c + 1, inputs, 5): the time at which the polynomial's own
    # time is zero, then the coefficients of its powers 0 to 3.
    polynomials: Array
    # The accuracy to which an event at the end is located. A motion that reaches a surface within
    # it is still on its way to it when the event happens. Zero if there is no event at the end.
    event_within: float = 0.0
    # Which states were zero just before the start, shape (n,): their values there are no sizes. A
    # first step has led away from a point with unbounded derivatives. None if there was no step.
    left_zero: BoolArray | None = None

    @cached_property
    def smooth_parts(self) -> list[SmoothPart]:
        """The segment cut at its breakpoints, in the order of time."""
        if not len(self.breakpoints):
            return [SmoothPart(self.start, self.times, self.polynomials[0], True)]
        parts = []
        start, first = self.start, 0
        ends = np.append(self.breakpoints, self.times[-1])
        lasts = np.searchsorted(self.times, ends, side="right").tolist()
        for end, last, polynomials in zip(ends.tolist(), lasts, self.polynomials, strict=True):
            inside, first = self.times[first:last], last
            end_is_output = bool(len(inside)) and inside[-1] == end
            times = inside if end_is_output else np.append(inside, end)
            parts.append(SmoothPart(start, times, polynomials, end_is_output))
            start = end
        return parts

    @cached_property
    def steps(self) -> Steps:
        """The segment cut at its breakpoints and its output times, in the order of time."""
        ends = np.union1d(self.breakpoints, self.times)
        starts = np.concatenate([[self.start], ends[:-1]])
        pieces = self.polynomials[np.searchsorted(self.breakpoints, starts, side="right")]
        left, *c = np.moveaxis(pieces, 2, 0)
        s = starts[:, None] - left
        polynomials = np.stack(
            [
                c[0] + s * (c[1] + s * (c[2] + s * c[3])),
                c[1] + s * (2.0 * c[2] + s * 3.0 * c[3]),
                c[2] + s * 3.0 * c[3],
                c[3],
            ],
            axis=2,
        )
        powers = np.flatnonzero(polynomials.any(axis=(0, 1)))
        degree = int(powers[-1]) if len(powers) else 0
        rows = np.searchsorted(self.times, ends)
        rows[self.times[rows] != ends] = -1
        classes, lengths = _classes(ends - starts, float(np.abs(ends).max()))
        used = np.ascontiguousarray(polynomials[:, :, : degree + 1])
        powers_of_time = (ends - starts)[:, None] ** np.arange(degree + 1)
        sizes = (np.abs(used) * powers_of_time[:, None]).sum(axis=2).max(axis=0)
        return Steps(ends - starts, classes, lengths, used, sizes, rows)


class Steps(NamedTuple):
    """The steps of a segment, between breakpoints of the inputs and output times."""

    durations: Array  # shape (k,)
    classes: IntArray  # number of the length of each step, shape (k,)
    lengths: Array  # distinct lengths of steps, up to rounding of the times
    # Coefficients of the inputs by powers of the time since the step's start, (k, inputs, powers).
    polynomials: Array
    sizes: Array  # bounds of the magnitudes of the inputs, shape (inputs,)
    rows: IntArray  # number of the output at the end of each step, or -1


ROUNDING = 4.0
"""Difference of two durations, in units of rounding of the times, up to which they are equal."""


def _classes(durations: Array, latest: float) -> tuple[IntArray, Array]:
    """Return the number of the length of each step, and these lengths."""
    order = np.argsort(durations, kind="stable")
    rounding, ordered = ROUNDING * np.spacing(latest), durations[order]
    begins = np.append(True, np.diff(ordered) > rounding)
    first = np.flatnonzero(begins)
    last = np.append(first[1:], len(durations)) - 1
    if (ordered[last] - ordered[first] > rounding).any():  # one blends into the next
        return np.arange(len(durations)), durations
    classes = np.empty(len(durations), dtype=np.intp)
    classes[order] = np.cumsum(begins) - 1
    return classes, np.bincount(classes, durations) / np.bincount(classes)


def places(segment: Segment, count: int) -> list[tuple[float, Array]]:
    """Return times of a segment, including its breakpoints, each with the inputs' polynomials.

    They are the beginnings of its smooth parts, and `count` times within each part.
    """
    times: list[tuple[float, Array]] = []
    for part in segment.smooth_parts:
        inside = np.linspace(part.start, part.times[-1], count + 1, endpoint=False)
        times.extend((float(time), part.polynomials) for time in inside)
    return times


@dataclass(frozen=True, eq=False)
class TimelineEntry:
    """The events that happen at one time, and the segment that follows them."""

    # Assignments of the events before the segment, in the order in which they happen.
    events: tuple[Mapping[str, Expression], ...]
    segment: Segment | None  # The segment; None if no values are needed after the events
    # Rows of the trajectory for the segment's times; the last one is -1 if the end of the segment
    # is only the next start.
    rows: tuple[int, ...]
    # Row of the trajectory at the time of the events with the values after them; -1 without such a
    # row.
    row_after: int = -1


def input_value(polynomial: Sequence[Any], time: Any) -> Any:
    """Return the value of an input at `time` by its polynomial, see :class:`Segment`.

    Numbers and the symbols of any engine are treated alike.
    """
    left, *c = polynomial
    s = time - left
    return c[0] + s * (c[1] + s * (c[2] + s * c[3]))


def inputs_before(condition: Condition, inputs: Sequence[str]) -> Array:
    """Return the values of inputs just before t0, shape (inputs,)."""
    values = []
    for name in inputs:
        signal = condition.inputs[name]
        piece = int(np.searchsorted(signal.times, condition.t0, side="left"))
        left = signal.times[max(piece - 1, 0)]
        values.append(input_value([left, *signal.polynomials()[piece]], condition.t0))
    return np.array(values, dtype=float)


def before_rest(segment: Segment) -> Segment | None:
    """Return the part of a segment without end until the last output or change."""
    outputs = segment.times[:-1]
    last = max([segment.start, *outputs[-1:], *segment.breakpoints[-1:]])
    if last == segment.start:
        return None
    times = outputs if len(outputs) and outputs[-1] == last else np.append(outputs, last)
    return part_of(segment, segment.start, times)


def part_of(segment: Segment, start: float, times: Array) -> Segment:
    """Return the part of a segment from `start` through `times`."""
    inside = (segment.breakpoints > start) & (segment.breakpoints < times[-1])
    first = int(np.searchsorted(segment.breakpoints, start, side="right"))
    polynomials = segment.polynomials[first : first + int(inside.sum()) + 1]
    return Segment(start, times, segment.breakpoints[inside], polynomials)


def timeline(
    condition: Condition, inputs: tuple[str, ...], times: Array
) -> tuple[int, list[TimelineEntry]]:
    """Return the events and segments up to given times.

    The times are increasing, and not before t0. Also returns the number of first times equal to t0
    (0 or 1), which have the values before any event.
    """
    end = times[-1] if len(times) else condition.t0
    after = {t for t, _ in condition.events if t in condition.measured_after}
    at_start = int(len(times) > 0 and times[0] == condition.t0 and condition.t0 not in after)
    events = [(t, a) for t, a in condition.events if t < end or (t == end and t in after)]
    happening: dict[float, list[Mapping[str, Expression]]] = {condition.t0: []}
    for time, assign in events:
        happening.setdefault(time, []).append(assign)
    starts = sorted(happening)
    entries = []
    for start, stop in zip(starts, [*starts[1:], end], strict=True):
        first = int(np.searchsorted(times, start, side="right"))
        past = int(np.searchsorted(times, stop, side="left" if stop in after else "right"))
        rows, within = list(range(first, past)), times[first:past]
        if stop > start and (not len(within) or within[-1] < stop):
            within = np.append(within, stop)
            rows.append(-1)
        segment = segment_between(condition, inputs, start, within) if len(within) else None
        assignments = tuple(happening[start])
        row_after = -1
        if start in after and start in times:
            row_after = int(np.searchsorted(times, start))
        entries.append(TimelineEntry(assignments, segment, tuple(rows), row_after))
    return at_start, entries


def segment_between(
    condition: Condition,
    inputs: tuple[str, ...],
    start: float,
    times: Array,
    event_within: float = 0.0,
) -> Segment:
    """Return the segment from `start` through `times`, with the inputs of the condition.

    `event_within` is that of :class:`Segment`.
    """
    if not inputs:
        return Segment(float(start), times, np.zeros(0), np.zeros((1, 0, 5)), event_within)
    signals = [condition.inputs[name] for name in inputs]
    corners = np.unique(np.concatenate([np.zeros(0), *(g.corners for g in signals)]))
    breakpoints = corners[(corners > start) & (corners < times[-1])]
    lefts = np.concatenate([[start], breakpoints])
    polynomials = np.zeros((len(lefts), len(signals), 5))
    for k, g in enumerate(signals):
        interval = np.searchsorted(g.times, lefts, side="right")
        polynomials[:, k, 0] = g.times[np.maximum(interval - 1, 0)]
        polynomials[:, k, 1:] = g.polynomials()[interval]
    return Segment(float(start), times, breakpoints, polynomials, event_within)
