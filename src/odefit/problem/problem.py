"""The problem: model, experiments with their data, and prior knowledge of the unknowns."""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from odefit.common.arrays import Array
from odefit.common.errors import InputError, closest, counted, did_you_mean, nearest_first, shown
from odefit.expressions.expressions import TIME
from odefit.problem.building.layout import layout_of
from odefit.problem.building.preparation import Definition, as_initial, experiment_place, prepared
from odefit.problem.building.resolution import resolve
from odefit.problem.building.revision import revised
from odefit.problem.building.switches import with_switches
from odefit.problem.building.times import without_dates
from odefit.problem.condition import Condition
from odefit.problem.dosing.subjects import with_subjects
from odefit.problem.experiment import Doses, Experiment, Value, frame
from odefit.problem.habits import PROBLEM_HABITS, not_a_model, with_habits
from odefit.problem.inputs.issues import Issues, finite_number
from odefit.problem.model import Model
from odefit.problem.noise import Noise, as_noise, noise_hint
from odefit.problem.parameters import Parameter, as_parameter
from odefit.problem.priors import Prior
from odefit.problem.units import read_units
from odefit.problem.unknown_functions.joining import with_functions

if TYPE_CHECKING:
    import pandas as pd

GivenParameter = Parameter | Mapping[str, Any] | Sequence[float | None]
"""An unknown as given by a user; a pair means its bounds."""

SMALLEST = 5e-324
"""The smallest positive number, which replaces smaller probabilities."""

SOLE_EXPERIMENT = "data"
"""Name of the experiment of a problem given only data."""

KEPT = (
    "parameters", "initial", "noise", "experiments", "name", "description", "time_unit", "units",
    "notes",
)  # fmt: skip
"""Arguments that a modified copy of a problem takes over."""


