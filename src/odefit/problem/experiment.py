"""An experiment: its data, its doses, and how it differs from the others."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from odefit.common.arrays import Array
from odefit.common.errors import did_you_mean, one_of, shown
from odefit.common.packages import require
from odefit.expressions.expressions import TIME, Expression
from odefit.problem.inputs.issues import Issues
from odefit.problem.parameters import Parameter

if TYPE_CHECKING:
    import pandas as pd


Value = Expression | str | float

UNREADABLE: Mapping[str, Any] = MappingProxyType({})
"""The placeholder for data that could not be read, whose reason is reported already."""


@dataclass(frozen=True)
class Event:
    """A known change: a dose, a dilution, a switch.

    It happens at known times, at times that are expressions in parameters and constants, or
    whenever a condition becomes true. Events at the same time happen in the given order, each
    starting from the values after the previous one. The assignments of one event are simultaneous.

    Attributes
    ----------
    times
        The times of the event, in the model's time unit: numbers, expressions in parameters and
        constants, or, for data with dates, dates.
    assign
        The new value of each state or constant that changes, computed from the values just before.
    when
        Instead of times, a comparison such as ``"x < 0.1"``: the event happens each time it becomes
        true.
    initially
        Whether `when` counts as true before t0 where it is true at t0, so that the event waits
        until it becomes true again; if not, the event happens at t0.
    measured
        Whether a measurement at the time of the event uses the values just before it or those after
        it.
    delay
        With `when`: the delay of the event after `when` became true, in the model's time unit; an
        expression is evaluated when `when` became true.
    priority
        With `when`: of several events due at the same time, the one with the highest priority
        happens first. None counts as 0, and events of equal priority happen in the order in which
        they became due. If all of them have a priority, the order is drawn at random as in SBML,
        equally in each evaluation.
    persistent
        With `when`: whether the event still happens if `when` is false again by then.
    values
        With `when`: whether new values are computed when the event happens (``"event"``) or when
        `when` became true (``"trigger"``), before other events of that time and before the delay.
    """

    times: tuple[float | Expression | str, ...]
    assign: Mapping[str, Value]
    when: Expression | str | None = None
    measured: Literal["before", "after"] = "before"
    initially: bool = True
    delay: Value = 0.0
    priority: Value | None = None
    persistent: bool = True
    values: Literal["event", "trigger"] = "event"

    @property
    def expressions(self) -> tuple[Any, ...]:
        """All fields that may be expressions: new values, times, condition, delay, priority."""
        return *self.assign.values(), *self.times, self.when, self.delay, self.priority


@dataclass(frozen=True)
class Cycle:
    """A sequence of events repeated until successive periods are equal.

    An experiment that begins so has, at t0, the state after many earlier repetitions. The equations
    must not contain the time, and inputs keep their value just before t0.

    Attributes
    ----------
    period
        The time from one repetition to the next.
    events
        Events at times since the start of a repetition, at least 0 and less than `period`.
    """

    period: float
    events: Sequence[Event]


@dataclass(frozen=True)
class Experiment:
    """One run of the system under known conditions.

    Attributes
    ----------
    name
        Its name in results.
    data
        A pandas DataFrame, or arrays by column: ``t``, observables, their ``<name>_sd``, inputs.
        Not-a-number means not measured. Dates become times in the problem's time unit, counted from
        `t0` if that is a date, otherwise from the first date.
    t0
        Time of the initial values: a number, or a date where the times are dates; None for the
        first data time, or 0 if that is infinite.
    initial, constants
        Values that differ from the problem's own: a number, an expression in parameters, or (for
        initial values) an unknown (a :class:`Parameter` or a mapping of its fields).
    events
        Its events, in any order.
    steady_state
        Whether it begins at the steady state that the system approaches from the initial values
        under the constants of the experiment. Events at t0 act on that state. A :class:`Cycle`
        gives the periodic state of repeated doses.
    source
        The source of the data, for messages.
    time
        The name of the column with the times. A problem renames it to ``t``. Without such a column,
        the index of a DataFrame holds the times if it has that name.
    by
        A column that identifies subjects. The problem then has one experiment for each value, named
        "`name` value", or `name` with the value in place of ``{}``.
    doses
        How dose records act, a :class:`Doses` or a mapping of its fields; with `by` it may be left
        out if the columns determine everything.
    observable
        In a long table, the observable in the column DV, or the column with its name, or the
        observable for each value of DVID.
    columns
        The file's names of columns, by the model's name, ``{"c": "c (mg/L)"}``, or in a long table
        by role, ``{"AMT": "dose"}``.
    origin
        The date of t = 0, a text such as ``"2024-01-31"`` or a Python date; with `by`, one for each
        subject. Dates count from it, and figures need it to show dates. By default `t0` if that is
        a date, otherwise the first date of the data, which the problem then stores.
    layout
        The original `time`, `by` and `columns`, which a problem stores: new tables of the same
        layout are read by them.
    """

    name: str
    data: Mapping[str, Any] | pd.DataFrame
    t0: float | str | datetime.date | None = None
    initial: Mapping[str, Value | Parameter | Mapping[str, Any]] = field(default_factory=dict)
    constants: Mapping[str, Value] = field(default_factory=dict)
    events: Sequence[Event] = ()
    steady_state: bool | Cycle = False
    source: str | None = None
    time: str = TIME
    by: str | None = None
    doses: Doses | Mapping[str, Any] | None = None
    observable: str | Mapping[str, str] | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    origin: str | datetime.date | Mapping[str, Any] | None = None
    layout: Mapping[str, Any] = field(default_factory=dict)

    @property
    def long(self) -> bool:
        """True if the data are a long table of records."""
        settings = (self.by, self.doses, self.observable)
        return bool(self.columns) or any(v is not None for v in settings)


def data_place(experiment: Experiment) -> str:
    """Return the name of the data of `experiment` in messages."""
    return experiment.source or f'data of experiment "{experiment.name}"'


@dataclass(frozen=True, eq=False)
class Input:
    """A measured input: its knots in time, and the interpolation between them."""

    # shape (n,), times increasing
    times: Array
    values: Array
    # ``"linear"``, ``"constant"`` (held from the left) or ``"cubic"`` (SciPy's not-a-knot spline: a
    # parabola through three knots, a line through two). It is constant beyond the ends.
    interpolation: str

    def polynomials(self) -> Array:
        """Return the coefficients between the knots, shape (n + 1, 4): powers of (t - left knot).

        Row 0 applies before the first knot (constant), row n after the last.
        """
        return self._polynomials

    @cached_property
    def _polynomials(self) -> Array:
        n = len(self.times)
        rows = np.zeros((n + 1, 4))
        rows[0, 0] = self.values[0]
        rows[1:, 0] = self.values
        if n > 1 and self.interpolation == "linear":
            with np.errstate(all="ignore"):  # knots too close for a slope: inf, reported when used
                rows[1:n, 1] = np.diff(self.values) / np.diff(self.times)
        elif n > 1 and self.interpolation == "cubic":
            from scipy.interpolate import CubicSpline

            rows[1:n] = CubicSpline(self.times, self.values).c[::-1].T
        rows.setflags(write=False)
        return rows

    @cached_property
    def corners(self) -> Array:
        """The knots at which the input changes, except those within a constant span."""
        rows = self._polynomials
        flat = (rows[:, 1:] == 0.0).all(axis=1)
        same = flat[1:] & flat[:-1] & (rows[1:, 0] == rows[:-1, 0])
        return np.asarray(self.times[~same])

    def __call__(self, times: Array) -> Array:
        """Return the values of the input at `times`, shape (m,)."""
        piece = np.searchsorted(self.times, times, side="right")
        left = self.times[np.maximum(piece - 1, 0)]
        c = self._polynomials[piece]
        tau = np.where(np.isinf(times), 0.0, times - left)  # constant beyond the ends
        return np.asarray(c[:, 0] + tau * (c[:, 1] + tau * (c[:, 2] + tau * c[:, 3])))


def frame(times: Array, columns: Mapping[str, Array]) -> pd.DataFrame:
    """Return a DataFrame of the column ``t`` and `columns`."""
    require("pandas")
    import pandas as pd

    return pd.DataFrame({TIME: times, **columns})


ByState = Expression | str | float | Mapping[str, Expression | str | float]
"""An expression for all doses, or one for each state that receives doses."""


@dataclass(frozen=True)
class Doses:
    """The action of the dose records of a long table.

    Attributes
    ----------
    into
        The state that receives all doses, or a state for each value of the column CMT. By default
        CMT holds the names of states, or their numbers in the order of the equations; without CMT
        the model must have a single state.
    lag
        The time between a dose and its arrival: a number or an expression in parameters and
        constants, one for all doses or one for each state.
    bioavailability
        The fraction of the amount that arrives, in the same form. As in NONMEM, it shortens
        infusions of given rate, and lowers the rate of infusions of given duration.
    duration, rate
        The duration or the rate of infusions, in the same form: of all doses in a table without
        RATE and DUR; otherwise of those with RATE = -2 or RATE = -1.

    Examples
    --------
    >>> Doses(into="gut", lag="t_lag", bioavailability="F")
    Doses(into='gut', lag='t_lag', bioavailability='F', duration=None, rate=None)
    """

    into: str | Mapping[str, str] | None = None
    lag: ByState | None = None
    bioavailability: ByState | None = None
    duration: ByState | None = None
    rate: ByState | None = None


DOSE_FIELDS = tuple(field.name for field in fields(Doses))


def as_doses(
    value: Doses | Mapping[str, Any] | None, states: list[str], place: str, issues: Issues
) -> Doses:
    """Return `value` with every expression parsed; doses may go into `states`."""
    if value is None:
        return Doses()
    if isinstance(value, Doses):
        raw = {name: getattr(value, name) for name in DOSE_FIELDS}
    elif isinstance(value, Mapping):
        raw = dict(value)
        for key in [k for k in raw if k not in DOSE_FIELDS]:
            issues.error(f"{place}.{key}", f"unknown field{one_of(str(key), DOSE_FIELDS)}")
    else:
        issues.error(place, f'expected a table such as {{ into = "gut" }}, got {shown(value)}')
        return Doses()
    into = raw.get("into")
    if isinstance(into, Mapping):
        into = {str(k): v for k, v in into.items()}
    targets = into.values() if isinstance(into, dict) else () if into is None else (into,)
    for target in targets:
        if not isinstance(target, str) or target not in states:
            name = str(target)
            issues.error(
                f"{place}.into", f"there is no state {shown(target)}{did_you_mean(name, states)}"
            )
    doses = {
        name: _by_state(raw[name], states, f"{place}.{name}", issues)
        for name in DOSE_FIELDS[1:]
        if raw.get(name) is not None
    }
    return Doses(into, **doses)


def of_state(value: ByState | None, state: str) -> Expression | None:
    """Return the expression that applies to doses into `state`."""
    if isinstance(value, Mapping):
        value = value.get(state)
    return value if isinstance(value, Expression) else None


def expressions_of(doses: Doses) -> list[Expression]:
    """Return all expressions."""
    expressions: list[Any] = []
    for name in DOSE_FIELDS[1:]:
        value = getattr(doses, name)
        expressions += value.values() if isinstance(value, Mapping) else [value]
    return [e for e in expressions if isinstance(e, Expression)]


def _by_state(value: Any, states: list[str], place: str, issues: Issues) -> Any:
    if not isinstance(value, Mapping):
        return issues.expression(place, value)
    for state in value:
        if state not in states:
            issues.error(
                f"{place}.{state}", f"there is no state '{state}'{did_you_mean(state, states)}"
            )
    return {s: issues.expression(f"{place}.{s}", v) for s, v in value.items()}
