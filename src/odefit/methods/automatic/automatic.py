"""The automatic method: cheap routes first, others as the evidence requires."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from functools import partial

import numpy as np

from odefit.common.arrays import Array
from odefit.common.option_checks import whole
from odefit.methods.automatic.algebraic_route import AlgebraicRoute
from odefit.methods.automatic.by_experiment.parts_apart import fitted_apart
from odefit.methods.automatic.coarse_beginning import SHARPENING, Sharpening
from odefit.methods.automatic.doubt import Doubts
from odefit.methods.automatic.evidence import Evidence
from odefit.methods.automatic.families import Families, Restarts
from odefit.methods.automatic.message import message_of, named_cause
from odefit.methods.automatic.route_table import MATCHING, SHOOTING, search_routes
from odefit.methods.automatic.routes import TIME_SHARE, Planned, Seen
from odefit.methods.automatic.valleys import Valleys, highest_within_noise
from odefit.methods.best_so_far import first_point
from odefit.methods.estimate import Estimate, Route, Start, Status
from odefit.methods.fit_measure import FitMeasure
from odefit.methods.fit_quality.noise_fit import NoiseFit, NoiseLevels
from odefit.methods.fit_quality.robust_fits import suspected_outliers
from odefit.methods.local.cost_tolerance import CostTolerance
from odefit.methods.method import Method
from odefit.methods.multi_start import MultiStart
from odefit.methods.reduced_problem import fitted_reduced
from odefit.methods.running.control import Control, Progress, interruptible
from odefit.methods.running.run_log import log_start
from odefit.methods.running.start_checkpoint import StartCheckpoint
from odefit.methods.running.workers import Workers
from odefit.methods.start_pool import ended, run_starts
from odefit.problem.problem import Problem
from odefit.simulation import Evaluation, Failure, ForwardMap
from odefit.simulation.nodes import Nodes

MAX_BATCH = 8  # starts planned at most before the ends of the last ones are examined

POINTS_WITHOUT_TIME = 8  # start values tried for an answer if no start has time

SEARCH_STEPS = 10_000
"""Steps that the implicit engine may take between two events during the search.

On the published model of Fujita et al. the points that need more took most of the screening time.
"""

FAILED_STARTS = 3  # starts after which, if all have failed, the search continues without this limit

OUTLIERS_AFTER, OUTLIERS_AGAIN = 5, 4
"""Number of starts without an explanation of the data before a search for outliers, and the factor
to the next such numbers. If the model is wrong, robust fits are wasted.
"""

MANY_STARTS = 80  # starts before a search for outliers although no two agree on the best end


@dataclass(frozen=True)
class Automatic(Method):
    """Combine all methods, compare their answers, and stop when the evidence suffices.

    Integral matching comes first if it applies, then single shooting over growing horizons.
    Successive halving and iterated local search follow while few starts end at the best answer;
    with many unknowns in logarithms, and without a guess, short searches come first.
    Multiple shooting, the algebraic method and direct transcription follow while that answer fits
    worse than the noise allows. Each route has a share of the work, counted in evaluations and not
    in seconds, so that the same seed gives the same result.

    The search ends

    - when `certain_hits` starts have reached an answer that cannot be beaten, since it reproduces
      the data to rounding or leaves no more than their noise,
    - otherwise when `hits` independent starts have reached the lowest cost, by iterated local
      search if need be. The next one must find a better cost with a probability below `chance`
      (Good and Turing). A better optimum with as large a basin of attraction then remains unseen
      with a probability below exp(-hits). `doubtful_hits` starts are needed if only selected
      searches have reached the lowest cost, if none converges because the cost falls for ever
      along a valley, or if the lowest cost misses data of known noise after all routes,
    - or after `most` starts.

    Attributes
    ----------
    starts
        Number of starts, all routes together; None lets the evidence decide.
    hits, certain_hits, doubtful_hits
        Number of starts that must reach it: usually, if it cannot be beaten, and in doubt.
    chance
        Largest probability that the next start finds a better answer.
    most
        The largest number of starts, all routes together.

    Examples
    --------
    >>> import odefit
    >>> result = odefit.fit(odefit.library.load("harmonic"), odefit.Automatic())
    >>> result.status.value
    'converged'
    """

    starts: int | None = None
    hits: int = 5
    certain_hits: int = 2
    doubtful_hits: int = 15
    chance: float = 0.02
    most: int = 500

    def __post_init__(self) -> None:
        if self.starts is not None:
            whole(self.starts, "Automatic, starts")
        whole(self.hits, "Automatic, hits")
        whole(self.certain_hits, "Automatic, certain_hits")
        whole(self.doubtful_hits, "Automatic, doubtful_hits")
        whole(self.most, "Automatic, most")

    @property
    def name(self) -> str:
        """The method's name in results."""
        return "Automatic"

    @property
    def examines_structure(self) -> bool:
        """True if :func:`odefit.fit` counts the solutions with the outputs of the answer."""
        return True

    def solve(self, problem: Problem, control: Control) -> Estimate:
        """Return the estimate, which depends on the seed but not on the number of workers."""
        if self.starts is None and (apart := fitted_apart(problem, self.solve, control)):
            return apart

        def search(searched: Problem, control: Control) -> Estimate:
            # More starts of the same kind continue from fewer.
            options = {"method": asdict(replace(self, starts=None)), "seed": control.seed}
            checkpoint = StartCheckpoint.of(control, "starts", problem, options)
            with interruptible(control), Workers(control) as workers, checkpoint or nullcontext():
                return _AutomaticSearch(self, searched, control, workers, checkpoint).estimate()

        return fitted_reduced(problem, search, control)


