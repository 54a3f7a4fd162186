"""Problem files that are written are read back as they were."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import odefit
from odefit import Experiment, InputError, Model, Problem
from odefit.problem.toml.writing import problem_to_mapping
from tests.simulation.residuals.test_residual_arrays import CASES


@pytest.mark.parametrize("name", CASES)
def test_problems_are_read_back_as_they_were(name: str, tmp_path: Path) -> None:
    problem, _ = CASES[name]()
    back = odefit.load(odefit.save(problem, tmp_path / "problem.toml"))
    assert back.keys == problem.keys
    assert problem_to_mapping(back) == problem_to_mapping(problem)


def test_odd_names_and_texts_are_kept(tmp_path: Path) -> None:
    data = {"t": [0.0, 1.0, np.inf], "x": [1.0, np.nan, 0.5]}
    problem = Problem(
        Model(ode={"x": "1 - k*x"}),
        parameters={"k": {"lower": 0.0, "upper": np.inf, "unit": '"1/min"'}},
        initial={"x": 1.0},
        experiments=[Experiment('a/b "c"', data), Experiment("a b  c ", data)],
        description="two\nlines \\ and a tab\t",
    )
    back = odefit.load(odefit.save(problem, tmp_path / "problem.toml"))
    assert [e.name for e in back.experiments] == ['a/b "c"', "a b  c "]
    assert back.description == problem.description
    assert back.parameters == problem.parameters
    for one, other in zip(problem.conditions, back.conditions, strict=True):
        assert one.times.tolist() == other.times.tolist()


def test_other_endings_are_refused(tmp_path: Path) -> None:
    problem, _ = CASES["a number"]()
    with pytest.raises(InputError, match=r"expected NAME.toml"):
        odefit.save(problem, tmp_path / "problem.json")
