"""Prepared models of these tests are kept in a folder of the session, shared by all workers."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Nothing of the user's own cache is read or written."""
    root = tmp_path_factory.getbasetemp()
    folder = (root.parent if "PYTEST_XDIST_WORKER" in os.environ else root) / "odefit-cache"
    monkeypatch.setenv("ODEFIT_CACHE", str(folder))
    return folder
