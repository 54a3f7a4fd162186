"""The campaign `automatic`: it plans what it says, and judges as it says."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import odefit
from evidence import Record, campaign
from evidence.front_door import dense_data
from evidence.front_door.broken_off import broken_off
from evidence.front_door.cascade import cascade_problem
from evidence.front_door.dense_data import (
    BOUNDS,
    LEVELS,
    SYSTEMS,
    TRUE_VALUES,
    dense_problem,
    parameters,
)
from evidence.front_door.plan import DEFAULT, METHODS, OWN, PEERS
from evidence.front_door.problems import published
from evidence.front_door.runs import fitted
from evidence.front_door.tables import methods, parts, published_methods, runs, speed, tables
from evidence.running.campaign import Task
from evidence.running.runner import run_campaign
from odefit import ForwardMap, library
from odefit.common.errors import InputError
from odefit.problem import problem_to_mapping
from odefit.simulation import Evaluation


def fit(method: str = DEFAULT, **other: Any) -> Task:
    task = {"part": "dense", "problem": "pendulum", "method": method, "seed": 0, "limit": 60.0}
    task |= {"noise": 1e-2} | other
    return task | {"key": json.dumps(task)}


def record(task: Task, objective: float | None, **other: Any) -> Record:
    result = {
        "objective": objective,
        "log_likelihood": None,
        "known_log_likelihood": None,
        "known": 1000.0,
        "status": "converged",
        "message": "",
        "seconds": 1.0,
        "processor": 1.0,
        "starts": 5,
        "possible": None,
        "found": None,
        "size": 1001,
        "squares": 500.0,
    }
    return Record(task["key"], task, "done", result | other, "", 1.0)


def judged(*records: Record) -> list[tuple[bool, bool]]:
    table = runs(records)
    return list(zip(table["right"].tolist(), table["honest"].tolist(), strict=True))


# The plan ---------------------------------------------------------------------------------------


def test_all_parts_are_as_large_as_the_issue_asks() -> None:
    tasks = campaign("automatic").tasks()
    default = [t for t in tasks if t["method"] == DEFAULT]
    counts = {p: sum(t["part"] == p for t in default) for p in ("dense", "library", "interrupts")}
    assert counts == {"dense": len(SYSTEMS) * 4 * 8, "library": 31 * 5, "interrupts": 200}
    assert sum(t["part"] == "cascade" for t in default) == 3
    assert {t["method"] for t in tasks} == set(METHODS)
    assert {t["method"] for t in tasks if t["part"] == "cascade"} == set(METHODS)


def test_published_problems_need_their_folder(tmp_path: Path) -> None:
    assert not any(t["part"] == "published" for t in campaign("automatic").tasks())
    with pytest.raises(InputError, match="has no Boehm_JProteomeRes2014"):
        campaign("automatic").with_options({"folder": str(tmp_path)})
    (tmp_path / "Raia_CancerResearch2011.json").touch()
    chosen = {"folder": str(tmp_path), "problems": "Raia_CancerResearch2011", "parts": "published"}
    tasks = campaign("automatic").with_options(chosen | {"methods": "automatic"}).tasks()
    assert [(t["seed"], t["limit"]) for t in tasks] == [(0, 120.0), (1, 120.0), (2, 120.0)]
    beside = campaign("automatic").with_options(chosen | {"methods": "copasi,scipy"}).tasks()
    assert [(t["method"], t["limit"]) for t in beside] == [("copasi", 120.0), ("scipy", 120.0)]


def test_options_select_parts() -> None:
    chosen = {"parts": "dense", "systems": "goodwin,sir-births", "noise": "0,1e-2", "draws": "2-3"}
    tasks = campaign("automatic").with_options(chosen | {"methods": "automatic,scipy"}).tasks()
    assert len([t for t in tasks if t["method"] == DEFAULT]) == 8
    assert {t["seed"] for t in tasks if t["method"] == "scipy"} == {2}
    with pytest.raises(InputError, match="did you mean 'goodwin'"):
        campaign("automatic").with_options({"systems": "godwin"})
    with pytest.raises(InputError, match="limit: expected a positive number"):
        campaign("automatic").with_options({"limit": "0"})


# The judgement ----------------------------------------------------------------------------------


def test_a_fit_is_right_within_a_likelihood_ratio_of_the_best_of_all_methods() -> None:
    near = record(fit(), 1003.8)
    assert judged(near) == [(True, True)]
    better = record(fit("multiple-shooting"), 999.0)
    assert judged(near, better) == [(False, False), (True, True)]


def test_without_noise_residuals_vanish_or_the_fit_is_wrong() -> None:
    exact = record(fit(noise=0.0), 4e-10, known=0.0)
    poor = record(fit(noise=0.0), 6e-10, known=0.0)
    assert judged(exact, poor) == [(True, True), (False, False)]


def test_a_status_is_right_if_it_describes_the_fit() -> None:
    statuses = {"converged": True, "not converged": False, "time limit": True, "failed": False}
    for status, honest in statuses.items():
        assert judged(record(fit(), 1000.0, status=status)) == [(True, honest)]
    assert judged(record(fit(), 9e9, status="not converged")) == [(False, True)]
    assert judged(record(fit(), None, status="time limit")) == [(False, True)]


def test_a_library_problem_is_right_with_every_promised_solution() -> None:
    task = fit(part="library", problem="rational-seir")
    poor = {"objective": 5.0, "known": 0.0, "possible": 2}
    assert judged(record(task, **poor, found=2)) == [(True, True)]
    assert judged(record(task, **poor, found=1)) == [(False, False)]


def test_a_published_problem_is_right_within_a_tenth_of_a_log_unit() -> None:
    task = fit(part="published", problem="Boehm_JProteomeRes2014")
    for value, right in ((-138.3, True), (-138.4, False), (-130.0, True)):
        likelihoods = {"log_likelihood": value, "known_log_likelihood": -138.22}
        assert judged(record(task, 48.0, **likelihoods))[0][0] is right


# What is measured -------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_dense_fit_is_measured() -> None:
    result = fitted(fit(problem="two-compartments"))
    assert result["status"] == "converged"
    assert result["objective"] == pytest.approx(result["known"], rel=1e-6)
    assert judged(Record("", fit(), "done", result, "", 1.0)) == [(True, True)]


def test_a_method_that_does_not_apply_says_why() -> None:
    result = fitted(fit("copasi", part="library", problem="rational-seir"))
    assert result["status"] == "not applicable"
    assert "COPASI" in result["message"]


def test_a_published_problem_loses_its_guesses_and_keeps_them_as_a_reference(
    tmp_path: Path,
) -> None:
    problem = library.load("alpha-pinene")
    raw = problem_to_mapping(problem)
    truth = library.reference("alpha-pinene").parameters
    for name, value in truth.items():
        raw["parameters"][name]["guess"] = value
    frame = problem.data()
    raw["experiment"][0] |= {
        "data": {c: frame[c].tolist() for c in frame.columns},
        "initial": {},
    }
    file = tmp_path / "made.json"
    file.write_text(json.dumps(raw), encoding="utf-8")
    bare, nominal = published(file)
    assert all(u.parameter.guess is None for u in bare.unknowns)
    np.testing.assert_array_equal(nominal, [truth[k] for k in bare.keys])


@pytest.mark.slow
def test_the_cascade_is_found_and_the_end_of_its_flat_valley_reached() -> None:
    problem, _ = cascade_problem(0)
    found = odefit.fit(problem, jobs=1)
    assert found.status is odefit.Status.CONVERGED
    assert found.objective < 395.5555


@pytest.mark.slow
def test_the_cascade_has_the_size_of_the_issue() -> None:
    problem, rates = cascade_problem(0)
    assert (len(problem.model.ode), len(rates), problem.size) == (30, 40, 20 * 21)
    found = ForwardMap(problem).evaluate(problem.vector(rates))
    assert isinstance(found, Evaluation)
    assert abs(found.objective - 420) < 5 * math.sqrt(2 * 420)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["time limit", "ctrl-c", "kill"])
def test_an_aborted_fit_is_reported_as_such(kind: str) -> None:
    task = fit(part="interrupts", problem="indirect-response", kind=kind, moment=0.7, seed=1)
    result = broken_off(task)
    assert result["seconds"] > result["after"] > 0
    # Ctrl-C that comes before or after the search is answered by Python itself.
    assert result["returned"] or "KeyboardInterrupt" in result["message"]
    assert result["labelled"] or "KeyboardInterrupt" in result["message"]


# The tables -------------------------------------------------------------------------------------


def test_the_ratio_of_seconds_is_that_to_the_faster_program_that_is_right() -> None:
    records = [
        record(fit(), 1000.0, processor=0.5),
        record(fit("copasi"), 1000.0, processor=5.0, status="done"),
        record(fit("scipy"), 9e5, processor=1.0, status="done"),
        record(fit(problem="goodwin"), 1000.0),  # nothing beside it
        record(fit(part="library", problem="sir", noise=math.nan), 0.0, known=0.0),
    ]
    table = speed(runs(records))
    assert table.to_dict("records") == [
        {
            "part": "dense",
            "noise": 1e-2,
            "data sets": 1,
            "median processor": 0.5,
            "faster right peer": 5.0,
            "ratio": 10.0,
        }
    ]
    compared = methods(runs(records)).set_index("method")
    assert compared["right"].to_dict() == {DEFAULT: 1, "copasi": 1, "scipy": 0}


def test_methods_are_compared_at_each_noise_apart() -> None:
    records = [
        record(fit(method, noise=noise, draw=0), objective, status="done", known=1000.0)
        for noise, objective in ((1e-4, 1000.0), (0.01, 9e5))
        for method in (DEFAULT, "scipy")
    ]
    table = methods(runs(records))
    assert table[["noise", "method", "right"]].to_numpy().tolist() == [
        [1e-4, DEFAULT, 1],
        [1e-4, "scipy", 1],
        [0.01, DEFAULT, 0],
        [0.01, "scipy", 0],
    ]


def test_published_problems_have_a_row_for_each_method_that_applies() -> None:
    task: dict[str, Any] = {"part": "published", "problem": "Boehm_JProteomeRes2014"}
    likelihoods = {"log_likelihood": -138.3, "known_log_likelihood": -138.22}
    worse = likelihoods | {"log_likelihood": -150.0, "status": "done"}
    refused = {"status": "not applicable", "known_log_likelihood": -138.22}
    records = [
        record(fit(**task), 48.0, **likelihoods),
        record(fit("scipy", **task), 60.0, **worse),
        record(fit("copasi", **task), math.inf, **refused),
    ]
    table = published_methods(runs(records)).set_index("method")
    assert table["found"].to_dict() == {DEFAULT: "-138.30", "copasi": "", "scipy": "-150.00"}
    assert table["right"].to_dict() == {
        DEFAULT: "1 of 1",
        "copasi": "does not apply",
        "scipy": "0 of 1",
    }


def test_methods_are_those_of_the_package_and_two_programs() -> None:
    assert (DEFAULT, *OWN, *PEERS) == METHODS


@pytest.mark.slow
def test_a_run_makes_tables(tmp_path: Path) -> None:
    chosen = {"parts": "dense", "systems": "two-compartments", "noise": "1e-2", "draws": "1"}
    one = campaign("automatic").with_options(chosen | {"methods": "automatic"})
    (made,) = run_campaign(one, tmp_path, jobs=1)
    assert made.result is not None
    assert tables([made])["dense"].iloc[0]["noise 0.01"] == "1 of 1"


def test_the_parts_say_whether_a_target_is_reached() -> None:
    judged = runs([record(fit(), 1000.0, seconds=0.5), record(fit(noise=1e-4), 9e9)])
    (row,) = parts(judged).to_dict("records")
    assert (row["part"], row["fits"], row["reached"]) == ("dense", 2, False)


def objective(system: str, noise: float, draw: int) -> tuple[float, int]:
    problem, truth = dense_problem(system, noise, draw)
    found = ForwardMap(problem).evaluate(problem.vector(truth))
    assert isinstance(found, Evaluation)
    return found.objective, problem.size


def test_there_are_enough_systems_from_every_field() -> None:
    fields = {s.field_of_use for s in SYSTEMS.values()}
    assert len(SYSTEMS) >= 22
    assert {"circuits", "mechanics", "reactors", "epidemics", "gene circuits"} < fields
    assert sum(bool(s.inputs) for s in SYSTEMS.values()) >= 2
    assert sum(bool(s.events) for s in SYSTEMS.values()) >= 4
    assert sum(len(s.observed) < len(s.ode) for s in SYSTEMS.values()) >= 10


@pytest.mark.slow
@pytest.mark.parametrize("system", SYSTEMS)
def test_every_system_has_dense_data_of_values_within_its_bounds(system: str) -> None:
    problem, truth = dense_problem(system, 1e-2, 0)
    (condition,) = problem.conditions
    assert all(len(s.values) in (1001, 1501) for s in condition.series.values())
    assert tuple(truth) == problem.keys
    assert all(TRUE_VALUES[0] <= v <= TRUE_VALUES[1] for v in truth.values())
    assert (problem.lower == BOUNDS[0]).all()
    assert (problem.upper == BOUNDS[1]).all()
    assert set(parameters(SYSTEMS[system])) <= set(truth)


@pytest.mark.slow
@pytest.mark.parametrize("system", ["rlc-driven", "switched-converter", "dc-motor", "robertson"])
def test_the_truth_has_one_unit_of_the_objective_for_each_measurement(system: str) -> None:
    value, size = objective(system, 1e-4, 3)
    assert abs(value - size) < 5 * np.sqrt(2 * size)  # chi-square: variance of twice its mean


def test_without_noise_the_truth_fits_exactly_and_no_standard_deviation_is_given() -> None:
    problem, _ = dense_problem("coupled-oscillators", 0.0, 1)
    assert problem.noise == {}
    value, size = objective("coupled-oscillators", 0.0, 1)
    assert value < 1e-18 * size


def test_levels_differ_in_the_size_of_the_noise_alone() -> None:
    truths, errors = [], []
    exact = dense_problem("pendulum", 0.0, 2)[0].conditions[0].series["phi"].values
    for noise in LEVELS[1:]:
        problem, truth = dense_problem("pendulum", noise, 2)
        truths.append(truth)
        errors.append((problem.conditions[0].series["phi"].values - exact) / noise)
    assert truths[0] == truths[1] == truths[2]
    np.testing.assert_allclose(errors[0], errors[2], rtol=1e-6, atol=1e-8)


def test_draws_have_different_true_values() -> None:
    first, second = (tuple(dense_problem("goodwin", 0.0, d)[1].values()) for d in (0, 1))
    assert not set(first) & set(second)


@pytest.mark.slow
def test_a_system_at_rest_gives_no_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dense_data, "LIVELY", 1e3)
    with pytest.raises(InputError, match="pendulum: none of 100 draws"):
        dense_problem("pendulum", 0.0, 0)
