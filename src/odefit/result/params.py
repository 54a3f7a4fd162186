"""The estimates by name, with the attributes of lmfit."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from odefit.common.errors import nearest_first
from odefit.reporting.estimates.row import Row
from odefit.reporting.numbers import significant
from odefit.reporting.parameters import parameter_rows
from odefit.result_data import ResultData


@dataclass(frozen=True)
class ParameterEstimate:
    """One parameter, initial value or noise parameter of a result.

    Attributes
    ----------
    name
        Its name, such as ``"k"``, or ``"k[run 1]"`` where each experiment has its own.
    value
        The estimate, or the known value; NaN if no solution was found.
    stderr
        The standard error, or None, with the reason in ``note``.
    ci
        The ends of the confidence interval, or None. The level is ``result.uncertainty.level``.
    vary
        Whether it was estimated.
    min, max
        Its bounds, infinite without one; both the value itself where it is fixed.
    init_value
        Its guess; None where the problem gives none.
    correl
        Correlations with the other estimates, by name; empty where there is no standard error.
    unit
        Its unit; empty where the problem gives none.
    note
        The reason for a missing number, or a word of caution; empty without one.
    """

    name: str
    value: float
    stderr: float | None
    ci: tuple[float, float] | None
    vary: bool
    min: float
    max: float
    init_value: float | None
    correl: Mapping[str, float] = field(repr=False)
    unit: str = ""
    note: str = ""

    def __float__(self) -> float:
        return self.value


class Params(Mapping[str, ParameterEstimate]):
    """The estimates by name: ``result.params["k"].value``, ``.stderr``, ``.ci``."""

    def __init__(self, estimates: Mapping[str, ParameterEstimate]) -> None:
        self._estimates = dict(estimates)

    def __getitem__(self, name: str) -> ParameterEstimate:
        if name not in self._estimates:
            raise KeyError(f"{name}{nearest_first(str(name), [*self])}")
        return self._estimates[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._estimates)

    def __len__(self) -> int:
        return len(self._estimates)

    def valuesdict(self) -> dict[str, float]:
        """Return the values by name."""
        return {name: estimate.value for name, estimate in self.items()}

    def __repr__(self) -> str:
        return "\n".join(map(_line, self.values())) or "no parameters"


def params_of(result: ResultData) -> Params:
    """Return all parameters, initial values and noise parameters of a result."""
    correlations = _correlations(result)
    rows = parameter_rows(result)
    return Params({row.key: _estimate(row, correlations.get(row.key, {})) for row in rows})


def _estimate(row: Row, correl: Mapping[str, float]) -> ParameterEstimate:
    parameter = None if row.unknown is None else row.unknown.parameter
    limits = (row.ci_low, row.ci_high)
    return ParameterEstimate(
        name=row.key,
        value=row.estimate,
        stderr=row.std_error if math.isfinite(row.std_error) else None,
        ci=None if any(map(math.isnan, limits)) else limits,
        vary=row.estimated,
        min=row.estimate if parameter is None else parameter.lower,
        max=row.estimate if parameter is None else parameter.upper,
        init_value=row.estimate if parameter is None else parameter.guess,
        correl=correl,
        unit=row.unit,
        note=row.note,
    )


def _correlations(result: ResultData) -> dict[str, dict[str, float]]:
    """Return the finite correlations of each unknown with the others."""
    uncertainty = result.uncertainty
    if uncertainty is None:
        return {}
    keys = uncertainty.keys
    return {
        key: {
            other: float(value)
            for other, value in zip(keys, row, strict=True)
            if other != key and math.isfinite(value)
        }
        for key, row in zip(keys, uncertainty.correlation, strict=True)
    }


def _line(estimate: ParameterEstimate) -> str:
    error = "" if estimate.stderr is None else f" +/- {significant(estimate.stderr, 2)}"
    unit = f" {estimate.unit}" if estimate.unit else ""
    fixed = "" if estimate.vary else " (fixed)"
    return f"{estimate.name} = {significant(estimate.value)}{error}{unit}{fixed}"
