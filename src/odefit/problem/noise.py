"""The noise model of an observable."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, get_args

from odefit.common.errors import one_of, shown
from odefit.expressions.expressions import Expression
from odefit.problem.inputs.issues import LARGEST, Issues, finite_number
from odefit.problem.noise_distributions.distribution import NoiseDistribution
from odefit.problem.noise_distributions.registry import (
    DISTRIBUTIONS,
    LOSSES,
    Distribution,
    Loss,
    Row,
    Transform,
    distribution_of,
)
from odefit.problem.noise_habits import is_word_of_others, noise_meant

Correlation = Literal["ou"]
"""Kinds of correlation between successive residuals."""

WHITE_GAPS = 8.0
"""Largest ratio of the shortest gap to an estimated correlation time: values at such a distance are
independent, since their correlation is 3e-4."""

WALK_SPANS = 100.0
"""Largest ratio of an estimated correlation time to the longest series."""

MAX_WRITTEN = 60
"""Greatest length of a text given for a noise that a message repeats as a standard deviation."""


@dataclass(frozen=True)
class Noise:
    """Measurement noise of one observable; normal (Gaussian) by default.

    Attributes
    ----------
    sd
        Standard deviation: a number, an expression in parameters and observables, or
        ``"estimate"``; None for plain least squares. A data column ``<observable>_sd`` overrides
        it. With a `loss`, it is the scale of values that are not outliers.
    relative
        Standard deviation as a fraction of the measured value, instead of `sd`.
    transform
        Residuals are taken of the logarithm, and `sd` is on that scale.
    distribution
        ``"normal"``; ``"log-normal"``, the same as ``transform = "log"``; ``"laplace"``;
        ``"poisson"`` and ``"negative-binomial"`` for counts, whose mean is the observable.
    dispersion
        The dispersion a of negative binomial counts, whose variance is m + a m^2 for the mean m:
        a number, an expression in parameters and observables, or ``"estimate"``.
    loss
        A loss for data with outliers: ``"huber"`` or ``"student"`` (Student's t distribution).
    threshold
        Where Huber's loss becomes linear, in units of sd; None for 1.345.
    degrees
        Degrees of freedom of Student's t distribution; None for 4.
    lower_limit, upper_limit
        Limits of quantification: values at or beyond them are censored: they are only known to be
        at most, or at least, the limit. A data column ``<observable>_cens`` censors single values.
    correlation
        ``"ou"``: noise that is correlated in time, an Ornstein-Uhlenbeck process of standard
        deviation sd within each experiment. Two of its values at a distance d in time have the
        correlation exp(-d / correlation_time). None for independent values.
    correlation_time
        The correlation time, in units of time: a number, an expression in parameters and constants,
        or ``"estimate"``, the default if a `correlation` is given.
    """

    sd: float | Expression | Literal["estimate"] | None = None
    relative: float | None = None
    transform: Transform | None = None
    distribution: Distribution | None = None
    dispersion: float | Expression | Literal["estimate"] | None = None
    loss: Loss | None = None
    threshold: float | None = None
    degrees: float | None = None
    lower_limit: float | None = None
    upper_limit: float | None = None
    correlation: Correlation | None = None
    correlation_time: float | Expression | Literal["estimate"] | None = None

    @property
    def law(self) -> NoiseDistribution:
        """The distribution of the measurements, on the scale of the transform."""
        settings = (("threshold", self.threshold), ("degrees", self.degrees))
        parameters = tuple((name, value) for name, value in settings if value is not None)
        return distribution_of(self.distribution, self.loss, parameters)

    @property
    def choice(self) -> str:
        """The field that chooses the distribution, as written in a problem file."""
        chosen = "distribution" if self.loss is None else "loss"
        return f'{chosen} = "{getattr(self, chosen) or "normal"}"'

    @property
    def counts(self) -> bool:
        """True if the measurements are counts."""
        return self.law.counts

    @property
    def gaussian(self) -> bool:
        """True if measured residuals are normal on the scale of the transform."""
        return self.law.normal

    @property
    def spread(self) -> float | Expression | Literal["estimate"] | None:
        """The field that gives the scatter: `dispersion` for counts, `sd` for others."""
        return self.dispersion if self.law.spread_field == "dispersion" else self.sd

    @property
    def known(self) -> bool:
        """True if the problem gives or estimates the size of the noise."""
        return not self.law.located or self.sd is not None or self.relative is not None

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """The expressions in it: of the spread and of the correlation time."""
        values = (self.spread, self.correlation_time)
        return tuple(value for value in values if isinstance(value, Expression))

    def correlation_unknown(self, observable: str) -> str:
        """Return the name of the estimated correlation time of `observable`."""
        return f"{observable}_correlation_time"

    def unknown(self, observable: str) -> str:
        """Return the name of the estimated noise parameter of `observable`."""
        return f"{observable}_{self.law.spread_field}"


def is_correlation_time(noise: Mapping[str, Noise], name: str) -> bool:
    """Return whether a name is the estimated correlation time of one of the observables."""
    return any(
        n.correlation is not None and n.correlation_unknown(o) == name for o, n in noise.items()
    )


NOISE_FIELDS = tuple(field.name for field in fields(Noise))


def as_noise(value: Noise | Mapping[str, Any], place: str, issues: Issues) -> Noise:
    """Return `value` as a :class:`Noise` with a parsed `sd`; mistakes go to `issues`."""
    if isinstance(value, Noise):
        raw: dict[str, Any] = {name: getattr(value, name) for name in NOISE_FIELDS}
    elif isinstance(value, Mapping):
        raw = dict(value)
        if _report_foreign(raw, place, issues):
            return Noise(sd=1.0)  # so that nothing else is reported as missing
        for key in [k for k in raw if k not in NOISE_FIELDS]:
            issues.error(f"{place}.{key}", f"unknown field{one_of(str(key), NOISE_FIELDS)}")
    else:
        issues.error(place, f"expected a table such as {_meant(value)}, got {shown(value)}")
        return Noise()
    fields_given: dict[str, Any] = {}
    for names, read in (
        (("sd", "dispersion", "correlation_time"), _spread),
        (("relative",), _fraction),
        (("threshold", "degrees"), _positive),
        (("lower_limit", "upper_limit"), finite_number),
    ):
        for name in names:
            if raw.get(name) is not None:
                fields_given[name] = read(raw[name], f"{place}.{name}", issues)
    for name, choices in _CHOICES.items():
        choice = raw.get(name)
        if choice in choices:
            fields_given[name] = choice
        elif choice is not None:
            others = ", ".join(f'"{c}"' for c in choices[:-1])
            expected = f'{others} or "{choices[-1]}"' if others else f'"{choices[-1]}"'
            issues.error(f"{place}.{name}", f"expected {expected}, got {shown(choice)}")
    if "correlation" in fields_given and raw.get("correlation_time") is None:
        fields_given["correlation_time"] = "estimate"
    noise = Noise(**fields_given)
    _check_together(noise, place, issues)
    _check_correlation(noise, place, issues)
    return replace(noise, transform=noise.transform or _row(noise).transform)


def _report_foreign(raw: Mapping[str, Any], place: str, issues: Issues) -> bool:
    """Report fields and values in the words of other programs, with the whole right table."""
    foreign = [k for k, v in raw.items() if k not in NOISE_FIELDS or is_word_of_others(k, v, raw)]
    if not foreign:
        return False
    meant = noise_meant(raw, NOISE_FIELDS, place.removeprefix("[noise] "))
    if meant is None:
        return False
    got = f"got {shown(raw[foreign[0]])}" if foreign[0] in NOISE_FIELDS else "unknown field"
    issues.error(f"{place}.{foreign[0]}", f"{got}; {meant}")
    return True


def noise_hint(value: Any, observables: Iterable[str], *, python: bool = False) -> str:
    """Return the remedy for a single word or number given as the noise of everything."""
    name = next(iter(observables), "y")
    if python:
        field, written = _field_of(value)
        return f'got {shown(value)}; write noise={{"{name}": {{"{field}": {written}}}}}'
    return f"got {shown(value)}; write [noise] and below it {name} = {_meant(value)}"


def _meant(value: Any) -> str:
    field, written = _field_of(value)
    return f"{{ {field} = {written} }}"


def _field_of(value: Any) -> tuple[str, str]:
    """Return the field of a noise meant by a single value, and the value as written."""
    if isinstance(value, str):
        word = value.strip().lower().replace(" ", "-").replace("_", "-")
        word = {"gaussian": "normal", "lognormal": "log-normal", "studentt": "student"}.get(
            word, word
        )
        for name, choices in _CHOICES.items():
            if word in choices:
                return name, f'"{word}"'
        if value.strip() == "estimate" or (value.isprintable() and len(value) < MAX_WRITTEN):
            return "sd", f'"{value.strip()}"'
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return "sd", f"{value:g}" if number and 0 < value < LARGEST else "0.5"


_CHOICES: dict[str, tuple[str, ...]] = {
    "transform": get_args(Transform),
    "distribution": tuple(DISTRIBUTIONS),
    "loss": tuple(LOSSES),
    "correlation": get_args(Correlation),
}


def _row(noise: Noise) -> Row:
    return DISTRIBUTIONS[noise.distribution or "normal"]


def _check_together(noise: Noise, place: str, issues: Issues) -> None:
    """Report fields that contradict each other."""
    chosen, row = f'distribution = "{noise.distribution}"', _row(noise)
    if noise.relative is not None and noise.sd is not None:
        both = noise_meant(
            {"sd": noise.sd, "relative": noise.relative},
            NOISE_FIELDS,
            place.removeprefix("[noise] "),
        )
        issues.error(
            place, f"sd and relative contradict each other; give one of them, or for both {both}"
        )
    if noise.relative is not None and noise.relative >= 1:
        issues.warn(
            f"{place}.relative",
            f"{noise.relative:g} means a standard deviation of {100 * noise.relative:g} % of the "
            f"value; for {noise.relative:g} % write {noise.relative / 100:g}",
        )
    transform = noise.transform or row.transform
    if noise.relative is not None and transform is not None:
        issues.error(
            place,
            f'relative noise and transform = "{transform}" contradict each other; on that scale '
            "give sd",
        )
    if row.transform is not None and transform != row.transform:
        issues.error(
            place,
            f'{chosen} takes natural logarithms; leave transform = "{transform}" out, '
            f'or give transform = "{transform}" without a distribution',
        )
    if not row.distribution.located:
        _check_without_location(noise, place, issues)
    elif noise.dispersion is not None:
        others = " or ".join(
            f'distribution = "{name}"' for name, other in DISTRIBUTIONS.items() if _dispersed(other)
        )
        issues.error(f"{place}.dispersion", f"belongs to {others}; give that, or sd instead")
    elif noise.loss is not None and not row.distribution.normal:
        issues.error(
            place,
            f"loss and {chosen} contradict each other; a loss is a distribution of "
            "its own, so give one of them",
        )
    for loss, other in LOSSES.items():
        for name in other.parameters:
            if getattr(noise, name) is not None and noise.loss != loss:
                issues.error(f"{place}.{name}", f'belongs to loss = "{loss}"; give that as well')
    _check_limits(noise, place, issues)


def _dispersed(row: Row) -> bool:
    return row.distribution.has_spread and row.distribution.spread_field == "dispersion"


def _check_without_location(noise: Noise, place: str, issues: Issues) -> None:
    """Report fields that do not apply to a distribution without location and scale."""
    chosen, row = f'distribution = "{noise.distribution}"', _row(noise)
    for name in ("sd", "relative", "transform", "loss", "lower_limit", "upper_limit"):
        if getattr(noise, name) is not None:
            issues.error(
                f"{place}.{name}",
                f"contradicts {chosen}, whose scatter follows from its mean; remove one of them",
            )
    if not row.distribution.has_spread and noise.dispersion is not None:
        issues.error(
            f"{place}.dispersion",
            f'contradicts {chosen}, which has none; use distribution = "negative-binomial"',
        )
    missing = row.distribution.has_spread and noise.dispersion is None
    if missing and not issues.has_errors(f"{place}.dispersion"):
        issues.error(place, f'{chosen} needs a dispersion, e.g. dispersion = "estimate"')


def _check_correlation(noise: Noise, place: str, issues: Issues) -> None:
    """Report noise that cannot be correlated, and a correlation time without correlation."""
    if noise.correlation is None:
        if noise.correlation_time is not None:
            issues.error(
                f"{place}.correlation_time", 'belongs to correlation = "ou"; give that as well'
            )
        return
    chosen = f'correlation = "{noise.correlation}"'
    if not noise.gaussian:
        issues.error(
            f"{place}.correlation",
            f"correlated noise is normal or log-normal, which {noise.choice} is not; remove "
            "one of them",
        )
    elif noise.lower_limit is not None or noise.upper_limit is not None:
        issues.error(
            f"{place}.correlation",
            f"{chosen} and limits of quantification contradict each other, as censored values "
            "have no residual on which the next one depends; remove one of them",
        )


def _check_limits(noise: Noise, place: str, issues: Issues) -> None:
    low, high = noise.lower_limit, noise.upper_limit
    if low is None and high is None:
        return
    if low is not None and high is not None and not low < high:
        issues.error(place, f"lower_limit = {low:g} is not below upper_limit = {high:g}")
    if not noise.gaussian and noise.law.located:
        chosen = noise.loss or noise.distribution
        issues.error(
            place,
            f'censored values need normal or log-normal noise, which "{chosen}" is not; '
            "remove the limits or that",
        )
    if (noise.transform or _row(noise).transform) is not None:
        for name, limit in (("lower_limit", low), ("upper_limit", high)):
            if limit is not None and limit <= 0:
                issues.error(f"{place}.{name}", f"must be positive to have a logarithm: {limit:g}")


def _spread(
    value: Any, place: str, issues: Issues
) -> float | Expression | Literal["estimate"] | None:
    if isinstance(value, str) and value.strip() == "estimate":
        return "estimate"
    if not isinstance(value, (str, Expression)):
        return _positive(value, place, issues)
    expression = issues.expression(place, value)
    if expression is None or expression.constant is None:
        return expression
    return _positive(expression.constant, place, issues)


def _fraction(value: Any, place: str, issues: Issues) -> float | None:
    """Return a known fraction; an unknown fraction is part of a standard deviation."""
    if not isinstance(value, str):
        return _positive(value, place, issues)
    observable = place.removeprefix("[noise] ").removesuffix(".relative")
    issues.error(
        place,
        f"expected a number such as 0.05, got {shown(value)}; for a fraction that is to be "
        f'estimated write sd = "f*{observable}" instead, with '
        "f = { lower = 0.001, upper = 1 } in [parameters]",
    )
    return None


def _positive(value: Any, place: str, issues: Issues) -> float | None:
    number = finite_number(value, place, issues)
    if number is not None and number <= 0:
        issues.error(place, f"must be positive, got {number:g}")
        return None
    if number is not None and number < 1.0 / LARGEST:
        issues.error(
            place,
            f"{number:g} is too small, as its square is zero to rounding; expected at least "
            f"{1.0 / LARGEST:g}: correct it, or choose another unit",
        )
        return None
    return number
