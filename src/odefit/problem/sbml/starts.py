"""Values at the start: initial assignments, values in the file, amounts and concentrations."""

from __future__ import annotations

from typing import Any

from odefit.common.errors import did_you_mean
from odefit.expressions.expressions import TIME
from odefit.problem.sbml.equations import Equations
from odefit.problem.sbml.substitution import replaced_in
from odefit.problem.sbml.symbols import Symbol, Symbols, place_of
from odefit.problem.sbml.terms import ZERO, Term, number, numeric, product, quotient


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
