"""The way over ``.nl`` and ``.sol`` files, with a solver that knows nothing of odefit."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from odefit import library
from odefit.common.errors import InputError
from odefit.discretisation.discretisation import Discretisation
from odefit.discretisation.formulations import Baseline, ExtraTol, Formulation, SoftCons
from odefit.discretisation.instance import Instance
from odefit.discretisation.mesh import UniformMesh
from odefit.discretisation.schemes import SCHEMES
from odefit.methods.solvers import ampl
from odefit.methods.solvers.ampl import AmplSolver
from odefit.methods.solvers.nlpsol import Ipopt
from odefit.methods.solvers.solver import Limits, Outcome
from tests.methods.transcription.instances import decay, harmonic, needs

SCRIPT = Path(__file__).with_name("ampl.py")

pyomo = needs("pyomo")


@pytest.fixture(autouse=True)
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The script under the names of two solvers, and nothing else, on the PATH."""
    for name in ("ipopt", "couenne"):
        file = tmp_path / name
        file.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{SCRIPT}" "$@"\n')
        file.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))


@pytest.mark.slow
@pyomo
@pytest.mark.parametrize("formulation", [Baseline(), ExtraTol(1e-3), SoftCons(10.0)])
@pytest.mark.parametrize("slope", ["-k*x", "-k*max(x, 0.2)^1.5*exp(-x/10) - log10(1 + k)*abs(x)"])
def test_another_program_finds_what_our_ipopt_finds(slope: str, formulation: Formulation) -> None:
    instance = decay(slope=slope, formulation=formulation, start=True)
    ours = Ipopt().solve(instance, Limits(20))
    theirs = AmplSolver("ipopt").solve(instance, Limits(20))
    assert theirs.outcome is Outcome.SOLVED
    assert theirs.message == "Script: Solve_Succeeded"
    assert theirs.objective == pytest.approx(ours.objective, rel=1e-4, abs=1e-8)
    assert theirs.violation < 1e-7


@pyomo
@pytest.mark.parametrize(
    "name", ["harmonic", pytest.param("seasonal-lotka-volterra", marks=pytest.mark.slow)]
)
def test_another_program_agrees_on_a_library_problem(name: str) -> None:
    problem, reference = library.load(name), library.reference(name)
    d = Discretisation(problem, SCHEMES["trapezoid"], UniformMesh(30))
    vector = problem.vector({**reference.parameters, **reference.initial})
    ones = np.ones((d.points, len(d.variables)))
    start = Ipopt().solve(Instance(d, Baseline(), ones, vector), Limits(20))
    assert start.unknowns is not None
    instance = Instance(d, Baseline(), start.values, 1.01 * start.unknowns)
    ours = Ipopt().solve(instance, Limits(20))
    theirs = AmplSolver("ipopt").solve(instance, Limits(20))
    assert theirs.objective == pytest.approx(ours.objective, rel=1e-6, abs=1e-9)
    assert theirs.unknowns == pytest.approx(ours.unknowns, rel=1e-4)


@pyomo
def test_a_solver_without_a_time_limit_of_its_own_is_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ampl, "GRACE_PERIOD", 0.1)
    found = AmplSolver("ipopt", {"sleep": 1}).solve(decay(start=True), Limits(0.2))
    assert found.outcome is Outcome.LIMIT
    assert "at its time limit" in found.message
    assert found.values is None


@pyomo
def test_a_solver_that_writes_nothing_fails_with_its_last_words() -> None:
    found = AmplSolver("ipopt", {"fail": 1}).solve(decay(start=True), Limits(5))
    assert found.outcome is Outcome.FAILED
    assert found.message == "ipopt ended by itself with status 1; it wrote: no licence"


@pyomo
def test_a_global_solver_refuses_corners_and_a_local_one_does_not() -> None:
    instance = decay(slope="-k*abs(x)", start=True)
    with pytest.raises(InputError, match=r"couenne: the model uses abs\(\)"):
        AmplSolver("couenne").solve(instance, Limits(5))
    assert AmplSolver("ipopt").solve(instance, Limits(5)).solved


@pytest.mark.parametrize(
    ("name", "words", "bound"),
    [
        ("couenne", "Lower bound:        0.25\nUpper bound:     0.5 (gap: 50%)", 0.25),
        ("scip", "Primal Bound : +4.1e+00\nDual Bound         : +4.05e+00", 4.05),
        ("gurobi", "Best objective 2.5e+01, best bound 2.4e+01, gap 4.0%", 24.0),
        ("ipopt", "Lower bound: 1", None),
        ("couenne", "Lower bound:   -inf", None),
    ],
)
def test_the_bound_is_taken_from_what_a_solver_writes(
    name: str, words: str, bound: float | None
) -> None:
    assert AmplSolver(name)._bound(words) == bound


def test_without_executable_or_pyomo_it_says_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if needs("pyomo").args == (False,):
        assert "baron is not on the PATH" in str(AmplSolver("baron").missing())
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    d, _ = harmonic()
    with pytest.raises(InputError, match=r'pip install "odefit\[ampl\]"'):
        AmplSolver("ipopt").solve(Instance(d, Baseline()), Limits(1))
