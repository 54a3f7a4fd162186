"""A decay with all kinds of noise and priors, with bounds of every unknown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from odefit import Model, Problem
from odefit.methods.bounded_problem import finite_bounds, with_bounds
from odefit.simulation import Evaluation, ForwardMap
from odefit.simulation.engines.engine_choice import UNDECIDED

TIMES = np.linspace(0.5, 6.0, 12)
MEAN = 20 * np.exp(-0.6 * TIMES)
_RANDOM = np.random.default_rng(0)
POISSON = _RANDOM.poisson(MEAN).astype(float)
COUNTS = _RANDOM.negative_binomial(5, 5 / (5 + MEAN)).astype(float)
VALUES = np.abs(MEAN + _RANDOM.normal(0, 0.5, len(TIMES)))
TOLERANCE = 2e-6  # of an integration
LEAST = 1e-2  # of the unknowns that are drawn
A, B = {"lower": 0.05, "upper": 5.0}, {"lower": 0.0, "upper": 0.5}

NOISE: Mapping[str, tuple[dict[str, Any], Any, dict[str, Any]]] = {
    "Poisson": ({"distribution": "poisson"}, POISSON, {}),
    "negative binomial": ({"distribution": "negative-binomial", "dispersion": 0.2}, COUNTS, {}),
    "estimated dispersion": (
        {"distribution": "negative-binomial", "dispersion": "estimate"},
        COUNTS,
        {"y_dispersion": (0.01, 3.0)},
    ),
    "Student": ({"sd": 0.5, "loss": "student"}, VALUES, {}),
    "Huber": ({"sd": 0.5, "loss": "huber"}, VALUES, {}),
    "Laplace": ({"sd": 0.5, "distribution": "laplace"}, VALUES, {}),
    "estimated": ({"sd": "estimate"}, VALUES, {"y_sd": (0.05, 5.0)}),
    "estimated with a loss": ({"sd": "estimate", "loss": "student"}, VALUES, {"y_sd": (0.05, 5.0)}),
    "combined": ({"sd": "a + b*y"}, VALUES, {"a": A, "b": B}),
    "combined squares": ({"sd": "sqrt(a^2 + (b*y)^2)"}, VALUES, {"a": A, "b": B}),
    "relative": ({"sd": "b*y"}, VALUES, {"b": {"lower": 0.01, "upper": 0.5}}),
    "relative to the data": ({"relative": 0.1}, VALUES, {}),
    "log-normal": ({"distribution": "log-normal", "sd": "estimate"}, VALUES, {"y_sd": (0.05, 5.0)}),
    "decadic": ({"transform": "log10", "sd": 0.1}, VALUES, {}),
    "censored": ({"sd": 0.5, "lower_limit": 2.0}, np.maximum(VALUES, 2.0), {}),
    "censored, estimated": (
        {"sd": "estimate", "lower_limit": 2.0},
        np.maximum(VALUES, 2.0),
        {"y_sd": (0.05, 5.0)},
    ),
}
"""Noise, data, and further unknowns or bounds of those of the noise."""

PRIORS: Mapping[str, dict[str, Any]] = {
    "normal": {"mean": 0.5, "sd": 0.1},
    "decadic": {"mean": -0.3, "sd": 0.1, "on": "log10"},
    "logarithmic": {"mean": -0.7, "sd": 0.1, "on": "log"},
    "log-normal": {"distribution": "log-normal", "mean": -0.5, "sd": 0.2},
    "gamma": {"distribution": "gamma", "shape": 3.0, "scale": 0.2},
    "chi-square": {"distribution": "chi-square", "degrees": 4.0},
    "exponential": {"distribution": "exponential", "scale": 0.3},
    "Cauchy": {"distribution": "cauchy", "location": 0.5, "scale": 0.1},
    "Laplace": {"distribution": "laplace", "location": 0.5, "scale": 0.1},
    "Rayleigh": {"distribution": "rayleigh", "scale": 0.5},
    "uniform": {"distribution": "uniform", "lower": 0.05, "upper": 3.0},
    "log-uniform": {"distribution": "log-uniform", "lower": 0.05, "upper": 3.0},
}


def decay(noise: dict[str, Any], data: Any, more: dict[str, Any], **rate: Any) -> Problem:
    """Return the decay with a noise and its bounds; `rate` are further fields of the rate."""
    unknowns = {k: v for k, v in more.items() if isinstance(v, dict)}
    problem = Problem(
        Model(ode={"x": "-k*x"}, observables={"y": "x"}),
        {"t": TIMES, "y": data},
        {"k": {"lower": 0.1, "upper": 2.0, **rate}, **unknowns},
        {"x": {"lower": 2.0, "upper": 40.0}},
        noise={"y": noise},
    )
    given = {k: v for k, v in more.items() if k not in unknowns}
    return with_bounds(problem, finite_bounds(problem, given))


def noisy(name: str) -> Problem:
    """Return the decay with one of the kinds of noise."""
    return decay(*NOISE[name])


def with_prior(name: str) -> Problem:
    """Return the decay with one of the priors of its rate."""
    return decay({"sd": 0.5}, VALUES, {}, prior=PRIORS[name])


def built(name: str) -> Problem:
    """Return the problem with a kind of noise, or with a kind of prior, as ``gamma prior``."""
    return noisy(name) if name in NOISE else with_prior(name.removesuffix(" prior"))


def drawn(problem: Problem, random: np.random.Generator) -> np.ndarray:
    """Return a vector of unknowns within the bounds, from 0.01 on, by their logarithms."""
    lower = np.maximum(problem.lower, LEAST)
    return np.exp(random.uniform(np.log(lower), np.log(problem.upper)))


def box_about(problem: Problem, vector: np.ndarray, width: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the corners of a box of a relative width about a vector, within these bounds."""
    lower = np.maximum(problem.lower, LEAST)
    return np.maximum(lower, vector * (1 - width)), np.minimum(problem.upper, vector * (1 + width))


def twice_the_cost(forward: ForwardMap, vector: np.ndarray) -> float:
    """Return the objective of a fit at a vector, with the constants of priors."""
    evaluation = forward.evaluate(vector, UNDECIDED)
    assert isinstance(evaluation, Evaluation)
    return 2 * evaluation.cost
