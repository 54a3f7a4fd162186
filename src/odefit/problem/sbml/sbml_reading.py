"""Reading of SBML models, with sentences on their translation."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from odefit.common.errors import InputError
from odefit.expressions.expressions import TIME, ExpressionError
from odefit.problem.inputs.issues import Issues
from odefit.problem.sbml.delays import Delays
from odefit.problem.sbml.document import (
    declared_packages,
    open_model,
    promote_local_parameters,
    remove_empty_formulas,
)
from odefit.problem.sbml.equations import (
    changing_species,
    define_rates_of_change,
    keep_amounts,
    read_algebraic_rules,
    read_reactions,
    read_rules,
    right_hand_side,
)
from odefit.problem.sbml.fast_reactions import hold_equilibria
from odefit.problem.sbml.math_trees import DELAY_PREFIX, RATE_PREFIX
from odefit.problem.sbml.sbml_model import SbmlModel
from odefit.problem.sbml.symbols import WORDS, Reading, Symbol, gathered, place_of
from odefit.problem.sbml.terms import (
    ZERO,
    Term,
    expanded,
    names_in,
    number,
    number_in,
    numeric,
    product,
    quotient,
    replaced_in,
)
from odefit.problem.sbml.triggers import mark_events, read_events


def read_sbml(path_or_text: str | os.PathLike[str]) -> SbmlModel:
    """Read an SBML model, of levels 1 to 3, with submodels of the package comp.

    Parameters
    ----------
    path_or_text
        The path of an SBML file, or SBML itself: a text whose first character is ``<``. Nothing
        else is read from disk or network.

    Raises
    ------
    InputError
        The file cannot be read, or the model has a feature that odefit lacks. These are delays of
        expressions that depend on their own past, and reactions without a kinetic law. Others are
        algebraic rules of an index above 1, functions without equivalent, and packages that change
        its meaning. There is a message for each, with the element, its line and the reason. Or the
        package python-libsbml is missing.
    """
    document, model, source = open_model(path_or_text)
    issues = Issues(source)
    promoted = promote_local_parameters(document, issues) + remove_empty_formulas(model)
    read_model = _read(gathered(model, issues))
    issues.raise_errors()
    del document  # it owns libsbml's objects
    return replace(read_model, translated=(*read_model.translated, *promoted))


def _read(reading: Reading) -> SbmlModel:
    mark_events(reading)
    assignments = mark_initial_assignments(reading)
    read_rules(reading)
    for symbol in reading.of("stoichiometry"):
        changed = symbol.rule or symbol.assigned_at_start or symbol.event
        if symbol.value is not None and not changed:
            reading.definitions[symbol.name] = number(symbol.value)
    read_reactions(reading)
    read_algebraic_rules(reading)
    keep_amounts(reading)
    hold_equilibria(reading)
    starts = read_starts(reading, assignments)
    try:
        # Formulas of events can ask for rates of change as well, so that they are read twice.
        read_events(reading, {})
        define_rates_of_change(reading)
        copies: dict[str, str] = {}
        if reading.delays:
            delays = Delays(reading, _states(reading, expanded(reading.definitions)))
            copies = delays.copies
            starts |= delays.starts
        written = expanded(reading.definitions)
        events, remarks = read_events(reading, written)
        states = _states(reading, written) | copies
        algebraic = {n: replaced_in(t, written).text for n, t in reading.conditions.items()}
    except ExpressionError as error:
        reading.error("model", str(error))
    reading.issues.raise_errors()
    variables = {*states, *algebraic}
    for name in states:
        if name not in starts:  # the placeholder state of a model without states
            starts[name] = ZERO
    constants: dict[str, float] = {}
    start = {n: replaced_in(t, {TIME: ZERO}) for n, t in reading.definitions.items()}
    computed: dict[str, str] = {}
    without = []
    for name, value in starts.items():
        if name in reading.definitions:
            continue  # a constant stoichiometry
        known = None if value is None else number_in(value)
        if value is None:
            without += [name] * (name not in algebraic)
        elif name in variables:
            start[name] = value
        elif known is None:
            computed[name] = value.text
            start[name] = value
        else:
            constants[name] = known
    assigned = {
        n: t.text for n, t in written.items() if not n.startswith((RATE_PREFIX, DELAY_PREFIX))
    }
    determined = {*variables, *constants, *computed, *without, *WORDS}
    for name, text in {**states, **algebraic, **assigned}.items():
        for other in set(names_in(text)) - determined:
            reading.error(f"equation of '{name}'", f"nothing determines '{other}'")
    reading.issues.raise_errors()
    concentrations = {
        species.name: reading.by_id[species.compartment].name
        for species in reading.of("species")
        if not species.amount and species.name not in reading.definitions
    }
    result = SbmlModel(
        name=reading.model.getName() or reading.model.getId() or "model",
        time_unit=time_unit(reading.model),
        states=states,
        initial={},
        constants=constants,
        computed=computed,
        assigned=assigned,
        algebraic=algebraic,
        concentrations=concentrations,
        amounts=dict(reading.amounts),
        without_value=tuple(without),
        events=events,
        names=dict(reading.renamed),
        translated=(),
        start={n: t.text for n, t in start.items()},
    )
    try:
        started = result.at_start()
    except InputError as error:
        for message in error.messages:
            reading.error("model", message)
        reading.issues.raise_errors()
        raise
    result = replace(result, computed=started.computed, initial=started.initial)
    return replace(result, translated=(*remarks_on(reading, result), *remarks))


def _states(reading: Reading, written: dict[str, Term]) -> dict[str, str]:
    """Return the right-hand sides, species first."""
    states: dict[str, str] = {}
    for species in changing_species(reading):
        name = reading.amounts.get(species.name, species.name)
        states[name] = replaced_in(right_hand_side(species, reading, written), written).text
    for name, rate in reading.rate_rules.items():
        states[name] = replaced_in(rate, written).text
    for name in reading.amounts.values():
        states.setdefault(name, "0")
    if not states:
        states[reading.new_name("unchanging")] = "0"
    return states


def mark_initial_assignments(reading: Reading) -> dict[str, Any]:
    """Return libsbml's initial assignments by their target."""
    assignments: dict[str, Any] = {}
    for assignment in reading.model.getListOfInitialAssignments():
        identifier = assignment.getSymbol()
        place = place_of(assignment, "initial assignment of", identifier)
        symbol = reading.variable(identifier, place)
        if symbol is None:
            continue
        if identifier in assignments:
            reading.error(place, f"'{identifier}' has two initial assignments")
        else:
            assignments[identifier] = assignment
            symbol.assigned_at_start = True
    return assignments


