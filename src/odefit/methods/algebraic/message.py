"""The message of the result: the origin of the answer, and how reliable it is."""

from __future__ import annotations

import numpy as np

from odefit.methods.algebraic.derivatives import SmoothedData
from odefit.methods.algebraic.preparation import Preparation
from odefit.methods.algebraic.search import CandidateSearch
from odefit.methods.algebraic.solving import held_values
from odefit.methods.estimate import Start

MIN_NAMED_ERROR = 0.1  # relative error of a derivative of the data above which the message names it
CONSTANT_RANGE = 1e-12  # relative range of a series up to which it counts as constant


def result_message(
    preparation: Preparation,
    data: SmoothedData,
    search: CandidateSearch,
    best: Start | None,
    fits: bool,
    count: int,
) -> str:
    """Describe the origin of the answer, and how reliable it is.

    It `fits` if its residuals are no larger than the noise of the data; `count` is the number of
    candidates.
    """
    d = len(preparation.generic.solutions)
    parts = [f"{d} solution{'s' * (d != 1)} of the polynomial system for generic data"]
    held = _held(preparation, search)
    if held:
        parts.append(f"held, as the polynomial system does not determine them: {held}")
    parts += _constant(data)
    if best is None:
        parts.append("none of its solutions gives a trajectory through the data")
    elif not fits:
        parts.append(f"the best of {count} candidates leaves more than the noise of the data")
    doubtful = _worst_derivative(preparation, search)
    if doubtful:
        rests = "; the answer rests on polishing" if best is not None and fits else ""
        parts.append(f"the derivatives of the data cannot be trusted: {doubtful}{rests}")
    elif best is None or not fits:
        parts.append("the model may not describe these data")
    return "; ".join(parts)


def _held(preparation: Preparation, search: CandidateSearch) -> str:
    """Name the unknowns that are held, with their times; auxiliary states are left out.

    A search stopped before its first time has held no unknown yet.
    """
    if not search.times:
        return ""
    one_time = preparation.at_one_time
    named = []
    for name, value in zip(one_time.held, held_values(one_time), strict=True):
        text = f"{name} = {value:.6g}"
        for expansion, time in zip(one_time.system.expansions, search.times, strict=True):
            for state, unknown in expansion.states.items():
                if unknown == name:
                    at = f"{state} = {value:.6g} at t = {time:.6g}"
                    text = at if state in expansion.lifting.model.states else ""
        if text:
            named.append(text)
    return ", ".join(named)


def _constant(data: SmoothedData) -> list[str]:
    """Name the constant observables of which a derivative is needed."""
    named = []
    for k, segment in enumerate(data.segments):
        place = k * data.times_per_experiment
        expansion, orders = data.square.system.expansions[place], data.square.orders(place)
        for name, (_, values) in segment.series.items():
            size = float(np.abs(values).max(initial=0.0))
            constant = np.ptp(values) <= CONSTANT_RANGE * size
            if orders[expansion.observables.index(name)] > 0 and constant:
                named.append(name)
    if not named:
        return []
    return [f"{', '.join(named)} is constant in the data, and carries no information on rates"]


def _worst_derivative(preparation: Preparation, search: CandidateSearch) -> str:
    """Name the derivative of the data with the largest relative error, if that is large."""
    square, estimate = preparation.square, search.best_estimate
    if estimate is None:
        return ""
    sizes: dict[tuple[int, int], float] = {}
    for target, row in zip(estimate.targets, square.rows, strict=True):
        key = row.expansion, row.output
        sizes[key] = max(sizes.get(key, 0.0), abs(float(target)))
    measured = [
        (error / max(abs(target), 1e-9 * sizes[row.expansion, row.output], 1e-300), row)
        for error, target, row in zip(estimate.errors, estimate.targets, square.rows, strict=True)
        if row.output < len(square.system.expansions[row.expansion].observables) and error > 0
    ]
    if not measured:
        return ""
    worst, row = max(measured, key=lambda m: m[0])
    if worst < MIN_NAMED_ERROR:
        return ""
    name = square.system.expansions[row.expansion].observables[row.output]
    known = f"is known to about {worst:.0%} only" if worst < 1 else "is not known at all"
    return f"that of order {row.order} of {name} {known}"
