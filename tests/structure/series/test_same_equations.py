"""Subjects that differ in doses alone have one system of equations."""

from __future__ import annotations

import numpy as np
import pytest

from odefit import Model, Problem
from odefit.structure.homotopy.square import SquareSystem
from odefit.structure.series.differentiated_system import DifferentiatedSystem
from odefit.structure.series.same_equations import with_same_equations
from odefit.structure.solutions.storage import key

TIMES = np.linspace(0.5, 8.0, 9)


def subject(dose: float, order: float = 2.0) -> DifferentiatedSystem:
    model = Model(
        {"gut": "-ka*gut", "blood": f"ka*gut - ke*blood/{order}"}, observables={"c": "blood/V"}
    )
    data = {"t": TIMES, "c": np.ones(9)}
    problem = Problem(model, data, {"ka": {}, "ke": {}, "V": {}}, {"gut": dose, "blood": 0.0})
    return DifferentiatedSystem(problem, free_states=False)


def test_doses_that_differ_become_known_numbers() -> None:
    systems = [subject(300.0), subject(200.0), subject(300.0)]
    assert with_same_equations(systems) == [[0, 1, 2]]
    squares = [SquareSystem(system, 0) for system in systems]
    assert len({key(square, 0) for square in squares}) == 1
    for system, dose in zip(systems, (300.0, 200.0, 300.0), strict=True):
        (expansion,) = system.expansions
        point = expansion.expansion_point(0.0, 0)
        known = np.repeat(point.known[None], 1, axis=0)
        values = np.array([[0.7, 0.2, 30.0]], dtype=complex)
        taylor = system.run(0, values, 1, known, np.zeros((1, 0, 2), dtype=complex))
        # c' = ka gut / V at the start
        assert taylor.outputs[0, 1, 0].real == pytest.approx(0.7 * dose / 30.0, rel=1e-14)


def test_equal_doses_remain_numbers() -> None:
    systems = [subject(300.0), subject(300.0)]
    assert with_same_equations(systems) == [[0, 1]]
    assert not systems[0].expansions[0].program.equations.known


@pytest.mark.parametrize(
    ("one", "other"),
    [((300.0, 2.0), (200.0, 3.0)), ((300.0, 2.0), (0.0, 2.0)), ((5.0, 2.0), (2.0, 2.0))],
)
def test_other_numbers_make_other_equations(
    one: tuple[float, float], other: tuple[float, float]
) -> None:
    """A number in a rate, a dose of zero, or one that is also a number of a rate."""
    assert with_same_equations([subject(*one), subject(*other)]) == [[0], [1]]
