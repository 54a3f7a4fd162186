"""Small problems without data that matter, for what the equations alone tell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from odefit.problem.model import Model
from odefit.problem.problem import Problem

TIMES = np.linspace(0.0, 1.0, 6)


def problem(
    ode: Mapping[str, str],
    observables: Mapping[str, str],
    parameters: Sequence[str] | Mapping[str, Any] = (),
    initial: Mapping[str, Any] | None = None,
    inputs: Sequence[str] = (),
    **more: Any,
) -> Problem:
    """A problem; initial values that are not given are unknown."""
    model = more.pop("algebraic", None)
    data = {"t": TIMES, **{y: np.cos(TIMES) for y in observables}}
    data |= {u: np.sin(TIMES + 1.0) for u in inputs}
    given = parameters if isinstance(parameters, Mapping) else {p: {} for p in parameters}
    return Problem(
        Model(
            ode=ode,
            observables=observables,
            inputs=dict.fromkeys(inputs, "cubic"),
            **({"algebraic": model} if model else {}),
            **({"constants": more.pop("constants")} if "constants" in more else {}),
        ),
        data,
        given,
        {**{state: {} for state in ode}, **(initial or {})},
        **more,
    )
