"""The content of an SBML model, as expressions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from odefit.common.errors import InputError, did_you_mean
from odefit.expressions.expressions import ExpressionError
from odefit.problem.sbml.terms import Term, as_term, expanded, names_in, number_in, substituted


class Start(NamedTuple):
    """Values at the start.

    Attributes
    ----------
    computed
        Constants that follow from other constants, as expressions in these.
    initial
        The initial value of each state, as an expression in constants.
    """

    computed: dict[str, str]
    initial: dict[str, str]


@dataclass(frozen=True)
class SbmlEvent:
    """An event of an SBML model.

    Attributes
    ----------
    id
        Its identifier, or ``event 2`` and so on without one.
    trigger
        The condition: the event happens each time it becomes true.
    assign
        New values of states and constants, from the values just before.
    initial_value
        The trigger's value before the start: if it is false and the trigger is true at the start,
        the event happens then.
    persistent
        Whether it happens even if the trigger becomes false again, through another event or during
        the delay.
    from_trigger_values
        Whether new values are computed when the trigger became true.
    delay
        The delay after that, an expression evaluated when the trigger became true.
    priority
        An expression, or None; of events due at the same time, the one with the highest priority
        happens first.
    """

    id: str
    trigger: str
    assign: dict[str, str]
    initial_value: bool = True
    persistent: bool = True
    from_trigger_values: bool = True
    delay: str = "0"
    priority: str | None = None


@dataclass(frozen=True)
class SbmlModel:
    """An SBML model as equations.

    Every expression is one of problem files. Function definitions, assignment rules and rates of
    reactions are written out in all of them. A species is a state if anything changes it, and a
    constant otherwise; it is a concentration unless it has only substance units in SBML.

    Attributes
    ----------
    name
        The name of the model, or else its identifier.
    time_unit
        The unit of time as a label, empty if the file does not give it.
    states
        The right-hand side of each state, in states, constants and ``t``.
    initial
        The initial value of each state, in constants. States without a value in the file are
        missing here.
    constants
        Constants with a number as their value: parameters, compartments, species that nothing
        changes. Events may change them.
    computed
        Constants given by an initial assignment, in other constants.
    assigned
        Expressions for other identifiers (of assignment rules, reactions, stoichiometries), in
        states, constants and ``t``; observables may name these.
    algebraic
        Variables of algebraic rules, and extents of fast reactions, without an explicit expression,
        each with an expression equal to zero.
    concentrations
        The compartment of each species represented as a concentration. A sudden change of the
        compartment's size changes these too, since amounts are conserved.
    amounts
        States that are the amount of a species, by the species' name, for concentrations in
        compartments whose size follows from a rule.
    without_value
        Constants and states for which the file has no value.
    events
        Its events; those at the same time happen in this order, unless non-numeric priorities
        decide otherwise.
    names
        New names, by SBML identifier.
    translated
        Sentences on the translation.
    start
        The value at the start of each state, computed constant and assigned
        name, in terms of others at the start; :meth:`at_start` combines them.

    Examples
    --------
    >>> model = odefit.read_sbml("decay.xml")  # doctest: +SKIP
    >>> model.states  # doctest: +SKIP
    {'A': '-k*A', 'B': 'k*A'}
    """

    name: str
    time_unit: str
    states: Mapping[str, str]
    initial: Mapping[str, str]
    constants: Mapping[str, float]
    computed: Mapping[str, str]
    assigned: Mapping[str, str]
    algebraic: Mapping[str, str]
    concentrations: Mapping[str, str]
    amounts: Mapping[str, str]
    without_value: tuple[str, ...]
    events: tuple[SbmlEvent, ...]
    names: Mapping[str, str]
    translated: tuple[str, ...]
    start: Mapping[str, str] = field(repr=False)

    def at_start(self, values: Mapping[str, str | float] | None = None) -> Start:
        """Return computed constants and initial values, given different values of some.

        Parameters
        ----------
        values
            Values of states and constants that differ from the file, by name: numbers, or
            expressions in constants and parameters. Initial assignments that depend on them are
            updated, and so are concentrations given by an amount and a compartment's size.
            Constants among them stay as names in the result.

        Raises
        ------
        InputError
            Values depend on each other in a circle, or a name is unknown.
        """
        texts = {name: str(value) for name, value in (values or {}).items()}
        known = {*self.states, *self.algebraic, *self.constants, *self.computed}
        known |= set(self.without_value)
        if unknown := [name for name in texts if name not in known]:
            raise InputError(
                [f"'{n}' is not a state or constant of the model{did_you_mean(n, known)}"
                 for n in unknown]
            )  # fmt: skip
        definitions = {name: as_term(text) for name, text in self.start.items()}
        for name, text in texts.items():
            if name in self.states:
                definitions[name] = as_term(text)
            else:
                definitions.pop(name, None)
        try:
            return _started(definitions, self.states, self.computed)
        except ExpressionError as error:
            raise InputError(f"initial values: {error}") from None

    def mapping(self, parameters: Iterable[str] = ()) -> dict[str, Any]:
        """Return the model as sections of a problem file of format 1.

        Parameters
        ----------
        parameters
            Constants to estimate: they go to ``[parameters]``, with the value of the file as the
            guess.

        Returns
        -------
        dict
            ``format``, ``name``, ``time_unit``, ``ode``, ``constants``, ``parameters``,
            ``initial``, and ``algebraic`` and ``experiment`` if the model has them. Computed
            constants are expanded, so that they follow the estimates. The one experiment begins at
            time 0, has the events, and lacks ``data``. Constants and states without a value are
            parameters.

        Raises
        ------
        InputError
            A constant is unknown.
        """
        estimated = list(dict.fromkeys(parameters))
        known = {*self.constants, *self.computed, *self.without_value}
        if wrong := [name for name in estimated if name not in known]:
            raise InputError([f"no constant '{n}'{did_you_mean(n, known)}" for n in wrong])
        chosen: dict[str, str | float] = {
            n: n for n in (*estimated, *self.without_value) if n not in self.states
        }
        start = self.at_start(chosen)
        written = {n: t for n, t in start.computed.items() if n not in self._changed()}
        table: dict[str, Any] = {
            name: {"guess": self.constants[name]} if name in self.constants else {}
            for name in chosen
        }
        constants = {n: v for n, v in self.constants.items() if n not in table}
        initial: dict[str, Any] = {name: start.initial.get(name, {}) for name in self.states}
        for name in self.algebraic:  # the start value for solving its equation
            value = number_in(as_term(self.start.get(name, "")))
            initial[name] = 1.0 if value is None else value
        sections: dict[str, Any] = {
            "format": 1,
            "name": self.name,
            "ode": _written(self.states, written),
            "constants": constants,
            "parameters": table,
            "initial": _written(initial, written),
        }
        if self.time_unit:
            sections["time_unit"] = self.time_unit
        if self.algebraic:
            sections["algebraic"] = _written(self.algebraic, written)
        held = {n: t for n, t in start.computed.items() if n in self._changed()}
        experiment: dict[str, Any] = {"t0": 0.0}  # the start time of SBML
        if held or self.events:
            experiment["constants"] = held
            experiment["event"] = self.event_tables(written)
        sections["experiment"] = [experiment]
        return sections

    def event_tables(self, written: Mapping[str, str] | None = None) -> list[dict[str, Any]]:
        """Return the events as tables of an experiment of format 1.

        Names in `written` are expanded. As in SBML, values at the time of an event are those after
        it.
        """
        return [_event(event, self.events, written or {}) for event in self.events]

    def _changed(self) -> set[str]:
        """Return the names that events change."""
        return {name for event in self.events for name in event.assign}


def _started(
    definitions: Mapping[str, Term], states: Mapping[str, str], computed: Mapping[str, str]
) -> Start:
    """Return values at the start: constants stay as names in initial values."""
    still = [name for name in computed if name in definitions]
    constants = {name: term.text for name, term in expanded(definitions).items() if name in still}
    without = {name: term for name, term in definitions.items() if name not in still}
    values = expanded({n: t for n, t in without.items() if t.text != n})
    initial = {name: values[name].text for name in states if name in values}
    return Start(constants, initial)


def _written(table: Mapping[str, Any], written: Mapping[str, str]) -> dict[str, Any]:
    return {
        name: substituted(text, written) if isinstance(text, str) else text
        for name, text in table.items()
    }


def _event(
    event: SbmlEvent, events: Sequence[SbmlEvent], written: Mapping[str, str]
) -> dict[str, Any]:
    """Return an event as a table of format 1, without fields that do not matter among `events`."""
    event_table: dict[str, Any] = {
        "when": substituted(event.trigger, written),
        "assign": _written(event.assign, written),
        "measured": "after",
    }
    if not event.initial_value:
        event_table["initially"] = False
    waits = event.delay != "0"
    if waits:
        event_table["delay"] = substituted(event.delay, written)
    if event.priority is not None and len(events) > 1:
        event_table["priority"] = substituted(event.priority, written)
    if not event.persistent and (waits or len(events) > 1):
        event_table["persistent"] = False
    changed = {name for other in events for name in other.assign}
    read = {name for text in event.assign.values() for name in names_in(text)}
    if event.from_trigger_values and (waits or (len(events) > 1 and read & changed)):
        event_table["values"] = "trigger"
    return event_table
