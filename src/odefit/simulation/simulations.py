"""Simulations of experiments, as values or as a table, and the residuals of all experiments."""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from odefit.common.arrays import Array
from odefit.common.errors import InputError, counted, did_you_mean, shown
from odefit.common.option_checks import natural_in
from odefit.common.packages import require
from odefit.expressions.expressions import number_in
from odefit.problem.calendars import Calendar, as_times, calendar_of, date_column, equal_times
from odefit.problem.condition import Condition
from odefit.problem.experiment import frame
from odefit.problem.habits import not_a_problem
from odefit.problem.inputs.cells import plain_number
from odefit.problem.inputs.dates import moment, pair_of_dates
from odefit.problem.problem import Problem
from odefit.simulation.engines.failure import Failure, SimulationError
from odefit.simulation.forward import ForwardMap
from odefit.simulation.nodes import Nodes
from odefit.simulation.other_integrations import able_to_integrate, other_integrations
from odefit.simulation.residuals.observation import algebraic_variables
from odefit.simulation.second_opinion import SecondOpinion, better_map, second_opinion
from odefit.simulation.trajectories.trajectory import without_sensitivities

if TYPE_CHECKING:
    import numpy.typing as npt
    import pandas as pd

MAX_TIMES = 1_000_000
"""Largest number of times that a text may request: the largest number of rows of a table."""


@dataclass(frozen=True, eq=False, repr=False)
class Simulation:
    """States and observables of one experiment.

    Attributes
    ----------
    times
        Times, shape (k,).
    states, observables
        Values by name, shape (k,) each; `states` also holds the algebraic variables.
    calendar
        The dates of the times, if the data have dates.
    """

    times: Array
    states: dict[str, Array]
    observables: dict[str, Array]
    calendar: Calendar | None = None

    @property
    def table(self) -> pd.DataFrame:
        """The simulation as a table with the columns ``t``, the states, the observables.

        If the data have dates, those of the times are in the column ``date``.
        """
        dates: Mapping[str, Any] = {}
        if self.calendar is not None:
            dates = self.calendar.column(self.times)
        return frame(self.times, {**dates, **self.states, **self.observables})

    def __repr__(self) -> str:
        return f"Simulation at {counted(len(self.times), 'time')}:\n{self.table}"

    def _repr_html_(self) -> str:
        return str(self.table.to_html(max_rows=10, index=False))


def simulate(
    problem: Problem,
    vector: npt.ArrayLike | Mapping[str, float],
    times: npt.ArrayLike | None = None,
    experiment: str | None = None,
    *,
    forward: ForwardMap | None = None,
) -> Simulation:
    """Return states and observables of one experiment at `times`.

    Parameters
    ----------
    problem
        The problem.
    vector
        Unknowns, by name or as numbers, shape (n,), in the order of ``problem.keys``.
    times
        Times, increasing, not before t0; None for the data times. Dates are accepted if the data
        have dates.
    experiment
        Name of the experiment; None for the first.
    forward
        The problem's forward map, if there is one already: it has compiled the model.

    Raises
    ------
    InputError
        Unknown experiment, values that are not one for each unknown, or times that are not
        increasing or before t0.
    SimulationError
        The integration fails; the message gives the time and the reason.
    """
    if not isinstance(problem, Problem):
        raise not_a_problem("simulate", problem)
    values = problem.vector(vector) if isinstance(vector, Mapping) else _vector(problem, vector)
    points = None if times is None else as_times(times, problem, problem.condition(experiment))
    simulation = simulated(problem, values, points, experiment, forward=forward)
    if isinstance(simulation, Failure):
        raise SimulationError(simulation)
    return simulation


def _vector(problem: Problem, values: npt.ArrayLike) -> Array:
    """Return values of the unknowns as a vector, from any kind of sequence."""
    keys = problem.keys
    expected = f"expected a number for each of {', '.join(keys)}, in this order, or by name"
    try:
        vector = np.atleast_1d(np.asarray(values, dtype=float))
    except (TypeError, ValueError):
        raise InputError(f"values: {expected}, got {shown(values)}") from None
    if vector.shape != (len(keys),):
        raise InputError(f"values: {expected}, got {counted(vector.size, 'number')}")
    return vector


