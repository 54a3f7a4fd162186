"""The costs and number of steps of each engine, and the switch between engines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from odefit.expressions.expressions import Expression
from odefit.problem.vector_field import VectorField
from odefit.simulation.engines.segments import Segment

IMPLICIT_TOLERANCE = 1e-9  # relative tolerance of the implicit engines

USUAL_IMPLICIT_STEPS = 1_000
"""Steps of a usual integration by the implicit engine, at its default tolerance."""

STEP_ORDER = 6  # order of the local error in the length of a step of the implicit engine
EXPLICIT_ORDER = 8  # the same of the explicit engine

EXPLICIT_SHARE = 1e-4
"""Tolerance of the explicit engine in searches, relative to that of the implicit one. It takes half
the steps that it takes for statistics. A digit costs little: with 0.1 oscillators had errors of one
per cent, so that right models did not fit."""

USUAL_STEPS_PER_OUTPUT = 5
"""Steps of a usual integration by the implicit engine between two outputs, if these are many.

Oscillators measured fifty to a hundred times per period need five to eight.
"""

MAX_TAYLOR_STEPS = 100_000
"""Largest number of steps of the Taylor method for a segment that is long rather than stiff."""

TAYLOR_MARGIN = 4
"""Factor from the steps that were needed to the limit of the Taylor method for the next segment."""

IMPLICIT_STEPS = 100_000  # limit of steps of odefit's implicit engine for a segment
STEPS_FOR_OUTPUT = 20  # additional steps for each output, if the limit is given

CVODES_STEPS = 20_000
"""Limit of steps of CVODES and IDAS for a segment, but at least :data:`CVODES_STEPS_PER_OUTPUT`
between two outputs."""

CVODES_STEPS_PER_OUTPUT = 5_000  # limit of steps of CVODES and IDAS between two outputs, at least

OPERATIONS_ALONE = 500
"""Number of operations of states and sensitivities above which the Taylor method is also compiled
for the states alone."""

OUTPUTS_ALONE = 200
"""Number of outputs above which that is done for any number of operations. Compiling takes as long
as a few dozen evaluations, and an integration of the states alone takes a third to a tenth of the
time.
"""


def usual_steps(outputs: int) -> int:
    """Return the steps of a usual implicit integration with so many output times."""
    return max(USUAL_IMPLICIT_STEPS, USUAL_STEPS_PER_OUTPUT * outputs)


def implicit_steps(segment: Segment, limit: int | None) -> int:
    """Return the limit of odefit's implicit engine, with steps for outputs if it has a limit."""
    if limit is None:
        return IMPLICIT_STEPS
    return min(IMPLICIT_STEPS, limit + STEPS_FOR_OUTPUT * len(segment.times))


