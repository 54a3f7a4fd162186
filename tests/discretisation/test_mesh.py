"""Where a problem is discretised: grids, data times, events, corners of inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from odefit import Event, Experiment, InputError, Model, Problem
from odefit.common.arrays import Array
from odefit.discretisation.discretisation import Discretisation
from odefit.discretisation.mesh import DataMesh, GivenMesh, Mesh, UniformMesh
from odefit.discretisation.schemes import (
    AdamsMoulton,
    Collocation,
    Euler,
    Scheme,
    Simpson,
    Trapezoid,
)
from odefit.problem.model import Interpolation
from tests.methods.transcription.exact import discrete_solution

NAN = float("nan")
FINE = UniformMesh(60)


def decays(
    times: Sequence[float], events: Sequence[Event] = (), t0: float | None = 0.0, **more: Any
) -> Problem:
    """x' = -k x, x(t0) = 2."""
    return Problem(
        more.pop("model", Model(ode={"x": "-k*x"})),
        parameters={"k": {}},
        initial={"x": 2.0},
        experiments=[
            Experiment("run", {"t": times, "x": np.ones(len(times)), **more}, t0, events=events)
        ],
    )


def predicted(problem: Problem, mesh: Mesh, scheme: Scheme, k: float = 0.5) -> Array:
    """The states x that the discretised equations have at the data times of all conditions."""
    d = Discretisation(problem, scheme, mesh)
    vector = np.array([k])
    start = np.ones((d.points, len(d.variables)))
    values = discrete_solution(d, vector, start)
    return np.concatenate([found["x"] for found in d.predictions(values, vector)])


# Points -----------------------------------------------------------------------------------------


def test_a_uniform_mesh_has_equal_steps_to_the_last_datum() -> None:
    d = Discretisation(decays([1.0, 2.0]), Trapezoid(), UniformMesh(8))
    assert d.times == pytest.approx(np.arange(9) / 4, abs=1e-15)
    assert d.steps == 8


def test_a_uniform_mesh_may_extend_beyond_the_last_datum() -> None:
    d = Discretisation(decays([1.0, 2.0]), Trapezoid(), UniformMesh(6, final=3.0))
    assert d.times == pytest.approx(np.arange(7) / 2, abs=1e-15)


def test_a_mesh_that_ends_before_the_last_datum_is_refused() -> None:
    with pytest.raises(InputError, match=r'ends at t = 1\.5, .* "run" at t = 2'):
        Discretisation(decays([1.0, 2.0]), Trapezoid(), UniformMesh(8, final=1.5))


