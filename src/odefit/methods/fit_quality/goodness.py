"""Goodness of fit: whether the residuals of the model look like noise.

Four tests are applied to the residuals. Chi-square tests whether they are as large as the given
noise. Their autocorrelation in the order of time tests for patterns, for each observable of each
experiment and for each observable in all experiments. The statistic of Jarque and Bera tests for a
normal distribution (skewness and heavy tails). The largest studentised residual tests for outliers.

Residuals of a correct model are not independent, since the unknowns were fitted to the data: they
are (I - H) e with the leverages on the diagonal of H. All statistics are therefore compared with
those of simulated noise after the same projection, which is exact for linear models with normal
noise. The same simulations show how small the smallest of all p-values is by chance, so that many
tests do not make a bad verdict more probable (P. H. Westfall and S. S. Young, Resampling-Based
Multiple Testing, 1993). They do not depend on the user's seed and are the same in every run. They
stop early if the first of them leave no doubt that the verdict is good (J. Besag and P. Clifford,
Sequential Monte Carlo p-values, Biometrika 78, 1991).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from odefit.common.arrays import Array, IntArray
from odefit.common.effects import column_space
from odefit.methods.fit_quality.goodness_verdict import (
    Check,
    CheckKind,
    FarResidual,
    Goodness,
    goodness_sentence,
)
from odefit.methods.fit_quality.limits import (
    MIN_NORMAL,
    MIN_OUTLIERS,
    MIN_PATTERN,
    NEGLIGIBLE_RESIDUALS,
    SIGNIFICANCE,
)
from odefit.methods.local.cost_tolerance import CostTolerance, noiseless_rows
from odefit.methods.local.scaling import bounds_touched
from odefit.problem.noise import Noise
from odefit.problem.noise_distributions.registry import transformed
from odefit.problem.variants.sizes import sizes_at
from odefit.simulation import Evaluation, Failure, ForwardMap
from odefit.simulation.residuals.noise import density_of
from odefit.simulation.trajectories.trajectory import Trajectory

MAX_DRAWS, MIN_DRAWS = 9999, 499
"""Largest and smallest number of simulated sets of residuals."""

FIRST_DRAWS, CLEARLY_GOOD = 299, 0.25
"""Number of sets after which the simulations stop if the p-value exceeds the second number. Its
standard error is then below 0.03, and fifteen standard errors separate it from `SIGNIFICANCE`."""

PATTERN_WEIGHT = 2.0
"""Weight of the tests for patterns relative to others: wrong models and correlated noise show in
patterns first."""

FEW = 16.0
"""Number of values up to which second neighbours have half the weight of neighbours; for n values
above it, half of this number over n. Slow waves in few values show in both, correlated noise in
many values shows in neighbours (J. Durbin and G. S. Watson, Biometrika 37, 1950, 409-428)."""

SEED = 0
"""Seed of the simulations."""

MAX_NUMBERS = 2_000_000
"""Largest total number of simulated residuals, which limits the number of sets for large data."""

NUMBERS_AT_A_TIME = 2**17
"""Number of simulated residuals that are processed together. A megabyte fits into the processor's
cache, which takes 0.6 times as long as all at once."""

INTEGRATION_ERRORS = 100.0
"""Ratio of residuals to the integration tolerance up to which they may be integration errors."""

UNFINISHED = 0.1
"""Part of the residuals that the unknowns could still follow, relative to all, up to which a search
has ended near enough to an optimum. That part is not noise: where an unknown follows one value
almost exactly, the rest of its residual would look like an outlier."""

MIN_LEFT = 1e-6
"""Share of a measurement left free by the unknowns below which its residual carries no
information."""


@dataclass(frozen=True, eq=False)
class _Series:
    """One observable in one experiment: columns of the residuals in the order of time."""

    experiment: str
    observable: str
    columns: IntArray
    times: Array
    with_sds: bool
    normal: bool


NOTHING = 1e-4
"""Size of the largest residual, relative to the given noise, below which no pattern is tested."""


def assess_goodness(
    forward: ForwardMap, vector: Array, evaluation: Evaluation, most: int = MAX_DRAWS
) -> Goodness | None:
    """Return whether the residuals look like noise; None if there is nothing to test.

    Nothing can be tested if the data are reproduced to rounding, or if there are as many unknowns
    as measurements. No more than `most` sets of residuals are simulated.
    """
    tolerance = CostTolerance.of(forward)
    accuracy = forward.accuracy(evaluation.choice)
    relative = max(NEGLIGIBLE_RESIDUALS, INTEGRATION_ERRORS * accuracy)
    # On nodes the residuals of the evaluation are those of a condensed problem.
    count = max((r.rows.stop for r in forward.series_rows), default=0)
    noiseless = np.zeros(count, dtype=bool)
    if tolerance.squares is None:
        noiseless = noiseless_rows(forward, vector, evaluation.choice, relative)
    else:
        negligible = 0.5 * relative**2 * tolerance.squares
        if evaluation.cost <= max(tolerance.absolute, negligible):
            return None
    trajectories = forward.trajectories(vector, evaluation.choice, sensitivities=False)
    if isinstance(trajectories, list):
        at = forward.evaluate_along(vector, trajectories, derivatives=False)
    if not isinstance(trajectories, list) or not isinstance(at, Evaluation):
        return None
    residuals, jacobian = at.residuals, evaluation.jacobian
    if forward.nodes is None and len(jacobian) == len(residuals):
        free = ~bounds_touched(forward.problem, vector)
        spare = max(len(residuals) - len(vector), 1)
        noise = float(np.linalg.norm(residuals)) / math.sqrt(spare)
        sizes = sizes_at(forward.problem, vector)
        basis = column_space(jacobian[:, free], sizes[free], noise)
    else:
        basis = np.zeros((len(residuals), 0))  # rows of the nodes are not measurements
    series = [s for s in _series(forward) if not noiseless[s.columns].any()]
    if not series or not np.any(np.abs(residuals) > NOTHING):
        return None
    left = 1.0 - np.sum(basis**2, axis=1)
    used = np.concatenate([s.columns for s in series])
    if not (left[used].sum() > 0.5 and (left[used] > MIN_LEFT).any()):
        return None
    weights = np.where(left > MIN_LEFT, 1.0 / np.sqrt(np.maximum(left, MIN_LEFT)), 0.0)
    draws = int(np.clip(MAX_NUMBERS // len(residuals), MIN_DRAWS, max(most, MIN_DRAWS)))
    # Measured minus predicted, without the mean of deviance residuals of a correct model, which
    # would look like a correlation of neighbours. An offset of the data remains.
    raw = (expected_residuals(forward, vector, trajectories, len(residuals)) - residuals)[None]
    rest = (raw @ basis) @ basis.T
    if np.linalg.norm(rest) < UNFINISHED * np.linalg.norm(raw):
        raw = raw - rest
    checks, of_data = _statistics(series, raw, raw * weights)
    if not checks:
        return None
    rng = np.random.default_rng(SEED)

    def simulated(count: int) -> list[Array]:
        noise = rng.normal(size=(count, len(residuals)))
        noise -= (noise @ basis) @ basis.T
        return _statistics(series, noise, noise * weights)[1]

    together = max(NUMBERS_AT_A_TIME // len(residuals), 1)
    shares = np.array([PATTERN_WEIGHT if c.kind == "pattern" else 1.0 for c in checks])
    p_values, overall = _beside_noise(of_data, simulated, draws, together, shares)
    chi_square, degrees = math.nan, 0.0
    with_sds = [s.columns for s in series if s.with_sds]
    if with_sds:
        columns = np.concatenate(with_sds)
        chi_square = float(np.sum(residuals[columns] ** 2))
        degrees = float(left[columns].sum())
    bad = overall < SIGNIFICANCE
    checks = [_with_p(c, p, s[0]) for c, p, s in zip(checks, p_values, of_data, strict=True)]
    outliers = _outliers(series, raw[0] * weights, left) if bad else ()
    sentence = goodness_sentence(checks, outliers, overall, chi_square, degrees, SIGNIFICANCE)
    return Goodness(bad, overall, chi_square, degrees, tuple(checks), tuple(outliers), sentence)


def expected_residuals(
    forward: ForwardMap, vector: Array, trajectories: Sequence[Trajectory], count: int
) -> Array:
    """Return the expectations of all `count` residuals, in the sign of prediction minus value.

    Deviance residuals of counts and of values that may be censored have a nonzero mean even if the
    model is correct. For rows that are not measurements it is zero.
    """
    expected = np.zeros(count)
    if forward.gaussian:
        return expected
    blocks = forward.series_residuals(vector, trajectories)
    for condition in forward.problem.conditions:
        for name, series in condition.series.items():
            block = next(blocks)
            noise = forward.problem.noise.get(name, Noise())
            density = density_of(noise, [series])
            if density is not None and not isinstance(block, Failure):
                spreads = noise.law.spreads(block.predicted, block.sds)
                predicted = transformed(block.predicted, noise.transform)
                expected[block.rows] = density.expected_residuals(predicted, spreads)
    return expected


def _series(forward: ForwardMap) -> Iterator[_Series]:
    for rows in forward.series_rows:
        condition = forward.problem.conditions[rows.condition]
        times = condition.times[rows.series.rows]
        censored = rows.series.censored
        if censored is not None and censored.all():
            continue  # values known only to lie beyond a limit have no pattern
        order = np.argsort(times, kind="stable")
        noise = rows.noise
        known = rows.series.sds is not None or noise.known
        columns = np.arange(rows.rows.start, rows.rows.stop)
        normal = noise.gaussian and censored is None
        with_sds = known and normal and rows.sd_rows is None
        yield _Series(condition.name, rows.name, columns[order], times[order], with_sds, normal)


def _statistics(
    series: Sequence[_Series], raw: Array, studentised: Array
) -> tuple[list[Check], list[Array]]:
    """Return the tests, and a statistic for each, large if the answer is bad.

    Its first value is that of the data, the others are those of simulated noise.
    """
    checks, statistics = [], []

    def ask(
        kind: CheckKind, observable: str, experiment: str | None, count: int, of: Array
    ) -> None:
        checks.append(Check(kind, observable, experiment, count))
        statistics.append(of)

    observables: dict[str, list[_Series]] = {}
    for one in series:
        observables.setdefault(one.observable, []).append(one)
    with_sds = [s for s in series if s.with_sds]
    if with_sds:
        columns = np.concatenate([s.columns for s in with_sds])
        ask("chi-square", "", None, len(columns), _squares(raw[:, columns]))
    normality: dict[tuple[str, int], Array] = {}
    extremes: dict[tuple[str, int], Array] = {}
    for name, members in observables.items():
        columns = np.concatenate([s.columns for s in members])
        count = len(columns)
        known = [s.columns for s in members if s.with_sds]
        if known and len(known) == len(members) and len(observables) > 1:
            ask("chi-square", name, None, count, _squares(raw[:, columns]))
        long = [s for s in members if len(s.columns) >= MIN_PATTERN]
        for each in long:
            experiment = each.experiment if len(members) > 1 else None
            runs = _autocorrelation(studentised, [each.columns])
            ask("pattern", name, experiment, len(each.columns), runs)
        several = [s.columns for s in members if len(s.columns) > 1]
        if len(several) > 1:
            ask("pattern", name, None, count, _autocorrelation(studentised, several))
        scaled = _scaled(studentised[:, columns])
        normal = all(s.normal for s in members)
        if count >= MIN_NORMAL and normal:
            normality[name, count] = _deviation_from_normality(scaled)
        if count >= MIN_OUTLIERS and normal:
            extremes[name, count] = _rareness_of_largest(scaled)
    # One test each for all observables: more would make patterns harder to detect.
    of_all: dict[CheckKind, dict[tuple[str, int], Array]]
    of_all = {"normality": normality, "outliers": extremes}
    for kind, values in of_all.items():
        if values:
            together = np.column_stack(list(values.values()))
            name, count = list(values)[int(np.argmax(together[0]))]
            ask(kind, name, None, count, together.max(axis=1))
    return checks, statistics


def _autocorrelation(residuals: Array, parts: Sequence[IntArray]) -> Array:
    """Return the correlation of neighbours in time, for each set of residuals.

    A part of the correlation of second neighbours is added, which detects slow patterns in few
    values better.
    """
    products, squares = np.zeros(len(residuals)), np.zeros(len(residuals))
    for c in parts:
        one = residuals[:, c]
        share = 0.5 * min(1.0, FEW / len(c))
        products += _row_sums(one[:, 1:], one[:, :-1]) + share * _row_sums(one[:, 2:], one[:, :-2])
        squares += _squares(one)
    return np.asarray(products / np.maximum(squares, np.finfo(float).tiny))


def _row_sums(a: Array, b: Array) -> Array:
    """Return the sum of the products of each row, without the matrix of products."""
    return np.asarray(np.einsum("ij,ij->i", a, b))


def _squares(rows: Array) -> Array:
    """Return the sum of squares of each row."""
    return _row_sums(rows, rows)


def _scaled(residuals: Array) -> Array:
    size = np.sqrt(_squares(residuals) / residuals.shape[1])
    size = np.where(size > 0, size, 1.0)
    return np.asarray(residuals / size[:, None])


def _deviation_from_normality(scaled: Array) -> Array:
    """Return the statistic of Jarque and Bera, in which short tails do not count."""
    count = scaled.shape[1]
    squares = scaled * scaled  # powers would take ten times as long
    skewness = _row_sums(squares, scaled) / count
    excess = np.maximum(_squares(squares) / count - 3.0, 0.0)
    return np.asarray(count / 6.0 * (skewness**2 + 0.25 * excess**2))


def _rareness_of_largest(scaled: Array) -> Array:
    """Return minus the logarithm of the p-value of the largest residual (Bonferroni)."""
    from scipy.special import stdtr

    count = scaled.shape[1]
    largest = np.max(scaled**2, axis=1)
    distance = np.sqrt(largest * (count - 1) / np.maximum(count - largest, 1e-12))
    return np.asarray(-np.log(np.maximum(stdtr(count - 1, -distance), 1e-300) * count))


def _beside_noise(
    of_data: Sequence[Array],
    simulated: Callable[[int], list[Array]],
    draws: int,
    together: int,
    weights: Array,
) -> tuple[Array, float]:
    """Return the p-values of `_adjusted`, from as many simulations as the verdict needs.

    `simulated` returns the statistics of further simulations, `together` at once, `draws` at most.
    """
    statistics = [[one] for one in of_data]
    done = 0
    for end in (FIRST_DRAWS, draws):
        while done < end:
            count = min(together, end - done)
            for known, new in zip(statistics, simulated(count), strict=True):
                known.append(new)
            done += count
        p_values, overall = _adjusted(
            np.column_stack([np.concatenate(s) for s in statistics]), weights
        )
        if overall > CLEARLY_GOOD:
            break
    return p_values, overall


def _adjusted(statistics: Array, weights: Array) -> tuple[Array, float]:
    """Return p-values adjusted for the number of tests, and the overall p-value.

    The statistics are those of data and simulations, shape (draws + 1, k). P-values are divided by
    the `weights` of their tests, shape (k,), before they are compared.
    """
    count = len(statistics)
    order = np.sort(statistics, axis=0)
    smaller = np.column_stack(
        [np.searchsorted(o, s, side="left") for o, s in zip(order.T, statistics.T, strict=True)]
    )
    p = (count - smaller) / count / weights
    # Step down: a rejected test no longer counts among the chances of the others.
    adjusted = np.empty(p.shape[1])
    so_far = 0.0
    left = np.ones(p.shape[1], dtype=bool)
    for k in np.argsort(p[0], kind="stable"):
        smallest = p[:, left].min(axis=1)
        so_far = max(so_far, float(np.mean(smallest <= p[0, k])))
        adjusted[k] = so_far
        left[k] = False
    return adjusted, float(adjusted.min())


def _with_p(check: Check, p: float, statistic: float) -> Check:
    return Check(
        check.kind, check.observable, check.experiment, check.count, float(statistic), float(p)
    )


def _outliers(series: Sequence[_Series], studentised: Array, left: Array) -> list[FarResidual]:
    """Return measurements that lie too far out for any value of their observable (Bonferroni)."""
    from scipy.special import stdtr

    outliers = []
    for name in dict.fromkeys(s.observable for s in series):
        members = [s for s in series if s.observable == name]
        columns = np.concatenate([s.columns for s in members])
        count = len(columns)
        degrees = float(left[columns].sum()) - 1.0
        if count < MIN_OUTLIERS or degrees < 1.0 or not all(s.normal for s in members):
            continue
        # Others may hide behind the largest: each in turn is excluded from the scale of the others.
        inside = np.ones(count, dtype=bool)
        values = studentised[columns]
        while degrees >= 1.0 and inside.sum() > 2:
            worst = int(np.argmax(np.where(inside, np.abs(values), -1.0)))
            inside[worst] = False
            scale = math.sqrt(float(np.mean(values[inside] ** 2)))
            if not scale > 0:
                break
            distance = float(values[worst]) / scale
            p = min(2.0 * count * float(stdtr(degrees, -abs(distance))), 1.0)
            if p >= SIGNIFICANCE:
                break
            where = next(s for s in members if columns[worst] in s.columns)
            at = float(where.times[np.flatnonzero(where.columns == columns[worst])[0]])
            outliers.append(FarResidual(where.experiment, name, at, distance, p))
            degrees -= 1.0
    return outliers
