"""Scenarios in files: TOML and tables."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from odefit import InputError, Model, Problem
from odefit.problem.toml.scenario_files import load_scenarios


@pytest.fixture(scope="module")
def problem() -> Problem:
    return Problem(
        Model(ode={"x": "w*u - k*x", "g": "-g"}, constants={"w": 1.0}, inputs={"u": "linear"}),
        {"t": [0.0, 1.0, 2.0], "u": [1.0, 1.0, 1.0], "x": [0.0, 1.0, 2.0]},
        {"k": (0.0, 5.0)},
        {"x": 0.0, "g": 0.0},
        name="p",
    )


def written(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_a_file_has_all_parts_of_a_scenario(problem: Problem, tmp_path: Path) -> None:
    written(tmp_path, "u.csv", "hour,power\n0,1\n10,5\n")
    path = written(
        tmp_path,
        "new.toml",
        """
like = "data"
initial = { x = 2.0 }
constants = { w = 3 }
covariates = { k = "w/2" }
data = "u.csv"
time = "hour"
columns = { u = "power" }
times = "0:10:6"

[[event]]
time = 1.0
assign = { g = "g + 1" }
""",
    )
    (found,) = load_scenarios(path, problem)
    assert (found.name, found.like) == ("new", "data")
    assert found.constants == {"w": 3, "k": "w/2"}
    np.testing.assert_array_equal(found.times, [0, 2, 4, 6, 8, 10])
    np.testing.assert_array_equal(found.data["u"], [1.0, 5.0])  # type: ignore[index]
    assert found.events is not None
    assert found.events[0].times == (1.0,)


def test_one_file_holds_several_scenarios(problem: Problem, tmp_path: Path) -> None:
    text = """
[[scenario]]
doses = [{ time = 0, amount = 5, into = "g" }]
[[scenario]]
name = "cold"
inputs = { u = 0.5 }
"""
    found = load_scenarios(written(tmp_path, "s.toml", text), problem)
    assert [s.name for s in found] == ["scenario 1", "cold"]


def test_a_table_has_inputs_covariates_and_measurements(problem: Problem, tmp_path: Path) -> None:
    path = written(tmp_path, "warm.csv", "time,u,w,x\n0,1,4,\n1,2,4,0.5\n")
    (found,) = load_scenarios(path, problem)
    assert found.name == "warm"
    assert found.constants == {"w": 4.0}
    assert found.data is not None
    assert set(found.data) == {"time", "u", "x"}


def test_a_long_table_has_a_scenario_for_each_subject(problem: Problem, tmp_path: Path) -> None:
    rows = "ID,TIME,AMT,CMT,u,w\n1,0,5,g,1,2\n1,2,,,1,2\n2,0,7,g,1,3\n2,2,,,1,3\n"
    found = load_scenarios(written(tmp_path, "d.csv", rows), problem)
    assert [s.name for s in found] == ["ID 1", "ID 2"]


def test_a_column_that_nothing_uses_is_a_note_as_in_a_fit(problem: Problem, tmp_path: Path) -> None:
    path = written(tmp_path, "e.csv", "t,u,uu,remark,w\n0,1,1,ok,2\n1,1,2,late,2\n")
    (one,) = load_scenarios(path, problem)
    assert one.notes == (
        f"{path}, column uu: not used; did you mean 'u'?",
        f"{path}, column remark: not used",
    )
    assert one.constants == {"w": 2.0}
    assert set(one.data or ()) == {"t", "u"}


@pytest.mark.parametrize(
    ("name", "text", "messages"),
    [
        (
            "a.toml",
            'lik = "data"\nconstants = { q = 1 }\ntimes = "0:5"\n',
            [
                "unknown key 'lik'; did you mean 'like'?",
                "constants.q: there is no constant or parameter 'q'",
                "expected a list, or FROM:TO:COUNT",
            ],
        ),
        ("b.toml", "[[scenario]]\n[[scenarioo]]\n", ["unknown key"]),
        ("c.csv", "t,x\n0,1\n", ["the table has no column 'u' for this input"]),
        ("d.csv", "t,u,w\n0,1,1\n1,1,2\n", ["column w: a constant has one value in all rows"]),
        ("f.toml", 'data = "../f.csv"\n', ["leads out of the folder"]),
        ("g.toml", 'data = "none.csv"\n', ["there is no such file"]),
        ("h.toml", "covariates = { w = 1 }\nconstants = { w = 2 }\n", ["keep one of the two"]),
        ("i.toml", "", ["the file is empty"]),
    ],
)
def test_every_mistake_is_reported_with_the_file(
    problem: Problem, tmp_path: Path, name: str, text: str, messages: list[str]
) -> None:
    path = written(tmp_path, name, text)
    with pytest.raises(InputError) as caught:
        load_scenarios(path, problem)
    told = "\n".join(caught.value.messages)
    assert name in told
    for message in messages:
        assert message in told
