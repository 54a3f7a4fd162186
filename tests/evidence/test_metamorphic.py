"""Problems in other guises are the same problems; the campaign fits all of them in all guises."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from evidence.agreement.guises import GUISES, Guise, NotSoError
from evidence.agreement.logarithms import logarithms
from evidence.agreement.metamorphic import (
    answer,
    differences,
    plain_problem,
    run,
    tables,
    tasks,
)
from evidence.running.campaign import Record
from evidence.zoo.drawing import drawn
from odefit import Failure, ForwardMap
from odefit.common.arrays import Array
from odefit.problem import Problem, problem_from_mapping

PROBLEMS = (("library", "sir"), ("library", "hiv-p"), ("zoo", "zoo-34"), ("zoo", "zoo-12"))


def problem_of(source: str, name: str) -> tuple[Mapping[str, Any], Problem, Array]:
    """A problem with values at which it can be integrated."""
    plain = plain_problem(source, name)
    problem = problem_from_mapping(plain)
    if source == "zoo":
        truth = drawn(int(name.removeprefix("zoo-"))).truth
        return plain, problem, np.array([truth[k] for k in problem.keys])
    values = np.linspace(0.2, 0.4, len(problem.keys))
    return plain, problem, np.clip(values, problem.lower, problem.upper)


def distinguishable(source: str, problem: str, name: str) -> list[str]:
    """What differs between a problem and a guise of it, apart from the time on a busy machine."""
    plain = plain_problem(source, problem)
    guise = GUISES[name](plain, np.random.default_rng(3))
    one, other = ({**answer(g), "processor": 0.0} for g in (Guise(plain), guise))
    return differences(one, other)


@pytest.mark.slow
@pytest.mark.parametrize("name", GUISES)
def test_the_objective_at_a_point_is_that_of_the_plain_problem(name: str) -> None:
    compared = 0
    for source, problem_name in PROBLEMS:
        plain, problem, values = problem_of(source, problem_name)
        try:
            guise = GUISES[name](plain, np.random.default_rng(7))
        except NotSoError:
            continue
        other = problem_from_mapping(guise.mapping)
        plain_keys = problem.keys if guise.ordered else [guise.names.get(k, k) for k in other.keys]
        known = dict(zip(problem.keys, values, strict=True))
        assert set(plain_keys) == set(problem.keys)
        vector = np.array([known[k] * guise.units.get(k, 1.0) for k in plain_keys])
        one, two = (ForwardMap(p, "bdf") for p in (problem, other))
        expected, found = one.evaluate(values), two.evaluate(vector)
        assert not isinstance(expected, Failure)
        assert not isinstance(found, Failure)
        assert found.objective / guise.objective == pytest.approx(expected.objective, rel=1e-4)
        compared += 1
    assert compared


@pytest.mark.slow
@pytest.mark.parametrize("name", ["states in other units", "a state of other sign", "other names"])
def test_the_answer_of_a_fit_is_that_of_the_plain_problem(name: str) -> None:
    assert not distinguishable("published", "BoxBOD", name)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("source", "problem", "name"),
    [
        ("library", "sir", "time in another unit"),
        ("library", "lotka-volterra-p", "states in other units"),
        ("published", "Rat43", "unknowns in other units"),
        ("published", "theoph-4", "an experiment split"),
        ("zoo", "zoo-1", "states in other units"),
        ("zoo", "zoo-34", "an event as if"),
    ],
)
def test_further_answers_equal_those_of_the_plain_problem(
    source: str, problem: str, name: str
) -> None:
    assert not distinguishable(source, problem, name)


def test_a_logarithm_is_shifted_where_other_unknowns_have_another_unit() -> None:
    plain = plain_problem("published", "theoph-4")
    guise = GUISES["unknowns in other units"](plain, np.random.default_rng(3))
    assert set(guise.shifts) == {"lKa", "lKe", "lCl"}
    assert not guise.units.keys() & guise.shifts.keys()
    energy = {"ode": {"x": "-exp(lA - E/(8.3*T))*x"}, "parameters": {}, "experiment": []}
    assert logarithms(energy, ["lA", "E", "T"]) == set()


def test_differences_of_answers_are_reported() -> None:
    known = answer(Guise(plain_problem("published", "BoxBOD")))
    wrong = {**known, "objective": known["objective"] * 1.01, "trouble": {"b1": "no effect"}}
    assert len(differences(known, wrong)) == 2


def test_a_slow_answer_is_reported() -> None:
    known = answer(Guise(plain_problem("published", "BoxBOD")))
    assert "s instead of" in differences(known, {**known, "processor": 1e3})[0]


def test_differing_guises_are_counted_and_named() -> None:
    chosen = tasks(("published",), ("BoxBOD",), ("rows permuted", "other names"), 1, "", 60.0)
    results: list[dict[str, Any]] = [{"differs": []}, {"differs": ["time limit"]}]
    records = [
        Record(t["key"], t, "done", r, "", 1.0) for t, r in zip(chosen, results, strict=True)
    ]
    found = tables([*records, Record("none", chosen[0], "done", {"not so": "one state"}, "", 1.0)])
    assert found["metamorphic"].to_numpy().tolist()[-1] == ["all", 2, 1, 50.0]
    assert list(found["failures"]["guise"]) == ["other names"]


def test_a_task_reports_how_its_guise_differs() -> None:
    (task,) = tasks(("published",), ("BoxBOD",), ("columns permuted",), 1, "", 60.0)
    assert run(task)["differs"] == []


def test_times_that_differ_by_chance_are_those_of_several_seeds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The fit of the guise takes many starts from the first seed, or from most seeds."""
    (task,) = tasks(("published",), ("BoxBOD",), ("columns permuted",), 1, "", 60.0)
    known = answer(Guise(plain_problem("published", "BoxBOD")))
    slow: list[int] = []

    def timed(guise: Guise, seed: int, *_: Any) -> dict[str, Any]:
        return {**known, "processor": 9.0 if seed in slow else 1.0}

    monkeypatch.setattr(
        "evidence.agreement.metamorphic._plain_answer", lambda *_: {**known, "processor": 1.0}
    )
    monkeypatch.setattr("evidence.agreement.metamorphic.answer", timed)
    slow[:] = [0]
    assert run(task)["differs"] == []
    assert run(task)["seconds"] == {"plain": [1.0, 1.0, 1.0], "guise": [9.0, 1.0, 1.0]}
    slow[:] = [0, 2]
    assert run(task)["differs"] == ["9.0 s instead of 1.0 s"]
    slow[:] = [1, 2]  # which are not asked
    assert "seconds" not in run(task)
