"""What parameters and constants are before and after the events that assign them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from odefit.problem.binding import bound_value
from odefit.problem.condition import Condition
from odefit.problem.expressions import TIME, Algebra


def stages(
    condition: Condition, unknowns: Sequence[Any], others: Mapping[str, Any], algebra: Algebra[Any]
) -> list[tuple[float, dict[str, Any]]]:
    """Values of all parameters and constants, and the time from which on they hold.

    Parameters
    ----------
    unknowns
        Elements of the algebra.
    others
        What the assignments may depend on beside parameters, constants, inputs and time.

    Raises
    ------
    KeyError
        An assignment depends on a name that is not in `others`.
    """
    scalars = {
        name: bound_value(bound, condition.scalars, unknowns, algebra)
        for name, bound in condition.scalars.items()
    }
    found = [(-math.inf, scalars)]
    for time, assign in condition.events:
        own = {name: e for name, e in assign.items() if name in scalars}
        if not own:
            continue
        known = {**others, TIME: algebra.number(repr(time)), **scalars}
        for name, given in condition.inputs.items():
            known[name] = algebra.number(repr(float(given(np.array([time]))[0])))
        scalars = {**scalars, **{name: e.evaluate(known, algebra) for name, e in own.items()}}
        found.append((time, scalars))
    return found
