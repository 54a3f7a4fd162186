"""The costs of a step of each engine, the number of steps of each, and the switch to another."""

from __future__ import annotations

from dataclasses import dataclass

from odefit.problem.vector_field import VectorField
from odefit.simulation.engines.segments import Segment

USUAL_IMPLICIT_STEPS = 1_000
"""Steps of a usual integration by the implicit engine, at its default tolerance."""

STEP_ORDER = 6  # order of the local error in the length of a step of the implicit engine

USUAL_STEPS_PER_OUTPUT = 5
"""Steps of a usual integration by the implicit engine between two outputs, where these are many.

Oscillators that are measured fifty to a hundred times a period take five to eight."""

MAX_TAYLOR_STEPS = 100_000
"""Steps that the Taylor method gets for a segment that is long rather than stiff, at most."""

TAYLOR_MARGIN = 4
"""Times the steps that were needed, which the Taylor method gets for the next segment."""

COSTLY_TAYLOR = 5
"""Integrations by the Taylor method in succession, each more work than a usual one by the implicit
engine, after which this one is tried: it has to be made first, which takes 0.1 s."""

TAYLOR_TRIAL = 20
"""Integrations by the implicit engine after which the Taylor method is tried again."""

LATER_TRIALS = 100
"""Integrations by the implicit engine after which the Taylor method is tried again where its last
trial has failed: stiffness seldom goes away during a search."""

IMPLICIT_STEPS = 100_000  # steps that odefit's implicit engine gets for a segment
STEPS_FOR_OUTPUT = 20  # steps that it gets for each output, where it has a limit of its own

CVODES_STEPS = 20_000
"""Steps that CVODES and IDAS get for a segment, but at least :data:`CVODES_STEPS_PER_OUTPUT`
between two outputs."""

CVODES_STEPS_PER_OUTPUT = 5_000  # steps that CVODES and IDAS always get between two outputs

OPERATIONS_ALONE = 500
"""Operations of states and sensitivities from which on the Taylor method is also compiled for the
states alone."""

OUTPUTS_ALONE = 200
"""Outputs from which on it is so for any number of operations: compiling takes as long as a few
dozen evaluations, and an integration of the states alone a third to a tenth."""


def usual_steps(segment: Segment, steps: int = USUAL_IMPLICIT_STEPS) -> int:
    """Return the steps of a usual integration by the implicit engine, with those for outputs."""
    return max(steps, USUAL_STEPS_PER_OUTPUT * len(segment.times))


def implicit_steps(segment: Segment, limit: int | None) -> int:
    """Return the steps of odefit's implicit engine, with those for outputs if it has a limit."""
    if limit is None:
        return IMPLICIT_STEPS
    return min(IMPLICIT_STEPS, limit + STEPS_FOR_OUTPUT * len(segment.times))


def cvodes_steps(segment: Segment, limit: int | None) -> int:
    """Return the steps of CVODES and IDAS between two outputs, which no other limit changes."""
    return max(CVODES_STEPS // len(segment.times), CVODES_STEPS_PER_OUTPUT)


TAYLOR_OPERATION = 45.0
"""Time that the Taylor method takes for an operation of the equations in a step, in ns."""

TAYLOR_OPERATION_IN_LANES = 22.0
"""Time that it takes for an operation where directions are spread over vector lanes, in ns."""

DIRECTIONS_IN_LANES = 12
"""Number of directions from which on the Taylor method spreads them over the lanes of vectors.

That pays then for the longer compilation (0.1 to 0.2 s more)."""

IMPLICIT_STEP = 500.0  # time of an implicit step beside what grows with the equations, in ns

IMPLICIT_OPERATION = 1.5
"""Time that the implicit engine takes for an operation of the equations, in ns."""

IMPLICIT_VALUE = 7.0
"""Time that the implicit engine takes for each state or sensitivity in a step, in ns."""

EXPLICIT_STEP = 900.0  # time of a step of the explicit engine beside what grows, in ns

EXPLICIT_OPERATION = 20.0
"""Time that the explicit engine takes for an operation of the equations, at all stages, in ns."""

EXPLICIT_VALUE = 17.0
"""Time that the explicit engine takes for each state or sensitivity in a step, in ns."""

MAX_TAYLOR_OPERATIONS = 10_000
"""Operations of states and sensitivities beyond which the Taylor method is not compiled.

It takes a second then, which the implicit engine does not need."""

ADJOINT_STEP = 2.5  # time of a step forwards and back, relative to that of a step alone

MIN_TAYLOR_STEPS = 25  # steps that the Taylor method always gets


@dataclass(frozen=True)
class StepCosts:
    """Predicted times of a step.

    The predictions are right within a factor of about two on published models of 2 to 25 states
    with up to 43 directions. They are numbers of the equations, so that choices that depend on them
    are the same on any machine.
    """

    taylor: float  # Time of a step of the Taylor method, in ns
    runge_kutta: float  # Time of a step of the explicit engine, in ns
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
        explicit = EXPLICIT_STEP + EXPLICIT_OPERATION * (rhs + derivatives)
        explicit += EXPLICIT_VALUE * values
        return cls(per_operation * operations, explicit, implicit, operations)

    def of_step(self, engine: str) -> float:
        """Return the time of a step of an engine, in ns."""
        return {"heyoka": self.taylor, "runge-kutta": self.runge_kutta}.get(engine, self.implicit)

    def explicit_steps(self, engine: str, implicit_steps: int) -> int:
        """Return the steps of an explicit engine that are as much work as some implicit ones."""
        # A right-hand side that is a number alone costs nothing.
        step = max(self.of_step(engine), 1.0)
        return max(int(implicit_steps * self.implicit / step), MIN_TAYLOR_STEPS)

    def adjoint_pays(self, alone: StepCosts, outputs: int) -> bool:
        """Return whether an adjoint is less work than the fewest explicit steps with directions.

        `alone` are the costs of the states, which the implicit engine goes through forwards and
        back, with as many steps as `outputs` times need.
        """
        steps = max(USUAL_IMPLICIT_STEPS, USUAL_STEPS_PER_OUTPUT * outputs)
        explicit = min(self.taylor, self.runge_kutta)
        return ADJOINT_STEP * steps * alone.implicit < MIN_TAYLOR_STEPS * explicit

    @property
    def too_large_for_taylor(self) -> bool:
        """True if the Taylor method would take too long to compile."""
        return self.operations > MAX_TAYLOR_OPERATIONS
