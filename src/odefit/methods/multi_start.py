"""Many starts of a local method, as many as the evidence requires."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from typing import ClassVar

import numpy as np

from odefit.common.arrays import Array, BoolArray, IntArray
from odefit.common.errors import counted
from odefit.methods.estimate import NO_START, Estimate, Start, Status
from odefit.methods.fit_measure import FitMeasure
from odefit.methods.local.cost_tolerance import CostTolerance
from odefit.methods.local.scaling import bounds_touched
from odefit.methods.local.variable_projection import VariableProjection
from odefit.methods.method import LocalMethod, Method
from odefit.methods.running.control import Control, Progress, interruptible
from odefit.methods.running.remote_conditions import conditions_over_workers
from odefit.methods.running.run_log import log_start
from odefit.methods.running.start_checkpoint import StartCheckpoint
from odefit.methods.running.workers import Workers
from odefit.methods.single_shooting import START_SEARCH
from odefit.methods.start_pool import ended, run_starts
from odefit.methods.starts import Design, guess, lowest, sample
from odefit.problem.problem import Problem
from odefit.simulation import ForwardMap
from odefit.simulation.engines.steps import IMPLICIT_TOLERANCE
from odefit.simulation.residuals.noise import known_sds

STARTS_PER_DESIGN = 4  # number of starts whose points belong to one space-filling design

RESERVE_DESIGN = 10**6
"""Number of the first design for starts that fail; its multiples begin designs for retries."""

MAX_RETRIES = 3  # largest number of retries of a start that ends at bounds

SEARCH_TOLERANCE = 1e-5
"""Tolerance of the stiff engine during the search: about three times as fast as its default, with
the same local optima. Sensitivities follow the steps of the states without their own error control.
The best optimum is improved at full accuracy afterwards."""

NOISE_SHARE = 1e-2
"""Ratio of the stiff engine's tolerance during the search to the relative noise, if that gives
less: integration errors must not be mistaken for a lack of fit."""

MIN_SEARCH_TOLERANCE = 1e-8  # smallest tolerance of the stiff engine during the search

MIN_POINTS_FOR_SCATTER = 200
"""Length of a series above which differences estimate its noise, if that is not given."""


@dataclass(frozen=True)
class MultiStart(Method):
    """Start a local method from many points in the range of the unknowns.

    Attributes
    ----------
    method
        The local method.
    starts
        Number of starts; None lets the evidence decide. A lowest cost that is zero up to rounding
        cannot be beaten: the search ends when `zero_hits` starts have reached it. Any other lowest
        cost must be reached `hits` times, and the next start must find a better one with a
        probability below `chance`. A better local optimum with as large a basin of attraction then
        remains unseen with a probability below exp(-hits).
    hits, zero_hits
        Number of starts that have to reach the lowest cost, see `starts`.
    chance
        Largest probability that the next start finds a better local optimum, see `starts`. By Good
        and Turing it finds a new one with a probability equal to the share of starts whose cost was
        reached only once. Any of these optima, the new one included, may be the lowest.
    most
        Largest number of starts, if the evidence remains insufficient.
    screening
        Number of points of which each start takes the best, or several such numbers, which starts
        use in turn.
    design
        Space-filling design of the points, ``"latin"`` hypercube or ``"sobol"``.
    first
        Point of start number 0 in natural units; None for the problem's guess, if it has one.
    """

    start_option: ClassVar[str] = "first"
    method: LocalMethod = START_SEARCH
    starts: int | None = None
    hits: int = 5
    zero_hits: int = 2
    chance: float = 0.02
    most: int = 500
    screening: int | tuple[int, ...] = 64
    design: Design = "latin"
    first: tuple[float, ...] | None = None

    @property
    def name(self) -> str:
        """The name shown in results."""
        return f"MultiStart({self.method.name})"

    def solve(self, problem: Problem, control: Control) -> Estimate:
        """Return the estimate, which depends on the seed, never on the number of workers."""
        forward = self.forward(problem)
        tolerance = CostTolerance.of(forward)
        method = asdict(self)
        del method["starts"]  # more starts of the same kind continue from fewer
        options = {"method": method, "seed": control.seed}
        checkpoint = StartCheckpoint.of(control, "starts", problem, options)
        finished: dict[int, Start] = {}
        prefix: list[Start] = []  # starts 0, 1, 2, ... up to the first missing one
        enough = False
        measure = FitMeasure.of(problem) if control.report is not None else None
        with interruptible(control), checkpoint or nullcontext():
            for start in self._run(forward, control, checkpoint):
                finished[start.index] = start
                log_start(self.name, start)
                # Counted one by one: the answer must not depend on how many workers have finished.
                while not enough and len(prefix) in finished:
                    prefix.append(finished[len(prefix)])
                    enough = self._enough(prefix, tolerance)
                if control.report is not None and measure is not None:
                    control.report(self._progress(prefix, tolerance, measure))
                if enough:
                    break
        return self._estimate(prefix if enough else list(finished.values()), tolerance, control)

    def forward(self, problem: Problem, steps: int | None = None, share: float = 1.0) -> ForwardMap:
        """Return the forward map for the search; see :class:`ForwardMap` on `steps`.

        `share` is the ratio of the tolerance to the usual one.
        """
        method, tolerance = self.method, search_tolerance(problem)
        tolerance = max(share * tolerance, IMPLICIT_TOLERANCE)
        return ForwardMap(
            problem, method.engine, tolerance, steps=steps, controlled=method.controlled
        )

    def run(self, forward: ForwardMap, index: int, control: Control) -> Start:
        """Return the end of start number `index`.

        A search that ends at a bound often cannot leave it, such as a rate that has run to its
        bound. Such unknowns, and those of the same experiment, are then drawn afresh and the others
        kept. The search is repeated up to :data:`MAX_RETRIES` times while that helps. Unknowns that
        the method eliminates have no start values to draw.
        """
        columns = self._projection(forward).remaining
        best = self.method.run(forward, index, self.start_point(forward, index, control), control)
        for retry in range(MAX_RETRIES):
            loose = _at_bounds(forward.problem, best, columns)
            if best.exact or best.status is Status.FAILED or not loose.any():
                break
            if control.should_stop():
                break
            points = self._sample(forward.problem, RESERVE_DESIGN * (2 + retry) + index, control)
            points[:, ~loose] = best.vector[~loose]
            point, _ = self._screen(forward, points, control)
            again = self.method.run(forward, index, point, control)
            better = again.cost < best.cost and not CostTolerance.of(forward).same(again, best)
            best = replace(
                again if again.cost < best.cost else best,
                start=best.start,
                evaluations=best.evaluations + again.evaluations,
                seconds=best.seconds + again.seconds,
                failures=Counter(best.failures) + Counter(again.failures),
            )
            if not better:
                break
        return best

    @property
    def most_screened(self) -> int:
        """The largest number of points of which a start takes the best."""
        return self.screening if isinstance(self.screening, int) else max(self.screening)

    def screened(self, index: int) -> int:
        """Return the number of points of which start number `index` takes the best."""
        turns = (self.screening,) if isinstance(self.screening, int) else self.screening
        return turns[index % len(turns)]

    def _sample(self, problem: Problem, block: int, control: Control) -> Array:
        return sample(problem, block, self.most_screened, control.seed, self.design)

    def start_point(self, forward: ForwardMap, index: int, control: Control) -> Array:
        """Return the point of start `index`: the guess first, then the best of a few points."""
        problem = forward.problem
        guessed = guess(problem) if self.first is None else np.array(self.first)
        if guessed is not None:
            if index == 0:
                return guessed
            index -= 1
        size = STARTS_PER_DESIGN * self.most_screened
        points = sample(problem, index // STARTS_PER_DESIGN, size, control.seed, self.design)
        first = (index % STARTS_PER_DESIGN) * self.most_screened
        start_points = points[first : first + self.screened(index)]
        compared = self.method.screening_map(forward, index)
        best, cost = self._screen(compared, start_points, control)
        if math.isinf(cost):
            # If most points fail, try more before the start counts as failed.
            more = self._sample(problem, RESERVE_DESIGN + index, control)
            best, _ = self._screen(compared, more, control)
        return best

    def _screen(self, forward: ForwardMap, points: Array, control: Control) -> tuple[Array, float]:
        return lowest(self._projection(forward), points, control)

    def _projection(self, forward: ForwardMap) -> VariableProjection:
        """Return the problem as the local method reduces it, if it does."""
        return VariableProjection(forward, self.method.eliminate)

    def _run(
        self, forward: ForwardMap, control: Control, checkpoint: StartCheckpoint | None
    ) -> Iterator[Start]:
        """Yield starts in the order in which they finish."""
        stored = checkpoint.starts if checkpoint is not None else {}
        total = self.most if self.starts is None else self.starts
        yield from (stored[i] for i in sorted(stored) if i < total)
        todo = (i for i in range(total) if i not in stored)  # perhaps more than memory holds
        left = total - sum(i < total for i in stored)
        with Workers(control) as workers:
            if self._conditions_keep_busy(forward, left, workers.number):
                computed = self._one_by_one(forward, todo, control)
            else:
                tasks = ((self, index, control) for index in todo)
                ends = run_starts(tasks, forward, workers, control, left)
                computed = ((start, whole) for _, start, whole in ends)
            for start, whole in computed:
                # A stopped start may have converged before its retries: its status does not show
                # that it would have continued.
                if checkpoint is not None and whole:
                    checkpoint.add(start)
                yield start

    def _conditions_keep_busy(self, forward: ForwardMap, starts: int, workers: int) -> bool:
        """Return whether the conditions of a start occupy more workers than the starts do."""
        enough = forward.units >= (2 if starts == 1 else 2 * workers)
        return self.method.shares_conditions and 0 < starts < workers and enough

    def _one_by_one(
        self, forward: ForwardMap, todo: Iterable[int], control: Control
    ) -> Iterator[tuple[Start, bool]]:
        """Yield starts in order, and whether each is complete; workers share its conditions."""
        with conditions_over_workers(forward, control):
            for index in todo:
                if control.should_stop():
                    break
                yield ended(self.run(forward, index, control), control)

    def _enough(self, starts: list[Start], tolerance: CostTolerance) -> bool:
        if self.starts is not None:
            return len(starts) >= self.starts
        best, hits = tolerance.best(starts)
        if best is not None and best.exact:
            return hits >= self.zero_hits
        return hits >= self.hits and tolerance.chance_of_better(starts) < self.chance

    def _progress(
        self, starts: list[Start], tolerance: CostTolerance, measure: FitMeasure
    ) -> Progress:
        _, hits = tolerance.best(starts)
        failed = sum(s.status is Status.FAILED for s in starts)
        best_value = min((measure.of_start(s) for s in starts), default=math.inf)
        return Progress(len(starts), failed, best_value, hits, "multi-start", measure=measure.name)

    def _estimate(
        self, starts: list[Start], tolerance: CostTolerance, control: Control
    ) -> Estimate:
        starts = sorted(starts, key=lambda s: s.index)
        best, hits = tolerance.best(starts)
        failed = [s for s in starts if s.status is Status.FAILED]
        if best is None:
            if not failed:
                return Estimate((), control.early, NO_START)
            return Estimate(starts, Status.FAILED, _all_failed(failed))
        count = counted(len(starts), "start")
        times = counted(hits, "time")
        message = f"the lowest objective was reached {times} in {count}"
        if failed:
            message += f"; {counted(len(failed), 'start')} failed"
        enough = self._enough(starts, tolerance)
        status = Status.CONVERGED
        if not enough and control.should_stop():
            status = control.early
        elif not any(s.status is Status.CONVERGED and tolerance.same(s, best) for s in starts):
            status = Status.NOT_CONVERGED
        return Estimate(starts, status, message, evaluate_nodes=self.method.evaluate_nodes)


def search_tolerance(problem: Problem) -> float:
    """Return the tolerance of the stiff engine during the search."""
    tolerance = SEARCH_TOLERANCE
    for condition in problem.conditions:
        for name, series in condition.series.items():
            size = float(np.abs(series.values).max(initial=0.0))
            noise = problem.noise.get(name)
            sds = series.sds
            if sds is None and noise is not None:
                sds = known_sds(noise, series)
            if size > 0:
                sd = _scatter(series.values) if sds is None else float(np.nanmedian(sds))
                tolerance = min(tolerance, max(NOISE_SHARE * sd / size, MIN_SEARCH_TOLERANCE))
    return tolerance


def _scatter(values: Array) -> float:
    """Return the scatter of a long series about its neighbours; infinite for a short one."""
    if len(values) < MIN_POINTS_FOR_SCATTER:
        return math.inf
    # Sixth differences remove a smooth signal, and multiply the variance of noise by 924.
    return float(np.median(np.abs(np.diff(values, 6)))) / math.sqrt(924.0)


def _at_bounds(problem: Problem, end: Start, columns: IntArray) -> BoolArray:
    """Return which unknowns are at a bound, or belong to the same experiment as one that is.

    Only `columns` unknowns count, not eliminated ones.
    """
    touched = np.zeros(len(problem.unknowns), dtype=bool)
    if not math.isfinite(end.cost):
        return touched
    touched[columns] = bounds_touched(problem, end.vector)[columns]
    owners = [u.experiment for u in problem.unknowns]
    caught = {owner for owner, at in zip(owners, touched, strict=True) if at and owner is not None}
    return np.asarray(touched | np.array([owner in caught for owner in owners], dtype=bool))


def _all_failed(failed: list[Start]) -> str:
    groups: dict[tuple[bool, str], list[str]] = {}
    for start in failed:  # errors of the equations themselves come before anything else
        reason = max(start.failures, key=lambda r: start.failures[r], default=start.message)
        groups.setdefault((not start.failures, reason), []).append(start.message)
    kinds = sorted(groups.items(), key=lambda item: (item[0][0], -len(item[1])))[:3]
    listed = "; ".join(
        f"{min(times, key=len)} ({counted(len(times), 'time')})" for _, times in kinds
    )
    if len(failed) == 1:
        return f"the only start failed: {failed[0].message}"
    return (
        f"all {len(failed)} starts failed: {listed}. Give narrower bounds or a guess near which "
        "the model can be integrated"
    )
