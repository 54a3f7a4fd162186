"""Bands of curves and intervals of numbers, as values."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

import numpy as np

from odefit.common.arrays import Array
from odefit.problem.condition import Condition
from odefit.simulation import Failure


class NoBand(Enum):
    """The reasons for missing bands of a curve."""

    UNDETERMINED = "undetermined"
    UNBOUNDED = "unbounded"
    NO_FREEDOM = "no freedom"
    NOT_POSITIVE = "not positive"
    AT_A_BOUND = "at a bound"
    BENT = "bent"
    NOT_LINEAR = "not linear"
    ELSEWHERE = "elsewhere"
    NOT_COMPUTED = "not computed"


@dataclass(frozen=True, eq=False)
class Band:
    """The prediction of one observable or state in one experiment.

    `values`, shape (k,), are those at the estimate, with standard `errors`, NaN where the data do
    not determine them. `confidence` and `prediction` are the ends of the bands, shape (2, k); the
    latter is NaN without a noise model. `cut` is set if a linear band was cut off at zero, because
    the equations keep the values nonnegative. `lacking` has the reasons for missing ends, with the
    `undetermined` unknowns and those `at_bounds` that move the values; unknowns `widening` a band
    are at a bound, too. `errorless` has the reasons if only errors are missing.

    If several solutions fit, the band covers all of them. The curve is that of the best, and
    `others`, shape (m, k), are those of the rest. `mixed` is set if the band weights them.
    """

    name: str
    observable: bool
    times: Array
    values: Array
    errors: Array
    confidence: Array
    prediction: Array
    scatter: Array
    cut: bool = False
    lacking: tuple[NoBand, ...] = ()
    undetermined: tuple[str, ...] = ()
    unfinished: int = 0
    better: bool = False
    at_bounds: tuple[str, ...] = ()
    widening: tuple[str, ...] = ()
    errorless: tuple[NoBand, ...] = ()
    others: Array = field(default_factory=lambda: np.zeros((0, 0)))
    mixed: bool = False


@dataclass(frozen=True)
class Interval:
    """The interval of a number: its ends are NaN if the data do not determine them.

    `lacking`, `undetermined` and `errorless` give the reason, as in :class:`Band`. `solutions` is
    the number of solutions that it covers.
    """

    value: float
    error: float
    low: float
    high: float
    lacking: tuple[NoBand, ...] = ()
    undetermined: tuple[str, ...] = ()
    at_bounds: tuple[str, ...] = ()
    solutions: int = 1
    errorless: tuple[NoBand, ...] = ()


class BandSource(Protocol):
    """Computes bands of the predictions of an experiment."""

    def bands(
        self, condition: Condition, times: Array, level: float, names: Collection[str] | None = None
    ) -> list[Band] | Failure:
        """Return the bands of all observables and states at increasing times, or a failure.

        With `names`, only these are computed.
        """
