"""Equations as an SBML model (Level 3 Version 2), in formulas that PEtab shares.

States are parameters with rate rules, so that no compartments and units are needed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from odefit.common.errors import InputError
from odefit.common.packages import require
from odefit.expressions.grammar import CONDITIONS
from odefit.problem.inputs.dates import SECONDS, unit_of

NAMES = {"log": "ln", "asin": "arcsin", "acos": "arccos", "atan": "arctan"}
"""Functions with other names in PEtab and SBML."""

RESERVED = frozenset(
    "time avogadro pi exponentiale inf infinity nan notanumber true false delay rateof".split()
)
"""Words, in any capitals, that cannot be names in formulas of SBML or of PEtab."""


def identifier(name: str) -> str:
    """Return a name that both formats allow: a reserved one gets an underscore."""
    return f"{name}_" if name.lower() in RESERVED else name


@dataclass(frozen=True)
class Formula:
    """A text with its operators, each in parentheses."""

    text: str

    def __add__(self, other: Formula) -> Formula:
        return Formula(f"({self.text} + {other.text})")

    def __sub__(self, other: Formula) -> Formula:
        return Formula(f"({self.text} - {other.text})")

    def __mul__(self, other: Formula) -> Formula:
        return Formula(f"({self.text} * {other.text})")

    def __truediv__(self, other: Formula) -> Formula:
        return Formula(f"({self.text} / {other.text})")

    def __neg__(self) -> Formula:
        return Formula(f"(-{self.text})")


class FormulaAlgebra:
    """The algebra of :class:`Formula`."""

    def number(self, text: str) -> Formula:
        value = float(text)
        return Formula(repr(value) if value >= 0 else f"({value!r})")

    def power(self, base: Formula, exponent: Formula) -> Formula:
        return Formula(f"({base.text} ^ {exponent.text})")

    def call(self, function: str, arguments: Sequence[Formula]) -> Formula:
        texts = [argument.text for argument in arguments]
        if function in CONDITIONS:
            if len(texts) == 1:
                return Formula(f"(!{texts[0]})")
            return Formula(f"({f' {function} '.join(texts)})")
        if function in ("min", "max"):  # of two numbers in PEtab
            nested = texts[0]
            for text in texts[1:]:
                nested = f"{function}({nested}, {text})"
            return Formula(nested)
        return Formula(f"{NAMES.get(function, function)}({', '.join(texts)})")


FORMULAS = FormulaAlgebra()


@dataclass(frozen=True)
class WrittenEvent:
    """An event of a model."""

    trigger: str  # the condition that triggers it on becoming true
    assign: Mapping[str, str]  # the new values by name, in terms of values before the event
    initially: bool = True  # the condition counts as true before the start
    delay: str | None = None
    priority: str | None = None
    # whether it is persistent, and whether new values are computed at the time of the trigger
    flags: tuple[bool, bool] = (True, False)


@dataclass(frozen=True)
class SbmlEquations:
    """The content of an SBML file; formulas are texts with ``ln`` for the natural logarithm."""

    # parameters with their values, None if another file gives them
    constants: Mapping[str, float | None] = field(default_factory=dict)
    variables: Mapping[str, float | None] = field(default_factory=dict)  # conditions assign these
    rates: Mapping[str, str] = field(default_factory=dict)  # the right-hand side of each state
    initial: Mapping[str, str] = field(default_factory=dict)  # the initial value of each state
    assigned: Mapping[str, str] = field(default_factory=dict)  # by assignment rules
    algebraic: Sequence[str] = ()  # expressions equal to zero
    unknown_variables: Mapping[str, float] = field(default_factory=dict)  # with first guesses
    events: Sequence[WrittenEvent] = ()


def sbml_text(name: str, equations: SbmlEquations, time_unit: str = "") -> str:
    """Return an SBML document whose model has the id `name`, with a label of its unit of time."""
    require("libsbml")
    import libsbml

    document = libsbml.SBMLDocument(3, 2)
    model = document.createModel()
    model.setId(name)
    if time_unit:
        _set_time_unit(model, time_unit)
    settings = libsbml.L3ParserSettings()
    settings.setParseLog(libsbml.L3P_PARSE_LOG_AS_LN)
    settings.setParseUnits(libsbml.L3P_NO_UNITS)

    def parameter(identifier: str, value: float | None, constant: bool) -> None:
        made = model.createParameter()
        made.setId(identifier)
        made.setConstant(constant)
        if value is not None:
            made.setValue(value)

    def tree(formula: str) -> Any:
        parsed = libsbml.parseL3FormulaWithSettings(formula, settings)
        if parsed is None:
            raise InputError(
                f"the formula '{formula}' cannot be written in SBML: "
                f"{libsbml.getLastParseL3Error().strip()}"
            )
        return parsed

    for identifier, value in equations.constants.items():
        parameter(identifier, value, True)
    for identifier, value in equations.variables.items():
        parameter(identifier, value, False)
    for identifier in (*equations.rates, *equations.assigned):
        parameter(identifier, None, False)
    for identifier, guess in equations.unknown_variables.items():
        parameter(identifier, guess, False)
    for identifier, formula in equations.initial.items():
        assignment = model.createInitialAssignment()
        assignment.setSymbol(identifier)
        assignment.setMath(tree(formula))
    for table, create in (
        (equations.rates, model.createRateRule),
        (equations.assigned, model.createAssignmentRule),
    ):
        for identifier, formula in table.items():
            rule = create()
            rule.setVariable(identifier)
            rule.setMath(tree(formula))
    for formula in equations.algebraic:
        model.createAlgebraicRule().setMath(tree(formula))
    for event in equations.events:
        made = model.createEvent()
        made.setUseValuesFromTriggerTime(event.flags[1])
        if event.delay:
            made.createDelay().setMath(tree(event.delay))
        if event.priority:
            made.createPriority().setMath(tree(event.priority))
        trigger = made.createTrigger()
        trigger.setInitialValue(event.initially)
        trigger.setPersistent(event.flags[0])
        trigger.setMath(tree(event.trigger))
        for identifier, formula in event.assign.items():
            assignment = made.createEventAssignment()
            assignment.setVariable(identifier)
            assignment.setMath(tree(formula))
    return str(libsbml.writeSBMLToString(document))


def _set_time_unit(model: Any, label: str) -> None:
    """Define the unit of time, in seconds if its length is known, and give it its label."""
    import libsbml

    known = unit_of(label)
    definition = model.createUnitDefinition()
    definition.setId("unit_of_time")
    definition.setName(label)
    unit = definition.createUnit()
    unit.setKind(libsbml.UNIT_KIND_DIMENSIONLESS if known is None else libsbml.UNIT_KIND_SECOND)
    unit.setExponent(1)
    unit.setScale(0)
    unit.setMultiplier(1.0 if known is None else SECONDS[known])
    model.setTimeUnits("unit_of_time")
