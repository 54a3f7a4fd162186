"""The data of the page, as JSON: the problem with its data and sliders, curves, fits."""

from __future__ import annotations

import datetime
import math
from collections.abc import Collection, Iterable, Mapping
from typing import Any

import numpy as np

from odefit.common.arrays import Array
from odefit.explorer.fit_job import Report
from odefit.explorer.live_curves import LiveCurves, LiveModel
from odefit.explorer.phase_plane import PhasePlane
from odefit.explorer.scenarios import givens
from odefit.explorer.sensitivity_curves import SensitivityCurves
from odefit.explorer.sliders import Slider
from odefit.problem.calendars import calendar_of
from odefit.problem.condition import Condition
from odefit.problem.noise import Noise
from odefit.problem.problem import Problem
from odefit.reporting.curves import place_of_infinity, placed, seen, spreads_over_decades
from odefit.reporting.sentences import weighted
from odefit.reporting.spreads import ends
from odefit.result_data import ResultData
from odefit.simulation import Failure

Json = dict[str, Any]
"""An object of JSON."""


def number(value: float) -> float | None:
    """Return a JSON number, or None for infinite numbers and NaN, which JSON lacks."""
    return float(value) if math.isfinite(value) else None


def numbers(values: Iterable[float]) -> list[float | None]:
    """Return a list of JSON numbers, see :func:`number`."""
    array = np.array(values if isinstance(values, np.ndarray) else list(values), dtype=float)
    listed: list[float | None] = array.tolist()
    if not np.isfinite(array).all():
        listed = [None if v is None or not math.isfinite(v) else v for v in listed]
    return listed


def problem_data(problem: Problem, sliders: Iterable[Slider], model: LiveModel) -> Json:
    """Return the description of a problem: sliders, experiments, measurements, names."""
    return {
        "name": problem.name,
        "description": problem.description,
        "time_unit": problem.time_unit,
        "units": _units(problem),
        "weighted": weighted(problem),
        "unknowns": [_slider(s) for s in sliders],
        "experiments": [_experiment(problem, c, model) for c in problem.conditions],
        "givens": {e.name: [vars(g) for g in givens(problem, e)] for e in problem.experiments},
        "observables": list(problem.model.observables),
        "states": [*problem.model.states, *problem.model.algebraic],
    }


def _units(problem: Problem) -> dict[str, str]:
    """Return the units of observables and states, as far as they are known."""
    units = {name: problem.units[name] for name in problem.units}
    for name, expression in problem.model.observables.items():
        if name not in units and expression.name in units:
            units[name] = units[expression.name]
    return {name: str(unit) for name, unit in units.items()}


def _slider(slider: Slider) -> Json:
    content = vars(slider).copy()
    for name in ("low", "high", "lower", "upper"):
        content[name] = number(content[name])
    return content


def _experiment(problem: Problem, condition: Condition, model: LiveModel) -> Json:
    log_time, infinity = _axis(condition, model)
    series = {}
    for name, measured in condition.series.items():
        noise = problem.noise.get(name, Noise())
        rows = model.rows(condition, name)
        series[name] = {
            "times": numbers(placed(condition.times[measured.rows][rows], infinity)),
            "values": numbers(measured.values[rows]),
            "censored": None if measured.censored is None else measured.censored[rows].tolist(),
            "count": len(measured.values),
            "log": noise.transform is not None,
        }
    return {
        "name": condition.name,
        "t0": number(condition.t0),
        "log_time": log_time,
        "infinity": infinity,
        "calendar": _calendar(problem, condition),
        "events": sorted({float(time) for time, _ in condition.events}),
        "series": series,
    }


def _calendar(problem: Problem, condition: Condition) -> Json | None:
    """Return the milliseconds of t = 0 by the clock of the data, and of a unit of time."""
    calendar = calendar_of(problem, condition)
    if calendar is None:
        return None
    clock = calendar.origin.replace(tzinfo=datetime.UTC)
    return {"origin": clock.timestamp() * 1000.0, "unit": calendar.seconds * 1000.0}


def _axis(condition: Condition, model: LiveModel) -> tuple[bool, float | None]:
    log_time = spreads_over_decades(condition.times)
    return log_time, place_of_infinity(model.grid(condition), log_time)


def result_data(result: ResultData, label: str) -> Json:
    """Return the best solution of a result by key, with its label."""
    best = result.best
    return {
        "label": label,
        "values": {
            k: number(v) for k, v in zip(result.problem.keys, best.vector.tolist(), strict=True)
        },
        "errors": _errors(result),
        "objective": number(best.objective),
        "log_likelihood": None if best.log_likelihood is None else number(best.log_likelihood),
        "status": result.status.value,
        "message": result.message,
    }


