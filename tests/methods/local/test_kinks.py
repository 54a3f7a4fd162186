"""Tests of minima in kinks, against closed forms."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

from odefit.assessment.local import assess_local
from odefit.common.arrays import Array
from odefit.methods.local.kinks import minimise_past_kinks
from odefit.methods.local.stopping import Tolerances
from odefit.methods.local.trust_region import minimise
from odefit.methods.running.control import Control
from odefit.methods.single_shooting import SingleShooting
from odefit.problem import problem_from_mapping
from odefit.simulation import Evaluation, ForwardMap

FREE = np.full(2, -np.inf), np.full(2, np.inf)


def numbers(text: str) -> list[float]:
    return [float(word) for word in text.split()]


@dataclass(frozen=True)
class At:
    cost: float
    residuals: Array
    jacobian: Array


class Counted:
    """A cost of residuals and their Jacobian that counts its evaluations."""

    def __init__(self, rows: Callable[[Array], tuple[Array, Array]]) -> None:
        self.rows, self.count = rows, 0

    def __call__(self, x: Array) -> At:
        self.count += 1
        residuals, jacobian = self.rows(x)
        return At(0.5 * float(residuals @ residuals), residuals, jacobian)


def one_kink(x: Array) -> tuple[Array, Array]:
    """1 + 3|x + y| and the distances to (1, 0.2): the kink is where x + y = 0."""
    u = x[0] + x[1]
    side = 1.0 if u >= 0 else -1.0
    return (
        np.array([1.0 + 3.0 * abs(u), x[0] - 1.0, x[1] - 0.2]),
        np.array([[3.0 * side, 3.0 * side], [1.0, 0.0], [0.0, 1.0]]),
    )


def curved_kink(x: Array) -> tuple[Array, Array]:
    """1 + 2|x^2 + y^2 - 1| and the distances to (0.3, 0.4): the kink is the unit circle."""
    u = x[0] ** 2 + x[1] ** 2 - 1.0
    side = 1.0 if u >= 0 else -1.0
    return (
        np.array([1.0 + 2.0 * abs(u), x[0] - 0.3, x[1] - 0.4]),
        np.array([[4.0 * side * x[0], 4.0 * side * x[1]], [1.0, 0.0], [0.0, 1.0]]),
    )


def corner(x: Array) -> tuple[Array, Array]:
    """Two kinks, along x = 1 and y = 2 - x, which meet in (1, 1), and a pull away from there."""
    u, v = x[0] - 1.0, x[0] + x[1] - 2.0
    a, b = (1.0 if w >= 0 else -1.0 for w in (u, v))
    return (
        np.array([1.0 + 4.0 * abs(u), 1.0 + 4.0 * abs(v), x[1] - 0.5]),
        np.array([[4.0 * a, 0.0], [4.0 * b, 4.0 * b], [0.0, 1.0]]),
    )


def valley(x: Array) -> tuple[Array, Array]:
    """Rosenbrock's valley, which has no kink."""
    return (
        np.array([10.0 * (x[1] - x[0] ** 2), 1.0 - x[0]]),
        np.array([[-20.0 * x[0], 10.0], [-1.0, 0.0]]),
    )


@pytest.mark.parametrize(
    ("rows", "minimum"),
    [(one_kink, (0.4, -0.4)), (curved_kink, (0.6, 0.8)), (corner, (1.0, 1.0))],
)
@pytest.mark.parametrize("start", [(3.0, 2.0), (0.5, -2.0), (2.0, 1.5)])
def test_the_minimum_in_a_kink_is_found(
    rows: Callable[[Array], tuple[Array, Array]], minimum: tuple[float, float], start: tuple[float]
) -> None:
    cost = Counted(rows)
    end = minimise_past_kinks(cost, np.array(start), *FREE, Tolerances(cost=1e-8, step=1e-7))
    assert end.converged
    assert end.vector == pytest.approx(np.array(minimum), abs=3e-3)
    assert end.evaluations < 150
    assert cost.count == end.evaluations


def test_a_bound_may_hold_the_minimum_in_a_kink() -> None:
    """Along x + y = 0 the cost falls until x = 0.4, but x is at most 0.25."""
    upper = np.array([0.25, np.inf])
    end = minimise_past_kinks(
        Counted(one_kink), np.array([-1.0, 1.0]), FREE[0], upper, Tolerances()
    )
    assert end.vector == pytest.approx(np.array([0.25, -0.25]), abs=1e-5)


def test_a_smooth_cost_is_minimised_as_without_kinks() -> None:
    start = np.array([-1.2, 1.0])
    end = minimise_past_kinks(Counted(valley), start, *FREE, Tolerances())
    usual = minimise(Counted(valley), start, *FREE, Tolerances())
    assert np.array_equal(end.vector, usual.vector)
    assert end.evaluations == usual.evaluations


def test_no_more_evaluations_than_allowed_are_made_along_kinks() -> None:
    tolerances = Tolerances(evaluations=12)
    end = minimise_past_kinks(Counted(curved_kink), np.array([3.0, 2.0]), *FREE, tolerances)
    assert not end.converged
    assert end.evaluations <= 12 + 4


def test_a_thermostat_fits_best_where_a_switch_passes_a_measurement() -> None:
    """The heater goes on at 139.5 minutes, when the temperature is measured."""
    times = "12.25 21.42 25.48 28.24 30.31 35.7 43.3 45.92 96 97.44 102.7 106.7 122.9 123.3 125.5"
    times += " 129.6 129.7 139.5 140.8"
    values = "17.66 18.86 18.55 18.84 19.65 21.27 21.29 21.65 21.04 21.27 18.61 18.33 20.7 20.38"
    values += " 22.03 20.32 22.06 20.28 18.92"
    thermostat = {
        "format": 1,
        "name": "thermostat",
        "ode": {"T": "(3.49 + G*on - T)/tau"},
        "constants": {"on": 1.0},
        "initial": {"T": 15.1},
        "parameters": {"tau": {"lower": 0.1}, "G": {"lower": 0.1}},
        "noise": {"T": {"sd": 0.776}},
        "experiment": [
            {
                "data": {"t": numbers(times), "T": numbers(values)},
                "event": [
                    {"when": "T >= 21.7", "assign": {"on": "0"}},
                    {"when": "T <= 18.8", "assign": {"on": "1"}},
                ],
                "t0": 0.0,
            }
        ],
    }
    problem = problem_from_mapping(thermostat)
    forward = ForwardMap(problem)
    end = SingleShooting().run(forward, 0, np.array([43.0, 20.7]), Control(0))
    at_end = forward.evaluate(end.vector)
    assert isinstance(at_end, Evaluation)
    local = assess_local(forward, end.vector, at_end)
    assert local.optimal
    assert end.cost < 5.78812
    assert end.evaluations < 80
