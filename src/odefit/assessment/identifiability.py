"""Local identifiability before any fit: the rank of the sensitivities at generic points.

Predictions depend on the unknowns through a matrix of sensitivities, whose rank is the same at
almost every point. A direction in its null space at each of a few points is not determined by
measurements at these times, however precise. This is a numerical finding, not a proof: an unknown
may act elsewhere, and one that acts here may have two equivalent effects.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from odefit.assessment.intervals.directions import describe_directions
from odefit.assessment.intervals.uncertainty import PARTICIPATION, is_weak, singular_directions
from odefit.assessment.parts import Direction
from odefit.common.arrays import Array
from odefit.common.effects import column_norms
from odefit.methods.estimate import Status
from odefit.methods.multi_start import MultiStart
from odefit.methods.running.control import Control, Interruption
from odefit.methods.single_shooting import SingleShooting
from odefit.problem.binding import unknowns_of
from odefit.problem.condition import Series
from odefit.problem.noise import Noise
from odefit.problem.noise_distributions.registry import log_of_base
from odefit.problem.problem import Problem
from odefit.problem.variants.sizes import sizes_at
from odefit.simulation import Evaluation, Failure, ForwardMap
from odefit.simulation.engines.cut_off import WorkLimit, count_work, counting
from odefit.simulation.engines.engine_choice import UNDECIDED
from odefit.simulation.engines.registry import EngineName
from odefit.simulation.residuals.noise import names_in_noise, standard_deviations
from odefit.simulation.residuals.observation import observe
from odefit.simulation.trajectories.trajectory import Trajectory

POINTS, MAX_POINTS = 6, 16
"""Number of points at which the sensitivities are computed, and the largest number if some unknown
is determined at none of the first."""

SCREENING = MultiStart(screening=4)
"""Every other point is the guess, or the best of four samples of the start ranges."""

APPROACH = SingleShooting(evaluations=12)
"""The remaining points are a few steps from those towards the data. Far from the data most unknowns
have no visible effect: everything has decayed before the first measurement, or nothing has happened
by the last."""

# Operations of odefit.simulation.engines.cut_off: the limit for beginning another point, and those
# of an evaluation beside its integration for each pair of unknowns (bounds become active singly)
MAX_WORK, PER_PAIR = 7e7, 3.0

MAX_DIRECTIONS = 100  # largest number of directions in words; each needs integrations

NO_EFFECT = 1e-9  # sensitivities relative to the largest that count as zero: their accuracy

ASSUMED_NOISE = 0.01
"""Assumed standard deviation, relative to an observable's largest value, if none is given."""


@dataclass(frozen=True, eq=False)
class PointFinding:
    """The rank of the sensitivities at one point, and its consequences.

    Attributes
    ----------
    vector
        The unknowns, shape (n,).
    failure
        The reason why the model cannot be evaluated there; the rest is then empty.
    engine
        The engine that integrated: ``"heyoka"``, or ``"bdf"`` or ``"casadi"`` where the equations
        are stiff.
    rank
        The rank of the sensitivities.
    determined, effective
        For each unknown, whether it is determined, and whether it changes any prediction;
        shape (n,).
    errors
        The standard errors to expect, shape (n,), infinite without one.
    """

    vector: Array
    failure: Failure | None
    engine: EngineName
    rank: int = 0
    determined: Array = field(default_factory=lambda: np.zeros(0, dtype=bool))
    effective: Array = field(default_factory=lambda: np.zeros(0, dtype=bool))
    errors: Array = field(default_factory=lambda: np.zeros(0))


