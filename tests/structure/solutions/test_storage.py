"""An entry of the cache is data that solves the equations, or it is not used."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from odefit.problem import Experiment, Model, Problem
from odefit.structure.homotopy.monodromy import GenericSolutions
from odefit.structure.homotopy.square import SquareSystem
from odefit.structure.series.differentiated_system import DifferentiatedSystem
from odefit.structure.solutions import storage
from odefit.structure.solutions.storage import (
    are_solutions,
    complex_array,
    read_entry,
    stored_solutions,
    write_entry,
)


def two_solutions() -> SquareSystem:
    """Of dx/dt = -k*x, where x^2 is measured: x and -x."""
    data = {"t": [0.0, 1.0, 2.0], "y": [1.0, 0.5, 0.3]}
    problem = Problem(
        Model(ode={"x": "-k*x"}, observables={"y": "x*x"}),
        experiments=[Experiment("run", data)],
        parameters={"k": {}},
        initial={"x": {}},
    )
    return SquareSystem(DifferentiatedSystem(problem, free_states=True))


@pytest.fixture
def entry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An entry with both solutions, after which nothing is searched for any more."""
    monkeypatch.setenv("ODEFIT_CACHE", str(tmp_path))
    assert len(stored_solutions(two_solutions()).solutions) == 2

    def no_search(*_: object, **__: object) -> GenericSolutions:
        raise InterruptedError

    monkeypatch.setattr(storage, "all_solutions", no_search)
    (path,) = tmp_path.glob("*.json")
    return path


def rewritten(path: Path, change: Callable[[Any], None]) -> None:
    """An entry with other content and the digest that belongs to it."""
    tree = json.loads(path.read_text(encoding="utf-8"))
    del tree["digest"]
    change(tree)
    write_entry(path, **tree)
    assert read_entry(path) == tree


def test_stored_solutions_are_found_again(entry: Path) -> None:
    assert len(stored_solutions(two_solutions()).solutions) == 2


def moved(tree: Any) -> None:
    tree["solutions"][1][0][0] += 1e-3


def repeated(tree: Any) -> None:
    tree["solutions"].append(tree["solutions"][0])


def cut(tree: Any) -> None:
    tree["solutions"].pop()


def narrow(tree: Any) -> None:
    tree["solutions"] = [row[:1] for row in tree["solutions"]]


def endless(tree: Any) -> None:
    tree["solutions"][0][0][0] = 1e999


def uncounted(tree: Any) -> None:
    tree["expected"] = 3


def unsearched(tree: Any) -> None:
    tree.update(expected=None, arrivals=0)


def worded(tree: Any) -> None:
    tree["paths"] = "many"


def shortened(tree: Any) -> None:
    tree["parameters"] = tree["parameters"][:-1]


@pytest.mark.parametrize(
    "change", [moved, repeated, cut, narrow, endless, uncounted, unsearched, worded, shortened]
)
def test_an_impossible_entry_is_computed_again(entry: Path, change: Callable[[Any], None]) -> None:
    rewritten(entry, change)
    with pytest.raises(InterruptedError):
        stored_solutions(two_solutions())


@pytest.mark.parametrize(
    "content", [b"", b"[" * 100_000, b"PK\x03\x04", b"[]", b"\xff", b"9" * 9999]
)
def test_a_broken_entry_is_ignored(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.json").write_bytes(content)
    assert read_entry(tmp_path / "x.json") is None


def test_a_damaged_entry_is_not_read(entry: Path) -> None:
    text = entry.read_text(encoding="utf-8")
    entry.write_text(text.replace('"paths": ', '"paths": 1'), encoding="utf-8")
    assert read_entry(entry) is None


def test_an_entry_under_another_name_is_ignored(entry: Path) -> None:
    other = entry.with_name("other.json")
    other.write_bytes(entry.read_bytes())
    assert read_entry(other) is None


def test_a_large_file_or_a_folder_is_not_read(entry: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert read_entry(entry.parent) is None
    monkeypatch.setattr(storage, "MAX_SIZE", 10)
    assert read_entry(entry) is None


KILLED = """
import os, pathlib, signal, sys
from odefit.structure.solutions.storage import write_entry
os.fsync = lambda _: os.kill(os.getpid(), signal.SIGKILL)
write_entry(pathlib.Path(sys.argv[1]), paths=1)
"""


@pytest.mark.skipif(os.name != "posix", reason="partial files are removed on POSIX alone")
def test_the_partial_entry_of_a_killed_process_goes_with_the_next_one(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    killed = subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False)
    assert killed.returncode == -9
    assert len(list(tmp_path.iterdir())) == 1
    assert not path.exists()
    write_entry(path, paths=2)
    assert list(tmp_path.iterdir()) == [path]


def test_complex_numbers_come_back_to_the_last_bit(tmp_path: Path) -> None:
    values = np.random.default_rng(1).normal(size=(3, 2)) * (1 + 1e-17j)
    write_entry(tmp_path / "x.json", values=values)
    found = read_entry(tmp_path / "x.json")
    assert found is not None
    back = complex_array(found["values"], 2)
    assert back is not None
    assert np.array_equal(back, values)
    assert complex_array(found["values"], 1) is None
    assert complex_array([[1.0, None]], 1) is None
    assert complex_array([[1.0, 10**400]], 1) is None


def test_the_generic_point_is_a_solution_and_others_are_not() -> None:
    square = two_solutions()
    point, parameters = square.generic_point(np.random.default_rng(1))
    assert are_solutions(square, point[None], parameters)
    assert not are_solutions(square, point[None] * 1.001, parameters)
    assert not are_solutions(square, point[None][:0], parameters)
