"""Long tables become an experiment for each subject, and what is not understood is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import odefit
from odefit.problem import Doses, Experiment, InputError, Model, Problem, load
from odefit.problem.toml.files import problem_from_mapping, problem_to_mapping

ORAL = Model(ode={"gut": "-ka*gut", "blood": "ka*gut - k*blood"}, observables={"c": "blood/V"})
PARAMETERS: dict[str, Any] = {"ka": {}, "k": {"per_experiment": True}, "V": {}}
FILE = """format = 1
[ode]
gut = "-ka*gut"
blood = "ka*gut - k*blood"
[observables]
c = "blood/V"
{more}
[parameters]
ka = {{}}
k = {{ per_experiment = true }}
V = {{}}
[initial]
gut = 0.0
blood = 0.0
[[experiment]]
data = "d.csv"
{keys}
"""
TABLE = """ID,TIME,AMT,DV,EVID
P1,0,100,.,1
P1,1,.,3.1,0
P1,2,.,2.2,0
P2,0,50,.,1
P2,24,50,.,1
P2,1,.,1.6,0
P2,25,.,1.9,0
"""


def read(folder: Path, table: str = TABLE, keys: str | None = None, more: str = "") -> Problem:
    usual = 'by = "ID"\ntime = "TIME"\ndoses = { into = "gut" }'
    text = FILE.format(keys=usual if keys is None else keys, more=more)
    (folder / "p.toml").write_text(text, encoding="utf-8")
    (folder / "d.csv").write_text(table, encoding="utf-8")
    return load(folder / "p.toml")


def refusal(folder: Path, *arguments: Any, **more: Any) -> tuple[str, ...]:
    with pytest.raises(InputError) as caught:
        read(folder, *arguments, **more)
    return tuple(m.removeprefix(f"{folder}/p.toml: ") for m in caught.value.messages)


def test_a_nonnumeric_start_is_refused_before_the_doses_are_read(tmp_path: Path) -> None:
    keys = 'by = "ID"\ntime = "TIME"\ndoses = { into = "gut" }\nt0 = { a = 1 }'
    table = TABLE.replace("EVID\n", "EVID,II,SS\n").replace(",1\n", ",1,12,1\n")
    found = refusal(tmp_path, table.replace(",0\n", ",0,0,0\n"), keys)
    assert any("t0: expected a number, got a table" in message for message in found)


def test_columns_of_a_long_table_in_place_are_lists(tmp_path: Path) -> None:
    text = FILE.format(keys='by = "ID"', more="").replace('"d.csv"', "{ ID = [1], t = 0.5 }")
    (tmp_path / "p.toml").write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=r"column t: expected a list, got 0\.5"):
        load(tmp_path / "p.toml")


def test_each_subject_has_its_doses_and_measurements(tmp_path: Path) -> None:
    problem = read(tmp_path)
    assert [e.name for e in problem.experiments] == ["ID P1", "ID P2"]
    assert problem.keys == ("ka", "k[ID P1]", "k[ID P2]", "V")
    first, second = problem.conditions
    assert first.times.tolist() == [1.0, 2.0]
    assert first.series["c"].values.tolist() == [3.1, 2.2]
    assert [t for t, _ in second.events] == [0.0, 24.0]
    assert [str(assign["gut"]) for _, assign in second.events] == ["gut + 50.0"] * 2
    assert (first.t0, second.t0) == (0.0, 0.0)
    assert problem.warnings == ()


@pytest.mark.parametrize(
    ("name", "names"),
    [("subject {}", ["subject P1", "subject P2"]), ("rat", ["rat P1", "rat P2"])],
)
def test_the_name_of_experiments_has_the_subject(
    tmp_path: Path, name: str, names: list[str]
) -> None:
    problem = read(tmp_path, keys=f'name = "{name}"\nby = "ID"\ndoses = {{ into = "gut" }}')
    assert [e.name for e in problem.experiments] == names


def test_a_data_frame_means_the_same_as_a_file(tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text(TABLE, encoding="utf-8")
    data = pd.read_csv(tmp_path / "d.csv", na_values=".")
    problem = Problem(
        ORAL,
        data,
        PARAMETERS,
        {"gut": 0.0, "blood": 0.0},
        by="ID",
        time="TIME",
        doses=Doses(into="gut"),
        name="p",
    )
    assert problem_to_mapping(problem) == problem_to_mapping(read(tmp_path))


def test_a_table_of_subjects_is_written_out_and_read_again(tmp_path: Path) -> None:
    table = "ID,TIME,AMT,DV,RATE,II,SS,ADDL\n1,0,100,.,20,6,1,2\n1,1,.,3.1,.,.,.,.\n"
    keys = 'by = "ID"\ndoses = { into = "blood" }'
    problem = read(tmp_path, table, keys)
    mapping = problem_to_mapping(problem)
    again = problem_from_mapping(mapping)
    assert problem_to_mapping(again) == mapping
    assert again.experiments[0].steady_state == problem.experiments[0].steady_state
    assert mapping["ode"]["blood"] == "ka*gut - k*blood + blood_infusion"
    assert mapping["experiment"][0]["steady_state"]["period"] == 6.0


def test_columns_of_observables_are_taken_beside_doses(tmp_path: Path) -> None:
    table = "ID,t,AMT,c,c_sd,c_cens\n1,0,100,0.2,0.1,0\n1,1,,3.1,0.2,\n1,9,,0.5,0.1,1\n"
    problem = read(tmp_path, table, 'by = "ID"\ndoses = { into = "gut" }')
    series = problem.conditions[0].series["c"]
    assert series.values.tolist() == [0.2, 3.1, 0.5]
    assert series.sds is not None
    assert series.sds.tolist() == [0.1, 0.2, 0.1]
    assert series.censored is not None
    assert series.censored.tolist() == [0, 0, 1]


@pytest.mark.parametrize(
    ("header", "keys"),
    [
        ("DVID", ""),
        ("ytype", ""),
        ("what", 'observable = "what"'),
        ("what", 'columns = { DVID = "what" }'),
    ],
)
def test_codes_assign_values_to_observables(tmp_path: Path, header: str, keys: str) -> None:
    table = f"ID,TIME,AMT,DV,{header}\n1,0,100,.,.\n1,1,.,3.1,1\n1,1,.,50,2\n1,2,.,40,g\n"
    problem = read(tmp_path, table, f'by = "ID"\n{keys}\ndoses = {{ into = "gut" }}', 'g = "gut"')
    series = problem.conditions[0].series
    assert series["c"].values.tolist() == [3.1]
    assert series["g"].values.tolist() == [50.0, 40.0]


def test_codes_can_be_given_and_dv_can_be_one_of_many_observables(tmp_path: Path) -> None:
    table = "ID,TIME,AMT,DV,DVID\n1,0,100,.,.\n1,1,.,3.1,5\n1,1,.,50,7\n"
    keys = 'by = "ID"\ndoses = { into = "gut" }\nobservable = '
    problem = read(tmp_path, table, keys + '{ 5 = "g", 7 = "c" }', 'g = "gut"')
    assert problem.conditions[0].series["c"].values.tolist() == [50.0]
    problem = read(tmp_path, table, keys + '"g"', 'g = "gut"')
    assert problem.conditions[0].series["g"].values.tolist() == [3.1, 50.0]


def test_covariates_are_constants_of_their_subject(tmp_path: Path) -> None:
    table = "ID,TIME,AMT,DV,WT,AGE\n1,0,100,.,70,40\n1,1,.,3.1,70,40\n2,0,50,.,60,.\n2,1,.,2,.,50\n"
    (tmp_path / "d.csv").write_text(table, encoding="utf-8")
    model = Model(
        ode={"gut": "-ka*gut", "blood": "ka*gut - k*blood"}, observables={"c": "blood/(V*WT)"}
    )
    data = pd.read_csv(tmp_path / "d.csv", na_values=".")
    doses = {"into": "gut", "lag": "0.1*AGE/40"}
    initial = {"gut": 0.0, "blood": 0.0}
    problem = Problem(model, data, PARAMETERS, initial, by="ID", time="TIME", doses=doses)
    assert [c.scalars["WT"] for c in problem.conditions] == [70.0, 60.0]
    assert [c.scalars["AGE"] for c in problem.conditions] == [40.0, 50.0]
    assert [c.events[0][0] for c in problem.conditions] == pytest.approx([0.1, 0.125])


def test_covariates_that_change_are_inputs(tmp_path: Path) -> None:
    table = "ID,TIME,AMT,DV,EVID,WT\n1,0,100,.,1,70\n1,1,.,3.1,0,70\n1,5,.,.,2,80\n1,9,.,2,0,80\n"
    table += "1,10,.,2,0,80\n"
    more = '[inputs]\nWT = { interpolation = "constant" }\n'
    problem = read(tmp_path, table, more=more)
    given = problem.conditions[0].inputs["WT"]
    assert given(np.array([0.0, 4.9, 5.0, 10.0])).tolist() == [70.0, 70.0, 80.0, 80.0]
    assert problem.conditions[0].times.tolist()[-1] == 10.0


def test_marked_values_are_censored_or_left_out(tmp_path: Path) -> None:
    table = (
        "ID,TIME,AMT,DV,MDV,CENS,BLQ,LLOQ\n1,0,100,.,1,0,0,0.1\n1,1,.,3.1,0,0,0,0.1\n"
        "1,2,.,2.2,1,0,0,0.1\n1,8,.,0.3,0,1,0,.\n1,9,.,0,0,0,1,0.1\n"
    )
    more = '[noise]\nc = { sd = "estimate" }'
    series = read(tmp_path, table, more=more).conditions[0].series["c"]
    assert series.values.tolist() == [3.1, 0.3, 0.1]
    assert series.censored is not None
    assert series.censored.tolist() == [0, 1, 1]


def test_a_table_without_subjects_has_doses_too(tmp_path: Path) -> None:
    table = "TIME,AMT,DV\n0,100,.\n1,.,3.1\n"
    problem = read(tmp_path, table, 'doses = { into = "gut" }')
    assert [e.name for e in problem.experiments] == ["experiment 1"]
    assert len(problem.conditions[0].events) == 1


def test_subjects_are_never_pooled_silently(tmp_path: Path) -> None:
    numbers = TABLE.replace("P", "")
    for table in (TABLE, numbers):
        assert (
            "d.csv, column ID: there are several subjects, which would count as replicates of one; "
            'write by = "ID" and time = "TIME" beside the data for an experiment each, or remove '
            "the column"
        ) in refusal(tmp_path, table, 'time = "TIME"')
    assert (
        "d.csv, column AMT: the table seems to have dose records, which are not read; write "
        'doses = { into = "gut" } and time = "TIME" beside the data (and by = "ID" if there are '
        "several subjects), or remove the column"
    ) in refusal(tmp_path, "TIME,AMT,c\n0,100,\n1,,3.1\n", 'time = "TIME"')


def test_other_columns_named_id_do_not_matter(tmp_path: Path) -> None:
    problem = read(tmp_path, "t,c,id\n0,1,1\n1,2,2\n", "")
    assert problem.size == 2
    assert "column id: not used" in problem.warnings[0]


ROW = "ID,TIME,AMT,DV,EVID,RATE,DUR,II,ADDL,SS,CMT\n1,1,,3.1,0,,,,,,\n"


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (ROW + "1,x,,2,0,,,,,,\n", "row 3, column TIME: 'x' is not a number; correct it, or leave"),
        (
            ROW + "1,,,2,0,,,,,,\n",
            "d.csv, row 3, column TIME: the time is missing; every row needs",
        ),
        (
            ROW + ",2,,2,0,,,,,,\n",
            "row 3, column ID: the row belongs to no subject; fill the field",
        ),
        (ROW + "1,0,9,,7,,,,,,\n", "row 3, column EVID: expected 0 (a measurement), 1 (a dose), 2"),
        (
            ROW + "1,0,9,,0,,,,,,\n",
            "column AMT: the amount 9 in a row with EVID = 0; write EVID = 1",
        ),
        (
            ROW + "1,0,,,1,,,,,,\n",
            "column AMT: EVID = 1 is a dose, but the amount is empty or zero",
        ),
        (ROW + "1,0,-9,,1,,,,,,\n", "column AMT: expected a number not below 0, got -9"),
        (
            ROW + "1,0,9,,1,,,,3,,1\n",
            "row 3: ADDL asks for additional doses, but II, their interval",
        ),
        (
            ROW + "1,0,9,,1,,,8,1e18,,1\n",
            "row 3: with the doses of ADDL = 1e+18 there are more than 100,000 doses",
        ),
        (
            ROW + "1,0,9,,1,,,8,,2,1\n",
            "column SS: expected 0 or 1 (2, a superposition, is not supported",
        ),
        (
            ROW + "1,0,9,,1,,,,,1,1\n",
            "row 3: SS = 1 needs II, the interval between the doses before",
        ),
        (
            ROW + "1,4,9,,1,,,8,,1,1\n",
            "SS = 1 is allowed only at the first time of a subject, t = 1, and in its first row",
        ),
        (
            ROW + "1,0,9,,1,,,,,,\n",
            "the state that the dose goes into is not given; write doses = { into",
        ),
        (
            ROW + "1,0,9,,1,,,,,,3\n",
            "CMT = '3' is neither a state nor the number of one (1 = gut, 2",
        ),
        (ROW + "1,0,9,,1,,,,,,\N{SUPERSCRIPT TWO}\n", "is neither a state nor the number of one"),
        (ROW + "1,0,9,,1,,,,,,gutt\n", "(1 = gut, 2 = blood); did you mean 'gut'?; write doses"),
        (ROW + "1,0,9,,1,-2,,,,,1\n", 'row 3: RATE = -2 needs doses = { duration = "EXPRESSION" }'),
        (ROW + "1,0,9,,1,-5,,,,,1\n", "row 3: expected a rate, 0, -1 or -2 in RATE, got -5"),
        (
            ROW + "1,0,9,,1,3,2,,,,1\n",
            "RATE = 3 over DUR = 2 is not AMT = 9; keep one of RATE and DUR",
        ),
        (
            ROW + "1,1,9,,1,,,,,,2\n1,1,,2,0,,,,,,\n",
            "measurements at t = 1 both above and below the",
        ),
        (
            ROW + "1,0,1e200,,1,,,,,,1\n",
            "row 3, column AMT: 1e+200 is too large, since its square overflows",
        ),
        (
            "ID,TIME,AMT,DV\n1,0,9,2\n1,1,,2\n",
            "a measurement and an amount in one row; add a column",
        ),
        ("ID,TIME,DV,LIMIT,CENS\n1,1,2,0.1,1\n", "column LIMIT: values within an interval are not"),
        (
            "ID,TIME,DV,CENS\n1,1,.,1\n",
            "column DV: the value is censored without a limit",
        ),
        (
            "ID,TIME,DV\n1,01.01.2020,1\n",
            "'01.01.2020' is not a number; write dates as year-month-day, such as",
        ),
        (
            "ID,TIME,DV\n1,0,5\n1,1,<0.5\n2,0,4\n2,1,<0.5\n",
            "row 3, column DV: '<0.5' is not a number (and 1 more row); if it is beyond a limit",
        ),
        (
            "ID,TIME,DV\n1,0,5\n,1,4\n,2,3\n2,0,5\n",
            "row 3, column ID: the row belongs to no subject (and 1 more row); fill the field",
        ),
        (
            "ID,TIME,DV\n1,0,5\n1,1,BLQ\n",
            "either lower_limit = the limit for the observable in [noise] or 1 in a column CENS;",
        ),
        (
            "ID,DV\n1,1\n",
            "no column with the times, such as TIME (columns are: ID, DV); name it: time =",
        ),
        ("ID;TIME;DV\n1;0,5;2.5\n", "'0,5' is not a number; write a decimal point: 0.5"),
        ("#ID,TIME,DV\n1,1,.\n1,2,3\n", "remove the # in front of the names in row 1"),
        ("ID,TIME,DV\n1,1,.\n", "nothing is measured; expected values in a column DV, or in at"),
    ],
    ids=range(32),
)
def test_a_mistake_is_placed_and_has_a_remedy(tmp_path: Path, table: str, message: str) -> None:
    messages = refusal(tmp_path, table, 'by = "ID"')
    assert any(message in m for m in messages), messages


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ('by = "Id"', "d.csv: no column 'Id', which by names; did you mean 'ID'? (columns are: ID"),
        ('by = "ID"\ntime = "hour"', "no column 'hour', which time names (columns are: ID, TIME"),
        ('by = "ID"\ndoses = { into = "gutt" }', "there is no state 'gutt'; did you mean 'gut'?"),
        ('by = "ID"\ndoses = { to = "gut" }', "doses.to: unknown field; did you mean 'into'?"),
        ('by = "ID"\ndoses = { into = "gut", lag = "2*" }', "doses.lag: '2*' ends"),
        ('by = "ID"\ndoses = { into = "gut", lag = "tl" }', "unknown name 'tl' in"),
        ('by = "ID"\ndoses = "gut"', "expected a table such as { into = \"gut\" }, got 'gut'"),
        ('by = "ID"\ncolumns = { DOSE = "AMT" }', "unknown role 'DOSE'"),
        ('by = "ID"\ncolumns = { AMT = "dose" }', "no column 'dose', which columns.AMT names"),
        ('by = "ID"\nobservable = "d"', "observable = 'd' is neither an observable nor a column"),
    ],
    ids=range(10),
)
def test_a_mistaken_key_is_refused(tmp_path: Path, keys: str, message: str) -> None:
    messages = refusal(tmp_path, keys=keys)
    assert any(message in m for m in messages), messages


def test_several_observables_need_the_name_of_dv(tmp_path: Path) -> None:
    messages = refusal(tmp_path, more='g = "gut"')
    assert (
        "d.csv: the column 'DV' has measurements of one of c, g; write observable = \"c\", or name "
        'the column that tells them apart: observable = "COLUMN"'
    ) in messages


def test_a_covariate_that_changes_is_refused_with_a_remedy(tmp_path: Path) -> None:
    table = "ID,TIME,AMT,DV,WT\n1,0,100,.,70\n1,1,.,3.1,71\n"
    keys = 'by = "ID"\ndoses = { into = "gut", lag = "WT/700" }'
    assert (
        "d.csv, ID = 1, column WT: the covariate changes within the subject (from 70 to "
        "71); for one "
        'that changes in time write [inputs] WT = { interpolation = "constant" }'
    ) in refusal(tmp_path, table, keys)


def test_a_reset_of_an_unknown_initial_value_is_refused() -> None:
    data = pd.DataFrame([{"TIME": 0.0, "DV": 1.0, "EVID": 0}, {"TIME": 1.0, "EVID": 3, "DV": None}])
    model = Model(ode={"x": "-k*x"})
    with pytest.raises(InputError, match="EVID = 3 brings x back to its initial value, which is"):
        Problem(model, data, {"k": {}}, {"x": {}}, time="TIME", doses={})


def test_experiments_of_tables_stand_beside_others() -> None:
    table = {"ID": [1, 1, 2, 2], "TIME": [0, 1, 0, 1], "AMT": [9, None, 5, None]}
    long = Experiment(
        "rat {}", {**table, "DV": [None, 1.0, None, 2.0]}, by="ID", doses={"into": "gut"}
    )
    plain = Experiment("plain", {"t": [0.0, 1.0], "c": [1.0, 2.0]}, initial={"gut": 3.0})
    problem = Problem(
        ORAL, parameters=PARAMETERS, initial={"gut": 0.0, "blood": 0.0}, experiments=[plain, long]
    )
    assert [c.name for c in problem.conditions] == ["plain", "rat 1", "rat 2"]


def test_a_subject_without_measurements_is_left_out_with_a_warning(tmp_path: Path) -> None:
    problem = read(tmp_path, TABLE + "P3,0,9,.,1\n")
    assert [c.name for c in problem.conditions] == ["ID P1", "ID P2"]
    (warning,) = problem.warnings
    assert "d.csv, ID = P3: the subject has no measured value, and is left out" in warning


def test_equations_may_use_the_column_that_distinguishes_experiments() -> None:
    data = {"dose": [0.5, 0.5, 2.0, 2.0], "t": [0.0, 1.0, 0.0, 1.0], "x": [0.0, 0.4, 0.0, 1.7]}
    model = Model(ode={"x": "dose - k*x"})
    problem = Problem(model, data, {"k": {}}, {"x": 0.0}, by="dose")
    assert [c.name for c in problem.conditions] == ["dose 0.5", "dose 2"]
    assert [str(e.constants["dose"]) for e in problem.experiments] == ["0.5", "2.0"]
    words = {**data, "dose": ["low", "low", "high", "high"]}
    with pytest.raises(InputError, match="column dose: 'low' is not a number"):
        Problem(model, words, {"k": {}}, {"x": 0.0}, by="dose")


UNITS = """Subject (no.),Time (h),Dose (mg),Weight (kg),c (mg/L)
1,0,100,70,
1,1,,70,3.1
1,4,,70,2.2
2,0,50,50,
2,1,,50,1.6
2,4,,50,0.9
"""


def test_covariates_and_subjects_whose_columns_have_units_get_names(tmp_path: Path) -> None:
    keys = """by = "Subject (no.)"