@dataclass(frozen=True, eq=False)
class Identifiability:
    """The unknowns that measurements at the data times determine, numerically and locally.

    Attributes
    ----------
    keys
        The unknowns.
    points
        The points at which the sensitivities were computed.
    rank
        The largest rank at any point; None where the model could not be evaluated anywhere.
    scatter
        Unknowns that act only on the noise: the scatter of the residuals determines them.
    no_effect
        Unknowns that are determined at no point, and change no prediction where the rank is
        largest.
    undetermined
        Other unknowns that are determined at no point.
    weak
        Unknowns whose standard error is larger than their value (or than the width of their
        bounds), at every point.
    sometimes
        The number of points at which an unknown is determined, if it is not at all of them.
    directions
        The directions that are not determined, in words; empty if there are more than
        :data:`MAX_DIRECTIONS`.
    assumed_noise
        Whether `weak` rests on :data:`ASSUMED_NOISE`.
    """

    keys: tuple[str, ...]
    points: tuple[PointFinding, ...]
    rank: int | None
    scatter: tuple[str, ...] = ()
    no_effect: tuple[str, ...] = ()
    undetermined: tuple[str, ...] = ()
    weak: tuple[str, ...] = ()
    sometimes: dict[str, int] = field(default_factory=dict)
    directions: tuple[Direction, ...] = ()
    assumed_noise: bool = False

    @property
    def usable(self) -> tuple[PointFinding, ...]:
        """The points at which the model could be evaluated."""
        return tuple(p for p in self.points if p.failure is None)

    @property
    def confirmed(self) -> bool:
        """True if two points agree on the largest rank, or there is only one point.

        The rank is the same at almost every point. If only one of several points reaches the
        largest rank, rounding or poor points hide directions at the others, and perhaps at this
        point as well.
        """
        ranks = [p.rank for p in self.usable]
        return len(ranks) < 2 or ranks.count(max(ranks)) > 1

    @property
    def sentence(self) -> str:
        """A sentence on the finding and its reliability."""
        if not self.points or len(self.scatter) == len(self.keys):
            return "No unknown has an effect on the predictions of the model."
        count = len(self.usable)
        if not count:
            return (
                "The model could not be evaluated at any point, so nothing is known about "
                "its identifiability."
            )
        lost = len(self.no_effect) + len(self.undetermined)
        unknowns = len(self.keys) - len(self.scatter)
        if unknowns == 1:
            finding = (
                "The only unknown is not determined" if lost else "The one unknown is determined"
            )
        elif lost and not self.confirmed:
            finding = f"At least {unknowns - lost} of {unknowns} unknowns are determined"
        elif lost:
            finding = f"{lost} of {unknowns} unknowns {'is' if lost == 1 else 'are'} not determined"
        else:
            finding = f"All {unknowns} unknowns are determined"
        where = "1 point" if count == 1 else f"{count} points"
        doubt = (
            ". Only one of these points reached the largest rank, so the others may be determined "
            "elsewhere."
            if lost and not self.confirmed
            else "; not a proof."
        )
        return (
            f"{finding}, locally: found numerically from the sensitivities at these data times, "
            f"at {where}{doubt}"
        )


def local_identifiability(
    forward: ForwardMap, seed: int = 0, points: Iterable[Array] | None = None
) -> Identifiability:
    """Find the unknowns that the data of a problem can determine, near generic points.

    Priors are ignored, since the question is about the measurements.

    Parameters
    ----------
    forward
        The forward map of the problem.
    seed
        The seed of the choice of points.
    points
        Vectors of unknowns, shape (n,) each; by default the starts of a fit with this seed, and
        points a few steps on.
    """
    problem = forward.problem
    if not problem.unknowns:
        return Identifiability((), (), 0)
    seen = _without_priors(forward)
    findings: list[PointFinding] = []
    best: tuple[PointFinding, Evaluation, Array] | None = None
    scatter = _scatter(problem)
    limit = WorkLimit(MAX_WORK)
    rows = 0
    for vector in _points(forward, seed, limit) if points is None else points:
        if points is None and len(findings) >= POINTS and _complete(findings, scatter, rows):
            break
        with counting(limit):
            count_work(PER_PAIR * len(vector) ** 2)
            along = seen.trajectories(vector, UNDECIDED)
        evaluation = along if isinstance(along, Failure) else seen.evaluate_along(vector, along)
        point = PointFinding(
            vector,
            evaluation if isinstance(evaluation, Failure) else None,
            seen.engines.first(seen.field, evaluation.choice),
        )
        if isinstance(evaluation, Evaluation) and not isinstance(along, Failure):
            sensitivities = _sensitivities(seen, vector, along)
            rows = max(rows, int(np.any(sensitivities, axis=1).sum()))
            sizes = sizes_at(problem, vector, part=0.0)
            point, basis = _analysed(point, sensitivities, sizes, scatter)
            if best is None or point.rank > best[0].rank:
                best = point, evaluation, basis
        findings.append(point)
    if best is None:
        return Identifiability(problem.keys, tuple(findings), None)
    top, evaluation, basis = best
    directions: tuple[Direction, ...] = ()
    if 0 < len(basis) <= MAX_DIRECTIONS:
        directions = describe_directions(seen, top.vector, evaluation, basis)
    return _summary(problem, findings, top, scatter, directions)


