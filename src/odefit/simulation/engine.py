"""The small interface that every integration engine has."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
import numpy.typing as npt

from odefit.problem.arrays import Array


@dataclass(frozen=True, eq=False)
class Leg:
    """A stretch of time between two events, fixed by the problem.

    Attributes
    ----------
    start
        Where it begins.
    times
        Where values are wanted, shape (k,), increasing, after `start`; never empty.
    knots
        Corners of the inputs strictly inside the leg, shape (c,), increasing: no step may cross
        one.
    polynomials
        Inputs between corners, shape (c + 1, inputs, 5): left end of the polynomial's own time,
        then coefficients of the powers 0 to 3.
    """

    start: float
    times: Array
    knots: Array
    polynomials: Array

    @cached_property
    def stretches(self) -> list[tuple[float, Array, Array, bool]]:
        """The leg cut at its corners: start, times, polynomials, whether the last time is wanted.

        A stretch that no wanted time ends gets its end as an extra time.
        """
        ends = [*self.knots, self.times[-1]]
        found = []
        start = self.start
        for end, polynomial in zip(ends, self.polynomials, strict=True):
            inside = self.times[(self.times > start) & (self.times <= end)]
            wanted = bool(len(inside)) and inside[-1] == end
            found.append((start, inside if wanted else np.append(inside, end), polynomial, wanted))
            start = end
        return found


@dataclass(frozen=True, eq=False)
class Seed:
    """Where a leg starts.

    Attributes
    ----------
    states
        Shape (n,).
    scalars
        Run-time scalars of the field, shape (p,).
    sensitivities
        Of the states by direction, shape (n, m).
    scalar_sensitivities
        Of the scalars by direction, shape (p, m).
    algebraic
        A first guess for the algebraic variables, shape (a,).
    """

    states: Array
    scalars: Array
    sensitivities: Array
    scalar_sensitivities: Array
    algebraic: Array


@dataclass(frozen=True, eq=False)
class Path:
    """A leg integrated.

    Attributes
    ----------
    states
        At the leg's times, shape (k, n).
    sensitivities
        Shape (k, n, m).
    algebraic
        Shape (k, a), and their sensitivities, shape (k, a, m).
    steps
        Steps taken.
    """

    states: Array
    sensitivities: Array
    algebraic: Array
    algebraic_sensitivities: Array
    steps: int


@dataclass(frozen=True)
class Stop:
    """An integration that did not reach the end.

    Attributes
    ----------
    time, reason
        Where it stopped and why.
    out_of_steps
        Whether it was the effort that ran out.
    steps
        Taken.
    ahead
        How many more of the length of the last one the rest would take.
    """

    time: float
    reason: str
    out_of_steps: bool = False
    steps: int = 0
    ahead: float = math.inf


class Engine(Protocol):
    """Integrates legs of one field with one structure of sensitivities."""

    name: str

    def integrate(self, leg: Leg, seed: Seed, max_steps: int) -> Path | Stop:
        """States and sensitivities at the leg's times, or how far it got and why."""


@dataclass(frozen=True, eq=False)
class Stretches:
    """Many independent integrations of one field, each over a stretch without corners.

    Attributes
    ----------
    starts
        Where each begins, shape (k,).
    grids
        By stretch, the times at which values are wanted: increasing, after its start, never
        empty.
    polynomials
        Inputs, shape (k, inputs, 5), as in :class:`Leg`.
    states
        Shape (k, n).
    scalars
        Run-time scalars of the field, the same for all, shape (p,).
    sensitivities
        Of the states by direction, the same for all, shape (n, m).
    scalar_sensitivities
        Of the scalars by direction, shape (p, m).
    """

    starts: Array
    grids: Sequence[Array]
    polynomials: Array
    states: Array
    scalars: Array
    sensitivities: Array
    scalar_sensitivities: Array


@dataclass(frozen=True, eq=False)
class Bundle:
    """Many stretches integrated.

    Attributes
    ----------
    states
        At all times of all grids, one stretch after the other, shape (t, n).
    sensitivities
        Shape (t, n, m).
    steps
        Taken in each stretch, shape (k,).
    """

    states: Array
    sensitivities: Array
    steps: npt.NDArray[np.intp]


@dataclass(frozen=True)
class Broken:
    """A stretch that did not reach its end: its number, and why."""

    stretch: int
    stop: Stop


class Lanes(Protocol):
    """Integrates many stretches of one field at once, with one structure of sensitivities."""

    name: str

    def bundle(self, stretches: Stretches, max_steps: int) -> Bundle | Broken:
        """All values, or the first stretch that failed; `max_steps` is for each stretch."""
