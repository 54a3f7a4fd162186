"""All solutions that no measurement of the outputs can tell from a given one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from odefit.methods.algebraic.candidates import Candidate, candidate, imaginary_part, solution_of
from odefit.methods.algebraic.preparation import Preparation
from odefit.methods.algebraic.solving import DETOURS, solutions_at
from odefit.methods.estimate import Completeness
from odefit.problem.arrays import Array, ComplexArray
from odefit.structure.expansion import ExpansionPoint

FURTHER = 4
"""Derivatives beyond those of the square system in which solutions have to agree."""

AGREE = 1e-6
"""Relative difference of derivatives up to which they agree."""

SAME = 1e-5
"""Relative difference of two solutions that are one."""

SINGULAR = 1e-7
"""Ratio of singular values of the scaled Jacobian up to which a solution counts as multiple."""

REAL = 1e-6
"""Relative imaginary part up to which a solution counts as real."""


@dataclass(frozen=True, eq=False)
class IndistinguishableCandidates:
    """Solutions with the same outputs.

    Attributes
    ----------
    candidates
        The real ones, the given solution left out.
    counted
        How many there are.
    """

    candidates: tuple[Candidate, ...]
    completeness: Completeness


def indistinguishable_candidates(
    preparation: Preparation,
    vector: Array,
    times: tuple[float, ...],
    rng: np.random.Generator,
    nearby: tuple[ComplexArray, ComplexArray] | None = None,
) -> IndistinguishableCandidates | None:
    """Solve the square system for the model's own derivatives at `vector`, which are exact.

    Parameters
    ----------
    vector
        Unknowns of the problem, shape (n,).
    times
        By expansion, around which the derivatives are taken.
    nearby
        All solutions of the square system at similar parameters, and these.

    Returns
    -------
    IndistinguishableCandidates or None
        None if the trajectory does not reach the times.
    """
    square, system = preparation.square, preparation.system
    base = solution_of(preparation, vector, times)
    if base is None or not np.isfinite(base).all():
        return None
    around = [
        expansion.expansion_point(time, square.order + FURTHER)
        for expansion, time in zip(system.expansions, times, strict=True)
    ]
    short = [ExpansionPoint(known, functions[:, : square.order + 1]) for known, functions in around]
    parameters = square.pack(np.zeros(square.size, dtype=complex), base[square.held], short)
    parameters[: square.size] = square.values(
        base[square.solved][None], parameters[None], derivatives=False
    )[0][0]
    wanted = _outputs(preparation, base[None], around)[0]
    agreeing: list[ComplexArray] = [base]
    lost = len(preparation.generic.solutions)
    for attempt in range(DETOURS):
        if preparation.structural == len(agreeing):
            lost = 0
            break
        start = nearby if attempt == 0 else None
        ends = solutions_at(preparation, parameters[None], rng, start, attempts=1)[0]
        for one in square.all_unknowns(ends.points, np.tile(parameters, (len(ends.points), 1))):
            known = any(_agree(one, other, SAME) for other in agreeing)
            if not known and _agree(_outputs(preparation, one[None], around)[0], wanted, AGREE):
                agreeing.append(one)
        lost = min(lost, ends.lost - ends.infinite)
        if not lost:
            break
    real = [one for one in agreeing if imaginary_part(one[square.solved]) <= REAL]
    made = [candidate(preparation, one, times, "same outputs as the best") for one in real[1:]]
    structural = preparation.structural
    completeness = Completeness(
        possible=len(agreeing) if structural is None else structural,
        found=len(agreeing),
        known=structural is not None,
        real=len(real),
        lost=lost,
        doubt=preparation.generic.miss_probability,
        coincide=_singular(preparation, base, parameters),
    )
    return IndistinguishableCandidates(tuple(m for m in made if m is not None), completeness)


def _singular(preparation: Preparation, base: ComplexArray, parameters: ComplexArray) -> bool:
    """Whether the square system has, numerically, a multiple solution at `base`."""
    square = preparation.square
    point = base[square.solved]
    jacobian = square.values(point[None], parameters[None])[1][0] * point
    rows = np.abs(jacobian).max(axis=1)
    if not (rows > 0).all():
        return True
    singular = np.linalg.svd(jacobian / rows[:, None], compute_uv=False)
    return bool(singular[-1] <= SINGULAR * singular[0])


def _outputs(
    preparation: Preparation, values: ComplexArray, around: Sequence[ExpansionPoint[np.complex128]]
) -> ComplexArray:
    """Taylor coefficients of all outputs beyond what the square system uses, in one row."""
    system, order = preparation.system, preparation.square.order + FURTHER
    rows = []
    for k, (known, functions) in enumerate(around):
        expansion = system.expansions[k]
        with np.errstate(all="ignore"):
            taylor = system.run(k, values, order, known[None], functions[None], False)
        rows.append(taylor.outputs[:, :, : expansion.outputs].reshape(len(values), -1))
    return np.concatenate(rows, axis=1)


def _agree(a: ComplexArray, b: ComplexArray, tolerance: float) -> bool:
    scale = np.maximum(np.abs(a), np.abs(b)) + 1e-9 * np.abs(b).max(initial=0.0)
    return bool((np.abs(a - b) <= tolerance * scale).all())
