"""The damped iteration: quadratic near solutions, falling levels, and an end in any case."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest

from odefit import ForwardMap, Model, Problem, library
from odefit.methods.shooting.constraints import parse_constraints, user_constraints
from odefit.methods.shooting.gauss_newton import (
    CRAWL_PART,
    CRAWL_STEPS,
    MIN_DAMPING,
    IterationEnd,
    iterate,
)
from odefit.methods.shooting.linear_problem import (
    GeneralisedInverse,
    LinearisedConstraints,
    UserConstraints,
)
from odefit.methods.shooting.node_evaluation import (
    shooting_problem,
    typical_sizes,
)
from odefit.methods.shooting.search import ShootingSearch
from odefit.methods.shooting.shooting_problem import Point, ShootingProblem
from odefit.methods.starts import sample
from odefit.simulation.trajectories.trajectory import Trajectory
from tests.methods.shooting.instances import (
    LORENZ,
    columns,
    exchange,
    linear_problem,
    linearised,
    lorenz,
    on_trajectory,
    shaken,
)
from tests.simulation.numerics import evaluated


def iterated(
    shooting: ShootingProblem,
    start: Point,
    *texts: str,
    tolerance: float = 1e-10,
    most: int = 60,
    stop: Callable[[], bool] = lambda: False,
) -> IterationEnd:
    constraints = parse_constraints(shooting.problem, texts)
    return iterate(
        shooting,
        start,
        lambda z: typical_sizes(shooting, z, start.coordinates, 0.01),
        lambda at: user_constraints(shooting, at, constraints),
        tolerance=tolerance,
        max_steps=most,
        stop=stop,
    )


EXACT = np.array([0.6, 0.4, 1.0, 0.0])
CUTS = [np.linspace(0.0, 9.0, 7)]


def test_without_residuals_the_steps_shrink_quadratically() -> None:
    problem = library.load("fitzhugh-nagumo")
    reference = library.reference("fitzhugh-nagumo")
    vector = problem.vector({**reference.parameters, **reference.initial})
    shooting, point = on_trajectory(problem, vector, [problem.conditions[0].times[:-1:4]])
    end = iterated(shooting, shaken(point, 0.2))
    assert end.converged
    levels = np.array([i.level for i in end.iterations])
    assert levels[0] > 0.1
    assert levels[-1] < 1e-9
    for level, following in pairwise(levels[1:]):
        assert following < max(2 * level**2, 1e-11)
    assert end.at is not None
    assert end.at.point.coordinates == pytest.approx(vector, rel=1e-9)


def test_with_residuals_they_shrink_by_a_factor_and_all_damping_ends() -> None:
    problem = exchange(0.02)
    shooting, point = on_trajectory(problem, EXACT, CUTS)
    end = iterated(shooting, shaken(point, 0.1))
    assert end.converged
    last = end.iterations[-5:-1]
    assert all(i.damping == 1.0 for i in last)
    assert end.iterations[-1].damping == 0.0
    assert end.iterations[-1].gap < 1e-9


def test_the_end_is_the_minimum_of_the_single_integration() -> None:
    """Its gradient by the unknowns alone vanishes there."""
    problem = exchange(0.02)
    shooting, point = on_trajectory(problem, EXACT, CUTS)
    end = iterated(shooting, shaken(point, 0.1))
    assert end.at is not None
    whole = evaluated(ForwardMap(problem), end.at.point.coordinates)
    gradient = whole.residuals @ whole.jacobian
    assert np.abs(gradient).max() < 1e-7 * np.linalg.norm(whole.jacobian)
    assert end.at.evaluation.objective == pytest.approx(whole.objective)


@pytest.mark.parametrize("size", [0.05, 0.2, 0.5])
def test_damping_grows_to_one_and_levels_of_the_step_taken_fall(size: float) -> None:
    """The level function of the old derivatives falls with every step that is taken (16)."""
    problem = library.load("fitzhugh-nagumo")
    reference = library.reference("fitzhugh-nagumo")
    vector = problem.vector({**reference.parameters, **reference.initial})
    times = problem.conditions[0].times
    shooting, point = on_trajectory(problem, vector, [times[:-1:4]])
    at = linearised(shooting, shaken(point, size))
    none = LinearisedConstraints.none(len(vector))
    end = iterated(shooting, at.point)
    assert all(MIN_DAMPING < i.damping <= 1.0 for i in end.iterations[:-1])
    for one, two in pairwise(end.iterations):
        before = linearised(shooting, one.point)
        linear = linear_problem(shooting, before)
        linear.unit = typical_sizes(shooting, one.point.coordinates, at.point.coordinates, 0.01)
        step = linear.step(before, UserConstraints(none, none))
        after = linear.correction(linearised(shooting, two.point), UserConstraints(none, none))
        assert linear.length(after) < linear.length(step)


def test_the_natural_level_does_not_change_with_combinations_of_residuals() -> None:
    """|A F| of the level function is the same step for any regular A: of equal weights here."""
    random = np.random.default_rng(0)
    E, R = random.normal(size=(3, 5)), random.normal(size=(8, 5))
    e, z = random.normal(size=3), random.normal(size=8)
    A = random.normal(size=(3, 3)) * [[1e6], [1.0], [1e-6]]
    Q = np.linalg.qr(random.normal(size=(8, 8)))[0]
    one = GeneralisedInverse(E, R).solve(e, z)
    other = GeneralisedInverse(A @ E, Q @ R * 1e3).solve(A @ e, Q @ z * 1e3)
    assert other == pytest.approx(one)


def test_other_units_of_data_and_states_take_the_same_steps() -> None:
    """x in thousands, and data with it: no level, no damping changes."""
    plain = exchange(0.02)
    scaled = Problem(
        Model(ode={"x": "-k1*x + k2*y", "y": "k1*x - k2*y"}),
        {k: v * (1.0 if k == "t" else 1e3) for k, v in columns(plain).items()},
        {"k1": {"lower": 0.0, "upper": 5.0}, "k2": {"lower": 0.0, "upper": 5.0}},
        {"x": {}, "y": {}},
    )
    ends = []
    for problem, size in ((plain, 1.0), (scaled, 1e3)):
        shooting, point = on_trajectory(problem, EXACT * [1, 1, size, size], CUTS)
        ends.append(iterated(shooting, shaken(point, 0.3)))
    one, other = ends
    assert len(one.iterations) == len(other.iterations)
    for a, b in zip(one.iterations[:-3], other.iterations, strict=False):
        assert a.damping == pytest.approx(b.damping, rel=1e-3)
        assert a.level == pytest.approx(b.level, rel=1e-3)


@pytest.mark.slow
def test_chaos_over_thirty_lyapunov_times_is_fitted_from_the_data() -> None:
    """Where no single integration knows where the trajectory is after the first third."""
    problem = lorenz(33.0, noise=0.5)
    vector = problem.vector({**LORENZ, "r": 27.0, "s": 9.0})
    node_times = [problem.conditions[0].times[:-1:2]]
    shooting = shooting_problem(ForwardMap(problem), node_times, [], vector)
    data = problem.data()
    nodes = np.column_stack([data[k][:-1:2] for k in "xyz"])
    end = iterated(shooting, Point(vector, nodes), tolerance=1e-8)
    assert end.converged
    assert len(end.iterations) < 20
    assert end.at is not None
    found = problem.vector({k: LORENZ[k] for k in problem.keys})
    assert end.at.point.coordinates[:3] == pytest.approx(found[:3], rel=0.02)
    assert end.iterations[-1].gap < 1e-9


# How it ends -------------------------------------------------------------------------------------


def test_gauss_newton_stops_after_the_largest_number_of_iterations() -> None:
    shooting, point = on_trajectory(exchange(), EXACT, CUTS)
    end = iterated(shooting, shaken(point, 0.3), most=2)
    assert not end.converged
    assert end.message == "stopped after 2 iterations"
    assert len(end.iterations) == 3


def test_the_iteration_stops_on_request() -> None:
    shooting, point = on_trajectory(exchange(), EXACT, CUTS)
    calls = iter([False, False, True])
    end = iterated(shooting, shaken(point, 0.3), stop=lambda: next(calls, True))
    assert not end.converged
    assert end.message == "the search was stopped"
    assert len(end.iterations) <= 3


@pytest.mark.parametrize(
    "texts", [("k1 = 1", "k1 = 2"), ("k1 + k2 = 1", "2*k1 + 2*k2 = 3"), ("1 = 2",)]
)
def test_conditions_that_contradict_each_other_end_it_at_once(texts: tuple[str, ...]) -> None:
    shooting, point = on_trajectory(exchange(), EXACT, CUTS)
    before = shooting.evaluations
    end = iterated(shooting, point, *texts)
    assert not end.converged
    assert end.message == "the equality constraints contradict each other"
    assert shooting.evaluations - before <= 2


def test_bounds_that_no_step_meets_end_it_at_once() -> None:
    shooting, point = on_trajectory(exchange(), EXACT, CUTS)
    end = iterated(shooting, point, "k1 + k2 = 20")
    assert not end.converged
    assert end.message == "no step satisfies bounds and inequalities"


@pytest.mark.parametrize("text", ["sqrt(k1 - 9) = 1", "1/(k1 - k1) >= 0", "log(y@0 - 50) = 0"])
def test_a_condition_without_a_value_at_the_start_ends_it(text: str) -> None:
    shooting, point = on_trajectory(exchange(), EXACT, CUTS)
    end = iterated(shooting, point, text)
    assert not end.converged
    assert end.message == "a constraint has no finite value at the start"


def test_a_condition_without_a_value_on_the_way_shortens_steps() -> None:
    """log(0.7 - k1) at k1 = 0.6: steps beyond 0.7 are cut until they have a value."""
    shooting, point = on_trajectory(exchange(), EXACT, CUTS)
    end = iterated(shooting, point, "log(0.7 - k1) = log(0.05)")
    assert end.converged, end.message
    assert end.at is not None
    assert end.at.point.coordinates[0] == pytest.approx(0.65)


def test_a_start_that_cannot_be_integrated_says_where_and_why() -> None:
    problem = Problem(
        Model(ode={"x": "k*x^2"}),
        {"t": np.linspace(0.0, 4.0, 9), "x": np.ones(9)},
        {"k": {}},
        {"x": 1.0},
    )
    node_times = [np.array([0.0, 1.0, 2.0])]
    shooting = shooting_problem(ForwardMap(problem), node_times, [], np.array([0.1]))
    end = iterated(shooting, Point(np.array([0.1]), np.array([[1.0], [50.0], [1.0]])))
    assert end.at is None
    assert not end.converged
    assert f'experiment "{problem.conditions[0].name}", t = 1.2' in end.message
    assert shooting.evaluations == 1


def test_steps_into_a_blow_up_are_halved_a_few_times_only() -> None:
    """x' = k x^2 with data that ask for a pole before the end of the interval."""
    times = np.linspace(0.0, 2.0, 9)
    problem = Problem(
        Model(ode={"x": "k*x^2"}),
        {"t": times, "x": 1.0 + 1e3 * times},
        {"k": {}},
        {"x": 1.0},
    )
    shooting = shooting_problem(ForwardMap(problem), [np.array([0.0])], [], np.array([0.3]))
    end = iterated(shooting, Point(np.array([0.3]), np.zeros((1, 1))))
    assert shooting.evaluations < 300
    if not end.converged:
        assert "cannot be integrated" in end.message or "lowers" in end.message


