"""A hand-written script: a model as Python functions with `solve_ivp`, and its likelihood.

The right-hand side is a Python function with the model's own equations; `solve_ivp` integrates it
with LSODA from event to event, experiment by experiment. The likelihood is odefit's own: residuals
are taken on the scale of the transform, divided by standard deviations that are given, estimated or
expressions; the density is that of the measurement, not of its logarithm.
"""

from __future__ import annotations

import keyword
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.integrate import solve_ivp
from scipy.interpolate import CubicSpline, interp1d

from evidence.peers.stated import ABSOLUTE, RELATIVE, deviations
from odefit import Problem
from odefit.common.arrays import Array
from odefit.expressions.algebras import NUMPY
from odefit.expressions.expressions import Expression
from odefit.problem.binding import bound_value
from odefit.problem.condition import Condition

LARGE = 1e6  # the residual where the integration fails


@dataclass(frozen=True, eq=False)
class Statement:
    """The measurements of one observable in one experiment, beside the model."""

    differences: Array  # prediction less measurement on the scale of the transform, shape (n,)
    measured: Array  # measurements on that scale, shape (n,)
    sds: Array  # standard deviations on that scale, shape (n,)

    @property
    def residuals(self) -> Array:
        """Return differences over standard deviations, large if not finite, shape (n,)."""
        with np.errstate(all="ignore"):
            found = self.differences / self.sds
        return np.where(np.isfinite(found), found, LARGE)


class Script:
    """The model as Python functions, and the data with their noise."""

    def __init__(
        self,
        problem: Problem,
        check: Callable[[], None],
        tolerances: tuple[float, float] = (RELATIVE, ABSOLUTE),
    ) -> None:
        self._relative, self._absolute = tolerances
        self._problem = problem
        self._states = tuple(problem.model.ode)
        self._scalars = tuple(problem.conditions[0].scalars)
        self._inputs = tuple(problem.model.inputs)
        names = ", ".join(map(_name, self._states))
        self._rhs = _function(
            ("t", "y_", "c_", "u_"),
            [
                "check_()",
                f"{names}, = y_",
                *([f"{', '.join(map(_name, self._scalars))}, = c_"] if self._scalars else []),
                *(f"{_name(n)} = u_[{i}](t)" for i, n in enumerate(self._inputs)),
            ],
            "[" + ", ".join(_python(e) for e in problem.model.ode.values()) + "]",
            check,
        )
        self._interpolated = [
            {n: _interpolated(i.times, i.values, i.interpolation) for n, i in c.inputs.items()}
            for c in problem.conditions
        ]
        self.offset = sum(
            self._log_slopes(c, name) for c in problem.conditions for name in c.series
        )

    def _log_slopes(self, condition: Condition, name: str) -> float:
        """Return a transform's terms of the log-likelihood: its log slope at each measurement."""
        transform = self._transform(name)
        if transform is None:
            return 0.0
        factor = 1.0 if transform == "log" else math.log(10.0)
        return -float(np.sum(np.log(condition.series[name].values * factor)))

    def _transform(self, name: str) -> str | None:
        noise = self._problem.noise.get(name)
        return None if noise is None else noise.transform

    def log_likelihood(self, vector: Array) -> float:
        stated = [s for parts in self.statements(vector) for s in parts.values()]
        residuals = np.concatenate([s.residuals for s in stated])
        logs = sum(float(np.sum(np.log(s.sds))) for s in stated)
        constant = 0.5 * len(residuals) * math.log(2 * math.pi)
        return self.offset - 0.5 * float(residuals @ residuals) - logs - constant

    def residuals(self, vector: Array) -> Array:
        """Return the weighted residuals; those of a failed integration are large."""
        stated = self.statements(vector)
        return np.concatenate([s.residuals for parts in stated for s in parts.values()])

    def statements(self, vector: Array) -> list[dict[str, Statement]]:
        """Return for each experiment the measurements by observable, beside the model."""
        found = []
        for condition, inputs in zip(self._problem.conditions, self._interpolated, strict=True):
            known = self._known(condition, vector, inputs)
            parts = {}
            for name, series in condition.series.items():
                measured = series.values
                if known is None:
                    failed = np.full(len(measured), LARGE)
                    parts[name] = Statement(failed, measured, np.ones(len(failed)))
                    continue
                predicted = np.broadcast_to(known[name], condition.times.shape)[series.rows]
                transform = self._transform(name)
                if transform is not None:
                    with np.errstate(all="ignore"):
                        predicted = NUMPY.call(transform, [predicted])
                        measured = NUMPY.call(transform, [measured])
                sds = deviations(self._problem, condition, name, known, vector)
                parts[name] = Statement(predicted - measured, measured, sds)
            found.append(parts)
        return found

    def _known(
        self, condition: Condition, vector: Array, inputs: Mapping[str, Callable[[Any], Any]]
    ) -> dict[str, Any] | None:
        """Return all quantities and observables at the data times; None for a failure."""
        scalars = self._values(condition.scalars, condition, vector)
        trajectory = self._trajectory(condition, vector, inputs)
        if trajectory is None:
            return None
        known: dict[str, Any] = scalars | trajectory
        known |= {n: f(condition.times) for n, f in inputs.items()}
        known["t"] = condition.times
        with np.errstate(all="ignore"):
            observed = {n: _value(e, known) for n, e in self._problem.model.observables.items()}
        return known | observed

    def _trajectory(
        self, condition: Condition, vector: Array, inputs: Mapping[str, Callable[[Any], Any]]
    ) -> dict[str, Array] | None:
        """Return the states and changed constants at the data times; None for a failure."""
        scalars = self._values(condition.scalars, condition, vector)
        initial = self._values(condition.initial, condition, vector)
        y = np.array([initial[s] for s in self._states])
        if not np.isfinite(y).all():
            return None
        t, times = condition.t0, condition.times
        functions = [inputs[n] for n in self._inputs]
        states = np.empty((len(y), len(times)))
        changing = {n for _, assigned in condition.events for n in assigned if n in scalars}
        switched = {n: np.empty(len(times)) for n in changing}
        stops = [e for e, _ in condition.events if e < times[-1]]
        first = 0
        for stop, event in [*zip(stops, condition.events, strict=False), (times[-1], None)]:
            # A measurement at the time of an event has the values before it.
            last = int(np.searchsorted(times, stop, side="right"))
            if stop > t:
                at = np.unique([*times[first:last], stop])
                arguments = (tuple(scalars[s] for s in self._scalars), functions)
                try:
                    solution = solve_ivp(
                        *(self._rhs, (t, stop), y, "LSODA", at),
                        args=arguments,
                        rtol=self._relative,
                        atol=self._absolute,
                    )
                except (ArithmeticError, ValueError):
                    return None
                if not solution.success or not np.isfinite(solution.y).all():
                    return None
                states[:, first:last] = solution.y[:, : last - first]
                y = solution.y[:, -1]
            elif last > first:
                states[:, first:last] = y[:, None]
            for name, values in switched.items():
                values[first:last] = scalars[name]
            first, t = last, stop
            if event is not None:
                now = dict(zip(self._states, y, strict=True)) | scalars | {"t": t}
                new = {n: float(_value(e, now)) for n, e in event[1].items()}
                y = np.array([new.get(s, v) for s, v in zip(self._states, y, strict=True)])
                scalars |= {n: v for n, v in new.items() if n in scalars}
        return dict(zip(self._states, states, strict=True)) | switched

    def _values(
        self, bound: Mapping[str, Any], condition: Condition, vector: Array
    ) -> dict[str, float]:
        with np.errstate(all="ignore"):
            return {
                name: float(bound_value(what, condition.scalars, list(vector), NUMPY))
                for name, what in bound.items()
            }


