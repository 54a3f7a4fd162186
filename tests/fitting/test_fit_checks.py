"""What cannot be fitted is refused before the fit begins."""

from __future__ import annotations

import numpy as np
import pytest

import odefit
from odefit.fitting.fit import check_size, forecast


def chain(states: int, measurements: int) -> odefit.Problem:
    """Return a chain of so many reactions, each with a rate of its own, all of them measured."""
    names = [f"x{i}" for i in range(states)]
    ode = {n: f"{f'k{i - 1}*x{i - 1}' if i else '0'} - k{i}*{n}" for i, n in enumerate(names)}
    data = {"t": np.linspace(0.0, 1.0, measurements)} | {n: np.ones(measurements) for n in names}
    unknown = {f"k{i}": {"lower": 0.0, "upper": 1.0} for i in range(states)}
    return odefit.Problem(odefit.Model(ode=ode), data, unknown, dict.fromkeys(names, 1.0))


def test_the_forecast_grows_with_measurements_and_unknowns() -> None:
    small, long, wide = chain(2, 100), chain(2, 1000), chain(4, 100)
    assert forecast(long) == pytest.approx(10 * forecast(small), rel=0.02)
    assert forecast(wide) == pytest.approx(4 * forecast(small), rel=0.02)


def test_a_problem_that_does_not_fit_into_memory_is_refused_with_a_remedy() -> None:
    problem = chain(10, 5000)
    check_size(problem, 10**9)
    with pytest.raises(
        odefit.InputError,
        match=r"50000 measurements and 10 unknowns need about .* MB of memory for the derivatives "
        "of the residuals, and the limit that was given has 10 MB; thin the data",
    ):
        check_size(problem, 10**7)
