"""Work of every kind that is killed again and again ends as without a kill, bit for bit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import odefit
from odefit import Automatic, BranchAndBound, MultiStart
from odefit.assessment.profiles.profiling import profile_all
from odefit.assessment.sampling.bootstrap import bootstrap
from odefit.methods import Control
from odefit.methods.estimate import Estimate
from tests.methods.checkpoints import records
from tests.methods.kills import killed_again_and_again
from tests.methods.problems import decay, oscillator
from tests.methods.test_multi_start import essence

BOUNDED = {"k": {"lower": 0.0, "upper": 10.0}, "s": {"lower": 0.0, "upper": 20.0}}
VECTOR = np.array([0.5, 2.0])


def control(path: Path | None) -> Control:
    return Control(seed=1, jobs=1, checkpoint=path)


def multi_start(path: Path | None) -> Any:
    return essence(MultiStart(starts=4, screening=2).solve(decay(), control(path)))


def automatic(path: Path | None) -> Any:
    found = Automatic(starts=5).solve(oscillator(), control(path))
    routes = [(r.name, r.starts, r.hits, r.objective, r.message) for r in found.routes]
    return essence(found), routes, found.status, found.message


def samples(path: Path | None) -> Any:
    found = bootstrap(decay(), VECTOR, 8, seed=1, jobs=1, checkpoint=path)
    return found.vectors.tolist(), found.numbers.tolist(), found.message


def profiles(path: Path | None) -> Any:
    found = profile_all(decay(), VECTOR, 0.95, control(path))
    sides = [(p.key, p.lower, p.upper, p.values.tolist()) for p in found.profiles]
    deviances = [p.deviances.tolist() for p in found.profiles]
    return sides, deviances, found.vector.tolist(), found.evaluations, found.message


def bounds(found: Estimate) -> tuple[Any, ...]:
    c = found.certificate
    assert c is not None
    return c.lower, c.upper, c.closed, essence(found)


def tree(path: Path | None) -> Any:
    method = BranchAndBound(gap=0.02, starts=2)
    return bounds(method.solve(decay(0.3, parameters=BOUNDED), control(path)))


KINDS: dict[str, tuple[Callable[[Path | None], Any], int]] = {
    "multi-start": (multi_start, 1),
    "automatic": (automatic, 1),
    "bootstrap": (samples, 2),
    "profiles": (profiles, 1),
    "branch and bound": (tree, 3),
}


@pytest.mark.parametrize(
    "kind",
    [pytest.param(k, marks=pytest.mark.slow if k == "branch and bound" else ()) for k in KINDS],
)
def test_killed_workers_do_not_change_the_result(tmp_path: Path, kind: str) -> None:
    work, writes = KINDS[kind]
    path = tmp_path / "kept"
    found, kills = killed_again_and_again(lambda: work(path), writes)
    assert kills >= 3
    assert found == work(None)


@pytest.mark.slow
def test_a_certificate_is_kept_beside_the_fit(tmp_path: Path) -> None:
    path = tmp_path / "kept"
    problem = decay(0.05, parameters=BOUNDED)
    method = MultiStart(starts=2)
    odefit.fit(problem, method, seed=1, jobs=1, certify=True, checkpoint=path)
    assert len(records(path, "starts")) == 2
    state = records(path, "certificate: tree of branch and bound")["state"]
    assert state["search"]["lower"] > 0
