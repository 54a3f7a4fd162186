"""Weighted residuals over boxes of unknowns, from Taylor models of states and unknowns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from odefit.common.arrays import Array, BoolArray
from odefit.common.errors import InputError
from odefit.enclosure.arithmetic.rounding import ROUNDING_MARGIN, UNDERFLOW, UNIT_ROUNDOFF
from odefit.enclosure.arithmetic.taylor_models import Monomials, TaylorModel
from odefit.enclosure.system import System
from odefit.expressions.expressions import Expression
from odefit.problem.condition import Condition
from odefit.problem.noise import Noise
from odefit.problem.noise_distributions.registry import Transform, transformed
from odefit.problem.problem import Problem
from odefit.structure.series.tape import Term


@dataclass(frozen=True, eq=False)
class Residuals:
    """Weighted residuals in B boxes: ``sum c[m] d^m + r`` with every d in [-1, 1].

    Coefficients c have shape (R, M, B); `remainder` bounds |r|, shape (R, B), infinite if nothing
    is known.
    """

    c: Array
    remainder: Array

    @staticmethod
    def zeros(size: int, monomials: int, boxes: int) -> Residuals:
        """Return residuals that are all zero."""
        return Residuals(np.zeros((size, monomials, boxes)), np.zeros((size, boxes)))

    def put(self, places: Sequence[int], part: Residuals) -> None:
        """Replace the residuals at some places."""
        self.c[places], self.remainder[places] = part.c, part.remainder

    def informative(self, coarse: BoolArray) -> Residuals:
        """Return the residuals, unknown where they are `coarse`, shape (R, B), and may be zero.

        Such residuals give no lower bound, and the rule for dividing a box must see that.
        """
        loose = np.abs(self.c[:, 0]) <= np.abs(self.c[:, 1:]).sum(axis=1) + self.remainder
        return Residuals(self.c, np.where(coarse & loose, np.inf, self.remainder))

    def squares_bound(self) -> Array:
        """Return the sum of the lower bounds of their squares, shape (B,)."""
        sizes = np.abs(self.c)
        least = 2 * sizes[:, 0] - sizes.sum(axis=1) * ROUNDING_MARGIN - self.remainder
        squares = np.maximum(np.nan_to_num(least), 0.0) ** 2
        return np.asarray(squares.sum(axis=0) / ROUNDING_MARGIN)

    @staticmethod
    def joined(parts: Sequence[Residuals]) -> Residuals:
        """Return the residuals of several parts in one array."""
        return Residuals(
            np.concatenate([p.c for p in parts]), np.concatenate([p.remainder for p in parts])
        )


class ResidualsAtTime:
    """The measurements of one condition at one time (number `row`), as weighted differences.

    `places` are the places of these residuals among all of the condition, sorted by series.
    `influence`, shape (r, n), is one where an unknown acts on a residual, and `uses`, shape (r,
    states), where a residual depends directly on a state.
    """

    def __init__(self, system: System, row: int) -> None:
        condition, problem = system.condition, system.problem
        time = float(condition.times[row])
        self._system, self.time = system, time
        names: list[str] = []
        transforms: list[Transform | None] = []
        values: list[float] = []
        sds: list[float] = []
        self.places: list[int] = []
        begin = 0
        for name, series in condition.series.items():
            for k in np.flatnonzero(series.rows == row):
                names.append(name)
                transforms.append(problem.noise.get(name, Noise()).transform)
                self.places.append(begin + int(k))
                values.append(float(measured_values(problem, condition, name)[k]))
                sds.append(float(standard_deviations(problem, condition, name)[k]))
            begin += len(series.values)
        self.names, self._values, self.sds = names, values, np.array(sds)
        # The logarithm of a measured value has an error of a few roundings.
        self._operations = [4 if transform is None else 40 for transform in transforms]
        self._program = system.observables(names, time, transforms)
        self.influence = system.influence(self._program)
        used = [system.tape.depends(term) for term in self._program.terms]
        uses = np.array([[float(s in u) for s in system.states] for u in used])
        self.uses = uses.reshape(len(used), len(system.states))

    def terms(self) -> Iterator[tuple[Term, float, float]]:
        """Yield the measured terms of the tape, with measured values and standard deviations."""
        yield from zip(self._program.terms, self._values, self.sds.tolist(), strict=True)

    def of(
        self,
        states: Sequence[TaylorModel],
        unknowns: Mapping[int, TaylorModel],
        monomials: Monomials,
    ) -> Residuals:
        """Return the residuals from the states at that time."""
        boxes = states[0].c.shape[2]
        known = known_at(self._system, states, unknowns, monomials, self.time)
        values = self._program.evaluate(monomials, known, boxes)
        residuals = Residuals.zeros(len(self.names), len(monomials), boxes)
        for i, term in enumerate(self._program.terms):
            model = values[term.index]
            measurement = self._values[i], float(self.sds[i]), self._operations[i]
            residuals.c[i], residuals.remainder[i] = _standardised(model, *measurement)
        c, remainder = residuals.c, residuals.remainder
        lost = ~(np.isfinite(remainder) & np.isfinite(c).all(axis=1))
        return Residuals(np.where(lost[:, None], 0.0, c), np.where(lost, np.inf, remainder))


def _standardised(
    model: TaylorModel, value: float, sd: float, operations: int
) -> tuple[Array, Array]:
    """Return coefficients and remainder of ``(model - value) / sd``, shapes (M, B) and (B,)."""
    c = model.c[:, 0].copy()
    rounding = operations * UNIT_ROUNDOFF * (np.abs(c).sum(0) + abs(value))
    c[0] -= value
    c /= sd
    return c, (model.remainder + rounding) / sd * ROUNDING_MARGIN + UNDERFLOW


def influences(measured: Sequence[ResidualsAtTime], size: int) -> Array:
    """Return which unknowns act on which residual of a condition, as 0 and 1, shape (size, n)."""
    influence = np.zeros((size, measured[0].influence.shape[1]))
    for residual in measured:
        influence[residual.places] = residual.influence
    return influence


def known_at(
    system: System,
    states: Sequence[TaylorModel],
    unknowns: Mapping[int, TaylorModel],
    monomials: Monomials,
    time: float,
) -> dict[int, TaylorModel]:
    """Return Taylor models of all variables of a tape at one time."""
    boxes = states[0].c.shape[2]
    known = dict(unknowns)
    known |= dict(zip(system.states, states, strict=True))
    known[system.time] = TaylorModel.constant(monomials, np.full(boxes, time))
    for name, entry in system.inputs.items():
        known[entry] = TaylorModel.number(monomials, system.input_at(name, time), boxes)
    return known


def measured_values(problem: Problem, condition: Condition, name: str) -> Array:
    """Return the measured values of a series, or their logarithms, shape (n,)."""
    noise = problem.noise.get(name, Noise())
    return transformed(condition.series[name].values, noise.transform)


def standard_deviations(problem: Problem, condition: Condition, name: str) -> Array:
    """Return the standard deviations of a series, shape (n,); 1 for plain least squares.

    They are those of the logarithms, if residuals are differences of these. Raises InputError if
    they depend on unknowns.
    """
    series, noise = condition.series[name], problem.noise.get(name, Noise())
    if series.sds is not None:
        return series.sds
    if noise.relative is not None:
        return noise.relative * np.abs(series.values)
    if noise.sd == "estimate" or isinstance(noise.sd, Expression):
        raise InputError(
            f"noise.{name}.sd: a sum of squares can be bounded only if the standard deviations are "
            "known; give a number, e.g. the one that a local fit estimates"
        )
    return np.full(len(series.values), noise.sd if isinstance(noise.sd, float) else 1.0)


class Priors:
    """The residuals of normal priors in natural units; flat priors are bounds.

    `influence`, shape (size, n), is one at the unknown of each prior. Raises InputError for a prior
    of another family, or on another scale.
    """

    def __init__(self, problem: Problem) -> None:
        self._prior_terms: list[tuple[int, float, float]] = []
        for key, prior in problem.priors.items():
            if not prior.plain or prior.mean is None or prior.sd is None:
                raise InputError(
                    f"the prior of {key}, {prior}: only normal priors in natural units can be "
                    "enclosed; use another method, such as the default, which proves nothing"
                )
            self._prior_terms.append((problem.keys.index(key), prior.mean, prior.sd))
        self.size = len(self._prior_terms)
        self.influence = np.zeros((self.size, len(problem.unknowns)))
        for i, (k, _, _) in enumerate(self._prior_terms):
            self.influence[i, k] = 1.0

    def of(self, models: Sequence[TaylorModel]) -> Residuals:
        """Return the residuals from Taylor models of the unknowns."""
        residuals = Residuals.zeros(self.size, *models[0].c[:, 0].shape)
        for i, (k, mean, sd) in enumerate(self._prior_terms):
            residuals.c[i], residuals.remainder[i] = _standardised(models[k], mean, sd, 8)
        return residuals


def variables(monomials: Monomials, lower: Array, upper: Array) -> list[TaylorModel]:
    """Return the unknowns themselves, in boxes with corners of shape (B, n)."""
    with np.errstate(all="ignore"):
        middle = (lower + upper) / 2
        radius = np.maximum(upper - middle, middle - lower) * (1 + 4 * UNIT_ROUNDOFF)
    lost = ~(np.isfinite(middle) & np.isfinite(radius))
    middle, radius = np.where(lost, 0.0, middle), np.where(lost, 0.0, radius)
    unknowns = []
    for k in range(monomials.variables):
        model = TaylorModel.variable(monomials, k, middle[:, k], radius[:, k])
        model.remainder = np.where(lost[:, k], np.inf, model.remainder)
        unknowns.append(model)
    return unknowns
