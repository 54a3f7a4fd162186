"""The kinds of files that may come from strangers: how each is mutated, and what reads it.

A kind makes a case of a random generator and an empty folder, in which it writes its files. A case
is run by what users run. What it returns is what the files were taken for, in a text: two cases
that mean the same give the same text.
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
"""A number in files that no case may have read."""

LARGE = 0.03
"""Share of the cases that ask for much: they take a hundred times as long as others."""

TURNS = frozenset("LRE RLE LRO RLO PDF LRI RLI FSI PDI".split())
"""Classes of characters that turn the direction of what follows."""

Expectation = Literal["same", "refused", "noticed", "any"]


@dataclass(frozen=True)
class Case:
    """A mutated input.

    Attributes
    ----------
    detail
        What was changed.
    expected
        What may come of it; ``any`` where only faults of every kind count.
    run
        What reads the files; it returns what they mean.
    reference
        What the files meant before they were changed.
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
        A function that makes what cases start from, in a folder of its own.
    make
        A function that makes a case, of what was prepared, a generator and an empty folder.
    """

    name: str
    share: float
    prepare: Callable[[Path], Any]
    make: Callable[[Any, random.Random, Path], Case]


class WrongSuccessError(Exception):
    """Raised for an input that was accepted and should not have been."""


class OutputError(Exception):
    """Raised for an output with characters that a terminal obeys."""


def command(*arguments: str) -> str:
    """Return what a command prints; a refusal is raised with its messages."""
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
    """Whether a terminal obeys a character instead of showing it."""
    if unicodedata.category(character) == "Cc":
        return character not in "\n\t"
    return unicodedata.bidirectional(character) in TURNS


def meaning(problem: odefit.Problem) -> str:
    """Return what a problem is, without remarks."""
    mapping = problem_to_mapping(problem)
    text = json.dumps(mapping, sort_keys=True, default=str)
    if str(CANARY) in text:
        raise WrongSuccessError("a file outside the folder was read")
    return text


def write(folder: Path, files: Mapping[str, str | bytes]) -> None:
    """Write files, and beside the folder some that must not be read."""
    for name, content in files.items():
        raw = content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass")
        (folder / name).write_bytes(raw)


def surroundings(folder: Path) -> None:
    """Write files beside a folder, which no case may read, and a link in it that leads there."""
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
    """Return the files of a problem before they are changed."""
    files = (f"{name}.toml", *PROBLEMS[name])
    return {file: (SEEDS / file).read_text(encoding="utf-8") for file in files}


def loaded(path: Path) -> str:
    """Return what a problem file means; its remarks are such that a terminal may show them."""
    problem = odefit.load(path)
    text = meaning(problem)
    for remark in problem.warnings:
        if any(map(obeyed, remark)):
            raise OutputError(repr(remark))
    return text
