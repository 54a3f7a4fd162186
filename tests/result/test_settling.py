"""The measurement that tells solutions apart, on absorption and elimination that are exchanged."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import odefit
from odefit import InputError
from odefit.result.settling import settling_of

TIMES = [0.5, 1.0, 2.0, 4.0, 8.0, 12.0]


def flip_flop() -> odefit.Result:
    """A fit of blood alone, with the solution in which absorption is the slower process."""
    problem = odefit.Problem(
        odefit.Model(ode={"g": "-ka*g", "c": "ka*g/V - ke*c"}, observables={"y": "c"}),
        data={"t": TIMES, "y": [1.5, 2.2, 2.4, 1.9, 0.9, 0.4]},
        parameters={"ka": (0.01, 10), "ke": (0.01, 10), "V": (0.1, 100)},
        initial={"g": 10.0, "c": 0.0},
        noise={"y": {"sd": 0.05}},
        t0=0.0,
    )
    start = {"ka": 1.0, "ke": 0.2, "V": 2.5}
    result = odefit.fit(problem, odefit.SingleShooting(), start=start, seed=1, jobs=1)
    ka, ke, v = (result.best.parameters[k] for k in ("ka", "ke", "V"))
    mirrored = {"ka": ke, "ke": ka, "V": v * ke / ka}
    other = replace(
        result.best,
        vector=np.array([mirrored[k] for k in result.problem.keys]),
        parameters=mirrored,
    )
    return replace(result, solutions=[result.best, other])


def test_a_measurement_outside_the_blood_distinguishes_the_two_solutions() -> None:
    result = flip_flop()
    found = result.settle()
    assert found.observable == "g"
    assert found.assumed
    rates = [s.parameters["ka"] for s in result.solutions]
    closed = [10 * np.exp(-k * found.time) for k in rates]
    assert found.predictions == pytest.approx(closed, rel=1e-6)
    assert found.distance > 3
    assert str(found).startswith("Measuring g at ")
    assert "distinguishes the 2 solutions: they predict" in str(found)


def test_the_blood_does_not_distinguish_the_solutions() -> None:
    result = flip_flop()
    try:
        distance = result.settle("y").distance
    except InputError:
        distance = 0.0
    assert distance < 1e-3


def test_a_single_solution_needs_no_settling() -> None:
    result = flip_flop()
    with pytest.raises(InputError, match="only one solution fits"):
        replace(result, solutions=result.solutions[:1]).settle()


def test_subjects_whose_solutions_agree_distinguish_nothing() -> None:
    data = [odefit.Experiment(n, {"t": TIMES, "y": [1.5, 2.2, 2.4, 1.9, 0.9, 0.4]}) for n in "ab"]
    rate = odefit.Parameter(lower=0.01, upper=10.0, per_experiment=True)
    problem = odefit.Problem(
        odefit.Model(ode={"g": "-ka*g", "c": "ka*g/V - ke*c"}, observables={"y": "c"}),
        experiments=[odefit.Experiment(e.name, e.data, t0=0.0) for e in data],
        parameters={"ka": rate, "ke": rate, "V": (0.1, 100)},
        initial={"g": 10.0, "c": 0.0},
        noise={"y": {"sd": 0.05}},
    )
    first = {"ka[a]": 0.5, "ke[a]": 0.2, "ka[b]": 1.0, "ke[b]": 0.2, "V": 2.5}
    vectors = [problem.vector(v) for v in (first, {**first, "ka[b]": 0.2, "ke[b]": 1.0})]
    found = settling_of(problem, vectors, 1.0, likelihood=True)
    assert found.experiment == "b"
    same = [vectors[0], vectors[0]]
    with pytest.raises(InputError, match="predict the same"):
        settling_of(problem, same, 1.0, likelihood=True)
