"""Sensitivity indices: exact local ones, elementary effects (Morris) and variances (Sobol).

The sampling and the estimators of the global ones are those of the package SALib: M. D. Morris,
Technometrics 33, 161 (1991), with the measure mu* of F. Campolongo et al., Environ. Model. Softw.
22, 1509 (2007); I. M. Sobol, Math. Comput. Simul. 55, 271 (2001), with the design of A. Saltelli et
al., Comput. Phys. Commun. 181, 259 (2010).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from odefit.assessment.sensitivity.distributions import Distribution
from odefit.assessment.sensitivity.outputs import Outputs
from odefit.common.arrays import Array
from odefit.common.errors import InputError
from odefit.common.packages import require
from odefit.methods.estimate import Cause
from odefit.methods.running.control import Control, Progress, running
from odefit.simulation import ForwardMap

SensitivityKind = Literal["local", "morris", "sobol"]

LEVELS = 4
"""Number of levels of each unknown in the design of Morris."""

RESAMPLES = 200
"""Number of bootstrap samples for intervals of indices."""

LEAST_BLOCKS = 8
"""Smallest number of parts of a design without a failure for computing indices."""


@dataclass(frozen=True, eq=False)
class Indices:
    """Sensitivity indices of every output by every unknown, shape (m, n) each.

    Attributes
    ----------
    values
        Local: the elasticity, the relative change of the output over that of the unknown. Morris:
        mu*, the mean size of elementary effects. Sobol: the first-order index, the share of the
        variance explained by the unknown alone.
    others
        Local: the derivative. Morris: sigma, the standard deviation of elementary effects, which
        shows interactions and curvature. Sobol: the total index, the share that fixing the unknown
        removes in any combination.
    errors, other_errors
        Half widths of the confidence intervals of both; NaN for indices without an interval.
    outputs
        The values of the outputs, shape (points, m).
    evaluations, failed
        The number of points, and of those at which an integration failed.
    ended
        The reason why the work ended early, if it did.
    """

    values: Array
    others: Array
    errors: Array
    other_errors: Array
    outputs: Array
    evaluations: int
    failed: int
    ended: Cause | None = None


def local_indices(outputs: Outputs, forward: ForwardMap, vector: Array) -> Indices:
    """Return elasticities and derivatives at a vector of unknowns, by exact sensitivities.

    An elasticity is NaN if the output is zero.
    """
    values, derivatives = outputs.derivatives(forward, vector)
    with np.errstate(all="ignore"):
        elasticities = derivatives * vector / values[:, None]
    elasticities = np.where(np.isfinite(elasticities), elasticities, np.nan)
    nothing = np.full(derivatives.shape, np.nan)
    failed = int(np.isnan(values).any())
    return Indices(elasticities, derivatives, nothing, nothing, values[None, :], 1, failed)


def morris_indices(
    outputs: Outputs,
    forward: ForwardMap,
    distributions: Sequence[Distribution],
    samples: int,
    level: float,
    control: Control,
) -> Indices:
    """Return mu* and sigma of the elementary effects over trajectories through the ranges.

    An elementary effect is the change of an output over that of an unknown, in units of the
    unknown's range: its quantile from 0 to 1. `samples` is the number of trajectories.
    """
    require("SALib")
    from SALib.analyze import morris as analysis
    from SALib.sample import morris as design

    names = _names(distributions)
    with np.errstate(all="ignore"):
        points = design.sample(names, samples, num_levels=LEVELS, seed=control.seed)
    size = len(distributions) + 1

    def analyse(u: Array, y: Array) -> tuple[Array, Array, Array, Array]:
        analysis_result = analysis.analyze(
            names, u, y, conf_level=level, num_resamples=RESAMPLES, num_levels=LEVELS,
            seed=control.seed,
        )  # fmt: skip
        errors = np.asarray(analysis_result["mu_star_conf"], dtype=float)
        nothing = np.full(len(errors), np.nan)
        return (
            np.asarray(analysis_result["mu_star"]),
            np.asarray(analysis_result["sigma"]),
            errors,
            nothing,
        )

    return _indices(outputs, forward, distributions, points, size, analyse, control)


def sobol_indices(
    outputs: Outputs,
    forward: ForwardMap,
    distributions: Sequence[Distribution],
    samples: int,
    level: float,
    control: Control,
) -> Indices:
    """Return first-order and total indices, with bootstrap intervals.

    `samples` is the number of base points, a power of two; each needs n + 2 simulations.
    """
    require("SALib")
    from SALib.analyze import sobol as analysis
    from SALib.sample import sobol as design

    if samples & (samples - 1):
        raise InputError(
            f"samples: {samples} is not a power of two, which Sobol's points need; "
            f"take {2 ** round(math.log2(samples))}"
        )
    names = _names(distributions)
    points = design.sample(names, samples, calc_second_order=False, seed=control.seed)
    size = len(distributions) + 2

    def analyse(_: Array, y: Array) -> tuple[Array, Array, Array, Array]:
        analysis_result = analysis.analyze(
            names, y, calc_second_order=False, conf_level=level, num_resamples=RESAMPLES,
            seed=control.seed,
        )  # fmt: skip
        first, total, *errors = (
            np.asarray(analysis_result[name], dtype=float)
            for name in ("S1", "ST", "S1_conf", "ST_conf")
        )
        return first, total, errors[0], errors[1]

    return _indices(outputs, forward, distributions, points, size, analyse, control)


def _names(distributions: Sequence[Distribution]) -> dict[str, Any]:
    """Return a design over the unit cube, in SALib's form."""
    n = len(distributions)
    return {"num_vars": n, "names": [f"u{i}" for i in range(n)], "bounds": [[0.0, 1.0]] * n}


