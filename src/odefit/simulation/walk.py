"""Where a trajectory with located events stands, what happens next, and why it cannot go on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from odefit.problem.arrays import Array, BoolArray
from odefit.problem.expressions import Expression
from odefit.simulation.engine_choice import EngineChoice
from odefit.simulation.propagation import Values


class Moment(NamedTuple):
    """An event at its time.

    Attributes
    ----------
    assign
        What it assigns.
    change
        How its time changes along the directions, shape (m,); None for a known time.
    measured_after
        Whether measurements at its time see the values after it.
    """

    assign: Mapping[str, Expression]
    change: Array | None
    measured_after: bool


@dataclass
class Walk:
    """Where a trajectory stands.

    Attributes
    ----------
    time, now, algebraic
        The time, and the values there; algebraic variables have shape (a,).
    choice
        The choice of an engine.
    flags
        Which of the comparisons that trigger events hold from now on, shape (comparisons,).
    ahead
        The time ahead in which changes of these are looked for at once.
    triggered
        Number of triggered events so far.
    last
        The comparison that has triggered the last one, and when.
    """

    time: float
    now: Values
    algebraic: Array
    choice: EngineChoice
    flags: BoolArray
    ahead: float
    triggered: int = 0
    last: tuple[int, float] = (-1, -np.inf)


class StoppedError(Exception):
    """A trajectory cannot go on beyond a time.

    Attributes
    ----------
    time, reason, choice
        The time, the reason in words, and the choice of an engine for the next integration.
    """

    def __init__(self, time: float, reason: str, choice: EngineChoice) -> None:
        super().__init__(reason)
        self.time, self.reason, self.choice = time, reason, choice
