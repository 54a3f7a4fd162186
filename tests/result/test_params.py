"""A result has the names and the numbers that users of lmfit and SciPy expect."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
from scipy.optimize import curve_fit

import odefit
from odefit import Model, Problem, Result, SimulationError
from odefit.common.arrays import Array
from odefit.result.params import params_of
from tests.reporting import examples

TIMES = np.linspace(0.0, 4.0, 21)
SD = 0.05
VALUES = 2.0 * np.exp(-0.7 * TIMES) + SD * np.cos(19.0 * TIMES)


def fitted(noise: dict[str, object] | None = None, **unknown: object) -> Result:
    problem = Problem(
        Model(ode={"x": "-k*x"}, observables={"y": "s*x"}),
        {"t": TIMES, "y": VALUES},
        {
            "k": {"lower": 0.1, "upper": 3.0, "guess": 0.5, "unit": "1/h", **unknown},
            "s": {"lower": 0.1, "upper": 9.0},
        },
        {"x": 1.0},
        noise={} if noise is None else {"y": noise},
    )
    return odefit.fit(problem, odefit.SingleShooting(), seed=1, jobs=1)


def test_a_name_from_another_program_leads_to_the_name_in_odefit() -> None:
    result = examples.alpha_pinene()
    for name, here in (
        ("best_values", "result.params.valuesdict()"),
        ("fit_report", "print(result)"),
        ("popt", "result.x"),
    ):
        with pytest.raises(AttributeError, match=f"a result has no '{name}'; there is ") as caught:
            getattr(result, name)
        assert str(caught.value).endswith(here)
    with pytest.raises(AttributeError, match="'Result' object has no attribute 'nothing'"):
        _ = result.nothing


@pytest.fixture(scope="module")
def plain() -> Result:
    return fitted()


@pytest.fixture(scope="module")
def weighted() -> Result:
    return fitted({"sd": SD})


def curve(t: Array, k: float, s: float) -> Array:
    return s * np.exp(-k * t)


@pytest.mark.parametrize("given", [True, False])
def test_values_errors_and_covariance_are_those_of_curve_fit(
    given: bool, plain: Result, weighted: Result
) -> None:
    result = weighted if given else plain
    sds = np.full(len(TIMES), SD) if given else None
    values, covariance = curve_fit(
        curve, TIMES, VALUES, p0=(0.5, 1.0), sigma=sds, absolute_sigma=given
    )
    assert result.x == pytest.approx(values, rel=1e-5)
    assert result.var_names == ("k", "s")
    assert result.covar == pytest.approx(covariance, rel=1e-3)
    k = result.params["k"]
    assert k.value == pytest.approx(values[0], rel=1e-5)
    assert float(k) == k.value
    assert k.stderr == pytest.approx(math.sqrt(covariance[0, 0]), rel=1e-3)
    errors = np.sqrt(np.diag(covariance))
    assert k.correl["s"] == pytest.approx(covariance[0, 1] / errors.prod(), rel=1e-3)
    assert k.ci is not None
    assert k.ci[0] < k.value < k.ci[1]
    assert (k.vary, k.min, k.max, k.init_value, k.unit) == (True, 0.1, 3.0, 0.5, "1/h")


def test_statistics_have_the_definitions_of_lmfit(weighted: Result) -> None:
    residuals = weighted.residuals["weighted"].to_numpy()
    assert (weighted.ndata, weighted.nvarys, weighted.nfree) == (21, 2, 19)
    assert weighted.chisqr == pytest.approx(np.sum(residuals**2), rel=1e-9)
    assert weighted.redchi == pytest.approx(np.sum(residuals**2) / 19, rel=1e-9)
    assert weighted.success
    assert weighted.nfev == sum(s.evaluations for s in weighted.starts) > 0


def test_differences_of_information_criteria_are_those_of_lmfit(plain: Result) -> None:
    smaller = fitted(fixed=0.6, lower=None, upper=None, guess=None)

    def lmfit(result: Result) -> tuple[float, float]:
        assert result.chisqr is not None
        deviance = result.ndata * math.log(result.chisqr / result.ndata)
        k = result.nvarys
        return deviance + 2 * k, deviance + math.log(result.ndata) * k

    expected = np.subtract(lmfit(plain), lmfit(smaller))
    assert plain.aic - smaller.aic == pytest.approx(expected[0], rel=1e-9)
    assert plain.bic - smaller.bic == pytest.approx(expected[1], rel=1e-9)
    fixed = smaller.params["k"]
    assert (fixed.vary, fixed.stderr, fixed.ci, fixed.min, fixed.max) == (
        *(False, None, None),
        *(0.6, 0.6),
    )
    assert fixed.note == "fixed by the problem"


def test_chi_square_is_missing_where_it_says_nothing(plain: Result) -> None:
    assert plain.chisqr == pytest.approx(plain.objective)
    assert plain.redchi is None  # no standard deviation is given
    estimated = fitted({"sd": "estimate"})
    assert estimated.chisqr is None
    assert estimated.redchi is None
    assert "sd" in " ".join(estimated.params)


def test_priors_are_not_part_of_chi_square() -> None:
    result = fitted({"sd": SD}, prior={"mean": 0.7, "sd": 0.01})
    squares = np.sum(result.residuals["weighted"].to_numpy() ** 2)
    assert result.chisqr == pytest.approx(squares, rel=1e-9)
    assert result.objective > squares


def test_params_are_a_mapping_with_a_reason_for_what_is_missing() -> None:
    params = params_of(examples.troubled())
    undetermined = params["k2"]
    assert undetermined.stderr is None
    assert undetermined.ci is None
    assert "not determined" in undetermined.note
    assert params.valuesdict()["k2"] == undetermined.value
    with pytest.raises(KeyError, match="V_maxx; did you mean 'V_max'"):
        params["V_maxx"]
    assert "k2 = " in repr(params)


def test_without_a_solution_nothing_is_made_up() -> None:
    failed = examples.failed()
    assert not failed.success
    assert failed.chisqr is None
    assert failed.covar is None
    assert all(math.isnan(p.value) for p in failed.params.values() if p.vary)


def test_both_ways_to_simulate_give_a_table_or_raise(plain: Result) -> None:
    problem = plain.problem
    by_name = odefit.simulate(problem, dict(zip(plain.var_names, plain.x, strict=True)), [0.0, 1.0])
    assert by_name.table.equals(plain.simulate([0.0, 1.0]))
    growing = Problem(
        Model(ode={"x": "k*x^2"}),
        {"t": [0.0, 2.0], "x": [1.0, 2.0]},
        {"k": {"lower": 0.0, "upper": 2.0}},
        {"x": 1.0},
    )
    with pytest.raises(SimulationError, match="the simulation fails: experiment") as told:
        odefit.simulate(growing, {"k": 1.0})
    again = pickle.loads(pickle.dumps(told.value))
    assert again.failure == told.value.failure
    assert isinstance(again, RuntimeError)


def test_an_unknown_name_lists_the_known_ones_the_nearest_first(plain: Result) -> None:
    names = [*plain.params]
    with pytest.raises(KeyError) as caught:
        _ = plain.params[names[-1] + "_"]
    others = ", ".join(names[:-1])
    assert f"did you mean '{names[-1]}'? Known are: {names[-1]}, {others}" in str(caught.value)
    with pytest.raises(KeyError, match="known are: "):
        _ = plain.params["something else"]
