"""What an installation of odefit weighs: MB on disk of every package that it brings.

    python -m evidence.speed.install_weight
        [--extras global,maingo,ampl,distributed] [--out FILE.md]

The files that pip has recorded, with byte code where it is there, of odefit and of what it
requires, directly or not. It measures the environment that it runs in: make a fresh one, `pip
install .` there, and run this file with its Python, from anywhere. Extras that are not installed
are named below the table.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

MEGABYTE = 1e6
LEAST = 1.0  # MB: lighter packages share a row


@dataclass
class Package:
    """A package that is installed: its version, weight in MB, and what asks for it."""

    name: str
    version: str
    weight: float
    asked_by: list[str] = field(default_factory=list)


def weight(found: Distribution) -> float:
    """MB of the files of a package, and of their byte code."""
    files: set[Path] = set()
    for entry in found.files or []:
        file = Path(str(found.locate_file(entry)))
        files.add(file)
        if file.suffix == ".py":
            files.update(file.parent.glob(f"__pycache__/{file.stem}.*.pyc"))
    return sum(f.stat().st_size for f in files if f.is_file()) / MEGABYTE


def requirements(found: Distribution, extras: Sequence[str]) -> Iterator[str]:
    """Names of the packages that a package requires here, with some of its extras."""
    from packaging.requirements import Requirement

    for text in found.requires or []:
        wanted = Requirement(text)
        settings = [{"extra": extra} for extra in ("", *extras)]
        if wanted.marker is None or any(wanted.marker.evaluate(s) for s in settings):
            yield wanted.name


def closure(name: str, extras: Sequence[str]) -> tuple[dict[str, Package], list[str]]:
    """All packages that come along, and the names of those that are not installed."""
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


def report(extras: Sequence[str]) -> str:
    """The table in Markdown, heaviest first."""
    packages, missing = closure("odefit", extras)
    heavy = sorted(packages.values(), key=lambda p: -p.weight)
    light = [p for p in heavy if p.weight < LEAST]
    lines = ["| package | version | MB | asked for by |", "|---|---|---:|---|"]
    for package in heavy:
        if package not in light:
            asked = ", ".join(sorted(set(package.asked_by) - {""}))
            lines.append(f"| {package.name} | {package.version} | {package.weight:.0f} | {asked} |")
    names = ", ".join(p.name for p in light)
    lines.append(f"| {len(light)} more | | {sum(p.weight for p in light):.1f} | {names} |")
    lines.append(f"| all | | {sum(p.weight for p in heavy):.0f} | |")
    if missing:
        lines.append(f"\nNot installed: {', '.join(missing)}.")
    return "\n".join(lines)


def main() -> None:
    """Read the options, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, usage="%(prog)s [options]")
    parser.add_argument("--extras", default="", help="separated by commas")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    text = report([e for e in options.extras.split(",") if e])
    print(text)
    if options.out is not None:
        options.out.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
