"""MAiNGO's bounds against scans of the whole interval, and its refusals."""

from __future__ import annotations

import numpy as np
import pytest

from odefit import library
from odefit.common.errors import InputError
from odefit.discretisation.discretisation import Discretisation
from odefit.discretisation.formulations import Baseline, ExtraTol
from odefit.discretisation.instance import Instance
from odefit.discretisation.mesh import UniformMesh
from odefit.discretisation.schemes import SCHEMES
from odefit.methods.solvers.maingo import Maingo, explicit_order
from odefit.methods.solvers.solver import Limits, Outcome
from tests.methods.transcription.instances import decay, needs, scan

maingo = needs("maingopy")


@maingo
def test_the_global_minimum_of_an_explicit_scheme_is_that_of_a_scan() -> None:
    instance = decay(scheme="euler", upper=2.0)
    least = scan(instance)
    found = Maingo().solve(instance, Limits(20))
    assert found.outcome is Outcome.SOLVED
    assert found.violation < 1e-12
    assert found.objective == pytest.approx(least, rel=2e-3)
    assert found.lower_bound is not None
    assert 0.98 * least <= found.lower_bound <= least * (1 + 1e-9)


@maingo
def test_solver_output_does_not_reach_the_terminal(capfd: pytest.CaptureFixture[str]) -> None:
    Maingo().solve(decay(scheme="runge-kutta", steps=2), Limits(5))
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("name", ["harmonic", "seasonal-lotka-volterra", "hiv-f"])
@pytest.mark.parametrize(
    ("scheme", "explicit"),
    [("euler", True), ("runge-kutta", True), ("trapezoid", False), ("radau", False)],
)
def test_explicit_schemes_are_distinguished_from_implicit_ones(
    name: str, scheme: str, explicit: bool
) -> None:
    d = Discretisation(library.load(name), SCHEMES[scheme], UniformMesh(7))
    order = explicit_order(d)
    assert (order is not None) is explicit
    if order is not None:
        targets = [target for _, target in order]
        free = np.flatnonzero((d.lower < d.upper).ravel())
        assert sorted(targets) == free.tolist()


@maingo
def test_points_without_bounds_are_refused_with_the_remedy() -> None:
    with pytest.raises(InputError, match=r"x at t = 0.5 has none; take an explicit scheme"):
        Maingo().solve(decay(), Limits(5))
    with pytest.raises(InputError, match="Baseline"):
        Maingo().solve(decay(scheme="euler", formulation=ExtraTol()), Limits(5))


@maingo
def test_unknowns_without_bounds_are_refused_by_name() -> None:
    with pytest.raises(InputError, match=r"a lower and an upper bound of every unknown.*for k"):
        Maingo().solve(decay(scheme="euler", upper=np.inf), Limits(5))


@maingo
@pytest.mark.parametrize("function", ["abs(x)", "min(x, k)"])
def test_a_function_without_bounds_is_refused_by_name(function: str) -> None:
    name = function.split("(")[0]
    with pytest.raises(InputError, match=rf"MAiNGO: the model uses {name}\(\)"):
        Maingo().solve(decay(scheme="euler", slope=f"-k*{function}"), Limits(5))


def test_without_its_package_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    d = decay().discretisation
    assert Maingo().missing() == 'MAiNGO is not installed: pip install "odefit[maingo]"'
    with pytest.raises(InputError, match="pip install"):
        Maingo().solve(Instance(d, Baseline()), Limits(1))
