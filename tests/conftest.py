"""What holds for all tests."""

from __future__ import annotations

import gc
from collections.abc import Generator, Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from odefit import InputError

# A slow machine is no reason to fail, and the same examples are tried in every run.
QUICK = settings(
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
    max_examples=50,
)
settings.register_profile("quick", QUICK)
settings.register_profile("thorough", QUICK, max_examples=200)


def pytest_configure(config: pytest.Config) -> None:
    """Try more examples where the slow tests are run as well."""
    chosen = str(config.getoption("markexpr"))
    settings.load_profile("thorough" if chosen in ("", "slow") else "quick")


def pytest_collection_finish() -> None:
    """Take the ten thousand tests out of what is searched for garbage again and again.

    A fiftieth of the time of a run was spent on that.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 10, 10)  # as the program has it


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None, object, object]:
    """Skip tests that request heyoka, which is an extra, where it is not installed."""
    try:
        return (yield)
    except InputError as error:
        if "'heyoka' cannot be used" in str(error):
            pytest.skip("heyoka is not installed")
        raise


@pytest.fixture
def dask_cluster() -> Iterator[Any]:
    """A Dask cluster of two worker processes, on ports that no other test has."""
    distributed = pytest.importorskip("distributed")
    # Without an address the scheduler asks for port 8787, which another test may have.
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address="127.0.0.1:0"
    ) as cluster:
        yield cluster
