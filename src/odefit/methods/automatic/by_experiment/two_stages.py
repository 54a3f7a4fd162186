"""Starts in two stages: every experiment alone first, then all together.

If most unknowns act on a single experiment, as constants of a subject or of a culture do, a random
start is poor in many experiments at once, and a local search of all unknowns has to improve every
one of them. But a single experiment has few unknowns, and few starts find its optimum. In the first
stage each experiment is fitted alone, with its own values of the shared unknowns. The second stage
begins at the medians of these values: the other unknowns are fitted to them experiment by
experiment, and then all unknowns together (standard two-stage method: J. L. Steimer, A. Mallet, J.
L. Golmard and J. F. Boisvieux, Alternative approaches to estimation of population pharmacokinetic
parameters, 1984).
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from weakref import WeakKeyDictionary

import numpy as np

from odefit.common.arrays import Array
from odefit.methods.estimate import Start
from odefit.methods.local.cost_tolerance import CostTolerance
from odefit.methods.multi_start import MultiStart
from odefit.methods.running.control import Control
from odefit.methods.single_shooting import START_SEARCH, SingleShooting
from odefit.methods.starts import sample
from odefit.problem.problem import Problem
from odefit.problem.variants.parts import Groups, Part, loose_groups, parts_of_groups
from odefit.simulation import ForwardMap
from odefit.simulation.blocks import with_engines_of

OWN = 0.5
"""Smallest share of the unknowns that act on one experiment alone."""

LEAST_OWN = 8  # smallest number of these unknowns; with fewer, random starts do

TRIES = 4
"""Largest number of starts for each experiment, which end when two agree on the lowest cost."""

ROUNDS = 5  # largest number of choices among equally good ends of experiments

FIRST_STAGE = 0.6
"""Share of the time of a start, where that is limited, for the experiments one by one."""

SCREENED_ALONE = (64, 8)
"""Numbers of points of which starts for an experiment take the best, in turns."""

ALONE = MultiStart(START_SEARCH, screening=SCREENED_ALONE)
"""The search for the unknowns of one experiment."""

SCREENED = TRIES * sum(SCREENED_ALONE) // len(SCREENED_ALONE)
"""Number of points that a start compares, at most, in each experiment."""

_known_parts: WeakKeyDictionary[Problem, tuple[Part, ...]] = WeakKeyDictionary()

DESIGN = 7 * 10**7
"""Number of the design of points for the first start; see :func:`odefit.methods.starts.sample`."""


def refusal(problem: Problem) -> str | None:
    """Return why experiments are not fitted one by one first; None if they are."""
    if len(problem.conditions) < 2:
        return "there is one experiment"
    groups = _groups(problem)
    if groups is None:
        return "most unknowns act on several experiments"
    if sum(len(group.acting - groups.joining) for group in groups.groups) < LEAST_OWN:
        return "few unknowns act on one experiment alone"
    sizes = [sum(len(s.values) for s in c.series.values()) for c in problem.conditions]
    if any(sum(sizes[k] for k in g.members) < len(g.acting) for g in groups.groups):
        return "an experiment has fewer measurements than unknowns"
    if not _parts(problem):
        return "the experiments cannot be fitted one by one"
    return None


def _groups(problem: Problem) -> Groups | None:
    """Return the experiments that are fitted alone, or groups as those of a subject.

    Returns None if most unknowns act on several of them.
    """
    for most in (1, len(problem.conditions) // 2):
        groups = loose_groups(problem, most)
        if groups is None:
            continue
        count = sum(len(group.acting - groups.joining) for group in groups.groups)
        if count >= OWN * len(problem.unknowns):
            return groups
    return None


def _parts(problem: Problem) -> tuple[Part, ...]:
    """Return the parts of these groups, made once; an empty tuple if one cannot be separate."""
    if problem not in _known_parts:
        _known_parts[problem] = parts_of_groups(problem, _groups(problem))
    return _known_parts[problem]


@dataclass(frozen=True)
class TwoStageSearch:
    """Starts of single shooting from the fits of single experiments."""

    method: SingleShooting

    def run(self, forward: ForwardMap, index: int, control: Control) -> Start:
        """Return the end of start number `index`."""
        began, problem = time.perf_counter(), forward.problem
        parts, runs = _parts(problem), list[Start]()
        begin = sample(problem, DESIGN + index, 1, control.seed)[0]
        first_stage = control.with_share(FIRST_STAGE)
        alone = []
        for k, part in enumerate(parts):
            limited = first_stage.with_share(1.0 / (len(parts) - k))
            if ends := _alone(forward, part, index, limited, runs):
                alone.append((part, ends))
        vector = _composed(begin, alone)
        for part in parts:
            vector[part.unshared] = _beside_shared(forward, part, vector, index, control, runs)
        end = self.method.run(forward, index, vector, control)
        return replace(
            end,
            start=begin,
            # One evaluation of an experiment alone is a part of one of all.
            evaluations=end.evaluations + math.ceil(sum(s.evaluations for s in runs) / len(parts)),
            seconds=time.perf_counter() - began,
            failures=dict(sum((Counter(s.failures) for s in (*runs, end)), Counter[str]())),
        )


def _alone(
    forward: ForwardMap, part: Part, index: int, control: Control, runs: list[Start]
) -> list[Start]:
    """Return the equally good best ends of some starts for one experiment.

    All ends are added to `runs`.
    """
    alone = with_engines_of(forward, part.problem)
    tolerance = CostTolerance.of(alone)
    ends: list[Start] = []
    for k in range(TRIES):
        if control.should_stop():
            break
        ends.append(ALONE.run(alone, TRIES * index + k, control))
        if tolerance.best(ends)[1] > 1:
            break
    runs += ends
    best, _ = tolerance.best(ends)
    return [] if best is None else [s for s in ends if tolerance.same(s, best)]


def _composed(begin: Array, alone: Sequence[tuple[Part, Sequence[Start]]]) -> Array:
    """Return the ends of all experiments together, with the medians of their shared unknowns.

    If an experiment has several equally good ends, as where two rates can be exchanged, the one
    whose shared unknowns are nearest to the medians is taken. Unknowns of experiments without an
    end keep their values in `begin`, shape (n,).
    """
    chosen = [ends[0] for _, ends in alone]
    vector = begin.copy()
    for _ in range(ROUNDS):
        apart: dict[int, list[float]] = {}
        for (part, _), end in zip(alone, chosen, strict=True):
            for place, value in zip(part.places.tolist(), end.vector.tolist(), strict=True):
                apart.setdefault(place, []).append(value)
        for place, values in apart.items():
            vector[place] = _median(values)
        nearest = [min(ends, key=lambda s: _distance(part, s, vector)) for part, ends in alone]
        if all(a is b for a, b in zip(nearest, chosen, strict=True)):
            break
        chosen = nearest
    return vector


def _distance(part: Part, end: Start, vector: Array) -> float:
    """Return how far the shared unknowns of an end are from those of a vector of all unknowns."""
    shared = np.isin(part.places, part.unshared, invert=True)
    here, common = end.vector[shared], vector[part.places[shared]]
    size = np.abs(here) + np.abs(common)
    return float(np.sum(np.abs(here - common) / np.where(size > 0, size, 1.0)))


def _beside_shared(
    forward: ForwardMap, part: Part, vector: Array, index: int, control: Control, runs: list[Start]
) -> Array:
    """Return an experiment's own unknowns, fitted at the shared ones of all, from `vector`."""
    start = vector[part.unshared]
    if control.should_stop() or not len(start):
        return start
    held = with_engines_of(forward, part.alone_at(vector))
    end = START_SEARCH.run(held, index, start, control)
    runs.append(end)
    return end.vector if math.isfinite(end.cost) else start


def _median(values: Sequence[float]) -> float:
    """Return the median, of positive values that of their logarithms."""
    if len(values) > 1 and min(values) > 0.0:
        return float(np.exp(np.median(np.log(values))))
    return float(np.median(values))
