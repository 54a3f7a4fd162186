"""Samples of the posterior: against closed forms, limits, wrong use."""

from __future__ import annotations

import multiprocessing
import threading
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import odefit
from odefit import InputError, Problem, SingleShooting, Status
from odefit.assessment.sampling.chains import CalledOff, Chain, begun, called_off, leave
from odefit.assessment.sampling.log_posterior import LogPosterior
from odefit.assessment.sampling.posterior import (
    Posterior,
    _posterior,
    _together,
    sample_posterior,
)
from odefit.assessment.sampling.stored_density import BLOCK
from odefit.common.arrays import Array
from odefit.methods.running.control import Control
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

    def sampled(chains: int, kept: Path | None = path, draws: int = 20, seed: int = 3) -> Posterior:
        return sample_posterior(
            problem, vector, draws, chains, 20, seed=seed, jobs=1, checkpoint=kept
        )

    sampled(2)
    execute(path, "DELETE FROM records WHERE key = '0'")
    found = sampled(3)
    plain = sampled(3, None)
    assert found.chains.tobytes() == plain.chains.tobytes()
    assert found.divergences == plain.divergences
    assert sorted(records(path, "chains of a posterior")) == ["0", "1", "2"]
    longer = sampled(2, draws=30)
    assert longer.chains.tobytes() == sampled(2, None, draws=30).chains.tobytes()
    assert np.array_equal(longer.chains[:, :20], plain.chains[:2])
    with pytest.raises(InputError, match="belongs to another problem"):
        sampled(2, seed=4)


def sampled_line(draws: int, path: Path | None, jobs: int = 1) -> Posterior:
    return sample_posterior(
        line(), np.array([0.5, 1.0]), draws, 2, 60, seed=3, jobs=jobs, checkpoint=path
    )


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [1, 2])
def test_a_chain_that_was_killed_is_repeated_from_its_densities(tmp_path: Path, jobs: int) -> None:
    path = tmp_path / "chains"
    kind = "chains of a posterior: densities of chain {}"
    context = multiprocessing.get_context("spawn")
    killed = context.Process(target=sampled_line, args=(10**6, path, jobs))
    killed.start()
    while len(known := records(path, kind.format(0))) < 3:
        assert killed.is_alive()
        time.sleep(0.02)
    killed.kill()
    killed.join()
    known = records(path, kind.format(0))
    assert not records(path, "chains of a posterior")  # none is finished
    evaluated = []

    def counted(density: LogPosterior, point: Array) -> tuple[float, Array]:
        evaluated.append(point.copy())
        return plain_call(density, point)

    plain_call = LogPosterior.__call__
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LogPosterior, "__call__", counted)
        plain = sampled_line(300, None)
        all_points = len(evaluated)
        evaluated.clear()
        found = sampled_line(300, path)
    assert found.chains.tobytes() == plain.chains.tobytes()
    assert found.divergences == plain.divergences
    assert 0 < len(evaluated) <= all_points - BLOCK * min(len(known), 3)


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


def drawing(count: int, warm_up: int, samples: int) -> Posterior:
    """Return the posterior of a line that a limit has ended, with some draws of each chain."""
    problem, n = line(), 2
    made = {
        k: Chain(np.ones((samples, n)), 0, np.arange(2.0 * warm_up).reshape(-1, n))
        for k in range(count)
    }
    return _posterior(problem, made, 50, 2, Control(deadline=0.0), 0.0)


def test_a_posterior_that_is_stopped_in_the_warm_up_returns_its_draws_without_intervals() -> None:
    found = drawing(2, 7, 0)
    assert found.warm_up
    assert found.status is Status.TIME_LIMIT
    assert found.chains.shape == (2, 7, 2)
    assert "7 draws from the warm-up, which are not a sample of the posterior" in found.message
    table = found.table()
    assert table["mean"].to_list() == [6.0, 7.0]
    assert table[["sd", "ci_low", "ci_high", "ess", "r_hat"]].isna().all(axis=None)
    with pytest.raises(InputError, match="no sample of the posterior: stopped by the time limit"):
        found.sampled()


def test_a_posterior_that_is_stopped_at_once_says_that_there_is_nothing() -> None:
    found = drawing(1, 0, 0)
    assert found.chains.size == 0
    assert "nothing has been drawn yet" in found.message
    assert found.table().isna().all(axis=None)
    with pytest.raises(InputError, match="nothing has been drawn yet"):
        odefit.fit(line(), SingleShooting(), jobs=1).predict([1.0], by=found)


def test_samples_come_before_the_warm_up_of_other_chains() -> None:
    found = drawing(1, 7, 5)
    assert not found.warm_up
    assert found.sampled().shape == (5, 2)


@pytest.mark.parametrize(
    ("lengths", "kept"),
    [((50, 48, 2), (2, 48)), ((50, 3), (1, 50)), ((4, 4), (2, 4)), ((0,), (0, 0))],
)
def test_chains_of_unequal_lengths_lose_as_few_samples_as_possible(
    lengths: tuple[int, ...], kept: tuple[int, int]
) -> None:
    chains = [np.arange(2.0 * length).reshape(-1, 2) for length in lengths]
    together = _together(chains, 2)
    assert together.shape == (*kept, 2)
    if kept[0]:
        assert (together[:, -1, 1] == [2.0 * k - 1 for k in lengths if k >= kept[1]]).all()


@pytest.mark.slow
def test_a_limit_in_the_warm_up_returns_draws_at_once() -> None:
    problem = line()
    vector = fitted(problem)
    sample_posterior(problem, vector, 5, 1, 5, jobs=1)
    found = sample_posterior(problem, vector, 100, 1, 10**6, time_limit=1.5, jobs=1)
    assert found.warm_up
    assert found.chains.shape[1] > 0
    assert found.seconds < 3.5


def test_chains_in_other_processes_leave_what_they_have_when_they_are_called_off(
    tmp_path: Path,
) -> None:
    chain = Chain(np.ones((3, 2)), 1, np.zeros((4, 2)))

    def make() -> None:
        with begun(tmp_path, 7):
            stop = CalledOff(tmp_path)
            while not stop.is_set():
                time.sleep(0.01)
            leave(tmp_path, 7, chain)

    other = threading.Thread(target=make)
    other.start()
    while not list(tmp_path.iterdir()):
        time.sleep(0.01)
    left = called_off(tmp_path)
    other.join()
    assert list(left) == [7]
    assert left[7].divergences == 1
    assert np.array_equal(left[7].samples, chain.samples)
    assert np.array_equal(left[7].warm_up, chain.warm_up)
    assert called_off(tmp_path) == {}  # none is running
