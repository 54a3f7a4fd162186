"""Values by key: of each experiment where they differ, else once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from odefit import Experiment, Model, Problem
from odefit.result_data import values_at

DATA = {"t": [0.0, 1.0, 2.0], "x": [1.0, 2.0, 3.0]}
OWN = {"per_experiment": True}


def problem(names: str, k: Any, x: Any) -> Problem:
    return Problem(
        Model(ode={"x": "-k*x"}),
        parameters={"k": k},
        initial={"x": x},
        experiments=[Experiment(name, DATA) for name in names],
    )


@pytest.mark.parametrize(
    ("names", "vector", "parameters", "initial"),
    [
        ("A", [0.3, 5.0], {"k": 0.3}, {"x": 5.0}),
        ("AB", [0.3, 0.4, 5.0, 6.0], {"k[A]": 0.3, "k[B]": 0.4}, {"x[A]": 5.0, "x[B]": 6.0}),
        ("AB", [0.3, 0.3, 5.0, 5.0], {"k[A]": 0.3, "k[B]": 0.3}, {"x[A]": 5.0, "x[B]": 5.0}),
    ],
)
def test_values_per_experiment_are_keyed_by_it_if_there_are_several(
    names: str, vector: list[float], parameters: dict[str, float], initial: dict[str, float]
) -> None:
    assert values_at(problem(names, OWN, OWN), np.array(vector)) == (parameters, initial)


def test_a_shared_unknown_has_one_value() -> None:
    shared = problem("AB", {}, {"lower": 0.0})
    assert values_at(shared, np.array([0.3, 5.0])) == ({"k": 0.3}, {"x": 5.0})


def test_fixed_values_are_reported_too() -> None:
    fixed = problem("AB", {"fixed": 0.5, **OWN}, {"fixed": 2.0})
    found = values_at(fixed, np.zeros(0))
    assert found == ({"k[A]": 0.5, "k[B]": 0.5}, {"x": 2.0})
