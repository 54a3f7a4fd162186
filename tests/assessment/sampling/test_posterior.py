"""Samples of the posterior: against closed forms, limits, wrong use."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import odefit
from odefit import InputError, Problem, SingleShooting, Status
from odefit.assessment.sampling.posterior import Posterior, sample_posterior
from odefit.common.arrays import Array
from tests.assessment.lines import least_squares, line
from tests.methods.checkpoints import execute, records

NOISES: list[dict[str, Any]] = [{}, {"x": {"sd": 0.3}}, {"x": {"sd": "estimate"}}]


def fitted(problem: Problem) -> Array:
    return odefit.fit(problem, SingleShooting(), jobs=1).best.vector


@pytest.mark.slow
@pytest.mark.parametrize("noise", NOISES)
def test_the_posterior_of_a_line_has_a_closed_form(noise: dict[str, Any]) -> None:
    """Student's t with n - 2 degrees of freedom under Jeffreys' prior, normal for known noise."""
    problem = line(noise=noise)
    found = sample_posterior(problem, fitted(problem), 800, 2, seed=1, jobs=1)
    assert found.status is Status.CONVERGED, found.message
    estimate, variance, inverse = least_squares(problem)
    # Wide bounds: the variance of Student's t with 10 degrees of freedom is 10/8.
    known = noise.get("x", {}).get("sd") == 0.3
    wanted = np.sqrt(np.diag(inverse) * (0.09 if known else variance * 10 / 8))
    order = [problem.keys.index(k) for k in ("b", "x")]
    table = found.table().iloc[order]
    assert np.asarray(table["mean"]) == pytest.approx(estimate, abs=0.15 * wanted.max())
    assert np.asarray(table["sd"]) == pytest.approx(wanted, rel=0.12)
    assert (table["r_hat"] < 1.01).all()
    assert set(found.to_arviz().posterior.data_vars) == set(problem.keys)


@pytest.mark.slow
def test_the_same_seed_gives_the_same_samples() -> None:
    problem = line()
    vector = fitted(problem)
    first = sample_posterior(problem, vector, 20, 1, 20, seed=3, jobs=1)
    again = sample_posterior(problem, vector, 20, 1, 20, seed=3, jobs=1)
    assert first.chains.shape == (1, 20, 2)
    assert np.array_equal(first.chains, again.chains)
    other = sample_posterior(problem, vector, 20, 1, 20, seed=4, jobs=1)
    assert not np.array_equal(first.chains, other.chains)
    assert first.status is Status.NOT_CONVERGED
    assert "take more draws" in first.message


@pytest.mark.slow
def test_finished_chains_are_found_in_the_checkpoint(tmp_path: Path) -> None:
    problem = line()
    vector = fitted(problem)
    path = tmp_path / "chains"

    def sampled(chains: int, kept: Path | None = path) -> Posterior:
        return sample_posterior(problem, vector, 20, chains, 20, seed=3, jobs=1, checkpoint=kept)

    sampled(2)
    execute(path, "DELETE FROM records WHERE key = '0'")
    found = sampled(3)
    plain = sampled(3, None)
    assert found.chains.tobytes() == plain.chains.tobytes()
    assert found.divergences == plain.divergences
    assert sorted(records(path, "chains of a posterior")) == ["0", "1", "2"]
    with pytest.raises(InputError, match="belongs to another problem"):
        sample_posterior(problem, vector, 30, 2, 20, seed=3, jobs=1, checkpoint=path)


@pytest.mark.slow
def test_chains_do_not_depend_on_who_makes_them() -> None:
    problem = line()
    vector = fitted(problem)
    alone = sample_posterior(problem, vector, 50, 2, 50, seed=2, jobs=1)
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as executor:
        shared = sample_posterior(problem, vector, 50, 2, 50, seed=2, executor=executor)
    assert np.array_equal(alone.chains, shared.chains)


def test_the_table_has_mean_spread_and_equal_tails_of_the_samples_of_all_chains() -> None:
    even = np.linspace(0.0, 1.0, 1001)
    chains = np.stack([even[::2], even[::-2]])[:, :500, None] * [1.0, -10.0] + [0.0, 3.0]
    found = Posterior(("a", "b"), chains, 0, Status.CONVERGED, "", 0, 0.0).table(level=0.9)
    # Both chains together are the uniform distribution from 0 to 1, and that from 3 to -7.
    assert np.asarray(found["mean"]) == pytest.approx([0.5, -2.0], abs=0.01)
    assert np.asarray(found["sd"]) == pytest.approx(np.array([1.0, 10.0]) / np.sqrt(12), rel=0.01)
    assert np.asarray(found["ci_low"]) == pytest.approx([0.05, -6.5], abs=0.03)
    assert np.asarray(found["ci_high"]) == pytest.approx([0.95, 2.5], abs=0.03)


@pytest.mark.slow
def test_a_time_limit_keeps_the_samples_so_far() -> None:
    problem = line()
    vector = fitted(problem)
    sample_posterior(problem, vector, 5, 1, 5, jobs=1)  # no time is lost to what is loaded first
    found = sample_posterior(problem, vector, 10**6, 1, 100, time_limit=1.5, jobs=1)
    assert found.status is Status.TIME_LIMIT
    assert 0 < found.chains.shape[1] < 10**6
    assert "stopped by the time limit" in found.message


@pytest.mark.parametrize("name", ["draws", "chains", "tune"])
def test_wrong_arguments_are_refused(name: str) -> None:
    options: dict[str, Any] = {name: 0}
    with pytest.raises(InputError, match=f"{name}: expected a positive whole number"):
        sample_posterior(line(), np.array([0.5, 1.0]), **options)


@pytest.mark.parametrize("values", [[0.0, 0.0, 0.0], [1.0, 2.0, 3.0], [1.0, 2.0]])
def test_without_residuals_there_is_no_noise_by_which_to_sample(values: list[float]) -> None:
    data = {"t": [0.0, 1.0, 2.0][: len(values)], "x": values}
    given: tuple[dict[str, Any], ...] = {"b": {"guess": 0.5}}, {"x": {"guess": 0.5}}
    problem = Problem(odefit.Model(ode={"x": "b"}), data, *given)
    with pytest.raises(InputError, match="leave no noise to be estimated"):
        sample_posterior(problem, fitted(problem), 10, 1, 10, seed=1, jobs=1)
    known = Problem(odefit.Model(ode={"x": "b"}), data, *given, noise={"x": {"sd": 0.1}})
    found = sample_posterior(known, fitted(known), 10, 1, 10, seed=1, jobs=1)
    assert found.chains.shape == (1, 10, 2)
