"""A disk that is full, a folder that is read-only: told in a sentence, and nothing else is lost."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.commands import run


@contextmanager
def mounted(place: Path, options: str) -> Iterator[Path]:
    """A file system in memory of a few kilobytes."""
    if not sys.platform.startswith("linux") or os.geteuid() != 0:
        pytest.skip("only root can mount a small file system")
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(place)]
    if subprocess.run(command, check=False, capture_output=True).returncode:
        pytest.skip("no file system can be mounted here")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


@pytest.fixture
def full(tmp_path: Path) -> Iterator[Path]:
    """A folder on a full disk."""
    with mounted(tmp_path / "full", "size=8k") as place:
        (place / "other").write_bytes(b"x" * 8192)
        yield place


@pytest.fixture
def read_only(tmp_path: Path) -> Iterator[Path]:
    """A folder that not even root can write to."""
    with mounted(tmp_path / "fixed", "size=8k,ro") as place:
        yield place


def test_without_disk_space_the_result_is_printed_and_the_report_written(
    folder: Path, full: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ("--report", "report.md", "--table", str(full / "t.csv"), "--jobs", "1")
    assert run("fit", "decay.toml", "--json", str(full / "r.json"), *options) == 2
    captured = capsys.readouterr()
    assert "converged" in captured.out
    lines = captured.err.splitlines()
    (warning,) = [line for line in lines if line.startswith("warning:")]
    assert warning == (
        f"warning: {full / 'r.json.checkpoint'}: the checkpoint cannot be written: "
        "database or disk is full; the work continues, and its results are not kept until the "
        "file can be written again"
    )
    for name in ("r.json", "t.csv"):
        reason = f"error: {full / name}: cannot be written: No space left on device"
        assert sum(line.startswith(reason) for line in lines) == 1
    assert (folder / "report.md").read_text(encoding="utf-8").startswith("# ")
    assert {p.name for p in full.iterdir()} <= {"other", "r.json.checkpoint"}


@pytest.mark.slow
def test_a_table_that_cannot_be_printed_is_reported(folder: Path, full: Path) -> None:
    command = [sys.executable, "-m", "odefit", "methods"]
    with (full / "out.txt").open("w") as file:
        done = subprocess.run(command, stdout=file, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == "error: standard output: cannot be written: No space left on device\n"


def test_a_log_without_disk_space_is_reported_once(
    folder: Path, full: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = full / "fit.log"
    assert run("fit", "decay.toml", "--jobs", "1", "--log", str(log)) == 0
    captured = capsys.readouterr()
    assert "converged" in captured.out
    assert captured.err == f"warning: {log}: cannot be written: No space left on device\n"


def test_a_checkpoint_in_a_read_only_folder_is_reported_and_the_fit_continues(
    folder: Path, read_only: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    checkpoint = read_only / "kept"
    options = ("--checkpoint", str(checkpoint), "--json", "r.json", "--jobs", "1")
    assert run("fit", "decay.toml", *options) == 0
    captured = capsys.readouterr()
    assert captured.err.count("warning: ") == 1
    assert f"warning: {checkpoint}: the checkpoint cannot be written: " in captured.err
    assert json.loads((folder / "r.json").read_text())["status"] == "converged"


def test_a_result_for_a_read_only_folder_is_refused_before_the_fit(
    folder: Path, read_only: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("fit", "decay.toml", "--json", str(read_only / "r.json")) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert f"{read_only / 'r.json'}: the directory {read_only} cannot be written to" in captured.err


def test_a_problem_in_a_read_only_folder_is_fitted(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is written beside a problem file unasked."""
    with mounted(tmp_path / "library", "size=64k") as place:
        for name in ("decay.toml", "data.csv"):
            (place / name).write_bytes((folder / name).read_bytes())
        subprocess.run(["mount", "-o", "remount,ro", str(place)], check=True)
        assert run("fit", str(place / "decay.toml"), "--json", "r.json", "--jobs", "1") == 0
    assert capsys.readouterr().err == ""


@pytest.mark.slow
def test_a_file_that_cannot_be_written_leaves_the_checkpoint_for_another_try(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", refuse)
        assert run("fit", "decay.toml", "--json", "r.json", "--jobs", "1") == 2
    captured = capsys.readouterr()
    assert "converged" in captured.out
    assert "r.json: cannot be written: No space left on device" in captured.err
    assert not (folder / "r.json").exists()
    assert (folder / "r.json.checkpoint").exists()
    assert run("fit", "decay.toml", "--json", "r.json", "--jobs", "1") == 0
    assert not (folder / "r.json.checkpoint").exists()
