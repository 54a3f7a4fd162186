"""How many solutions there are from special initial values."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

import odefit
from odefit.structure.structural_identifiability import StructuralIdentifiability
from tests.structure.models import problem


def found(
    ode: Mapping[str, str], output: str, names: str, start: Mapping[str, float | str]
) -> StructuralIdentifiability:
    return odefit.identifiability(problem(ode, {"y": output}, names.split(), start))


@pytest.mark.parametrize(
    ("ode", "values"),
    [
        ({"x": "-a^2*x + z", "z": "w^3", "w": "v^3", "v": "a"}, 1),
        ({"x": "-a^2*x + z", "z": "w^2", "w": "v^3", "v": "a"}, 2),
        ({"x": "-a^2*x + z", "z": "w^3", "w": "v^2", "v": "a"}, 2),
        ({"x": "-a^2*x + z", "z": "w^5", "w": "v^3", "v": "a^3"}, 1),
        ({"x": "-a^4*x + z", "z": "w^2", "w": "v^3", "v": "a"}, 2),
        ({"x": "-a^4*x + z", "z": "w^2", "w": "v^4", "v": "a"}, 4),
    ],
)
def test_a_sign_that_shows_late_counts(ode: Mapping[str, str], values: int) -> None:
    said = found(ode, "x", "a", {"x": 1.0, "z": 0.0, "w": 0.0, "v": 0.0})
    assert said.solutions == values
    assert said["a"].values == values
    assert said["a"].status == ("globally" if values == 1 else "locally")


def test_rates_of_a_chain_from_rest_may_be_permuted() -> None:
    ode = {"x": "k - a*x", "y1": "x - b*y1", "z": "y1 - c*z"}
    said = found(ode, "z", "k a b c", {"x": 0.0, "y1": 0.0, "z": 0.0})
    assert said.solutions == 6
    assert [said[n].values for n in "kabc"] == [1, 3, 3, 3]


@pytest.mark.parametrize(("second", "values"), [(1.0, 2), (2.0, 1)])
def test_states_with_equal_initial_values_may_be_exchanged(second: float, values: int) -> None:
    said = found({"u": "-a*u", "v": "-b*v"}, "u + v", "a b", {"u": 1.0, "v": second})
    assert said.solutions == values
    assert said["a"].values == values


@pytest.mark.slow
def test_a_second_optimum_without_a_symmetry_is_counted() -> None:
    # u/(h + u) of a saturating u is logistic in time, with the rate d1 or -d1.
    ode = {"u": "k - d*u", "z": "b*u/(1 + u) - c*z"}
    said = found(ode, "z", "k d b c", {"u": 0.0, "z": 0.0})
    assert said.solutions == 2
    assert [said[n].values for n in ("d", "c")] == [2, 1]
