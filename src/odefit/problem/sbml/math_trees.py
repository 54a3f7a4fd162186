"""Mathematics of SBML (libsbml's trees of MathML) as expressions."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial, reduce
from typing import Any

from odefit.common.packages import require
from odefit.expressions.expressions import MAX_NESTING, TIME, ExpressionError, parse
from odefit.problem.sbml.terms import (
    FALSE,
    ONE,
    OPPOSITES,
    TRUE,
    TWO,
    ZERO,
    Term,
    all_of,
    any_of,
    call,
    compared,
    condition,
    difference,
    extreme,
    negative,
    number,
    numeric,
    opposite,
    piecewise,
    power,
    product,
    quotient,
    total,
)

RATE_PREFIX = "__rate_of_"
"""Prefix of the placeholder for the rate of change of a name until it is known."""


DELAY_PREFIX = "__delayed_"
"""Prefix of the placeholder for a delayed expression until it is known."""


@dataclass(frozen=True)
class FunctionDefinition:
    """A function defined in a model: its arguments, and the tree of its value."""

    arguments: tuple[str, ...]
    body: Any


@dataclass(frozen=True)
class Translator:
    """The names and functions used to translate a tree."""

    name: Callable[[str], Term]  # the term for an identifier; raises for unknown ones
    functions: Mapping[str, FunctionDefinition] = field(default_factory=dict)
    active: tuple[str, ...] = ()  # functions being expanded
    rates: set[str] = field(default_factory=set)  # names in rateOf; more are added
    # delayed expressions and their delays by placeholder; more are added, unless None
    delays: dict[str, tuple[Term, Term]] | None = None

    def term(self, tree: Any) -> Term:
        """Return a tree as a term; raise ExpressionError if no expression is equivalent."""
        if tree is None:
            raise ExpressionError("its formula is missing")
        kinds = _kinds()
        done: list[Term] = []
        pending: list[tuple[Any, str, int]] = [(tree, "", 0)]
        while pending:  # trees can be deeper than Python's recursion limit
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
                name = node.getName()
                element = f"the element '{name}'" if name else "an element of its formula"
                raise ExpressionError(f"{element} has no counterpart in expressions")
            if function in {"delay", "rateof"}:
                done.append(self._delayed(node) if function == "delay" else self._rate(node))
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

    def _delayed(self, node: Any) -> Term:
        if self.delays is None or node.getNumChildren() != 2:
            raise ExpressionError("it has a delay; odefit has no delay differential equations")
        pair = self.term(node.getChild(0)), self.term(node.getChild(1))
        known = [name for name, other in self.delays.items() if other == pair]
        name = known[0] if known else f"{DELAY_PREFIX}{len(self.delays)}"
        self.delays[name] = pair
        return Term(name)

    def _rate(self, node: Any) -> Term:
        child = node.getChild(0)
        if node.getNumChildren() != 1 or _kinds().get(child.getType()) != "name":
            raise ExpressionError("rateOf takes a single identifier")
        name = self.name(child.getName()).text
        self.rates.add(name)
        return Term(f"{RATE_PREFIX}{name}")

    def _applied(self, node: Any, function: str, arguments: list[Term]) -> Term:
        if function == "function":
            return self._user_function(node.getName(), arguments)
        if function == "log" and arguments:  # base, x; the default base is 10
            x = arguments[-1]
            if len(arguments) == 1:
                return applied("log10", [x])
            return applied("log", [x, arguments[0]])
        if function == "root" and len(arguments) == 2:
            return applied("root", arguments[::-1])
        return applied(function, arguments)

    def _user_function(self, name: str, arguments: list[Term]) -> Term:
        definition = self.functions.get(name)
        if definition is None:
            raise ExpressionError(f"the function '{name}' is not defined")
        expected = len(definition.arguments)
        if len(arguments) != expected:
            raise ExpressionError(
                f"the function '{name}' takes {expected} argument{'s' * (expected != 1)}, "
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
                    f"'{identifier}' in the function '{name}' is not one of its arguments"
                )
            return values[identifier]

        inside = Translator(local, self.functions, (*self.active, name), self.rates, self.delays)
        return inside.term(definition.body)


def expression_text(tree: Any, names: Mapping[str, str] | None = None) -> str:
    """Return mathematics of SBML as an expression.

    Parameters
    ----------
    tree
        libsbml's tree (ASTNode), without functions defined in the model.
    names
        New names of identifiers; the others keep theirs.

    Raises
    ------
    ExpressionError
        No expression is equivalent; the message has the element and the reason.
    """
    renamed = names or {}
    return numeric(Translator(lambda name: Term(renamed.get(name, name))).term(tree)).text


_LEAVES = frozenset("name time integer real real_e rational true false pi e avogadro".split())
"""Kinds of nodes without children."""


@cache
def _kinds() -> dict[int, str]:
    """The MathML names of libsbml's types of nodes."""
    require("libsbml")
    import libsbml

    names = {"NAME_TIME": "time", "NAME_AVOGADRO": "avogadro", "FUNCTION_RATE_OF": "rateof"}
    names |= {f"CONSTANT_{word}": word.lower() for word in ("E", "PI", "TRUE", "FALSE")}
    plain = "PLUS MINUS TIMES DIVIDE POWER INTEGER REAL REAL_E RATIONAL NAME FUNCTION".split()
    names |= {word: word.lower() for word in plain}
    kinds: dict[int, str] = {getattr(libsbml, f"AST_{n}"): kind for n, kind in names.items()}
    for constant, value in vars(libsbml).items():
        for prefix in ("AST_FUNCTION_", "AST_LOGICAL_", "AST_RELATIONAL_"):
            if constant.startswith(prefix):
                kinds.setdefault(value, constant.removeprefix(prefix).lower())
    return kinds