time = "Time (h)"
doses = { into = "gut" }
columns = { c = "c (mg/L)", AMT = "Dose (mg)", WT = "Weight (kg)" }"""
    text = FILE.replace('c = "blood/V"', 'c = "blood/(V*WT)"').format(keys=keys, more="")
    (tmp_path / "p.toml").write_text(text, encoding="utf-8")
    (tmp_path / "d.csv").write_text(UNITS, encoding="utf-8")
    problem = load(tmp_path / "p.toml")
    assert [e.name for e in problem.experiments] == ["Subject (no.) 1", "Subject (no.) 2"]
    assert [c.scalars["WT"] for c in problem.conditions] == [70.0, 50.0]
    assert problem.size == 4


def test_equations_may_use_the_column_of_by_under_another_name(tmp_path: Path) -> None:
    text = """format = 1
[ode]
x = "-k*S0*x"
[parameters]
k = { lower = 0.0 }
[initial]
x = 1.0
[[experiment]]
data = "d.csv"
by = "S0 (mM)"
columns = { S0 = "S0 (mM)" }
"""
    (tmp_path / "p.toml").write_text(text, encoding="utf-8")
    table = "t,S0 (mM),x\n0,1,1\n1,1,0.8\n0,2,1\n1,2,0.6\n"
    (tmp_path / "d.csv").write_text(table, encoding="utf-8")
    problem = load(tmp_path / "p.toml")
    assert [c.scalars["S0"] for c in problem.conditions] == [1.0, 2.0]


STEADY = """format = 1
[ode]
x = "k*(sv - x)"
[observables]
y = "x"
[parameters]
k = { lower = 0.0 }
[initial]
x = 0.0
[[experiment]]
data = "d.csv"
by = "ID"
time = "TIME"
"""


def steady(folder: Path, table: str) -> Problem:
    (folder / "p.toml").write_text(STEADY, encoding="utf-8")
    (folder / "d.csv").write_text(table, encoding="utf-8")
    return load(folder / "p.toml")


def test_subjects_may_be_measured_at_the_steady_state(tmp_path: Path) -> None:
    problem = steady(tmp_path, "ID,TIME,y,sv\n1,0,0,2\n1,inf,2.1,2\n2,0,0,3\n2,Inf,2.9,3\n")
    assert [c.times.tolist() for c in problem.conditions] == [[0.0, np.inf]] * 2
    found = odefit.simulate(problem, {"k": 0.7}, experiment="ID 2")
    assert found.states["x"] == pytest.approx([0.0, 3.0], rel=1e-6)
    frame = pd.DataFrame({"ID": [1, 1], "TIME": [0.0, np.inf], "y": [0.0, 2.1], "sv": [2.0, 2.0]})
    again = Problem(problem.given, frame, {"k": (0, None)}, {"x": 0.0}, by="ID", time="TIME")
    assert again.conditions[0].times.tolist() == [0.0, np.inf]


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("ID,TIME,y,sv\n1,0,0,2\n1,soon,2.1,2\n2,later,2.9,3\n",
         "row 3, column TIME: 'soon' is not a number (and 1 more row); correct it"),
        ("ID,TIME,y,sv\n1,0,0,2\n1,1,2\n", "row 3: 3 fields, but the header has 4"),
    ],
)  # fmt: skip
def test_a_mistake_in_a_table_does_not_make_its_columns_unknown_names(
    tmp_path: Path, table: str, message: str
) -> None:
    with pytest.raises(InputError) as caught:
        steady(tmp_path, table)
    (told,) = caught.value.messages
    assert message in told


def test_a_dose_at_the_steady_state_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match="a dose needs a finite time; inf is that of a steady state"
    ):
        steady(tmp_path, "ID,TIME,AMT,y,sv\n1,0,.,0,2\n1,inf,5,.,2\n")


def test_a_name_of_a_column_that_nothing_refers_to_is_refused(tmp_path: Path) -> None:
    keys = 'by = "ID"\ntime = "TIME"\ndoses = { into = "gut" }\ncolumns = { WT = "AMT" }'
    (message,) = refusal(tmp_path, TABLE, keys)
    assert "unknown role 'WT'" in message
