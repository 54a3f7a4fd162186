"""The problems of the campaign `automatic`, and the preparation of a process."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from evidence.front_door.cascade import cascade_problem
from evidence.front_door.dense_data import dense_problem
from evidence.running.campaign import Task
from odefit import ForwardMap, Problem, fit, library
from odefit.common.arrays import Array
from odefit.problem import problem_from_mapping

_warm: list[bool] = []  # not empty when this process has compiled the code of all fits


def warm_up() -> None:
    """Import packages and load compiled kernels, once in a process."""
    if _warm:
        return
    problem = library.load("harmonic")
    fit(problem, jobs=1)
    ForwardMap(problem, "bdf").evaluate(np.ones(len(problem.unknowns)))
    _warm.append(True)


def subject(task: Task) -> tuple[Problem, Array | None]:
    """Return the problem of a task, without guesses, and the truth or the published values."""
    part, name = task["part"], task["problem"]
    if part == "dense":
        problem, values = dense_problem(name, task["noise"], task["seed"])
        return problem, problem.vector(values)
    if part == "cascade":
        problem, values = cascade_problem(0)
        return problem, problem.vector(values)
    if part == "library":
        return library.load(name), None
    return published(Path(task["folder"]) / f"{name}.json")


def published(file: Path) -> tuple[Problem, Array]:
    """Return a published problem without its guesses, and these."""
    raw = json.loads(file.read_text(encoding="utf-8"))
    with_guesses = problem_from_mapping(raw)
    nominal = np.array([u.parameter.guess for u in with_guesses.unknowns], dtype=float)
    sections = [raw["parameters"], raw["initial"], *(e["initial"] for e in raw["experiment"])]
    for section in sections:
        for given in section.values():
            if isinstance(given, dict):
                given.pop("guess", None)
    return problem_from_mapping(raw), nominal


def extent(problem: Problem) -> dict[str, float]:
    """Return the number of measurements, and the sum of their squares."""
    series = [s.values for c in problem.conditions for s in c.series.values()]
    return {"size": problem.size, "squares": float(sum(v @ v for v in series))}
