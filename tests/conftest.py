"""What holds for all tests."""

from __future__ import annotations

import gc
import re
from collections.abc import Generator, Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from odefit import InputError
from odefit.common.packages import INSTALLED_AS, installed

EXTRAS = (*INSTALLED_AS, "heyoka", "maingopy", "pyomo", "pyscipopt")
MISSING = tuple(name for name in EXTRAS if not installed(name))
"""Packages of extras that are not installed: of those that are, no error is taken for absence."""

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


def missing_extra(error: BaseException) -> str:
    """Return the package of an extra whose absence an error reports, or an empty text."""
    named = error.name if isinstance(error, ModuleNotFoundError) else str(error)
    if isinstance(error, AssertionError):  # on a message, in whose place another one stands
        named = " ".join(re.findall(r"need the package (\w+), which cannot be", str(error)))
    return next((name for name in MISSING if re.search(rf"\b{name}\b", named or "")), "")


def skipped_without_extras() -> Generator[None, object, object]:
    """Skip what needs an extra that is not installed."""
    try:
        return (yield)
    except (InputError, ModuleNotFoundError, AssertionError) as error:
        if package := missing_extra(error):
            pytest.skip(f"{package} is not installed")
        raise


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup() -> Generator[None, object, object]:
    """Skip tests whose fixtures need an extra that is not installed."""
    return (yield from skipped_without_extras())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None, object, object]:
    """Skip tests that need an extra that is not installed."""
    return (yield from skipped_without_extras())


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Generator[None, Any, Any]:
    """Leave out modules that import an extra which is not installed."""
    report = yield
    call = getattr(report, "call", None)
    error = None if call is None or call.excinfo is None else call.excinfo.value
    cause = None if error is None else (error.__cause__ or error)
    if report.failed and cause is not None and (package := missing_extra(cause)):
        report.outcome = "skipped"
        report.longrepr = (str(collector.path), None, f"Skipped: {package} is not installed")
    return report


@pytest.fixture
def dask_cluster() -> Iterator[Any]:
    """A Dask cluster of two worker processes, on ports that no other test has."""
    distributed = pytest.importorskip("distributed")
    # Without an address the scheduler asks for port 8787, which another test may have.
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address="127.0.0.1:0"
    ) as cluster:
        yield cluster
