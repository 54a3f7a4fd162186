"""Where trajectories begin anew, when no single integration can follow them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from odefit.problem.arrays import Array
from odefit.problem.condition import Condition
from odefit.problem.vector_field import VectorField


@dataclass(frozen=True, eq=False)
class Nodes:
    """Where trajectories begin anew, by condition.

    Attributes
    ----------
    times
        Increasing, the first t0, shape (K,) each.
    values
        States and constants that events assign, shape (K, N) each; the first follows from the
        unknowns.
    constraints, experiments
        Conditions beside the data that hold on this trajectory, and the experiment of each.
    """

    times: Sequence[Array]
    values: Sequence[Array]
    constraints: Sequence[str] = ()
    experiments: Sequence[str] = ()

    @property
    def equations(self) -> int:
        """How many of the constraints are equations."""
        return sum(not {"<", ">"} & set(text) for text in self.constraints)

    @property
    def count(self) -> int:
        """Of all conditions."""
        return sum(len(t) for t in self.times)


def node_names(field: VectorField, conditions: Sequence[Condition]) -> tuple[str, ...]:
    """What a node holds: the states, then constants and parameters that some event assigns."""
    assigned = {name for c in conditions for _, event in c.events for name in event}
    return (*field.states, *(name for name in field.scalars if name in assigned))
