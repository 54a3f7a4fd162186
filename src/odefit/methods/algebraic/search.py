"""The search for candidates from derivatives of the data, each evaluated on the trajectories."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from odefit.common.arrays import ComplexArray
from odefit.methods.algebraic.candidates import Candidate, candidate
from odefit.methods.algebraic.derivatives import DerivativeEstimate, Differentiation, SmoothedData
from odefit.methods.algebraic.preparation import Preparation
from odefit.methods.algebraic.refinement import Refinement
from odefit.methods.algebraic.solving import KnownSolutions, held_values, solutions_at
from odefit.methods.algebraic.trajectories import Trajectories
from odefit.methods.smoothing import Smoother

NEARLY_REAL = 0.5
"""Relative imaginary part up to which the real part of a solution is a candidate: errors of the
derivatives split a double solution into a complex pair."""

MAX_REFINED = 3  # largest number of candidates that are refined for each way of differentiation


@dataclass(frozen=True, eq=False)
class EvaluatedCandidate:
    """A candidate with its cost on the true trajectories."""

    candidate: Candidate
    values: ComplexArray  # all unknowns of the polynomial system, shape (unknowns,)
    differentiation: Differentiation  # how the data were differentiated
    # what is minimised, and the weighted sum of squared residuals
    cost: float
    objective: float


class Search:
    """The search for all solutions at the data; `rng` draws the paths of homotopies."""

    def __init__(
        self,
        preparation: Preparation,
        data: SmoothedData,
        trajectories: Trajectories,
        rng: np.random.Generator,
    ) -> None:
        self.preparation = preparation
        self.data = data
        self.trajectories = trajectories
        self.rng = rng
        self.nearby: KnownSolutions | None = None
        self.times: tuple[float, ...] = ()
        self.best_estimate: DerivativeEstimate | None = None
        self._lowest_cost = math.inf
        self._refinements: dict[Smoother, Refinement] = {}

    def candidates(
        self, differentiations: Sequence[Differentiation], attempts: int
    ) -> list[EvaluatedCandidate]:
        """Return the candidates of several ways to differentiate the data.

        Paths that fail are tried again, `attempts` times in all.
        """
        estimates = [self.data.differentiate(d) for d in differentiations]
        parameters = np.array([self._parameters(estimate) for estimate in estimates])
        found: list[EvaluatedCandidate] = []
        most = -1 if not self.times else 0 if self.nearby is None else len(self.nearby.solutions)
        path_ends = solutions_at(self.preparation, parameters, self.rng, attempts=attempts)
        square, count = self.preparation.square, self.preparation.times_per_experiment
        control = self.trajectories.control
        for estimate, at, ends in zip(estimates, parameters, path_ends, strict=True):
            if control.should_stop() and (found or control.cut_off.reached):
                break
            times = estimate.times[::count]
            if len(ends.points) > most:
                most, self.times = len(ends.points), times
                if count == 1:
                    self.nearby = KnownSolutions(ends.points, at)
            if not len(ends.points):
                continue
            solutions = square.all_unknowns(ends.points, np.tile(at, (len(ends.points), 1)))
            how = estimate.differentiation
            evaluated = [
                self._evaluated(self.preparation.at_first_times(v), times, how) for v in solutions
            ]
            own = sorted((c for c in evaluated if c is not None), key=by_cost)
            nearly_real = [c for c in own if c.candidate.imaginary <= NEARLY_REAL]
            # Where no solution is real, the one with the least imaginary part is a start.
            own = nearly_real or sorted(own, key=lambda c: c.candidate.imaginary)[:1]
            refined = self._refined(own[:MAX_REFINED], times, how)
            found += [*own, *refined]
            lowest = min((c.cost for c in (*own, *refined)), default=math.inf)
            if self.best_estimate is None or lowest < self._lowest_cost:
                self.best_estimate, self._lowest_cost = estimate, lowest
        return found

    def _evaluated(
        self,
        values: ComplexArray,
        times: tuple[float, ...],
        differentiation: Differentiation,
        suffix: str = "",
    ) -> EvaluatedCandidate | None:
        """Return the candidate of a solution; None where its trajectory fails."""
        if self.trajectories.control.cut_off.reached:
            return None
        origin = differentiation.name + suffix
        made = candidate(self.preparation.at_one_time, values, times, origin)
        evaluation = None if made is None else self.trajectories.evaluated(made.vector)
        if made is None or evaluation is None:
            return None
        cost, objective = evaluation.cost, evaluation.objective
        return EvaluatedCandidate(made, values, differentiation, cost, objective)

    def _refined(
        self,
        candidates: Sequence[EvaluatedCandidate],
        times: tuple[float, ...],
        differentiation: Differentiation,
    ) -> list[EvaluatedCandidate]:
        """Return those candidates that low derivatives at more times improve, improved."""
        if not self.preparation.free_states or not candidates:
            return []
        smoother = differentiation.smoother
        if smoother not in self._refinements:
            system = self.preparation.at_one_time
            self._refinements[smoother] = Refinement(system, self.data, smoother)
        refinement = self._refinements[smoother]
        middle = tuple(several[0] for several in refinement.times)
        found = []
        for one in candidates:
            values = refinement.refined(one.values, times)
            if values is not None:
                better = self._evaluated(values, middle, differentiation, ", refined")
                if better is not None and better.cost < one.cost:
                    found.append(better)
                    if better.cost <= self.trajectories.zero:
                        break  # no candidate can fit better than to rounding
        return found

    def _parameters(self, estimate: DerivativeEstimate) -> ComplexArray:
        """Return the parameters of the square system for given derivatives."""
        square = self.preparation.square
        points = [
            expansion.expansion_point(time, square.order)
            for expansion, time in zip(square.system.expansions, estimate.times, strict=True)
        ]
        held = held_values(self.preparation).astype(complex)
        return square.pack(estimate.targets.astype(complex), held, points)


def by_cost(evaluated: EvaluatedCandidate) -> float:
    """Return the cost, as a key for sorting."""
    return evaluated.cost
