"""From the generic solutions to those at the data: one parameter homotopy a solution."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from odefit.methods.algebraic.preparation import Preparation
from odefit.methods.algebraic.proportional import Proportional
from odefit.problem.arrays import Array, ComplexArray
from odefit.structure.homotopy.tracker import PathStatus, TrackerOptions, refine_ends, track

DETOURS = 4
"""Ways around singular parameters that are tried for a path that fails."""

SAME = 1e-7
"""Relative difference up to which two ends are one solution."""

TRACKING = TrackerOptions(max_steps=400)
PATIENT = TrackerOptions(max_steps=1000, target_error=2e-3)


@dataclass(frozen=True, eq=False)
class Ends:
    """Solutions of the square system at given parameters.

    Attributes
    ----------
    points
        Distinct solutions, shape (found, n).
    lost
        Generic solutions that could not be followed to an end, infinity included.
    infinite
        How many of those went to infinity.
    """

    points: ComplexArray
    lost: int
    infinite: int


def solutions_at(
    preparation: Preparation,
    parameters: ComplexArray,
    rng: np.random.Generator,
    nearby: tuple[ComplexArray, ComplexArray] | None = None,
    attempts: int = DETOURS,
) -> list[Ends]:
    """All solutions at each of several vectors of parameters.

    Another detour permutes the solutions: where paths fail, what they would have found may be
    the end of other paths.

    Parameters
    ----------
    parameters
        Shape (wanted, parameters).
    nearby
        Solutions, shape (any, n), and parameters at which they are: the first attempt starts
        there instead of at the generic ones.
    attempts
        Detours that are tried while paths are lost.
    """
    generic = preparation.generic
    wanted, d = len(parameters), len(generic.solutions)
    found: list[list[ComplexArray]] = [[] for _ in range(wanted)]
    lost = [d] * wanted
    infinite = [0] * wanted
    open_ = list(range(wanted))
    for attempt in range(attempts):
        solutions, at = generic.solutions, generic.parameters
        if nearby is not None and attempt == 0:
            solutions, at = nearby
        count = len(solutions)
        starts = np.tile(solutions, (len(open_), 1))
        begin = np.tile(at, (len(starts), 1))
        end = np.repeat(parameters[open_], count, axis=0)
        angles = np.exp(1j * rng.uniform(-0.6 * np.pi, 0.6 * np.pi, len(open_)))
        homotopy = Proportional(preparation.square, begin, end, np.repeat(angles, count))
        tracked = track(homotopy, starts, TRACKING if attempt == 0 else PATIENT)
        ends, regular = refine_ends(homotopy, tracked.ends)
        fine = tracked.reached & regular
        for i, k in enumerate(open_):
            here = slice(i * count, (i + 1) * count)
            for arrived, point in zip(fine[here], ends[here], strict=True):
                if arrived and not any(_same(point, other) for other in found[k]):
                    found[k].append(point)
            endings = tracked.statuses[here]
            lost[k] = d - len(found[k])
            if solutions is generic.solutions:
                infinite[k] = min(sum(e is PathStatus.INFINITY for e in endings), lost[k])
        open_ = [k for k in open_ if lost[k] > infinite[k]]
        if not open_:
            break
    n = preparation.square.size
    return [Ends(np.array(found[k]).reshape(-1, n), lost[k], infinite[k]) for k in range(wanted)]


def _same(a: ComplexArray, b: ComplexArray) -> bool:
    scale = np.maximum(np.abs(a), np.abs(b)) + 1e-12
    return bool((np.abs(a - b) <= SAME * scale).all())


def held_values(preparation: Preparation) -> Array:
    """Values of the unknowns that are held: the user's guess, the middle of bounds, or one."""
    values = []
    for name in preparation.held:
        key = name.split("@")[0] if "@" in name else name
        unknown = next((u for u in preparation.problem.unknowns if key in (u.key, u.name)), None)
        value = 1.0
        if unknown is not None:
            p = unknown.parameter
            if p.guess is not None:
                value = p.guess
            elif np.isfinite([p.lower, p.upper]).all():
                value = 0.5 * (p.lower + p.upper)
            else:
                value = float(np.clip(1.0, p.lower, p.upper))
        values.append(value)
    return np.array(values, dtype=float)
