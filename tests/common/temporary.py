"""What tests of temporary folders share."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import pytest

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="processes are told apart by /proc")


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder of temporary files of its own."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path
