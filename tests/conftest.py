"""What holds for all tests."""

from __future__ import annotations

from hypothesis import settings

# A slow machine is no reason to fail, and the same examples are tried in every run.
settings.register_profile("odefit", deadline=None, derandomize=True)
settings.load_profile("odefit")
