"""Designs that make unknowns precise: from a request to measurements and their information."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from odefit.common.arrays import Array, IntArray
from odefit.common.effects import RANK_TOLERANCE, column_norms
from odefit.common.errors import InputError
from odefit.designs.candidates import Pool, PoolMaker
from odefit.designs.continuous import optimal_weights
from odefit.designs.criteria import Aim
from odefit.designs.exact import Exchange, Limits, best_exact, within
from odefit.designs.factors import runs_on_a_grid
from odefit.designs.information import InformationMap
from odefit.designs.intervals import planned_intervals
from odefit.designs.knowledge import Knowledge
from odefit.designs.parts import (
    ContinuousDesign,
    Criterion,
    DesignData,
    InformationCurve,
    Measurement,
    Run,
    SupportPoint,
)
from odefit.designs.refinement import Neighbourhood, Refinement
from odefit.designs.remedies import remedies, structure_of
from odefit.designs.request import Request
from odefit.designs.weights import Aims, Weights
from odefit.problem.variants.sizes import sizes_at

RESTARTS = 3
"""Number of random designs from which exchanges begin, in addition to better ones."""

REACHED = 1e-6
"""Part of a quantity's derivatives outside the determined directions above which it is lost."""

SHOWN_WEIGHT = 1e-3
"""Weight above which a point of a continuous design is reported."""


@dataclass(frozen=True, eq=False)
class _Determined:
    """The coordinates that candidates and data determine, and the undetermined quantities."""

    transform: Array  # shape (n, r)
    lost: tuple[str, ...]


def plan(request: Request, known: Knowledge) -> DesignData:
    """Return the design for a request.

    Raises InputError if nothing can be measured, or if the model cannot be integrated.
    """
    problem = request.problem
    variance = 1.0 if known.variance is None else known.variance
    information = InformationMap(problem, request.observables, request.factors, variance)
    rows = [information.existing(v, measurements=known.existing) for v in known.vectors]
    runs = runs_on_a_grid(request.experiments, request.factors)
    places = [(run, [w.grid for w in request.windows]) for run in runs]
    n = len(known.estimate)
    at_estimate = PoolMaker(
        information, request.groups, known.estimate[None], np.eye(n), np.zeros((1, n, n)),
        request.costs,
    )  # fmt: skip
    seen = at_estimate.pool(places)
    if not seen.count:
        raise InputError(nothing_to_measure(information))
    data_rows = information.existing(known.estimate, measurements=known.existing)
    sizes = sizes_at(problem, known.estimate, part=0.0)
    _, gradients = request.quantities.at(information.forward, known.estimate)
    every = np.concatenate([data_rows, seen.atoms.rows[0].reshape(-1, n)])
    determined = _determined(every, sizes, gradients, request.quantities.names)
    common: dict[str, Any] = {
        "problem": problem.name,
        "time_unit": problem.time_unit,
        "criterion": request.criterion,
        "quantities": request.quantities.names,
        "region": known.region,
        "samples": len(known.vectors),
        "level": request.level,
        "existing": problem.size if known.existing else 0,
        "seed": request.seed,
        "noise_known": known.variance is not None or information.forward.given_noise,
        "directions": () if known.uncertainty is None else known.uncertainty.directions,
    }
    if determined.lost:
        suggested = remedies(problem, request.observables, determined.lost, known.existing)
        structure = structure_of(problem, request.observables, known.existing)
        return DesignData(
            **common, runs=(), measurements=(), value=-np.inf, efficiency=np.nan,
            lost=determined.lost, combinations=structure.combinations, remedies=suggested,
            excluded=information.exclusions,
        )  # fmt: skip
    transform = determined.transform
    prior = np.array([(r @ transform).T @ (r @ transform) for r in rows])
    maker = PoolMaker(information, request.groups, known.vectors, transform, prior, request.costs)
    aims = _aims(request, information, known.vectors, transform)
    pool = maker.pool(places)
    if not pool.count:
        raise InputError(nothing_to_measure(information))
    refinement = Refinement(maker, Neighbourhood(request.windows, request.factors))
    effort = request.limits.effort
    # The modified criterion is not convex: measurements cannot be divided for it.
    convex = request.criterion is not Criterion.MODIFIED_E
    divided = aims if convex else [replace(a, criterion=Criterion.D) for a in aims]
    on_grid = optimal_weights(pool.atoms, divided, effort)
    begin = apportioned(on_grid, request.limits, pool)
    restarts = RESTARTS if len(known.vectors) == 1 else 1
    design, _ = best_exact(pool, aims, request.limits, [begin], restarts, request.seed)
    if not design:
        raise InputError("budget: no single measurement is within the budget and the limits")
    final, design, value = refinement.exact(pool, design, aims, request.limits)
    best, checked, weights = None, pool, on_grid
    if convex:
        checked, weights = refinement.continuous(pool, on_grid, aims, effort)
        best = _continuous(checked, weights, aims, effort)
    used, measurements = measurements_of(final, design)
    intervals = planned_intervals(request, known, information, used, measurements, data_rows)
    return DesignData(
        **common,
        runs=used,
        measurements=measurements,
        value=value,
        efficiency=math.nan if best is None else math.exp(min(value - best.value, 1.0)),
        continuous=best,
        intervals=intervals,
        curves=relative_curves(checked, _relative(weights), used) if convex else (),
        excluded=information.exclusions,
        cost=_cost(final, design, request.limits),
    )


def nothing_to_measure(information: InformationMap) -> str:
    """Return the reason why there are no candidates."""
    reasons = {e.reason.value for e in information.exclusions}
    details = [e.detail for e in information.exclusions if e.detail]
    why = details[0] if details else f"predictions are not usable ({', '.join(sorted(reasons))})"
    return f"times: nothing can be measured there: {why}"