def _tell(control: Control, done: int, every: int, failed: int) -> None:
    """Report the number of finished points."""
    if control.report is not None:
        message = f"{done} of {every} points simulated"
        control.report(Progress(done, failed, math.inf, 0, message, "point"))


def _indices(
    outputs: Outputs,
    forward: ForwardMap,
    distributions: Sequence[Distribution],
    points: Array,
    size: int,
    analyse: Callable[[Array, Array], tuple[Array, Array, Array, Array]],
    control: Control,
) -> Indices:
    """Return indices from a design with independent parts of `size` points each.

    Parts in which an output fails are excluded from its indices.
    """
    vectors = np.column_stack([d.at(points[:, i]) for i, d in enumerate(distributions)])
    n, m = len(distributions), len(outputs.numbers)
    results = np.full((len(points), m), np.nan)
    done, failed, ended = 0, 0, None
    with running(control):
        for done, vector in enumerate(vectors, start=1):
            results[done - 1] = outputs.values(forward, vector)
            failed += bool(np.isnan(results[done - 1]).any())
            if done % 16 == 0 or done == len(vectors):
                _tell(control, done, len(vectors), failed)
            if done < len(vectors) and control.should_stop():
                ended = control.cause
                break
    parts = done // size
    y = results[: parts * size].reshape(parts, size, m)
    u = points[: parts * size].reshape(parts, size, n)
    good = np.isfinite(y).all(axis=1)
    tables = np.full((4, m, n), np.nan)
    for k in range(m):
        complete = good[:, k]
        if complete.sum() < LEAST_BLOCKS:
            continue
        values = y[complete, :, k].ravel()
        scale = float(np.abs(values).max())
        if np.ptp(values) <= 1e-12 * scale or scale == 0.0:
            tables[:2, k] = 0.0  # nothing acts
            continue
        with np.errstate(all="ignore"):
            tables[:, k] = analyse(u[complete].reshape(-1, n), values)
    values, others, errors, other_errors = tables
    return Indices(values, others, errors, other_errors, results[:done], done, failed, ended)
