"""Finished starts survive a kill, and nothing that was stored is computed again."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from odefit import Control, ForwardMap, MultiStart, Problem, Start, Status
from odefit.methods.estimate import Estimate
from odefit.methods.running import start_checkpoint as checkpoint_module
from odefit.methods.running.checkpoint import Checkpoint, ForeignCheckpointError
from odefit.methods.running.start_checkpoint import StartCheckpoint, start_from_json, start_to_json
from odefit.simulation.engines.cut_off import REASON
from odefit.simulation.nodes import Nodes
from tests.methods.checkpoints import damaged, records
from tests.methods.problems import decay, oscillator
from tests.methods.test_multi_start import essence

METHOD = MultiStart(starts=5, screening=2)


def solved(path: Path | None, problem: Problem | None = None, seed: int = 1) -> Estimate:
    return METHOD.solve(problem or oscillator(), Control(seed=seed, jobs=1, checkpoint=path))


@contextmanager
def counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """The numbers of the starts that are computed."""
    original = MultiStart.run
    computed: list[int] = []

    def run(method: MultiStart, forward: ForwardMap, index: int, control: Control) -> Start:
        computed.append(index)
        return original(method, forward, index, control)

    with monkeypatch.context() as patch:
        patch.setattr(MultiStart, "run", run)
        yield computed


def start(index: int = 0) -> Start:
    return Start(
        index,
        np.array([0.1, np.nextafter(1.0, 2.0)]),
        np.array([1 / 3, -np.inf]),
        1 / 7,
        Status.NOT_CONVERGED,
        'a "text"\nof two lines',
        12,
        0.5,
        np.pi,
        {"why": 3},
    )


def kept(path: Path, *starts: Start) -> dict[int, Start]:
    """Keep starts in a file, and return what is found there afterwards."""
    with StartCheckpoint(Checkpoint(path, "starts", "me"), 2) as checkpoint:
        for one in starts:
            checkpoint.add(one)
    return StartCheckpoint(Checkpoint(path, "starts", "me"), 2).starts


def test_a_start_comes_back_to_the_last_bit(tmp_path: Path) -> None:
    (found,) = kept(tmp_path / "file", start()).values()
    assert found.start.tobytes() == start().start.tobytes()
    assert found.vector.tobytes() == start().vector.tobytes()
    for name in ("index", "objective", "status", "message", "evaluations", "cost", "failures"):
        assert getattr(found, name) == getattr(start(), name)


def test_nodes_of_a_start_come_back_to_the_last_bit(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    nodes = Nodes(
        (np.array([0.0, 1 / 3, 0.1 + 0.2]), np.array([-1.0])),
        (random.normal(size=(3, 2)) * 1e-300, np.array([[np.pi, -0.0]])),
        ("x@0 = x@10", "k <= 1"),
        ("a", "b"),
    )
    found = kept(tmp_path / "file", replace(start(), nodes=nodes), start(1))
    assert found[1].nodes is None
    back = found[0].nodes
    assert back is not None
    for one, other in zip((*nodes.times, *nodes.values), (*back.times, *back.values), strict=True):
        assert one.tobytes() == other.tobytes()
        assert one.shape == other.shape
    assert back.constraints == nodes.constraints
    assert back.experiments == nodes.experiments


DAMAGES: list[dict[str, Any]] = [
    {"index": "1"},
    {"index": -1},
    {"vector": [1.0]},
    {"vector": [1.0, "2"]},
    {"vector": [[1.0], [2.0]]},
    {"vector": [1.0, float("nan")]},
    {"start": None},
    {"cost": "low"},
    {"status": "excellent"},
    {"evaluations": 1.5},
    {"failures": ["a"]},
    {"failures": {"a": {}}},
    {"nodes": [1]},
    {"nodes": {"times": [[0.0]], "values": [[]], "constraints": [], "experiments": []}},
    {"nodes": {"times": [[0.0]], "values": [[[1], [2]]], "constraints": [], "experiments": []}},
]


@pytest.mark.parametrize("change", DAMAGES)
def test_a_damaged_record_is_not_used_as_a_start(change: dict[str, Any]) -> None:
    record = start_to_json(start())
    assert start_from_json(record, 2) is not None
    assert start_from_json(record | change, 2) is None


@pytest.mark.parametrize("value", [None, [], "text", 3, {}])
def test_an_invalid_record_is_not_a_start(value: Any) -> None:
    assert start_from_json(value, 2) is None


def test_a_damaged_start_is_computed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    plain = essence(solved(path))
    damaged(path, "starts", "2", '{"index": 2')
    damaged(path, "starts", "3", '{"index": 3}')
    with counted(monkeypatch) as computed:
        assert essence(solved(path)) == plain
    assert computed == [2, 3]


def test_a_start_whose_worker_died_is_not_kept(tmp_path: Path) -> None:
    nothing = np.zeros(0)
    lost = Start(0, nothing, nothing, np.inf, Status.FAILED, "the worker process failed", 0, 0.0)
    assert sorted(kept(tmp_path / "file", lost, start(1))) == [1]


def test_a_failure_is_kept_unless_an_earlier_version_may_have_taken_a_limit_for_one() -> None:
    failed = start_to_json(replace(start(), status=Status.FAILED, failures={"too stiff": 3}))
    assert start_from_json(failed, 2) is not None
    cut = start_to_json(replace(start(), failures={REASON: 1}))
    assert start_from_json(cut, 2) is None
    del failed["whole"], cut["whole"]
    assert start_from_json(failed, 2) is None
    assert start_from_json(cut, 2) is None


def test_a_checkpoint_of_failures_by_a_limit_is_repaired(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of a clock that jumped made the same command fail for good."""
    path = tmp_path / "file"
    plain = solved(path)
    with monkeypatch.context() as patch:
        patch.setattr(checkpoint_module, "start_to_json", _as_cut_by_an_earlier_version)
        path.unlink()
        solved(path)
    with counted(monkeypatch) as computed:
        assert essence(solved(path)) == essence(plain)
    assert computed == list(range(5))


