"""The algebraic method as a route: once, where other routes have not explained the data."""

from __future__ import annotations

import time
from dataclasses import replace

from odefit.methods.control import Control
from odefit.methods.estimate import Completeness, Start, Status
from odefit.problem.errors import InputError
from odefit.problem.problem import Problem

MAX_SECONDS = 60.0
"""Largest number of seconds that the algebraic method may take."""

MAX_UNKNOWNS = 12
"""Largest number of unknowns with which it is asked: preparing the equations of more takes long."""

TIME_SHARE = 0.3
"""Share of the time that is left which it may take."""


class AlgebraicRoute:
    """The algebraic method, and what it has found.

    Parameters
    ----------
    problem
        The problem.

    Attributes
    ----------
    done
        Whether it was asked.
    starts
        What it found.
    seconds, message
        The time it took, and how it ended.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.done = False
        self.starts: list[Start] = []
        self.seconds = 0.0
        self.message = ""
        self._completeness: Completeness | None = None

    def solve(self, control: Control, first: int) -> list[Start]:
        """Solve the polynomial system; return the ends, numbered from `first` on."""
        from odefit.methods.algebraic import Algebraic

        self.done = True
        if len(self.problem.unknowns) > MAX_UNKNOWNS:
            self.message = "not taken: it would take long with so many unknowns"
            return []
        began = time.perf_counter()
        now = time.time()
        seconds = MAX_SECONDS
        if control.deadline is not None:
            seconds = min(seconds, TIME_SHARE * max(control.deadline - now, 0.0))
        limited = replace(control, deadline=now + seconds)
        try:
            found = Algebraic(fallback=False).solve(self.problem, limited)
        except InputError as error:
            self.message = f"not taken: {error}"
            return []
        finally:
            self.seconds = time.perf_counter() - began
        usable = [s for s in found.starts if s.status is not Status.FAILED]
        self.starts = [replace(s, index=first + i) for i, s in enumerate(usable)]
        self.message = found.message
        self._completeness = found.completeness
        return self.starts

    def completeness_of(self, best: Start | None) -> Completeness | None:
        """Return the number of solutions like `best`, if this route found it."""
        mine = any(s is best for s in self.starts)
        return self._completeness if mine else None
