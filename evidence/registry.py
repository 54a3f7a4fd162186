"""The rows of ``registry.toml``, where all evidence is declared, and their campaigns."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from evidence.running.campaign import Campaign
from evidence.running.output import one_table
from odefit.common.errors import InputError, did_you_mean


@dataclass(frozen=True)
class Row:
    """A piece of evidence."""

    name: str
    place: str  # the module or package below ``evidence``
    shows: str
    minutes: float  # on two cores
    seconds: float = 3600.0  # wall time after which a task is stopped
    fills: Mapping[str, str] = field(default_factory=dict)  # PAGE/TABLE: table of the campaign
    needs: Sequence[str] = ()  # packages and programs besides those of odefit[test]
    given: Mapping[str, str] = field(default_factory=dict)  # options in place of the defaults
    share: float = 1.0  # of its tasks in `run all`, spread evenly
    alone: bool = False  # tasks are timed, or need the machine for themselves

    def campaign(self) -> Campaign:
        """Return the campaign, for which its module is imported."""
        options = self._of("plan", "OPTIONS") or ()
        defaults = {option.name: option.default for option in options}
        found = Campaign(
            self.name,
            self.shows,
            partial(self._of("plan", "tasks"), **defaults),
            self._of("runs", "run"),
            self._of("tables", "tables") or partial(one_table, self.name, self._of("runs", "HEAD")),
            self._of("figures", "figures") or self._of("tables", "figures"),
            seconds=self.seconds,
            options=options,
            alone=self.alone,
        )
        return found.with_options(self.given)

    def _of(self, part: str, name: str) -> Any:
        place = f"evidence.{self.place}" + ("" if "." in self.place else f".{part}")
        return getattr(import_module(place), name, None) if find_spec(place) else None


ROWS: Mapping[str, Row] = {
    name: Row(name, **entry)
    for name, entry in tomllib.loads(
        Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
    ).items()
}


def row(name: str) -> Row:
    """Return the row of that name; an InputError proposes a similar one."""
    if name not in ROWS:
        hint = did_you_mean(name, ROWS) or ";"
        raise InputError(f"there is no evidence {name!r}{hint} there is: {', '.join(sorted(ROWS))}")
    return ROWS[name]
