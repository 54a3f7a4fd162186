"""A second opinion on an integration: the same trajectories by an engine of another family.

Every engine controls its own errors, and each can fail to detect some of them. If CVODES or SciPy's
LSODA gets other values than the engine that was used, further engines integrate with tighter
tolerances, and the values on which engines agree count.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from odefit.common.arrays import Array
from odefit.common.errors import InputError
from odefit.simulation.engines.failure import Failure
from odefit.simulation.engines.registry import (
    ENGINES,
    TIGHT,
    EngineName,
    EngineRow,
    Request,
    judging_engines,
    opinion_engine,
)
from odefit.simulation.forward import ForwardMap
from odefit.simulation.trajectories.trajectory import Trajectory, without_sensitivities
from odefit.simulation.windows import through_windows

ASKED_ACCURACY = 1e-6
"""Negligible difference, relative to the largest magnitude of the compared quantity."""

SHARE_OF_NOISE = 0.1
"""Negligible difference, relative to the standard deviation of the noise."""

FINEST, COARSEST = 1e-8, 1e-6  # range of the relative tolerance of a second opinion

FINER = 1e-3
"""Ratio of the tolerance of a second opinion to the smallest relevant difference. Its errors are
then far smaller, although those of many steps add up."""


@dataclass(frozen=True)
class Difference:
    """The largest difference between two integrations."""

    ratio: float  # The difference over the negligible one; at most one if they agree
    relative: float  # The difference over the largest magnitude of the same quantity
    # The state or observable, and its place.
    name: str
    experiment: str
    time: float
    # Its values by the used engine and by the other one.
    first: float
    second: float


@dataclass(frozen=True)
class SecondOpinion:
    """The second opinion of other engines on an integration."""

    engine: EngineName
    difference: Difference | None  # The largest difference; None if it could not integrate
    # The different engine and tolerance on which others agree; None if the used one is right or no
    # engines agree.
    better: Request | None = None
    agrees: bool = True  # Whether the used engine agrees with another one


@dataclass(frozen=True)
class _Values:
    """A quantity along one experiment, with its negligible differences."""

    name: str
    experiment: str
    times: Array
    values: Array
    tolerance: Array

    @property
    def counting(self) -> float:
        """The smallest relevant difference, relative to the largest magnitude."""
        largest = float(np.abs(self.values).max(initial=0.0))
        if not 0.0 < largest < math.inf:
            return 0.0
        return float(self.tolerance.min()) / largest


def second_opinion(
    forward: ForwardMap,
    vector: Array,
    times: Array | None = None,
    *,
    noise: bool = True,
    used: Sequence[Trajectory] | None = None,
) -> SecondOpinion:
    """Return the comparison with an engine of another family for the trajectories at `vector`.

    It compares at `times`, or at the data times: measurements in units of their noise, or else
    states and observables to the requested accuracy. `used` are the trajectories of `forward` at
    these times, if they are known.
    """
    trajectories = used
    if trajectories is None:
        # The equations of a fit are compiled with sensitivities, which costs less than another
        # compilation. A map without sensitivities at this point integrates the states alone.
        trajectories = _trajectories(forward, vector, times, sensitivities=noise)
    if trajectories is None and noise:
        trajectories = _trajectories(forward, vector, times)
    used_values = None if trajectories is None else _compared(forward, vector, trajectories, noise)
    if trajectories is None or used_values is None:
        engine = ENGINES[forward.engines.first(forward.field)]
        return SecondOpinion(opinion_engine(forward.field, engine).name, None)
    engine = ENGINES[forward.engines.first(forward.field, trajectories[-1].choice)]
    other = _other_family(forward, engine, used_values)
    other_trajectories = _integrated(forward, other, vector, times, trajectories)
    if other_trajectories is None:
        return SecondOpinion(other[0], None)
    if noise:
        # Most agree, and then no residuals of the other engine are needed.
        difference = _largest(
            used_values, _predicted(forward, vector, other_trajectories, used_values)
        )
        if difference.ratio <= 1.0:
            return SecondOpinion(other[0], difference)
    compared = _compared(forward, vector, other_trajectories, noise)
    if compared is None:
        return SecondOpinion(other[0], None)
    difference = _largest(used_values, compared)
    if difference.ratio <= 1.0:
        return SecondOpinion(other[0], difference)
    opinions: list[tuple[Request, list[_Values]]] = [(other, compared)]
    for further in judging_engines(forward.field, engine):
        if further == other:
            continue
        other_trajectories = _integrated(forward, further, vector, times, trajectories)
        values = (
            None
            if other_trajectories is None
            else _compared(forward, vector, other_trajectories, noise)
        )
        if values is None:
            continue
        if _largest(used_values, values).ratio <= 1.0:
            return SecondOpinion(other[0], difference)
        agreeing = [
            one
            for one, known in opinions
            if one[0] != further[0] and _largest(known, values).ratio <= 1.0
        ]
        if agreeing:
            able = [one for one in (further, *agreeing) if ENGINES[one[0]].sensitivities]
            if able:
                worst = _largest(used_values, values)
                return SecondOpinion(further[0], worst, able[0], agrees=False)
        opinions.append((further, values))
    return SecondOpinion(other[0], difference, agrees=False)


def better_map(forward: ForwardMap, opinion: SecondOpinion) -> ForwardMap | None:
    """Return the forward map on which other engines agree, if it is a different one."""
    return None if opinion.better is None else forward.by(*opinion.better)


def _other_family(forward: ForwardMap, engine: EngineRow, used: Sequence[_Values]) -> Request:
    """Return the engine that gives the second opinion, and its tolerance.

    A tolerance near the relevant difference is enough if other engines decide in the end.
    """
    other = opinion_engine(forward.field, engine)
    if all(name == other.name for name, _ in judging_engines(forward.field, engine)):
        return other.at(TIGHT)
    counting = min((one.counting for one in used), default=0.0)
    return other.name, min(max(FINER * counting, FINEST), COARSEST)


def _integrated(
    forward: ForwardMap,
    engine: Request,
    vector: Array,
    times: Array | None,
    used: Sequence[Trajectory],
) -> Sequence[Trajectory] | None:
    """Return the trajectories of all experiments by another engine; None if that fails.

    If the `used` ones have very many parts, it integrates windows of them.
    """
    try:
        other = forward.by(*engine)
        windows = [through_windows(other, vector, k, one) for k, one in enumerate(used)]
        if any(one is None for one in windows):
            return _trajectories(other, vector, times)
        return [one for one in windows if one is not None]
    except InputError:
        return None  # the engine cannot integrate such equations, or is not installed


def _trajectories(
    forward: ForwardMap, vector: Array, times: Array | None, *, sensitivities: bool = False
) -> Sequence[Trajectory] | None:
    """Return the states of all experiments; None if an integration fails.

    With `sensitivities` they are integrated with their derivatives, which are not used here.
    """
    trajectories: Sequence[Trajectory | Failure]
    if times is None:
        every = forward.trajectories(vector, sensitivities=sensitivities)
        trajectories = [every] if isinstance(every, Failure) else every
    else:
        trajectories = [
            forward.trajectory(vector, condition.name, times, sensitivities=sensitivities)
            for condition in forward.problem.conditions
        ]
    states = [without_sensitivities(one) for one in trajectories if not isinstance(one, Failure)]
    return states if len(states) == len(trajectories) else None


def _compared(
    forward: ForwardMap, vector: Array, trajectories: Sequence[Trajectory], noise: bool
) -> list[_Values] | None:
    """Return the quantities compared between trajectories; None if residuals are undefined."""
    if noise:
        return _measured(forward, vector, trajectories)
    compared = []
    several = len(forward.problem.conditions) > 1
    for condition, trajectory in zip(forward.problem.conditions, trajectories, strict=True):
        experiment = condition.name if several else ""
        named = {n: trajectory.states[:, i] for i, n in enumerate(forward.field.states)}
        predicted = forward.predictions(condition, vector, trajectory)
        named |= {n: np.asarray(d.value, dtype=float) for n, d in predicted.items()}
        for name, values in named.items():
            series_values = np.broadcast_to(values, trajectory.times.shape)
            largest = np.abs(series_values[np.isfinite(series_values)]).max(initial=0.0)
            compared.append(
                _Values(
                    name=name,
                    experiment=experiment,
                    times=trajectory.times,
                    values=series_values,
                    tolerance=np.full(len(series_values), ASKED_ACCURACY * largest),
                )
            )
    return compared


def _measured(
    forward: ForwardMap, vector: Array, trajectories: Sequence[Trajectory]
) -> list[_Values] | None:
    """Return the predictions of all measurements, with a tenth of their noise as tolerance."""
    measured = []
    several = len(forward.problem.conditions) > 1
    blocks = forward.series_residuals(vector, trajectories)
    for condition in forward.problem.conditions:
        for name, series in condition.series.items():
            block = next(blocks)
            if isinstance(block, Failure):
                return None
            count = len(series.values)
            predicted, standardised = block.predicted, block.residuals
            sds = np.abs(block.sds)
            if not forward.given_noise:
                # Plain least squares: the residuals give the size of the noise.
                sds = sds * math.sqrt(float(np.mean(standardised**2)))
            asked = np.abs(predicted)
            if not forward.given_noise:
                asked = np.full(count, asked[np.isfinite(asked)].max(initial=0.0))
            tolerance = np.maximum(SHARE_OF_NOISE * sds, ASKED_ACCURACY * asked)
            measured.append(
                _Values(
                    name=name,
                    experiment=condition.name if several else "",
                    times=condition.times[series.rows],
                    values=predicted,
                    tolerance=tolerance,
                )
            )
    return measured


def _predicted(
    forward: ForwardMap,
    vector: Array,
    trajectories: Sequence[Trajectory],
    like: Sequence[_Values],
) -> list[_Values]:
    """Return the predictions of all measurements, with the tolerances of other predictions."""
    quantities = []
    others = iter(like)
    for condition, trajectory in zip(forward.problem.conditions, trajectories, strict=True):
        predicted = forward.predictions(condition, vector, trajectory)
        for name, series in condition.series.items():
            values = predicted[name].array(len(condition.times))[series.rows]
            quantities.append(replace(next(others), values=values))
    return quantities


def _largest(used: Sequence[_Values], other: Sequence[_Values]) -> Difference:
    """Return the largest difference, relative to the negligible one."""
    worst = Difference(
        ratio=0.0,
        relative=0.0,
        name="",
        experiment="",
        time=math.nan,
        first=math.nan,
        second=math.nan,
    )
    for one, two in zip(used, other, strict=True):
        if not len(one.values):
            continue
        tolerance = np.maximum(one.tolerance, two.tolerance)
        with np.errstate(all="ignore"):
            apart = np.abs(one.values - two.values)
            same = (one.values == two.values) | (np.isnan(one.values) & np.isnan(two.values))
            ratios = np.where(same, 0.0, apart / tolerance)
        ratios = np.where(np.isnan(ratios), math.inf, ratios)
        k = int(np.argmax(ratios))
        if ratios[k] > worst.ratio:
            # The other engine's values may be undefined everywhere, as under a root.
            defined = two.values[np.isfinite(two.values)]
            size = max(float(np.abs(defined).max(initial=0.0)), 1e-300)
            worst = Difference(
                ratio=float(ratios[k]),
                relative=float(apart[k]) / size,
                name=one.name,
                experiment=one.experiment,
                time=float(one.times[k]),
                first=float(one.values[k]),
                second=float(two.values[k]),
            )
    return worst
