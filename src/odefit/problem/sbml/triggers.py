"""Events of a model."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from odefit.expressions.expressions import ExpressionError
from odefit.problem.sbml.equations import changing_species
from odefit.problem.sbml.sbml_model import SbmlEvent
from odefit.problem.sbml.symbols import Reading, Symbol, place_of
from odefit.problem.sbml.terms import Term, condition, numeric, product, quotient, replaced_in


def mark_events(reading: Reading) -> None:
    """Note what events change, and report what cannot be."""
    for count, event in enumerate(reading.model.getListOfEvents(), 1):
        place = _place(event, count)
        changed = set()
        for assignment in event.getListOfEventAssignments():
            identifier = assignment.getVariable()
            symbol = reading.variable(identifier, place)
            if symbol is None:
                continue
            if identifier in changed:
                reading.error(place, f"it assigns to '{identifier}' twice")
            elif symbol.constant:
                reading.error(place, f"it assigns to '{identifier}', which is constant")
            elif symbol.rule == "assignment":
                reading.error(
                    place, f"it assigns to '{identifier}', which an assignment rule determines"
                )
            else:
                changed.add(identifier)
                symbol.event = True


def read_events(
    reading: Reading, written: dict[str, Term]
) -> tuple[tuple[SbmlEvent, ...], list[str]]:
    """Return the events in the order in which they happen at the same time, and remarks."""
    found: list[tuple[float, SbmlEvent]] = []
    remarks: list[str] = []
    listed = list(reading.model.getListOfEvents())
    for count, event in enumerate(listed, 1):
        place = _place(event, count)
        if not event.getListOfEventAssignments().size():
            remarks.append(f"the {place} assigns nothing and is left out")
            continue
        trigger = event.getTrigger()
        if trigger is None or trigger.getMath() is None:
            reading.error(place, "it has no trigger")
            continue
        priority = _priority(event, place, len(listed), reading)
        _check_delay(event, place, reading)
        term = reading.term(trigger.getMath(), place)
        if term is None:
            continue
        assign = {
            reading.by_id[a.getVariable()].name: reading.term(a.getMath(), place)
            for a in event.getListOfEventAssignments()
            if a.getVariable() in reading.by_id
        }
        try:
            terms = {
                name: replaced_in(numeric(value), written)
                for name, value in assign.items()
                if value is not None
            }
            text = replaced_in(condition(term), written).text
            terms = _with_amounts_kept(terms, reading, written)
        except ExpressionError as error:
            reading.error(place, str(error))
            continue
        level3 = event.getLevel() > 2
        found.append(
            (
                -priority,
                SbmlEvent(
                    event.getId() or f"event {count}",
                    text,
                    {name: value.text for name, value in terms.items()},
                    trigger.getInitialValue() if level3 else True,
                    trigger.getPersistent() if level3 else True,
                    event.getUseValuesFromTriggerTime(),
                ),
            )
        )
    found.sort(key=lambda pair: pair[0])  # stable: the order of the file where priorities agree
    return _together([event for _, event in found], remarks), remarks


def _together(events: list[SbmlEvent], remarks: list[str]) -> tuple[SbmlEvent, ...]:
    """Return events with those that always happen together as one, if their values do not wait.

    odefit's events at the same time each see the values that the one before has left; SBML's see
    the values before all of them, unless they say otherwise.
    """
    found: list[SbmlEvent] = []
    for event in events:
        last = found[-1] if found else None
        alike = last is not None and (last.trigger, last.initial_value, True, True) == (
            event.trigger, event.initial_value, event.from_trigger_values, event.persistent
        )  # fmt: skip
        if last is not None and alike:
            both = replace(last, id=f"{last.id}, {event.id}", assign=last.assign | event.assign)
            found[-1] = both
            remarks.append(f"the events '{last.id}' and '{event.id}' happen together, as one")
        else:
            found.append(event)
    if len(found) > 1 and any(event.from_trigger_values for event in found[1:]):
        remarks.append(
            "events that happen at the same time see what the one before has left, in this order: "
            + ", ".join(f"'{event.id}'" for event in found)
        )
    return tuple(found)


def _place(event: Any, count: int) -> str:
    return place_of(event, "event", event.getId() or str(count))


def _priority(event: Any, place: str, events: int, reading: Reading) -> float:
    """Return the priority of an event; of the only one it has no meaning."""
    if event.getLevel() < 3 or not event.isSetPriority() or events < 2:
        return 0.0
    term = reading.term(event.getPriority().getMath(), place)
    if term is None:
        return 0.0
    try:
        return float(term.text)
    except ValueError:
        reading.error(
            place, f"its priority {term.text!r} is not a number, and there are other events"
        )
    return 0.0


def _check_delay(event: Any, place: str, reading: Reading) -> None:
    delay = event.getDelay()
    if delay is None:
        return
    term = reading.term(delay.getMath(), place)
    if term is not None and term.text != "0":
        reading.error(place, f"it has a delay of {term.text!r}; odefit has no events with delays")


def _with_amounts_kept(
    terms: dict[str, Term], reading: Reading, written: dict[str, Term]
) -> dict[str, Term]:
    """Return assignments with those that keep amounts when the size of a compartment changes."""
    found: dict[str, Term] = {}
    for name, value in terms.items():
        amount = reading.amounts.get(name)
        if amount is None:
            found[name] = value
            continue
        species = next(s for s in reading.of("species") if s.name == name)
        volume = reading.volume(species)
        found[amount] = product([value, replaced_in(volume, written)])
    for species in _concentrations(reading):
        compartment = reading.by_id[species.compartment].name
        if compartment in terms and species.name not in terms:
            before = product([Term(species.name), Term(compartment)])
            found[species.name] = quotient(before, terms[compartment])
    return found


def _concentrations(reading: Reading) -> list[Symbol]:
    """Return the states that are concentrations."""
    ruled = [s for s in reading.of("species") if s.rule == "rate"]
    return [
        species
        for species in (*changing_species(reading), *ruled)
        if not species.amount and species.name not in reading.amounts
    ]
