"""Tests of the comparison of local searches."""

from __future__ import annotations

import math

import numpy as np
import pytest

import odefit
from evidence.running.campaign import Record
from evidence.speed import local_search
from odefit.methods.single_shooting import LocalCost
from odefit.simulation import ForwardMap


def test_evaluations_are_counted_until_the_cost_is_nearly_the_lowest_of_all() -> None:
    found = local_search.counts(
        {"odefit": [100.0, 9.0, 1.0005, 1.0], "fides": [100.0, 50.0, 20.0], "trf": None}
    )
    assert found == {"odefit": 3.0, "fides": math.inf}


def test_a_start_from_which_nothing_can_be_evaluated_does_not_count() -> None:
    assert local_search.counts({"odefit": [math.inf], "fides": [math.inf]}) is None


def test_exact_data_need_no_cost_of_zero() -> None:
    found = local_search.counts({"odefit": [1.0, 1e-10, 1e-30], "trf": [1.0, 1e-31]})
    assert found == {"odefit": 2.0, "trf": 2.0}


def test_a_traced_cost_keeps_every_value_and_ends_at_its_limit() -> None:
    problem = odefit.library.load("alpha-pinene")
    cost = LocalCost.of(ForwardMap(problem), np.full(len(problem.unknowns), 1e-4))
    traced = local_search.Traced(cost, 2)
    first = traced(cost.start)
    assert first is not None
    assert traced.values == [first.cost]
    traced(1.01 * cost.start)
    with pytest.raises(local_search._Ended):
        traced(cost.start)


def test_the_searches_of_a_start_begin_at_one_cost_and_are_compared_in_both_tables() -> None:
    task = {"problem": "alpha-pinene", "folder": "", "starts": 2, "evaluations": 60}
    result = local_search.run({**task, "key": "alpha-pinene"})
    assert result["unknowns"] == 5
    assert {"odefit", "trf", "dogbox"} <= set(result["counts"][0])
    # Five rates of one decade or two: every method needs some steps, and odefit arrives.
    assert all(2 <= row["odefit"] <= 60 for row in result["counts"])
    record = Record("alpha-pinene", {**task, "key": "alpha-pinene"}, "done", result, "", 1.0)
    found = local_search.tables([record])
    assert found["local-search"].shape[0] == 1
    (row,) = found["local-search-all"].to_numpy().tolist()
    assert row[:2] == ["other scales", "2"]
