"""Long tables with one record per row, as in NONMEM and Monolix: doses and measurements."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from odefit.common.errors import counted, did_you_mean, shown
from odefit.expressions.expressions import TIME
from odefit.problem.building.times import time_column
from odefit.problem.experiment import Experiment, data_place
from odefit.problem.inputs.cells import INFINITE, is_missing, plain_number, remedy, subject_key
from odefit.problem.inputs.file_access import MAX_EXPERIMENTS
from odefit.problem.inputs.issues import LARGEST, Issues, too_large
from odefit.problem.inputs.table import Cells
from odefit.problem.model import Model

ROLES: dict[str, tuple[str, ...]] = {
    "AMT": ("AMT", "DOSE_AMT"), "RATE": ("RATE",), "DUR": ("DUR", "TINF"), "II": ("II", "TAU"),
    "ADDL": ("ADDL",), "SS": ("SS",), "EVID": ("EVID",), "MDV": ("MDV",), "CMT": ("CMT", "ADM"),
    "DV": ("DV",), "DVID": ("DVID", "YTYPE"), "CENS": ("CENS",), "LIMIT": ("LIMIT",),
    "BLQ": ("BLQ",), "LLOQ": ("LLOQ",),
}  # fmt: skip
"""The convention's columns by role, with the names that identify them."""

BESIDE = ("", "_sd", "_cens")
"""Suffixes of the columns that belong to an observable."""

EVIDS = "0 (a measurement), 1 (a dose), 2 (another change), 3 (a reset) or 4 (a reset and a dose)"


@dataclass(frozen=True)
class Record:
    """One row of a long table."""

    time: float
    place: str  # the name of the row in messages
    order: int  # its number in the table
    kind: int  # the number that EVID gives or implies
    # AMT, RATE, DUR, II, ADDL, SS and CMT
    amount: float | None
    rate: float | None
    duration: float | None
    interval: float | None
    additional: int
    steady: int
    target: str | None
    values: Mapping[str, float]  # values by data column: observables, their _sd and _cens
    others: Mapping[str, float]  # values of inputs and covariates that the row has

    @property
    def doses(self) -> bool:
        """True if the record gives a dose."""
        return self.kind in (1, 4)

    @property
    def resets(self) -> bool:
        """True if the system is reset."""
        return self.kind in (3, 4)


