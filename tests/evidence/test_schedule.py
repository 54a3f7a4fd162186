"""Tests of the campaign that shares the starts of a fit out among workers."""

import pytest

from evidence.petab.schedule import timed_batches, with_workers
from odefit import library

BATCHES = [[3.0], [1.0, 1.0, 2.0, 4.0]]


@pytest.mark.parametrize(
    ("workers", "seconds"), [(1, 11.0), (2, 8.0), (3, 8.0), (4, 7.0), (100, 7.0)]
)
def test_starts_go_to_the_worker_that_is_free_first(workers: int, seconds: float) -> None:
    assert with_workers(BATCHES, workers) == seconds


def test_every_start_of_a_fit_is_timed_in_its_batch() -> None:
    batches, rest = timed_batches(library.load("harmonic"), 9, 1)
    assert sum(map(len, batches)) == 9
    assert len(batches[0]) == 1
    assert all(seconds >= 0.0 for batch in batches for seconds in batch)
    assert rest > 0.0
