"""Problem files: TOML in format 1, with data beside it in CSV."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from odefit.common.errors import InputError
from odefit.problem.inputs.file_access import (
    MAX_EXPERIMENTS,
    MAX_PROBLEM_SIZE,
    checked_within,
    read_text,
    too_many_experiments,
)
from odefit.problem.inputs.issues import Issues
from odefit.problem.problem import Problem
from odefit.problem.toml.limits import check_toml
from odefit.problem.toml.reading import problem_from_mapping
from odefit.problem.toml.writing import problem_to_mapping

__all__ = ["load", "problem_from_mapping", "problem_to_mapping"]


def load(path: str | os.PathLike[str], *, within: str | os.PathLike[str] | None = None) -> Problem:
    """Read the problem in a file of format 1, which ``docs/problem-file.md`` describes.

    Paths of data files are relative to the file, and within its folder or that of `within`. Nothing
    in the file is ever executed.
    """
    source = os.fspath(path)
    issues = Issues()
    text = read_text(Path(source), source, issues, MAX_PROBLEM_SIZE)
    issues.raise_errors()
    raw = parsed_toml(text or "", source)
    listed = raw.get("experiment")
    if isinstance(listed, list) and len(listed) > MAX_EXPERIMENTS:
        raise InputError(f"{source}: [[experiment]]: {too_many_experiments()}")
    return problem_from_mapping(raw, Path(source).parent, source, within=checked_within(within))


def parsed_toml(text: str, source: str) -> dict[str, Any]:
    """Return the tables of a TOML text; messages name the file `source`."""
    import tomllib

    if not text.strip():
        raise InputError(f'{source}: the file is empty; a problem file starts with "format = 1"')
    check_toml(text, source)
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        line, column = _position(text, len(text.rstrip("\n")))
        at = f"(at line {line}, column {column})"
        message = str(error).replace("(at end of document)", at)
        hint = _hint(source)
        match = re.search(r"\(at line (\d+), column \d+\)", message)
        written = text.split("\n")[int(match[1]) - 1] if match else ""
        key = _BARE_KEY.match(written)
        if key:
            hint = f'; a key with brackets needs quotes: "{key[1]}" = ...'
        raise InputError(f"{source}: {message}{hint}") from None
    except ValueError:  # a decimal integer that is too long for Python
        match = re.search(r"[0-9_]{4000,}", text)
        line, column = _position(text, match.start() if match else 0)
        raise InputError(
            f"{source}: a number has too many digits (at line {line}, column {column})"
        ) from None


def _hint(source: str) -> str:
    """Return what a file that is not TOML may be, by its name, and what to do with it."""
    suffix = Path(source).suffix.lower()
    if suffix == ".toml":
        return ""
    if suffix in {".csv", ".tsv"}:
        return f"; for a table, odefit new {source} writes a first problem file"
    if suffix == ".json":
        return "; is this a result? Name its problem file, with --start to go on from the result"
    return "; is this a problem file (TOML)?"


_BARE_KEY = re.compile(r"\s*([A-Za-z_]\w*\s*(?:\[[^\[\]]*\]|\([^()]*\)))\s*=")
"""The key of an array or a function without its quotes."""


def _position(text: str, index: int) -> tuple[int, int]:
    """Return line and column of a character, counted from 1."""
    before = text[:index]
    return before.count("\n") + 1, index - (before.rfind("\n") + 1) + 1
