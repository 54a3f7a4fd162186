"""Mutations of files that odefit has written: results, checkpoints, entries of the cache."""

from __future__ import annotations

import contextlib
import json
import os
import random
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import odefit
from input_kinds import (
    CANARY,
    LARGE,
    SEEDS,
    TESTS,
    Case,
    Expectation,
    WrongSuccessError,
    command,
    surroundings,
    write,
)
from input_mutations import (
    PLACES,
    WORDS,
    mutated_bytes,
    mutated_tree,
)


def prepare_results(folder: Path) -> list[tuple[str, str]]:
    """Return results as texts, each with its meaning."""
    paths = sorted(TESTS.glob("results-format-*/*.json"))
    texts = [text for path in paths if '"solutions": []' not in (text := path.read_text("utf-8"))]
    result = odefit.fit(odefit.load(SEEDS / "decay.toml"), jobs=1)
    result = result.with_profiles(result.profile(jobs=1))
    result.save(folder / "decay.json")
    texts += [(folder / "decay.json").read_text(encoding="utf-8")] * 2
    found = []
    for i, text in enumerate(texts):
        path = folder / f"{i}.json"
        path.write_text(text, encoding="utf-8")
        found.append((text, _result_meaning(path)))
    return found


def result_case(given: list[tuple[str, str]], rng: random.Random, folder: Path) -> Case:
    """Change a result."""
    text, reference = rng.choice(given)
    expected: Expectation = "any"
    content: str | bytes
    how = rng.choice(("tree", "tree", "bytes", "bytes", "known"))
    how = "large" if rng.random() < LARGE else how
    if how == "tree":
        tree, detail = mutated_tree(json.loads(text), rng)
        content = as_json(tree)
    elif how == "bytes":
        content, detail = mutated_bytes(text.encode(), rng)
    elif how == "known":
        content, detail, expected = _known_change(json.loads(text), rng)
    else:
        content, detail = rng.choice(
            (
                ("[" * 200_000, "lists in each other"),
                ('{"a":' * 200_000, "objects in each other"),
                ('{"format": ' + "9" * 10_000 + "}", "a long number"),
                (text.replace('"seconds"', '"seconds": 1e999, "seconds"', 1), "a key twice"),
                (text.replace("[", "[" + "1, " * 100_000, 1), "a long list"),
                ("\ufeff" + text, "a byte order mark"),
                (text.replace("0.", "NaN, 0.", 1), "not a number"),
                (text.encode("utf-16"), "UTF-16"),
                ("", "empty"),
                ("{}", "nothing"),
                ("null", "null"),
            )
        )
    surroundings(folder)
    write(folder, {"result.json": content})

    def run() -> str:
        found = _result_meaning(folder / "result.json")
        if rng_show:
            command("show", str(folder / "result.json"))
        return found

    rng_show = rng.random() < 0.5
    return Case(detail, expected, run, reference)


def _known_change(tree: Any, rng: random.Random) -> tuple[str, str, Expectation]:
    """Return a result with a change whose consequence is known."""
    best = tree["solutions"][0]
    what = rng.choice(("newer", "objective", "best objective", "parameter", "vector", "order",
                       "file", "unknown key", "status", "shape", "start", "length"))  # fmt: skip
    expected: Expectation = "refused"
    if what == "newer":
        tree["format"] = rng.choice((2, 1.5, "1", "2", None, [1], 10**30, True))
    elif what == "objective":
        tree["objective"] = tree["objective"] * 0.5 - 0.1
    elif what == "best objective":
        best["objective"] = best["objective"] * 0.5 - 0.1
    elif what == "parameter":
        key = rng.choice([*best["parameters"]] or ["none"])
        place = rng.choice((tree["parameters"], best["parameters"]))
        place[key] = place.get(key, 1.0) * 1.5 + 1
    elif what == "vector":
        best["vector"][0] += 1.0
    elif what == "order":
        keys = [*tree["unknowns"]]
        tree["unknowns"] = keys[::-1] if len(keys) > 1 else [*keys, "q"]
    elif what == "file":
        tree["problem_definition"]["experiment"][0]["data"] = rng.choice(PLACES)
    elif what == "unknown key":
        rng.choice((tree, best))["surprise"] = 1
    elif what == "status":
        tree["status"] = rng.choice(WORDS)
    elif what == "shape":
        best["vector"].append(1.0)
    elif what == "start" and tree["starts"]:
        rng.choice(tree["starts"])["vector"] = []
    elif what == "length":
        tree["solutions"] = "x"
    else:
        tree["starts"] = 3
    return as_json(tree), what, expected


