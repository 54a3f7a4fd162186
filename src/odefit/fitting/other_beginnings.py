"""Initial values from which the same motion, at another speed, may fit as well.

A motion that becomes periodic keeps its phase for ever, and initial values decide it. At another
speed other initial values have the right phase. If some are known, the phase of the answer at the
first measurement cannot be taken over, and the unknown ones are drawn.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from odefit.common.arrays import Array
from odefit.fitting.other_speeds import nearest_aliases, unknown_beginnings
from odefit.fitting.places import Candidate
from odefit.methods.running.control import Control
from odefit.methods.starts import sample
from odefit.problem.problem import Problem
from odefit.simulation import ForwardMap
from odefit.simulation.engines.engine_choice import UNDECIDED

DRAWN = 60
"""Number of sets of initial values, of which only the cost is evaluated."""

FOLLOWED = 6
"""Number of the best ones at which searches begin."""

MOST = 4
"""Most other speeds for which initial values are drawn."""

ALIKE = 0.05
"""Relative difference of speeds up to which they are of one alias."""

DESIGN = 5 * 10**7
"""Number of the design of points; see :func:`odefit.methods.starts.sample`. It does not depend on
the seed of a fit, so that the places depend on the answer alone."""


def some_beginnings_known(problem: Problem) -> bool:
    """Return whether some initial values are unknown, and others are given, in a condition."""
    states = problem.model.states
    counts = [len(unknown_beginnings(c, states)) for c in problem.conditions]
    return any(0 < count < len(states) for count in counts)


def other_motions(
    forward: ForwardMap, vector: Array, known: Sequence[tuple[Array, float]]
) -> list[tuple[Array, float]]:
    """Return the unknowns of motions at other speeds, and these speeds.

    They are one of the `known` optima for each speed, and the nearest aliases without one.
    """
    if not some_beginnings_known(forward.problem):
        return []
    motions: list[tuple[Array, float]] = []
    for place, speed in (*known, *nearest_aliases(forward, vector)):
        if all(abs(speed - one) > ALIKE * one for _, one in motions):
            motions.append((place, speed))
    return motions[:MOST]


def other_beginnings(forward: ForwardMap, vector: Array, control: Control) -> list[Candidate]:
    """Return places with other initial values within the bounds, the lowest costs first."""
    problem = forward.problem
    vector = np.clip(vector, problem.lower, problem.upper)
    initial = [k for k, unknown in enumerate(problem.unknowns) if unknown.kind == "initial"]
    points = np.tile(vector, (DRAWN, 1))
    points[:, initial] = sample(problem, DESIGN, DRAWN, 0)[:, initial]
    places: list[Candidate] = []
    for point in points:
        if control.should_stop():
            break
        cost = forward.cost(point, UNDECIDED)
        if np.isfinite(cost):
            places.append(Candidate(point, cost))
    return sorted(places, key=lambda candidate: candidate.cost)[:FOLLOWED]
