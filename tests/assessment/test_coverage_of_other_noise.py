"""Data simulated under each noise model: linear intervals at 95 % cover the truth in about 95 %."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import odefit
from odefit.assessment.intervals.uncertainty import assess_uncertainty
from odefit.methods.running.control import Control
from odefit.methods.single_shooting import SingleShooting
from odefit.simulation import Failure, ForwardMap
from odefit.simulation.simulated_data import with_simulated_data

SETS = 200
VALUES, FEW_VALUES = 40, 12

NOISE: dict[str, dict[str, Any]] = {
    "huber": {"sd": 0.1, "loss": "huber"},
    "huber, estimated": {"sd": "estimate", "loss": "huber"},
    "student": {"sd": 0.1, "loss": "student"},
    "student, estimated": {"sd": "estimate", "loss": "student"},
    "laplace": {"sd": 0.1, "distribution": "laplace"},
    "laplace, estimated": {"sd": "estimate", "distribution": "laplace"},
    "log-normal": {"sd": 0.1, "distribution": "log-normal"},
    "censored": {"sd": 0.1, "lower_limit": 0.5},
    "censored, estimated": {"sd": "estimate", "lower_limit": 0.5},
    "poisson": {"distribution": "poisson"},
    "negative binomial": {"distribution": "negative-binomial", "dispersion": 0.2},
    "negative binomial, estimated": {"distribution": "negative-binomial", "dispersion": "estimate"},
}


def covered(name: str, sets: int = SETS, values: int = VALUES) -> dict[str, float]:
    """Return the share of data sets whose intervals hold the truth, by unknown."""
    counts = "distribution" in NOISE[name] and NOISE[name]["distribution"] in (
        "poisson",
        "negative-binomial",
    )
    times = np.linspace(0.0, 3.0, values)
    problem = odefit.Problem(
        odefit.Model(ode={"x": "-k*x"}, observables={"y": "scale*x"}),
        data={"t": times, "y": np.ones(len(times))},
        parameters={"k": {"lower": 0}, "scale": {"lower": 0}},
        initial={"x": 20.0 if counts else 1.0},
        noise={"y": NOISE[name] | ({"lower_limit": None} if "censored" in name else {})},
    )
    full = dict(problem.noise)
    if "censored" in name:
        full["y"] = odefit.Noise(sd=problem.noise["y"].sd, lower_limit=0.5)
    problem.noise = full
    truth = {"k": 0.7, "scale": 2.0, "y_sd": 0.1, "y_dispersion": 0.2}
    vector = np.array([truth[key] for key in problem.keys])
    forward = ForwardMap(problem)
    trajectories = forward.trajectories(vector)
    assert not isinstance(trajectories, Failure)
    random = np.random.default_rng(7)
    search, control = SingleShooting(evaluations=100, tolerance=1e-10), Control(0)
    hits = np.zeros(len(vector))
    for _ in range(sets):
        simulated = with_simulated_data(
            forward, vector, trajectories, lambda _, n: random.standard_normal(n), 1.0, random
        )
        assert not isinstance(simulated, Failure)
        own = ForwardMap(simulated)
        end = search.run(own, 0, vector, control)
        evaluation = own.evaluate(end.vector)
        assert not isinstance(evaluation, Failure)
        intervals = assess_uncertainty(own, end.vector, evaluation).intervals
        hits += (intervals[:, 0] <= vector) & (vector <= intervals[:, 1])
    return dict(zip(problem.keys, (hits / sets).tolist(), strict=True))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "values"),
    [(name, VALUES) for name in NOISE]
    + [(n, FEW_VALUES) for n in NOISE if "estimated" in n and "censored" not in n],
)
def test_intervals_cover_the_truth(name: str, values: int) -> None:
    """Of 200 sets, 95 % give or take three standard deviations of the count, 4.6 %."""
    shares = covered(name, values=values)
    for key in ("k", "scale"):
        assert 0.904 <= shares[key] <= 0.996, shares
    for key in shares.keys() - {"k", "scale"}:  # four standard deviations
        assert 0.888 <= shares[key] <= 1, shares
