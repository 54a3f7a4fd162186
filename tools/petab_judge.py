"""The outcome of a mutated PEtab problem: a problem, or an InputError that names the file.

Every mutation (``petab_mutations.py``) is read and evaluated. Faults are a message that names no
file, and a change that should have an effect but has none: equations, data, unknowns, values and
notes of the problem are then the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

import odefit
from odefit.formats.petab import read_petab
from odefit.simulation import Evaluation
from petab_mutations import Files, Mutation, Original


@dataclass(frozen=True)
class Outcome:
    """The outcome of a mutated problem.

    Attributes
    ----------
    verdict
        ``"refused"``, ``"changed"``, ``"told"``, ``"same"``, or ``"fault"``.
    text
        The message, or the fault.
    """

    verdict: Literal["refused", "changed", "told", "same", "fault"]
    text: str = ""


@dataclass(frozen=True)
class Fingerprint:
    """The content of a problem, including two evaluations, whatever the order of its parts."""

    mapping: str
    unknowns: str
    values: tuple[float | str, ...]
    notes: frozenset[str]

    def same(self, other: Fingerprint) -> bool:
        """Return whether two problems have the same unknowns and values, apart from notes."""
        if self.unknowns != other.unknowns or len(self.values) != len(other.values):
            return False
        return all(
            a == b
            or (isinstance(a, float) and isinstance(b, float) and bool(np.isclose(a, b, rtol=1e-7)))
            for a, b in zip(self.values, other.values, strict=True)
        )


def fingerprint(path: Path) -> Fingerprint:
    """Return the content of a PEtab problem, including two evaluations.

    Raises
    ------
    InputError
        It cannot be read.
    """
    found = read_petab(path, nominal=True)
    problem = found.problem
    given = {key: value for key, value in found.mapping.items() if key != "name"}
    unknowns = sorted(repr(unknown) for unknown in problem.unknowns)
    forward = odefit.ForwardMap(problem)
    values: list[float | str] = [
        float(sum(c.size for c in problem.conditions)),
        float(len(problem.conditions)),
    ]
    for share in (0.4, 0.6):
        vector = np.array([_between(unknown, share) for unknown in problem.unknowns])
        evaluation = forward.evaluate_cost(vector)
        if isinstance(evaluation, Evaluation):
            likelihood = evaluation.log_likelihood
            values += [evaluation.objective, likelihood if likelihood is not None else "none"]
        else:
            values.append("failure")
    notes = frozenset((*problem.notes, *problem.warnings))
    return Fingerprint(repr(given), "\n".join(unknowns), tuple(values), notes)


def _between(unknown: Any, share: float) -> float:
    """Return a value of an unknown that depends only on its bounds and guess."""
    unknown = unknown.parameter
    lower, upper = unknown.lower, unknown.upper
    if unknown.guess is not None:
        return float(min(max(unknown.guess * (0.8 + 0.4 * share), lower), upper))
    if lower > 0 and np.isfinite(upper):
        return float(lower ** (1 - share) * upper**share)
    if np.isfinite(lower) and np.isfinite(upper):
        return float(lower + share * (upper - lower))
    return share


def unmutated(original: Original, folder: Path) -> Fingerprint:
    """Return the fingerprint of a problem as it is."""
    for name, text in original.files.items():
        (folder / name).write_text(text, encoding="utf-8", newline="")
    return fingerprint(folder / original.main)


def outcome(mutation: Mutation, main: str, first: Fingerprint, folder: Path) -> Outcome:
    """Return the outcome of a mutation, judged by its expectation."""
    for old in folder.iterdir():
        old.unlink()
    for name, text in mutation.files.items():
        (folder / name).write_text(text, encoding="utf-8", newline="")
    try:
        found = fingerprint(folder / main)
    except odefit.InputError as error:
        wrong = [m for m in error.messages if not _has_place(m, mutation.files, folder)]
        if wrong:
            return Outcome("fault", f"a message without a file: {wrong[0]}")
        refused = Outcome("refused", error.messages[0])
        if mutation.expected == "same":
            return Outcome("fault", f"refused: {refused.text}")
        return refused
    alike = found.same(first) and (mutation.expected == "same" or found.mapping == first.mapping)
    if not alike:
        verdict = Outcome("changed")
    else:
        verdict = Outcome("same" if found.notes == first.notes else "told")
    if mutation.expected == "refused":
        return Outcome("fault", f"not refused, but {verdict.verdict}")
    if mutation.expected == "noticed" and verdict.verdict == "same":
        return Outcome("fault", "passed unnoticed")
    if mutation.expected == "same" and verdict.verdict == "changed":
        return Outcome("fault", "another problem")
    return verdict


def _has_place(message: str, files: Files, folder: Path) -> bool:
    places = (*files, str(folder))
    return any(place in message for place in places) or ".tsv" in message or ".xml" in message
