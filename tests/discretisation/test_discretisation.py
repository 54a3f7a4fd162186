"""The exact trajectory at all points: the equations hold there, and the objective is the same."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from odefit import Event, Experiment, ForwardMap, Model, Problem
from odefit.common.arrays import Array
from odefit.discretisation.discretisation import Discretisation
from odefit.discretisation.mesh import DataMesh, GivenMesh, Mesh, UniformMesh
from odefit.discretisation.schemes import (
    AdamsMoulton,
    Collocation,
    Euler,
    RungeKutta,
    Scheme,
    Simpson,
    Trapezoid,
)
from tests.methods.transcription.exact import discrete_solution, exact_values, reference_of
from tests.simulation.numerics import evaluated
from tests.simulation.zoo import NOISE, ZOO, Case

RADAU = Collocation(3)
CASES: dict[str, Callable[[], Case]] = ZOO | {f"noise: {k}": v for k, v in NOISE.items()}


def cost(forward: ForwardMap, vector: Array) -> float:
    """Squares, and twice the logarithms of standard deviations that depend on unknowns."""
    found = evaluated(forward, vector)
    return 2 * found.cost if forward.likelihood else found.objective


@pytest.mark.slow
@pytest.mark.parametrize("mesh", [UniformMesh(150), DataMesh(150)], ids=["uniform", "data"])
@pytest.mark.parametrize("name", CASES)
def test_exact_trajectories_satisfy_the_equations_and_have_the_objective_of_the_forward_map(
    name: str, mesh: Mesh
) -> None:
    problem, vector = CASES[name]()
    forward = ForwardMap(problem)
    d = Discretisation(problem, RADAU, mesh)
    values = exact_values(d, forward, vector)
    assert d.objective(values, vector) == pytest.approx(cost(forward, vector), rel=1e-7)
    assert np.abs(d.defects(values, vector)).max() < 5e-5 * max(1.0, np.abs(values).max())
    assert (d.lower <= values + 1e-14).all()
    assert (values - 1e-14 <= d.upper).all()


@pytest.mark.slow
@pytest.mark.parametrize("name", [n for n in CASES if n != "kinks"])
def test_discrete_solutions_on_a_fine_mesh_are_the_exact_trajectories(name: str) -> None:
    """So there are as many equations as variables at points, and they are the right ones."""
    problem, vector = CASES[name]()
    forward = ForwardMap(problem)
    d = Discretisation(problem, Collocation(4), DataMesh(60, least=20))
    exact = exact_values(d, forward, vector)
    found = discrete_solution(d, vector, exact)
    measured = np.concatenate(d.measured)
    assert found[measured] == pytest.approx(exact[measured], rel=1e-7, abs=1e-7)
    assert d.objective(found, vector) == pytest.approx(cost(forward, vector), rel=1e-6)


LIBRARY = ("alpha-pinene", "bbg", "crauste-f", "gma", "lotka-volterra-f", "mammillary-3-p")


@pytest.mark.slow
@pytest.mark.parametrize("name", LIBRARY)
def test_library_problems_have_the_objective_of_the_forward_map(name: str) -> None:
    """Beside the reference, where noise-free data leave more than rounding."""
    problem, vector = reference_of(name)
    vector = np.clip(1.02 * vector, problem.lower, problem.upper)
    forward = ForwardMap(problem)
    d = Discretisation(problem, RADAU, DataMesh(300))
    values = exact_values(d, forward, vector)
    assert d.objective(values, vector) == pytest.approx(cost(forward, vector), rel=1e-6)
    assert np.abs(d.defects(values, vector)).max() < 1e-5 * np.abs(values).max()


@pytest.mark.slow
def test_five_stiff_experiments_agree_on_a_mesh_graded_towards_the_start() -> None:
    problem, vector = reference_of("hiv-proteinase")
    forward = ForwardMap(problem)
    start = np.geomspace(1e-4, 20.0, 60)
    mesh = GivenMesh(
        {c.name: np.unique(np.append(start, c.times[c.times > 0])) for c in problem.conditions}
    )
    d = Discretisation(problem, Collocation(5), mesh)
    exact = exact_values(d, forward, vector)
    assert d.objective(exact, vector) == pytest.approx(cost(forward, vector), rel=1e-7)
    found = discrete_solution(d, vector, exact)
    assert d.objective(found, vector) == pytest.approx(cost(forward, vector), rel=1e-7)
    assert len(d.measured) == 5
    measured = np.concatenate(d.measured)
    error = np.abs(found[measured] - exact[measured]) / np.abs(exact).max(axis=0)
    assert error.max() < 1e-7


DEFECTS: list[tuple[Scheme, int]] = [
    (Euler(), 2),
    (Trapezoid(), 3),
    (AdamsMoulton(), 3),
    (AdamsMoulton("block"), 5),
    (Simpson(), 3),
    (Simpson("block"), 4),
    (RungeKutta(), 2),  # of the stages, which are not on the trajectory
    *((Collocation(k, kind), k + 1) for kind in ("radau", "legendre") for k in (1, 2, 3)),
]


@pytest.mark.parametrize(
    ("scheme", "order"), DEFECTS, ids=lambda v: getattr(v, "name", "") + getattr(v, "start", "")
)
@pytest.mark.parametrize("name", ["lotka-volterra-f", "alpha-pinene"])
def test_defects_of_the_exact_trajectory_fall_at_the_local_order(
    name: str, scheme: Scheme, order: int
) -> None:
    pytest.importorskip("heyoka")
    problem, vector = reference_of(name)
    forward = ForwardMap(problem)
    worst = []
    for steps in (400, 800):
        d = Discretisation(problem, scheme, DataMesh(steps))
        defects = d.defects(exact_values(d, forward, vector), vector)
        worst.append(np.abs(defects[d.rows.dynamic]).max())
    assert np.log2(worst[0] / worst[1]) == pytest.approx(order, abs=0.45)


# What is a variable, what is a row --------------------------------------------------------------


def test_a_standard_deviation_that_depends_on_no_unknown_adds_no_logarithm() -> None:
    problem = Problem(
        Model(ode={"x": "-k*x"}, constants={"c": 2.0}),
        {"t": [0.0, 1.0, 2.0], "x": [1.0, 0.6, 0.3]},
        {"k": {}},
        {"x": 1.0},
        noise={"x": {"sd": "0.1*c"}},
    )
    forward, vector = ForwardMap(problem), np.array([0.5])
    d = Discretisation(problem, RADAU, UniformMesh(10))
    values = exact_values(d, forward, vector)
    expected = 2 * evaluated(forward, vector).cost
    assert d.objective(values, vector) == pytest.approx(expected, rel=1e-9)


def test_algebraic_variables_that_are_linear_are_eliminated_and_others_kept() -> None:
    assert Discretisation(ZOO["linear algebra"]()[0], RADAU, UniformMesh(3)).variables == ("x",)
    kept = Discretisation(ZOO["nonlinear algebra"]()[0], RADAU, UniformMesh(3))
    assert kept.variables == ("x", "z")


def test_constants_that_events_switch_are_variables() -> None:
    d = Discretisation(ZOO["doses and switches"]()[0], RADAU, UniformMesh(9))
    assert d.variables == ("gut", "blood", "on")


def test_a_constant_that_only_another_experiment_switches_keeps_its_value() -> None:
    data = {"t": [0.0, 1.0, 2.0], "x": [0.0, 0.0, 0.0]}
    problem = Problem(
        Model(ode={"x": "k*rate"}, constants={"rate": 1.0}),
        parameters={"k": {}},
        initial={"x": 0.0},
        experiments=[
            Experiment("a", data, events=[Event((1.0,), {"rate": "5"})]),
            Experiment("b", data),
        ],
    )
    d = Discretisation(problem, Trapezoid(), UniformMesh(4))
    vector = np.array([1.0])
    found = d.predictions(discrete_solution(d, vector, np.zeros((d.points, 2))), vector)
    assert found[0]["x"] == pytest.approx([0, 1, 6])
    assert found[1]["x"] == pytest.approx([0, 1, 2])


def test_known_initial_values_are_the_only_bounds() -> None:
    d = Discretisation(ZOO["fixed values"]()[0], RADAU, UniformMesh(4))
    assert d.lower[0, 0] == d.upper[0, 0] == 1.0
    assert np.isinf(d.lower[1:]).all()
    assert np.isinf(d.upper[1:]).all()


@pytest.mark.parametrize("name", ZOO)
@pytest.mark.parametrize("scheme", [Trapezoid(), RungeKutta(), Simpson(), RADAU])
def test_there_are_as_many_equations_as_variables_at_points(name: str, scheme: Scheme) -> None:
    d = Discretisation(ZOO[name]()[0], scheme, UniformMesh(13))
    free = int((d.lower < d.upper).sum())
    assert len(d.defects(np.ones((d.points, len(d.variables))), d.problem.lower)) == free


def test_only_the_scheme_s_rows_of_states_are_dynamic() -> None:
    """One for a state and a step of the trapezoid, none for events, algebra and data."""
    for name, states in (("doses and switches", 2), ("nonlinear algebra", 1)):
        d = Discretisation(ZOO[name]()[0], Trapezoid(), UniformMesh(7))
        assert d.rows.dynamic.sum() == states * d.steps


def test_predictions_at_the_exact_trajectory_are_those_of_the_forward_map() -> None:
    problem, vector = ZOO["an input and the time"]()
    forward = ForwardMap(problem)
    d = Discretisation(problem, RADAU, UniformMesh(13))
    found = d.predictions(exact_values(d, forward, vector), vector)
    trajectory = forward.trajectory(vector)
    expected = forward.predictions(problem.conditions[0], vector, trajectory)  # type: ignore[arg-type]
    assert found[0]["y"] == pytest.approx(expected["y"].array(4), rel=1e-9)


def test_a_discretisation_says_its_scheme_and_its_steps() -> None:
    d = Discretisation(ZOO["doses and switches"]()[0], Trapezoid(), UniformMesh(9))
    assert d.described() == "trapezoid, M = 9"
