"""Weighted residuals of a problem over boxes of unknowns."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from odefit.enclosure.affine_flow import LinearODE, StiffAffineFlow
from odefit.enclosure.differential_inequalities import DifferentialInequalities, StateIntervals
from odefit.enclosure.error_propagation import ErrorBound
from odefit.enclosure.flow import Flow, StateEnclosure
from odefit.enclosure.intervals import Interval, evaluated
from odefit.enclosure.monomials import Monomials
from odefit.enclosure.rounding import ROUNDING_MARGIN, UNDERFLOW, UNIT_ROUNDOFF
from odefit.enclosure.system import System
from odefit.enclosure.taylor_models import TaylorModel
from odefit.problem.arrays import Array, BoolArray
from odefit.problem.condition import Condition
from odefit.problem.errors import InputError
from odefit.problem.expressions import Expression
from odefit.problem.noise import Noise
from odefit.problem.problem import Problem
from odefit.structure.tape import Term

ORDER = 10
"""Of the Taylor polynomials in time."""

ACCURACY = 1e-5
"""Avoidable error of a solution, relative to the standard deviation of a residual, or to the
spread of the data where that is not given."""


STIFF = 8.0
"""How many others a step counts for that is short for stability alone, where all states keep their
signs: intervals then tell much without any steps."""


@dataclass(frozen=True, eq=False)
class Residuals:
    """Weighted residuals in B boxes: ``sum c[m] d^m + r`` with every d in [-1, 1].

    Attributes
    ----------
    c
        Coefficients, shape (R, M, B).
    remainder
        Bound of |r|, shape (R, B); infinite where nothing is known.
    """

    c: Array
    remainder: Array

    @staticmethod
    def empty(size: int, monomials: int, boxes: int) -> Residuals:
        """Zeros, to be put in."""
        return Residuals(np.zeros((size, monomials, boxes)), np.zeros((size, boxes)))

    def put(self, places: Sequence[int], part: Residuals) -> None:
        """Some of them."""
        self.c[places], self.remainder[places] = part.c, part.remainder

    def telling(self, coarse: BoolArray) -> Residuals:
        """Without those that are `coarse`, shape (R, B), and may be zero for all that is known.

        That says no more than nothing, and whoever divides a box has to know.
        """
        loose = np.abs(self.c[:, 0]) <= np.abs(self.c[:, 1:]).sum(axis=1) + self.remainder
        return Residuals(self.c, np.where(coarse & loose, np.inf, self.remainder))

    def least_squares(self) -> Array:
        """Lower bound of the sum of their squares, each by itself, shape (B,)."""
        sizes = np.abs(self.c)
        least = 2 * sizes[:, 0] - sizes.sum(axis=1) * ROUNDING_MARGIN - self.remainder
        return np.asarray(
            (np.maximum(np.nan_to_num(least), 0.0) ** 2).sum(axis=0) / ROUNDING_MARGIN
        )

    @staticmethod
    def joined(parts: Sequence[Residuals]) -> Residuals:
        """One after the other."""
        return Residuals(
            np.concatenate([p.c for p in parts]), np.concatenate([p.remainder for p in parts])
        )


class ResidualsAtTime:
    """Some measurements of one condition at one time, as weighted differences.

    Parameters
    ----------
    system
        Of the condition.
    row
        Of its times.

    Attributes
    ----------
    places
        Of its residuals among those of the condition, which go series by series.
    influence
        Which unknowns act on them, as zeros and ones, shape (r, n).
    uses
        Which states they are made of, likewise.
    """

    def __init__(self, system: System, row: int) -> None:
        condition, problem = system.condition, system.problem
        time = float(condition.times[row])
        self._system, self.time = system, time
        names: list[str] = []
        values: list[float] = []
        sds: list[float] = []
        self.places: list[int] = []
        begin = 0
        for name, series in condition.series.items():
            for k in np.flatnonzero(series.rows == row):
                names.append(name)
                self.places.append(begin + int(k))
                values.append(float(series.values[k]))
                sds.append(float(standard_deviations(problem, condition, name)[k]))
            begin += len(series.values)
        self.names, self._values, self.sds = names, values, np.array(sds)
        self._program = system.observables(names, time)
        self.influence = system.influence(self._program)
        used = [system.tape.depends(term) for term in self._program.terms]
        uses = np.array([[float(s in u) for s in system.states] for u in used])
        self.uses = uses.reshape(len(used), len(system.states))

    def terms(self) -> Iterator[tuple[Term, float, float]]:
        """What is measured over the tape, the measured value and its standard deviation."""
        yield from zip(self._program.terms, self._values, self.sds.tolist(), strict=True)

    def of(
        self,
        states: Sequence[TaylorModel],
        unknowns: Mapping[int, TaylorModel],
        monomials: Monomials,
    ) -> Residuals:
        """At the states of that time."""
        boxes = states[0].c.shape[2]
        known = known_at(self._system, states, unknowns, monomials, self.time)
        found = self._program.static(monomials, known, boxes)
        c = np.zeros((len(self.names), len(monomials), boxes))
        remainder = np.zeros((len(self.names), boxes))
        for i, term in enumerate(self._program.terms):
            model, sd = found[term.index], self.sds[i]
            c[i] = model.c[:, 0]
            rounding = 4 * UNIT_ROUNDOFF * (np.abs(c[i]).sum(0) + abs(self._values[i]))
            c[i, 0] -= self._values[i]
            c[i] /= sd
            remainder[i] = (model.remainder + rounding) / sd * ROUNDING_MARGIN + UNDERFLOW
        lost = ~(np.isfinite(remainder) & np.isfinite(c).all(axis=1))
        return Residuals(np.where(lost[:, None], 0.0, c), np.where(lost, np.inf, remainder))


def influences(measured: Sequence[ResidualsAtTime], size: int) -> Array:
    """Which unknowns act on which residual of a condition, shape (size, n)."""
    found = np.zeros((size, measured[0].influence.shape[1]))
    for residual in measured:
        found[residual.places] = residual.influence
    return found


def known_at(
    system: System,
    states: Sequence[TaylorModel],
    unknowns: Mapping[int, TaylorModel],
    monomials: Monomials,
    time: float,
) -> dict[int, TaylorModel]:
    """Models of all variables of a tape at one time."""
    boxes = states[0].c.shape[2]
    known = dict(unknowns)
    known |= dict(zip(system.states, states, strict=True))
    known[system.time] = TaylorModel.constant(monomials, np.full(boxes, time))
    for name, entry in system.inputs.items():
        known[entry] = TaylorModel.number(monomials, system.input_at(name, time), boxes)
    return known


def standard_deviations(problem: Problem, condition: Condition, name: str) -> Array:
    """Of a series, shape (n,); 1 for plain least squares.

    Raises
    ------
    InputError
        They depend on unknowns, or residuals are not differences.
    """
    series, noise = condition.series[name], problem.noise.get(name, Noise())
    if noise.transform is not None:
        raise InputError(
            f'noise.{name}, transform = "{noise.transform}": residuals of logarithms cannot be '
            "enclosed; take the logarithms of the data for data, or another method"
        )
    if series.sds is not None:
        return series.sds
    if noise.relative is not None:
        return noise.relative * np.abs(series.values)
    if noise.sd == "estimate" or isinstance(noise.sd, Expression):
        raise InputError(
            f"noise.{name}.sd: bounds are of a sum of squares with known standard deviations; "
            "give a number, e.g. that of a local fit"
        )
    return np.full(len(series.values), noise.sd if isinstance(noise.sd, float) else 1.0)


class Enclosure:
    """Residuals of a problem over boxes, in continuous time.

    Parameters
    ----------
    problem
        With data; standard deviations must not depend on unknowns.
    degree
        Of the polynomials in the unknowns.
    order
        Of those in time.

    Attributes
    ----------
    monomials
        Of the residuals.
    scope
        What it holds for.
    size
        Number of residuals, priors included.
    lower_bound
        Lower bound of the objective that holds whatever the unknowns are.
    unique_solution
        Whether the equations have one solution for each value of the unknowns.
    influence
        Which unknowns act on which residual, as zeros and ones, shape (R, n).

    Raises
    ------
    InputError
        The equations or the noise cannot be enclosed.
    """

    scope = "continuous time"
    lower_bound = 0.0
    unique_solution = True

    def __init__(self, problem: Problem, degree: int = 2, order: int = ORDER) -> None:
        self.problem = problem
        self.monomials = Monomials.of(len(problem.unknowns), degree)
        self._runs = [_Condition(problem, c, self.monomials, order) for c in problem.conditions]
        self._priors = Priors(problem)
        self.size = problem.size + self._priors.size
        self.influence = np.concatenate(
            [*(r.influence for r in self._runs), self._priors.influence]
        )

    def __call__(self, lower: Array, upper: Array, radius: float = np.inf) -> Residuals:
        """Over boxes with these corners, shapes (B, n).

        What follows when the residuals so far exceed `radius` is not computed: nothing is known
        of it.
        """
        models = variables(self.monomials, lower, upper)
        corners = [Interval(*ends) for ends in zip(lower.T, upper.T, strict=True)]
        squares = np.zeros(len(lower))
        with np.errstate(all="ignore"):
            parts = [run(models, corners, squares, radius**2) for run in self._runs]
            return Residuals.joined([*parts, self._priors.of(models)])


class Priors:
    """Residuals of Gaussian priors."""

    def __init__(self, problem: Problem) -> None:
        self._given = [
            (k, unknown.parameter.prior)
            for k, unknown in enumerate(problem.unknowns)
            if unknown.parameter.prior is not None
        ]
        self.size = len(self._given)
        self.influence = np.zeros((self.size, len(problem.unknowns)))
        for i, (k, _) in enumerate(self._given):
            self.influence[i, k] = 1.0

    def of(self, models: Sequence[TaylorModel]) -> Residuals:
        """Of the unknowns."""
        found = Residuals.empty(self.size, *models[0].c[:, 0].shape)
        for i, (k, prior) in enumerate(self._given):
            c = found.c[i]
            c += models[k].c[:, 0]
            rounding = 8 * UNIT_ROUNDOFF * (np.abs(c).sum(0) + abs(prior.mean))
            c[0] -= prior.mean
            c /= prior.sd
            found.remainder[i] = (
                models[k].remainder + rounding
            ) / prior.sd * ROUNDING_MARGIN + UNDERFLOW
        return found


def variables(monomials: Monomials, lower: Array, upper: Array) -> list[TaylorModel]:
    """The unknowns themselves, in boxes with corners of shape (B, n)."""
    with np.errstate(all="ignore"):
        middle = (lower + upper) / 2
        radius = np.maximum(upper - middle, middle - lower) * (1 + 4 * UNIT_ROUNDOFF)
    lost = ~(np.isfinite(middle) & np.isfinite(radius))
    middle, radius = np.where(lost, 0.0, middle), np.where(lost, 0.0, radius)
    found = []
    for k in range(monomials.variables):
        model = TaylorModel.variable(monomials, k, middle[:, k], radius[:, k])
        model.remainder = np.where(lost[:, k], np.inf, model.remainder)
        found.append(model)
    return found


class _Condition:
    """One condition: from its initial values through all events to all measurements."""

    def __init__(
        self, problem: Problem, condition: Condition, monomials: Monomials, order: int
    ) -> None:
        self._system = System(problem, condition)
        self._monomials = monomials
        self._measured = [ResidualsAtTime(self._system, row) for row in range(len(condition.times))]
        self.influence = influences(self._measured, condition.size)
        states = problem.model.states
        self._flow = Flow(self._system, monomials, order, self._tolerance(len(states)))
        self._tubes = DifferentialInequalities(self._system)
        self._events = [
            (time, *self._system.jump(assign, time))
            for time, assign in condition.events
            if any(name in states for name in assign)
        ]
        last = float(condition.times[-1])
        stops = {t for t in self._system.breaks if t < last} | {float(t) for t in condition.times}
        self._stops = sorted(t for t in stops if t > condition.t0)
        begins = [condition.t0, *self._stops]
        stretches = [Fraction(b) - Fraction(a) for a, b in itertools.pairwise(begins)]
        self._linear = {
            motion.since: LinearODE.of(self._system, motion, monomials, stretches)
            for motion in self._system.motions
        }
        self._turns = {motion.since for motion in self._system.motions}

    def _tolerance(self, states: int) -> Array:
        condition, problem = self._system.condition, self._system.problem
        sds = [
            float(np.min(standard_deviations(problem, condition, name)))
            for name in condition.series
        ]
        scale = [float(np.ptp(s.values)) or 1.0 for s in condition.series.values()]
        given = [
            min(sd, size) if sd != 1.0 else 1e-1 * size for sd, size in zip(sds, scale, strict=True)
        ]
        return np.full(states, ACCURACY * min(given))

    def __call__(
        self,
        models: Sequence[TaylorModel],
        corners: Sequence[Interval],
        squares: Array,
        most: float,
    ) -> Residuals:
        """Given the squares of earlier residuals, shape (B,), which are added to."""
        system, condition, tubes = self._system, self._system.condition, self._tubes
        unknowns = dict(zip(system.unknowns, models, strict=True))
        ranges = dict(zip(system.unknowns, corners, strict=True))
        boxes = models[0].c.shape[2]
        begun = system.initial.still(self._monomials, unknowns, boxes)
        start = [begun[term.index] for term in system.initial.terms]
        sizes = np.stack([m.remainder for m in start], axis=1)
        position = StateEnclosure(np.stack([m.c[:, 0] for m in start]), ErrorBound.of(sizes))
        time = condition.t0
        begun_in = evaluated(system.tape, system.initial.order, ranges, boxes)
        tube = tubes.begin([begun_in[term.index] for term in system.initial.terms], time)
        smooth = -np.inf
        signs: list[Interval] = []
        price = np.ones(boxes)
        span = float(condition.times[-1]) - time
        steps = np.full(boxes, span / 8 if span > 0 else 1.0)
        effort = np.zeros(boxes)
        found = Residuals.empty(condition.size, len(self._monomials), boxes)
        measured = iter(self._measured)
        following = next(measured, None)
        fast: StiffAffineFlow | None = None
        while True:
            # At an event, a measurement is of before.
            while following is not None and following.time <= time:
                states = position.models(tube.states)
                own = following.of(states, unknowns, self._monomials)
                lost = following.uses @ ~np.isfinite(position.spread.sizes).T > 0
                own = own.telling(lost)
                found.put(following.places, own)
                squares += own.least_squares()
                following = next(measured, None)
            if following is None:
                return found
            position.spread.forget(squares > most)
            position, tube = self._jumped(position, tube, unknowns, ranges, time)
            stop = next(t for t in self._stops if t > time)
            if time >= smooth:
                smooth = min([t for t in system.breaks if t > time], default=np.inf)
                smooth = min(smooth, self._stops[-1])
                signs = tubes.signs(tube.states, ranges, time, smooth)
                price = np.where(np.all([s.signed for s in signs], axis=0), STIFF, 1.0)
            if time == condition.t0 or time in self._turns:  # any event is one
                fast = self._fast(unknowns, boxes, time)
            if fast is not None:
                fast = fast.without(squares > most)
            given = (unknowns, time, stop, steps, effort, price)
            if fast is None:
                position = self._flow.advance(position, *given)
            else:
                position = fast.advance(self._flow, position, *given)
            tube = self._along(tube, signs, position, ranges, squares <= most, time, stop)
            time = stop

    def _fast(
        self, unknowns: Mapping[int, TaylorModel], boxes: int, time: float
    ) -> StiffAffineFlow | None:
        """Boxes in which powers of a map cost less than steps, if there are any."""
        linear = self._linear[self._system.motion(time).since]
        if linear is None:
            return None
        return linear.fast(unknowns, boxes, self._stops[-1] - time)

    def _along(
        self,
        tube: StateIntervals,
        signs: Sequence[Interval],
        position: StateEnclosure,
        ranges: Mapping[int, Interval],
        wanted: BoolArray,
        since: float,
        until: float,
    ) -> StateIntervals:
        """What else is known of the states: signs, and intervals where series have given up."""
        states = list(signs)
        lost = np.flatnonzero(wanted & ~np.isfinite(position.spread.sizes).all(axis=1))
        if len(lost):
            own = {i: r.take(lost) for i, r in ranges.items()}
            after = self._tubes.advance(tube.take(lost), own, since, until).states
            states = [
                s.put(lost, s.take(lost).within(a)) for s, a in zip(states, after, strict=True)
            ]
        states = [r.within(s) for r, s in zip(position.ranges(), states, strict=True)]
        if until in self._turns:
            return self._tubes.begin(states, until)
        return StateIntervals(states, tube.totals)

    def _jumped(
        self,
        position: StateEnclosure,
        tube: StateIntervals,
        unknowns: Mapping[int, TaylorModel],
        ranges: Mapping[int, Interval],
        time: float,
    ) -> tuple[StateEnclosure, StateIntervals]:
        system = self._system
        for at, places, program in self._events:
            if at != time:
                continue
            states = position.models(tube.states)
            boxes = position.c.shape[2]
            known = known_at(system, states, unknowns, self._monomials, time)
            after = program.static(self._monomials, known, boxes)
            c, sizes = position.c.copy(), position.spread.sizes.copy()
            for place, term in zip(places, program.terms, strict=True):
                c[place] = after[term.index].c[:, 0]
                sizes[:, place] = after[term.index].remainder
            position = StateEnclosure(c, ErrorBound.of(sizes))
            within = dict(ranges) | dict(zip(system.states, tube.states, strict=True))
            within[system.time] = Interval.number(Fraction(time), boxes)
            for name, entry in system.inputs.items():
                within[entry] = Interval.number(system.input_at(name, time), boxes)
            values = evaluated(system.tape, program.order, within, boxes)
            own = list(tube.states)
            for place, term in zip(places, program.terms, strict=True):
                own[place] = position.ranges()[place].within(values[term.index])
            tube = self._tubes.begin(own, time)
        return position, tube
