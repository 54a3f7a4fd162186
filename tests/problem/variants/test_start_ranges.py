"""Ranges of start values follow from bounds and data."""

from __future__ import annotations

from odefit.problem import Event, Experiment, Model, Problem
from odefit.problem.variants.start_ranges import Range, ranges


def test_the_time_of_an_event_is_within_the_measurements_of_all_experiments_that_have_it() -> None:
    def experiment(name: str, begin: float, end: float, *events: Event) -> Experiment:
        return Experiment(name, {"t": [begin, end], "x": [1.0, 2.0]}, events=events)

    event = Event(("tau",), {"x": "x + 1"})
    problem = Problem(
        Model(ode={"x": "-k*x"}),
        experiments=[
            experiment("A", 0.0, 4.0, event),
            experiment("B", -3.0, 2.0, event),
            experiment("C", 1.0, 7.0, event),
            experiment("D", -20.0, 20.0),
        ],
        parameters={"k": {}, "tau": {"lower": -100.0, "upper": 100.0}},
        initial={"x": 1.0},
    )
    assert ranges(problem)[1] == Range(-3.0, 7.0, False)
