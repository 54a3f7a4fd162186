"""Experiments of PEtab as experiments of format 1."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from odefit.formats.petab.description import STEADY, ExperimentRows, Period
from odefit.formats.petab.names import PetabNames, names_in, number_in
from odefit.problem.errors import did_you_mean, shown
from odefit.problem.issues import Issues
from odefit.problem.sbml import substituted


class Experiments:
    """The translation of experiments.

    Parameters
    ----------
    names
        The names of the problem.
    version
        The version of PEtab.
    issues
        The list to which mistakes are added.
    """

    def __init__(self, names: PetabNames, version: int, issues: Issues) -> None:
        self._names = names
        self._model = names.model
        self._version = version
        self._issues = issues
        self._compartments = set(self._model.concentrations.values())

    def __call__(self, rows: ExperimentRows) -> dict[str, Any]:
        """Return an experiment without its data: name, t0, constants, initial values, events."""
        first, *later = rows.periods
        steady = first.time == STEADY
        t0 = first.time if not steady else later[0].time if later else 0.0
        constants, initial = self._beginning(first)
        found: dict[str, Any] = {"name": plain_name(rows.name), "t0": t0}
        if steady:
            found["steady_state"] = True
        found["constants"], found["initial"] = constants, initial
        events = [self._event(period, constants) for period in later]
        found["event"] = [*(e for e in events if e["assign"]), *self._model_events()]
        return found

    def _beginning(self, first: Period) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the constants and initial values that the first period assigns."""
        model = self._model
        values = self._values(first)
        overridden = set(values)
        before: dict[str, str] = dict(model.initial)
        for name in overridden & model.constants.keys():
            before[name] = repr(model.constants[name])
        before |= model.computed
        constants: dict[str, Any] = {}
        initial: dict[str, Any] = {}
        for name, text in values.items():
            meant = substituted(text, {n: before[n] for n in names_in(text) & before.keys()})
            target = initial if name in model.states else constants
            number = number_in(meant)
            target[name] = meant if number is None else number
        expressions = {n: v for n, v in constants.items() if isinstance(v, str)}
        for name, text in model.computed.items():
            if name not in overridden and name not in self._names.parameters:
                inside = names_in(text) & expressions.keys()
                constants[name] = substituted(text, {n: expressions[n] for n in inside})
        return constants, initial

    def _event(self, period: Period, constants: Mapping[str, Any]) -> dict[str, Any]:
        """Return the event with which a later period begins."""
        model = self._model
        assign: dict[str, Any] = {}
        values = self._values(period)
        if self._version == 1:
            # What the condition leaves empty has the value of the model again.
            for name in constants:
                if name in model.constants and name not in values:
                    assign[name] = model.constants[name]
            changed = {**assign, **values}
            for name, text in model.computed.items():
                if name not in values and names_in(text) & changed.keys():
                    inside = names_in(text) & changed.keys()
                    assign[name] = substituted(text, {n: str(changed[n]) for n in inside})
        for name, text in values.items():
            number = number_in(text)
            assign[name] = text if number is None else number
        for name, compartment in model.concentrations.items():
            if compartment in values and name not in values and name not in self._names.parameters:
                assign[name] = f"{name}*{compartment}/({values[compartment]})"
        return {"time": period.time, "measured": "after", "assign": assign}

    def _values(self, period: Period) -> dict[str, str]:
        """Return what a period assigns, with names and values of format 1."""
        found: dict[str, str] = {}
        model = self._model
        for target, text in period.assign.items():
            name = self._names.of(target)
            if name in model.assigned:
                self._issues.error(
                    period.place,
                    f"{shown(target)} follows from an assignment rule of the model, so that a "
                    "condition cannot assign it",
                )
            elif name in self._names.parameters:
                self._issues.error(
                    period.place,
                    f"{shown(target)} is in the parameter table, so that a condition cannot "
                    "assign it",
                )
            elif name not in {*model.states, *model.constants, *model.computed}:
                known = {*model.states, *model.constants, *model.computed}
                self._issues.error(
                    period.place,
                    f"there is no {shown(target)} in the model{did_you_mean(target, known)}",
                )
            else:
                found[name] = self._names.expression(text, period.place)
        return found

    def _model_events(self) -> Sequence[dict[str, Any]]:
        """Return the events of the model, which every experiment has."""
        found = []
        for event in self._model.events:
            table: dict[str, Any] = {"when": event.trigger, "assign": dict(event.assign)}
            if self._version == 2:
                table["measured"] = "after"
            if not event.initial_value:
                table["initially"] = False
            found.append(table)
        return found


def plain_name(name: str) -> str:
    """Return the name of an experiment without the square brackets that keys need."""
    return name.replace("[", "(").replace("]", ")")
