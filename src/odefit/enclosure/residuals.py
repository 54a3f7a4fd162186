"""Weighted residuals over boxes of unknowns, from Taylor models of states and unknowns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from odefit.common.arrays import Array, BoolArray
from odefit.common.errors import InputError
from odefit.enclosure.arithmetic.rounding import ROUNDING_MARGIN, UNDERFLOW, UNIT_ROUNDOFF
from odefit.enclosure.arithmetic.taylor_evaluation import TapeProgram
from odefit.enclosure.arithmetic.taylor_models import Monomials, TaylorModel
from odefit.enclosure.likelihood.deviance_residuals import (
    Measurement,
    deviance_line,
    deviance_residual,
)
from odefit.enclosure.likelihood.priors import PriorResiduals
from odefit.enclosure.likelihood.spreads import Spreads
from odefit.enclosure.system import System
from odefit.expressions.expressions import Expression
from odefit.problem.condition import Condition
from odefit.problem.noise import Noise
from odefit.problem.noise_distributions.laplace import Laplace
from odefit.problem.noise_distributions.registry import Transform, transformed
from odefit.problem.problem import Problem
from odefit.structure.series.tape import Term

SPREAD_INFLUENCE = 0.05
"""Influence of an unknown that acts on the spread of a measurement alone: where a residual is not
enclosed, its prediction mostly is not."""


@dataclass(frozen=True, eq=False)
class Residuals:
    """Weighted residuals in B boxes: ``sum c[m] d^m + r`` with every d in [-1, 1].

    Coefficients c have shape (R, M, B); `remainder` bounds |r|, shape (R, B), infinite if nothing
    is known. Where noise is Laplace, `lines` has differences whose magnitudes, less a
    :data:`~odefit.enclosure.likelihood.deviance_residuals.LINE_LOSS`, are the squares of residuals.
    """

    c: Array
    remainder: Array
    lines: Residuals | None = None

    @staticmethod
    def zeros(size: int, monomials: int, boxes: int, lines: bool = False) -> Residuals:
        """Return residuals that are all zero, perhaps with lines that are all unknown."""
        c, remainder = np.zeros((size, monomials, boxes)), np.zeros((size, boxes))
        unknown = Residuals(np.zeros_like(c), np.full_like(remainder, np.inf)) if lines else None
        return Residuals(c, remainder, unknown)

    def put(self, places: Sequence[int], part: Residuals) -> None:
        """Replace the residuals at some places."""
        self.c[places], self.remainder[places] = part.c, part.remainder
        if self.lines is not None and part.lines is not None:
            self.lines.put(places, part.lines)

    def informative(self, coarse: BoolArray) -> Residuals:
        """Return the residuals, unknown where they are `coarse`, shape (R, B), and may be zero.

        Such residuals give no lower bound, and the rule for dividing a box must see that.
        """
        loose = np.abs(self.c[:, 0]) <= np.abs(self.c[:, 1:]).sum(axis=1) + self.remainder
        return Residuals(self.c, np.where(coarse & loose, np.inf, self.remainder), self.lines)

    def squares_bound(self) -> Array:
        """Return the sum of the lower bounds of their squares, shape (B,)."""
        sizes = np.abs(self.c)
        least = 2 * sizes[:, 0] - sizes.sum(axis=1) * ROUNDING_MARGIN - self.remainder
        squares = np.maximum(np.nan_to_num(least), 0.0) ** 2
        return np.asarray(squares.sum(axis=0) / ROUNDING_MARGIN)

    @staticmethod
    def joined(parts: Sequence[Residuals]) -> Residuals:
        """Return the residuals of several parts in one array."""
        lines = None
        if any(p.lines is not None for p in parts):
            lines = Residuals.joined(
                [p.lines or Residuals(p.c, np.full_like(p.remainder, np.inf)) for p in parts]
            )
        return Residuals(
            np.concatenate([p.c for p in parts]),
            np.concatenate([p.remainder for p in parts]),
            lines,
        )


class ResidualsAtTime:
    """The measurements of one condition at one time (number `row`), as deviance residuals.

    Those of normal noise are weighted differences. `places` are the places of these residuals among
    all of the condition, sorted by series; spreads that depend on unknowns follow all of them.
    Those `lined` have lines: their noise is Laplace. `influence`, shape (r, n), is one where an
    unknown acts on a residual, less where it acts on its spread alone. `uses`, shape (r, states),
    is one where a state directly does. Without `spreads`, all noise has to be normal, with known
    standard deviations.
    """

    def __init__(self, system: System, row: int, spreads: Spreads | None = None) -> None:
        condition, problem = system.condition, system.problem
        time = float(condition.times[row])
        self._system, self.time = system, time
        names: list[str] = []
        transforms: list[Transform | None] = []
        self._measurements: list[Measurement] = []
        spreads_given: list[Term | float] = []
        self.places: list[int] = []
        begin = 0
        for name, series in condition.series.items():
            noise = problem.noise.get(name, Noise())
            values = measured_values(problem, condition, name)
            known = standard_deviations(problem, condition, name) if spreads is None else ()
            for k in np.flatnonzero(series.rows == row).tolist():
                names.append(name)
                transforms.append(noise.transform)
                self.places.append(begin + k)
                censored = 0 if series.censored is None else int(series.censored[k])
                self._measurements.append(Measurement(noise.law, float(values[k]), censored))
                spreads_given.append(float(known[k]) if spreads is None else spreads.of[name][k])
            begin += len(series.values)
        self.names = names
        # The logarithm of a measured value has an error of a few roundings.
        self._operations = [4 if transform is None else 40 for transform in transforms]
        self._measured = system.observables(names, time, transforms).terms
        self._sds = [None if isinstance(s, Term) else s for s in spreads_given]
        self._spreads = [s if isinstance(s, Term) else system.tape.number(0) for s in spreads_given]
        factors = [] if spreads is None else list(enumerate(spreads.terms, begin))
        plain = [
            sd is not None and of.law.normal and not of.censored
            for of, sd in zip(self._measurements, self._sds, strict=True)
        ]
        self.lined = [isinstance(of.law, Laplace) and not of.censored for of in self._measurements]
        self._factors = [(at, factor) for at, factor in factors if factor.row == row]
        self._joint = {factor.places[0]: factor for _, factor in factors if factor.joint}
        self.places += [at for at, _ in self._factors]
        self.composed = ~np.array([*plain, *(False for _ in self._factors)], dtype=bool)
        pairs = [
            *([m, s] for m, s in zip(self._measured, self._spreads, strict=True)),
            *([factor.term] for _, factor in self._factors),
        ]
        self._program = TapeProgram(system.tape, [term for pair in pairs for term in pair])
        influence = np.array([_influence(system, pair) for pair in pairs])
        self.influence = influence.reshape(len(pairs), len(problem.unknowns))
        used = [system.tape.depends(*pair) for pair in pairs]
        uses = np.array([[float(s in u) for s in system.states] for u in used])
        self.uses = uses.reshape(len(used), len(system.states))

    def terms(self) -> Iterator[tuple[Term, float, float]]:
        """Yield the measured terms of the tape, with measured values and standard deviations."""
        for term, of, sd in zip(self._measured, self._measurements, self._sds, strict=True):
            assert sd is not None, "only known standard deviations are asked for"
            yield term, of.value, sd

    def of(
        self,
        states: Sequence[TaylorModel],
        unknowns: Mapping[int, TaylorModel],
        monomials: Monomials,
        radius: float = np.inf,
    ) -> Residuals:
        """Return the residuals from the states at that time, sharp up to a `radius`."""
        boxes = states[0].c.shape[2]
        known = known_at(self._system, states, unknowns, monomials, self.time)
        values = self._program.evaluate(monomials, known, boxes)
        residuals = Residuals.zeros(len(self.places), len(monomials), boxes, any(self.lined))
        alone: dict[tuple[int, ...], BoolArray] = {}  # boxes where one residual stands for two
        for i, of in enumerate(self._measurements):
            model, sd = values[self._measured[i].index], self._sds[i]
            if not self.composed[i]:
                assert sd is not None, "estimated deviations are composed"
                at = _standardised(model, of.value, sd, self._operations[i])
            else:
                spread = (
                    values[self._spreads[i].index]
                    if sd is None
                    else TaylorModel.constant(monomials, np.full(boxes, sd))
                )
                r = deviance_residual(of, model, spread, radius)
                if residuals.lines is not None and self.lined[i]:
                    line = deviance_line(of, model, spread)
                    residuals.lines.c[i], residuals.lines.remainder[i] = (
                        line.c[:, 0],
                        line.remainder,
                    )
                factor = self._joint.get(self.places[i])
                if factor is not None:
                    r, alone[factor.places] = factor.with_deviance(r, spread)
                at = r.c[:, 0], r.remainder
            residuals.c[i], residuals.remainder[i] = at
        for i, (_, factor) in enumerate(self._factors, len(self._measurements)):
            r = factor.residual(values[factor.term.index])
            stands = alone.get(factor.places, np.zeros(boxes, dtype=bool))
            residuals.c[i] = np.where(stands, 0.0, r.c[:, 0])
            residuals.remainder[i] = np.where(stands, 0.0, r.remainder)
        c, remainder = residuals.c, residuals.remainder
        lost = ~(np.isfinite(remainder) & np.isfinite(c).all(axis=1))
        return Residuals(
            np.where(lost[:, None], 0.0, c), np.where(lost, np.inf, remainder), residuals.lines
        )


def _influence(system: System, terms: Sequence[Term]) -> Array:
    """Return how unknowns act on a residual with a measured term and perhaps a spread, (n,)."""
    measured, *spreads = system.influence(TapeProgram(system.tape, terms))
    return np.asarray(np.max([measured, *(SPREAD_INFLUENCE * row for row in spreads)], axis=0))


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


def of_priors(priors: PriorResiduals, models: Sequence[TaylorModel]) -> Residuals:
    """Return the residuals of priors from Taylor models of the unknowns."""
    residuals = Residuals.zeros(priors.size, *models[0].c[:, 0].shape)
    for i, model in enumerate(priors.of(models)):
        residuals.c[i], residuals.remainder[i] = model.c[:, 0], model.remainder
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
