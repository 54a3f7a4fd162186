"""A problem in format 1 simulated and judged with SciPy alone: part of the zoo.

Nothing here comes from odefit. The problem is the plain mapping of the format, data in place; its
expressions are read by Python's own parser, trajectories come from ``odeint``, likelihoods from
``scipy.stats``. It supports states, inputs of steps, events at given or estimated times, several
experiments; no noise model, normal and log-normal noise with standard deviations that are given,
relative or estimated, values below a limit, Student's t, counts.
"""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import CodeType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from scipy.integrate import ODEintWarning, odeint, solve_ivp

Array = NDArray[np.float64]
Values = Mapping[str, float]
Event = tuple[float, Mapping[str, CodeType]]  # time, and assignments
RELATIVE, ABSOLUTE = 1e-11, 1e-13  # tolerances of the integration

STUDENT_DEGREES = 4.0

FUNCTIONS = {
    "exp": math.exp,
    "log": math.log,
    "sqrt": math.sqrt,
    "sin": math.sin,
    "cos": math.cos,
    "tanh": math.tanh,
    "abs": abs,
    "min": min,
    "max": max,
}


def compiled(text: str) -> CodeType:
    """Return an expression compiled by Python's own parser; the texts follow our own grammar."""
    return compile(text.replace("^", "**").strip(), text, "eval")


def value(code: CodeType, names: Mapping[str, Any]) -> float:
    return float(eval(code, {"__builtins__": {}}, {**FUNCTIONS, **names}))  # noqa: S307


def expression(given: float | str) -> CodeType:
    return compiled(given if isinstance(given, str) else repr(float(given)))


class Input:
    """A known function of time, constant from each row of a column to the next."""

    def __init__(self, pairs: Sequence[tuple[float, float]]) -> None:
        table = np.array(sorted(pairs), float)
        self.knots, self._values = table[:, 0], table[:, 1]

    def __call__(self, inside: float) -> float:
        """Return the value in the piece that contains the time `inside`."""
        k = int(np.searchsorted(self.knots, inside, side="right")) - 1
        return float(self._values[max(k, 0)])


@dataclass(frozen=True)
class Series:
    """The measurements of one observable: rows of the sorted times, and values."""

    rows: NDArray[np.intp]
    values: Array


class Run:
    """One experiment."""

    def __init__(self, table: Mapping[str, Any], mapping: Mapping[str, Any], number: int) -> None:
        data = table["data"]
        self.name = str(table.get("name", f"experiment {number}"))
        columns = {
            name: [(t, v) for t, v in zip(data["t"], data[name], strict=True) if v is not None]
            for name in data
            if name != "t"
        }
        inputs = mapping.get("inputs", {})
        self.inputs = {name: Input(columns[name]) for name in inputs}
        self.t0 = float(table.get("t0", min(data["t"])))
        measured = {k: v for k, v in columns.items() if k not in inputs and v}
        self.times = np.unique([t for pairs in measured.values() for t, _ in pairs])
        self.series = {
            name: Series(
                np.searchsorted(self.times, [t for t, _ in pairs]),
                np.array([v for _, v in pairs], float),
            )
            for name, pairs in measured.items()
        }
        initial = {**mapping["initial"], **table.get("initial", {})}
        self.initial = {
            k: None if isinstance(v, Mapping) else expression(v) for k, v in initial.items()
        }
        constants = {**mapping.get("constants", {}), **table.get("constants", {})}
        self.constants = {k: expression(v) for k, v in constants.items()}
        self.events = [
            (expression(t), {k: expression(v) for k, v in event["assign"].items()})
            for event in table.get("event", ())
            for t in event.get("times", (event.get("time"),))
        ]


