"""What a fit goes on from."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import odefit
from odefit import Experiment, InputError, Model, Problem, Result
from odefit.fitting.warm_start import GIVEN_START, warm_start
from odefit.methods.registry import METHODS, make_method

TIMES = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
DATA = {"t": TIMES, "x": [1.02, 0.59, 0.38, 0.21, 0.14, 0.08]}


def decay(**changes: Any) -> Problem:
    given: dict[str, Any] = {
        "data": DATA,
        "parameters": {"k": {"lower": 0.0, "upper": 5.0}},
        "initial": {"x": {"lower": 0.0, "upper": 5.0}},
        **changes,
    }
    return Problem(Model(ode={"x": "-k*x"}), **given)


@pytest.fixture(scope="module")
def result() -> Result:
    return odefit.fit(decay(), "single-shooting", jobs=1)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(m, marks=pytest.mark.slow if m == "branch-and-bound" else ())
        for m in METHODS
        if m != "outer-approximation"
    ],
)
def test_every_method_continues_from_a_result(name: str, result: Result) -> None:
    problem = decay()
    options: dict[str, Any] = {"starts": 1} if "starts" in METHODS[name].options else {}
    method = make_method(name, options)
    again = odefit.fit(problem, method, start=result, jobs=1, time_limit=20.0)
    given = next(r for r in again.routes if r.name == GIVEN_START)
    assert given.objective == pytest.approx(result.objective, rel=1e-6)
    assert again.objective <= result.objective * (1 + 1e-9)


@pytest.mark.slow
def test_outer_approximation_continues_from_a_result(result: Result) -> None:
    method = make_method("outer-approximation", {"starts": 1})
    again = odefit.fit(decay(), method, start=result, jobs=1, time_limit=15.0)
    assert again.objective <= result.objective * (1 + 1e-9)


@pytest.mark.parametrize("name", ["single-shooting", "multi-start", "transcription"])
def test_the_search_begins_at_the_start(name: str) -> None:
    options: dict[str, Any] = {"starts": 1} if "starts" in METHODS[name].options else {}
    found = odefit.fit(
        decay(), make_method(name, options), start={"k": 0.7, "x": 1.3}, polish=False, jobs=1
    )
    np.testing.assert_allclose(found.starts[0].start, [0.7, 1.3])


def test_the_answer_is_never_worse_than_the_start(result: Result) -> None:
    # One evaluation from a bad guess finds nothing; the start itself is what remains.
    method = odefit.MultiStart(odefit.SingleShooting(evaluations=1), starts=1)
    problem = decay().with_unknowns(guess={"k": 4.0, "x": 4.0})
    worse = odefit.fit(problem, method, polish=False, jobs=1)
    assert worse.objective > 10 * result.objective
    estimate = method.solve(problem, odefit.Control())
    kept = warm_start(problem, result).beside(problem, method, estimate)
    assert kept.best is not None
    assert kept.best.objective == pytest.approx(result.objective)
    assert "the search found nothing better than the given start" in kept.message
    assert [r.hits for r in kept.routes] == [0, 1]


def test_a_start_is_a_result_a_file_or_values(result: Result, tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    result.save(path)
    values = dict(zip(result.problem.keys, result.best.vector, strict=True))
    for start in (result, path, str(path), values):
        found = warm_start(decay(), start)
        np.testing.assert_allclose(found.vector, result.best.vector)
        assert found.remarks == ()


def test_missing_start_values_are_reported(result: Result) -> None:
    fitted = odefit.fit(decay(), "single-shooting", start={"k": 0.5}, jobs=1)
    assert "start: 'x' has no value there and begins at" in " ".join(fitted.warnings)


def test_unused_start_values_are_reported(result: Result) -> None:
    known = decay(initial={"x": 1.0}).with_unknowns(bounds={"k": (1.0, 2.0)})
    found = warm_start(known, result)
    assert found.vector.tolist() == [1.0]
    k, x = found.remarks
    assert k.startswith("start: 'k' = 0.")
    assert k.endswith("and begins at 1")
    assert x.startswith("start: 'x' = 1.0")
    assert "since it is fixed or known in this problem" in x


def test_an_unknown_that_the_user_fixes_is_not_mentioned_again(result: Result) -> None:
    assert warm_start(decay().with_unknowns(fix={"x": 1.0}), result).remarks == ()


def test_an_unknown_that_was_fixed_begins_at_that_value() -> None:
    fixed = odefit.fit(decay().with_unknowns(fix={"x": 1.0}), "single-shooting", jobs=1)
    found = warm_start(decay(), fixed)
    assert found.vector[1] == 1.0
    assert found.remarks == ("start: 'x' was known there and begins at that value, 1",)


def test_a_renamed_unknown_is_reported_with_the_name_that_it_may_have_now(result: Result) -> None:
    renamed = Problem(Model(ode={"x": "-K*x"}), DATA, {"K": {"lower": 0.0}}, {"x": {"lower": 0.0}})
    words = " ".join(warm_start(renamed, result).remarks)
    assert "'k' is not a name of this problem and is left out; if it is now called 'K'" in words


def test_quantities_are_split_and_shared_between_experiments(result: Result) -> None:
    experiments = [Experiment("one", DATA), Experiment("two", DATA)]
    split = decay(data=None, experiments=experiments, parameters={"k": {"per_experiment": True}})
    found = warm_start(split, result)
    assert found.vector[0] == found.vector[1] == result.best.vector[0]
    shared = warm_start(
        decay(data=None, experiments=experiments), {"k[one]": 0.2, "k[two]": 0.4, "x": 1.0}
    )
    assert shared.vector[0] == pytest.approx(0.3)


@pytest.mark.parametrize(
    ("start", "words"),
    [
        ({"kk": 1.0}, "start: there is no unknown 'kk'; did you mean 'k'?"),
        ({"k": math.nan}, "start k: expected a finite number, got nan"),
        ({}, "start: expected at least one value"),
        ("result.txt", "start: expected a result, the file of one such as result.json"),
        (3.0, "start: expected a result, the file of one such as result.json"),
    ],
)
def test_mistakes_are_reported_with_a_remedy(start: Any, words: str) -> None:
    with pytest.raises(InputError, match="start") as caught:
        odefit.fit(decay(), "single-shooting", start=start)
    assert words in str(caught.value)


def test_a_result_of_another_problem_is_refused(result: Result) -> None:
    other = Problem(Model(ode={"z": "-a*z"}), {"t": [0, 1], "z": [1, 0.5]}, {"a": {}}, {"z": 1.0})
    with pytest.raises(InputError, match="are not among those of this problem"):
        odefit.fit(other, start=result)


def test_two_starts_are_refused(result: Result) -> None:
    method = odefit.Transcription(start={"k": 1.0})
    with pytest.raises(InputError, match="the method has start values of its own"):
        odefit.fit(decay(), method, start=result)


def test_a_start_that_cannot_be_integrated_is_reported_and_does_no_harm() -> None:
    blow_up = Problem(
        Model(ode={"x": "k*x^2"}),
        {"t": [0, 0.5], "x": [1.0, 1.3]},
        {"k": {"lower": 0.0, "upper": 50.0}},
        {"x": 1.0},
    )
    found = odefit.fit(blow_up, "multi-start", start={"k": 40.0}, jobs=1)
    given = next(r for r in found.routes if r.name == GIVEN_START)
    assert given.message.startswith("cannot be integrated: ")
    assert found.best.vector[0] == pytest.approx(2 * (1 - 1 / 1.3), rel=1e-4)
