"""Figures of profiles show the deviances that were found, on the scale on which they were."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.axes import Axes

from odefit.assessment.profiles import Profile, ProfilesData
from odefit.assessment.profiles.parts import Verdict
from odefit.common.arrays import Array
from odefit.methods.estimate import Status
from odefit.reporting.figures.profiles import plot_profiles
from odefit.reporting.figures.style import DATA, MODEL

LIMIT = 4.0


def quadratic(values: Sequence[float], estimate: float, deviances: Array, slopes: Array) -> Profile:
    """A profile whose interval by linearisation is the estimate, plus and minus two."""
    at = np.array(values)
    ends = (estimate - 2.0, estimate + 2.0)
    return Profile(
        "k", "", False, estimate, at, deviances, slopes, at[:, None], *ends,
        ("limit", "limit"), ("", ""), ends, Verdict.IDENTIFIABLE, "", 1, 1,
    )  # fmt: skip


def panel(profile: Profile) -> Axes:
    data = ProfilesData(
        (profile,), 0.95, LIMIT, np.array([profile.estimate]), 1.0, False, Status.CONVERGED,
        "", 1, 1, 0.1,
    )  # fmt: skip
    (axes,) = plot_profiles(data).axes
    return axes


def curve(axes: Axes, colour: str, style: str) -> tuple[Array, Array]:
    """The one smooth line of that look."""
    (found,) = (
        np.asarray(line.get_data(), dtype=float)
        for line in axes.lines
        if (line.get_color(), line.get_linestyle()) == (colour, style)
        and len(np.asarray(line.get_xdata())) > 100
    )
    return found[0], found[1]


def logarithmic(values: Sequence[float], estimate: float) -> Profile:
    """The deviance is the square of the logarithm to base 10, of the ratio to the estimate."""
    at = np.array(values)
    with np.errstate(divide="ignore"):
        offset = np.log10(at / estimate)
    found = quadratic(values, estimate, offset**2, 2 * offset)
    ends = (estimate / 100.0, estimate * 100.0)
    return replace(found, logarithmic=True, lower=ends[0], upper=ends[1], linear=ends)


def test_a_parabola_is_drawn_as_one_and_agrees_with_linearisation() -> None:
    values = np.array([-1.0, 0.5, 1.0, 2.5, 3.0])
    axes = panel(quadratic(values.tolist(), 1.0, (values - 1.0) ** 2, 2 * (values - 1.0)))
    assert axes.get_xscale() == "linear"
    for look in ((MODEL, "-"), (DATA, ":")):
        x, y = curve(axes, *look)
        assert (x[0], x[-1]) == (-1.0, 3.0)
        assert y == pytest.approx((x - 1.0) ** 2, abs=1e-12)
    low, high = axes.get_ylim()
    assert low < 0 < LIMIT < high


@pytest.mark.parametrize(
    ("values", "scale"), [([0.02, 0.2, 2.0, 20.0], "log"), ([1.0, 2.0, 4.0], "linear")]
)
def test_logarithmic_steps_are_interpolated_in_the_logarithm(
    values: list[float], scale: str
) -> None:
    """On a logarithmic axis if they go far."""
    axes = panel(logarithmic(values, 2.0))
    assert axes.get_xscale() == scale
    for look in ((MODEL, "-"), (DATA, ":")):
        x, y = curve(axes, *look)
        assert (x[0], x[-1]) == pytest.approx((values[0], values[-1]))
        assert y == pytest.approx(np.log10(x / 2.0) ** 2, abs=1e-12)


def test_the_curve_does_not_leave_the_range_of_its_points_between_two_of_them() -> None:
    """However steep the slopes are that an imperfect refit gives."""
    values = np.array([0.0, 1.0, 2.0])
    x, y = curve(
        panel(
            quadratic(values.tolist(), 1.0, np.array([1.0, 0.0, 1.0]), np.array([90.0, 0.0, 90.0]))
        ),
        MODEL,
        "-",
    )
    assert -1e-12 <= y.min() <= y.max() <= 1.0 + 1e-12
    assert (np.diff(y[x <= 1.0]) <= 1e-12).all()
    assert (np.diff(y[x >= 1.0]) >= -1e-12).all()
