"""Functions of MathML and PEtab that expressions lack, written with those that they have."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from functools import partial, reduce

from odefit.expressions.expressions import ExpressionError, parse
from odefit.problem.sbml.terms import (
    FALSE,
    ONE,
    OPPOSITES,
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
"""Inverse functions that are another one of the reciprocal."""

UNWRITTEN = {
    "floor": math.floor, "ceiling": math.ceil, "ceil": math.ceil,
    "factorial": lambda x: math.factorial(int(x)) if x == int(x) <= 170 else math.nan,
    "quotient": lambda x, y: math.trunc(x / y), "rem": math.fmod,
}  # fmt: skip
"""Functions that no expression can stand for; of numbers alone, their value can."""


def applied(function: str, arguments: Sequence[Term]) -> Term:
    """Return the value of a function of MathML or PEtab, by its name there, as an expression.

    ``log`` is the natural logarithm, of two arguments the logarithm of the first to the base of the
    second, as in PEtab. Raises ExpressionError if no expression can stand for it.
    """
    found = _BUILDERS.get(function)
    if found is None:
        raise ExpressionError(f"the function '{function}' is not known")
    fewest, most, build = found
    if not fewest <= len(arguments) <= most:
        wanted = str(fewest) if fewest == most else f"at least {fewest}"
        if fewest < most < _MANY:
            wanted = f"{fewest} or {most}"
        plural = "" if wanted == "1" else "s"
        raise ExpressionError(
            f"the function '{function}' takes {wanted} argument{plural}, got {len(arguments)}"
        )
    return build(*arguments)


def is_function(name: str) -> bool:
    """Whether :func:`applied` knows a function."""
    return name in _BUILDERS


_MANY = 10**6


def _minus(first: Term, *rest: Term) -> Term:
    return difference(first, rest[0]) if rest else negative(first)


def _logarithm(x: Term, base: Term | None = None) -> Term:
    x = numeric(x)
    if base is None:
        return call("log", [x])
    if base.text == "10":
        return call("log10", [x])
    return quotient(call("log", [x]), call("log", [numeric(base)]))


def _chain(operator: str, *terms: Term) -> Term:
    pairs = itertools.pairwise(terms)
    return all_of([compared(operator, left, right) for left, right in pairs])


def _not_both(left: Term, right: Term) -> Term:
    return compared("!=", condition(left), condition(right))


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
    "minus": (1, 2, _minus),
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
    "xor": (0, _MANY, lambda *terms: reduce(_not_both, terms, FALSE)),
    "implies": (2, 2, lambda a, b: any_of([opposite(a), b])),
    **{
        name: (2, 2 if name == "neq" else _MANY, partial(_chain, operator))
        for name, operator in zip(("lt", "geq", "gt", "leq", "eq", "neq"), OPPOSITES, strict=True)
    },
}  # fmt: skip
"""For each function the fewest and most arguments, and what makes an expression of them."""
