"""A campaign survives its tasks, a kill and an interrupt, and computes nothing twice."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from evidence import campaign
from evidence.running.campaign import Task
from evidence.running.runner import balanced, interrupts_noted, run_campaign
from odefit.common.errors import InputError
from tests.evidence.campaigns import LOG, PLAIN, SLOW, TROUBLE, TWICE, plain_tasks

ROOT = Path(__file__).parents[2]


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(LOG, str(tmp_path))
    return tmp_path / "runs.txt"


def runs(log: Path) -> list[tuple[str, int]]:
    """Key and process of everything that ran, in order."""
    if not log.exists():
        return []
    lines = log.read_text(encoding="utf-8").splitlines()
    return [(key, int(pid)) for key, pid in (line.split("|") for line in lines)]


def stored(out: Path) -> set[str]:
    with closing(sqlite3.connect(out / "results.sqlite")) as database:
        return {row[0] for row in database.execute("select key from results")}


def started(out: Path, jobs: int = 2) -> subprocess.Popen[str]:
    code = (
        "from evidence.running.runner import interrupts_noted, run_campaign\n"
        "from tests.evidence.campaigns import SLOW\n"
        f"run_campaign(SLOW, {str(out)!r}, jobs={jobs})\n"
    )
    return subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=ROOT,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def wait_for_results(process: subprocess.Popen[str], out: Path, count: int) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        if (out / "results.sqlite").exists():
            try:
                if len(stored(out)) >= count:
                    return
            except sqlite3.OperationalError:  # it is just being made
                pass
        time.sleep(0.02)
    process.kill()
    pytest.fail(f"no results came: {process.communicate()}")


def gone(pid: int) -> bool:
    """The process has ended (a zombie that nobody waits for has)."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        try:
            if ") Z " in Path(f"/proc/{pid}/stat").read_text(encoding="utf-8"):
                return True
        except OSError:
            return True
        time.sleep(0.02)
    return False


@pytest.mark.slow
def test_results_and_tables_do_not_depend_on_the_number_of_processes(tmp_path: Path) -> None:
    one = run_campaign(PLAIN, tmp_path / "one", jobs=1)
    three = run_campaign(PLAIN, tmp_path / "three", jobs=3)
    assert [(r.key, r.result) for r in one] == [(r.key, r.result) for r in three]
    for name in ("values.csv", "values.md"):
        first, second = ((tmp_path / d / name).read_bytes() for d in ("one", "three"))
        assert first == second
    assert "| cube 5 | 125 |" in (tmp_path / "one" / "values.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_a_worker_serves_many_tasks(tmp_path: Path, log: Path) -> None:
    run_campaign(PLAIN, tmp_path / "out", jobs=1)
    assert len({pid for _, pid in runs(log)}) == 1


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="/proc, and signals at a parent's death")
def test_a_killed_campaign_continues_where_it_stopped(tmp_path: Path, log: Path) -> None:
    out = tmp_path / "out"
    process = started(out)
    wait_for_results(process, out, 3)
    process.kill()
    process.communicate()
    before = stored(out)
    assert 3 <= len(before) < len(plain_tasks())
    assert all(gone(pid) for _, pid in runs(log)), "workers outlive their parent"
    records = run_campaign(SLOW, out, jobs=2)
    counts = Counter(key for key, _ in runs(log))
    assert all(counts[key] == 1 for key in before), "a stored result was computed again"
    assert [r.key for r in records] == [t["key"] for t in plain_tasks()]
    whole = run_campaign(SLOW, tmp_path / "whole", jobs=2)
    assert [r.result for r in records] == [r.result for r in whole]


