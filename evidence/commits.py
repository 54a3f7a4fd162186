"""Commits by which results were made, and their age.

The number of a commit is the count of commits of the main branch up to it. These numbers order
commits even in a copy of the tree without its history.
"""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
UNKNOWN = "not recorded"  # the text for a fact that nobody recorded

SINCE = 1110
"""The number of commit 14d46942 of 29 November 2026; tables of older commits give a reason."""

MADE_BY_RUNS = (":!evidence/results/pages", ":!docs/benchmarks")  # no change of the program

_NUMBERED = re.compile(r"\b[0-9a-f]{7,40}(?P<dirty>-dirty)? \(number (?P<number>\d+)\)")


def tree_version() -> str:
    """Return the version of odefit in this checkout, whatever is installed beside it."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    return str(tomllib.loads(text)["project"]["version"])


def current() -> str:
    """Return the commit of this checkout with its number; ``-dirty`` where files were changed."""
    name, number = _git("rev-parse", "--short=8", "HEAD"), _git("rev-list", "--count", "HEAD")
    if not name:
        return UNKNOWN
    changed = _git("status", "--porcelain", "--untracked-files=no", "--", ".", *MADE_BY_RUNS)
    return f"{name}{'-dirty' if changed else ''} (number {number})"


def named(commits: list[str]) -> str:
    """Return a text of the commits of a resumed run, the oldest first."""
    several = list(dict.fromkeys(commits))
    return f"commit {several[0]}" if len(several) == 1 else f"commits {' to '.join(several)}"


def old(version: str) -> bool:
    """Return whether a table was made before `SINCE`, or with uncommitted changes."""
    found = list(_NUMBERED.finditer(version))
    return not found or any(m["dirty"] or int(m["number"]) < SINCE for m in found)


def _git(*arguments: str) -> str:
    command = ["git", "-C", str(ROOT), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
