"""Univariate functions (24), (25): values, derivatives, interval images, and supporting lines.

Images and inverse images are rounded outwards, so that they are valid in proofs. Every function is
convex or concave between its inflections, so that for each slope the tightest lines below and above
it can be computed, with a margin that covers rounding.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

import numpy as np
from scipy.optimize import brentq

Ends = tuple[float, float]
"""Lower and upper end of an interval."""

REAL_LINE: Ends = (-math.inf, math.inf)
"""The interval of all real numbers."""

EMPTY: Ends = (math.inf, -math.inf)
"""The interval without any number."""

LIBRARY_ERROR = 4
"""Assumed largest error of functions of the C library, in units in the last place."""

INVERSE_MARGIN = 1e-14
"""Relative margin of inverse images, since the library's inverse is not exact."""

PI_MARGIN = 1e-12
"""Relative distance from an interval at which a multiple of pi still counts as inside it."""

SINE_PERIOD = 7.0
"""Length above which intervals contain both extrema of sine and cosine: a little more than 2 pi."""


@dataclass(frozen=True)
class Univariate:
    """A function of one real variable, convex or concave between its inflections.

    Its name is that in expressions, or ``"power"`` for ``x ** exponent``. Value and derivative are
    functions of floats; the function is defined on `domain`, with values in `range`. `inverse`
    belongs to an increasing function, or to the right half of an even one; it is None if it is not
    needed. An even function has a minimum or a pole at zero. An inflection at zero means that the
    curvature changes its sign there, or that the derivative jumps.
    """

    name: str
    value: Callable[[float], float]
    derivative: Callable[[float], float]
    domain: Ends = REAL_LINE
    range: Ends = REAL_LINE
    inverse: Callable[[float], float] | None = None
    even: bool = False
    inflection_at_zero: bool = False
    exponent: float = 0.0

    def at(self, x: float) -> float:
        """Return the value at `x`, NaN if it is undefined."""
        return _or_nan(self.value, x)

    def slope_at(self, x: float) -> float:
        """Return the floating-point derivative at `x`, NaN if it is undefined."""
        return _or_nan(self.derivative, x)

    @property
    def _is_power(self) -> bool:
        return self.name == "power"

    def image(self, low: float, high: float) -> Ends:
        """Return bounds of the values on [low, high]; :data:`EMPTY` outside the domain."""
        low, high = max(low, self.domain[0]), min(high, self.domain[1])
        if low > high:
            return EMPTY
        if self._is_power and self.exponent < 0 and low < 0 < high:
            return self.range  # a pole
        values = [self.at_end(low, 1), self.at_end(high, -1)]
        values += [(extremum, extremum) for extremum in self._extrema(low, high)]
        floor, ceiling = self.range
        if self._is_power and low >= 0:
            floor = 0.0
        return max(min(v[0] for v in values), floor), min(max(v[1] for v in values), ceiling)

    def at_end(self, x: float, side: int) -> Ends:
        """Return bounds of the value, or of the limit, at an end of an interval.

        The `side` is 1 if `x` is the lower end of the interval, -1 if it is the upper end.
        """
        n = self.exponent
        if self._is_power and x == 0.0:
            infinite = math.inf if side > 0 or self.even else -math.inf
            limit = 0.0 if n > 0 else infinite
        elif math.isinf(x):
            if self._is_power and n < 0:
                limit = 0.0
            elif self.even:
                limit = math.inf
            elif self.inverse is not None or self._is_power:
                limit = self.range[x > 0]
            else:
                return self.range
        elif self.name == "log" and x == 0.0:
            limit = -math.inf
        elif self.name == "abs":
            limit = abs(x)
        else:
            return library_bounds(self.value, x)
        return limit, limit

    def _extrema(self, low: float, high: float) -> list[float]:
        """Return the extreme values inside (low, high), and infinities if there is a pole."""
        if self.even:
            return [self.range[0]] if low < 0 < high else []
        length = high - low if math.isfinite(low) and math.isfinite(high) else math.inf
        if self.name in {"sin", "cos"}:
            if length > SINE_PERIOD:
                return [-1.0, 1.0]
            shift = 0.5 if self.name == "sin" else 0.0  # maxima at (2k + shift) pi
            return [1.0 if k % 2 == 0 else -1.0 for k in _multiples_of_pi(low, high, shift)]
        if self.name == "tan" and (length > math.pi or _multiples_of_pi(low, high, 0.5)):
            return [-math.inf, math.inf]
        return []

    def preimage(self, low: float, high: float, within: Ends) -> Ends:
        """Return bounds of the arguments in `within` whose values can lie in [low, high]."""
        start, stop = max(within[0], self.domain[0]), min(within[1], self.domain[1])
        if self._is_power:
            return self._preimage_of_power(low, high, start, stop)
        floor, ceiling = self.range
        if self.even:
            if high < floor:
                return EMPTY
            top = high
            if self.inverse is not None:
                top = _above(library_bounds(self.inverse, max(high, floor))[1])
            return max(start, -top), min(stop, top)
        if self.inverse is None:
            return start, stop
        if high < floor or low > ceiling:
            return EMPTY
        bottom = library_bounds(self.inverse, low)[0] if low > floor else -math.inf
        top = library_bounds(self.inverse, high)[1] if high < ceiling else math.inf
        return max(start, _below(bottom)), min(stop, _above(top))

    def _preimage_of_power(self, low: float, high: float, start: float, stop: float) -> Ends:
        n = self.exponent
        if not self.even and n == int(n) and start < 0:
            return start, stop  # odd powers of both signs are rare, and only the lines bound them
        if high < 0:
            return EMPTY
        a, b = _root(max(low, 0.0), n), _root(high, n)
        least, most = (a[0], b[1]) if n > 0 else (b[0], a[1])
        if start >= 0:
            return max(start, least), min(stop, most)
        if stop <= 0:
            return max(start, -most), min(stop, -least)
        return max(start, -most), min(stop, most)

    def inflections(self, low: float, high: float) -> list[float]:
        """Return inner points where the curvature may change its sign or the derivative jumps."""
        points = [0.0] if self.inflection_at_zero else []
        if self.name in {"sin", "cos", "tan"}:
            shift = 0.5 if self.name == "cos" else 0.0
            points = [(k + shift) * math.pi for k in _multiples_of_pi(low, high, shift)]
        return [x for x in points if low < x < high]


