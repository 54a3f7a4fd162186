"""Experiments with unknowns of their own are fitted apart; those that share one are not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import odefit
from odefit import Automatic, Control, Experiment, Model, Problem, SingleShooting
from odefit.methods.automatic.by_experiment.parts_apart import fitted_apart, parts_of
from odefit.simulation import ForwardMap

TIMES = np.linspace(0.3, 9.0, 15)


def oscillators(count: int, **changes: Any) -> Problem:
    """Each has a frequency, a damping and an amplitude of its own."""
    random = np.random.default_rng(0)
    runs = []
    for i in range(count):
        w, d, a = random.uniform(0.8, 4), random.uniform(0.02, 0.15), random.uniform(1, 3)
        values = a * np.exp(-d * TIMES) * np.cos(np.sqrt(w * w - d * d) * TIMES)
        values += 0.03 * random.normal(size=len(TIMES))
        runs.append(Experiment(f"run {i}", {"t": TIMES, "y": values}, t0=0.0))

    def own(low: float, high: float) -> dict[str, Any]:
        return {"lower": low, "upper": high, "per_experiment": True}

    given: dict[str, Any] = {
        "experiments": runs,
        "parameters": {"w": own(0.3, 6), "d": own(0.0, 1.0)},
        "initial": {"x": own(0.1, 6), "v": 0.0},
    }
    model = Model(ode={"x": "v", "v": "-w^2*x - 2*d*v"}, observables={"y": "x"})
    return Problem(model, **(given | changes))


def test_the_parts_have_the_unknowns_of_their_experiment() -> None:
    problem = oscillators(3)
    parts = parts_of(problem)
    assert [e.name for p in parts for e in p.problem.experiments] == ["run 0", "run 1", "run 2"]
    named = [[problem.keys[i] for i in p.places] for p in parts]
    assert named[1] == ["w[run 1]", "d[run 1]", "x[run 1]"]


def test_an_unknown_that_acts_on_all_experiments_keeps_them_together() -> None:
    own = {"lower": 0.3, "upper": 6, "per_experiment": True}
    shared = {"w": own, "d": {"lower": 0.0, "upper": 1.0}}
    assert parts_of(oscillators(3, parameters=shared)) == []


def test_one_standard_deviation_of_all_values_is_left_to_the_end() -> None:
    parts = parts_of(oscillators(3, noise={"y": {"sd": "estimate"}}))
    assert [p.problem.keys for p in parts] == [("w", "d", "x")] * 3
    assert all(p.shared == {9} and len(p.unshared) == 3 for p in parts)
    assert all(p.problem.noise["y"].sd is None for p in parts)


def proportional(count: int, prior: Any = None) -> Problem:
    """Each has a rate of its own, and the noise of all has two parameters."""
    random = np.random.default_rng(4)
    times = np.linspace(0.5, 5.0, 12)
    runs = []
    for i in range(count):
        values = np.exp(-(0.3 + 0.2 * i) * times) * (1 + 0.1 * random.normal(size=12))
        runs.append(Experiment(f"run {i}", {"t": times, "y": values}, t0=0.0))
    rate = {"lower": 0.01, "upper": 5.0, "per_experiment": True}
    noise = {"lower": 1e-4, "upper": 1.0, "scale": "log10"}
    return Problem(
        Model(ode={"x": "-k*x"}, observables={"y": "x"}),
        experiments=runs,
        parameters={"k": rate, "a": noise, "b": noise | ({"prior": prior} if prior else {})},
        initial={"x": 1.0},
        noise={"y": {"sd": "a + b*y"}},
    )


def test_noise_that_affects_the_optimum_is_first_fitted_per_part() -> None:
    parts = parts_of(proportional(3))
    assert [set(p.problem.keys) for p in parts] == [{"k", "a", "b"}] * 3
    assert all(len(p.shared) == 2 and len(p.unshared) == 1 for p in parts)


def test_parts_whose_noise_has_a_prior_are_not_fitted_apart() -> None:
    prior = {"distribution": "normal", "mean": 0.1, "sd": 0.02}
    assert parts_of(proportional(3, prior)) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "problem", [oscillators(3, noise={"y": {"sd": "estimate"}}), proportional(3)]
)
def test_parts_that_the_noise_joins_end_at_the_optimum_of_all(problem: Problem) -> None:
    found = fitted_apart(problem, Automatic().solve, Control(seed=1, jobs=1))
    assert found is not None
    assert found.best is not None
    assert found.status is odefit.Status.CONVERGED
    assert "but for the noise (" in found.message
    # A search for all at once from the truth knows nothing of parts.
    at_truth = found.best.vector * np.random.default_rng(1).uniform(0.97, 1.03, len(problem.keys))
    together = SingleShooting().run(ForwardMap(problem), 0, at_truth, Control(jobs=1))
    assert found.best.cost == pytest.approx(together.cost, abs=1e-6)
    assert found.best.vector == pytest.approx(together.vector, rel=1e-3, abs=1e-4)


def test_a_shared_unknown_joins_the_experiments_on_which_it_acts() -> None:
    model = Model(ode={"x": "-k*x"}, observables={"a": "x", "b": "s*x"})
    runs = [Experiment(f"run {i}", {"t": [0.0, 1.0, 2.0], n: [1.0, 0.6, 0.4]}) for i, n in
            enumerate("abba")]  # fmt: skip
    parameters: dict[str, Any] = {
        "k": {"lower": 0.0, "upper": 5.0, "per_experiment": True},
        "s": {"lower": 0.1, "upper": 5.0},
    }
    problem = Problem(model, experiments=runs, parameters=parameters, initial={"x": 1.0})
    parts = parts_of(problem)
    groups = [[e.name for e in p.problem.experiments] for p in parts]
    assert groups == [["run 0"], ["run 1", "run 2"], ["run 3"]]
    assert [len(p.problem.unknowns) for p in parts] == [1, 3, 1]


def test_parts_make_the_optimum_of_all_with_the_starts_of_each() -> None:
    problem = oscillators(3)
    found = fitted_apart(problem, Automatic().solve, Control(seed=1, jobs=1))
    assert found is not None
    assert found.status is odefit.Status.CONVERGED
    assert found.sufficient
    best = found.best
    assert best is not None
    squares = [
        min(s.objective for s in Automatic().solve(p.problem, Control(seed=1, jobs=1)).starts)
        for p in parts_of(problem)
    ]
    assert best.objective == pytest.approx(sum(squares), rel=1e-6)
    assert best.cost == pytest.approx(0.5 * best.objective)
    assert "fall into 3 groups with unknowns of their own" in found.message


@pytest.mark.slow
def test_a_fit_of_many_subjects_costs_as_much_as_the_fits_of_each() -> None:
    """Together 24 took 47 starts, 27 of them elsewhere, and twenty times as long."""
    result = odefit.fit(oscillators(24), seed=1, jobs=1)
    assert result.status is odefit.Status.CONVERGED
    assert result.objective == pytest.approx(0.51486, rel=1e-4)
    assert "24 groups" in result.message
