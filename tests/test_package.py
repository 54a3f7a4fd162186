"""What `import odefit` offers, and what it waits with."""

from __future__ import annotations

import subprocess
import sys

import pytest

import odefit


@pytest.mark.parametrize("name", odefit.__all__)
def test_every_public_name_is_there_and_listed(name: str) -> None:
    assert getattr(odefit, name) is not None
    assert name in dir(odefit)


def test_heavy_names_are_loaded_on_first_use() -> None:
    code = (
        "import sys, odefit\n"
        "before = {'casadi', 'scipy'} & set(sys.modules)\n"
        "method = odefit.Transcription\n"
        "print(sorted(before), 'casadi' in sys.modules, method.__module__)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "[] True odefit.methods.transcription.transcription\n"


def test_a_nonstiff_fit_loads_no_expensive_unneeded_package() -> None:
    """A quarter of a second for scipy.stats, a tenth each for numba, LLVM and scipy.optimize."""
    pytest.importorskip("heyoka")
    code = (
        "import sys, odefit\n"
        "problem = odefit.library.load('alpha-pinene')\n"
        "print(odefit.fit(problem, jobs=1).status.value)\n"
        "print(*sorted({'numba', 'llvmlite', 'scipy.stats', 'scipy.optimize'} & set(sys.modules)))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["converged"]


def test_a_name_that_does_not_exist_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'odefit' has no attribute 'Transcriptions'"):
        _ = odefit.Transcriptions
