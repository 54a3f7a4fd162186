"""Parameters and unknowns: bounds, guess, scale and prior of a quantity to be estimated."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, cast, get_args

from odefit.common.errors import counted, one_of, shown
from odefit.problem.inputs.issues import Issues, finite_number
from odefit.problem.priors import Prior, as_prior

Scale = Literal["linear", "log10"]


@dataclass(frozen=True)
class Parameter:
    """A quantity to be estimated: a parameter of the model or an unknown initial value.

    All values are in natural units; `scale` only affects the optimiser's coordinate.

    Attributes
    ----------
    lower, upper
        Bounds; infinite without one.
    guess
        The start value.
    scale
        ``"linear"`` or ``"log10"``; None lets the method choose.
    fixed
        A fixed value; the quantity is then not estimated.
    per_experiment
        One value for each experiment instead of one for all.
    unit
        Its unit, for labels.
    prior
        The knowledge of it before the data, as a density.
    """

    lower: float = -math.inf
    upper: float = math.inf
    guess: float | None = None
    scale: Scale | None = None
    fixed: float | None = None
    per_experiment: bool = False
    unit: str | None = None
    prior: Prior | None = None

    def within_prior(self) -> Parameter:
        """Return a copy whose bounds exclude values of zero prior density."""
        if self.prior is None:
            return self
        low, high = self.prior.support
        if low <= self.lower and self.upper <= high:
            return self
        return replace(self, lower=max(low, self.lower), upper=min(high, self.upper))


PARAMETER_FIELDS = ("lower", "upper", "guess", "scale", "fixed", "per_experiment", "unit", "prior")

MEANT_FIELDS: Mapping[str, str] = {
    **dict.fromkeys(
        ("init", "initial", "initial_guess", "initial_value", "start", "start_value"), "guess"
    ),
    **dict.fromkeys(("x0", "p0", "value", "val", "nominal"), "guess"),
    **dict.fromkeys(("min", "minimum", "lb", "low", "lower_bound", "lowerbound"), "lower"),
    **dict.fromkeys(("max", "maximum", "ub", "high", "upper_bound", "upperbound"), "upper"),
    **dict.fromkeys(("constant", "hold", "frozen", "vary", "estimate"), "fixed = VALUE"),
    **dict.fromkeys(("free", "fit", "optimise", "optimize", "estimated"), "fixed = VALUE"),
    **dict.fromkeys(
        ("per_subject", "per_individual", "per_id", "per_run", "individual", "local", "subject"),
        "per_experiment = true",
    ),
    **dict.fromkeys(("bounds", "range", "limits"), "lower and upper"),
    **dict.fromkeys(("log", "log10", "transform"), 'scale = "log10"'),
    **dict.fromkeys(("units",), "unit"),
    **dict.fromkeys(
        ("expr", "expression", "formula", "equation"),
        "the formula in [definitions] (definitions=) under this name, and no parameter",
    ),
    **dict.fromkeys(("sd", "mean", "priors", "distribution"), "prior = { mean = ..., sd = ... }"),
}
"""Names that other programs use for fields of a parameter, with the names here."""


def as_parameter(
    value: Parameter | Mapping[str, Any] | Sequence[float | None] | float,
    place: str,
    issues: Issues,
) -> Parameter:
    """Return `value` as a :class:`Parameter`; a number is a fixed value, a pair gives bounds."""
    if isinstance(value, Parameter):
        raw: dict[str, Any] = {name: getattr(value, name) for name in PARAMETER_FIELDS}
    elif isinstance(value, Mapping):
        raw = _without_switches(dict(value), place, issues)
        for key in [k for k in raw if k not in PARAMETER_FIELDS]:
            meant = MEANT_FIELDS.get(str(key).strip().lower().replace("-", "_").replace(" ", "_"))
            hint = f"; write {meant}" if meant else one_of(str(key), PARAMETER_FIELDS)
            issues.error(f"{place}.{key}", f"unknown field{hint}")
            del raw[key]
    elif is_pair(value):
        raw = _bounds(cast("Sequence[float | None]", value), place, issues)
    else:
        raw = {"fixed": value}
        if finite_number(value, place, issues) is None:
            return Parameter()
    typed = {
        key: checked
        for key, field in raw.items()
        if field is not None
        and (checked := _field(key, field, f"{place}.{key}", issues)) is not None
    }
    return _consistent(Parameter(**typed), place, issues)


SWITCHES = {
    **dict.fromkeys(("vary", "estimate", "free", "fit", "optimise", "optimize", "estimated"), True),
    **dict.fromkeys(("fixed", "constant", "hold", "frozen", "known"), False),
}
"""Fields of other programs that say by true or false whether a parameter is estimated."""


def _without_switches(raw: dict[str, Any], place: str, issues: Issues) -> dict[str, Any]:
    """Return a table without true or false for estimated or fixed, with the right way reported."""
    for key, estimated in [(k, SWITCHES.get(str(k).strip().lower())) for k in raw]:
        if estimated is None or not isinstance(raw[key], bool):
            continue
        value = next((v for k, v in raw.items() if MEANT_FIELDS.get(str(k), k) == "guess"), "VALUE")
        written = f"{value:g}" if isinstance(value, (int, float)) else "VALUE"
        if raw[key] == estimated:
            wish = "leave it out, since a parameter without a fixed value is estimated"
            left = {k: v for k, v in raw.items() if k != key}
        else:
            wish = f"write fixed = {written}, without a guess"
            left = {
                k: v
                for k, v in raw.items()
                if k != key and MEANT_FIELDS.get(str(k), k) not in {"guess", "fixed = VALUE"}
            }
        issues.error(f"{place}.{key}", f"expected a number, got {shown(raw[key])}; {wish}")
        return _without_switches(left, place, issues)
    return raw


def is_pair(value: Any) -> bool:
    """Return whether a value is a list or tuple, which means a pair of bounds."""
    listed = isinstance(value, Sequence) or getattr(value, "ndim", 0) == 1
    return listed and not isinstance(value, (str, bytes))


def _bounds(value: Sequence[float | None], place: str, issues: Issues) -> dict[str, Any]:
    """Return the fields given by a pair of bounds."""
    ends = list(value)
    if len(ends) == 2:
        return {"lower": ends[0], "upper": ends[1]}
    issues.error(
        place,
        f"expected two bounds such as [0.0, 1.0], got {counted(len(ends), 'value')}; "
        "a guess belongs in a table: { lower = 0.0, upper = 1.0, guess = 0.5 }",
    )
    return {}


def _field(key: str, value: Any, place: str, issues: Issues) -> Any:
    """Return the value of one field, or None with the reason noted."""
    if key in {"lower", "upper", "guess", "fixed"}:
        return finite_number(value, place, issues, infinite=key in {"lower", "upper"})
    if key == "prior":
        return as_prior(value, place, issues)
    right, expected = {
        "scale": (isinstance(value, str) and value in get_args(Scale), '"linear" or "log10"'),
        "per_experiment": (isinstance(value, bool), "true or false"),
        "unit": (isinstance(value, str), 'a text such as "1/min"'),
    }[key]
    if not right:
        issues.expected(place, expected, value)
    return value if right else None


def _consistent(p: Parameter, place: str, issues: Issues) -> Parameter:
    """Report bounds, guess and scale that contradict each other."""
    if p.lower == math.inf or p.upper == -math.inf:
        issues.error(place, f"no number is between lower = {p.lower:g} and upper = {p.upper:g}")
        return p
    if p.lower > p.upper:
        issues.error(
            place,
            f"the bounds cross: lower = {p.lower:g} is above upper = {p.upper:g}; "
            "exchange them or correct one",
        )
        return p
    if p.fixed is not None:
        if not p.lower <= p.fixed <= p.upper:
            issues.warn(
                place, f"fixed = {p.fixed:g} is outside the bounds [{p.lower:g}, {p.upper:g}]"
            )
        return p
    if p.lower == p.upper:
        p = replace(p, fixed=p.lower)
    if p.guess is not None and not p.lower <= p.guess <= p.upper:
        issues.error(
            place,
            f"guess = {p.guess:g} is outside the bounds [{p.lower:g}, {p.upper:g}]; "
            "move the guess or the bounds",
        )
    elif p.scale == "log10":
        _check_log_scale(p, place, issues)
    if p.prior is not None:
        _check_support(p, p.prior, place, issues)
    return p


def _check_support(p: Parameter, prior: Prior, place: str, issues: Issues) -> None:
    low, high = prior.support
    if not max(low, p.lower) < min(high, p.upper):
        issues.error(
            f"{place}.prior",
            f"its density is zero outside [{low:g}, {high:g}], and so between the bounds lower = "
            f"{p.lower:g} and upper = {p.upper:g}; move the bounds or change the prior",
        )
    elif p.guess is not None and p.lower <= p.guess <= p.upper and not low <= p.guess <= high:
        issues.error(
            place,
            f"the prior's density is zero at guess = {p.guess:g}; it is positive between {low:g} "
            f"and {high:g}",
        )


def _check_log_scale(p: Parameter, place: str, issues: Issues) -> None:
    if p.upper <= 0:
        needed = f"range, but upper = {p.upper:g};"
    elif math.isfinite(p.lower) and p.lower <= 0:
        needed = f"lower bound, got {p.lower:g}; give one such as 1e-6, leave it out, or"
    elif p.guess is not None and p.guess <= 0:
        needed = f"guess, got {p.guess:g}; give another, or"
    else:
        return
    issues.error(place, f'scale = "log10" needs a positive {needed} use scale = "linear"')


@dataclass(frozen=True)
class Unknown:
    """One scalar of the vector of unknowns.

    Attributes
    ----------
    name
        Name of the parameter, of the state (for an initial value), or ``<observable>_sd``.
    kind
        Its kind: a parameter of the model, an initial value or a noise parameter.
    experiment
        The experiment it belongs to, if each has its own value.
    key
        Its name in results: ``name``, or ``name[experiment]``.
    parameter
        Bounds, guess, scale and prior.
    """

    name: str
    kind: Literal["parameter", "initial", "noise"]
    experiment: str | None
    key: str
    parameter: Parameter
