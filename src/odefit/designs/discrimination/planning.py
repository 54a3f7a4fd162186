"""Designs that discriminate between two models: from a request to measurements."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from odefit.common.arrays import Array
from odefit.common.errors import InputError
from odefit.designs.candidates import Pool
from odefit.designs.discrimination.one_by_one import chosen
from odefit.designs.discrimination.rivals import Field, Model, Rivals, check_same, factors_alike
from odefit.designs.discrimination.t_optimal import LIGHT, Closest, Divided, divided, exact, refined
from odefit.designs.exact import Exchange
from odefit.designs.factors import factors_of, runs_on_a_grid
from odefit.designs.information import InformationMap
from odefit.designs.knowledge import Knowledge
from odefit.designs.observables import with_observables
from odefit.designs.parts import (
    ContinuousDesign,
    Criterion,
    DesignData,
    RivalCurves,
    Rivalry,
    Run,
)
from odefit.designs.planning import (
    apportioned,
    measurements_of,
    nothing_to_measure,
    relative_curves,
    support_points,
)
from odefit.designs.refinement import Neighbourhood
from odefit.designs.request import Request
from odefit.designs.weights import Weights
from odefit.problem.problem import Problem

SAME = 1e-6
"""Sum of squares below which the predictions of both models count as equal."""


def plan_discrimination(
    request: Request,
    known: Knowledge,
    other: Problem,
    of_other: Knowledge,
    texts: Sequence[str] | str | None = None,
    vary: Mapping[str, Any] | None = None,
    noise: Mapping[str, Any] | None = None,
) -> DesignData:
    """Return the design that discriminates between the model of a request and another one.

    `texts`, `vary` and `noise` are the request's arguments of these names, which apply to the other
    model, too. Raises InputError if the models have different measurements, if nothing can be
    measured, or if no measurement distinguishes the models.
    """
    check_same(request.problem, other, request.experiments)
    observables = [texts] if isinstance(texts, str) else texts
    other, _ = with_observables(
        other, list(request.observables) if observables is None else observables, noise
    )
    factors = factors_of(other, vary or {}, request.experiments)
    if not factors_alike(request.factors, factors):
        raise InputError("vary: the two models do not have the same settings")
    rivals = Rivals(
        _model(request.problem, request, known, request.factors),
        _model(other, request, of_other, factors),
        request.groups,
        request.costs,
    )
    runs = runs_on_a_grid(request.experiments, request.factors)
    places = [(run, [w.grid for w in request.windows]) for run in runs]
    pool, field = rivals.pool(places)
    if not pool.count:
        raise InputError(nothing_to_measure(rivals.right.information))
    if request.criterion is Criterion.BUZZI_FERRARIS:
        design, values = chosen(pool, field, request.limits)
        return _design_of(
            request, known, rivals, pool, field, design, max(values, default=0.0), None
        )
    closest = Closest(pool, field)
    whole = divided(closest, request.limits.effort)
    if whole.bound <= SAME:
        raise InputError(
            f'against: "{rivals.other.name}" predicts the same as "{rivals.right.name}" of all '
            "that may be measured; name other observables, times or settings"
        )
    near = Neighbourhood(request.windows, request.factors)
    fine, field_there = rivals.pool([*places, *_around(near, pool, whole)])
    closest = Closest(fine, field_there)
    whole = divided(closest, request.limits.effort)
    shares = Weights(whole.support, whole.weights, whole.value, 0.0, np.zeros(fine.count), 1.0)
    begin = apportioned(shares, request.limits, fine)
    design, value = exact(closest, request.limits, begin)
    if not design:
        raise InputError("budget: no single measurement is within the budget and the limits")
    better = refined(rivals, near, request.limits, fine.points(design), value)
    best = _continuous(fine, whole)
    pool, field = fine, field_there
    if better is not None:
        pool, field, design, value = better
    along = fine, whole.relative
    return _design_of(request, known, rivals, pool, field, design, value, best, along)


def _model(problem: Problem, request: Request, known: Knowledge, factors: Sequence[Any]) -> Model:
    variance = 1.0 if known.variance is None else known.variance
    information = InformationMap(problem, request.observables, factors, variance)
    return Model(problem.name, problem, known.estimate, information, known.existing)


def _around(near: Neighbourhood, pool: Pool, whole: Divided) -> list[tuple[Run, list[Array]]]:
    """Return places near the points of a continuous design, on finer and finer grids."""
    heavy = whole.support[whole.weights > LIGHT]
    points = pool.points(heavy)
    places: list[tuple[Run, list[Array]]] = []
    for step, share in near.steps[1:4]:
        places += near.around(points, step, share)
    return places


def _continuous(pool: Pool, whole: Divided) -> ContinuousDesign:
    runs, points = support_points(pool, whole.support, whole.weights, LIGHT)
    excess = whole.bound / whole.value - 1.0 if whole.value > 0 else math.inf
    return ContinuousDesign(points, runs, math.log(max(whole.value, 1e-300)), excess, pool.count)


def _design_of(
    request: Request,
    known: Knowledge,
    rivals: Rivals,
    pool: Pool,
    field: Field,
    design: Sequence[int],
    value: float,
    best: ContinuousDesign | None,
    along: tuple[Pool, Array] | None = None,
) -> DesignData:
    """Return a design with the predictions of both models.

    `along` has the relative derivative of the criterion by a measurement of each candidate.
    """
    runs, measurements = measurements_of(pool, list(design))
    numbers = {i: float(count) for i, count in Counter(design).items()}
    vector, squares = field.closest(numbers)
    turned = Rivals(rivals.other, rivals.right, rivals.groups, rivals.costs)
    places: list[tuple[Run, list[Array]]] = []
    for k, run in enumerate(runs):
        times = [
            np.array(sorted({m.time for m in measurements if m.run == k and m.observables == g}))
            for g in pool.groups
        ]
        places.append((run, times))
    turned_pool, field_there = turned.pool(places)
    counts: dict[int, float] = {}
    predictions: list[tuple[float, float]] = []
    measured = [np.unique(np.concatenate(by_group)) for _, by_group in places]
    second = rivals.other.predictions(runs, measured, rivals.other.vector)
    first = rivals.right.predictions(runs, measured, rivals.right.vector)
    names = list(rivals.right.information.observables)
    for m in measurements:
        index = turned_pool.index(runs[m.run], pool.groups.index(m.observables), m.time)
        if index is not None:
            counts[index] = float(m.count)
        row = int(np.searchsorted(first[m.run].times, m.time))
        for name in m.observables:
            column = names.index(name)
            predictions.append(
                (
                    rivals.right.information.natural(name, first[m.run].values[row, column]),
                    rivals.other.information.natural(name, second[m.run].values[row, column]),
                )
            )
    reverse = math.nan
    if len(counts) == len(measurements):
        reverse = math.sqrt(field_there.closest(counts)[1])
    rivalry = Rivalry(
        _names(rivals),
        math.sqrt(squares),
        reverse,
        tuple(predictions),
        dict(zip(rivals.other.problem.keys, vector.tolist(), strict=True)),
        tuple(_curves(request, rivals, runs, vector)),
    )
    log = math.log(value) if value > 0 else -math.inf
    problem = request.problem
    return DesignData(
        problem=problem.name,
        time_unit=problem.time_unit,
        criterion=request.criterion,
        quantities=(),
        region=known.region,
        samples=1,
        level=request.level,
        existing=problem.size if known.existing else 0,
        seed=request.seed,
        runs=runs,
        measurements=measurements,
        value=log,
        efficiency=math.nan if best is None else math.exp(min(log - best.value, 1.0)),
        continuous=best,
        curves=() if along is None else relative_curves(*along, runs),
        excluded=rivals.right.information.exclusions,
        noise_known=known.variance is not None or rivals.right.information.forward.given_noise,
        cost=Exchange(pool, (), request.limits).cost(list(design)),
        rivalry=rivalry,
    )


def _names(rivals: Rivals) -> tuple[str, str]:
    """Return a name for each model, different if both have the same."""
    first, second = rivals.right.name, rivals.other.name
    return (first, second) if first != second else (first, f"{second} (the other)")


def _curves(
    request: Request, rivals: Rivals, runs: Sequence[Run], vector: Array
) -> list[RivalCurves]:
    """Return the curves of both models in the runs of a design."""
    curves = []
    window = max(request.windows, key=lambda w: w.high)
    low = min(w.low for w in request.windows)
    times = np.linspace(low, window.high, 201) if window.high > low else np.array([low])
    all_times = [times] * len(runs)
    right = rivals.right.predictions(runs, all_times, rivals.right.vector)
    other = rivals.other.predictions(runs, all_times, rivals.other.vector)
    closest = rivals.other.predictions(runs, all_times, vector)
    for k, run in enumerate(runs):
        for j, name in enumerate(rivals.right.information.observables):
            curves.append(
                RivalCurves(
                    run,
                    name,
                    times,
                    rivals.right.information.natural(name, right[k].values[:, j]),
                    rivals.other.information.natural(name, other[k].values[:, j]),
                    rivals.other.information.natural(name, closest[k].values[:, j]),
                )
            )
    return curves
