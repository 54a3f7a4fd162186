"""Designs of experiments: what to measure next, with tables and figures."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from odefit.assessment.sampling.bootstrap import Bootstrap
from odefit.common.arrays import Array
from odefit.common.errors import InputError, one_of, shown
from odefit.common.option_checks import check_time_limit, whole
from odefit.designs.knowledge import Knowledge
from odefit.designs.parts import Criterion, DesignData, Measurement, Region
from odefit.problem.calendars import calendar_of
from odefit.problem.habits import not_a_problem
from odefit.problem.problem import Problem
from odefit.result.result import Result

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

    from odefit.reporting.figures.canvas import Width

__all__ = ["Design", "design"]

SAMPLES = 25
"""Number of vectors of unknowns over which a robust design is optimised on average."""


@dataclass(frozen=True, eq=False, repr=False)
class Design(DesignData):
    """A design: which measurements to make next, and what they would determine.

    ``print(design)`` shows it as text. Its data are the attributes of
    :class:`odefit.designs.parts.DesignData`, such as ``times``, ``measurements``, ``runs``,
    ``continuous`` and ``intervals``.
    """

    @property
    def sentence(self) -> str:
        """The design in a sentence: what to measure, and what that would determine."""
        from odefit.reporting.designs.text import design_sentence

        return design_sentence(self)

    @property
    def table(self) -> pd.DataFrame:
        """The measurements as a table, one row each.

        Its columns are ``run``, ``experiment``, a column for each setting that varies,
        ``observable``, ``t``, ``date`` if the data have dates, and ``count``, the number of
        replicates.
        """
        from odefit.reporting.designs.text import measurement_table

        return measurement_table(self)

    @property
    def interval_table(self) -> pd.DataFrame:
        """The planned intervals as a table indexed by quantity, in natural units.

        Its columns are ``value``, ``before_low``, ``before_high``, ``after_low``, ``after_high``,
        ``error_before`` and ``error_after``.
        """
        from odefit.reporting.designs.text import interval_table

        return interval_table(self)

    def plot(
        self,
        *,
        width: Width | None = None,
        figure: Figure | SubFigure | None = None,
        ax: Axes | None = None,
    ) -> Figure:
        """Draw the information of a measurement against time, and intervals before and after.

        `width`, `figure` and `ax` are those of the figures of a result. The information is relative
        to its mean over the best continuous design: no time exceeds 1 there.
        """
        from odefit.reporting.figures.canvas import Canvas
        from odefit.reporting.figures.design import plot_design

        return plot_design(self, Canvas(width, figure, ax))

    def save(self, path: str | Path) -> None:
        """Write the design to a ``.json`` file, or its measurements to a ``.csv`` file.

        Raises
        ------
        InputError
            The name has another suffix, or the file cannot be written.
        """
        import json

        from odefit.common.partial_files import write_atomically
        from odefit.reporting.designs.text import design_mapping

        suffix = Path(path).suffix.lower()
        if suffix == ".csv":
            content = self.table.to_csv(index=False, lineterminator="\n")
        elif suffix == ".json":
            content = json.dumps(design_mapping(self), indent=1) + "\n"
        else:
            raise InputError(f"{path}: expected a name that ends with .json or .csv")
        write_atomically(path, content)

    def __repr__(self) -> str:
        return f"Design({self.sentence!r})"

    def __str__(self) -> str:
        from odefit.reporting.designs.text import design_text

        return design_text(self)


Over = str | Region | Bootstrap | Sequence[Sequence[float]] | Any
"""Values of the unknowns over which a design is optimised on average."""


def design(
    source: Problem | Result,
    values: Mapping[str, float] | None = None,
    *,
    observables: Sequence[str] | str | None = None,
    times: Any = None,
    count: int | None = None,
    criterion: str = "D",
    of: Sequence[str] | str | None = None,
    experiments: Sequence[str] | str | None = None,
    vary: Mapping[str, Any] | None = None,
    noise: Mapping[str, Any] | None = None,
    costs: Mapping[str, float] | None = None,
    budget: float | None = None,
    replicates: int | None = None,
    spacing: float = 0.0,
    runs: int | None = None,
    together: bool = False,
    scale: str = "relative",
    over: Over = "estimate",
    samples: int = SAMPLES,
    result: Result | None = None,
    against: Problem | Result | None = None,
    existing: bool | None = None,
    level: float = 0.95,
    seed: int = 0,
    time_limit: float | None = None,
    jobs: int | None = None,
) -> Design:
    """Return the measurements that determine the unknowns best, or tell two models apart.

    The information of measurements comes from the exact sensitivities of the model (the Fisher
    information of the noise model). Convex optimisation finds a continuous design, whose
    measurements are divisible, and the equivalence theorem checks it. An exchange algorithm (V. V.
    Fedorov, Theory of Optimal Experiments, 1972) finds whole measurements, and then refines times
    and settings between the points of the grid.

    Parameters
    ----------
    source
        A result, whose measurements and estimates are used; or a problem, whose measurements are
        not used.
    values
        Values of the unknowns of a problem by name; by default the guesses.
    observables
        What may be measured: observables or states by name, even if never measured before, and new
        ones such as ``"total = x1 + x2"``; None for the observables of the problem.
    times
        A window ``(from, to)`` as a tuple, a list of possible times, or a mapping of these by
        observable; None for the span of the data. They are dates as well, if the data have some.
    count
        The number of measurements; by default as many as there are quantities.
    criterion
        ``"D"``, ``"A"``, ``"E"`` or ``"modified-E"``; ``"Ds"`` and ``"c"`` for the quantities
        in `of`; with `against` ``"T"``, which is then the default, or ``"Buzzi-Ferraris"``.
    of
        The quantities to estimate precisely: unknowns, expressions of them such as ``"CL = k*V"``,
        predictions such as ``"y@12"``; None for all unknowns except those of the noise.
    experiments
        The experiments whose conditions new runs may have; None for all.
    vary
        Settings of new runs, by the name of a state (its initial value), a constant or an input.
        Each is a pair of limits as a tuple, a list of levels, or a mapping with ``lower``,
        ``upper``, ``levels`` and ``at``. The times in ``at`` are the starts of the pieces of an
        input or a constant, or the times of doses into a state.
    noise
        Noise of observables, where the problem does not give it: a standard deviation or a mapping
        of the fields of :class:`odefit.Noise`.
    costs, budget
        Instead of `count`: the total cost allowed, and the cost of a measurement by observable (1
        if not given) and of a ``"run"`` (0 if not given).
    replicates
        How often an observable may be measured at one time of a run; None for any number.
    spacing
        The smallest distance between two times of an observable in a run.
    runs
        The largest number of runs; None for any.
    together
        Whether all observables are measured at each time, which then counts as one measurement.
    scale
        Whether A and E measure errors relative to the values (``"relative"``) or in natural units
        (``"natural"``).
    over
        Where the design is optimised: at the ``"estimate"``, or on average over the ``"profile"``
        likelihoods, a ``"bootstrap"`` or the ``"posterior"`` of the result. It may also be on
        average over vectors of unknowns, shape (S, n), or what :meth:`odefit.Result.bootstrap` and
        :meth:`odefit.Result.sample` return.
    samples
        The largest number of vectors of unknowns of such an average.
    result
        With a problem: a result with the same unknowns, whose estimates are used; the problem's
        measurements then count.
    against
        The result of another model, or its problem with guesses as values: the measurements then
        discriminate between the two. Both have the same observables and experiments.
    existing
        Whether the measurements of the problem count; by default only with a result.
    level
        The level of the planned intervals.
    seed
        The seed of random choices.
    time_limit, jobs
        Limits of the sampling that `over` asks for.

    Returns
    -------
    The design. If the candidates cannot determine some quantity, it has no measurements; ``lost``
    names the quantity, and ``remedies`` further observables that would help.

    Raises
    ------
    InputError
        An argument is invalid, or the model cannot be integrated.

    Examples
    --------
    >>> import odefit
    >>> problem = odefit.Problem(
    ...     odefit.Model(ode={"a": "-k1*a", "b": "k1*a - k2*b"}, observables={"y": "b"}),
    ...     data={"t": [0, 20], "y": [0, 0]},
    ...     parameters={"k1": {}, "k2": {}},
    ...     initial={"a": 1.0, "b": 0.0},
    ...     noise={"y": {"sd": 0.02}},
    ... )
    >>> found = odefit.design(problem, {"k1": 0.7, "k2": 0.2}, times=(0, 20))
    >>> [round(t, 2) for t in found.times]
    [1.23, 6.86]
    """
    from odefit.designs.planning import plan
    from odefit.designs.request import request_of

    problem, known_result, vector = _begun(source, values, result)
    counts = known_result is not None if existing is None else bool(existing)
    if against is not None and criterion == Criterion.D:
        criterion = Criterion.T
    request = request_of(
        problem,
        observables=observables,
        times=times,
        count=count,
        criterion=criterion,
        of=of,
        experiments=experiments,
        vary=vary,
        noise=noise,
        costs=costs,
        budget=budget,
        replicates=replicates,
        spacing=spacing,
        runs=runs,
        together=together,
        scale=scale,
        level=level,
        seed=seed,
    )
    check_time_limit(time_limit)
    whole(samples, "samples")
    if request.criterion.of_models is not (against is not None):
        raise InputError(
            f"criterion {request.criterion.value}: give the other model with --against (against=)"
            if against is None
            else f"criterion {request.criterion.value}: with another model it is T or "
            "Buzzi-Ferraris"
        )
    region, vectors = _region(over, known_result, vector, samples, seed, time_limit, jobs)
    known = _knowledge(known_result, vectors, vector, region, counts)
    if against is None:
        return Design(**vars(_dated(plan(request, known), problem)))
    if region is not Region.ESTIMATE or of is not None:
        raise InputError("against: two models are compared at their estimates; leave out over, of")
    from odefit.designs.discrimination.planning import plan_discrimination

    other, other_result, at = _begun(against, None, None)
    also = other_result is not None if existing is None else bool(existing)
    of_other = _knowledge(other_result, at[None], at, region, also)
    measurements = plan_discrimination(request, known, other, of_other, observables, vary, noise)
    return Design(**vars(_dated(measurements, problem)))


def _dated(design: DesignData, problem: Problem) -> DesignData:
    """Return the design with the dates of its measurements, to the minute, where data have some."""

    def dated(m: Measurement) -> Measurement:
        calendar = calendar_of(problem, problem.condition(design.runs[m.run].experiment))
        date = None if calendar is None else calendar.date(m.time)
        if date is None:
            return m
        nearest = date + datetime.timedelta(seconds=30)  # the rest of the minute is cut off
        return replace(m, date=nearest.isoformat(" ", "minutes").removesuffix(" 00:00"))

    return replace(design, measurements=tuple(map(dated, design.measurements)))


def _knowledge(
    result: Result | None, vectors: Array, vector: Array, region: Region, counts: bool
) -> Knowledge:
    """Return the knowledge before new measurements; `counts` is true if there are some."""
    uncertainty = None if result is None or not counts else result.uncertainty
    variance = None
    if result is not None and result.uncertainty is not None:
        residual = result.uncertainty.variance
        variance = residual if np.isfinite(residual) and residual > 0 else None
    profiles = None if result is None or not counts else result.profiles
    return Knowledge(vectors, vector, region, counts, variance, uncertainty, profiles)


def _begun(
    source: Problem | Result, values: Mapping[str, float] | None, result: Result | None
) -> tuple[Problem, Result | None, Array]:
    """Return the problem, the result and the vector of unknowns that a design starts from."""
    from odefit.simulation.simulations import chosen_values

    if isinstance(source, Result):
        if result is not None:
            raise InputError("result: the first argument is a result already")
        problem, result = source.problem, source
    elif isinstance(source, Problem):
        problem = source
    else:
        raise not_a_problem("design", source)
    if result is None:
        problem, vector = chosen_values(problem, values or {})
        return problem, None, np.asarray(vector, dtype=float)
    if not result.solutions:
        raise InputError(f"result: it contains no solution: {result.message}")
    if result.problem.keys != problem.keys:
        raise InputError("result: it belongs to a problem with other unknowns")
    if result.best.nodes is not None:
        raise InputError(
            "result: its trajectories restart at shooting nodes; a design needs trajectories "
            "from one integration each"
        )
    vector = np.array(result.best.vector, dtype=float)
    for key, value in (values or {}).items():
        if key not in problem.keys:
            raise InputError(
                f"--set {key}: the result has no unknown '{key}'{one_of(key, problem.keys)}"
            )
        vector[problem.keys.index(key)] = value
    return problem, result, vector


def _region(
    over: Over,
    result: Result | None,
    vector: Array,
    samples: int,
    seed: int,
    time_limit: float | None,
    jobs: int | None,
) -> tuple[Region, Array]:
    """Return where a design is optimised, and the vectors of unknowns there, shape (S, n)."""
    if isinstance(over, str):
        named = [r.value for r in Region if r is not Region.GIVEN]
        if over not in named:
            raise InputError(f"over: {shown(over)} is not known{one_of(over, named)}")
        region = Region(over)
        if region is Region.ESTIMATE:
            return region, vector[None]
        if result is None:
            raise InputError(f"over: the {over} needs a result; fit the problem first")
        if region is Region.PROFILE:
            profiles = result.profiles or result.profile(time_limit=time_limit, jobs=jobs)
            inside = [p.vectors[p.deviances <= profiles.limit] for p in profiles.profiles]
            vectors = np.concatenate([vector[None], *inside])
        elif region is Region.BOOTSTRAP:
            vectors = result.bootstrap(samples, seed=seed, time_limit=time_limit, jobs=jobs).vectors
        else:
            draws = max(samples, 200)
            sample = result.sample(draws, 2, seed=seed, time_limit=time_limit, jobs=jobs)
            vectors = sample.sampled()
    else:
        region = Region.GIVEN
        sampled = getattr(over, "sampled", None)  # of a posterior, which may have no samples
        source = getattr(over, "vectors", over) if sampled is None else sampled()
        try:
            vectors = np.atleast_2d(np.asarray(source, dtype=float))
        except (TypeError, ValueError):
            raise InputError(
                "over: expected a name such as 'profile', or vectors of unknowns, got "
                f"{shown(over)}"
            ) from None
        if vectors.shape[-1] != len(vector) or vectors.ndim != 2 or not np.isfinite(vectors).all():
            raise InputError(
                f"over: expected vectors of {len(vector)} finite unknowns, got the shape "
                f"{vectors.shape}"
            )
    if not len(vectors):
        raise InputError(f"over: there are no samples of the {over}; give it more time")
    chosen = np.unique(np.linspace(0, len(vectors) - 1, min(samples, len(vectors))).astype(int))
    return region, np.asarray(vectors[chosen], dtype=float)