class LongTable:
    """The data of an experiment as records.

    Expressions refer to the names in `needed`. Columns with these names are `covariates`, which
    become constants. `usable` is true if the columns can be read.
    """

    def __init__(
        self, experiment: Experiment, model: Model, needed: set[str], issues: Issues
    ) -> None:
        self._experiment, self._model, self._issues = experiment, model, issues
        self.place = data_place(experiment)
        self._columns = _raw_columns(experiment.data)
        self._lines = experiment.data.lines if isinstance(experiment.data, Cells) else None
        self._roles: dict[str, str] = {}
        self._nameless: list[int] = []  # rows without a subject
        self._texts: dict[str, list[int]] = {}  # rows with a text for a number, by column
        self.covariates: list[str] = []
        self.usable = False
        lengths = {len(column) for column in self._columns.values()}
        if len(lengths) != 1:
            self._refuse(
                "the columns have different lengths"
                if lengths
                else "no columns; expected those of a long table"
            )
            return
        self._count = lengths.pop()
        self._time = self._name_of_time()
        self._find_roles()
        by = experiment.by
        if by is not None and by not in self._columns:
            self._missing_column("by", by)
        elif self._time is not None:
            self.usable = self._find_observables()
        self._find_others(needed)

    def subjects(self) -> dict[str, list[Record]]:
        """Return the records of each subject by the text of its ID, in the order of the table."""
        records: dict[str, list[Record]] = {}
        for row in range(self._count):
            if all(is_missing(column[row]) for column in self._columns.values()):
                continue
            key = self._subject(row)
            record = None if key is None else self._record(row)
            if key is not None and record is not None:
                records.setdefault(key, []).append(record)
                if len(records) > MAX_EXPERIMENTS:
                    break
        if self._nameless:
            message = f"the row belongs to no subject{_and_more(self._nameless)}; fill the field"
            self._error(self._nameless[0], self._experiment.by or "", message)
        for name, rows in self._texts.items():
            cell = str(self._columns[name][rows[0]]).strip()
            mark = "CENS" if name == self._roles.get("DV") else ""
            fix = remedy(cell, name, time=name == self._time, mark=mark)
            self._error(rows[0], name, f"{shown(cell)} is not a number{_and_more(rows)}; {fix}")
        return records

    def _refuse(self, message: str) -> bool:
        """Report a mistake of the whole table, and return False."""
        self._issues.error(self.place, message)
        return False

    def _missing_column(self, key: str, name: str) -> None:
        hint = did_you_mean(name, self._columns)
        self._refuse(
            f"no column '{name}', which {key} names{hint} (columns are: {', '.join(self._columns)})"
        )

    def _name_of_time(self) -> str | None:
        time = self._experiment.time
        if time in self._columns:
            return time
        if time != TIME:
            self._missing_column("time", time)
            return None
        column = time_column(self._experiment, self._columns)
        if column is None:
            have = ", ".join(self._columns)
            self._refuse(
                f"no column with the times, such as TIME (columns are: {have}); name it: "
                'time = "COLUMN"'
            )
        return column

    def _unknown_role(self, role: str, column: str) -> str:
        """Return the message on a key of ``columns``, which may be the column itself."""
        known = {*self._model.observables, *self._model.inputs, *ROLES}
        unknown = f"unknown role {shown(role)}"
        if column in known and role in self._columns:
            return f'{unknown}; names of the model stand on the left: {{ {column} = "{role}" }}'
        return f"{unknown}{did_you_mean(role, ROLES)}; roles are: {', '.join(ROLES)}"

    def _find_roles(self) -> None:
        stated = dict(self._experiment.columns)
        for role, name in stated.items():
            if role not in ROLES:
                self._issues.error(f"{self.place} columns", self._unknown_role(role, name))
            elif name not in self._columns:
                self._missing_column(f"columns.{role}", name)
            else:
                self._roles[role] = name
        model = self._model
        taken = {*model.observables, *model.inputs, self._time, self._experiment.by}
        taken |= set(self._roles.values())
        for role, names in ROLES.items():
            for column in self._columns:
                if role not in self._roles and column not in taken and column.upper() in names:
                    self._roles[role] = column

    def has(self, role: str) -> bool:
        """Return whether the table has a column with that role."""
        return role in self._roles

    def _find_observables(self) -> bool:
        """Determine which columns hold measurements; return whether that is unambiguous."""
        observables = list(self._model.observables)
        self._wide = [o for o in observables if o in self._columns]
        self._single: str | None = None
        self._codes: dict[str, str] = {}
        stated = self._experiment.observable
        if "DV" not in self._roles:
            return not isinstance(stated, (str, Mapping)) or self._refuse(
                "observable says what is measured in DV, but there is no such column; write "
                'columns = { DV = "NAME" }, or leave observable out'
            )
        dv = self._roles["DV"]
        if self._wide:
            return self._refuse(
                f"the columns '{dv}' and '{self._wide[0]}' both have measurements; remove or "
                "rename one of them"
            )
        if isinstance(stated, Mapping):
            self._codes = {str(k): str(v) for k, v in stated.items()}
            wrong = [v for v in self._codes.values() if v not in observables]
            if wrong:
                return self._refuse(
                    f"observable names '{wrong[0]}', which is not an observable"
                    f"{did_you_mean(wrong[0], observables)}"
                )
        elif isinstance(stated, str) and stated in observables:
            self._single = stated
            return True
        elif isinstance(stated, str) and stated in self._columns:
            self._roles["DVID"] = stated
        elif isinstance(stated, str):
            return self._refuse(
                f"observable = {shown(stated)} is neither an observable nor a column"
                f"{did_you_mean(stated, [*observables, *self._columns])}"
            )
        if len(observables) == 1:
            self._single = observables[0]
        elif "DVID" not in self._roles:
            return self._refuse(
                f"the column '{dv}' has measurements of one of {', '.join(observables)}; write "
                f'observable = "{observables[0]}", or name the column that tells them apart: '
                'observable = "COLUMN"'
            )
        if not self._codes:
            self._codes = {str(i): name for i, name in enumerate(observables, 1)}
            self._codes |= {name: name for name in observables}
        return True

    def _find_others(self, needed: set[str]) -> None:
        model = self._model
        measured = [*model.observables, *([self._roles["DV"]] if "DV" in self._roles else ())]
        used: set[str | None] = {f"{name}{suffix}" for name in measured for suffix in BESIDE}
        used |= {*self._roles.values(), *model.inputs, self._time, self._experiment.by}
        for name in self._columns:
            # The column that identifies subjects may be a quantity that differs, such as a dose.
            is_subject = name == self._experiment.by
            if (name in used and not is_subject) or not name:
                continue
            if name in needed and name not in model.ode:
                self.covariates.append(name)
            elif not is_subject:
                self._issues.warn(
                    f"{self.place}, column {name}", f"not used{did_you_mean(name, needed)}"
                )

    def _row(self, row: int) -> str:
        return f"row {row} (counting from 0)" if self._lines is None else f"row {self._lines[row]}"

    def _error(self, row: int, role: str, message: str) -> None:
        """Report a mistake in a cell, `role` being a role or the name of a column."""
        name = self._roles.get(role, role)
        self._issues.error(f"{self.place}, {self._row(row)}, column {name}", message)

    def _subject(self, row: int) -> str | None:
        by = self._experiment.by
        if by is None:
            return ""
        value = self._columns[by][row]
        if is_missing(value):
            self._nameless.append(row)
            return None
        return subject_key(value)

    def _value(self, row: int, role: str, *, least: float = -math.inf) -> float | None:
        """Return the number in a cell; None if it is empty, or invalid, with the reason noted."""
        name = self._roles.get(role, role)
        cell = self._columns[name][row] if name in self._columns else None
        if is_missing(cell):
            return None
        if name == self._time and str(cell).strip().lstrip("+").casefold() in INFINITE:
            return math.inf
        number = plain_number(cell)
        if number is None:
            self._texts.setdefault(name, []).append(row)
            return None
        if abs(number) > LARGEST:
            self._error(row, role, too_large(number))
            return None
        if number < least:
            self._error(row, role, f"expected a number not below {least:g}, got {number:g}")
            return None
        return number

    def _whole(self, row: int, role: str, choices: Sequence[int] | None, kind: str) -> int | None:
        number = self._value(row, role)
        if number is None:
            return None
        if number.is_integer() and (number >= 0 if choices is None else number in choices):
            return int(number)
        self._error(row, role, f"expected {kind}, got {number:g}")
        return None

    def _record(self, row: int) -> Record | None:
        assert self._time is not None
        before = self._mistakes()
        time = self._value(row, self._time)
        amount = self._value(row, "AMT", least=0.0)
        rate = self._value(row, "RATE")
        steady = self._whole(row, "SS", (0, 1), "0 or 1 (2, a superposition, is not supported)")
        evid = self._whole(row, "EVID", (0, 1, 2, 3, 4), EVIDS)
        gives = bool(amount) or bool(rate and steady)
        kind = evid if evid is not None else int(gives)
        mdv = self._whole(row, "MDV", None, "0 or a positive number")
        if time is None and self._mistakes() == before:
            self._error(row, self._time, "the time is missing; every row needs one")
        if kind == 0 and gives:
            self._error(
                row, "AMT", f"the amount {amount or 0:g} in a row with EVID = 0; write EVID = 1"
            )
        if kind != 0 and time == math.inf:
            self._error(
                row, self._time, "a dose needs a finite time; inf is that of a steady state"
            )
        if kind in (1, 4) and not gives:
            self._error(row, "AMT", f"EVID = {kind} is a dose, but the amount is empty or zero")
        values = self._measured(row) if kind == 0 and not mdv else {}
        if kind == 1 and evid is None:
            values = self._beside_dose(row, mdv)
        target = self._columns[self._roles["CMT"]][row] if "CMT" in self._roles else None
        record = Record(
            time=0.0 if time is None else time,
            place=f"{self.place}, {self._row(row)}",
            order=row,
            kind=kind,
            amount=amount,
            rate=rate,
            duration=self._value(row, "DUR", least=0.0),
            interval=self._value(row, "II", least=0.0),
            additional=self._whole(row, "ADDL", None, "a whole number that is not negative") or 0,
            steady=steady or 0,
            target=None if is_missing(target) else _code(target),
            values=values,
            others=self._values(row, (*self._model.inputs, *self.covariates)),
        )
        return record if self._mistakes() == before else None

    def _mistakes(self) -> int:
        return len(self._issues.errors) + sum(map(len, self._texts.values()))

    def _beside_dose(self, row: int, mdv: int | None) -> dict[str, float]:
        """Return the measurement in a row with an amount, if EVID does not decide."""
        values = {} if mdv else self._measured(row)
        if "DV" in self._roles and any(values.values()):
            message = "a measurement and an amount in one row; add a column EVID (1 for doses), "
            self._error(row, "DV", f"{message}or write two rows")
        return {} if "DV" in self._roles else values

    def _measured(self, row: int) -> dict[str, float]:
        if "DV" not in self._roles:
            return self._values(row, [f"{n}{suffix}" for n in self._wide for suffix in BESIDE])
        dv = self._roles["DV"]
        value = self._value(row, "DV")
        code = self._censoring(row)
        if code and (value is None or "BLQ" in self._roles):
            limit = self._value(row, "LLOQ")
            value = value if limit is None else limit
            if not value:
                message = "the value is censored without a limit; write it here, or in column LLOQ"
                self._error(row, "DV", message)
        observable = None if value is None else self._observable(row)
        if observable is None or value is None:
            return {}
        measured = {observable: value}
        sd = self._value(row, f"{dv}_sd")
        if sd is not None:
            measured[f"{observable}_sd"] = sd
        if code:
            measured[f"{observable}_cens"] = float(code)
        return measured

    def _censoring(self, row: int) -> int:
        code = 0
        for role in ("CENS", "BLQ"):
            choices = (-1, 0, 1) if role == "CENS" else (0, 1)
            expected = "1 (below the limit), -1 (above it) or 0" if role == "CENS" else "0 or 1"
            code = code or self._whole(row, role, choices, expected) or 0
        if code and self._value(row, "LIMIT") is not None:
            self._error(
                row, "LIMIT", "values within an interval are not supported; leave the field empty"
            )
        return code

    def _observable(self, row: int) -> str | None:
        if self._single is not None:
            return self._single
        cell = self._columns[self._roles["DVID"]][row]
        name = self._codes.get(_code(cell))
        if name is None:
            have = ", ".join(f"{k} = {v}" for k, v in self._codes.items() if k != v)
            self._error(
                row,
                "DVID",
                f"{shown(cell)} stands for no observable ({have}); correct it, or say what the "
                "numbers mean: observable = { 1 = ... }",
            )
        return name

    def _values(self, row: int, columns: Iterable[str]) -> dict[str, float]:
        values = {name: self._value(row, name) for name in columns}
        return {name: value for name, value in values.items() if value is not None}


def _raw_columns(data: Any) -> dict[str, list[Any]]:
    """Return the cells of a DataFrame or mapping as lists, by the name of the column."""
    if isinstance(data, Mapping):
        return {str(name): list(values) for name, values in data.items()}
    if hasattr(data, "columns") and hasattr(data, "iloc"):
        if getattr(data.index, "name", None) is not None:
            data = data.reset_index()
        return {str(name): data.iloc[:, i].tolist() for i, name in enumerate(data.columns)}
    return {}


def _and_more(rows: Sequence[int]) -> str:
    return "" if len(rows) == 1 else f" (and {counted(len(rows) - 1, 'more row')})"


def _code(cell: Any) -> str:
    """Return the text of a code: ``"1"`` for 1, 1.0 and "1"."""
    number = plain_number(cell)
    return str(int(number)) if number is not None and number.is_integer() else str(cell).strip()
