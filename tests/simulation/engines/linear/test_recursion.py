"""Linear equations step by step, beside exponentials of block matrices and other engines."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from scipy.linalg import expm

from odefit import Event, Experiment, ForwardMap, Model, Problem
from odefit.problem.vector_field import SensitivityPattern, VectorField
from odefit.simulation.engines.engine import Integration, Values
from odefit.simulation.engines.engine_choice import UNDECIDED
from odefit.simulation.engines.linear.equations import linear_equations
from odefit.simulation.engines.linear.recursion import Recursion
from odefit.simulation.engines.segments import Segment
from tests.simulation.numerics import Array, by_unknown, differences, evaluated, integrated

FREELY = 1e12  # more time than a recursion takes


def driven(
    times: Array,
    u: Array,
    interpolation: str = "linear",
    ode: dict[str, str] | None = None,
    engine: Any = "auto",
    **more: Any,
) -> ForwardMap:
    """Return a spring that an input drives through an unknown gain, measured in every row."""
    ode = ode or {"x": "v", "v": "g*u - k*x - c*v + f"}
    model = Model(ode=ode, inputs={"u": interpolation})
    columns = {"t": times, "u": u, "x": np.zeros(len(times))}
    unknowns: dict[str, dict[str, float]] = {"k": {}, "c": {}, "g": {}, "f": {}}
    parameters = {n: v for n, v in unknowns.items() if n in model.parameters}
    initial: dict[str, Any] = {"x": {}, **{n: 0.3 for n in ode if n != "x"}}
    run = Experiment("run", columns, **more)
    return ForwardMap(
        Problem(model, parameters=parameters, initial=initial, experiments=[run]), engine
    )


def signal(times: Array) -> Array:
    return np.round(np.sin(0.9 * times) + 0.4 * np.cos(4.1 * times + 1.0), 3)


EVEN = np.linspace(0.0, 12.0, 121)
UNEVEN = np.sort(np.random.default_rng(3).uniform(0.0, 12.0, 121))
HERE = np.array([4.0, 0.35, 1.6, 0.5, 0.2])


@pytest.mark.slow
@pytest.mark.parametrize("interpolation", ["constant", "linear", "cubic"])
@pytest.mark.parametrize("times", [EVEN, UNEVEN])
def test_knots_by_the_hundred_agree_with_the_taylor_method(
    interpolation: str, times: Array
) -> None:
    found = integrated(driven(times, signal(times), interpolation), HERE)
    taylor = integrated(driven(times, signal(times), interpolation, engine="heyoka"), HERE)
    assert found.choice == UNDECIDED
    assert not np.array_equal(found.states, taylor.states)
    assert found.states == pytest.approx(taylor.states, rel=1e-11, abs=1e-11)
    here, there = by_unknown(found, 5), by_unknown(taylor, 5)
    assert here == pytest.approx(there, rel=1e-10, abs=1e-10)


@pytest.mark.parametrize("ode", [None, {"x": "g*u - (k + c*u)*x", "y": "u*x - k*y"}])
def test_sensitivities_are_those_of_finite_differences(ode: dict[str, str] | None) -> None:
    forward = driven(EVEN, signal(EVEN), ode=ode)
    at = HERE if ode is None else np.array([0.8, 0.3, 1.6, 0.5])

    def states(vector: Array) -> Array:
        return integrated(forward, vector).states

    found = by_unknown(integrated(forward, at), len(at))
    assert found == pytest.approx(differences(states, at), rel=1e-8, abs=1e-8)


def test_an_input_may_multiply_a_state() -> None:
    ode = {"x": "g*u - (k + c*u)*x", "y": "u*x - k*y"}
    at = np.array([0.8, 0.3, 1.6, 0.5])
    for interpolation in ("constant", "linear", "cubic"):
        found = integrated(driven(EVEN, signal(EVEN), interpolation, ode), at)
        taylor = integrated(driven(EVEN, signal(EVEN), interpolation, ode, "heyoka"), at)
        assert found.states == pytest.approx(taylor.states, rel=1e-11, abs=1e-11)


def field_of(n: int) -> VectorField:
    """Return equations of n states with all coefficients unknown."""
    names = [f"x{i}" for i in range(n)]
    ode = {
        name: " + ".join([f"a{i}_{j}*x{j}" for j in range(n)] + [f"b{i} + d{i}*u"])
        for i, name in enumerate(names)
    }
    model = Model(ode=ode, inputs={"u": "linear"})
    columns = {"t": [0.0, 1.0], "u": [0.0, 1.0], **{name: [1.0, 1.0] for name in names}}
    parameters: dict[str, dict[str, float]] = {name: {} for name in model.parameters}
    return ForwardMap(Problem(model, columns, parameters, dict.fromkeys(names, 1.0))).field


@pytest.mark.parametrize("rate", [1.0, 300.0])
@pytest.mark.parametrize("even", [True, False])
@pytest.mark.parametrize("n", [1, 3])
def test_steps_are_exponentials_of_block_matrices(n: int, even: bool, rate: float) -> None:
    """The block has the states, one direction, and an input that rises along a line."""
    field = field_of(n)
    equations = linear_equations(field)
    assert equations is not None
    rng = np.random.default_rng([n, even])
    p, m = len(field.scalars), 2
    scalars, along = rng.normal(size=p), rng.normal(size=(p, m))
    scalars[[name.startswith("a") for name in field.scalars]] *= rate / n
    for i in range(n):
        scalars[field.scalars.index(f"a{i}_{i}")] -= 2.0 * rate
    knots = np.linspace(0.0, 2.0, 41) if even else np.append(0.0, np.sort(rng.uniform(0, 2, 40)))
    levels, slopes = rng.normal(size=40), rng.normal(size=40)
    polynomials = np.zeros((40, 1, 5))
    polynomials[:, 0, 0], polynomials[:, 0, 1] = knots[:-1], levels
    polynomials[:, 0, 2] = slopes
    segment = Segment(0.0, knots[[7, 20, 40]], knots[1:-1], polynomials)
    begun, begun_along = rng.normal(size=n), rng.normal(size=(n, m))
    values = Values(begun, scalars, begun_along, along, np.zeros(0))
    problem = Integration(field, _pattern(m), segment, values)
    found = Recursion(equations, problem.pattern).integrate(problem, FREELY)
    assert found is not None

    def block(given: Array) -> tuple[Array, Array, Array]:
        name = dict(zip(field.scalars, given, strict=True))
        a = np.array([[name[f"a{i}_{j}"] for j in range(n)] for i in range(n)])
        b, d = (np.array([name[f"{x}{i}"] for i in range(n)]) for x in "bd")
        return a, b, d

    a, b, d = block(scalars)
    for q in range(m):
        a_q, b_q, d_q = block(along[:, q])
        whole = np.zeros((2 * n + 2, 2 * n + 2))
        whole[:n, :n], whole[:n, -2], whole[:n, -1] = a, b, d
        whole[n : 2 * n, :n], whole[n : 2 * n, n : 2 * n] = a_q, a
        whole[n : 2 * n, -2], whole[n : 2 * n, -1] = b_q, d_q
        x = np.concatenate([begun, begun_along[:, q], [1.0, 0.0]])
        exact = []
        for k in range(40):
            x[-1], whole[-1, -2] = levels[k], slopes[k]
            x = expm(whole * (knots[k + 1] - knots[k])) @ x
            exact.append(x)
        at = np.array(exact)[[6, 19, 39]]
        size = np.abs(at).max(axis=0)
        assert np.abs(found.states - at[:, :n]).max() <= 1e-12 * size[:n].max()
        difference = found.sensitivities[:, :, q] - at[:, n : 2 * n]
        assert np.abs(difference).max() <= 1e-11 * size[n : 2 * n].max()


def _pattern(m: int) -> SensitivityPattern:
    return SensitivityPattern(m, frozenset())


def test_the_recursion_declines_solutions_that_overflow() -> None:
    field = field_of(1)
    equations = linear_equations(field)
    assert equations is not None
    polynomials = np.zeros((10, 1, 5))
    segment = Segment(0.0, np.array([10.0]), np.arange(1.0, 10.0), polynomials)
    for rate in (np.nan, 400.0):
        scalars = np.full(len(field.scalars), rate)
        values = Values(np.ones(1), scalars, np.ones((1, 0)), np.ones((3, 0)), np.zeros(0))
        problem = Integration(field, _pattern(0), segment, values)
        assert Recursion(equations, problem.pattern).integrate(problem, FREELY) is None


def test_more_work_than_allowed_is_left_to_the_engines() -> None:
    field = field_of(1)
    equations = linear_equations(field)
    assert equations is not None
    segment = Segment(0.0, np.array([10.0]), np.arange(1.0, 10.0), np.zeros((10, 1, 5)))
    values = Values(np.ones(1), -np.ones(3), np.ones((1, 0)), np.ones((3, 0)), np.zeros(0))
    problem = Integration(field, _pattern(0), segment, values)
    recursion = Recursion(equations, problem.pattern)
    assert recursion.integrate(problem, 1e3) is None
    found = recursion.integrate(problem, 1e9)
    assert found is not None
    assert found.states[0, 0] == pytest.approx(2.0 * np.exp(-10.0) - 1.0, rel=1e-13)


def test_several_runs_with_their_own_inputs_keep_their_derivatives() -> None:
    model = Model(ode={"x": "g*u - k*x"}, inputs={"u": "linear"})
    runs = [
        Experiment(name, {"t": times, "u": signal(times), "x": np.zeros(len(times))})
        for name, times in (("a", EVEN), ("b", UNEVEN))
    ]
    problem = Problem(model, parameters={"g": {}, "k": {}}, initial={"x": {}}, experiments=runs)
    vector = np.array([1.2, 0.7, 0.4])
    found = evaluated(ForwardMap(problem), vector)
    taylor = evaluated(ForwardMap(problem, "heyoka"), vector)
    assert found.residuals == pytest.approx(taylor.residuals, rel=1e-11, abs=1e-12)
    assert found.jacobian == pytest.approx(taylor.jacobian, rel=1e-10, abs=1e-11)


def test_events_between_knots_change_the_states() -> None:
    more: dict[str, Any] = {"events": [Event((3.3,), {"x": "x + 1"})]}
    found = integrated(driven(EVEN, signal(EVEN), **more), HERE)
    taylor = integrated(driven(EVEN, signal(EVEN), engine="heyoka", **more), HERE)
    assert found.states == pytest.approx(taylor.states, rel=1e-11, abs=1e-11)


WITHOUT_HEYOKA = """
import sys
sys.modules["heyoka"] = None
import numpy as np
from odefit import ForwardMap, Model, Problem
names = [f"x{i}" for i in range(6)]
ode = {n: (f"k*x{i - 1} - " if i else "-") + f"(k + {i})*{n}" for i, n in enumerate(names)}
data = {"t": np.linspace(0.0, 5.0, 201), "x5": np.zeros(201)}
problem = Problem(Model(ode=ode), data, {"k": {}}, {n: float(n == "x0") for n in names})
for engine in ("auto", "runge-kutta"):
    found = ForwardMap(problem, engine).evaluate(np.array([1.3]))
    print(*found.residuals[[50, 200]], *found.jacobian[[50, 200], 0], found.choice.stiff)
"""


@pytest.mark.slow
def test_without_heyoka_many_outputs_are_computed_step_by_step() -> None:
    command = [sys.executable, "-c", WITHOUT_HEYOKA]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    here, there = (line.split() for line in run.stdout.splitlines())
    assert [float(x) for x in here[:4]] == pytest.approx([float(x) for x in there[:4]], rel=1e-9)
    assert here[:4] != there[:4]
