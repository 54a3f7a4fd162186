"""Mutated PEtab problems: whatever is in the files, there is a problem or an InputError.

    python tools/mutated_petab.py FOLDER... [--count 2000] [--seed 1] [--show 20]

FOLDER is one with the YAML file of a problem, or with folders that have one. Every mutation
(``petab_mutations.py``) is read and evaluated. Faults are: an exception other than InputError, a
message that names no file, and a change that passed unnoticed where it should not, which means that
the problem has the same equations, data, unknowns and values, and no other note.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import traceback
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

import odefit
from odefit.formats.petab import read_petab
from odefit.simulation import Evaluation
from petab_mutations import Files, Mutation, Original, mutations, originals


@dataclass(frozen=True)
class Outcome:
    """What came of a mutated problem.

    Attributes
    ----------
    verdict
        ``"refused"``, ``"changed"``, ``"told"``, ``"same"``, or ``"fault"``.
    text
        The message, or what is wrong.
    """

    verdict: Literal["refused", "changed", "told", "same", "fault"]
    text: str = ""


@dataclass(frozen=True)
class Fingerprint:
    """What a problem is, as far as two evaluations tell, whatever the order of its parts."""

    mapping: str
    unknowns: str
    values: tuple[float | str, ...]
    notes: frozenset[str]

    def same(self, other: Fingerprint) -> bool:
        """Whether two problems have the same unknowns and values, notes aside."""
        if self.unknowns != other.unknowns or len(self.values) != len(other.values):
            return False
        return all(
            a == b
            or (isinstance(a, float) and isinstance(b, float) and bool(np.isclose(a, b, rtol=1e-7)))
            for a, b in zip(self.values, other.values, strict=True)
        )


def fingerprint(path: Path) -> Fingerprint:
    """Return what a PEtab problem says, and what two evaluations tell of it.

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
    """Return a value of an unknown that hangs on nothing but its bounds and guess."""
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
    """Return what comes of a mutation, judged by what is expected of it."""
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
    except Exception:  # noqa: BLE001 (whatever it is, that is what is looked for)
        return Outcome("fault", traceback.format_exc().strip())
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


def main(arguments: list[str] | None = None) -> int:
    """Mutate, load, evaluate, and say what came of it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show", type=int, default=20, help="the number of faults that are shown")
    parser.add_argument("--messages", type=int, default=0, help="the number of messages shown")
    options = parser.parse_args(arguments)
    given = [original for folder in options.folders for original in originals(folder)]
    counts: Counter[tuple[str, str]] = Counter()
    faults = messages = 0
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        first: dict[int, Fingerprint] = {}
        for original in list(given):
            try:
                first[id(original)] = unmutated(original, folder)
            except odefit.InputError as error:
                print(f"left out: {original.name}: {error.messages[0]}")
                given.remove(original)
        for original, mutation in mutations(given, options.count, options.seed):
            found = outcome(mutation, original.main, first[id(original)], folder)
            counts[mutation.kind, found.verdict] += 1
            if found.verdict == "fault":
                faults += 1
                if faults <= options.show:
                    print(
                        f"FAULT {original.name}, {mutation.kind}, {mutation.detail}: {found.text}"
                    )
            elif found.verdict == "refused" and messages < options.messages:
                messages += 1
                print(f"{mutation.kind}, {mutation.detail}: {found.text}")
    verdicts = ("refused", "changed", "told", "same", "fault")
    print(f"\n{'':32s}" + "".join(f"{v:>9s}" for v in verdicts))
    for kind in sorted({kind for kind, _ in counts}):
        print(f"{kind:32s}" + "".join(f"{counts[kind, v]:9d}" for v in verdicts))
    total = [sum(n for (_, v), n in counts.items() if v == verdict) for verdict in verdicts]
    print(f"{'all':32s}" + "".join(f"{n:9d}" for n in total))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
