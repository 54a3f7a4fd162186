"""Operations and functions of numbers, as Python and NumPy define them."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from odefit.common.kernels.blocks import Blocks, Variable, constant, number
from odefit.common.kernels.values import REGISTERS, Number

FLOATS = {ast.Add: "fadd", ast.Sub: "fsub", ast.Mult: "fmul"}
INTEGERS = {ast.Add: "add nsw", ast.Sub: "sub nsw", ast.Mult: "mul nsw"}
TRUTHS = {ast.BitOr: "or", ast.BitAnd: "and"}

FLOAT_TESTS = {
    ast.Lt: "olt",
    ast.LtE: "ole",
    ast.Gt: "ogt",
    ast.GtE: "oge",
    ast.Eq: "oeq",
    ast.NotEq: "une",
}
INTEGER_TESTS = {
    ast.Lt: "slt",
    ast.LtE: "sle",
    ast.Gt: "sgt",
    ast.GtE: "sge",
    ast.Eq: "eq",
    ast.NotEq: "ne",
}

FUNCTIONS: Mapping[Any, str] = {
    np.sqrt: "llvm.sqrt.f64",
    np.exp: "llvm.exp.f64",
    np.log: "llvm.log.f64",
    np.sin: "llvm.sin.f64",
    np.cos: "llvm.cos.f64",
    np.ceil: "llvm.ceil.f64",
    np.tan: "tan",
    np.arcsin: "asin",
    np.arccos: "acos",
    np.arctan: "atan",
    np.sinh: "sinh",
    np.cosh: "cosh",
    np.tanh: "tanh",
}
"""Functions of a float, by their names in LLVM or in C's library."""

DECLARATIONS = "\n".join(
    [
        *(f"declare double @{name}(double)" for name in FUNCTIONS.values()),
        "declare double @llvm.fabs.f64(double)",
        "declare double @llvm.pow.f64(double, double)",
    ]
)


def operation(b: Blocks, kind: type[ast.operator], first: Number, second: Number) -> Number:
    """Return the result of an operator with two arguments."""
    if kind in TRUTHS and first.type == second.type == "b":
        return Number("b", b.register(f"{TRUTHS[kind]} i1 {first.code}, {second.code}"))
    if kind is ast.Pow:
        return power(b, first, second)
    floats = kind is ast.Div or "f" in (first.type, second.type)
    x, y = (b.converted(value, "f" if floats else "i").code for value in (first, second))
    if kind is ast.Div:
        return Number("f", b.register(f"fdiv {b.floats} {x}, {y}"))
    if kind is ast.Mod:
        return remainder(b, x, y) if floats else integer_remainder(b, x, y)
    if kind is ast.FloorDiv and not floats:
        left = integer_remainder(b, x, y).code
        return Number("i", b.integer("sdiv", b.integer("sub nsw", x, left), y))
    if kind not in FLOATS:
        raise TypeError(f"kernels have no operator {kind.__name__} of these types")
    if floats:
        return Number("f", b.register(f"{FLOATS[kind]} {b.floats} {x}, {y}"))
    return Number("i", b.integer(INTEGERS[kind], x, y))


def compared(b: Blocks, kind: type[ast.cmpop], first: Number, second: Number) -> Number:
    """Return the result of a comparison."""
    if "f" in (first.type, second.type):
        x, y = (b.converted(value, "f").code for value in (first, second))
        return Number("b", b.register(f"fcmp {FLOAT_TESTS[kind]} double {x}, {y}"))
    x, y = (b.converted(value, "i").code for value in (first, second))
    return Number("b", b.register(f"icmp {INTEGER_TESTS[kind]} i64 {x}, {y}"))


def negative(b: Blocks, value: Number) -> Number:
    """Return the number with the other sign."""
    if value.type == "f":
        return Number("f", b.register(f"fneg {b.floats} {value.code}"))
    return Number("i", b.integer("sub nsw", "0", b.converted(value, "i").code))


def opposite(b: Blocks, value: Number) -> Number:
    """Return the truth value that is not this one."""
    return Number("b", b.register(f"xor i1 {b.converted(value, 'b').code}, true"))


def remainder(b: Blocks, x: str, y: str) -> Number:
    """Return the remainder of floats, which has the sign of the divisor."""
    rest = b.register(f"frem double {x}, {y}")
    signs = b.register(f"fmul double {rest}, {y}")
    other = b.register(f"fcmp olt double {signs}, {constant(0.0)}")
    moved = b.register(f"fadd double {rest}, {y}")
    return b.chosen(other, Number("f", moved), Number("f", rest))