class Problem:
    """An estimation problem: model, experiments, parameters, initial values and noise.

    A problem does not change once it is made.

    Parameters
    ----------
    model
        The equations.
    data
        For a single experiment: a DataFrame, or arrays by column (``t``, observables, inputs; NaN
        is not measured). For several experiments, give `experiments`.
    parameters
        Each parameter as a :class:`Parameter`, a mapping of its fields, a pair of bounds such as
        ``(0, 1)`` with None for no bound, or a number (fixed).
    initial
        Initial value of each state: a number, an expression in parameters and constants, or an
        unknown (:class:`Parameter`, a mapping of its fields, or a pair of bounds).
    noise
        Noise of each observable, a :class:`Noise` or a mapping of its fields. By default plain
        least squares.
    experiments
        The experiments, one or more.
    t0, origin
        If `data` are given: the time of the initial values, a number, or a date where the times are
        dates; and the date of t = 0, see :class:`Experiment`.
    time
        Name of the column, or of the index, of `data` that holds the times.
    by, doses, observable, columns
        For `data` in a long table of several subjects or of dose records, see :class:`Experiment`.
    name, description, time_unit
        Texts for reports.
    units
        Units of quantities by name (states, observables, constants, inputs, parameters), for
        :func:`odefit.check_units`; parameters may have theirs among their fields instead.
    notes
        Sentences on the conversion from another format, for ``odefit check``.
    issues
        A list to which mistakes are added instead of being raised, for readers of files.

    Attributes
    ----------
    model
        The equations as solved: comparisons that depend on time become constants that events set,
        see :mod:`odefit.problem.building.switches`; ``given`` has the equations as given.
    parameters, initial, noise, experiments, name, description, time_unit, units, notes
        The other arguments, with texts parsed and data copied.
    unknowns
        The estimated quantities, in the order of every vector of unknowns.
    conditions
        The experiments with every name resolved.
    warnings
        Remarks on input that is legal but odd.

    Raises
    ------
    InputError
        The problem is invalid; there is a message for each mistake, with its place and a remedy.

    Examples
    --------
    >>> problem = Problem(
    ...     Model(ode={"x": "-k*x"}),
    ...     data={"t": [0, 1, 2], "x": [1.0, 0.6, 0.4]},
    ...     parameters={"k": {"lower": 0}},
    ...     initial={"x": 1.0},
    ... )
    >>> [u.key for u in problem.unknowns]
    ['k']
    """

    @with_habits(PROBLEM_HABITS)
    def __init__(
        self,
        model: Model,
        data: Mapping[str, Any] | pd.DataFrame | None = None,
        parameters: Mapping[str, GivenParameter | float] | None = None,
        initial: Mapping[str, Value | GivenParameter] | None = None,
        *,
        noise: Mapping[str, Noise | Mapping[str, Any]] | None = None,
        experiments: Sequence[Experiment] = (),
        t0: float | str | datetime.date | None = None,
        origin: str | datetime.date | None = None,
        time: str = TIME,
        by: str | None = None,
        doses: Doses | Mapping[str, Any] | None = None,
        observable: str | Mapping[str, str] | None = None,
        columns: Mapping[str, str] | None = None,
        name: str = "problem",
        description: str = "",
        time_unit: str = "",
        units: Mapping[str, str] | None = None,
        notes: Sequence[str] = (),
        issues: Issues | None = None,
    ) -> None:
        if not isinstance(model, Model):
            raise not_a_model(model)
        issue_list = Issues() if issues is None else issues
        self.name, self.description, self.time_unit = name, description, time_unit
        self.notes = tuple(notes)
        if data is not None:
            if experiments:
                issue_list.error("problem", "give data or experiments, not both")
            sole = Experiment(SOLE_EXPERIMENT if by is None else "", data, t0=t0, time=time)
            sole = replace(sole, by=by, doses=doses, observable=observable, columns=columns or {})
            experiments = (replace(sole, origin=origin),)
        elif t0 is not None or origin is not None:
            key = "origin" if t0 is None else "t0"
            issue_list.error("problem", f"{key} belongs to data; each Experiment has its own")
        if not experiments:
            issue_list.error("[[experiment]]", 'no experiment; write one with data = "FILE.csv"')
        for e in [e for e in experiments if not isinstance(e, Experiment)]:
            issue_list.error("experiments", f"expected objects of Experiment, got {shown(e)}")
        notation = model.notation
        if noise is not None and not isinstance(noise, Mapping):
            hint = noise_hint(noise, model.observables, python=True)
            issue_list.error("noise", f"expected a mapping by observable, {hint}")
            noise = None
        tables = {"noise": noise, "parameters": parameters, "initial": initial}
        plain = {
            k: issue_list.items(f"[{k}]", notation.table(table or {}, f"[{k}]", issue_list))
            for k, table in tables.items()
        }
        runs = []
        for e in experiments:
            if isinstance(e, Experiment):
                place = experiment_place(e.name)
                numbered, note = without_dates(e, time_unit, place, issue_list)
                numbered = replace(numbered, layout=layout_of(e))
                runs.append(notation.experiment(numbered, place, issue_list))
                self.notes += (note,) if note else ()
                if numbered.origin is not None:
                    self.time_unit = time_unit or "d"
        runs, model = with_subjects(runs, model, {k: dict(v) for k, v in plain.items()}, issue_list)
        self.given = self.model = model
        of_problem = [prepared(e, issue_list) for e in runs], plain["parameters"]
        self.experiments, plain["parameters"] = with_functions(*of_problem, model, issue_list)
        self.noise = {k: as_noise(v, f"[noise] {k}", issue_list) for k, v in plain["noise"]}
        self.parameters = {
            k: as_parameter(v, f"[parameters] {k}", issue_list) for k, v in plain["parameters"]
        }
        self.initial = {k: as_initial(v, f"[initial] {k}", issue_list) for k, v in plain["initial"]}
        self.unknowns, self.conditions = resolve(definition_of(self), issue_list)
        constants = (n for e in self.experiments for n in e.constants)
        of_model = (model.ode, model.algebraic, model.observables, model.constants, model.inputs)
        known = {*constants, *self.parameters, *(name for table in of_model for name in table)}
        self.units = read_units(units or {}, notation.arrays, known, issue_list)
        if not issue_list.errors:
            self.model, self.conditions = with_switches(model, self.conditions)
        self.warnings = tuple(issue_list.warnings)
        if issues is None:
            issue_list.raise_errors()

    def __repr__(self) -> str:
        return (
            f"Problem({self.name!r}: {counted(len(self.model.ode), 'state')}, "
            f"{counted(len(self.unknowns), 'unknown')}, {counted(self.size, 'measurement')}, "
            f"{counted(len(self.experiments), 'experiment')})"
        )

    @property
    def keys(self) -> tuple[str, ...]:
        """Names of the unknowns."""
        return tuple(u.key for u in self.unknowns)

    @property
    def size(self) -> int:
        """Number of measured values in all experiments."""
        return sum(c.size for c in self.conditions)

    @cached_property
    def lower(self) -> Array:
        """Lower bounds of the unknowns, shape (n,)."""
        return np.array([u.parameter.lower for u in self.unknowns])

    @cached_property
    def upper(self) -> Array:
        """Upper bounds of the unknowns, shape (n,)."""
        return np.array([u.parameter.upper for u in self.unknowns])

    @property
    def priors(self) -> dict[str, Prior]:
        """The priors of the unknowns by key, except flat ones, which only bound."""
        by_key = {u.key: u.parameter.prior for u in self.unknowns}
        return {k: p for k, p in by_key.items() if p is not None and not p.flat}

    def log_prior(self, vector: Array, *, truncated: bool = True) -> Array:
        """Return the logarithms of the prior densities of the unknowns, shape (n,).

        A fit maximises their sum plus the log-likelihood; constants, such as those of truncation,
        do not matter.

        Parameters
        ----------
        vector
            Unknowns in natural units, shape (n,).
        truncated
            Whether densities are confined to the bounds and normalised there, as in PEtab 2. An
            unknown without a prior then has the uniform density between its bounds, if both are
            finite. Otherwise bounds do not matter, and an unknown without a prior contributes zero.

        Returns
        -------
        Logarithms of densities on the scales of the priors; -inf where a density is zero.
        """
        logarithm, known = np.zeros(len(self.unknowns)), [u.parameter for u in self.unknowns]
        for i, (p, value) in enumerate(zip(known, map(float, vector), strict=True)):
            if truncated and not p.lower <= value <= p.upper:
                logarithm[i] = -math.inf
            elif p.prior is not None:
                logarithm[i] = p.prior.log_density(value)
                if truncated:
                    logarithm[i] -= math.log(max(p.prior.probability(p.lower, p.upper), SMALLEST))
            elif truncated and math.isfinite(p.upper - p.lower):
                logarithm[i] = -math.log(p.upper - p.lower)
        return logarithm

    def vector(self, values: Mapping[str, float]) -> Array:
        """Return the vector of unknowns from values by key.

        Raises
        ------
        InputError
            A key is missing or unknown, or a value is not a finite number.
        """
        issues = Issues()
        unknown = [key for key in values if key not in self.keys]
        meant = {closest(str(key), self.keys) for key in unknown}
        for key in unknown:
            issues.error("values", f"unknown name {key!r}{nearest_first(str(key), self.keys)}")
        for key in self.keys:
            if key not in values and key not in meant:
                issues.error("values", f"no value for {key!r}")
        numbers = [
            finite_number(values[key], f"values {key}", issues)
            for key in self.keys
            if key in values
        ]
        issues.raise_errors()
        return np.array(numbers, dtype=float)

    def data(self, experiment: str | None = None) -> pd.DataFrame:
        """Return the measurements of an experiment (by default the first), one row per data time.

        Of replicates at one time, this table has the last; ``problem.experiments[i].data`` has a
        row for each.
        """
        condition = self.condition(experiment)
        columns = {}
        for name, series in condition.series.items():
            column = np.full(len(condition.times), np.nan)
            column[series.rows] = series.values
            columns[name] = column
        for name, signal in condition.inputs.items():
            columns[name] = signal(condition.times)
        return frame(condition.times, columns)

    def condition(self, experiment: str | None = None) -> Condition:
        """Return the condition of that name, or the first.

        Raises
        ------
        InputError
            No experiment has that name.
        """
        if experiment is None:
            return self.conditions[0]
        for condition in self.conditions:
            if condition.name == experiment:
                return condition
        raise unknown_experiment(experiment, [c.name for c in self.conditions])

    def with_data(self, data: Mapping[str, Mapping[str, Any] | pd.DataFrame]) -> Problem:
        """Return the problem with other data for some experiments; mistakes raise InputError."""
        unknown = set(data) - {e.name for e in self.experiments}
        if unknown:
            raise unknown_experiment(min(unknown), [e.name for e in self.experiments])
        of = {e.name: e for e in self.experiments}
        of |= {name: replace(of[name], data=table, source=None) for name, table in data.items()}
        return self._copy(experiments=list(of.values()))

    def with_experiments(self, experiments: Sequence[Experiment]) -> Problem:
        """Return the problem with other experiments; mistakes raise InputError."""
        return self._copy(experiments=experiments)

    def with_noise(self, noise: Mapping[str, Noise | Mapping[str, Any]]) -> Problem:
        """Return the problem with other noise for some observables; mistakes raise InputError."""
        return self._copy(noise=noise)

    def with_parameters(self, **parameters: GivenParameter | float) -> Problem:
        """Return the problem with other parameters or initial values; mistakes raise InputError."""
        known = {*self.parameters, *self.initial}
        issues = Issues()
        for key in sorted(set(parameters) - known):
            issues.error("parameters", f"unknown name {key!r}{nearest_first(key, known)}")
        issues.raise_errors()
        tables: Any = {"parameters": self.parameters, "initial": self.initial}
        new = {n: t | {k: v for k, v in parameters.items() if k in t} for n, t in tables.items()}
        return self._copy(**new)

    def with_unknowns(
        self,
        *,
        fix: Mapping[str, float] | None = None,
        free: Iterable[str] | None = None,
        bounds: Mapping[str, Sequence[float | None]] | None = None,
        guess: Mapping[str, float] | None = None,
    ) -> Problem:
        """Return the problem with some quantities fixed, freed, or given other bounds or guesses.

        A key is the name of a parameter, of a state (for its initial value) or of a noise parameter
        (such as ``"y_sd"``), which may be fixed or freed alone. With several experiments,
        ``"name[experiment]"`` means one of them, and the name alone means all. Priors and
        everything else stay unchanged.

        Parameters
        ----------
        fix
            Fixed values in natural units. A known initial value is replaced.
        free
            Keys of fixed quantities to estimate; their values become the guesses.
        bounds
            Pairs of a lower and an upper bound in natural units, None or infinite for no bound. A
            guess outside moves to the nearest bound.
        guess
            Start values in natural units.

        Raises
        ------
        InputError
            A key is unknown, or a value is invalid; there is a message for each.

        Examples
        --------
        >>> import odefit
        >>> problem = odefit.library.load("lotka-volterra-f")
        >>> problem.keys
        ('k1', 'k2', 'k3', 'r', 'w')
        >>> problem.with_unknowns(fix={"r": 1.0}, bounds={"w": (0.1, None)}).keys
        ('k1', 'k2', 'k3', 'w')
        """
        issues = Issues()
        changes = revised(definition_of(self), fix, free, bounds, guess, issues)
        issues.raise_errors()
        return self._copy(**changes)

    def _copy(self, **changes: Any) -> Problem:
        return Problem(self.given, **{name: getattr(self, name) for name in KEPT} | changes)


def definition_of(problem: Problem) -> Definition:
    """Return a problem as defined by the user, with texts parsed and no name resolved."""
    return Definition(
        model=problem.given,
        parameters=problem.parameters,
        initial=problem.initial,
        noise=problem.noise,
        experiments=problem.experiments,
    )


def unknown_experiment(name: str, names: Sequence[str]) -> InputError:
    """Return the error for an unknown experiment."""
    have = ", ".join(repr(n) for n in names)
    return InputError(
        f"unknown experiment {name!r}{did_you_mean(name, names)} (experiments are: {have})"
    )
