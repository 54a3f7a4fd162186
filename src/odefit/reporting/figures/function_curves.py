"""Curves of functions: estimated ones with their bands, and the inputs and doses of runs."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

import numpy as np
from matplotlib.axes import Axes

from odefit.assessment.predictions.bands import Band, BandSource
from odefit.common.arrays import Array
from odefit.problem.condition import Condition
from odefit.problem.unknown_functions.expansion import Expansion
from odefit.reporting.curves import Curve, calendar_on, fine_times, spreads_over_decades
from odefit.reporting.driving import Driving, DrivingKind
from odefit.reporting.figures import style
from odefit.reporting.predictions import band_source
from odefit.result_data import ResultData
from odefit.simulation import Failure, ForwardMap, simulated

MARGIN = 0.05
"""Margin of the times of inputs and doses, relative to those of the run."""


def with_functions(
    curves: Sequence[Curve],
    result: ResultData,
    experiment: str | None = None,
    bands: BandSource | None = None,
    level: float = 0.95,
    observables: Collection[str] | None = None,
    forward: ForwardMap | None = None,
) -> list[Curve]:
    """Return curves with those of the estimated functions, after the others of their experiment.

    Functions always have a band where there is one: a linear one without ``bands``. A function that
    all experiments share is drawn for the longest of them.
    """
    problem = result.problem
    functions = problem.model.unknown_functions
    shown = {n: f for n, f in functions.items() if observables is None or n in observables}
    if not shown or not result.solutions or result.best.nodes is not None:
        return list(curves)
    forward = forward or ForwardMap(problem)
    if bands is None and result.uncertainty is not None:
        bands = band_source(result, "linear", forward)
    conditions = problem.conditions if experiment is None else (problem.condition(experiment),)
    longest = max(conditions, key=lambda condition: condition.end)
    extended: list[Curve] = []
    for condition in conditions:
        extended += [curve for curve in curves if curve.experiment == condition.name]
        here = {n: f for n, f in shown.items() if f.function.per_experiment or condition is longest}
        extended += _curves(result, condition, here, bands, level, forward)
    return extended


def _curves(
    result: ResultData,
    condition: Condition,
    functions: dict[str, Expansion],
    bands: BandSource | None,
    level: float,
    forward: ForwardMap,
) -> Iterator[Curve]:
    if not functions:
        return
    problem, log_time = result.problem, spreads_over_decades(condition.times)
    times = fine_times(condition, log_time)
    times = times[np.isfinite(times)]
    line = simulated(
        problem, result.best.vector, times=times, experiment=condition.name, forward=forward
    )
    if isinstance(line, Failure):
        return
    made = None if bands is None else bands.bands(condition, times, level, list(functions))
    for name, expansion in functions.items():
        band = None
        if made is not None and not isinstance(made, Failure):
            band = next((b for b in made if b.name == name), None)
        curve = Curve(
            experiment=condition.name,
            observable=name,
            times=np.zeros(0),
            measured=np.zeros(0),
            spread=None,
            model_times=times,
            model=line.observables[name],
            failure="",
            events=(),
            transform="log10" if expansion.function.log else None,
            log_time=log_time,
            time_unit=problem.time_unit,
            calendar=calendar_on(problem, condition),
            band=band,
            no_band=f"the integration fails: {made}" if isinstance(made, Failure) else "",
            unit=expansion.function.unit,
        )
        of = expansion.function.of
        known = {**line.states, **line.observables}
        if of is not None and of.text in known:
            curve = _against(curve, of.text, problem.units.get(of.text, ""), known[of.text])
        yield curve


def _against(curve: Curve, name: str, unit: str, values: Array) -> Curve:
    """Return a curve over the state that a function depends on, as far as the experiment went."""
    order = np.argsort(values, kind="stable")
    band = curve.band
    if isinstance(band, Band):
        band = replace(
            band,
            times=values[order],
            values=band.values[order],
            errors=band.errors[order],
            confidence=band.confidence[:, order],
            prediction=band.prediction[:, order],
            scatter=band.scatter[:, order],
        )
    return replace(
        curve,
        argument=(name, unit),
        model_times=values[order],
        model=curve.model[order],
        band=band,
        log_time=False,
        calendar=None,
    )


def draw_driving(axes: Axes, curves: Sequence[Driving], colours: Sequence[str]) -> None:
    """Draw the same input, doses or constant in several runs, a colour each.

    Doses are stems of the height of their amounts, constants are steps.
    """
    for one, colour in zip(curves, colours, strict=True):
        if one.kind is DrivingKind.DOSE:
            axes.vlines(one.times, 0.0, one.values, color=colour, linewidth=1.4)
            axes.plot(one.times, one.values, "o", color=colour, markersize=3.0)
        else:
            axes.plot(one.times, one.values, color=colour, linewidth=1.2)
    first = curves[0]
    title = f"doses into {first.name}" if first.kind is DrivingKind.DOSE else first.name
    axes.set_title(
        style.plain(style.shorten(title)), loc="left", fontsize=9.5, color=style.INK,
        parse_math=False,
    )  # fmt: skip
    label = "amount" if first.kind is DrivingKind.DOSE else first.name
    axes.set_ylabel(style.with_unit(label, first.unit), parse_math=False)
    axes.set_xlabel(style.time_label(first.time_unit), parse_math=False)
    style.dress(axes)
    start, end = min(c.span[0] for c in curves), max(c.span[1] for c in curves)
    axes.set_xlim(start - MARGIN * (end - start), end + MARGIN * (end - start))
    if first.kind is DrivingKind.DOSE:
        axes.set_ylim(0.0, None)
