"""Curves, objective and residuals at any values of the unknowns, by a cached forward map."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

import numpy as np

from odefit.common.arrays import Array, IntArray
from odefit.problem.condition import Condition
from odefit.problem.problem import Problem
from odefit.reporting.curves import distinguishable, fine_times, read_off, spreads_over_decades
from odefit.simulation import Failure, ForwardMap
from odefit.simulation.engines.engine_choice import UNDECIDED
from odefit.simulation.nodes import Nodes
from odefit.simulation.residuals.observation import algebraic_variables
from odefit.simulation.trajectories.trajectory import Trajectory


@dataclass(frozen=True, eq=False)
class ExperimentCurves:
    """The model in one experiment, as smooth lines by name; the last time may be infinite.

    The states include the algebraic variables.
    """

    times: Array
    observables: Mapping[str, Array]
    states: Mapping[str, Array]


@dataclass(frozen=True, eq=False)
class SeriesFit:
    """The residuals of one observable in one experiment, measured minus modelled, shape (n,).

    Residuals and standard deviations are on the scale of the noise model.
    """

    predicted: Array
    residuals: Array
    sds: Array


@dataclass(frozen=True, eq=False)
class LiveCurves:
    """The curves of some experiments at one vector, with residuals and objective if requested."""

    experiments: Mapping[str, ExperimentCurves]
    objective: float | None
    log_likelihood: float | None
    residuals: Mapping[tuple[str, str], SeriesFit]


class LiveModel:
    """The forward map of a problem, for values that change often.

    Everything is compiled once. The choice of an engine passes from one evaluation to the next, as
    in a search: a model known to be stiff is integrated as such at once. Use it from one thread at
    a time. `nodes` are those of an answer whose trajectories restart there.
    """

    def __init__(
        self, problem: Problem, nodes: Nodes | None = None, forward: ForwardMap | None = None
    ) -> None:
        self.problem = problem
        self.forward = forward or ForwardMap(problem, nodes=nodes)
        self._choices = dict.fromkeys((c.name for c in problem.conditions), UNDECIDED)
        self._choice = UNDECIDED
        self._grids: dict[str, Array] = {}
        self._rows: dict[tuple[str, str], IntArray] = {}

    def grid(self, condition: Condition) -> Array:
        """Return the times of the smooth lines of a condition, including its data times."""
        if condition.name not in self._grids:
            fine = fine_times(condition, spreads_over_decades(condition.times))
            self._grids[condition.name] = np.union1d(fine, condition.times)
        return self._grids[condition.name]

    def rows(self, condition: Condition, name: str) -> IntArray:
        """Return the drawn rows of a series: of thousands, those that can be distinguished."""
        key = condition.name, name
        if key not in self._rows:
            series, log_time = condition.series[name], spreads_over_decades(condition.times)
            self._rows[key] = distinguishable(condition.times[series.rows], series.values, log_time)
        return self._rows[key]

    def curves(
        self, vector: Array, experiments: Collection[str], objective: bool
    ) -> LiveCurves | Failure:
        """Return the curves of some experiments, or a failure.

        Objective and residuals, if requested, need all experiments.
        """
        drawn: dict[str, ExperimentCurves] = {}
        at_data: dict[str, Trajectory] = {}
        for condition in self.problem.conditions:
            if condition.name not in experiments:
                continue
            trajectory = self._integrated(condition, vector)
            if isinstance(trajectory, Failure):
                return trajectory
            drawn[condition.name] = self._lines(condition, vector, trajectory)
            at_data[condition.name] = _part(trajectory, condition.times)
        if not objective:
            return LiveCurves(drawn, None, None, {})
        if len(at_data) == len(self.problem.conditions):
            trajectories = list(at_data.values())
        else:
            together = self.forward.trajectories(vector, self._choice, sensitivities=False)
            if isinstance(together, Failure):
                self._choice = together.choice
                return together
            trajectories = together
            self._choice = trajectories[-1].choice
        evaluation = self.forward.evaluate_along(vector, trajectories, derivatives=False)
        if isinstance(evaluation, Failure):
            return evaluation
        residuals = self._residuals(vector, trajectories)
        if isinstance(residuals, Failure):
            return residuals
        return LiveCurves(drawn, evaluation.objective, evaluation.log_likelihood, residuals)

    def _integrated(self, condition: Condition, vector: Array) -> Trajectory | Failure:
        trajectory = self.forward.trajectory(
            vector,
            condition.name,
            self.grid(condition),
            sensitivities=False,
            choice=self._choices[condition.name],
        )
        self._choices[condition.name] = trajectory.choice
        return trajectory

    def _lines(
        self, condition: Condition, vector: Array, trajectory: Trajectory
    ) -> ExperimentCurves:
        field = self.forward.field
        predicted = self.forward.predictions(condition, vector, trajectory)
        states = {name: trajectory.states[:, i] for i, name in enumerate(field.states)}
        with np.errstate(all="ignore"):
            states |= algebraic_variables(field, condition, vector, trajectory)
        observables = {
            n: _sums_as_lines(trajectory.times, np.asarray(d.value, dtype=float), condition, n)
            for n, d in predicted.items()
        }
        return ExperimentCurves(trajectory.times, observables, states)

    def _residuals(
        self, vector: Array, trajectories: list[Trajectory]
    ) -> dict[tuple[str, str], SeriesFit] | Failure:
        fits: dict[tuple[str, str], SeriesFit] = {}
        blocks = self.forward.series_residuals(vector, trajectories)
        for condition in self.problem.conditions:
            for name in condition.series:
                block = next(blocks)
                if isinstance(block, Failure):
                    return block
                fits[condition.name, name] = SeriesFit(block.predicted, -block.residuals, block.sds)
        return fits


def _sums_as_lines(times: Array, values: Array, condition: Condition, name: str) -> Array:
    """Return the values of an observable, with those of a sum connected between its resets.

    A sum that is reset to zero at its measurements would be drawn as a sawtooth.
    """
    series = condition.series.get(name)
    if series is None or values.shape != times.shape:
        return values
    shown = read_off(times, values, condition, series)
    if shown.all() or not shown.any():
        return values
    shown_rows = np.flatnonzero(shown)
    finite = np.where(np.isinf(times), times[np.isfinite(times)].max(initial=0.0), times)
    lines = np.interp(finite, finite[shown_rows], values[shown_rows])
    lines[: shown_rows[0]] = np.nan  # nothing was summed before
    return lines


def _part(trajectory: Trajectory, times: Array) -> Trajectory:
    """Return a trajectory at some of its times."""
    rows = np.searchsorted(trajectory.times, times)
    return replace(
        trajectory,
        times=trajectory.times[rows],
        states=trajectory.states[rows],
        algebraic=trajectory.algebraic[rows],
        sensitivities=trajectory.sensitivities[rows],
        algebraic_sensitivities=trajectory.algebraic_sensitivities[rows],
        switched={n: (v[rows], s[rows]) for n, (v, s) in trajectory.switched.items()},
    )
