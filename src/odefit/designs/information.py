"""Fisher information of possible measurements, from the sensitivities of the model."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from odefit.assessment.outputs import noise_sds
from odefit.common.arrays import Array, BoolArray
from odefit.common.errors import InputError
from odefit.designs.factors import Factor, realised, with_pieces
from odefit.designs.parts import Excluded, Exclusion, Run
from odefit.problem.condition import Condition, Series
from odefit.problem.noise import Noise
from odefit.problem.noise_distributions.registry import log_of_base
from odefit.problem.problem import Problem
from odefit.simulation import Failure, ForwardMap
from odefit.simulation.engines.engine_choice import UNDECIDED
from odefit.simulation.trajectories.trajectory import Trajectory

Excludes = dict[tuple[Excluded, str], tuple[int, str]]
"""Counts of candidates that cannot be measured, by reason and name, with a detail."""


@dataclass(frozen=True, eq=False)
class RunInformation:
    """Measurements of each observable of a run at some times.

    Attributes
    ----------
    times
        Increasing times, shape (k,).
    possible
        Whether an observable can be measured at a time, shape (k, o).
    rows
        Rows whose squares are the information of a measurement, shape (k, o, 2, n); the second row
        is that of the spread of the noise.
    values, sds, gradients
        The predictions and standard deviations, on the scale of the noise, shape (k, o), and the
        derivatives of the predictions on that scale, shape (k, o, n).
    """

    times: Array
    possible: BoolArray
    rows: Array
    values: Array
    sds: Array
    gradients: Array


class InformationMap:
    """The information of measurements in the runs of a problem.

    Parameters
    ----------
    problem
        The problem, whose observables may be measured.
    observables
        The observables of interest.
    factors
        The quantities that runs may set.
    variance
        The variance of the noise if the problem gives none.
    """

    def __init__(
        self,
        problem: Problem,
        observables: Sequence[str],
        factors: Sequence[Factor] = (),
        variance: float = 1.0,
    ) -> None:
        self.problem = problem
        self.observables = tuple(observables)
        self.factors = tuple(factors)
        self.variance = variance
        self.forward = ForwardMap(problem)
        self.excluded: Excludes = {}
        self._made: dict[object, tuple[ForwardMap, list[Condition], Array]] = {}

    def of(
        self, runs: Sequence[Run], times: Sequence[Array], vector: Array
    ) -> list[RunInformation]:
        """Return the information of measurements in some runs, each at its own increasing times."""
        forward, conditions, mapping = self._prepared(runs)
        extended = mapping @ vector
        return [
            self._of_run(forward, condition, run, np.asarray(t, dtype=float), extended, mapping)
            for condition, run, t in zip(conditions, runs, times, strict=True)
        ]

    def existing(self, vector: Array, *, measurements: bool) -> Array:
        """Return rows whose squares are the existing information, shape (r, n).

        It includes priors, and with `measurements` the data. Raises InputError if the model cannot
        be integrated.
        """
        if not measurements and not self.problem.priors:
            return np.zeros((0, len(vector)))
        evaluation = self.forward.evaluate(vector, UNDECIDED)
        if isinstance(evaluation, Failure):
            raise InputError(f"the model cannot be integrated at these values: {evaluation}")
        rows = evaluation.information
        if not measurements:
            rows = rows[max((b.sd_rows or b.rows).stop for b in self.forward.series_rows) :]
        return np.asarray(rows / np.sqrt(self.scale))

    @property
    def scale(self) -> float:
        """The variance of unweighted residuals; 1 if the noise is given."""
        return 1.0 if self.forward.given_noise else self.variance

    @property
    def exclusions(self) -> tuple[Exclusion, ...]:
        """The omitted candidates, with reasons."""
        return tuple(
            Exclusion(reason, name, count, detail)
            for (reason, name), (count, detail) in self.excluded.items()
        )

    def natural(self, name: str, values: Array) -> Any:
        """Return predictions of an observable on its scale of noise in natural units."""
        transform = self.problem.noise.get(name, Noise()).transform
        return values if transform is None else np.exp(values * log_of_base(transform))

    # Runs as conditions -----------------------------------------------------------------------

    def _prepared(self, runs: Sequence[Run]) -> tuple[ForwardMap, list[Condition], Array]:
        """Return a forward map, the condition of each run, and the mapping of its unknowns."""
        problem = self.problem
        if not self.factors:
            identity = np.eye(len(problem.unknowns))
            return self.forward, [problem.condition(r.experiment) for r in runs], identity
        key = tuple((r.experiment, tuple(r.settings.items())) for r in runs)
        if key not in self._made:
            self._made = {key: self._extended(runs)}  # only the last ones are requested again
        return self._made[key]

    def _extended(self, runs: Sequence[Run]) -> tuple[ForwardMap, list[Condition], Array]:
        problem = self.problem
        by_name = {e.name: e for e in problem.experiments}
        names = {e.name for e in problem.experiments}
        added, origin = [], {}
        for k, run in enumerate(runs):
            name = f"{run.experiment} ({k + 1})"
            while name in names:
                name += "'"
            origin[name] = run.experiment
            added.append(realised(problem, by_name[run.experiment], name, run, self.factors))
        other = problem.with_experiments([*problem.experiments, *added])
        keys = {u.key: i for i, u in enumerate(problem.unknowns)}
        alike = {(u.name, u.experiment): i for i, u in enumerate(problem.unknowns)}
        mapping = np.zeros((len(other.unknowns), len(keys)))
        for i, u in enumerate(other.unknowns):
            # A new run of an experiment has the unknowns of that experiment.
            source = origin.get(u.experiment or "", u.experiment)
            column = alike.get((u.name, source), alike.get((u.name, None), keys.get(u.key)))
            if column is not None:
                mapping[i, column] = 1.0
        conditions = [other.condition(e.name) for e in added]
        conditions = [
            with_pieces(c, r, self.factors) for c, r in zip(conditions, runs, strict=True)
        ]
        changed = copy(other)
        changed.conditions = tuple(conditions)
        return ForwardMap(changed), conditions, mapping

    # Measurements -----------------------------------------------------------------------------

    def _of_run(
        self,
        forward: ForwardMap,
        condition: Condition,
        run: Run,
        times: Array,
        vector: Array,
        mapping: Array,
    ) -> RunInformation:
        k, o, n = len(times), len(self.observables), mapping.shape[1]
        about_times = RunInformation(
            times,
            np.zeros((k, o), dtype=bool),
            np.zeros((k, o, 2, n)),
            np.full((k, o), np.nan),
            np.full((k, o), np.nan),
            np.zeros((k, o, n)),
        )
        trajectory = forward.trajectory(vector, condition.name, times)
        if isinstance(trajectory, Failure):
            self._exclude(Excluded.FAILED, run.experiment, k * o, trajectory.reason)
            return about_times
        at_times = replace(condition, times=times)
        predicted = forward.predictions(at_times, vector, trajectory, noise=True)
        series: dict[str, Series] = {}
        for j, name in enumerate(self.observables):
            noise = forward.problem.noise.get(name, Noise())
            values = predicted[name].array(k)
            gradient = predicted[name].gradient(len(vector), k)
            with np.errstate(all="ignore"):
                sds = noise_sds(forward, condition, name, vector, predicted, times)
                assert sds is not None, "the noise of candidates is checked before"
                measured = condition.series.get(name)
                column = measured is not None and measured.sds_given
                if noise.relative is not None and not column:
                    sds = noise.relative * np.abs(values)
            fine = self._usable(name, noise, values, gradient, sds)
            about_times.possible[:, j] = fine
            with np.errstate(all="ignore"):
                about_times.values[:, j] = (
                    values if noise.transform is None else _log(noise, values)
                )
                slope = 1.0 if noise.transform is None else values * log_of_base(noise.transform)
                about_times.gradients[:, j] = (gradient / np.reshape(slope, (-1, 1))) @ mapping
            about_times.sds[:, j] = sds * np.sqrt(self.scale)
            rows = np.flatnonzero(fine)
            if len(rows):
                known_sds = sds[rows] if column or noise.relative is not None else None
                series[name] = Series(rows, values[rows], known_sds)
        if series:
            self._fill(
                about_times, forward, replace(at_times, series=series), trajectory, vector, mapping
            )
        return about_times

    def _fill(
        self,
        about_times: RunInformation,
        forward: ForwardMap,
        condition: Condition,
        trajectory: Trajectory,
        vector: Array,
        mapping: Array,
    ) -> None:
        """Fill in the rows of the information of the measurements of a condition."""
        measured = copy(forward.problem)
        measured.conditions = (condition,)
        other = forward.of(measured)
        evaluation = other.evaluate_along(vector, [trajectory])
        if isinstance(evaluation, Failure):
            count = int(about_times.possible.sum())
            self._exclude(Excluded.FAILED, condition.name, count, evaluation.reason)
            about_times.possible[:] = False
            return
        information = evaluation.information / np.sqrt(self.scale)
        for block in other.series_rows:
            j, at = self.observables.index(block.name), block.series.rows
            about_times.rows[at, j, 0] = information[block.rows] @ mapping
            if block.sd_rows is not None:
                about_times.rows[at, j, 1] = information[block.sd_rows] @ mapping

    def _usable(
        self, name: str, noise: Noise, values: Array, gradient: Array, sds: Array
    ) -> BoolArray:
        finite = np.isfinite(values) & np.isfinite(gradient).all(axis=1) & np.isfinite(sds)
        self._exclude(Excluded.NOT_FINITE, name, int((~finite).sum()))
        positive = np.ones_like(finite)
        if noise.transform is not None or noise.counts:
            positive = values > 0
            self._exclude(Excluded.NOT_POSITIVE, name, int((finite & ~positive).sum()))
        spread = sds > 0
        self._exclude(Excluded.NO_SPREAD, name, int((finite & positive & ~spread).sum()))
        return np.asarray(finite & positive & spread)

    def _exclude(self, reason: Excluded, name: str, count: int, detail: str = "") -> None:
        if count:
            known = self.excluded.get((reason, name), (0, ""))[0]
            self.excluded[reason, name] = known + count, detail


def _log(noise: Noise, values: Array) -> Array:
    """Return values on the logarithmic scale of their noise."""
    assert noise.transform is not None
    return np.asarray(np.log(values) / log_of_base(noise.transform))
