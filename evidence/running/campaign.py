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

Task = Mapping[str, Any]
"""A task: JSON values by name. ``"key"`` is a text that no other task has; the other entries are
the factors over which ``--limit`` spreads evenly."""

Outcome = Literal["done", "time limit", "out of memory", "error", "crashed"]
"""The ways in which a task ends: with a result, stopped by its time limit, without memory, with a
Python exception, or by the death of its process."""


@dataclass(frozen=True)
class Record:
    """The outcome of one task.

    Attributes
    ----------
    key, task
        The task and its key.
    outcome
        How the task ended.
    result
        JSON values by name; None unless it is done. Numbers that are not finite are None.
    reason
        Why there is no result, in words.
    seconds
        Wall time.
    """

    key: str
    task: Task
    outcome: Outcome
    result: Mapping[str, Any] | None
    reason: str
    seconds: float


@dataclass(frozen=True)
class Campaign:
    """Many runs that belong together.

    The functions are those of a module, not made inside others: worker processes import them.
    A task must depend on nothing but its own entries, so that results are the same whatever the
    number of processes and whatever ran before.

    Attributes
    ----------
    name, description
        Name and description, for lists.
    tasks
        All tasks, in the order in which tables show them. Where there are options, it takes
        those that were chosen, by name as text.
    run
        A function that returns the result of a task: JSON values by name.
    tables
        A function that makes tables of the records of all tasks that have ended, in their order.
    figures
        A function that makes figures of them; None if there are none.
    seconds
        Wall time after which a task is stopped.
    memory
        Bytes that a task may use; None for its share of the machine's memory.
    options
        Name and meaning of each option of a run. Each task says in its key what was chosen, so
        that runs with different options share a directory.
    """

    name: str
    description: str
    tasks: Callable[..., Sequence[Task]]
    run: Callable[[Task], Mapping[str, Any]]
    tables: Callable[[Sequence[Record]], Mapping[str, pd.DataFrame]]
    figures: Callable[[Sequence[Record]], Mapping[str, Figure]] | None = None
    seconds: float = 60.0
    memory: int | None = None
    options: tuple[tuple[str, str], ...] = ()

    def with_options(self, given: Mapping[str, str]) -> Campaign:
        """Return the campaign with some options chosen, given by name as text.

        Raises
        ------
        InputError
            The campaign has no options, or not these, or not with these values.
        """
        if not given:
            return self
        if not self.options:
            raise InputError(f"the campaign {self.name!r} has no options, got {', '.join(given)}")
        chosen = replace(self, tasks=partial(self.tasks, dict(given)))
        chosen.tasks()  # refuses what it does not know, before anything runs
        return chosen
