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
    said = (
        f"The trajectory passes {counted(nodes.count, 'node')}, where it is continuous to "
        f"{gap:.1g} of the sizes of the states"
    )
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
