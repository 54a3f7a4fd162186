"""The command ``odefit library``."""

from __future__ import annotations

from pathlib import Path

import pytest

import odefit
from tests.cli.commands import refused, run


def test_the_library_command_lists_every_problem(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("library") == 0
    lines = capsys.readouterr().out.splitlines()
    names = [line.split()[0] for line in lines[1 : lines.index("")]]
    assert names == list(odefit.library.names())
    assert lines[names.index("alpha-pinene") + 1].split() == ["alpha-pinene", "5", "5", "measured"]


def test_the_library_command_describes_a_problem(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("library", "sir") == 0
    out = capsys.readouterr().out
    known = odefit.library.reference("sir")
    assert all(f"{value:g}" in out for value in known.parameters.values())
    assert str(odefit.library.path("sir")) in out
    assert max(map(len, out.split(str(odefit.library.path("sir")))[0].splitlines())) <= 100


def test_a_copy_can_be_loaded(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "here"
    assert run("library", "bbg", "--copy", str(folder)) == 0
    assert capsys.readouterr().out.strip() == str(folder / "problem.toml")
    assert odefit.load(folder / "problem.toml").keys == odefit.library.load("bbg").keys
    assert "already" in refused(capsys, "library", "bbg", "--copy", str(folder))


def test_mistakes_are_reported(capsys: pytest.CaptureFixture[str]) -> None:
    assert "did you mean 'sir'" in refused(capsys, "library", "sirr")
    assert "--copy needs the name" in refused(capsys, "library", "--copy", "here")
