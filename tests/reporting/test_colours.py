"""The colour-blind tell the colours of figures apart.

Dichromats are simulated with the matrices for severity 1 of G. M. Machado, M. M. Oliveira and
L. A. F. Fernandes, A physiologically-based model for simulation of color vision deficiency (IEEE
Transactions on Visualization and Computer Graphics, 2009); differences are CIE 1976 (L*, a*, b*).
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from matplotlib.colors import to_rgb

from odefit.common.arrays import Array
from odefit.reporting.figures import style

DICHROMATS = {
    "normal": np.eye(3),
    "protanopia": np.array(
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ]
    ),
    "deuteranopia": np.array(
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ]
    ),
    "tritanopia": np.array(
        [
            [1.255528, -0.076749, -0.178779],
            [-0.078411, 0.930809, 0.147602],
            [0.004733, 0.691367, 0.303900],
        ]
    ),
}

TO_XYZ = np.array(
    [
        [0.4124564, 0.3575761, 0.1804375],
        [0.2126729, 0.7151522, 0.0721750],
        [0.0193339, 0.1191920, 0.9503041],
    ]
)
"""Linear sRGB to CIE XYZ under D65."""


def lab(colour: str, seen: str = "normal") -> Array:
    """The CIELAB coordinates of a colour as someone sees it."""
    rgb = np.array(to_rgb(colour))
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    linear = np.clip(DICHROMATS[seen] @ linear, 0.0, 1.0)
    ratio = (TO_XYZ @ linear) / (TO_XYZ @ np.ones(3))
    f = np.where(ratio > (6 / 29) ** 3, np.cbrt(ratio), ratio / (3 * (6 / 29) ** 2) + 4 / 29)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def distance(one: str, other: str, seen: str) -> float:
    return float(np.linalg.norm(lab(one, seen) - lab(other, seen)))


def test_coordinates_are_those_of_known_colours() -> None:
    np.testing.assert_allclose(lab("#ff0000"), [53.24, 80.09, 67.20], atol=0.02)
    np.testing.assert_allclose(lab("#ffffff"), [100.0, 0.0, 0.0], atol=0.02)


@pytest.mark.parametrize("seen", DICHROMATS)
def test_colours_of_model_and_data_are_distinct_for_everyone(seen: str) -> None:
    for one, other in combinations((style.MODEL, style.DATA, style.INK), 2):
        assert distance(one, other, seen) > 30
    assert all(distance(c, "#ffffff", seen) > 45 for c in (style.MODEL, style.DATA, style.INK))


@pytest.mark.parametrize("seen", ["normal", "protanopia", "deuteranopia"])
def test_lines_of_several_colours_are_distinguishable(seen: str) -> None:
    closest = min(distance(a, b, seen) for a, b in combinations(style.SERIES, 2))
    assert closest > 10
    assert min(distance(a, b, seen) for a, b in combinations(style.SERIES[:4], 2)) > 15
