"""The kinds of files that may come from strangers, with their mutations and their readers.

A kind makes a case from a random generator and an empty folder, in which it writes its files. A
case runs the functions that users run. It returns the meaning of the files as a text: two cases
with the same meaning return the same text.
"""

from __future__ import annotations

import contextlib
import io
import json
import random
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import odefit
from odefit.cli.main import main as odefit_command
from odefit.problem.toml.files import problem_to_mapping

SEEDS = Path(__file__).parent / "mutation_seeds"
TESTS = Path(__file__).parents[1] / "tests"

CANARY = 987654.25
"""A number in files that no case may read."""

LARGE = 0.03
"""Share of the cases with large requests: they take a hundred times as long as others."""

TURNS = frozenset("LRE RLE LRO RLO PDF LRI RLI FSI PDI".split())
"""Classes of characters that change the direction of text."""

Expectation = Literal["same", "refused", "noticed", "any"]


@dataclass(frozen=True)
class Case:
    """A mutated input.

    Attributes
    ----------
    detail
        The change of the input.
    expected
        The allowed outcome; ``any`` if only general faults count.
    run
        The function that reads the files and returns their meaning.
    reference
        The meaning of the files before the change.
    """

    detail: str
    expected: Expectation
    run: Callable[[], str]
    reference: str = ""


@dataclass(frozen=True)
class Kind:
    """A kind of file.

    Attributes
    ----------
    name
        Its name in the table.
    share
        Its share of the cases.
    prepare
        A function that makes the originals of the cases, in a separate folder.
    make
        A function that makes a case from the originals, a generator and an empty folder.
    """

    name: str
    share: float
    prepare: Callable[[Path], Any]
    make: Callable[[Any, random.Random, Path], Case]


class WrongSuccessError(Exception):
    """Raised for an input that was accepted but should have been refused."""


class OutputError(Exception):
    """Raised for an output with characters that control a terminal."""


def command(*arguments: str) -> str:
    """Return the output of a command; a refusal is raised with its messages."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = odefit_command(arguments)
    for text in (out.getvalue(), err.getvalue()):
        wrong = [c for c in text if obeyed(c)]
        if wrong:
            at = text.index(wrong[0])
            raise OutputError(f"{wrong[0]!r} in {text[max(0, at - 60) : at + 60]!r}")
    if status == 2:
        lines = [line for line in err.getvalue().split("\n") if line.startswith("error: ")]
        raise odefit.InputError([line.removeprefix("error: ") for line in lines])
    return out.getvalue()


def obeyed(character: str) -> bool:
    """Return whether a character controls a terminal instead of being shown."""
    if unicodedata.category(character) == "Cc":
        return character not in "\n\t"
    return unicodedata.bidirectional(character) in TURNS


def meaning(problem: odefit.Problem) -> str:
    """Return the meaning of a problem, without remarks."""
    mapping = problem_to_mapping(problem)
    text = json.dumps(mapping, sort_keys=True, default=str)
    if str(CANARY) in text:
        raise WrongSuccessError("a file outside the folder was read")
    return text


def write(folder: Path, files: Mapping[str, str | bytes]) -> None:
    """Write files, and some files beside the folder that must not be read."""
    for name, content in files.items():
        raw = content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass")
        (folder / name).write_bytes(raw)


def surroundings(folder: Path) -> None:
    """Write files beside a folder, which no case may read, and a link to them in the folder."""
    outside = folder.parent / "outside.csv"
    outside.write_text(f"t,x,y1,y2,u\n0,{CANARY},1,1,1\n1,{CANARY},1,1,1\n")
    (folder.parent / "outside.ant").write_text(f"canary = {CANARY}; y' = -canary*y; y = 1\n")
    (folder / "link.csv").symlink_to(outside)


PROBLEMS = {
    "decay": ("decay.csv",),
    "full": ("one.csv", "two.csv"),
    "reactions": ("enzyme.csv",),
    "doses": ("doses.csv",),
}


def seed_texts(name: str) -> dict[str, str]:
    """Return the files of a problem before any change."""
    files = (f"{name}.toml", *PROBLEMS[name])
    return {file: (SEEDS / file).read_text(encoding="utf-8") for file in files}


def loaded(path: Path) -> str:
    """Return the meaning of a problem file; check that a terminal may show its remarks."""
    problem = odefit.load(path)
    text = meaning(problem)
    for remark in problem.warnings:
        if any(map(obeyed, remark)):
            raise OutputError(repr(remark))
    return text
