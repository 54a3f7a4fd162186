"""What holds for all tests."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# A slow machine is no reason to fail, and the same examples are tried in every run.
settings.register_profile(
    "odefit", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("odefit")
