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


@pytest.mark.parametrize(("name", "engine"), [("sir", "llvmlite"), ("alpha-pinene", "heyoka")])
def test_a_nonstiff_fit_loads_no_expensive_unneeded_package(name: str, engine: str) -> None:
    """A quarter of a second for scipy.stats, a tenth each for numba, LLVM and scipy.optimize.

    Linear equations of few states need LLVM, but not heyoka, which takes 0.7 s.
    """
    pytest.importorskip("heyoka")
    code = (
        "import sys, odefit\n"
        f"problem = odefit.library.load('{name}')\n"
        "print(odefit.fit(problem, jobs=1).status.value)\n"
        f"unneeded = {{'numba', '{engine}', 'scipy.stats', 'scipy.optimize'}}\n"
        "print(*sorted(unneeded & set(sys.modules)))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["converged"]


def test_a_name_that_does_not_exist_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'odefit' has no attribute 'Transcriptions'"):
        _ = odefit.Transcriptions
