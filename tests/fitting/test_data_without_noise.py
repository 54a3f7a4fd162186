"""Exact, constant and censored data end in a sentence, and not in numbers without a meaning."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import odefit
from odefit.assessment.parts import Trouble
from odefit.problem import InputError
from odefit.reporting.sentences import verdict

TIMES = np.arange(6.0)
DECAY = odefit.Model(ode={"x": "-k*x"})
ESTIMATE = {"x": {"sd": "estimate"}}


def problem(values: Any, noise: Any = None, initial: Any = (0.0, None), **columns: Any) -> Any:
    data = {"t": TIMES, "x": values, **columns}
    return odefit.Problem(DECAY, data, {"k": (0.0, None)}, {"x": initial}, noise=noise)


@pytest.mark.slow
@pytest.mark.parametrize(
    "values",
    [10.0 * np.exp(-0.5 * TIMES), np.full(6, 3.0), np.zeros(6), np.full(6, 3e-9)],
    ids=["exact", "constant", "zero", "small"],
)
def test_an_estimated_noise_that_vanishes_is_reported_and_is_no_smaller_than_rounding(
    values: Any,
) -> None:
    result = odefit.fit(problem(values, ESTIMATE), odefit.MultiStart(starts=3), seed=1, jobs=1)
    assert result.uncertainty is not None
    assert result.uncertainty.trouble["x_sd"] is Trouble.NO_NOISE
    assert np.isnan(result.uncertainty.standard_errors).all()
    assert np.isnan(result.uncertainty.intervals).all()
    size = np.abs(values).max() or 1.0
    assert 1e-17 < result.best.parameters["x_sd"] / size < 1e-12
    said = "The data are reproduced to rounding: no noise is left from which errors could be"
    assert any(said in sentence for sentence in verdict(result).sentences)
    assert "no noise: the data are reproduced to rounding" in str(result)


def test_residuals_of_zero_leave_no_standard_errors_of_zero() -> None:
    result = odefit.fit(problem(np.full(6, 3.0)), seed=1, jobs=1)
    assert result.objective == 0.0
    assert result.uncertainty is not None
    assert np.isnan(result.uncertainty.standard_errors).all()
    assert set(result.uncertainty.trouble.values()) == {Trouble.NO_NOISE}


@pytest.mark.parametrize("value", [3.0, 0.0])
def test_equal_values_are_reported(value: float) -> None:
    (warning,) = problem(np.full(6, value)).warnings
    assert f"[observables]: x: all 6 values are {value:g}; constant data determine" in warning
    assert problem([3.0, 3.0, 3.0, 3.0, 3.0, 3.1]).warnings == ()


@pytest.mark.parametrize("noise", [ESTIMATE, {"x": {"sd": "estimate", "lower_limit": 0.5}}])
def test_noise_of_values_that_are_all_censored_is_not_estimated(noise: Any) -> None:
    columns = {} if "lower_limit" in noise["x"] else {"x_cens": np.ones(6)}
    with pytest.raises(InputError, match="every value of x is censored, so their scatter"):
        problem(np.full(6, 0.5), noise, **columns)


def test_a_parameter_of_the_noise_is_not_estimated_from_censored_values_either() -> None:
    data = {"t": TIMES, "x": np.full(6, 0.5), "x_cens": np.ones(6)}
    parameters: Any = {"k": (0.0, None), "sigma": (0.0, None)}
    with pytest.raises(InputError, match="so their scatter is unknown; give sd = a"):
        odefit.Problem(DECAY, data, parameters, {"x": 10.0}, noise={"x": {"sd": "sigma"}})
    known: Any = {"k": (0.0, None), "sigma": 0.1}
    found = odefit.Problem(DECAY, data, known, {"x": 10.0}, noise={"x": {"sd": "sigma"}})
    assert "[observables] x: every value of x is censored: they bound" in found.warnings[0]


@pytest.mark.slow
@pytest.mark.parametrize("side", [1, -1])
def test_bounds_from_one_side_give_no_intervals(side: int) -> None:
    values = np.full(6, 0.5 if side == 1 else 100.0)
    censored = problem(values, {"x": {"sd": 0.1}}, x_cens=np.full(6, side))
    result = odefit.fit(censored, seed=1, jobs=1)
    assert result.uncertainty is not None
    assert np.isnan(result.uncertainty.intervals).all()
    assert result.goodness is None  # what lies beyond a limit has no pattern


@pytest.mark.slow
def test_a_constant_column_leaves_the_errors_of_others_unchanged() -> None:
    """c is measured as 2 exactly; k and the noise of x are those of a fit of x alone."""
    x = 10.0 * np.exp(-0.5 * TIMES) + 0.05 * np.array([1, -1, 0.5, -0.7, 0.4, 0.2])
    model = odefit.Model(ode={"x": "-k*x", "c": "0"})
    both = odefit.Problem(
        model,
        {"t": TIMES, "x": x, "c": np.full(6, 2.0)},
        {"k": (0.0, None)},
        {"x": 10.0, "c": (0.0, None)},
        noise={**ESTIMATE, "c": {"sd": "estimate"}},
    )
    method = odefit.MultiStart(starts=3)
    result = odefit.fit(both, method, seed=1, jobs=1)
    alone = odefit.fit(problem(x, ESTIMATE, 10.0), method, seed=1, jobs=1)
    assert result.status == odefit.Status.CONVERGED
    for key in ("k", "x_sd"):
        one, other = result.params[key], alone.params[key]
        assert one.value == pytest.approx(other.value, rel=1e-4)
        assert one.stderr == pytest.approx(other.stderr, rel=1e-3)
        assert one.ci == pytest.approx(other.ci, rel=1e-3)
    assert result.uncertainty is not None
    assert result.uncertainty.trouble == {"c": Trouble.NO_NOISE, "c_sd": Trouble.NO_NOISE}
    said = "The data that determine c, c_sd are reproduced to rounding: no noise is left"
    assert any(said in sentence for sentence in verdict(result).sentences)
