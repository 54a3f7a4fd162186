"""Taylor series of rational functions: exact, also at and beside support points."""

from __future__ import annotations

import numpy as np
import pytest

from odefit.methods.smoothing.barycentric import Rational, quotient
from odefit.methods.smoothing.floater_hormann import barycentric_weights
from tests.methods.smoothing.functions import runge

# 1 / (1 + x^2) is of degree (2, 2): three support points and a sign pattern that vanishes in the
# numerator's highest terms. Its weights follow from w_j proportional to q(z_j) / l'(z_j).
SUPPORT = np.array([-1.0, 0.25, 1.0])
WEIGHTS = (1 + SUPPORT**2) / np.array(
    [np.prod([a - b for b in SUPPORT if b != a]) for a in SUPPORT]
)
WITCH = Rational(SUPPORT, 1 / (1 + SUPPORT**2), WEIGHTS)


@pytest.mark.parametrize("at", [0.0, 0.25, 0.25 + 1e-9, 0.25 - 1e-15, 0.7, -1.0, 3.0])
def test_the_series_of_a_rational_function_is_exact(at: float) -> None:
    assert WITCH.taylor(at, 9) == pytest.approx(runge(1.0).taylor(at, 9), rel=1e-11, abs=1e-13)


def test_poles_and_residues_are_right() -> None:
    real, imaginary, residues = WITCH.poles()
    assert real == pytest.approx([0.0, 0.0], abs=1e-14)
    assert sorted(imaginary) == pytest.approx([-1.0, 1.0])
    assert residues == pytest.approx([0.5, 0.5])


def test_support_points_are_interpolated() -> None:
    assert np.array_equal(WITCH(SUPPORT), WITCH.values)


def test_the_influence_of_the_data_adds_up_to_the_series() -> None:
    found = quotient(*WITCH.influence(0.3, 6)) @ WITCH.values
    assert found == pytest.approx(WITCH.taylor(0.3, 6), rel=1e-13)


def test_a_quotient_of_series() -> None:
    # 1 / (1 - h) = 1 + h + h^2 + ...
    assert quotient(np.array([1.0, 0, 0, 0]), np.array([1.0, -1, 0, 0])).tolist() == [1, 1, 1, 1]


def test_weights_of_equidistant_points_are_those_of_the_paper() -> None:
    # Floater and Hormann (2007), section 4: 1, 4, 7, 8, ..., 8, 7, 4, 1 for degree 3.
    found = np.abs(barycentric_weights(np.linspace(-1, 1, 11), 3))
    assert 8 * found == pytest.approx([1, 4, 7, 8, 8, 8, 8, 8, 7, 4, 1])


def test_the_highest_degree_is_the_interpolating_polynomial() -> None:
    x = np.array([-1.0, -0.2, 0.1, 0.6, 1.0])
    cubic = Rational(x, x**3, barycentric_weights(x, 4))
    assert cubic.taylor(0.3, 4) == pytest.approx([0.027, 0.27, 0.9, 1.0, 0.0], abs=1e-13)
