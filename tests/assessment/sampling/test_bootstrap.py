"""The bootstrap: its scatter against closed forms, its samples, its limits."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import odefit
from odefit import InputError, Model, Problem, SingleShooting, Status
from odefit.assessment.sampling.bootstrap import MIN_SAMPLES, BootstrapKind, bootstrap
from odefit.common.arrays import Array
from tests.assessment.lines import TIMES, least_squares, line


def fitted(problem: Problem) -> Array:
    return odefit.fit(problem, SingleShooting(), jobs=1).best.vector


@pytest.mark.parametrize("kind", ["parametric", pytest.param("residual", marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "noise", [{}, pytest.param({"x": {"sd": "estimate"}}, marks=pytest.mark.slow)]
)
def test_the_scatter_of_a_line_agrees_with_linear_regression(
    kind: BootstrapKind, noise: dict[str, Any]
) -> None:
    problem = line(noise=noise)
    vector = fitted(problem)
    found = bootstrap(problem, vector, 600, kind, jobs=1)
    _, variance, inverse = least_squares(problem)
    assert found.failed == 0
    assert found.status is Status.CONVERGED
    wanted = variance * inverse
    tolerance = 0.15 if kind == "parametric" else 0.25  # residuals of twelve points scatter
    assert found.covariance[:2, :2] == pytest.approx(wanted, rel=tolerance)
    table = found.table(0.9).iloc[:2]
    half = 1.645 * np.sqrt(np.diag(wanted))
    upper = np.asarray(table["ci_high"] - table["estimate"])
    assert upper == pytest.approx(half, rel=0.2)
    assert np.abs(table["bias"]).max() < 0.1 * half.max()


@pytest.mark.slow
def test_samples_do_not_depend_on_who_fits_them(tmp_path: Path) -> None:
    problem = line()
    vector = fitted(problem)
    alone = bootstrap(problem, vector, 30, seed=5, jobs=1)
    with ThreadPoolExecutor(2) as executor:
        shared = bootstrap(problem, vector, 30, seed=5, executor=executor)
    assert np.array_equal(alone.vectors, shared.vectors)
    other = bootstrap(problem, vector, 30, seed=6, jobs=1)
    assert not np.array_equal(alone.vectors, other.vectors)
    # A checkpoint with half of the samples.
    path = tmp_path / "samples.json"
    bootstrap(problem, vector, 15, seed=5, jobs=1, checkpoint=path)
    said: list[int] = []
    more = bootstrap(
        problem,
        vector,
        30,
        seed=5,
        jobs=1,
        checkpoint=path,
        progress=lambda p: said.append(p.done),
    )
    assert np.array_equal(alone.vectors, more.vectors)
    assert said == list(range(16, 31))


def test_the_checkpoint_of_another_fit_is_refused(tmp_path: Path) -> None:
    problem = line()
    path = tmp_path / "samples.json"
    bootstrap(problem, fitted(problem), 2, jobs=1, checkpoint=path)
    other = line(seed=3)
    with pytest.raises(InputError, match="belongs to another problem"):
        bootstrap(other, fitted(other), 2, jobs=1, checkpoint=path)


def test_a_time_limit_keeps_the_fitted_samples() -> None:
    problem = line()
    found = bootstrap(problem, fitted(problem), 10**6, time_limit=0.3, jobs=1)
    assert found.status is Status.TIME_LIMIT
    assert 0 < len(found.vectors) < 10**6
    assert "stopped by the time limit" in found.message


def test_few_samples_have_no_intervals() -> None:
    problem = line()
    found = bootstrap(problem, fitted(problem), 5, jobs=1)
    assert np.isnan(found.intervals()).all()
    assert "intervals need 20" in found.message


def test_as_many_samples_as_are_needed_have_intervals() -> None:
    problem = line()
    found = bootstrap(problem, fitted(problem), MIN_SAMPLES, jobs=1)
    assert np.isfinite(found.intervals()[:2]).all()
    assert "intervals need" not in found.message


@pytest.mark.slow
def test_residuals_that_have_a_mean_do_not_move_the_estimates() -> None:
    bent = Problem(
        Model(ode={"x": "b"}),
        {"t": TIMES, "x": 1.0 + 0.5 * TIMES + 0.01 * np.sin(7 * TIMES)},
        {"b": {"lower": -50.0, "upper": 50.0, "guess": 0.5}},
        {"x": 0.0},  # the line begins too low, so that most residuals have one sign
    )
    found = bootstrap(bent, fitted(bent), 200, "residual", jobs=1)
    row = found.table().iloc[0]
    assert abs(row["bias"]) < 0.3 * row["std_error"]


@pytest.mark.parametrize(
    "noise",
    [
        pytest.param({"relative": 0.1}, marks=pytest.mark.slow),
        pytest.param({"sd": 0.1, "transform": "log10"}, marks=pytest.mark.slow),
        {"sd": "0.05 + 0.1*x"},
    ],
)
def test_noise_of_every_kind_is_drawn_again(noise: dict[str, Any]) -> None:
    """Priors too: without the scatter of their means the intervals would be too narrow."""
    times = np.linspace(0.0, 2.0, 8)
    values = 2 * np.exp(-times) * (1 + 0.05 * np.cos(7 * times))
    problem = Problem(
        Model(ode={"x": "-k*x"}),
        {"t": times, "x": values},
        {"k": {"lower": 0.01, "upper": 5.0, "prior": {"mean": 1.0, "sd": 0.1}}},
        {"x": {"lower": 0.01, "upper": 9.0}},
        noise={"x": noise},
    )
    result = odefit.fit(problem, SingleShooting(), jobs=1)
    assert result.uncertainty is not None
    found = result.bootstrap(300, jobs=1)
    assert found.failed == 0
    spread = np.sqrt(np.diag(found.covariance))
    assert spread == pytest.approx(result.uncertainty.standard_errors, rel=0.3)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"count": 0}, "count: expected a positive whole number"),
        ({"kind": "residuals"}, "'residuals' is not known"),
        ({"seed": -1}, "seed: expected a whole number"),
        ({"time_limit": 0.0}, "time_limit: expected a positive number"),
    ],
)
def test_wrong_arguments_are_refused(arguments: dict[str, Any], said: str) -> None:
    problem = line()
    with pytest.raises(InputError, match=said):
        bootstrap(problem, np.array([0.5, 1.0]), **arguments)


def test_a_model_that_cannot_be_integrated_is_refused() -> None:
    problem = Problem(
        Model(ode={"x": "k*x^2"}),
        {"t": [1.0, 2.0, 3.0], "x": [1.0, 2.0, 3.0]},
        {"k": {}},
        {"x": 1.0},
    )
    with pytest.raises(InputError, match="a bootstrap needs a model that can be integrated"):
        bootstrap(problem, np.array([5.0]))
