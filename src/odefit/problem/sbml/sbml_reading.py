"""SBML models read, with sentences on what was translated how."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from odefit.common.errors import InputError, did_you_mean
from odefit.expressions.expressions import TIME, ExpressionError
from odefit.problem.inputs.issues import Issues
from odefit.problem.sbml.document import declared_packages, open_model, promote_local_parameters
from odefit.problem.sbml.equations import (
    Equations,
    changing_species,
    define_rates_of_change,
    keep_amounts,
    read_algebraic_rules,
    read_reactions,
    read_rules,
    right_hand_side,
)
from odefit.problem.sbml.math_trees import RATE_PREFIX
from odefit.problem.sbml.sbml_model import SbmlEvent, SbmlModel
from odefit.problem.sbml.symbols import WORDS, Symbol, Symbols, gathered, place_of
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
    """Read an SBML model, of levels 1 to 3 without packages that change its meaning.

    Parameters
    ----------
    path_or_text
        The path of an SBML file, or SBML itself: a text whose first character is ``<``. Nothing
        else is read, from the disk or the network.

    Raises
    ------
    InputError
        The file cannot be read, or the model has something that odefit has not: delays, fast
        reactions, reactions without a kinetic law, algebraic rules of a higher index than 1,
        functions that no expression can stand for. There is a message for each, with the element,
        its line and the reason. Or the package python-libsbml is missing.
    """
    document, model, source = open_model(path_or_text)
    issues = Issues(source)
    promoted = promote_local_parameters(document, issues)
    found = _read(model, issues)
    issues.raise_errors()
    del document  # it owns what libsbml has given
    return replace(found, translated=(*found.translated, *promoted))


def _read(model: Any, issues: Issues) -> SbmlModel:
    symbols = gathered(model, issues)
    equations = Equations()
    mark_events(model, symbols)
    assignments = mark_initial_assignments(model, symbols)
    read_rules(model, symbols, equations)
    _define_stoichiometries(symbols, equations)
    read_reactions(model, symbols, equations)
    read_algebraic_rules(model, symbols, equations)
    keep_amounts(symbols, equations)
    starts = read_starts(symbols, equations, assignments)
    written: dict[str, Term] = {}
    events: tuple[SbmlEvent, ...] = ()
    remarks: list[str] = []
    try:
        # Formulas of events can ask for rates of change as well, so that they are read twice.
        read_events(model, symbols, equations, {})
        define_rates_of_change(symbols, equations, model)
        written = expanded(equations.definitions)
        events, remarks = read_events(model, symbols, equations, written)
        states = _states(model, symbols, equations, written)
        algebraic = {n: replaced_in(t, written).text for n, t in equations.conditions.items()}
    except ExpressionError as error:
        issues.error("model", str(error))
    issues.raise_errors()
    return _model(model, symbols, equations, starts, written, states, algebraic, events, remarks)


def _define_stoichiometries(symbols: Symbols, equations: Equations) -> None:
    """Define the stoichiometries with an identifier that stay what they are."""
    for symbol in symbols.of("stoichiometry"):
        changed = symbol.rule or symbol.assigned_at_start or symbol.event
        if symbol.value is not None and not changed:
            equations.definitions[symbol.name] = number(symbol.value)


def _states(
    model: Any, symbols: Symbols, equations: Equations, written: dict[str, Term]
) -> dict[str, str]:
    """Return the right-hand sides, species first."""
    found: dict[str, str] = {}
    for species in changing_species(symbols):
        name = equations.amounts.get(species.name, species.name)
        rate = right_hand_side(species, symbols, equations, written, model)
        found[name] = replaced_in(rate, written).text
    for name, rate in equations.rates.items():
        found[name] = replaced_in(rate, written).text
    for name in equations.amounts.values():
        found.setdefault(name, "0")
    if not found:
        found[symbols.new_name("unchanging")] = "0"
    return found


def _model(
    model: Any,
    symbols: Symbols,
    equations: Equations,
    starts: dict[str, Term | None],
    written: dict[str, Term],
    states: dict[str, str],
    algebraic: dict[str, str],
    events: tuple[SbmlEvent, ...],
    remarks: list[str],
) -> SbmlModel:
    variables = {*states, *algebraic}
    for name in states:
        if name not in starts:  # the state of a model without any
            starts[name] = ZERO
    constants: dict[str, float] = {}
    start = {n: replaced_in(t, {TIME: ZERO}) for n, t in equations.definitions.items()}
    computed: dict[str, str] = {}
    without = []
    for name, value in starts.items():
        if name in equations.definitions:
            continue  # a stoichiometry that stays what it is
        known = None if value is None else number_in(value)
        if value is None:
            without.append(name)
        elif name in variables:
            start[name] = value
        elif known is None:
            computed[name] = value.text
            start[name] = value
        else:
            constants[name] = known
    assigned = {n: t.text for n, t in written.items() if not n.startswith(RATE_PREFIX)}
    names = {*variables, *constants, *computed, *without}
    _check_names({**states, **algebraic, **assigned}, names, symbols.issues)
    concentrations = {
        species.name: symbols.by_id[species.compartment].name
        for species in symbols.of("species")
        if not species.amount
        and species.rule != "assignment"
        and species.name not in equations.amounts
    }
    result = SbmlModel(
        name=model.getName() or model.getId() or "model",
        time_unit=time_unit(model),
        states=states,
        initial={},
        constants=constants,
        computed=computed,
        assigned=assigned,
        algebraic=algebraic,
        concentrations=concentrations,
        amounts=dict(equations.amounts),
        without_value=tuple(without),
        events=events,
        names=dict(symbols.renamed),
        translated=(),
        start={n: t.text for n, t in start.items()},
    )
    try:
        computed, initial = result.at_start()
    except InputError as error:
        for message in error.messages:
            symbols.issues.error("model", message)
        symbols.issues.raise_errors()
        raise
    result = replace(result, computed=computed, initial=initial)
    return replace(result, translated=(*remarks_on(model, symbols, equations, result), *remarks))


def _check_names(texts: dict[str, str], known: set[str], issues: Issues) -> None:
    """Report names in equations that have no value and no equation."""
    allowed = known | WORDS
    for name, text in texts.items():
        for other in set(names_in(text)) - allowed:
            issues.error(f"equation of '{name}'", f"nothing determines '{other}'")
    issues.raise_errors()


def mark_initial_assignments(model: Any, symbols: Symbols) -> dict[str, Any]:
    """Return libsbml's initial assignments by the identifier that they are for."""
    found: dict[str, Any] = {}
    for assignment in model.getListOfInitialAssignments():
        identifier = assignment.getSymbol()
        place = place_of(assignment, "initial assignment of", identifier)
        symbol = symbols.by_id.get(identifier)
        if symbol is None or symbol.kind == "reaction":
            known = did_you_mean(identifier, symbols.by_id)
            symbols.issues.error(place, f"'{identifier}' is no variable of the model{known}")
        elif identifier in found:
            symbols.issues.error(place, f"'{identifier}' has two initial assignments")
        else:
            found[identifier] = assignment
            symbol.assigned_at_start = True
    return found


