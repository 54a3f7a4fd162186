"""Tests of the algebraic method as a route."""

from pathlib import Path

import pytest

import odefit
from odefit import Control, Model, Problem
from odefit.methods.automatic import algebraic_route
from odefit.methods.automatic.algebraic_route import MAX_UNKNOWNS, AlgebraicRoute
from odefit.methods.running.checkpoint import Checkpoint


def test_ends_of_the_algebraic_route_are_numbered_after_existing_ones() -> None:
    route = AlgebraicRoute(odefit.library.load("harmonic"))
    ends = route.solve(Control(seed=1, jobs=1), 7)
    assert route.done
    assert [s.index for s in ends] == list(range(7, 7 + len(ends)))
    best = min(ends, key=lambda s: s.cost)
    assert best.objective < 1e-12
    assert route.completeness_of(best) is not None
    assert route.completeness_of(None) is None


def test_a_model_that_the_route_cannot_handle_has_a_reason() -> None:
    model = Model(ode={"x": "-k*abs(x)"})
    problem = Problem(model, {"t": [0.0, 1.0, 2.0], "x": [1.0, 0.6, 0.4]}, {"k": {}}, {"x": 1.0})
    route = AlgebraicRoute(problem)
    assert route.solve(Control(), 0) == []
    assert route.message.startswith("not taken: ")


def test_many_unknowns_are_left_out() -> None:
    problem = odefit.library.load("crauste-f")
    assert len(problem.unknowns) > MAX_UNKNOWNS
    route = AlgebraicRoute(problem)
    assert route.solve(Control(), 0) == []
    assert route.done
    assert "so many unknowns" in route.message


def test_an_attempt_that_reached_its_work_limit_is_repeated_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(algebraic_route, "ATTEMPTS", ((16, 1e3), (40, 1e9)))
    route = AlgebraicRoute(odefit.library.load("harmonic"))
    assert not route.is_due(15, 1)
    assert route.is_due(16, 8)
    assert not route.is_due(16, 9)
    first = route.solve(Control(seed=1, jobs=1), 16)
    assert not route.done
    assert not route.is_due(39, 1)
    assert route.is_due(40, 1)
    second = route.solve(Control(seed=1, jobs=1), 40)
    assert route.done
    assert not route.is_due(500, 1)
    assert route.starts == [*first, *second]
    assert min(s.objective for s in second) < 1e-12


def test_each_attempt_is_stored(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(algebraic_route, "ATTEMPTS", ((16, 1e3), (40, 1e9)))
    problem = odefit.library.load("harmonic")
    ends = []
    with Checkpoint(tmp_path / "run.sqlite", "starts", "problem") as file:
        for _ in range(2):
            route = AlgebraicRoute(problem)
            attempts = [route.solve(Control(), first, file) for first in (16, 40)]
            ends += [[s.vector.tolist() for s in one] for one in attempts]
            assert route.done
    assert ends[:2] == ends[2:]