def _determined(rows: Array, sizes: Array, gradients: Array, names: tuple[str, ...]) -> _Determined:
    """Return the coordinates that some rows determine, and the undetermined quantities."""
    norms = column_norms(rows)
    acting = norms * sizes > 1e-13 * (norms * sizes).max(initial=0.0)
    units = np.where(acting, norms, 1.0 / sizes)
    scaled = rows / units
    if len(scaled) > len(sizes):
        scaled = np.asarray(np.linalg.qr(scaled, mode="r"))
    _, s, vt = np.linalg.svd(scaled, full_matrices=True)
    s = np.concatenate([s, np.zeros(len(sizes) - len(s))])
    known = s > RANK_TOLERANCE * s[0]
    # Scaled derivatives of each quantity, and their parts outside the determined directions.
    in_units = gradients / units[:, None]
    length = np.linalg.norm(in_units, axis=0)
    outside = np.linalg.norm(vt[~known] @ in_units, axis=0)
    lost = tuple(
        name for name, o, of in zip(names, outside, length, strict=True) if o > REACHED * of
    )
    basis = vt[known].T / units[:, None]
    return _Determined(np.asarray(basis), lost)


def _aims(request: Request, information: InformationMap, vectors: Array, transform: Array) -> Aims:
    """Return the aim at each vector, in the coordinates of a transform, shape (n, r).

    Unknowns are the transform times these coordinates.
    """
    aims = []
    for vector in vectors:
        values, gradients = request.quantities.at(information.forward, vector)
        if request.scale == "relative":
            gradients = gradients / np.where(values != 0, np.abs(values), 1.0)
        aims.append(Aim(request.criterion, transform.T @ gradients))
    return aims


def apportioned(weights: Weights, limits: Limits, pool: Pool) -> list[int]:
    """Return integers near the weights of a continuous design."""
    shares = weights.weights * limits.effort / pool.atoms.costs[weights.support]
    whole = np.floor(shares + 1e-9).astype(int)
    order = np.argsort(whole - shares, kind="stable")
    missing = round(float(shares.sum())) - int(whole.sum())
    whole[order[: max(missing, 0)]] += 1
    candidates = [int(i) for i, k in zip(weights.support, whole, strict=True) for _ in range(k)]
    return within(Exchange(pool, (), limits), candidates)


def _continuous(pool: Pool, weights: Weights, aims: Aims, effort: float) -> ContinuousDesign:
    numbers = np.zeros(pool.count)
    np.add.at(
        numbers, weights.support, weights.weights * effort / pool.atoms.costs[weights.support]
    )
    matrices = pool.atoms.information(numbers)
    value = float(np.mean([a.values(m[None])[0] for a, m in zip(aims, matrices, strict=True)]))
    runs, points = support_points(pool, weights.support, weights.weights, SHOWN_WEIGHT)
    return ContinuousDesign(points, runs, value, weights.excess, pool.count)


def support_points(
    pool: Pool, support: IntArray, weights: Array, least: float
) -> tuple[tuple[Run, ...], tuple[SupportPoint, ...]]:
    """Return the runs and points of a continuous design with more than the `least` weight.

    Candidates of equal runs, observables and times are one point. Less weight goes to the nearest
    point of its run and observables, if there is one.
    """
    runs, measurements = measurements_of(pool, support[weights > least])
    times: dict[tuple[int, tuple[str, ...]], list[float]] = {}
    for m in measurements:
        times.setdefault((m.run, m.observables), []).append(m.time)
    by_place: dict[tuple[int, tuple[str, ...], float], float] = {}
    for (run, group, time), weight in zip(pool.points(support), weights, strict=True):
        series = (runs.index(run), pool.groups[group]) if run in runs else None
        if series in times:
            key = *series, min(times[series], key=lambda known: abs(known - time))
            by_place[key] = by_place.get(key, 0.0) + float(weight)
    points = tuple(SupportPoint(m, by_place[m.run, m.observables, m.time]) for m in measurements)
    return runs, points


def measurements_of(
    pool: Pool, design: list[int] | IntArray
) -> tuple[tuple[Run, ...], tuple[Measurement, ...]]:
    """Return the runs and measurements of a design, in order, with replicates counted."""
    counts: dict[tuple[int, int, float], int] = {}
    runs: list[Run] = []
    for run, group, time in pool.points(sorted(int(i) for i in design)):
        if run not in runs:
            runs.append(run)
        key = runs.index(run), group, time
        counts[key] = counts.get(key, 0) + 1
    measurements = tuple(
        Measurement(at, pool.groups[group], time, count)
        for (at, group, time), count in sorted(counts.items())
    )
    return tuple(runs), measurements


def _relative(weights: Weights) -> Array:
    return weights.derivatives / weights.mean if weights.mean > 1e-6 else weights.derivatives + 1


def relative_curves(
    pool: Pool, relative: Array, runs: Sequence[Run]
) -> tuple[InformationCurve, ...]:
    """Return the relative derivative of the criterion over time, for the runs of a design.

    `relative` has that of a measurement of each candidate, shape (m,).
    """
    curves = []
    for run in runs:
        at = [k for k, other in enumerate(pool.runs) if other == run]
        for group, observables in enumerate(pool.groups):
            which = np.flatnonzero(np.isin(pool.run, at) & (pool.group == group))
            times, first = np.unique(pool.time[which], return_index=True)
            if len(times) > 1:
                values = relative[which][first]
                curves.append(InformationCurve(run, observables, times, values))
    return tuple(curves)


def _cost(pool: Pool, design: list[int], limits: Limits) -> float:
    return Exchange(pool, (), limits).cost(design)