def read_starts(
    symbols: Symbols, equations: Equations, assignments: dict[str, Any]
) -> dict[str, Term | None]:
    """Return the value of each symbol at the start, None where the file has none.

    Values are numbers, or terms in values of other symbols at the start. Assignment rules and rates
    of reactions hold at all times instead.
    """
    starts: dict[str, Term | None] = {}
    for symbol in symbols.by_id.values():
        if symbol.kind == "reaction":
            continue
        if symbol.rule == "assignment":
            if symbol.id in assignments:
                symbols.issues.error(
                    symbol.place, "it has an initial assignment and an assignment rule"
                )
            continue
        value = _assigned(symbol, symbols, assignments)
        if value is None:
            value = _in_file(symbol, symbols)
        amount = equations.amounts.get(symbol.name)
        if amount is not None and value is not None:
            volume = Term(symbols.by_id[symbol.compartment].name)
            starts[amount] = product([value, volume])
        else:
            starts[amount or symbol.name] = value
    return starts


def _assigned(symbol: Symbol, symbols: Symbols, assignments: dict[str, Any]) -> Term | None:
    assignment = assignments.get(symbol.id)
    if assignment is None:
        return None
    place = place_of(assignment, "initial assignment of", symbol.id)
    term = symbols.term(assignment.getMath(), place)
    # The time of the start is 0 in SBML.
    return ZERO if term is None else replaced_in(numeric(term), {TIME: ZERO})


