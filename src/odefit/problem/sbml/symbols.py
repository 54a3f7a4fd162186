"""The identifiers of a model: what each stands for, its name here, and what determines it."""

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
"""Words that expressions use themselves."""


@dataclass
class Symbol:
    """An identifier of a model."""

    # in SBML, and here
    id: str
    name: str
    kind: Kind  # what it stands for
    constant: bool  # whether the model says that it never changes
    value: float | None  # its value in the file, None without; of species as the file gives it
    element: Any  # libsbml's object
    compartment: str = ""  # of a species the identifier of its compartment
    # whether its symbol stands for an amount of a species, not for a concentration
    amount: bool = False
    boundary: bool = False  # whether reactions leave a species as it is
    rule: str = ""  # ``"assignment"``, ``"rate"`` or ``"algebraic"`` if a rule determines it
    assigned_at_start: bool = False  # whether an initial assignment gives its first value
    event: bool = False  # whether an event changes it
    # how often each reaction that changes it makes it, net: numbers, or terms
    reactions: dict[str, list[float | Term]] = field(default_factory=dict)

    @property
    def place(self) -> str:
        """The element in messages."""
        return place_of(self.element, self.kind, self.id)


def place_of(element: Any, kind: str, name: str) -> str:
    """Return how messages name an element of the file."""
    line = element.getLine()
    where = f" (line {line})" if line else ""
    return f"{kind} {shown(name)}{where}"


@dataclass
class Symbols:
    """All identifiers of a model."""

    issues: Issues
    by_id: dict[str, Symbol] = field(default_factory=dict)
    # the functions that the model defines
    functions: dict[str, FunctionDefinition] = field(default_factory=dict)
    taken: set[str] = field(default_factory=set)  # names that are used here
    # names here of identifiers that have another one
    renamed: dict[str, str] = field(default_factory=dict)
    # names whose rate of change occurs in formulas (rateOf)
    rates: set[str] = field(default_factory=set)

    def of(self, kind: Kind) -> Iterator[Symbol]:
        """Return the symbols of a kind, in the order of the file."""
        return (symbol for symbol in self.by_id.values() if symbol.kind == kind)

    def new_name(self, wanted: str) -> str:
        """Return a name that no other symbol has, `wanted` if possible."""
        name = wanted
        if name in WORDS:
            name = f"{name}_"
        if name.startswith("__"):
            name = f"x{name}"
        base, count = name, 1
        while name in self.taken:
            count += 1
            name = f"{base}_{count}"
        self.taken.add(name)
        return name

    def add(self, symbol: Symbol) -> None:
        """Add a symbol; a second one of the same identifier is a mistake."""
        if symbol.id in self.by_id or symbol.id in self.functions:
            self.issues.error(symbol.place, f"the identifier '{symbol.id}' is already used")
            return
        self.by_id[symbol.id] = symbol

    def term(self, tree: Any, place: str) -> Term | None:
        """Return libsbml's tree as a term, None with the reason noted."""

        def name(identifier: str) -> Term:
            symbol = self.by_id.get(identifier)
            if symbol is None:
                known = did_you_mean(identifier, self.by_id)
                raise ExpressionError(f"'{identifier}' is not defined{known}")
            return Term(symbol.name)

        try:
            return Translator(name, self.functions, rates=self.rates).term(tree)
        except ExpressionError as error:
            self.issues.error(place, str(error))
        return None


def gathered(model: Any, issues: Issues) -> Symbols:
    """Return the identifiers of a libsbml model; mistakes are added to `issues`."""
    symbols = Symbols(issues)
    _functions(model, symbols)
    for compartment in model.getListOfCompartments():
        value = compartment.getSize() if compartment.isSetSize() else None
        if value is None and compartment.getLevel() == 1:
            value = 1.0
        _add(symbols, compartment, "compartment", compartment.getConstant(), value)
    for parameter in model.getListOfParameters():
        value = parameter.getValue() if parameter.isSetValue() else None
        _add(symbols, parameter, "parameter", parameter.getConstant(), value)
    for species in model.getListOfSpecies():
        _species(species, symbols)
    for reaction in model.getListOfReactions():
        _add(symbols, reaction, "reaction", False, None)
        for reference in (*reaction.getListOfReactants(), *reaction.getListOfProducts()):
            if reference.getLevel() > 2 and reference.isSetId():
                constant = reference.getConstant()
                value = reference.getStoichiometry() if reference.isSetStoichiometry() else None
                _add(symbols, reference, "stoichiometry", constant, value)
    for symbol in symbols.by_id.values():  # those that keep their names come first
        if symbol.id not in WORDS and not symbol.id.startswith("__"):
            symbols.taken.add(symbol.id)
    for symbol in symbols.by_id.values():
        if symbol.id not in symbols.taken:
            symbol.name = symbols.renamed[symbol.id] = symbols.new_name(symbol.id)
    for event in model.getListOfEvents():
        identifier = event.getId()
        if identifier and (identifier in symbols.by_id or identifier in symbols.functions):
            issues.error(
                place_of(event, "event", identifier),
                f"the identifier '{identifier}' is already used",
            )
    return symbols


def _add(
    symbols: Symbols, element: Any, kind: Kind, constant: bool, value: float | None
) -> Symbol | None:
    identifier = element.getId()
    if not identifier:
        symbols.issues.error(place_of(element, kind, ""), "it has no identifier")
        return None
    if value is not None and math.isnan(value):
        value = None
    symbol = Symbol(identifier, identifier, kind, constant, value, element)
    if value is not None and math.isinf(value):
        symbols.issues.error(symbol.place, f"its value {value} is not finite")
        symbol.value = None
    symbols.add(symbol)
    return symbol


def _species(species: Any, symbols: Symbols) -> None:
    if species.isSetInitialAmount():
        value = species.getInitialAmount()
    else:
        value = species.getInitialConcentration() if species.isSetInitialConcentration() else None
    symbol = _add(symbols, species, "species", species.getConstant(), value)
    if symbol is None:
        return
    symbol.compartment = species.getCompartment()
    symbol.boundary = species.getBoundaryCondition()
    compartment = symbols.by_id.get(symbol.compartment)
    if compartment is None or compartment.kind != "compartment":
        known = [s.id for s in symbols.of("compartment")]
        hint = did_you_mean(symbol.compartment, known)
        symbols.issues.error(
            symbol.place, f"there is no compartment {shown(symbol.compartment)}{hint}"
        )
        symbol.amount = True
        return
    flat = compartment.element.getSpatialDimensions() == 0
    symbol.amount = species.getHasOnlySubstanceUnits() or flat
    if species.isSetInitialAmount() and species.isSetInitialConcentration():
        symbols.issues.error(
            symbol.place, "it has an initial amount and an initial concentration; keep one"
        )


def _functions(model: Any, symbols: Symbols) -> None:
    for function in model.getListOfFunctionDefinitions():
        identifier = function.getId()
        place = place_of(function, "function", identifier)
        if identifier in symbols.functions:
            symbols.issues.error(place, f"the identifier '{identifier}' is already used")
        body = function.getBody()
        if body is None:
            symbols.issues.error(place, "it has no formula")
            continue
        arguments = tuple(
            function.getArgument(i).getName() for i in range(function.getNumArguments())
        )
        if len(set(arguments)) < len(arguments):
            symbols.issues.error(place, "two of its arguments have the same name")
        symbols.functions[identifier] = FunctionDefinition(arguments, body)