@pytest.mark.slow
def test_an_interrupt_leaves_tables_of_the_finished_runs(tmp_path: Path) -> None:
    out = tmp_path / "out"
    process = started(out)
    wait_for_results(process, out, 2)
    process.send_signal(signal.SIGINT)
    text, _ = process.communicate(timeout=20)
    assert process.returncode != 0
    count = len(stored(out))
    assert 2 <= count < len(plain_tasks())
    assert f"{count} of {len(plain_tasks())} tasks: {count} done" in text
    assert len((out / "values.csv").read_text(encoding="utf-8").splitlines()) == count + 1


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="needs POSIX signals")
@pytest.mark.parametrize("campaign", ["twice", "fonts"])
def test_an_interrupt_does_not_abort_the_writing_of_tables(tmp_path: Path, campaign: str) -> None:
    """Matplotlib, its import broken off, brings the interpreter down at its end."""
    out = tmp_path / "out"
    code = (
        "from types import SimpleNamespace\n"
        "from evidence import command_line\n"
        f"from tests.evidence.campaigns import {campaign.upper()} as campaign\n"
        "command_line.row = lambda name: SimpleNamespace(campaign=lambda: campaign)\n"
        f"raise SystemExit(command_line.main(['run', {campaign!r}, '--out', {str(out)!r}]))\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        text=True,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (130, "interrupted\n")
    assert ("among the fonts" in ran.stdout) is (campaign == "fonts")
    assert "12 of 12 tasks: 12 done" in ran.stdout
    endings = ["empty.png", "empty.svg", "values.csv", "values.md"]
    assert all((out / name).stat().st_size for name in endings)


@pytest.mark.slow
def test_a_campaign_leaves_ctrl_c_as_it_was(tmp_path: Path) -> None:
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        run_campaign(TWICE, tmp_path / "out", jobs=1)
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.parametrize("handler", [signal.SIG_IGN, signal.default_int_handler])
def test_an_ignored_ctrl_c_stays_ignored(handler: signal.Handlers) -> None:
    before = signal.signal(signal.SIGINT, handler)
    try:
        with interrupts_noted() as noted:
            signal.raise_signal(signal.SIGINT)
        assert noted.is_set() is (handler is not signal.SIG_IGN)
        assert signal.getsignal(signal.SIGINT) is handler
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.slow
def test_a_complete_campaign_runs_nothing_again(tmp_path: Path, log: Path) -> None:
    run_campaign(PLAIN, tmp_path / "out", jobs=1)
    count = len(runs(log))
    run_campaign(PLAIN, tmp_path / "out", jobs=1)
    assert len(runs(log)) == count == len(plain_tasks())


@pytest.fixture(scope="module")
def troubled(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[str, str]]:
    """Outcome and reason of tasks that end in every way there is."""
    out = tmp_path_factory.mktemp("trouble")
    records = run_campaign(TROUBLE, out, jobs=2)
    assert (out / "troubles.md").exists()
    assert records[0].seconds < 1.5
    odd = next(r for r in records if r.key == "odd")
    assert odd.result == {"nan": None, "infinite": None}
    return {r.key: (r.outcome, r.reason) for r in records}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("key", "outcome", "reason"),
    [
        ("fine", "done", ""),
        ("exit", "crashed", "ended by itself with status 3; it wrote: out of ideas"),
        ("hang", "time limit", "stopped after 1.5 s"),
        ("raise", "error", "ValueError: the [bad] luck"),
        ("segfault", "crashed", "died of SIGSEGV"),
        ("killed", "out of memory", "was killed, most likely"),
        ("memory", "out of memory", "needs more memory than it may use"),
        ("shout", "done", ""),
        ("last", "done", ""),
    ],
)
def test_a_task_ends_alone_and_with_its_reason(
    troubled: dict[str, tuple[str, str]], key: str, outcome: str, reason: str
) -> None:
    assert troubled[key][0] == outcome
    assert reason in troubled[key][1]


@pytest.mark.slow
def test_a_limit_counts_what_is_stored(tmp_path: Path, log: Path) -> None:
    out = tmp_path / "out"
    assert len(run_campaign(PLAIN, out, jobs=2, limit=4)) == 4
    assert len(run_campaign(PLAIN, out, jobs=2, limit=6)) == 6
    assert len(runs(log)) == 6


