"""What holds for all tests."""

from __future__ import annotations

import gc

from hypothesis import HealthCheck, settings

# A slow machine is no reason to fail, and the same examples are tried in every run.
settings.register_profile(
    "odefit", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("odefit")


def pytest_collection_finish() -> None:
    """Take the ten thousand tests out of what is searched for garbage again and again.

    A fiftieth of the time of a run was spent on that.
    """
    gc.collect()
    gc.freeze()
