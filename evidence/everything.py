"""``python -m evidence run all``: all tables of the pages, made again part by part.

A part is a row of the registry, run by a separate command, so that its failure does not end others.
Results stored in its folder are not computed again. When a part has ended, its tables are copied
into the pages.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from evidence import overview, page
from evidence.registry import ROWS, Row
from evidence.running.runner import interrupts_noted
from evidence.running.terminal import say
from odefit.common.errors import InputError, did_you_mean
from odefit.reporting.numbers import duration

FOLDER = Path("study-all")


@dataclass(frozen=True)
class Part:
    """A row of the registry with its options here."""

    row: Row
    given: Mapping[str, str] = field(default_factory=dict)  # options of whoever runs it

    @property
    def minutes(self) -> float:
        """Minutes on two cores, for the share of its tasks that is run."""
        return self.row.minutes * self.row.share

    def command(self, out: Path, jobs: int | None, tasks: int) -> list[str]:
        """Return the command that runs or resumes the part."""
        found = [sys.executable, "-m", "evidence", "run", self.row.name, "--out", str(out)]
        if self.row.share < 1:
            found += ["--limit", str(max(1, round(self.row.share * tasks)))]
        if jobs is not None:
            found += ["--jobs", str(jobs)]
        if self.given:
            found += ["--set", *(f"{key}={value}" for key, value in self.given.items())]
        return found

    def missing(self) -> list[str]:
        """Return the packages that the part needs and that are not installed."""
        return [] if self.given else [name for name in self.row.needs if not _installed(name)]


def parts(only: Sequence[str] = (), given: Mapping[str, str] | None = None) -> list[Part]:
    """Return the parts, those of some pages or all.

    Parameters
    ----------
    only
        Names of pages, e.g. ``"speed"``.
    given
        Options by ``"ROW.OPTION"``.
    """
    pages = {table.split("/")[0] for one in ROWS.values() for table in one.fills}
    for name in only:
        if name not in pages:
            hint = did_you_mean(name, pages) or ";"
            raise InputError(f"--only: no page {name!r}{hint} there is: {', '.join(sorted(pages))}")
    options: dict[str, dict[str, str]] = {}
    for key, value in (given or {}).items():
        row, dot, option = key.partition(".")
        if not dot or row not in ROWS:
            raise InputError(f"--set: expected ROW.NAME=VALUE with 'all', got {key}={value}")
        options.setdefault(row, {})[option] = value
    for row, chosen in options.items():
        ROWS[row].campaign().with_options(chosen)  # refuses unknown names
    return [
        Part(one, options.get(one.name, {}))
        for one in ROWS.values()
        if one.share > 0 and (not only or {t.split("/")[0] for t in one.fills} & set(only))
    ]


def run_all(chosen: Sequence[Part], out: Path = FOLDER, jobs: int | None = None) -> list[str]:
    """Run parts one after the other, and copy their tables into the pages.

    Returns
    -------
    list of str
        A sentence for each part that was left out or has failed.

    Raises
    ------
    KeyboardInterrupt
        After Ctrl-C, when the current part has written its tables.
    """
    left = []
    whole = sum(part.minutes for part in chosen)
    say(f"{len(chosen)} parts, about {duration(60 * whole)} on two cores, in {out}")
    for number, part in enumerate(chosen, 1):
        name = part.row.name
        until = datetime.now().astimezone() + timedelta(minutes=part.minutes)
        say(
            f"\n[{number}/{len(chosen)}] {name}: about {duration(60 * part.minutes)}, until "
            f"{until:%H:%M}; {part.row.shows}"
        )
        reason = _run(part, out / name, jobs)
        if reason:
            left.append(f"{name}: {reason}")
            say(left[-1])
            continue
        for table in page.record(out / name):
            say(f"{table} is that of {out / name}")
        page.write()
        try:
            overview.write()
        except InputError as error:  # a part of a campaign; others go on
            left += error.messages
            say(error.messages[0])
    return left


def _run(part: Part, folder: Path, jobs: int | None) -> str:
    """Run a part; return the reason why it has no tables, or an empty text."""
    if missing := part.missing():
        return f"left out, as {', '.join(missing)} is not installed"
    tasks = part.row.campaign().with_options(part.given).tasks()
    if not tasks:
        return f"left out, as it needs --set {part.row.name}.folder=DIR"
    with interrupts_noted() as interrupted:
        ended = subprocess.run(part.command(folder, jobs, len(tasks)), check=False)
    if interrupted.is_set():
        raise KeyboardInterrupt
    return "" if ended.returncode == 0 else f"failed, with exit status {ended.returncode}"


def _installed(package: str) -> bool:
    try:
        version(package)
    except PackageNotFoundError:
        return False
    return True
