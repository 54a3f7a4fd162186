"""Typical sizes of states and unknowns, from the data and the dimensions of the equations.

The terms of each equation of motion should be as large as the state over the time scale. Summands
should be similar, and measured states should have the size of their data. In logarithms these
conditions are linear equations, solved by least squares. Bounds and priors decide what they leave
open, and then the size of the data and the time scale. A problem in other units gets the same sizes
in those units.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np

from odefit.common.arrays import Array
from odefit.expressions.expressions import TIME, Expression
from odefit.problem.condition import Condition
from odefit.problem.noise import is_correlation_time
from odefit.problem.parameters import Unknown
from odefit.problem.problem import Problem
from odefit.problem.variants.data_scales import data_sizes, largest_input, largest_value, time_scale
from odefit.problem.variants.size_algebra import (
    LOGARITHMS,
    ONE,
    Logarithm,
    Monomial,
    Row,
    Size,
    SizeAlgebra,
    equations,
    solved,
)
from odefit.problem.variants.time_courses import sampled_times, with_courses

MEASURED = 10.0
"""Weight of a measured size, relative to a term of an equation of motion."""

KNOWN_START = 0.5
"""Weight of a known initial value, which is small because small values may grow."""

NARROW = 3.0
"""Weight of narrow bounds, relative to a term of an equation of motion."""

NARROW_DECADES = 2.0
"""Ratio below which bounds give the size of an unknown whatever the equations suggest."""

LARGE_EXPONENT = 10.0
"""Largest middle of an exponent's bounds that is informative."""

SHARED = 0.5
"""Smallest power of an exponential that determines a size: several may share a weak one."""


@dataclass(frozen=True)
class TypicalSize:
    """The expected size of an unknown."""

    size: float  # the size in the unknown's unit
    time_exponent: float  # the power of the time in the unknown's unit, -1 for a rate
    exponent: bool  # whether the unknown is an exponent in an equation
    # whether it is by itself a part of an observable, or the initial value of a state that is
    measured: bool
    # For each parameter E that is a factor of an exponent, as in A*exp(-E/(R*T)): its name, and the
    # derivative of log(size) by E that keeps the other sizes as they are.
    follows: tuple[tuple[str, float], ...] = ()
    linear: bool = False  # True if the argument of an exponential is linear in the unknown
    # For a point of time, such as b in t/60 - b: the factor of the time, and a number added
    time: tuple[float, float] | None = None
    width: bool = False  # True for a length of time around such a point, such as w in (t - b)/w
    # Of an unknown that is a logarithm in all equations: the quantity's, and the factor that makes
    # the logarithm a natural one
    exponential: tuple[TypicalSize, float] | None = None


@dataclass(frozen=True)
class Sizes:
    """Typical sizes of unknowns and of states."""

    # By kind and name. Of standard deviations it is the size of the data, of dispersions 1.
    unknowns: Mapping[tuple[str, str], TypicalSize]
    states: Mapping[str, float]  # the size of each state and algebraic variable


_known: WeakKeyDictionary[Condition, tuple[object, Sizes]] = WeakKeyDictionary()


def typical_sizes(problem: Problem) -> Sizes:
    """Return the typical sizes of the unknowns and states of a problem, whatever their guesses."""
    key = tuple(
        (u.key, u.kind, u.parameter.lower, u.parameter.upper, u.parameter.prior)
        for u in problem.unknowns
    )
    first = problem.conditions[0]
    cached = _known.get(first)
    if cached is None or cached[0] != key:
        cached = _known[first] = (key, _Analysis(problem).sizes())
    return cached[1]


def sizes_at(problem: Problem, vector: Array, part: float = 1.0) -> Array:
    """Return the magnitudes of unknowns, at least a fraction of their typical size, shape (n,).

    With `part` 0, typical sizes replace only zeros.
    """
    typical = expected_sizes(problem)
    sizes = np.maximum(np.abs(vector), part * typical)
    return np.where(sizes > 0, sizes, typical)


def expected_sizes(problem: Problem) -> Array:
    """Return the typical size of each unknown, shape (n,)."""
    sizes = typical_sizes(problem).unknowns
    return np.array([sizes[u.kind, u.name].size for u in problem.unknowns])


