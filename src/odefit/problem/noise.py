"""The noise model of an observable."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from odefit.problem.errors import one_of, shown
from odefit.problem.expressions import Expression
from odefit.problem.issues import Issues
from odefit.problem.parameters import finite_number

Transform = Literal["log", "log10"]


@dataclass(frozen=True)
class Noise:
    """Gaussian measurement noise of one observable.

    Attributes
    ----------
    sd
        Standard deviation: a number, an expression in parameters and observables, or
        ``"estimate"``; None for plain least squares. A data column ``<observable>_sd``
        overrides it.
    relative
        Standard deviation as a fraction of the measured value, instead of `sd`.
    transform
        Residuals are taken of the logarithm, and `sd` is on that scale.
    """

    sd: float | Expression | Literal["estimate"] | None = None
    relative: float | None = None
    transform: Transform | None = None


NOISE_FIELDS = ("sd", "relative", "transform")


def as_noise(value: Noise | Mapping[str, Any], place: str, issues: Issues) -> Noise:
    """Return `value` as a :class:`Noise` with a parsed `sd`; mistakes go to `issues`."""
    if isinstance(value, Noise):
        given: dict[str, Any] = {name: getattr(value, name) for name in NOISE_FIELDS}
    elif isinstance(value, Mapping):
        given = dict(value)
        for key in [k for k in given if k not in NOISE_FIELDS]:
            issues.error(f"{place}.{key}", f"unknown field{one_of(str(key), NOISE_FIELDS)}")
    else:
        issues.error(place, f"expected a table such as {{ sd = 0.5 }}, got {shown(value)}")
        return Noise()
    noise = Noise()
    if given.get("sd") is not None:
        noise = replace(noise, sd=_sd(given["sd"], f"{place}.sd", issues))
    if given.get("relative") is not None:
        relative = _positive(given["relative"], f"{place}.relative", issues)
        noise = replace(noise, relative=relative)
    transform = given.get("transform")
    if transform in get_args(Transform):
        noise = replace(noise, transform=transform)
    elif transform is not None:
        issues.error(f"{place}.transform", f'expected "log" or "log10", got {shown(transform)}')
    if noise.relative is not None and noise.sd is not None:
        issues.error(place, "sd and relative contradict each other; give one of them")
    elif noise.relative is not None and noise.transform is not None:
        issues.error(
            place,
            f'relative noise and transform = "{noise.transform}" contradict each other; '
            "on that scale give sd",
        )
    return noise


def _sd(value: Any, place: str, issues: Issues) -> float | Expression | Literal["estimate"] | None:
    if isinstance(value, str) and value.strip() == "estimate":
        return "estimate"
    if not isinstance(value, (str, Expression)):
        return _positive(value, place, issues)
    expression = issues.expression(place, value)
    if expression is None or expression.constant is None:
        return expression
    return _positive(expression.constant, place, issues)


def _positive(value: Any, place: str, issues: Issues) -> float | None:
    number = finite_number(value, place, issues)
    if number is not None and number <= 0:
        issues.error(place, f"must be positive, got {number:g}")
        return None
    return number
