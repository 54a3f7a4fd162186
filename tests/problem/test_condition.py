"""What an experiment says, with every name resolved."""

from __future__ import annotations

from odefit.problem.toml.reading import problem_from_mapping


def test_assignments_are_those_of_all_events_repeated_ones_and_ones_at_unknown_times_too() -> None:
    def event(time: object, value: str) -> dict[str, object]:
        return {"time": time, "assign": {"x": value}}

    problem = problem_from_mapping(
        {
            "format": 1,
            "ode": {"x": "-k*x"},
            "parameters": {"k": {}, "lag": {"lower": 0.0, "upper": 9.0}},
            "initial": {"x": 0.0},
            "experiment": [
                {
                    "t0": 0.0,
                    "data": {"t": [1.0, 2.0], "x": [1.0, 2.0]},
                    "event": [event(1.0, "x + 1"), event("lag", "x + 2")],
                    "steady_state": {
                        "period": 12.0,
                        "event": [event(0.0, "x + 3"), event("lag", "x + 4")],
                    },
                }
            ],
        }
    )
    (condition,) = problem.conditions
    found = sorted(assign["x"].text for assign in condition.assignments)
    assert found == ["x + 1", "x + 2", "x + 3", "x + 4"]
