"""SymPy equations as texts of expressions. SymPy is imported only if the user passes it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from odefit.common.errors import InputError, shown
from odefit.expressions.expressions import NAME_PATTERN, Expression
from odefit.expressions.formulas import PARTS, Part, call, name, number
from odefit.expressions.grammar import PIECEWISE
from odefit.expressions.postfix import TIME

_FUNCTIONS = {
    **{n: n for n in "exp log sin cos tan asin acos atan sinh cosh tanh".split()},
    "Abs": "abs", "Min": "min", "Max": "max",
}  # fmt: skip
"""Names here of SymPy's functions."""

_RELATIONS = {
    "StrictLessThan": "<", "LessThan": "<=", "StrictGreaterThan": ">", "GreaterThan": ">=",
    "Equality": "==", "Unequality": "!=",
}  # fmt: skip


def sympy_equations(equations: Any) -> dict[str, Expression]:
    """Return equations of SymPy as expressions by name.

    They are a mapping from symbols, functions ``x(t)`` or derivatives ``x(t).diff(t)`` to
    right-hand sides, or a list of ``Eq(x(t).diff(t), ...)``.
    """
    pairs: Iterable[tuple[Any, Any]]
    if isinstance(equations, Mapping):
        pairs = equations.items()
    elif isinstance(equations, Sequence) and not isinstance(equations, str):
        wrong = [e for e in equations if _kind(e) != "Equality"]
        if wrong:
            raise InputError(
                f"from_sympy: expected equations Eq(x(t).diff(t), ...), got {shown(str(wrong[0]))}"
            )
        pairs = [(e.lhs, e.rhs) for e in equations]
    else:
        raise InputError(
            "from_sympy: expected a dict {x: right-hand side} or a list of "
            f"Eq(x(t).diff(t), right-hand side), got {shown(equations)}"
        )
    expressions: dict[str, Expression] = {}
    for left, right in pairs:
        key = _state(left)
        if key in expressions:
            raise InputError(f"from_sympy: '{key}' has two equations")
        try:
            expressions[key] = _part(right, key).expression()
        except RecursionError:  # includes SymPy's own functions, which need more of the stack
            raise InputError(f"from_sympy: the equation of '{key}' is nested too deeply") from None
    return expressions


def _kind(value: Any) -> str:
    return type(value).__name__


def _state(left: Any) -> str:
    if isinstance(left, str):
        return left
    if _kind(left) == "Derivative":
        orders = [count for _, count in left.variable_count]
        if len(orders) != 1 or orders[0] != 1:
            raise InputError(
                f"from_sympy: {left} is not a first derivative; write a state for each derivative, "
                "as in v = dx/dt"
            )
        left = left.expr
    key = str(left.func) if getattr(left, "is_Function", False) else str(left)
    if not NAME_PATTERN.match(key):
        raise InputError(
            f"from_sympy: {shown(key)} is not the name of a state; expected a symbol, x(t) or "
            "x(t).diff(t)"
        )
    return key


def _part(value: Any, key: str) -> Part:
    """Return an expression or a condition of SymPy as a part."""
    kind = _kind(value)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return number(float(value))
    if not hasattr(value, "args"):
        raise InputError(f"from_sympy: expected an expression of SymPy for '{key}', got {kind}")

    def parts(values: Iterable[Any]) -> list[Part]:
        return [_part(v, key) for v in values]

    if getattr(value, "is_Symbol", False):
        if not NAME_PATTERN.match(str(value)):
            raise InputError(
                f"from_sympy: the symbol {shown(str(value))} in the equation of '{key}' is not a "
                "name here: letters without accents, digits and _; rename it"
            )
        return name(str(value))
    if getattr(value, "is_Rational", False):
        above = PARTS.number(str(abs(int(value.p))))
        whole = above if int(value.q) == 1 else above / PARTS.number(str(int(value.q)))
        return -whole if value.p < 0 else whole
    if getattr(value, "is_Float", False) or kind in ("Pi", "Exp1", "GoldenRatio"):
        return number(float(value))
    if kind == "Add":
        terms = parts(value.as_ordered_terms())
        total = terms[0]
        for term in terms[1:]:
            negative = term.number is not None and term.number < 0
            total = total - -term if negative else total + term
        return total
    if kind == "Mul":
        return _product(value, key)
    if kind == "Pow":
        return _power(value, key)
    if kind in _FUNCTIONS:
        if kind == "log" and len(value.args) == 2:
            above, below = parts(value.args)
            return call("log", [above]) / call("log", [below])
        return call(_FUNCTIONS[kind], parts(value.args))
    if kind in _RELATIONS:
        return call(_RELATIONS[kind], parts(value.args))
    if kind in ("And", "Or"):
        joined, *rest = parts(value.args)
        for other in rest:
            joined = call("&&" if kind == "And" else "||", [joined, other])
        return joined
    if kind == "Not":
        return call("!", parts(value.args))
    if kind == "BooleanTrue":
        return call("==", [number(1.0), number(1.0)])
    if kind == "BooleanFalse":
        return call("!=", [number(1.0), number(1.0)])
    if kind == "Piecewise":
        return _pieces(value, key)
    if kind in ("Heaviside", "sign"):
        return _step(value, key)
    if getattr(value, "is_Function", False) and [str(a) for a in value.args] == [TIME]:
        return name(str(value.func))
    raise InputError(
        f"from_sympy: {kind} in the equation of '{key}' ({shown(str(value))}) has no counterpart "
        "in expressions"
    )


def _product(value: Any, key: str) -> Part:
    """Return a product as a fraction, with negative powers in the denominator."""
    above, below = value.as_numer_denom() if value.is_Mul else (value, 1)
    if str(below) == "1" or above == value:
        factors = [_part(v, key) for v in value.as_ordered_factors()]
        total = factors[0]
        for factor in factors[1:]:
            total = -factor if total.number == -1.0 else total * factor
        return total
    return _part(above, key) / _part(below, key)


def _power(value: Any, key: str) -> Part:
    base, exponent = value.base, value.exp
    if _kind(base) == "Exp1":
        return call("exp", [_part(exponent, key)])
    if str(exponent) == "1/2":
        return call("sqrt", [_part(base, key)])
    if exponent.is_number and exponent.is_negative:
        return number(1.0) / _part(base**-exponent, key)
    return PARTS.power(_part(base, key), _part(exponent, key))


def _pieces(value: Any, key: str) -> Part:
    arguments: list[Part] = []
    for piece, condition in value.args:
        arguments.append(_part(piece, key))
        if _kind(condition) == "BooleanTrue":
            return call(PIECEWISE, arguments) if len(arguments) > 1 else arguments[0]
        arguments.append(_part(condition, key))
    raise InputError(
        f"from_sympy: the Piecewise in the equation of '{key}' has no last value for all other "
        "cases; add (value, True)"
    )


def _step(value: Any, key: str) -> Part:
    argument = _part(value.args[0], key)
    zero, one = number(0.0), number(1.0)
    below, above = call("<", [argument, zero]), call(">", [argument, zero])
    if _kind(value) == "sign":
        return call(PIECEWISE, [-one, below, one, above, zero])
    middle = _part(value.args[1], key) if len(value.args) > 1 else number(0.5)
    return call(PIECEWISE, [zero, below, one, above, middle])
