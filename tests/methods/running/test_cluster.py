"""A real Dask cluster, by its commands: workers and schedulers that are killed."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

import odefit
from odefit.cli import main
from odefit.common.errors import InputError
from odefit.methods.running.cluster import dask_cluster
from odefit.methods.running.control import Control, Progress

pytest.importorskip("distributed")

QUIET = ("ignore::DeprecationWarning", "ignore::ResourceWarning")
METHOD = odefit.MultiStart(starts=120, screening=2)


@contextmanager
def cluster(workers: int) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """Yield the address of a scheduler, and its process before those of its workers."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = str(found.getsockname()[1])
    address = f"tcp://127.0.0.1:{port}"
    options = ["--nthreads", "1", "--no-nanny", "--no-dashboard"]
    python = [sys.executable, "-m"]
    commands = [
        [*python, "distributed.cli.dask_scheduler", "--port", port, "--no-dashboard"],
        *[[*python, "distributed.cli.dask_worker", address, *options]] * workers,
    ]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    running = [
        subprocess.Popen(c, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for c in commands
    ]
    try:
        yield address, running
    finally:
        for process in running:
            process.kill()
            process.wait()


def connected(address: str, tries: int = 20) -> Control:
    """Wait for a cluster that is starting; each try takes the seconds that a user's would."""
    for left in reversed(range(tries)):
        try:
            with dask_cluster(address):
                return Control(seed=1)
        except InputError:
            if not left:
                raise
    raise AssertionError


@pytest.mark.slow
@pytest.mark.filterwarnings(*QUIET)
@pytest.mark.parametrize("victim", ["worker", "scheduler"])
def test_the_death_of_a_worker_or_scheduler_does_not_change_the_answer(victim: str) -> None:
    problem = odefit.library.load("harmonic", noise=0.05, seed=1)
    alone = METHOD.solve(problem, Control(seed=1, jobs=1))
    killed: list[int] = []
    with cluster(3) as (address, running):
        connected(address)

        def report(progress: Progress) -> None:
            if not killed and progress.done >= 20:
                process = running[0] if victim == "scheduler" else running[1]
                os.kill(process.pid, signal.SIGKILL)
                killed.append(process.pid)

        with dask_cluster(address) as executor:
            control = Control(seed=1, executor=executor, report=report, jobs=1)
            shared = METHOD.solve(problem, control)
    assert [start.index for start in shared.starts] == list(range(120))
    pairs = list(zip(shared.starts, alone.starts, strict=True))
    assert all(np.array_equal(a.vector, b.vector) and a.cost == b.cost for a, b in pairs)
    assert [s.evaluations for s in shared.starts] == [s.evaluations for s in alone.starts]
    told = " ".join(control.remarks)
    # A machine that is too busy loses the connection by itself.
    assert killed or "the connection to the scheduler is lost" in told
    if victim == "scheduler":
        assert "the work continued in this process" in told


@pytest.mark.parametrize("address", ["10.0.0.7", "", "http://127.0.0.1:8786", "tls://127.0.0.1:9"])
def test_an_address_without_a_scheduler_is_reported(address: str) -> None:
    with pytest.raises(InputError, match="no scheduler answers there"), dask_cluster(address):
        pass


@pytest.mark.slow
def test_a_missing_cluster_gives_one_message(capsys: pytest.CaptureFixture[str]) -> None:
    file = Path(odefit.__file__).parent / "library" / "problems" / "harmonic" / "problem.toml"
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # where nobody listens
        address = f"tcp://127.0.0.1:{taken.getsockname()[1]}"
        assert main(["fit", str(file), "--dask", address]) == 2
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 1
    assert f"--dask {address}: no scheduler answers there" in said[0]
