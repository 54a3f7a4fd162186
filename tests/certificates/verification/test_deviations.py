"""Distances of solutions from a guess, in coordinates that move with them."""

from __future__ import annotations

import math

import numpy as np
import pytest

pytest.importorskip("flint", reason="the extra odefit[certificates] is not installed")

from evidence.bounds.textbook import SYSTEMS
from evidence.zoo.drawing import sampled
from odefit import Model, Problem
from odefit.certificates.statement import statement_of
from odefit.certificates.verification.balls import ZERO, arb
from odefit.certificates.verification.bounds import bounds
from odefit.certificates.verification.deviations import Deviation
from odefit.certificates.verification.polynomials import Model as Polynomial
from odefit.certificates.verification.polynomials import Models, layout
from odefit.problem import problem_from_mapping
from tests.certificates.verification.enclosing import enclosed_parts, enclosed_residuals

TIMES = Models(layout(0))


def constant(rows: list[list[float]]) -> list[list[Polynomial]]:
    return [[TIMES.constant(arb(a)) for a in row] for row in rows]


def sizes(rows: list[list[float]]) -> list[list[arb]]:
    return [[arb(a if i == j else abs(a)) for j, a in enumerate(r)] for i, r in enumerate(rows)]


def test_a_rotation_does_not_enlarge_deviations() -> None:
    """Absolute values alone would multiply them by exp(100)."""
    turn = [[0.0, 0.5], [-0.5, 0.0]]
    distance: Deviation | None = Deviation.apart([arb(1e-6), arb(2e-6)])
    for _ in range(200):
        assert distance is not None
        distance = distance.after(constant(turn), sizes(turn), [ZERO, ZERO], [ZERO, ZERO])
    assert distance is not None
    assert float(max(distance.rest)) < 5e-6


@pytest.mark.parametrize("seed", range(5))
def test_solutions_of_linear_equations_stay_within(seed: int) -> None:
    rng = np.random.default_rng(seed)
    middle, spread = rng.normal(size=(3, 3)) / 2, 0.05
    jacobian = [
        [Polynomial(TIMES.constant(arb(a)).c, arb(spread), layout(0)) for a in row]
        for row in middle.tolist()
    ]
    most = [
        [arb(a + spread if i == j else abs(a) + spread) for j, a in enumerate(row)]
        for i, row in enumerate(middle.tolist())
    ]
    start, defect, rounding = [1e-3, 2e-3, 5e-4], 1e-4, 1e-5
    distance: Deviation | None = Deviation.apart([arb(z) for z in start])
    points = rng.choice([-1.0, 1.0], (50, 3)) * start
    for _ in range(4):
        assert distance is not None
        distance = distance.after(jacobian, most, [arb(defect)] * 3, [arb(rounding)] * 3)
        assert distance is not None
        for number, point in enumerate(points):
            a = middle + spread * rng.choice([-1.0, 1.0], (3, 3))
            b = defect * rng.choice([-1.0, 1.0], 3)
            whole = np.zeros((4, 4))
            whole[:3, :3], whole[:3, 3] = a, b
            power = sum(np.linalg.matrix_power(whole, k) / math.factorial(k) for k in range(25))
            end = (power @ np.append(point, 1.0))[:3] + rounding * rng.choice([-1.0, 1.0], 3)
            points[number] = end
            z = np.abs(np.linalg.solve(distance.basis, end))
            assert (z <= np.array([float(s) for s in distance.size]) * (1 + 1e-9)).all()


def test_solutions_leave_if_defects_are_left_out() -> None:
    turn = [[0.0, 0.5], [-0.5, 0.0]]
    distance = Deviation.apart([ZERO, ZERO])
    none = distance.after(constant(turn), sizes(turn), [ZERO, ZERO], [ZERO, ZERO])
    some = distance.after(constant(turn), sizes(turn), [arb(1e-3), ZERO], [ZERO, ZERO])
    assert none is not None
    assert some is not None
    assert float(max(none.rest)) == 0.0
    assert float(some.rest[0]) > math.sin(0.5) / 0.5 * 1e-3  # that of a constant defect


@pytest.mark.slow
def test_ten_periods_of_an_oscillator_are_enclosed_to_seven_digits() -> None:
    times = np.linspace(1.0, 20 * np.pi, 12)
    problem = Problem(
        Model(ode={"x": "v", "v": "-k*x"}),
        {"t": [0.0, *times], "x": [1.0, *np.cos(times)]},
        {"k": {"lower": 0.5, "upper": 2.0}},
        {"x": 1.0, "v": 0.0},
    )
    point = np.array([1.0])
    found, _ = enclosed_residuals(statement_of(problem), point, point)
    assert all(float(r.size) < 1e-7 for r in found)


@pytest.mark.slow
@pytest.mark.parametrize("name", SYSTEMS)
def test_the_objective_of_a_textbook_system_is_proved_at_its_truth(name: str) -> None:
    drawn = sampled(name, SYSTEMS[name], 0)
    problem = problem_from_mapping(drawn.mapping)
    point = np.array([drawn.truth[key] for key in problem.keys])
    found, box = enclosed_parts(statement_of(problem), point, point)
    known = bounds(found, box.ring)
    conditions = statement_of(problem)["conditions"]
    assert len(found) == sum(len(condition["data"]) for condition in conditions) + 1
    assert float(known.upper) == pytest.approx(float(drawn.by_hand.measure(drawn.truth)), rel=1e-4)
    assert float(known.upper - known.lower) < 1e-6 * float(known.upper)
