"""The algebraic method as a route: a few attempts, while no other route explains the data."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

from odefit.common.errors import InputError
from odefit.methods.estimate import Completeness, Start, Status
from odefit.methods.running.checkpoint import Checkpoint
from odefit.methods.running.control import Control, Interruption
from odefit.methods.running.run_log import LOGGER
from odefit.methods.running.start_checkpoint import natural, start_from_json, start_to_json
from odefit.problem.problem import Problem
from odefit.simulation.engines.cut_off import CutOffError, WorkLimit, counting

KEY = "algebraic"  # the key of the results in a checkpoint

ATTEMPTS = ((16, 5e7), (100, 2.5e8), (400, 3e9))
"""Number of starts without an answer before each attempt to solve the polynomial system, and limit
of its operations (:mod:`odefit.simulation.engines.cut_off`), about one, five and sixty seconds.
Some systems of few unknowns take longer to prepare than a hundred starts."""

MAX_UNKNOWNS = 12
"""Largest number of unknowns for which it runs: larger systems take long to prepare."""

TIME_SHARE = 0.3  # largest share of the time left by a user's limit that it may take


class AlgebraicRoute:
    """The algebraic method, and the starts that it has found.

    It is `done` once it was not ended by the limit of an attempt; `attempts` counts these.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.done = False
        self.attempts = 0
        self.starts: list[Start] = []
        self.seconds = 0.0
        self.message = ""
        self._completeness: Completeness | None = None

    def is_due(self, starts: int, hits: int) -> bool:
        """Return whether to make an attempt, since the best end does not explain the data.

        It is the end of `hits` of the starts. If these are most of them, the model is in doubt
        rather than the search.
        """
        return not self.done and starts >= max(ATTEMPTS[self.attempts][0], 2 * hits)

    def solve(
        self, control: Control, first: int, checkpoint: Checkpoint | None = None
    ) -> list[Start]:
        """Solve the polynomial system; return the ends, numbered from `first`.

        They are stored in `checkpoint`, and reused from there.
        """
        key = f"{KEY} {self.attempts}" if self.attempts else KEY
        work = ATTEMPTS[self.attempts][1]
        self.attempts += 1
        if len(self.problem.unknowns) > MAX_UNKNOWNS:
            self.done = True
            self.message = "not taken: it would take long with so many unknowns"
            return []
        record = None if checkpoint is None else checkpoint.records.get(key)
        ends = None if record is None else self._resume(record)
        if ends is None:
            limited = control.with_share(TIME_SHARE)
            ends = self._solve(limited, work, first)
            if checkpoint is not None and not limited.should_stop():
                checkpoint.put(key, self._to_json(ends))
        self.starts += ends
        return ends

    def _solve(self, control: Control, work: float, first: int) -> list[Start]:
        from odefit.methods.algebraic import Algebraic

        began = time.perf_counter()
        limit = WorkLimit(work, control.interrupted)
        limited = replace(control, interrupted=Interruption(limit))
        self.done = True
        try:
            # At the limit it returns the solutions found so far: nothing is raised.
            with counting(limit):
                estimate = Algebraic(fallback=False).solve(self.problem, limited)
        except InputError as error:
            self.message = f"not taken: {error}"
            return []
        except (CutOffError, MemoryError):
            raise
        except Exception as error:  # noqa: BLE001 - the other routes continue after any exception
            LOGGER.error("the algebraic route failed", exc_info=error)
            self.message = f"failed because of a mistake in odefit: {type(error).__name__}: {error}"
            return []
        finally:
            self.seconds += time.perf_counter() - began
        self.done = limit.spent < work or self.attempts == len(ATTEMPTS)
        usable = [s for s in estimate.starts if s.status is not Status.FAILED]
        self.message = estimate.message
        self._completeness = estimate.completeness
        return [replace(s, index=first + i) for i, s in enumerate(usable)]

    def _to_json(self, ends: Sequence[Start]) -> dict[str, Any]:
        """Return the outcome of an attempt as a JSON value."""
        whole = None if self._completeness is None else asdict(self._completeness)
        return {
            "starts": [start_to_json(end) for end in ends],
            "seconds": self.seconds,
            "message": self.message,
            "completeness": whole,
            "done": self.done,
        }

    def _resume(self, record: Any) -> list[Start] | None:
        """Restore the outcome of an earlier attempt; return None if the record is damaged."""
        unknowns = len(self.problem.unknowns)
        try:
            starts = [start_from_json(start, unknowns) for start in record["starts"]]
            seconds, whole = float(record["seconds"]), record["completeness"]
            completeness = None if whole is None else _completeness_from_json(whole)
            message, done = str(record["message"]), record["done"] is not False
        except (KeyError, TypeError, ValueError, OverflowError, AttributeError):
            return None
        if None in starts:
            return None
        self.seconds, self.message, self._completeness = seconds, message, completeness
        self.done = done
        return [start for start in starts if start is not None]

    def completeness_of(self, best: Start | None) -> Completeness | None:
        """Return the number of solutions like `best`, if this route found it."""
        has_best = any(s is best for s in self.starts)
        return self._completeness if has_best else None


def _completeness_from_json(record: Any) -> Completeness:
    """Return the completeness with the given fields; `_resume` catches errors of other fields."""
    return Completeness(
        natural(record["possible"]),
        natural(record["found"]),
        str(record["sentence"]),
        record["known"] is True,
        natural(record["real"]),
        natural(record["lost"]),
        float(record["doubt"]),
        record["coincide"] is True,
        tuple({str(k): float(v) for k, v in one.items()} for one in record["outside"]),
    )
