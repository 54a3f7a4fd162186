"""The density of the posterior, its gradient and its priors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from odefit import ForwardMap, Model, Problem
from odefit.assessment.sampling.log_posterior import LogPosterior
from odefit.common.arrays import Array
from odefit.simulation import Evaluation
from tests.assessment.lines import least_squares, line
from tests.simulation.test_adjoint_gradient import stiff_chain

NOISES: list[dict[str, Any]] = [{}, {"x": {"sd": 0.3}}, {"x": {"sd": "estimate"}}]


def check_gradient(forward: ForwardMap, vector: Array) -> None:
    """Compare the gradient of the density around a vector with central differences."""
    evaluation = forward.evaluate(vector)
    assert isinstance(evaluation, Evaluation)
    density = LogPosterior(forward, vector, evaluation)
    at = np.array([0.3, -0.8, 0.5])[: len(vector)]
    _, gradient = density(at)
    for i, step in enumerate(1e-4 * np.eye(len(at))):
        difference = (density(at + step)[0] - density(at - step)[0]) / 2e-4
        assert gradient[i] == pytest.approx(difference, rel=1e-4, abs=1e-5)


@pytest.mark.parametrize("noise", NOISES)
def test_the_gradient_is_that_of_the_density(noise: dict[str, Any]) -> None:
    problem = line(noise=noise)
    forward, estimate = ForwardMap(problem), least_squares(problem)[0]
    vector = np.array([*estimate, 0.3])[: len(problem.unknowns)]
    check_gradient(forward, vector)


FAMILIES: list[dict[str, Any]] = [
    {"mean": 0.5, "sd": 0.3},
    {"distribution": "laplace", "location": -0.4, "scale": 0.2, "on": "log10"},
    {"distribution": "log-normal", "mean": -0.5, "sd": 0.4},
    {"distribution": "gamma", "shape": 2.0, "scale": 0.3},
    {"distribution": "uniform", "lower": -1.0, "upper": 0.5, "on": "log10"},
]


@pytest.mark.parametrize("scale", ["linear", "log10"])
@pytest.mark.parametrize("noise", NOISES[:2])
@pytest.mark.parametrize("prior", FAMILIES)
def test_a_prior_is_its_density_whatever_the_coordinate(
    prior: dict[str, Any], noise: dict[str, Any], scale: str
) -> None:
    def density_of(prior: Any) -> tuple[LogPosterior, Problem]:
        problem = line(noise=noise).with_parameters(
            b={"lower": 1e-3, "upper": 9.0, "scale": scale, "prior": prior}
        )
        forward, vector = ForwardMap(problem), np.array([0.45, 1.0])
        evaluation = forward.evaluate(vector)
        assert isinstance(evaluation, Evaluation)
        return LogPosterior(forward, vector, evaluation), problem

    (own, problem), (bare, _) = density_of(prior), density_of(None)
    given = problem.unknowns[0].parameter.prior
    assert given is not None
    differences = []
    for value in (0.3, 0.4, 0.9):
        vector = np.array([value, 1.1])

        def at(density: LogPosterior, vector: Array = vector) -> float:
            coordinates = density.coordinates.inside(vector) - density.centre
            found = density(np.linalg.solve(density.whitening, coordinates))[0]
            jacobian = density.coordinates.derivative(density.coordinates.inside(vector))[0]
            return found - float(np.log(jacobian))  # the density of the unknown itself

        # Flat in the unknown or its logarithm without a prior; then the density of the prior.
        without = at(bare) + (np.log(value) if scale == "log10" else 0.0)
        on_scale = given.log_density(value) - (np.log(value) if given.on != "linear" else 0.0)
        differences.append(at(own) - without - on_scale)
    if prior.get("distribution") is None and not noise:
        return  # it acts as a measurement, with the same unknown variance
    assert differences == pytest.approx([differences[0]] * 3, abs=1e-3)


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("prior", FAMILIES)
def test_the_gradient_with_a_prior_is_that_of_the_density(
    noise: dict[str, Any], prior: dict[str, Any]
) -> None:
    problem = line(noise=noise).with_parameters(b={"lower": 1e-3, "upper": 9.0, "prior": prior})
    forward, vector = ForwardMap(problem), np.array([0.45, 1.0, 0.3])[: len(problem.unknowns)]
    check_gradient(forward, vector)


def test_the_density_is_zero_if_the_model_cannot_be_integrated() -> None:
    problem = Problem(
        Model(ode={"x": "k*x^2"}),
        {"t": [0.1, 0.2, 0.3], "x": [1.1, 1.2, 1.4]},
        {"k": {"lower": 0.0, "upper": 100.0, "guess": 1.0}},
        {"x": 1.0},
    )
    forward, vector = ForwardMap(problem), np.array([1.0])
    evaluation = forward.evaluate(vector)
    assert isinstance(evaluation, Evaluation)
    value, gradient = LogPosterior(forward, vector, evaluation)(np.array([1e4]))
    assert value == -np.inf
    assert not gradient.any()


@pytest.mark.slow
@pytest.mark.parametrize("noise", [{}, {"x11": {"sd": 0.3}, "x0": {"sd": 0.2}}])
def test_the_gradient_of_a_stiff_problem_with_many_unknowns_is_that_of_the_density(
    noise: dict[str, Any],
) -> None:
    problem, vector = stiff_chain(12, noise)
    forward = ForwardMap(problem, "bdf")
    evaluation = forward.evaluate(vector)
    assert isinstance(evaluation, Evaluation)
    density = LogPosterior(forward, vector, evaluation)
    at = np.linspace(-0.5, 0.5, len(vector))
    _, gradient = density(at)
    for i, step in enumerate(1e-3 * np.eye(len(at))):
        difference = (density(at + step)[0] - density(at - step)[0]) / 2e-3
        assert gradient[i] == pytest.approx(difference, rel=1e-3, abs=1e-4)


def test_the_centre_is_the_largest_density_although_the_estimate_is_at_a_bound() -> None:
    """Its precision there would vanish, and the coordinates would be useless for a sampler."""
    problem = line(noise={"x": {"sd": 0.3}}).with_parameters(b={"lower": 0.55, "upper": 9.0})
    forward, vector = ForwardMap(problem), np.array([0.55, 0.9])
    evaluation = forward.evaluate(vector)
    assert isinstance(evaluation, Evaluation)
    density = LogPosterior(forward, vector, evaluation)
    value, slope = density(np.zeros(2))
    assert np.linalg.norm(slope) < 0.1
    for point in np.random.default_rng(1).standard_normal((20, 2)):
        assert density(point)[0] < value
