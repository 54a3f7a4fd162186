"""A chain of two reactions, observed in all the ways in which unknowns can be eliminated."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from odefit import Experiment, ForwardMap, Model, Problem
from odefit.common.arrays import Array
from odefit.methods.local.variable_projection import Projection, VariableProjection
from odefit.simulation.engines.registry import EngineName

TIMES = np.linspace(0.2, 3.0, 12)
RATES = {
    "k": {"guess": 0.7, "lower": 0.05, "upper": 20.0},
    "m": {"guess": 0.9, "lower": 0.05, "upper": 20.0},
}


def chain(times: Array, k: float = 1.0, m: float = 0.5) -> tuple[Array, Array]:
    """The exact solution of a -> b -> with the rates k and m, from a = 1, b = 0."""
    a = np.exp(-k * times)
    return a, k / (m - k) * (a - np.exp(-m * times))


def noisy(values: Array, seed: int, sd: float = 0.05) -> Array:
    return np.asarray(values + sd * np.random.default_rng(seed).normal(size=len(values)))


def factors(values: Array, seed: int) -> Array:
    return np.asarray(values * np.exp(0.1 * np.random.default_rng(seed).normal(size=len(values))))


def problem_of(
    observables: dict[str, str],
    data: dict[str, Any],
    parameters: dict[str, Any],
    noise: dict[str, Any] | None = None,
    constants: dict[str, dict[str, Any]] | None = None,
) -> Problem:
    """The chain, observed in some way, in one experiment or in several."""
    several = data if all(isinstance(d, dict) for d in data.values()) else {"only": data}
    return Problem(
        Model(ode={"a": "-k*a", "b": "k*a - m*b"}, observables=observables),
        parameters={**RATES, **parameters},
        initial={"a": 1.0, "b": 0.0},
        noise=noise,
        experiments=[
            Experiment(n, {"t": TIMES, **d}, constants=(constants or {}).get(n, {}), t0=0.0)
            for n, d in several.items()
        ],
    )


A, B = chain(TIMES)


def scale_and_offset() -> Problem:
    data = {"y": noisy(3 * A + 2, 1), "z": noisy(5 * B, 2)}
    return problem_of({"y": "s*a + c", "z": "d*b"}, data, {"s": {}, "c": {}, "d": {}})


def experiments_of_their_own() -> Problem:
    data = {"one": {"y": noisy(3 * B + 1, 1)}, "two": {"y": noisy(7 * B + 2, 2)}}
    return problem_of(
        {"y": "s*b + c + e*a"},
        data,
        {"c": {"per_experiment": True}, "f": {}, "g": {}, "e": {}},
        constants={"one": {"s": "f"}, "two": {"s": "2*g"}},
    )


def priors() -> Problem:
    data = {"y": noisy(3 * B + 2, 1), "z": noisy(A, 2)}
    prior = {"prior": {"mean": 2.5, "sd": 0.1}}
    noise = {"y": {"sd": 0.05}, "z": {"sd": "estimate"}}
    return problem_of({"y": "s*b + c", "z": "a"}, data, {"s": prior, "c": {}}, noise)


def a_prior_beside_an_unknown_deviation() -> Problem:
    prior = {"prior": {"mean": 2.5, "sd": 0.1}}
    return problem_of({"y": "s*b"}, {"y": noisy(3 * B, 1)}, {"s": prior}, {"y": {"sd": "estimate"}})


def at_bounds() -> Problem:
    data = {"y": noisy(3 * A + 2, 1), "z": noisy(5 * B, 2)}
    limited = {"s": {"upper": 2.8}, "c": {"lower": 0.0}, "d": {"lower": 0.0, "upper": 4.0}}
    sigma = {"sigma": {"lower": 0.1}}
    return problem_of(
        {"y": "s*a + c", "z": "d*b"},
        data,
        {**limited, **sigma},
        {"y": {"sd": 0.05}, "z": {"sd": "sigma"}},
    )


def logarithms() -> Problem:
    data = {"y": factors(3 * B, 1), "z": factors(0.2 * A / 3, 2)}
    return problem_of(
        {"y": "s*b", "z": "r*a/s"},
        data,
        {"s": {"lower": 0.0}, "r": {"lower": 1e-8, "upper": 1e8, "scale": "log10"}},
        {"y": {"sd": "estimate", "transform": "log"}, "z": {"sd": 0.1, "transform": "log10"}},
    )


def a_logarithm_at_a_bound() -> Problem:
    return problem_of(
        {"y": "s*b"},
        {"y": factors(3 * B, 1)},
        {"s": {"lower": 3.5, "upper": 9.0}, "sigma": {"lower": 0.0}},
        {"y": {"sd": "sigma", "transform": "log"}},
    )


def deviations() -> Problem:
    data = {"y": noisy(A, 1), "z": noisy(2 * B, 2, 0.2), "w": noisy(A + B, 3)}
    return problem_of(
        {"y": "a", "z": "2*b", "w": "a + b"},
        data,
        {"v": {"lower": 0.0}, "rho": {"lower": 1e-5, "scale": "log10"}},
        {"y": {"sd": "estimate"}, "z": {"sd": "sqrt(v)"}, "w": {"sd": "rho*w"}},
    )


def a_scale_that_groups_share() -> Problem:
    data = {"y": noisy(3 * A + 1, 1, 0.2), "z": noisy(3 * B + 1, 2, 0.02)}
    return problem_of(
        {"y": "s*a + c", "z": "s*b + c"},
        data,
        {"s": {}, "c": {}, "sigma": {"lower": 0.0}},
        {"y": {"sd": "estimate"}, "z": {"sd": "sigma"}},
    )


def units_of_values_and_noise() -> Problem:
    data = {"y": factors(3 * A, 1), "z": factors(0.2 * B, 2), "w": factors(9 * B, 3)}
    return problem_of(
        {"y": "s*a", "z": "b/r", "w": "s^1*b*3", "x": "q*a"},
        {**data, "x": factors(A, 4)},
        {n: {"lower": 0.0} for n in ("s", "r", "sigma")} | {"q": {"lower": 1.5, "upper": 10.0}},
        {
            "y": {"sd": "s*sigma"},
            "z": {"sd": "sigma/r"},
            "w": {"sd": "0.3*s"},
            "x": {"sd": "q*0.1"},
        },
    )


PROBLEMS: list[Callable[[], Problem]] = [
    scale_and_offset,
    experiments_of_their_own,
    priors,
    a_prior_beside_an_unknown_deviation,
    at_bounds,
    logarithms,
    a_logarithm_at_a_bound,
    deviations,
    a_scale_that_groups_share,
    units_of_values_and_noise,
]


def projected(problem: Problem, **values: float) -> Projection:
    """The reduced problem at some rates; the eliminated unknowns have arbitrary values."""
    return projected_by("auto", problem, values)


def projected_by(engine: EngineName, problem: Problem, values: Mapping[str, float]) -> Projection:
    """The same, integrated by an engine."""
    vector = np.array([values.get(key, 1.234) for key in problem.keys])
    found = VariableProjection(ForwardMap(problem, engine)).evaluate(vector)
    assert isinstance(found, Projection)
    return found
