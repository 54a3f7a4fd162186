"""The zoo's problems are sound, and its judge agrees with odefit; the campaign fits all of them."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from evidence.running.campaign import Record
from evidence.zoo.drawing import BLOCKS, drawn
from evidence.zoo.fits import fitted, tables, tasks
from evidence.zoo.searching import bounded_residuals, searched
from odefit.problem import problem_from_mapping

EXACT = (0, 1, 9, 11, 13, 14, 34, 80, 115, 150)
"""Quick ones with most kinds of noise, doses and several experiments."""


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_every_block_gives_a_problem_whose_truth_lies_within_its_bounds(number: int) -> None:
    found = drawn(number)
    problem = problem_from_mapping(found.mapping)
    truth = np.array([found.truth.get(k, 1.0) for k in problem.keys])
    assert ((problem.lower <= truth) & (truth <= problem.upper)).all()
    assert set(found.truth) == {k for k in problem.keys if not k.endswith("_sd")}
    assert np.isfinite(found.by_hand.measure(found.truth))


def test_a_problem_is_that_of_its_number() -> None:
    assert drawn(7).mapping == drawn(7).mapping != drawn(42).mapping


def test_an_answer_that_lsoda_cannot_integrate_is_judged_by_radau() -> None:
    """The exact value is that of the matrix exponential, in sixty digits."""
    found = drawn(218)
    wall = {"a": 1.9046310019808196e-14, "b": 1.7462910830861194e-07}
    values = {**wall, "c": 53.15903959591177, "g": 7511024.636295998}
    with pytest.raises(ArithmeticError):
        found.by_hand.measure(values)
    assert found.judge.measure(values) == pytest.approx(8.561340803237567, rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("number", EXACT)
def test_odefit_reports_the_value_that_scipy_finds_at_its_answer(number: int) -> None:
    assert fitted(number, "single-shooting", 20.0)["apart"] < 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("number", [0, 4, 14])
def test_a_reference_is_no_worse_than_the_truth_and_odefit_finds_it(number: int) -> None:
    found = drawn(number)
    best = searched(found.by_hand, found.truth, 1, np.random.default_rng(1))
    assert best["best"] <= best["from truth"] <= found.by_hand.measure(found.truth) + 1e-9
    assert fitted(number, "automatic", 20.0)["measure"] <= best["best"] + 0.05


def test_residuals_that_explode_and_those_that_are_missing_are_bounded() -> None:
    """Squares of residuals of 1e200 overflow, which SciPy's search does not survive."""
    for residual, bounded in ((1e200, 1e6), (-1e200, -1e6), (math.nan, 1e6), (3.0, 1.5)):
        by_hand: Any = SimpleNamespace(count=2, residuals=lambda _, r=residual: np.full(2, r))
        assert bounded_residuals(by_hand, {}, 2.0).tolist() == [bounded, bounded]


@pytest.mark.parametrize("number", [17, 20])
def test_modes_begin_and_end_at_the_roots_of_their_guards(number: int) -> None:
    found = drawn(number)
    curve = found.by_hand.predicted(found.by_hand.runs[0], found.truth)
    if "lo" in found.by_hand.mapping["constants"]:
        limits = found.by_hand.mapping["constants"]
        assert curve["T"].max() <= limits["hi"] + 1e-6
    else:  # dry friction: at rest where the drive is weaker
        assert (curve["w"] == 0.0).any()


def test_verdicts_are_counted_with_what_failed_by_name() -> None:
    chosen = tasks(2, 0, ("reference", "fit"), ("automatic",), 10, 60.0)
    told = {"status": "converged", "processor": 0.5, "message": "", "features": []}
    results: list[dict[str, Any]] = [
        {"best": 1.0},
        {"best": 1.0},
        {**told, "measure": 1.01},
        {**told, "measure": 3.0},
    ]
    records = [
        Record(t["key"], t, "done", r, "", 1.0) for t, r in zip(chosen, results, strict=True)
    ]
    found = tables(records)
    assert found["zoo"][["right", "converged on a wrong one"]].to_numpy().tolist() == [[1, 1]]
    assert list(found["failures"]["number"]) == [1]
