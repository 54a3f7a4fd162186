"""Continuity of a trajectory through shooting nodes, and its conditions."""

from __future__ import annotations

from odefit.assessment.parts import Continuity
from odefit.common.errors import counted
from odefit.simulation.nodes import Nodes

CONTINUITY_TOLERANCE = 1e-6
"""Largest discontinuity, relative to the sizes of the states, that counts as zero."""


def assess_continuity(nodes: Nodes | None, gap: float) -> Continuity | None:
    """Return the description of a trajectory through nodes; None for a single integration.

    `gap` is the largest discontinuity, relative to the sizes of the states.
    """
    if nodes is None:
        return None
    held = tuple(nodes.constraints)
    fine = gap <= CONTINUITY_TOLERANCE
    sentence = (
        f"The trajectory passes {counted(nodes.count, 'node')}, where it is continuous to "
        f"{gap:.1g} of the sizes of the states"
    )
    if not fine:
        sentence += ": it is broken"
    if held:
        sentence += f"; it satisfies {', '.join(held)}"
    else:
        sentence += (
            ". No single integration from the initial values follows it to the end: rounding "
            "grows too fast"
        )
    return Continuity(nodes.count, gap, held, fine, f"{sentence}.")