def read_starts(reading: Reading, assignments: dict[str, Any]) -> dict[str, Term | None]:
    """Return the value of each symbol at the start, None if the file gives none.

    Values are numbers, or terms in values of other symbols at the start. Assignment rules and rates
    of reactions apply at all times instead.
    """
    starts: dict[str, Term | None] = {}
    for symbol in reading.by_id.values():
        if symbol.kind == "reaction":
            continue
        if symbol.rule == "assignment":
            if symbol.id in assignments:
                reading.error(symbol.place, "it has an initial assignment and an assignment rule")
            continue
        if symbol.rule == "algebraic" and symbol.name in reading.definitions:
            continue  # others determine it at all times
        assignment = assignments.get(symbol.id)
        value: Term | None
        if assignment is None:
            value = _in_file(symbol, reading)
        else:
            place = place_of(assignment, "initial assignment of", symbol.id)
            term = reading.term(assignment.getMath(), place)
            # The time of the start is 0 in SBML.
            value = ZERO if term is None else numeric(term)
            if TIME in names_in(value.text):
                reading.histories[symbol.name] = value
            value = replaced_in(value, {TIME: ZERO})
        amount = reading.amounts.get(symbol.name)
        if amount is not None and value is not None and not symbol.amount:
            volume = reading.volume(symbol)
            starts[amount] = product([value, volume])
        else:
            starts[amount or symbol.name] = value
    starts |= reading.guesses
    return starts


def _in_file(symbol: Symbol, reading: Reading) -> Term | None:
    """Return the value in the file; for a species, in the symbol's meaning."""
    if symbol.value is None:
        return number(1.0) if symbol.kind == "compartment" and not symbol.rule else None
    value = number(symbol.value)
    if symbol.kind != "species" or symbol.compartment not in reading.by_id or value == ZERO:
        return value
    if symbol.element.isSetInitialAmount():
        return value if symbol.amount else quotient(value, reading.volume(symbol))
    flat = reading.by_id[symbol.compartment].element.getSpatialDimensions() == 0
    return product([value, reading.volume(symbol)]) if symbol.amount and not flat else value


SECONDS = {1e-3: "ms", 1.0: "s", 60.0: "min", 3600.0: "h", 86400.0: "d"}
"""Labels of units of time, by their length in seconds."""


