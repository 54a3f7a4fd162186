"""Univariate terms (24), (25): images, inverse images, and lines that keep them between.

Every function is convex or concave between its inflections, so that for each slope the best line
below and above it can be found, with a margin that covers rounding.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

Pair = tuple[float, float]

LIBRARY_ERROR = 4
"""Units in the last place by which functions of the C library are taken to be off at most."""

RISING = {
    # monotone functions: value, inverse, domain
    "exp": (math.exp, math.log),
    "log": (math.log, math.exp),
    "sqrt": (math.sqrt, lambda x: x * x),
    "asin": (math.asin, math.sin),
    "atan": (math.atan, math.tan),
    "sinh": (math.sinh, math.asinh),
    "tanh": (math.tanh, math.atanh),
}
DOMAINS = {
    "log": (0.0, math.inf),
    "sqrt": (0.0, math.inf),
    "asin": (-1.0, 1.0),
    "acos": (-1.0, 1.0),
}
"""Where functions are defined; all others are everywhere."""

RANGES = {
    "exp": (0.0, math.inf),
    "sqrt": (0.0, math.inf),
    "sin": (-1.0, 1.0),
    "cos": (-1.0, 1.0),
    "asin": (-math.pi / 2 - 1e-15, math.pi / 2 + 1e-15),
    "acos": (0.0, math.pi + 1e-15),
    "atan": (-math.pi / 2 - 1e-15, math.pi / 2 + 1e-15),
    "cosh": (1.0, math.inf),
    "tanh": (-1.0, 1.0),
    "abs": (0.0, math.inf),
}
"""What values functions have at all."""


def evaluate(function: str, x: float, exponent: float = 0.0) -> float:
    """The value, NaN where it is not defined."""
    try:
        return float(_value(function, exponent)(float(x)))
    except (ValueError, OverflowError, ZeroDivisionError):
        return math.nan


def _value(function: str, exponent: float) -> Callable[[float], float]:
    if function == "power":
        if exponent == 2.0:
            return lambda x: x * x
        return lambda x: math.pow(x, exponent)
    if function == "abs":
        return abs
    found: Callable[[float], float] = getattr(math, function)
    return found


def library(function: Callable[[float], float], x: float) -> Pair:
    """Return bounds of a library function's value; the real line where it is not defined."""
    try:
        value = function(x)
    except (ValueError, OverflowError, ZeroDivisionError):
        return -math.inf, math.inf
    if not math.isfinite(value):
        return (value, value) if not math.isnan(value) else (-math.inf, math.inf)
    low = high = value
    for _ in range(LIBRARY_ERROR):
        low, high = math.nextafter(low, -math.inf), math.nextafter(high, math.inf)
    return low, high


def domain(function: str, exponent: float = 0.0) -> Pair:
    """Where the function is defined."""
    if function == "power" and exponent != int(exponent):
        return 0.0, math.inf
    return DOMAINS.get(function, (-math.inf, math.inf))


def image(function: str, low: float, high: float, exponent: float = 0.0) -> Pair:
    """Bounds of the function's values on [low, high]; (inf, -inf) if it has none there."""
    least, most = domain(function, exponent)
    low, high = max(low, least), min(high, most)
    if low > high:
        return math.inf, -math.inf
    pole = function == "power" and exponent < 0 and low <= 0 <= high
    if pole and low < 0 < high:
        return (0.0, math.inf) if exponent % 2 == 0 else (-math.inf, math.inf)
    f = _value(function, exponent)
    ends = [_at(f, x, function, exponent, side) for x, side in ((low, 1), (high, -1))]
    bottom, top = min(e[0] for e in ends), max(e[1] for e in ends)
    for x, value in _extremes(function, exponent, low, high):
        del x
        bottom, top = min(bottom, value), max(top, value)
    floor, ceiling = RANGES.get(function, (-math.inf, math.inf))
    if function == "power" and (exponent % 2 == 0 or exponent != int(exponent) or low >= 0):
        floor = 0.0
    return max(bottom, floor), min(top, ceiling)


def _at(f: Callable[[float], float], x: float, function: str, exponent: float, side: int) -> Pair:
    """Bounds of the value or the limit at an end; `side` says where the interval lies."""
    if function == "power" and x == 0.0:
        if exponent > 0:
            return 0.0, 0.0
        infinite = math.inf if side > 0 or exponent % 2 == 0 else -math.inf
        return infinite, infinite
    if math.isinf(x):
        return _limit(function, exponent, x)
    if function == "log" and x == 0.0:
        return -math.inf, -math.inf
    if function == "abs":
        return abs(x), abs(x)
    try:
        return library(f, x)
    except OverflowError:
        return -math.inf, math.inf


