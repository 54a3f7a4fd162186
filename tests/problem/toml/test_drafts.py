"""A first problem file has every column in its place, loads, and fits as it stands."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import odefit
from odefit.problem import InputError, Problem, load
from odefit.problem.toml.draft_names import is_input_name, rank_as_time
from odefit.problem.toml.drafts import draft

TIMES = np.linspace(0.0, 10.0, 12)


def decay(t: float, scale: float = 5.0) -> str:
    return f"{scale * np.exp(-0.3 * t) + 0.05 * np.sin(40 * t):.4g}"


def written(folder: Path, table: str) -> tuple[dict[str, Any], Problem, list[str]]:
    (folder / "d.csv").write_text(table, encoding="utf-8")
    made = draft(folder / "d.csv", folder, "d")
    (folder / "d.toml").write_text(made.text, encoding="utf-8")
    if made.table is not None:
        (folder / made.table[0]).write_text(made.table[1], encoding="utf-8")
    assert "PLACEHOLDER" in made.text
    return tomllib.loads(made.text), load(folder / "d.toml"), made.remarks


def rows(*columns: Any) -> str:
    return "".join(",".join(str(c(t)) for c in columns) + "\n" for t in TIMES)


def test_columns_beside_the_time_are_observables(tmp_path: Path) -> None:
    table, problem, remarks = written(tmp_path, "t,x,y\n" + rows(lambda t: t, decay, np.sin))
    assert list(table["ode"]) == list(table["observables"]) == ["x", "y"]
    assert problem.size == 24
    assert table["noise"] == {"x": {"sd": "estimate"}, "y": {"sd": "estimate"}}
    assert remarks == []
    assert problem.warnings == ()


@pytest.mark.parametrize(
    ("header", "time", "unit"),
    [("Time", "Time", None), ("hours", "hours", "h"), ("tau", "tau", None)],
)
def test_the_column_of_the_time_is_found(
    tmp_path: Path, header: str, time: str, unit: str | None
) -> None:
    table, _, _ = written(tmp_path, f"{header},x\n" + rows(lambda t: t, decay))
    assert table["experiment"][0]["time"] == time
    assert table.get("time_unit") == unit


def test_inputs_are_recognised_by_their_name_or_their_steps(tmp_path: Path) -> None:
    table, _, _ = written(
        tmp_path,
        "t,x,temperature,valve\n" + rows(lambda t: t, decay, np.cos, lambda t: int(t > 5)),
    )
    assert table["inputs"] == {
        "temperature": {"interpolation": "linear"},
        "valve": {"interpolation": "constant"},
    }
    assert list(table["observables"]) == ["x"]
    assert "valve" in table["ode"]["x"]


def test_standard_deviations_stay_with_their_observable(tmp_path: Path) -> None:
    full = "t,x,x_sd,y\n" + rows(lambda t: t, decay, lambda _: 0.1, np.sin)
    table, problem, _ = written(tmp_path, full)
    assert table["noise"] == {"y": {"sd": "estimate"}}
    assert problem.conditions[0].series["x"].sds is not None
    gaps = "t,x,x_sd\n" + rows(lambda t: t, decay, lambda t: 0.1 if t < 5 else "")
    assert written(tmp_path, gaps)[0]["noise"] == {"x": {"sd": "estimate"}}


def test_unused_columns_are_reported_with_a_remedy(tmp_path: Path) -> None:
    header = "t,x,note,2x,exp,z\n"
    _, _, remarks = written(
        tmp_path,
        header + rows(lambda t: t, decay, lambda _: "ok", decay, decay, lambda _: 7),
    )
    assert remarks == [
        "note: has texts, such as 'ok' in row 2; correct them if it is a measurement",
        (
            "2x: rename it if it is a measurement: a name is letters without "
            "accents, digits and "
            "_, not starting with a digit"
        ),
        "exp: rename it if it is a measurement: 'exp' is a function; choose another name",
        "z: is the same in all rows; it may be one of [constants]",
    ]


def test_subjects_and_doses_become_experiments(tmp_path: Path) -> None:
    text = (Path(__file__).parents[2] / "data" / "theophylline.csv").read_text(encoding="utf-8")
    table, problem, _ = written(tmp_path, text)
    (experiment,) = table["experiment"]
    assert (experiment["by"], experiment["time"]) == ("ID", "TIME")
    assert experiment["doses"] == {"into": "A"}
    assert len(problem.conditions) == 12
    assert problem.size == 132
    assert all(len(c.events) == 1 for c in problem.conditions)


@pytest.mark.parametrize(
    ("identifier", "dose", "measured"),
    [
        ("ID", "Dose (mg)", "Conc (mg/L)"),
        ("Patient", "dose", "plasma [ng/mL]"),
        ("Animal", "Amount", "blood"),
        ("subject", "DOSE_mg_kg", "Conc."),
    ],
)
def test_doses_are_found_under_names_of_people(
    tmp_path: Path, identifier: str, dose: str, measured: str
) -> None:
    lines = "".join(
        f"{s},0,{amount},\n" + "".join(f"{s},{t},,{decay(t)}\n" for t in TIMES[1:])
        for s, amount in ((1, 100), (2, 150))
    )
    table, problem, _ = written(tmp_path, f"{identifier},Time (h),{dose},{measured}\n{lines}")
    (experiment,) = table["experiment"]
    assert experiment["by"] == identifier
    assert experiment["columns"]["AMT"] == (dose if dose.isidentifier() else "Dose (mg)")
    assert measured in {*table["observables"], *experiment["columns"].values()}
    assert [len(c.events) for c in problem.conditions] == [1, 1]
    assert problem.size == 2 * len(TIMES[1:])


def test_a_dose_in_the_rows_of_measurements_is_no_dose_record(tmp_path: Path) -> None:
    lines = "".join(f"{s},{t},{d},{decay(t)}\n" for s, d in ((1, 10), (2, 20)) for t in TIMES)
    table, problem, _ = written(tmp_path, f"ID,t,Dose (mg),x\n{lines}")
    assert "doses" not in table["experiment"][0]
    assert all(not c.events for c in problem.conditions)


def test_codes_of_observables_and_modelled_infusions_are_taken(tmp_path: Path) -> None:
    lines = "".join(f"1,{t},.,.,{decay(t)},1\n1,{t},.,.,{decay(t, 2.0)},2\n" for t in TIMES[1:])
    table, problem, _ = written(tmp_path, "ID,TIME,AMT,RATE,DV,DVID\n1,0,100,-2,.,.\n" + lines)
    assert table["experiment"][0]["observable"] == {"1": "y1", "2": "y2"}
    assert table["experiment"][0]["doses"] == {"into": "A", "duration": "D"}
    assert [len(s.values) for s in problem.conditions[0].series.values()] == [11, 11]


def test_subjects_without_doses_begin_where_each_begins(tmp_path: Path) -> None:
    lines = "".join(f"{s},{t},{decay(t, s)},{s * 10}\n" for s in (1, 2, 3) for t in TIMES)
    table, problem, _ = written(tmp_path, "subject,time,y,weight\n" + lines)
    assert table["initial"]["y"]["per_experiment"] is True
    assert problem.keys[-4:] == ("y[subject 1]", "y[subject 2]", "y[subject 3]", "y_sd")
    assert "covariates: weight" in (tmp_path / "d.toml").read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize(
    "table",
    [
        "t,x\n" + rows(lambda t: t, decay),
        "t,x,u\n" + rows(lambda t: t, decay, lambda t: int(t > 5)),
        "# few\nt;x\n0;1\n1;0.5\n2;0.3\n",
        "t,x\n0,1\n1,2\n",
        "t,x\n0,5\n1,3.1\n2,1.8\n3,1.2\n4,0.7\n5,<0.5\n6,BLQ\n",
        "ID,TIME,AMT,DV\n1,0,9,.\n" + "".join(f"1,{t},.,{decay(t)}\n" for t in TIMES[1:]),
    ],
    ids=range(6),
)
def test_a_draft_can_be_fitted_as_it_is(tmp_path: Path, table: str) -> None:
    _, problem, _ = written(tmp_path, table)
    result = odefit.fit(problem, odefit.MultiStart(starts=3), seed=1, jobs=1)
    assert result.status == odefit.Status.CONVERGED


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("x,y\n3,1\n1,2\n", "no column with the times; expected numbers in a column named t or"),
        ("t,x\n0,\n1,\n", "no column beside the times can be a measurement (columns are: t, x);"),
        ("t,note\n0,a\n1,b\n", "note: has texts, such as 'a' in row 2; correct them if it is a"),
        ("", "the file is empty"),
        ("x\n3\n2\n", "there is only one column, 'x'; the times belong in a column of their own"),
        ("t,x\n08:30,3\n09:30,2\n", "column t, row 2: '08:30' is not a time; give times as"),
        ("Date,x\n31.01.2024,3\n", "column Date, row 2: '31.01.2024' is not a time; write dates"),
        ("t,x\n0,<0.5\n1,<0.5\n", "x: has texts, such as '<0.5' in row 2; if it is beyond"),
        ("t,x\n0,5\n1,late\n2,<0.5\n", "x: has texts, such as 'late' in row 3; correct them"),
        ("t,x\n0,5\n1,<0.5 mg 3\n", "x: has texts, such as '<0.5 mg 3' in row 3; if it is"),
    ],
)
def test_a_table_without_measurements_is_refused(tmp_path: Path, table: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        written(tmp_path, table)
    assert message in caught.value.messages[0]


@pytest.mark.parametrize(
    ("texts", "limits", "codes"),
    [
        (("<0.5", "<0.5"), (0.5, 0.5), (1, 1)),
        (("< 0.5", "≤0.4"), (0.5, 0.4), (1, 1)),
        ((">100", ">= 90"), (100, 90), (-1, -1)),
        (("above 100", "below 0.5"), (100, 0.5), (-1, 1)),
        (("<0.5", "BLQ"), (0.5, 0.5), (1, 1)),
        (("n.d.", "not detected"), (0.7, 0.7), (1, 1)),
        ((">ULOQ", "<LOQ"), (5, 0.7), (-1, 1)),
    ],
    ids=str,
)
@pytest.mark.parametrize("name", ["x", "x (mg/L)"])
def test_values_beyond_limits_are_marked_in_a_new_table(
    tmp_path: Path, name: str, texts: tuple[str, str], limits: tuple[float, ...], codes: Any
) -> None:
    lines = "".join(f"{t},{v}\n" for t, v in enumerate((5, 3, 2, 1.2, 0.7, *texts)))
    (tmp_path / "d.csv").write_text(f"t,{name}\n{lines}", encoding="utf-8")
    made = draft(tmp_path / "d.csv", tmp_path, "d")
    assert made.table is not None
    file, text = made.table
    assert f'data = "{file}"' in made.text
    (tmp_path / file).write_text(text, encoding="utf-8")
    (tmp_path / "d.toml").write_text(made.text, encoding="utf-8")
    series = load(tmp_path / "d.toml").conditions[0].series["x"]
    assert series.values.tolist() == [5, 3, 2, 1.2, 0.7, *limits]
    assert series.censored is not None
    assert series.censored.tolist() == [0, 0, 0, 0, 0, *codes]
    (note,) = made.notes
    said = f"column x: 2 values beyond a limit, such as '{texts[0]}', have the limit there"
    assert note.startswith(said)
    assert "column x_cens" in note
    guessed = {"n.d.": "'n.d.' names no limit, for which 0.7, the nearest measured value, was"}
    assert guessed.get(texts[0], "") in note
    assert ("names no limit" in note) == (texts[0] in ("n.d.", ">ULOQ"))


def test_doses_and_texts_below_the_limit_make_a_table_with_cens(tmp_path: Path) -> None:
    lines = "1,0,100,.\n" + "".join(f"1,{t},.,{v}\n" for t, v in ((1, 5), (2, 3), (9, "BLQ")))
    (tmp_path / "d.csv").write_text(f"ID,TIME,AMT,DV\n{lines}", encoding="utf-8")
    made = draft(tmp_path / "d.csv", tmp_path, "d")
    assert made.table is not None
    assert made.table[1].splitlines()[-1] == "1,9,.,3,1"
    assert made.table[1].startswith("ID,TIME,AMT,DV,CENS\n1,0,100,.,0\n")
    # a dose has no limit of detection
    (tmp_path / "d.csv").write_text("ID,TIME,AMT,DV\n1,0,<1,.\n1,1,.,3\n1,2,9,.\n", "utf-8")
    with pytest.raises(InputError, match="row 2, column AMT: '<1' is not a number"):
        draft(tmp_path / "d.csv", tmp_path, "d")


def test_marks_of_censored_values_are_no_measurements(tmp_path: Path) -> None:
    lines = "".join(f"{t},{5 - t},{int(t == 4)}\n" for t in range(5))
    table, problem, _ = written(tmp_path, f"t,x,x_cens\n{lines}")
    assert list(table["observables"]) == ["x"]
    assert "inputs" not in table
    assert problem.conditions[0].series["x"].censored is not None


@pytest.mark.parametrize("name", ["u", "u2", "temperature_C", "Temp", "light_1", "feed_rate"])
def test_inputs_are_known_by_name(tmp_path: Path, name: str) -> None:
    assert is_input_name(name)
    table, _, _ = written(tmp_path, f"t,x,{name}\n" + rows(lambda t: t, decay, np.sin))
    assert list(table["inputs"]) == [name]
    assert not is_input_name("uptake")


def test_names_with_units_become_names_of_the_model(tmp_path: Path) -> None:
    rows = "".join(f"{i},{i * 3},{i * i},{2 * i}\n" for i in range(12))
    path = tmp_path / "d.csv"
    path.write_text(f"Time (s),i (A),i [mA],w-max\n{rows}", encoding="utf-8")
    found = draft(path, tmp_path, "d")
    assert 'columns = { i_A = "i (A)", i_mA = "i [mA]", w_max = "w-max" }' in found.text
    assert 'time = "Time (s)"' in found.text
    path.write_text(f"Time (s),i,i [mA],w (mm)\n{rows}", encoding="utf-8")
    assert 'columns = { i_mA = "i [mA]", w = "w (mm)" }' in draft(path, tmp_path, "d").text


def test_runs_below_each_other_become_experiments(tmp_path: Path) -> None:
    lines = "".join(f"{u},{t},{decay(t, u)}\n" for u in (0.1, 0.5, 2.0) for t in TIMES)
    table, problem, _ = written(tmp_path, "EGF_nM,t_min,pERK (a.u.)\n" + lines)
    (one,) = table["experiment"]
    assert one["by"] == "EGF_nM"
    assert one["time"] == "t_min"
    assert table["time_unit"] == "min"
    assert list(table["ode"]) == ["pERK"]
    assert [c.name for c in problem.conditions] == ["EGF_nM 0.1", "EGF_nM 0.5", "EGF_nM 2"]
    assert "covariates: EGF_nM." in (tmp_path / "d.toml").read_text(encoding="utf-8")
    lines = "".join(f"{t},{decay(t, u)},{u}\n" for u in (0.1, 0.1) for t in TIMES)
    assert "by" not in written(tmp_path, "t,x,u\n" + lines)[0]["experiment"][0]


@pytest.mark.parametrize("head", ["temperature_C,replicate", "replicate,Temp"])
@pytest.mark.parametrize("times", [(0, 5, 10, 20), (1, 2, 3, 4)])
def test_replicates_at_each_temperature_do_not_tell_runs_apart(
    tmp_path: Path, head: str, times: tuple[int, ...]
) -> None:
    names = head.split(",")
    lines = [
        ",".join(str({"replicate": replicate}.get(name, degrees)) for name in names)
        + f",{t},{0.9 ** (t * degrees / 30) + 0.01 * replicate:.4f}"
        for degrees in (30, 40, 50)
        for replicate in (1, 2)
        for t in times
    ]
    table, problem, _ = written(tmp_path, f"{head},time_min,A\n" + "\n".join(lines) + "\n")
    (by,) = {*names} - {"replicate"}
    assert table["experiment"][0]["by"] == by
    assert [c.name for c in problem.conditions] == [f"{by} {k}" for k in (30, 40, 50)]
    assert list(table["ode"]) == ["A"]
    text = (tmp_path / "d.toml").read_text(encoding="utf-8")
    assert f"# - replicate: repeats at each {by}, which tells the runs apart" in text


def test_replicates_with_a_temperature_of_their_own_are_runs(tmp_path: Path) -> None:
    lines = "".join(f"{k},{20 + 5 * k},{t},{decay(t, k)}\n" for k in (1, 2, 3) for t in TIMES)
    table, _, _ = written(tmp_path, "replicate,temperature,t,x\n" + lines)
    assert table["experiment"][0]["by"] == "replicate"


def test_a_temperature_is_not_a_time_and_a_column_run_separates_runs() -> None:
    """The case new-takes-temperature-for-time."""
    folder = Path(__file__).parents[2] / "cases" / "new-takes-temperature-for-time"
    made = draft(folder / "hplc.csv", folder, "hplc")
    table = tomllib.loads(made.text)
    (one,) = table["experiment"]
    assert (one["time"], one["by"], table["time_unit"]) == ("Time (min)", "Run", "min")
    assert one["columns"] == {"A": "[A] (mmol/L)", "B": "[B] (mmol/L)", "C": "[C] (mmol/L)"}
    assert list(table["observables"]) == ["A", "B", "C"]
    assert "inputs" not in table
    assert '# For equations with these names add columns = { T = "T (°C)", A0 = "A0 (' in made.text


@pytest.mark.parametrize(
    ("names", "time"),
    [
        (["T", "Time"], "Time"),
        (["T (K)", "hours"], "hours"),
        (["t", "time (h)"], "time (h)"),
        (["Elapsed (h)", "x (g)"], "Elapsed (h)"),
        (["date", "t"], "t"),
        (["Sampling time [d]", "t_lag (K)"], "Sampling time [d]"),
        (["T", "Week"], "Week"),
    ],
)
def test_the_name_that_says_time_best_has_the_times(names: list[str], time: str) -> None:
    assert min(names, key=lambda n: (rank_as_time(n) is None, rank_as_time(n) or 0)) == time


def test_a_second_column_of_times_is_not_a_measurement(tmp_path: Path) -> None:
    lines = "".join(f"{t / 60},{t},{decay(t)}\n" for t in TIMES)
    table, _, remarks = written(tmp_path, "Time (h),Time (min),x\n" + lines)
    assert list(table["observables"]) == ["x"]
    assert remarks == ["Time_min: has times as well, of which one column is enough"]


def test_indistinguishable_runs_are_reported(tmp_path: Path) -> None:
    twice = "".join(f"{t},{decay(t, s)}\n" for s in (5.0, 5.1) for t in TIMES)
    (tmp_path / "d.csv").write_text("t,x\n" + twice, encoding="utf-8")
    (note,) = draft(tmp_path / "d.csv", tmp_path, "d").notes
    assert "d.csv, row 14: the times restart; if another run begins there, add a column" in note
    lines = "".join(f"{T},{t},{decay(t, T)}\n" for T in (50, 60, 50) for t in TIMES)
    with pytest.raises(InputError, match="row 14: the times restart, and T is another one"):
        written(tmp_path, "T,t,x\n" + lines)


def test_a_sentinel_is_pointed_out_when_the_file_is_made(tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text("t,x\n0,10\n1,-999\n2,4\n3,3\n", encoding="utf-8")
    (note,) = draft(tmp_path / "d.csv", tmp_path, "d").notes
    assert "d.csv, column x: -999 occurs in 1 of 4 values, far from all others (3 to 10)" in note


def test_rows_may_be_in_descending_time(tmp_path: Path) -> None:
    lines = "".join(f"{t},{decay(t)}\n" for t in reversed(TIMES))
    table, problem, _ = written(tmp_path, "t,x\n" + lines)
    assert list(table["observables"]) == ["x"]
    assert problem.conditions[0].times[0] == 0.0
    with pytest.raises(InputError, match="increasing; if when has them, name it t"):
        written(tmp_path, "when,x\n" + lines)


def test_dates_are_the_times_of_a_first_problem() -> None:
    """The case iso-dates."""
    folder = Path(__file__).parents[2] / "cases" / "iso-dates"
    table = tomllib.loads(draft(folder / "cases.csv", folder, "cases").text)
    assert (table["time_unit"], table["experiment"][0]["time"]) == ("d", "date")


def test_a_long_table_has_one_value_and_its_quantity_per_row(tmp_path: Path) -> None:
    lines = "".join(f"{t},x,{decay(t)}\n{t},y,{np.sin(t):.3f}\n" for t in TIMES)
    table, problem, remarks = written(tmp_path, "t,variable,value\n" + lines)
    assert table["experiment"][0]["columns"] == {"DV": "value", "DVID": "variable"}
    assert list(problem.conditions[0].series) == ["x", "y"]
    assert remarks == []


def test_standard_deviations_find_their_column_whose_name_has_a_unit(tmp_path: Path) -> None:
    lines = rows(lambda t: t, decay, lambda t: 0.1)
    table, problem, _ = written(tmp_path, "time_h,Biomass_g/L,Biomass_sd\n" + lines)
    assert table["observables"] == {"Biomass": "Biomass"}
    assert table["experiment"][0]["columns"] == {"Biomass": "Biomass_g/L"}
    assert table["time_unit"] == "h"
    assert "noise" not in table
    assert "Biomass_sd" not in problem.keys


def test_doses_into_several_compartments_are_distinguished(tmp_path: Path) -> None:
    lines = "0,100,.,1,1\n1,.,2.5,0,2\n2,.,2.1,0,2\n3,.,1.5,0,2\n24,50,.,1,2\n25,.,3,0,2\n"
    table, problem, _ = written(tmp_path, "TIME,AMT,DV,EVID,CMT\n" + lines)
    assert table["experiment"][0]["doses"] == {"into": {"1": "A", "2": "A"}}
    (run,) = problem.conditions
    assert [time for time, _ in run.events] == [0.0, 24.0]


def test_whole_numbers_are_taken_for_counts_whose_means_are_not_negative(tmp_path: Path) -> None:
    def cases(t: float) -> int:
        return round(float(200 * np.exp(-(((t - 5) / 2) ** 2))) + 3)

    table, problem, _ = written(
        tmp_path, "t,cases,rounded,x\n" + rows(lambda t: t, cases, lambda t: 10 * cases(t), decay)
    )
    counts = {"distribution": "negative-binomial", "dispersion": "estimate"}
    assert table["noise"]["cases"] == counts
    assert table["noise"]["rounded"] == table["noise"]["x"] == {"sd": "estimate"}
    assert table["parameters"]["level_cases"]["lower"] == 0
    assert table["initial"]["cases"]["lower"] == 0
    assert table["parameters"]["level_x"]["lower"] < 0
    text = (tmp_path / "d.toml").read_text(encoding="utf-8")
    assert "# cases: whole numbers, taken for counts; if they are not, write\n" in text
    assert problem.warnings == ()


def test_covariates_with_units_are_offered_under_names(tmp_path: Path) -> None:
    lines = [f"{s},{t},{w},{decay(t)}\n" for s, w in (("a", 70), ("b", 50)) for t in TIMES]
    (tmp_path / "d.csv").write_text("run,t,Weight (kg),x\n" + "".join(lines), encoding="utf-8")
    text = draft(tmp_path / "d.csv", tmp_path, "d").text
    assert '# For equations with these names add columns = { Weight = "Weight (kg)" }.' in text
