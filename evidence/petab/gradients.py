"""Gradients of published PEtab problems beside AMICI's, or beside differences without AMICI.

`folder` has one folder a problem. Both are evaluated beside the nominal values, every unknown moved
by 5 % (`shift`) up or down (seeded), at a tolerance of 1e-10, without priors. The gradient is that
of the log-likelihood by the logarithms of the unknowns; the error of a component is relative to
itself or to a millionth of the largest one, if that is more. AMICI integrates the forward
sensitivities, or where these fail the adjoint ones. Without `amici` the gradient, at a tolerance of
1e-11, is compared with central differences of fourth order, for each component at the best step;
the error is relative to at least a thousandth of the largest component.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from evidence.peers.amici import GRADIENT, by_amici, problem_folders
from evidence.petab.collection import STENCIL, WEIGHTS, nominal
from evidence.running.campaign import Option, Task, tasks_of
from odefit import ForwardMap, Problem
from odefit.common.arrays import Array
from odefit.formats.petab import read_petab
from odefit.problem.toml.files import problem_from_mapping
from odefit.simulation import Evaluation

TOLERANCE = 1e-10  # tolerance of both programs
LEAST = 1e-6  # share of the largest component that is the smallest scale of relative errors
STEPS = (1e-3, 3e-4, 3e-3)  # relative steps of the differences
FINE_TOLERANCE = 1e-11  # tolerance where differences are taken
LEAST_OF_DIFFERENCES = 1e-3  # as :data:`LEAST`, for differences, which have fewer digits
LIMIT = 1800.0  # seconds that AMICI gets for a problem


def differences(forward: ForwardMap, vector: Array, own: Array) -> Array:
    """Return the gradient of the log-likelihood by the logarithms of the unknowns, shape (m,).

    Each component has the step that brings it nearest to `own`.
    """
    found = np.full(len(vector), np.inf)
    for k in range(len(vector)):
        for step in STEPS:
            slope = 0.0
            for i, weight in zip(STENCIL, WEIGHTS, strict=True):
                moved = vector.copy()
                moved[k] *= 1.0 + i * step
                slope -= weight * forward.cost(moved) / step
            if abs(slope - own[k]) < abs(found[k] - own[k]):
                found[k] = slope
    return found


def compare(folder: Path, python: str, compiled: str, shift: float) -> list[str]:
    yaml = folder / f"{folder.name}.yaml"
    found = read_petab(yaml)
    mapping = copy.deepcopy(dict(found.mapping))
    for value in mapping["parameters"].values():
        if isinstance(value, dict):
            value.pop("prior", None)
    problem = problem_from_mapping(mapping)
    vector = nominal(found)
    signs = np.random.default_rng(1).choice((-1.0, 1.0), len(vector))
    vector = np.clip(vector * (1.0 + shift * signs), problem.lower, problem.upper)
    tolerance = TOLERANCE if python else FINE_TOLERANCE
    forward = ForwardMap(problem, tolerance=tolerance)
    at = forward.evaluate(vector)
    if not isinstance(at, Evaluation):
        return [folder.name, f"odefit fails: {at}"]
    own = -(at.jacobian.T @ at.residuals) * vector
    if not python:
        return errors_of(problem, own, differences(forward, vector, own), "differences", None)
    values = dict(zip(problem.keys, map(float, vector), strict=True))
    given = [str(TOLERANCE), json.dumps(values)]
    other = by_amici(GRADIENT, python, folder, compiled, given, LIMIT)
    if "error" in other:
        return [folder.name, f"AMICI fails: {other['error']}"]
    theirs = np.array([other["gradient"][key] for key in problem.keys]) * vector
    gap = abs((at.log_likelihood or np.nan) - other["llh"])
    return errors_of(problem, own, theirs, other["method"], gap)


def errors_of(
    problem: Problem, own: Array, other: Array, kind: str, gap: float | None
) -> list[str]:
    """Return the row of a problem whose gradient was computed twice."""
    least = LEAST_OF_DIFFERENCES if gap is None else LEAST
    sizes = np.maximum(np.abs(other), least * np.abs(other).max())
    errors = np.abs(own - other) / sizes
    worst = int(np.argmax(errors))
    whole = float(np.linalg.norm(own - other) / np.linalg.norm(other))
    return [
        problem.name, kind, "" if gap is None else f"{gap:.2g}", f"{whole:.2g}",
        f"{errors[worst]:.2g} ({problem.keys[worst]})", f"{float(np.median(errors)):.2g}",
    ]  # fmt: skip


HEAD = (
    *("problem", "beside", "difference of log-likelihoods", "gradient as a whole"),
    *("largest error of a component", "median"),
)
OPTIONS = (
    Option("folder", "", "folder with a folder for each problem, as the collection has"),
    Option("models", (), "names of problems, e.g. Boehm_JProteomeRes2014"),
    Option("amici", "", "a Python that has AMICI; without it, differences are taken"),
    Option("compiled", "amici_models", "folder of AMICI's compiled models"),
    Option("shift", 0.05, "relative distance from the nominal values", above=0),
)


def tasks(folder: str, models: tuple[str, ...], **options: Any) -> list[Task]:
    names = problem_folders(folder, models) if folder else []
    return tasks_of("model", names, folder=folder, **options)


def run(task: Task) -> Mapping[str, Any]:
    folder = Path(task["folder"]) / task["model"]
    return {"rows": [compare(folder, task["amici"], task["compiled"], task["shift"])]}
