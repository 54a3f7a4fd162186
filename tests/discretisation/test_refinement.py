"""How good a mesh is, what a finer one looks like, and solutions carried over to it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from odefit import Event, Experiment, InputError, Model, Problem
from odefit.common.arrays import Array
from odefit.discretisation.discretisation import Discretisation
from odefit.discretisation.mesh import GivenMesh, Mesh, UniformMesh
from odefit.discretisation.refinement import (
    MAX_SPLIT,
    AdaptiveMesh,
    interpolate_solution,
    refine_mesh,
    step_errors,
)
from odefit.discretisation.schemes import SCHEMES
from tests.methods.transcription.exact import discrete_solution

RATE = 1.3

Solved = tuple[Discretisation, Array, Array]


def decays(size: float = 1.0) -> Problem:
    """x' = -k x."""
    times = np.linspace(0.0, 2.0, 5)
    data = {"t": times, "x": np.full(5, size)}
    return Problem(Model(ode={"x": "-k*x"}), data, {"k": {}}, {"x": size})


def solved(problem: Problem, scheme: str, mesh: Mesh, k: float = RATE) -> Solved:
    """A discretisation, its own solution, and the unknowns."""
    d = Discretisation(problem, SCHEMES[scheme], mesh)
    vector = np.array([k])
    start = np.ones((d.points, len(d.variables)))
    return d, discrete_solution(d, vector, start), vector


def own_errors(d: Discretisation, values: Array) -> Array:
    """What each step of `decays` adds to the exact solution through its beginning, relative."""
    at = d.segments[0].first + d.segments[0].segment.relations.boundary
    x, t = values[at, 0], d.times[at]
    return np.asarray(np.abs(x[1:] - x[:-1] * np.exp(-RATE * np.diff(t))) / x.max())


@pytest.mark.parametrize("scheme", ["euler", "trapezoid", "simpson"])
def test_the_error_estimate_is_exact_for_short_steps(scheme: str) -> None:
    d, values, vector = solved(decays(), scheme, UniformMesh(40))
    (errors,) = step_errors(d, values, vector)
    assert errors.shape == (40,)
    assert errors == pytest.approx(own_errors(d, values), rel=0.05)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_estimate_is_never_below_the_true_error_of_a_step(scheme: str) -> None:
    for steps in (6, 24):
        d, values, vector = solved(decays(), scheme, UniformMesh(steps))
        (errors,) = step_errors(d, values, vector)
        assert np.all(errors >= own_errors(d, values))


@pytest.mark.parametrize("scheme", [n for n in SCHEMES if n not in ("adams-moulton", "simpson")])
def test_the_estimate_falls_at_the_order_by_which_steps_are_split(scheme: str) -> None:
    largest = []
    for steps in (16, 32):
        d, values, vector = solved(decays(), scheme, UniformMesh(steps))
        largest.append(step_errors(d, values, vector)[0].max())
    assert np.log2(largest[0] / largest[1]) == pytest.approx(SCHEMES[scheme].local_order, abs=0.2)


def test_the_estimate_does_not_depend_on_the_unit_of_a_state() -> None:
    found = []
    for size in (1.0, 1e-9):
        d, values, vector = solved(decays(size), "trapezoid", UniformMesh(8))
        found.append(step_errors(d, values, vector)[0])
    assert found[0] == pytest.approx(found[1], rel=1e-6)


def test_a_field_that_is_not_finite_is_an_infinite_error() -> None:
    times = np.linspace(0.0, 2.0, 5)
    problem = Problem(
        Model(ode={"x": "-k*sqrt(x)"}), {"t": times, "x": np.ones(5)}, {"k": {}}, {"x": 1.0}
    )
    d = Discretisation(problem, SCHEMES["trapezoid"], UniformMesh(4))
    (errors,) = step_errors(d, np.array([[1.0], [0.5], [0.2], [-0.1], [-0.2]]), np.array([0.5]))
    assert np.isfinite(errors[:2]).all()
    assert np.isposinf(errors[2:]).all()


def test_a_state_that_is_zero_does_not_count() -> None:
    """What a solver leaves of it is rounding, which no mesh makes better."""
    times = np.linspace(0.0, 2.0, 5)
    problem = Problem(
        Model(ode={"x": "-k*x", "z": "-k*z"}),
        {"t": times, "x": np.ones(5)},
        {"k": {}},
        {"x": 1.0, "z": 0.0},
    )
    d, values, vector = solved(problem, "radau", UniformMesh(16))
    values[:, 1] = 1e-20 * np.random.default_rng(1).normal(size=d.points)
    alone, only, _ = solved(decays(), "radau", UniformMesh(16))
    assert step_errors(d, values, vector)[0] == pytest.approx(step_errors(alone, only, vector)[0])


# Finer meshes -------------------------------------------------------------------------------------


def test_a_step_is_split_where_its_error_is_too_large_and_nowhere_else() -> None:
    """At local order 3, eight times the tolerance asks for two pieces, 27 times for three."""
    d = Discretisation(decays(), SCHEMES["trapezoid"], UniformMesh(4))
    errors = np.array([8.0, 1.0, 0.0, 26.9]) * 1e-3
    finer = refine_mesh(d, [errors], AdaptiveMesh(1e-3))
    assert finer is not None
    (times,) = finer.times.values()
    thirds = [1.5 + 0.5 / 3, 1.5 + 1.0 / 3]
    assert times == pytest.approx([0.0, 0.25, 0.5, 1.0, 1.5, *thirds, 2.0], abs=1e-15)


