"""States and sensitivities of every library problem agree with an independent reference.

The error of a state is relative to its largest magnitude along the trajectory, that of a
sensitivity to its own largest magnitude. A component that is nothing but rounding, below 1e-9 of
the largest state (of the largest state over the unknown's size), is compared with that instead.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

from odefit import ForwardMap, Problem, library
from odefit.simulation import Trajectory
from tests.simulation.reference import Array, Reference, sizes

LIMIT = 1e-6

TIMES = 6
"""Of the data times so many are compared, the first and the last among them."""


class Worst(NamedTuple):
    """Largest relative errors over a trajectory."""

    states: float
    sensitivities: float


def relative(found: Array, expected: Array, least: Array) -> float:
    """The largest relative error, of components (..., component), times first."""
    scale = np.abs(expected).max(axis=0)
    scale = np.where(scale < 1e-9 * least, least, scale)
    error = np.abs(found - expected).max(axis=0)
    return float(np.max(error / np.where(scale > 0, scale, 1.0), initial=0.0))


def at_reference(name: str) -> tuple[Problem, Array]:
    problem, reference = library.load(name), library.reference(name)
    return problem, problem.vector({**reference.parameters, **reference.initial})


def some(times: Array) -> Array:
    rows = np.linspace(0, len(times) - 1, TIMES).round().astype(int)
    return np.asarray(times[np.unique(rows)])


def worst(
    trajectory: object, states: Array, sensitivities: Array, directions: list[int], vector: Array
) -> Worst:
    assert isinstance(trajectory, Trajectory), trajectory
    found = np.zeros((*states.shape, len(vector)))
    found[:, :, list(trajectory.unknowns)] = trajectory.sensitivities
    assert not np.delete(found, directions, axis=2).any()
    largest = np.abs(states).max()
    unit = largest / sizes(vector[directions])
    return Worst(
        relative(trajectory.states, states, np.full(states.shape[1], largest)),
        relative(
            found[:, :, directions],
            sensitivities,
            np.broadcast_to(unit, (states.shape[1], len(directions))),
        ),
    )


def errors_of(name: str) -> Worst:
    """Against DOP853 at a relative tolerance of 1e-13."""
    problem, vector = at_reference(name)
    reference = Reference(problem)
    times, every = some(reference.times), list(range(len(vector)))
    states, sensitivities = reference.solve(vector, times, every)
    trajectory = ForwardMap(problem).trajectory(vector, times=times)
    return worst(trajectory, states, sensitivities, every, vector)


def errors_of_stiff(name: str, experiment: int) -> Worst:
    """Against VODE at 1e-11."""
    problem, vector = at_reference(name)
    reference = Reference(problem, experiment)
    times = some(reference.times)
    own = problem.experiments[experiment].name
    acting = [
        k
        for k, u in enumerate(problem.unknowns)
        if u.experiment in (None, own) and u.name != "offset"
    ]
    states, sensitivities = reference.solve(vector, times, acting, stiff=True)
    trajectory = ForwardMap(problem).trajectory(vector, own, times)
    return worst(trajectory, states, sensitivities, acting, vector)


NON_STIFF = [name for name in library.names() if name not in {"hiv-proteinase", "bock"}]
SLOW = {"rikitake", "henon-heiles", "gma"} | {
    f"fitzhugh-nagumo{data}" for data in ("", "-v", "-separable")
}
"""Whose references take longest."""


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.slow if n in SLOW else ()) for n in NON_STIFF]
)
def test_a_library_problem_is_integrated_to_a_millionth(name: str) -> None:
    assert max(errors_of(name)) < LIMIT


@pytest.mark.slow
@pytest.mark.parametrize("experiment", range(5))
def test_the_stiff_library_problem_is_integrated_to_a_millionth(experiment: int) -> None:
    assert max(errors_of_stiff("hiv-proteinase", experiment)) < LIMIT


def errors_of_bock() -> Worst:
    """Against the closed form.

    x1'' = mu^2 x1 - (mu^2 + p^2) sin(p t) with x1(0) = 0, x1'(0) = v has the solution
    sin(p t) + (v - p)/mu sinh(mu t).
    """
    problem, vector = at_reference("bock")
    times = some(problem.conditions[0].times)
    mu, v, (p,) = 20.0, 3.141592653589793, vector
    sinh, cosh = np.sinh(mu * times), np.cosh(mu * times)
    states = np.column_stack(
        [np.sin(p * times) + (v - p) / mu * sinh, p * np.cos(p * times) + (v - p) * cosh]
    )
    sin, cos = np.sin(p * times), np.cos(p * times)
    by_p = np.column_stack([times * cos - sinh / mu, cos - p * times * sin - cosh])
    trajectory = ForwardMap(problem).trajectory(vector, times=times)
    return worst(trajectory, states, by_p[:, :, None], [0], vector)


def test_an_unstable_problem_is_integrated_as_well_as_its_instability_allows() -> None:
    pytest.importorskip("heyoka")
    # Any perturbation grows by exp(20), so that one rounding, 1e-16, becomes 5e-8.
    found = errors_of_bock()
    assert found.states < LIMIT
    assert found.sensitivities < LIMIT