def _python(expression: Expression) -> str:
    text = re.sub(r"[A-Za-z_]\w*", lambda found: _name(found[0]), str(expression))
    return f"({text.replace('^', '**')})"


def _name(name: str) -> str:
    """Return a valid Python name for a name of the model, such as ``lambda``."""
    return f"{name}__" if keyword.iskeyword(name) else name


def _function(
    arguments: tuple[str, ...], lines: list[str], value: str, check: Callable[[], None]
) -> Any:
    """Return a function from its text, as the author of a script would type it."""
    body = "\n".join(f"    {line}" for line in [*lines, f"return {value}"])
    names: dict[str, Any] = {n: getattr(math, n) for n in dir(math) if not n.startswith("_")}
    names |= {"abs": abs, "min": min, "max": max, "check_": check}
    # the text comes from the package's own parser, which accepts no other names
    exec(f"def function({', '.join(arguments)}):\n{body}", names)  # noqa: S102
    return names["function"]


def _value(expression: Expression, known: Mapping[str, Any]) -> Any:
    return expression.evaluate(known, NUMPY)


def _interpolated(times: Array, values: Array, kind: str) -> Callable[[Any], Any]:
    if kind == "linear":
        return lambda t: np.interp(t, times, values)
    if kind == "cubic":
        spline = CubicSpline(times, values)
        return lambda t: spline(np.clip(t, times[0], times[-1]))
    ends = (values[0], values[-1])
    return interp1d(times, values, "previous", bounds_error=False, fill_value=ends)
