"""SCIP's bounds against scans of the whole interval, and its refusals."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from odefit.common.arrays import Array
from odefit.common.errors import InputError
from odefit.discretisation.formulations import Baseline, ExtraTol, Formulation, SoftCons
from odefit.discretisation.instance import Instance, data_variation
from odefit.methods.solvers.nlpsol import Ipopt
from odefit.methods.solvers.scip import Scip, ScipAlgebra
from odefit.methods.solvers.solver import Limits, Outcome
from tests.methods.transcription.instances import decay, harmonic, needs, scan

pytestmark = needs("pyscipopt")


@pytest.mark.parametrize("lift", [True, False])
@pytest.mark.parametrize("scheme", ["trapezoid", "euler"])
def test_the_global_minimum_of_a_decay_is_that_of_a_scan(scheme: str, lift: bool) -> None:
    instance = decay(scheme=scheme)
    least = scan(instance)
    found = Scip(lift=lift).solve(instance, Limits(20))
    assert found.outcome is Outcome.SOLVED
    assert found.violation < 1e-6
    assert found.objective == pytest.approx(least, rel=1e-3)
    assert found.lower_bound is not None
    assert least * (1 - 2e-3) <= found.lower_bound <= least


@pytest.mark.slow
@pytest.mark.parametrize("formulation", [Baseline(), ExtraTol(1e-3), SoftCons(10.0)])
def test_no_local_solution_of_a_formulation_is_below_the_bound(formulation: Formulation) -> None:
    instance = decay(formulation=formulation, start=True)
    local = Ipopt().solve(instance, Limits(20))
    found = Scip().solve(replace(instance, values=None, unknowns=None), Limits(20))
    assert found.outcome is Outcome.SOLVED
    assert found.lower_bound is not None
    assert found.lower_bound <= local.objective * (1 + 1e-6)
    assert found.lower_bound >= 0.99 * local.objective - 1e-9


@pytest.mark.slow
def test_a_small_objective_is_resolved_on_its_own_scale() -> None:
    d, local = harmonic()
    found = Scip().solve(Instance(d, Baseline()), Limits(30))
    assert local.objective < 2e-5 * data_variation(d)
    assert found.outcome is Outcome.SOLVED
    assert found.lower_bound is not None
    assert found.lower_bound == pytest.approx(local.objective, rel=2e-3)


def test_a_start_is_taken_as_the_first_point() -> None:
    d, local = harmonic()
    seen: list[tuple[Array | None, float | None]] = []
    Scip(options={"limits/nodes": 1}).follow(
        Instance(d, Baseline(), local.values, local.unknowns),
        Limits(20),
        lambda values, unknowns, bound: seen.append((values, bound)),
    )
    first = next(values for values, _ in seen if values is not None)
    assert local.values is not None
    np.testing.assert_allclose(first, local.values, atol=1e-4)
    assert all(bound is None or bound <= local.objective for _, bound in seen)


def test_a_limit_of_time_leaves_a_valid_bound() -> None:
    d, local = harmonic()
    found = Scip().solve(Instance(d, Baseline()), Limits(0.02))
    assert found.outcome is Outcome.LIMIT
    assert found.lower_bound is not None
    assert 0 <= found.lower_bound <= local.objective


def test_solver_output_does_not_reach_the_terminal(capfd: pytest.CaptureFixture[str]) -> None:
    d, local = harmonic()
    Scip().solve(Instance(d, Baseline(), local.values, local.unknowns), Limits(20))
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    "slope",
    [
        "-k*tanh(x)",
        pytest.param("-k*x^0.5*log10(1 + x)", marks=pytest.mark.slow),
        "-tan(k*x/20)",
        pytest.param("-sinh(k*x/4)/cosh(x/4)", marks=pytest.mark.slow),
        "-k*exp(-x)*sqrt(x + 1)*sin(t)*cos(x)",
        "-x^k",
    ],
)
def test_scip_agrees_with_ipopt_on_every_function(slope: str) -> None:
    instance = decay(slope=slope, upper=2.0, start=True)
    local = Ipopt().solve(instance, Limits(20))
    found = Scip(options={"limits/nodes": 200}).solve(instance, Limits(10))
    assert found.success
    assert found.lower_bound is not None
    assert found.lower_bound <= local.objective + 1e-9
    # the point that SCIP calls feasible is so for the expressions as NumPy has them
    assert found.objective <= local.objective + 1e-6


@pytest.mark.parametrize("function", ["abs(x)", "min(x, k)", "max(x, k)", "atan(x)"])
def test_a_function_without_bounds_is_refused_by_name(function: str) -> None:
    name = function.split("(")[0]
    with pytest.raises(InputError, match=rf"SCIP: the model uses {name}\(\)"):
        Scip().solve(decay(slope=f"-k*{function}"), Limits(5))


def test_an_unknown_option_is_refused() -> None:
    with pytest.raises(InputError, match="SCIP: option limits/nonsense = 1"):
        Scip(options={"limits/nonsense": 1}).solve(decay(), Limits(5))


def test_without_its_package_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert Scip().missing() == 'SCIP is not installed: pip install "odefit[global]"'
    with pytest.raises(InputError, match="pip install"):
        Scip().solve(decay(), Limits(math.inf))


@pytest.mark.parametrize(
    "function", ["exp", "log", "sqrt", "sin", "cos", "tan", "log10", "tanh", "sinh", "cosh"]
)
def test_functions_of_known_numbers_have_their_values(function: str) -> None:
    found = ScipAlgebra().call(function, [0.7])
    assert found == pytest.approx(getattr(math, function)(0.7), rel=1e-14)
