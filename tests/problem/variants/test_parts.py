"""Experiments hang together by unknowns that act on the values of several of them."""

from __future__ import annotations

from typing import Any

import pytest

from odefit import Experiment, Model, Problem
from odefit.problem.variants.parts import groups_of, separate_parts


def problem(noise: Any, shared: bool) -> Problem:
    runs = [
        Experiment(f"run {i}", {"t": [0.0, 1.0, 2.0, 3.0], "y": [1.0, 0.6, 0.4, 0.2]})
        for i in range(3)
    ]
    rate = {"lower": 0.01, "upper": 5.0, "per_experiment": not shared}
    parameters = {"k": rate, "s": {"lower": 0.01, "upper": 1.0}}
    if "s" not in str(noise.get("sd")).split("*"):
        del parameters["s"]
    model = Model(ode={"x": "-k*x"}, observables={"y": "x"})
    return Problem(
        model, experiments=runs, parameters=parameters, initial={"x": 1.0}, noise={"y": noise}
    )


def test_a_shared_rate_joins_all_experiments() -> None:
    assert groups_of(problem({"sd": 0.1}, shared=True)) is None


@pytest.mark.parametrize("noise", [{"sd": "estimate"}, {"sd": "s*y"}])
def test_an_unknown_of_the_noise_alone_joins_nothing_but_the_noise(noise: dict[str, Any]) -> None:
    given = problem(noise, shared=False)
    found = groups_of(given)
    assert found is not None
    assert [g.members for g in found.groups] == [(0,), (1,), (2,)]
    assert {given.keys[i] for i in found.joining} == {
        "y_sd" if "estimate" in noise.values() else "s"
    }
    parts = separate_parts(given)
    assert [p.names for p in parts] == [("run 0",), ("run 1",), ("run 2",)]
    assert [[given.keys[i] for i in p.unshared] for p in parts] == [
        ["k[run 0]"], ["k[run 1]"], ["k[run 2]"]
    ]  # fmt: skip


def test_an_unknown_of_both_noise_and_values_joins_experiments() -> None:
    runs = [Experiment(f"run {i}", {"t": [0.0, 1.0], "y": [1.0, 0.6]}) for i in range(2)]
    given = Problem(
        Model(ode={"x": "-k*x"}, observables={"y": "x + s"}),
        experiments=runs,
        parameters={
            "k": {"lower": 0.01, "upper": 5.0, "per_experiment": True},
            "s": {"lower": 0.01, "upper": 1.0},
        },
        initial={"x": 1.0},
        noise={"y": {"sd": "s*y"}},
    )
    assert groups_of(given) is None