def _errors(result: ResultData) -> Json:
    """Return the standard errors of the estimates by key; None for missing ones."""
    if result.uncertainty is None:
        return {}
    errors = result.uncertainty.standard_errors.tolist()
    return {k: number(v) for k, v in zip(result.uncertainty.keys, errors, strict=True)}


def failure_data(failure: Failure) -> Json:
    """Return a failed integration as a sentence."""
    return {
        "failure": f'The integration of experiment "{failure.experiment}" fails at '
        f"t = {failure.time:.4g}: {failure.reason}."
    }


PARTS = ("observables", "states")
"""The parts of the curves of an experiment."""


def curves_data(
    problem: Problem, model: LiveModel, curves: LiveCurves, parts: Collection[str] = PARTS
) -> Json:
    """Return curves by experiment, and where they were requested, objective and residuals.

    `parts` are those of :data:`PARTS` to send: numbers that are not drawn would only take time.
    """
    experiments = {}
    for name, lines in curves.experiments.items():
        log_time, infinity = _axis(problem.condition(name), model)
        drawn = {p: getattr(lines, p) for p in parts}
        # Of many points, those that determine the shape of the lines.
        masks = [seen(lines.times, v, log_time) for of in drawn.values() for v in of.values()]
        visible = np.logical_or.reduce(masks) if masks else np.ones(len(lines.times), dtype=bool)
        experiments[name] = {
            "times": numbers(placed(lines.times[visible], infinity)),
            **{p: {n: numbers(v[visible]) for n, v in of.items()} for p, of in drawn.items()},
        }
    answer: Json = {"experiments": experiments}
    if curves.objective is not None:
        answer["objective"] = number(curves.objective)
        answer["log_likelihood"] = (
            None if curves.log_likelihood is None else number(curves.log_likelihood)
        )
        answer["fits"] = _fits(problem, model, curves)
    return answer


def _fits(problem: Problem, model: LiveModel, curves: LiveCurves) -> Json:
    """Return residuals and the ends of error bars, by experiment and observable."""
    fits: dict[str, Json] = {}
    for condition in problem.conditions:
        fits[condition.name] = {}
        for name, series in condition.series.items():
            fit, rows = curves.residuals[condition.name, name], model.rows(condition, name)
            noise = problem.noise.get(name, Noise())
            known = series.sds is not None or noise.known
            all_drawn = known and len(rows) == len(series.values)
            low, high = _bars(series.values, fit.sds, noise) if all_drawn else (None, None)
            fits[condition.name][name] = {
                "residuals": numbers(fit.residuals[rows]),
                "known": known,
                "low": low,
                "high": high,
            }
    return fits


def _bars(values: Array, sds: Array, noise: Noise) -> tuple[list[float | None], ...]:
    with np.errstate(all="ignore"):
        low, high = ends(values, sds, noise.transform)
    return numbers(low), numbers(high)


def sensitivities_data(
    problem: Problem, model: LiveModel, name: str, curves: SensitivityCurves
) -> Json:
    """Return the sensitivities of an experiment by observable and key, and their magnitudes."""
    _, infinity = _axis(problem.condition(name), model)
    return {
        "times": numbers(placed(curves.times, infinity)),
        "curves": {o: {k: numbers(v) for k, v in c.items()} for o, c in curves.curves.items()},
        "magnitudes": {k: number(v) for k, v in curves.magnitudes.items()},
    }


def plane_data(plane: PhasePlane) -> Json:
    """Return a vector field on a grid, row by row."""
    return {
        "x": numbers(plane.x),
        "y": numbers(plane.y),
        "dx": [numbers(row) for row in plane.dx],
        "dy": [numbers(row) for row in plane.dy],
    }


def report_data(report: Report, held: Mapping[str, float]) -> Json:
    """Return the state of a fit; at its end also the values, including those in `held`."""
    answer: Json = {
        "number": report.number,
        "state": report.state,
        "seconds": round(report.seconds, 1),
        "error": report.error,
        "progress": None,
        "result": None,
    }
    progress = report.progress
    if progress is not None:
        answer["progress"] = {
            "done": progress.done,
            "unit": progress.unit,
            "message": progress.message,
            "best": number(progress.best),
            "measure": progress.measure,
        }
    result = report.result
    if result is not None and result.solutions:
        content = result_data(result, f"fit {report.number}")
        content["values"] |= dict(held)
        answer["result"] = content
    elif result is not None:
        answer |= {"state": "failed", "error": f"No solution was found: {result.message}"}
    return answer
