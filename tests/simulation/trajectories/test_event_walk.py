"""Passages through many events in one call agree with segments that are integrated one by one."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pandas as pd
import pytest

import odefit
from odefit.problem.experiment import Event
from odefit.simulation import ForwardMap
from odefit.simulation.engines.engine import Values
from odefit.simulation.engines.engine_choice import UNDECIDED, EngineChoice
from odefit.simulation.engines.passages import Passing, Stretches
from odefit.simulation.trajectories.event_walk import EventWalk
from odefit.simulation.trajectories.located_map import LocatedMap
from odefit.simulation.trajectories.trajectory import ConditionMap, Trajectory

Measured = Literal["before", "after"]
DOSES = 12.0 * np.arange(20)
TIMES = np.sort(np.concatenate([np.linspace(0.0, 260.0, 40), DOSES[[3, 7]]]))
ODE = {"gut": "-ka*gut", "blood": "ka*gut - Vm*blood/(Km*V + blood)"}
BOUNDS = {
    "ka": (0.1, 5.0),
    "Vm": (1.0, 100.0),
    "Km": (0.1, 10.0),
    "V": (1.0, 100.0),
    "lag": (0.0, 2.0),
    "F": (0.1, 1.0),
}
VECTOR = np.array([1.1, 20.0, 2.0, 30.0, 0.4, 0.8])


def problem_of(events: list[Event], ode: dict[str, str] = ODE) -> odefit.Problem:
    """Return saturable elimination with these events, and measurements of the blood."""
    model = odefit.Model(ode=ode, observables={"c": "blood/V + 0*lag*F*ka*Vm*Km"})
    data = pd.DataFrame({"t": TIMES, "c": 1.0})
    experiment = odefit.Experiment("run", data, t0=0.0, events=events)
    return odefit.Problem(
        model,
        experiments=[experiment],
        parameters={n: odefit.Parameter(*b) for n, b in BOUNDS.items()},
        initial=dict.fromkeys(ode, 0.0),
    )


def single(problem: odefit.Problem) -> ConditionMap | LocatedMap:
    part = ForwardMap(problem)._conditions.single(0)
    assert isinstance(part, ConditionMap | LocatedMap)
    return part


def both(problem: odefit.Problem) -> tuple[Trajectory, Trajectory]:
    """Return the trajectory through all events at once, and the one of single segments."""
    part = single(problem)
    assert isinstance(part._walk, EventWalk)
    once = part(VECTOR)
    part._walk = None
    one_by_one = part(VECTOR)
    assert isinstance(once, Trajectory)
    assert isinstance(one_by_one, Trajectory)
    return once, one_by_one


def doses(time: str, assign: dict[str, str], measured: Measured = "before") -> list[Event]:
    """Return twenty events, at times in which `t` is that of a dose."""
    return [Event((time.replace("t", str(t)),), assign, measured=measured) for t in DOSES]


DOSE = {"gut": "gut + 100"}
KNOWN = doses("t", DOSE)
RESETS = [
    *KNOWN,
    Event((30.5,), {"blood": 0.0, "gut": "2*gut + blood"}),
    Event(("100 + 2*lag",), {"blood": "blood/2 + 3*lag"}),
]


@pytest.mark.parametrize(
    "events",
    [
        KNOWN,
        doses("t", {"gut": "gut + 100*F"}),
        doses("t", DOSE, "after"),
        doses("t + lag", DOSE),
        doses("t + 0*lag", DOSE, "after"),
        RESETS,
    ],
    ids=["known times", "bioavailability", "seen after", "lag", "lag seen after", "resets"],
)
def test_states_and_sensitivities_agree_with_single_segments(
    events: list[Event],
) -> None:
    once, one_by_one = both(problem_of(events))
    assert once.states == pytest.approx(one_by_one.states, rel=1e-8, abs=1e-9)
    scale = np.abs(one_by_one.sensitivities).max(axis=(0, 1))
    error = np.abs(once.sensitivities - one_by_one.sensitivities) / np.maximum(scale, 1e-12)
    assert error.max() < 1e-7


def test_a_stiff_choice_leaves_segments_to_the_implicit_engine() -> None:
    part = single(problem_of(KNOWN))
    walk = part._walk
    assert isinstance(walk, EventWalk)
    calls = []

    class Engine:
        def through(self, stretches: Stretches, initial: Values, *, searching: bool) -> None:
            calls.append(searching)

    walk._passing = Passing(Engine(), False, "")  # type: ignore[arg-type]  # only what is called
    part(VECTOR, None, EngineChoice(stiff=True))
    assert not calls
    part(VECTOR, None, UNDECIDED)
    assert calls == [False]


@pytest.mark.parametrize(
    "events",
    [
        [*KNOWN, Event((50.0,), {"gut": "gut^2"})],
        [*KNOWN, Event((50.0,), {"gut": "gut*F"})],
        [*KNOWN, Event((50.0,), {"gut": "gut + t"})],
        [*KNOWN, Event((), {"blood": 0.0}, when="blood > 500")],
        KNOWN[:3],
    ],
    ids=["a square", "an unknown factor", "the time", "a condition", "few events"],
)
def test_other_events_are_passed_one_by_one(events: list[Event]) -> None:
    assert not isinstance(single(problem_of(events))._walk, EventWalk)


def test_equations_too_stiff_for_the_walk_have_the_same_states() -> None:
    stiff = {**ODE, "fast": "1e7*(gut - fast)"}
    once, one_by_one = both(problem_of(KNOWN, stiff))
    assert once.states == pytest.approx(one_by_one.states, rel=1e-5, abs=1e-5)
