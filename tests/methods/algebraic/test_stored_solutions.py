"""Generic solutions on disk: found again, and never a reason to fail."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from odefit import InputError
from odefit.methods.algebraic.preparation import prepare
from odefit.structure.homotopy.monodromy import GenericSolutions
from odefit.structure.homotopy.square import SquareSystem
from odefit.structure.series.differentiated_system import DifferentiatedSystem
from odefit.structure.solutions import storage
from tests.methods.algebraic.models import prey, solved, toy

CHILD = """
import sys
from tests.methods.algebraic.models import prey
from odefit.methods.algebraic.preparation import prepare
print(len(prepare(prey()).generic.solutions))
"""


@pytest.fixture
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache in which nothing is, and which does not exist yet."""
    folder = tmp_path / "new" / "cache"
    monkeypatch.setenv("ODEFIT_CACHE", str(folder))
    return folder


def no_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on, only the disk has solutions."""

    def all_solutions(*_: object, **__: object) -> GenericSolutions:
        raise AssertionError("searched again")

    monkeypatch.setattr(storage, "all_solutions", all_solutions)


def test_a_second_run_reads_the_solutions_from_disk(
    empty: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = prepare(toy())
    assert len(list(empty.glob("*.json"))) == 1
    no_search(monkeypatch)
    second = prepare(toy())
    assert np.array_equal(first.generic.solutions, second.generic.solutions)
    assert np.array_equal(first.generic.parameters, second.generic.parameters)
    assert first.generic.miss_probability == second.generic.miss_probability
    assert first.solution_count == second.solution_count
    assert solved(toy()).status.value == "converged"


def test_stored_solutions_belong_to_the_equations_and_not_to_the_data(
    empty: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare(toy())
    no_search(monkeypatch)
    prepare(toy(y=[1.0, 0.9, 0.8, 0.6]))
    assert len(list(empty.glob("*.json"))) == 1


def test_other_equations_and_other_seeds_have_other_keys() -> None:
    one, other = (SquareSystem(DifferentiatedSystem(p, free_states=True)) for p in (toy(), prey()))
    keys = {storage.key(one, 0), storage.key(one, 1), storage.key(other, 0)}
    assert len(keys) == 3
    assert storage.key(SquareSystem(DifferentiatedSystem(toy(), free_states=True)), 0) in keys


@pytest.mark.parametrize("content", [b"", b"not an archive", b"PK\\x03\\x04 cut off"])
def test_an_entry_that_cannot_be_read_is_replaced(empty: Path, content: bytes) -> None:
    prepare(toy())
    (entry,) = empty.glob("*.json")
    good = json.loads(entry.read_bytes())
    entry.write_bytes(content)
    assert len(prepare(toy()).generic.solutions) == 2
    assert json.loads(entry.read_bytes())["solutions"] == good["solutions"]


def test_an_entry_that_was_cut_off_is_replaced(empty: Path) -> None:
    prepare(toy())
    (entry,) = empty.glob("*.json")
    good = entry.read_bytes()
    entry.write_bytes(good[: len(good) // 2])
    assert len(prepare(toy()).generic.solutions) == 2
    assert len(json.loads(entry.read_bytes())["solutions"]) == 2


def test_an_incomplete_entry_is_replaced(empty: Path) -> None:
    prepare(toy())
    (entry,) = empty.glob("*.json")
    entry.write_text('{"something": [0, 0, 0]}', encoding="utf-8")
    assert len(prepare(toy()).generic.solutions) == 2


def test_a_folder_that_cannot_be_made_raises_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file is where the folder should be: not even root can write there."""
    file = tmp_path / "file"
    file.write_text("", encoding="utf-8")
    monkeypatch.setenv("ODEFIT_CACHE", str(file / "cache"))
    assert len(prepare(toy()).generic.solutions) == 2
    assert file.read_text(encoding="utf-8") == ""


@pytest.mark.slow
def test_two_processes_may_write_at_once(empty: Path) -> None:
    root = Path(__file__).parents[3]
    path = os.pathsep.join([str(root), str(root / "src"), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path}
    children = [
        subprocess.Popen(
            [sys.executable, "-c", CHILD], stdout=subprocess.PIPE, text=True, env=environment
        )
        for _ in range(2)
    ]
    said = [child.communicate(timeout=120)[0].strip() for child in children]
    assert [child.returncode for child in children] == [0, 0]
    assert said == ["2", "2"]
    assert [p.suffix for p in empty.iterdir()] == [".json"]


def test_the_environment_sets_the_folder_of_entries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ODEFIT_CACHE", "/somewhere")
    assert storage.cache_folder() == Path("/somewhere")
    monkeypatch.delenv("ODEFIT_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/cache")
    assert storage.cache_folder() == Path("/cache/odefit/solutions")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert storage.cache_folder() == Path.home() / ".cache" / "odefit" / "solutions"


def test_a_refusal_leaves_nothing_on_disk(empty: Path) -> None:
    from tests.methods.algebraic.models import TIMES

    with pytest.raises(InputError):
        solved(prey(TIMES[:3]), points=1)
    assert not list(empty.glob("*.tmp"))
