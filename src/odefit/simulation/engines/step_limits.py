"""How many steps each engine gets, and when the other one is tried."""

from __future__ import annotations

from odefit.simulation.engines.segments import Segment

USUAL_IMPLICIT_STEPS = 1_000
"""Steps of a usual integration by the implicit engine, at its default tolerance."""

STEP_ORDER = 6
"""Order of the local error in the length of a step of the implicit engine."""

USUAL_STEPS_PER_OUTPUT = 5
"""Steps of a usual integration by the implicit engine between two outputs, where these are many.

Oscillators that are measured fifty to a hundred times a period take five to eight."""

MAX_TAYLOR_STEPS = 100_000
"""Steps that the Taylor method gets for a segment that is long rather than stiff, at most."""

TAYLOR_MARGIN = 4
"""Times the steps that were needed, which the Taylor method gets for the next segment."""

DEAR_TAYLOR = 5
"""Integrations by the Taylor method in succession that have taken more than usual ones by the
implicit engine do, after which this one is tried: it has to be made first, which takes 0.1 s."""

TAYLOR_TRIAL = 20
"""Integrations by the implicit engine after which the Taylor method is tried again."""

LATER_TRIALS = 100
"""Integrations by the implicit engine after which the Taylor method is tried again where its last
trial has failed: stiffness seldom goes away during a search."""

IMPLICIT_STEPS = 100_000
"""Steps that odefit's implicit engine gets for a segment."""

STEPS_FOR_OUTPUT = 20
"""Steps that it gets for each output, where it has a limit of its own."""

CVODES_STEPS = 20_000
"""Steps that CVODES and IDAS get for a segment, but at least :data:`CVODES_STEPS_PER_OUTPUT`
between two outputs."""

CVODES_STEPS_PER_OUTPUT = 5_000
"""Steps that CVODES and IDAS always get between two outputs."""

OPERATIONS_ALONE = 500
"""Operations of states and sensitivities from which on the Taylor method is also compiled for the
states alone."""

OUTPUTS_ALONE = 200
"""Outputs from which on it is so for any number of operations: compiling takes as long as a few
dozen evaluations, and an integration of the states alone a third to a tenth."""


def usual_steps(segment: Segment, steps: int = USUAL_IMPLICIT_STEPS) -> int:
    """Return the steps of a usual integration by the implicit engine, with those for outputs."""
    return max(steps, USUAL_STEPS_PER_OUTPUT * len(segment.times))
