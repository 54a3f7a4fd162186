"""odefit's own global methods on the problems of the study, with its measures."""

from __future__ import annotations

import math
import time
from typing import Any

from evidence.transcription.measures import (
    ABSOLUTE_GAP,
    RELATIVE_GAP,
    error_of_squares,
    max_relative_error,
    place,
    relative_gap,
)
from evidence.transcription.plan import (
    CONTINUOUS,
    FINAL,
    OUTER,
    POINTS,
    Configuration,
)
from odefit import BranchAndBound, Control, OuterApproximation, library
from odefit.discretisation import schemes
from odefit.discretisation.mesh import UniformMesh
from odefit.methods.method import Method


def solve_by_own_method(configuration: Configuration, seconds: float) -> dict[str, Any]:
    """Return bounds and answer, as a run of another solver has them.

    The objective of the answer is that on the mesh, which both methods follow exactly. Without
    given standard deviations it is a sum of squares.
    """
    problem = library.load(configuration.problem)
    if problem.noise:
        raise ValueError(f"{configuration.problem} has standard deviations")
    began = time.perf_counter()
    estimate = _method(configuration, seconds).solve(problem, Control(seed=1, jobs=1))
    taken = time.perf_counter() - began
    proof = estimate.certificate
    success = proof is not None and math.isfinite(proof.upper)
    cost = lower = max_re = nrmse = None
    unknowns: dict[str, float] = {}
    if proof is not None and success:
        vector = estimate.starts[0].vector
        cost, lower = proof.upper, proof.lower
        max_re = max_relative_error(problem, library.reference(configuration.problem), vector)
        nrmse = error_of_squares(problem, cost)
        unknowns = dict(zip(problem.keys, map(float, vector), strict=True))
    closed = proof is not None and proof.closed
    return {
        "scope": "global",
        "solved": closed,
        "success": success,
        "certified": closed,
        "place": place(max_re, nrmse),
        "max_re": max_re,
        "nrmse": nrmse,
        "objective": cost,
        "cost": cost,
        "lower_bound": lower,
        "gap": None if cost is None else relative_gap(cost, lower),
        "violation": None,
        "seconds": taken,
        "build_seconds": 0.0,
        "iterations": estimate.starts[0].evaluations if success else -1,
        "outcome": estimate.status.value,
        "message": estimate.message,
        "unknowns": unknowns,
    }


def _method(c: Configuration, seconds: float) -> Method:
    if c.solver == OUTER:
        return OuterApproximation(
            elements=c.steps,
            points=POINTS,
            tolerance=RELATIVE_GAP,
            absolute_gap=ABSOLUTE_GAP,
            bounds="propose",  # of states that nothing bounds
            seconds=seconds,
            polish=False,
        )
    discretised: dict[str, Any] = {}
    if c.scheme != CONTINUOUS:
        mesh = UniformMesh(c.steps, FINAL.get(c.problem))
        discretised = {"scheme": schemes.SCHEMES[c.scheme.lower()], "mesh": mesh}
    return BranchAndBound(
        gap=RELATIVE_GAP, absolute_gap=ABSOLUTE_GAP, seconds=seconds, **discretised
    )
