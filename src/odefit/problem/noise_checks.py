"""Checks that the noise of every measurement is known and fits the data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from odefit.problem.columns import data_place
from odefit.problem.condition import Condition
from odefit.problem.errors import did_you_mean
from odefit.problem.experiment import Experiment
from odefit.problem.issues import Issues
from odefit.problem.model import Model
from odefit.problem.noise import Noise


def check_noise(
    model: Model,
    noise: Mapping[str, Noise],
    conditions: Sequence[Condition],
    experiments: Sequence[Experiment],
    issues: Issues,
) -> tuple[str, ...]:
    """Report noise that is missing, misplaced or impossible.

    Returns
    -------
    tuple of str
        Observables with a standard deviation to be estimated.
    """
    for name in noise:
        if name not in model.observables:
            hint = did_you_mean(str(name), model.observables)
            issues.error(f"[noise] {name}", f"there is no observable '{name}'{hint}")
    _check_complete(noise, conditions, issues)
    estimated: dict[str, None] = {}
    for condition, experiment in zip(conditions, experiments, strict=True):
        for name, series in condition.series.items():
            own = noise.get(name, Noise())
            if own.sd == "estimate" and series.sds is None:
                estimated[name] = None
            _check_values(condition, name, own, data_place(experiment), issues)
    for name, expression in model.observables.items():
        implicit = expression.name == name  # without [observables], all states are
        measured = any(name in c.series for c in conditions)
        if conditions and not measured and not implicit:
            issues.warn(f"[observables] {name}", "is never measured")
    return tuple(estimated)


def _check_complete(
    noise: Mapping[str, Noise], conditions: Sequence[Condition], issues: Issues
) -> None:
    """Report measurements without a weight beside measurements with one."""
    weighted: dict[str, None] = {}
    plain: dict[str, str] = {}  # and the first experiment in which they are
    for condition in conditions:
        for name, series in condition.series.items():
            own = noise.get(name, Noise())
            if series.sds is not None or own.sd is not None or own.relative is not None:
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


def _check_values(
    condition: Condition, name: str, noise: Noise, place: str, issues: Issues
) -> None:
    series = condition.series[name]
    times = condition.times[series.rows]
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
