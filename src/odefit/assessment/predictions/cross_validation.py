"""Cross-validation: leave out parts of the data in turn, and predict them from the rest.

M. Stone, Cross-validatory choice and assessment of statistical predictions, Journal of the Royal
Statistical Society B 36, 1974.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from copy import copy
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np

from odefit.common.arrays import Array, BoolArray
from odefit.common.effects import acting
from odefit.common.errors import InputError, one_of, shown
from odefit.common.option_checks import check_time_limit
from odefit.methods.estimate import Start, Status
from odefit.methods.running.control import Control, Progress, control_of, running
from odefit.methods.running.workers import Workers
from odefit.methods.single_shooting import SingleShooting
from odefit.methods.start_pool import run_starts
from odefit.problem.condition import Condition
from odefit.problem.problem import Problem
from odefit.problem.variants.sizes import sizes_at
from odefit.simulation import Failure, ForwardMap
from odefit.simulation.engines.engine_choice import UNDECIDED
from odefit.simulation.simulations import residuals_by

Division = Literal["experiment", "subject", "block"]
"""The parts left out: experiments (subjects are a kind of these), or blocks of time."""

DEFAULT_BLOCKS = 5
"""Default number of blocks of time."""

LOCAL_SEARCH = SingleShooting()
"""The search for the optimum of the rest, from the estimate."""


@dataclass(frozen=True, eq=False)
class Fold:
    """One part left out: its measurements and their prediction by a fit of the rest.

    `residuals` are measured minus predicted, in standard deviations of the noise, shape (n,);
    `vector` has the estimates of the rest. `failure` is the reason if they are missing.
    """

    name: str
    experiments: tuple[str, ...]
    observables: tuple[str, ...]
    times: Array
    measured: Array
    predicted: Array
    residuals: Array
    vector: Array
    failure: str = ""


@dataclass(frozen=True, eq=False)
class CrossValidationData:
    """A cross-validated model.

    Attributes
    ----------
    by
        The kind of the omitted parts.
    folds
        The parts, in their order; none if the work ended before the first fit.
    mean_square
        The mean square of residuals of the omitted parts, in standard deviations of the noise.
    fitted
        The same of the residuals of the fit of all data, by their degrees of freedom; NaN without
        any.
    fit_percent
        100 times one minus the normalised root mean square error, over observables.
    keys
        The names of the unknowns, in the order of the vectors.
    status
        How the work ended.
    time_unit
        The unit of the times; it may be empty.
    """

    by: str
    folds: tuple[Fold, ...]
    mean_square: float
    fitted: float
    fit_percent: float
    keys: tuple[str, ...]
    status: Status
    time_unit: str = ""


@dataclass(frozen=True, eq=False)
class FoldSearch:
    """The search of the optimum without each fold, whose number is the index."""

    vector: Array
    folds: Sequence[Mapping[tuple[str, str], BoolArray]]

    def run(self, forward: ForwardMap, index: int, control: Control) -> Start:
        """Return the optimum without fold number `index`."""
        rest = without(forward.problem, self.folds[index])
        return LOCAL_SEARCH.run(forward.of(rest), index, self.vector, control)


def cross_validated(
    problem: Problem,
    vector: Array,
    by: Division = "experiment",
    folds: int | None = None,
    *,
    seed: int = 0,
    time_limit: float | None = None,
    memory: int | str | None = None,
    executor: Executor | None = None,
    jobs: int | None = None,
    progress: Callable[[Progress], None] | None = None,
    stop: threading.Event | None = None,
) -> CrossValidationData:
    """Leave out parts of the data in turn, and predict each from a fit of the rest.

    The fits begin at the estimate `vector`. `folds` is the number of parts: groups of experiments
    (by default one each), drawn by `seed`, or successive blocks of time in each experiment (by
    default 5). If a limit or `stop` ends the work, the folds so far are returned, perhaps none.
    Raises InputError for invalid arguments, and if only one part determines an unknown.
    """
    if by not in get_args(Division):
        raise InputError(f"by: {shown(by)} is not known{one_of(str(by), get_args(Division))}")
    check_time_limit(time_limit)
    parts = _parts(problem, by, folds, seed)
    forward = ForwardMap(problem)
    _check_determined(forward, vector, parts)
    control = control_of(seed, time_limit, executor, jobs, progress, None, stop, memory)
    search = FoldSearch(vector, [left for _, left in parts])
    ends: dict[int, Start] = {}
    with running(control), Workers(control) as workers:
        tasks = ((search, i, control) for i in range(len(parts)))
        for _, end, whole in run_starts(tasks, forward, workers, control, len(parts)):
            if not whole and (end.status.cut_short or control.cut_off.reached):
                continue
            ends[end.index] = end
            if progress is not None:
                failed = sum(e.status is Status.FAILED for e in ends.values())
                progress(Progress(len(ends), failed, math.nan, 0, "cross-validation"))
    predicted = [_fold(forward, parts[i][0], parts[i][1], ends[i]) for i in sorted(ends)]
    status = Status.CONVERGED if len(predicted) == len(parts) else Status.TIME_LIMIT
    if control.interrupted.is_set():
        status = control.early
    if not predicted:
        none = math.nan
        return CrossValidationData(
            by, (), none, none, none, problem.keys, status, problem.time_unit
        )
    return _summed(forward, vector, by, predicted, status)


def without(problem: Problem, left: Mapping[tuple[str, str], BoolArray]) -> Problem:
    """Return the problem without some measurements, by experiment and observable."""
    return _with_measurements(problem, {key: ~mask for key, mask in left.items()}, others=True)


def _with_measurements(
    problem: Problem, masks: Mapping[tuple[str, str], BoolArray], *, others: bool
) -> Problem:
    """Return the problem with these measurements, and all `others` not mentioned."""

    def changed(condition: Condition) -> Condition:
        series = {}
        for name, one in condition.series.items():
            mask = masks.get((condition.name, name))
            if mask is None and others:
                series[name] = one
            elif mask is not None and mask.any():
                series[name] = one.part(mask)
        return replace(condition, series=series)

    reduced = copy(problem)
    reduced.conditions = tuple(changed(c) for c in problem.conditions)
    return reduced


def _parts(
    problem: Problem, by: str, folds: int | None, seed: int
) -> list[tuple[str, dict[tuple[str, str], BoolArray]]]:
    """Return the name of each part, and its measurements."""
    if folds is not None and (not isinstance(folds, int) or isinstance(folds, bool) or folds < 2):
        raise InputError(f"folds: expected a whole number from 2, got {shown(folds)}")
    conditions = problem.conditions
    if by == "block":
        return _blocks(conditions, DEFAULT_BLOCKS if folds is None else folds)
    if len(conditions) < 2:
        raise InputError(
            f'by = "{by}" needs at least two experiments, but there is one; leave out blocks of '
            "time: "
            'by = "block"'
        )
    count = len(conditions) if folds is None else folds
    if count > len(conditions):
        raise InputError(f"folds: {count} parts of {len(conditions)} experiments; give fewer")
    numbers = np.arange(len(conditions)) % count
    if count < len(conditions):
        np.random.default_rng(seed).shuffle(numbers)
    parts = []
    for part in range(count):
        chosen = [c for c, number in zip(conditions, numbers, strict=True) if number == part]
        masks = {
            (c.name, name): np.ones(len(s.rows), dtype=bool)
            for c in chosen
            for name, s in c.series.items()
        }
        parts.append((", ".join(c.name for c in chosen), masks))
    return parts


def _blocks(
    conditions: Sequence[Condition], count: int
) -> list[tuple[str, dict[tuple[str, str], BoolArray]]]:
    """Return blocks of successive times, each with about as many measured times."""
    blocks: list[tuple[str, dict[tuple[str, str], BoolArray]]] = [
        (f"block {k + 1} of {count}", {}) for k in range(count)
    ]
    for condition in conditions:
        rows = np.unique(np.concatenate([s.rows for s in condition.series.values()]))
        if len(rows) < count:
            raise InputError(
                f'folds: experiment "{condition.name}" has {len(rows)} measured times, too few '
                f"for {count} blocks; give fewer"
            )
        numbers = np.arange(len(rows)) * count // len(rows)
        for name, series in condition.series.items():
            block_numbers = numbers[np.searchsorted(rows, series.rows)]
            for k in range(count):
                blocks[k][1][condition.name, name] = block_numbers == k
    return blocks


def _check_determined(
    forward: ForwardMap,
    vector: Array,
    parts: Sequence[tuple[str, Mapping[tuple[str, str], BoolArray]]],
) -> None:
    """Refuse a part that alone determines an unknown, since the rest cannot predict it."""
    evaluation = forward.evaluate(vector, UNDECIDED)
    if isinstance(evaluation, Failure):
        raise InputError(f"cross-validation needs a model that can be integrated: {evaluation}")
    keys = forward.problem.keys
    sizes = sizes_at(forward.problem, vector)
    _, whole = acting(evaluation.information, sizes)
    mistakes = []
    for name, left in parts:
        rest = np.ones(len(evaluation.information), dtype=bool)
        for block in forward.series_rows:
            condition = forward.problem.conditions[block.condition]
            mask = left.get((condition.name, block.name))
            if mask is not None:
                rest[np.arange(block.rows.start, block.rows.stop)[mask]] = False
        _, acts = acting(evaluation.information[rest], sizes)
        lost = [key for key, one, all_ in zip(keys, acts, whole, strict=True) if all_ and not one]
        if lost:
            mistakes.append(
                f"without {name}, the data do not determine {', '.join(lost)}; leave out blocks of "
                'time (by = "block"), or let experiments share these unknowns'
            )
    if mistakes:
        raise InputError(mistakes)


def _fold(
    forward: ForwardMap, name: str, left: Mapping[tuple[str, str], BoolArray], end: Start
) -> Fold:
    """Return the prediction of a part by the fit of the rest."""
    none = np.zeros(0)
    if end.status is Status.FAILED or not math.isfinite(end.cost):
        return Fold(name, (), (), none, none, none, none, end.vector, end.message or "no fit")
    part = _with_measurements(forward.problem, left, others=False)
    residuals = residuals_by(forward.of(part), end.vector)
    if isinstance(residuals, Failure):
        return Fold(name, (), (), none, none, none, none, end.vector, str(residuals))
    return Fold(
        name,
        tuple(r.experiment for r in residuals for _ in r.times),
        tuple(r.observable for r in residuals for _ in r.times),
        np.concatenate([r.times for r in residuals]),
        np.concatenate([r.measured for r in residuals]),
        np.concatenate([r.predicted for r in residuals]),
        -np.concatenate([r.standardized for r in residuals]),
        end.vector,
    )


def _summed(
    forward: ForwardMap, vector: Array, by: str, folds: Sequence[Fold], status: Status
) -> CrossValidationData:
    """Return the figures of all folds together."""
    good = [fold for fold in folds if not fold.failure]
    if not good:
        raise InputError(f"no part could be predicted: {folds[0].failure}")
    evaluation = forward.evaluate(vector, UNDECIDED)
    assert not isinstance(evaluation, Failure)
    rows = np.concatenate([evaluation.residuals[block.rows] for block in forward.series_rows])
    # As in a validation, so that the figures of both can be compared.
    left = len(rows) - len(vector)
    square = float(rows @ rows) / left if left > 0 else math.nan
    unit = 1.0 if forward.given_noise or not square > 0 else math.sqrt(square)
    folds = [replace(fold, residuals=fold.residuals / unit) for fold in folds]
    residuals = np.concatenate([fold.residuals for fold in folds])
    names = np.concatenate([fold.observables for fold in good])
    measured = np.concatenate([fold.measured for fold in good])
    predicted = np.concatenate([fold.predicted for fold in good])
    percents = []
    for name in np.unique(names):
        values_of = measured[names == name]
        spread = float(np.sum((values_of - values_of.mean()) ** 2))
        if spread > 0:
            error = float(np.sum((values_of - predicted[names == name]) ** 2))
            percents.append(100.0 * (1.0 - math.sqrt(error / spread)))
    return CrossValidationData(
        by,
        tuple(folds),
        float(np.mean(residuals**2)),
        square / unit**2,
        float(np.mean(percents)) if percents else math.nan,
        forward.problem.keys,
        status,
        forward.problem.time_unit,
    )