@pytest.mark.slow
def test_a_directory_holds_one_campaign(tmp_path: Path) -> None:
    run_campaign(PLAIN, tmp_path, jobs=1, limit=1)
    with pytest.raises(InputError, match="holds results of 'plain'"):
        run_campaign(SLOW, tmp_path)


@pytest.mark.slow
def test_two_runs_do_not_share_a_directory(tmp_path: Path) -> None:
    out = tmp_path / "out"
    process = started(out)
    wait_for_results(process, out, 1)
    with pytest.raises(InputError, match="another run is writing"):
        run_campaign(SLOW, out)
    process.kill()
    process.communicate()


def test_a_file_that_is_not_a_store_is_refused(tmp_path: Path) -> None:
    (tmp_path / "results.sqlite").write_bytes(b"no database at all" * 100)
    with pytest.raises(InputError, match="cannot be used as a store"):
        run_campaign(PLAIN, tmp_path)


def test_a_directory_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(InputError, match="cannot be written to"):
        run_campaign(PLAIN, tmp_path / "file" / "out")


@pytest.mark.parametrize("limits", [{"jobs": 0}, {"limit": -1}])
def test_numbers_below_one_are_refused(tmp_path: Path, limits: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="positive whole number"):
        run_campaign(PLAIN, tmp_path, **limits)


@pytest.mark.slow
def test_this_process_keeps_its_environment(tmp_path: Path) -> None:
    before = dict(os.environ)
    run_campaign(PLAIN, tmp_path, jobs=1, limit=1)
    assert dict(os.environ) == before


@pytest.mark.slow
def test_an_executor_gives_the_records_of_processes_here(log: Path, tmp_path: Path) -> None:
    """A task that dies, hangs or takes too much is a record there as well, and is run once."""
    here = {r.key: r.outcome for r in run_campaign(TROUBLE, tmp_path / "a", jobs=1)}
    alone = Counter(key for key, _ in runs(log))
    with ThreadPoolExecutor(1) as executor:
        found = run_campaign(TROUBLE, tmp_path / "b", executor=executor)
    assert {r.key: r.outcome for r in found} == here
    assert Counter(key for key, _ in runs(log)) == alone + alone


TASKS: list[Task] = [
    {"key": f"{p} {s} {m}", "problem": p, "scheme": s, "mesh": m}
    for p, s, m in product(range(12), "abcde", (10, 20))
]


@pytest.mark.parametrize("limit", [1, 7, 12, 30, 60, 77, 119])
@pytest.mark.parametrize("factor", ["problem", "scheme", "mesh"])
def test_levels_occur_equally_often(limit: int, factor: str) -> None:
    part = balanced(TASKS, limit)
    assert len(part) == limit
    levels = {t[factor] for t in TASKS}
    counts = Counter(dict.fromkeys(levels, 0))
    counts.update(t[factor] for t in part)
    assert max(counts.values()) - min(counts.values()) <= 2


def test_pairs_of_levels_occur_equally_often() -> None:
    pairs = Counter((t["problem"], t["scheme"]) for t in balanced(TASKS, 60))
    assert len(pairs) >= 55
    assert max(pairs.values()) <= 2


def test_a_longer_selection_contains_a_shorter_one_in_order() -> None:
    keys = [t["key"] for t in TASKS]
    previous: set[str] = set()
    for limit in range(1, len(TASKS) + 5):
        part = [t["key"] for t in balanced(TASKS, limit)]
        assert part == sorted(part, key=keys.index)
        assert previous <= set(part)
        previous = set(part)
    assert previous == set(keys)


def test_without_a_limit_everything_is_kept() -> None:
    assert balanced(TASKS, None) == TASKS


def test_a_part_of_the_library_campaign_has_every_problem() -> None:
    part = balanced(list(campaign("library").tasks()), 31)
    assert len({t["problem"] for t in part}) == 31
