"""What a problem says, in sentences: events with their conditions."""

from __future__ import annotations

from odefit.problem import Event, Experiment, Model, Problem
from odefit.reporting.formulas.equations import (
    PLAIN,
    ode_lines,
    special_words,
    symbols_of,
    typeset_writer,
)


def test_events_are_reported_with_their_times_and_conditions() -> None:
    events = [
        Event(("t_dose", 5.0), {"x": "x + 1"}),
        Event((), {"x": "0"}, when="x < 0.1 && t > 3"),
    ]
    problem = Problem(
        Model(ode={"x": "-k*x*piecewise(1, t < t_dose, 2)"}),
        experiments=[Experiment("one", {"t": [0.0, 1.0], "x": [1.0, 2.0]}, events=events)],
        parameters={"k": {"lower": 0.0}, "t_dose": {"lower": 0.0}},
        initial={"x": 1.0},
    )
    (experiment,) = problem.experiments
    assert special_words(problem, experiment, PLAIN) == [
        "at t = t_dose, 5: x becomes x + 1",
        "when x < 0.1 && t > 3 becomes true: x becomes 0",
    ]
    typeset = special_words(problem, experiment, typeset_writer(symbols_of(problem)))
    assert 'alttext="x &lt; 0.1 &amp;&amp; t &gt; 3"' in typeset[1]
    # Equations are told as they were given, without the constants that switches are.
    assert list(ode_lines(problem)) == ["dx/dt = -k*x*piecewise(1, t < t_dose, 2)"]
