"""The algebraic method: all solutions, no guess, no bounds.

O. Bassik et al., Robust parameter estimation for rational ordinary differential equations.
Derivatives of the outputs are estimated from the data; with them, the equations are a polynomial
system whose solutions, all of them, are found by homotopy continuation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from odefit.methods.algebraic.derivatives import Derivatives, View
from odefit.methods.algebraic.indistinguishable import indistinguishable_candidates
from odefit.methods.algebraic.preparation import prepare
from odefit.methods.algebraic.search import Scored, Search, by_cost
from odefit.methods.algebraic.trajectories import Trajectories
from odefit.methods.algebraic.wording import message
from odefit.methods.control import Control, Progress, interruptible
from odefit.methods.estimate import Completeness, Estimate, Start, Status
from odefit.methods.multi_start import MultiStart
from odefit.methods.single_shooting import SingleShooting
from odefit.methods.smoothing import AAA, Chebyshev, GaussianProcess, Smoother, noise_level
from odefit.problem.arrays import Array
from odefit.problem.errors import InputError
from odefit.problem.option_checks import whole
from odefit.problem.problem import Problem
from odefit.simulation.engines import EngineName

FRACTIONS = (0.5, 0.35, 0.65, 0.2, 0.8)
"""Of the interval, where derivatives are taken, the best first."""

NOISY = 1e-10
"""Noise, relative to the largest value, from which data count as noisy."""

FEW = 16
"""Points below which noise cannot be told from a coarse mesh."""

POINTS_IF_NOISY = 2
"""Times that are used together where the data are noisy."""

TRIES = 8
"""Candidates that are improved on the trajectories while none explains the data."""

CHEAP = 60
"""Paths that are followed together when further views of the data are looked at."""

FALLBACK = MultiStart(SingleShooting())
"""Where the polynomial system leads to nothing."""

MISFIT = 1e-6
"""Residuals, relative to the largest value, below which nobody calls it a misfit."""


@dataclass(frozen=True)
class Algebraic:
    """Differentiate the data, solve the polynomial system, keep what fits.

    Attributes
    ----------
    smoothers
        How the data become functions; by default AAA for data without noise, and a Gaussian
        process and polynomials for the others.
    fractions
        Of the interval, where derivatives are taken; all are looked at, and what fits best
        counts.
    points
        Times of each experiment whose equations are solved together: more of them need lower
        derivatives. By default two for noisy data, and one for the others.
    polish
        Whether what is found is improved on the true trajectories.
    complete
        Whether all other solutions that agree with the best in every derivative are found too.
    engine
        Of the trajectories.
    """

    smoothers: Sequence[Smoother] | None = None
    fractions: Sequence[float] = FRACTIONS
    points: int | None = None
    polish: bool = True
    complete: bool = True
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
        """For results."""
        return "Algebraic"

    def solve(self, problem: Problem, control: Control) -> Estimate:
        """All solutions of the polynomial system at the data, and what is left of them.

        Raises
        ------
        InputError
            The model has no Taylor series, or the data too few points.
        """
        with interruptible(control):
            return _Run(self, problem, control).estimate()


class _Run:
    """One estimation."""

    def __init__(self, method: Algebraic, problem: Problem, control: Control) -> None:
        self.method = method
        self.control = control
        self.starts: list[Start] = []
        rng = np.random.default_rng(control.seed)
        self._report("preparing the equations")
        self.noisy = _noisy(problem)
        self.preparation = prepare(
            problem,
            points=method.points or (POINTS_IF_NOISY if self.noisy else 1),
            stop=control.should_stop,
            report=self._solutions_so_far,
        )
        self.trajectories = Trajectories(problem, method.engine, control)
        self.derivatives = Derivatives(self.preparation.square, self.preparation.copies)
        self.smoothers: Sequence[Smoother] = (AAA(),)
        if method.smoothers is not None:
            self.smoothers = tuple(method.smoothers)
        elif self.noisy:
            self.smoothers = (GaussianProcess(), Chebyshev(), AAA())
        elif self._shortest() < FEW:
            self.smoothers = (AAA(), GaussianProcess())
        self.rounds = self._rounds()
        self.noise = self.derivatives.noise(self.smoothers[0])
        self.search = Search(self.preparation, self.derivatives, self.trajectories, rng)

    def estimate(self) -> Estimate:
        """See :meth:`Algebraic.solve`."""
        candidates: list[Scored] = []
        ends: list[Start] = []
        for done, views in enumerate(self.rounds, 1):
            if self.control.should_stop() and ends:
                break
            self._report("solving the polynomial system")
            found = self.search.candidates(views, attempts=1 if len(views) == 1 else 2)
            candidates = sorted([*candidates, *found], key=by_cost)
            exact = candidates and candidates[0].cost <= self.trajectories.zero
            if not self.noisy and len(self.rounds) == 2 and done == 1 and not exact:
                continue  # the other views cost little, and may know some digits more
            ends = self._improved(candidates)
            if any(self._explained(end) for end in ends[:TRIES]):
                break
        best = min((s for s in ends if math.isfinite(s.cost)), key=_cost, default=None)
        if self.method.polish and not self.control.should_stop():
            hopeless = best is None or not self._explained(best)
            if hopeless and (best is None or self.trajectories.unfit(best)):
                return self._fallback(ends, len(candidates))
        counted = None
        self.starts = ends
        if best is not None and self.method.complete and not self.control.should_stop():
            self._report("looking for other solutions")
            counted = self._companions(best)
        return Estimate(
            tuple(replace(s, index=i) for i, s in enumerate(self.starts)),
            self._status(best),
            self._message(best, len(candidates)),
            completeness=counted,
        )

    def _fallback(self, ends: list[Start], candidates: int) -> Estimate:
        """What a search from many starts finds, said to be that."""
        self._report("no solution to go on from: searching from many starts")
        searched = FALLBACK.solve(self.preparation.problem, self.control)
        said = self._message(None, candidates)
        starts = [replace(s, status=Status.NOT_CONVERGED) for s in ends]
        return replace(
            searched,
            starts=tuple(replace(s, index=i) for i, s in enumerate([*searched.starts, *starts])),
            message=f"{said}; what is shown is from {FALLBACK.name}: {searched.message}",
        )

    # Views of the data ------------------------------------------------------------------------

    def _rounds(self) -> list[list[View]]:
        """Views of the data, those that are looked at first, then those of a second try."""
        fractions: Sequence[float | None] = (None,)
        if self.preparation.anywhere:
            fractions = self.method.fractions
        views = [View(s, f) for s in self.smoothers for f in fractions]
        # Noise wants more than one opinion; without it the middle is nearly always enough.
        first = len(fractions) if len(self.smoothers) > 1 else 1
        d = len(self.preparation.generic.solutions)
        at_once = max(CHEAP // d, 1)
        rest = [views[i : i + at_once] for i in range(first, len(views), at_once)]
        return [views[:first], *rest]

    # On the true trajectories -----------------------------------------------------------------

    def _improved(self, candidates: Sequence[Scored]) -> list[Start]:
        """Distinct candidates as starts, polished until one explains the data.

        What is left unpolished is shown as it is, from the view of the data that led to the best.
        """
        ends: list[Start] = []
        unpolished: list[tuple[View, Start]] = []
        best: tuple[float, View] | None = None
        explained = False
        for one in candidates:
            vector = one.candidate.vector
            if self.control.should_stop() and ends:
                break
            if any(_close(vector, s.start) or _close(vector, s.vector) for s in ends):
                continue
            end = self.trajectories.start(one.candidate, one.cost, one.objective)
            if (
                self.method.polish
                and self.trajectories.allowed(vector)
                and not explained
                and len(ends) < TRIES
            ):
                end = self.trajectories.polished(end)
                explained = self._explained(end)
                ends.append(end)
            else:
                unpolished.append((one.view, end))
            if best is None or one.cost < best[0]:
                best = one.cost, one.view
        shown = [end for view, end in unpolished if best and view == best[1]]
        if not self.method.polish:
            return shown
        if not ends:  # all are outside the bounds: from their edge, then
            return [self.trajectories.polished(end) for end in shown[:TRIES]]
        others = [s for s in shown if not any(_close(s.vector, e.start, NEAR) for e in ends)]
        return [*ends, *(replace(s, status=Status.NOT_CONVERGED) for s in others)]

    def _shortest(self) -> int:
        """Points of the shortest series."""
        return min(len(t) for w in self.derivatives.windows for t, _ in w.series.values())

    def _explained(self, end: Start) -> bool:
        return self.trajectories.explained(end, self.derivatives.windows, self.noise)

    # Other solutions --------------------------------------------------------------------------

    def _companions(self, best: Start) -> Completeness | None:
        """The other solutions with the outputs of the best: added, and counted.

        They are found from the best itself, with its exact derivatives. Once all are known,
        whatever else fits as well is one of them, less exactly.
        """
        search = self.search
        once = self.preparation.once
        found = indistinguishable_candidates(
            once, best.vector, search.times, search.rng, search.nearby
        )
        if found is None:
            return None
        level = self.trajectories.level(best)
        others: list[Start] = []
        for made in found.candidates:
            evaluation = self.trajectories.evaluated(made.vector)
            if evaluation is None or evaluation.cost > level:
                continue  # initial values that are known, or numbers, tell them apart
            end = self.trajectories.start(made, evaluation.cost, evaluation.objective)
            if self.method.polish and self.trajectories.allowed(made.vector):
                polished = self.trajectories.polished(end)
                # It would be lost if polishing took it to another solution.
                if not any(_close(polished.vector, s.vector) for s in (best, *others)):
                    end = polished
            others.append(end)
        counted = found.completeness
        every = counted.known and counted.found == counted.possible
        complete = every or not counted.lost
        rest = [s for s in self.starts if s is not best and (s.cost > level or not complete)]
        self.starts = [best, *others, *rest]
        if once.free and not once.transcendental:
            return counted
        # Known initial values, or relations that are no polynomials, have thinned them out.
        valid = 1 + len(others)
        every = complete and counted.found == counted.real and not once.transcendental
        return replace(counted, possible=valid, found=valid, known=every, real=valid)

    # Words ------------------------------------------------------------------------------------

    def _status(self, best: Start | None) -> Status:
        if self.control.interrupted.is_set():
            return Status.INTERRUPTED
        if best is None:
            return Status.TIME_LIMIT if self.control.out_of_time else Status.FAILED
        if self.control.out_of_time:
            return Status.TIME_LIMIT
        return best.status

    def _message(self, best: Start | None, count: int) -> str:
        windows = self.derivatives.windows
        fits = best is not None and self.trajectories.explained(best, windows, self.noise, MISFIT)
        if best is not None and self._shortest() < FEW:
            # So few points do not tell their noise: what could pass for a fit is one.
            fits = fits or not self.trajectories.unfit(best)
        return message(self.preparation, self.derivatives, self.search, best, fits, count)

    def _report(self, message: str) -> None:
        if self.control.report is not None:
            best = min((s.objective for s in self.starts), default=math.inf)
            self.control.report(Progress(len(self.starts), 0, best, 0, message))

    def _solutions_so_far(self, count: int) -> None:
        self._report(f"preparing the equations: {count} solutions so far")


def _noisy(problem: Problem) -> bool:
    """Whether any series has noise that is more than rounding."""
    for condition in problem.conditions:
        for series in condition.series.values():
            times, first = np.unique(condition.times[series.rows], return_index=True)
            values = series.values[first]
            size = float(np.abs(values).max(initial=0.0))
            if len(times) >= FEW and noise_level(times, values) > NOISY * size:
                return True
    return False


def _cost(start: Start) -> float:
    return start.cost


CLOSE = 1e-6
"""Relative difference up to which two candidates are one."""


NEAR = 0.1
"""The same for candidates that are left unpolished: the polished one speaks for them."""


def _close(a: Array, b: Array, closeness: float = CLOSE) -> bool:
    scale = np.maximum(np.abs(a), np.abs(b))
    return bool((np.abs(a - b) <= closeness * scale + 1e-12).all())
