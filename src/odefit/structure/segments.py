"""The values of parameters and constants in each segment between events."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from odefit.expressions.expressions import TIME, Algebra
from odefit.problem.binding import bound_value
from odefit.problem.condition import Condition


def scalar_segments(
    condition: Condition, unknowns: Sequence[Any], others: Mapping[str, Any], algebra: Algebra[Any]
) -> list[tuple[float, dict[str, Any]]]:
    """Return the beginnings of segments, and the values of all parameters and constants there.

    A new segment begins at each event that assigns a parameter or constant; the first begins at
    minus infinity. Values are elements of `algebra`; `others` are names that assignments may use
    besides parameters, constants, inputs and time. Raises KeyError for an unknown name.
    """
    scalars = {
        name: bound_value(bound, condition.scalars, unknowns, algebra)
        for name, bound in condition.scalars.items()
    }
    segments = [(-math.inf, scalars)]
    for time, assign in condition.events:
        scalar_changes = {name: e for name, e in assign.items() if name in scalars}
        if not scalar_changes:
            continue
        known = {**others, TIME: algebra.number(repr(time)), **scalars}
        for name, signal in condition.inputs.items():
            known[name] = algebra.number(repr(float(signal(np.array([time]))[0])))
        scalars = {
            **scalars,
            **{name: e.evaluate(known, algebra) for name, e in scalar_changes.items()},
        }
        segments.append((time, scalars))
    return segments
