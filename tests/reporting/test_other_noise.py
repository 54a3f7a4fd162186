"""Noise that is not normal in words and figures."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import odefit
from odefit.reporting.curves import fit_curves
from odefit.reporting.formulas.equations import PLAIN, noise_words

TIMES = np.arange(6.0)


def problem(noise: dict[str, Any], values: Any) -> odefit.Problem:
    return odefit.Problem(
        odefit.Model(ode={"x": "-k*x"}, observables={"y": "x"}),
        data={"t": TIMES, "y": values},
        parameters={"k": {"lower": 0}},
        initial={"x": float(values[0])},
        noise={"y": noise},
    )


@pytest.mark.parametrize(
    ("noise", "words"),
    [
        ({"sd": 0.5, "loss": "huber"}, "sd 0.5, Huber's loss"),
        ({"sd": "estimate", "loss": "student"}, "sd estimated, Student's t distribution"),
        ({"sd": 0.5, "distribution": "laplace"}, "sd 0.5, Laplace distribution"),
        ({"sd": 0.5, "lower_limit": 0.1}, "sd 0.5, censored below 0.1"),
        ({"distribution": "poisson"}, "Poisson counts"),
        (
            {"distribution": "negative-binomial", "dispersion": "estimate"},
            "negative binomial counts, dispersion estimated",
        ),
    ],
)
def test_noise_is_described_in_words(noise: dict[str, Any], words: str) -> None:
    assert noise_words(problem(noise, [20, 11, 7, 4, 2, 1]), "y", PLAIN, "sd") == words


def test_censored_values_are_open_triangles_at_the_limit() -> None:
    values = 4 * np.exp(-0.8 * TIMES)
    result = odefit.fit(problem({"sd": 0.1, "lower_limit": 0.5}, values))
    (curve,) = fit_curves(result)
    assert curve.censored is not None
    assert curve.censored.tolist() == [0, 0, 0, 1, 1, 1]
    lines = {line.get_marker(): line for line in result.plot_fit().axes[0].get_lines()}
    assert lines["v"].get_ydata().tolist() == [0.5, 0.5, 0.5]  # type: ignore[union-attr]
    assert lines["v"].get_markerfacecolor() == "none"
    assert len(lines["o"].get_xdata()) == 3  # type: ignore[arg-type]


def test_error_bars_of_counts_are_roots_of_their_variance() -> None:
    result = odefit.fit(problem({"distribution": "poisson"}, [25, 16, 9, 4, 1, 0]))
    (curve,) = fit_curves(result)
    assert curve.spread is not None
    assert curve.spread[1] - curve.measured == pytest.approx([5, 4, 3, 2, 1, 1])