def _or_nan(function: Callable[[float], float], x: float) -> float:
    try:
        return float(function(float(x)))
    except (ValueError, OverflowError, ZeroDivisionError):
        return math.nan


def library_bounds(function: Callable[[float], float], x: float) -> Ends:
    """Return bounds of a library function's value; the real line if it is undefined."""
    value = _or_nan(function, x)
    if not math.isfinite(value):
        return REAL_LINE if math.isnan(value) else (value, value)
    low = high = value
    for _ in range(LIBRARY_ERROR):
        low, high = math.nextafter(low, -math.inf), math.nextafter(high, math.inf)
    return low, high


def _multiples_of_pi(low: float, high: float, shift: float) -> range:
    """Return the integers k with ``(k + shift) pi`` in the interval, or next to it."""
    slack = PI_MARGIN * max(1.0, abs(low), abs(high))
    first = math.ceil((low - slack) / math.pi - shift)
    last = math.floor((high + slack) / math.pi - shift)
    return range(first, last + 1)


def _root(value: float, n: float) -> Ends:
    """Return bounds of the nonnegative x with ``x ** n = value``."""
    if value == 0.0 or math.isinf(value):
        root = 0.0 if (value == 0.0) == (n > 0) else math.inf
        return root, root
    try:
        root = math.sqrt(value) if n == 2.0 else math.pow(value, 1.0 / n)
    except OverflowError:
        return 0.0, math.inf
    return _below(root), _above(root)


def _below(x: float) -> float:
    return x - INVERSE_MARGIN * abs(x) if math.isfinite(x) else x


def _above(x: float) -> float:
    return x + INVERSE_MARGIN * abs(x) if math.isfinite(x) else x


HALF_PI = math.pi / 2 + 1e-15
"""An upper bound of half of pi."""

_POSITIVE, _UNIT = (0.0, math.inf), (-1.0, 1.0)
_ANGLE, _TURN = (-HALF_PI, HALF_PI), (0.0, 2 * HALF_PI)

_CATALOGUE = (
    # name, value, derivative, domain, range, inverse, even, inflection at zero
    ("exp", math.exp, math.exp, REAL_LINE, _POSITIVE, math.log),
    ("log", math.log, lambda x: 1.0 / x, _POSITIVE, REAL_LINE, math.exp),
    ("sqrt", math.sqrt, lambda x: 0.5 / math.sqrt(x), _POSITIVE, _POSITIVE, lambda x: x * x),
    ("sin", math.sin, math.cos, REAL_LINE, _UNIT),
    ("cos", math.cos, lambda x: -math.sin(x), REAL_LINE, _UNIT),
    ("tan", math.tan, lambda x: 1.0 + math.tan(x) ** 2),
    ("asin", math.asin, lambda x: 1 / math.sqrt(1 - x * x), _UNIT, _ANGLE, math.sin, False, True),
    ("acos", math.acos, lambda x: -1 / math.sqrt(1 - x * x), _UNIT, _TURN, None, False, True),
    ("atan", math.atan, lambda x: 1.0 / (1.0 + x * x), REAL_LINE, _ANGLE, math.tan, False, True),
    ("sinh", math.sinh, math.cosh, REAL_LINE, REAL_LINE, math.asinh, False, True),
    ("cosh", math.cosh, math.sinh, REAL_LINE, (1.0, math.inf), math.acosh, True),
    ("tanh", math.tanh, lambda x: 1 - math.tanh(x) ** 2, REAL_LINE, _UNIT, math.atanh, False, True),
    ("abs", abs, lambda x: math.copysign(1.0, x), REAL_LINE, _POSITIVE, None, True, True),
)