def time_unit(model: Any) -> str:
    """Return the unit of time as a label, empty if the model does not say it."""
    import libsbml

    name = model.getTimeUnits() if model.getLevel() > 2 else "time"
    definition = model.getUnitDefinition(name) if name else None
    if definition is None:
        return "s" if name == "second" or (name == "time" and model.getLevel() < 3) else ""
    if definition.getNumUnits() != 1:
        return str(definition.getName() or definition.getId())
    unit = definition.getUnit(0)
    if unit.getKind() == libsbml.UNIT_KIND_SECOND and unit.getExponent() == 1:
        seconds = unit.getMultiplier() * 10.0 ** unit.getScale()
        label = next((v for k, v in SECONDS.items() if abs(seconds / k - 1) < 1e-9), "")
        if label:
            return label
    label = definition.getName() or definition.getId()
    return "" if label in {"time", "time_unit"} else str(label)


def remarks_on(reading: Reading, result: SbmlModel) -> list[str]:
    """Return sentences on all changes made in translation."""
    remarks = _compartments(reading)
    unchanged = {*result.constants, *result.computed}
    constants = [s.id for s in reading.of("species") if s.name in unchanged]
    if constants:
        remarks.append(f"{_named('species', constants)} changed by nothing: constant")
    remarks += [f"the function '{name}' is written out" for name in reading.functions]
    for rule, words in (
        ("assignment", "given by assignment rules, which are written out"),
        ("rate", "given by rate rules"),
        ("algebraic", "determined by algebraic rules"),
    ):
        names = [s.id for s in reading.by_id.values() if s.rule == rule]
        if names:
            remarks.append(f"{_named('variable', names)} {words}")
    if reading.splines:
        remarks.append(
            f"{_named('variable', reading.splines)} given as splines by annotations of AMICI"
        )
    names = [s.id for s in reading.by_id.values() if s.assigned_at_start]
    if names:
        remarks.append(f"{_named('initial value', names)} computed by initial assignments")
    remarks += [f"'{old}' is named '{new}'" for old, new in reading.renamed.items()]
    remarks += [
        f"the event '{e.id}' happens when {e.trigger}"
        + ("" if e.initial_value else ", and at the start if that holds then")
        for e in result.events
    ]
    if result.without_value:
        remarks.append(f"{_named('name', result.without_value)} without a value in the file")
    own_names = {s.name for s in reading.by_id.values()} | set(reading.amounts.values())
    remarks += [
        f"nothing changes in time, so the model gets the state '{name}', which stays 0"
        for name in result.states
        if name not in own_names
    ]
    remarks += [f"the package '{p}' is not read" for p in declared_packages(reading.model)]
    if reading.model.getNumConstraints():
        remarks.append(f"{reading.model.getNumConstraints()} constraints are not checked")
    if reading.model.getNumUnitDefinitions():
        remarks.append("units are taken as they are and not converted")
    return remarks


def _compartments(reading: Reading) -> list[str]:
    remarks = []
    for compartment in reading.of("compartment"):
        species = [s for s in reading.of("species") if s.compartment == compartment.id]
        if not species:
            continue
        size = "1, as the file gives none" if compartment.value is None else compartment.value
        size = f"{size:g}" if isinstance(size, float) else size
        if compartment.rule or compartment.event or compartment.assigned_at_start:
            size = "that is computed"
        by_amount = [s.id for s in species if s.name in reading.amounts]
        amounts = [s.id for s in species if s.amount]
        others = len(species) - len(amounts)
        description = f"{others} of its species are concentrations" if others else ""
        if amounts:
            description += f"{', ' * bool(description)}{len(amounts)} are amounts"
        if by_amount:
            description += f" (the amounts of {_listed(by_amount)} are the states)"
        remarks.append(f"'{compartment.id}' is a compartment of size {size}: {description}")
    return remarks


def _named(noun: str, names: Iterable[str]) -> str:
    listed = list(names)
    plural = noun if noun == "species" else f"{noun}s"
    if len(listed) == 1:
        return f"the {noun} {_listed(listed)} is"
    return f"the {plural} {_listed(listed)} are"


def _listed(names: Iterable[str]) -> str:
    quoted = [f"'{name}'" for name in names]
    if len(quoted) > 12:
        quoted = [*quoted[:12], f"{len(quoted) - 12} more"]
    return f"{', '.join(quoted[:-1])} and {quoted[-1]}" if len(quoted) > 1 else quoted[0]
