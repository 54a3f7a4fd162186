"""The algebraic method, which finds all solutions without a guess and without bounds.

O. Bassik et al., Robust parameter estimation for rational ordinary differential equations.
Derivatives of the outputs are estimated from the data. With these derivatives the equations form a
polynomial system, and homotopy continuation finds all its solutions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from odefit.common.arrays import Array
from odefit.common.errors import InputError, counted
from odefit.common.option_checks import whole
from odefit.methods.algebraic.derivatives import Differentiation, SmoothedData
from odefit.methods.algebraic.indistinguishable import indistinguishable_candidates
from odefit.methods.algebraic.message import result_message
from odefit.methods.algebraic.preparation import prepare
from odefit.methods.algebraic.search import CandidateSearch, EvaluatedCandidate, by_cost
from odefit.methods.algebraic.trajectories import Trajectories
from odefit.methods.estimate import Completeness, Estimate, Start, Status
from odefit.methods.fit_measure import FitMeasure
from odefit.methods.method import Method
from odefit.methods.multi_start import MultiStart
from odefit.methods.running.control import Control, Progress, interruptible
from odefit.methods.single_shooting import SingleShooting
from odefit.methods.smoothing import AAA, Chebyshev, GaussianProcess, Smoother, noise_level
from odefit.problem.problem import Problem
from odefit.problem.variants.features import refuse_integrated_features
from odefit.problem.variants.sizes import expected_sizes
from odefit.simulation.engines.registry import EngineName

FRACTIONS = (0.5, 0.35, 0.65, 0.2, 0.8)
"""Times at which derivatives are taken, as fractions of the interval, the best first."""

MAX_NOISELESS = 1e-10  # noise relative to the largest value up to which data count as exact
MIN_POINTS_FOR_NOISE = 16  # shortest series whose noise is estimated
TIMES_IF_NOISY = 2  # number of times used together for noisy data
MAX_POLISHED = 8  # largest number of candidates polished while none explains the data
PATHS_AT_ONCE = 60  # tracked together when data are differentiated in further ways
FALLBACK = MultiStart(SingleShooting())  # used if no candidate comes near the data
MIN_MISFIT = 1e-6  # relative residuals that always count as a fit
ROUNDED = 1e-12  # difference of an unknown near zero, relative to its typical size
SAME_CANDIDATE = 1e-6  # relative difference up to which two candidates are the same
SAME_AS_POLISHED = 0.1  # relative difference up to which an unpolished candidate is left out


@dataclass(frozen=True)
class Algebraic(Method):
    """Differentiate the data, solve the polynomial system, and keep the solutions that fit.

    Attributes
    ----------
    smoothers
        The smoothers that turn the data into functions; by default AAA for data without noise, and
        a Gaussian process and polynomials for noisy data.
    fractions
        Times at which derivatives are taken, as fractions of the interval; all are tried, and the
        best fit is kept.
    points
        Number of times of each experiment whose equations are solved together: with more times,
        lower derivatives suffice. By default two for noisy data, otherwise one.
    polish
        Improve candidates by a local search on the true trajectories.
    complete
        Also find all other solutions that agree with the best in every derivative.
    fallback
        Use single shooting from many starts if no solution comes near the data.
    engine
        The integration engine of the trajectories.
    """

    smoothers: Sequence[Smoother] | None = None
    fractions: Sequence[float] = FRACTIONS
    points: int | None = None
    polish: bool = True
    complete: bool = True
    fallback: bool = True
    engine: EngineName = "auto"

    def __post_init__(self) -> None:
        if not self.fractions or not all(0 <= f <= 1 for f in self.fractions):
            raise InputError(
                "Algebraic, fractions: expected numbers between 0 and 1, "
                f"got {tuple(self.fractions)!r}"
            )
        if self.points is not None:
            whole(self.points, "Algebraic, points")
        if self.smoothers is not None and not self.smoothers:
            raise InputError("Algebraic, smoothers: expected at least one, or None")

    @property
    def name(self) -> str:
        """The method's name in results."""
        return "Algebraic"

    def solve(self, problem: Problem, control: Control) -> Estimate:
        """Estimate the unknowns from all solutions of the polynomial system at the data.

        Raises InputError if the model has no Taylor series, or there are too few measurements.
        """
        refuse_integrated_features(problem, "the algebraic method")
        with interruptible(control):
            return _AlgebraicEstimation(self, problem, control).estimate()


