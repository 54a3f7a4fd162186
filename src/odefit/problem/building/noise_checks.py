"""Checks that the noise of every measurement is known and fits the data, and its limits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from odefit.common.arrays import Array
from odefit.common.errors import did_you_mean
from odefit.expressions.algebras import NUMPY
from odefit.expressions.expressions import Expression
from odefit.problem.condition import Condition, Series
from odefit.problem.experiment import Experiment, data_place
from odefit.problem.inputs.issues import LARGEST, Issues
from odefit.problem.model import Model
from odefit.problem.noise import Noise

FEWEST_ALIKE = 3
"""Smallest number of equal values of an observable that is reported."""


def check_noise(
    model: Model,
    noise: Mapping[str, Noise],
    conditions: Sequence[Condition],
    experiments: Sequence[Experiment],
    unknown: set[str],
    issues: Issues,
) -> tuple[str, ...]:
    """Report missing, misplaced or impossible noise; return those whose size is estimated.

    Expressions of standard deviations may contain `unknown` parameters.
    """
    for name in noise:
        if name not in model.observables:
            hint = did_you_mean(str(name), model.observables)
            issues.error(f"[noise] {name}", f"there is no observable '{name}'{hint}")
    _check_complete(noise, conditions, issues)
    estimated: dict[str, None] = {}
    for condition, experiment in zip(conditions, experiments, strict=True):
        for name, series in condition.series.items():
            noise_of = noise.get(name, Noise())
            if noise_of.spread == "estimate" and not series.sds_given:
                estimated[name] = None
            _check_values(condition, name, noise_of, data_place(experiment), issues)
            if noise_of.counts:
                place = data_place(experiment)
                _check_first(condition, name, model.observables[name], place, issues)
    for name, expression in model.observables.items():
        implicit = expression.name == name  # without [observables], all states are observed
        measured = any(name in c.series for c in conditions)
        function = name in model.unknown_functions
        if conditions and not measured and not implicit and not function:
            issues.warn(f"[observables] {name}", "is never measured")
    _check_information(model, noise, conditions, {*estimated}, unknown, issues)
    return tuple(estimated)


def estimated_correlations(
    noise: Mapping[str, Noise], conditions: Sequence[Condition]
) -> tuple[str, ...]:
    """Return the measured observables whose correlation time is estimated."""
    measured = {name for condition in conditions for name in condition.series}
    return tuple(
        n
        for n, noise_of in noise.items()
        if noise_of.correlation_time == "estimate" and n in measured
    )


def _check_information(
    model: Model,
    noise: Mapping[str, Noise],
    conditions: Sequence[Condition],
    estimated: set[str],
    unknown: set[str],
    issues: Issues,
) -> None:
    """Report estimated noise without information in the data, and values that are all equal."""
    equations = (*model.ode.values(), *model.algebraic.values(), *model.observables.values())
    names_used = {name for expression in equations for name in expression.names}
    censored: dict[str, set[str]] = {}  # the unknowns of the noise of each such observable
    alike: list[str] = []
    measured = 0
    for name in model.observables:
        all_series = [c.series[name] for c in conditions if name in c.series]
        values = [v for s in all_series for v in s.values.tolist()]
        sd = noise.get(name, Noise()).sd
        scatter = sd.names & unknown if isinstance(sd, Expression) else set()
        for expression in noise.get(name, Noise()).expressions:
            names_used |= expression.names if expression is not sd else frozenset()
        if values and all(s.censored is not None and s.censored.all() for s in all_series):
            censored[name] = {*scatter, *({name} & estimated)}
        else:
            names_used |= scatter
        measured += bool(values)
        if len(values) >= FEWEST_ALIKE and len(set(values)) == 1 and name not in censored:
            alike.append(f"{name}: all {len(values)} values are {values[0]:g}")
    if alike and len(alike) == measured:
        issues.warn(
            "[observables]",
            f"{'; '.join(alike)}; constant data determine no rate, and no noise if the model can "
            "be constant",
        )
    for name, scatter in censored.items():
        every = f"every value of {name} is censored"
        if scatter - names_used - {name} or name in estimated:
            issues.error(
                f"[noise] {name}",
                f"{every}, so their scatter is unknown; give sd = a number",
            )
        else:
            issues.warn(
                f"[observables] {name}",
                f"{every}: they bound the estimates on one side only",
            )


def with_missing_sds(
    name: str, series: Series, times: Array, noise: Noise, place: str, issues: Issues
) -> Series:
    """Return a series with standard deviations from ``[noise]`` where its column has none."""
    if series.sds is None or not noise.law.located:
        return series
    missing = np.isnan(series.sds)
    if not missing.any():
        return series
    at = times[series.rows[missing]][0]
    column = f"{place}, column {name}_sd"
    if noise.relative is not None:
        if (series.values[missing] == 0).any():
            at = times[series.rows[missing & (series.values == 0)]][0]
            issues.error(
                column,
                f"the field at t = {at:g} is empty, and relative noise gives the value zero there "
                "an infinite weight; fill the field",
            )
            return replace(series, sds=np.where(missing, 1.0, series.sds))
        defaults = noise.relative * np.abs(series.values)
    elif isinstance(noise.sd, float):
        defaults = np.full(len(missing), noise.sd)
    elif noise.sd is None:
        others = int(missing.sum()) - 1
        more = f" (and {others} more)" if others else ""
        issues.error(
            column,
            f"the field at t = {at:g} is empty{more}, and [noise] does not give {name}; fill "
            f'it, or write {name} = {{ sd = "estimate" }} or another '
            "sd in [noise], which holds where fields are empty",
        )
        return replace(series, sds=np.where(missing, 1.0, series.sds))
    else:
        return series
    return replace(series, sds=np.where(missing, defaults, series.sds))


def _check_complete(
    noise: Mapping[str, Noise], conditions: Sequence[Condition], issues: Issues
) -> None:
    """Report measurements without a weight beside measurements with one."""
    weighted: dict[str, None] = {}
    plain: dict[str, str] = {}  # and the first experiment that has them
    for condition in conditions:
        for name, series in condition.series.items():
            own_noise = noise.get(name, Noise())
            if series.sds is not None or own_noise.known:
                weighted[name] = None
            else:
                plain.setdefault(name, condition.name)
    for name, experiment in plain.items() if weighted else ():
        place = f"[noise] {name}"
        if issues.has_errors(place):
            continue
        if name in weighted:
            issues.error(
                place,
                f'the noise of {name} is not known in experiment "{experiment}", but elsewhere '
                f"it is; add a column {name}_sd there, or give {name} = {{ sd = ... }}",
            )
        else:
            issues.error(
                place,
                f"the noise of {', '.join(weighted)} is given, but not that of {name}; "
                f'give it too, e.g. {name} = {{ sd = "estimate" }}',
            )


def _check_counts(
    series: Series, times: Array, name: str, noise: Noise, place: str, issues: Issues
) -> None:
    """Report measurements that are not counts."""
    wrong = np.flatnonzero((series.values < 0) | (series.values != np.round(series.values)))
    if len(wrong):
        issues.error(
            f"{place}, column {name}",
            f'distribution = "{noise.distribution}" is for counts, but the value at '
            f"t = {times[wrong[0]]:g} is {series.values[wrong[0]]:g}; give whole numbers that are "
            "not negative, or another distribution",
        )
    if series.sds is not None:
        issues.error(
            f"{place}, column {name}_sd",
            f'contradicts distribution = "{noise.distribution}", whose scatter follows from its '
            "mean; remove one of them",
        )


def _check_first(
    condition: Condition, name: str, observable: Expression, place: str, issues: Issues
) -> None:
    """Report a count above zero at t0 where the model expects none, whatever the unknowns are.

    An example are new cases since the last report, whose first report is at t0.
    """
    series, t0 = condition.series[name], condition.t0
    first = condition.times[series.rows] == t0
    numbers = {n: v for n, v in condition.initial.items() if isinstance(v, float)}
    if condition.steady_start or condition.sees_events(t0) or not observable.names <= {*numbers}:
        return
    expected = float(observable.evaluate(numbers, NUMPY))
    if expected == 0.0 and (series.values[first] > 0.0).any():
        issues.warn(
            f"{place}, column {name}",
            f"{series.values[first].max():g} was counted at t = {t0:g}, where the model has "
            f"{name} = 0 whatever the unknowns are; let the experiment begin earlier, "
            "with t0, or leave the field empty",
        )


def _check_correlated(series: Series, name: str, noise: Noise, place: str, issues: Issues) -> None:
    """Report values that cannot have correlated noise: of partly unknown size, or censored."""
    if series.censored is not None:
        issues.error(
            f"{place}, column {name}_cens",
            'censored values have no residual, but with correlation = "ou" in [noise] the next '
            "residual depends on it; remove the column or the correlation",
        )
    elif series.sds is not None and not series.sds_given:
        issues.error(
            f"{place}, column {name}_sd",
            'some fields are empty, but noise with correlation = "ou" needs the standard '
            "deviations of all values from one source; fill the fields, or remove the column",
        )
    elif series.sds is None and not noise.known:
        issues.error(
            f"[noise] {name}",
            'correlation = "ou" needs the standard deviation of the noise; give sd = a number, or '
            'sd = "estimate"',
        )


def _check_scale(series: Series, name: str, noise: Noise, issues: Issues) -> None:
    """Report a density that lacks a scale."""
    if series.censored is not None:
        why = "values are censored, whose probability depends on the noise"
    elif noise.loss is not None:
        why = f'loss = "{noise.loss}" recognises outliers by the noise'
    elif not noise.gaussian:
        why = f"{noise.choice} has a scale"
    else:
        return
    issues.error(f"[noise] {name}", f'{why}; give sd = a number, or sd = "estimate"')


def _check_values(
    condition: Condition, name: str, noise: Noise, place: str, issues: Issues
) -> None:
    series = condition.series[name]
    times = condition.times[series.rows]
    if noise.correlation is not None:
        _check_correlated(series, name, noise, place, issues)
    if noise.counts:
        _check_counts(series, times, name, noise, place, issues)
    elif series.sds is None and not noise.known:
        _check_scale(series, name, noise, issues)
    if series.censored is not None and not noise.gaussian:
        chosen = noise.loss or noise.distribution
        issues.error(
            f"{place}, column {name}_cens",
            f'censored values need normal or log-normal noise, but [noise] says "{chosen}"; '
            "remove the column or that entry",
        )
    if isinstance(noise.sd, float) and series.sds is None:
        with np.errstate(over="ignore"):
            wrong = np.flatnonzero(np.abs(series.values) / noise.sd > LARGEST)
        if len(wrong):
            issues.error(
                f"[noise] {name}.sd",
                f"{noise.sd:g} is too small beside the value {series.values[wrong[0]]:g} at "
                f"t = {times[wrong[0]]:g}, because squares of residuals would overflow; "
                "correct one of them",
            )
    if noise.transform is not None and (series.values <= 0).any():
        at = times[series.values <= 0][0]
        issues.error(
            f"{place}, column {name}",
            f"the value at t = {at:g} is not positive, but [noise] asks for "
            f'transform = "{noise.transform}"; remove the value or the transform',
        )
    elif noise.relative is not None and series.sds is None and (series.values == 0).any():
        at = times[series.values == 0][0]
        issues.error(
            f"{place}, column {name}",
            f"the value at t = {at:g} is zero, which relative noise gives an infinite weight; "
            f'use sd = "a + b*{name}" or a column {name}_sd',
        )


def with_limits(
    name: str, series: Series, times: Array, noise: Noise, place: str, issues: Issues
) -> Series:
    """Return a series in which values beyond a limit are censored and replaced by the limit.

    Values marked as censored in the data stay so. Rows of the series index `times`, shape (k,).
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
    """Report censored values that are marked on the wrong side of a limit."""
    if not wrong.any():
        return
    i = int(np.flatnonzero(wrong)[0])
    other, field = ("above", "lower_limit") if side == "below" else ("below", "upper_limit")
    issues.error(
        f"{place}, column {name}_cens",
        f"the value at t = {times[series.rows[i]]:g} is marked as {other} {series.values[i]:g}, "
        f"but [noise] {name} has {field} = {limit:g}; correct one of them",
    )
