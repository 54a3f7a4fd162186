"""Experiments of PEtab as experiments of format 1."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from odefit.common.errors import closest, did_you_mean, shown
from odefit.formats.petab.description import STEADY, ExperimentRows, Period
from odefit.formats.petab.names import PetabNames, names_in, number_in
from odefit.formats.petab.tables import ALIKE, as_number
from odefit.problem.inputs.issues import Issues
from odefit.problem.sbml import substituted


class Experiments:
    """The translation of experiments into format 1.

    `comments` are columns without assignments, see :func:`comment_columns`.
    """

    def __init__(
        self, names: PetabNames, version: int, issues: Issues, comments: Collection[str] = ()
    ) -> None:
        self._names = names
        self._comments = comments
        self._model = names.model
        self._version = version
        self._issues = issues

    def __call__(self, rows: ExperimentRows) -> dict[str, Any]:
        """Return an experiment without its data: name, t0, constants, initial values, events."""
        first, *later = rows.periods
        steady = first.time == STEADY
        t0 = first.time if not steady else later[0].time if later else 0.0
        constants, initial = self._beginning(first)
        table: dict[str, Any] = {"name": plain_name(rows.name), "t0": t0}
        if steady:
            table["steady_state"] = True
        table["constants"], table["initial"] = constants, initial
        events = [self._event(period, constants) for period in later]
        table["event"] = [*(e for e in events if e["assign"]), *self._model_events()]
        return table

    def _beginning(self, first: Period) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the constants and initial values that the first period assigns."""
        model, parameters = self._model, self._names.parameters
        values = self._values(first)
        # Names in a value have the values of the model, not those of the same period.
        before: dict[str, str] = dict(model.initial)
        for name in values.keys() & model.constants.keys():
            before[name] = repr(model.constants[name])
        before |= {n: t for n, t in model.computed.items() if n not in parameters}
        assigned = {
            name: substituted(text, {n: before[n] for n in names_in(text) & before.keys()})
            for name, text in values.items()
        }
        chosen = {name: name for name in parameters & (self._names.defined - model.states.keys())}
        start = model.at_start({**chosen, **assigned})
        constants: dict[str, Any] = {n: t for n, t in assigned.items() if n not in model.states}
        for name, text in start.computed.items():
            if name not in parameters:
                inside = names_in(text) & constants.keys()
                constants[name] = substituted(text, {n: constants[n] for n in inside})
        initial = {n: t for n, t in start.initial.items() if t != model.initial.get(n)}
        return _with_numbers(constants), _with_numbers(initial)

    def _event(self, period: Period, constants: Mapping[str, Any]) -> dict[str, Any]:
        """Return the event with which a later period begins."""
        model = self._model
        assign: dict[str, Any] = {}
        values = self._values(period)
        if self._version == 1:
            # Quantities that the condition leaves empty have the value of the model again.
            for name in constants:
                if name in model.constants and name not in values:
                    assign[name] = model.constants[name]
            changed = {**assign, **values}
            for name, text in model.computed.items():
                if name not in values and names_in(text) & changed.keys():
                    inside = names_in(text) & changed.keys()
                    assign[name] = substituted(text, {n: str(changed[n]) for n in inside})
        assign |= values
        return {"time": period.time, "measured": "after", "assign": _with_numbers(assign)}

    def _values(self, period: Period) -> dict[str, str]:
        """Return the assignments of a period, with names and values of format 1."""
        values: dict[str, str] = {}
        model = self._model
        for target, text in period.assign.items():
            if target in self._comments:
                continue
            name = self._names.of(target)
            if name in model.assigned:
                self._issues.error(
                    period.place,
                    f"{shown(target)} follows from an assignment rule of the model, so a "
                    "condition cannot assign it",
                )
            elif name in self._names.parameters:
                self._issues.error(
                    period.place,
                    f"{shown(target)} is in the parameter table, so a condition cannot assign it",
                )
            elif name not in self._names.defined:
                known = self._names.defined
                self._issues.error(
                    period.place,
                    f"there is no {shown(target)} in the model{did_you_mean(target, known)}",
                )
            else:
                values[name] = self._names.expression(text, period.place)
        return values

    def _model_events(self) -> Sequence[dict[str, Any]]:
        """Return the events of the model, which apply to every experiment."""
        tables = self._model.event_tables()
        if self._version < 2:
            for table in tables:
                del table["measured"]
        return tables


def comment_columns(experiments: Sequence[ExperimentRows], names: PetabNames) -> list[str]:
    """Return columns of the condition table of version 1 that are comments, such as dates.

    Every column of this table but two is a quantity of the model. A column of another name is a
    comment if none of its cells can be a value and its name is not a misspelling of one in the
    model.
    """
    cells: dict[str, list[str]] = {}
    for period in {p.place: p for e in experiments for p in e.periods}.values():
        for target, text in period.assign.items():
            cells.setdefault(target, []).append(text)
    known = {*names.defined, *names.parameters, *names.model.assigned}
    return [
        target
        for target, texts in cells.items()
        if names.of(target) not in known
        and closest(target, known, alike=ALIKE) is None
        and not any(_is_value(text, names) for text in texts)
    ]


def _is_value(text: str, names: PetabNames) -> bool:
    """True if a cell is a number, or an expression in names of the model."""
    inside = {names.of(n) for n in names_in(text)}
    return as_number(text) is not None or (bool(inside) and inside <= names.known)


def _with_numbers(table: Mapping[str, Any]) -> dict[str, Any]:
    """Return a table in which texts without names are numbers."""
    converted = {}
    for name, value in table.items():
        number = number_in(value) if isinstance(value, str) else None
        converted[name] = value if number is None else number
    return converted


def plain_name(name: str) -> str:
    """Return the name of an experiment without the square brackets that keys need."""
    return name.replace("[", "(").replace("]", ")")