class _AlgebraicEstimation:
    """The estimation of one problem by the algebraic method."""

    def __init__(self, method: Algebraic, problem: Problem, control: Control) -> None:
        self.method = method
        self.control = control
        self.starts: list[Start] = []
        self.measure = FitMeasure.of(problem)
        rng = np.random.default_rng(control.seed)
        self._report("preparing the equations")
        self.noisy = _noisy(problem)
        self.preparation = prepare(
            problem,
            points=method.points or (TIMES_IF_NOISY if self.noisy else 1),
            stop=control.should_stop,
            report=self._solutions_so_far,
        )
        self.trajectories = Trajectories(problem, method.engine, control)
        times = self.preparation.times_per_experiment
        self.data = SmoothedData(self.preparation.square, times)
        self.smoothers: Sequence[Smoother] = (AAA(),)
        if method.smoothers is not None:
            self.smoothers = tuple(method.smoothers)
        elif self.noisy:
            self.smoothers = (GaussianProcess(), Chebyshev(), AAA())
        elif self._shortest() < MIN_POINTS_FOR_NOISE:
            self.smoothers = (AAA(), GaussianProcess())
        self.rounds = self._rounds()
        self.noise = self.data.noise(self.smoothers[0])
        self.search = CandidateSearch(self.preparation, self.data, self.trajectories, rng)

    def estimate(self) -> Estimate:
        """Estimate the unknowns, see :meth:`Algebraic.solve`."""
        candidates: list[EvaluatedCandidate] = []
        ends: list[Start] = []
        for done, differentiations in enumerate(self.rounds, 1):
            if self.control.should_stop() and (ends or self.control.cut_off.reached):
                break
            self._report("solving the polynomial system")
            attempts = 1 if len(differentiations) == 1 else 2
            evaluated = self.search.candidates(differentiations, attempts)
            candidates = sorted([*candidates, *evaluated], key=by_cost)
            exact = candidates and candidates[0].cost <= self.trajectories.zero
            if not self.noisy and len(self.rounds) == 2 and done == 1 and not exact:
                continue  # other times cost little, and may add some digits
            ends = self._improved(candidates)
            if any(self._explained(end) for end in ends[:MAX_POLISHED]):
                break
        best = min((s for s in ends if math.isfinite(s.cost)), key=by_cost, default=None)
        fallback = self.method.polish and self.method.fallback
        if fallback and not self.control.should_stop() and (best is None or self._hopeless(best)):
            return self._fallback(ends, len(candidates))
        completeness = None
        self.starts = ends
        if best is not None and self.method.complete and not self.control.should_stop():
            self._report("looking for other solutions")
            completeness = self._add_indistinguishable(best)
        return Estimate(
            tuple(replace(s, index=i) for i, s in enumerate(self.starts)),
            self._status(best),
            self._message(best, len(candidates)),
            completeness=completeness,
        )

    def _fallback(self, ends: list[Start], candidates: int) -> Estimate:
        """Return the result of a search from many starts, with a message that names it."""
        self._report("there is no solution to continue from: searching from many starts")
        searched = FALLBACK.solve(self.preparation.problem, self.control)
        message = self._message(None, candidates)
        starts = [replace(s, status=Status.NOT_CONVERGED) for s in ends]
        return replace(
            searched,
            starts=tuple(replace(s, index=i) for i, s in enumerate([*searched.starts, *starts])),
            message=f"{message}; the result shown is from {FALLBACK.name}: {searched.message}",
        )

    # Ways to differentiate the data -----------------------------------------------------------

    def _rounds(self) -> list[list[Differentiation]]:
        """Return the ways to differentiate the data, in rounds in order of preference."""
        fractions: Sequence[float | None] = (None,)
        if self.preparation.free_states:
            fractions = self.method.fractions
        ways = [Differentiation(s, f) for s in self.smoothers for f in fractions]
        # With noise all times are tried; without noise the middle nearly always suffices.
        first = len(fractions) if len(self.smoothers) > 1 else 1
        d = len(self.preparation.generic.solutions)
        at_once = max(PATHS_AT_ONCE // d, 1)
        rest = [ways[i : i + at_once] for i in range(first, len(ways), at_once)]
        return [ways[:first], *rest]

    # On the true trajectories -----------------------------------------------------------------

    def _improved(self, candidates: Sequence[EvaluatedCandidate]) -> list[Start]:
        """Return distinct candidates as starts, polished until one explains the data.

        Candidates that are not polished are returned unchanged if they come from the same
        differentiation as the best.
        """
        ends: list[Start] = []
        unpolished: list[tuple[Differentiation, Start]] = []
        best: EvaluatedCandidate | None = None
        explained = False
        for one in candidates:
            vector = one.candidate.vector
            if self.control.should_stop() and ends:
                break
            if any(self._close(vector, v) for s in ends for v in (s.start, s.vector)):
                continue
            end = self.trajectories.start(one.candidate, one.cost, one.objective)
            if (
                self.method.polish
                and self.trajectories.allowed(vector)
                and not explained
                and len(ends) < MAX_POLISHED
            ):
                end = self.trajectories.polished(end)
                explained = self._explained(end)
                ends.append(end)
            else:
                unpolished.append((one.differentiation, end))
            if best is None or one.cost < best.cost:
                best = one
        shown = [end for way, end in unpolished if best and way == best.differentiation]
        if not self.method.polish:
            return shown
        if not ends:  # all are outside the bounds, so polishing starts from the nearest bounds
            return [self.trajectories.polished(end) for end in shown[:MAX_POLISHED]]
        others = [
            s
            for s in shown
            if not any(self._close(s.vector, e.start, SAME_AS_POLISHED) for e in ends)
        ]
        return [*ends, *(replace(s, status=Status.NOT_CONVERGED) for s in others)]

    def _shortest(self) -> int:
        """Return the number of points of the shortest series."""
        return min(len(t) for s in self.data.segments for t, _ in s.series.values())

    def _hopeless(self, end: Start) -> bool:
        """Return whether an answer does not fit, and noise does not explain it."""
        return not self._explained(end) and self.trajectories.unfit(end)

    def _explained(self, end: Start) -> bool:
        """Return whether an answer explains the data up to their noise."""
        return self.trajectories.explained(end, self.data.segments, self.noise)

    def _close(self, a: Array, b: Array, tolerance: float = SAME_CANDIDATE) -> bool:
        """Return whether two vectors of unknowns are the same candidate."""
        sizes = expected_sizes(self.preparation.problem)
        allowed = np.maximum(tolerance * np.maximum(np.abs(a), np.abs(b)), ROUNDED * sizes)
        return bool((np.abs(a - b) <= allowed).all())

    # Other solutions --------------------------------------------------------------------------

    def _add_indistinguishable(self, best: Start) -> Completeness | None:
        """Add the other solutions with the outputs of the best to the starts, and count them.

        They are computed from the best candidate with its exact derivatives. Once all are known,
        any other candidate that fits as well is a less exact copy of one of them.
        """
        search = self.search
        system = self.preparation.at_one_time
        indistinguishable = indistinguishable_candidates(
            system, best.vector, search.times, search.rng, search.nearby
        )
        if indistinguishable is None:
            return None
        limit = self.trajectories.equal_cost(best)
        others: list[Start] = []
        for made in indistinguishable.candidates:
            evaluation = self.trajectories.evaluated(made.vector)
            if evaluation is None or evaluation.cost > limit:
                continue  # known initial values or numbers distinguish them
            end = self.trajectories.start(made, evaluation.cost, evaluation.objective)
            if self.method.polish and self.trajectories.allowed(made.vector):
                polished = self.trajectories.polished(end)
                # Polishing could move it to another solution, and it would be lost.
                if not any(self._close(polished.vector, s.vector) for s in (best, *others)):
                    end = polished
            others.append(end)
        counted = indistinguishable.completeness
        if system.held:  # with other values of these there may be other solutions
            counted = replace(counted, known=False)
        every = counted.known and counted.found == counted.possible
        complete = every or not counted.lost
        rest = [s for s in self.starts if s is not best and (s.cost > limit or not complete)]
        self.starts = [best, *others, *rest]
        if system.free_initial_values and not system.transcendental:
            return counted
        # Known initial values or non-polynomial relations have excluded the others.
        valid = 1 + len(others)
        every = complete and counted.found == counted.real and not system.transcendental
        every = every and not system.held
        return replace(counted, possible=valid, found=valid, known=every, real=valid)

    # Message ------------------------------------------------------------------------------------

    def _status(self, best: Start | None) -> Status:
        if self.control.interrupted.is_set():
            return self.control.early
        if best is None:
            return Status.TIME_LIMIT if self.control.out_of_time else Status.FAILED
        if self.control.out_of_time:
            return Status.TIME_LIMIT
        return best.status

    def _message(self, best: Start | None, count: int) -> str:
        fits, segments = False, self.data.segments
        if best is not None:
            fits = self.trajectories.explained(best, segments, self.noise, MIN_MISFIT)
            if not fits and self._shortest() < MIN_POINTS_FOR_NOISE:
                # The noise of so few points cannot be estimated.
                fits = not self.trajectories.unfit(best)
        return result_message(self.preparation, self.data, self.search, best, fits, count)

    def _report(self, message: str) -> None:
        if self.control.report is not None:
            best = min((self.measure.of_start(s) for s in self.starts), default=math.inf)
            progress = Progress(len(self.starts), 0, best, 0, message, measure=self.measure.name)
            self.control.report(progress)

    def _solutions_so_far(self, count: int) -> None:
        self._report(f"preparing the equations: {counted(count, 'solution')} so far")


def _noisy(problem: Problem) -> bool:
    """Return whether the noise of any series is larger than rounding."""
    for condition in problem.conditions:
        for series in condition.series.values():
            times, first = np.unique(condition.times[series.rows], return_index=True)
            values = series.values[first]
            size = float(np.abs(values).max(initial=0.0))
            if (
                len(times) >= MIN_POINTS_FOR_NOISE
                and noise_level(times, values) > MAX_NOISELESS * size
            ):
                return True
    return False
