"""SBML models read."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

from odefit.common.errors import InputError
from odefit.expressions.expressions import TIME, ExpressionError
from odefit.problem.inputs.issues import Issues
from odefit.problem.sbml.document import open_model, promote_local_parameters
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
from odefit.problem.sbml.remarks import remarks_on, time_unit
from odefit.problem.sbml.sbml_model import SbmlModel
from odefit.problem.sbml.starts import mark_initial_assignments, read_starts
from odefit.problem.sbml.substitution import expanded, names_in, replaced_in
from odefit.problem.sbml.symbols import WORDS, Symbols, gathered
from odefit.problem.sbml.terms import ZERO, Term, number, number_in
from odefit.problem.sbml.triggers import SbmlEvent, mark_events, read_events


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