def simulated(
    problem: Problem,
    vector: Array,
    times: Array | None = None,
    experiment: str | None = None,
    *,
    forward: ForwardMap | None = None,
) -> Simulation | Failure:
    """Return the result of :func:`simulate`, or a failure as a value."""
    forward = forward or ForwardMap(problem)
    trajectory = forward.trajectory(vector, experiment, times, sensitivities=False)
    if isinstance(trajectory, Failure):
        return trajectory
    condition = problem.condition(experiment)
    predicted = forward.predictions(condition, vector, trajectory)
    states = {n: trajectory.states[:, i] for i, n in enumerate(forward.field.states)}
    with np.errstate(all="ignore"):
        states |= algebraic_variables(forward.field, condition, vector, trajectory)
    observables = {n: np.asarray(d.value, dtype=float) for n, d in predicted.items()}
    return Simulation(trajectory.times, states, observables, calendar_of(problem, condition))


def simulate_answer(
    problem: Problem,
    vector: Array,
    nodes: Nodes | None,
    times: Array | None = None,
    experiment: str | None = None,
) -> Simulation:
    """Return the simulation of an answer, by another engine if the usual one fails."""
    forward = ForwardMap(problem, nodes=nodes)
    simulation = simulated(problem, vector, times, experiment, forward=forward)
    if isinstance(simulation, Failure) and nodes is None:
        for other, _ in other_integrations(problem, vector):
            again = simulated(problem, vector, times, experiment, forward=other)
            if not isinstance(again, Failure):
                return again
    if isinstance(simulation, Failure):
        raise SimulationError(simulation)
    return simulation


@dataclass(frozen=True, eq=False)
class Residuals:
    """Measured and predicted values of one observable in one experiment, shape (k,) each.

    Attributes
    ----------
    experiment, observable
        Their names.
    times
        The times of the measurements.
    measured, predicted
        Values in natural units.
    standardized
        Predicted minus measured values in standard deviations, on the scale of the noise model;
        deviance residuals if the noise is not normal, innovations if it is correlated in time.
    sds
        The standard deviations, 1 for plain least squares.
    """

    experiment: str
    observable: str
    times: Array
    measured: Array
    predicted: Array
    standardized: Array
    sds: Array


def residual_table(
    problem: Problem, vector: Array, nodes: Nodes | None = None
) -> list[Residuals] | Failure:
    """Return the residuals of all observables in all experiments.

    The vector of unknowns has the shape (n,), in natural units. If a trajectory cannot be
    integrated, the failure is returned.
    """
    return residuals_by(able_to_integrate(problem, vector, nodes), vector)


def residuals_by(forward: ForwardMap, vector: Array) -> list[Residuals] | Failure:
    """Return the result of :func:`residual_table`, by a map that integrates at the vector."""
    residuals = _residuals(forward, vector, sensitivities=True)  # as an evaluation integrates them
    if isinstance(residuals, Failure):  # values may be finite although their derivatives are not
        values = _residuals(forward, vector, sensitivities=False)
        return residuals if isinstance(values, Failure) else values
    return residuals


def _residuals(
    forward: ForwardMap, vector: Array, *, sensitivities: bool
) -> list[Residuals] | Failure:
    trajectories = forward.trajectories(vector, sensitivities=sensitivities)
    if isinstance(trajectories, Failure):
        return trajectories
    if not sensitivities:  # small problems get them anyway
        trajectories = [without_sensitivities(course) for course in trajectories]
    tables = []
    residuals = forward.series_residuals(vector, trajectories)
    for condition in forward.problem.conditions:
        for name, series in condition.series.items():
            block = next(residuals)
            if isinstance(block, Failure):
                return block
            tables.append(
                Residuals(
                    experiment=condition.name,
                    observable=name,
                    times=condition.times[series.rows],
                    measured=series.values,
                    predicted=block.predicted,
                    standardized=block.residuals,
                    sds=block.sds,
                )
            )
    return tables


def values_from_text(
    texts: Sequence[str], option: str = "--set", example: str = "k1=0.5 or k1=1/6"
) -> dict[str, float]:
    """Return the values by name from the ``NAME=VALUE`` texts of an option.

    Raises InputError if a text has another form.
    """
    values = {}
    for text in texts:
        name, separator, value = text.rpartition("=")
        number = number_in(value)
        if not separator or not name or number is None or not math.isfinite(number):
            raise InputError(
                f"{option} {text}: expected NAME=VALUE with a number, such as {example}"
            )
        values[name.strip()] = number
    return values


