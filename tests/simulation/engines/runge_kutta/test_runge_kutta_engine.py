"""The explicit engine against exact solutions, SciPy and the other engines."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import numpy.typing as npt
import pytest
from scipy.integrate import solve_ivp
from scipy.linalg import expm

from odefit import ForwardMap, Model, Problem, library
from odefit.problem.vector_field import SensitivityPattern, VectorField
from odefit.simulation.engines.engine import EngineFailure, SegmentSolution, Values
from odefit.simulation.engines.runge_kutta.coefficients import (
    ALL,
    COUPLING,
    DENSE,
    ERRORS,
    LAST,
    NODES,
)
from odefit.simulation.engines.runge_kutta.engine import RungeKuttaEngine
from odefit.simulation.engines.segments import Segment
from tests.simulation.numerics import differences, integrated

Array = npt.NDArray[np.float64]


def solution(found: SegmentSolution | EngineFailure) -> SegmentSolution:
    assert isinstance(found, SegmentSolution), found
    return found


def failure(found: SegmentSolution | EngineFailure) -> EngineFailure:
    assert isinstance(found, EngineFailure)
    return found


def segment(*times: float) -> Segment:
    return Segment(0.0, np.array(times), np.zeros(0), np.zeros((1, 0, 5)))


def springs(n: int) -> Problem:
    """A row of n masses and springs, of which the first is fixed: all stiffnesses are unknown."""
    ode: dict[str, str] = {}
    initial: dict[str, float] = {}
    for i in range(n):
        right = f" + k{i + 1}*(x{i + 1} - x{i})" if i < n - 1 else ""
        ode[f"x{i}"] = f"v{i}"
        ode[f"v{i}"] = f"-k{i}*(x{i}{f' - x{i - 1}' if i else ''}){right}"
        initial |= {f"x{i}": float(i == n - 1), f"v{i}": 0.0}
    data = {"t": [0.3, 1.0, 4.0, 10.0], "x0": [0.0, 0.0, 0.0, 0.0]}
    return Problem(Model(ode=ode), data, {f"k{i}": {} for i in range(n)}, initial, t0=0.0)


def springs_matrix(k: Array) -> Array:
    n = len(k)
    matrix = np.zeros((2 * n, 2 * n))
    for i in range(n):
        matrix[2 * i, 2 * i + 1] = 1.0
        matrix[2 * i + 1, 2 * i] -= k[i]
        if i:
            matrix[2 * i + 1, 2 * i - 2] += k[i]
            matrix[2 * i - 1, 2 * i - 2] -= k[i]
            matrix[2 * i - 1, 2 * i] += k[i]
    return matrix


@pytest.mark.slow
@pytest.mark.parametrize("n", [1, 2, 5, 60])
def test_states_and_sensitivities_of_a_row_of_springs_are_exact(n: int) -> None:
    """Sensitivities fill one tile, or several, to the last place and not."""
    k = np.random.default_rng(n).uniform(0.5, 4.0, n)
    problem = springs(n)
    found = integrated(ForwardMap(problem, "runge-kutta", 1e-11), k)
    start = np.zeros(2 * n)
    start[2 * n - 2] = 1.0
    matrix = springs_matrix(k)
    for t, row in zip(found.times, found.states, strict=True):
        assert np.allclose(row, expm(matrix * t) @ start, rtol=0, atol=1e-9)
    for j in {0, n // 2, n - 1}:
        by_rate = springs_matrix(np.eye(n)[j]) - springs_matrix(np.zeros(n))
        both = np.block([[matrix, np.zeros_like(matrix)], [by_rate, matrix]])
        for t, row in zip(found.times, found.sensitivities, strict=True):
            exact = (expm(both * t) @ np.concatenate([start, np.zeros(2 * n)]))[2 * n :]
            assert np.allclose(row[:, j], exact, rtol=0, atol=1e-8)


@pytest.mark.parametrize(
    "name",
    ["lotka-volterra-f", "crauste-f", "fitzhugh-nagumo-v", "rational-biohydrogenation", "gma"],
)
def test_other_engines_agree_on_states_and_sensitivities(name: str) -> None:
    problem, reference = library.load(name), library.reference(name)
    vector = problem.vector({**reference.parameters, **reference.initial})
    ours = integrated(ForwardMap(problem, "runge-kutta", 1e-11), vector)
    theirs = integrated(ForwardMap(problem, "bdf", 1e-12), vector)
    for found, expected in (
        (ours.states, theirs.states),
        (ours.sensitivities, theirs.sensitivities),
    ):
        scale = np.abs(expected).max(axis=0)
        scale = np.maximum(scale, 1e-6 * scale.max())
        assert (np.abs(found - expected) / np.where(scale > 0, scale, 1.0)).max() < 1e-9


def lorenz(times: list[float]) -> Problem:
    ode = {"x": "s*(y - x)", "y": "x*(r - z) - y", "z": "x*y - b*z"}
    data = {"t": times, "x": [0.0] * len(times)}
    initial = {"x": 1.0, "y": 1.0, "z": 20.0}
    return Problem(Model(ode=ode), data, {"s": {}, "r": {}, "b": {}}, initial, t0=0.0)


def test_a_chaotic_trajectory_agrees_with_scipy() -> None:
    """Errors grow by exp(0.9 t): a million times over 15 units of time."""

    def rhs(_: float, x: Array) -> list[float]:
        return [
            10 * (x[1] - x[0]),
            x[0] * (28 - x[2]) - x[1],
            x[0] * x[1] - 8 / 3 * x[2],
        ]

    times = [1.0, 5.0, 10.0, 15.0]
    expected = solve_ivp(
        rhs, (0.0, 15.0), [1.0, 1.0, 20.0], "DOP853", times, rtol=1e-13, atol=1e-13
    ).y.T
    vector = np.array([10.0, 28.0, 8 / 3])
    found = integrated(ForwardMap(lorenz(times), "runge-kutta", 1e-12), vector)
    assert np.allclose(found.states, expected, rtol=0, atol=1e-5)


def test_sensitivities_are_derivatives_of_the_states() -> None:
    forward = ForwardMap(lorenz([0.2, 0.8]), "runge-kutta", 1e-12)
    at = np.array([10.0, 28.0, 8 / 3])
    found = integrated(forward, at)
    by_difference = differences(lambda v: integrated(forward, v).states, at, 3e-4)
    scale = np.abs(by_difference * at).max(axis=(0, 2), keepdims=True)
    assert np.abs((found.sensitivities - by_difference) * at / scale).max() < 1e-6


def test_values_between_the_ends_of_steps_are_as_accurate_as_those_at_the_ends() -> None:
    """x = cos(t), at so many times that each is found from the coefficients of its step."""
    oscillator = Model(ode={"x": "-k*y", "y": "k*x"})
    times = np.linspace(0.01, 20.0, 2000)
    few = np.linspace(1.0, 20.0, 9)
    for wanted in (times, few):
        data = {"t": wanted, "x": np.zeros(len(wanted))}
        problem = Problem(oscillator, data, {"k": {}}, {"x": 1.0, "y": 0.0}, t0=0.0)
        found = integrated(ForwardMap(problem, "runge-kutta"), np.array([1.0]))
        assert np.allclose(found.states[:, 0], np.cos(wanted), rtol=0, atol=1e-8)
        assert np.allclose(
            found.sensitivities[:, 0, 0], -wanted * np.sin(wanted), rtol=0, atol=2e-7
        )


def test_errors_follow_the_tolerance() -> None:
    problem = lorenz([2.0])
    vector = np.array([10.0, 28.0, 8 / 3])
    exact = integrated(ForwardMap(problem, "runge-kutta", 1e-13), vector)
    for tolerance in (1e-5, 1e-7, 1e-9, 1e-11):
        found = integrated(ForwardMap(problem, "runge-kutta", tolerance), vector)
        error = np.abs(found.states - exact.states).max() / np.abs(exact.states).max()
        assert 1e-4 * tolerance < error < 100 * tolerance


def test_no_step_crosses_a_corner_of_an_input() -> None:
    """x' = u - k x with a staircase of 400 steps has a closed form."""
    k, count = 0.7, 400
    corners = np.linspace(0.0, 40.0, count + 1)[:-1]
    levels = np.random.default_rng(3).uniform(0.0, 1.0, count)
    wanted = [13.37, 40.0]
    data = {
        "t": np.append(corners, wanted),
        "u": np.append(levels, [np.nan, np.nan]),
        "x": np.append(np.full(count, np.nan), [0.0, 0.0]),
    }
    model = Model(ode={"x": "u - k*x"}, inputs={"u": "constant"})
    problem = Problem(model, data, {"k": {}}, {"x": 0.5}, t0=0.0)
    found = integrated(ForwardMap(problem, "runge-kutta"), np.array([k]))
    for time, row in zip(found.times, found.states, strict=True):
        x, t = 0.5, 0.0
        for start, level in zip(corners, levels, strict=True):
            if start >= time:
                break
            length = min(time, start + 0.1) - t
            x = level / k + (x - level / k) * np.exp(-k * length)
            t += length
        assert row[0] == pytest.approx(x, rel=1e-9)


