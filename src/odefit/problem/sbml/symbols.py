"""An SBML model while it is read: its identifiers, and their terms."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from odefit.common.errors import did_you_mean, shown
from odefit.expressions.expressions import TIME, ExpressionError
from odefit.expressions.grammar import RESERVED
from odefit.problem.inputs.issues import Issues
from odefit.problem.sbml.math_trees import FunctionDefinition, Translator
from odefit.problem.sbml.terms import Term

Kind = Literal["compartment", "species", "parameter", "reaction", "stoichiometry"]

WORDS = RESERVED | {TIME}
"""Words reserved by expressions."""


@dataclass
class Symbol:
    """An identifier of a model, with its name here and libsbml's element."""

    id: str
    name: str
    kind: Kind
    constant: bool  # the model says that it never changes
    value: float | None  # as given in the file
    element: Any
    compartment: str = ""  # of a species
    amount: bool = False  # True for an amount of a species, not a concentration
    boundary: bool = False  # reactions do not change the species
    rule: str = ""  # "assignment", "rate" or "algebraic" if a rule determines it
    assigned_at_start: bool = False
    event: bool = False  # an event changes it
    # how often each reaction makes the species, net: numbers, or terms
    reactions: dict[str, list[float | Term]] = field(default_factory=dict)

    @property
    def place(self) -> str:
        """The element's name in messages."""
        return place_of(self.element, self.kind, self.id)


def place_of(element: Any, kind: str, name: str) -> str:
    """Return the name of an element of the file in messages."""
    line = element.getLine()
    return f"{kind} {shown(name)}" + (f" (line {line})" if line else "")


@dataclass
class Reading:
    """A libsbml model while it is read."""

    model: Any
    issues: Issues
    by_id: dict[str, Symbol] = field(default_factory=dict)
    functions: dict[str, FunctionDefinition] = field(default_factory=dict)
    taken: set[str] = field(default_factory=set)  # names that are used here
    renamed: dict[str, str] = field(default_factory=dict)  # names here by identifier
    rates_asked: set[str] = field(default_factory=set)  # names in rateOf
    # The delayed expression with its delay, and its element, by the name that replaces it
    delays: dict[str, tuple[Term, Term]] = field(default_factory=dict)
    places: dict[str, str] = field(default_factory=dict)
    histories: dict[str, Term] = field(default_factory=dict)  # of states before the start, in time
    # Terms stand for names wherever they occur: assignment rules, rates of reactions, and
    # concentrations of species that are kept as amounts.
    definitions: dict[str, Term] = field(default_factory=dict)
    rate_rules: dict[str, Term] = field(default_factory=dict)
    # left-hand sides of algebraic rules, by the name that each is to determine
    conditions: dict[str, Term] = field(default_factory=dict)
    guesses: dict[str, Term] = field(default_factory=dict)  # of variables that are no symbols
    splines: list[str] = field(default_factory=list)  # identifiers of splines by annotation
    fast: list[str] = field(default_factory=list)  # names of reactions at equilibrium
    mixed: list[Symbol] = field(default_factory=list)  # species that these change
    # states that are amounts, by species: those of compartments whose size follows from a rule
    amounts: dict[str, str] = field(default_factory=dict)

    def error(self, place: str, message: str) -> None:
        """Note a mistake."""
        self.issues.error(place, message)

    def of(self, kind: Kind) -> Iterator[Symbol]:
        """Return the symbols of a kind, in the order of the file."""
        return (symbol for symbol in self.by_id.values() if symbol.kind == kind)

    def variable(self, identifier: str, place: str) -> Symbol | None:
        """Return the target of a rule, an assignment or an event; None with the reason noted."""
        symbol = self.by_id.get(identifier)
        if symbol is None or symbol.kind == "reaction":
            known = did_you_mean(identifier, self.by_id)
            self.error(place, f"'{identifier}' is not a variable of the model{known}")
            return None
        return symbol

    def volume(self, species: Symbol) -> Term:
        """Return the size of the compartment of a species."""
        return Term(self.by_id[species.compartment].name)

    def new_name(self, preferred: str) -> str:
        """Return a name that no other symbol has, if possible `preferred`."""
        name = f"{preferred}_" if preferred in WORDS else preferred
        if name.startswith("__"):
            name = f"x{name}"
        base, count = name, 1
        while name in self.taken:
            count += 1
            name = f"{base}_{count}"
        self.taken.add(name)
        return name

    def term(self, tree: Any, place: str) -> Term | None:
        """Return libsbml's tree as a term, None with the reason noted."""

        def name(identifier: str) -> Term:
            if identifier not in self.by_id:
                known = did_you_mean(identifier, self.by_id)
                raise ExpressionError(f"'{identifier}' is not defined{known}")
            return Term(self.by_id[identifier].name)

        try:
            translator = Translator(
                name, self.functions, rates=self.rates_asked, delays=self.delays
            )
            replacement = translator.term(tree)
            for delayed in self.delays.keys() - self.places.keys():
                self.places[delayed] = place
            return replacement
        except ExpressionError as error:
            self.error(place, str(error))
        return None


