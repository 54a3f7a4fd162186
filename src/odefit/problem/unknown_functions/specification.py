"""The table of an unknown function: its kind, its knots and its smoothness, checked."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from odefit.common.errors import one_of, shown
from odefit.expressions.expressions import Expression
from odefit.problem.inputs.issues import Issues, finite_number

KINDS = ("spline", "linear", "constant")
SHAPES = ("increasing", "decreasing", "convex", "concave")
CRITERIA = ("reml", "adaptive", "cv")
KEYS = (
    "estimate", "of", "knots", "changes", "range", "scale", "smooth", "sd", "shape",
    "lower", "upper", "guess", "unit", "per_experiment",
)  # fmt: skip
MAX_KNOTS = 60

DEFAULT_KNOTS = 8
SMOOTH_KNOTS = 15
"""Number of knots of a function of time that a penalty keeps smooth: more only cost time."""


@dataclass(frozen=True)
class UnknownFunction:
    """An estimated function, as its table specifies.

    Attributes
    ----------
    name
        Its name in expressions.
    kind
        ``"spline"`` (cubic, by B-splines), ``"linear"`` or ``"constant"`` between the knots.
    of
        The expression on which the function depends; None for the time.
    places
        Knots from 0 to 1, relative to the range; empty for change points.
    changes
        Number of change points whose times are unknown; 0 if the knots are known.
    range
        The places of the first and last knot; None to take them from the data.
    log
        True if the decimal logarithm of the function is expanded.
    smooth
        ``"reml"``, ``"adaptive"``, ``"cv"``, ``"given"`` or None: the method for the weight of
        the roughness penalty.
    sd
        Standard deviation of the penalised differences, or its start value.
    shape
        One of :data:`SHAPES`, or None.
    lower, upper, guess
        Bounds and start value of the coefficients, which are values of the function.
    """

    name: str
    kind: str
    of: Expression | None
    places: tuple[float, ...]
    changes: int
    range: tuple[float, float] | None
    log: bool
    smooth: str | None
    sd: float | None
    shape: str | None
    lower: float
    upper: float
    guess: float | None
    unit: str
    per_experiment: bool

    def table(self) -> dict[str, Any]:
        """Return the table of this function in the notation of problem files."""
        entries: dict[str, Any] = {"estimate": self.kind}
        if self.of is not None:
            entries["of"] = self.of.text
        if self.changes:
            entries["changes"] = self.changes
        elif self.range is None:
            entries["knots"] = len(self.places)
        else:
            low, high = self.range
            entries["knots"] = [low + p * (high - low) for p in self.places]
        if self.range is not None and self.changes:
            entries["range"] = list(self.range)
        if self.log:
            entries["scale"] = "log10"
        if self.smooth in CRITERIA:
            entries["smooth"] = self.smooth
        for key in ("sd", "shape", "guess"):
            if getattr(self, key) is not None:
                entries[key] = getattr(self, key)
        if math.isfinite(self.lower):
            entries["lower"] = self.lower
        if math.isfinite(self.upper):
            entries["upper"] = self.upper
        if self.unit:
            entries["unit"] = self.unit
        if self.per_experiment:
            entries["per_experiment"] = True
        return entries


def is_unknown(value: object) -> bool:
    """Return whether a value in ``[inputs]`` is the table of an unknown function."""
    return isinstance(value, UnknownFunction) or (
        isinstance(value, Mapping) and "estimate" in value
    )


def read_function(name: str, value: Any, place: str, issues: Issues) -> UnknownFunction | None:
    """Return the function of a table; None with the reasons noted if it is mistaken."""
    if isinstance(value, UnknownFunction):
        return value
    before = len(issues.errors)
    for key in [k for k in value if k not in KEYS]:
        issues.error(place, f"unknown key {shown(key)}{one_of(str(key), KEYS)}")

    def number(key: str) -> float | None:
        field = value.get(key)
        return None if field is None else finite_number(field, f"{place}.{key}", issues)

    def choice(key: str, known: tuple[str, ...]) -> str | None:
        word = value.get(key)
        if word is not None and word not in known:
            issues.error(f"{place}.{key}", f"unknown word {shown(word)}{one_of(str(word), known)}")
        return word if isinstance(word, str) else None

    kind = choice("estimate", KINDS) or "spline"
    log = choice("scale", ("linear", "log10")) == "log10"
    shape = choice("shape", SHAPES)
    of = None if value.get("of") is None else issues.expression(f"{place}.of", value["of"])
    if of is not None and of.names == {"t"}:
        of = None
    limits = _limits(value.get("range"), f"{place}.range", issues)
    sd = number("sd")
    if sd is not None and sd <= 0:
        issues.error(f"{place}.sd", f"must be positive, got {sd:g}")
    smooth = choice("smooth", (*CRITERIA, "none"))
    smooth = ("given" if sd is not None else None) if smooth in (None, "none") else smooth
    per_experiment = value.get("per_experiment", False)
    if not isinstance(per_experiment, bool):
        issues.expected(f"{place}.per_experiment", "true or false", per_experiment)
    changes, places = 0, tuple[float, ...]()
    if "changes" in value:
        changes = _whole(value["changes"], 1, f"{place}.changes", issues) or 1
        if kind != "constant" or of is not None or "knots" in value:
            issues.error(
                f"{place}.changes",
                'change points belong to estimate = "constant", to functions of time and to no '
                "knots beside them; remove one of them",
            )
        if smooth is not None or shape is not None:
            issues.error(f"{place}.changes", "change points take neither smooth, sd nor shape")
    else:
        usual = DEFAULT_KNOTS if smooth is None or of is not None else SMOOTH_KNOTS
        places, limits = _knots(value.get("knots", usual), limits, place, issues)
    if smooth is not None and shape is not None:
        issues.error(f"{place}.shape", "a function with a shape takes neither smooth nor sd")
    if kind == "constant" and shape in ("convex", "concave"):
        issues.error(f"{place}.shape", "steps are neither convex nor concave; take a spline")
    if kind == "constant" and of is not None:
        issues.error(f"{place}.estimate", "steps are functions of time; take a spline or linear")
    lower, upper, guess = number("lower"), number("upper"), number("guess")
    if log and any(v is not None and v <= 0 for v in (lower, upper, guess)):
        issues.error(place, 'scale = "log10" needs bounds and a guess above zero')
    if lower is not None and upper is not None and lower >= upper:
        issues.error(place, f"lower = {lower:g} is not below upper = {upper:g}")
    unit = value.get("unit", "")
    if not isinstance(unit, str):
        issues.expected(f"{place}.unit", "a text in quotes", unit)
    if len(issues.errors) > before:
        return None
    return UnknownFunction(
        name, kind, of, places, changes, limits, log, smooth, sd, shape,
        -math.inf if lower is None else lower, math.inf if upper is None else upper,
        guess, unit, per_experiment,
    )  # fmt: skip


def _limits(value: Any, place: str, issues: Issues) -> tuple[float, float] | None:
    if value is None:
        return None
    if not isinstance(value, (list, tuple)) or len(value) != 2:
        issues.expected(place, "two numbers, such as [0, 10]", value)
        return None
    low, high = (finite_number(v, place, issues) for v in value)
    if low is None or high is None:
        return None
    if low >= high:
        issues.error(place, f"the range ends at {high:g}, where it begins at {low:g}")
    return low, high


def _knots(
    value: Any, limits: tuple[float, float] | None, place: str, issues: Issues
) -> tuple[tuple[float, ...], tuple[float, float] | None]:
    """Return knots relative to the range, and the range."""
    at = f"{place}.knots"
    if not isinstance(value, (list, tuple)):
        count = _whole(value, 2, at, issues) or 2
        return tuple(i / (count - 1) for i in range(count)), limits
    read = [finite_number(v, at, issues) for v in value]
    numbers = [v for v in read if v is not None]
    if len(numbers) < len(read):
        return (0.0, 1.0), limits
    if limits is not None:
        issues.error(at, "a list of knots defines the range; remove range")
    if not 2 <= len(numbers) <= MAX_KNOTS or any(a >= b for a, b in pairwise(numbers)):
        issues.error(at, f"expected 2 to {MAX_KNOTS} increasing numbers")
        return (0.0, 1.0), limits
    low, high = numbers[0], numbers[-1]
    inside = [(v - low) / (high - low) for v in numbers[1:-1]]
    return (0.0, *inside, 1.0), (low, high)


def _whole(value: Any, least: int, place: str, issues: Issues) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= MAX_KNOTS:
        issues.expected(place, f"a whole number from {least} to {MAX_KNOTS}", value)
        return None
    return value
