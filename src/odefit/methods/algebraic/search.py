"""The search for candidates from derivatives of the data, and their refinement."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter

import numpy as np

from odefit.common.arrays import Array, ComplexArray, IntArray
from odefit.methods.algebraic.candidates import Candidate, candidate
from odefit.methods.algebraic.derivatives import DerivativeEstimate, Differentiation, SmoothedData
from odefit.methods.algebraic.preparation import Preparation
from odefit.methods.algebraic.solving import KnownSolutions, held_values, solutions_at
from odefit.methods.algebraic.trajectories import Trajectories
from odefit.methods.smoothing import Smoother
from odefit.structure.solutions.auxiliary_states import fill_dependent_states
from odefit.structure.taylor_integration import taylor_integrate

FRACTIONS = (0.5, 0.1, 0.25, 0.4, 0.6, 0.75, 0.9)
"""The times as fractions of the segment; the states are returned at the first of them."""

MAX_STEPS = 30  # largest number of Gauss-Newton steps
STEP_TOLERANCE = 1e-12  # relative step at which the iteration ends


class Refinement:
    """The overdetermined equations of all expansions at several times.

    Candidates are refined by low derivatives at several times instead of high ones at one time. The
    states at each time are separate unknowns, so that derivatives of the data still suffice. As the
    parameters are shared, more times need lower orders, whose errors are smaller by many decades.
    Every equation is weighted by the error of its derivative. The preparation has free states and
    one time for each experiment.
    """

    def __init__(self, preparation: Preparation, data: SmoothedData, smoother: Smoother) -> None:
        self.system = system = preparation.system
        self.square = preparation.square
        column = {name: i for i, name in enumerate(system.names)}
        self.order = preparation.square.order
        self.times: list[list[float]] = []
        # The following lists have an element for each expansion.
        self.points: list[tuple[ComplexArray, ComplexArray]] = []
        self.targets: list[Array] = []  # shape (times, order + 1, outputs)
        self.weights: list[Array] = []  # the same shape
        self.state_columns: list[IntArray] = []  # columns of the expansion's own states
        for k, (expansion, segment) in enumerate(
            zip(system.expansions, data.segments, strict=True)
        ):
            times = [segment.at(fraction) for fraction in FRACTIONS]
            shape = (len(times), self.order + 1, expansion.outputs)
            targets, weights = np.zeros(shape), np.zeros(shape)
            for i, name in enumerate(expansion.observables):
                curve = data.interpolant(k, name, smoother)
                scale = float(np.abs(segment.series[name][1]).max(initial=0.0)) or 1.0
                for j, time in enumerate(times):
                    targets[j, :, i] = curve.taylor(time, self.order)
                    errors = np.maximum(curve.errors(time, self.order), 1e-15 * scale)
                    weights[j, :, i] = np.where(np.isfinite(errors), 1.0 / errors, 0.0)
            # Algebraic constraints hold exactly.
            exact = 1e3 * float(weights.max(initial=1.0))
            weights[:, 0, len(expansion.observables) :] = exact
            self.times.append(times)
            points = [expansion.expansion_point(t, self.order) for t in times]
            known = np.array([point.known for point in points])
            self.points.append((known, np.array([point.functions for point in points])))
            self.targets.append(targets)
            self.weights.append(weights)
            self.state_columns.append(
                np.array([column[n] for n in expansion.states.values()], dtype=np.intp)
            )
        owned = {int(c) for columns in self.state_columns for c in columns}
        self.shared = np.array(
            [c for c in preparation.square.solved if int(c) not in owned], dtype=np.intp
        )

    def refined(self, values: ComplexArray, times: tuple[float, ...]) -> ComplexArray | None:
        """Refine a candidate, with its states at `times`, by a damped Gauss-Newton iteration.

        The returned states are those at the middle of the segments. Returns None if the trajectory
        does not span the segments, or if nothing was gained.
        """
        states = self._states_at_times(values.real.astype(complex), times)
        if states is None:
            return None
        point = values.real.copy()
        cost, residuals, jacobian = self._equations(point, states)
        first_cost = cost
        damping = 0.0
        for _ in range(MAX_STEPS):
            if not np.isfinite(cost):
                return None
            step = _step(jacobian, residuals, damping)
            new_point, new_states = self._moved(point, states, step)
            new_cost, *new_model = self._equations(new_point, new_states)
            if new_cost < cost:
                small = np.abs(new_point - point) <= STEP_TOLERANCE * np.abs(new_point)
                gained = new_cost < 0.999 * cost
                point, states, cost = new_point, new_states, new_cost
                residuals, jacobian = new_model
                damping *= 0.1
                if small.all() or not gained:
                    break
            else:
                damping = max(100 * damping, 1e-14)
                if damping > 1e4:
                    break
        if not cost < first_cost:
            return None
        result = point.astype(complex)
        for k, columns in enumerate(self.state_columns):
            result[columns] = states[k][0]
        return result

    def _states_at_times(
        self, values: ComplexArray, times: tuple[float, ...]
    ) -> list[Array] | None:
        """Return the states of each expansion at its times, integrated from time to time."""
        all_states = []
        for k, columns in enumerate(self.state_columns):
            states = np.zeros((len(self.times[k]), len(columns)))
            later = sorted(t for t in self.times[k] if t >= times[k])
            earlier = sorted((t for t in self.times[k] if t < times[k]), reverse=True)
            for direction in (later, earlier):
                now, reached = times[k], values
                for time in direction:
                    moved = taylor_integrate(self.system, k, reached, now, time)
                    if moved is None:
                        return None
                    now, reached = time, moved
                    places_states = fill_dependent_states(self.system, k, reached, time)[
                        columns
                    ].real
                    states[self.times[k].index(time)] = places_states
            all_states.append(states)
        return all_states

    @np.errstate(all="ignore")
    def _equations(self, point: Array, states: list[Array]) -> tuple[float, Array, Array]:
        """Return half the sum of squares, weighted residuals, and their Jacobian.

        Its first columns belong to the shared unknowns, the others to the states.
        """
        sizes = [s.size for s in states]
        width = len(self.shared) + sum(sizes)
        residuals, jacobian = [], []
        first = len(self.shared)
        shared = {int(c): i for i, c in enumerate(self.shared)}
        for k, (known, functions) in enumerate(self.points):
            expansion = self.system.expansions[k]
            count = len(self.times[k])
            values = np.tile(point.astype(complex), (count, 1))
            values[:, self.state_columns[k]] = states[k]
            taylor = self.system.run(k, values, self.order, known, functions)
            assert taylor.derivatives is not None
            outputs = taylor.outputs[:, :, : expansion.outputs].real
            weights = self.weights[k]
            residuals.append(((outputs - self.targets[k]) * weights).reshape(-1))
            derivatives = taylor.derivatives[:, :, : expansion.outputs].real * weights[..., None]
            columns = np.zeros((*weights.shape, width))
            place_of = {int(c): i for i, c in enumerate(self.state_columns[k])}
            for local, column in enumerate(self.system.columns[k]):
                if int(column) in place_of:
                    for j in range(count):
                        place = first + j * len(place_of) + place_of[int(column)]
                        columns[j, :, :, place] = derivatives[j, :, :, local]
                elif int(column) in shared:
                    columns[:, :, :, shared[int(column)]] = derivatives[:, :, :, local]
            jacobian.append(columns.reshape(-1, width))
            first += sizes[k]
        stacked = np.concatenate(residuals)
        return 0.5 * float(stacked @ stacked), stacked, np.concatenate(jacobian)

    def _moved(self, point: Array, states: list[Array], step: Array) -> tuple[Array, list[Array]]:
        """Return the shared unknowns and the states after a step."""
        moved = point.copy()
        moved[self.shared] += step[: len(self.shared)]
        start, shifted = len(self.shared), []
        for s in states:
            shifted.append(s + step[start : start + s.size].reshape(s.shape))
            start += s.size
        return moved, shifted


def _step(jacobian: Array, residuals: Array, damping: float) -> Array:
    """Return the Gauss-Newton step of least norm, damped in proportion to the columns."""
    norms = np.linalg.norm(jacobian, axis=0)
    norms = np.where(norms > 0, norms, 1.0)
    scaled = jacobian / norms
    if damping > 0:
        scaled = np.vstack([scaled, np.sqrt(damping) * np.eye(scaled.shape[1])])
        residuals = np.concatenate([residuals, np.zeros(scaled.shape[1])])
    if not np.isfinite(scaled).all():
        return np.full(len(norms), np.nan)
    return np.asarray(-np.linalg.lstsq(scaled, residuals, rcond=1e-14)[0] / norms)


NEARLY_REAL = 0.5
"""Relative imaginary part up to which the real part of a solution is a candidate: errors of the
derivatives split a double solution into a complex pair."""

by_cost = attrgetter("cost")  # the key by which candidates and starts are sorted

MAX_REFINED = 3  # largest number of candidates refined for each way of differentiation


@dataclass(frozen=True, eq=False)
class EvaluatedCandidate:
    """A candidate with its cost on the true trajectories."""

    candidate: Candidate
    values: ComplexArray  # all unknowns of the polynomial system, shape (unknowns,)
    differentiation: Differentiation  # how the data were differentiated
    # the minimised cost, and the weighted sum of squared residuals
    cost: float
    objective: float


class CandidateSearch:
    """The search for all solutions at the data; `rng` draws the paths of the homotopies."""

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

        Failed paths are repeated, up to `attempts` times in all.
        """
        estimates = [self.data.differentiate(d) for d in differentiations]
        parameters = np.array([self._parameters(estimate) for estimate in estimates])
        refined_all: list[EvaluatedCandidate] = []
        most = -1 if not self.times else 0 if self.nearby is None else len(self.nearby.solutions)
        path_ends = solutions_at(self.preparation, parameters, self.rng, attempts=attempts)
        square, count = self.preparation.square, self.preparation.times_per_experiment
        control = self.trajectories.control
        for estimate, at, ends in zip(estimates, parameters, path_ends, strict=True):
            if control.should_stop() and (refined_all or control.cut_off.reached):
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
            real_ones = sorted((c for c in evaluated if c is not None), key=by_cost)
            nearly_real = [c for c in real_ones if c.candidate.imaginary <= NEARLY_REAL]
            # If no solution is real, the one with the smallest imaginary part is a start.
            real_ones = nearly_real or sorted(real_ones, key=lambda c: c.candidate.imaginary)[:1]
            refined = self._refined(real_ones[:MAX_REFINED], times, how)
            refined_all += [*real_ones, *refined]
            lowest = min((c.cost for c in (*real_ones, *refined)), default=math.inf)
            if self.best_estimate is None or lowest < self._lowest_cost:
                self.best_estimate, self._lowest_cost = estimate, lowest
        return refined_all

    def _evaluated(
        self,
        values: ComplexArray,
        times: tuple[float, ...],
        differentiation: Differentiation,
        suffix: str = "",
    ) -> EvaluatedCandidate | None:
        """Return the candidate of a solution; None if its trajectory fails."""
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
        """Return the candidates that low derivatives at more times have improved."""
        if not self.preparation.free_states or not candidates:
            return []
        smoother = differentiation.smoother
        if smoother not in self._refinements:
            system = self.preparation.at_one_time
            self._refinements[smoother] = Refinement(system, self.data, smoother)
        refinement = self._refinements[smoother]
        middle = tuple(several[0] for several in refinement.times)
        refined = []
        for one in candidates:
            values = refinement.refined(one.values, times)
            if values is not None:
                better = self._evaluated(values, middle, differentiation, ", refined")
                if better is not None and better.cost < one.cost:
                    refined.append(better)
                    if better.cost <= self.trajectories.zero:
                        break  # no candidate can fit better than rounding allows
        return refined

    def _parameters(self, estimate: DerivativeEstimate) -> ComplexArray:
        """Return the parameters of the square system for given derivatives."""
        square = self.preparation.square
        points = [
            expansion.expansion_point(time, square.order)
            for expansion, time in zip(square.system.expansions, estimate.times, strict=True)
        ]
        held = held_values(self.preparation).astype(complex)
        return square.pack(estimate.targets.astype(complex), held, points)
