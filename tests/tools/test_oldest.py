"""The oldest versions that are tested are the lower bounds that users are told."""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / ".ci/oldest.py"

oldest = runpy.run_path(str(SCRIPT))

PYPROJECT = """
[project]
name = "odefit"
dependencies = ["numpy>=2.1", "numba>=0.61; python_version < '3.15'", "petab>=0.8,<0.9"]
[project.optional-dependencies]
test = ["odefit[global]", "psutil>=6"]
global = ["pyscipopt>=5.2.1"]
dev = ["ruff>=0.15"]
"""


def test_the_constraints_are_the_lower_bounds_of_the_package() -> None:
    ran = subprocess.run([sys.executable, SCRIPT, "check"], capture_output=True, check=False)
    assert ran.returncode == 0, ran.stderr


def test_every_bound_is_there_but_those_of_the_checkers() -> None:
    assert oldest["bounds"](PYPROJECT) == {
        "numpy": "2.1",
        "numba": "0.61",
        "petab": "0.8",
        "psutil": "6",
        "pyscipopt": "5.2.1",
    }
    assert "psutil==6\npyscipopt==5.2.1\n" in oldest["constraints"](PYPROJECT)


@pytest.mark.parametrize(
    ("requirement", "message"),
    [
        ('"scipy"', "'scipy' has no lower bound"),
        ('"scipy==1.2"', "no lower bound"),
        ('"numpy>=2.2"', "numpy has two bounds, 2.1 and 2.2"),
    ],
)
def test_a_package_without_one_bound_is_refused(requirement: str, message: str) -> None:
    text = PYPROJECT.replace('"psutil>=6"', requirement)
    with pytest.raises(SystemExit, match=message):
        oldest["bounds"](text)
