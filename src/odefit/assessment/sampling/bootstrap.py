"""The bootstrap: the scatter of estimates when the data are measured and fitted again.

B. Efron and R. J. Tibshirani, An Introduction to the Bootstrap, 1993: the parametric bootstrap
(section 6.5) draws noise from the noise model. The bootstrap of residuals (section 9.4) draws from
the residuals of the fit. Each is divided by the square root of one minus its leverage, so that they
scatter as the noise does.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from odefit.assessment.intervals.deviance import Deviance
from odefit.common.arrays import Array, IntArray
from odefit.common.effects import column_space
from odefit.common.errors import InputError, one_of
from odefit.common.option_checks import check_level, check_time_limit
from odefit.methods.estimate import Cause, Start, Status
from odefit.methods.running.control import Control, Progress, control_of, running
from odefit.methods.running.start_checkpoint import StartCheckpoint
from odefit.methods.running.workers import Workers
from odefit.methods.single_shooting import SingleShooting
from odefit.methods.start_pool import run_starts
from odefit.problem.problem import Problem
from odefit.problem.variants.sizes import sizes_at
from odefit.simulation import Evaluation, Failure, ForwardMap
from odefit.simulation.engines.engine_choice import UNDECIDED
from odefit.simulation.simulated_data import with_simulated_data

if TYPE_CHECKING:
    import pandas as pd

BootstrapKind = Literal["parametric", "residual"]

LOCAL_SEARCH = SingleShooting()
"""The search of the optimum of each sample, from the estimate."""

MIN_SAMPLES = 20
"""Number of fitted samples below which standard errors and intervals are not computed."""


@dataclass(frozen=True, eq=False)
class Bootstrap:
    """Estimates from simulated data sets.

    Attributes
    ----------
    keys
        The names of the unknowns.
    estimate
        The estimate from which the data were simulated, shape (n,).
    vectors
        The estimates of the samples, in their order, shape (samples, n).
    numbers
        The numbers of these samples, shape (samples,).
    kind
        Whether noise was drawn from the noise model or from the residuals of the fit.
    failed
        The number of samples that could not be fitted; they are not in `vectors`.
    status, message
        The end of the work, as an enumeration and in words.
    seed
        The seed with which it can be repeated.
    seconds
        The wall time.
    """

    keys: tuple[str, ...]
    estimate: Array
    vectors: Array
    numbers: IntArray
    kind: BootstrapKind
    failed: int
    status: Status
    message: str
    seed: int
    seconds: float

    @property
    def covariance(self) -> Array:
        """The covariance of the estimates, shape (n, n); NaN with too few samples."""
        n = len(self.keys)
        if len(self.vectors) < MIN_SAMPLES:
            return np.full((n, n), np.nan)
        return np.atleast_2d(np.cov(self.vectors, rowvar=False))

    def intervals(self, level: float = 0.95) -> Array:
        """Return percentile intervals, shape (n, 2); NaN with too few samples.

        Parameters
        ----------
        level
            The level of confidence, between 0 and 1.
        """
        return percentiles(self.vectors, level)

    def table(self, level: float = 0.95) -> pd.DataFrame:
        """Return estimates with bias, standard error and percentile interval, indexed by key.

        Parameters
        ----------
        level
            The level of confidence, between 0 and 1.
        """
        import pandas as pd

        enough = len(self.vectors) >= MIN_SAMPLES
        bias = self.vectors.mean(axis=0) - self.estimate if enough else np.nan
        low, high = self.intervals(level).T
        return pd.DataFrame(
            {
                "estimate": self.estimate,
                "bias": bias,
                "std_error": np.sqrt(np.diag(self.covariance)),
                "ci_low": low,
                "ci_high": high,
            },
            index=pd.Index(self.keys, name="key"),
        )

    def __str__(self) -> str:
        return f"Bootstrap, {self.kind}: {self.message}\n{self.table().to_string()}"


def percentiles(values: Array, level: float) -> Array:
    """Return percentile intervals of samples, shape (n, 2); NaN with too few samples."""
    check_level(level)
    if len(values) < MIN_SAMPLES:
        return np.full((values.shape[1], 2), np.nan)
    return np.quantile(values, [0.5 - level / 2, 0.5 + level / 2], axis=0).T


@dataclass(frozen=True, eq=False)
class Resampling:
    """The search of the optimum of a simulated data set, whose number is the index.

    `pools` are standardised residuals by observable from which noise is drawn, empty for normal
    noise. Searches begin at the estimate and at `others`. `unit_sd` is the standard deviation of
    noise that is not given. `inflation` is a factor of estimated standard deviations, for small
    samples.
    """

    vector: Array
    pools: Mapping[str, Array] = field(default_factory=dict)
    unit_sd: float = 1.0
    inflation: float = 1.0
    others: tuple[Array, ...] = ()

    def run(self, forward: ForwardMap, index: int, control: Control) -> Start:
        """Return the optimum of sample number `index`; a failure is counted, never raised."""
        problem = self.sample(forward, index, control.seed)
        if isinstance(problem, Failure):
            return Start(
                index, self.vector, self.vector, math.inf, Status.FAILED, str(problem), 0, 0.0
            )
        simulated = forward.of(problem)
        ends = [LOCAL_SEARCH.run(simulated, index, self.vector, control)]
        ends += [
            LOCAL_SEARCH.run(simulated, index, x, control)
            for x in self.others
            if not control.should_stop()
        ]
        return min(ends, key=lambda end: (end.status is Status.FAILED, end.cost))

    def sample(self, forward: ForwardMap, index: int, seed: int) -> Problem | Failure:
        """Return the problem with the simulated data of sample number `index`."""
        random = np.random.default_rng([seed, index])

        def draw(name: str, count: int) -> Array:
            pool = self.pools.get(name)
            if pool is None:
                return self.inflation * random.standard_normal(count)
            return random.choice(pool, count)

        trajectories = forward.trajectories(self.vector)
        if isinstance(trajectories, Failure):
            return trajectories
        return with_simulated_data(forward, self.vector, trajectories, draw, self.unit_sd, random)


def bootstrap(
    problem: Problem,
    vector: Array,
    count: int = 500,
    kind: BootstrapKind = "parametric",
    *,
    seed: int = 0,
    time_limit: float | None = None,
    memory: int | str | None = None,
    executor: Executor | None = None,
    jobs: int | None = None,
    progress: Callable[[Progress], None] | None = None,
    checkpoint: str | Path | None = None,
    stop: threading.Event | None = None,
    others: Sequence[Array] = (),
) -> Bootstrap:
    """Simulate data at an estimate, and fit each data set from there, and from `others`.

    ``"parametric"`` draws noise from the noise model, ``"residual"`` from the residuals. Samples
    depend on `seed` alone, not on `jobs`. If the `time_limit`, the `memory` or the event `stop`
    ends the work, the results so far are returned, labelled as such. `checkpoint` is a file that
    stores fitted samples for later runs. Raises InputError for unusable arguments, a model that
    cannot be integrated at the estimate, and too few measurements for a residual bootstrap.
    """
    began = time.perf_counter()
    _check(count, kind, seed, time_limit)
    control = control_of(seed, time_limit, executor, jobs, progress, checkpoint, stop, memory)
    forward = ForwardMap(problem)
    evaluation = forward.evaluate(vector, UNDECIDED)
    if isinstance(evaluation, Failure):
        raise InputError(f"a bootstrap needs a model that can be integrated: {evaluation}")
    search = replace(_resampling(forward, vector, evaluation, kind), others=tuple(others))
    options: dict[str, Any] = {"bootstrap": kind, "seed": seed}
    options["estimate"] = [repr(float(v)) for v in vector]
    if others:
        options["others"] = [[repr(float(v)) for v in x] for x in others]
    stored_starts = StartCheckpoint.of(control, "bootstrap samples", problem, options)
    stored = (
        {}
        if stored_starts is None
        else {i: s for i, s in stored_starts.starts.items() if i < count}
    )
    ends = dict(stored)
    with running(control), Workers(control) as workers, stored_starts or nullcontext():
        tasks = ((search, i, control) for i in range(count) if i not in stored)
        for _, end, whole in run_starts(tasks, forward, workers, control, count - len(stored)):
            if not whole and (end.status.cut_short or control.cut_off.reached):
                continue
            ends[end.index] = end
            if stored_starts is not None:
                stored_starts.add(end)
            if progress is not None:
                failed = sum(e.status is Status.FAILED for e in ends.values())
                progress(Progress(len(ends), failed, math.nan, 0, "bootstrap"))
    return _bootstrap(problem, vector, kind, ends, count, control, began)


def _check(count: int, kind: str, seed: int, time_limit: float | None) -> None:
    if not isinstance(count, int) or count < 1:
        raise InputError(f"count: expected a positive whole number of samples, got {count!r}")
    kinds = get_args(BootstrapKind)
    if kind not in kinds:
        raise InputError(f"kind: {kind!r} is not known{one_of(str(kind), kinds)}")
    if not isinstance(seed, int) or seed < 0:
        raise InputError(f"seed: expected a whole number, not negative, got {seed!r}")
    check_time_limit(time_limit)


def _resampling(
    forward: ForwardMap, vector: Array, evaluation: Evaluation, kind: BootstrapKind
) -> Resampling:
    deviance = Deviance.of(forward, vector, evaluation)
    search = Resampling(vector)
    if not forward.given_noise:
        if not deviance.degrees > 0:
            raise InputError(
                "there are as many unknowns as measurements, so the noise is not known"
            )
        search = replace(search, unit_sd=math.sqrt(deviance.variance))
    elif deviance.estimated and deviance.degrees > 0:
        search = replace(search, inflation=math.sqrt(deviance.estimated / deviance.degrees))
    if kind == "parametric":
        return search
    if not forward.gaussian:
        raise InputError(
            f"kind = {kind!r} draws from residuals, which are exchangeable only under normal "
            "noise; "
            "take kind = 'parametric'"
        )
    return replace(search, pools=_pools(forward, vector, evaluation, search.unit_sd))


def _pools(
    forward: ForwardMap, vector: Array, evaluation: Evaluation, unit_sd: float
) -> dict[str, Array]:
    """Return the residuals of each observable, standardised and without their mean."""
    basis = column_space(evaluation.jacobian, sizes_at(forward.problem, vector))
    leverage = np.sum(basis**2, axis=1)
    parts: dict[str, list[Array]] = {}
    for block in forward.series_rows:
        left = np.maximum(1 - leverage[block.rows], 1e-3)
        parts.setdefault(block.name, []).append(
            evaluation.residuals[block.rows] / (unit_sd * np.sqrt(left))
        )
    pools = {name: np.concatenate(residuals) for name, residuals in parts.items()}
    for name, pool in pools.items():
        if len(pool) < 4:
            raise InputError(
                f"{len(pool)} residuals of '{name}' are too few to draw from; "
                "take kind = 'parametric'"
            )
    return {name: pool - pool.mean() for name, pool in pools.items()}


def _bootstrap(
    problem: Problem,
    vector: Array,
    kind: BootstrapKind,
    ends: Mapping[int, Start],
    count: int,
    control: Control,
    began: float,
) -> Bootstrap:
    usable = [ends[i] for i in sorted(ends) if ends[i].status is not Status.FAILED]
    failed = len(ends) - len(usable)
    status = Status.CONVERGED if len(ends) == count else Status.TIME_LIMIT
    if control.interrupted.is_set():
        status = control.early
    message = f"{len(usable)} of {count} simulated data sets were fitted"
    if failed:
        first = next(e for e in ends.values() if e.status is Status.FAILED)
        message += f"; {failed} could not be, e.g. {first.message}"
    if len(ends) < count:
        message += f"; stopped by {control.cause or Cause.TIME_LIMIT}"
    if len(usable) < MIN_SAMPLES:
        message += f"; intervals need {MIN_SAMPLES}"
    message += "".join(f"; {remark}" for remark in control.remarks)
    return Bootstrap(
        problem.keys,
        np.array(vector),
        np.array([e.vector for e in usable]).reshape(len(usable), len(vector)),
        np.array([e.index for e in usable], dtype=np.intp),
        kind,
        failed,
        status,
        message,
        control.seed,
        time.perf_counter() - began,
    )
