"""The multiple shooting campaign: its data are what it says, its tables what was measured."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evidence import Record, campaign
from evidence.command_line import main
from evidence.multiple_shooting.plan import (
    BATCHES,
    EXAMPLES,
    FACTOR,
    NOISE,
    REALIZATIONS,
    SINGLE,
    SIZES,
    Data,
    fits_task,
)
from evidence.multiple_shooting.runs import run as fits
from evidence.multiple_shooting.tables import figures as multiple_shooting_figures
from evidence.multiple_shooting.tables import tables as multiple_shooting_tables
from evidence.running.campaign import Task
from evidence.running.store import to_json
from odefit.common.errors import InputError

RANDOM = np.random.default_rng(0)


def measured(task: Task) -> list[dict[str, Any]]:
    # As the store gives it back.
    found: list[dict[str, Any]] = json.loads(to_json(fits(task)))["fits"]
    return found


def record(task: Task, sd: float = 0.1, **changed: Any) -> Record:
    """Fits whose estimates are normal about the truth, with standard errors of 0.1."""
    data = Data(task)
    numbers = range(task["first"], task["first"] + task["realizations"])
    made = [
        {
            "realization": number,
            "converged": True,
            "right": True,
            "steps": 4,
            "seconds": 0.1,
            "objective": 1.0,
            "reference": 1.0,
            "message": "",
            "warnings": [],
            "estimate": (data.true + sd * RANDOM.standard_normal(len(data.true))).tolist(),
            "errors": [0.1] * len(data.true),
        }
        | changed
        for number in numbers
    ]
    keys = data.problem(0).keys
    result = {"unknowns": list(keys), "true": data.true.tolist(), "fits": made}
    return Record(task["key"], task, "done", result, "", 1.0)


# Plan and data ----------------------------------------------------------------------------------


def test_each_cell_has_a_thousand_fits_in_twenty_batches() -> None:
    tasks = campaign("multiple-shooting").tasks()
    cells: dict[tuple[Any, ...], list[int]] = {}
    for task in tasks:
        if (task["example"], task["states"], task["end"]) == ("henon-heiles", "data", 20.0):
            cell = (task["noise"], task["size"], task["nodes"], task["integrator"])
            cells.setdefault(cell, []).append(task["realizations"])
    for noise in NOISE:
        for size in SIZES:
            assert cells[noise, size, 50, "auto"] == [REALIZATIONS] * BATCHES


def test_rikitake_has_a_hundred_fits_for_each_number_of_nodes_on_the_same_times() -> None:
    tasks = [t for t in campaign("multiple-shooting").tasks() if t["example"] == "rikitake"]
    nodes = {t["nodes"] for t in tasks}
    assert 1 in nodes
    for count in nodes:
        mine = [t for t in tasks if (t["nodes"], t["states"]) == (count, "data")]
        mine = [t for t in mine if t["integrator"] == "auto"]
        assert sum(t["realizations"] for t in mine) == 100
        assert {t["batch"] for t in mine} == {0}
        assert sorted(t["first"] for t in mine) == [0, 50]


def test_every_task_has_a_unique_key_with_the_number_of_realizations() -> None:
    short = campaign("multiple-shooting").with_options({"realizations": "5", "batches": "2"})
    keys = [t["key"] for setting in (campaign("multiple-shooting"), short) for t in setting.tasks()]
    assert len(set(keys)) == len(keys)


@pytest.mark.parametrize("name", EXAMPLES)
def test_noise_has_the_level_it_says_and_times_are_uniform(name: str) -> None:
    task = fits_task(name, "data", realizations=1, noise=0.05, size=400)
    data = Data(task)
    assert data.times.min() >= 0
    assert data.times.max() <= task["end"]
    # The largest distance to the uniform distribution (Kolmogorov and Smirnov, 99.9 %).
    uniform = np.arange(1, 401) / 400
    assert np.abs(data.times / task["end"] - uniform).max() < 1.95 / math.sqrt(400)
    for column, series in data.problem(0).conditions[0].series.items():
        noise = series.values - data.exact[column]
        assert noise.std() == pytest.approx(0.05, rel=0.15)
        assert np.abs(noise).max() < 0.05 * 4.5


def test_only_batches_have_different_random_numbers() -> None:
    def noise(**changed: Any) -> np.ndarray[Any, Any]:
        data = Data(fits_task("rikitake", "data", realizations=1, **changed))
        values: np.ndarray[Any, Any] = data.problem(3).conditions[0].series["x"].values
        return values - data.exact["x"]

    usual = noise()
    assert noise(noise=0.02) * 10 == pytest.approx(usual, abs=1e-9)
    assert np.array_equal(noise(nodes=1), usual)
    assert not np.allclose(noise(batch=1), usual)


def test_henon_heiles_is_just_below_the_energy_of_escape() -> None:
    a, b, c, d, x, y, px, py = Data(fits_task("henon-heiles", "data", realizations=1)).true
    energy = (px**2 + py**2 + a * x**2 + b * y**2) / 2 + c * x**2 * y - d * y**3 / 3
    assert 0.166 < energy < 1 / 6


def test_guesses_of_fitzhugh_nagumo_are_within_their_factor_and_inside_the_bounds() -> None:
    data = Data(fits_task("fitzhugh-nagumo", "relaxed", realizations=1))
    problem = data.problem(0)
    starts = [data.start(problem, i) for i in range(200)]
    for place, key in enumerate("abc"):
        factors = np.array([s[key] for s in starts]) / data.true[place]
        assert 1 / FACTOR < factors.min() < 0.3
        assert 3.0 < factors.max() < FACTOR
        parameter = problem.parameters[key]
        assert parameter.lower < FACTOR * data.true[place] < parameter.upper
    assert {s["R"] for s in starts} == {0.0}


@pytest.mark.parametrize(
    ("option", "text", "said"),
    [
        ("examples", "henon", "there is no 'henon'"),
        ("batches", "0", "1 or more"),
        ("realizations", "many", "how many draws"),
        ("noise", "0,0.1", "positive"),
        ("sizes", "3", "10 or more"),
        ("nodes", "3", "no option 'nodes'"),
    ],
)
def test_senseless_options_are_refused(option: str, text: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        campaign("multiple-shooting").with_options({option: text})


# Runs -------------------------------------------------------------------------------------------


def test_henon_heiles_from_guesses_of_one_half_reaches_the_optimum() -> None:
    for fit in measured(fits_task("henon-heiles", "data", realizations=2)):
        assert fit["right"]
        assert 3 <= fit["steps"] < 15
        assert fit["warnings"] == []
        off = (np.array(fit["estimate"]) - 1.0)[:4] / np.array(fit["errors"])[:4]
        assert np.abs(off).max() < 5


def test_the_initial_value_approach_fails_at_once_there() -> None:
    (fit,) = measured(fits_task("henon-heiles", "data", realizations=1, nodes=1))
    assert not fit["converged"]
    assert "without bound" in fit["message"]
    assert fit["estimate"] is None


@pytest.mark.slow
def test_local_linearization_finds_the_same_estimate() -> None:
    few: dict[str, Any] = {"realizations": 1, "size": 50, "end": 5.0, "nodes": 10}
    (usual,) = measured(fits_task("rikitake", "data", **few))
    (local,) = measured(fits_task("rikitake", "data", integrator="local-linearization", **few))
    apart = np.subtract(local["estimate"], usual["estimate"]) / usual["errors"]
    assert np.abs(apart).max() < 0.01


@pytest.mark.slow
def test_fits_that_end_elsewhere_are_not_at_the_optimum() -> None:
    (fit,) = measured(fits_task("fitzhugh-nagumo", "relaxed", realizations=1))
    assert fit["right"]
    assert fit["objective"] == pytest.approx(fit["reference"], abs=1e-3)
    (single,) = measured(fits_task("fitzhugh-nagumo", SINGLE, realizations=1, nodes=1))
    assert single["reference"] == pytest.approx(fit["reference"], abs=1e-9)
    assert single["right"] == (single["converged"] and single["objective"] < fit["objective"] + 0.1)


# Tables -----------------------------------------------------------------------------------------


def test_honest_standard_errors_have_a_ratio_of_one_and_no_bias() -> None:
    tasks = [fits_task("rikitake", "data", realizations=400, batch=b) for b in range(4)]
    table = multiple_shooting_tables([record(t) for t in tasks])["rikitake-estimates"]
    assert list(table["unknown"]) == ["mu", "a", "x", "y", "z"]
    assert table["ratio"].to_numpy() == pytest.approx(1.0, abs=0.07)
    assert table["bias"].abs().max() < 3.5
    # Averages of 400 estimates have a twentieth of their standard deviation.
    assert table["sd of averages"].mean() == pytest.approx(0.005, rel=0.5)


def test_only_converged_fits_are_averaged() -> None:
    task = fits_task("rikitake", "data", realizations=20)
    good, bad = record(task), record(fits_task("rikitake", "data", realizations=20, first=20))
    assert bad.result is not None
    for fit in bad.result["fits"]:
        fit |= {"converged": False, "right": False, "steps": 50, "estimate": None, "errors": None}
    tables = multiple_shooting_tables([good, bad])
    (row,) = tables["rikitake"].to_dict("records")
    assert (row["fits"], row["converged"], row["at the optimum"]) == (40, 0.5, 0.5)
    assert (row["mean steps"], row["most steps"]) == (4, 4)
    assert set(tables["rikitake-estimates"]["fits"]) == {20}


def test_integrators_are_compared_on_the_same_data() -> None:
    usual = record(fits_task("rikitake", "data", realizations=4), sd=0.0)
    task = fits_task("rikitake", "data", realizations=2, integrator="local-linearization")
    local = record(task, sd=0.0, steps=5)
    assert local.result is not None
    local.result["fits"][1]["estimate"][0] += 0.02
    (row,) = multiple_shooting_tables([usual, local])["integrators"].to_dict("records")
    assert (row["fits"], row["mean steps"], row["usual mean steps"]) == (2, 5, 4)
    assert row["largest difference"] == pytest.approx(0.2)


def test_warnings_are_counted() -> None:
    task = fits_task("rikitake", "data", realizations=3)
    (row,) = multiple_shooting_tables([record(task, warnings=["overflow"])])["warnings"].to_dict(
        "records"
    )
    assert (row["warnings"], row["fits"]) == ("overflow", 3)


def test_records_without_results_make_tables_and_figures_too() -> None:
    task = fits_task("henon-heiles", "data", realizations=3)
    nothing = Record(task["key"], task, "time limit", None, "stopped", 1.0)
    assert multiple_shooting_tables([nothing])["fits"].empty
    assert multiple_shooting_figures([nothing]) == {}


def test_figures_show_nodes_and_honesty() -> None:
    records = [
        record(fits_task("rikitake", states, realizations=2, nodes=nodes))
        for states in ("data", "relaxed")
        for nodes in (10, 1)
    ]
    records.append(record(fits_task("henon-heiles", "data", realizations=5)))
    found = multiple_shooting_figures(records)
    assert set(found) == {"figure-rikitake", "figure-henon-heiles"}
    assert len(found["figure-henon-heiles"].axes) == 2


@pytest.mark.slow
def test_the_command_runs_a_part(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert campaign("multiple-shooting").name == "multiple-shooting"
    arguments = ["run", "multiple-shooting", "--out", str(tmp_path), "--jobs", "1"]
    chosen = ["--set", "examples=rikitake", "realizations=1"]
    assert main([*arguments, "--limit", "1", *chosen]) == 0
    assert "rikitake-estimates" in capsys.readouterr().out
    assert (tmp_path / "rikitake.csv").exists()
    assert main([*arguments, "--set", "examples=lorenz"]) == 2
