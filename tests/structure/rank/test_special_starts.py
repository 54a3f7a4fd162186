"""Ranks at given initial values: zeros, equilibria, symmetric states, and the time itself."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

import odefit
from odefit import Problem
from odefit.structure.rank.ranks import LocalRank, local_rank
from odefit.structure.rank.special_starts import reach_at_start
from odefit.structure.series.differentiated_system import DifferentiatedSystem
from tests.structure.models import problem


def ranks(model: Problem) -> LocalRank:
    return local_rank(DifferentiatedSystem(model, free_states=False))


def determined(found: LocalRank) -> set[str]:
    return {n for n, d in zip(found.names, found.best.determined, strict=True) if d}


def cascade(stages: int, power: int) -> Problem:
    """A cascade from rest, of which the last stage is measured."""
    ode = {"x1": "k1 - d1*x1"}
    for j in range(2, stages + 1):
        ode[f"x{j}"] = f"k{j}*x{j - 1}^{power} - d{j}*x{j}"
    names = [f"{c}{j}" for c in "kd" for j in range(1, stages + 1)]
    return problem(ode, {"y": f"x{stages}"}, names, dict.fromkeys(ode, 0.0))


@pytest.mark.parametrize(
    ("stages", "power", "least"),
    # The output begins with t^(1 + p + p^2 + ...).
    [
        *((3, 2, 7), (4, 2, 15), (3, 3, 13)),
        *(
            pytest.param(*case, marks=pytest.mark.slow)
            for case in ((4, 3, 40), (3, 4, 21), (3, 8, 73), (5, 2, 31))
        ),
    ],
)
def test_a_cascade_from_rest_determines_its_losses(stages: int, power: int, least: int) -> None:
    found = ranks(cascade(stages, power))
    assert determined(found) == {f"d{j}" for j in range(1, stages + 1)}
    assert found.final
    assert found.best.rank == stages + 1  # one combination of the k's
    assert found.reached > least
    assert 0 < found.error < 1e-15


def test_findings_on_a_cascade_from_rest() -> None:
    found = odefit.identifiability(cascade(4, 2), count=False)
    assert found.named("locally") == ("d1", "d2", "d3", "d4")
    assert found.named("in combination") == ("k1", "k2", "k3", "k4")
    assert found.combinations == ("k1^8*k2^4*k3^2*k4",)
    assert found.reached is None


@pytest.mark.parametrize(
    ("ode", "start", "known"),
    [
        ({"x": "k - d*x"}, {"x": "k/d"}, set()),
        ({"x": "k - d*x", "z": "x - c*z"}, {"x": "k/d", "z": 0.0}, {"c"}),
        ({"x": "k - d*x", "z": "x - c*z"}, {"x": 0.0, "z": 0.0}, {"k", "d", "c"}),
        ({"x": "k*(x - c)", "z": "d*sin(x - c)"}, {"x": "c", "z": 1.0}, set()),
        ({"x": "k*sin(d*x)", "z": "x - c*z"}, {"x": 0.0, "z": 1.0}, {"c"}),
        ({"x": "k*x^3 + d*x", "z": "1 - c*z"}, {"x": 0.0, "z": 0.0}, {"c"}),
        ({"x": "k*tanh(x)", "z": "c + d*(exp(x) - 1)"}, {"x": 0.0, "z": 0.0}, {"c"}),
    ],
)
def test_a_start_at_rest_determines_fewer_unknowns(
    ode: Mapping[str, str], start: Mapping[str, float | str], known: set[str]
) -> None:
    found = ranks(problem(ode, {"y": list(ode)[-1]}, ["k", "d", "c"], start))
    assert found.final
    assert determined(found) & {"k", "d", "c"} == known


@pytest.mark.parametrize(("last", "shown"), [(1.0, set()), (2.0, {"k"})])
def test_a_symmetric_ring_has_no_exchange(last: float, shown: set[str]) -> None:
    ode = {f"x{i}": f"k*(x{(i + 1) % 3} - x{i}) - b*x{i}" for i in range(3)}
    model = problem(ode, {"y": "x0"}, ["k", "b"], {"x0": 1.0, "x1": 1.0, "x2": last})
    found = ranks(model)
    assert found.final
    assert determined(found) == {"b"} | shown


@pytest.mark.parametrize(
    ("ode", "output", "known"),
    [
        ("1", "a*t + b*x", set()),  # x is the time, and a + b is seen
        ("1", "a*t^2 + b*x", {"a", "b"}),
        ("exp(t)", "a*exp(t) + b*(x + 1)", set()),
        ("cos(t)", "a*sin(t) + b*x", set()),
        ("2*cos(t)*sin(t)", "a*sin(t)^2 + b*x", set()),
        ("a*t^40", "x", {"a"}),
        ("a*(exp(t) - 1)^9 + b*t", "x", {"a", "b"}),
    ],
)
def test_the_time_is_that_of_the_start(ode: str, output: str, known: set[str]) -> None:
    found = ranks(problem({"x": ode}, {"y": output}, ["a", "b"], {"x": 0.0}))
    assert found.final
    assert determined(found) & {"a", "b"} == known


def test_functions_begin_at_their_exact_values() -> None:
    # With any other values of sin(x) and exp(x) than 0 and 1, both would show.
    ode = {"x": "k", "z": "a*(exp(x) - 1) - b*x"}
    model = problem(ode, {"y": "a*sin(z)"}, ["a", "b"], {"x": 0.0, "z": 0.0}, constants={"k": 1.0})
    assert determined(ranks(model)) == {"a", "b"}
    model = problem(ode, {"y": "z"}, ["a", "b"], {"x": 0.0, "z": 0.0}, constants={"k": 0.0})
    assert determined(ranks(model)) & {"a", "b"} == set()


@pytest.mark.slow
def test_insufficient_orders_are_reported_with_the_highest_one() -> None:
    # z = x^2 along the trajectory alone: no linear directions say so.
    model = problem(
        {"x": "1", "z": "2*x", "w": "-c*w"},
        {"y": "a*(z - x^2)^2 + w"},
        ["a", "c"],
        {"x": 0.0, "z": 0.0, "w": 1.0},
    )
    found = odefit.identifiability(model)
    assert found["c"].status == "globally"
    assert (found["a"].status, found["a"].identifiable) == ("undecided", None)
    assert found.reached is not None
    assert found.reached >= 100
    assert found.error == 0.0
    assert f"1 is not decided by the derivatives up to order {found.reached}" in found.sentence
    assert "probability" not in str(found)
    assert f"the derivatives up to order {found.reached} do not determine it" in str(found["a"])
    assert not found.unfinished


def test_initial_values_that_are_all_unknown_are_generic() -> None:
    model = problem({"x": "-a*x + z", "z": "-b*z"}, {"y": "x"}, ["a", "b", "c"])
    assert reach_at_start(DifferentiatedSystem(model, free_states=False)).generic