@pytest.mark.parametrize("steps", [0, -3, 1.5, True, float("nan"), "a"])
def test_an_invalid_number_of_steps_is_refused(steps: Any) -> None:
    with pytest.raises(InputError, match="UniformMesh, steps: expected a whole number"):
        UniformMesh(steps)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: UniformMesh(10, final=float("nan")),
            "UniformMesh, final: expected a finite number",
        ),
        (lambda: DataMesh(-3), "DataMesh, steps: expected a whole number of at least 0, got -3"),
        (lambda: DataMesh(3, least=0), "DataMesh, least: expected a whole number of at least 1"),
        (lambda: GivenMesh({"run": np.array([0.0, 2.0, 1.0])}), 'GivenMesh, "run": expected times'),
        (lambda: GivenMesh({"run": np.array([0.0, np.nan])}), 'GivenMesh, "run": expected times'),
    ],
)
def test_a_mesh_that_makes_no_sense_is_refused(make: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make()


def test_an_experiment_without_a_given_mesh_is_named() -> None:
    with pytest.raises(InputError, match=r'no times for experiment "run" .has "ran"'):
        Discretisation(decays([1.0]), Trapezoid(), GivenMesh({"ran": np.array([0.0, 1.0])}))


def test_a_data_mesh_has_all_data_times_and_shares_its_steps_by_length() -> None:
    problem = decays([1.0, 1.5, 4.0])
    assert Discretisation(problem, Trapezoid(), DataMesh()).times.tolist() == [0, 1, 1.5, 4]
    d = Discretisation(problem, Trapezoid(), DataMesh(8))
    assert d.times == pytest.approx(np.arange(9) / 2)
    d = Discretisation(problem, Trapezoid(), DataMesh(least=2))
    assert d.times == pytest.approx([0, 0.5, 1, 1.25, 1.5, 2.75, 4])


def test_a_given_mesh_is_taken_as_it_is_with_the_events() -> None:
    problem = decays([1.0, 3.0], [Event((2.0,), {"x": "x + 1"})])
    d = Discretisation(problem, Trapezoid(), GivenMesh({"run": np.array([0.0, 0.3, 1.1, 3.5])}))
    assert d.times.tolist() == [0, 0.3, 1.1, 2, 1.0, 2, 3.5, 3.0]


# Data times -------------------------------------------------------------------------------------


def test_a_datum_on_the_grid_but_for_rounding_is_at_the_mesh_point() -> None:
    """0.1 + 0.2 and its like are no mesh point of linspace."""
    times = np.cumsum(np.full(30, 0.1))
    assert (np.linspace(0, times[-1], 31)[1:] != times).any()
    d = Discretisation(decays(times.tolist()), Trapezoid(), UniformMesh(30))
    assert d.points == 31
    assert d.measured[0].tolist() == list(range(1, 31))


def test_a_datum_beside_a_mesh_point_is_not_moved_there() -> None:
    d = Discretisation(decays([0.5 + 1e-6, 1.0]), Trapezoid(), UniformMesh(2))
    assert d.points == 4


@pytest.mark.parametrize(
    ("scheme", "order"),
    [(Euler(), 1), (Trapezoid(), 2), (AdamsMoulton("block"), 4), (Collocation(3), 4)],
)
def test_data_between_mesh_points_converge_to_the_true_values(scheme: Scheme, order: int) -> None:
    times = [0.0, 0.123, 0.777, 1.4142, 2.0]
    errors = []
    for steps in (16, 32, 64):
        found = predicted(decays(times), UniformMesh(steps), scheme)
        errors.append(np.abs(found - 2 * np.exp(-0.5 * np.array(times))).max())
    assert np.log2(errors[0] / errors[2]) / 2 == pytest.approx(order, abs=0.4)


def test_a_datum_at_t0_is_the_initial_value() -> None:
    assert predicted(decays([0.0, 1.0]), FINE, Trapezoid())[0] == 2.0


def test_data_at_t0_alone_need_no_integration() -> None:
    d = Discretisation(decays([0.0]), AdamsMoulton(), FINE)
    assert (d.points, d.steps) == (1, 0)
    assert predicted(decays([0.0]), FINE, Simpson()).tolist() == [2.0]


def test_a_time_scale_far_from_one_makes_no_difference() -> None:
    for unit in (1e-12, 1e12):
        times = unit * np.array([0.1, 0.2, 0.3, 1.0])
        d = Discretisation(decays(times.tolist()), Trapezoid(), UniformMesh(10))
        assert d.points == 11


# Steps ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("scheme", "least"), [(AdamsMoulton(), 3), (Simpson(), 2)])
def test_a_mesh_too_coarse_for_the_scheme_is_refused(scheme: Scheme, least: int) -> None:
    with pytest.raises(InputError, match=f'needs at least {least} steps, "run" has {least - 1}'):
        Discretisation(decays([1.0]), scheme, UniformMesh(least - 1))
    assert Discretisation(decays([1.0]), scheme, UniformMesh(least)).steps == least


def test_a_short_stretch_between_events_is_made_by_the_start_up_alone() -> None:
    problem = decays([2.0], [Event((1.99,), {"x": "x + 1"})])
    x = predicted(problem, UniformMesh(200, final=2.0), AdamsMoulton())
    assert x == pytest.approx((2 * np.exp(-0.995) + 1) * np.exp(-0.005), rel=1e-7)


# Events -----------------------------------------------------------------------------------------

DOSE = Event((1.0,), {"x": "x + 3"})


def compartment(times: Array, doses: Sequence[float], k: float = 0.5) -> Array:
    """Exact; a measurement at the time of a dose sees the value before it."""
    x = 2 * np.exp(-k * times)
    for at in doses:
        x = x + np.where(times > at, 3 * np.exp(-k * (times - at)), 0)
    return np.asarray(x)


@pytest.mark.slow
@pytest.mark.parametrize("mesh", [UniformMesh(37), DataMesh(20), UniformMesh(20, final=5.0)])
@pytest.mark.parametrize(
    "doses", [[0.0], [1.0], [0.7], [0.0, 0.25, 1.0, 1.5], [2.0], [3.0], [0.999999, 1.0]]
)
def test_a_measurement_at_an_event_sees_the_values_before_it(
    mesh: Mesh, doses: list[float]
) -> None:
    times = np.array([0.0, 0.5, 1.0, 2.0])
    problem = decays(times.tolist(), [Event(tuple(doses), {"x": "x + 3"})])
    found = predicted(problem, mesh, Collocation(3))
    assert found == pytest.approx(compartment(times, doses), rel=1e-7)


def test_an_event_is_a_mesh_point_twice_before_and_after() -> None:
    d = Discretisation(decays([2.0], [DOSE]), Trapezoid(), UniformMesh(5))
    assert d.times == pytest.approx([0, 0.4, 0.8, 1, 1, 1.2, 1.6, 2])
    assert d.steps == 6


@pytest.mark.parametrize("time", [0.0, 1.0])
def test_events_at_one_time_happen_in_the_order_given(time: float) -> None:
    add, double = Event((time,), {"x": "x + 3"}), Event((time,), {"x": "2*x"})
    model = Model(ode={"x": "0*k"})
    for events, expected in (([add, double], 10), ([double, add], 7)):
        problem = decays([0.0, 1.0, 2.0], events, model=model)
        found = predicted(problem, UniformMesh(4), Trapezoid())
        assert found == pytest.approx([2, expected if time == 0 else 2, expected])


def test_experiments_have_meshes_of_their_own() -> None:
    data = {"t": [0.5, 1.0], "x": [1.0, 1.0]}
    problem = Problem(
        Model(ode={"x": "-k*x"}),
        parameters={"k": {}},
        initial={"x": 2.0},
        experiments=[
            Experiment("a", data, t0=0.0, events=[Event((0.5,), {"x": "0"})]),
            Experiment("b", data, t0=-1.0, initial={"x": 5.0}),
            Experiment("c", {"t": [0.0], "x": [1.0]}, t0=0.0),
        ],
    )
    found = predicted(problem, UniformMesh(40), Collocation(2))
    after = 5 * np.exp(-0.5 * np.array([1.5, 2.0]))
    assert found == pytest.approx([2 * np.exp(-0.25), 0, *after, 2], rel=1e-6)


# Inputs -----------------------------------------------------------------------------------------


def driven(
    interpolation: Interpolation, knots: Mapping[float, float], times: Sequence[float]
) -> Problem:
    """x' = k u, so that x is 2 + k times the integral of u."""
    every = sorted({*knots, *times})
    model = Model(ode={"x": "k*u"}, inputs={"u": interpolation})
    return decays(every, model=model, u=[knots.get(t, NAN) for t in every])


KNOTS = {0.3: 1.0, 0.9: 4.0, 1.1: -2.0, 2.0: 1.0}
TIMES = np.array([0.2, 0.3, 0.6, 0.9, 1.0, 1.1, 1.7, 2.0, 2.5])


def at_times(problem: Problem, scheme: Scheme, steps: int) -> Array:
    return predicted(problem, UniformMesh(steps), scheme, k=1.0)


def test_an_input_held_constant_is_integrated_exactly_by_any_scheme() -> None:
    """Steps of 0.25 have none of the jumps; held from the left."""
    exact = [2.2, 2.3, 2.6, 2.9, 3.3, 3.7, 2.5, 1.9, 2.4]
    problem = driven("constant", KNOTS, TIMES.tolist())
    for scheme in (Euler(), Trapezoid(), Collocation(2)):
        assert at_times(problem, scheme, 10) == pytest.approx(exact, rel=1e-12)


def test_a_linear_input_is_integrated_exactly_by_schemes_of_second_order() -> None:
    t = np.linspace(0, 2.5, 25001)
    u = np.interp(t, list(KNOTS), list(KNOTS.values()))
    area = np.append(0, np.cumsum((u[1:] + u[:-1]) / 2 * np.diff(t)))
    exact = 2 + area[np.searchsorted(t, TIMES - 1e-9)]
    problem = driven("linear", KNOTS, TIMES.tolist())
    for scheme in (Trapezoid(), Collocation(2)):
        assert at_times(problem, scheme, 10) == pytest.approx(exact, rel=1e-10)


def test_a_cubic_input_is_the_not_a_knot_spline_and_constant_beyond_its_knots() -> None:
    """The mesh has its ends, where it has corners, but not its inner knots."""
    from scipy.interpolate import CubicSpline

    x, y = list(KNOTS), list(KNOTS.values())
    spline = CubicSpline(x, y)
    inside = np.clip(TIMES, x[0], x[-1])
    area = np.array([spline.integrate(x[0], t) for t in inside])
    exact = 2 + area + y[0] * np.minimum(TIMES, x[0]) + y[-1] * np.maximum(TIMES - x[-1], 0)
    problem = driven("cubic", KNOTS, TIMES.tolist())
    # One cubic goes through all four knots: its integral is of fourth degree.
    assert at_times(problem, Collocation(4), 10) == pytest.approx(exact, rel=1e-10)


def test_an_input_has_a_value_at_an_event_that_needs_it() -> None:
    """z + z^3 = x + u at t0, before and after an event."""
    problem = Problem(
        Model(
            ode={"x": "0*z*k"},
            algebraic={"z": "z + z^3 - x - u"},
            observables={"y": "z"},
            inputs={"u": "linear"},
        ),
        parameters={"k": {}},
        initial={"x": 1.0, "z": 1.0},
        experiments=[
            Experiment(
                "run",
                {"t": [0.0, 1.0], "y": [1.0, 1.0], "u": [1.0, 3.0]},
                events=[Event((0.0, 0.0), {"x": "x + 3"})],
            )
        ],
    )
    d = Discretisation(problem, Trapezoid(), UniformMesh(2))
    values = discrete_solution(d, np.array([1.0]), np.ones((d.points, 2)))
    z = values[:, d.variables.index("z")]
    assert z + z**3 == pytest.approx([2, 5, 8, 9, 10])
