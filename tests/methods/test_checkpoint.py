"""Finished starts survive a kill, and nothing that was stored is computed again."""

from __future__ import annotations

import json
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

from odefit import Control, ForwardMap, InputError, MultiStart, Problem, Start, Status
from odefit.methods.checkpoint import Checkpoint, ForeignCheckpointError, fingerprint
from odefit.methods.estimate import Estimate
from odefit.simulation.nodes import Nodes
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


def test_a_start_comes_back_to_the_last_bit(tmp_path: Path) -> None:
    path = tmp_path / "file"
    Checkpoint(path, "me").add(start())
    (found,) = Checkpoint(path, "me").starts.values()
    assert found.start.tolist() == start().start.tolist()
    assert found.vector.tolist() == start().vector.tolist()
    for name in ("index", "objective", "status", "message", "evaluations", "cost", "failures"):
        assert getattr(found, name) == getattr(start(), name)


def test_its_nodes_come_back_to_the_last_bit(tmp_path: Path) -> None:
    path = tmp_path / "file"
    random = np.random.default_rng(0)
    nodes = Nodes(
        (np.array([0.0, 1 / 3, 0.1 + 0.2]), np.array([-1.0])),
        (random.normal(size=(3, 2)) * 1e-300, np.array([[np.pi, -0.0]])),
        ("x@0 = x@10", "k <= 1"),
        ("a", "b"),
    )
    Checkpoint(path, "me").add(replace(start(), nodes=nodes))
    Checkpoint(path, "me").add(start(1))
    found = Checkpoint(path, "me").starts
    assert found[1].nodes is None
    back = found[0].nodes
    assert back is not None
    for one, other in zip((*nodes.times, *nodes.values), (*back.times, *back.values), strict=True):
        assert one.tobytes() == other.tobytes()
        assert one.shape == other.shape
    assert back.constraints == nodes.constraints
    assert back.experiments == nodes.experiments


def test_nothing_is_written_before_there_is_something_to_keep(tmp_path: Path) -> None:
    path = tmp_path / "file"
    Checkpoint(path, "me")
    assert not path.exists()


@pytest.mark.parametrize("content", [b"hello\n", b"{}\n", b"[1, 2]\n", b"\xff\xfe\n", b"{\n"])
def test_another_file_is_refused_and_left_alone(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(InputError, match="checkpoint"):
        Checkpoint(path, "me")
    assert path.read_bytes() == content


def test_a_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read as a checkpoint"):
        Checkpoint(tmp_path, "me")


def test_an_empty_file_is_a_fresh_checkpoint(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.touch()
    Checkpoint(path, "me").add(start())
    assert len(Checkpoint(path, "me").starts) == 1


def test_a_damaged_line_counts_as_not_done(tmp_path: Path) -> None:
    path = tmp_path / "file"
    for index in range(3):
        Checkpoint(path, "me").add(start(index))
    lines = path.read_text(encoding="utf-8").splitlines()
    for damaged in ("{}", "[]", lines[2][:-9], lines[2].replace("12", '"a"'), ""):
        text = "\n".join([*lines[:2], damaged, lines[3]]) + "\n"
        path.write_text(text, encoding="utf-8")
        assert sorted(Checkpoint(path, "me").starts) == [0, 2]


def test_a_checkpoint_of_other_work_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "file"
    solved(path)
    kept = path.read_bytes()
    with pytest.raises(ForeignCheckpointError, match="belongs to another problem, method or seed"):
        solved(path, seed=2)
    with pytest.raises(ForeignCheckpointError):
        solved(path, decay())
    with pytest.raises(ForeignCheckpointError):
        MultiStart(starts=5, screening=3).solve(oscillator(), Control(seed=1, checkpoint=path))
    assert path.read_bytes() == kept


def test_the_fingerprint_sees_every_datum() -> None:
    assert fingerprint(decay(), {}) == fingerprint(decay(), {})
    data = {name: np.array(column) for name, column in decay().data().items()}
    data["y"][3] = np.nextafter(data["y"][3], 9)
    assert fingerprint(decay(data=data), {}) != fingerprint(decay(), {})
    assert fingerprint(decay(initial={"x": 2.0}), {}) != fingerprint(decay(), {})
    assert fingerprint(decay(), {"seed": 1}) != fingerprint(decay(), {"seed": 2})


def test_stored_starts_are_not_computed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    first = solved(path)
    with counted(monkeypatch) as computed:
        second = solved(path)
    assert computed == []
    assert essence(first) == essence(second)


def test_a_kill_at_any_byte_costs_one_start_at_most(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file is cut anywhere, and the work gone on with: the same result."""
    path = tmp_path / "file"
    plain = essence(solved(None))
    solved(path)
    whole = path.read_bytes()
    ends = [i for i, byte in enumerate(whole) if byte == ord("\n")]
    random = np.random.default_rng(0)
    cuts = {0, 1, len(whole) - 1, *(e + d for e in ends[:3] for d in (0, 1, 2))}
    cuts |= {int(c) for c in random.integers(0, len(whole), 4)}
    for cut in sorted(cuts):
        path.write_bytes(whole[:cut])
        stored = max(sum(e < cut for e in ends) - 1, 0)
        with counted(monkeypatch) as computed:
            assert essence(solved(path)) == plain
        assert computed == list(range(stored, 5)), cut
        # What is left is a sound checkpoint.
        lines = path.read_text(encoding="utf-8").splitlines()
        assert sorted(json.loads(line)["index"] for line in lines[1:]) == list(range(5))


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
    lines = path.read_text(encoding="utf-8").splitlines()[1:]
    assert len(lines) >= 1
    assert {json.loads(line)["status"] for line in lines} <= {"converged", "not converged"}


def test_a_start_that_was_told_to_stop_is_not_stored_even_if_it_had_converged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It might have left a bound again: a resumed fit has to give it that chance."""

    def run(self: MultiStart, forward: ForwardMap, index: int, control: Control) -> Start:
        if index == 1:
            control.interrupted.set()
        return start(index)

    monkeypatch.setattr(MultiStart, "run", run)
    path = tmp_path / "kept"
    problem = decay()
    MultiStart(starts=3).solve(problem, Control(seed=1, jobs=1, checkpoint=path))
    indices = [json.loads(line)["index"] for line in path.read_text().splitlines()[1:]]
    assert indices == [0]


def test_more_starts_go_on_from_fewer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
from typing import Any
from odefit import Control, MultiStart
from tests.methods.problems import oscillator
MultiStart(starts=400, screening=2).solve(
    oscillator(), Control(seed=1, jobs=1, checkpoint=Path(sys.argv[1]))
)
"""


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
        deadline = time.time() + 60
        while time.time() < deadline and process.poll() is None:
            if path.exists() and path.read_bytes().count(b"\n") >= 3:
                break
            time.sleep(0.005)
    finally:
        process.kill()
        process.wait()
    stored = path.read_bytes().count(b"\n") - 1
    assert stored >= 2
    method = MultiStart(starts=stored + 3, screening=2)
    with counted(monkeypatch) as computed:
        found = method.solve(oscillator(), Control(seed=1, jobs=1, checkpoint=path))
    assert computed == [stored, stored + 1, stored + 2]
    plain = method.solve(oscillator(), Control(seed=1, jobs=1))
    assert essence(found) == essence(plain)
