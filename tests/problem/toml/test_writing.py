"""A problem that was written is the same problem when it is read again."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from odefit.problem import (
    Event,
    Experiment,
    Model,
    Noise,
    Parameter,
    Prior,
    Problem,
    load,
    problem_from_mapping,
    problem_to_mapping,
)

LIBRARY = Path(__file__).parents[3] / "src" / "odefit" / "library" / "problems"
PROBLEMS = sorted(LIBRARY.glob("*/problem.toml"))


def rich() -> Problem:
    """A problem with something of everything."""
    model = Model(
        ode={"gut": "-ka * gut", "x": "ka*gut - k*x^2 + u + k12"},
        observables={"y": "x/V", "gut": "gut"},
        algebraic={"z": "z - x"},
        constants={"V": 0.1 + 0.2},
        inputs={"u": "constant"},
    )
    frame = pd.DataFrame(
        {"t": [3.0, 1.0, 1.0], "y": [0.1, None, 1 / 3], "gut": [1.0, 2.0, 3.0],
         "y_sd": [0.1, math.inf, 0.2], "u": [0, 1, 1], "unused": ["a", "b", "c"]}
    )  # fmt: skip
    columns = {"t": (0, 1), "gut": np.array([1, 2]), "u": [0.0, None]}
    return Problem(
        model,
        parameters={
            "ka": {"lower": 0, "guess": 0.3, "unit": "1/h", "prior": {"mean": 1, "sd": 2}},
            "k": Parameter(1e-3, 1e3, scale="log10", per_experiment=True, prior=Prior(0.1, 0.7)),
            "f": 2.0,
            "e": {"lower": 1, "upper": 1},
        },
        initial={"gut": {}, "x": "2 * ka", "z": {"guess": 0.5}},
        noise={"y": Noise("estimate"), "gut": {"sd": "0.1 + f*gut", "transform": "log"}},
        experiments=[
            Experiment("a", frame, t0=-1, constants={"k12": -1.5}, initial={"x": {"upper": 3}}),
            Experiment(
                "b", columns, constants={"k12": "f*2", "V": 1},
                events=[Event((1, 0), {"gut": "gut + 100", "V": 2}), Event((0.5,), {"x": "t"})],
            ),
        ],
        name="rich",
        description="something of everything",
        time_unit="h",
    )  # fmt: skip


def same(a: Problem, b: Problem) -> None:
    assert a.unknowns == b.unknowns
    assert a.model == b.model
    assert a.parameters == b.parameters
    assert a.initial == b.initial
    assert a.noise == b.noise
    for name in ("name", "description", "time_unit"):
        assert getattr(a, name) == getattr(b, name)
    for one, two in zip(a.conditions, b.conditions, strict=True):
        for name in ("name", "t0", "scalars", "initial", "algebraic_guess", "events"):
            assert getattr(one, name) == getattr(two, name)
        np.testing.assert_array_equal(one.times, two.times)
        assert list(one.series) == list(two.series)
        for key in one.series:
            for part in ("rows", "values", "sds"):
                ours, theirs = (getattr(c.series[key], part) for c in (one, two))
                assert (ours is None) == (theirs is None)
                np.testing.assert_array_equal(ours, theirs)
        for key in one.inputs:
            np.testing.assert_array_equal(one.inputs[key].times, two.inputs[key].times)
            np.testing.assert_array_equal(one.inputs[key].values, two.inputs[key].values)
            assert one.inputs[key].interpolation == two.inputs[key].interpolation
    for e, f in zip(a.experiments, b.experiments, strict=True):
        assert (e.name, e.t0, e.initial, e.constants) == (f.name, f.t0, f.initial, f.constants)
        assert tuple(e.events) == tuple(f.events)


def again(problem: Problem) -> Problem:
    text = json.dumps(problem_to_mapping(problem), allow_nan=False)
    return problem_from_mapping(json.loads(text))


def test_a_rich_problem_comes_back_equal() -> None:
    same(rich(), again(rich()))


@pytest.mark.parametrize("path", PROBLEMS, ids=lambda path: path.parent.name)
def test_every_library_problem_comes_back_equal(path: Path) -> None:
    problem = load(path)
    same(problem, again(problem))


def test_a_written_problem_needs_no_files_and_only_plain_types() -> None:
    def plain(value: Any) -> bool:
        if isinstance(value, dict):
            return all(type(k) is str and plain(v) for k, v in value.items())
        if isinstance(value, list):
            return all(map(plain, value))
        return value is None or type(value) in {str, int, float, bool}

    mapping = problem_to_mapping(rich())
    assert plain(mapping)
    data = mapping["experiment"][0]["data"]
    assert data["t"] == [3.0, 1.0, 1.0]
    assert data["y"] == [0.1, None, 1 / 3]
    assert "unused" not in data


def test_writing_twice_gives_the_same() -> None:
    once = problem_to_mapping(rich())
    assert problem_to_mapping(problem_from_mapping(once)) == once
