"""The unknowns and conditions of a problem: every name resolved, every mistake reported."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from odefit.expressions.expressions import TIME, Expression, parse
from odefit.problem.binding import Bound
from odefit.problem.building.columns import Columns, read_columns
from odefit.problem.building.event_times import resolved_events
from odefit.problem.building.name_checks import Names
from odefit.problem.building.noise_checks import (
    check_noise,
    estimated_correlations,
    with_limits,
    with_missing_sds,
)
from odefit.problem.building.preparation import Definition, experiment_place
from odefit.problem.condition import Condition, Repetition, Series
from odefit.problem.experiment import Cycle, Experiment, Input, data_place
from odefit.problem.inputs.dates import moment
from odefit.problem.inputs.issues import Issues
from odefit.problem.noise import WALK_SPANS, WHITE_GAPS, Noise
from odefit.problem.parameters import Parameter, Unknown

Kind = Literal["parameter", "initial", "noise"]


def resolve(
    definition: Definition, issues: Issues
) -> tuple[tuple[Unknown, ...], tuple[Condition, ...]]:
    """Return the unknowns in their order, and a condition for each experiment.

    The result is valid if `issues` has no errors.
    """
    if not definition.model.ode:
        return (), ()  # the model reports it; without states the rest is meaningless
    return _Resolution(definition, issues).run()


def resolve_further(
    definition: Definition, further: Sequence[tuple[Experiment, str]], issues: Issues
) -> tuple[tuple[Condition, ...], tuple[Condition, ...]]:
    """Return the conditions of a definition, and those of further experiments.

    Each further experiment comes with the name of the defined experiment whose unknowns it uses,
    where they differ between experiments. It needs no measurements.
    """
    resolution = _Resolution(definition, issues, further)
    known = resolution.run()[1]
    return known, resolution.further()


class _Resolution:
    """The state of :func:`resolve` and of :func:`resolve_further`."""

    def __init__(
        self,
        definition: Definition,
        issues: Issues,
        further: Sequence[tuple[Experiment, str]] = (),
    ) -> None:
        self.model = definition.model
        self.parameters = definition.parameters
        self.initial = definition.initial
        self.noise = definition.noise
        self.experiments = definition.experiments
        self.issues = issues
        self.unknowns: list[Unknown] = []
        self.index: dict[tuple[Kind, str, str | None], int] = {}
        self._further = further
        self._like = {experiment.name: name for experiment, name in further}
        every = (*definition.experiments, *(experiment for experiment, _ in further))
        self.names = Names(replace(definition, experiments=every), issues)

    def further(self) -> tuple[Condition, ...]:
        """Return the conditions of the further experiments, after :meth:`run`."""
        return tuple(self._condition(e, measured=False) for e, _ in self._further)

    def run(self) -> tuple[tuple[Unknown, ...], tuple[Condition, ...]]:
        self.names.check()
        for name, parameter in self.parameters.items():
            names = [e.name for e in self.experiments if name not in e.constants]
            if self.experiments and not names and parameter.fixed is None:
                self.issues.error(
                    f"[parameters] {name}",
                    "every experiment gives a value of its own, so nothing is left to estimate; "
                    "remove the parameter or one of those values",
                )
            self._add("parameter", name, parameter, names)
        for state in self.model.states:
            self._add_initial(state)
        conditions = tuple(self._condition(e) for e in self.experiments)
        unknown = {u.name for u in self.unknowns}
        at = self.model, self.noise, conditions, self.experiments, unknown
        for name in check_noise(*at, self.issues):
            self._add_noise(name)
        for name in estimated_correlations(self.noise, conditions):
            self._add_correlation_time(name, conditions)
        return tuple(self.unknowns), conditions

    def _add(self, kind: Kind, name: str, parameter: Parameter, experiments: Sequence[str]) -> None:
        if parameter.fixed is not None:
            return
        parameter = parameter.within_prior()
        if not parameter.per_experiment:
            self.index[kind, name, None] = len(self.unknowns)
            self.unknowns.append(Unknown(name, kind, None, name, parameter))
            return
        for experiment in experiments:
            key = f"{name}[{experiment}]" if len(self.experiments) > 1 else name
            self.index[kind, name, experiment] = len(self.unknowns)
            self.unknowns.append(Unknown(name, kind, experiment, key, parameter))

    def _add_initial(self, state: str) -> None:
        value = self.initial.get(state)
        names = [e.name for e in self.experiments if state not in e.initial]
        if isinstance(value, Parameter) and names:
            self._add("initial", state, value, names)
        for experiment in self.experiments:
            initial = experiment.initial.get(state)
            if isinstance(initial, Parameter):
                initial = replace(initial, per_experiment=True)
                self._add("initial", state, initial, [experiment.name])

    def _add_noise(self, observable: str) -> None:
        noise = self.noise[observable]
        key = noise.unknown(observable)
        if key in self.names.scalars or key in self.model.states:
            self.issues.error(
                f"[noise] {observable}",
                f"the name '{key}' is taken, but it is that of the estimated "
                f"{noise.law.spread_words}; "
                "rename the other",
            )
        self._add("noise", key, Parameter(lower=0.0), [])

    def _add_correlation_time(self, observable: str, conditions: Sequence[Condition]) -> None:
        """Bound a correlation time by a fraction of the shortest gap and a multiple of the span.

        Noise is white below these bounds, and a random walk above.
        """
        key = self.noise[observable].correlation_unknown(observable)
        if key in self.names.scalars or key in self.model.states:
            self.issues.error(
                f"[noise] {observable}",
                f"the name '{key}' is taken, but it is that of the estimated correlation time; "
                "rename the other",
            )
        gaps: list[float] = []
        spans: list[float] = []
        for condition in conditions:
            if observable in condition.series:
                times = np.unique(condition.times[condition.series[observable].rows])
                times = times[np.isfinite(times)]
                gaps += np.diff(times).tolist()
                spans += [float(np.ptp(times))] if len(times) > 1 else []
        if not gaps:
            self.issues.error(
                f"[noise] {observable}.correlation",
                "no experiment has values of it at two times, so a correlation in time cannot be "
                "estimated; remove the correlation",
            )
            return
        bounds = min(gaps) / WHITE_GAPS, max(spans) * WALK_SPANS
        self._add("noise", key, Parameter(*bounds, scale="log10"), [])

    def _lookup(self, kind: Kind, name: str, parameter: Parameter, experiment: str) -> int | float:
        if parameter.fixed is not None:
            return float(parameter.fixed)
        like = self._like.get(experiment, experiment)
        index = self.index.get((kind, name, like))
        return self.index[kind, name, None] if index is None else index

    def _condition(self, experiment: Experiment, *, measured: bool = True) -> Condition:
        place = experiment_place(experiment.name)
        columns = read_columns(experiment, self.model, self.issues, required=measured)
        t0 = experiment.t0 if isinstance(experiment.t0, float) else None
        if t0 is None and len(columns.times):
            first = float(columns.times[0])
            t0 = first if math.isfinite(first) else 0.0
            if columns.measured == (t0, t0) and t0 and not experiment.steady_state:
                self.issues.error(
                    data_place(experiment),
                    f"every value is measured at t = {t0:g}, the first time, which counts as t0; "
                    "the equations have no time to act; give the time at which the initial values "
                    "hold, such as t0 = 0.0",
                )
        span = columns.measured
        if t0 is not None and span is not None and span[0] < t0:
            self.issues.error(
                data_place(experiment),
                f"the data start at t = {span[0]:g}, before t0 = {t0:g}; "
                "lower t0 or remove those rows",
            )
        elif t0 is not None:
            columns = columns.from_time(t0)
            end = span[1] if span and math.isfinite(span[1]) else t0
            self._warn_of_short_inputs(columns.inputs, t0, end, place)
        scalars = self._scalars(experiment)
        happening = resolved_events(experiment, t0, self.model, self.names, scalars, self.issues)
        return Condition(
            name=experiment.name,
            t0=0.0 if t0 is None else t0,
            times=columns.times,
            series=self._series(columns, data_place(experiment)),
            inputs=columns.inputs,
            scalars=scalars,
            initial={s: self._initial_value(s, experiment, scalars) for s in self.model.states},
            algebraic_guess={z: self._guess(z, experiment) for z in self.model.algebraic},
            events=happening.known(),
            measured_after=frozenset(happening.measured_after),
            located=tuple(happening.located),
            steady_start=experiment.steady_state is not False,
            repeated=self._repetition(experiment, t0, scalars),
            origin=moment(experiment.origin),
        )

    def _repetition(
        self, experiment: Experiment, t0: float | None, scalars: Mapping[str, Bound]
    ) -> Repetition | None:
        """Return the repeated events whose periodic state starts the experiment."""
        cycle = experiment.steady_state
        if not isinstance(cycle, Cycle) or t0 is None:
            return None
        begin = t0 - cycle.period
        expressions = (*self.model.ode.values(), *self.model.algebraic.values())
        if any(TIME in e.names for e in expressions):
            self.issues.error(
                f"{experiment_place(experiment.name)} steady_state",
                "the equations contain the time t, so repeated doses do not lead to a "
                "periodic state",
            )
        shifted = [replace(e, times=tuple(_later(t, begin) for t in e.times)) for e in cycle.events]
        repeated = replace(experiment, events=tuple(shifted))
        happening = resolved_events(repeated, begin, self.model, self.names, scalars, self.issues)
        return Repetition(cycle.period, happening.known(), tuple(happening.located))

    def _series(self, columns: Columns, place: str) -> Mapping[str, Series]:
        """Return the measurements with the additions of ``[noise]`` to their columns."""
        series_of = columns.series
        for completed in (with_limits, with_missing_sds):
            series_of = {
                name: completed(
                    name, series, columns.times, self.noise.get(name, Noise()), place, self.issues
                )
                for name, series in series_of.items()
            }
        return series_of

    def _warn_of_short_inputs(
        self, inputs: Mapping[str, Input], t0: float, end: float, place: str
    ) -> None:
        for name, signal in inputs.items():
            if signal.times[0] > t0:
                self.issues.warn(
                    place,
                    f"input '{name}' starts at t = {signal.times[0]:g}, after t0 = {t0:g}; "
                    "its first value is used before",
                )
            if signal.interpolation != "constant" and signal.times[-1] < end:
                self.issues.warn(
                    place,
                    f"input '{name}' ends at t = {signal.times[-1]:g}, but there are measurements "
                    f"until t = {end:g}; its last value is used after",
                )

    def _scalars(self, experiment: Experiment) -> dict[str, Bound]:
        """Return the parameters and constants of `experiment`, free of references to each other."""
        scalars: dict[str, Bound] = dict.fromkeys(self.names.extra_constants, 0.0)
        scalars.update(self.model.constants)
        constants = {k: v for k, v in experiment.constants.items() if isinstance(v, Expression)}
        for name, parameter in self.parameters.items():
            if name not in constants:
                scalars[name] = self._lookup("parameter", name, parameter, experiment.name)
        for name, expression in constants.items():
            if expression.constant is not None:
                scalars[name] = expression.constant
        computed = {k: self._reduced(v, scalars) for k, v in constants.items() if v.names}
        return {**scalars, **computed}

    def _initial_value(
        self, state: str, experiment: Experiment, scalars: Mapping[str, Bound]
    ) -> Bound:
        value = experiment.initial.get(state, self.initial.get(state))
        if isinstance(value, Parameter):
            return self._lookup("initial", state, value, experiment.name)
        if isinstance(value, Expression):
            return self._reduced(value, scalars)
        return 0.0  # already reported as missing

    def _guess(self, variable: str, experiment: Experiment) -> float:
        value = experiment.initial.get(variable, self.initial.get(variable))
        if isinstance(value, Parameter):
            return value.guess or 0.0
        return (isinstance(value, Expression) and value.constant) or 0.0

    def _reduced(self, expression: Expression, scalars: Mapping[str, Bound]) -> Bound:
        """Simplify an expression that is a number or a single scalar."""
        if expression.constant is not None:
            return expression.constant
        return scalars.get(expression.name or "", expression)


def _later(time: float | Expression | str, by: float) -> float | Expression:
    """Return the time of an event, delayed by a number."""
    return by + time if isinstance(time, float) else parse(f"{by!r} + ({time})")
