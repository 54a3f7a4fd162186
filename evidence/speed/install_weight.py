"""The size of an installation of odefit: MB on disk of all required packages.

It counts the files that pip has recorded, with existing byte code, of odefit and of its direct and
indirect requirements. It measures its own environment: make a fresh one, `pip install .` there, and
run it with its Python. Extras that are not installed are named below the table.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from evidence.running.campaign import Option, Task, tasks_of

MEGABYTE = 1e6
LEAST = 1.0  # MB: lighter packages share a row


@dataclass
class Package:
    """An installed package: its version, size in MB, and the packages that require it."""

    name: str
    version: str
    weight: float
    asked_by: list[str] = field(default_factory=list)


def weight(found: Distribution) -> float:
    """Return the MB of the files of a package, and of their byte code."""
    files: set[Path] = set()
    for entry in found.files or []:
        file = Path(str(found.locate_file(entry)))
        files.add(file)
        if file.suffix == ".py":
            files.update(file.parent.glob(f"__pycache__/{file.stem}.*.pyc"))
    return sum(f.stat().st_size for f in files if f.is_file()) / MEGABYTE


def requirements(found: Distribution, extras: Sequence[str]) -> Iterator[str]:
    """Return the names of the packages that a package requires here, with some of its extras."""
    from packaging.requirements import Requirement

    for text in found.requires or []:
        wanted = Requirement(text)
        settings = [{"extra": extra} for extra in ("", *extras)]
        if wanted.marker is None or any(wanted.marker.evaluate(s) for s in settings):
            yield wanted.name


def closure(name: str, extras: Sequence[str]) -> tuple[dict[str, Package], list[str]]:
    """Return all required packages, and the names of those that are not installed."""
    packages: dict[str, Package] = {}
    missing: list[str] = []
    waiting = [(name, "", tuple(extras))]
    while waiting:
        own, asked_by, with_extras = waiting.pop(0)
        key = re.sub(r"[-_.]+", "-", own).lower()
        if key in packages:
            packages[key].asked_by.append(asked_by)
            continue
        try:
            found = distribution(own)
        except PackageNotFoundError:
            missing.append(key)
            continue
        packages[key] = Package(key, found.version, weight(found), [asked_by])
        waiting += [(other, key, ()) for other in requirements(found, with_extras)]
    return packages, sorted(set(missing))


HEAD = ("package", "version", "MB", "asked for by")
OPTIONS = (Option("extras", (), "extras that count, e.g. global,maingo"),)


def tasks(extras: Sequence[str]) -> list[Task]:
    return tasks_of("extras", [" ".join(extras)])


def run(task: Task) -> Mapping[str, Any]:
    packages, missing = closure("odefit", task["extras"].split())
    heavy = sorted(packages.values(), key=lambda p: -p.weight)
    light = [p for p in heavy if p.weight < LEAST]
    rows = [
        [p.name, p.version, f"{p.weight:.0f}", ", ".join(sorted(set(p.asked_by) - {""}))]
        for p in heavy
        if p not in light
    ]
    names = ", ".join(p.name for p in light)
    rows.append([f"{len(light)} more", "", f"{sum(p.weight for p in light):.1f}", names])
    rows.append(["all", "", f"{sum(p.weight for p in heavy):.0f}", ""])
    return {"rows": rows, "notes": [f"Not installed: {', '.join(missing)}."] if missing else []}
