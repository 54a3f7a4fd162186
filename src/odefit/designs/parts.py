"""The parts of a design, as plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from odefit.assessment.parts import Direction
from odefit.common.arrays import Array


class Criterion(StrEnum):
    """The criteria of a design, as users write them.

    D is the volume of the confidence region, A the mean of the variances, and E the longest axis.
    The modified E is the ratio of the longest and the shortest axis. Ds and c are D and A of chosen
    quantities. T and that of Buzzi-Ferraris discriminate between two models.
    """

    D = "D"
    A = "A"
    E = "E"
    MODIFIED_E = "modified-E"
    DS = "Ds"
    C = "c"
    T = "T"
    BUZZI_FERRARIS = "Buzzi-Ferraris"

    @property
    def of_models(self) -> bool:
        """True if the criterion discriminates between two models."""
        return self in (Criterion.T, Criterion.BUZZI_FERRARIS)

    @property
    def of_quantities(self) -> bool:
        """True if the criterion needs chosen quantities."""
        return self in (Criterion.DS, Criterion.C)


class Region(StrEnum):
    """The values of the unknowns over which a design is good on average."""

    ESTIMATE = "estimate"
    PROFILE = "profile"
    BOOTSTRAP = "bootstrap"
    POSTERIOR = "posterior"
    GIVEN = "given values"


@dataclass(frozen=True)
class Run:
    """A run of the system: an experiment of the problem, and its new values.

    Attributes
    ----------
    experiment
        The experiment that gives all other conditions.
    settings
        The values of the factors, such as ``{"A": 2.5}``; pieces and doses have their time in the
        name, as in ``"u@4"``.
    """

    experiment: str
    settings: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Measurement:
    """A measurement in a design.

    Attributes
    ----------
    run
        The number of its run, from 0.
    observables
        The measured observables; several if they are measured together.
    time
        The time.
    count
        The number of replicates.
    date
        The date of the time by ISO 8601; empty if the data have no dates.
    """

    run: int
    observables: tuple[str, ...]
    time: float
    count: int = 1
    date: str = ""


@dataclass(frozen=True)
class SupportPoint:
    """A point of a continuous design: a measurement and its share of the effort.

    ``measurement.count`` has no meaning here.
    """

    measurement: Measurement
    weight: float


@dataclass(frozen=True)
class ContinuousDesign:
    """The best design of measurements that may be divided arbitrarily, and its check.

    Attributes
    ----------
    points
        The points with their weights, which sum to 1.
    runs
        The runs of these points.
    value
        The criterion as an information, in logarithms: the larger, the better.
    excess
        The excess of the largest directional derivative of the criterion over its mean in the
        design, relative to the criterion. It is zero for an optimal design (J. Kiefer and J.
        Wolfowitz, The equivalence of two extremum problems, 1960).
    checked
        The number of candidates among which the largest derivative was sought.
    """

    points: tuple[SupportPoint, ...]
    runs: tuple[Run, ...]
    value: float
    excess: float
    checked: int

    @property
    def efficiency(self) -> float:
        """A lower bound of the efficiency: no design has 1/efficiency times the information."""
        return 1.0 / (1.0 + max(self.excess, 0.0))


@dataclass(frozen=True)
class PlannedInterval:
    """The interval of a quantity without and with the measurements of a design.

    Attributes
    ----------
    key
        The unknown or the quantity.
    value
        Its value at the unknowns for which the design was made.
    before, after
        The intervals without and with the measurements; infinite if nothing determines the
        quantity, NaN if the size of the noise is unknown.
    error_before, error_after
        The standard errors.
    profiled
        Whether `before` comes from a profile.
    """

    key: str
    value: float
    before: tuple[float, float]
    after: tuple[float, float]
    error_before: float
    error_after: float
    profiled: bool = False


@dataclass(frozen=True, eq=False)
class InformationCurve:
    """The derivative of the criterion by a measurement of an observable, as a function of time.

    Attributes
    ----------
    run
        The run of the measurement.
    observables
        The observable; several if they are measured together.
    times
        Times, shape (k,).
    values
        The derivatives there, shape (k,), relative to the mean over the continuous design: none
        exceeds 1, and measured times have 1. They are NaN where a measurement is impossible.
    """

    run: Run
    observables: tuple[str, ...]
    times: Array
    values: Array


@dataclass(frozen=True)
class Remedy:
    """A quantity whose additional measurement would determine unknowns.

    Attributes
    ----------
    name
        The quantity: a state that is not measured.
    determined
        The lost unknowns that it would determine.
    remaining
        Those that it would not.
    """

    name: str
    determined: tuple[str, ...]
    remaining: tuple[str, ...]


class Excluded(StrEnum):
    """The reasons why candidates cannot be measured."""

    NO_SPREAD = "no spread"
    NOT_POSITIVE = "not positive"
    NOT_FINITE = "not finite"
    FAILED = "failed"


@dataclass(frozen=True)
class Exclusion:
    """Candidates omitted for one reason.

    Attributes
    ----------
    reason
        The reason.
    name
        The observable, or the experiment whose integration failed.
    count
        The number of candidates.
    detail
        The reason of a failed integration; else empty.
    """

    reason: Excluded
    name: str
    count: int
    detail: str = ""


@dataclass(frozen=True, eq=False)
class Rivalry:
    """Two models that a design discriminates between.

    Attributes
    ----------
    models
        Their names; the first model is assumed to be right.
    distance
        The distance of the closest curves of the second model from those of the first, in standard
        deviations of the noise: the square root of the smallest sum of squares.
    reverse
        The same distance of the first model from the second, if the second is right; NaN if
        unknown.
    predictions
        The prediction of each model for each measurement, in the order of measurements and
        observables.
    closest
        The unknowns of the second model that are closest to the first, by name.
    curves
        Curves of both models, and of the second at its closest, by run and observable.
    """

    models: tuple[str, str]
    distance: float
    reverse: float
    predictions: tuple[tuple[float, float], ...]
    closest: Mapping[str, float]
    curves: tuple[RivalCurves, ...] = ()


@dataclass(frozen=True, eq=False)
class RivalCurves:
    """The curves of an observable in a run by two models, shape (k,).

    `closest` is that of the second model at its closest to the first.
    """

    run: Run
    observable: str
    times: Array
    first: Array
    second: Array
    closest: Array


@dataclass(frozen=True, eq=False)
class DesignData:
    """A design: the measurements to make, and the information expected from them.

    Attributes
    ----------
    problem
        The name of the problem.
    time_unit
        The unit of the times; it may be empty.
    criterion
        The criterion.
    quantities
        The quantities of the criterion, all unknowns if none were chosen.
    region
        The values of the unknowns over which the design is good on average.
    samples
        The number of these values.
    level
        The level of the intervals.
    existing
        The number of existing measurements that are included.
    runs
        The runs of the design.
    measurements
        The measurements, in the order of runs, observables and times.
    value
        The criterion as an information, in logarithms.
    efficiency
        The information of the design relative to that of the best continuous one; NaN without.
    continuous
        The continuous design, if there is one.
    intervals
        The intervals without and with the measurements.
    directions
        The directions that are undetermined without the measurements.
    curves
        The derivative of the criterion as a function of time.
    lost
        Unknowns that the candidates cannot determine, however many of them are measured.
    combinations
        The functions of `lost` that would nevertheless be determined.
    remedies
        Further quantities whose measurement would determine some of `lost`.
    excluded
        The omitted candidates, with reasons.
    noise_known
        Whether the size of the noise is known, so that intervals have a length.
    cost
        The cost of the measurements.
    seed
        The seed of the search.
    rivalry
        The two models of a design that discriminates.
    """

    problem: str
    time_unit: str
    criterion: Criterion
    quantities: tuple[str, ...]
    region: Region
    samples: int
    level: float
    existing: int
    runs: tuple[Run, ...]
    measurements: tuple[Measurement, ...]
    value: float
    efficiency: float
    continuous: ContinuousDesign | None = None
    intervals: tuple[PlannedInterval, ...] = ()
    directions: tuple[Direction, ...] = ()
    curves: tuple[InformationCurve, ...] = ()
    lost: tuple[str, ...] = ()
    combinations: tuple[str, ...] = ()
    remedies: tuple[Remedy, ...] = ()
    excluded: tuple[Exclusion, ...] = ()
    noise_known: bool = True
    cost: float = 0.0
    seed: int = 0
    rivalry: Rivalry | None = None

    @property
    def found(self) -> bool:
        """True if there is a design."""
        return bool(self.measurements)

    @property
    def times(self) -> list[float] | dict[str, list[float]]:
        """The times, increasing, repeated for replicates; by observable if there are several."""
        by_observable: dict[str, list[float]] = {}
        for m in self.measurements:
            for name in m.observables:
                by_observable.setdefault(name, []).extend([m.time] * m.count)
        sorted_times = {name: sorted(times) for name, times in by_observable.items()}
        return next(iter(sorted_times.values())) if len(sorted_times) == 1 else sorted_times
