"""The rational benchmark: its data are the paper's, its tables say what was measured."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evidence import Record, campaign
from evidence.command_line import main
from evidence.rational import paper as paper
from evidence.rational.plan import (
    DISCARDED,
    GIVEN,
    LEVELS,
    MODELS,
    SETS,
    data_set,
    run_task,
    truth,
)
from evidence.rational.runs import measured, prepared
from evidence.rational.tables import NO_DATA, frame
from evidence.rational.tables import figures as rational_figures
from evidence.rational.tables import tables as rational_tables
from evidence.running.campaign import Task
from evidence.running.runner import run_campaign
from odefit import library
from odefit.common.errors import InputError

INTERVAL = (-0.5, 0.5)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ODEFIT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def record(task: Task, **result: Any) -> Record:
    values: dict[str, Any] = {
        "before": 1e-5,
        "after": 1e-9,
        "floor": 1e-9,
        "worst_after": 1e-11,
        "worst_floor": 1e-11,
        "objective": 1e-28,
        "objective_floor": 1e-28,
        "measurements": 1001,
        "seconds": 0.1,
        "promised": 2,
        "found": 2,
        "real": 2,
    }
    return Record(task["key"], task, "done", values | result, "", 0.5)


# Data -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("number", range(GIVEN))
def test_true_values_are_the_papers(model: str, number: int) -> None:
    known = library.reference(model, number)
    assert truth(model, number) == {**known.parameters, **known.initial}


def test_every_set_has_its_own_true_values() -> None:
    for model in MODELS:
        sets = [tuple(truth(model, i).values()) for i in range(SETS)]
        assert len(set(sets)) == SETS
        assert all(0.1 <= v <= 0.9 for values in sets for v in values)


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS)
def test_simulated_data_are_the_papers(model: str) -> None:
    given, true = data_set(run_task(model, 3, 0.0, 21, INTERVAL))
    # Noise this small is a simulation, and nothing else.
    simulated, again = data_set(run_task(model, 3, 1e-300, 21, INTERVAL))
    assert np.array_equal(true, again)
    assert given.keys == simulated.keys
    for name, series in given.conditions[0].series.items():
        ours = simulated.conditions[0].series[name].values
        assert ours == pytest.approx(series.values, rel=0, abs=2e-13)


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS)
def test_all_sets_have_trajectories(model: str) -> None:
    for number in range(GIVEN, SETS):
        problem, _ = data_set(run_task(model, number, 0.0, 21, INTERVAL))
        assert len(problem.conditions[0].times) == 21


def test_the_draw_left_out_is_singular(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(DISCARDED, "rational-biohydrogenation", ())
    with pytest.raises(InputError, match=r"has no data.*t = 0\.13"):
        data_set(run_task("rational-biohydrogenation", 7, 0.0, 21, INTERVAL))


def test_noise_is_relative_to_the_mean_and_the_same_at_every_level() -> None:
    def column(noise: float) -> np.ndarray[Any, Any]:
        problem, _ = data_set(run_task("rational-seir", 1, noise, 1001, INTERVAL))
        return problem.conditions[0].series["y1"].values

    exact = column(0.0)
    small, large = column(1e-6) - exact, column(1e-2) - exact
    assert large.std() == pytest.approx(1e-2 * exact.mean(), rel=0.1)
    assert small * 1e4 == pytest.approx(large, abs=1e-9)
    other = data_set(run_task("rational-seir", 2, 1e-2, 1001, INTERVAL))[0]
    assert not np.allclose(other.conditions[0].series["y1"].values - exact, large)


def test_another_interval_starts_with_the_same_values() -> None:
    problem, true = data_set(run_task("rational-harmonic", 0, 0.0, 11, (0.0, 2.0)))
    condition = problem.conditions[0]
    assert condition.t0 == 0.0
    assert condition.times.tolist() == pytest.approx(np.linspace(0, 2, 11).tolist())
    values = dict(zip(problem.keys, true, strict=True))
    assert condition.series["y1"].values[0] == pytest.approx(values["x1"])


# Choices ----------------------------------------------------------------------------------------


def test_campaigns_have_the_papers_size_and_that_of_the_noise_table() -> None:
    exact = [t for t in campaign("rational").tasks() if t["what"] == "run"]
    assert len(exact) == 10 * 10
    assert {(t["noise"], t["points"]) for t in exact} == {(0.0, 21)}
    noisy = [t for t in campaign("rational-noise").tasks() if t["what"] == "run"]
    assert len(noisy) == 10 * 5 * len(LEVELS)
    assert {t["points"] for t in noisy} == {1001}


def test_options_select_tasks() -> None:
    given = {
        "noise": "0, 1e-4",
        "points": "51",
        "interval": "-1:2",
        "sets": "2",
        "models": "seir,hiv",
    }
    runs = [t for t in campaign("rational").with_options(given).tasks() if t["what"] == "run"]
    assert len(runs) == 2 * 2 * 2
    assert runs[0]["key"] == "seir, set 0, noise 0, 51 points, [-1, 2]"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"nose": "0"}, "there is no option 'nose'; did you mean 'noise'"),
        ({"noise": "loud"}, "noise: expected standard deviations .*; got 'loud'"),
        ({"noise": "-1"}, "noise: expected numbers of 0 or more"),
        ({"noise": "nan"}, "noise: expected numbers of 0 or more"),
        ({"points": "1"}, "points: expected numbers of 2 or more"),
        ({"interval": "1:0"}, "interval: expected start and end"),
        ({"interval": "1"}, "interval: expected start and end of the times"),
        ({"sets": "11"}, "sets: expected 1 to 10, got 11"),
        ({"models": "sier"}, "there is no 'rational-sier'; did you mean 'rational-seir'"),
    ],
)
def test_wrong_options_are_refused(given: Mapping[str, str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        campaign("rational").with_options(given)


def test_a_campaign_without_options_refuses_them() -> None:
    with pytest.raises(InputError, match="'recovery' has no options, got noise"):
        campaign("recovery").with_options({"noise": "0"})


@pytest.mark.slow
def test_options_are_given_on_the_command_line(
    tmp_path: Path, cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    arguments = ["run", "rational", "--out", str(out), "--jobs", "1", "--set"]
    assert main([*arguments, "models=harmonic", "sets=1"]) == 0
    assert "2 of 2 tasks: 2 done" in capsys.readouterr().out
    assert (out / "errors.md").exists()
    assert (out / "figure-noise-0-21-points.svg").exists()
    # What other options add goes to the same directory.
    assert main([*arguments, "models=harmonic", "sets=1", "points=31"]) == 0
    assert "2 of 2 tasks: 2 done" in capsys.readouterr().out
    assert main([*arguments, "models"]) == 2
    assert "--set: expected NAME=VALUE, got 'models'" in capsys.readouterr().err


# Runs -------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_run_measures_both_sides_of_polishing(cache: Path) -> None:
    task = run_task("rational-van-der-pol", 6, 0.0, 21, INTERVAL)
    result = measured(task)
    assert result["after"] <= 1e-9
    assert result["before"] <= 1e-6
    assert result["floor"] <= 1e-9
    assert (result["promised"], result["found"], result["real"]) == (1, 1, 1)
    again = measured(task)
    changing = {"seconds"}
    assert {k: v for k, v in again.items() if k not in changing} == {
        k: v for k, v in result.items() if k not in changing
    }


@pytest.mark.slow
def test_the_nearest_of_several_solutions_counts(cache: Path) -> None:
    result = measured(run_task("rational-seir", 7, 0.0, 21, INTERVAL))
    assert (result["promised"], result["found"]) == (2, 2)
    assert result["after"] <= 1e-5


@pytest.mark.slow
def test_noise_leaves_a_floor_and_a_spread(cache: Path) -> None:
    result = measured(run_task("rational-harmonic", 0, 1e-2, 1001, INTERVAL))
    assert result["floor"] == pytest.approx(result["after"], rel=0.2)
    assert result["worst_floor"] < 4 * result["spread"]
    assert result["worst_floor"] > result["spread"] / 20
    assert "before" not in result


def test_preparation_is_measured_with_an_empty_cache_and_kept(cache: Path) -> None:
    task = campaign("rational").with_options({"models": "harmonic"}).tasks()[0]
    for _ in range(2):
        result = prepared(task)
        assert (result["paths"], result["promised"]) == (1, 1)
        assert result["seconds"] > 0
        assert os.environ["ODEFIT_CACHE"] == str(cache)
        assert len(list(cache.glob("*.json"))) == 1


def test_a_trajectory_that_ends_early_is_a_failure_with_its_reason(
    tmp_path: Path, cache: Path
) -> None:
    chosen = {"models": "biohydrogenation", "sets": "1", "interval": "-0.5:20"}
    one = campaign("rational").with_options(chosen)
    kept = [t for t in one.tasks() if t["what"] == "run"]
    with pytest.raises(InputError, match="the true trajectory has no data"):
        measured(kept[0])


# Tables -----------------------------------------------------------------------------------------

TABLE_1 = {  # medians and means as the paper prints them: IQM, SciML, AMIGO2
    "rational-lotka-volterra": (
        (71.7, 76.5, 76.5, 22.1, 55.0, 75.6, 0.0, 0.0, 1.0),
        (72.2, 75.4, 75.4, 54.7, 76.9, 111.7, 13.6, 112.6, 29.7),
    ),
    "rational-seir": (
        (101.7, 173.0, 258.1, 17.1, 49.6, 105.4, 17.9, 19.8, 30.8),
        (132.3, 230.8, 338.9, 18.4, 60.6, 118.1, 25.9, 40.7, 50.8),
    ),
}


def test_the_papers_table_1_follows_from_its_appendix() -> None:
    assert tuple(paper.ERRORS) == MODELS
    for model, (medians, means) in TABLE_1.items():
        ours = [list(f(model).values())[:9] for f in (paper.medians, paper.means)]
        assert ours[0] == pytest.approx(medians, abs=0.06)
        assert ours[1] == pytest.approx(means, abs=0.06)
    assert all(len(rows) == SETS for rows in paper.ERRORS.values())
    assert {len(row) for rows in paper.ERRORS.values() for row in rows} == {len(paper.COLUMNS)}


def test_tables_hold_ours_beside_the_papers() -> None:
    runs = [run_task("rational-seir", i, 0.0, 21, INTERVAL) for i in range(4)]
    records = [
        record(runs[0], before=1e-3, after=3e-6, floor=2e-6, seconds=0.3),
        record(runs[1], after=5.0, objective=1e-12, found=1),
        record(runs[2]),
        Record(runs[3]["key"], runs[3], "time limit", None, "stopped", 600.0),
    ]
    preparation = campaign("rational").with_options({"models": "seir"}).tasks()[0]
    once = {"seconds": 2.5, "paths": 4, "promised": 2, "doubt": 0.0, "lost": 0}
    records.append(Record(preparation["key"], preparation, "done", once, "", 3.0))
    tables = rational_tables(records)
    row = tables["errors"].iloc[0]
    assert (row["model"], row["runs"]) == ("seir", 3)
    assert row["odefit: median"] == 3e-6
    assert row["odefit: mean"] == pytest.approx(5.0 / 3, rel=0.03)
    assert row["AMIGO2 [0, 2]"] == "19.8 / 40.7"
    assert tables["sets"]["AMIGO2 [0, 2]"].tolist() == [12.1, 53.3, 10.9, 1.7]
    row = tables["targets"].iloc[0]
    assert row["runs"] == 4
    assert row["before <= 0.0001 %"] == 2
    assert row["after <= 1e-06 %"] == 1
    assert row["missed, at the floor"] == 1
    assert row["missed otherwise"] == 2
    assert row["all solutions found"] == 2
    row = tables["models"].iloc[0]
    assert row["preparation, seconds"] == 2.5
    assert (row["paths"], row["solutions"], row["runs"], row["all found"]) == (4, 2, 4, 2)
    assert row["median seconds"] == 0.1
    assert "noise" not in tables


def test_noisy_runs_are_compared_with_the_best_fit_to_the_data() -> None:
    tasks = [run_task("rational-hiv", i, 1e-2, 1001, INTERVAL) for i in range(4)]
    said = "4 solutions; the derivatives of the data cannot be trusted: y1"
    records = [
        record(tasks[0], worst_after=0.05, worst_floor=0.05, spread=0.06),
        record(tasks[1], worst_after=0.3, worst_floor=0.29, spread=0.4, message=said),
        record(tasks[2], worst_after=7.0, worst_floor=0.02, spread=0.08, objective=1.0),
        Record(tasks[3]["key"], tasks[3], "error", None, "no luck", 1.0),
    ]
    tables = rational_tables(records)
    row = tables["noise"].iloc[0]
    assert row["runs"] == 4
    assert row["useful"] == 0.25
    assert row["useful optimum"] == 0.5
    assert row["spread <= 10 %"] == 0.5
    assert row["as good a fit"] == 0.5
    assert row["the others warned"] == 0.33
    assert row["all solutions found"] == 0.75
    assert tables["noise-models"].iloc[0]["model"] == "hiv"
    assert not {"errors", "sets"} & set(tables)
    assert "no data" not in row
    absent = Record(tasks[2]["key"], tasks[2], "error", None, f"InputError: {NO_DATA}: t = 2", 1.0)
    row = rational_tables([*records[:2], absent])["noise"].iloc[0]
    assert (row["no data"], row["runs"], row["useful"]) == (1, 2, 0.5)


def test_a_run_without_an_answer_is_listed() -> None:
    task = run_task("rational-hiv", 0, 0.0, 21, INTERVAL)
    refused = {"status": "refused", "message": "too few points", "seconds": 0.1}
    row = frame([Record(task["key"], task, "done", refused, "", 0.1)]).iloc[0]
    assert (row["status"], row["message"]) == ("refused", "too few points")
    assert math.isnan(row["after"])
    assert not row["complete"]


def test_each_setting_has_a_figure() -> None:
    tasks = [run_task(m, 0, noise, 21, INTERVAL) for noise in (0.0, 1e-4) for m in MODELS[:3]]
    figures = rational_figures([record(t) for t in tasks])
    assert list(figures) == ["figure-noise-0-21-points", "figure-noise-0.0001-21-points"]
    assert [
        t.get_text() for t in figures["figure-noise-0-21-points"].axes[0].get_xticklabels()
    ] == [
        "harmonic",
        "van-der-pol",
        "fitzhugh-nagumo",
    ]
    assert rational_figures([Record(tasks[0]["key"], tasks[0], "error", None, "", 1.0)]) == {}
    noisy = [record(t, before=None) for t in tasks[3:]]  # noisy data are not fitted unpolished
    assert list(rational_figures(noisy)) == ["figure-noise-0.0001-21-points"]


@pytest.mark.slow
def test_the_campaign_resumes(tmp_path: Path, cache: Path) -> None:
    one = campaign("rational").with_options({"models": "harmonic", "sets": "2"})
    first = run_campaign(one, tmp_path, jobs=1, limit=2)
    whole = run_campaign(one, tmp_path, jobs=1)
    assert len(first) == 2
    assert len(whole) == 3
    kept = {r.key: r.seconds for r in first}
    assert all(r.seconds == kept[r.key] for r in whole if r.key in kept)
