"""How much memory there is and is used, and when that is too much."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import pytest

from odefit.common.errors import InputError
from odefit.methods.running.memory import (
    Machine,
    MemoryWatch,
    in_words,
    machine_memory,
    memory_size,
    used_memory,
)

GB = 10**9


@pytest.mark.parametrize(
    ("given", "size"),
    [
        ("4GB", 4 * GB),
        ("512 MiB", 512 * 2**20),
        ("0.5g", GB // 2),
        ("2e9", 2 * GB),
        ("250mb", GB // 4),
        (3 * GB, 3 * GB),
        (1.5e9, 3 * GB // 2),
    ],
)
def test_sizes_are_numbers_of_bytes_or_texts(given: object, size: int) -> None:
    assert memory_size(given) == size


@pytest.mark.parametrize("given", ["4 cows", "", "-1GB", "GB", True, None, "1e400 B", [1]])
def test_anything_else_is_refused(given: object) -> None:
    with pytest.raises(InputError, match="--memory: expected a number of bytes or a text such as"):
        memory_size(given, "--memory")


def test_a_memory_limit_too_small_for_any_fit_is_refused() -> None:
    with pytest.raises(InputError, match=r"1 MB is too little.*give at least 100 MB"):
        memory_size("1MB")


def test_sizes_are_reported_with_three_digits() -> None:
    assert [in_words(s) for s in (12, 3.25e9, 123456789, 2e12)] == [
        "12 bytes",
        "3.25 GB",
        "123 MB",
        "2 TB",
    ]


MEMINFO = "MemTotal:       16000000 kB\nMemFree: 1 kB\nMemAvailable:    8000000 kB\n"


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


def test_the_memory_of_the_machine_is_read(tmp_path: Path) -> None:
    write(tmp_path, {"proc/meminfo": MEMINFO})
    found = machine_memory(tmp_path, tmp_path / "cgroup")
    assert found == Machine(16e6 * 1024, 8e6 * 1024)


def test_a_control_group_of_a_job_has_less_whatever_its_version(tmp_path: Path) -> None:
    second = {
        "proc/meminfo": MEMINFO,
        "proc/self/cgroup": "0::/slurm/job_7/step_0\n",
        "cgroup/memory.max": "max",
        "cgroup/slurm/job_7/memory.max": "4000000000",
        "cgroup/slurm/job_7/memory.current": "3000000000",
        "cgroup/slurm/job_7/memory.stat": "anon 1\ninactive_file 500000000\n",
        "cgroup/slurm/job_7/step_0/memory.max": "max",
    }
    first = {
        "proc/meminfo": MEMINFO,
        "proc/self/cgroup": "4:memory:/docker/abc\n3:cpu:/\n",
        # In a container the group's own path is not there: its files are at the top.
        "cgroup/memory/memory.limit_in_bytes": "4000000000",
        "cgroup/memory/memory.usage_in_bytes": "3000000000",
        "cgroup/memory/memory.stat": "total_inactive_file 500000000\n",
    }
    for name, files in (("second", second), ("first", first)):
        write(tmp_path / name, files)
        found = machine_memory(tmp_path / name, tmp_path / name / "cgroup")
        assert found == Machine(4e9, 1.5e9), name


def test_memory_is_unknown_without_a_source(tmp_path: Path) -> None:
    assert machine_memory(tmp_path, tmp_path) is None
    write(tmp_path, {"proc/meminfo": "MemFree: 1 kB\n"})
    assert machine_memory(tmp_path, tmp_path) is None


@pytest.mark.skipif(sys.platform != "linux", reason="Linux alone tells what processes use")
def test_memory_of_this_process_is_counted() -> None:
    before = used_memory()
    held = np.ones(20_000_000)
    assert used_memory() - before == pytest.approx(held.nbytes, rel=0.2)


def test_processes_that_a_process_has_started_count(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "7/statm": "900 500 100 1 0 300 0",
            "7/task/7/children": "8 ",
            "7/task/9/children": "",
            "8/statm": "900 50 10 1 0 300 0",
            "8/task/8/children": "10",
            "10/statm": "900 5 1 1 0 300 0",
            "11/statm": "900 5000 1 1 0 300 0",
        },
    )
    page = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
    assert used_memory(tmp_path, 7) == (400 + 40 + 4) * page


def test_a_limit_that_is_given_is_kept() -> None:
    watch = MemoryWatch(4 * GB, used=lambda: 5 * GB, machine=lambda: Machine(99 * GB, 90 * GB))
    assert watch.short() == "5 GB were in use, of 4 GB allowed"
    assert MemoryWatch(6 * GB, used=lambda: 5 * GB, machine=lambda: None).short() == ""


@pytest.mark.parametrize(
    ("used", "available", "words"),
    [
        (12 * GB, 0.3 * GB, "300 MB of 16 GB were left, and 12 GB in use here"),
        (12 * GB, 3 * GB, ""),
        (1 * GB, 0.3 * GB, ""),  # somebody else has it
    ],
)
def test_without_a_limit_a_run_ends_before_the_machine_has_no_memory_left(
    used: int, available: float, words: str
) -> None:
    watch = MemoryWatch(None, used=lambda: used, machine=lambda: Machine(16 * GB, available))
    assert watch.short() == words
