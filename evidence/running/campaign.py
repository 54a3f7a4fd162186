"""Campaigns: tasks, the function that runs one, and the tables made of all results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from odefit.common.errors import InputError

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

# A task: JSON values by name. ``"key"`` is a text that no other task has; the other entries are the
# factors over which ``--limit`` spreads evenly
Task = Mapping[str, Any]

# The ways in which a task ends: with a result, stopped by its time limit, without memory, with a
# Python exception, or by the death of its process
Outcome = Literal["done", "time limit", "out of memory", "error", "crashed"]


@dataclass(frozen=True)
class Record:
    """The outcome of one task."""

    key: str  # key, task: The task and its key
    task: Task
    outcome: Outcome  # how the task ended
    # JSON values by name; None unless it is done. Numbers that are not finite are None
    result: Mapping[str, Any] | None
    reason: str  # why there is no result, in words
    seconds: float  # wall time


@dataclass(frozen=True)
class Campaign:
    """Many runs that belong together.

    The functions are those of a module, not made inside others: worker processes import them.
    A task must depend on nothing but its own entries, so that results are the same whatever the
    number of processes and whatever ran before.
    """

    name: str  # name, description: Name and description, for lists
    description: str
    # All tasks, in the order in which tables show them. Where there are options, it takes those
    # that were chosen, by name as text
    tasks: Callable[..., Sequence[Task]]
    # A function that returns the result of a task: JSON values by name
    run: Callable[[Task], Mapping[str, Any]]
    # A function that makes tables of the records of all tasks that have ended, in their order
    tables: Callable[[Sequence[Record]], Mapping[str, pd.DataFrame]]
    # A function that makes figures of them; None if there are none
    figures: Callable[[Sequence[Record]], Mapping[str, Figure]] | None = None
    seconds: float = 60.0  # wall time after which a task is stopped
    # Bytes that a task may use; None for its share of the machine's memory
    memory: int | None = None
    # Name and meaning of each option of a run. Each task says in its key what was chosen, so that
    # runs with different options share a directory
    options: tuple[tuple[str, str], ...] = ()

    def with_options(self, given: Mapping[str, str]) -> Campaign:
        """Return the campaign with some options chosen, given by name as text."""
        if not given:
            return self
        if not self.options:
            raise InputError(f"the campaign {self.name!r} has no options, got {', '.join(given)}")
        chosen = replace(self, tasks=partial(self.tasks, dict(given)))
        chosen.tasks()  # refuses what it does not know, before anything runs
        return chosen