def _points(forward: ForwardMap, seed: int, limit: WorkLimit) -> Iterator[Array]:
    """Yield start points, each followed by one nearer to the data; work in between counts."""
    control = Control(seed=seed, interrupted=Interruption(limit))
    for i in range(MAX_POINTS // 2):
        with counting(limit):
            start = SCREENING.start_point(forward, i, control)
        yield start
        if control.should_stop():
            break
        with counting(limit):
            end = APPROACH.run(forward, i, start, control)
            count_work(PER_PAIR * len(start) ** 2 * end.evaluations)
        if end.status is not Status.FAILED and not np.array_equal(end.vector, start):
            yield end.vector
        if control.should_stop():
            break


def _without_priors(forward: ForwardMap) -> ForwardMap:
    """Return the forward map of the same problem without priors."""
    problem = forward.problem
    held = {u.name: replace(u.parameter, prior=None) for u in problem.unknowns if u.parameter.prior}
    return ForwardMap(problem.with_parameters(**held)) if held else forward


def _complete(findings: list[PointFinding], scatter: set[int], rows: int) -> bool:
    """Return whether further points would show nothing new.

    Either every unknown was determined at some point, or every unknown has an effect and the rank
    equals the number of rows, which no other point can exceed.
    """
    usable = [p for p in findings if p.failure is None]
    if not usable:
        return False
    lost = np.flatnonzero(~np.any([p.determined for p in usable], axis=0))
    idle = np.flatnonzero(~np.any([p.effective for p in usable], axis=0))
    full = max(p.rank for p in usable) == rows
    return set(lost) <= scatter or (full and set(idle) <= scatter)


def _summary(
    problem: Problem,
    findings: list[PointFinding],
    top: PointFinding,
    scatter: set[int],
    directions: tuple[Direction, ...],
) -> Identifiability:
    usable = [p for p in findings if p.failure is None]
    keys = problem.keys
    counts = np.sum([p.determined for p in usable], axis=0)
    assumed = any(
        not series.sds_given and _assumed(problem.noise.get(name, Noise()))
        for c in problem.conditions
        for name, series in c.series.items()
    )
    lost = [i for i in range(len(keys)) if i not in scatter and not counts[i]]
    weak = [
        i
        for i in range(len(keys))
        if counts[i]
        and all(
            is_weak(problem.unknowns[i], p.vector[i], p.errors[i])
            for p in usable
            if p.determined[i]
        )
    ]
    return Identifiability(
        keys,
        tuple(findings),
        top.rank,
        tuple(keys[i] for i in sorted(scatter)),
        tuple(keys[i] for i in lost if not top.effective[i]),
        tuple(keys[i] for i in lost if top.effective[i]),
        tuple(keys[i] for i in weak),
        {keys[i]: int(c) for i, c in enumerate(counts) if 0 < c < len(usable)},
        directions,
        assumed,
    )


def _analysed(
    point: PointFinding, sensitivities: Array, sizes: Array, scatter: set[int]
) -> tuple[PointFinding, Array]:
    """Return the finding at a point, and a basis of undetermined directions (natural units)."""
    n = len(sizes)
    relative = sensitivities * sizes
    norms = column_norms(relative)
    effective = norms > NO_EFFECT * norms.max(initial=0.0)
    free = np.flatnonzero(effective)
    determined = np.zeros(n, dtype=bool)
    errors = np.full(n, math.inf)
    basis = np.zeros((0, n))
    rank = 0
    if len(free):
        s, vt, known, share = singular_directions(relative[:, free] / norms[free])
        rank = int(known.sum())
        basis = np.zeros((len(free) - rank, n))
        basis[:, free] = vt[~known] / norms[free] * sizes[free]
        good = share <= PARTICIPATION
        determined[free[good]] = True
        variances = np.sum((vt[known] / s[known, None]) ** 2, axis=0)
        errors[free[good]] = (np.sqrt(variances) / norms[free] * sizes[free])[good]
    return replace(
        point, rank=rank, determined=determined, effective=effective, errors=errors
    ), basis


def _sensitivities(forward: ForwardMap, vector: Array, trajectories: Sequence[Trajectory]) -> Array:
    """Return sensitivities of all predictions in standard deviations, shape (measurements, n)."""
    n = len(vector)
    rows = []
    in_noise = names_in_noise(forward.problem)
    with np.errstate(all="ignore"):
        for condition, trajectory in zip(forward.problem.conditions, trajectories, strict=True):
            measured = {*condition.series, *in_noise}
            predicted = observe(forward.field, condition, vector, trajectory, in_noise, measured)
            for name, series in condition.series.items():
                noise = forward.problem.noise.get(name, Noise())
                model = predicted[name].take(series.rows, len(condition.times))
                gradient = model.gradient(n, len(series.rows))
                if noise.transform is not None:
                    slope = model.value * log_of_base(noise.transform)
                    gradient = gradient / np.asarray(slope)[:, None]
                if not series.sds_given and _assumed(noise):
                    sd = _typical(forward.problem, name, noise, series)
                else:
                    sd = standard_deviations(
                        noise, series, predicted, name, condition, vector, None
                    )
                rows.append(gradient / sd[:, None])
    return np.concatenate(rows)


def _assumed(noise: Noise) -> bool:
    """Tell whether the size of the noise is completely unknown."""
    return not noise.known or (noise.relative is None and noise.spread == "estimate")


def _typical(problem: Problem, name: str, noise: Noise, series: Series) -> Array:
    """Return the assumed standard deviations, shape (measurements,)."""
    if noise.transform is not None:
        level = ASSUMED_NOISE / log_of_base(noise.transform)
    else:
        values = [c.series[name].values for c in problem.conditions if name in c.series]
        level = ASSUMED_NOISE * (float(np.max(np.abs(np.concatenate(values)))) or 1.0)
    return np.full(series.rows.shape, level)


def _scatter(problem: Problem) -> set[int]:
    """Return the indices of unknowns that act only on the noise."""
    model = problem.given
    predicting = {
        name
        for table in (model.ode, model.algebraic, model.observables)
        for expression in table.values()
        for name in expression.names
    }
    weighing = {
        name
        for noise in problem.noise.values()
        for expression in noise.expressions
        for name in expression.names
    }
    indices = {i for i, u in enumerate(problem.unknowns) if u.kind == "noise"}
    acting: set[int] = set()
    for condition in problem.conditions:
        scalars = condition.scalars
        assigned = {n for assign in condition.assignments for e in assign.values() for n in e.names}
        quantities = [scalars[n] for n in (predicting | assigned) & scalars.keys()]
        times = [event.time for event in condition.located if event.time is not None]
        for event in condition.located:
            quantities += [scalars[n] for n in event.conditional & scalars.keys()]
        for quantity in (*quantities, *times, *condition.initial.values()):
            acting |= unknowns_of(quantity, scalars)
        for name in weighing & scalars.keys():
            indices |= unknowns_of(scalars[name], scalars)
    return indices - acting
