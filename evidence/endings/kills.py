"""Long work that is killed at random moments and resumed, beside the same work left alone.

Six kinds of long work run in separate processes, each with a checkpoint. Each is killed with
SIGKILL at a random moment and restarted until it completes. Its result must then equal that of a
run without kills bit for bit, except seconds and the log of branch and bound. The next campaign
begins without a checkpoint. The table counts the kills of each kind, the kills after which a
checkpoint existed, and the equal results. It also gives the ratio of the times with and without
kills.

Processes are forked (POSIX only), so that a kill costs no start of Python, and all work is done on
one core: set OMP_NUM_THREADS=1 and OPENBLAS_NUM_THREADS=1.
"""

from __future__ import annotations

import json
import os
import random
import re
import signal
import sqlite3
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import odefit
from evidence.running.campaign import Option, Record, Task, tasks_of
from evidence.running.output import listed
from odefit.assessment.sampling.bootstrap import bootstrap
from odefit.result_data.result_file import to_mapping

# A kill comes at a moment between zero and this share of the seconds of undisturbed work
SHARE = 0.6
Work = Callable[[Path | None], Any]  # work with a checkpoint or without; it returns JSON values


# The kinds of work ------------------------------------------------------------------------------


def multi_start(path: Path | None) -> Any:
    """Starts of single shooting."""
    problem = odefit.library.load("alpha-pinene")
    method = odefit.MultiStart(starts=50)
    return whole(odefit.fit(problem, method, seed=1, jobs=1, checkpoint=path))


def automatic(path: Path | None) -> Any:
    """The default method: routes side by side."""
    problem = odefit.library.load("fitzhugh-nagumo")
    return whole(odefit.fit(problem, odefit.Automatic(starts=24), seed=1, jobs=1, checkpoint=path))


def profiles(path: Path | None) -> Any:
    quantities = ["a@1", "b@2", "sum = a + b", "ratio = k/m"]
    result = FITTED["decays fitted"]
    found = result.profile(result.problem.keys, expressions=quantities, jobs=1, checkpoint=path)
    return plain(vars(found))


def samples(path: Path | None) -> Any:
    """A parametric bootstrap."""
    result = FITTED["alpha-pinene"]
    found = bootstrap(result.problem, result.best.vector, 800, seed=1, jobs=1, checkpoint=path)
    return plain(vars(found))


def tree(path: Path | None) -> Any:
    """Branch and bound over boxes, in continuous time."""
    problem = FITTED["decays"]
    method = odefit.BranchAndBound(gap=1e-1, starts=3)
    found = odefit.fit(problem, method, seed=1, jobs=1, checkpoint=path)
    return without_log(whole(found))


def outer(path: Path | None) -> Any:
    """Outer approximation of a discretised problem."""
    problem = FITTED["saturated"]
    method = odefit.OuterApproximation(
        elements=3, points=2, starts=3, tolerance=2e-3, contractions=3, bounds={"s": (0.0, 2.0)}
    )
    return whole(odefit.fit(problem, method, seed=1, jobs=1, checkpoint=path))


KINDS: dict[str, Work] = {
    "multi-start fit": multi_start,
    "automatic fit": automatic,
    "profiles": profiles,
    "bootstrap": samples,
    "branch and bound": tree,
    "outer approximation": outer,
}

# What all processes share: problems, and the result of which profiles and samples are made
FITTED: dict[str, Any] = {}


def prepare() -> None:
    """Make the problems and the result that all processes share."""
    FITTED["alpha-pinene"] = odefit.fit(odefit.library.load("alpha-pinene"), seed=1, jobs=1)
    rng = np.random.default_rng(0)
    t = np.linspace(0.0, 4.0, 12)
    data = {"t": t, "y": 2.0 * np.exp(-0.7 * t) + 1.0 * np.exp(-0.2 * t)}
    data["y"] = data["y"] + 0.05 * rng.normal(size=len(t))
    model = odefit.Model(ode={"a": "-k*a", "b": "-m*b"}, observables={"y": "a + b"})
    bounds = {"k": (0.3, 2.0), "m": (0.01, 0.3)}
    start = {"a": (0.5, 4.0), "b": (0.2, 2.0)}
    FITTED["decays"] = odefit.Problem(
        model, data, parameters=bounds, initial=start, noise={"y": {"sd": 0.05}}
    )
    FITTED["decays fitted"] = odefit.fit(FITTED["decays"], seed=1, jobs=1)
    t = np.linspace(0.0, 2.0, 9)
    s = odefit.Model(ode={"s": "-v*s/(K + s)"}, observables={"s": "s"})
    values = 1.0 * np.exp(-0.9 * t) + 0.02 * rng.normal(size=len(t))
    FITTED["saturated"] = odefit.Problem(
        s,
        {"t": t, "s": values},
        parameters={"v": (0.1, 4.0), "K": (0.1, 4.0)},
        initial={"s": 1.0},
    )


# What is compared --------------------------------------------------------------------------------


def whole(result: odefit.Result) -> Any:
    """Return the contents of a result's file without seconds."""
    return plain(to_mapping(result))


def plain(value: Any) -> Any:
    """Return JSON values with hexadecimal floats, so that every bit counts, without seconds."""
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items() if k != "seconds"}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if isinstance(value, float):
        return value.hex()
    if isinstance(value, str):
        return re.sub(r"\d+(\.\d+)? s\b", "SECONDS", value)
    if value is None or isinstance(value, (bool, int)):
        return value
    return plain(vars(value)) if hasattr(value, "__dict__") else repr(value)