def _limit(function: str, exponent: float, x: float) -> Pair:
    positive = x > 0
    if function == "power":
        if exponent < 0:
            return 0.0, 0.0
        value = math.inf if positive or exponent % 2 == 0 else -math.inf
        return value, value
    table: Mapping[str, tuple[Pair, Pair]] = {
        "exp": ((0.0, 0.0), (math.inf, math.inf)),
        "log": ((-math.inf, -math.inf), (math.inf, math.inf)),
        "sqrt": ((0.0, 0.0), (math.inf, math.inf)),
        "sinh": ((-math.inf, -math.inf), (math.inf, math.inf)),
        "cosh": ((math.inf, math.inf), (math.inf, math.inf)),
        "abs": ((math.inf, math.inf), (math.inf, math.inf)),
        "tanh": ((-1.0, -1.0), (1.0, 1.0)),
        "atan": (
            (RANGES["atan"][0], RANGES["atan"][0]),
            (RANGES["atan"][1], RANGES["atan"][1]),
        ),
    }
    if function not in table:
        return RANGES.get(function, (-math.inf, math.inf))
    return table[function][positive]


def _extremes(function: str, exponent: float, low: float, high: float) -> list[Pair]:
    """Interior extremes, and the infinities of poles: arguments and values."""
    if function == "power" and exponent % 2 == 0 and exponent > 0 and low < 0 < high:
        return [(0.0, 0.0)]
    if function in {"abs", "cosh"} and low < 0 < high:
        return [(0.0, 0.0 if function == "abs" else 1.0)]
    if function in {"sin", "cos"}:
        if not (math.isfinite(low) and math.isfinite(high)) or high - low > 7.0:
            return [(0.0, -1.0), (0.0, 1.0)]
        shift = 0.5 if function == "sin" else 0.0  # maxima at (2k + shift) pi
        return [
            ((k + shift) * math.pi, 1.0 if k % 2 == 0 else -1.0)
            for k in _multiples(low, high, shift)
        ]
    if function == "tan":
        wide = not (math.isfinite(low) and math.isfinite(high)) or high - low > math.pi
        if wide or _multiples(low, high, 0.5):
            return [(0.0, -math.inf), (0.0, math.inf)]
    return []


def _multiples(low: float, high: float, shift: float) -> range:
    """Whole k with (k + shift) pi in the interval, or next to it."""
    slack = 1e-12 * max(1.0, abs(low), abs(high))
    first = math.ceil((low - slack) / math.pi - shift)
    last = math.floor((high + slack) / math.pi - shift)
    return range(first, last + 1)


def preimage(function: str, low: float, high: float, at: Pair, exponent: float = 0.0) -> Pair:
    """Bounds of the arguments within `at` whose values can lie in [low, high]."""
    least, most = domain(function, exponent)
    start, stop = max(at[0], least), min(at[1], most)
    if function in RISING:
        _, inverse = RISING[function]
        floor, ceiling = RANGES.get(function, (-math.inf, math.inf))
        if high < floor or low > ceiling:
            return math.inf, -math.inf
        bottom = library(inverse, low)[0] if low > floor else -math.inf
        top = library(inverse, high)[1] if high < ceiling else math.inf
        # the inverse of the library is not the inverse exactly: a margin of the size of both
        return max(start, _less(bottom)), min(stop, _more(top))
    if function == "power":
        return _preimage_of_power(low, high, start, stop, exponent)
    if function in {"abs", "cosh"}:
        if high < RANGES[function][0]:
            return math.inf, -math.inf
        top = high if function == "abs" else _more(library(math.acosh, max(high, 1.0))[1])
        return max(start, -top), min(stop, top)
    return start, stop


def _preimage_of_power(low: float, high: float, start: float, stop: float, n: float) -> Pair:
    even = n % 2 == 0
    if not even and n == int(n) and start < 0:
        return start, stop  # odd powers of both signs: rare, and left to the lines
    if high < 0:
        return math.inf, -math.inf
    low = max(low, 0.0)
    a, b = _root(low, n), _root(high, n)
    least, most = (a[0], b[1]) if n > 0 else (b[0], a[1])
    if start >= 0:
        return max(start, least), min(stop, most)
    if stop <= 0:
        return max(start, -most), min(stop, -least)
    return max(start, -most), min(stop, most)


def _root(value: float, n: float) -> Pair:
    if value == 0.0:
        return (0.0, 0.0) if n > 0 else (math.inf, math.inf)
    if math.isinf(value):
        return (math.inf, math.inf) if n > 0 else (0.0, 0.0)
    try:
        root = math.sqrt(value) if n == 2.0 else math.pow(value, 1.0 / n)
    except OverflowError:
        return 0.0, math.inf
    return _less(root), _more(root)


def _less(x: float) -> float:
    return x - 1e-14 * abs(x) if math.isfinite(x) else x


def _more(x: float) -> float:
    return x + 1e-14 * abs(x) if math.isfinite(x) else x


# Lines --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Line:
    """``f(x) >= slope * x + offset`` on the interval, or ``<=`` if it is `above`."""

    slope: float
    offset: float
    above: bool


