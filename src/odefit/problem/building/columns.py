"""Times, measurements and inputs read from the data columns of an experiment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from odefit.common.arrays import Array, IntArray
from odefit.common.errors import closest, did_you_mean, shown
from odefit.expressions.expressions import TIME
from odefit.problem.condition import Series
from odefit.problem.experiment import UNREADABLE, Experiment, Input, data_place
from odefit.problem.inputs.cells import remedy
from odefit.problem.inputs.issues import LARGEST, Issues, too_large
from odefit.problem.model import Model


@dataclass(frozen=True, eq=False)
class Columns:
    """The data of one experiment."""

    times: Array  # shape (n,), strictly increasing; infinite for the steady state
    series: Mapping[str, Series]  # by observable; their rows are indices into `times`
    inputs: Mapping[str, Input]  # known inputs by name

    def from_time(self, t0: float) -> Columns:
        """Return the data without the times before `t0`, which must have no measurements."""
        skipped = int(np.searchsorted(self.times, t0))
        series = {n: replace(s, rows=s.rows - skipped) for n, s in self.series.items()}
        return Columns(self.times[skipped:], series, self.inputs)

    @property
    def measured(self) -> tuple[float, float] | None:
        """The first and last time of any measurement; None without measurements."""
        rows = [row for s in self.series.values() for row in s.rows[[0, -1]]]
        return (float(self.times[min(rows)]), float(self.times[max(rows)])) if rows else None


NAMES_OF_TIME = frozenset({"t", "time", "times", "zeit", "tiempo", "temps"})
"""Lower-case names that mark a column or an index as the times."""

NO_COLUMNS = Columns(np.zeros(0), {}, {})
"""The columns that replace unusable data."""


def used_columns(model: Model) -> set[str]:
    """Return the names of all data columns that `model` uses."""
    beside = (f"{o}_{suffix}" for o in model.observables for suffix in ("sd", "cens"))
    return {TIME, *model.observables, *model.inputs, *beside}


def column_names(data: Any) -> list[str] | None:
    """Return the names of the columns of a DataFrame or mapping; None if `data` is neither."""
    if data is UNREADABLE:
        return None
    if isinstance(data, Mapping) or (hasattr(data, "columns") and hasattr(data, "iloc")):
        return [str(name) for name in (data if isinstance(data, Mapping) else data.columns)]
    return None


def as_table(data: Any) -> Mapping[str, Any] | None:
    """Return the columns of a DataFrame or mapping by name; None if `data` is neither."""
    if isinstance(data, Mapping):
        return {str(name): data[name] for name in data}
    if hasattr(data, "columns") and hasattr(data, "iloc"):
        # By position: with two columns of one name, data[name] would return both.
        return {str(name): data.iloc[:, i] for i, name in enumerate(data.columns)}
    return None


def read_columns(
    experiment: Experiment, model: Model, issues: Issues, *, required: bool = True
) -> Columns:
    """Read times, measurements and inputs of `experiment`; mistakes go to `issues`.

    Unless measurements are `required`, inputs alone suffice.
    """
    if experiment.data is UNREADABLE:
        return NO_COLUMNS
    place = data_place(experiment)
    table = as_table(experiment.data)
    if table is None:
        got = "nothing" if experiment.data is None else f"a {type(experiment.data).__name__}"
        issues.error(place, f"expected a DataFrame or a dict of columns, got {got}")
        return NO_COLUMNS
    counts = Counter(str(name) for name in experiment.data)
    for name in sorted(n for n, count in counts.items() if count > 1):
        issues.error(f"{place}, column {name}", "two columns have this name; rename one")
    known = used_columns(model)
    for name in sorted(set(table) - known):
        issues.warn(f"{place}, column {name}", f"not used{did_you_mean(name, known - set(table))}")
    columns: dict[str, Array] = {}
    for name in table:
        if name in known:
            column = numeric_column(table[name], f"{place}, column {name}", issues)
            if column is not None:
                columns[name] = column
    times = columns.pop(TIME, None)
    if TIME not in table:
        issues.error(place, _no_times(experiment.time, list(table), experiment.data))
        return NO_COLUMNS
    if times is None or not _usable(times, columns, table, place, issues):
        return NO_COLUMNS
    order = np.argsort(times, kind="stable")
    times = times[order]
    columns = {
        name: _of_usual_size(column[order], times, f"{place}, column {name}", issues)
        for name, column in columns.items()
    }
    unique, rows = np.unique(times, return_inverse=True)
    for name in model.inputs:
        if name not in table:
            issues.error(place, f"no column '{name}' for the input of that name in [inputs]")
    inputs = {
        name: signal
        for name in model.inputs
        if name in columns
        and (signal := _input(name, model, times, columns[name], place, issues)) is not None
    }
    series = {
        name: measured
        for name in model.observables
        if name in columns
        and (measured := _series(name, columns, times, rows, place, issues)) is not None
    }
    measurable = [c for o in model.observables for c in (o, f"{o}_sd", f"{o}_cens")]
    if (
        required
        and not series
        and not any(issues.has_errors(f"{place}, column {c}") for c in measurable)
    ):
        issues.error(place, _nothing_measured(list(model.observables), list(table), known))
    _warn_of_replicates(series, unique, place, issues)
    return Columns(unique, series, inputs)


def _nothing_measured(observables: list[str], names: list[str], known: set[str]) -> str:
    message = f"nothing is measured; expected values in at least one of: {', '.join(observables)}"
    if any(name in names for name in observables):
        return message
    others = [name for name in names if name not in known]
    alike = next(
        (f"; rename the column '{m}' to '{o}'" for o in observables if (m := closest(o, others))),
        f'; where a column has another name, say so: columns = {{ {observables[0]} = "NAME" }}'
        if others
        else "",
    )
    return f"{message} (columns are: {', '.join(shown(name)[1:-1] for name in names)}){alike}"


def _no_times(time: str, names: list[str], data: Any) -> str:
    """Return the message on a missing column of times, with the remedy."""
    have = ", ".join(shown(name)[1:-1] for name in names) or "none"
    if time != TIME:
        return f"no column '{time}' with the times; columns are: {have}{did_you_mean(time, names)}"
    alike = [name for name in names if name.casefold() in NAMES_OF_TIME]
    if alike:
        return (
            f"no column 't' with the times; {' and '.join(map(repr, alike))} may have them: say "
            f'which, time = "{alike[0]}" beside the data'
        )
    missing = f"no column 't' with the times; columns are: {have}"
    index = getattr(data, "index", None)
    ends = getattr(index, "start", None), getattr(index, "step", None)  # of a RangeIndex
    if index is not None and index.name is not None:
        called = shown(str(index.name))
        return f"{missing}; if the index {called} has the times, say so: time={called}"
    if index is not None and ends != (0, 1):
        return (
            f"{missing}; if the times are in the index, which has no name, name it: "
            "data.rename_axis('t')"
        )
    if len(names) == 1:
        return f"{missing}; the times belong in a column of their own beside the values"
    return f'{missing}; if one of them has the times, name it beside the data: time = "NAME"'


def _usable(
    times: Array, columns: Mapping[str, Array], table: Mapping[str, Any], place: str, issues: Issues
) -> bool:
    for name, column in columns.items():
        if len(column) != len(times):
            issues.error(
                f"{place}, column {name}",
                f"{len(column)} values, but {len(times)} times in column t",
            )
            return False
    if not len(times):
        issues.error(place, "no rows")
        return False
    bad = np.flatnonzero(~(np.isfinite(times) | (times == np.inf)))
    if len(bad):
        if not issues.has_errors(f"{place}, column {TIME}"):
            issues.error(
                f"{place}, column {TIME}",
                f"the time is missing or -inf in row {bad[0]} (counting from 0)",
            )
        return False
    return True


def numeric_column(values: Any, place: str, issues: Issues) -> Array | None:
    """Return `values` as floats with NaN for missing ones; or None with the reason noted."""
    raw = np.asarray(None)
    try:
        raw = np.asarray(values)
        if raw.dtype.kind == "O":
            missing = [v is None or type(v).__name__ == "NAType" for v in raw.ravel()]
            wrong = [v for v in raw.ravel() if isinstance(v, (str, bytes, bool, np.bool_))]
            if wrong:
                hint = _hint(wrong[0], place)
                issues.error(place, f"expected numbers, got {shown(wrong[0])} among them{hint}")
                return None
            raw = np.where(np.reshape(missing, raw.shape), np.nan, raw)
        elif raw.dtype.kind not in "iuf" and raw.size:
            first = raw.ravel()[0].item()
            issues.error(place, f"expected numbers, got {shown(first)}{_hint(first, place)}")
            return None
        column = np.array(raw, dtype=float)
    except (TypeError, ValueError, OverflowError):
        period = any(hasattr(value, "start_time") for value in np.ravel(raw))
        hint = "; take the beginnings of these periods, .dt.start_time or .start_time" * period
        issues.error(place, f"the values are not all numbers{hint}")
        return None
    if column.ndim != 1:
        issues.error(place, f"expected one value a row, got the shape {column.shape}")
        return None
    return column


def _hint(value: Any, place: str) -> str:
    """Return what to write instead of a text in a column, as part of a sentence."""
    name = place.partition(", column ")[2]
    known = remedy(value, name, time=name == TIME, otherwise="") if isinstance(value, str) else ""
    return f"; {known}" if known else ""


def _of_usual_size(column: Array, times: Array, place: str, issues: Issues) -> Array:
    """Return a column without values that are too large, which are reported."""
    large = np.isfinite(column) & (np.abs(column) > LARGEST)
    if not large.any():
        return column
    i = int(np.flatnonzero(large)[0])
    issues.error(place, f"at t = {times[i]:g}: {too_large(float(column[i]))}")
    return np.where(large, np.nan, column)


def _series(
    name: str,
    columns: Mapping[str, Array],
    times: Array,
    rows: IntArray,
    place: str,
    issues: Issues,
) -> Series | None:
    values = columns[name]
    measured = ~np.isnan(values)
    infinite = np.flatnonzero(np.isinf(values))
    if len(infinite):
        issues.error(
            f"{place}, column {name}",
            f"the value at t = {times[infinite[0]]:g} is infinite; leave it empty or correct it",
        )
        return None
    if not measured.any():
        return None
    sds = None
    if f"{name}_sd" in columns:
        sds = columns[f"{name}_sd"][measured]
        at = f"{place}, column {name}_sd"
        wrong = np.flatnonzero(~(np.isnan(sds) | (np.isfinite(sds) & (sds > 0))))
        if len(wrong):
            issues.error(
                at,
                "the standard deviation of a measured value must be positive, got "
                f"{sds[wrong[0]]:g} at t = {times[measured][wrong[0]]:g}; correct it, or leave "
                "the field empty if [noise] gives it",
            )
            return None
        with np.errstate(over="ignore"):
            wrong = np.flatnonzero(np.abs(values[measured]) / sds > LARGEST)
            wrong = np.union1d(wrong, np.flatnonzero(sds < 1.0 / LARGEST))
        if len(wrong):
            issues.error(
                at,
                f"{sds[wrong[0]]:g} at t = {times[measured][wrong[0]]:g} is too small beside the "
                f"value {values[measured][wrong[0]]:g}, because squares of residuals would "
                "overflow; correct one of them",
            )
            return None
        if issues.has_errors(at):
            return None
        if np.isnan(sds).all():
            sds = None
    censored = None
    if f"{name}_cens" in columns:
        codes = columns[f"{name}_cens"][measured]
        codes = np.where(np.isnan(codes), 0.0, codes)  # an empty cell means uncensored
        wrong = np.flatnonzero(~np.isin(codes, (-1.0, 0.0, 1.0)))
        if len(wrong):
            issues.error(
                f"{place}, column {name}_cens",
                f"expected 1 (below the limit that column {name} gives), -1 (above it) or 0 "
                f"(measured), got {codes[wrong[0]]:g} at t = {times[measured][wrong[0]]:g}",
            )
            return None
        censored = codes.astype(np.intp) if codes.any() else None
    return Series(rows[measured], values[measured], sds, censored)


def _input(
    name: str, model: Model, times: Array, column: Array, place: str, issues: Issues
) -> Input | None:
    at = f"{place}, column {name}"
    infinite = np.flatnonzero(np.isinf(column))
    if len(infinite):
        issues.error(at, f"the value at t = {times[infinite[0]]:g} is infinite; correct it")
        return None
    if np.isfinite(column[np.isinf(times)]).any():
        issues.error(
            at,
            "the input has a value at t = inf, where it keeps its last finite value; leave the "
            "field empty",
        )
        return None
    filled = np.isfinite(column)
    knots, values = times[filled], column[filled]
    if not len(knots):
        if not issues.has_errors(at):
            issues.error(at, "the input has no values")
        return None
    twice = np.flatnonzero((np.diff(knots) == 0) & (np.diff(values) != 0))
    if len(twice):
        i = twice[0]
        several = (
            "; if the table has several runs one below the other, name the column that tells them "
            'apart beside the data, by = "COLUMN", or give each run a file and an [[experiment]]'
        )
        issues.error(
            at,
            f"two values of the input at t = {knots[i]:g}: {values[i]:g} and {values[i + 1]:g}; "
            f"give one of them{several}",
        )
        return None
    unique, first = np.unique(knots, return_index=True)
    return Input(unique, values[first], model.inputs[name])


def _warn_of_replicates(
    series: Mapping[str, Series], times: Array, place: str, issues: Issues
) -> None:
    names = []
    first = np.inf
    for name, s in series.items():
        twice = np.flatnonzero(np.diff(s.rows) == 0)
        if len(twice):
            names.append(name)
            first = min(first, times[s.rows[twice[0]]])
    if names:
        issues.warn(
            place,
            f"more than one value of {', '.join(names)} at the same time (first at t = {first:g}); "
            "they count as replicate measurements",
        )