def cvodes_steps(segment: Segment, limit: int | None) -> int:
    """Return the limit of CVODES and IDAS between two outputs, which no other limit changes."""
    return max(CVODES_STEPS // len(segment.times), CVODES_STEPS_PER_OUTPUT)


DIRECTIONS_IN_LANES = 12
"""Number of directions above which the Taylor method spreads them over vector lanes.

The gain then outweighs the longer compilation (0.1 to 0.2 s more).
"""


@dataclass(frozen=True, kw_only=True)
class EngineTimes:
    """Times of an engine in ns, from which those of an integration are predicted.

    They are those of 20,000 integrations of 58 problems of two to eight states and up to 18
    directions. Nine of ten integrations take between 0.8 and 1.8 times the predicted time.
    """

    integration: float  # fixed, whatever the steps
    output: float  # for each state or sensitivity at an output time
    step: float  # fixed, whatever the equations
    operation: float  # for each operation of states and sensitivities in a step
    value: float = 0.0  # for each state or sensitivity in a step


TIMES: Mapping[str, EngineTimes] = {
    "heyoka": EngineTimes(integration=29_000.0, output=5.5, step=200.0, operation=18.0),
    "runge-kutta": EngineTimes(integration=44_000.0, output=6.9, step=370.0, operation=5.5),
    "bdf": EngineTimes(integration=42_000.0, output=3.1, step=160.0, operation=0.7, value=4.0),
}
"""Times of the engines; those of other engines for stiff equations count as those of the own one.
"""

IN_LANES = 11.0
"""Time of the Taylor method for an operation if directions are spread over vector lanes, in ns."""

PER_OUTPUT = 10  # values at an output time that take as long as the output time itself

FUNCTION = 30.0
"""Time that the implicit engine takes in a step for a function such as sin with its derivative,
in ns: right-hand sides and Jacobian. Sums of 1,000 sines took 22 to 45."""

OF_POWER = 2  # functions that a power takes whose exponent is not a number: exp and log

EXPLICIT_STAGES = 12  # stages of a step of the explicit engine; a function takes that time in each

MAX_TAYLOR_OPERATIONS = 10_000
"""Number of operations of states and sensitivities above which the Taylor method is not compiled.

Compilation would take a second, which the implicit engine does not need.
"""

ADJOINT_STEP = 2.5  # time of a step forwards and back, relative to a step forwards

MIN_TAYLOR_STEPS = 25  # steps that the Taylor method may always take


def _functions(expression: Expression) -> int:
    """Return the number of functions in an expression, such as sin, and of those in powers."""
    count, before = 0, ""
    for instruction in expression.program:
        if instruction.kind == "call":
            count += 1
        elif instruction.text == "^" and before != "number":
            count += OF_POWER
        if instruction.kind != "negate":
            before = instruction.kind
    return count


@dataclass(frozen=True)
class StepCosts:
    """Predicted times of steps and integrations.

    They depend only on the equations, so that choices based on them are the same on any machine.
    """

    values: int  # Number of states and sensitivities
    operations: int  # Number of operations of states and sensitivities
    in_lanes: bool  # Whether the Taylor method spreads directions over lanes
    functions: int = 0  # Number of functions among the operations, such as sin

    @classmethod
    def of(cls, field: VectorField, directions: int) -> StepCosts:
        """Return the costs of the states of `field` with sensitivities in some directions."""
        model = field.model
        expressions = (*model.ode.values(), *model.algebraic.values())
        rhs = sum(i.kind not in ("name", "number") for e in expressions for i in e.program)
        functions = sum(_functions(e) for e in expressions)
        states = set(field.states)
        direct = {name: e.names & states for name, e in model.algebraic.items()}
        nonzeros = sum(
            len((e.names & states).union(*(direct[a] for a in e.names & direct.keys())))
            for e in model.ode.values()
        )
        derivatives = rhs if directions else 0
        operations = rhs + derivatives + directions * (2 * nonzeros + 5)
        in_lanes = directions >= DIRECTIONS_IN_LANES
        return cls(len(states) * (directions + 1), operations, in_lanes, functions)

    def of_step(self, engine: str) -> float:
        """Return the time of a step of an engine, in ns."""
        times = TIMES.get(engine, TIMES["bdf"])
        per_operation = IN_LANES if engine == "heyoka" and self.in_lanes else times.operation
        return times.step + per_operation * self.operations + times.value * self.values

    def beside_steps(self, engine: str, outputs: int) -> float:
        """Return the time of an integration that its steps do not take, in ns."""
        times = TIMES.get(engine, TIMES["bdf"])
        return times.integration + times.output * outputs * (self.values + PER_OUTPUT)

    def work_of_step(self, engine: str) -> float:
        """Return the time of a step of an engine in ns, including its functions."""
        stages = {"heyoka": 0, "runge-kutta": EXPLICIT_STAGES}.get(engine, 1)
        return self.of_step(engine) + FUNCTION * stages * self.functions

    def adjoint_pays(self, alone: StepCosts, outputs: int) -> bool:
        """Return whether an adjoint is less work than the fewest explicit steps with directions.

        `alone` are the costs of the states, which the implicit engine integrates forwards and back,
        with the steps needed for `outputs` times.
        """
        both_ways = ADJOINT_STEP * usual_steps(outputs) * alone.of_step("bdf")
        explicit = min(self.of_step(engine) for engine in ("heyoka", "runge-kutta"))
        return both_ways < MIN_TAYLOR_STEPS * explicit

    @property
    def too_large_for_taylor(self) -> bool:
        """True if the Taylor method would take too long to compile."""
        return self.operations > MAX_TAYLOR_OPERATIONS
