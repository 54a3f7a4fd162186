"""Numbers of a model as expressions that Python operators and NumPy functions accept.

A function called with them records the expressions that it computes. Anything that needs their
values, such as a branch, is refused with its line in the function.
"""

from __future__ import annotations

import linecache
import math
import operator
import sys
from collections.abc import Callable, Sequence
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np

from odefit.common.errors import InputError
from odefit.expressions.formulas import PARTS, Part, call, number
from odefit.expressions.grammar import MAX_LENGTH, MAX_PIECES, PIECEWISE

OWN_FILES = (str(Path(__file__).parent), str(Path(np.__file__).parent))
"""Folders of this package and of NumPy, which contain no user's function."""


class TracingError(InputError):
    """The error for a function that cannot be converted, with the line and the reason."""


def refusal(reason: str) -> TracingError:
    """Return the error for the current operation of the function being converted."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(OWN_FILES):
        if frame.f_back is None:
            return TracingError(reason)
        frame = frame.f_back
    file, line = frame.f_code.co_filename, frame.f_lineno
    text = linecache.getline(file, line).strip()
    operation = f" ({text})" if text else ""
    return TracingError(f"{Path(file).name}, line {line}{operation}: {reason}")


def as_part(value: object) -> Part | None:
    """Return a finite number or an expression as a part; None for anything else."""
    if isinstance(value, Traced):
        return value.part
    if isinstance(value, np.ndarray) and value.ndim == 0:
        return as_part(value[()])
    if isinstance(value, np.generic):
        value = value.item()
    if not isinstance(value, Real):
        return None
    number_value = float(value)
    if not math.isfinite(number_value):
        raise refusal(f"{number_value} is not a finite number")
    if number_value.is_integer() and abs(number_value) < 1e15:
        whole = PARTS.number(str(abs(int(number_value))))
        return -whole if number_value < 0 else whole
    return number(number_value)


class _Recorded:
    """Values known only as an expression."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, part: Part) -> None:
        if len(part.program) > MAX_LENGTH:
            raise refusal(
                "the expression becomes too long; does a loop use its own result many times over?"
            )
        self.part = part

    def __repr__(self) -> str:
        return self.part.expression().text

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        return apply(ufunc, method, inputs, options)

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any:
        return apply_function(function, args, options)


def _quotient(above: Part, below: Part) -> Part:
    if below.number == 0.0:
        raise refusal("a division by zero")
    return above / below


def _operator(
    operation: Callable[[Part, Part], Part],
    ufunc: Any,
    reflected: bool = False,
    compares: bool = False,
) -> Any:
    """Return a method for an operator, whose other operand may be an array or a number."""

    def method(self: Traced, other: object) -> Any:
        if isinstance(other, np.ndarray) and other.ndim:
            return ufunc(other, self) if reflected else ufunc(self, other)
        part = as_part(other)
        if part is None:
            return NotImplemented
        made = operation(part, self.part) if reflected else operation(self.part, part)
        return TracedCondition(made) if compares else Traced(made)

    return method


def _comparison(sign: str, ufunc: Any) -> Any:
    return _operator(lambda a, b: call(sign, [a, b]), ufunc, compares=True)


