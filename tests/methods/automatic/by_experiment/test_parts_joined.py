"""Ends of parts make starts of all, with a noise that all of them share."""

from __future__ import annotations

import numpy as np
import pytest

from odefit.methods.automatic.by_experiment.parts_apart import parts_of
from odefit.methods.automatic.by_experiment.parts_joined import composed
from odefit.methods.estimate import Start, Status
from tests.methods.automatic.by_experiment.test_parts_apart import oscillators, proportional


def end(vector: list[float], objective: float) -> Start:
    values = np.array(vector)
    return Start(0, values, values, objective, Status.CONVERGED, "", 1, 0.0, 0.5 * objective)


def test_a_standard_deviation_of_all_values_is_the_root_of_their_mean_square() -> None:
    problem = oscillators(3, noise={"y": {"sd": "estimate"}})
    ends = [end([1.0 + i, 0.1, 1.0], 0.5) for i in range(3)]
    _, vector = composed(problem, parts_of(problem), ends)
    assert vector[:3].tolist() == [1.0, 2.0, 3.0]
    assert vector[9] == pytest.approx(np.sqrt(1.5 / 45))


def test_a_noise_of_several_parts_has_the_geometric_mean_of_its_values() -> None:
    problem = proportional(2)
    ends = [end([0.3, 0.01, 0.1], 12.0), end([0.5, 0.04, 0.1], 12.0)]
    _, vector = composed(problem, parts_of(problem), ends)
    named = dict(zip(problem.keys, vector.tolist(), strict=True))
    expected = {"k[run 0]": 0.3, "k[run 1]": 0.5, "a": 0.02, "b": 0.1}
    assert named == pytest.approx(expected)
