"""What a step of each engine costs, as predicted from the size of the equations."""

from __future__ import annotations

from dataclasses import dataclass

from odefit.problem.vector_field import VectorField

TAYLOR_OPERATION = 45.0
"""Time that the Taylor method takes for an operation of the equations in a step, in ns."""

TAYLOR_OPERATION_IN_LANES = 22.0
"""Time that it takes for an operation where directions are spread over vector lanes, in ns."""

DIRECTIONS_IN_LANES = 12
"""Number of directions from which on the Taylor method spreads them over the lanes of vectors.

That pays then for the longer compilation (0.1 to 0.2 s more)."""

IMPLICIT_STEP = 500.0
"""Time of an implicit step beside what grows with the equations, in ns."""

IMPLICIT_OPERATION = 1.5
"""Time that the implicit engine takes for an operation of the equations, in ns."""

IMPLICIT_VALUE = 7.0
"""Time that the implicit engine takes for each state or sensitivity in a step, in ns."""

MAX_TAYLOR_OPERATIONS = 10_000
"""Operations of states and sensitivities beyond which the Taylor method is not compiled.

It takes a second then, which the implicit engine does not need."""

MIN_TAYLOR_STEPS = 25
"""Steps that the Taylor method always gets."""


@dataclass(frozen=True)
class StepCosts:
    """Predicted times of a step.

    The predictions are right within a factor of about two on published models of 2 to 25 states
    with up to 43 directions. They are numbers of the equations, so that choices which hang on them
    are the same on any machine.
    """

    taylor: float  # Time of a step of the Taylor method, in ns
    implicit: float  # Time of a step of the implicit engine, in ns
    operations: int  # Number of operations of states and sensitivities

    @classmethod
    def of(cls, field: VectorField, directions: int) -> StepCosts:
        """Return the costs of the states of `field` with sensitivities in some directions."""
        model = field.model
        expressions = (*model.ode.values(), *model.algebraic.values())
        rhs = sum(i.kind not in ("name", "number") for e in expressions for i in e.program)
        states = set(field.states)
        direct = {name: e.names & states for name, e in model.algebraic.items()}
        nonzeros = sum(
            len((e.names & states).union(*(direct[a] for a in e.names & direct.keys())))
            for e in model.ode.values()
        )
        derivatives = rhs if directions else 0
        operations = rhs + derivatives + directions * (2 * nonzeros + 5)
        in_lanes = directions >= DIRECTIONS_IN_LANES
        per_operation = TAYLOR_OPERATION_IN_LANES if in_lanes else TAYLOR_OPERATION
        values = len(states) * (directions + 1)
        implicit = (
            IMPLICIT_STEP + IMPLICIT_OPERATION * (rhs + derivatives) + IMPLICIT_VALUE * values
        )
        return cls(per_operation * operations, implicit, operations)

    def taylor_steps(self, implicit_steps: int) -> int:
        """Return the steps of the Taylor method that are as much work as some implicit ones."""
        # A right-hand side that is a number alone costs nothing.
        return max(int(implicit_steps * self.implicit / max(self.taylor, 1.0)), MIN_TAYLOR_STEPS)

    @property
    def too_large_for_taylor(self) -> bool:
        """Whether the Taylor method would take too long to compile."""
        return self.operations > MAX_TAYLOR_OPERATIONS
