"""What the method says of its answer, in words."""

from __future__ import annotations

import numpy as np

from odefit.methods.algebraic.derivatives import Derivatives
from odefit.methods.algebraic.preparation import Preparation
from odefit.methods.algebraic.search import Search
from odefit.methods.algebraic.solving import held_values
from odefit.methods.estimate import Start

DOUBTFUL = 0.1
"""Relative error of a derivative of the data from which it is named."""

CONSTANT = 1e-12
"""Relative range of a series up to which it is constant."""


def message(
    preparation: Preparation,
    derivatives: Derivatives,
    search: Search,
    best: Start | None,
    fits: bool,
    count: int,
) -> str:
    """How the answer came about, and what to think of it.

    Parameters
    ----------
    preparation, derivatives, search
        The equations, the data, and where these were looked at.
    best
        The answer, if there is any.
    fits
        Whether it leaves no more than the noise of the data.
    count
        Of the candidates.
    """
    d = len(preparation.generic.solutions)
    parts = [f"{d} solution{'s' * (d != 1)} of the polynomial system for generic data"]
    held = _held(preparation, search)
    if held:
        parts.append(f"held, as the polynomial system does not determine them: {held}")
    parts += _constant(derivatives)
    if best is None:
        parts.append("no solution of it leads to a trajectory through the data")
    elif not fits:
        parts.append(f"the best of {count} candidates leaves more than the noise of the data")
    doubtful = _doubtful(preparation, derivatives, search)
    if doubtful:
        rests = "; the answer rests on polishing" if best is not None and fits else ""
        parts.append(f"the derivatives of the data cannot be trusted: {doubtful}{rests}")
    elif best is None or not fits:
        parts.append("the model may not be that of the data")
    return "; ".join(parts)


def _held(preparation: Preparation, search: Search) -> str:
    """What is held, with the time of which it is; new states are left unnamed."""
    once = preparation.once
    said = []
    for name, value in zip(once.held, held_values(once), strict=True):
        text = f"{name} = {value:.6g}"
        for expansion, time in zip(once.system.expansions, search.times, strict=True):
            for state, unknown in expansion.states.items():
                if unknown == name:
                    at = f"{state} = {value:.6g} at t = {time:.6g}"
                    text = at if state in expansion.lifting.model.states else ""
        if text:
            said.append(text)
    return ", ".join(said)


def _constant(derivatives: Derivatives) -> list[str]:
    """Observables that do not change."""
    named = []
    for w, expansion in zip(
        derivatives.windows,
        derivatives.square.system.expansions[:: derivatives.copies],
        strict=True,
    ):
        for name, (_, values) in w.series.items():
            wanted = derivatives.square.orders(
                derivatives.square.system.expansions.index(expansion)
            )
            order = wanted[expansion.observables.index(name)]
            size = float(np.abs(values).max(initial=0.0))
            if order > 0 and np.ptp(values) <= CONSTANT * size:
                named.append(name)
    if not named:
        return []
    return [f"{', '.join(named)} is constant in the data, and says nothing of rates"]


def _doubtful(preparation: Preparation, derivatives: Derivatives, search: Search) -> str:
    """The derivative of the data that is known worst, if that is badly."""
    square = preparation.square
    if search.sight is None:
        return ""
    sight = search.sight
    sizes: dict[tuple[int, int], float] = {}
    for target, row in zip(sight.targets, square.rows, strict=True):
        key = row.expansion, row.output
        sizes[key] = max(sizes.get(key, 0.0), abs(float(target)))
    measured = [
        (error / max(abs(target), 1e-9 * sizes[row.expansion, row.output], 1e-300), row)
        for error, target, row in zip(sight.errors, sight.targets, square.rows, strict=True)
        if row.output < len(square.system.expansions[row.expansion].observables) and error > 0
    ]
    if not measured:
        return ""
    worst, row = max(measured, key=lambda m: m[0])
    if worst < DOUBTFUL:
        return ""
    name = square.system.expansions[row.expansion].observables[row.output]
    known = f"is known to about {worst:.0%} only" if worst < 1 else "is not known at all"
    return f"that of order {row.order} of {name} {known}"