class _AutomaticSearch:
    """One estimation by the automatic method."""

    def __init__(
        self,
        method: Automatic,
        problem: Problem,
        control: Control,
        workers: Workers,
        checkpoint: StartCheckpoint | None,
    ) -> None:
        self.method, self.problem, self.control, self.workers = method, problem, control, workers
        self._share = 1.0  # of the tolerance of the search
        self._limited_steps = True
        self.forward = MultiStart().forward(problem, SEARCH_STEPS)
        self.tolerance = CostTolerance.of(self.forward)
        # Integration errors must not be mistaken for a misfit.
        self.accurate = ForwardMap(problem)
        self.levels = NoiseLevels(self.accurate)
        self.routes = search_routes(self.forward)
        self.algebraic = AlgebraicRoute(problem)
        self.ends: list[Start] = []
        self.families = Families()
        self.restarts = Restarts(self.families, self.tolerance)
        self.doubts = Doubts(self.accurate, self.routes, self.tolerance, self.families)
        self.sharpening = Sharpening(self.accurate, self.tolerance)
        self.valleys = Valleys(self.accurate, self.tolerance, self.doubts.led)
        self._measure: FitMeasure | None = None
        self._judged: tuple[Start, NoiseFit] | None = None
        self._next_look = OUTLIERS_AFTER
        self._weighed: tuple[Start | None, Evidence] | None = None
        self.checkpoint = checkpoint

    @property
    def _most(self) -> int:
        return self.method.most if self.method.starts is None else self.method.starts

    # The search -----------------------------------------------------------------------------------

    def estimate(self) -> Estimate:
        """Search until the evidence suffices, and return all results."""
        enough = False
        while not enough and len(self.ends) < self._most and not self.control.should_stop():
            if self._wants_algebra():
                records = None if self.checkpoint is None else self.checkpoint.checkpoint
                self.ends += self.algebraic.solve(self.control, len(self.ends), records)
                self._report()
                enough = self._enough()
                continue
            batch = self._plan()
            if not batch:
                break
            for start in self._in_order(batch):
                self.ends.append(start)
                log_start(next(r.name for r in self.routes if start in r.starts), start)
                self._sharpen()
                self._report()
                if enough := self._enough():
                    break
        if self.control.should_stop() and self.evidence().best is None:
            # A search without time has an answer as well.
            end = first_point(self.forward, POINTS_WITHOUT_TIME, self.control, len(self.ends))
            if end is not None:
                self.ends.append(end)
                next(r for r in self.routes if r.row is SHOOTING).starts.append(end)
        return self._estimate(enough)

    def _enough(self) -> bool:
        if self.method.starts is not None:
            return len(self.ends) >= self.method.starts
        return self.evidence().enough

    def evidence(self) -> Evidence:
        """Return the evidence of the ends so far for the best of them; it is computed once."""
        last = self.ends[-1] if self.ends else None
        if self._weighed is None or self._weighed[0] is not last:
            present_evidence = Evidence.of(
                self.method,
                self.ends,
                self.tolerance,
                self._judge,
                self._untried,
                self.families,
                self.doubts.of,
                self._unique,
                self.valleys.same,
                self.valleys.level,
                partial(highest_within_noise, self.accurate),
                self.problem.size > len(self.problem.unknowns),
            )
            self._weighed = (last, present_evidence)
        return self._weighed[1]

    def _untried(self) -> bool:
        """Return whether a remaining route may succeed where the others have not."""
        return any(not (r.closed or r.starts or r.row.optional) for r in self.routes)

    def _unique(self, end: Start) -> bool:
        """Return whether integral matching has found an end in closed form."""
        matching = next(r for r in self.routes if r.row is MATCHING)
        return matching.most == 1 and any(s is end for s in matching.starts)

    def _judge(self, best: Start, hits: int) -> NoiseFit:
        """Compare the best end with the noise, once."""
        if self._judged is None or self._judged[0] is not best:
            fit = self.levels.fit(best)
            if self._judged is not None and self.tolerance.same(best, self._judged[0]):
                fit = replace(fit, outliers=self._judged[1].outliers)  # at the same optimum
            self._judged = (best, fit)
        fit = self._judged[1]
        count = len(self.ends)
        due = count >= self._next_look and (hits > 1 or count >= MANY_STARTS)
        if fit.explained is False and not fit.outliers and due:
            self._next_look = OUTLIERS_AGAIN * max(self._next_look, count)
            others = sorted(self.ends, key=lambda s: s.cost)
            vectors = [best.vector, *(s.vector for s in others if s is not best)]
            usable = [v for v in vectors if np.isfinite(v).all()]
            outliers = suspected_outliers(self.accurate, usable, self.control)
            self._judged = (best, fit := replace(fit, outliers=len(outliers)))
        return fit

    def _sharpen(self) -> None:
        """Improve the best end at full accuracy if its residuals may be integration errors."""
        while (dull := self.sharpening.next(self.ends, self._judge)) is not None:
            if self.sharpening.share != self._share:
                self._share = self.sharpening.share
                self.forward = MultiStart().forward(self.problem, SEARCH_STEPS, self._share)
            key = f"sharper {dull.end.index}"
            end = None if self.checkpoint is None else self.checkpoint.find(key)
            if end is None:
                limited, one = self._limited(), dull.end
                end = SHARPENING.run(self.accurate, one.index, one.vector, limited)
                end = self._stored(*ended(end, limited), key)
            sharper = self.sharpening.improved(dull, end)
            if sharper is None:
                return
            for ends in (self.ends, *(route.starts for route in self.routes)):
                ends[:] = [sharper if s is dull.end else s for s in ends]

    def _plan(self) -> list[Planned]:
        """Return the next starts, which depend only on the ends so far."""
        count = len(self.ends)
        all_failed = count >= FAILED_STARTS and all(math.isinf(s.cost) for s in self.ends)
        if all_failed and self._limited_steps:
            self._limited_steps = False
            self.forward = MultiStart().forward(self.problem, share=self._share)
        evidence = self.evidence()
        # Iterated local search uses only the ends of its own epoch.
        epoch = self.restarts.current(self.ends)
        independent = self.families.independent(epoch)
        usable = [r for r in self.routes if r.is_open(evidence, independent)]
        together = max((r.together - r.planned for r in usable), default=1)
        size = max(1, min(max(min(MAX_BATCH, count // 2), together), self._most - count))
        seen = Seen(epoch, independent, self.tolerance)
        batch: list[Planned] = []
        for _ in range(size):
            free = (r for r in usable if not (r.closed or r.unknown))
            route = min(free, key=lambda r: r.work, default=None)
            if route is None:
                break
            batch.append(route.plan(seen))
        return batch

    def _in_order(self, batch: list[Planned]) -> Iterator[Start]:
        """Yield the ends of a batch in its order; stored ends are not computed again."""
        first = len(self.ends)
        stored = self.checkpoint.starts if self.checkpoint is not None else {}
        todo = [k for k in range(len(batch)) if first + k not in stored]
        unexplained = self.evidence().unexplained
        shares = [planned.route.share_of_time(unexplained) for planned in batch]
        tasks = ((batch[k].search, batch[k].index, self._limited(shares[k])) for k in todo)
        computed = run_starts(tasks, self.forward, self.workers, self.control, len(todo))
        waiting = {k: stored[first + k] for k in range(len(batch)) if first + k in stored}
        for k, planned in enumerate(batch):
            while k not in waiting:
                start = next(computed, None)
                if start is None:
                    return
                position, end, whole = start
                end = replace(end, index=first + todo[position])
                waiting[todo[position]] = self._stored(end, whole)
            planned.route.add(waiting[k], planned)
            if planned.base is not None:
                self.families.add(waiting[k], planned.base, planned.rung > 0)
            yield waiting[k]

    def _limited(self, share: float = TIME_SHARE) -> Control:
        """Return the control of one start, which may take a share of the remaining time."""
        return self.control.with_share(share)

    def _stored(self, end: Start, whole: bool, key: str | None = None) -> Start:
        """Store a complete start, under a key of its own if need be, and return it."""
        if self.checkpoint is not None and whole:
            if key is None:
                self.checkpoint.add(end)
            else:
                self.checkpoint.put(key, end)
        return end

    def _wants_algebra(self) -> bool:
        """Return whether to solve the polynomial system, which may take longer than all starts."""
        evidence = self.evidence()
        return evidence.unexplained and self.algebraic.is_due(len(self.ends), evidence.hits)

    def _report(self) -> None:
        if self.control.report is None:
            return
        failed = sum(s.status is Status.FAILED for s in self.ends)
        measure = self._measure = self._measure or FitMeasure.of(self.problem)
        lowest = min((measure.of_start(s) for s in self.ends), default=math.inf)
        last = next((r.name for r in self.routes if self.ends[-1] in r.starts), "algebraic method")
        hits, count = self.evidence().hits, len(self.ends)
        self.control.report(Progress(count, failed, lowest, hits, last, measure=measure.name))

    # The answer -----------------------------------------------------------------------------------

    def _estimate(self, enough: bool) -> Estimate:
        evidence, cause = self.evidence(), self.control.cause
        routes = self._routes(evidence)
        return Estimate(
            tuple(self.ends),
            evidence.status(self.control, enough),
            message_of(evidence, routes, cause),
            completeness=self.algebraic.completeness_of(evidence.best),
            evaluate_nodes=_evaluate_nodes,
            routes=tuple(routes),
            told=named_cause(evidence, cause),
            finding=message_of(evidence, routes, None),
            sufficient=(evidence.enough and not evidence.far)
            or (None if self.method.starts else False),
            doubt=evidence.doubt,
        )

    def _routes(self, evidence: Evidence) -> list[Route]:
        first = self.families.first_of_each(evidence.alike)
        hits = {self.families.begun_by(s) for s in first}
        routes = [
            self.families.route(r.name, r.starts, hits, r.reason or "not needed")
            for r in self.routes
        ]
        if self.algebraic.attempts:
            algebraic = self.families.route("algebraic method", self.algebraic.starts, hits, "")
            message, seconds = self.algebraic.message, self.algebraic.seconds
            routes.append(replace(algebraic, seconds=seconds, message=message))
        return routes


def _evaluate_nodes(
    problem: Problem, vector: Array, nodes: Nodes
) -> tuple[Evaluation, float] | Failure:
    """Evaluate an end of multiple shooting; the import waits until there is one."""
    from odefit.methods.shooting.node_evaluation import evaluate_nodes

    return evaluate_nodes(problem, vector, nodes)