def inflections(function: str, exponent: float, low: float, high: float) -> list[float]:
    """Where curvature may change its sign, or the slope jumps, inside (low, high)."""
    odd = function == "power" and exponent % 2 == 1
    if odd or function in {"sinh", "tanh", "asin", "acos", "atan", "abs"}:
        found = [0.0]
    elif function in {"sin", "cos", "tan"}:
        shift = 0.5 if function == "cos" else 0.0
        found = [(k + shift) * math.pi for k in _multiples(low, high, shift)]
    else:
        found = []
    return [x for x in found if low < x < high]


MOST_INFLECTIONS = 24
"""With more than these the image alone bounds the term."""


def lines(
    function: str, low: float, high: float, exponent: float = 0.0, tangents: int = 3
) -> list[Line]:
    """Lines below and above the function on [low, high], ends finite and in its domain.

    Parameters
    ----------
    tangents
        How many slopes beside that of the secant.
    """
    least, most = domain(function, exponent)
    low, high = max(low, least), min(high, most)
    bounds = image(function, low, high, exponent)
    if not low < high or not (math.isfinite(bounds[0]) and math.isfinite(bounds[1])):
        return []
    pieces = [low, *inflections(function, exponent, low, high), high]
    if len(pieces) > MOST_INFLECTIONS:
        return []
    f = _value(function, exponent)
    ends = [_at(f, x, function, exponent, side) for x, side in ((low, 1), (high, -1))]
    secant = (0.5 * sum(ends[1]) - 0.5 * sum(ends[0])) / (high - low)
    places = low + (high - low) * np.linspace(0.02, 0.98, tangents)
    slopes = [secant, *(_slope(function, exponent, x) for x in places.tolist())]
    found = []
    for slope in slopes:
        if not math.isfinite(slope):
            continue
        under, over = _offsets(function, exponent, pieces, slope)
        if math.isfinite(under):
            found.append(Line(slope, under, above=False))
        if math.isfinite(over):
            found.append(Line(slope, over, above=True))
    return found


def _slope(function: str, exponent: float, x: float) -> float:
    """The derivative, rounded; any slope gives a valid line."""
    try:
        if function == "power":
            return exponent * math.pow(x, exponent - 1.0)
        return {
            "exp": lambda: math.exp(x),
            "log": lambda: 1.0 / x,
            "sqrt": lambda: 0.5 / math.sqrt(x),
            "sin": lambda: math.cos(x),
            "cos": lambda: -math.sin(x),
            "tan": lambda: 1.0 + math.tan(x) ** 2,
            "asin": lambda: 1.0 / math.sqrt(1.0 - x * x),
            "acos": lambda: -1.0 / math.sqrt(1.0 - x * x),
            "atan": lambda: 1.0 / (1.0 + x * x),
            "sinh": lambda: math.cosh(x),
            "cosh": lambda: math.sinh(x),
            "tanh": lambda: 1.0 - math.tanh(x) ** 2,
            "abs": lambda: math.copysign(1.0, x),
        }[function]()
    except (ValueError, OverflowError, ZeroDivisionError):
        return math.nan


def _offsets(function: str, exponent: float, pieces: list[float], slope: float) -> Pair:
    """Bounds of ``f(x) - slope x`` over all pieces, each convex or concave."""
    f = _value(function, exponent)
    under, over = math.inf, -math.inf
    for a, b in pairwise(pieces):
        ends = []
        for x, side in ((a, 1), (b, -1)):
            value = _at(f, x, function, exponent, side)
            ends.append(_minus(value, slope, x))
        under, over = min(under, *(e[0] for e in ends)), max(over, *(e[1] for e in ends))
        touch = _touch(function, exponent, a, b, slope)
        if touch is None:
            continue
        # The tangent at the touching point is below a convex piece and above a concave one; its
        # slope differs from `slope` by what the search leaves, which its ends show.
        value = _minus(library(f, touch), slope, touch)
        off = _slope(function, exponent, touch) - slope
        margin = (abs(off) + 1e-13 * (abs(slope) + abs(off))) * (b - a)
        under = min(under, value[0] - margin)
        over = max(over, value[1] + margin)
    return under, over


def _minus(value: Pair, slope: float, x: float) -> Pair:
    """``value - slope x``, rounded outward."""
    product = slope * x
    slack = 4e-16 * (abs(product) + max(abs(value[0]), abs(value[1])))
    return value[0] - product - slack, value[1] - product + slack


def _touch(function: str, exponent: float, a: float, b: float, slope: float) -> float | None:
    """Where the derivative is `slope` inside a piece on which it is monotone, by bisection."""
    at_a = _slope(function, exponent, a + 1e-12 * (b - a))
    at_b = _slope(function, exponent, b - 1e-12 * (b - a))
    if math.isnan(at_a) or math.isnan(at_b) or (at_a - slope) * (at_b - slope) > 0:
        return None
    for _ in range(200):
        middle = 0.5 * (a + b)
        if not a < middle < b:
            break
        if (_slope(function, exponent, middle) - slope) * (at_a - slope) > 0:
            a = middle
        else:
            b = middle
    return 0.5 * (a + b)
