"""Programs over whole arrays give what CasADi's own evaluation gives."""

from __future__ import annotations

import casadi as ca
import numpy as np

from odefit.simulation.engines.programs import OPERATIONS
from odefit.simulation.engines.whole_arrays import FUNCTIONS, ArrayFunction


def test_every_operation_of_programs_is_known() -> None:
    assert set(FUNCTIONS) == set(OPERATIONS)


def test_values_are_those_of_casadi_at_each_point() -> None:
    x = ca.SX.sym("x", 3)
    a, b, c = ca.vertsplit(x)
    values = ca.vertcat(
        a + b * c, a / b - c, a**b, a**2, 2 * a, 1 / b, -c, ca.exp(-a), ca.log(b), ca.sqrt(b),
        ca.sin(a) + ca.cos(b), ca.tan(c), ca.asin(a / 4) + ca.acos(a / 4), ca.atan(c),
        ca.sinh(a) - ca.cosh(b), ca.tanh(c), ca.fabs(c), ca.sign(c), ca.fmin(a, c), ca.fmax(a, c),
        ca.if_else(a < b, c, a), ca.if_else(ca.logic_and(a <= b, c != 0), 1, b),
        ca.if_else(ca.logic_or(a == b, c > 0), a, 2), ca.if_else(ca.logic_not(a < b), 3, c),
    )  # fmt: skip
    rng = np.random.default_rng(0)
    points = rng.uniform([0.1, 0.1, -2.0], [2.0, 2.0, 2.0], (50, 3)).T
    points[:, 0] = [1.0, 1.0, 0.0]
    exact = np.array(ca.Function("f", [x], [values])(points))
    assert np.allclose(ArrayFunction(x, values)(list(points), 50), exact, rtol=1e-14, atol=1e-300)


def test_a_constant_fills_all_points() -> None:
    x = ca.SX.sym("x")
    found = ArrayFunction(x, ca.densify(ca.vertcat(x, 3.0)))([np.array([1.0, 2.0])], 2)
    assert np.array_equal(found, [[1.0, 2.0], [3.0, 3.0]])