class Traced(_Recorded):
    """A number known as an expression."""

    __add__, __radd__ = _operator(operator.add, np.add), _operator(operator.add, np.add, True)
    __sub__, __rsub__ = (
        _operator(operator.sub, np.subtract),
        _operator(operator.sub, np.subtract, True),
    )
    __mul__, __rmul__ = (
        _operator(operator.mul, np.multiply),
        _operator(operator.mul, np.multiply, True),
    )
    __truediv__, __rtruediv__ = (
        _operator(_quotient, np.divide),
        _operator(_quotient, np.divide, True),
    )
    __pow__, __rpow__ = _operator(PARTS.power, np.power), _operator(PARTS.power, np.power, True)
    __lt__, __le__ = _comparison("<", np.less), _comparison("<=", np.less_equal)
    __gt__, __ge__ = _comparison(">", np.greater), _comparison(">=", np.greater_equal)
    __eq__, __ne__ = _comparison("==", np.equal), _comparison("!=", np.not_equal)

    def __neg__(self) -> Traced:
        return Traced(-self.part)

    def __pos__(self) -> Traced:
        return self

    def __abs__(self) -> Traced:
        return Traced(call("abs", [self.part]))

    def __bool__(self) -> bool:
        raise refusal(
            f"the function branches on '{self}', whose value is not known; write "
            "np.where(condition, a, b)"
        )

    def __float__(self) -> float:
        raise refusal(
            f"a number is needed where '{self}' is an expression; write functions of NumPy in "
            "place of those of math (np.exp), and np.zeros_like(x) or a list in place of "
            "np.zeros(n)"
        )

    def __int__(self) -> int:
        raise refusal(f"a whole number is needed where '{self}' is an expression")

    __index__ = __int__

    def __iter__(self) -> Any:
        raise refusal(f"'{self}' is one number and has no elements")

    def _unknown(self, *_: object) -> Any:
        raise refusal("expressions have neither rounding nor a remainder operator")

    __round__ = __floor__ = __ceil__ = __trunc__ = _unknown
    __mod__ = __rmod__ = __floordiv__ = __rfloordiv__ = __divmod__ = __rdivmod__ = _unknown

    @property
    def T(self) -> Traced:
        """The number itself, as in a zero-dimensional array."""
        return self


class TracedCondition(_Recorded):
    """A comparison of unknown truth."""

    def __bool__(self) -> bool:
        raise refusal(
            f"the function branches on '{self}', whose truth is not known; write "
            "np.where(condition, a, b), and np.maximum(a, b) in place of max(a, b)"
        )

    def __and__(self, other: object) -> Any:
        return _both("&&", self, other)

    def __or__(self, other: object) -> Any:
        return _both("||", self, other)

    __rand__, __ror__ = __and__, __or__

    def __invert__(self) -> TracedCondition:
        return TracedCondition(call("!", [self.part]))

    def _as_number(self) -> Traced:
        """Return 1 where it holds, and 0 elsewhere, as for True and False in sums."""
        return Traced(call(PIECEWISE, [PARTS.number("1"), self.part, PARTS.number("0")]))

    def __mul__(self, other: Any) -> Any:
        return self._as_number() * other

    def __add__(self, other: Any) -> Any:
        return self._as_number() + other

    def __sub__(self, other: Any) -> Any:
        return self._as_number() - other

    def __rsub__(self, other: Any) -> Any:
        return other - self._as_number()

    __rmul__, __radd__ = __mul__, __add__


def _both(sign: str, left: object, right: object) -> Any:
    known = [v for v in (left, right) if isinstance(v, (bool, np.bool_))]
    if known:
        other = right if known[0] is left else left
        decisive = bool(known[0]) == (sign == "||")
        return known[0] if decisive else other
    parts = [v.part for v in (left, right) if isinstance(v, TracedCondition)]
    return TracedCondition(call(sign, parts)) if len(parts) == 2 else NotImplemented


class TracedArray(np.ndarray[Any, Any]):
    """An array of expressions and numbers."""

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        return apply(ufunc, method, inputs, options)

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any:
        return apply_function(function, args, options)


def traced_array(values: Sequence[Any]) -> Any:
    """Return values as an array of expressions, shape (n,)."""
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array.view(TracedArray)


def _function(function: str) -> Callable[..., Any]:
    return lambda *values: Traced(call(function, [_part(v) for v in values]))


def _part(value: Any) -> Part:
    if isinstance(value, TracedCondition):
        value = value._as_number()
    part = as_part(value)
    if part is None:
        raise refusal(f"expected a number or an expression, got {type(value).__name__}")
    return part


