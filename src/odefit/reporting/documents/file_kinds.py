"""The format of a file, taken from its name before any long work begins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from odefit.common.errors import InputError
from odefit.common.packages import require
from odefit.reporting.programs.languages import TARGETS

RESULTS: Mapping[str, str] = {".json": "the result, which odefit.load_result reads back"}
"""Formats of a whole result."""

TABLES: Mapping[str, str] = {
    ".csv": "the estimates as a table",
    ".md": "the estimates as a table in Markdown",
    ".tex": "the estimates as a LaTeX table (booktabs)",
}
"""Formats of the table of estimates."""

PROGRAMS: Mapping[str, str] = {
    suffix: f"the model with its estimates as a program in {target.name}"
    for suffix, target in TARGETS.items()
}
"""Formats of the model with its estimates."""

REPORTS: Mapping[str, Sequence[str]] = {
    ".html": ("matplotlib", "jinja2"),
    ".md": (),
}
"""Formats of a report, and the packages that each needs."""


def suffix_of(
    path: str | Path, known: Mapping[str, object], content: str, instead: str = ""
) -> str:
    """Return the suffix of a file, which determines its format.

    ``known`` holds the formats by suffix. Any other suffix raises an :class:`InputError`, whose
    message ``content`` and ``instead`` complete.
    """
    suffix = Path(path).suffix.lower()
    if suffix in known:
        return suffix
    has = f"'{suffix}' is not one of" if suffix else "its name has none of"
    more = f"; {instead}" if instead else ""
    raise InputError(f"{path}: {content} is written as {', '.join(known)}, and {has} these{more}")


def check_saved(path: str | Path) -> str:
    """Return the suffix of a file for :meth:`odefit.Result.save`; see :func:`suffix_of`."""
    instead = "result.report(path) writes .html and .md"
    return suffix_of(path, {**RESULTS, **TABLES, **PROGRAMS}, "a result", instead)


def check_table(path: str | Path) -> str:
    """Return the suffix of a file for a table of estimates; see :func:`suffix_of`."""
    return suffix_of(path, TABLES, "a table")


def check_report(path: str | Path) -> str:
    """Return the suffix of a report's file, after a check of the packages that it needs.

    An unknown suffix and a missing package raise an :class:`InputError`.
    """
    on_paper = "write .html, and print it to PDF from a browser"
    instead = on_paper if Path(path).suffix.lower() == ".pdf" else ""
    suffix = suffix_of(path, REPORTS, "a report", instead)
    for package in REPORTS[suffix]:
        require(package)
    return suffix
