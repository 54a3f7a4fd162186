"""The campaign's comparison with SciPy: a script such as people write for their model.

The right-hand side is a Python function with the model's own equations, `solve_ivp` integrates it
with LSODA from event to event, `least_squares` has the bounds and takes finite differences. It
begins at the same start values as the package, one after the other; the best end counts.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from studies.automatic_peers import ABSOLUTE, RELATIVE, Found, check_plain, weights

if TYPE_CHECKING:
    from odefit.problem.arrays import Array
    from odefit.problem.condition import Condition
    from odefit.problem.expressions import Expression
    from odefit.problem.problem import Problem

STARTS = 10
"""The number of starts."""

STEP = 1e-6
"""Relative step of the finite differences, for integrations with a tolerance of 1e-9."""

LARGE = 1e6
"""The residual where the integration fails."""


class _Late(Exception):  # noqa: N818 - no error
    """The time limit has passed."""


def by_hand(problem: Problem, seed: int, limit: float) -> Found:
    """Fit from ten starts, or from as many as the time limit allows.

    Raises
    ------
    InputError
        The problem cannot be stated in this way.
    """
    from scipy.optimize import least_squares

    from odefit.methods.starts import sample

    check_plain(problem)
    deadline = time.monotonic() + limit
    best: list[tuple[float, Array]] = []

    def check() -> None:
        if time.monotonic() >= deadline:
            raise _Late

    script = _Script(problem, check)

    def residuals(vector: Array) -> Array:
        found = script.residuals(vector)
        cost = float(found @ found)
        if not best or cost < best[0][0]:
            best[:] = [(cost, vector.copy())]
        return found

    starts = 0
    late = False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scripts of this kind warn without end
        for start in sample(problem, 0, STARTS, seed):
            try:
                starts += 1
                least_squares(
                    residuals, start, bounds=(problem.lower, problem.upper), diff_step=(STEP,)
                )
            except _Late:
                late = True
                break
            except ValueError:  # residuals that are not finite, a start at its bound
                continue
    return Found(best[0][1] if best else None, starts, late, f"{starts} starts")


class _Script:
    """The model as Python functions, and the data with their weights."""

    def __init__(self, problem: Problem, check: Callable[[], None]) -> None:
        self._problem = problem
        self._states = tuple(problem.model.ode)
        self._scalars = tuple(problem.conditions[0].scalars)
        self._inputs = tuple(problem.model.inputs)
        names = ", ".join(self._states)
        self._rhs = _function(
            ("t", "y_", "c_", "u_"),
            [
                "check_()",
                f"{names}, = y_",
                *([f"{', '.join(self._scalars)}, = c_"] if self._scalars else []),
                *(f"{n} = u_[{i}](t)" for i, n in enumerate(self._inputs)),
            ],
            "[" + ", ".join(_python(e) for e in problem.model.ode.values()) + "]",
            check,
        )
        self._data = [
            [
                (name, condition.series[name], weights(problem, condition, name))
                for name in condition.series
            ]
            for condition in problem.conditions
        ]
        self._interpolated = [
            {n: _interpolated(i.times, i.values, i.interpolation) for n, i in c.inputs.items()}
            for c in problem.conditions
        ]

    def residuals(self, vector: Array) -> Array:
        """Return the weighted residuals, those of an integration that fails large."""
        found = []
        for condition, data, inputs in zip(
            self._problem.conditions, self._data, self._interpolated, strict=True
        ):
            scalars = self._values(condition.scalars, condition, vector)
            states = self._trajectory(condition, vector, inputs)
            if states is None:
                found += [np.full(len(s.values), LARGE) for _, s, _ in data]
                continue
            known = dict(zip(self._states, states, strict=True)) | scalars
            known |= {n: f(condition.times) for n, f in inputs.items()}
            known["t"] = condition.times
            for name, series, weight in data:
                observed = _value(self._problem.model.observables[name], known)
                observed = np.broadcast_to(observed, condition.times.shape)[series.rows]
                found.append(weight * (observed - series.values))
        joint = np.concatenate(found)
        return np.where(np.isfinite(joint), joint, LARGE)

    def _trajectory(
        self, condition: Condition, vector: Array, inputs: Mapping[str, Callable[[Any], Any]]
    ) -> Array | None:
        """Return the states at the data times, shape (states, times); None for a failure."""
        from scipy.integrate import solve_ivp

        scalars = self._values(condition.scalars, condition, vector)
        initial = self._values(condition.initial, condition, vector)
        y = np.array([initial[s] for s in self._states])
        t, times = condition.t0, condition.times
        functions = [inputs[n] for n in self._inputs]
        states = np.empty((len(y), len(times)))
        stops = [e for e, _ in condition.events if e < times[-1]]
        first = 0
        for stop, event in [*zip(stops, condition.events, strict=False), (times[-1], None)]:
            # A measurement at the time of an event sees the values before it.
            last = int(np.searchsorted(times, stop, side="right"))
            if stop > t:
                at = np.unique([*times[first:last], stop])
                arguments = (tuple(scalars[s] for s in self._scalars), functions)
                try:
                    solution = solve_ivp(
                        *(self._rhs, (t, stop), y, "LSODA", at),
                        args=arguments,
                        rtol=RELATIVE,
                        atol=ABSOLUTE,
                    )
                except (ArithmeticError, ValueError):
                    return None
                if not solution.success or not np.isfinite(solution.y).all():
                    return None
                states[:, first:last] = solution.y[:, : last - first]
                y = solution.y[:, -1]
            elif last > first:
                states[:, first:last] = y[:, None]
            first, t = last, stop
            if event is not None:
                now = dict(zip(self._states, y, strict=True)) | scalars | {"t": t}
                new = {n: float(_value(e, now)) for n, e in event[1].items()}
                y = np.array([new.get(s, v) for s, v in zip(self._states, y, strict=True)])
                scalars |= {n: v for n, v in new.items() if n in scalars}
        return states

    def _values(
        self, bound: Mapping[str, Any], condition: Condition, vector: Array
    ) -> dict[str, float]:
        from odefit.problem.algebras import NUMPY
        from odefit.problem.binding import bound_value

        return {
            name: float(bound_value(what, condition.scalars, list(vector), NUMPY))
            for name, what in bound.items()
        }


def _python(expression: Expression) -> str:
    return f"({str(expression).replace('^', '**')})"


def _function(
    arguments: tuple[str, ...], lines: list[str], value: str, check: Callable[[], None]
) -> Any:
    """Return a function that is written as text: what the author of a script would type."""
    body = "\n".join(f"    {line}" for line in [*lines, f"return {value}"])
    names: dict[str, Any] = {n: getattr(math, n) for n in dir(math) if not n.startswith("_")}
    names |= {"abs": abs, "min": min, "max": max, "check_": check}
    # The text comes from the package's own parser, which knows no other names.
    exec(f"def function({', '.join(arguments)}):\n{body}", names)  # noqa: S102
    return names["function"]


def _value(expression: Expression, known: Mapping[str, Any]) -> Any:
    from odefit.problem.algebras import NUMPY

    return expression.evaluate(known, NUMPY)


def _interpolated(times: Array, values: Array, kind: str) -> Callable[[Any], Any]:
    from scipy.interpolate import CubicSpline, interp1d

    if kind == "linear":
        return lambda t: np.interp(t, times, values)
    if kind == "cubic":
        spline = CubicSpline(times, values)
        return lambda t: spline(np.clip(t, times[0], times[-1]))
    ends = (values[0], values[-1])
    return interp1d(times, values, "previous", bounds_error=False, fill_value=ends)
