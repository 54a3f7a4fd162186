"""Tests of the algebraic method as a route."""

import odefit
from odefit import Control, Model, Problem
from odefit.methods.automatic.algebraic_route import MAX_UNKNOWNS, AlgebraicRoute


def test_its_ends_are_numbered_after_those_that_are_there() -> None:
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
