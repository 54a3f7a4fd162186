"""What an answer on nodes is: continuous, and under which conditions."""

from __future__ import annotations

from odefit.assessment.parts import Continuity
from odefit.simulation.nodes import Nodes

CONTINUOUS = 1e-6
"""Discontinuity, relative to the sizes of the states, that counts as none."""


def assess_continuity(nodes: Nodes | None, gap: float) -> Continuity | None:
    """How a trajectory through nodes is to be read; None for a single integration.

    Parameters
    ----------
    gap
        The largest discontinuity, relative to the sizes of the states.
    """
    if nodes is None:
        return None
    held = tuple(nodes.constraints)
    fine = gap <= CONTINUOUS
    said = f"The trajectory passes {nodes.count} nodes, continuous there to {gap:.1g} of the states"
    if not fine:
        said += ": it is broken"
    if held:
        said += f"; it satisfies {', '.join(held)}"
    else:
        said += (
            ". No single integration from the initial values follows it to the end: rounding "
            "grows too fast"
        )
    return Continuity(nodes.count, gap, held, fine, f"{said}.")
