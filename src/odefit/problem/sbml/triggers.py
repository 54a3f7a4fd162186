"""Events of a model."""

from __future__ import annotations

from typing import Any

from odefit.expressions.expressions import ExpressionError
from odefit.problem.sbml.equations import changing_species
from odefit.problem.sbml.fast_reactions import mixed_again
from odefit.problem.sbml.sbml_model import SbmlEvent
from odefit.problem.sbml.symbols import Reading, Symbol, place_of
from odefit.problem.sbml.terms import (
    Term,
    as_term,
    condition,
    names_in,
    number_in,
    numeric,
    product,
    quotient,
    replaced_in,
)


def mark_events(reading: Reading) -> None:
    """Record the quantities that events change, and report invalid ones."""
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
    """Return the events in the order of their numeric priorities, and remarks."""
    events: list[SbmlEvent] = []
    remarks: list[str] = []
    for count, event in enumerate(reading.model.getListOfEvents(), 1):
        place = _place(event, count)
        if not event.getListOfEventAssignments().size():
            remarks.append(f"the {place} assigns nothing and is left out")
            continue
        trigger = event.getTrigger()
        if trigger is None or trigger.getMath() is None:
            remarks.append(f"the {place} has no trigger and is left out")
            continue
        level3 = event.getLevel() > 2
        priority = event.getPriority() if level3 else None
        parts = [
            None if part is None or part.getMath() is None else reading.term(part.getMath(), place)
            for part in (trigger, event.getDelay(), priority)
        ]
        if parts[0] is None:
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
            text = replaced_in(condition(parts[0]), written).text
            delay, rank = (
                None if p is None else replaced_in(numeric(p), written).text for p in parts[1:]
            )
            terms = _with_amounts_kept(terms, reading, written)
            needed = mixed_again(terms, reading, written)
        except ExpressionError as error:
            reading.error(place, str(error))
            continue
        for formula in (text, delay, rank, *(value.text for value in terms.values())):
            needed |= set(names_in(formula or "")) & reading.conditions.keys()
        if needed:
            reading.error(
                place,
                f"it depends on '{min(needed)}', which an equation determines that is not linear "
                "in it; events depend on states and constants",
            )
        events.append(
            SbmlEvent(
                event.getId() or f"event {count}",
                text,
                {name: value.text for name, value in terms.items()},
                trigger.getInitialValue() if level3 else True,
                trigger.getPersistent() if level3 else True,
                event.getUseValuesFromTriggerTime(),
                "0" if delay is None else delay,
                rank,
            )
        )
    events.sort(key=_rank)  # stable: equal priorities keep the order of the file
    return tuple(events), remarks


def _rank(event: SbmlEvent) -> float:
    """Return a number that decreases with priority, 0 for a non-numeric priority."""
    known = None if event.priority is None else number_in(as_term(event.priority))
    return -(known or 0.0)


def _place(event: Any, count: int) -> str:
    return place_of(event, "event", event.getId() or str(count))


def _with_amounts_kept(
    terms: dict[str, Term], reading: Reading, written: dict[str, Term]
) -> dict[str, Term]:
    """Return assignments, with those that conserve amounts when a compartment's size changes."""
    conserving: dict[str, Term] = {}
    for name, value in terms.items():
        amount = reading.amounts.get(name)
        if amount is None:
            conserving[name] = value
            continue
        species = next(s for s in reading.of("species") if s.name == name)
        volume = reading.volume(species)
        conserving[amount] = (
            value if species.amount else product([value, replaced_in(volume, written)])
        )
    for species in _concentrations(reading):
        compartment = reading.by_id[species.compartment].name
        if compartment in terms:  # the assigned value is a concentration in the old size
            now = terms.get(species.name, Term(species.name))
            conserving[species.name] = quotient(
                product([now, Term(compartment)]), terms[compartment]
            )
    return conserving


def _concentrations(reading: Reading) -> list[Symbol]:
    """Return the states that are concentrations."""
    ruled = [s for s in reading.of("species") if s.rule == "rate"]
    return [
        species
        for species in (*changing_species(reading), *ruled)
        if not species.amount and species.name not in reading.amounts
    ]
