"""Predictions and validations of a result, for fitted experiments and for scenarios."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from typing import TYPE_CHECKING, Any

from odefit.common.arrays import Array
from odefit.common.errors import InputError
from odefit.result_data import ResultData

if TYPE_CHECKING:
    import numpy.typing as npt
    import pandas as pd

    from odefit.assessment.predictions.cross_validation import Division
    from odefit.methods.running.control import Progress
    from odefit.problem.experiment import Doses, Event, Experiment, Value
    from odefit.problem.variants.scenario import Scenario
    from odefit.reporting.predictions import BandKind, SolutionChoice
    from odefit.result.validation import CrossValidation, Validation

    AnyRun = str | Scenario | Experiment | Mapping[str, Any] | None
    """An experiment by its name, a scenario, an experiment that was not fitted; None is the first
    experiment."""


class ResultPredictions:
    """The predictions of a result."""

    def simulate(
        self,
        times: npt.ArrayLike | None = None,
        experiment: AnyRun = None,
        *,
        inputs: Mapping[str, Any] | None = None,
        initial: Mapping[str, Value] | None = None,
        constants: Mapping[str, Value] | None = None,
        covariates: Mapping[str, Value] | None = None,
        doses: Sequence[Mapping[str, Any]] | None = None,
        dosing: Doses | Mapping[str, Any] | None = None,
        events: Sequence[Event] | None = None,
    ) -> pd.DataFrame:
        """Return the best solution's trajectory as a table.

        Parameters
        ----------
        times
            Increasing times, or dates, none before the initial time; None for the data times.
        experiment
            The experiment whose conditions hold, or an :class:`odefit.Scenario`; None for the
            first experiment.
        inputs, initial, constants, covariates, doses, dosing, events
            Differences of the run from that experiment, as in :class:`odefit.Scenario`; covariates
            are constants.

        Returns
        -------
        pandas.DataFrame
            A table with the columns ``t`` (and ``date`` where the data have dates), the states (and
            algebraic variables), the observables.

        Raises
        ------
        InputError
            The experiment is unknown, or a part or the times are unusable.
        SimulationError
            The simulation fails at these times; the message says when and why.
        """
        from odefit.assessment.predictions.prediction_runs import refused_on_nodes, runs_of
        from odefit.problem.calendars import as_times
        from odefit.simulation.simulations import simulate_answer

        result = _data(self)
        best = result.best
        changes = {
            "inputs": inputs,
            "initial": initial,
            "constants": None
            if not (constants or covariates)
            else {**(constants or {}), **(covariates or {})},
            "doses": doses,
            "dosing": dosing,
            "events": events,
        }
        run = _changed(experiment, {k: v for k, v in changes.items() if v is not None})
        named = run is None or isinstance(run, str)
        problem, runs = runs_of(result.problem, run, None if named else times)
        if not named and best.nodes is not None:
            raise refused_on_nodes("scenarios")
        name = runs[0].condition.name
        points: Array | None = runs[0].times
        if named:
            points = None if times is None else as_times(times, problem, runs[0].condition)
        return simulate_answer(problem, best.vector, best.nodes, points, name).table

    def predict(
        self,
        times: npt.ArrayLike | None = None,
        level: float = 0.95,
        experiment: AnyRun | Sequence[AnyRun] = None,
        by: BandKind = "linear",
        solutions: SolutionChoice = "all",
    ) -> pd.DataFrame:
        """Return predictions with confidence and prediction bands as a table.

        Parameters
        ----------
        times
            Times, or dates, none before the initial time; None for the data times, or those of a
            scenario.
        level
            The level of the bands, between 0 and 1; each holds for one time, not for all at once.
        experiment
            The experiment whose conditions hold, or an :class:`odefit.Scenario` with what differs
            from one; None for the first experiment. Of a list of these, the table has all, with
            their names in a column ``experiment``.
        by
            ``"linear"`` propagates the covariance of the estimates through the sensitivities.
            ``"profile"`` profiles each value, which takes longer and also holds for strongly
            nonlinear models. The samples that :meth:`bootstrap` or :meth:`sample` returns give
            percentiles.
        solutions
            The solutions that bands cover where several fit: ``"all"``, ``"mixture"`` (weighted),
            ``"best"``.

        Returns
        -------
        pandas.DataFrame
            A row for each time of each observable and of each other state. The columns are
            ``name``, ``kind`` ("observable" or "state"), ``t``, ``date`` where the data have dates,
            ``value`` and ``std_error``. Then follow the ends ``ci_low`` and ``ci_high`` of the
            confidence band (where the model's curve is) and ``pi_low`` and ``pi_high`` of the
            prediction band (where the next measurement is). Quantities that the data do not
            determine are NaN. ``attrs["notes"]`` has sentences on missing bands, and on
            extrapolation beyond the fitted experiments.

        Raises
        ------
        InputError
            An argument is invalid, or the answer has no bands of this kind.
        SimulationError
            The simulation fails at these times; the message says when and why.
        """
        from odefit.reporting.predictions import prediction_table

        return prediction_table(_data(self), times, level, experiment, by, None, solutions)

    def quantities(
        self,
        expressions: Sequence[str] | str,
        experiment: AnyRun | Sequence[AnyRun] = None,
        *,
        times: npt.ArrayLike | None = None,
        level: float = 0.95,
        by: BandKind = "linear",
    ) -> pd.DataFrame:
        """Return quantities derived from the model, with intervals, as a table.

        Parameters
        ----------
        expressions
            Texts such as ``"AUC = integral(C)"``, ``"max(C, 0:24)"``, ``"argmax(C)"``, ``"first(t
            where C > 2)"``, ``"time_above(C, 2)"``, ``"C@inf"`` (the steady state) or ``"R0 =
            beta/gamma"``. They are expressions in parameters, constants, initial values (by the
            names of their states) and functionals over time, see
            :mod:`odefit.assessment.functionals.over_time`.
        experiment
            The run, or a list of runs, as in :meth:`predict`.
        times
            Times; functionals without a window end at the last. None for those of the run.
        level, by
            As in :meth:`predict`.

        Returns
        -------
        pandas.DataFrame
            A row for each quantity of each run: ``experiment``, ``quantity``, ``value``,
            ``std_error``, ``ci_low`` and ``ci_high``. Undefined or undetermined values are NaN, and
            ``attrs["notes"]`` says why.

        Raises
        ------
        InputError
            An expression or another argument is invalid.
        """
        from odefit.reporting.quantities import quantity_table

        return quantity_table(_data(self), expressions, experiment, times, level, by)

    def validate(
        self,
        data: Any,
        *,
        free_initial: Sequence[str] | bool = False,
        level: float = 0.95,
        one_step: bool = True,
    ) -> Validation:
        """Compare the fit with measurements that were not fitted.

        Only initial values named in `free_initial` are fitted. The verdict allows for noise and for
        the uncertainty of the estimates. Where several solutions fit, it is that of the first, and
        a note tells which of the others the measurements speak for.

        Parameters
        ----------
        data
            The new measurements. A table with the column ``t``, observables and inputs is a run
            like the first experiment. Other forms are the name of a file that ``odefit predict
            --scenario`` reads, and an :class:`odefit.Scenario` or :class:`odefit.Experiment` with
            measurements in its table. All experiments of an :class:`odefit.Problem` are compared. A
            list may hold several of these.
        free_initial
            States whose initial values are fitted to the new measurements; True for all.
        level
            The level of the prediction band.
        one_step
            Whether each measurement is also predicted from those before it.

        Raises
        ------
        InputError
            The data cannot be used, or the answer has no linear bands.
        """
        from odefit.assessment.predictions.prediction_runs import refused_on_nodes
        from odefit.assessment.predictions.validation import validated
        from odefit.common.option_checks import check_level
        from odefit.result.validation import Validation

        check_level(level)
        result = _data(self)
        if result.best.nodes is not None:
            raise refused_on_nodes("predictions")
        runs = _runs_with_data(result, data)
        validation = validated(
            result.problem,
            result.best.vector,
            runs,
            free_initial=free_initial,
            level=level,
            one_step=one_step,
            others=[(k, s.vector) for k, s in enumerate(result.fitting[1:], 2) if s.nodes is None],
        )
        return Validation(**vars(validation))

    def cross_validate(
        self,
        by: Division = "experiment",
        folds: int | None = None,
        *,
        seed: int | None = None,
        time_limit: float | None = None,
        memory: int | str | None = None,
        executor: Executor | None = None,
        jobs: int | None = None,
        progress: Callable[[Progress], None] | None = None,
        stop: threading.Event | None = None,
    ) -> CrossValidation:
        """Leave out parts of the data in turn, and predict each from a fit of the rest.

        Parameters
        ----------
        by
            ``"experiment"`` or ``"subject"`` leaves out whole experiments, ``"block"`` blocks of
            time in all of them.
        folds
            The number of parts; by default one for each experiment, or five blocks.
        seed
            The seed for grouping experiments into fewer parts; by default that of the fit.
        time_limit, memory, executor, jobs, progress, stop
            As :func:`odefit.fit` takes them. If a limit ends the work, the parts so far are
            returned.

        Raises
        ------
        InputError
            An argument is invalid, or only one part carries information on an unknown.
        """
        from odefit.assessment.predictions.cross_validation import cross_validated
        from odefit.assessment.predictions.prediction_runs import refused_on_nodes
        from odefit.result.validation import CrossValidation

        result = _data(self)
        if result.best.nodes is not None:
            raise refused_on_nodes("predictions")
        validation = cross_validated(
            result.problem,
            result.best.vector,
            by,
            folds,
            seed=result.seed if seed is None else seed,
            time_limit=time_limit,
            memory=memory,
            executor=executor,
            jobs=jobs,
            progress=progress,
            stop=stop,
        )
        return CrossValidation(**vars(validation))


def _runs_with_data(result: ResultData, data: Any) -> list[Any]:
    """Return runs with measurements, from any of the accepted types."""
    import os

    from odefit.problem.building.columns import as_table
    from odefit.problem.experiment import Experiment
    from odefit.problem.problem import Problem
    from odefit.problem.toml.scenario_files import load_scenarios
    from odefit.problem.variants.scenario import Scenario

    if isinstance(data, Problem):
        return list(data.experiments)
    if isinstance(data, (Scenario, Experiment)):
        return [data]
    if isinstance(data, (str, os.PathLike)):
        return list(load_scenarios(data, result.problem))
    if isinstance(data, list | tuple):
        return [run for one in data for run in _runs_with_data(result, one)]
    if as_table(data) is None:
        raise InputError(
            "data: expected a table with the column t, a file, a scenario, an experiment or a "
            f"problem, got {type(data).__name__}"
        )
    return [Scenario("new data", data=data)]


def _changed(experiment: AnyRun, changes: Mapping[str, Any]) -> AnyRun:
    """Return the run that differs from an experiment or a scenario in given parts."""
    from dataclasses import replace

    from odefit.problem.variants.scenario import Scenario, as_scenario

    if not changes:
        return experiment
    if experiment is None or isinstance(experiment, str):
        return Scenario(like=experiment, **changes)
    return replace(as_scenario(experiment), **changes)


def _data(result: object) -> ResultData:
    """Return the result whose predictions these are."""
    assert isinstance(result, ResultData)
    return result