class _Analysis:
    """The equations for the sizes in one problem."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.model = problem.given
        self.gap, self.span = time_scale(problem)
        self.times = sampled_times(problem)
        self.data = data_sizes(problem)
        self.algebra = SizeAlgebra(self._nominal_exponents())
        self.columns: dict[str, tuple[str, str]] = {}
        """The kind and name of the unknown for each column."""
        for unknown in problem.unknowns:
            if unknown.kind != "noise":
                self.columns[_column(unknown.kind, unknown.name)] = (unknown.kind, unknown.name)
        self.measured: set[str] = set()
        """Observed states, and unknowns that are by themselves a part of an observable."""
        self.variables = (*self.model.states, *self.model.algebraic)

    def sizes(self) -> Sizes:
        """Return the sizes."""
        values = self._values()
        with np.errstate(all="ignore"):
            self._motion(values)
            self._observation(values)
            self._noise(values)
            self._starts_and_events(values)
        of_logarithms = [one.quantity for one in self.algebra.logarithms.values()]
        names = [*self.columns, *of_logarithms, *(_column("state", v) for v in self.variables)]
        n = len(names)
        known = [_column("time", TIME), *self.algebra.exponentials]
        levels = [equations(rows, [*names, *known]) for rows in self._levels(names)]
        matrices = [m[:, :n] for m, _ in levels]
        log_time = 0.5 * (math.log(self.gap) + math.log(self.span))
        rights = [np.column_stack([r - log_time * m[:, n], -m[:, n:]]) for m, r in levels]
        solution = solved(matrices, rights)
        logs = dict(zip(names, solution[:, 0].tolist(), strict=True))
        sizes = {}
        for k, column in enumerate(self.columns):
            kind, name = self.columns[column]
            column_of = column if kind != "initial" else _column("state", name)
            sizes[kind, name] = TypicalSize(
                _size(solution[k, 0]),
                float(solution[k, 1]),
                column in self.algebra.used_as_exponents,
                column_of in self.measured,
                self._follows(solution[k, 2:], logs),
                column in self.algebra.in_exponents,
                self.algebra.times.get(column),
                column in self.algebra.widths,
            )
        for column, logarithm in self._pure_logarithms().items():
            row = solution[names.index(logarithm.quantity)]
            known_size = logarithm.quantity in self.measured
            follows = self._follows(row[2:], logs)
            one = TypicalSize(_size(row[0]), float(row[1]), False, known_size, follows)
            sizes[self.columns[column]] = TypicalSize(
                1.0, 0.0, False, False, linear=True, exponential=(one, logarithm.factor)
            )
        for unknown in self.problem.unknowns:
            if unknown.kind == "noise":
                sizes["noise", unknown.name] = TypicalSize(
                    self._of_noise(unknown), 0.0, False, True
                )
        first = len(self.columns) + len(of_logarithms)
        states = {v: _size(solution[first + k, 0]) for k, v in enumerate(self.variables)}
        return Sizes(sizes, states)

    def _pure_logarithms(self) -> dict[str, Logarithm]:
        """Return the unknowns that occur only as logarithms."""
        elsewhere = {n for row in self.algebra.rows for n, v in row.monomial.exponents.items() if v}
        return {k: v for k, v in self.algebra.logarithms.items() if k not in elsewhere}

    def _follows(self, powers: Array, logs: Mapping[str, float]) -> tuple[tuple[str, float], ...]:
        """Return the dependence of a size on parameters in exponents.

        `logs` are the logarithms of the sizes; an exponential within another counts as one.
        """
        consequences = []
        for power, e in zip(powers.tolist(), self.algebra.exponentials.values(), strict=True):
            names = e.factor.exponents.items()
            factor = _size(e.factor.constant + sum(v * logs.get(n, 0.0) for n, v in names if v))
            if abs(power) > SHARED:
                consequences.append((self.columns[e.name][1], power * e.sign * factor))
        return tuple(consequences)

    def _of_noise(self, unknown: Unknown) -> float:
        """Return the size of an estimated standard deviation, dispersion or correlation time."""
        if is_correlation_time(self.problem.noise, unknown.name):
            return math.sqrt(self.gap * self.span)
        noises = {o: n for o, n in self.problem.noise.items() if n.unknown(o) == unknown.name}
        if any(not n.law.located or n.transform is not None for n in noises.values()):
            return 1.0
        size = max((self.data.get(o, 0.0) for o in noises), default=0.0)
        return size or max(self.data.values(), default=1.0)

    def _values(self) -> dict[str, Size]:
        """Return the size of every name that the equations may contain."""
        values = {v: self.algebra.name(_column("state", v)) for v in self.variables}
        values[TIME] = self.algebra.name(_column("time", TIME))
        for name in self.model.inputs:
            values[name] = self._of_values(largest_input(self.problem, name))
        scalars = {name for c in self.problem.conditions for name in c.scalars}
        pending: dict[str, Expression] = {}
        for name in sorted(scalars):
            bounds = [c.scalars[name] for c in self.problem.conditions if name in c.scalars]
            unknown = next((b for b in bounds if isinstance(b, int)), None)
            written = next((b for b in bounds if isinstance(b, Expression)), None)
            if unknown is not None:
                values[name] = self._unknown(unknown)
            elif written is not None:
                pending[name] = written
            else:
                values[name] = self._mean([float(b) for b in bounds if isinstance(b, float)])
        for name, written in pending.items():
            # Expressions contain unknowns and numbers; values that an experiment lacks are unknown.
            if written.names <= values.keys():
                values[name] = written.evaluate(values, self.algebra)
            else:
                values[name] = Size(self.algebra, (ONE,))
        return values

    def _unknown(self, index: int) -> Size:
        unknown = self.problem.unknowns[index]
        return self.algebra.name(_column(unknown.kind, unknown.name))

    def _mean(self, values: Sequence[float]) -> Size:
        """Return the size of a number that may differ from experiment to experiment."""
        if all(v == values[0] for v in values):
            return self.algebra.known(values[0])
        logs = [math.log(abs(v)) for v in values if v != 0 and math.isfinite(v)]
        terms = (Monomial(sum(logs) / len(logs), {}),) if logs else ()
        return Size(self.algebra, terms)

    def _motion(self, values: Mapping[str, Size]) -> None:
        """Require each term of x' to be as large as x over the time scale."""
        time = self.algebra.joined(values[TIME])
        assert time is not None
        for state, expression in self.model.ode.items():
            displacement = Monomial(0.0, {_column("state", state): 1.0}).plus(time, -1.0)
            for term in self._evaluated(expression, values).terms:
                self.algebra.wish(term.plus(displacement, -1.0), 1.0)
        for expression in self.model.algebraic.values():
            self.algebra.joined(self._evaluated(expression, values))

    def _observation(self, values: Mapping[str, Size]) -> None:
        """Require each term of an observable to have the size of its data."""
        for name, size in self.data.items():
            expression = self.problem.model.observables.get(name)
            if expression is None:
                continue
            log_size = math.log(size)
            last = expression.program[-1]
            if last.kind == "call" and last.text in LOGARITHMS:
                expression = Expression(expression.text, expression.program[:-1])
                log_size = LOGARITHMS[last.text] * largest_value(self.problem, name)
            terms = self._evaluated(expression, values).terms
            for term in terms:
                self.algebra.wish(term.plus(Monomial(log_size, {}), -1.0), MEASURED)
                (column, power), *more = [*term.exponents.items()] or [("", 0.0)]
                if power == 1 and not more and (len(terms) == 1 or column in self.columns):
                    self.measured.add(column)

    def _noise(self, values: Mapping[str, Size]) -> None:
        """Require standard deviations to have the size of the data, which they cannot exceed."""
        measured = {name: self._of_values(size) for name, size in self.data.items()}
        for name, noise in self.problem.noise.items():
            if not isinstance(noise.sd, Expression) or name not in measured:
                continue
            most = 1.0 if noise.transform is not None else self.data[name]
            for term in self._evaluated(noise.sd, {**values, **measured}).terms:
                self.algebra.wish(term.plus(Monomial(math.log(most), {}), -1.0), 1.0)

    def _starts_and_events(self, values: Mapping[str, Size]) -> None:
        """Require states to have the size of their initial values and of assignments by events."""
        seen: set[object] = set()
        for condition in self.problem.conditions:
            for state, bound in condition.initial.items():
                if isinstance(bound, int):
                    bound_key: object = _column("", self.problem.unknowns[bound].name)
                else:
                    bound_key = bound
                if (state, bound_key) in seen:
                    continue
                seen.add((state, bound_key))
                if isinstance(bound, int):
                    size, weight = self._unknown(bound), 1.0
                    unknown = self.problem.unknowns[bound]
                    if _column("state", state) in self.measured:
                        self.measured.add(_column(unknown.kind, unknown.name))
                elif isinstance(bound, Expression):
                    size, weight = self._evaluated(bound, values), KNOWN_START
                else:
                    size, weight = self.algebra.known(bound), KNOWN_START
                self._like(state, size, weight)
            for event in condition.located:
                if event.when is not None and event.when.text not in seen:
                    seen.add(event.when.text)
                    self._evaluated(event.when, values)  # compared quantities have similar sizes
            for assign in condition.assignments:
                for target, expression in assign.items():
                    if target in self.variables and (target, expression.text) not in seen:
                        seen.add((target, expression.text))
                        self._like(target, self._evaluated(expression, values), KNOWN_START)

    def _like(self, state: str, size: Size, weight: float) -> None:
        level = Monomial(0.0, {_column("state", state): 1.0})
        for term in size.terms:
            self.algebra.wish(term.plus(level, -1.0), weight)

    def _evaluated(self, expression: Expression, values: Mapping[str, Size]) -> Size:
        if not expression.names <= values.keys():
            return Size(self.algebra, ())
        written, courses = with_courses(expression, self.times)
        known = {name: self._of_values(size) for name, size in courses.items()}
        size: Size = written.evaluate({**values, **known}, self.algebra)
        return size

    def _of_values(self, largest: float) -> Size:
        """Return the size of a known quantity that varies, which is no number."""
        size = self.algebra.known(largest)
        size.number = None
        return size

    def _levels(self, names: Sequence[str]) -> list[list[Row]]:
        """Return the equations, followed by the levels that decide what they leave open."""
        first: list[Row] = list(self.algebra.rows)
        bounds: list[Row] = []
        states: list[Row] = []
        rest: list[Row] = []
        largest = max(self.data.values(), default=1.0)
        for unknown in self.problem.unknowns:
            column = _column(unknown.kind, unknown.name)
            if column in self.columns:
                p = unknown.parameter
                by_prior = [] if p.prior is None or p.prior.flat else [p.prior.central]
                for low, high in [*by_prior, (p.lower, p.upper)]:
                    middle = _middle(low, high)
                    if middle is not None:
                        narrow = low > 0 and high <= low * 10.0**NARROW_DECADES
                        row = _row(column, math.log(middle), NARROW if narrow else 1.0)
                        (first if narrow else bounds).append(row)
                        break
        of_logarithms = {one.quantity for one in self.algebra.logarithms.values()}
        for name in names:
            if name in of_logarithms:
                rest.append(_rate(name))
            elif name not in self.columns:
                states.append(_row(name, math.log(largest)))
            elif name in self.algebra.used_as_exponents:
                states.append(_row(name, 0.0))
            elif self.columns[name][0] == "initial":
                rest.append(_row(name, math.log(largest)))
            else:
                rest.append(_rate(name))
        return [first, bounds, states, rest]

    def _nominal_exponents(self) -> dict[str, float]:
        """Return the values used for parameters in exponents."""
        exponents = {}
        for unknown in self.problem.unknowns:
            middle = _middle(unknown.parameter.lower, unknown.parameter.upper)
            if middle is not None and middle <= LARGE_EXPONENT:
                exponents[_column(unknown.kind, unknown.name)] = max(middle, 0.1)
        return exponents


def _middle(low: float, high: float) -> float | None:
    """Return the geometric middle of bounds, or a decade below the upper if the lower is zero."""
    if not math.isfinite(high) or 0.1 * high <= 0:
        return None
    if low > 0:
        return math.exp(0.5 * (math.log(low) + math.log(high)))
    return 0.1 * high


def _row(column: str, value: float, weight: float = 1.0) -> Row:
    return Row(Monomial(-value, {column: 1.0}), weight)


def _rate(column: str) -> Row:
    """Return the condition that a size is one over the time scale."""
    return Row(Monomial(0.0, {column: 1.0, _column("time", TIME): 1.0}), 1.0)


def _column(kind: str, name: str) -> str:
    return f"{kind} {name}"


def _size(logarithm: float) -> float:
    """Return the size, limited to finite numbers."""
    return math.exp(min(max(float(logarithm), -600.0), 600.0))
