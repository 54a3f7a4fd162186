"""A folder to work in."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.commands import BLOW_UP, DATA, DECAY


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with problem files, which is the working directory."""
    (tmp_path / "decay.toml").write_text(DECAY, encoding="utf-8")
    (tmp_path / "data.csv").write_text(DATA, encoding="utf-8")
    (tmp_path / "blow_up.toml").write_text(BLOW_UP, encoding="utf-8")
    (tmp_path / "blow_up.csv").write_text("t,x\n0,1\n2,1\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path