class ByHand:
    """A problem from the mapping of its format.

    `switches` are times at which comparisons of `t` in the equations change: no step of the
    integration crosses them. `absolute` is the absolute tolerance of the states. With `insistent`,
    Radau's method integrates where LSODA gives up; a search does not use it, because it may take
    long.
    """

    def __init__(
        self,
        mapping: Mapping[str, Any],
        switches: Sequence[float] = (),
        absolute: float = ABSOLUTE,
    ) -> None:
        self.mapping = mapping
        self.absolute = absolute
        self.insistent = False
        self.switches = tuple(switches)
        self.states = tuple(mapping["ode"])
        sides = ", ".join(f"({v})" for v in mapping["ode"].values())
        arguments = ", ".join(("t", *self.states, *mapping.get("inputs", {})))
        self._slopes = compiled(f"lambda {arguments}: [{sides}]")
        seen = mapping.get("observables") or {name: name for name in self.states}
        self.observables = {name: expression(v) for name, v in seen.items()}
        self.noise: Mapping[str, Mapping[str, Any]] = mapping.get("noise", {})
        self.runs = [Run(e, mapping, k + 1) for k, e in enumerate(mapping["experiment"])]

    def _names(self, run: Run, values: Values) -> dict[str, Any]:
        """Parameters and constants of an experiment by name."""
        names: dict[str, Any] = dict(values)
        names.update({k: value(code, names) for k, code in run.constants.items()})
        return names

    def predicted(self, run: Run, values: Values) -> dict[str, Array]:
        """Return all named quantities at the times of an experiment, each of shape (times,)."""
        names = self._names(run, values)
        x = np.array(
            [names[s] if run.initial[s] is None else value(run.initial[s], names)  # type: ignore[arg-type]
             for s in self.states]
        )  # fmt: skip
        end = max(float(run.times[-1]), run.t0)
        knots = [float(t) for u in run.inputs.values() for t in u.knots]
        events = sorted(
            ((value(time, names), assign) for time, assign in run.events), key=lambda pair: pair[0]
        )
        breaks = {run.t0, end, *self.switches, *knots, *(t for t, _ in events)}
        ends = sorted(t for t in breaks if run.t0 <= t <= end)
        found: dict[str, list[float]] = {}

        def see(t: float, now: Array) -> None:
            for name, v in self._seen(run, names, now, t).items():
                found.setdefault(name, []).append(v)

        if run.t0 in run.times:
            see(run.t0, x)
        x = self._after(run, events, names, x, run.t0)
        for first, last in itertools.pairwise(ends):
            times = [float(t) for t in run.times if first < t <= last]
            curve = self._integrated(run, names, x, first, [*times, last])
            for t, now in zip(times, curve, strict=False):
                see(t, now)
            x = self._after(run, events, names, curve[-1], last)
        return {name: np.array(column) for name, column in found.items()}

    def _after(
        self, run: Run, events: Sequence[Event], names: dict[str, Any], x: Array, t: float
    ) -> Array:
        """Return the states after the events of a time; assignments to constants change `names`."""
        for at, assign in events:
            if at != t:
                continue
            before = {**names, **dict(zip(self.states, x.tolist(), strict=True)), "t": t}
            before.update({name: u(t) for name, u in run.inputs.items()})
            new = {name: value(code, before) for name, code in assign.items()}
            x = np.array([new.get(s, v) for s, v in zip(self.states, x, strict=True)])
            names.update({k: v for k, v in new.items() if k not in self.states})
        return x

    def _seen(self, run: Run, names: Mapping[str, Any], x: Array, t: float) -> dict[str, float]:
        here = {**names, **dict(zip(self.states, x.tolist(), strict=True)), "t": t}
        here.update({name: u(t) for name, u in run.inputs.items()})
        return {name: value(code, here) for name, code in self.observables.items()}

    def _integrated(
        self, run: Run, names: Mapping[str, Any], x: Array, first: float, times: Sequence[float]
    ) -> Array:
        """Return the states at times of a piece without breaks, shape (times, states)."""
        inside = 0.5 * (first + times[-1])
        # comparisons of the time are evaluated inside the piece
        known = {**FUNCTIONS, **names, "inside": inside}
        slopes = eval(self._slopes, {"__builtins__": {}, **known})  # noqa: S307
        inputs = list(run.inputs.values())

        def slope(t: float, now: Array) -> list[float]:
            return slopes(t, *now.tolist(), *(u(inside) for u in inputs))  # type: ignore[no-any-return]

        grid = np.array([first, *times])
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error", ODEintWarning)
                curve = odeint(
                    slope, x, grid, rtol=RELATIVE, atol=self.absolute, tfirst=True, mxstep=20000
                )
        except ODEintWarning as error:
            if not self.insistent:
                raise ArithmeticError(str(error)) from error
            at, place = np.unique(grid, return_inverse=True)
            piece = solve_ivp(
                slope, (first, times[-1]), x, "Radau", at, rtol=RELATIVE, atol=self.absolute
            )
            if piece.status:
                raise ArithmeticError(f"{error} {piece.message}") from error
            curve = piece.y.T[place]
        except (ValueError, OverflowError, TypeError) as error:
            raise ArithmeticError(str(error)) from error
        if not np.isfinite(curve).all():
            raise ArithmeticError("no finite trajectory")
        return np.asarray(curve[1:])

    def cost(self, values: Values) -> float:
        """Return -2 log L with all constants, or the sum of squares without declared noise."""
        total = 0.0
        for run in self.runs:
            seen, names = self.predicted(run, values), self._names(run, values)
            for name, series in run.series.items():
                total += self._cost(name, seen[name][series.rows], series.values, names)
        return total

    def _sds(self, name: str, measured: Array, names: Mapping[str, Any]) -> Array:
        field = self.noise.get(name, {})
        if field.get("sd") == "estimate":
            return np.full(len(measured), float(names[f"{name}_sd"]))
        if "relative" in field:
            return float(field["relative"]) * np.abs(measured)
        return np.full(len(measured), float(field.get("sd", 1.0)))

    def _cost(self, name: str, model: Array, measured: Array, names: Mapping[str, Any]) -> float:
        field = self.noise.get(name, {})
        if not field:
            return float(np.sum((model - measured) ** 2))
        if field.get("distribution") == "poisson":
            return -2 * float(np.sum(stats.poisson.logpmf(np.round(measured), model)))
        sd = self._sds(name, measured, names)
        if field.get("loss") == "student":
            return -2 * float(np.sum(stats.t.logpdf(measured, STUDENT_DEGREES, model, sd)))
        if field.get("transform") == "log":
            # A density of the measured value itself.
            return -2 * float(np.sum(stats.lognorm.logpdf(measured, sd, scale=model)))
        limit = field.get("lower_limit", -math.inf)
        below = stats.norm.logcdf(limit, model, sd)
        density = stats.norm.logpdf(measured, model, sd)
        return -2 * float(np.sum(np.where(measured <= limit, below, density)))

    def residuals(self, values: Values) -> Array:
        """Return residuals whose squares add up to the cost, except for a constant.

        An estimated constant standard deviation leaves the residuals unscaled.
        """
        found = []
        for run in self.runs:
            seen, names = self.predicted(run, values), self._names(run, values)
            for name, series in run.series.items():
                field, model, y = self.noise.get(name, {}), seen[name][series.rows], series.values
                if field.get("distribution") == "poisson":
                    logs = np.where(y > 0, y * np.log(np.maximum(y, 1) / model), 0.0)
                    deviance = np.maximum(2 * (model - y + logs), 0)
                    found.append(np.sign(model - y) * np.sqrt(deviance))
                    continue
                estimated = field.get("sd") == "estimate"
                sd = np.ones(len(y)) if estimated else self._sds(name, y, names)
                limit = field.get("lower_limit", -math.inf)
                below = -2 * stats.norm.logcdf((limit - model) / sd)
                if field.get("transform"):
                    model, y = np.log(model), np.log(y)
                z = (model - y) / sd
                if field.get("loss") == "student":
                    n = STUDENT_DEGREES
                    z = np.sign(z) * np.sqrt((n + 1) * np.log1p(z**2 / n))
                found.append(np.where(y <= limit, np.sqrt(below), z))
        return np.concatenate(found)