def _as_cut_by_an_earlier_version(end: Start) -> dict[str, Any]:
    lost = {"cost": math.inf, "objective": math.inf, "status": "failed", "failures": {REASON: 1}}
    record = start_to_json(end) | lost
    del record["whole"]
    return record


def test_a_checkpoint_of_other_work_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "file"
    solved(path)
    before = path.read_bytes()
    with pytest.raises(ForeignCheckpointError, match="belongs to another problem, method or seed"):
        solved(path, seed=2)
    with pytest.raises(ForeignCheckpointError):
        solved(path, decay())
    with pytest.raises(ForeignCheckpointError):
        MultiStart(starts=5, screening=3).solve(oscillator(), Control(seed=1, checkpoint=path))
    assert path.read_bytes() == before


def test_stored_starts_are_not_computed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    first = solved(path)
    with counted(monkeypatch) as computed:
        second = solved(path)
    assert computed == []
    assert essence(first) == essence(second)


def test_unfinished_starts_are_not_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The interrupt comes in the middle of a start, at an evaluation of the forward map."""
    path = tmp_path / "file"
    control = Control(seed=1, jobs=1, checkpoint=path)
    original, count = ForwardMap.evaluate, iter(range(10**6))

    def evaluate(self: ForwardMap, *arguments: Any, **options: Any) -> Any:
        if next(count) == 100:
            control.interrupted.set()
        return original(self, *arguments, **options)

    monkeypatch.setattr(ForwardMap, "evaluate", evaluate)
    found = MultiStart(starts=10**6, screening=2).solve(oscillator(), control)
    assert found.status is Status.INTERRUPTED
    stored = records(path, "starts").values()
    assert len(stored) >= 1
    assert {record["status"] for record in stored} <= {"converged", "not converged"}


def test_a_start_stopped_early_is_not_stored_even_if_it_converged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It might have left a bound again: a resumed fit has to give it that chance."""

    def run(self: MultiStart, forward: ForwardMap, index: int, control: Control) -> Start:
        if index == 1:
            control.interrupted.set()
        return start(index)

    monkeypatch.setattr(MultiStart, "run", run)
    path = tmp_path / "kept"
    MultiStart(starts=3).solve(decay(), Control(seed=1, jobs=1, checkpoint=path))
    assert list(records(path, "starts")) == ["0"]


def test_more_starts_continue_from_fewer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    solved(path)
    with counted(monkeypatch) as computed:
        found = MultiStart(starts=7, screening=2).solve(
            oscillator(), Control(seed=1, jobs=1, checkpoint=path)
        )
    assert computed == [5, 6]
    assert len(found.starts) == 7


SCRIPT = """
import sys
from pathlib import Path
from odefit import Control, MultiStart
from tests.methods.problems import oscillator
MultiStart(starts=400, screening=2).solve(
    oscillator(), Control(seed=1, jobs=1, checkpoint=Path(sys.argv[1]))
)
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs POSIX signals")
def test_a_killed_process_loses_nothing_that_was_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    paths = os.pathsep.join(p for p in sys.path if p)
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(path)], env={**os.environ, "PYTHONPATH": paths}
    )
    try:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and process.poll() is None:
            if path.exists() and path.stat().st_size and len(records(path, "starts")) >= 3:
                break
            time.sleep(0.005)
    finally:
        process.kill()
        process.wait()
    stored = len(records(path, "starts"))
    assert stored >= 3
    method = MultiStart(starts=stored + 3, screening=2)
    with counted(monkeypatch) as computed:
        found = method.solve(oscillator(), Control(seed=1, jobs=1, checkpoint=path))
    assert computed == [stored, stored + 1, stored + 2]
    plain = method.solve(oscillator(), Control(seed=1, jobs=1))
    assert essence(found) == essence(plain)
