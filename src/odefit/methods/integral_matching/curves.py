"""The states as functions of time, from the data alone: x-hat of (5)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from odefit.methods.integral_matching.quadrature import Grid
from odefit.methods.integral_matching.readout import Readout
from odefit.methods.smoothing import SmoothingSpline
from odefit.methods.smoothing.smoother import Interpolant, Smoother
from odefit.problem.algebras import NUMPY
from odefit.problem.arrays import Array
from odefit.problem.binding import bound_value
from odefit.problem.condition import Condition
from odefit.problem.errors import InputError
from odefit.problem.problem import Problem

POINTS = 200
"""Points of a grid at least."""

PER_DATUM = 2
"""Points of a grid for each time of measurement, at least."""

LEAST_ORDER = 2
"""To which the order of a smoothing spline is lowered where a series is short."""


@dataclass(frozen=True, eq=False)
class Piece:
    """A stretch of one condition in which nothing jumps and everything is measured.

    Attributes
    ----------
    condition
        Its number.
    begins
        Whether it begins at t0, with the condition's initial values.
    since, until
        The stretch without jumps that it is part of.
    grid
        Where it is matched: from the first to the last measurement, as far as all states are
        measured.
    states
        By name of those that are measured, values on the grid.
    sds
        Of the noise, by observable, by the smoother.
    """

    condition: int
    begins: bool
    since: float
    until: float
    grid: Grid
    states: Mapping[str, Array]
    sds: Mapping[str, float]


@dataclass(frozen=True, eq=False)
class _Series:
    times: Array
    curve: Interpolant


def pieces(
    problem: Problem, smoother: Smoother, wanted: Iterable[str]
) -> tuple[list[Piece], list[str]]:
    """All conditions smoothed, and why some stretches could not be.

    Parameters
    ----------
    wanted
        States that every piece has to have.

    Raises
    ------
    InputError
        Nothing can be smoothed; place and remedy are in the message.
    """
    found: list[Piece] = []
    left: list[str] = []
    wanted = set(wanted)
    for number, condition in enumerate(problem.conditions):
        readout = Readout.of(problem.model, condition)
        jumps = sorted({t for t, _ in condition.events if t < condition.times[-1]})
        cuts = [condition.t0, *(t for t in jumps if t > condition.t0), float(condition.times[-1])]
        for since, until in pairwise(cuts):
            try:
                found.append(_piece(problem, number, readout, since, until, smoother, wanted))
            except InputError as error:
                left.append(str(error))
    if not found:
        raise InputError(left[0])
    return found, left


def _piece(
    problem: Problem,
    number: int,
    readout: Readout,
    since: float,
    until: float,
    smoother: Smoother,
    wanted: set[str],
) -> Piece:
    condition, states = problem.conditions[number], problem.model.states
    jumped = {n for t, event in condition.events if t == since for n in event}
    begins = since == condition.t0 and not jumped
    found: dict[str, _Series] = {}
    reasons = []
    for name in readout.names:
        times, values = _measured(condition, readout, name, since, until, begins)
        if begins and (not len(times) or times[0] > since):
            known = _known_start(condition, readout.matrix[readout.names.index(name)], states)
            if known is not None:
                times, values = np.append(since, times), np.append(known, values)
        try:
            found[name] = _Series(times, _smoothed(smoother, times, values))
        except InputError as error:
            place = f'"{condition.name}", {name} from t = {since:g} to {until:g}'
            reasons.append(f"{place}: {error}")
    sds = {name: series.curve.sd for name, series in found.items()}
    weights = readout.states(list(found), sds)
    if reasons and not wanted <= {states[k] for k in weights}:
        raise InputError(reasons[0])
    start, stop = since, until
    for i, series in enumerate(found.values()):
        if any(w[i] for w in weights.values()):
            start, stop = max(start, float(series.times[0])), min(stop, float(series.times[-1]))
    if not stop > start:
        place = f'"{condition.name}" from t = {since:g} to {until:g}'
        raise InputError(
            f"{place}: measured at no common times, or at one; measure more, or take another method"
        )
    inside = condition.times[(condition.times >= start) & (condition.times <= stop)]
    corners = _corners(condition, problem.model.inputs)
    grid = Grid.over(start, stop, corners, max(POINTS, PER_DATUM * len(inside)))
    curves = [series.curve(grid.times) for series in found.values()]
    own = {states[k]: np.asarray(w @ np.array(curves)) for k, w in weights.items()}
    return Piece(number, begins and start == since, since, until, grid, own, sds)


def _measured(
    condition: Condition,
    readout: Readout,
    name: str,
    since: float,
    until: float,
    begins: bool,
) -> tuple[Array, Array]:
    """What a series says of the states in a stretch; repeated measurements as their means."""
    series = condition.series[name]
    times, values = condition.times[series.rows], series.values - readout.offsets[name]
    # At an event, a measurement is of before.
    own = (times <= until) & ((times > since) | ((times == since) & begins))
    unique, back, counts = np.unique(times[own], return_inverse=True, return_counts=True)
    return unique, np.bincount(back, weights=values[own], minlength=len(unique)) / counts


def _smoothed(smoother: Smoother, times: Array, values: Array) -> Interpolant:
    """By a spline of lower order where a series is short."""
    if isinstance(smoother, SmoothingSpline):
        order = min(smoother.order, max(len(times) - 2, LEAST_ORDER))
        smoother = replace(smoother, order=order)
    return smoother.fit(times, values)


def _corners(condition: Condition, inputs: Iterable[str]) -> Array:
    given = [condition.inputs[name] for name in inputs]
    return np.unique(np.concatenate([np.zeros(0), *(g.times for g in given)]))


def _known_start(condition: Condition, row: Array, states: tuple[str, ...]) -> float | None:
    """The combination `row` of the initial values; None if it depends on an unknown."""
    found = 0.0
    for weight, state in zip(row, states, strict=True):
        if weight:
            try:
                value = bound_value(condition.initial[state], condition.scalars, [], NUMPY)
            except IndexError:  # it depends on an unknown
                return None
            found += weight * float(value)
    return found
