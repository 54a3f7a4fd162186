"""Mathematics of SBML (libsbml's trees of MathML) as expressions."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from odefit.common.packages import require
from odefit.expressions.expressions import MAX_NESTING, TIME, ExpressionError
from odefit.problem.sbml.functions import applied
from odefit.problem.sbml.terms import ATOM, FALSE, TRUE, Term, number, numeric

RATE_PREFIX = "__rate_of_"
"""The beginning of the name that stands for the rate of change of a name until it is known."""


@dataclass(frozen=True)
class FunctionDefinition:
    """A function that a model defines: its arguments, and the tree of its value."""

    arguments: tuple[str, ...]
    body: Any


@dataclass(frozen=True)
class Translator:
    """What a tree is translated with."""

    # the term that stands for an identifier; it raises :class:`ExpressionError` for unknown ones
    name: Callable[[str], Term]
    # the functions that the model defines, by identifier
    functions: Mapping[str, FunctionDefinition] = field(default_factory=dict)
    # the functions that are being written out, to find those that call themselves
    active: tuple[str, ...] = ()
    # the names whose rate of change was asked for; more are added
    rates: set[str] = field(default_factory=set)

    def term(self, tree: Any) -> Term:
        """Return a tree as a term; raise ExpressionError if no expression can stand for it."""
        if tree is None:
            raise ExpressionError("its formula is missing")
        kinds = _kinds()
        done: list[Term] = []
        pending: list[tuple[Any, str, int]] = [(tree, "", 0)]
        while pending:  # trees can be deeper than Python calls may be nested
            node, function, count = pending.pop()
            if function:
                arguments = done[len(done) - count :]
                del done[len(done) - count :]
                done.append(self._applied(node, function, arguments))
                continue
            function = kinds.get(node.getType(), "")
            if function in _LEAVES:
                done.append(self._leaf(node, function))
                continue
            if not function:
                raise ExpressionError(f"{_element(node)} has no counterpart in expressions")
            if function == "delay":
                raise ExpressionError("it has a delay; odefit has no delay differential equations")
            if function == "rateof":
                done.append(self._rate(node))
                continue
            count = node.getNumChildren()
            pending.append((node, function, count))
            pending += [(node.getChild(i), "", 0) for i in reversed(range(count))]
        return done[0]

    def _leaf(self, node: Any, kind: str) -> Term:
        if kind == "name":
            return self.name(node.getName())
        if kind == "time":
            return Term(TIME)
        if kind == "integer":
            return number(node.getInteger())
        if kind == "real_e":
            mantissa, exponent = node.getMantissa(), node.getExponent()
            return number(float(f"{mantissa!r}e{exponent}"))
        if kind == "rational":
            return applied("divide", [number(node.getNumerator()), number(node.getDenominator())])
        if kind in {"true", "false"}:
            return TRUE if kind == "true" else FALSE
        if kind == "pi":
            return number(math.pi)
        return number(math.e if kind == "e" else node.getReal())

    def _rate(self, node: Any) -> Term:
        child = node.getChild(0)
        if node.getNumChildren() != 1 or _kinds().get(child.getType()) != "name":
            raise ExpressionError("rateOf is not of a single identifier")
        name = self.name(child.getName()).text
        self.rates.add(name)
        return Term(f"{RATE_PREFIX}{name}")

    def _applied(self, node: Any, function: str, arguments: list[Term]) -> Term:
        if function == "function":
            return self._own(node.getName(), arguments)
        if function == "log" and arguments:  # base, x; without a base 10 is meant
            x = arguments[-1]
            if len(arguments) == 1:
                return applied("log10", [x])
            return applied("log", [x, arguments[0]])
        if function == "root" and len(arguments) == 2:
            return applied("root", arguments[::-1])
        return applied(function, arguments)

    def _own(self, name: str, arguments: list[Term]) -> Term:
        definition = self.functions.get(name)
        if definition is None:
            raise ExpressionError(f"the function '{name}' is not defined")
        wanted = len(definition.arguments)
        if len(arguments) != wanted:
            raise ExpressionError(
                f"the function '{name}' takes {wanted} argument{'s' * (wanted != 1)}, "
                f"got {len(arguments)}"
            )
        if name in self.active:
            raise ExpressionError(f"the function '{name}' calls itself")
        if len(self.active) > MAX_NESTING:
            raise ExpressionError(f"functions call each other more than {MAX_NESTING} deep")
        values = dict(zip(definition.arguments, arguments, strict=True))

        def local(identifier: str) -> Term:
            if identifier not in values:
                raise ExpressionError(
                    f"'{identifier}' in the function '{name}' is none of its arguments"
                )
            return values[identifier]

        inside = Translator(local, self.functions, (*self.active, name), self.rates)
        return inside.term(definition.body)


def expression_text(tree: Any, names: Mapping[str, str] | None = None) -> str:
    """Return mathematics of SBML as an expression.

    Parameters
    ----------
    tree
        libsbml's tree (ASTNode), without functions that the model defines itself.
    names
        Names of identifiers that have another one here; the others keep theirs.

    Raises
    ------
    ExpressionError
        No expression can stand for it; the message has the element and the reason.
    """
    renamed = names or {}
    return numeric(Translator(lambda name: Term(renamed.get(name, name))).term(tree)).text


_LEAVES = frozenset("name time integer real real_e rational true false pi e avogadro".split())
"""Kinds of nodes without children."""


@cache
def _kinds() -> dict[int, str]:
    """What libsbml's types of nodes are, in the words of MathML."""
    require("libsbml")
    import libsbml

    found: dict[int, str] = {
        libsbml.AST_PLUS: "plus",
        libsbml.AST_MINUS: "minus",
        libsbml.AST_TIMES: "times",
        libsbml.AST_DIVIDE: "divide",
        libsbml.AST_POWER: "power",
        libsbml.AST_INTEGER: "integer",
        libsbml.AST_REAL: "real",
        libsbml.AST_REAL_E: "real_e",
        libsbml.AST_RATIONAL: "rational",
        libsbml.AST_NAME: "name",
        libsbml.AST_NAME_TIME: "time",
        libsbml.AST_NAME_AVOGADRO: "avogadro",
        libsbml.AST_CONSTANT_E: "e",
        libsbml.AST_CONSTANT_PI: "pi",
        libsbml.AST_CONSTANT_TRUE: "true",
        libsbml.AST_CONSTANT_FALSE: "false",
        libsbml.AST_FUNCTION: "function",
        libsbml.AST_FUNCTION_RATE_OF: "rateof",
    }
    for constant, value in vars(libsbml).items():
        for prefix in ("AST_FUNCTION_", "AST_LOGICAL_", "AST_RELATIONAL_"):
            if constant.startswith(prefix):
                found.setdefault(value, constant.removeprefix(prefix).lower())
    return found


def _element(node: Any) -> str:
    name = node.getName()
    return f"the element '{name}'" if name else "an element of its formula"


def simple(name: str) -> Term:
    """Return a name as a term."""
    return Term(name, ATOM)
