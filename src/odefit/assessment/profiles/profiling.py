"""All profiles of a fit: the sides to trace, their places, and their optimum."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import replace
from functools import partial

import numpy as np

from odefit.assessment.intervals.deviance import Deviance
from odefit.assessment.intervals.simulated_fits import SimulatedFits
from odefit.assessment.intervals.uncertainty import assess_uncertainty
from odefit.assessment.parts import Direction, Trouble, Uncertainty
from odefit.assessment.profiles.checkpoint import SideCheckpoint
from odefit.assessment.profiles.known_optima import known_optima, separate_intervals
from odefit.assessment.profiles.linear_checks import checked
from odefit.assessment.profiles.noise_limits import limits_by_unknown
from odefit.assessment.profiles.parts import End, Profile, ProfilesData, Side
from odefit.assessment.profiles.quantities import AnyQuantity, quantity_of
from odefit.assessment.profiles.tasks import (
    Optimum,
    Task,
    begins_on_nodes,
    side_of,
    side_without_points,
    traced_side,
)
from odefit.assessment.profiles.valleys import (
    merged,
    other_optima,
    passages,
    refuted,
    starts_again,
    unchecked,
)
from odefit.assessment.profiles.verdicts import assembled
from odefit.common.arrays import Array
from odefit.common.errors import InputError, one_of
from odefit.methods.estimate import Status
from odefit.methods.polish import POLISH
from odefit.methods.running.control import Control, Progress, running
from odefit.methods.running.dispatch import WorkerLateError, dispatched
from odefit.methods.running.run_log import LOGGER
from odefit.methods.running.start_checkpoint import opened
from odefit.methods.running.worker import Work
from odefit.methods.running.workers import Workers
from odefit.problem.problem import Problem
from odefit.simulation import Evaluation, Failure, ForwardMap
from odefit.simulation.engines.engine_choice import UNDECIDED
from odefit.simulation.other_integrations import able_to_integrate

MAX_ADOPTIONS = 5
"""Largest number of restarts of the profiles from a better optimum."""

MAX_CHECKS = 3
"""Largest number of times that limits are followed from fits that refute them."""

MAX_PASSAGES = 3
"""Number of times that points are added where the lowest curve passes to another valley."""


def profile_all(
    problem: Problem,
    vector: Array,
    level: float,
    control: Control,
    keys: Sequence[str] | None = None,
    expressions: Sequence[str | AnyQuantity] = (),
    others: Sequence[Array] = (),
    most: int | None = None,
) -> ProfilesData:
    """Return profile likelihoods of the unknowns `keys` and of the quantities `expressions`.

    Without `keys` all unknowns are profiled, or none if there are expressions. Profiles also begin
    at those known optima in `others` that fit within the limit. A side ends after `most`
    evaluations, None for the usual number. Raises InputError if a key or an expression is unknown,
    or if there is no noise for a comparison.
    """
    began = time.perf_counter()
    tasks = [replace(t, most=most) for t in _tasks(problem, keys, expressions)]
    forward = able_to_integrate(problem, vector, None)
    first = best = _with_quantities(forward, optimum_at(forward, vector, level), tasks)
    records = opened(control, "sides of profiles", problem, {"level": level, "vector": vector})
    checkpoint = None if records is None else SideCheckpoint(records)
    evaluations = minimisations = 0
    sides: dict[Task, Side] = {}
    with running(control), Workers(control) as workers, checkpoint or nullcontext():
        for adoption in range(MAX_ADOPTIONS + 1):
            sides = {}
            better = None
            evaluations += len(others)
            arguments = best, forward, workers, control, checkpoint
            for task, side in _everywhere(tasks, others, *arguments):
                sides[task] = side
                LOGGER.info("profile of %s, side %+d: %s", task.key, task.sign, side.end)
                evaluations += side.evaluations
                minimisations += side.minimisations
                failed = sum(s.end in ("failed", "points") for s in sides.values())
                if control.report is not None:
                    objective = 2 * best.deviance.minimum
                    total = max(len(sides), len(tasks))
                    text = f"{task.key}, {len(sides)} of {total} sides"
                    control.report(Progress(len(sides), failed, objective, 0, text, "side"))
                if not len(side.better) or adoption == MAX_ADOPTIONS or control.should_stop():
                    continue
                refit = POLISH.run(forward, 0, side.better, control)
                evaluations += refit.evaluations
                minimisations += 1
                if refit.cost < best.deviance.minimum:
                    better = refit.vector
                    break
            if better is None or control.should_stop():
                break
            best = _with_quantities(forward, optimum_at(forward, better, level), tasks)
    lowest = refuted(best, merged(best, tasks, sides))[0]
    evaluation = forward.evaluate(best.vector, UNDECIDED)
    for task in unchecked(tasks, sides, begins_on_nodes(forward, best, evaluation)):
        if task in lowest and lowest[task].end == "limit":
            lowest[task] = replace(lowest[task], unchecked=True)
    apart = {t.key: separate_intervals(best, t, sides) for t in tasks}
    profiles = _assembled(forward, best, tasks, lowest, level, apart)
    stopped = any(s.end == "stopped" for s in sides.values()) or len(sides) < len(tasks)
    status, message = Status.CONVERGED, "all profiles are complete"
    if control.interrupted.is_set():
        status = control.early
        message = f"interrupted by {control.cause}: not all profiles are complete"
    elif stopped:
        status, message = Status.TIME_LIMIT, "time limit reached: not all profiles are complete"
    message += "".join(f"; {remark}" for remark in control.remarks)
    adopted = best is not first
    if adopted:
        message += "; a better optimum was found on the way, and the profiles are those of it"
    return ProfilesData(
        profiles,
        level,
        best.limit,
        best.vector,
        evaluation.objective if isinstance(evaluation, Evaluation) else math.nan,
        adopted,
        status,
        message,
        evaluations,
        minimisations,
        time.perf_counter() - began,
    )


def _tasks(
    problem: Problem, keys: Sequence[str] | None, expressions: Sequence[str | AnyQuantity]
) -> list[Task]:
    """Return both sides of all profiled quantities, in a fixed order."""
    if keys is None:
        keys = () if expressions else problem.keys
    tasks: list[Task] = []
    for key in keys:
        if key not in problem.keys:
            raise InputError(f"there is no unknown '{key}'{one_of(key, problem.keys)}")
        tasks += [Task(key, sign, problem.keys.index(key), None) for sign in (-1, 1)]
    for text in expressions:
        quantity = quantity_of(problem, text)
        if quantity.key in [t.key for t in tasks]:
            raise InputError(f"expression '{quantity.text}': there are two profiles of that name")
        tasks += [Task(quantity.key, sign, -1, quantity) for sign in (-1, 1)]
    return tasks


def optimum_at(forward: ForwardMap, vector: Array, level: float) -> Optimum:
    """Return the reference of profiles; raises InputError if there is no noise for a comparison."""
    evaluation = forward.evaluate(vector, UNDECIDED)
    if isinstance(evaluation, Failure):
        raise InputError(f"the estimate cannot be evaluated: {evaluation}")
    deviance = Deviance.of(forward, vector, evaluation)
    fits = SimulatedFits.for_limits(forward, vector, evaluation)
    limit = deviance.limit(level) if fits is None else fits.limit(level)
    if deviance.variance == 0:
        raise InputError(
            "the model reproduces the data to rounding, so no noise is left to judge a worse fit "
            "by; give the noise in [noise] to profile it anyway"
        )
    if not math.isfinite(limit):
        raise InputError(
            "there are as many unknowns as measurements, so the noise cannot be estimated; "
            "give the noise in [noise] to profile it anyway"
        )
    noise = limits_by_unknown(forward, vector, evaluation, level)
    return Optimum(forward.problem, vector, deviance, limit, noise)


def _with_quantities(forward: ForwardMap, best: Optimum, tasks: Sequence[Task]) -> Optimum:
    """Return the optimum with the values of the profiled quantities."""
    if not any(task.quantity for task in tasks):
        return best
    evaluation = forward.evaluate(best.vector, UNDECIDED)
    values = {
        task.key: task.quantity.at(forward, best.vector, evaluation.choice)[0]
        for task in tasks
        if task.quantity is not None and task.sign < 0
    }
    return replace(best, quantities=values)


# Sides ----------------------------------------------------------------------------------------


def _everywhere(
    tasks: Sequence[Task],
    optima: Sequence[Array],
    best: Optimum,
    forward: ForwardMap,
    workers: Workers,
    control: Control,
    checkpoint: SideCheckpoint | None,
) -> Iterator[tuple[Task, Side]]:
    """Yield all sides from the optimum, and then those that check them from other valleys.

    The sides also begin at other known `optima` that fit as well and, if valleys are narrow, at the
    optima of other valleys. After that they begin at fits of other profiles that refute their
    limits. Points where the lowest curve passes from one valley to another come last.
    """
    arguments = best, forward, workers, control, checkpoint
    known: dict[Task, Side] = {}
    for task, side in _traced(tasks, *arguments):
        known[task] = side
        yield task, side
    narrow = any(len(side.optima) for side in known.values())
    hills: list[Array] = []
    if optima and len(known) == len(tasks):
        hills = known_optima(forward, best, optima, known)
    if len(known) < len(tasks) or not (narrow or hills):
        return
    others = [*hills, *(other_optima(forward, best, list(known.values())) if narrow else ())]
    again = [
        replace(t, start=tuple(map(float, x)))
        for limited in (True, False)  # intervals are checked before curves, as time may run out
        for k, x in enumerate(others)
        for t in tasks
        # Quantities are not traced on nodes, which narrow valleys need.
        if (t.quantity is None or k < len(hills)) and (known[t].end == "limit") == limited
    ]
    empty = side_without_points(len(best.vector), "stopped", "")
    for _ in range(1 + MAX_CHECKS):
        for task, side in _traced(again, *arguments):
            known[task] = side
            yield task, side
        missing = [t for t in again if t not in known]
        if missing or control.should_stop():
            yield from ((task, empty) for task in missing)
            return
        again = starts_again(best, known, refuted(best, merged(best, tasks, known))[1])
        if not again:
            break
    for _ in range(MAX_PASSAGES):
        points = passages(best, tasks, known)
        for task, side in _traced(points, *arguments):
            known[task] = side
            yield task, side
        missing = [t for t in points if t not in known]
        if missing or control.should_stop():
            yield from ((task, empty) for task in missing)
            return


def _traced(
    tasks: Sequence[Task],
    best: Optimum,
    forward: ForwardMap,
    workers: Workers,
    control: Control,
    checkpoint: SideCheckpoint | None,
) -> Iterator[tuple[Task, Side]]:
    """Yield the sides in the order of the tasks, not in the order in which they finish."""
    known: dict[Task, Side] = {}
    if checkpoint is not None:
        finished = {t: checkpoint.find(t, best.vector) for t in tasks}
        known = {task: side for task, side in finished.items() if side is not None}
    todo = [task for task in tasks if task not in known]
    work = Work(
        partial(able_to_integrate, best.problem, best.vector, None), partial(traced_side, best)
    )

    def cores_of(task: Task) -> int:
        return workers.cores_of(todo.index(task), len(todo))

    computed = dispatched(
        todo,
        lambda task: (work, (task, control.for_workers(cores_of(task)))),
        lambda task: side_of(forward, best, task, control),
        workers,
        control,
        total=len(todo),
        late=control.is_late,
    )
    with closing(computed):
        for task in tasks:
            while task not in known:
                position, outcome = next(computed, (None, None))
                if position is None or outcome is None:
                    return
                error = outcome["error"]
                side = outcome["value"]
                if error is not None:
                    late = isinstance(error, WorkerLateError)
                    ended: End = "stopped" if late else "failed"
                    reason = f"the worker process failed: {error}"
                    side = side_without_points(len(best.vector), ended, reason)
                elif checkpoint is not None:  # the death of a worker is not the end of a side
                    checkpoint.add(todo[position], best.vector, side)
                known[todo[position]] = side
            yield task, known[task]


# The whole ------------------------------------------------------------------------------------


def _assembled(
    forward: ForwardMap,
    best: Optimum,
    tasks: Sequence[Task],
    sides: dict[Task, Side],
    level: float,
    apart: Mapping[str, tuple[tuple[float, float], ...]],
) -> tuple[Profile, ...]:
    """Return the profiles of which at least one side was traced."""
    vector = best.vector
    evaluation = forward.evaluate(vector, UNDECIDED)
    assert isinstance(evaluation, Evaluation), "the optimum has been evaluated before"
    at = forward, vector, evaluation
    uncertainty = checked(*at, assess_uncertainty(*at, level))
    profiles = []
    for low, high in zip(tasks[::2], tasks[1::2], strict=True):
        if low not in sides and high not in sides:
            continue
        missing = side_without_points(len(vector), "stopped", "")
        both = sides.get(low, missing), sides.get(high, missing)
        text, logarithmic = "", False
        if low.quantity is None:
            parameter = forward.problem.unknowns[low.index].parameter
            logarithmic = parameter.scale == "log10"
            estimate = float(vector[low.index])
            linear = tuple(map(float, uncertainty.intervals[low.index]))
            members = {low.index}
        else:
            text = low.quantity.text
            estimate, gradient = low.quantity.at(forward, vector, evaluation.choice)
            linear = _linear(estimate, gradient, uncertainty, best)
            members = set(np.flatnonzero(gradient).tolist())
        names = {forward.problem.keys[k] for k in members}
        directions = [d for d in uncertainty.directions if names & set(d.keys)]
        for k in members:
            if uncertainty.trouble.get(forward.problem.keys[k]) is Trouble.NO_EFFECT:
                directions += _no_effect(forward.problem.keys[k])
        profiles.append(
            assembled(
                low.key,
                text,
                logarithmic,
                estimate,
                vector,
                both,
                best.limit,
                (linear[0], linear[1]),
                directions,
                forward.problem,
                apart.get(low.key, ()),
            )
        )
    return tuple(profiles)


def _no_effect(key: str) -> list[Direction]:
    return [Direction((key,), (1.0,), f"{key} has no effect on any measurement.")]


def _linear(
    estimate: float, gradient: Array, uncertainty: Uncertainty, best: Optimum
) -> tuple[float, float]:
    """Return the linear interval of a quantity by the delta method."""
    used = gradient != 0
    variance = gradient[used] @ uncertainty.covariance[np.ix_(used, used)] @ gradient[used]
    with np.errstate(invalid="ignore"):
        half = best.deviance.root(best.limit) * float(np.sqrt(variance))
    return estimate - half, estimate + half