def as_json(tree: Any) -> str:
    """Return a tree as JSON, or an empty value if Python cannot write it."""
    try:
        return json.dumps(tree)
    except ValueError:  # an integer that Python does not write
        return '{"format": ' + "9" * 5000 + "}"


def _result_meaning(path: Path) -> str:
    result = odefit.load_result(path)
    written = path.with_name("again.json")
    result.save(written)
    text = written.read_text(encoding="utf-8")
    if str(CANARY) in text:
        raise WrongSuccessError("a file outside the folder was read")
    given, again = json.loads(path.read_text(encoding="utf-8-sig")), json.loads(text)
    for key in ("objective", "parameters", "initial", "noise", "problem"):
        if given.get(key, again[key]) != again[key]:
            raise WrongSuccessError(f"{key} says {given[key]!r}, the result {again[key]!r}"[:300])
    return text


@dataclass(frozen=True)
class Work:
    """Long work with a checkpoint: its file, that of other work, and its findings.

    Attributes
    ----------
    resume
        A function that continues from a checkpoint and returns the findings.
    content, other
        The checkpoint, and that of the same work with other options.
    found
        The findings.
    """

    resume: Callable[[Path], str]
    content: bytes
    other: bytes
    found: str


def _decay() -> odefit.Problem:
    return odefit.load(SEEDS / "decay.toml")


def _told(result: odefit.Result) -> str:
    values = [*result.best.vector, result.best.objective]
    true = odefit.ForwardMap(result.problem).evaluate_cost(result.best.vector)
    objective = getattr(true, "objective", None)
    if objective is None or not np.isclose(objective, result.best.objective, rtol=1e-4):
        raise WrongSuccessError(f"the objective is {objective}, not {result.best.objective}")
    return " ".join(f"{v:.4g}" for v in values)


def _fit(checkpoint: Path, seed: int = 0) -> str:
    method = odefit.MultiStart(starts=3)
    return _told(odefit.fit(_decay(), method, jobs=1, seed=seed, checkpoint=checkpoint))


def _prove(checkpoint: Path, seed: int = 0) -> str:
    method = odefit.BranchAndBound()
    result = odefit.fit(_decay(), method, jobs=1, seed=seed, checkpoint=checkpoint)
    bounds = result.assessment.bounds
    assert bounds is not None
    return f"{_told(result)}, {bounds.lower:.3f}, {bounds.closed}"


def prepare_checkpoints(folder: Path) -> list[Work]:
    """Return a fit, profiles and a proof, each with its checkpoint."""
    result = odefit.load_result(_saved(folder))

    def profiles(checkpoint: Path, level: float = 0.95) -> str:
        found = result.profile(jobs=1, checkpoint=checkpoint, level=level)
        return found.table.iloc[:, :3].to_string(float_format="%.3g")

    found = []
    works: list[tuple[Callable[..., str], dict[str, float]]] = [
        (_fit, {"seed": 1}),
        (profiles, {"level": 0.9}),
        (_prove, {"seed": 1}),
    ]
    for number, (resume, other) in enumerate(works):
        paths = folder / f"work-{number}", folder / f"other-{number}"
        told = resume(paths[0])
        resume(paths[1], **other)
        found.append(Work(resume, paths[0].read_bytes(), paths[1].read_bytes(), told))
    return found


def _saved(folder: Path) -> Path:
    path = folder / "decay.json"
    odefit.fit(_decay(), odefit.MultiStart(starts=2), jobs=1).save(path)
    return path


def checkpoint_case(given: list[Work], rng: random.Random, folder: Path) -> Case:
    """Change a checkpoint; work that continues from it must have the same findings.

    If digests are recomputed, which no accident does, the findings may differ as long as their
    objective is correct.
    """
    work = rng.choice(given)
    path = folder / "checkpoint"
    how = rng.choice(("bytes", "bytes", "records", "forged", "sql", "other", "noise"))
    expected: Expectation = "any"
    detail = how
    write(folder, {"checkpoint": work.content})
    if how == "bytes":
        content, detail = mutated_bytes(work.content, rng)
        write(folder, {"checkpoint": content})
    elif how == "noise":
        write(folder, {"checkpoint": rng.randbytes(rng.choice((0, 1, 100, 5000)))})
    elif how == "other":
        expected = "refused"
        write(folder, {"checkpoint": work.other})
    elif how == "sql":
        detail = _statement(path, rng)
    else:
        detail = _records(path, rng, how == "forged")

    def run() -> str:
        found = work.resume(path)
        if found != work.found and how != "forged":
            raise WrongSuccessError(f"{found}, not {work.found}")
        return found

    return Case(detail, expected, run, work.found)


