"""Python functions as SciPy's users have them, read into expressions."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from scipy.integrate import odeint, solve_ivp

import odefit
from odefit.problem import InputError, Model, Problem


def texts(model: Model) -> dict[str, str]:
    return {name: expression.text for name, expression in model.ode.items()}


def lotka_volterra(t: float, y: Any, a: float, b: float, c: float, d: float) -> Any:
    x, z = y
    return [a * x - b * x * z, d * x * z - c * z]


LOTKA = {"x": "a*x - b*x*z", "z": "d*x*z - c*z"}


def test_a_function_for_solve_ivp_is_its_equations() -> None:
    model = Model.from_function(lotka_volterra, ["x", "z"], ["a", "b", "c", "d"])
    assert texts(model) == LOTKA
    assert model.parameters == {"a", "b", "c", "d"}


def packed(t: float, y: Any, p: Any) -> Any:
    a, b, c, d = p
    return np.array([a * y[0] - b * y[0] * y[1], d * y[0] * y[1] - c * y[1]])


def by_position(t: float, y: Any, p: Any) -> Any:
    dy = np.zeros_like(y)
    dy[0] = p[0] * y[0] - p[1] * y[0] * y[1]
    dy[1] = p[3] * y[0] * y[1] - p[2] * y[1]
    return dy


def by_name(t: float, y: Any, p: Any) -> Any:
    return {"x": p["a"] * y[0] - p.b * y[0] * y[1], "z": p["d"] * y[0] * y[1] - p["c"] * y[1]}


def starred(t: float, y: Any, *p: float) -> Any:
    return packed(t, y, p)


def states_first(y: Any, t: float, a: float, b: float, c: float, d: float) -> Any:
    return lotka_volterra(t, y, a, b, c, d)


@pytest.mark.parametrize("function", [packed, by_position, by_name, starred, states_first])
def test_parameters_come_in_every_usual_way(function: Callable[..., Any]) -> None:
    assert texts(Model.from_function(function, ["x", "z"], ["a", "b", "c", "d"])) == LOTKA


def test_one_parameter_is_a_number_or_an_array() -> None:
    def number(t: float, x: Any, k: float) -> Any:
        return -k * x

    assert texts(Model.from_function(number, ["x"], ["k"])) == {"x": "-k*x"}

    def array(t: float, x: Any, p: Any) -> Any:
        (k,) = p
        return -p[0] * x + 0 * k

    assert texts(Model.from_function(array, ["x"], ["k"])) == {"x": "-k*x"}


def test_one_argument_holds_all_parameters_even_if_it_has_a_default_or_there_are_none() -> None:
    def usual(t: float, x: Any, p: Any = (1.0, 2.0)) -> Any:
        return p[0] - p[1] * x

    assert texts(Model.from_function(usual, ["x"], ["a", "b"])) == {"x": "a - b*x"}

    def unused(t: float, x: Any, p: Any) -> Any:
        return -2 * x

    assert texts(Model.from_function(unused, ["x"], [])) == {"x": "-2*x"}


MATRIX = np.array([[-1.0, 0.5, 0.0], [1.0, -1.5, 0.25], [0.0, 1.0, -0.25]])


def matrix(t: float, x: Any, k: float) -> Any:
    return k * MATRIX @ x


def dotted(t: float, x: Any, k: float) -> Any:
    return np.dot(MATRIX, x) * k


def elementwise(t: float, x: Any, k: float) -> Any:
    rates = np.exp(-k * x) / (1 + np.sqrt(x)) ** 2
    return rates - np.log(1 + x**2) + np.sin(k * t) - x.sum() + np.sum(rates[1:]) + x.mean()


def selected(t: float, x: Any, k: float) -> Any:
    dose = np.where((t > 0.5) & (t < 1.5), 2.0, 0.0)
    lowest = np.minimum(x, k) + np.maximum(x[0], 0.3) - np.clip(x, 0.5, 1.0)
    return dose - lowest + np.heaviside(x - 1, 0.5) + np.sign(x - k) + np.abs(x - 1)


def looped(t: float, x: Any, k: float) -> Any:
    found = []
    for i in range(len(x)):
        inflow = x[i - 1] if i > 0 else 1.0
        found.append(k * (inflow - x[i]))
    return found


def table(t: float, x: Any, k: float) -> Any:
    return -k * x * np.interp(t, [0.0, 0.5, 1.5], [1.0, 3.0, 0.0])


def shifted(t: float, x: Any, k: float) -> Any:
    return k * (np.roll(x, 1) - 2 * x + np.roll(x, -1)) + np.concatenate([[0.0], np.diff(x)])


def extreme(t: float, x: Any, k: float) -> Any:
    return [np.max(x) - k, np.min(x), np.prod(x)]


FUNCTIONS: Sequence[Callable[..., Any]] = (
    matrix, dotted, elementwise, selected, looped, table, shifted, extreme,
)  # fmt: skip


@pytest.mark.parametrize("function", FUNCTIONS)
def test_functions_of_numpy_have_the_same_values(function: Callable[..., Any]) -> None:
    from odefit.expressions.algebras import NUMPY

    model = Model.from_function(function, ["A", "B", "C"], ["k"])
    draw = np.random.default_rng(1)
    for _ in range(20):
        x, t, k = draw.uniform(0.1, 2.0, 3), draw.uniform(0, 2), draw.uniform(0.1, 2.0)
        values = {"A": x[0], "B": x[1], "C": x[2], "t": np.float64(t), "k": np.float64(k)}
        expected = np.array(function(t, x, k), dtype=float)
        np.testing.assert_allclose(model.rhs(values, NUMPY), expected, rtol=1e-12, atol=1e-13)


def test_a_traced_function_is_simulated_as_by_scipy() -> None:
    model = Model.from_function(selected, ["A", "B", "C"], ["k"])
    times = np.linspace(0.0, 3.0, 7)
    problem = Problem(
        model,
        {"t": times, "A": np.ones(7)},
        {"k": {"guess": 0.7}},
        {"A": 1.0, "B": 0.4, "C": 0.1},
    )
    simulated = odefit.simulate(problem, problem.vector({"k": 0.7}))
    assert not isinstance(simulated, odefit.Failure)
    reference = solve_ivp(
        selected, (0, 3), [1.0, 0.4, 0.1], t_eval=times, args=(0.7,), rtol=1e-8, max_step=1e-2
    )
    found = np.array([simulated.states[s] for s in "ABC"])
    np.testing.assert_allclose(found, reference.y, atol=2e-3)
    model = Model.from_function(states_first, ["x", "z"], ["a", "b", "c", "d"])
    values = {"a": 1.0, "b": 0.5, "c": 0.8, "d": 0.3}
    problem = Problem(
        model,
        {"t": times, "x": np.ones(7)},
        {k: {"guess": v} for k, v in values.items()},
        {"x": 1.0, "z": 2.0},
    )
    simulated = odefit.simulate(problem, problem.vector(values))
    assert not isinstance(simulated, odefit.Failure)
    expected = odeint(states_first, [1.0, 2.0], times, args=(1.0, 0.5, 0.8, 0.3), rtol=1e-10)
    np.testing.assert_allclose(simulated.states["z"], expected[:, 1], rtol=1e-6)


def branch(t: float, x: Any, k: float) -> Any:
    if x[0] > 1:
        return -k * x
    return k * x


def python_max(t: float, x: Any, k: float) -> Any:
    return [max(x[0], k)]


def with_math(t: float, x: Any, k: float) -> Any:
    return [-k * math.exp(x[0])]


def float_array(t: float, x: Any, k: float) -> Any:
    found = np.zeros(1)
    found[0] = -k * x[0]
    return found


def truth(t: float, x: Any, k: float) -> Any:
    while x[0]:
        k = k + 1
    return [k]


def remainder(t: float, x: Any, k: float) -> Any:
    return [x[0] * (t % 24)]


def floor(t: float, x: Any, k: float) -> Any:
    return [np.floor(t) * x[0]]


def broken(t: float, x: Any, k: float) -> Any:
    return [x[0] * x[3]]


def doubling(t: float, x: Any, k: float) -> Any:
    y = x[0] + 1
    for _ in range(60):
        y = y * y
    return [y]


def solved(t: float, x: Any, k: float) -> Any:
    return np.linalg.solve(np.array([[k]]), x)


def indexed(t: float, x: Any, k: float) -> Any:
    return [[1.0, 2.0][x[0]]]


def infinite(t: float, x: Any, k: float) -> Any:
    return [x[0] / 0.0]


@pytest.mark.parametrize(
    ("function", "line", "message"),
    [
        (
            branch,
            "if x[0] > 1:",
            (
                "the function branches on 'x > 1', whose truth is not known; write "
                "np.where(condition, a, b), and np.maximum(a, b) in place of max(a, b)"
            ),
        ),
        (python_max, "return [max(x[0], k)]", "the function branches on 'k > x'"),
        (
            with_math,
            "return [-k * math.exp(x[0])]",
            (
                "a number is needed where 'x' is an expression; write functions of NumPy in place "
                "of those of math (np.exp), and np.zeros_like(x) or a list in place of np.zeros(n)"
            ),
        ),
        (float_array, "found[0] = -k * x[0]", "a number is needed where '-k*x' is an expression"),
        (
            truth,
            "while x[0]:",
            (
                "the function branches on 'x', whose value is not known; write "
                "np.where(condition, a, b)"
            ),
        ),
        (
            remainder,
            "return [x[0] * (t % 24)]",
            "expressions have neither rounding nor a remainder operator",
        ),
        (floor, "return [np.floor(t) * x[0]]", "np.floor is not a function of expressions"),
        (broken, "return [x[0] * x[3]]", "IndexError: index 3 is out of bounds"),
        (doubling, "y = y * y", "the expression becomes too long; does a loop use its own result"),
        (solved, "return np.linalg.solve(np.array([[k]]), x)", "UFuncTypeError: "),
        (
            indexed,
            "return [[1.0, 2.0][x[0]]]",
            "a whole number is needed where 'x' is an expression",
        ),
        (infinite, "return [x[0] / 0.0]", "a division by zero"),
    ],
)
def test_unreadable_code_is_refused_with_its_line(
    function: Callable[..., Any], line: str, message: str
) -> None:
    with pytest.raises(InputError) as caught:
        Model.from_function(function, ["x"], ["k"])
    (found,) = caught.value.messages
    assert found.startswith("test_python_functions.py, line ")
    assert f"({line}): {message}" in found


def test_a_function_that_draws_random_numbers_is_detected() -> None:
    def noisy(t: float, x: Any, k: float) -> Any:
        return -k * x + random.random()

    with pytest.raises(InputError, match="draw random numbers, or change its arguments"):
        Model.from_function(noisy, ["x"], ["k"])


def test_a_function_with_a_memory_is_detected() -> None:
    calls = []

    def counting(t: float, x: Any, k: float) -> Any:
        calls.append(t)
        return -k * x * len(calls)

    with pytest.raises(InputError, match="does it keep values between calls"):
        Model.from_function(counting, ["x"], ["k"])


@pytest.mark.parametrize(
    ("function", "states", "parameters", "message"),
    [
        ("-k*x", ["x"], ["k"], "from_function: expected a Python function, got '-k*x'"),
        (lambda x: x, ["x"], [], "takes 1 arguments; expected the time and the states"),
        (lotka_volterra, ["x", "z"], ["a", "b"], "takes 4 arguments after the time and the states"),
        (lambda t, x: [x[0]], ["x", "y"], [], "returns 1 right-hand sides for 2 states (x, y)"),
        (lambda t, x: None, ["x"], [], "returns nothing; expected a list"),
        (lambda t, x: ["x"], ["x"], [], "returns 'x' for 'x'; expected a number"),
        (lambda t, x: {"y": x[0]}, ["x"], [], "returns y; expected the states x"),
        (lambda t, x: [x[0]], ["x", "x"], [], "names x: the name is given twice"),
        (lambda t, x: [x[0]], ["exp"], [], "'exp' is a function; choose another name"),
    ],
)
def test_a_function_that_does_not_fit_is_refused(
    function: Any, states: list[str], parameters: list[str], message: str
) -> None:
    with pytest.raises(InputError) as caught:
        Model.from_function(function, states, parameters)
    assert message in str(caught.value)


def test_a_parameter_that_the_function_asks_for_by_a_wrong_name_is_named() -> None:
    with pytest.raises(InputError) as caught:
        Model.from_function(lambda t, x, p: [-p["kk"] * x[0]], ["x"], ["k", "m"])
    assert "asks for the parameter 'kk'; did you mean 'k'?" in str(caught.value)
