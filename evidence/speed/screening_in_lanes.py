"""The gain in screening if heyoka's lanes integrated several start points at once.

Start points of single shooting are compared by their costs, one by one, with states alone. Here 64
of them are integrated over all data times of dense series, by the scalar integrator and by the one
for batches. The latter takes as many steps for all its lanes as the slowest needs. "Ordered" places
points with similar numbers of steps beside each other, an order that is unknown in practice. Points
at which the Taylor method fails are left out of both, because a failing lane stops the others. The
times are microseconds of CPU time for a point, the smallest of the repeats. Compilation, without
the cache of compiled models, is in milliseconds. "Pays from" is the number of points from which
compiling pays, and "ordered, from" is the same for points in that order.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from evidence.front_door.dense_data import dense_problem
from evidence.running.campaign import Option, Task, tasks_of
from odefit.common.arrays import Array
from odefit.methods.starts import sample
from odefit.problem.binding import Binding
from odefit.problem.vector_field import VectorField
from odefit.simulation.engines.heyoka.heyoka_equations import VariationalEquations
from odefit.simulation.engines.registry import EXPLICIT_TOLERANCE

SYSTEMS = (
    "pendulum",
    "goodwin",
    "brusselator",
    "lotka-volterra-prey",
    "repressilator",
    "stirred-tank",
    "robertson",
    "chemostat",
)
POINTS = 64
STEPS = 2_000


class Kernel:
    """An integrator of states alone, for one point or for as many as it has lanes."""

    def __init__(self, name: str, lanes: int) -> None:
        self.problem, _ = dense_problem(name, 1e-2, 0)
        condition = self.problem.conditions[0]
        field = VectorField.of(self.problem.model, self.problem.conditions)
        began = time.process_time()
        self._equations = VariationalEquations(field, 0, (), lanes, EXPLICIT_TOLERANCE)
        self.compilation = time.process_time() - began
        scalars = condition.scalars
        self._initial = Binding([condition.initial[s] for s in field.states], scalars)
        self._scalars = Binding([scalars[s] for s in field.scalars], scalars)
        self._grid = np.unique(np.append(condition.t0, condition.times))
        self._lanes = lanes

    def steps(self, points: Array) -> int:
        """Integrate a point in each lane; return the steps, or 0 if one fails."""
        states = np.array([self._initial(p) for p in points]).T
        scalars = np.array([self._scalars(p) for p in points]).T
        self._equations.pars[: len(scalars)] = scalars
        if self._lanes == 1:
            integrator = self._equations.start(self._grid[0], states)
            outcome, _, _, taken, _, _ = integrator.propagate_grid(self._grid, max_steps=STEPS)
            return int(taken) if outcome.name == "time_limit" else 0
        grid = np.repeat(self._grid[:, None], self._lanes, axis=1)
        integrator = self._equations.start(grid[0], states)
        integrator.propagate_grid(grid, max_steps=STEPS)
        return max(int(result[3]) for result in integrator.propagate_res)

    def microseconds(self, points: Array) -> float:
        began = time.process_time()
        for group in points.reshape(-1, self._lanes, points.shape[1]):
            self.steps(group)
        return 1e6 * (time.process_time() - began) / len(points)


def row(name: str, lanes: int, repeats: int) -> list[str]:
    """Return the measurements on one system."""
    single, batch = Kernel(name, 1), Kernel(name, lanes)
    points = sample(single.problem, 0, POINTS, 0)
    steps = np.array([single.steps(p[None]) for p in points])
    points, steps = points[steps > 0], steps[steps > 0]
    kept = len(points) // lanes * lanes
    points, steps = points[:kept], steps[:kept]
    ordered = points[np.argsort(steps, kind="stable")]
    times = [
        min(kernel.microseconds(some) for _ in range(repeats))
        for kernel, some in ((single, points), (batch, points), (batch, ordered))
    ]
    slowest = steps.reshape(-1, lanes).max(axis=1).mean()
    pays = [
        f"{1e6 * batch.compilation / (times[0] - t):.0f}" if t < times[0] else "never"
        for t in times[1:]
    ]
    return [
        name,
        str(kept),
        f"{steps.mean():.0f}",
        f"{slowest:.0f}",
        *(f"{t:.0f}" for t in times),
        f"{1e3 * batch.compilation:.0f}",
        *pays,
    ]


HEAD = (
    *("system", "points", "steps", "of the slowest lane", "one by one", "in lanes", "ordered"),
    *("compile, ms", "pays from", "ordered, from"),
)
OPTIONS = (
    Option("lanes", 4, "points at once", least=2),
    Option("repeats", 5, "runs of which the least counts", least=1),
)


def tasks(**options: Any) -> list[Task]:
    return tasks_of("system", SYSTEMS, **options)


def run(task: Task) -> Mapping[str, Any]:
    """Return the row of a system, with an empty cache of compiled models."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_CACHE_HOME"] = folder
        return {"rows": [row(task["system"], task["lanes"], task["repeats"])]}
