"""The accuracy needed for small values, from the measurements and their noise."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

import numpy as np

from odefit.expressions.expressions import Expression
from odefit.problem.noise import Noise
from odefit.problem.problem import Problem
from odefit.simulation.engines.engine import ABSOLUTE_OVER_RELATIVE

USUAL_RELATIVE_NOISE = 0.1
"""Relative noise assumed if the standard deviation is an expression."""

ABSOLUTE_OVER_NOISE = 0.01  # largest absolute tolerance over the noise

SMALLEST_ABSOLUTE = 1e-40
"""Smallest ratio of the absolute to the relative tolerance that a measurement may need."""

_KNOWN: WeakKeyDictionary[Problem, float] = WeakKeyDictionary()


@dataclass(frozen=True)
class NeededAccuracy:
    """The accuracy of small values that the measurements of a problem need."""

    finest: float = math.inf  # see :func:`finest_noise`
    measured: Mapping[str, float] = field(default_factory=dict)  # see :func:`measured_sizes`

    @classmethod
    def of(cls, problem: Problem) -> NeededAccuracy:
        """Return the accuracy that the measurements of a problem require."""
        return cls(finest_noise(problem), measured_sizes(problem))

    @property
    def digits(self) -> float:
        """The relevant error, relative to the largest value of a series."""
        return ABSOLUTE_OVER_NOISE * self.finest

    def absolute(self, relative: float) -> float:
        """Return the absolute tolerance for a relative one, in units of each largest value.

        It is smaller than usual if much smaller values are measured accurately.
        """
        return min(ABSOLUTE_OVER_RELATIVE, max(self.digits / relative, SMALLEST_ABSOLUTE))


def finest_noise(problem: Problem) -> float:
    """Return the smallest standard deviation, relative to the largest value of the same series.

    It is infinite if the noise is not given, or estimated as a constant: values then matter in
    units of the largest ones. With relative noise and on a logarithmic scale the smallest values
    matter as well.
    """
    if problem not in _KNOWN:
        _KNOWN[problem] = _finest(problem)
    return _KNOWN[problem]


def _finest(problem: Problem) -> float:
    finest = math.inf
    for condition in problem.conditions:
        for name, series in condition.series.items():
            noise = problem.noise.get(name, Noise())
            if series.sds is None and not noise.known:
                continue
            values = np.abs(series.values[np.isfinite(series.values)])
            values = values[values > 0.0]
            if not len(values):
                continue
            smallest, largest = float(values.min()), float(values.max())
            if series.sds is not None:
                sds = series.sds[series.sds > 0.0]
                if noise.transform is None and len(sds):
                    finest = min(finest, float(sds.min()) / largest)
            ratio = smallest / largest
            if noise.relative is not None:
                finest = min(finest, noise.relative * ratio)
            elif noise.transform is not None or isinstance(noise.spread, Expression):
                finest = min(finest, USUAL_RELATIVE_NOISE * ratio)
            elif isinstance(noise.sd, float):
                finest = min(finest, noise.sd / largest)
    return finest


def measured_sizes(problem: Problem) -> dict[str, float]:
    """Return the largest measured value of each directly measured state, by name.

    A far smaller value of such a state needs no relative accuracy.
    """
    sizes: dict[str, float] = {}
    for name, expression in problem.model.observables.items():
        state = expression.name
        if state is None or state not in problem.model.ode:
            continue
        for condition in problem.conditions:
            series = condition.series.get(name)
            if series is not None:
                values = np.abs(series.values[np.isfinite(series.values)])
                size = float(values.max(initial=0.0))
                sizes[state] = max(sizes.get(state, 0.0), size)
    return sizes
