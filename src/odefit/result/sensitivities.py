"""Sensitivity analyses: indices with a table, a figure and a text."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from odefit.assessment.predictions.prediction_runs import refused_on_nodes
from odefit.assessment.sampling.bootstrap import MIN_SAMPLES
from odefit.assessment.sensitivity.distributions import over_draws, over_ranges
from odefit.assessment.sensitivity.indices import (
    Indices,
    SensitivityKind,
    local_indices,
    morris_indices,
    sobol_indices,
)
from odefit.assessment.sensitivity.outputs import Output, outputs
from odefit.common.arrays import Array
from odefit.common.errors import InputError, one_of
from odefit.common.option_checks import check_level, check_time_limit
from odefit.methods.running.control import Progress, control_of
from odefit.problem.habits import not_a_problem
from odefit.problem.problem import Problem
from odefit.result.result import Result
from odefit.result.result_figures import canvas_of
from odefit.simulation import ForwardMap
from odefit.simulation.simulations import chosen_values

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from odefit.reporting.figures.canvas import Width
    from odefit.result.result_predictions import AnyRun

SAMPLES = {"morris": 32, "sobol": 256}
"""Trajectories and base points by default."""

MOST_SAMPLES = 1_000_000
"""Largest number of trajectories and base points, which are drawn before the first is run."""


@dataclass(frozen=True, eq=False, repr=False)
class Sensitivities:
    """Sensitivity indices of outputs by unknowns.

    ``print(sensitivities)`` ranks the unknowns of each output.

    Attributes
    ----------
    kind
        ``"local"``, ``"morris"`` or ``"sobol"``.
    keys
        The names of the n unknowns.
    outputs
        The m requested numbers: an observable at a time, a quantity, or the cost of the fit.
    indices
        The indices and the values of the outputs, see
        :class:`odefit.assessment.sensitivity.indices.Indices`.
    """

    kind: SensitivityKind
    keys: tuple[str, ...]
    outputs: tuple[Output, ...]
    indices: Indices
    time_unit: str = field(default="")

    @property
    def table(self) -> pd.DataFrame:
        """The indices as a table with one row for each output and unknown.

        Its columns are ``output``, ``experiment``, ``t``, ``key``, and by kind ``elasticity`` and
        ``derivative``; ``mu_star``, ``sigma`` and ``mu_star_error``; or ``first``, ``total``,
        ``first_error`` and ``total_error`` (half widths of confidence intervals).
        """
        from odefit.reporting.sensitivities import sensitivity_table

        return sensitivity_table(self.kind, self.keys, self.outputs, self.indices)

    @property
    def notes(self) -> list[str]:
        """Sentences on failed simulations, an early end, and imprecise indices."""
        from odefit.reporting.sensitivities import sensitivity_notes

        return sensitivity_notes(self.kind, self.indices)

    def plot(self, *, width: Width | None = None) -> Figure:
        """Draw the indices against time, or as bars for an output that is a single number."""
        from odefit.reporting.figures.sensitivities import plot_sensitivities

        canvas = canvas_of(width, None, None)
        return plot_sensitivities(
            self.kind, self.keys, self.outputs, self.indices, self.time_unit, canvas
        )

    def __str__(self) -> str:
        from odefit.reporting.sensitivities import sensitivity_text

        return sensitivity_text(self.kind, self.keys, self.outputs, self.indices)

    def __repr__(self) -> str:
        return f"Sensitivities({self.kind}: {len(self.outputs)} outputs, {len(self.keys)} unknowns)"


def sensitivity(
    source: Problem | Result,
    kind: SensitivityKind = "local",
    of: str | Sequence[str] | None = None,
    *,
    times: Any = None,
    experiment: AnyRun | Sequence[AnyRun] = None,
    values: Mapping[str, float] | None = None,
    ranges: Mapping[str, Sequence[float]] | None = None,
    draws: Any = None,
    samples: int | None = None,
    level: float = 0.95,
    seed: int = 0,
    time_limit: float | None = None,
    progress: Callable[[Progress], None] | None = None,
    stop: threading.Event | None = None,
) -> Sensitivities:
    """Return how much outputs depend on the unknowns, at a point or over their ranges.

    Parameters
    ----------
    source
        A result, whose estimates are the point of a local analysis, or a problem.
    kind
        ``"local"``: exact elasticities and derivatives at a point. ``"morris"``: elementary effects
        over the ranges, few simulations. ``"sobol"``: shares of the variance over the ranges, with
        interactions; many simulations. The global ones need ``odefit[sensitivity]``.
    of
        Names of observables, quantities such as ``"AUC = integral(y)"``, and ``"fit"`` for the cost
        of the fit; None for all observables.
    times, experiment
        Times, and experiments or scenarios, as :meth:`odefit.Result.predict` takes them; None for
        the data times of all experiments.
    values
        Values of the unknowns for a local analysis of a problem; by default their guesses.
    ranges
        Ranges of unknowns by key, ``{"k": (0.1, 2)}``. Others have their bounds or, where these are
        open, the range of start values. They are uniform, in the logarithm where the unknown has
        ``scale = "log10"`` or the range spans more than two decades.
    draws
        Instead of ranges, a sample of the unknowns from :meth:`odefit.Result.sample` or
        :meth:`odefit.Result.bootstrap`, which gives the distribution of each unknown. Correlations
        are ignored, because these indices assume independent unknowns.
    samples
        Trajectories of Morris (default 32, each n + 1 simulations), or base points of Sobol
        (default 256, a power of two, each n + 2 simulations).
    level
        The level of the confidence intervals of global indices.
    seed
        The same seed gives the same points.
    time_limit
        Seconds after which the indices of the points so far are returned.
    progress
        A function that is called from time to time with the state of the work.
    stop
        An event that ends the work as the time limit does.

    Returns
    -------
    The indices, which print as a ranking; ``table`` has them as a data frame.

    Raises
    ------
    InputError
        An argument is invalid, or SALib is missing.

    Examples
    --------
    >>> import odefit
    >>> problem = odefit.Problem(
    ...     odefit.Model(ode={"x": "-k*x"}),
    ...     data={"t": [0, 1, 2], "x": [1.0, 0.6, 0.4]},
    ...     parameters={"k": {"lower": 0, "guess": 0.5}},
    ...     initial={"x": 1.0},
    ... )
    >>> local = odefit.sensitivity(problem, times=[2.0])
    >>> round(float(local.table["elasticity"][0]), 6)
    -1.0
    """
    if kind not in get_args(SensitivityKind):
        raise InputError(
            f"kind: there is no {kind!r}{one_of(str(kind), get_args(SensitivityKind))}"
        )
    if not isinstance(source, Problem | Result):
        raise not_a_problem("sensitivity", source)
    check_level(level)
    check_time_limit(time_limit)
    problem = source.problem if isinstance(source, Result) else source
    if not problem.unknowns:
        raise InputError("the problem has no unknowns; free one, such as --free k")
    asked = outputs(problem, of, experiment, times)
    forward = ForwardMap(asked.problem)
    if kind == "local":
        if ranges is not None or draws is not None or samples is not None:
            raise InputError("ranges, draws and samples: a local analysis has none of these")
        vector = _point(source, values)
        calculated = local_indices(asked, forward, vector)
    else:
        if values is not None:
            raise InputError("values: a global analysis varies the unknowns over their ranges")
        if ranges is not None and draws is not None:
            raise InputError("ranges, draws: give one of them")
        count = SAMPLES[kind] if samples is None else samples
        whole = isinstance(count, int) and not isinstance(count, bool)
        if not (whole and 8 <= count <= MOST_SAMPLES):
            raise InputError(
                f"samples: expected a whole number of at least 8 and at most {MOST_SAMPLES}, "
                f"got {count!r}"
            )
        spread = over_ranges(problem, ranges) if draws is None else over_draws(_drawn(draws))
        control = control_of(seed, time_limit, None, None, progress, None, stop, None)
        indices = morris_indices if kind == "morris" else sobol_indices
        calculated = indices(asked, forward, spread, count, level, control)
    return Sensitivities(kind, problem.keys, tuple(asked.numbers), calculated, problem.time_unit)


def _point(source: Problem | Result, values: Mapping[str, float] | None) -> Array:
    """Return the unknowns of a local analysis."""
    if isinstance(source, Result):
        if not source.solutions:
            raise InputError(f"the result has no solution: {source.message}")
        if source.best.nodes is not None:
            raise refused_on_nodes("local sensitivities")
        known = dict(zip(source.problem.keys, map(float, source.best.vector), strict=True))
        return source.problem.vector({**known, **(values or {})})
    return chosen_values(source, values or {})[1]


def _drawn(draws: Any) -> Array:
    """Return a sample of the unknowns, shape (k, n)."""
    vectors = np.asarray(getattr(draws, "vectors", draws), dtype=float)
    if vectors.ndim == 3:  # chains
        vectors = vectors.reshape(-1, vectors.shape[-1])
    if vectors.ndim != 2 or len(vectors) < MIN_SAMPLES or not math.isfinite(float(vectors.sum())):
        raise InputError(
            f"draws: expected at least {MIN_SAMPLES} values of each unknown, as result.sample() or "
            "result.bootstrap() returns them"
        )
    return vectors