Builder = Callable[..., Term]

SAME = {
    "exp": "exp", "ln": "log", "sqrt": "sqrt", "abs": "abs", "log10": "log10",
    "sin": "sin", "cos": "cos", "tan": "tan", "sinh": "sinh", "cosh": "cosh", "tanh": "tanh",
    "arcsin": "asin", "arccos": "acos", "arctan": "atan",
    "asin": "asin", "acos": "acos", "atan": "atan",
}  # fmt: skip
"""Functions of one argument that expressions have, by their names elsewhere."""

RECIPROCALS = {"sec": "cos", "csc": "sin", "cot": "tan", "sech": "cosh", "csch": "sinh",
               "coth": "tanh"}  # fmt: skip

INVERSES = {"arcsec": "acos", "arccsc": "asin", "arccot": "atan"}
"""Inverse functions that equal another function of the reciprocal."""

UNWRITTEN = {
    "floor": math.floor, "ceiling": math.ceil, "ceil": math.ceil,
    "factorial": lambda x: math.factorial(int(x)) if x == int(x) <= 170 else math.nan,
    "quotient": lambda x, y: math.trunc(x / y), "rem": math.fmod,
}  # fmt: skip
"""Functions without equivalent in expressions; with numbers as arguments, their value is used."""


def applied(function: str, arguments: Sequence[Term]) -> Term:
    """Return the value of a function of MathML or PEtab as an expression.

    ``log`` is the natural logarithm, with two arguments that of the first to the base of the
    second, as in PEtab. Raises ExpressionError if no expression is equivalent.
    """
    builder = _BUILDERS.get(function)
    if builder is None:
        raise ExpressionError(f"the function '{function}' is not known")
    fewest, most, build = builder
    if not fewest <= len(arguments) <= most:
        expected = str(fewest) if fewest == most else f"at least {fewest}"
        if fewest < most < _MANY:
            expected = f"{fewest} or {most}"
        plural = "" if expected == "1" else "s"
        raise ExpressionError(
            f"the function '{function}' takes {expected} argument{plural}, got {len(arguments)}"
        )
    return build(*arguments)


def is_function(name: str) -> bool:
    """True if :func:`applied` knows a function."""
    return name in _BUILDERS


_MANY = 10**6


def _logarithm(x: Term, base: Term | None = None) -> Term:
    x = numeric(x)
    if base is None:
        return call("log", [x])
    if base.text == "10":
        return call("log10", [x])
    return quotient(call("log", [x]), call("log", [numeric(base)]))


def _chain(operator: str, *terms: Term) -> Term:
    return all_of([compared(operator, a, b) for a, b in itertools.pairwise(terms)])


