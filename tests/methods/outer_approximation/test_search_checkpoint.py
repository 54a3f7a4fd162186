"""Outer approximation goes on from the end of its last step, and ends as without a kill."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from odefit import InputError, OuterApproximation
from odefit.methods import Control
from odefit.methods.estimate import Certificate, Estimate
from odefit.methods.outer_approximation.algorithm import MasterSlaveSearch
from odefit.methods.outer_approximation.mixed_integer import SolverProcess
from odefit.methods.running.checkpoint import Checkpoint
from tests.methods.checkpoints import records
from tests.methods.kills import killed_again_and_again
from tests.methods.outer_approximation.problems import problem

KIND = "outer approximation"
OPTIONS: dict[str, Any] = {
    "elements": 2,
    "points": 2,
    "starts": 1,
    "polish": False,
    "tolerance": 1e-4,
    "contractions": 1,
    "pieces": 2,
    "cuts": ((0,), (1,)),
    "bounds": {"s": (0.0, 2.0)},
}


@pytest.fixture(autouse=True)
def _no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Solve master problems in this process: starting others takes longer than all the rest."""
    ask = lambda self, program, stop: self._solver.solve(program)  # noqa: E731
    monkeypatch.setattr(SolverProcess, "_ask", ask)


def solved(path: Path | None) -> Estimate:
    own = problem("saturated", noise=0.05)
    return OuterApproximation(**OPTIONS).solve(own, Control(seed=1, jobs=1, checkpoint=path))


def essence(found: Estimate) -> tuple[Any, ...]:
    """All but the seconds that it took."""
    c = found.certificate
    assert isinstance(c, Certificate)
    steps = [(s.stage, s.iteration, s.lower, s.upper) for s in c.history]
    ends = [(s.vector.tolist(), s.cost, s.objective) for s in found.starts]
    return c.lower, c.upper, c.closed, c.scope, steps, ends, found.status


@pytest.mark.slow
def test_killed_workers_do_not_change_the_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = essence(solved(None))
    path = tmp_path / "kept"
    stages: list[str] = []
    log = MasterSlaveSearch._log

    def counted(self: MasterSlaveSearch, stage: str, iteration: int) -> None:
        stages.append(stage)
        log(self, stage, iteration)

    monkeypatch.setattr(MasterSlaveSearch, "_log", counted)
    found, kills = killed_again_and_again(lambda: solved(path), writes=2)
    assert essence(found) == plain
    assert kills >= 2
    # The master problem of each iteration is solved once, whatever the number of kills.
    own = [stage for stage, *_ in plain[4]]
    assert stages.count("master") == own.count("master") >= 2
    assert stages.count("contraction") == own.count("contraction")


@pytest.mark.slow
def test_a_nonsensical_state_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "kept"
    solved(path)
    with closing(sqlite3.connect(path)) as database:
        ((identity,),) = database.execute("SELECT identity FROM work WHERE kind = ?", (KIND,))
    state = records(path, KIND)["state"]
    for change in ({"low": [1.0]}, {"cuts": [1]}, {"partition": {"a": [1.0]}}, {"rounds": -1}):
        with Checkpoint(path, KIND, identity) as file:
            file.save({"state": state | change})
        with pytest.raises(InputError, match=r"is damaged .* remove it to start again"):
            solved(path)