def integer_remainder(b: Blocks, x: str, y: str) -> Number:
    """Return the remainder of integers, which has the sign of the divisor."""
    rest = b.integer("srem", x, y)
    signs = b.integer("xor", rest, y)
    other = b.register(f"icmp slt i64 {signs}, 0")
    some = b.register(f"icmp ne i64 {rest}, 0")
    moved = b.integer("add nsw", rest, y)
    both = b.register(f"and i1 {other}, {some}")
    return b.chosen(both, Number("i", moved), Number("i", rest))


def power(b: Blocks, first: Number, second: Number) -> Number:
    """Return a power: a square is a product, integer exponents multiply repeatedly."""
    base = b.converted(first, "f").code
    if second.type == "f":
        return Number(
            "f", b.register(f"call double @llvm.pow.f64(double {base}, double {second.code})")
        )
    if second.code == "2":
        return Number("f", b.register(f"fmul {b.floats} {base}, {base}"))
    square, result, left = (b.variable(kind) for kind in ("f", "f", "i"))
    b.store(square, Number("f", base))
    b.store(result, number(1.0))
    b.store(left, absolute(b, second))
    test, inside, after = b.fresh("test"), b.fresh("inside"), b.fresh("after")
    b.label(test)
    some = b.register(f"icmp ne i64 {_code(b, left)}, 0")
    b.branch(some, inside, after)
    b.label(inside)
    odd = b.register(f"trunc i64 {_code(b, left)} to i1")
    times = b.register(f"fmul double {_code(b, result)}, {_code(b, square)}")
    b.store(result, b.chosen(odd, Number("f", times), Number("f", _code(b, result))))
    now = _code(b, square)
    b.store(square, Number("f", b.register(f"fmul double {now}, {now}")))
    b.store(left, Number("i", b.integer("lshr", _code(b, left), "1")))
    b.jump(test)
    b.label(after)
    inverse = Number("f", b.register(f"fdiv double {constant(1.0)}, {_code(b, result)}"))
    below = b.register(f"icmp slt i64 {second.code}, 0")
    return b.chosen(below, inverse, Number("f", _code(b, result)))


def _code(b: Blocks, variable: Variable) -> str:
    value = b.load(variable)
    assert isinstance(value, Number)
    return value.code


def absolute(b: Blocks, value: Number) -> Number:
    """Return the magnitude of a number."""
    if value.type == "f":
        return Number("f", b.register(f"call double @llvm.fabs.f64(double {value.code})"))
    below = b.register(f"icmp slt i64 {value.code}, 0")
    return b.chosen(below, negative(b, value), value)


def extreme(b: Blocks, test: type[ast.cmpop], values: list[Number]) -> Number:
    """Return the largest or smallest of numbers; the first one beside those that are undefined."""
    kind = "f" if any(value.type == "f" for value in values) else "i"
    best, *others = (b.converted(value, kind) for value in values)
    for other in others:
        best = b.chosen(compared(b, test, other, best).code, other, best)
    return best


def finite(b: Blocks, values: list[Number]) -> Number:
    """Return whether a number is finite."""
    size = absolute(b, b.converted(values[0], "f")).code
    return Number("b", b.register(f"fcmp olt double {size}, {constant(float('inf'))}"))


def sign(b: Blocks, values: list[Number]) -> Number:
    """Return the sign of a float: 1, 0, -1 or NaN."""
    x = b.converted(values[0], "f")
    zero = number(0.0)
    below = b.chosen(compared(b, ast.Lt, x, zero).code, number(-1.0), x)
    return b.chosen(compared(b, ast.Gt, x, zero).code, number(1.0), below)


def to_kind(kind: str) -> Callable[[Blocks, list[Number]], Number]:
    """Return the conversion of a number to a type."""
    return lambda b, values: b.converted(values[0], kind)


OF_NUMBERS: Mapping[Any, Callable[[Blocks, list[Number]], Number]] = {
    builtins.min: lambda b, values: extreme(b, ast.Lt, values),
    builtins.max: lambda b, values: extreme(b, ast.Gt, values),
    builtins.abs: lambda b, values: absolute(b, values[0]),
    builtins.int: to_kind("i"),
    np.int64: to_kind("i"),
    np.uint64: to_kind("i"),
    builtins.float: to_kind("f"),
    builtins.bool: to_kind("b"),
    np.isfinite: finite,
    np.sign: sign,
}
"""Functions of numbers with instructions of their own."""


def applied(b: Blocks, function: Any, values: list[Number]) -> Number | None:
    """Return the value of a function of numbers; None if kernels do not have it."""
    if function in OF_NUMBERS:
        return OF_NUMBERS[function](b, values)
    if function in FUNCTIONS:
        x = b.converted(values[0], "f").code
        call = f"call {REGISTERS['f']} @{FUNCTIONS[function]}(double {x})"
        return Number("f", b.register(call))
    return None
