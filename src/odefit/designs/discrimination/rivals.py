"""Two models with the same observables, and their predictions of possible measurements."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from odefit.common.arrays import Array
from odefit.common.errors import InputError, did_you_mean
from odefit.designs.candidates import Places, Pool
from odefit.designs.factors import Factor
from odefit.designs.information import InformationMap, RunInformation
from odefit.designs.parts import Run
from odefit.designs.weights import Atoms
from odefit.problem.problem import Problem
from odefit.problem.variants.sizes import sizes_at
from odefit.simulation import Failure
from odefit.simulation.engines.engine_choice import LAST_SERVED

FAR = 1e6
"""Residual of a model that cannot be integrated."""

STARTS = 4
"""Number of earlier fits from which a fit of the second model to the first begins."""


@dataclass(eq=False)
class Model:
    """A candidate model.

    Attributes
    ----------
    name
        Its name in sentences.
    problem
        Its problem, with all observables that may be measured.
    vector
        Its estimates.
    information
        Its predictions and their information.
    existing
        Whether its measurements count.
    """

    name: str
    problem: Problem
    vector: Array
    information: InformationMap
    existing: bool

    def predictions(
        self, runs: Sequence[Run], times: Sequence[Array], vector: Array
    ) -> list[RunInformation]:
        """Return the predictions at increasing times of each run."""
        return self.information.of(runs, times, vector)

    def data_residuals(self, vector: Array) -> tuple[Array, Array]:
        """Return residuals of the existing measurements and priors, with their Jacobian."""
        n = len(vector)
        if not self.existing and not self.problem.priors:
            return np.zeros(0), np.zeros((0, n))
        evaluation = self.information.forward.evaluate(vector, LAST_SERVED)
        if isinstance(evaluation, Failure):
            return np.full(1, FAR), np.zeros((1, n))
        rows = slice(None)
        if not self.existing:
            blocks = self.information.forward.series_rows
            rows = slice(max((b.sd_rows or b.rows).stop for b in blocks), None)
        scale = np.sqrt(self.information.scale)
        return evaluation.residuals[rows] / scale, evaluation.jacobian[rows] / scale


def check_same(first: Problem, second: Problem, experiments: Sequence[str]) -> None:
    """Refuse models that cannot be measured in the same way."""
    known = [c.name for c in second.conditions]
    for name in experiments:
        if name not in known:
            raise InputError(
                f"against: the other model has no experiment '{name}'{did_you_mean(name, known)}; "
                "name those that both have with --experiment (experiments=[...])"
            )
        here, other_start = first.condition(name).t0, second.condition(name).t0
        if here != other_start:
            raise InputError(
                f'against: experiment "{name}" begins at {here:g} in one model and at '
                f"{other_start:g} in "
                "the other"
            )


@dataclass(eq=False)
class Rivals:
    """A model that is assumed to be right, another one, and the places of measurements.

    Attributes
    ----------
    right, other
        The two models.
    groups
        The observables that are measured together.
    costs
        The cost of a measurement of each group.
    ends
        Vectors of unknowns of the other model that were closest for some design.
    """

    right: Model
    other: Model
    groups: tuple[tuple[str, ...], ...]
    costs: Sequence[float]
    ends: list[Array] = field(default_factory=list)

    def pool(self, places: Places) -> tuple[Pool, Field]:
        """Return the candidates at some places, and the differences of the models there."""
        runs = [run for run, _ in places]
        times = [np.unique(np.concatenate(list(by_group))) for _, by_group in places]
        first = self.right.predictions(runs, times, self.right.vector)
        second = self.other.predictions(runs, times, self.other.vector)
        names = self.right.information.observables
        columns = [[names.index(name) for name in group] for group in self.groups]
        run, group, time, rows = [], [], [], []
        for k, (_, by_group) in enumerate(places):
            for g, (asked, observed) in enumerate(zip(by_group, columns, strict=True)):
                at = np.searchsorted(times[k], np.unique(asked))
                both = first[k].possible[:, observed] & second[k].possible[:, observed]
                at = at[both[at].all(axis=1)]
                run += [k] * len(at)
                group += [g] * len(at)
                time.append(times[k][at])
                rows.append(at)
        numbers = np.array(run, dtype=np.intp), np.array(group, dtype=np.intp)
        every = np.concatenate([*time, np.zeros(0)])
        costs = np.asarray(self.costs, dtype=float)[numbers[1]]
        none = np.zeros((1, len(every), 1, 1))
        series = numbers[0] * len(self.groups) + numbers[1]
        atoms = Atoms(none, costs, np.zeros((1, 1, 1)), series)
        pool = Pool(tuple(runs), self.groups, *numbers, every, atoms)
        where = np.concatenate([*rows, np.zeros(0, dtype=np.intp)])
        return pool, Field(self, tuple(runs), times, where, pool, columns, first)


@dataclass(eq=False)
class Field:
    """The differences of two models at the candidates of a pool."""

    rivals: Rivals
    runs: tuple[Run, ...]
    times: list[Array]
    rows: Array
    pool: Pool
    columns: list[list[int]]
    first: list[RunInformation]

    def differences(
        self, vector: Array, numbers: Sequence[int] | None = None
    ) -> tuple[Array, Array] | None:
        """Return standardised differences at unknowns of the other model, and their derivatives.

        They have the shapes (m, w) and (m, w, n), for candidates `numbers` (None: all) of at most w
        observables each. Returns None if the other model cannot be integrated.
        """
        every = range(self.pool.count) if numbers is None else numbers
        needed = sorted({int(self.pool.run[i]) for i in every})
        times = []
        for k in needed:
            run_times = {float(self.pool.time[i]) for i in every if self.pool.run[i] == k}
            times.append(self.times[k] if numbers is None else np.array(sorted(run_times)))
        predictions = self.rivals.other.predictions([self.runs[k] for k in needed], times, vector)
        width = max(len(c) for c in self.columns)
        standardised = np.zeros((len(every), width))
        slopes = np.zeros((len(every), width, len(vector)))
        for place, i in enumerate(every):
            k = int(self.pool.run[i])
            at = needed.index(k)
            row = int(np.searchsorted(times[at], self.pool.time[i]))
            observed = self.columns[self.pool.group[i]]
            here = self.first[k]
            sds = here.sds[self.rows[i], observed]
            values = predictions[at].values[row, observed]
            if not np.isfinite(values).all():
                return None
            standardised[place, : len(observed)] = (
                here.values[self.rows[i], observed] - values
            ) / sds
            slopes[place, : len(observed)] = (
                -predictions[at].gradients[row, observed] / sds[:, None]
            )
        return standardised, slopes

    def squares(self, vector: Array) -> Array | None:
        """Return the sum of squared differences of each candidate, shape (m,)."""
        evaluated = self.differences(vector)
        return None if evaluated is None else np.sum(evaluated[0] ** 2, axis=1)

    def closest(self, numbers: Mapping[int, float]) -> tuple[Array, float]:
        """Return the unknowns of the other model that are closest, and the sum of squares.

        `numbers` are the replicates of each candidate. The existing measurements of the other model
        count, less their sum of squares at its estimate.
        """
        from scipy.optimize import least_squares

        rivals, other = self.rivals, self.rivals.other
        used = [i for i, count in numbers.items() if count > 0]
        roots = np.sqrt([numbers[i] for i in used])
        lower, upper = other.problem.lower, other.problem.upper
        sizes = sizes_at(other.problem, other.vector)
        known: dict[bytes, tuple[Array, Array]] = {}

        def evaluated(vector: Array) -> tuple[Array, Array]:
            key = vector.tobytes()
            if key not in known:
                known.clear()
                residuals, jacobian = other.data_residuals(vector)
                at_vector = self.differences(vector, used)
                if at_vector is None:
                    known[key] = (
                        np.full(len(residuals) + len(used), FAR),
                        np.zeros((len(residuals) + len(used), len(vector))),
                    )
                    return known[key]
                values = (at_vector[0] * roots[:, None]).ravel()
                slopes = (at_vector[1] * roots[:, None, None]).reshape(-1, len(vector))
                known[key] = (
                    np.concatenate([residuals, values]),
                    np.concatenate([jacobian, slopes]),
                )
            return known[key]

        if not len(other.vector):
            at_closest = self.differences(other.vector, used)
            squares = (
                math.nan
                if at_closest is None
                else float(np.sum(roots[:, None] ** 2 * at_closest[0] ** 2))
            )
            return other.vector, squares
        begun = other.data_residuals(other.vector)[0]
        base = float(begun @ begun)
        best: tuple[Array, float] = other.vector, np.inf
        for start in [other.vector, *rivals.ends[-STARTS:]]:
            inside = np.clip(start, lower, upper)
            shape = evaluated(inside)[1].shape

            def residuals(v: Array, shape: tuple[int, ...] = shape) -> Array:
                return _shaped(evaluated(v)[0], shape[:1])

            def jacobian(v: Array, shape: tuple[int, ...] = shape) -> Array:
                return _shaped(evaluated(v)[1], shape)

            result = least_squares(
                residuals,
                inside,
                jac=jacobian,
                bounds=(lower, upper),
                x_scale=sizes,
                xtol=1e-10,
                ftol=1e-10,
                gtol=1e-10,
                max_nfev=60,
            )
            value = 2.0 * float(result.cost) - base
            if value < best[1]:
                best = np.asarray(result.x), value
        return best[0], max(best[1], 0.0)

    def remember(self, vector: Array) -> None:
        """Keep the unknowns of a fit, from which later ones begin."""
        self.rivals.ends.append(vector)


def _shaped(values: Array, shape: tuple[int, ...]) -> Array:
    """Return values in a shape; those of a failed integration have a different shape."""
    return values if values.shape == shape else np.full(shape, FAR if len(shape) == 1 else 0.0)


def factors_alike(first: Sequence[Factor], second: Sequence[Factor]) -> bool:
    """Return whether two models have the same settings of new runs."""
    return [f.keys for f in first] == [f.keys for f in second]
