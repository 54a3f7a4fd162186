"""The cores that tasks of workers may use."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor

import pytest

from odefit import Control
from odefit.common.cores import cores
from odefit.methods.running.workers import Workers


@pytest.mark.parametrize(
    ("jobs", "total", "shares"),
    [
        (2, 1, [2]),
        (2, 2, [1, 1]),
        (2, 3, [1, 1, 2]),
        (8, 3, [2, 2, 2]),
        (8, 5, [1] * 5),
        (4, 6, [1, 1, 1, 1, 2, 2]),
        (1, 3, [1, 1, 1]),
    ],
)
def test_the_last_tasks_share_all_cores(jobs: int, total: int, shares: list[int]) -> None:
    with Workers(Control(jobs=jobs)) as workers:
        assert [workers.cores_of(position, total) for position in range(total)] == shares
        assert workers.cores_of(0, None) == 1


def test_tasks_of_a_users_executor_use_one_core() -> None:
    with ThreadPoolExecutor(2) as executor, Workers(Control(executor=executor, jobs=4)) as workers:
        assert workers.cores_of(0, 1) == 1


def test_a_worker_uses_the_cores_that_it_was_given() -> None:
    sent = pickle.loads(pickle.dumps(Control(jobs=4).for_workers(3)))
    with sent.running():
        assert cores() == 3
