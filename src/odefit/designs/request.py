"""Requests for a design, checked: every mistake of a user is found before any computation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from odefit.common.arrays import Array
from odefit.common.errors import InputError, did_you_mean, one_of, shown
from odefit.common.option_checks import check_level, number, whole
from odefit.designs.candidates import Window
from odefit.designs.exact import Limits
from odefit.designs.factors import Factor, factors_of
from odefit.designs.observables import with_observables
from odefit.designs.parts import Criterion
from odefit.designs.quantities import Quantities
from odefit.problem.calendars import dates_as_times
from odefit.problem.problem import Problem

SCALES = ("relative", "natural")
"""The units in which the criteria A and E measure errors."""


@dataclass(frozen=True, eq=False)
class Request:
    """A request for a design; see :func:`odefit.design` for the meaning of all fields."""

    problem: Problem
    observables: tuple[str, ...]
    groups: tuple[tuple[str, ...], ...]
    windows: tuple[Window, ...]
    experiments: tuple[str, ...]
    factors: tuple[Factor, ...]
    criterion: Criterion
    quantities: Quantities
    limits: Limits
    budget: float | None
    costs: tuple[float, ...]
    scale: str
    level: float
    seed: int


def request_of(
    problem: Problem,
    *,
    observables: Sequence[str] | str | None = None,
    times: Any = None,
    count: int | None = None,
    criterion: str = "D",
    of: Sequence[str] | str | None = None,
    experiments: Sequence[str] | str | None = None,
    vary: Mapping[str, Any] | None = None,
    noise: Mapping[str, Any] | None = None,
    costs: Mapping[str, float] | None = None,
    budget: float | None = None,
    replicates: int | None = None,
    spacing: float = 0.0,
    runs: int | None = None,
    together: bool = False,
    scale: str = "relative",
    level: float = 0.95,
    seed: int = 0,
) -> Request:
    """Return the request made by these arguments of :func:`odefit.design`.

    Raises InputError for the first unusable one.
    """
    texts = [observables] if isinstance(observables, str) else observables
    problem, names = with_observables(problem, texts, noise)
    if not names:
        raise InputError("observables: expected at least one")
    chosen = _criterion(criterion)
    targets = [of] if isinstance(of, str) else of
    if chosen.of_quantities and targets is None:
        raise InputError(
            f"criterion {chosen.value}: it needs chosen quantities; name them with --of "
            "(of=[...]), such as k1 or y@12"
        )
    asked = [experiments] if isinstance(experiments, str) else experiments
    every = [c.name for c in problem.conditions]
    for name in asked or ():
        if name not in every:
            raise InputError(f"experiment '{name}': unknown name{one_of(name, every)}")
    places = tuple(dict.fromkeys(asked or every))
    groups = (names,) if together else tuple((name,) for name in names)
    windows = _windows(problem, places, groups, times)
    factors = factors_of(problem, vary or {}, places)
    quantities = Quantities((), (), False) if chosen.of_models else Quantities.of(problem, targets)
    prices, run_cost = _costs(groups, costs or {})
    if count is None and budget is None:
        count = len(problem.keys) + 1 if chosen.of_models else max(len(quantities.names), 1)
    if count is not None and budget is not None:
        raise InputError("count, budget: give the number of measurements or a budget, not both")
    if count is not None:
        whole(count, "count")
        if count > 1000:
            raise InputError(f"count: expected at most 1000 measurements, got {count}")
    if budget is not None:
        number(budget, "budget", least=1e-300)
        if budget < min(prices) + run_cost:
            raise InputError(f"budget: {budget:g} does not pay for a single measurement")
        if budget / min(prices) > 1000:
            raise InputError("budget: it pays for more than 1000 measurements; ask for fewer")
    elif costs:
        raise InputError("costs: they need a budget (--budget)")
    for name, value in (("replicates", replicates), ("runs", runs)):
        if value is not None:
            whole(value, name)
    number(spacing, "spacing", least=0.0)
    if scale not in SCALES:
        raise InputError(f"scale: {shown(scale)} is not known{one_of(str(scale), SCALES)}")
    check_level(level)
    limits = Limits(
        float(budget if budget is not None else count or 1),
        run_cost if budget is not None else 0.0,
        replicates,
        float(spacing),
        runs,
    )
    return Request(
        problem, names, groups, windows, places, factors, chosen, quantities, limits, budget,
        prices if budget is not None else (1.0,) * len(groups), scale, level, seed,
    )  # fmt: skip


def _criterion(name: str) -> Criterion:
    for criterion in Criterion:
        if str(name).casefold() == criterion.value.casefold():
            return criterion
    known = [c.value for c in Criterion]
    raise InputError(f"criterion: {shown(name)} is not known{one_of(str(name), known)}")


def _costs(
    groups: Sequence[tuple[str, ...]], costs: Mapping[str, float]
) -> tuple[tuple[float, ...], float]:
    """Return the cost of a measurement of each group of observables, and that of a run."""
    known = [*(name for group in groups for name in group), "run"]
    for name, value in costs.items():
        if name not in known:
            raise InputError(
                f"costs {name}: expected an observable or run{did_you_mean(name, known)}"
            )
        number(value, f"costs {name}", least=0.0)
        if name != "run" and not value > 0:
            raise InputError(f"costs {name}: expected a positive number, got {value:g}")
    prices = tuple(sum(float(costs.get(name, 1.0)) for name in group) for group in groups)
    return prices, float(costs.get("run", 0.0))


def _windows(
    problem: Problem, experiments: Sequence[str], groups: Sequence[tuple[str, ...]], times: Any
) -> tuple[Window, ...]:
    """Return the window of each group of observables."""
    if isinstance(times, Mapping):
        names = [name for group in groups for name in group]
        for name in times:
            if name not in names:
                raise InputError(
                    f"times {name}: it is not among the observables to be measured"
                    f"{did_you_mean(str(name), names)}"
                )
        if any(len(group) > 1 for group in groups):
            raise InputError("times: observables that are measured together have the same times")
    windows = []
    for group in groups:
        asked = times.get(group[0]) if isinstance(times, Mapping) else times
        window = window_of(problem, experiments, asked)
        for name in experiments:
            t0 = problem.condition(name).t0
            if window.low < t0:
                raise InputError(
                    f"times: {window.low:g} is before t0 = {t0:g} of experiment "
                    f'"{name}"; begin there, or give the experiment an earlier t0'
                )
        windows.append(window)
    return tuple(windows)


def window_of(problem: Problem, experiments: Sequence[str], asked: Any) -> Window:
    """Return the window given by a user; None means the span of the data."""
    expected = "times: expected a window such as (0, 20), or a list of possible times"
    if asked is None:
        conditions = [problem.condition(name) for name in experiments]
        low, high = max(c.t0 for c in conditions), max(c.end for c in conditions)
        if not low < high:
            raise InputError(
                "times: give a window, such as --times 0:20: there are no data to take one from"
            )
        return Window(low, high)
    numbers = dates_as_times(asked, problem, experiments)
    try:
        values: Array = np.atleast_1d(np.asarray(numbers, dtype=float))
    except (TypeError, ValueError):
        raise InputError(f"{expected}, got {shown(asked)}") from None
    if values.ndim != 1 or not len(values) or not np.isfinite(values).all():
        raise InputError(f"{expected}, got {shown(asked)}")
    if isinstance(asked, tuple) and len(asked) == 2:
        low, high = map(float, values)
        if not low < high:
            raise InputError(f"times: the window ends at {high:g}, before it begins at {low:g}")
        return Window(low, high)
    listed = np.unique(values)
    return Window(float(listed[0]), float(listed[-1]), listed)
