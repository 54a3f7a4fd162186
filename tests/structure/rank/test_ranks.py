"""Local identifiability by exact ranks."""

from __future__ import annotations

import numpy as np
import pytest

from odefit import library
from odefit.problem.experiment import Experiment
from odefit.problem.model import Model
from odefit.problem.problem import Problem
from odefit.structure.rank.ranks import LocalRank, local_rank
from odefit.structure.series.differentiated_system import DifferentiatedSystem, NoTaylorSeriesError
from tests.structure.models import TIMES, problem


def rank_of(model: Problem) -> LocalRank:
    return local_rank(DifferentiatedSystem(model, free_states=False))


def lost(rank: LocalRank) -> set[str]:
    return {n for n, d in zip(rank.names, rank.best.determined, strict=True) if not d}


def test_a_full_rank_is_a_proof() -> None:
    rank = rank_of(library.load("rational-crauste"))
    assert rank.proved
    assert rank.error == 0.0
    assert rank.best.rank == 18
    assert rank.best.orders == ((2, 3, 5, 4),)


def test_a_state_that_changes_no_output_is_found() -> None:
    rank = rank_of(library.load("rational-biohydrogenation"))
    assert lost(rank) == {"x7"}
    assert [n for n, e in zip(rank.names, rank.best.effective, strict=True) if not e] == ["x7"]
    assert 0 < rank.error < 1e-10


@pytest.mark.parametrize(
    ("initial", "expected"),
    [({}, {"b", "x"}), ({"x": 2.0}, set()), ({"x": "1/b"}, {"b"}), ({"x": "b"}, set())],
)
def test_known_initial_values_count(initial: dict[str, float | str], expected: set[str]) -> None:
    model = problem({"x": "-a*x"}, {"y": "b*x"}, ["a", "b"], initial)
    assert lost(rank_of(model)) == expected


def test_a_zero_initial_value_may_hide_a_parameter() -> None:
    equations = {"x": "-a*x + c*u", "u": "-b*u"}
    parameters = ["a", "b", "c"]
    hidden = problem(equations, {"y": "x"}, parameters, {"u": 0.0})
    assert lost(rank_of(hidden)) == {"b", "c"}
    assert lost(rank_of(problem(equations, {"y": "x"}, parameters, {"u": 1.0}))) == set()


def test_a_second_experiment_can_distinguish_parameters() -> None:
    model = Model(ode={"x": "-(a + d*b)*x"}, observables={"y": "x"}, constants={"d": 1.0})
    data = {"t": TIMES, "y": np.cos(TIMES)}
    first = Experiment("one", data)
    second = Experiment("two", data, constants={"d": 2.0})

    def of(*experiments: Experiment) -> Problem:
        return Problem(
            model, parameters={"a": {}, "b": {}}, initial={"x": 1.0}, experiments=experiments
        )

    assert lost(rank_of(of(first))) == {"a", "b"}
    assert lost(rank_of(of(first, second))) == set()


def test_observables_without_measurements_do_not_count() -> None:
    model = Model(ode={"x": "-a*x", "z": "-b*z"}, observables={"y": "x", "w": "z"})
    data = {"t": TIMES, "y": np.cos(TIMES)}
    given = Problem(model, data, {"a": {}, "b": {}}, {"x": {}, "z": {}})
    rank = rank_of(given)
    assert lost(rank) == {"b", "z"}
    assert not any(dict(zip(rank.names, rank.best.effective, strict=True))[n] for n in "bz")


def test_a_known_input_excites() -> None:
    equations = {"x": "-(a + b)*x + b*u"}
    assert lost(rank_of(problem(equations, {"y": "x"}, ["a", "b"], inputs=["u"]))) == set()


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 2, 3, 4))]
)
def test_the_findings_do_not_depend_on_the_seed(seed: int) -> None:
    rank = local_rank(
        DifferentiatedSystem(library.load("rational-biohydrogenation"), free_states=False), seed
    )
    assert (rank.best.rank, lost(rank)) == (9, {"x7"})


def test_algebraic_and_transcendental_ways_are_distinguished() -> None:
    model = problem({"x": "-x + a*exp(-b*(t + 1))"}, {"y": "x"}, ["a", "b"])
    best = rank_of(model).best
    names = rank_of(model).names
    assert dict(zip(names, best.determined, strict=True))["a"]
    assert not dict(zip(names, best.algebraic, strict=True))["a"]


def test_a_division_by_a_known_zero_is_reported() -> None:
    model = problem({"x": "a/x"}, {"y": "x"}, ["a"], {"x": 0.0})
    with pytest.raises(NoTaylorSeriesError, match="division by zero"):
        rank_of(model)
