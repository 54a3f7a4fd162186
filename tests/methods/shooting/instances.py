"""Problems on nodes, and short ways to them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from odefit import ForwardMap, Model, Noise, Problem, simulate
from odefit.methods.shooting.linear_problem import (
    LinearisedConstraints,
    LinearProblem,
    UserConstraints,
)
from odefit.methods.shooting.node_evaluation import shooting_problem, typical_sizes
from odefit.methods.shooting.shooting_problem import Linearisation, Point, ShootingProblem
from odefit.simulation import Simulation
from tests.simulation.numerics import Array
from tests.simulation.sampling import nodes_on


def exchange(spread: float = 0.02, seed: int = 0, **more: Any) -> Problem:
    """Two states that exchange; everything has an exact solution."""
    t = np.linspace(0.0, 10.0, 21)
    random = np.random.default_rng(seed)
    arguments: dict[str, Any] = {
        "model": Model(ode={"x": "-k1*x + k2*y", "y": "k1*x - k2*y"}),
        "data": {
            "t": t,
            "x": 0.4 + 0.6 * np.exp(-t) + spread * random.normal(size=21),
            "y": 0.6 - 0.6 * np.exp(-t) + spread * random.normal(size=21),
        },
        "parameters": {"k1": {"lower": 0.0, "upper": 5.0}, "k2": {"lower": 0.0, "upper": 5.0}},
        "initial": {"x": {}, "y": {}},
        **more,
    }
    return Problem(**arguments)


def exchanged(vector: Array, t: Array) -> tuple[Array, Array]:
    """The exact solution at k1, k2, x, y."""
    k1, k2, x, y = vector
    rest = k2 / (k1 + k2) * (x + y)
    at = rest + (x - rest) * np.exp(-(k1 + k2) * t)
    return at, x + y - at


def bock(mu: float, noise: float = 0.0) -> Problem:
    """Bock's unstable example: x1 = sin(pi t) at p = pi; errors grow like exp(mu t)."""
    t = np.linspace(0.0, 1.0, 41)
    random = np.random.default_rng(0)
    return Problem(
        Model(
            ode={"x1": "x2", "x2": "mu^2*x1 - (mu^2 + p^2)*sin(p*t)"}, constants={"mu": float(mu)}
        ),
        {
            "t": t,
            "x1": np.sin(np.pi * t) + noise * random.normal(size=41),
            "x2": np.pi * np.cos(np.pi * t) + noise * random.normal(size=41),
        },
        {"p": {"lower": 0.1, "upper": 10.0, "guess": 1.0}},
        {"x1": 0.0, "x2": np.pi},
    )


LORENZ = {"s": 10.0, "r": 28.0, "b": 8 / 3, "x": 1.5, "y": 2.0, "z": 20.0}


def lorenz(end: float, noise: float = 1.0, step: float = 0.05, seed: int = 0) -> Problem:
    """Lorenz' equations, all measured with noise; errors grow like exp(0.906 t)."""
    model = Model(ode={"x": "s*(y - x)", "y": "x*(r - z) - y", "z": "x*y - b*z"})
    t = np.arange(0.0, end + step / 2, step)
    free: dict[str, Any] = {"s": {}, "r": {}, "b": {}}
    plain = Problem(model, {"t": [0.0, 1.0], "x": [1.0, 1.0]}, free, {"x": {}, "y": {}, "z": {}})
    path = simulate(plain, plain.vector(LORENZ), t)
    assert isinstance(path, Simulation)
    random = np.random.default_rng(seed)
    data = {"t": t, **{k: path.states[k] + noise * random.normal(size=len(t)) for k in "xyz"}}
    return Problem(
        model,
        data,
        {
            "s": {"lower": 1.0, "upper": 50.0, "guess": 5.0},
            "r": {"lower": 1.0, "upper": 100.0, "guess": 15.0},
            "b": {"lower": 0.1, "upper": 10.0, "guess": 1.0},
        },
        {"x": {}, "y": {}, "z": {}},
        noise={k: Noise(sd=noise) for k in "xyz"},
    )


def columns(problem: Problem) -> dict[str, Array]:
    """The data of the only experiment."""
    return {str(name): np.array(column) for name, column in problem.data().items()}


def on_trajectory(
    problem: Problem, vector: Array, node_times: Sequence[Array]
) -> tuple[ShootingProblem, Point]:
    """The problem on nodes, and the point that a single integration goes through."""
    forward = ForwardMap(problem)
    shooting = shooting_problem(forward, node_times, [], vector)
    values = np.concatenate(list(nodes_on(forward, vector, node_times).values))
    return shooting, Point(shooting.scaling.coordinates(vector), values)


def shaken(point: Point, size: float, seed: int = 0) -> Point:
    """Everything moved by a relative `size`."""
    random = np.random.default_rng(seed)
    z, nodes = point.coordinates, point.nodes
    return Point(
        z + size * np.abs(z) * random.normal(size=z.shape),
        nodes + size * np.abs(nodes).max(axis=0) * random.normal(size=nodes.shape),
    )


def linearised(shooting: ShootingProblem, point: Point) -> Linearisation:
    at = shooting.linearise(point)
    assert isinstance(at, Linearisation), at
    return at


def linear_problem(shooting: ShootingProblem, at: Linearisation) -> LinearProblem:
    none = LinearisedConstraints.none(len(at.point.coordinates))
    z = at.point.coordinates
    return LinearProblem(
        shooting, at, typical_sizes(shooting, z, z, 0.01), UserConstraints(none, none)
    )
