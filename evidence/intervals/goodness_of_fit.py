"""The share of right models called bad, by kind of data; each data set is simulated and fitted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from evidence.running.campaign import Option, Task, tasks_of
from odefit import Control, ForwardMap, Model, Problem, SingleShooting, Status
from odefit.methods.fit_quality.goodness import assess_goodness
from odefit.simulation import Evaluation

# Kinds of data: the declaration of the noise, the number of values
KINDS = (
    "plain",
    "given",
    "estimated",
    "replicates",
    "log-normal",
    "proportional",
    "two estimated",
    "two given",
    "long plain",
    "long given",
)


def problem_of(kind: str, generator: np.random.Generator) -> Problem:
    """Return a decay of the given kind, with new noise."""
    times = np.linspace(0.0, 4.0, 200 if "long" in kind else 8)
    if kind == "replicates":
        times = np.repeat(np.linspace(0.0, 4.0, 6), 4)
    x = 10 * np.exp(-0.7 * times)
    random = generator.normal(size=len(times))
    model = Model(ode={"x": "-k*x"})
    parameters: dict[str, Any] = {"k": {"guess": 0.7}}
    initial: dict[str, Any] = {"x": {"guess": 10.0}}
    noise: dict[str, Any] = {}
    data = {"t": times, "x": x + 0.4 * random}
    if "given" in kind:
        noise["x"] = {"sd": 0.4}
    elif "estimated" in kind:
        noise["x"] = {"sd": "estimate"}
    elif kind == "log-normal":
        noise["x"] = {"sd": "estimate", "transform": "log"}
        data["x"] = x * np.exp(0.2 * random)
    elif kind == "proportional":
        noise["x"] = {"sd": "f*x"}
        parameters["f"] = {"guess": 0.1, "lower": 1e-4}
        data["x"] = x * (1 + 0.1 * random)
    if "two" in kind:
        model = Model(ode={"x": "-k*x", "z": "s*k*x"})
        parameters["s"] = {"guess": 0.3}
        initial["z"] = 0.0
        z = 3 * (1 - np.exp(-0.7 * times))
        data["z"] = z + 0.1 * generator.normal(size=len(times))
        noise["z"] = {"sd": 0.1} if "given" in kind else {"sd": "estimate"}
    return Problem(model, data, parameters, initial, noise=noise)


def bad_share(kind: str, count: int, seed: int = 5) -> float:
    """Return the share of right models that are called bad."""
    generator = np.random.default_rng(seed)
    bad = fitted = 0
    for _ in range(count):
        problem = problem_of(kind, generator)
        (start,) = SingleShooting(evaluations=200).solve(problem, Control()).starts
        forward = ForwardMap(problem)
        at = forward.evaluate(start.vector)
        if start.status is not Status.CONVERGED or not isinstance(at, Evaluation):
            continue
        goodness = assess_goodness(forward, start.vector, at)
        fitted += 1
        bad += goodness is not None and goodness.bad
    return bad / fitted


HEAD = ("kind of data", "called bad")
OPTIONS = (Option("count", 1000, "data sets of each kind", least=1),)


def tasks(count: int) -> list[Task]:
    return tasks_of("kind", KINDS, count=count)


def run(task: Task) -> Mapping[str, Any]:
    share = bad_share(task["kind"], task["count"])
    return {"rows": [[task["kind"], f"{100 * share:.1f} %"]]}