def choice(condition: Any, a: Any, b: Any) -> Any:
    """Return `a` where a condition holds, else `b`."""
    if isinstance(condition, Traced):
        condition = condition != 0
    if not isinstance(condition, TracedCondition):
        return a if condition else b
    return Traced(call(PIECEWISE, [_part(a), condition.part, _part(b)]))


_max, _min = _function("max"), _function("min")


def _clip(value: Any, low: Any, high: Any) -> Any:
    clipped = value if low is None else _max(value, low)
    return clipped if high is None else _min(clipped, high)


def _negation(condition: Any) -> Any:
    return ~condition if isinstance(condition, TracedCondition) else not condition


_SAME = "exp log log10 sqrt sin cos tan sinh cosh tanh".split()

_UFUNCS: dict[str, tuple[int, Callable[..., Any]]] = {
    **{name: (1, _function(name)) for name in _SAME},
    **{f"arc{name}": (1, _function(f"a{name}")) for name in ("sin", "cos", "tan")},
    "absolute": (1, _function("abs")),
    "fabs": (1, _function("abs")),
    "log2": (1, lambda a: _function("log")(a) / _function("log")(2)),
    "log1p": (1, lambda a: _function("log")(1 + a)),
    "expm1": (1, lambda a: _function("exp")(a) - 1),
    "exp2": (1, lambda a: 2**a),
    "square": (1, lambda a: a**2),
    "reciprocal": (1, lambda a: 1 / a),
    "negative": (1, lambda a: -a),
    "positive": (1, lambda a: a),
    "sign": (1, lambda a: choice(a < 0, -1, choice(a > 0, 1, 0))),
    "deg2rad": (1, lambda a: a * (math.pi / 180)),
    "radians": (1, lambda a: a * (math.pi / 180)),
    "add": (2, lambda a, b: a + b),
    "subtract": (2, lambda a, b: a - b),
    "multiply": (2, lambda a, b: a * b),
    "divide": (2, lambda a, b: a / b),
    "power": (2, lambda a, b: a**b),
    "float_power": (2, lambda a, b: a**b),
    "hypot": (2, lambda a, b: _function("sqrt")(a**2 + b**2)),
    "heaviside": (2, lambda a, b: choice(a < 0, 0, choice(a > 0, 1, b))),
    "maximum": (2, _max),
    "fmax": (2, _max),
    "minimum": (2, _min),
    "fmin": (2, _min),
    "clip": (3, _clip),
    "less": (2, lambda a, b: a < b),
    "less_equal": (2, lambda a, b: a <= b),
    "greater": (2, lambda a, b: a > b),
    "greater_equal": (2, lambda a, b: a >= b),
    "equal": (2, lambda a, b: a == b),
    "not_equal": (2, lambda a, b: a != b),
    "logical_and": (2, lambda a, b: _both("&&", a, b)),
    "logical_or": (2, lambda a, b: _both("||", a, b)),
    "bitwise_and": (2, lambda a, b: _both("&&", a, b)),
    "bitwise_or": (2, lambda a, b: _both("||", a, b)),
    "logical_not": (1, _negation),
    "invert": (1, _negation),
}
"""NumPy functions by name: the number of their arguments, and their form in expressions."""

_METHODS = "exp log log10 sqrt sin cos tan sinh cosh tanh arcsin arccos arctan log2 log1p expm1"
for _name in [*_METHODS.split(), "square", "sign"]:
    # NumPy calls these methods of elements of object arrays, such as np.array([x[0], x[1]]).
    setattr(Traced, _name, _UFUNCS[_name][1])


def _plain(value: Any) -> Any:
    """Return a value in NumPy's form: an array of objects for expressions."""
    if isinstance(value, TracedArray):
        return value.view(np.ndarray)
    if isinstance(value, (Traced, TracedCondition)):
        array = np.empty((), dtype=object)
        array[()] = value
        return array
    if isinstance(value, np.ndarray):
        return value.astype(object)
    return value


