"""Best fits for the values of a quantity that is pulled at."""

from __future__ import annotations

import numpy as np
import pytest

from odefit import ForwardMap, Model, Problem
from odefit.assessment.profiles.pulled import OwnCoordinate, PulledQuantity
from odefit.simulation.engines.engine_choice import UNDECIDED


@pytest.mark.parametrize("at", [0.0, 1e-200, 1e-3])
def test_an_unknown_without_effect_is_tried_at_any_value(at: float) -> None:
    """An unknown without effect has no curvature, and its size may be zero or next to it."""
    times = np.linspace(0.0, 3.0, 6)
    given = Problem(
        Model(ode={"x": "-k*x + 0*a"}),
        {"t": times, "x": np.exp(-times)},
        {"k": {}, "a": {"lower": 0.0, "upper": 10.0}},
        {"x": 1.0},
    )
    vector = np.array([1.0, at])
    family = PulledQuantity(ForwardMap(given), OwnCoordinate(1, False), vector, UNDECIDED, 0.01)
    first = family.first()
    assert not isinstance(first, str)
    found = family.point([first], 2.0, 1e-9)
    assert not isinstance(found, str)
    assert found.at == pytest.approx(2.0, rel=0.2)
    assert found.vector[0] == pytest.approx(1.0, rel=1e-3)