def start_of(problem: Problem, vector: Array) -> tuple[VectorField, Values]:
    field = VectorField.of(problem.model, problem.conditions)
    states = np.array([1.0, 1.0, 20.0])
    n, p = len(states), len(field.scalars)
    return field, Values(states, vector, np.zeros((n, 0)), np.zeros((p, 0)), np.zeros(0))


STATES_ALONE = SensitivityPattern(0, frozenset())


def test_too_many_steps_are_a_failure_with_what_is_left() -> None:
    field, start = start_of(lorenz([1.0]), np.array([10.0, 28.0, 8 / 3]))
    engine = RungeKuttaEngine(field, STATES_ALONE, 1e-9)
    needed = solution(engine.integrate(segment(20.0), start, 10_000)).steps
    stopped = failure(engine.integrate(segment(20.0), start, needed // 2))
    assert stopped.out_of_steps
    assert stopped.steps == needed // 2
    assert needed / 8 < stopped.steps_ahead < 4 * needed


def test_integrations_of_stiff_equations_end_long_before_their_step_limit() -> None:
    """x' = -1e6 (x - cos(t)) needs some 3e5 steps a unit of time, however smooth it is."""
    problem = Problem(
        Model(ode={"x": "-k*(x - cos(t))", "y": "-y", "z": "-z"}),
        {"t": [10.0], "x": [0.0]},
        {"k": {}},
        {"x": 1.0, "y": 1.0, "z": 20.0},
        t0=0.0,
    )
    field, start = start_of(problem, np.array([1e6]))
    engine = RungeKuttaEngine(field, STATES_ALONE, 1e-9)
    stopped = failure(engine.integrate(segment(10.0), start, 100_000))
    assert stopped.out_of_steps
    assert stopped.steps < 500
    assert stopped.steps_ahead > 1e5


def test_an_undefined_right_hand_side_is_distinguished() -> None:
    field, start = start_of(lorenz([1.0]), np.array([np.nan, 28.0, 8 / 3]))
    engine = RungeKuttaEngine(field, STATES_ALONE, 1e-9)
    assert "not defined" in failure(engine.integrate(segment(1.0), start, 100)).reason


def test_a_solution_that_grows_without_bound_is_a_failure_close_to_its_pole() -> None:
    """x' = x^2 from 1 has its pole at t = 1."""
    problem = Problem(
        Model(ode={"x": "k*x^2"}), {"t": [2.0], "x": [1.0]}, {"k": {}}, {"x": 1.0}, t0=0.0
    )
    field = VectorField.of(problem.model, problem.conditions)
    start = Values(np.ones(1), np.ones(1), np.zeros((1, 0)), np.zeros((1, 0)), np.zeros(0))
    engine = RungeKuttaEngine(field, STATES_ALONE, 1e-9)
    assert failure(engine.integrate(segment(2.0), start, 10_000)).time == pytest.approx(1.0)


def test_threads_do_not_disturb_each_other() -> None:
    field, start = start_of(lorenz([1.0]), np.array([10.0, 28.0, 8 / 3]))
    engine = RungeKuttaEngine(field, STATES_ALONE, 1e-9)
    starts = [start._replace(scalars=start.scalars * (1 + 0.1 * i)) for i in range(8)]
    alone = [solution(engine.integrate(segment(1.0, 9.0), s, 10_000)).states for s in starts]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda s: engine.integrate(segment(1.0, 9.0), s, 10_000), starts))
    for one, other in zip(alone, together, strict=True):
        assert np.array_equal(one, solution(other).states)


def test_the_coefficients_fulfil_the_conditions_of_quadrature() -> None:
    """Weights of order 8, stages of order 1 and dense output of order 7 (Hairer et al., II.5)."""
    assert np.allclose(COUPLING.sum(axis=1), NODES[1:], rtol=0, atol=1e-14)
    for power in range(8):
        moment = COUPLING[LAST - 1] @ NODES**power
        assert moment == pytest.approx(1 / (power + 1), abs=1e-14)
    assert np.allclose(ERRORS.sum(axis=1), 0.0, atol=1e-13)
    assert np.allclose(DENSE.sum(axis=1), 0.0, atol=1e-11)
    assert COUPLING.shape == (ALL - 1, ALL)
