"""Several valleys of the best fits: their optima, and the lowest of their curves.

If the best fits change from one valley to another, the curve of the estimate's own valley continues
above the lowest one, and meets the limit too early. A side that passes into another valley reveals
it: a refit with nothing held leads from there to another optimum. From each of these, and from a
fit of another profile that refutes a limit, the profile is traced as well. The result is the lowest
of all curves.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from odefit.assessment.profiles.crosscheck import contradicted, refutation
from odefit.assessment.profiles.parts import OPEN, Side
from odefit.assessment.profiles.tasks import Optimum, Task
from odefit.assessment.profiles.tracing import UNCERTAIN
from odefit.common.arrays import Array, IntArray
from odefit.common.cubics import departure
from odefit.methods.local.scaling import Scaling
from odefit.simulation import Evaluation, ForwardMap
from odefit.simulation.engines.engine_choice import UNDECIDED

SAME = 0.02
"""Square of the distance of residuals, relative to the limit, up to which two fits are the same."""

HIGHEST = 0.9
"""Deviance of an optimum, relative to the limit, above which its valley is ignored."""


TIE = 1e-3
"""Deviance above the other curves, relative to the limit, up to which a point counts as low as
they."""

LOWER = 0.02
"""Deviance below all other curves, relative to the limit, at which an unfinished curve leaves the
limit open."""


def other_optima(forward: ForwardMap, best: Optimum, sides: Sequence[Side]) -> list[Array]:
    """Return the optima besides the estimate to which sides have led, the lowest first."""
    first = forward.evaluate(best.vector, UNDECIDED)
    assert isinstance(first, Evaluation), "the estimate has been evaluated before"
    # An optimum that one integration cannot follow cannot be traced from either.
    evaluated = [(x, forward.evaluate(x, UNDECIDED)) for side in sides for x in side.optima]
    evaluations = [(x, e) for x, e in evaluated if isinstance(e, Evaluation)]
    evaluations.sort(key=lambda pair: pair[1].cost)
    known, others = [first.residuals], []
    for x, e in evaluations:
        if best.deviance.at(e.cost) > HIGHEST * best.limit:
            break
        nearest = min(float(np.sum((e.residuals - r) ** 2)) for r in known)
        if nearest > SAME * best.limit * best.deviance.variance:
            known.append(e.residuals)
            others.append(x)
    return others


OTHER = 0.05
"""Difference from the curve, relative to the limit, above which a point is not on it."""


def merged(best: Optimum, tasks: Sequence[Task], sides: dict[Task, Side]) -> dict[Task, Side]:
    """Return the sides of the tasks, each the lowest of the curves of all valleys."""
    sides, lowest = with_points(best, sides), {}
    for task in tasks:
        others = [(t, s) for t, s in sides.items() if t != t.side and t.key == task.key]
        if task in sides:
            curves_of = [(t.inward or bool(t.fit), s) for t, s in others if t.side == task]
            curves = [sides[task], *(s for no_end, s in curves_of if not no_end)]
            back = [s for no_end, s in curves_of if no_end]
            across = [s for t, s in others if t.side != task]
            first = best.first(task)
            lowest[task] = (
                lowest_of(curves, task.sign, first, best.limit, back, across)
                if others
                else curves[0]
            )
    return lowest


def lowest_of(
    sides: Sequence[Side],
    sign: int,
    first: float,
    limit: float,
    back: Sequence[Side] = (),
    across: Sequence[Side] = (),
) -> Side:
    """Return the side formed by the curves of several valleys: the lowest everywhere.

    It ends where the last of them does. An unfinished curve below all others leaves it unfinished.
    The first of `sides` is the one from the estimate. `back` are curves from other valleys towards
    the estimate: they have points, but no end of the side. `across` are curves of the opposite side
    from other valleys, whose optimum may be on this side; they are counted there.
    """
    curves = [*sides, *back, *across]

    def reach(side: Side) -> float:
        if side.end in OPEN:
            return math.inf
        if side.end == "limit":
            return sign * (side.limit - first)
        return float(np.max(sign * (side.at - first), initial=0.0))

    def others(side: Side, outward: Array) -> Array:
        """Return the lowest deviance of all other curves; infinite without one."""
        lowest = np.full(len(outward), math.inf)
        for other in curves:
            if other is not side:
                start = [0.0] if other is sides[0] else []
                at = np.concatenate([start, sign * (other.at - first)])
                deviances = np.concatenate([start, other.deviances])
                slopes = np.concatenate([start, sign * other.slopes])
                lowest = np.minimum(lowest, between(at, deviances, slopes, outward))
        return lowest

    def unanswered(side: Side) -> bool:
        """Return whether a curve ends unfinished, on this side and below all others."""
        at = np.array([reach(side)])
        last = float(side.deviances[np.argmax(sign * side.at)]) if len(side.at) else math.inf
        return bool(at[0] > 0 and last < others(side, at)[0] - LOWER * limit)

    answers = [s for s in sides if s.end == "limit" or s.end in OPEN]
    lost = [s for s in sides if s not in answers and unanswered(s)]
    endless = [s for s in answers if s.end in OPEN]
    ended = (endless or [max(lost or answers or sides, key=reach)])[0]
    parts: list[tuple[Side, IntArray]] = []
    for side in curves:
        outward = sign * (side.at - first)
        # If two curves coincide, cubics may be below the points of both.
        level = others(side, outward) + TIE * limit
        lowest = (outward > 0) & (side.deviances <= level)
        # Beyond the end of the whole, only the curve that ends there continues.
        parts.append((side, np.flatnonzero(lowest & ((outward <= reach(ended)) | (side is ended)))))
    # Curves that begin at the same optimum share that point.
    outward = np.concatenate([sign * side.at[mask] for side, mask in parts])
    order = np.unique(outward, return_index=True)[1]

    def joined(name: str) -> Array:
        return np.concatenate([getattr(side, name)[mask] for side, mask in parts])[order]

    return replace(
        ended,
        at=joined("at"),
        deviances=joined("deviances"),
        slopes=joined("slopes"),
        vectors=joined("vectors"),
        evaluations=sum(s.evaluations for s in [*sides, *back]),
        minimisations=sum(s.minimisations for s in [*sides, *back]),
    )


def unchecked(tasks: Sequence[Task], sides: Mapping[Task, Side], narrow: bool) -> set[Task]:
    """Return the sides that were not compared with other optima, because time ran out.

    If the estimate's valley is `narrow`, limits are checked from the optima of other valleys, to
    which any side may lead.
    """
    if narrow and any(t not in sides or sides[t].end == "stopped" for t in tasks):
        return {t for t in tasks if t.quantity is None}
    # A planned point of a curve that was not added leaves its limit unchanged.
    return {t.side for t, s in sides.items() if t.start and not t.fit and s.end == "stopped"}


def with_points(best: Optimum, sides: Mapping[Task, Side]) -> dict[Task, Side]:
    """Return the curves with the points that were added to them.

    A point off its curve lies in another valley and remains separate.
    """
    curves = {task: side for task, side in sides.items() if not task.fit}
    for task, point in sides.items():
        curve = curves.get(task.curve)
        if not task.fit or curve is None:
            continue
        if _belongs(point, whole_curve(best, task.curve, curve), OTHER * best.limit):
            curve = replace(
                curve,
                at=np.concatenate([curve.at, point.at]),
                deviances=np.concatenate([curve.deviances, point.deviances]),
                slopes=np.concatenate([curve.slopes, point.slopes]),
                vectors=np.concatenate([curve.vectors, point.vectors]),
            )
        else:
            curves[task] = replace(point, evaluations=0, minimisations=0)
        curves[task.curve] = replace(
            curve,
            evaluations=curve.evaluations + point.evaluations,
            minimisations=curve.minimisations + point.minimisations,
        )
    return curves


def _belongs(point: Side, curve: tuple[Array, Array, Array], tolerance: float) -> bool:
    """Return whether a point between those of a curve is near the expected curve.

    The cubic may be far below it, but the points on both sides are not.
    """
    at, deviances, _ = curve
    if not len(point.at) or not at.min() < point.at[0] < at.max():
        return False
    deviance, expected = float(point.deviances[0]), float(between(*curve, point.at)[0])
    before = deviances[np.argmax(np.where(at < point.at[0], at, -math.inf))]
    after = deviances[np.argmin(np.where(at > point.at[0], at, math.inf))]
    highest = max(expected + tolerance, float(before), float(after))
    return expected - tolerance <= deviance <= highest


def passages(best: Optimum, tasks: Sequence[Task], sides: Mapping[Task, Side]) -> list[Task]:
    """Return points to be added to the curves that form the lowest one.

    It has a kink where it passes from one to another, which no cubic follows. On both sides of the
    kink a point is needed on the lower curve, unless the cubic is close to both curves. Such a
    point can also show that the cubic on its other side is uncertain.
    """
    curves, points_to_add = with_points(best, sides), []
    for task, side in merged(best, tasks, dict(sides)).items():
        if task.quantity is not None:
            continue
        curves_of = {
            t: whole_curve(best, t, s)
            for t, s in curves.items()
            if t.key == task.key and not t.fit and (t.start or t == task)
        }
        at, deviances, slopes = whole_curve(best, task.side, side)
        vectors = np.concatenate([best.vector[None, :], side.vectors])
        order = np.argsort(task.sign * at)
        for low, high in pairwise(order):
            ends = [_containing(curves_of, at[k], deviances[k]) for k in (low, high)]
            if not all(ends) or deviances[[low, high]].min() >= best.limit:
                continue
            common = [t for t in ends[0] if t in ends[1]]
            if common:
                rises = deviances[[low, high]] / best.limit
                step = at[high] - at[low]
                if departure(step, rises, slopes[[low, high]] / best.limit) > UNCERTAIN:
                    begins = sorted((low, high), key=lambda k: float(deviances[k]))
                    middle = replace(common[0], at=float(at[low] + 0.5 * step))
                    both = [replace(middle, fit=tuple(map(float, vectors[k]))) for k in begins]
                    # From the worse one only if there was no point from the better one.
                    points_to_add += [t for t in both if t not in sides][:1]
                continue
            inner = np.linspace(at[low], at[high], 41)[1:-1]
            cubic = between(at[[low, high]], deviances[[low, high]], slopes[[low, high]], inner)
            first, second = (between(*curves_of[t[0]], inner) for t in ends)
            lowest = np.minimum(first, second)
            known = np.isfinite(lowest)
            if np.abs(cubic - lowest)[known].max(initial=0.0) <= UNCERTAIN * best.limit:
                continue
            beyond = np.isfinite(first) & (second < first)
            kink = int(np.argmax(beyond)) if beyond.any() else len(inner) // 2
            for k, curve, beside in ((low, ends[0][0], kink - 2), (high, ends[1][0], kink + 1)):
                if 0 <= beside < len(inner):
                    fit = tuple(map(float, vectors[k]))
                    points_to_add.append(replace(curve, at=float(inner[beside]), fit=fit))
    return [task for task in points_to_add if task not in sides]


def whole_curve(best: Optimum, task: Task, side: Side) -> tuple[Array, Array, Array]:
    """Return coordinates, deviances and slopes of a curve, with the estimate if it is on it."""
    first = [best.first(task)]
    first, none = ([], []) if task.start else (first, [0.0])
    return (
        np.concatenate([first, side.at]),
        np.concatenate([none, side.deviances]),
        np.concatenate([none, side.slopes]),
    )


def _containing(
    curves: Mapping[Task, tuple[Array, Array, Array]], at: float, deviance: float
) -> list[Task]:
    """Return the curves that have a point."""
    return [
        task
        for task, (values, deviances, _) in curves.items()
        if ((values == at) & (deviances == deviance)).any()
    ]


def refuted(
    best: Optimum, sides: dict[Task, Side]
) -> tuple[dict[Task, Side], dict[Task, tuple[float, ...]]]:
    """Return the sides, without the limits that points of other profiles refute, and these points.

    The value of an expression may need an integration: only unknowns are compared.
    """
    unrefuted, starts = dict(sides), {}
    scaling = Scaling.of(best.problem)
    for task, side in sides.items():
        others = [(t, s) for t, s in sides.items() if t.key != task.key and len(s.at)]
        if task.quantity is not None or not others:
            continue
        vectors = np.concatenate([s.vectors for _, s in others])
        arguments = (
            side,
            task.sign,
            float(scaling.coordinates(best.vector)[task.index]),
            best.limit,
            np.array([scaling.coordinates(v)[task.index] for v in vectors]),
            np.concatenate([s.deviances for _, s in others]),
            [t.key for t, s in others for _ in s.at],
            bool(scaling.logarithmic[task.index]),
        )
        unrefuted[task] = contradicted(*arguments)
        refuting = refutation(*arguments)
        if refuting is not None:
            starts[task] = tuple(map(float, vectors[refuting[0]]))
    return unrefuted, starts


def starts_again(
    best: Optimum, known: Iterable[Task], refuting: Mapping[Task, tuple[float, ...]]
) -> list[Task]:
    """Return the sides that check limits refuted by fits of other profiles.

    A fit between the estimate and the optimum of another valley may lie on the way from there back
    to the estimate, beyond which the limit is known. Otherwise its own curve is followed outwards.
    """
    scaling = Scaling.of(best.problem)
    known = list(known)
    tasks_again = []
    for task, fit in refuting.items():

        def outward(vector: tuple[float, ...], task: Task = task) -> float:
            return task.sign * float(scaling.coordinates(np.array(vector))[task.index])

        back = [
            replace(t, inward=True)
            for t in known
            if t.start and t.side == task and not t.inward and outward(t.start) > outward(fit)
        ]
        new = [t for t in back if t not in known]
        restarted = replace(task, start=fit)
        tasks_again += new or ([restarted] if restarted not in known else [])
    return tasks_again


def between(at: Array, deviances: Array, slopes: Array, places: Array) -> Array:
    """Return a curve between its points, by cubics; infinite beyond them.

    Straight lines would lie above a convex curve, and the same curve through other points would
    seem to be lower.
    """
    from scipy.interpolate import CubicHermiteSpline

    at, index = np.unique(at, return_index=True)
    if len(at) < 2:
        return np.full(len(places), math.inf)
    curve = CubicHermiteSpline(at, deviances[index], slopes[index], extrapolate=False)(places)
    return np.where(np.isnan(curve), math.inf, curve)