def without_log(found: Any) -> Any:
    """Return a result without the log of the bounds, which depends on seconds and resumptions."""
    if isinstance(found, dict):
        return {k: without_log(v) for k, v in found.items() if k != "history"}
    return [without_log(v) for v in found] if isinstance(found, list) else found


# Kills -------------------------------------------------------------------------------------------


@dataclass
class Count:
    """The counts of one kind of work."""

    alone: float = 0.0
    kills: int = 0
    with_records: int = 0
    ends: int = 0
    same: int = 0
    spent: float = 0.0
    failures: list[str] = field(default_factory=list)


def done(work: Work, path: Path | None, answer: Path, after: float | None) -> tuple[int, float]:
    """Run work in a separate process; return its exit status (-9: killed) and its seconds."""
    began = time.monotonic()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.setsid()
            text = json.dumps(work(path), sort_keys=True)
            beside = answer.with_suffix(".new")
            beside.write_text(text, encoding="utf-8")
            beside.replace(answer)
            status = 0
        finally:
            os._exit(status)
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        seconds = time.monotonic() - began
        if done:
            return os.waitstatus_to_exitcode(status), seconds
        if after is not None and seconds >= after:
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
            after = None
        time.sleep(0.002)


def records(path: Path) -> int:
    """Return the number of records in a file, which must be intact after every kill."""
    if not path.exists() or not path.stat().st_size:
        return 0
    with closing(sqlite3.connect(path)) as database:
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        tables = database.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        return int(database.execute("SELECT count(*) FROM records").fetchone()[0]) if tables else 0


def campaign(name: str, work: Work, kills: int, moments: random.Random, folder: Path) -> Count:
    """Kill one kind of work repeatedly, and count."""
    count = Count()
    answer, path = folder / "answer.json", folder / "checkpoint"
    status, count.alone = done(work, None, answer, None)
    assert status == 0, f"{name}: the work fails without any kill"
    plain_answer = answer.read_bytes()
    answer.unlink()
    while count.kills < kills:
        path.unlink(missing_ok=True)
        for beside in folder.glob("checkpoint-*"):
            beside.unlink()
        before = 0
        while True:
            after = moments.uniform(0.0, SHARE * count.alone) if count.kills < kills else None
            status, seconds = done(work, path, answer, after)
            count.spent += seconds
            if status != -signal.SIGKILL:
                break
            count.kills += 1
            assert not answer.exists() or json.loads(answer.read_bytes())
            there = records(path)
            count.with_records += there > 0
            if there < before and name not in ("branch and bound",):
                count.failures.append(f"records went from {before} to {there}")
            before = there
        count.ends += 1
        if status != 0 or not answer.exists():
            count.failures.append(f"it ended with status {status}")
        elif answer.read_bytes() == plain_answer:
            count.same += 1
        else:
            count.failures.append(
                difference(json.loads(plain_answer), json.loads(answer.read_bytes()))
            )
        answer.unlink(missing_ok=True)
    return count


def difference(one: Any, other: Any, place: str = "") -> str:
    """Return the first place at which two results differ."""
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        parts = ((one[k], other[k], f"{place}.{k}") for k in one)
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        parts = ((a, b, f"{place}[{i}]") for i, (a, b) in enumerate(zip(one, other, strict=True)))
    else:
        return "" if one == other else f"{place}: {str(one)[:80]} became {str(other)[:80]}"
    return next((found for part in parts if (found := difference(*part))), "")


HEAD = ("work", "seconds alone", "kills", "with something kept", "ends", "the same", "time")
OPTIONS = (
    Option("kills", 200, "kills of all kinds together", least=1),
    Option("seed", 1, "seed of the moments"),
    Option("kinds", tuple(KINDS), "kinds of work, e.g. profiles", KINDS),
)


def tasks(kills: int, seed: int, kinds: Sequence[str]) -> list[Task]:
    shares = [kills // len(kinds) + (i < kills % len(kinds)) for i in range(len(kinds))]
    return [
        task
        for kind, share in zip(kinds, shares, strict=True)
        for task in tasks_of("kind", [kind], kills=share, seed=seed)
    ]


def run(task: Task) -> Mapping[str, Any]:
    """Kill one kind of work repeatedly, and return its counts."""
    prepare()
    with tempfile.TemporaryDirectory(prefix="kills-") as folder:
        moments = random.Random(f"{task['seed']} {task['kind']}")
        work = KINDS[task["kind"]]
        return vars(campaign(task["kind"], work, task["kills"], moments, Path(folder)))


def tables(records: Sequence[Record]) -> Mapping[str, pd.DataFrame]:
    counts = {r.task["kind"]: Count(**r.result) for r in records if r.result is not None}
    rows = []
    for name, count in counts.items():
        ratio = count.spent / (count.ends * count.alone)
        numbers = (count.kills, count.with_records, count.ends, count.same)
        rows.append([name, f"{count.alone:.1f}", *map(str, numbers), f"{ratio:.2f}"])
    keys = ("kills", "with_records", "ends", "same")
    rows.append(["all", "", *(str(sum(getattr(c, k) for c in counts.values())) for k in keys), ""])
    failures = [f"{name}: {failure}" for name, c in counts.items() for failure in c.failures]
    return {"kills": listed(HEAD, rows, *failures)}
