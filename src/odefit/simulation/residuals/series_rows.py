"""The rows of the residuals of all measurements, series by series."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from odefit.expressions.expressions import TIME, Expression
from odefit.problem.binding import Bound, unknowns_of
from odefit.problem.condition import Condition, Series
from odefit.problem.noise import Noise
from odefit.problem.problem import Problem
from odefit.simulation.residuals.correlation import (
    Correlated,
    bound_time,
    time_depends_on_unknowns,
)
from odefit.simulation.residuals.noise import known_spreads, log_slopes


@dataclass(frozen=True, eq=False)
class ResidualSource:
    """The condition and the times of consecutive residuals."""

    condition: int
    """Number of the condition; -1 for priors."""
    times: npt.NDArray[np.intp]
    """Rows of the condition's times, shape (k,); for priors, as many zeros."""
    name: str = ""
    """The observable; empty for priors."""


class SeriesRows(NamedTuple):
    """The series of one observable in one condition, and the rows of its residuals."""

    condition: int
    name: str
    series: Series
    noise: Noise
    rows: slice
    sd_rows: slice | None
    """Rows for its spreads, or conditional variances, if these depend on unknowns."""
    lag_rows: slice | None = None
    """Rows for correlations in time if the noise depends on unknowns."""
    estimates_spread: bool = False
    """True if its spreads depend on unknowns."""

    @property
    def gaussian(self) -> bool:
        """True if the density of its measurements is normal, and none is censored."""
        return self.noise.gaussian and self.series.censored is None


class SeriesLayout:
    """The place of the residuals of each series among all residuals.

    Parameters
    ----------
    problem
        The problem.
    estimated
        The indices of the unknowns of the noise by name.

    Attributes
    ----------
    count
        Number of residuals r, without those of priors.
    measurements
        Number of measurements.
    log_density_offset
        Term that the transforms of the noise models add to the log-likelihood.
    sources
        The sources of the residuals, in their order.
    series_rows
        The same by series; values with their own standard deviations are separate.
    gaussian
        Whether all densities are normal, without censored values.
    correlated
        The series whose noise is correlated in time, by number of the condition and observable.
    likelihood
        Whether the noise depends on unknowns, or is given by expressions.
    """

    def __init__(self, problem: Problem, estimated: Mapping[str, int]) -> None:
        self._problem = problem
        self._estimated = estimated
        self.series_rows: list[SeriesRows] = []
        self.sources: list[ResidualSource] = []
        self.log_density_offset = 0.0
        self.measurements = 0
        self.gaussian, self.likelihood = True, False
        self.correlated: dict[tuple[int, str], Correlated] = {}
        start = 0
        for number, condition in enumerate(problem.conditions):
            parts = [(n, p) for n, s in condition.series.items() for p in s.by_source_of_sds()]
            for name, series in parts:
                noise = problem.noise.get(name, Noise())
                rows = slice(start, start + len(series.values))
                start = rows.stop
                self.measurements += len(series.values)
                source = ResidualSource(number, series.rows, name)
                self.sources.append(source)
                spread = self._spread_depends_on_unknowns(noise, series, condition)
                time = self._correlation_time(name, noise, condition)
                moving = time is not None and time_depends_on_unknowns(time, condition)
                # Correlations first: the last rows of a source are those of its spreads.
                ends = start + len(series.values) * np.arange(3)
                lag_rows = sd_rows = None
                if time is not None and (spread or moving):
                    lag_rows = slice(int(ends[0]), int(ends[1]))
                if spread or lag_rows is not None:
                    begin = start if lag_rows is None else lag_rows.stop
                    sd_rows = slice(begin, begin + len(series.values))
                    start = sd_rows.stop
                self.sources += [source] * ((lag_rows is not None) + (sd_rows is not None))
                block = SeriesRows(number, name, series, noise, rows, sd_rows, lag_rows, spread)
                self.series_rows.append(block)
                if time is not None:
                    further = None if lag_rows is None or sd_rows is None else (lag_rows, sd_rows)
                    at = condition, series, time, rows, further, spread
                    self.correlated[number, name] = Correlated.of(*at)
                self.gaussian &= block.gaussian
                self.likelihood |= lag_rows is not None or (
                    not series.sds_given
                    and (noise.spread == "estimate" or isinstance(noise.spread, Expression))
                )
                if noise.transform is not None:
                    self.log_density_offset -= float(np.sum(log_slopes(noise, series)))
        self.count = start

    def _correlation_time(self, name: str, noise: Noise, condition: Condition) -> Bound | None:
        if noise.correlation is None:
            return None
        estimated = self._estimated.get(noise.correlation_unknown(name))
        return bound_time(noise, condition, estimated)

    def _spread_depends_on_unknowns(
        self, noise: Noise, series: Series, condition: Condition
    ) -> bool:
        if known_spreads(noise, series) is not None:
            return False
        if not isinstance(noise.spread, Expression):
            return True  # it is estimated
        names: set[str] = set()
        for name in noise.spread.names:
            observable = self._problem.model.observables.get(name)
            names |= {name} if observable is None else observable.names
        scalars = condition.scalars
        known = {TIME, *condition.inputs}
        known |= {n for n in names & scalars.keys() if not unknowns_of(scalars[n], scalars)}
        moved = {
            n for assign in condition.assignments for n, e in assign.items() if e.constant is None
        }
        return bool(names - (known - moved))
