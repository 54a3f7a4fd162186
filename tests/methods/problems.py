"""Problems whose fits take milliseconds, and one that takes a second a start."""

from __future__ import annotations

from typing import Any

import numpy as np

from odefit import Model, Problem


def decay(noise: float = 0.05, seed: int = 1, **more: Any) -> Problem:
    """y = s exp(-k t) with noise: one solution."""
    times = np.linspace(0.0, 4.0, 9)
    random = np.random.default_rng(seed)
    data = {"t": times, "y": 2 * np.exp(-0.7 * times) + noise * random.normal(size=9)}
    arguments: dict[str, Any] = {
        "model": Model(ode={"x": "-k*x"}, observables={"y": "s*x"}),
        "data": data,
        "parameters": {"k": {"lower": 0.0, "upper": 10.0}, "s": {"lower": 0.0}},
        "initial": {"x": 1.0},
        **more,
    }
    return Problem(**arguments)


def oscillator() -> Problem:
    """A frequency from few data: many local minima."""
    times = np.linspace(0.0, 10.0, 25)
    random = np.random.default_rng(3)
    return Problem(
        Model(ode={"x": "w*y", "y": "-w*x"}),
        {"t": times, "x": np.cos(2.3 * times) + 0.1 * random.normal(size=25)},
        {"w": {"lower": 0.1, "upper": 6.0}},
        {"x": 1.0, "y": {"lower": -1.0, "upper": 1.0}},
    )


def explosive(upper: float = 3.0) -> Problem:
    """Most starts blow up before the last datum: x = 1/(1 - k t) with k < 1/4."""
    times = np.linspace(0.0, 4.0, 6)
    return Problem(
        Model(ode={"x": "k*x^2"}),
        {"t": times, "x": 1 / (1 - 0.1 * times)},
        {"k": {"lower": 0.05, "upper": upper}},
        {"x": 1.0},
    )
