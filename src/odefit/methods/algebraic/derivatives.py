"""What the data say of the outputs' derivatives: right-hand sides of the polynomial system."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from odefit.methods.smoothing import Interpolant, Smoother
from odefit.problem.arrays import Array
from odefit.problem.condition import Condition
from odefit.problem.errors import InputError
from odefit.structure.expansion import Expansion
from odefit.structure.square import SquareSystem

SPREAD = 0.4
"""Of the window, between the first and the last of several times that are used together."""

EDGE = 0.05
"""Of the window, at its ends, where derivatives are known worst."""

SPARE = 1
"""Measurements beyond the highest derivative that is needed."""


@dataclass(frozen=True, eq=False)
class Window:
    """A stretch of an experiment without events or corners of inputs, and what was measured.

    Attributes
    ----------
    start, end
        Times.
    series
        By observable, times and values (replicates averaged).
    """

    start: float
    end: float
    series: dict[str, tuple[Array, Array]]


@dataclass(frozen=True)
class View:
    """Where and how the data are differentiated.

    Attributes
    ----------
    smoother
        Turns series into functions.
    fraction
        Of the window; None for t0. Where several times are looked at together, their middle.
    """

    smoother: Smoother
    fraction: float | None

    def fractions(self, copies: int) -> list[float]:
        """Of the window, for so many times together."""
        assert self.fraction is not None
        if copies == 1:
            return [self.fraction]
        offsets = np.linspace(-0.5, 0.5, copies) * SPREAD
        return [float(f) for f in np.clip(self.fraction + offsets, EDGE, 1 - EDGE)]

    @property
    def name(self) -> str:
        """For messages."""
        where = "at t0" if self.fraction is None else f"at {self.fraction:g} of the interval"
        return f"{self.smoother.name} {where}"


@dataclass(frozen=True, eq=False)
class Sight:
    """What one view shows.

    Attributes
    ----------
    view
        The view.
    times
        By expansion.
    targets
        Taylor coefficients that the rows of the square system ask for, shape (n,).
    errors
        Their estimated errors, shape (n,).
    """

    view: View
    times: tuple[float, ...]
    targets: Array
    errors: Array


def window(expansion: Expansion, from_start: bool = False) -> Window:
    """The stretch of the expansion's experiment with the most measurements.

    Parameters
    ----------
    expansion
        The experiment.
    from_start
        Whether it has to begin at t0.
    """
    condition = expansion.condition
    inner = {float(t) for t, _ in condition.events}
    used = {name for name, _ in expansion.lifting.functions.values()}
    for name, given in condition.inputs.items():
        if name in used and given.interpolation != "cubic":
            inner |= {float(t) for t in _corners(given.times, given.polynomials())}
    first, last = condition.t0, float(condition.times[-1])
    # The equations are those before any parameter or constant changes.
    changes = [t for t, assign in condition.events if assign.keys() - expansion.states.keys()]
    last = min([last, *(t for t in changes if t > first)])
    cuts = [first, *sorted(t for t in inner if first < t < last), last]
    best: Window | None = None
    for start, end in list(pairwise(cuts))[: 1 if from_start else None]:
        series = {n: _between(condition, n, start, end, first) for n in expansion.observables}
        least = min((len(t) for t, _ in series.values()), default=0)
        if best is None or least > min(len(t) for t, _ in best.series.values()):
            best = Window(start, end, series)
    assert best is not None
    return best


def _corners(times: Array, polynomials: Array) -> Array:
    """Knots at which the input or its slope changes abruptly."""
    before, after = polynomials[:-1], polynomials[1:]
    lengths = np.diff(times, prepend=times[0])
    ends = sum(before[:, k] * lengths**k for k in range(4))
    slopes = before[:, 1] + 2 * before[:, 2] * lengths + 3 * before[:, 3] * lengths**2
    scale = np.abs(polynomials).max(axis=0) + 1e-300
    jumps = np.abs(ends - after[:, 0]) > 1e-9 * scale[0]
    bends = np.abs(slopes - after[:, 1]) > 1e-9 * scale[1]
    return np.asarray(times[jumps | bends])


def _between(
    condition: Condition, name: str, start: float, end: float, first: float
) -> tuple[Array, Array]:
    """The measurements in (start, end], those at t0 too; replicates averaged."""
    series = condition.series[name]
    times = condition.times[series.rows]
    here = (times > start) & (times <= end)
    if start == first and not any(t == first for t, _ in condition.events):
        here |= times == first
    unique, inverse = np.unique(times[here], return_inverse=True)
    counts = np.bincount(inverse, minlength=len(unique))
    sums = np.bincount(inverse, weights=series.values[here], minlength=len(unique))
    return unique, sums / np.maximum(counts, 1)


class Derivatives:
    """The data of all expansions, smoothed on demand.

    Parameters
    ----------
    square
        Whose rows ask for derivatives.
    copies
        Expansion an experiment, one after the other.

    Raises
    ------
    InputError
        Too few measurements for the derivatives that are needed.
    """

    def __init__(self, square: SquareSystem, copies: int = 1) -> None:
        self.square = square
        self.copies = copies
        #: By experiment.
        from_start = not square.system.free_states
        self.windows = [window(b, from_start) for b in square.system.expansions[::copies]]
        self._fits: dict[tuple[int, str, Smoother], Interpolant] = {}
        for k, expansion in enumerate(square.system.expansions):
            orders = square.orders(k)
            for name, order in zip(expansion.observables, orders, strict=False):
                count = len(self.windows[k // copies].series[name][0])
                if count < order + 1 + SPARE and order >= 0:
                    raise InputError(
                        f"experiment {expansion.condition.name!r}, {name}: the algebraic method "
                        f"needs its derivatives up to order {order}, which takes "
                        f"{order + 1 + SPARE} measurements at different times without events or "
                        f"corners of inputs in between; there are {count}. Measure more, "
                        "or take another method"
                    )

    def interpolant(self, k: int, name: str, smoother: Smoother) -> Interpolant:
        """An output of experiment `k` as a function of time."""
        key = (k, name, smoother)
        if key not in self._fits:
            times, values = self.windows[k].series[name]
            self._fits[key] = smoother.fit(times, values)
        return self._fits[key]

    def sight(self, view: View) -> Sight:
        """What `view` shows.

        Raises
        ------
        InputError
            The smoother cannot use a series.
        """
        square = self.square
        times = []
        for k, expansion in enumerate(square.system.expansions):
            w = self.windows[k // self.copies]
            if view.fraction is None:
                times.append(expansion.condition.t0)
            else:
                fraction = view.fractions(self.copies)[k % self.copies]
                times.append(w.start + fraction * (w.end - w.start))
        coefficients: dict[tuple[int, int], tuple[Array, Array]] = {}
        targets, errors = np.zeros(square.size), np.zeros(square.size)
        for place, row in enumerate(square.rows):
            expansion = square.system.expansions[row.expansion]
            if row.output >= len(expansion.observables):
                continue  # a term that is zero
            key = (row.expansion, row.output)
            if key not in coefficients:
                name = expansion.observables[row.output]
                fitted = self.interpolant(row.expansion // self.copies, name, view.smoother)
                highest = square.orders(row.expansion)[row.output]
                at = times[row.expansion]
                coefficients[key] = fitted.taylor(at, highest), fitted.errors(at, highest)
            targets[place] = coefficients[key][0][row.order]
            errors[place] = coefficients[key][1][row.order]
        return Sight(view, tuple(times), targets, errors)

    def noise(self, smoother: Smoother) -> list[dict[str, float]]:
        """By experiment and observable, the standard deviation of the noise."""
        return [
            {name: self.interpolant(k, name, smoother).sd for name in w.series}
            for k, w in enumerate(self.windows)
        ]
