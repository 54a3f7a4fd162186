"""All solutions that no measurement of the outputs can distinguish from a given one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from odefit.common.arrays import Array, ComplexArray
from odefit.methods.algebraic.candidates import (
    REAL_TOLERANCE,
    Candidate,
    candidate,
    imaginary_part,
    solution_of,
)
from odefit.methods.algebraic.preparation import Preparation
from odefit.methods.algebraic.solving import MAX_ATTEMPTS, KnownSolutions, solutions_at
from odefit.methods.estimate import Completeness
from odefit.structure.series.expansion import ExpansionPoint

FURTHER_DERIVATIVES = 4  # coefficients beyond those of the square system in which solutions agree
DERIVATIVE_TOLERANCE = 1e-6  # relative difference up to which derivatives agree
SAME_SOLUTION = 1e-5  # relative difference up to which two solutions are the same
SINGULAR_RATIO = 1e-7  # ratio of singular values up to which a solution counts as multiple


@dataclass(frozen=True, eq=False)
class IndistinguishableCandidates:
    """The candidates with the same outputs as a given solution, and their completeness."""

    candidates: tuple[Candidate, ...]  # real candidates without the given solution
    # how many indistinguishable solutions there are, and how many were found
    completeness: Completeness


def indistinguishable_candidates(
    preparation: Preparation,
    vector: Array,
    times: tuple[float, ...],
    rng: np.random.Generator,
    nearby: KnownSolutions | None = None,
) -> IndistinguishableCandidates | None:
    """Solve the square system for the model's own derivatives at `vector`, which are exact.

    The preparation uses one time for each experiment, around which derivatives are taken. `nearby`
    holds all solutions of its square system at similar parameters. Returns None if the trajectory
    does not reach the times.
    """
    square, system = preparation.square, preparation.system
    base = solution_of(preparation, vector, times)
    if base is None or not np.isfinite(base).all():
        return None
    points = [
        expansion.expansion_point(time, square.order + FURTHER_DERIVATIVES)
        for expansion, time in zip(system.expansions, times, strict=True)
    ]
    short = [ExpansionPoint(known, functions[:, : square.order + 1]) for known, functions in points]
    parameters = square.pack(np.zeros(square.size, dtype=complex), base[square.held], short)
    parameters[: square.size] = square.values(
        base[square.solved][None], parameters[None], derivatives=False
    )[0][0]
    outputs = _outputs(preparation, base[None], points)[0]
    agreeing: list[ComplexArray] = [base]
    lost = len(preparation.generic.solutions)
    count = preparation.solution_count
    for attempt in range(MAX_ATTEMPTS):
        if count == len(agreeing):
            lost = 0
            break
        start = nearby if attempt == 0 else None
        ends = solutions_at(preparation, parameters[None], rng, start, attempts=1)[0]
        for one in square.all_unknowns(ends.points, np.tile(parameters, (len(ends.points), 1))):
            if any(_agree(one, other, SAME_SOLUTION) for other in agreeing):
                continue
            if _agree(_outputs(preparation, one[None], points)[0], outputs, DERIVATIVE_TOLERANCE):
                agreeing.append(one)
        lost = min(lost, ends.lost - ends.infinite)
        if not lost:
            break
    real = [one for one in agreeing if imaginary_part(one[square.solved]) <= REAL_TOLERANCE]
    made = [candidate(preparation, one, times, "same outputs as the best") for one in real[1:]]
    completeness = Completeness(
        possible=len(agreeing) if count is None else count,
        found=len(agreeing),
        known=count is not None,
        real=len(real),
        lost=lost,
        doubt=preparation.generic.miss_probability,
        coincide=_is_multiple(preparation, base, parameters),
    )
    return IndistinguishableCandidates(tuple(m for m in made if m is not None), completeness)


def _is_multiple(preparation: Preparation, base: ComplexArray, parameters: ComplexArray) -> bool:
    """Return whether the square system has, numerically, a multiple solution at `base`."""
    square = preparation.square
    point = base[square.solved]
    jacobian = square.values(point[None], parameters[None])[1][0] * point
    rows = np.abs(jacobian).max(axis=1)
    if not (rows > 0).all():
        return True
    singular = np.linalg.svd(jacobian / rows[:, None], compute_uv=False)
    return bool(singular[-1] <= SINGULAR_RATIO * singular[0])


def _outputs(
    preparation: Preparation, values: ComplexArray, points: Sequence[ExpansionPoint[np.complex128]]
) -> ComplexArray:
    """Return Taylor coefficients of all outputs beyond those that the square system uses.

    For `values` of shape (solutions, unknowns), each row has the coefficients of a solution.
    """
    system, order = preparation.system, preparation.square.order + FURTHER_DERIVATIVES
    rows = []
    for k, (known, functions) in enumerate(points):
        with np.errstate(all="ignore"):
            taylor = system.run(k, values, order, known[None], functions[None], False)
        outputs = taylor.outputs[:, :, : system.expansions[k].outputs]
        rows.append(outputs.reshape(len(values), -1))
    return np.concatenate(rows, axis=1)


def _agree(a: ComplexArray, b: ComplexArray, tolerance: float) -> bool:
    scale = np.maximum(np.abs(a), np.abs(b)) + 1e-9 * np.abs(b).max(initial=0.0)
    return bool((np.abs(a - b) <= tolerance * scale).all())
