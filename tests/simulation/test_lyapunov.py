"""Lyapunov exponents against published values, exact ones, and another integrator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from odefit import Event, Experiment, Failure, ForwardMap, InputError, Model, Problem
from odefit.simulation.lyapunov import LyapunovSpectrum, lyapunov_exponents
from tests.simulation.numerics import Array, integrated
from tests.simulation.zoo import ZOO

LORENZ = {"x": "10*(y - x)", "y": "x*(28 - z) - y", "z": "x*y - b*z"}


def problem_of(ode: Mapping[str, str], initial: Mapping[str, float], **parameters: Any) -> Problem:
    data = {"t": [0.0, 1.0], next(iter(ode)): [1.0, 1.0]}
    return Problem(Model(ode=ode), data, parameters, {name: {} for name in initial})


def spectrum(*arguments: Any, **options: Any) -> LyapunovSpectrum:
    found = lyapunov_exponents(*arguments, **options)
    assert isinstance(found, LyapunovSpectrum), found
    return found


@pytest.mark.slow
def test_the_lorenz_attractor_has_the_published_exponents() -> None:
    """0.9056, 0 and -14.5723 (Sprott 2003), the sum -41/3 exactly."""
    start = {"x": 1.0, "y": 1.0, "z": 20.0}
    problem = problem_of(LORENZ, start, b={})
    found = spectrum(problem, {"b": 8 / 3, **start}, 60.0, tolerance=1e-3)
    published = np.array([0.9056, 0.0, -14.5723])
    assert (np.abs(found.exponents - published) < 3 * found.errors + 0.01).all()
    assert (found.errors < 0.3).all()  # which way a chaotic trajectory takes, rounding decides
    assert found.exponents.sum() == pytest.approx(-41 / 3, abs=5e-3)
    assert found.duration == 60.0


def by_the_taylor_method(problem: Problem, vector: Array, start: float, end: float) -> Array:
    """Growth rates between two times, by heyoka's variational equations and QR decompositions."""
    forward = ForwardMap(problem, "heyoka")
    n = len(problem.model.states)
    Q, logarithms = np.eye(n), np.zeros(n)
    step = 0.25
    for k in range(round(end / step)):
        found = integrated(forward, vector, np.array([0.0, step]))
        vector = np.concatenate([vector[:-n], found.states[-1]])
        Q, R = np.linalg.qr(found.sensitivities[-1][:, -n:] @ Q)
        if k * step >= start:
            logarithms += np.log(np.abs(np.diagonal(R)))
    return np.sort(logarithms / (end - start))[::-1]


@pytest.mark.slow
def test_growth_over_a_finite_time_is_that_of_the_variational_equations() -> None:
    """Roessler's equations, before chaos makes another trajectory of rounding errors."""
    ode = {"x": "-y - z", "y": "x + a*y", "z": "0.2 + z*(x - 5.7)"}
    start = {"x": 1.0, "y": -2.0, "z": 0.1}
    problem = problem_of(ode, start, a={})
    vector = problem.vector({"a": 0.2, **start})
    expected = by_the_taylor_method(problem, vector, 5.0, 30.0)
    found = spectrum(problem, vector, 25.0, transient=5.0, tolerance=1e-5)
    assert found.exponents == pytest.approx(expected, abs=2e-3)


def test_the_exponents_of_a_hamiltonian_system_sum_to_zero() -> None:
    ode = {"x": "p", "y": "q", "p": "-x - 2*x*y", "q": "-y - x^2 + y^2"}
    start = {"x": 0.0, "y": -0.15, "p": 0.48, "q": 0.2}
    found = spectrum(problem_of(ode, start), start, 50.0)
    assert found.exponents.sum() == pytest.approx(0.0, abs=1e-4)
    # They come in pairs.
    assert found.exponents == pytest.approx(-found.exponents[::-1], abs=0.02)


def test_a_linear_system_has_the_real_parts_of_its_eigenvalues() -> None:
    """A stable spiral of rate 0.3 and a decay of rate 2, mixed."""
    ode = {"x": "-0.3*x + 4*y + z", "y": "-4*x - 0.3*y", "z": "-2*z"}
    start = {"x": 1.0, "y": 0.0, "z": 1.0}
    # 5 pi / 2 is a whole number of turns: the spiral's stretching cancels.
    found = spectrum(problem_of(ode, start), start, 10 * np.pi, transient=5 * np.pi)
    assert found.exponents == pytest.approx([-0.3, -0.3, -2.0], abs=1e-6)


def test_only_the_largest_may_be_asked_for() -> None:
    ode = {"x": "-x + 0.5*y", "y": "-3*y"}
    start = {"x": 1.0, "y": 1.0}
    found = spectrum(problem_of(ode, start), start, 20.0, count=1)
    assert found.exponents == pytest.approx([-1.0], abs=1e-6)
    assert found.errors.shape == (1,)


def test_a_trajectory_that_ends_is_a_failure() -> None:
    found = lyapunov_exponents(problem_of({"x": "x^2"}, {"x": 1.0}), {"x": 1.0}, 10.0)
    assert isinstance(found, Failure)
    assert found.time == pytest.approx(1.0, rel=1e-2)
    short = lyapunov_exponents(problem_of({"x": "x"}, {"x": 1.0}), {"x": 1.0}, 10.0, max_steps=3)
    assert isinstance(short, Failure)
    assert "steps" in short.reason


def test_problems_without_a_field_for_all_times_are_refused() -> None:
    for name, word in (("an input and the time", "inputs"), ("doses and switches", "events")):
        problem, vector = ZOO[name]()
        with pytest.raises(InputError, match=word):
            lyapunov_exponents(problem, vector, 10.0)
    problem, vector = ZOO["nonlinear algebra"]()
    with pytest.raises(InputError, match="algebraic"):
        lyapunov_exponents(problem, vector, 10.0)


def test_an_experiment_without_events_is_not_refused_for_those_of_another() -> None:
    data = {"t": [0.0, 1.0], "x": [1.0, 0.5]}
    problem = Problem(
        Model(ode={"x": "-k*x"}),
        parameters={"k": {}},
        initial={"x": 1.0},
        experiments=[
            Experiment("dosed", data, events=[Event((0.5,), {"x": "2"})]),
            Experiment("free", data),
        ],
    )
    found = spectrum(problem, {"k": 0.7}, 5.0, experiment="free")
    assert found.exponents == pytest.approx([-0.7], rel=1e-9)


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"duration": 0.0}, "duration"),
        ({"duration": np.inf}, "duration"),
        ({"duration": 1.0, "transient": -1.0}, "transient"),
        ({"duration": 1.0, "count": 0}, "count"),
        ({"duration": 1.0, "count": 2}, "count"),
        ({"duration": 1.0, "experiment": "no"}, "unknown experiment"),
    ],
)
def test_arguments_without_sense_are_refused(options: dict[str, Any], word: str) -> None:
    with pytest.raises(InputError, match=word):
        lyapunov_exponents(problem_of({"x": "-x"}, {"x": 1.0}), {"x": 1.0}, **options)
