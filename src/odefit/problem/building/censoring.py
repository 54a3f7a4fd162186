"""Values beyond the limits of quantification that the noise model gives."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from odefit.common.arrays import Array
from odefit.problem.condition import Series
from odefit.problem.inputs.issues import Issues
from odefit.problem.noise import Noise


def with_limits(
    name: str, series: Series, times: Array, noise: Noise, place: str, issues: Issues
) -> Series:
    """Return a series in which values beyond a limit are censored and replaced by the limit.

    Values that the data mark as censored stay so. Rows of the series index `times`, shape (k,).
    """
    low, high = noise.lower_limit, noise.upper_limit
    if low is None and high is None:
        return series
    values = series.values.copy()
    n = len(values)
    marked = np.zeros(n, np.intp) if series.censored is None else series.censored
    censored = marked.copy()
    if low is not None:
        _check(name, "below", (marked == -1) & (values <= low), low, series, times, place, issues)
        below = (marked == 0) & (values <= low)
        censored[below], values[below] = 1, low
    if high is not None:
        _check(name, "above", (marked == 1) & (values >= high), high, series, times, place, issues)
        above = (marked == 0) & (values >= high)
        censored[above], values[above] = -1, high
    return replace(series, values=values, censored=censored if censored.any() else None)


def _check(
    name: str,
    side: str,
    wrong: Array,
    limit: float,
    series: Series,
    times: Array,
    place: str,
    issues: Issues,
) -> None:
    """Report values that the data mark on one side of a limit that is on the other."""
    if not wrong.any():
        return
    i = int(np.flatnonzero(wrong)[0])
    other, field = ("above", "lower_limit") if side == "below" else ("below", "upper_limit")
    issues.error(
        f"{place}, column {name}_cens",
        f"the value at t = {times[series.rows[i]]:g} is marked as {other} {series.values[i]:g}, "
        f"but [noise] {name} has {field} = {limit:g}; correct one of them",
    )
