"""Measurements at t = inf: read, written, and understood by all that reads times of data."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import odefit
from odefit import Experiment, InputError, Model, Problem
from odefit.problem import problem_from_mapping, problem_to_mapping
from odefit.problem.variants.start_ranges import ranges
from odefit.problem.variants.thinning import with_horizon, with_values_by_variation

TEXT = """
format = 1
ode = { x = "p - k*x" }
parameters = { k = {}, p = {} }
initial = { x = 0.0 }

[[experiment]]
data = DATA
"""


def loaded(tmp_path: Path, data: str, csv: str = "") -> Problem:
    (tmp_path / "x.csv").write_text(csv)
    path = tmp_path / "x.toml"
    path.write_text(TEXT.replace("DATA", data))
    return odefit.load(path)


def with_times(times: list[float], **more: Any) -> Problem:
    return Problem(
        Model(ode={"x": "p - k*x"}),
        {"t": times, "x": np.linspace(0.0, 1.0, len(times))},
        {"k": {}, "p": {}},
        {"x": 0.0},
        **more,
    )


@pytest.mark.parametrize("word", ["inf", "Inf", "+inf", " infinity"])
def test_a_csv_file_may_contain_inf(tmp_path: Path, word: str) -> None:
    problem = loaded(tmp_path, '"x.csv"', f"t,x\n{word},3\n0,0\n1,1.5\n")
    assert problem.conditions[0].times.tolist() == [0.0, 1.0, math.inf]


def test_a_table_of_several_subjects_may_contain_inf(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text(
        "ID,t,x,sv\n1,0,0,2\n1,1,0.5,2\n1,inf,2,2\n2,0,0,3\n2,1,0.7,3\n2,inf,3,3\n"
    )
    text = TEXT.replace("p - k*x", "p*sv - k*x").replace("DATA", '"x.csv"')
    (tmp_path / "x.toml").write_text(f'{text}by = "ID"\nname = "subject {{}}"\n')
    found = odefit.load(tmp_path / "x.toml")
    assert [c.times.tolist() for c in found.conditions] == [[0.0, 1.0, math.inf]] * 2
    assert [c.scalars["sv"] for c in found.conditions] == [2.0, 3.0]


def test_toml_reads_inf_as_an_infinite_time(tmp_path: Path) -> None:
    problem = loaded(tmp_path, "{ t = [1, inf], x = [1.0, 2.0] }")
    assert problem.conditions[0].times.tolist() == [1.0, math.inf]


@pytest.mark.parametrize("csv", ["t,x\n-inf,3\n0,0\n", "t,x\n1,inf\n2,0\n"])
def test_other_infinities_stay_mistakes(tmp_path: Path, csv: str) -> None:
    with pytest.raises(InputError, match="inf"):
        loaded(tmp_path, '"x.csv"', csv)


def test_a_mapping_for_json_holds_infinity_as_text() -> None:
    problem = with_times([0.5, math.inf])
    mapping = json.loads(json.dumps(problem_to_mapping(problem), allow_nan=False))
    assert mapping["experiment"][0]["data"]["t"] == [0.5, "inf"]
    assert problem_from_mapping(mapping).conditions[0].times.tolist() == [0.5, math.inf]


def test_a_condition_with_nothing_else_begins_at_zero() -> None:
    condition = with_times([math.inf, math.inf]).conditions[0]
    assert (condition.t0, condition.end) == (0.0, 0.0)


def test_ranges_of_rates_follow_from_finite_times() -> None:
    assert ranges(with_times([0.0, 1.0, 4.0, math.inf])) == ranges(with_times([0.0, 1.0, 4.0]))
    for one in ranges(with_times([math.inf, math.inf])):
        assert math.isfinite(one.low)
        assert math.isfinite(one.high)


def test_a_horizon_below_one_leaves_out_the_steady_state() -> None:
    problem = with_times([0.0, 1.0, 2.0, 3.0, 4.0, math.inf])
    assert with_horizon(problem, 0.5).conditions[0].times.tolist() == [0.0, 1.0, 2.0]
    assert with_horizon(problem, 1.0).conditions[0].times.tolist()[-1] == math.inf


def test_thinning_keeps_an_infinite_time() -> None:
    times = [*np.linspace(0.0, 10.0, 2000).tolist(), math.inf]
    thinned = with_values_by_variation(with_times(times)).conditions[0]
    assert len(thinned.times) < 1000
    assert thinned.times[-1] == math.inf


def test_an_input_has_no_value_at_infinity() -> None:
    data = {"t": [0.0, 1.0, math.inf], "u": [1.0, 2.0, 3.0], "x": [0.0, 1.0, 1.0]}
    with pytest.raises(InputError, match="the input has a value at t = inf"):
        Problem(Model(ode={"x": "u - k*x"}, inputs={"u": "linear"}), data, {"k": {}}, {"x": 0.0})


def test_known_inputs_have_their_last_value() -> None:
    problem = Problem(
        Model(ode={"x": "u - k*x"}, inputs={"u": "cubic"}),
        {"t": [0.0, 1.0, 2.0, math.inf], "u": [1.0, 2.0, 5.0, math.nan], "x": [0.0, 1, 1, 1]},
        {"k": {}},
        {"x": 0.0},
    )
    assert problem.data()["u"].tolist() == [1.0, 2.0, 5.0, 5.0]


@pytest.mark.parametrize(
    "finite", [pytest.param([0.0, 0.5, 1.0, 2.0, 4.0], marks=pytest.mark.slow), []]
)
def test_a_fit_shows_and_keeps_its_answer(tmp_path: Path, finite: list[float]) -> None:
    """All that users see of a fit can be made: table, figures, report, result file."""
    pytest.importorskip("matplotlib")
    rng = np.random.default_rng(4)
    times = np.array([*finite, math.inf, math.inf, math.inf])
    true = np.where(np.isinf(times), 2.0, 2 * (1 - np.exp(-np.where(np.isinf(times), 0.0, times))))
    problem = Problem(
        Model(ode={"x": "p - k*x", "y": "x - 2*y"}),
        experiments=[
            Experiment("a", {"t": times, "x": true + rng.normal(0.0, 0.01, len(times))}),
            Experiment("b", {"t": [math.inf], "y": [1.0]}),
        ],
        parameters={"k": {"lower": 0.1, "upper": 10.0}, "p": {"lower": 0.1, "upper": 10.0}},
        initial={"x": 0.0, "y": 0.0},
        noise={"x": {"sd": 0.01}, "y": {"sd": 0.01}},
    )
    result = odefit.fit(problem, odefit.MultiStart(starts=2))
    assert result.best.vector[1] / result.best.vector[0] == pytest.approx(2.0, rel=0.02)
    result.save(tmp_path / "r.json")
    again = odefit.load_result(tmp_path / "r.json")
    assert again.problem.conditions[0].times.tolist() == problem.conditions[0].times.tolist()
    result.report(tmp_path / "r.html")
    result.plot_fit()
    result.plot_residuals()
    assert np.isfinite(result.predict()["value"]).all()
    assert result.residuals["t"].iloc[-1] == math.inf
    assert "inf" in str(result) or "steady state" in str(result)
