"""The solutions at the data, by a parameter homotopy from each generic solution."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from odefit.common.arrays import Array, ComplexArray, IntArray
from odefit.methods.algebraic.preparation import Preparation
from odefit.simulation.engines.cut_off import cut_off
from odefit.structure.homotopy.square import ParameterHomotopy, SquareSystem
from odefit.structure.homotopy.tracker import PathStatus, TrackerOptions, refine_ends, track

MAX_ATTEMPTS = 4
"""The number of random paths tried for a solution whose path fails, each around other singular
parameters."""

SAME_SOLUTION = 1e-7  # relative difference up to which two ends of paths are the same solution
FIRST_TRACKING = TrackerOptions(max_steps=400)  # options of path tracking in the first attempt

FURTHER_TRACKING = TrackerOptions(max_steps=1000, target_error=2e-3)
"""Options of path tracking in all further attempts."""


class LogarithmicHomotopy(ParameterHomotopy):
    """A parameter homotopy between the logarithms of parameters, if no parameter is zero.

    In units in which values or rates are far from one, Taylor coefficients of the outputs spread
    over many powers of ten. Along straight lines all but the largest would change only at the very
    end.
    """

    def __init__(
        self, square: SquareSystem, start: ComplexArray, end: ComplexArray, gamma: ComplexArray
    ) -> None:
        super().__init__(square, start, end, gamma)
        self._logarithmic = both = (start != 0) & (end != 0)
        # The logarithms are subtracted, as the ratio may overflow.
        self._log_ratios = np.log(np.where(both, start, 1.0)) - np.log(np.where(both, end, 1.0))

    def parameters_at(
        self, paths: IntArray, weight: ComplexArray, weight_by_t: ComplexArray
    ) -> tuple[ComplexArray, ComplexArray]:
        """Return parameters and their derivatives, see :meth:`ParameterHomotopy.parameters_at`."""
        both, ratios = self._logarithmic[paths], self._log_ratios[paths]
        start, end = self.start[paths], self.end[paths]
        scaled = end * np.exp(weight * ratios)
        at = np.where(both, scaled, end + weight * (start - end))
        return at, weight_by_t * np.where(both, scaled * ratios, start - end)


class KnownSolutions(NamedTuple):
    """Solutions of the square system that are known at some parameters."""

    solutions: ComplexArray  # solutions, shape (count, n)
    parameters: ComplexArray  # parameters, shape (parameters,)


@dataclass(frozen=True, eq=False)
class PathEnds:
    """Solutions of the square system at given parameters."""

    points: ComplexArray  # distinct solutions, shape (found, n)
    lost: int  # number of generic solutions whose paths are lost or diverge to infinity
    infinite: int  # number of those whose paths diverge to infinity


def solutions_at(
    preparation: Preparation,
    parameters: ComplexArray,
    rng: np.random.Generator,
    nearby: KnownSolutions | None = None,
    attempts: int = MAX_ATTEMPTS,
) -> list[PathEnds]:
    """Return all solutions at each of several vectors of parameters, shape (count, parameters).

    A different path permutes the solutions: a solution that one path loses may be the end of
    another. The first attempt starts from the solutions `nearby`, at similar parameters, instead of
    the generic ones. Attempts continue while paths are lost.
    """
    generic = preparation.generic
    d = len(generic.solutions)
    ends_found: list[list[ComplexArray]] = [[] for _ in parameters]
    lost = [d] * len(parameters)
    infinite = [0] * len(parameters)
    unfinished = list(range(len(parameters)))
    for attempt in range(attempts):
        solutions, at = generic.solutions, generic.parameters
        if nearby is not None and attempt == 0:
            solutions, at = nearby
        count = len(solutions)
        starts = np.tile(solutions, (len(unfinished), 1))
        begin = np.tile(at, (len(starts), 1))
        end = np.repeat(parameters[unfinished], count, axis=0)
        gamma = np.exp(1j * rng.uniform(-0.6 * np.pi, 0.6 * np.pi, len(unfinished)))
        homotopy = LogarithmicHomotopy(preparation.square, begin, end, np.repeat(gamma, count))
        tracked = track(
            homotopy,
            starts,
            FIRST_TRACKING if attempt == 0 else FURTHER_TRACKING,
            lambda: cut_off().reached,
        )
        ends, regular = refine_ends(homotopy, tracked.ends)
        arrived = tracked.reached & regular
        for i, k in enumerate(unfinished):
            part = slice(i * count, (i + 1) * count)
            for point in ends[part][arrived[part]]:
                if not any(_same(point, other, ends_found[k]) for other in ends_found[k]):
                    ends_found[k].append(point)
            lost[k] = d - len(ends_found[k])
            if solutions is generic.solutions:
                statuses = tracked.statuses[part]
                infinite[k] = min(sum(s is PathStatus.INFINITY for s in statuses), lost[k])
        unfinished = [k for k in unfinished if lost[k] > infinite[k]]
        if not unfinished:
            break
    n = preparation.square.size
    return [
        PathEnds(np.array(points).reshape(-1, n), lost[k], infinite[k])
        for k, points in enumerate(ends_found)
    ]


def _same(a: ComplexArray, b: ComplexArray, known: Sequence[ComplexArray]) -> bool:
    """Return whether two solutions are the same; near zero, known solutions give the sizes."""
    largest = np.abs(np.array(known)).max(axis=0, initial=0.0)
    scale = np.maximum(np.maximum(np.abs(a), np.abs(b)), SAME_SOLUTION * largest)
    return bool((np.abs(a - b) <= SAME_SOLUTION * scale).all())


def held_values(preparation: Preparation) -> Array:
    """Return values of the held unknowns: the user's guess, the middle of the bounds, or one."""
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
