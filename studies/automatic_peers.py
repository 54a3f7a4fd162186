"""What the two other programs of the campaign `automatic` share: problems that they can state."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from odefit.problem.errors import InputError

if TYPE_CHECKING:
    from odefit.problem.arrays import Array
    from odefit.problem.condition import Condition, Series
    from odefit.problem.problem import Problem

RELATIVE, ABSOLUTE = 1e-9, 1e-11
"""Tolerances of their integrations: with more, small noise would be out of reach of the optimum."""


@dataclass(frozen=True)
class Found:
    """The answer of another program.

    Attributes
    ----------
    vector
        The unknowns, shape (n,); None where there is no answer.
    starts
        The number of starts.
    late
        Whether the time limit ended it.
    message
        How it ended.
    """

    vector: Array | None
    starts: int
    late: bool
    message: str


def check_plain(problem: Problem) -> None:
    """Refuse problems that would be another problem there.

    Raises
    ------
    InputError
        There are algebraic variables, priors, noise that is estimated, or a transformation.
    """
    if problem.model.algebraic:
        raise InputError("the comparison is for problems without algebraic variables")
    if any(u.parameter.prior is not None for u in problem.unknowns):
        raise InputError("the comparison is for problems without priors")
    for name, noise in problem.noise.items():
        plain = noise.sd is None or isinstance(noise.sd, float) or _number(noise.sd) is not None
        if not plain or noise.transform is not None:
            raise InputError(f"the comparison is for noise of a given size, unlike that of {name}")


def weights(problem: Problem, condition: Condition, name: str) -> Array:
    """Return one over the standard deviation of each measurement of an observable, shape (n,)."""
    series: Series = condition.series[name]
    if series.sds is not None:
        return 1 / series.sds
    noise = problem.noise.get(name)
    if noise is None:
        return np.ones(len(series.values))
    if noise.relative is not None:
        return 1 / (noise.relative * np.abs(series.values))
    sd = _number(noise.sd)
    return np.full(len(series.values), 1.0 if sd is None or math.isnan(sd) else 1 / sd)


def _number(sd: object) -> float | None:
    """Return a standard deviation that is a number, however it is written."""
    if isinstance(sd, float | int):
        return float(sd)
    constant = getattr(sd, "constant", None)
    return constant() if callable(constant) else constant
