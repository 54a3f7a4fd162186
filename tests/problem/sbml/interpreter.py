"""SBML evaluated number by number from libsbml's trees: the second opinion on what is read.

It knows nothing of expressions: it walks over rules, reactions and initial assignments as they
appear in the file.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from typing import Any

import libsbml

UNARY: dict[int, Callable[[float], float]] = {
    libsbml.AST_FUNCTION_ABS: abs,
    libsbml.AST_FUNCTION_EXP: math.exp,
    libsbml.AST_FUNCTION_LN: math.log,
    libsbml.AST_FUNCTION_SIN: math.sin,
    libsbml.AST_FUNCTION_COS: math.cos,
    libsbml.AST_FUNCTION_TAN: math.tan,
    libsbml.AST_FUNCTION_SINH: math.sinh,
    libsbml.AST_FUNCTION_COSH: math.cosh,
    libsbml.AST_FUNCTION_TANH: math.tanh,
    libsbml.AST_FUNCTION_ARCSIN: math.asin,
    libsbml.AST_FUNCTION_ARCCOS: math.acos,
    libsbml.AST_FUNCTION_ARCTAN: math.atan,
    libsbml.AST_FUNCTION_ARCSINH: math.asinh,
    libsbml.AST_FUNCTION_ARCCOSH: math.acosh,
    libsbml.AST_FUNCTION_ARCTANH: math.atanh,
    libsbml.AST_FUNCTION_ARCCOT: lambda x: math.atan(1 / x),
    libsbml.AST_FUNCTION_ARCSEC: lambda x: math.acos(1 / x),
    libsbml.AST_FUNCTION_ARCCSC: lambda x: math.asin(1 / x),
    libsbml.AST_FUNCTION_ARCCOTH: lambda x: math.atanh(1 / x),
    libsbml.AST_FUNCTION_ARCSECH: lambda x: math.acosh(1 / x),
    libsbml.AST_FUNCTION_ARCCSCH: lambda x: math.asinh(1 / x),
    libsbml.AST_FUNCTION_SEC: lambda x: 1 / math.cos(x),
    libsbml.AST_FUNCTION_CSC: lambda x: 1 / math.sin(x),
    libsbml.AST_FUNCTION_COT: lambda x: 1 / math.tan(x),
    libsbml.AST_FUNCTION_SECH: lambda x: 1 / math.cosh(x),
    libsbml.AST_FUNCTION_CSCH: lambda x: 1 / math.sinh(x),
    libsbml.AST_FUNCTION_COTH: lambda x: 1 / math.tanh(x),
    libsbml.AST_LOGICAL_NOT: lambda x: not x,
}
RELATIONS: dict[int, Callable[[float, float], bool]] = {
    libsbml.AST_RELATIONAL_LT: lambda a, b: a < b,
    libsbml.AST_RELATIONAL_LEQ: lambda a, b: a <= b,
    libsbml.AST_RELATIONAL_GT: lambda a, b: a > b,
    libsbml.AST_RELATIONAL_GEQ: lambda a, b: a >= b,
    libsbml.AST_RELATIONAL_EQ: lambda a, b: a == b,
    libsbml.AST_RELATIONAL_NEQ: lambda a, b: a != b,
}


class Interpreter:
    """Values of everything in a model, given those of what changes freely.

    Parameters
    ----------
    model
        The libsbml model.
    values
        Values by identifier, which override what the file says.
    time
        The time.
    """

    def __init__(self, model: Any, values: Mapping[str, float], time: float = 0.0) -> None:
        self.model = model
        self.values = dict(values)
        self.time = time

    def symbol(self, name: str) -> float:
        if name in self.values:
            return self.values[name]
        rule = self.model.getAssignmentRule(name)
        if rule is not None:
            return self.value(rule.getMath())
        reaction = self.model.getReaction(name)
        if reaction is not None:
            return self.rate(reaction)
        element = self.model.getElementBySId(name)
        assert element is not None, name
        assignment = self.model.getInitialAssignmentBySymbol(name)
        if assignment is not None:
            return self.value(assignment.getMath())
        if isinstance(element, libsbml.Species):
            return self.first(element)
        if isinstance(element, libsbml.SpeciesReference):
            return float(element.getStoichiometry())
        if isinstance(element, libsbml.Compartment):
            return float(element.getSize())
        return float(element.getValue())

    def first(self, species: Any) -> float:
        """The initial value of a species as its symbol means it."""
        volume = self.symbol(species.getCompartment())
        if species.isSetInitialAmount():
            amount = species.getInitialAmount()
            return float(amount if species.getHasOnlySubstanceUnits() else amount / volume)
        concentration = species.getInitialConcentration()
        return float(
            concentration * volume if species.getHasOnlySubstanceUnits() else concentration
        )

    def rate(self, reaction: Any) -> float:
        law = reaction.getKineticLaw()
        local = {p.getId(): p.getValue() for p in law.getListOfParameters()}
        local |= {p.getId(): p.getValue() for p in law.getListOfLocalParameters()}
        return self.value(law.getMath(), local)

    def change(self, species: Any) -> float:
        """The rate of change of a species by its rate rule or by reactions."""
        rule = self.model.getRateRule(species.getId())
        if rule is not None:
            return self.value(rule.getMath())
        if species.getBoundaryCondition():
            return 0.0
        total = 0.0
        for reaction in self.model.getListOfReactions():
            for sign, references in (
                (-1.0, reaction.getListOfReactants()),
                (1.0, reaction.getListOfProducts()),
            ):
                for reference in references:
                    if reference.getSpecies() != species.getId():
                        continue
                    count = self.stoichiometry(reference)
                    total += sign * count * self.rate(reaction)
        factor = species.getConversionFactor() or self.model.getConversionFactor()
        total *= self.symbol(factor) if factor else 1.0
        if species.getHasOnlySubstanceUnits():
            return total
        return total / self.symbol(species.getCompartment())

    def stoichiometry(self, reference: Any) -> float:
        if reference.isSetStoichiometryMath():
            return self.value(reference.getStoichiometryMath().getMath())
        return self.symbol(reference.getId()) if reference.getId() else reference.getStoichiometry()

    def value(self, node: Any, local: Mapping[str, float] | None = None) -> float:
        kind = node.getType()
        local = local or {}
        if kind == libsbml.AST_NAME:
            name = node.getName()
            return local[name] if name in local else self.symbol(name)
        if kind == libsbml.AST_NAME_TIME:
            return self.time
        if node.isNumber() or kind == libsbml.AST_NAME_AVOGADRO:
            return float(node.getValue())
        if kind in {libsbml.AST_CONSTANT_E, libsbml.AST_CONSTANT_PI}:
            return math.e if kind == libsbml.AST_CONSTANT_E else math.pi
        if kind in {libsbml.AST_CONSTANT_TRUE, libsbml.AST_CONSTANT_FALSE}:
            return float(kind == libsbml.AST_CONSTANT_TRUE)
        children = [node.getChild(i) for i in range(node.getNumChildren())]
        if kind == libsbml.AST_FUNCTION:
            return self.function(node.getName(), [self.value(c, local) for c in children])
        if kind == libsbml.AST_FUNCTION_PIECEWISE:
            for value, holds in zip(children[::2], children[1::2], strict=False):
                if self.value(holds, local):
                    return self.value(value, local)
            assert len(children) % 2
            return self.value(children[-1], local)
        return self.operation(kind, [self.value(child, local) for child in children])

    def function(self, name: str, arguments: list[float]) -> float:
        definition = self.model.getFunctionDefinition(name)
        names = [definition.getArgument(i).getName() for i in range(len(arguments))]
        return self.value(definition.getBody(), dict(zip(names, arguments, strict=True)))

    def operation(self, kind: int, values: list[float]) -> float:
        if kind in UNARY:
            return float(UNARY[kind](values[0]))
        if kind in RELATIONS:
            pairs = itertools.pairwise(values)
            return float(all(RELATIONS[kind](a, b) for a, b in pairs))
        if kind == libsbml.AST_PLUS:
            return math.fsum(values)
        if kind == libsbml.AST_TIMES:
            return math.prod(values)
        if kind == libsbml.AST_MINUS:
            return values[0] - values[1] if len(values) == 2 else -values[0]
        if kind == libsbml.AST_DIVIDE:
            return values[0] / values[1]
        if kind in {libsbml.AST_POWER, libsbml.AST_FUNCTION_POWER}:
            return float(values[0] ** values[1])
        if kind == libsbml.AST_FUNCTION_LOG:
            return math.log(values[-1]) / math.log(values[0] if len(values) == 2 else 10.0)
        if kind == libsbml.AST_FUNCTION_ROOT:
            return float(values[-1] ** (1 / (values[0] if len(values) == 2 else 2)))
        if kind == libsbml.AST_FUNCTION_MIN:
            return min(values)
        if kind == libsbml.AST_FUNCTION_MAX:
            return max(values)
        truths = [bool(value) for value in values]
        if kind == libsbml.AST_LOGICAL_AND:
            return float(all(truths))
        if kind == libsbml.AST_LOGICAL_OR:
            return float(any(truths))
        if kind == libsbml.AST_LOGICAL_XOR:
            return float(sum(truths) % 2)
        assert kind == libsbml.AST_LOGICAL_IMPLIES
        return float(not truths[0] or truths[1])


def evaluated(text: str, values: Mapping[str, float], time: float = 0.0) -> float:
    """Return the value of an expression of odefit, by Python itself."""
    python = text.replace("^", "**").replace("&&", " and ").replace("||", " or ")
    python = python.replace("!(", " not (")
    functions: dict[str, Any] = {name: getattr(math, name) for name in dir(math)}
    functions |= {"abs": abs, "min": min, "max": max, "piecewise": _piecewise}
    return float(eval(python, {"__builtins__": {}, **functions, **values, "t": time}))


def _piecewise(*arguments: float) -> float:
    for value, holds in zip(arguments[::2], arguments[1::2], strict=False):
        if holds:
            return value
    return arguments[-1]
