"""States that are not measured and that no combination of equations gives: assimilated."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from scipy.interpolate import make_interp_spline

from odefit.methods.integral_matching.curves import Piece
from odefit.methods.multiple_shooting.multiple_shooting import MultipleShooting
from odefit.methods.multiple_shooting.on_nodes import units
from odefit.methods.multiple_shooting.relaxation import relaxed
from odefit.methods.multiple_shooting.shooting import Point
from odefit.problem.arrays import Array, BoolArray
from odefit.simulation import Failure, ForwardMap


def assimilated(
    forward: ForwardMap,
    pieces: Sequence[Piece],
    hidden: Sequence[str],
    vector: Array,
    held: BoolArray,
    stop: Callable[[], bool],
) -> tuple[list[Piece], Array] | Failure:
    """Pieces with the hidden states that data and equations together suggest.

    Nodes at the times of measurement follow the data and, softly, the equations with their
    parameters held (:mod:`odefit.methods.multiple_shooting.relaxation`); hidden states are
    splines through them.

    Parameters
    ----------
    vector
        Unknowns, shape (n,).
    held
        Those that keep their values: the parameters of the equations.

    Returns
    -------
    The pieces, and the unknowns with what is not held as it was found.
    """
    shooting, nodes = MultipleShooting().on_data(forward, vector)
    start = Point(shooting.scaling.coordinates(vector), nodes)
    sizes = units(shooting, start.coordinates, start.coordinates, 0.1)
    found = relaxed(shooting, start, sizes, held, stop, free=())
    if isinstance(found, Failure):
        return found
    completed = []
    places = shooting.nodes_of(found)
    for piece in pieces:
        times, values = places.times[piece.condition], places.values[piece.condition]
        jumps = [t for t, _ in forward.problem.conditions[piece.condition].events]
        # A node at a jump may be of before or after.
        own = (times >= piece.since) & (times <= piece.until) & ~np.isin(times, jumps)
        if not own.any():
            continue
        times, values = times[own], values[own]
        states = dict(piece.states)
        for state in hidden:
            if state not in states:
                through = values[:, shooting.names.index(state)]
                curve = make_interp_spline(times, through, k=min(3, len(times) - 1))
                # Beyond the last node: what it was there.
                at = np.clip(piece.grid.times, times[0], times[-1])
                states[state] = np.asarray(curve(at))
        completed.append(replace(piece, states=states))
    changed = np.where(held, vector, shooting.scaling.natural(found.coordinates))
    return completed, changed
