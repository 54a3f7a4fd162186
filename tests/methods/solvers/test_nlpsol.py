"""Local solvers agree with each other and with a scan, and are quiet."""

from __future__ import annotations

import pytest

from odefit.common.errors import InputError
from odefit.discretisation.formulations import ExtraTol, Formulation, SoftCons
from odefit.discretisation.instance import Instance
from odefit.methods.solvers.nlpsol import Bonmin, Ipopt, Uno
from odefit.methods.solvers.solver import Limits, Outcome, Solver
from tests.methods.transcription.instances import decay, harmonic, scan

LOCAL = [Ipopt(), Bonmin(), Uno()]


def named(value: object) -> str:
    return str(getattr(value, "name", value))


@pytest.mark.parametrize("solver", LOCAL, ids=named)
def test_the_minimum_of_a_decay_is_that_of_a_scan(solver: Solver) -> None:
    instance = decay(start=True)
    found = solver.solve(instance, Limits(20))
    assert found.outcome is Outcome.SOLVED
    assert found.violation < 1e-8
    assert found.objective == pytest.approx(scan(instance), rel=1e-5)
    assert found.lower_bound is None


@pytest.mark.parametrize("formulation", [ExtraTol(1e-3), SoftCons(10.0)], ids=named)
@pytest.mark.parametrize("solver", LOCAL[1:], ids=named)
def test_all_agree_on_a_formulation(solver: Solver, formulation: Formulation) -> None:
    instance = decay(formulation=formulation, start=True)
    expected = Ipopt().solve(instance, Limits(20))
    found = solver.solve(instance, Limits(20))
    assert found.outcome is Outcome.SOLVED
    assert found.objective == pytest.approx(expected.objective, rel=1e-4, abs=1e-7)


@pytest.mark.parametrize("solver", LOCAL, ids=named)
def test_solver_output_does_not_reach_the_terminal(
    solver: Solver, capfd: pytest.CaptureFixture[str]
) -> None:
    solver.solve(decay(start=True), Limits(20))
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("solver", LOCAL, ids=named)
def test_a_limit_of_time_is_reported_as_such(solver: Solver) -> None:
    d, local = harmonic()
    assert local.values is not None
    assert local.unknowns is not None
    far = Instance(d, SoftCons(1e3), 3 * local.values + 1, local.unknowns / 3)
    found = solver.solve(far, Limits(1e-3))
    assert found.outcome is Outcome.LIMIT


@pytest.mark.parametrize("solver", [Ipopt(options={"nonsense": 1}), Bonmin({"nonsense": 1})])
def test_an_unknown_option_is_refused(solver: Solver) -> None:
    with pytest.raises(InputError, match=r"an option is not accepted: .*nonsense"):
        solver.solve(decay(start=True), Limits(5))
