"""The steady state that a motion approaches through its modes, or within a sliding one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from odefit.expressions.expressions import TIME
from odefit.problem.vector_field import SensitivityPattern
from odefit.simulation.engines.engine import ConsistentValues, EngineFailure, Values
from odefit.simulation.engines.engine_choice import UNDECIDED
from odefit.simulation.engines.engines import Engines
from odefit.simulation.engines.segments import Segment
from odefit.simulation.modes.modes import Inputs, Modes
from odefit.simulation.modes.walk import ModeWalk, Solve
from odefit.simulation.steady.steady_state import LEAST_FACTOR, SteadyStateSearch, Surroundings

SPANS = 12  # number of time spans over which a motion is followed, each ten times the last


def rest_in_a_mode(
    modes: Modes,
    engines: Engines,
    pattern: SensitivityPattern,
    solve: Solve,
    now: Values,
    around: Surroundings,
) -> ConsistentValues | EngineFailure | None:
    """Return the steady state of a motion, or the reason why it has none.

    Returns None if the equations contain the time, or if no mode is found in which it comes to
    rest.
    """
    field = modes.surfaces.field
    if any(TIME in e.names for e in field.model.ode.values()):
        return None
    polynomials = np.zeros((1, len(field.inputs), 5))
    polynomials[0, :, 1] = around.inputs
    inputs, span = Inputs(np.zeros(0), polynomials), 0.0
    for _ in range(SPANS):
        point = modes.point(around.time, now, inputs, 0)
        mode, now = modes.begin(point, span or 1.0)
        made = modes.field(mode)
        further = np.concatenate([around.inputs, np.zeros(len(made.derived))])
        near = SteadyStateSearch(
            made.field, pattern, engines.of_mode(made.field), now, replace(around, inputs=further)
        ).nearby()
        if near is not None:
            start = modes.point(around.time, near.values, inputs, 0)
            if modes.begin(start, span or 1.0)[0] == mode:
                return near
        if span == 0.0:
            speed = np.abs(modes.speed(mode, point))
            lasts = np.abs(now.states[speed > 0]) / speed[speed > 0]
            span = float(lasts[lasts > 0].min(initial=np.inf))
            span = span if np.isfinite(span) else 1.0 / float(speed.max(initial=0.0) or 1.0)
        segment = Segment(around.time, np.array([around.time + span]), np.zeros(0), polynomials)
        reached, _ = ModeWalk(modes, solve, segment, now, UNDECIDED).run()
        if isinstance(reached, EngineFailure):
            reason = f"no steady state is approached: {reached.reason}"
            return replace(reached, reason=reason)
        now, span = reached.at(-1, now), LEAST_FACTOR * span
    return None
