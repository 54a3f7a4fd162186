"""The study of separable least squares: its settings are the paper's, its tables say what was."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evidence import Record, campaign
from evidence.running.campaign import Task
from evidence.running.runner import run_campaign
from evidence.separable import paper as paper
from evidence.separable.figures import figures as separable_figures
from evidence.separable.plan import (
    MODELS,
    RUNS,
    data_set,
    exact,
    linear,
    starts,
    task,
    truth,
)
from evidence.separable.published import published_estimates, simplex, variable_metric
from evidence.separable.runs import as_low, matched, polished
from evidence.separable.runs import run as measured
from evidence.separable.tables import groups
from evidence.separable.tables import tables as separable_tables
from odefit import library
from odefit.common.errors import InputError

PRIORS = ("high", "medium", "low")


def one(part: str, model: str = "sir", size: str = "small", noise: float = 0.1) -> Task:
    return task(part, model, size, noise, 0, 1)


# Settings ---------------------------------------------------------------------------------------


def test_tables_are_the_papers() -> None:
    assert paper.ratio("linear", "small", "low", "low", "sir") == 8.3
    assert paper.ratio("linear", "large", "high", "high", "ftz") == 1.5
    assert paper.ratio("nonlinear", "small", "medium", "high", "ltk") == 0.9
    assert paper.ratio("nonlinear", "large", "low", "low", "sir") == 29.0


def test_every_model_size_and_noise_has_500_runs() -> None:
    tasks = [t for t in campaign("separable").tasks() if t["part"] == "matched"]
    runs: dict[tuple[Any, ...], set[int]] = {}
    for t in tasks:
        own = runs.setdefault((t["model"], t["size"], t["noise"]), set())
        own |= set(range(t["first"], t["last"]))
    assert len(runs) == 4 * 2 * 2
    assert all(own == set(range(RUNS)) for own in runs.values())


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("size", ["small", "large"])
def test_linear_unknowns_are_those_of_the_method(model: str, size: str) -> None:
    from odefit.methods.integral_matching import IntegralMatching

    problem = exact(one("matched", model, size))
    searched = IntegralMatching().matching(problem).nonlinear
    assert sorted([*searched, *linear(one("matched", model), problem)]) == list(
        range(len(problem.keys))
    )
    assert len(problem.conditions[0].times) == MODELS[model].samples[size]


def test_both_levels_of_noise_have_the_same_random_numbers() -> None:
    low, high = one("matched", "gma"), one("matched", "gma", noise=0.2)
    problem = exact(low)

    def noise(of: Task, run: int) -> np.ndarray[Any, Any]:
        series = data_set(of, problem, run).conditions[0].series["x2"].values
        return series - problem.conditions[0].series["x2"].values

    assert 2 * noise(low, 3) == pytest.approx(noise(high, 3))
    assert not np.allclose(noise(low, 3), noise(low, 4))
    spread = np.std([noise(low, run) for run in range(30)])
    clean = np.std(problem.conditions[0].series["x2"].values, ddof=1)
    assert spread == pytest.approx(0.1 * clean, rel=0.05)


@pytest.mark.parametrize("model", MODELS)
def test_starts_are_within_bounds_and_share_their_nonlinear_part(model: str) -> None:
    of = one("matched", model)
    problem = exact(of)
    own = linear(of, problem)
    others = [k for k in range(len(problem.keys)) if k not in own]
    for run in range(20):
        found = starts(of, problem, run)
        assert tuple(found) == PRIORS
        for start in found.values():
            assert (problem.lower <= start).all()
            assert (start <= problem.upper).all()
            assert (start[others] == found["high"][others]).all()


def test_priors_have_the_papers_coefficients_of_variation() -> None:
    of = one("matched", "ltk")
    problem = exact(of)
    true, own = truth(of, problem), linear(of, problem)
    for prior, variation in {"high": 0.05, "medium": 0.1, "low": 0.2}.items():
        relative = [(starts(of, problem, i)[prior] / true - 1)[own] for i in range(100)]
        assert np.std(relative) == pytest.approx(variation, rel=0.15)


def test_published_starts_are_those_of_the_authors_program() -> None:
    of = one("published", "gma")
    problem = exact(of)
    true, own = truth(of, problem), linear(of, problem)
    relative = [starts(of, problem, i, published=True)["low"] / true - 1 for i in range(50)]
    nonlinear = np.delete(np.array(relative), own, axis=1)
    assert np.abs(nonlinear).max() < 0.005
    assert np.abs(relative).max() > 1
    spiking = one("published", "ftz")
    for run in range(20):
        for start in starts(spiking, exact(spiking), run, published=True).values():
            assert (start >= 0).all()


# Choices ----------------------------------------------------------------------------------------


def test_options_select_tasks() -> None:
    chosen = campaign("separable").with_options(
        {"models": "sir, gma", "sizes": "large", "noise": "0.3", "runs": "60", "polished": "10"}
        | {"smoothed": "0", "published": "0"}
    )
    keys = [t["key"] for t in chosen.tasks()]
    assert keys == [
        "sir matched, large sample, noise 0.3, runs 0 to 49",
        "gma matched, large sample, noise 0.3, runs 0 to 49",
        "sir polished, large sample, noise 0.3, runs 0 to 9",
        "gma polished, large sample, noise 0.3, runs 0 to 9",
        "sir matched, large sample, noise 0.3, runs 50 to 59",
        "gma matched, large sample, noise 0.3, runs 50 to 59",
    ]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"models": "sri"}, r"models: there is no 'sri'.*sir"),
        ({"sizes": "huge"}, r"sizes: there is no 'huge'.*small, large"),
        ({"noise": "0"}, r"noise: expected positive numbers"),
        ({"runs": "0"}, r"runs: expected 1 or more, got 0"),
        ({"polished": "-1"}, r"polished: expected 0 or more, got -1"),
        ({"runs": "many"}, r"runs: expected how many.*'many'"),
        ({"prior": "low"}, r"there is no option 'prior'"),
    ],
)
def test_impossible_options_are_refused(given: dict[str, str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        campaign("separable").with_options(given)


# Runs -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", ["sir", "ltk"])
def test_searching_for_linear_unknowns_ends_where_solving_for_them_does(model: str) -> None:
    result = matched(one("matched", model))
    loss = result["sls"][0]["loss"]
    for prior in PRIORS:
        assert result[f"nls, {prior}"][0]["loss"] == pytest.approx(loss, rel=1e-4)
        assert result[f"nls, {prior}"][0]["vector"] == pytest.approx(
            result["sls"][0]["vector"], rel=1e-2
        )


def test_polishing_reaches_the_optimum_next_to_the_truth() -> None:
    (run,) = polished(one("polished"))["runs"]
    assert run["reached"]
    assert as_low(run["objective"], run["floor"])
    assert "default" not in run
    assert not as_low(1.0, 0.9)
    assert not as_low(None, 0.9)


def test_the_published_optimisers_find_a_minimum_that_is_easy() -> None:
    def bowl(x: np.ndarray[Any, Any]) -> tuple[float, np.ndarray[Any, Any]]:
        off = x - np.array([1.0, 2.0])
        return 1.0 + float(off @ off), 2 * off

    start = np.array([0.3, 0.4])
    assert variable_metric(bowl, start) == pytest.approx([1, 2], abs=1e-3)
    assert simplex(bowl, start) == pytest.approx([1, 2], abs=1e-3)


def test_the_variable_metric_search_ends_in_a_valley_after_100_iterations() -> None:
    calls = []

    def valley(x: np.ndarray[Any, Any]) -> tuple[float, np.ndarray[Any, Any]]:
        calls.append(x)
        a, b = 1.0 - x[0], x[1] - x[0] ** 2
        return a * a + 100 * b * b, np.array([-2 * a - 400 * x[0] * b, 200 * b])

    assert variable_metric(valley, np.array([-1.2, 1.0])) == pytest.approx([1, 1], abs=1e-3)
    assert len(calls) < 300


def test_the_published_program_agrees_where_its_search_succeeds() -> None:
    of = one("published")
    problem = data_set(of, exact(of), 0)
    start = {"high": starts(of, problem, 0, published=True)["high"]}
    found = published_estimates(of, problem, start)
    nls, sls = found["nls, high"], found["sls"]
    assert nls["loss"] >= sls["loss"] * (1 - 1e-6)
    assert nls["vector"] == pytest.approx(sls["vector"], rel=0.05)


# Tables -----------------------------------------------------------------------------------------


def made(part: str, error: float = 2.0, **entry: Any) -> Record:
    """SIR, two runs: errors of separable least squares are 0.1, of the others `error` tenths."""
    of = task(part, "sir", "small", 0.1, 0, 2)
    true = np.array([6.0, 0.56])

    def estimate(off: float) -> dict[str, Any]:
        common = {"converged": True, "smoothing": 1e-3, "search": 2e-3, "loss": 1.0}
        return {"vector": (true + off).tolist(), **common, **entry}

    result: dict[str, Any] = {"keys": ["beta", "S"], "true": true.tolist()}
    result["sls"] = [estimate(0.1), estimate(-0.1)]
    for prior, off in (("low", 0.1 * error), ("medium", 0.1), ("high", 0.05)):
        result[f"nls, {prior}"] = [estimate(off), estimate(-off)]
    return Record(of["key"], of, "done", result, "", 1.0)


def ended(*runs: dict[str, Any]) -> Record:
    of = task("polished", "sir", "small", 0.1, 0, len(runs))
    common = {"vector": [6.0, 0.56], "status": "converged", "seconds": 0.1, "floor": 1.0}
    result = {"keys": ["beta", "S"], "true": [6.0, 0.56], "runs": [common | r for r in runs]}
    return Record(of["key"], of, "done", result, "", 1.0)


def test_a_ratio_is_that_of_mean_squared_errors_beside_the_papers() -> None:
    tables = separable_tables([made("matched"), made("published", 3.0)])
    first = tables["table-1"].set_index("prior")
    assert first.loc["low", "sir"] == pytest.approx(4)
    assert first.loc["low", "sir, their optimiser"] == pytest.approx(9)
    assert first.loc["low", "sir, paper"] == 8.3
    assert first.loc["high", "sir"] == pytest.approx(0.25)
    assert tables["table-3"].set_index("prior").loc["low", "sir, paper"] == 23.0
    assert "table-2" not in tables


def test_targets_count_ratios_against_the_papers() -> None:
    tables = separable_tables([made("matched"), made("published", 1.0)])
    counts = tables["targets"].set_index("target")
    # Linear and nonlinear, low prior.
    above = "low prior, paper's ratio above 1.5: above one"
    assert dict(counts["holds"])[f"{above}, ours"] == 2
    assert dict(counts["of"])[f"{above}, ours"] == 2
    assert dict(counts["holds"])[f"{above}, their optimiser"] == 0


def test_a_run_without_estimate_is_counted_and_left_out_of_the_mean() -> None:
    record = made("matched")
    assert record.result is not None
    record.result["nls, low"][0] |= {"vector": [None, None], "loss": None}
    table = separable_tables([record])["mse"].set_index("method")
    assert table.loc["nls, low", "failed"] == 1
    assert table.loc["nls, low", "MSE, linear"] == pytest.approx(0.04)
    assert table.loc["nls, low", "worse"] == 0.5
    assert table.loc["nls, high", "worse"] == 0


def test_seconds_are_compared_with_the_r_package() -> None:
    table = separable_tables([made("matched")])["seconds"].set_index("method")
    assert table.loc["sls", "median ms"] == pytest.approx(3)
    assert table.loc["sls", "times faster"] == pytest.approx(190 / 3)


def test_polished_runs_count_by_one_start_and_by_default() -> None:
    record = ended(
        {"objective": 1.0, "reached": True},
        {"objective": 0.5, "reached": True},
        {"objective": 2.0, "reached": False, "default": 1.0},
        {"objective": None, "reached": False, "default": 1.5},
    )
    table = separable_tables([record])["polished"]
    row = table.iloc[0]
    assert row[["runs", "reached", "by default", "lower"]].tolist() == [4, 2, 3, 1]


def test_smoothers_are_compared_with_the_default() -> None:
    of = task("smoothed", "sir", "small", 0.1, 0, 1)
    base = {"converged": True, "smoothing": 1e-3, "search": 2e-3, "loss": 1.0}
    result = {
        "keys": ["beta", "S"],
        "true": [6.0, 0.5],
        "default": [base | {"vector": [6.1, 0.5]}],
        "other": [base | {"vector": [6.2, 0.5]}],
    }
    tables = separable_tables([Record(of["key"], of, "done", result, "", 1.0)])
    row = tables["smoothers"].set_index("of").loc["linear"]
    assert row["other"] / row["default"] == pytest.approx(4)
    counts = tables["targets"].set_index("target")
    assert counts.loc["MSE with the default at most that with other", "holds"] == 2


def test_figures_are_those_of_the_paper() -> None:
    assert set(separable_figures([made("matched"), made("published")])) == {
        "figure-1",
        "figure-2",
        "figure-3",
    }
    assert separable_figures([ended({"objective": 1.0, "reached": True})]) == {}


@pytest.mark.slow
def test_the_campaign_runs_and_makes_its_tables(tmp_path: Path) -> None:
    choice = {"models": "sir", "sizes": "small", "noise": "0.1", "runs": "1"}
    chosen = campaign("separable").with_options(choice)
    records = run_campaign(chosen, tmp_path, jobs=1)
    assert [r.outcome for r in records] == ["done"] * 4
    for name in ("table-1", "table-3", "mse", "smoothers", "seconds", "polished", "targets"):
        assert (tmp_path / f"{name}.md").exists()
    assert (tmp_path / "figure-2.svg").exists()


def test_a_task_measures_its_part() -> None:
    assert set(measured(one("smoothed"))) > {"default", "local polynomial"}
    assert library.reference("sir").parameters["beta"] == 6.0
    assert groups([]) == []