def _in_file(symbol: Symbol, symbols: Symbols) -> Term | None:
    if symbol.value is None:
        if symbol.kind == "compartment" and not symbol.rule:
            return number(1.0)
        return None
    value = number(symbol.value)
    if symbol.kind != "species" or symbol.compartment not in symbols.by_id:
        return value
    volume = Term(symbols.by_id[symbol.compartment].name)
    if symbol.element.isSetInitialAmount():
        if symbol.amount or value == ZERO:
            return value
        return quotient(value, volume)
    if not symbol.amount or value == ZERO:
        return value
    if symbols.by_id[symbol.compartment].element.getSpatialDimensions() == 0:
        return value
    return product([value, volume])


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


def remarks_on(model: Any, symbols: Symbols, equations: Equations, result: SbmlModel) -> list[str]:
    """Return sentences on everything that is not in the model word for word."""
    found = _compartments(symbols, equations)
    unchanged = {*result.constants, *result.computed}
    constants = [s.id for s in symbols.of("species") if s.name in unchanged]
    if constants:
        found.append(f"{_named('species', constants)} changed by nothing: constant")
    found += [f"the function '{name}' is written out" for name in symbols.functions]
    for rule, words in (
        ("assignment", "given by assignment rules, which are written out"),
        ("rate", "given by rate rules"),
        ("algebraic", "determined by algebraic rules"),
    ):
        names = [s.id for s in symbols.by_id.values() if s.rule == rule]
        if names:
            found.append(f"{_named('variable', names)} {words}")
    names = [s.id for s in symbols.by_id.values() if s.assigned_at_start]
    if names:
        found.append(f"{_named('initial value', names)} computed by initial assignments")
    found += [f"'{old}' is named '{new}'" for old, new in symbols.renamed.items()]
    found += [
        f"the event '{e.id}' happens when {e.trigger}"
        + ("" if e.initial_value else ", and at the start if that holds then")
        for e in result.events
    ]
    if result.without_value:
        found.append(f"{_named('name', result.without_value)} without a value in the file")
    own = {s.name for s in symbols.by_id.values()} | set(equations.amounts.values())
    found += [
        f"nothing changes in time; the state '{name}', which is 0, stands for that"
        for name in result.states
        if name not in own
    ]
    found += [f"nothing of the package '{p}' is read" for p in declared_packages(model)]
    if model.getNumConstraints():
        found.append(f"{model.getNumConstraints()} constraints are not checked")
    if model.getNumUnitDefinitions():
        found.append("units are taken as they are, nothing is converted")
    return found


def _compartments(symbols: Symbols, equations: Equations) -> list[str]:
    found = []
    for compartment in symbols.of("compartment"):
        species = [s for s in symbols.of("species") if s.compartment == compartment.id]
        if not species:
            continue
        size = "1, as the file gives none" if compartment.value is None else compartment.value
        size = f"{size:g}" if isinstance(size, float) else size
        if compartment.rule or compartment.event or compartment.assigned_at_start:
            size = "that is computed"
        kept = [s.id for s in species if s.name in equations.amounts]
        amounts = [s.id for s in species if s.amount]
        others = len(species) - len(amounts)
        what = f"{others} of its species are concentrations" if others else ""
        if amounts:
            what += f"{', ' * bool(what)}{len(amounts)} are amounts"
        if kept:
            what += f" (the amounts of {_listed(kept)} are the states)"
        found.append(f"'{compartment.id}' is a compartment of size {size}: {what}")
    return found


def _named(what: str, names: Iterable[str]) -> str:
    listed = list(names)
    plural = what if what == "species" else f"{what}s"
    if len(listed) == 1:
        return f"the {what} {_listed(listed)} is"
    return f"the {plural} {_listed(listed)} are"


def _listed(names: Iterable[str]) -> str:
    quoted = [f"'{name}'" for name in names]
    if len(quoted) > 12:
        quoted = [*quoted[:12], f"{len(quoted) - 12} more"]
    return f"{', '.join(quoted[:-1])} and {quoted[-1]}" if len(quoted) > 1 else quoted[0]
