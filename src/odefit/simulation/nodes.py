"""Shooting nodes: where trajectories restart if no single integration can follow them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from odefit.common.arrays import Array

if TYPE_CHECKING:
    from odefit.problem.condition import Condition
    from odefit.problem.vector_field import VectorField


@dataclass(frozen=True, eq=False)
class Nodes:
    """Shooting nodes of all conditions, at which trajectories restart.

    Attributes
    ----------
    times
        Times of the nodes of each condition, increasing, the first t0, shape (K,) each.
    values
        States and constants that events assign, shape (K, N) each; the unknowns determine the first
        node.
    constraints, experiments
        Constraints besides the data that hold on this trajectory, and the experiment of each.
    """

    times: Sequence[Array]
    values: Sequence[Array]
    constraints: Sequence[str] = ()
    experiments: Sequence[str] = ()

    @property
    def equations(self) -> int:
        """Number of constraints that are equations."""
        return sum(not {"<", ">"} & set(text) for text in self.constraints)

    @property
    def count(self) -> int:
        """Number of nodes of all conditions."""
        return sum(len(t) for t in self.times)


def node_names(field: VectorField, conditions: Sequence[Condition]) -> tuple[str, ...]:
    """Return the names in a node: the states, then constants and parameters that events assign."""
    assigned = {name for c in conditions for event in c.assignments for name in event}
    return (*field.states, *(name for name in field.scalars if name in assigned))