def _wrapped(value: Any) -> Any:
    """Return NumPy's result: an array of expressions, or a single one."""
    if isinstance(value, tuple):
        return tuple(map(_wrapped, value))
    if not isinstance(value, np.ndarray) or value.dtype != object:
        return value
    return value.view(TracedArray) if value.ndim else value[()]


def apply(ufunc: Any, method: str, inputs: Sequence[Any], options: dict[str, Any]) -> Any:
    """Return the value of a universal function of NumPy, or of one of its methods."""
    plain = [_plain(value) for value in inputs]
    out = options.pop("out", None)
    options = {k: v for k, v in options.items() if k in ("axis", "keepdims", "axes")}
    if ufunc is np.matmul:
        outcome = np.matmul(*plain, **options)
    elif ufunc.__name__ in _UFUNCS:
        count, function = _UFUNCS[ufunc.__name__]
        elementwise = np.frompyfunc(function, count, 1)
        outcome = getattr(elementwise, method)(*plain, **options)
    else:
        raise refusal(f"np.{ufunc.__name__} is not a function of expressions")
    if out is not None and isinstance(out[0], np.ndarray):
        if out[0].dtype != object:
            raise refusal(
                "expressions are put into an array of numbers; write x = x + ... in place of "
                "x += ..., and np.zeros_like(x) in place of np.zeros(n)"
            )
        out[0][...] = outcome
        return out[0]
    return _wrapped(outcome)


def apply_function(function: Any, args: Any, options: Any) -> Any:
    """Return the value of a function of NumPy that is not a universal one."""
    if function is np.where:
        if len(args) != 3:
            raise refusal("np.where needs three arguments: a condition and both values")
        return _wrapped(np.frompyfunc(choice, 3, 1)(*map(_plain, args)))
    if function is np.interp:
        return _interpolated(*args, **options)
    if function is np.clip:
        values = [*args, None, None][:3]
        low, high = options.get("a_min", values[1]), options.get("a_max", values[2])
        return _wrapped(np.frompyfunc(_clip, 3, 1)(_plain(values[0]), _plain(low), _plain(high)))
    arrays = _as_arrays(args)
    named = {k: _as_arrays(v) for k, v in options.items()}
    # NumPy's own implementation, each step of which returns to `apply`.
    value = np.ndarray.__array_function__(traced_array([]), function, (TracedArray,), arrays, named)
    return _wrapped(value)


def _as_arrays(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return type(value)(map(_as_arrays, value))
    single = isinstance(value, (Traced, TracedCondition))
    return _plain(value).view(TracedArray) if single else value


def _interpolated(x: Any, xp: Any, fp: Any, *args: Any, **options: Any) -> Any:
    """Return ``np.interp(x, xp, fp)`` as linear pieces."""
    if args or options:
        raise refusal("np.interp has three arguments here: x, xp and fp")
    points, values = np.asarray(xp, dtype=float), np.asarray(fp, dtype=object)
    if 2 * len(points) + 1 > MAX_PIECES:
        raise refusal(
            f"np.interp has more than {MAX_PIECES // 2} points; make it an input, a column of the "
            "data"
        )
    if isinstance(x, np.ndarray) and x.ndim:
        return _wrapped(np.frompyfunc(lambda v: _interpolated(v, xp, fp), 1, 1)(_plain(x)))
    pieces: list[Part] = [_part(values[0]), call("<=", [_part(x), _part(points[0])])]
    for k in range(len(points) - 1):
        slope = (values[k + 1] - values[k]) / (points[k + 1] - points[k])
        line = values[k] + slope * (x - points[k])
        pieces += [_part(line), call("<=", [_part(x), _part(points[k + 1])])]
    return Traced(call(PIECEWISE, [*pieces, _part(values[-1])]))
