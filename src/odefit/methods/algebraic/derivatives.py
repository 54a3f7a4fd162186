"""Derivatives of the outputs, estimated from the data: targets of the polynomial system."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from odefit.common.arrays import Array
from odefit.common.errors import InputError
from odefit.methods.smoothing import Interpolant, Smoother
from odefit.methods.smoothing.smoother import average_replicates
from odefit.problem.condition import Condition
from odefit.structure.homotopy.square import SquareSystem
from odefit.structure.series.expansion import Expansion

TIME_SPREAD = 0.4  # fraction of the segment that several times span, from first to last
EDGE = 0.05  # fraction at each end of the segment that such times avoid
SPARE_MEASUREMENTS = 1  # measurements beyond those that determine a polynomial of the highest order


@dataclass(frozen=True, eq=False)
class DataSegment:
    """A time span of an experiment without events or corners of inputs, and its measurements."""

    # ends of the time span
    start: float
    end: float
    series: dict[str, tuple[Array, Array]]  # times and values by observable, replicates averaged

    def at(self, fraction: float) -> float:
        """Return the time at a fraction of the segment."""
        return self.start + fraction * (self.end - self.start)


@dataclass(frozen=True)
class Differentiation:
    """One way to differentiate the data: a smoother, and the place in the segment."""

    smoother: Smoother  # makes a function of each series
    # The time, as a fraction of the segment; None for t0. Where several times are used together, it
    # is their middle.
    fraction: float | None

    def fractions(self, count: int) -> list[float]:
        """Return `count` times to be used together, as fractions of the segment."""
        assert self.fraction is not None
        if count == 1:
            return [self.fraction]
        offsets = np.linspace(-0.5, 0.5, count) * TIME_SPREAD
        return [float(f) for f in np.clip(self.fraction + offsets, EDGE, 1 - EDGE)]

    @property
    def name(self) -> str:
        """A description for messages."""
        where = "at t0" if self.fraction is None else f"at {self.fraction:g} of the interval"
        return f"{self.smoother.name} {where}"


@dataclass(frozen=True, eq=False)
class DerivativeEstimate:
    """The derivatives of the data from one way of differentiation."""

    differentiation: Differentiation  # how the data were differentiated
    times: tuple[float, ...]  # time of each expansion
    targets: Array  # Taylor coefficients for the rows of the square system, shape (n,)
    errors: Array  # their estimated errors, shape (n,)


def longest_segment(expansion: Expansion, from_start: bool = False) -> DataSegment:
    """Return the segment of an expansion's experiment with the most measurements.

    With `from_start` the segment has to begin at t0.
    """
    condition = expansion.condition
    cuts = {float(t) for t, _ in condition.events}
    used = {name for name, _ in expansion.lifting.functions.values()}
    for name, signal in condition.inputs.items():
        if name in used and signal.interpolation != "cubic":
            cuts |= {float(t) for t in _corners(signal.times, signal.polynomials())}
    first, last = condition.t0, float(condition.times[-1])
    # The equations are those that hold before any parameter or constant changes.
    changes = [t for t, assign in condition.events if assign.keys() - expansion.states.keys()]
    last = min([last, *(t for t in changes if t > first)])
    ends = [first, *sorted(t for t in cuts if first < t < last), last]
    segments = []
    for start, end in list(pairwise(ends))[: 1 if from_start else None]:
        series = {n: _measurements(condition, n, start, end) for n in expansion.observables}
        segments.append(DataSegment(start, end, series))

    def points(segment: DataSegment) -> int:
        return min((len(t) for t, _ in segment.series.values()), default=0)

    return max(segments, key=points)


def _corners(times: Array, polynomials: Array) -> Array:
    """Return the knots at which a piecewise linear input or its slope jumps."""
    before, after = polynomials[:-1], polynomials[1:]
    values = before[:, 0] + before[:, 1] * np.diff(times, prepend=times[0])
    scale = np.abs(polynomials).max(axis=0) + 1e-300
    jumps = np.abs(values - after[:, 0]) > 1e-9 * scale[0]
    kinks = np.abs(before[:, 1] - after[:, 1]) > 1e-9 * scale[1]
    return np.asarray(times[jumps | kinks])


def _measurements(condition: Condition, name: str, start: float, end: float) -> tuple[Array, Array]:
    """Return the measurements in (start, end], and those at t0 if no event is there."""
    series, t0 = condition.series[name], condition.t0
    times = condition.times[series.rows]
    inside = (times > start) & (times <= end)
    if start == t0 and not any(t == t0 for t, _ in condition.events):
        inside |= times == t0
    return average_replicates(times[inside], series.values[inside])


class SmoothedData:
    """The data of all experiments, smoothed on demand, in one segment of each experiment.

    The expansions of an experiment, `times_per_experiment` of them, follow one after the other.
    Raises InputError if there are too few measurements for the derivatives that are needed.
    """

    def __init__(self, square: SquareSystem, times_per_experiment: int = 1) -> None:
        self.square = square
        self.times_per_experiment = times_per_experiment
        expansions = square.system.expansions
        from_start = not square.system.free_states
        self.segments = [longest_segment(e, from_start) for e in expansions[::times_per_experiment]]
        self._interpolants: dict[tuple[int, str, Smoother], Interpolant] = {}
        for k, expansion in enumerate(expansions):
            segment = self.segments[k // times_per_experiment]
            for name, order in zip(expansion.observables, square.orders(k), strict=False):
                count, needed = len(segment.series[name][0]), order + 1 + SPARE_MEASUREMENTS
                if count < needed and order >= 0:
                    raise InputError(
                        f"experiment {expansion.condition.name!r}, {name}: the algebraic method "
                        f"needs its derivatives up to order {order}, which takes {needed} "
                        f"measurements at different times without events or corners of inputs in "
                        f"between; there are {count}. Measure more, or take another method"
                    )

    def interpolant(self, experiment: int, name: str, smoother: Smoother) -> Interpolant:
        """Return an output of an experiment, given by its index, as a function of time."""
        key = (experiment, name, smoother)
        if key not in self._interpolants:
            times, values = self.segments[experiment].series[name]
            self._interpolants[key] = smoother.fit(times, values)
        return self._interpolants[key]

    def differentiate(self, differentiation: Differentiation) -> DerivativeEstimate:
        """Estimate the derivatives that the square system needs.

        Raises InputError if the smoother cannot use a series.
        """
        square, count = self.square, self.times_per_experiment
        expansions = square.system.expansions
        if differentiation.fraction is None:
            times = [expansion.condition.t0 for expansion in expansions]
        else:
            fractions = differentiation.fractions(count)
            times = [
                self.segments[k // count].at(fractions[k % count]) for k in range(len(expansions))
            ]
        coefficients: dict[tuple[int, int], tuple[Array, Array]] = {}
        targets, errors = np.zeros(square.size), np.zeros(square.size)
        for place, row in enumerate(square.rows):
            expansion = expansions[row.expansion]
            if row.output >= len(expansion.observables):
                continue  # an algebraic constraint, whose derivatives are zero
            key = (row.expansion, row.output)
            if key not in coefficients:
                name, smoother = expansion.observables[row.output], differentiation.smoother
                curve = self.interpolant(row.expansion // count, name, smoother)
                order = square.orders(row.expansion)[row.output]
                at = times[row.expansion]
                coefficients[key] = curve.taylor(at, order), curve.errors(at, order)
            targets[place] = coefficients[key][0][row.order]
            errors[place] = coefficients[key][1][row.order]
        return DerivativeEstimate(differentiation, tuple(times), targets, errors)

    def noise(self, smoother: Smoother) -> list[dict[str, float]]:
        """Return the standard deviation of the noise by experiment and observable."""
        return [
            {name: self.interpolant(k, name, smoother).sd for name in segment.series}
            for k, segment in enumerate(self.segments)
        ]
