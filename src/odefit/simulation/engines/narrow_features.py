"""Features that an integration could miss: functions that are flat elsewhere.

A step or a pulse that is smooth, such as ``tanh((t - t1)/0.1)`` or ``exp(-((x - 5)/0.1)^2)``, is
constant to all digits away from its centre. Derivatives there contain no trace of it, so that the
error control of a method of any order misses it. The inner terms of such a function show its
centre: a difference there changes its sign, or an argument has an extremum. These terms are watched
along each step, and the equations are evaluated where one of them is zero.

Functions of time alone are known before the integration, which then stops where a feature begins.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Any

import casadi as ca
import numpy as np

from odefit.common.arrays import Array, BoolArray
from odefit.expressions.expressions import NON_SMOOTH, TIME
from odefit.expressions.grammar import CONDITIONS, PIECEWISE, Instruction
from odefit.problem.vector_field import VectorField
from odefit.simulation.engines.casadi_algebra import (
    CasadiAlgebra,
    Symbol,
    column_of,
    flat_symbols,
    symbols_of,
)
from odefit.simulation.engines.programs import ArrayFunction
from odefit.simulation.engines.segments import Segment, SmoothPart
from odefit.simulation.engines.sign_changes import sign_changes

FLAT = frozenset({"exp", "tanh", "sinh", "cosh"})
"""Functions that can be flat to all orders, alone or in quotients."""

FLAT_EXPONENT = 4.0  # exponents beyond which a power counts as flat near its zero

POSITIVE = frozenset({"exp", "cosh", "sqrt", "abs"})
"""Functions whose values never change sign."""

GRID = 512
"""Number of intervals between two corners of the inputs that are searched for features."""

HALVINGS = 40
"""Number of checked distances from the centre of a feature, each half the previous one."""

MAX_CENTRES = 200  # centres that are checked between two corners of the inputs
VISIBLE = 1e-11  # visible change of a function of time, relative to its whole change

QUIET = 1e-2
"""Length of a time without change, relative to the time span of the integration, that a step could
skip together with the following feature."""

FADING = 0.1
"""Ratio of the changes after and before a quiet time above which a feature begins."""

NOTHING, KINKS, EVERYWHERE = range(3)
"""An integration watches nothing, watched terms alone, or every step as well.

