"""The slider of each unknown: its range, its scale and its initial value."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from odefit.common.arrays import Array
from odefit.methods.starts import guess
from odefit.problem.parameters import Unknown
from odefit.problem.problem import Problem
from odefit.problem.variants.start_ranges import Range, ranges


@dataclass(frozen=True)
class Slider:
    """The slider of one unknown, in natural units, between `low` and `high`.

    `kind` is ``"parameter"``, ``"initial"`` or ``"noise"``. Equal steps of a logarithmic slider are
    equal factors.
    """

    key: str
    kind: str
    name: str
    experiment: str | None
    unit: str
    low: float
    high: float
    lower: float
    upper: float
    logarithmic: bool


def sliders(problem: Problem, values: Array) -> list[Slider]:
    """Return the slider of every unknown, with ranges that include `values`.

    A slider extends from bound to bound. If a bound is missing, or zero on a logarithmic scale, the
    range of start values replaces it (:func:`odefit.problem.variants.start_ranges.ranges`), with a
    decade around the first value. The scale is logarithmic if the problem's scale is, or if start
    values are sampled by order of magnitude.
    """
    return [
        _slider(unknown, span, float(value))
        for unknown, span, value in zip(problem.unknowns, ranges(problem), values, strict=True)
    ]


def _slider(unknown: Unknown, span: Range, value: float) -> Slider:
    p = unknown.parameter
    on_log_scale = p.scale == "log10" or (span.logarithmic and span.low > 0)
    logarithmic = on_log_scale and value > 0 and p.upper > 0
    if logarithmic:
        low = p.lower if p.lower > 0 else min(span.low, 0.1 * value)
        high = p.upper if math.isfinite(p.upper) else max(span.high, 10 * value)
    else:
        width = max(span.high - span.low, abs(value)) or 1.0
        low = p.lower if math.isfinite(p.lower) else min(span.low, value - width)
        high = p.upper if math.isfinite(p.upper) else max(span.high, value + width)
    return Slider(
        unknown.key,
        unknown.kind,
        unknown.name,
        unknown.experiment,
        p.unit or "",
        low,
        high,
        p.lower,
        p.upper,
        logarithmic,
    )


def first_values(problem: Problem) -> Array:
    """Return the guesses; without guesses, the middles of the ranges of start values."""
    guesses = guess(problem)
    if guesses is not None:
        return guesses
    return np.array([r.at(np.array(0.5)) for r in ranges(problem)], dtype=float).reshape(-1)


def misplaced(shown: Sequence[Slider], values: Array) -> list[str]:
    """Return a sentence for every value outside the bounds of its unknown."""
    return [
        f"{s.key} = {value:g} is outside its bounds [{s.lower:g}, {s.upper:g}]"
        for s, value in zip(shown, values, strict=True)
        if not s.lower <= value <= s.upper
    ]