def _sign(x: Term) -> Term:
    x = numeric(x)
    minus_one = negative(ONE)
    above, below = compared(">", x, ZERO), compared("<", x, ZERO)
    return piecewise([ONE, above, minus_one, below, ZERO])


def _square_root(x: Term) -> Term:
    return call("sqrt", [x])


def _area_sine(x: Term) -> Term:
    x = numeric(x)
    return call("log", [total([x, _square_root(total([power(x, TWO), ONE]))])])


def _area_cosine(x: Term) -> Term:
    x = numeric(x)
    return call("log", [total([x, _square_root(difference(power(x, TWO), ONE))])])


def _area_tangent(x: Term) -> Term:
    x = numeric(x)
    ratio = quotient(total([ONE, x]), difference(ONE, x))
    return quotient(call("log", [ratio]), TWO)


def _of_reciprocal(build: Builder, x: Term) -> Term:
    return build(quotient(ONE, numeric(x)))


def _evaluated(function: str, *terms: Term) -> Term:
    values = [parse(numeric(term).text).constant for term in terms]
    if any(value is None for value in values):
        raise ExpressionError(f"expressions have no '{function}', and nothing can stand for it")
    try:
        return number(float(UNWRITTEN[function](*values)))  # type: ignore[operator]
    except (ArithmeticError, ValueError):
        raise ExpressionError(f"'{function}' has no value for these numbers") from None


def _one(function: str) -> tuple[int, int, Builder]:
    return 1, 1, lambda x: call(function, [numeric(x)])


_BUILDERS: dict[str, tuple[int, int, Builder]] = {
    **{name: _one(ours) for name, ours in SAME.items()},
    **{
        name: (1, 1, partial(lambda f, x: quotient(ONE, call(f, [numeric(x)])), f))
        for name, f in RECIPROCALS.items()
    },
    **{
        name: (1, 1, partial(_of_reciprocal, partial(lambda f, x: call(f, [x]), f)))
        for name, f in INVERSES.items()
    },
    **{
        f"{prefix}{end}": (1, 1, build)
        for prefix in ("arc", "a")
        for end, build in (
            ("sinh", _area_sine),
            ("cosh", _area_cosine),
            ("tanh", _area_tangent),
            ("csch", partial(_of_reciprocal, _area_sine)),
            ("sech", partial(_of_reciprocal, _area_cosine)),
            ("coth", partial(_of_reciprocal, _area_tangent)),
        )
    },
    **{name: (1, 1, partial(_evaluated, name)) for name in ("floor", "ceiling", "ceil")},
    **{name: (2, 2, partial(_evaluated, name)) for name in ("quotient", "rem")},
    "factorial": (1, 1, partial(_evaluated, "factorial")),
    "log": (1, 2, _logarithm),
    "log2": (1, 1, lambda x: _logarithm(x, TWO)),
    "root": (1, 2, lambda x, n=TWO: _square_root(numeric(x)) if n == TWO
             else power(x, quotient(ONE, n))),
    "plus": (0, _MANY, lambda *terms: total(terms)),
    "times": (0, _MANY, lambda *terms: product(terms)),
    "minus": (1, 2, lambda a, b=None: negative(a) if b is None else difference(a, b)),
    "divide": (2, 2, quotient),
    "power": (2, 2, power),
    "pow": (2, 2, power),
    "min": (1, _MANY, lambda *terms: extreme("min", terms)),
    "max": (1, _MANY, lambda *terms: extreme("max", terms)),
    "sign": (1, 1, _sign),
    "piecewise": (1, _MANY, lambda *terms: piecewise(terms)),
    "and": (0, _MANY, lambda *terms: all_of(terms)),
    "or": (0, _MANY, lambda *terms: any_of(terms)),
    "not": (1, 1, opposite),
    "xor": (0, _MANY, lambda *terms: reduce(
        lambda a, b: compared("!=", condition(a), condition(b)), terms, FALSE)),
    "implies": (2, 2, lambda a, b: any_of([opposite(a), b])),
    **{
        name: (2, 2 if name == "neq" else _MANY, partial(_chain, operator))
        for name, operator in zip(("lt", "geq", "gt", "leq", "eq", "neq"), OPPOSITES, strict=True)
    },
}  # fmt: skip
"""For each function, the fewest and most arguments, and the constructor of its expression."""