Beside their kinks, functions such as ``max`` are smooth and not flat, so that a step misses one
only where a watched term changes its sign.
"""

KEPT = 256  # cached results of the search for features, for evaluations at the same values


class _Term:
    """An expression, with its properties found in traversing the equations.

    `inner` are the terms of which it is made. It may depend on states, on time or inputs, contain a
    function that can be flat, and have a sign whose changes need watching.
    """

    __slots__ = ("balance", "by_states", "by_time", "finder", "flat", "inner", "sign", "value")

    def __init__(
        self,
        finder: _Finder,
        value: Symbol,
        inner: Sequence[_Term] = (),
        *,
        flat: bool = False,
        sign: bool = False,
    ) -> None:
        self.finder, self.value, self.inner = finder, value, tuple(inner)
        self.by_states: bool = any(term.by_states for term in self.inner)
        self.by_time: bool = any(term.by_time for term in self.inner)
        self.flat: bool = flat or any(term.flat for term in self.inner)
        self.sign = sign
        self.balance: _Term | None = None

    @property
    def moving(self) -> bool:
        return self.by_states or self.by_time

    def _with(self, other: Any, value: Any, *, sign: bool = False) -> _Term:
        terms = (self, other)
        self.finder.note_edge(terms)
        return _Term(self.finder, value, terms, sign=sign)

    def __neg__(self) -> _Term:
        return _Term(self.finder, -self.value, (self,))

    def __add__(self, other: _Term) -> _Term:
        term = self._with(other, self.value + other.value, sign=True)
        if self.flat or other.flat:
            term.balance = _Term(self.finder, self.value - other.value, (self, other), sign=True)
        return term

    def __sub__(self, other: _Term) -> _Term:
        return self._with(other, self.value - other.value, sign=True)

    def __mul__(self, other: _Term) -> _Term:
        return self._with(other, self.value * other.value)

    def __truediv__(self, other: _Term) -> _Term:
        self.finder.note_divisor(other)
        return self._with(other, self.value / other.value)


class _Finder:
    """The algebra that traverses equations to find the terms to be watched."""

    def __init__(self) -> None:
        self._algebra = CasadiAlgebra()
        self.watched: OrderedDict[int, _Term] = OrderedDict()
        self.arguments: OrderedDict[int, _Term] = OrderedDict()
        self.of_time: OrderedDict[int, _Term] = OrderedDict()
        self.exponents: list[Symbol] = []
        self.always = False
        self.flat = False  # whether functions may be flat beside kinks as well

    def name(self, value: Symbol, *, by_states: bool = False, by_time: bool = False) -> _Term:
        """Return a name as a term."""
        term = _Term(self, value, sign=by_states)
        term.by_states, term.by_time = by_states, by_time
        return term

    def number(self, text: str) -> _Term:
        """See :class:`odefit.expressions.expressions.Algebra`."""
        return _Term(self, self._algebra.number(text))

    def power(self, base: _Term, exponent: _Term) -> _Term:
        """See :class:`odefit.expressions.expressions.Algebra`."""
        value = exponent.value.sx
        fixed = value.is_constant()
        flat = base.moving and (not fixed or abs(float(value)) > FLAT_EXPONENT)
        self.flat |= flat or exponent.moving
        if flat and not fixed and not exponent.moving:
            self.exponents.append(exponent.value)
        elif flat or exponent.moving:
            self.always = True
        self.note_edge((base, exponent))
        if fixed and float(value) < 0:
            self.note_divisor(base)
        term = _Term(
            self,
            self._algebra.power(base.value, exponent.value),
            (base, exponent),
            flat=flat or exponent.moving,
        )
        if flat or exponent.moving:
            self._watch_inside((base, exponent))
        return term

    def call(self, function: str, arguments: Sequence[_Term]) -> _Term:
        """See :class:`odefit.expressions.expressions.Algebra`."""
        value = self._algebra.call(function, [term.value for term in arguments])
        kink = function in NON_SMOOTH or function == PIECEWISE or function in CONDITIONS
        moving = [term for term in arguments if term.moving]
        flat = bool(moving) and (function in FLAT or kink)
        self.note_edge(arguments)
        if flat:
            self.always = True
            self.flat |= not kink
            self._watch_inside(moving)
            if kink and len(arguments) == 2 and function not in ("&&", "||"):
                first, second = arguments
                difference = _Term(self, first.value - second.value, arguments, sign=True)
                self.watched[id(difference)] = difference
        return _Term(self, value, arguments, flat=flat, sign=function not in POSITIVE and not kink)

    def note_edge(self, terms: Sequence[_Term]) -> None:
        """Record terms of time alone that meet others which are not: they are scanned unchanged."""
        if any(term.by_states for term in terms):
            for term in terms:
                self.note_of_time(term)

    def note_of_time(self, term: _Term) -> None:
        """Record a term to scan, if it depends on time alone and contains a flat function."""
        if term.flat and term.by_time and not term.by_states:
            self.of_time[id(term)] = term

    def note_divisor(self, term: _Term) -> None:
        """Watch the terms of a divisor: where they are equal, the quotient is halfway in a step."""
        if term.balance is not None and term.moving:
            self.watched[id(term.balance)] = term.balance

    def _watch_inside(self, terms: Sequence[_Term]) -> None:
        for term in terms:
            if term.moving:
                self.arguments[id(term)] = term
        stack = list(terms)
        while stack:
            term = stack.pop()
            if not term.moving or id(term) in self.watched:
                continue
            if term.sign:
                self.watched[id(term)] = term
            stack.extend(term.inner)


@dataclass(frozen=True, eq=False)
class NarrowFeatures:
    """The terms of a vector field that are watched so that no integration misses a feature."""

    # CasADi's symbols: time, states, scalars, and five numbers of each input's polynomial.
    variables: Any
    # Number of states, and of scalars.
    states: int
    scalars: int
    watched: Any  # Expressions whose changes of sign show features, shape (w,)
    # The expressions that depend on time alone: functions to scan, shape (g,), followed by
    # expressions whose changes of sign show their features.
    of_time: Any
    functions: int  # Number g of functions of time
    by_scalars: BoolArray  # Whether each scalar acts on the functions of time
    always: bool  # Whether a function is flat whatever the values of the scalars
    exponents: Any  # Exponents that depend on scalars, of powers that may be flat
    flat: bool  # Whether functions may be flat beside kinks as well
    _cache: OrderedDict[Any, Array]

    @classmethod
    @lru_cache(maxsize=4)
    def of(cls, field: VectorField) -> NarrowFeatures | None:
        """Return the features of a field; None if no function can be flat.

        The last ones are cached for other forward maps of the same equations.
        """
        if not _may_be_flat(field):
            return None
        n, p = len(field.states), len(field.scalars)
        variables, symbols, named = flat_symbols(field)
        time, states, scalars = symbols[0], symbols[1 : 1 + n], symbols[1 + n : 1 + n + p]
        finder = _Finder()
        moving_in_time, moving_states = {TIME, *field.inputs}, set(field.states)
        values: dict[str, Any] = {
            name: finder.name(
                value, by_states=name in moving_states, by_time=name in moving_in_time
            )
            for name, value in named.items()
        }
        for name in field.algebraic:
            values[name] = finder.name(Symbol(ca.SX.sym(name)), by_states=True)
        rhs = field.rhs(values, finder)
        for term in rhs:
            finder.note_of_time(term)
        if not any(term.flat for term in rhs):
            return None
        terms = list(finder.watched.values())
        arguments = [*finder.arguments.values()]
        rates = column_of(term.value for term in rhs)
        solved = [] if field.algebraic else [t for t in terms if t.moving]
        watched = [term.value for term in solved]
        if not field.algebraic and arguments:
            moving = column_of([time, *states])
            along = ca.vertcat(1.0, rates)
            inside = column_of(term.value for term in arguments)
            watched += symbols_of(ca.jtimes(inside, moving, along))
        functions = [term.value for term in finder.of_time.values()]
        signs = [t.value for t in terms if t.by_time and not t.by_states]
        of_arguments = [t.value for t in arguments if t.by_time and not t.by_states]
        if functions and of_arguments:
            signs += symbols_of(ca.jacobian(column_of(of_arguments), time.sx))
        of_time = column_of([*functions, *signs] if functions else [])
        depends = [bool(functions) and bool(ca.depends_on(of_time, s.sx)) for s in scalars]
        return cls(
            variables=variables,
            states=n,
            scalars=p,
            watched=_distinct(ca.cse(column_of(watched))),
            of_time=of_time,
            functions=len(functions),
            by_scalars=np.array(depends, dtype=bool),
            always=finder.always,
            exponents=column_of(finder.exponents),
            flat=finder.flat,
            _cache=OrderedDict(),
        )

    def acts(self, scalars: Array) -> bool:
        """Return whether a function is flat at these values of the scalars, shape (p,)."""
        if self.always:
            return True
        with np.errstate(all="ignore"):
            exponents = self._exponents([*scalars], 1)
        return not bool((np.abs(exponents) <= FLAT_EXPONENT).all())

    def watching_at(self, scalars: Array) -> int:
        """Return what an integration at these values of the scalars watches."""
        return (EVERYWHERE if self.flat else KINKS) if self.acts(scalars) else NOTHING

    @cached_property
    def _exponents(self) -> ArrayFunction:
        scalars = self.variables[1 + self.states : 1 + self.states + self.scalars]
        return ArrayFunction(scalars, self.exponents)

    @cached_property
    def watching(self) -> ArrayFunction:
        """The watched expressions as a function of the variables."""
        return ArrayFunction(self.variables, self.watched)

    @cached_property
    def _in_time(self) -> ArrayFunction:
        rest = ca.vertcat(self.variables[0], self.variables[1 + self.states :])
        return ArrayFunction(rest, self.of_time)

    def with_stops(self, segment: Segment, scalars: Array, *, centres: bool = False) -> Segment:
        """Return a segment in which integrations stop where a function of time begins to change.

        With `centres` they stop at the centres of features, too, for engines without access to the
        interior of their steps.
        """
        if not (self.functions and np.isfinite(segment.times[-1]) and self.acts(scalars)):
            return segment
        edges, polynomials = [], []
        for part in segment.smooth_parts:
            stops = self.stops(part, scalars, centres=centres)
            edges.extend([*stops, part.times[-1]])
            polynomials.extend([part.polynomials] * (len(stops) + 1))
        if len(edges) == len(segment.polynomials):
            return segment
        return replace(segment, breakpoints=np.array(edges[:-1]), polynomials=np.array(polynomials))

    def stops(self, part: SmoothPart, scalars: Array, *, centres: bool = False) -> Array:
        """Return the times inside a part at which a function of time alone begins to change."""
        start, end = float(part.start), float(part.times[-1])
        constants = np.concatenate([scalars, part.polynomials.ravel()])
        key = (centres, start, end, scalars[self.by_scalars].tobytes(), part.polynomials.tobytes())
        # Equal fields share these features, also across threads. An entry that is taken out and put
        # back cannot vanish between two accesses.
        times = self._cache.pop(key, None)
        if times is None:
            with np.errstate(all="ignore"):
                times = self._beginnings(start, end, constants, centres)
        self._cache[key] = times
        if len(self._cache) > KEPT:
            self._cache.popitem(last=False)
        return times

    def _at(self, times: Array, constants: Array) -> Array:
        return self._in_time([times, *constants], len(times))

    def _beginnings(self, start: float, end: float, constants: Array, with_centres: bool) -> Array:
        span = end - start
        grid = start + span * np.linspace(0.0, 1.0, GRID + 1)
        signs = self._at(grid, constants)[self.functions :]
        centres = self._zeros(grid, signs, constants)
        if len(centres):
            steps = span * 0.5 ** np.arange(1, HALVINGS)
            near = (centres[:, None] + np.concatenate([-steps, [0.0], steps])).ravel()
            grid = np.unique(np.concatenate([grid, near[(near > start) & (near < end)]]))
        values = self._at(grid, constants)[: self.functions]
        values = values[np.isfinite(values).all(axis=1)]
        changes = np.abs(np.diff(values, axis=1))
        total = changes.sum(axis=1)
        changes, total = changes[total > 0], total[total > 0]
        if not len(total):
            return np.zeros(0)
        travelled = np.concatenate([[0.0], np.cumsum((changes / total[:, None]).sum(axis=0))])
        last = np.searchsorted(travelled, travelled + VISIBLE, side="right") - 1
        first = np.concatenate([[True], last[1:] > last[:-1]])
        length = grid[last] - grid
        quiet = first & (length >= QUIET * span) & (last < len(grid) - 1)
        # At the end of a change, less of it follows the quiet time than precedes it.
        before = travelled - np.interp(grid - length, grid, travelled)
        after = np.interp(grid[last] + length, grid, travelled) - travelled[last]
        beginnings = np.unique(grid[last[quiet & (after >= FADING * before)]])
        if with_centres:
            beginnings = np.union1d(beginnings, centres)
        return beginnings[(beginnings > start) & (beginnings < end)]

    def _zeros(self, grid: Array, signs: Array, constants: Array) -> Array:
        """Return the times at which one of the expressions changes its sign, shape (k,)."""

        def at(times: Array) -> Array:
            return self._at(times, constants)[self.functions :]

        changes = sign_changes(grid, signs, at, MAX_CENTRES, iterations=4)
        exact = np.unique(grid[np.nonzero(signs == 0)[1]])
        return np.union1d(changes, exact[: max(MAX_CENTRES - len(changes), 0)])


def _distinct(column: Any) -> Any:
    """Return the distinct expressions of a column; equal ones share their nodes."""
    known = {column[k].element_hash(): column[k] for k in range(column.numel())}
    return ca.vertcat(*known.values()) if known else column


def _may_be_flat(field: VectorField) -> bool:
    """Return whether the equations contain a function or a power that might be flat."""
    expressions = (*field.model.ode.values(), *field.model.algebraic.values())
    for expression in expressions:
        if expression.functions & (FLAT | NON_SMOOTH):
            return True
        for exponent, step in pairwise(expression.program):
            if step.kind == "binary" and step.text not in "+-*/" and not _low(exponent):
                return True
    return False


def _low(exponent: Instruction) -> bool:
    """Return whether an exponent is a number too low for a flat power."""
    return exponent.kind == "number" and float(exponent.text) <= FLAT_EXPONENT
