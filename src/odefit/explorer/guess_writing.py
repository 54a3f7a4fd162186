"""Values of the unknowns written to a problem file as guesses, with all else unchanged."""

from __future__ import annotations

import difflib
import hashlib
import math
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass
from pathlib import Path

from odefit.common.errors import InputError
from odefit.common.packages import require
from odefit.common.partial_files import write_atomically
from odefit.problem.inputs.file_access import MAX_PROBLEM_SIZE, read_content
from odefit.problem.inputs.issues import Issues
from odefit.problem.parameters import Unknown
from odefit.problem.problem import Problem
from odefit.problem.toml.files import parsed_toml
from odefit.problem.toml.reading import problem_from_mapping

DIGITS = 7
"""Significant digits of the written guesses."""


@dataclass(frozen=True)
class Proposal:
    """A proposed change of a problem file, as a unified diff.

    A file whose `digest` has changed since it was read is not overwritten. `remarks` are sentences
    on values that cannot be written.
    """

    path: Path
    text: str
    difference: str
    digest: str
    remarks: tuple[str, ...]


def propose(path: Path, problem: Problem, values: Mapping[str, float]) -> Proposal:
    """Return the change of a problem file when values become its guesses.

    Comments, layout and order do not change. Raises InputError if the file cannot be read, or no
    longer defines these unknowns.
    """
    require("tomlkit")
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    content = _content(path)
    try:
        old = content.decode("utf-8")
        parsed_toml(old, str(path))  # it has the better messages
        document = tomlkit.parse(old)
    except (UnicodeDecodeError, TOMLKitError, RecursionError) as error:
        raise InputError(f"{path}: can no longer be read: {error}") from error
    remarks: list[str] = []
    for name, group in _groups(problem).items():
        chosen = [values[u.key] for u in group]
        unknown = group[0]
        if unknown.kind == "noise":
            remarks.append(f"{name} is not written: a problem file has no guesses of noise.")
        elif min(chosen) != max(chosen):
            remarks.append(
                f"{name} is not written: each experiment has its own value, but the file has one "
                "guess for all of them."
            )
        else:
            section = "parameters" if unknown.kind == "parameter" else "initial"
            table = document.get(section, {})
            field = table.get(name) if isinstance(table, MutableMapping) else None
            if isinstance(field, MutableMapping):
                field["guess"] = rounded(chosen[0], unknown)
            else:
                remarks.append(f"{name} is not written: [{section}] has no table for it.")
    new = tomlkit.dumps(document)
    if "\r\n" in old:  # an added line has the line end of the others
        new = new.replace("\r\n", "\n").replace("\n", "\r\n")
    _check(new, path)
    lines = difflib.unified_diff(
        old.splitlines(), new.splitlines(), f"{path.name} (now)", f"{path.name} (new)", lineterm=""
    )
    return Proposal(
        path, new, "\n".join(lines), hashlib.sha256(content).hexdigest(), tuple(remarks)
    )


def carry_out(proposal: Proposal) -> None:
    """Write a proposal to its file; raises InputError if that has changed or cannot be written."""
    if hashlib.sha256(_content(proposal.path)).hexdigest() != proposal.digest:
        raise InputError(
            f"{proposal.path.name} has changed since the difference was shown and was not "
            "overwritten; show the difference again"
        )
    mode = proposal.path.stat().st_mode & 0o777
    write_atomically(proposal.path, proposal.text)
    proposal.path.chmod(mode)


def rounded(value: float, unknown: Unknown) -> float:
    """Return a value with :data:`DIGITS` digits, or unchanged if that leaves the bounds."""
    short = float(f"{value:.{DIGITS}g}")
    p = unknown.parameter
    return short if p.lower <= short <= p.upper else float(value)


def _groups(problem: Problem) -> dict[str, list[Unknown]]:
    """Return the unknowns by name: those of one name share a guess."""
    groups: dict[str, list[Unknown]] = {}
    for unknown in problem.unknowns:
        groups.setdefault(unknown.name, []).append(unknown)
    return groups


def _content(path: Path) -> bytes:
    issues = Issues()
    content = read_content(path, str(path), issues, MAX_PROBLEM_SIZE)
    issues.raise_errors()
    assert content is not None  # otherwise there was an error
    return content


def _check(text: str, path: Path) -> None:
    """Read the new file before it replaces the old one."""
    # The allowed places of its tables were checked when the problem was read.
    anywhere = Path(path.resolve().anchor)
    problem_from_mapping(parsed_toml(text, str(path)), path.parent, str(path), within=anywhere)


def with_guesses(problem: Problem, values: Mapping[str, float]) -> Problem:
    """Return a problem with other guesses; a value outside its bounds raises InputError.

    An experiment's own parameters share a guess: the geometric mean if all are positive, otherwise
    the arithmetic one. Noise has none.
    """
    guesses: dict[str, float] = {}
    for name, group in _groups(problem).items():
        if group[0].kind == "parameter":
            guesses[name] = _mean([values[u.key] for u in group])
        elif group[0].kind == "initial":
            guesses |= {u.key: values[u.key] for u in group}
    return problem.with_unknowns(guess=guesses)


def _mean(values: list[float]) -> float:
    """Return the geometric mean of positive values, otherwise the arithmetic mean."""
    if len(values) == 1:
        return values[0]
    if min(values) > 0:
        return math.exp(sum(map(math.log, values)) / len(values))
    return sum(values) / len(values)