def gathered(model: Any, issues: Issues) -> Reading:
    """Return a model with all of its identifiers."""
    reading = Reading(model, issues)
    _functions(reading)
    for compartment in model.getListOfCompartments():
        value = compartment.getSize() if compartment.isSetSize() else None
        if value is None and compartment.getLevel() == 1:
            value = 1.0
        _add(reading, compartment, "compartment", compartment.getConstant(), value)
    for parameter in model.getListOfParameters():
        value = parameter.getValue() if parameter.isSetValue() else None
        _add(reading, parameter, "parameter", parameter.getConstant(), value)
    for species in model.getListOfSpecies():
        _species(species, reading)
    for reaction in model.getListOfReactions():
        _add(reading, reaction, "reaction", False, None)
        for reference in (*reaction.getListOfReactants(), *reaction.getListOfProducts()):
            if reference.getLevel() > 2 and reference.isSetId():
                constant = reference.getConstant()
                value = reference.getStoichiometry() if reference.isSetStoichiometry() else None
                _add(reading, reference, "stoichiometry", constant, value)
    for symbol in reading.by_id.values():  # symbols that keep their names come first
        if symbol.id not in WORDS and not symbol.id.startswith("__"):
            reading.taken.add(symbol.id)
    for symbol in reading.by_id.values():
        if symbol.id not in reading.taken:
            symbol.name = reading.renamed[symbol.id] = reading.new_name(symbol.id)
    for event in model.getListOfEvents():
        if event.getId():
            _check_unused(event.getId(), place_of(event, "event", event.getId()), reading)
    return reading


def _check_unused(identifier: str, place: str, reading: Reading) -> bool:
    used = identifier in reading.by_id or identifier in reading.functions
    if used:
        reading.error(place, f"the identifier '{identifier}' is already used")
    return not used


def _add(
    reading: Reading, element: Any, kind: Kind, constant: bool, value: float | None
) -> Symbol | None:
    identifier = element.getId()
    if not identifier:
        reading.error(place_of(element, kind, ""), "it has no identifier")
        return None
    if value is not None and math.isnan(value):
        value = None
    symbol = Symbol(identifier, identifier, kind, constant, value, element)
    if value is not None and math.isinf(value):
        reading.error(symbol.place, f"its value {value} is not finite")
        symbol.value = None
    if _check_unused(identifier, symbol.place, reading):
        reading.by_id[identifier] = symbol
    return symbol


def _species(species: Any, reading: Reading) -> None:
    if species.isSetInitialAmount():
        value = species.getInitialAmount()
    else:
        value = species.getInitialConcentration() if species.isSetInitialConcentration() else None
    symbol = _add(reading, species, "species", species.getConstant(), value)
    if symbol is None:
        return
    symbol.compartment = species.getCompartment()
    symbol.boundary = species.getBoundaryCondition()
    compartment = reading.by_id.get(symbol.compartment)
    if compartment is None or compartment.kind != "compartment":
        hint = did_you_mean(symbol.compartment, [s.id for s in reading.of("compartment")])
        reading.error(symbol.place, f"there is no compartment {shown(symbol.compartment)}{hint}")
        symbol.amount = True
        return
    flat = compartment.element.getSpatialDimensions() == 0
    symbol.amount = species.getHasOnlySubstanceUnits() or flat
    if species.isSetInitialAmount() and species.isSetInitialConcentration():
        reading.error(
            symbol.place, "it has an initial amount and an initial concentration; keep one"
        )


def _functions(reading: Reading) -> None:
    for function in reading.model.getListOfFunctionDefinitions():
        identifier = function.getId()
        place = place_of(function, "function", identifier)
        _check_unused(identifier, place, reading)
        body = function.getBody()
        if body is None:
            continue  # calling it is a mistake
        count = function.getNumArguments()
        arguments = tuple(function.getArgument(i).getName() for i in range(count))
        if len(set(arguments)) < len(arguments):
            reading.error(place, "two of its arguments have the same name")
        reading.functions[identifier] = FunctionDefinition(arguments, body)