def times_from_text(text: str, problem: Problem, experiment: str | None = None) -> Array:
    """Return the times of an experiment given by ``FROM:TO:COUNT`` or as ``0,2,5``, increasing.

    They are numbers, or dates if the data have dates. Raises InputError if a text has another form.
    """
    condition = problem.condition(experiment)
    listed: list[Any] = [part if moment(part) else plain_number(part) for part in text.split(",")]
    if None not in listed:
        return np.unique(as_times(listed, problem, condition))
    ends, _, count = text.rpartition(":")
    numbers = _ends(ends, problem, condition)
    many = natural_in(count) or 0
    if numbers is not None and not 2 <= many <= MAX_TIMES:
        raise InputError(
            f"--times {text}: expected FROM:TO:COUNT with a whole number of times from 2 to "
            f"{MAX_TIMES}, got {shown(count.strip())}"
        )
    if numbers is None or not numbers[0] < numbers[1]:
        example = "0:10:101"
        if condition.origin is not None:
            first = condition.origin.date()
            example += f" or {first}:{first + datetime.timedelta(days=30)}:31"
        raise InputError(f"--times {text}: expected FROM:TO:COUNT, e.g. {example}, or 0,2,5")
    return np.linspace(*numbers, many)


def _ends(text: str, problem: Problem, condition: Condition) -> tuple[float, float] | None:
    """Return the two times in a text, separated by a colon; None for any other text."""
    if (dates := pair_of_dates(text)) is not None:
        low, high = as_times(dates, problem, condition)
        return float(low), float(high)
    numbers = [plain_number(part) for part in text.split(":")]
    return None if len(numbers) != 2 or None in numbers else (numbers[0] or 0.0, numbers[1] or 0.0)


def times_of_all(text: str, problem: Problem) -> Array:
    """Return the result of :func:`times_from_text` for all experiments at once.

    Raises InputError if the numbers differ between experiments, as their dates have different
    origins.
    """
    each = [times_from_text(text, problem, c.name) for c in problem.conditions]
    return equal_times(each, f"--times {text}")


def confirmed_simulation(
    problem: Problem,
    values: Mapping[str, float],
    times: Array | None = None,
    *,
    strict: bool = True,
    nodes: Nodes | None = None,
) -> tuple[pd.DataFrame, SecondOpinion | None]:
    """Return states and observables of all experiments, and a second opinion on them.

    The table has a row for each time. If several engines agree on values other than those of the
    usual one, the table has theirs. A trajectory through nodes has no second opinion.

    Values are by the key of an unknown, or by the name of a parameter or state that is not
    estimated; the others have their guesses. The times replace those of the data in every
    experiment. With `strict`, a name that the problem does not have is an error. Raises InputError
    if a name is unknown, an unknown has no value, or an integration fails.
    """
    problem, vector = chosen_values(problem, values, strict=strict)
    forward = ForwardMap(problem, nodes=nodes)
    if nodes is not None:
        return _table(forward, vector, times), None
    table = _table(forward, vector, times)  # reports the failure
    opinion = second_opinion(forward, vector, times, noise=False)
    better = better_map(forward, opinion)
    return table if better is None else _table(better, vector, times), opinion


def _table(forward: ForwardMap, vector: Array, times: Array | None) -> pd.DataFrame:
    """Return states and observables of all experiments at a vector of unknowns."""
    require("pandas")
    import pandas as pd

    problem = forward.problem
    parts = []
    for condition in problem.conditions:
        simulation = simulated(problem, vector, times, condition.name, forward=forward)
        if isinstance(simulation, Failure):
            raise InputError(f"the simulation failed: {simulation}")
        columns: dict[str, object] = {}
        if len(problem.conditions) > 1:
            columns["experiment"] = condition.name
        columns["t"] = simulation.times
        columns |= {
            **date_column(problem, condition, simulation.times),
            **simulation.states,
            **simulation.observables,
        }
        parts.append(pd.DataFrame(columns))
    return pd.concat(parts, ignore_index=True)


def chosen_values(
    problem: Problem, values: Mapping[str, float], *, strict: bool = True
) -> tuple[Problem, Array]:
    """Return the problem with given values of fixed quantities, and the vector of unknowns.

    See :func:`confirmed_simulation` for the arguments.

    Raises InputError if a name is unknown, or an unknown has no value.
    """
    keys = set(problem.keys)
    fixed = (set(problem.parameters) | set(problem.initial)) - {u.name for u in problem.unknowns}
    if strict:
        for name in set(values) - keys - fixed:
            hint = did_you_mean(name, keys | fixed)
            raise InputError(f"--set {name}: there is no parameter or state '{name}'{hint}")
        problem = problem.with_parameters(**{k: v for k, v in values.items() if k in fixed})
    chosen = {}
    for unknown in problem.unknowns:
        value = values.get(unknown.key, unknown.parameter.guess)
        if value is None and unknown.kind == "noise":
            value = 1.0  # does not act on the trajectory
        if value is not None:
            chosen[unknown.key] = value
    missing = [k for k in problem.keys if k not in chosen]
    if missing:
        example = " ".join(f"{k}=VALUE" for k in missing)
        raise InputError(f"no value for {', '.join(missing)}; give --set {example}")
    return problem, problem.vector(chosen)