FUNCTIONS: Mapping[str, Univariate] = {row[0]: Univariate(*row) for row in _CATALOGUE}
"""The univariate functions of expressions, by name; :func:`power` makes powers."""


@cache
def power(exponent: float) -> Univariate:
    """Return the function ``x ** exponent``."""
    whole, even = exponent == int(exponent), exponent % 2 == 0
    return Univariate(
        "power",
        (lambda x: x * x) if exponent == 2.0 else (lambda x: math.pow(x, exponent)),
        lambda x: exponent * math.pow(x, exponent - 1.0),
        REAL_LINE if whole else (0.0, math.inf),
        (0.0, math.inf) if even or not whole else REAL_LINE,
        even=even,
        inflection_at_zero=exponent % 2 == 1,
        exponent=exponent,
    )


MAX_INFLECTIONS = 22
"""Number of inflections in an interval above which only the function's image bounds its values."""

TANGENTS = 3
"""Number of slopes besides that of the secant."""


@dataclass(frozen=True)
class Line:
    """The line ``slope * x + offset``, below a function on an interval or `above` it."""

    slope: float
    offset: float
    above: bool


def supporting_lines(f: Univariate, low: float, high: float) -> list[Line]:
    """Return lines below and above `f` on [low, high], whose ends are finite."""
    low, high = max(low, f.domain[0]), min(high, f.domain[1])
    if not low < high or not all(map(math.isfinite, f.image(low, high))):
        return []
    edges = [low, *f.inflections(low, high), high]
    if len(edges) > MAX_INFLECTIONS + 2:
        return []
    first, last = f.at_end(low, 1), f.at_end(high, -1)
    secant = (0.5 * sum(last) - 0.5 * sum(first)) / (high - low)
    contacts = low + (high - low) * np.linspace(0.02, 0.98, TANGENTS)
    lines = []
    for slope in (secant, *map(f.slope_at, contacts.tolist())):
        if not math.isfinite(slope):
            continue
        under, over = _offsets(f, edges, slope)
        if math.isfinite(under):
            lines.append(Line(slope, under, above=False))
        if math.isfinite(over):
            lines.append(Line(slope, over, above=True))
    return lines


def _offsets(f: Univariate, edges: list[float], slope: float) -> Ends:
    """Return bounds of ``f(x) - slope x`` between all edges, where f is convex or concave."""
    under, over = math.inf, -math.inf
    for a, b in pairwise(edges):
        for x, side in ((a, 1), (b, -1)):
            least, most = _minus(f.at_end(x, side), slope, x)
            under, over = min(under, least), max(over, most)
        contact = _contact(f, a, b, slope)
        if contact is None:
            continue
        # The tangent at the contact point is below a convex piece and above a concave one. Its
        # slope differs from `slope` by the error of the iteration, which the margin covers.
        least, most = _minus(library_bounds(f.value, contact), slope, contact)
        off = f.slope_at(contact) - slope
        margin = (abs(off) + 1e-13 * (abs(slope) + abs(off))) * (b - a)
        under, over = min(under, least - margin), max(over, most + margin)
    return under, over


def _minus(value: Ends, slope: float, x: float) -> Ends:
    """Return ``value - slope x``, rounded outwards."""
    product = slope * x
    slack = 4e-16 * (abs(product) + max(abs(value[0]), abs(value[1])))
    return value[0] - product - slack, value[1] - product + slack


def _contact(f: Univariate, a: float, b: float, slope: float) -> float | None:
    """Return where the derivative, monotone between a and b, is `slope`; None if nowhere."""

    def excess(x: float) -> float:
        return f.slope_at(x) - slope

    inset = 1e-12 * (b - a)  # derivatives may be infinite at the ends
    a, b = a + inset, b - inset
    if not excess(a) * excess(b) <= 0:
        return None
    return float(brentq(excess, a, b, xtol=math.ulp(0.0), rtol=8.9e-16, disp=False))