def test_old_points_stay_to_the_last_bit() -> None:
    d = Discretisation(decays(), SCHEMES["trapezoid"], UniformMesh(7))
    finer = refine_mesh(d, [np.geomspace(1e-6, 1.0, 7)], AdaptiveMesh(1e-4))
    assert finer is not None
    (times,) = finer.times.values()
    assert set(d.segments[0].segment.mesh) <= set(times)
    assert np.all(np.diff(times) > 0)


def test_a_step_is_split_into_no_more_than_a_few_pieces_at_once() -> None:
    d = Discretisation(decays(), SCHEMES["trapezoid"], UniformMesh(2))
    finer = refine_mesh(d, [np.array([np.inf, 1e-9])], AdaptiveMesh(1e-4))
    assert finer is not None
    (times,) = finer.times.values()
    assert len(times) == MAX_SPLIT + 2


def test_a_mesh_with_too_many_steps_is_refused() -> None:
    d = Discretisation(decays(), SCHEMES["trapezoid"], UniformMesh(4))
    errors = [np.full(4, 8e-3)]
    assert refine_mesh(d, errors, AdaptiveMesh(1e-3, most=8)) is not None
    assert refine_mesh(d, errors, AdaptiveMesh(1e-3, most=7)) is None


def dosed() -> Problem:
    """Two experiments, in the second a dose at t = 1 and another at the very end."""
    events = [Event((1.0,), {"x": "x + 1"}), Event((2.0,), {"x": 0})]
    data = {"t": [0.5, 2.0], "x": [1.0, 1.0]}
    return Problem(
        Model(ode={"x": "-k*x"}),
        parameters={"k": {}},
        initial={"x": 1.0},
        experiments=[Experiment("a", data, 0.0), Experiment("b", data, 0.0, events=events)],
    )


def test_experiments_and_segments_are_refined_separately() -> None:
    d = Discretisation(dosed(), SCHEMES["trapezoid"], UniformMesh(4))
    errors = [np.zeros(len(p.segment.mesh) - 1) for p in d.segments]
    after = next(k for k, p in enumerate(d.segments) if p.segment.mesh[0] == 1.0)
    errors[after][0] = 8e-3
    finer = refine_mesh(d, errors, AdaptiveMesh(1e-3))
    assert finer is not None
    assert finer.times["a"] == pytest.approx([0, 0.5, 1, 1.5, 2])
    assert finer.times["b"] == pytest.approx([0, 0.5, 1, 1.25, 1.5, 2])


def test_the_error_is_estimated_on_both_sides_of_an_event() -> None:
    """From 1 to exp(-k), and from exp(-k) + 1: the error of a step grows as the state does."""
    d, values, vector = solved(dosed(), "trapezoid", UniformMesh(40))
    errors = step_errors(d, values, vector)
    assert [len(e) for e in errors] == [40, 20, 20]
    _, before, after = errors
    assert after == pytest.approx(before * (np.exp(-RATE) + 1.0), rel=1e-2)


# Carried over -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("scheme", "degree"), [("trapezoid", 2), ("simpson", 2), ("radau", 3)])
def test_a_polynomial_is_carried_over_exactly(scheme: str, degree: int) -> None:
    """Between mesh points as well, where some of the data are."""
    times = np.linspace(0.0, 2.0, 8)
    problem = Problem(
        Model(ode={"x": f"{degree}*k*t^{degree - 1}"}),
        {"t": times, "x": times**degree},
        {"k": {}},
        {"x": 0.0},
    )
    coarse = Discretisation(problem, SCHEMES[scheme], UniformMesh(5))
    fine = Discretisation(problem, SCHEMES[scheme], GivenMesh({"data": np.linspace(0, 2, 24)}))
    assert coarse.interpolated
    assert fine.interpolated
    values = coarse.times[:, None] ** degree
    found = interpolate_solution(coarse, values, np.array([1.0]), fine)
    assert found[:, 0] == pytest.approx(fine.times**degree, abs=1e-13)


def test_a_jump_is_carried_over_as_a_jump() -> None:
    problem = dosed()
    d, values, vector = solved(problem, "radau", UniformMesh(8))
    finer = refine_mesh(
        d, [np.full(len(p.segment.mesh) - 1, 1e-3) for p in d.segments], AdaptiveMesh(1e-4)
    )
    assert finer is not None
    target, own, _ = solved(problem, "radau", finer)
    assert target.steps > d.steps
    assert interpolate_solution(d, values, vector, target) == pytest.approx(own, abs=1e-4)


def test_algebraic_variables_are_straight_lines_between_mesh_points() -> None:
    problem = Problem(
        Model(ode={"x": "k"}, algebraic={"z": "z + a*z^3 - x"}, observables={"y": "z"}),
        {"t": [0.0, 1.0, 2.0], "y": [1.0, 1.0, 1.0]},
        {"k": {}, "a": {}},
        {"x": 0.0},
    )
    coarse = Discretisation(problem, SCHEMES["trapezoid"], UniformMesh(2))
    fine = Discretisation(problem, SCHEMES["trapezoid"], UniformMesh(4))
    values = np.column_stack([coarse.times, [0.0, 1.0, 3.0]])
    found = interpolate_solution(coarse, values, np.array([1.0, 1.0]), fine)
    assert found[:, 1].tolist() == [0.0, 0.5, 1.0, 2.0, 3.0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tolerance": 0.0}, "AdaptiveMesh, tolerance: expected a number"),
        ({"tolerance": np.nan}, "AdaptiveMesh, tolerance: expected a number"),
        ({"steps": -1}, "AdaptiveMesh, steps: expected a whole number of at least 0, got -1"),
        ({"most": 0}, "AdaptiveMesh, most: expected a whole number of at least 1, got 0"),
        ({"rounds": 1.5}, "AdaptiveMesh, rounds: expected a whole number"),
    ],
)
def test_meaningless_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        AdaptiveMesh(**options)
