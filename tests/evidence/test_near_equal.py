"""Optima that fit are told apart by refits, and those that are not told are named."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import odefit
from evidence.running.campaign import Record
from evidence.zoo.near_equal import MODELS, _bands, _intervals, _Search, data_set, tables, tasks
from odefit import Model, Problem, SingleShooting
from odefit.problem import problem_from_mapping


@pytest.mark.slow
def test_a_long_search_finds_an_optimum_that_fits_better_than_the_truth() -> None:
    found = data_set("sparse-prey", 0)
    search = _Search(found, MODELS["sparse-prey"]["compared"])
    first, *_ = search.optima(2, np.random.default_rng(0))
    assert first["measure"] < found.by_hand.measure(found.truth)


def test_a_search_ends_where_trajectories_explode() -> None:
    """Squares of residuals of 1e200 overflow, which SciPy's search does not survive."""
    found = data_set("sparse-prey", 0)
    search = _Search(found, MODELS["sparse-prey"]["compared"])
    exploding = SimpleNamespace(
        count=20, residuals=lambda values: np.full(20, 1e200 * values["a"] ** 2)
    )
    search.found = SimpleNamespace(by_hand=exploding)  # type: ignore[assignment]
    cost, end = search.local(np.log(list(found.truth.values())), 12)
    assert math.isfinite(cost)
    assert np.isfinite(end).all()


@pytest.mark.slow
def test_an_end_on_a_ridge_is_not_a_reference_optimum() -> None:
    """Differences end this search at 26.61; odefit goes on along the ridge to 25.07."""
    found = data_set("toggle", 1)
    search = _Search(found, MODELS["toggle"]["compared"])
    ridge = np.log([34.2961, 28.8086, 1.7745, 3.1256, 10.3138, 3.7786])
    cost, stays = search.local(ridge, 60)
    assert cost == pytest.approx(26.6122, abs=1e-3)
    assert stays == pytest.approx(ridge, abs=1e-3)
    assert search.finished((cost, stays)) is None
    lowest = np.log([19.5489, 22.9819, 10.0, 5.3626, 23.9871, 100.0])
    end = search.local(lowest, 60)
    settled = search.finished(end)
    assert settled is not None
    assert settled[0] == pytest.approx(25.0665, abs=1e-3)


def test_true_values_are_within_the_bounds_and_differ_between_data_sets() -> None:
    for name, entry in MODELS.items():
        one, other = data_set(name, 0), data_set(name, 1)
        assert one.truth != other.truth
        for key, (_, lower, upper) in entry["unknown"].items():
            assert lower < one.truth[key] < upper


def test_a_solution_that_is_alone_has_the_intervals_of_the_table() -> None:
    times = np.linspace(0.0, 3.0, 9)
    data = {"t": times, "x": np.exp(-times) + 0.01 * np.cos(9.0 * times)}
    problem = Problem(
        Model(ode={"x": "-k*x"}), data, {"k": {"lower": 0.1, "upper": 9.0}}, {"x": 1.0}
    )
    result = odefit.fit(problem, SingleShooting(), jobs=1)
    (ends,) = _intervals(result, result.best)
    assert ends == pytest.approx(list(result.params["k"].ci or ()))


@pytest.mark.slow
def test_bands_are_compared_with_the_true_states() -> None:
    drawn = data_set("toggle", 49)
    problem = problem_from_mapping(drawn.mapping)
    result = odefit.fit(problem, SingleShooting(), start=dict(drawn.truth), jobs=1)
    estimates = dict(zip(problem.keys, result.best.vector.tolist(), strict=True))
    counts = _bands(result, replace(drawn, truth=estimates))
    assert counts == {key: [25, 25, 25] for key in ("observable", "state", "profile")}
    other = {key: 0.5 * v if key in ("k", "m") else v for key, v in estimates.items()}
    counts = _bands(result, replace(drawn, truth=other))
    assert [values[:2] for values in counts.values()] == [[25, 25]] * 3
    assert counts["observable"][2] < 10
    assert counts["state"][2] < 20
    assert counts["profile"][2] < 20


def test_an_optimum_far_from_all_solutions_is_not_mentioned() -> None:
    (known, fit) = tasks(["sparse-prey"], 1, ("reference", "fit"), 10, [60.0], 1)
    truth = data_set("sparse-prey", 0).truth
    alias = {k: v * (3.0 if k in ("a", "b", "c", "d") else 1.0) for k, v in truth.items()}
    near = {k: [0.5 * v, 1.5 * v] for k, v in truth.items()}
    own: dict[str, Any] = {"measure": 10.0, "values": dict(truth), "intervals": near}

    def counts(solutions: list[dict[str, Any]]) -> dict[str, Any]:
        optima = [{"measure": 10.0, "values": truth}, {"measure": 11.0, "values": alias}]
        told = {
            "status": "converged",
            "ambiguous": len(solutions) > 1,
            "processor": 1.0,
            "remarked": ["a"],
            "bands": {"observable": [20, 20, 19], "state": [20, 10, 8]},
        }
        results: list[dict[str, Any]] = [{"optima": optima}, {**told, "solutions": solutions}]
        records = [
            Record(t["key"], t, "done", r, "", 1.0)
            for t, r in zip((known, fit), results, strict=True)
        ]
        found = tables(records)
        (row,) = found["near-equal"].to_dict("records")
        counted = {str(name): value for name, value in row.items()}
        return counted | {"missed": found["missed"].to_dict("records")}

    alone = counts([own])
    assert (alone["several known"], alone["told"], alone["all told"]) == (1, 0, 0)
    assert (alone["intervals shown"], alone["truth inside"]) == (4, 4)
    assert (alone["without a remark"], alone["truth in these"]) == (3, 3)
    assert (alone["% of observable bands shown"], alone["% inside observable bands"]) == (100, 95)
    assert (alone["% of state bands shown"], alone["% inside state bands"]) == (50, 80)
    (missed,) = alone["missed"]
    assert missed["not told"].startswith("+1.00: a ")
    other = {"measure": 11.0, "values": alias, "intervals": {k: [v, v] for k, v in alias.items()}}
    both = counts([own, other])
    assert (both["told"], both["all told"], both["missed"]) == (1, 1, [])
    worse = counts([{**own, "measure": 10.0 + 1.0}])
    assert (worse["at the lowest"], worse["false converged"]) == (0, 1)
    assert math.isclose(worse["missed"][0]["worse by"], 1.0)