def _records(path: Path, rng: random.Random, forged: bool) -> str:
    """Change a record; a forged record gets a matching digest."""
    from odefit.methods.running.checkpoint import Checkpoint

    with closing(sqlite3.connect(path)) as database:
        rows = database.execute("SELECT kind, key, value FROM records").fetchall()
        kind, key, text = rng.choice(rows)
        tree, detail = mutated_tree(json.loads(text), rng)
        try:
            changed = json.dumps(tree)
        except ValueError:
            changed = "9" * 5000
        (identity,) = database.execute(
            "SELECT identity FROM work WHERE kind = ?", (kind,)
        ).fetchone()
        database.execute("UPDATE records SET value = ? WHERE key = ?", (changed, key))
        if forged:
            book = Checkpoint(path.with_name("none"), kind, identity)
            digest = book._digest(key, changed)
            database.execute("UPDATE records SET digest = ? WHERE key = ?", (digest, key))
        database.commit()
    return detail


STATEMENTS = (
    "DROP TABLE records", "DROP TABLE work", "DELETE FROM records", "DELETE FROM work",
    "PRAGMA user_version = 99", "PRAGMA user_version = 1", "PRAGMA application_id = 1",
    "ALTER TABLE records ADD COLUMN more", "CREATE TABLE more (x)",
    "CREATE VIEW more AS SELECT load_extension('x')",
    "CREATE TRIGGER more AFTER INSERT ON records BEGIN DELETE FROM records; END",
    "UPDATE records SET value = zeroblob(50000000)", "UPDATE records SET value = 1",
    "UPDATE records SET value = NULL WHERE 0", "UPDATE records SET key = 'x' || key",
    "UPDATE records SET digest = ''", "UPDATE work SET identity = 'x'",
    "UPDATE work SET writer = 'x'", "UPDATE work SET version = char(27) || '[31m'",
    "INSERT INTO records SELECT kind, 'more' || key, value, digest FROM records",
    "UPDATE records SET value = printf('%.*c', 3000000, '[')", "DROP TABLE IF EXISTS none",
)  # fmt: skip


def _statement(path: Path, rng: random.Random) -> str:
    """Change the database."""
    statement = rng.choice(STATEMENTS)
    with closing(sqlite3.connect(path)) as database:
        database.execute(statement)
        database.commit()
    return statement


# The cache -------------------------------------------------------------------------------------


def prepare_cache(folder: Path) -> tuple[odefit.Problem, str, str, str]:
    """Return a problem, the name and the text of its entry, and the findings from its equations."""
    problem = odefit.load(SEEDS / "reactions.toml")
    with _cache(folder / "cache"):
        found = _generic(problem)
    (entry,) = (folder / "cache").glob("*.json")
    return problem, entry.name, entry.read_text(encoding="utf-8"), found


@contextlib.contextmanager
def _cache(folder: Path) -> Iterator[None]:
    before = os.environ["ODEFIT_CACHE"]
    os.environ["ODEFIT_CACHE"] = str(folder)
    try:
        yield
    finally:
        os.environ["ODEFIT_CACHE"] = before


def _generic(problem: odefit.Problem) -> str:
    from odefit.methods.algebraic.preparation import prepare

    found = prepare(problem).generic
    return f"{len(found.solutions)} solutions: {np.round(found.solutions, 5).tolist()}"


def cache_case(
    given: tuple[odefit.Problem, str, str, str], rng: random.Random, folder: Path
) -> Case:
    """Change an entry of the cache; the findings from the equations must stay the same."""
    problem, name, text, found = given
    if rng.random() < 0.5:
        content, detail = mutated_bytes(text.encode(), rng)
    else:
        tree, detail = mutated_tree(json.loads(text), rng)
        content = as_json(tree).encode()
    write(folder, {name: content})

    def run() -> str:
        with _cache(folder):
            told = _generic(problem)
        if told != found:
            raise WrongSuccessError(f"{told[:100]}, not {found[:100]}")
        return told

    return Case(detail, "any", run, found)
