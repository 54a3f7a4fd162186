"""Campaigns: tasks, the function that runs one, the tables made of all results, and options."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from odefit.common.errors import InputError, did_you_mean

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

# A task: JSON values by name. ``"key"`` is a unique text; the other entries are the factors over
# which ``--limit`` spreads evenly
Task = Mapping[str, Any]

# The ways in which a task ends: with a result, stopped by its time limit, without memory, with a
# Python exception, or by the death of its process
Outcome = Literal["done", "time limit", "out of memory", "error", "crashed"]


@dataclass(frozen=True)
class Record:
    """The outcome of one task."""

    key: str
    task: Task
    outcome: Outcome
    # JSON values by name; None unless the task is done. Numbers that are not finite are None
    result: Mapping[str, Any] | None
    reason: str  # the reason for a missing result
    seconds: float  # wall time


@dataclass(frozen=True)
class Option:
    """A choice of a run. Its default has the type of its values; a tuple is given with commas."""

    name: str
    default: Any
    words: str  # its description, with an example
    known: Collection[str] | Callable[[], Collection[str]] = ()  # the names that may be chosen
    least: float = -math.inf  # the smallest number that may be chosen
    above: float = -math.inf  # 0 if numbers have to be positive
    most: float = math.inf  # the largest number that may be chosen
    kind: Callable[[str], Any] | None = None  # reads a value, or an entry of a tuple
    whole: Callable[[str], Any] | None = None  # reads all of the text instead

    def value(self, text: str) -> Any:
        """Return the value of a text; an InputError states the valid values."""
        try:
            found = self.whole(text) if self.whole is not None else self._read(text)
        except ValueError as error:
            raise InputError(f"{self.name}: expected {self.words}; got {text!r}") from error
        entries = found if isinstance(found, tuple) else (found,)
        known = self.known() if callable(self.known) else self.known
        for entry in entries if known else ():
            if entry not in known:
                hint = did_you_mean(entry, known) or ";"
                have = ", ".join(known)
                raise InputError(
                    f"{self.name}: there is no {entry!r}{hint} {self.name} are: {have}"
                )
        several = isinstance(found, tuple)
        for number in entries:
            if not isinstance(number, int | float):
                continue
            if not (self.least <= number <= self.most and number < math.inf):
                words = f"{self.least:g} or more"
                if self.most < math.inf:
                    words = f"{self.least:g} to {self.most:g}"
                words = f"numbers of {words}" if several else words
                raise InputError(f"{self.name}: expected {words}, got {text}")
            if number <= self.above:
                words = "positive numbers" if several else "a positive number"
                raise InputError(f"{self.name}: expected {words}, got {text}")
        return found

    def _read(self, text: str) -> Any:
        several = isinstance(self.default, tuple)
        kind = self.kind or type(self.default[0] if several and self.default else self.default)
        if kind in (bool, tuple):
            kind = _yes if kind is bool else str
        return tuple(kind(p.strip()) for p in text.split(",")) if several else kind(text)


def _yes(text: str) -> bool:
    if text not in ("yes", "no"):
        raise ValueError("yes or no")
    return text == "yes"


@dataclass(frozen=True)
class Campaign:
    """Many runs that belong together.

    The functions are those of a module, not made inside others: worker processes import them. A
    task must depend on nothing but its own entries, so that results depend neither on the number of
    processes nor on earlier tasks.
    """

    name: str
    description: str
    # All tasks, in the order in which tables show them; takes the options by name
    tasks: Callable[..., Sequence[Task]]
    run: Callable[[Task], Mapping[str, Any]]  # returns the result of a task: JSON values by name
    # Makes tables of the records of all tasks that have ended, in their order
    tables: Callable[[Sequence[Record]], Mapping[str, pd.DataFrame]]
    figures: Callable[[Sequence[Record]], Mapping[str, Figure]] | None = None
    seconds: float = 60.0  # wall time after which a task is stopped
    memory: int | None = None  # bytes that a task may use; None for its share of the machine's
    # The key of each task names the chosen options, so that different runs share a folder
    options: tuple[Option, ...] = ()
    alone: bool = False  # whether tasks are timed, so that they run alone

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without entries that a worker does not need or pickle rejects."""
        return {**self.__dict__, "options": ()}

    def with_options(self, given: Mapping[str, str]) -> Campaign:
        """Return the campaign with some options chosen, given by name as text."""
        if not given:
            return self
        if not self.options:
            raise InputError(f"the campaign {self.name!r} has no options, got {', '.join(given)}")
        by_name = {option.name: option for option in self.options}
        chosen = {}
        for name, text in given.items():
            if name not in by_name:
                hint = did_you_mean(name, by_name) or ";"
                have = ", ".join(by_name)
                raise InputError(f"there is no option {name!r}{hint} options are: {have}")
            chosen[name] = by_name[name].value(text)
        found = replace(self, tasks=partial(self.tasks, **chosen))
        found.tasks()  # refuses unknown entries before any run
        return found


def tasks_of(name: str, values: Sequence[Any], **options: Any) -> list[Task]:
    """Return a task for each value of a factor, all with the same options, which the key names."""
    said = "".join(f", {k} {_said(v)}" for k, v in options.items())
    plain = {k: list(v) if isinstance(v, tuple) else v for k, v in options.items()}
    return [{"key": f"{value}{said}", name: value, **plain} for value in values]


def _said(value: Any) -> str:
    return " ".join(map(str, value)) if isinstance(value, tuple | list) else str(value)
