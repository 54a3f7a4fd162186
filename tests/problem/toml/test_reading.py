"""Format 1 is read as documented, and whatever is wrong in it is told at once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from odefit.problem import (
    InputError,
    Noise,
    Parameter,
    Prior,
    Problem,
    load,
    parse,
    problem_from_mapping,
)
from tests.problem.texts import DECAY, FULL, FULL_DATA

Errors = Callable[..., tuple[str, ...]]


@pytest.fixture
def full(tmp_path: Path) -> Any:
    for name, content in FULL_DATA.items():
        (tmp_path / name).write_text(content)
    (tmp_path / "full.toml").write_text(FULL)
    return load(tmp_path / "full.toml")


def test_every_key_has_its_meaning(full: Any) -> None:
    assert (full.name, full.description, full.time_unit) == ("full", "everything at once", "h")
    assert full.model.ode["gut"] == parse("-ka*gut")
    assert full.model.constants == {"V": 10.0}
    assert full.model.inputs == {"u": "cubic"}
    assert full.parameters["ka"] == Parameter(0.0, 10.0, 0.1, "linear", unit="1/h")
    assert full.parameters["k"] == Parameter(
        1e-3, scale="log10", per_experiment=True, prior=Prior(1.0, 0.2)
    )
    assert full.noise == {
        "y1": Noise(parse("sigma*y1"), transform="log10"),
        "y2": Noise(relative=0.05),
    }
    assert full.keys == (
        "ka", "k[wild type]", "k[experiment 2]", "sigma", "gut", "gut[experiment 2]",
    )  # fmt: skip
    one, two = full.conditions
    assert (one.name, one.t0, two.name, two.t0) == ("wild type", 0.0, "experiment 2", 5.0)
    assert one.scalars == {"k12": 1.0, "V": 10.0, "ka": 0, "k": 1, "k_mutant": 0.3, "sigma": 3}
    assert two.scalars == {"k12": 0.3, "V": 20.0, "ka": 0, "k": 2, "k_mutant": 0.3, "sigma": 3}
    assert one.initial == {"gut": 4, "x": parse("2*ka")}
    assert two.initial == {"gut": 5, "x": 1.0}
    assert one.algebraic_guess == {"z": 1.0}
    assert [(t, list(e)) for t, e in one.events] == [
        (12.0, ["gut", "V"]), (12.0, ["x"]), (24.0, ["gut", "V"]),
    ]  # fmt: skip
    assert two.events == ()
    assert one.series["y2"].values.tolist() == [2.0, 1.0]
    assert two.series["y1"].sds.tolist() == [0.1, 0.2]
    assert two.inputs["u"].interpolation == "cubic"
    assert full.warnings == ()


def test_the_smallest_problem_file_is_read(errors: Errors) -> None:
    assert errors(DECAY) == ()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        # format
        ("format = 1\n", "", "format: missing; write format = 1 at the top"),
        ("format = 1\n", "Format = 1\n", "(instead of 'Format')"),
        ("format = 1\n", "format = 2\n", "format: expected 1, got 2; this version"),
        ("format = 1\n", 'format = "1"\n', "format: expected 1, got '1'"),
        ("format = 1\n", "format = true\n", "format: expected 1, got true"),
        ("format = 1\n", "format = 1.0\n", "format: expected 1, got 1.0"),
        ("format = 1\n", f"format = 0x{'F' * 9000}\n", "expected 1, got a very large integer"),
        # texts and sections
        ("format = 1\n", "format = 1\nname = 3\n", "name: expected a text in quotes, got 3"),
        ("format = 1\n", "format = 1\ntime_unit = ['h']\n", "time_unit: expected a text"),
        ("format = 1\n", "format = 1\ndescription = 1979-05-27\n", "got the date or time 1979"),
        ("format = 1\n", "format = 1\nnoise = 3\n", "noise: expected a table by observable, got 3"),
        ("[ode]", "[[ode]]", "[ode]: expected a table, got a list; write [ode], with one pair"),
        ("[ode]", "[od]", "[od]: unknown section; did you mean 'ode'?"),
        ("[parameters]", "[parameter]", "unknown section; did you mean 'parameters'?"),
        ("[parameters]", "[qqq]\n[parameters]", "[qqq]: unknown section; expected one of: format"),
        ("format = 1\n", "format = 1\ntimeunit = 'h'\n", "timeunit: unknown key; did you mean"),
        ("[ode]", "[ode]\n[ode.y]\nz = 1\n[odd]", "[ode] y: expected an expression or a number"),
        # parameters
        ("k = {}", "k = 0.3", "write { guess = 0.3 } if it is to be estimated"),
        ("k = {}", "k = 'a'", "[parameters] k: expected a table, got 'a'"),
        ("k = {}", "k = true", "[parameters] k: expected a table, got true"),
        (
            "k = {}",
            "k = []",
            "[parameters] k: expected two bounds such as [0.0, 1.0], got 0 values",
        ),
        ("k = {}", f"k = 0x{'F' * 9000}", "got a very large integer"),
        ("k = {}", "k = { lower = nan }", "[parameters] k.lower: expected a finite number"),
        ("k = {}", f"k = {{ lower = 0x{'F' * 9000} }}", "the number is too large"),
        ("k = {}", "k = { lower = 2, upper = 1 }", "the bounds cross"),
        ("k = {}", "k = { unit = 3 }", "[parameters] k.unit: expected a text"),
        # initial values
        ("x = 1.0", "x = true", "[initial] x: expected an expression or a number, got true"),
        ("x = 1.0", "x = inf", "[initial] x: inf is not a finite number"),
        ("x = 1.0", "x = 1979-05-27", "[initial] x: expected an expression or a number, got the"),
        ("x = 1.0", "x = [1]", "[initial] x: expected two bounds such as [0.0, 1.0], got 1 value;"),
        ("x = 1.0", "x = '1/0'", "[initial] x: '/' at position 2 of '1/0' has no finite value"),
        ("x = 1.0", f"x = 0x{'F' * 9000}", "[initial] x: expected an expression or a number"),
        # inputs and noise
        ("[initial]", "[noise]\nx = 0.5\n[initial]", "[noise] x: expected a table such as"),
        # experiments
        ("[[experiment]]", "[experiment]", "[[experiment]]: got a single table; write"),
        ('[[experiment]]\ndata = "data.csv"\n', "", "[[experiment]]: no experiment"),
        ("[[experiment]]", "experiment = 3\n[q]", "unknown"),
        ('data = "data.csv"', "", '"experiment 1" data: missing; write data = "FILE.csv"'),
        (
            'data = "data.csv"',
            "data = 3",
            "data: expected the name of a CSV file or a workbook, got 3",
        ),
        ('data = "data.csv"', 'dat = "data.csv"', "unknown key 'dat'; did you mean 'data'?"),
        ('data = "data.csv"', 'data = "dta.csv"', "dta.csv: there is no such file"),
        ('data = "data.csv"', 'data = "a\\u0000b"', "has the control character"),
        ('data = "data.csv"', 'data = "."', "is a folder"),
        ('data = "data.csv"', 'data = "/dev/zero"', "leads out of the folder"),
        (
            'data = "data.csv"',
            'data = { t = [0], x = ["a"] }',
            "column x, value 1: expected a number",
        ),
        (
            'data = "data.csv"',
            "data = { t = [0], x = [true] }",
            "column x, value 1: expected a number",
        ),
        ('data = "data.csv"', "data = { t = [0], x = 3 }", "column x: expected a list of numbers"),
        ('data = "data.csv"', "data = { t = [0, 1], x = [1] }", "column x: 1 values, but 2 times"),
        ("[[experiment]]", "[[experiment]]\nname = 3", "name: expected a text in quotes, got 3"),
        (
            "[[experiment]]",
            "[[experiment]]\nt0 = '0'",
            "t0: expected a number or a date such as 2024-01-31, got '0'",
        ),
        ("[[experiment]]", "[[experiment]]\nt0 = nan", "t0: expected a finite number, got nan"),
        ("[[experiment]]", "[[experiment]]\ninitial = 3", "initial: expected a table, got 3"),
        ("[[experiment]]", "[[experiment]]\nevent = 3", "expected tables, got 3"),
        ("[[experiment]]", "[[experiment]]\nevent = [3]", "expected tables, got 3 among them"),
    ],
    ids=range(53),
)
def test_a_mistake_gives_one_message(errors: Errors, old: str, new: str, message: str) -> None:
    assert DECAY.count(old) == 1
    found = errors(DECAY.replace(old, new))
    several = {"experiment = 3\n[q]", "[ode]\n[ode.y]\nz = 1\n[odd]"}  # two mistakes in one line
    assert len(found) == 1 or new in several, found
    assert any(message in m for m in found)


def test_an_input_is_a_table(errors: Errors) -> None:
    text = DECAY.replace("[initial]", "[inputs]\nu = 'linear'\n[initial]").replace("*x", "*x*u")
    (found,) = errors(text, "t,x,u\n0,1,1\n")
    assert found.startswith('[inputs] u: expected { interpolation = "linear" } for a column')


@pytest.mark.parametrize(
    ("event", "message"),
    [
        ("time = 1\n", "event 1 assign: nothing is assigned"),
        ("assign = { x = 1 }\n", "event 1 time: the event has no time"),
        ("time = 1\ntimes = [1]\nassign = { x = 1 }", "time and times are both given"),
        ("time = 1\nevery = 2\nassign = { x = 1 }", "until: missing; time, every and until belong"),
        ("times = [1]\nevery = 2\nuntil = 3\nassign = { x = 1 }", "time: missing; time, every"),
        (
            "time = 1\nevery = 7\nuntil = 2024-01-22\nassign = { x = 1 }",
            "until: time and until are both numbers, or both dates of one kind; got the date",
        ),
        (
            'time = "2024-01-08"\nevery = 7\nuntil = 21\nassign = { x = 1 }',
            "time: time and until are both numbers, or both dates of one kind; got '2024-01-08'",
        ),
        ("time = 1\nevery = 0\nuntil = 3\nassign = { x = 1 }", "expected a positive interval"),
        ("time = 1\nevery = 1\nuntil = 0\nassign = { x = 1 }", "until: 0 is before time = 1"),
        ("time = 1\nevery = 1e-9\nuntil = 3\nassign = { x = 1 }", "choose a longer interval"),
        ("time = [1]\nassign = { x = 1 }", "expected one number, got a list; write times"),
        ("times = 1\nassign = { x = 1 }", "expected a list, got 1; for one, write time"),
        ("times = []\nassign = { x = 1 }", "event 1 time: the event has no time"),
        ("times = [1, 'a']\nassign = { x = 1 }", "event 1 time: unknown name 'a'"),
        ("time = true\nassign = { x = 1 }", "event 1 time: expected a number, got true"),
        ("time = 1\nassign = 3", "event 1 assign: expected a table, got 3"),
        ("time = 1\nassign = { x = true }", "assign.x: expected an expression or a number"),
        ("tim = 1\nassign = { x = 1 }", "event 1: unknown key 'tim'; did you mean 'time'?"),
        ("time = -1\nassign = { x = 1 }", "t = -1 is before t0 = 0"),
    ],
    ids=range(19),
)
def test_a_mistaken_event_gives_one_message(errors: Errors, event: str, message: str) -> None:
    found = errors(f"{DECAY}[[experiment.event]]\n{event}\n")
    assert len(found) == 1, found
    assert message in found[0]


def test_an_event_is_repeated_at_equal_intervals(tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text("t,x\n0,1\n1,0\n", encoding="utf-8")
    event = "[[experiment.event]]\ntime = 0.1\nevery = 0.1\nuntil = 0.7\nassign = { x = 1 }\n"
    (tmp_path / "problem.toml").write_text(DECAY + event, encoding="utf-8")
    (condition,) = load(tmp_path / "problem.toml").conditions
    found = [time for time, _ in condition.events]
    assert found == pytest.approx([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7], rel=1e-12)


def test_a_file_has_its_own_names_of_columns(tmp_path: Path) -> None:
    table = "Time (s);i (A);SD\n0;1,5;0,1\n1;0,5;\n"
    (tmp_path / "data.csv").write_text(table, encoding="utf-8")
    columns = 'time = "Time (s)"\ncolumns = { x = "i (A)", x_sd = "SD" }\n'
    text = (
        DECAY.replace('data = "data.csv"', f'data = "data.csv"\n{columns}')
        + "[noise]\nx = {sd = 1}"
    )
    (tmp_path / "problem.toml").write_text(text, encoding="utf-8")
    problem = load(tmp_path / "problem.toml")
    (series,) = problem.conditions[0].series.values()
    assert series.values.tolist() == [1.5, 0.5]
    assert problem.warnings == ()


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ('{ x = "i (mA)" }', "no column 'i (mA)', which columns.x names; did you mean 'i (A)'?"),
        ('{ x = "i (A)", q = "SD" }', "unknown role 'q'"),
        ('{ x = 3 }', "columns.x: expected a text in quotes, got 3"),
        ('{ x = "t" }', "no column 't'"),
    ],
)  # fmt: skip
def test_a_mistaken_name_of_a_column_is_reported(
    errors: Errors, columns: str, message: str
) -> None:
    text = DECAY.replace('data = "data.csv"', f'data = "data.csv"\ncolumns = {columns}')
    found = errors(text, "t,i (A),SD\n0,1,1\n1,2,1\n")
    assert any(message in m for m in found), found


def test_everything_wrong_is_reported_at_once(errors: Errors) -> None:
    wrong = DECAY.replace("-k*x", "-k_*x +").replace("k = {}", "k = { lower = 'a', upper = 'b' }")
    found = errors(wrong, data="t,x\n0,abc\n1,<1\n,2\n")
    assert len(found) == 5
    for part in ("[ode] x", "k.lower", "k.upper", "column x, row 2", "column t, row 4"):
        assert any(part in m for m in found), part


@pytest.mark.parametrize(
    "data",
    ["t,x\n0,a\n1,b\n", "0,1\n2,3\n", "", "t,x\n", "x\n1\n", "t\n1\n", "t,X\n0,1\n", b"\x00"],
)
def test_unusable_data_give_one_message(errors: Errors, data: str | bytes) -> None:
    assert len(errors(DECAY, data)) == 1


def test_nothing_of_a_file_is_executed(errors: Errors, tmp_path: Path) -> None:
    code = f"__import__('os').mkdir('{tmp_path}/executed')"
    found = errors(DECAY.replace("-k*x", code).replace("x = 1.0", f'x = "{code}"'))
    assert len(found) == 2
    assert not (tmp_path / "executed").exists()


def test_data_can_be_given_in_place() -> None:
    problem = problem_from_mapping(
        {
            "format": 1,
            "ode": {"x": "-k*x"},
            "parameters": {"k": {}},
            "initial": {"x": 1},
            "experiment": [{"data": {"t": [0, 1, 2], "x": [1, None, 3]}}],
        }
    )
    assert problem.size == 2
    np.testing.assert_array_equal(problem.data()["t"], [0, 1, 2])


def test_data_in_place_are_lists_arrays_or_series() -> None:
    lists = {"t": [0.0, 1.0, 2.0], "x": [1.0, float("nan"), 3.0]}
    frame = pd.DataFrame(lists)
    given: list[dict[str, Any]] = [
        lists,
        {k: np.array(v) for k, v in lists.items()},
        {"t": (0, 1, 2), "x": frame["x"]},
    ]
    given.append({"t": frame.index, "x": pd.Series([1.0, None, 3.0], dtype=object)})
    for data in given:
        assert in_place(data).size == 2
        np.testing.assert_array_equal(in_place(data).data()["t"], [0, 1, 2])
    for wrong in (np.ones((3, 1)), pd.date_range("2026-01-01", periods=3), np.array(["1"] * 3)):
        with pytest.raises(InputError, match="column x: expected a list of numbers"):
            in_place({"t": [0, 1, 2], "x": wrong})


def in_place(data: dict[str, Any]) -> Problem:
    sections = {"format": 1, "ode": {"x": "-k*x"}, "parameters": {"k": {}}, "initial": {"x": 1}}
    return problem_from_mapping({**sections, "experiment": [{"data": data}]})


@pytest.mark.parametrize("raw", [None, [], "x", {1: 2}, {"format": 1, 2: 3}, {"format": 1}])
def test_anything_else_is_an_input_error(raw: Any) -> None:
    with pytest.raises(InputError):
        problem_from_mapping(raw)
