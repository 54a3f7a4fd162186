"""Machine code on disk."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from odefit.common.kernels import kernel, machine
from odefit.common.kernels.kernel import Kernel

SCALE = 2.0


def scaled(x: float) -> float:
    return SCALE * x


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(machine, "cache_folder", lambda: tmp_path / "kernels")
    return tmp_path / "kernels"


def test_a_kernel_is_compiled_once_for_all_processes(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert Kernel(scaled)(1.5) == 3.0
    assert len(list(folder.iterdir())) == 1

    def fail(text: str) -> bytes:
        raise AssertionError(text)

    monkeypatch.setattr(machine, "object_code", fail)
    assert Kernel(scaled)(1.5) == 3.0


def test_a_changed_constant_is_noticed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert Kernel(scaled)(1.5) == 3.0
    monkeypatch.setitem(scaled.__globals__, "SCALE", 4.0)
    assert Kernel(scaled)(1.5) == 6.0
    assert len(list(folder.iterdir())) == 2


@pytest.mark.parametrize("content", [b"", b"x", b"0" * 64 + b"\nf\nno code"])
def test_a_broken_file_is_replaced(folder: Path, content: bytes) -> None:
    assert Kernel(scaled)(1.5) == 3.0
    [file] = folder.iterdir()
    whole = file.read_bytes()
    file.write_bytes(content or whole[: len(whole) // 2])
    assert Kernel(scaled)(1.5) == 3.0
    assert file.read_bytes()[:64] == whole[:64]


def test_without_a_folder_that_can_be_written_kernels_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    monkeypatch.setattr(machine, "cache_folder", lambda: tmp_path / "file" / "kernels")
    assert Kernel(scaled)(1.5) == 3.0


def test_old_versions_are_removed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for scale in range(machine.KEPT + 3):
        monkeypatch.setitem(scaled.__globals__, "SCALE", float(scale))
        assert Kernel(scaled)(1.0) == scale
    assert len(list(folder.iterdir())) == machine.KEPT


def test_the_folder_is_that_of_the_user(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert machine.cache_folder() == tmp_path / "odefit" / "kernels"
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "local"))
    assert machine.cache_folder() == tmp_path / "local" / "odefit" / "kernels"


def test_results_are_described_and_read() -> None:
    assert kernel._described("f") == "f"
    assert Kernel(scaled)(np.float64(2.0)) == 4.0


def test_two_processes_may_compile_the_same_kernel(tmp_path: Path) -> None:
    code = (
        "import numpy as np\n"
        "from odefit.simulation.engines.bdf.differences import add_difference\n"
        "d = np.ones((8, 3))\nadd_difference(d, np.full(3, 2.0), 2)\nprint(d.sum())"
    )
    environment = os.environ | {"XDG_CACHE_HOME": str(tmp_path)}
    running = [
        subprocess.Popen([sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE)
        for _ in range(2)
    ]
    said = [process.communicate()[0] for process in running]
    assert said[0] == said[1]
    assert said[0].strip()
