"""Lines below and above a univariate function on an interval: the secant and tangents.

Every function is convex or concave between its inflections, so that for each slope the best line
below and above it can be found, with a margin that covers rounding.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.optimize import brentq

from odefit.methods.outer_approximation.univariate import Ends, Univariate, library_bounds

MAX_INFLECTIONS = 22
"""With more inflections in an interval, only the image of the function bounds its values."""

TANGENTS = 3
"""Number of slopes beside that of the secant."""


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
    found = []
    for slope in (secant, *map(f.slope_at, contacts.tolist())):
        if not math.isfinite(slope):
            continue
        under, over = _offsets(f, edges, slope)
        if math.isfinite(under):
            found.append(Line(slope, under, above=False))
        if math.isfinite(over):
            found.append(Line(slope, over, above=True))
    return found


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
        # The tangent at the contact point is below a convex piece and above a concave one; its
        # slope differs from `slope` by what the iteration leaves, which the margin covers.
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

    inset = 1e-12 * (b - a)  # at the ends, derivatives may be infinite
    a, b = a + inset, b - inset
    if not excess(a) * excess(b) <= 0:
        return None
    return float(brentq(excess, a, b, xtol=math.ulp(0.0), rtol=8.9e-16, disp=False))
