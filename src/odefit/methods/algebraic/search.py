"""From views of the data to candidates, each judged on the true trajectories."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from odefit.methods.algebraic.candidates import Candidate, candidate
from odefit.methods.algebraic.derivatives import Derivatives, Sight, View
from odefit.methods.algebraic.preparation import Preparation
from odefit.methods.algebraic.refinement import Refinement
from odefit.methods.algebraic.solving import held_values, solutions_at
from odefit.methods.algebraic.trajectories import Trajectories
from odefit.methods.smoothing import Smoother
from odefit.problem.arrays import ComplexArray

NEARLY_REAL = 0.5
"""Relative imaginary part up to which the real part is worth a try: errors of the derivatives
split a double solution into a complex pair."""

REFINED = 3
"""Candidates of a view that are refined, the best first."""


@dataclass(frozen=True, eq=False)
class Scored:
    """A candidate on the true trajectories.

    Attributes
    ----------
    candidate
        See there.
    values
        All unknowns of the polynomial system.
    view
        Of the data that led to it.
    cost, objective
        What is minimised, and the weighted sum of squares.
    """

    candidate: Candidate
    values: ComplexArray
    view: View
    cost: float
    objective: float


class Search:
    """All solutions at the data.

    Parameters
    ----------
    preparation, derivatives, trajectories
        The equations, the data, and what candidates are judged by.
    rng
        Of the detours.

    Attributes
    ----------
    nearby
        The solutions at the view that showed most of them, and its parameters; None where
        several times are used together.
    times
        By experiment, where that view differentiates.
    sight
        Of the data, that led to the best candidate so far.
    """

    def __init__(
        self,
        preparation: Preparation,
        derivatives: Derivatives,
        trajectories: Trajectories,
        rng: np.random.Generator,
    ) -> None:
        self.preparation = preparation
        self.derivatives = derivatives
        self.trajectories = trajectories
        self.rng = rng
        self.nearby: tuple[ComplexArray, ComplexArray] | None = None
        self.times: tuple[float, ...] = ()
        self.sight: Sight | None = None
        self._best = math.inf
        self._refinements: dict[Smoother, Refinement] = {}

    def candidates(self, views: Sequence[View], attempts: int) -> list[Scored]:
        """What `views` lead to, with so many `attempts` at paths that fail."""
        sights = [self.derivatives.sight(view) for view in views]
        parameters = np.array([self._parameters(sight) for sight in sights])
        found: list[Scored] = []
        most = -1 if not self.times else 0 if self.nearby is None else len(self.nearby[0])
        everything = solutions_at(self.preparation, parameters, self.rng, attempts=attempts)
        square = self.preparation.square
        for sight, at, ends in zip(sights, parameters, everything, strict=True):
            if self.trajectories.control.should_stop() and found:
                break
            times = sight.times[:: self.preparation.copies]
            if len(ends.points) > most:
                most, self.times = len(ends.points), times
                if self.preparation.copies == 1:
                    self.nearby = ends.points, at
            if not len(ends.points):
                continue
            everything_there = square.all_unknowns(ends.points, np.tile(at, (len(ends.points), 1)))
            once = [self.preparation.first_copies(v) for v in everything_there]
            scored = [self._scored(v, times, sight.view) for v in once]
            own = sorted((c for c in scored if c is not None), key=by_cost)
            nearly = [c for c in own if c.candidate.imaginary <= NEARLY_REAL]
            # Where nothing is real, the least complex is as good a start as any.
            own = nearly or sorted(own, key=lambda c: c.candidate.imaginary)[:1]
            refined = self._refined(own[:REFINED], times, sight.view)
            found += [*own, *refined]
            lowest = min((c.cost for c in (*own, *refined)), default=math.inf)
            if self.sight is None or lowest < self._best:
                self.sight, self._best = sight, lowest
        return found

    def _scored(
        self, values: ComplexArray, times: tuple[float, ...], view: View, how: str = ""
    ) -> Scored | None:
        made = candidate(self.preparation.once, values, times, view.name + how)
        if made is None:
            return None
        evaluation = self.trajectories.evaluated(made.vector)
        if evaluation is None:
            return None
        return Scored(made, values, view, evaluation.cost, evaluation.objective)

    def _refined(
        self, candidates: Sequence[Scored], times: tuple[float, ...], view: View
    ) -> list[Scored]:
        """The candidates improved by low derivatives at more times."""
        if not self.preparation.anywhere or not candidates:
            return []
        key = view.smoother
        if key not in self._refinements:
            self._refinements[key] = Refinement(self.preparation.once, self.derivatives, key)
        refinement = self._refinements[key]
        middle = tuple(several[0] for several in refinement.times)
        found = []
        for one in candidates:
            values = refinement.improved(one.values, times)
            if values is not None:
                better = self._scored(values, middle, view, ", refined")
                if better is not None and better.cost < one.cost:
                    found.append(better)
                    if better.cost <= self.trajectories.zero:
                        break  # nothing can fit better than to rounding
        return found

    def _parameters(self, sight: Sight) -> ComplexArray:
        square = self.preparation.square
        around = [
            expansion.expansion_point(time, square.order)
            for expansion, time in zip(square.system.expansions, sight.times, strict=True)
        ]
        held = held_values(self.preparation).astype(complex)
        return square.pack(sight.targets.astype(complex), held, around)


def by_cost(scored: Scored) -> float:
    """For sorting."""
    return scored.cost
