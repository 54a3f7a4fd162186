"""Best fits with an unknown held."""

from __future__ import annotations

import numpy as np

from odefit import ForwardMap, Model, Problem
from odefit.assessment.profiles.coordinates import Coordinates
from odefit.assessment.profiles.held import HeldUnknown
from odefit.simulation.engines.engine_choice import UNDECIDED


def test_unknowns_that_are_determined_together_alone_keep_their_logarithms() -> None:
    """Only the product of the scale s and the initial value a is determined."""
    times = np.linspace(0.0, 3.0, 6)
    positive = {"lower": 1e-3, "upper": 1e3, "scale": "log10"}
    given = Problem(
        Model(ode={"x": "-k*x"}, observables={"y": "s*x"}),
        {"t": times, "y": 6 * np.exp(-times)},
        {"k": positive, "s": positive, "a": positive},
        {"x": "a"},
        noise={"y": {"sd": 0.1}},
    )
    vector = given.vector({"k": 1.0, "s": 2.0, "a": 3.0})
    first = HeldUnknown(ForwardMap(given), 0, vector, UNDECIDED, 1.0).first()
    assert not isinstance(first, str)
    assert Coordinates.of(given, first.vector, first.effects).logarithm.all()