def test_undetermined_directions_are_counted_and_stay() -> None:
    """Only v = x is seen: the initial value of y, and its rate, have no say."""
    t = np.linspace(0.0, 4.0, 9)
    problem = Problem(
        Model(ode={"x": "-k*x", "y": "k*x - m*y"}),
        {"t": t, "x": np.exp(-0.5 * t)},
        {"k": {}, "m": {}},
        {"x": {}, "y": {}},
    )
    shooting, point = on_trajectory(problem, np.array([0.5, 0.8, 1.0, 0.3]), [t[:-1:2]])
    end = iterated(shooting, shaken(point, 0.1))
    assert end.converged
    assert all(i.undetermined == 2 for i in end.iterations)
    assert end.at is not None
    assert end.at.point.coordinates[[0, 2]] == pytest.approx([0.5, 1.0])


@pytest.mark.slow
def test_the_unstable_example_of_bock_is_solved_at_any_growth() -> None:
    """mu = 20 as published, and mu = 300: a factor of 1e130 from end to end."""
    from tests.methods.shooting.instances import bock

    for mu, count in ((20.0, 11), (60.0, 21), (300.0, 40)):
        problem = bock(mu)
        node_times = [problem.conditions[0].times[:-1][:: max(1, 40 // count)]]
        shooting = shooting_problem(ForwardMap(problem), node_times, [], np.array([1.0]))
        data = problem.data()
        places = np.searchsorted(data["t"], node_times[0])
        nodes = np.column_stack([data["x1"][places], data["x2"][places]])
        end = iterated(shooting, Point(np.array([1.0]), nodes), tolerance=1e-8)
        assert end.converged, (mu, end.message)
        assert end.at is not None
        assert end.at.point.coordinates == pytest.approx([np.pi], rel=1e-10)


@pytest.mark.slow
def test_negligible_steps_end_the_search() -> None:
    """The prey alone does not tell the scale of the predators: steps along it are cut short."""
    t = np.linspace(0.0, 80.0, 201)
    model = Model(ode={"x": "a*x - b*x*y", "y": "c*x*y - d*y"}, observables={"prey": "x"})
    unknown = {"lower": 1e-5, "upper": 10.0}
    given = dict.fromkeys("abcd", unknown), dict.fromkeys("xy", unknown)
    first = Problem(model, {"t": t, "prey": np.ones(201)}, *given)
    prey = ForwardMap(first).trajectory(np.array([0.4, 0.7, 0.9, 0.3, 0.2, 0.6]))
    assert isinstance(prey, Trajectory)
    noise = 0.003 * np.random.default_rng(0).normal(size=201)
    problem = Problem(model, {"t": t, "prey": prey.states[:, 0] + noise}, *given)
    given_up = 0
    for start in sample(problem, 0, 6, 0):
        shooting, values = ShootingSearch().with_data(ForwardMap(problem), start)
        begun = Point(shooting.scaling.coordinates(start), values)
        end = iterated(shooting, begun, most=30)
        dampings = [i.damping for i in end.iterations[:-1]]
        sums = [sum(dampings[k - CRAWL_STEPS : k]) for k in range(CRAWL_STEPS, len(dampings) + 1)]
        assert all(part >= CRAWL_PART for part in sums[:-1])
        if "hardly any" in end.message:
            given_up += 1
            assert sums[-1] < CRAWL_PART
    assert given_up
