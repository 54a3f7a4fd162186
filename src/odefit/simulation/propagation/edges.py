"""Edges of the domain of a right-hand side, at which a root, power, logarithm or 1/x ends.

An edge has an argument, which is zero there. If the argument is a multiple of one state, as in
``sqrt(2*g*h)`` or ``D/r``, that state is a level that may run out. It is held at zero as long as
its rate, with its limit at the edge, does not make it positive. Any other argument, as in ``sqrt(h1
- h2)``, is held at zero only while its own rate there is zero; if it would become negative, the
integration ends. Roots of ``max(u, 0)`` and ``abs(u)`` have an edge, too, as their derivatives are
unbounded there; but the motion may cross it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from odefit.common.arrays import Array
from odefit.expressions.algebras import DUAL, LIMITS, NUMPY, Dual
from odefit.expressions.expressions import TIME, Expression
from odefit.expressions.formulas import Part, evaluated, number, operations
from odefit.problem.vector_field import VectorField
from odefit.simulation.engines.engine import EngineFailure, Values
from odefit.simulation.engines.engines import Engines
from odefit.simulation.engines.segments import Segment, input_value
from odefit.simulation.propagation.steep import ZERO, AtZero, with_rates

TINY = 1e-200  # value of a state in place of zero, if a rate has only a limit there
WITH_EDGES = frozenset({"sqrt", "log", "log10", "/", "^"})
"""The operations of :func:`_place`."""


@dataclass(frozen=True)
class Edge:
    """An argument of an operation that is undefined or infinitely steep where it is zero.

    `ends` is set if the operation is undefined beyond, `infinite` if it has no finite limit.
    """

    operation: str  # The text of the operation
    argument: Expression
    state: str | None  # The state whose multiple is the argument
    ends: bool
    infinite: bool
    flat: bool  # Whether the operation is zero for negative arguments


class HeldEdges(NamedTuple):
    """States and arguments of operations held at zero, the arguments by their programs."""

    states: frozenset[str] = frozenset()
    arguments: frozenset[Any] = frozenset()

    def holds(self, edge: Edge) -> bool:
        """Return whether an edge is held."""
        return edge.state in self.states or edge.argument.program in self.arguments

    def changed(self, edge: Edge, *, flat: bool = False) -> HeldEdges:
        """Return the mode in which one edge is held instead of free, or free instead of held.

        With `flat` only the argument counts as zero, and its state continues to move.
        """
        if edge.state is not None and not flat:
            return self._replace(states=self.states ^ {edge.state})
        return self._replace(arguments=self.arguments ^ {edge.argument.program})


@lru_cache(maxsize=16)
def edges_of(field: VectorField) -> tuple[Edge, ...]:
    """Return the edges of the equations of a field."""
    edges: dict[Any, Edge] = {}

    for expression in (*field.model.ode.values(), *field.model.algebraic.values()):
        for instruction, operands, part in operations(expression.program, WITH_EDGES):
            place = _place(instruction.text, operands)
            edge = None if place is None else _edge(field, part, *place)
            if edge is not None:
                edges.setdefault(edge.argument.program, edge)
    return tuple(edges.values())


def edges_with_crossings(field: VectorField, crossed: Sequence[Expression]) -> tuple[Edge, ...]:
    """Return the edges of a field, and those of some quantities that may be crossed."""
    programs = {p.program for q in crossed for p in (Part(q.program), -Part(q.program))}
    return tuple(
        replace(edge, ends=False, flat=True) if edge.argument.program in programs else edge
        for edge in edges_of(field)
    )


def _place(text: str, arguments: Sequence[Part]) -> tuple[Part, bool] | None:
    """Return the argument of an operation that has an edge, and whether it has no limit there."""
    if text == "sqrt":
        return arguments[0], False
    if text in ("log", "log10"):
        return arguments[0], True
    if text == "/":
        return arguments[1], True
    if text == "^":
        exponent = arguments[1].number
        if exponent is None or not exponent.is_integer():
            return arguments[0], exponent is not None and exponent < 0
        return (arguments[0], True) if exponent < 0 else None
    return None


def _edge(field: VectorField, part: Part, argument: Part, infinite: bool) -> Edge | None:
    """Return the edge of an operation, if the states can move its argument to zero."""
    inside, ends, flat = argument, True, False
    last = argument.program[-1]
    if last.text == "abs":
        inside, ends = Part(argument.program[:-1]), False
    elif last.text == "max" and last.arity == 2:
        pair = argument.operands()
        other = [part for part in pair if part.number != 0.0]
        if len(other) == 1:
            inside, ends, flat = other[0], False, True
    moving = {*field.states, *field.model.algebraic}
    names = inside.names & moving
    if not names:
        return None
    state = _vanishes_with(inside, names, {TIME, *field.inputs})
    if state not in field.states:
        state = None
    if state is None and infinite and part.program[-1].kind == "binary":
        return None  # a pole of several states: the solution grows without bound
    return Edge(part.expression().text, inside.expression(), state, ends, infinite, flat)


def _vanishes_with(argument: Part, names: frozenset[str], others: set[str]) -> str | None:
    """Return the only moving name whose zero makes an argument zero, if it is positive before."""
    if len(names) > 1 or argument.names & others:
        return None
    (name,) = names
    values = dict.fromkeys(argument.names, np.float64(0.7))
    with np.errstate(all="ignore"):
        samples = [argument.expression().evaluate({**values, name: x}, NUMPY) for x in (0.0, 0.4)]
    return name if samples[0] == 0.0 and samples[1] > 0.0 else None


def inputs_at(segment: Segment, times: Array, side: Any = "right") -> Array:
    """Return the polynomials of the inputs at times of a segment, shape (k, inputs, 5).

    At a breakpoint they belong to the part that begins there, or with "left" to the part that ends.
    """
    return segment.polynomials[np.searchsorted(segment.breakpoints, times, side)]


class Course(NamedTuple):
    """Points of a trajectory."""

    times: Array  # Shape (k,)
    polynomials: Array  # Those of the inputs, shape (k, inputs, 5)
    states: Array  # Shape (k, n)
    scalars: Array  # Shape (p,)

    def inputs(self) -> list[Any]:
        """Return the values of the inputs, each of shape (k,)."""
        return [input_value([*p.T], self.times) for p in self.polynomials.swapaxes(0, 1)]


def rates(field: VectorField, course: Course) -> Array:
    """Return the rates of the states, shape (k, n)."""
    times = course.times
    values: dict[str, Any] = dict(zip(field.scalars, course.scalars, strict=True))
    values |= zip(field.states, course.states.T, strict=True)
    values |= zip(field.inputs, course.inputs(), strict=True)
    rates_found = field.rhs({**values, TIME: times}, LIMITS)
    return np.stack([np.broadcast_to(f, times.shape) for f in rates_found], axis=1)


def moving_arguments(
    field: VectorField,
    edges: Sequence[Edge],
    course: Course,
    changes: Array,
    scalar_changes: Array,
) -> Array:
    """Return arguments of edges and their derivatives along directions, (edges, 1 + m, k).

    The states change with `changes`, shape (k, n, m), the scalars with `scalar_changes`, (p, m).
    The first direction is time.
    """
    times, m = course.times, changes.shape[2]
    values: dict[str, Any] = {TIME: Dual(times, {0: np.ones(len(times))})}
    polynomials = course.polynomials.swapaxes(0, 1)
    for name, value, p in zip(field.inputs, course.inputs(), polynomials, strict=True):
        left, _, *c = p.T
        s = times - left
        values[name] = Dual(value, {0: c[0] + s * (2.0 * c[1] + s * 3.0 * c[2])})
    for name, value, by in zip(field.scalars, course.scalars, scalar_changes, strict=True):
        values[name] = Dual(value, {k: d for k, d in enumerate(by) if d})
    for i, name in enumerate(field.states):
        values[name] = Dual(course.states[:, i], {k: changes[:, i, k] for k in range(m)})
    full = field.complete(values, DUAL)
    arguments = np.empty((len(edges), 1 + m, len(times)))
    for row, edge in zip(arguments, edges, strict=True):
        argument = edge.argument.evaluate({n: full[n] for n in edge.argument.names}, DUAL)
        row[0], row[1:] = argument.value, argument.gradient(m, len(times)).T
    return arguments


class _Held(AtZero):
    """Parts in which some arguments of operations are zero."""

    def __init__(self, scalars: Mapping[str, Any], arguments: frozenset[Any]) -> None:
        super().__init__(scalars)
        self._arguments = arguments

    def power(self, base: Part, exponent: Part) -> Part:
        return super().power(ZERO if base.program in self._arguments else base, exponent)

    def call(self, function: str, arguments: Sequence[Any]) -> Any:
        held = [number(0.0) if self._is_held(a) else a for a in arguments]
        return super().call(function, held)

    def _is_held(self, argument: Any) -> bool:
        return isinstance(argument, Part) and argument.program in self._arguments


def held_field(
    field: VectorField, engines: Engines, mode: HeldEdges, scalars: Array
) -> tuple[VectorField, Engines]:
    """Return the field with a mode in force, and its engines."""
    if not mode.states and not mode.arguments:
        return field, engines
    algebra, zeros = _algebra(field, mode, scalars), dict.fromkeys(mode.states, ZERO)
    ode, algebraic = (
        {
            name: (ZERO if name in mode.states else evaluated(e, zeros, algebra)).expression()
            for name, e in equations.items()
        }
        for equations in (field.model.ode, field.model.algebraic)
    )
    return with_rates(field, engines, ode, algebraic)


def is_kept(field: VectorField, mode: HeldEdges, scalars: Array, state: str) -> bool:
    """Return whether the equations alone keep a state at zero in a mode that holds it."""
    zeros = dict.fromkeys(mode.states, ZERO)
    rate = evaluated(field.model.ode[state], zeros, _algebra(field, mode, scalars))
    return rate.number == 0.0


def _algebra(field: VectorField, mode: HeldEdges, scalars: Array) -> _Held:
    known = {**field.folded, **dict(zip(field.scalars, scalars.tolist(), strict=True))}
    return _Held({n: np.float64(v) for n, v in known.items()}, mode.arguments)


class Argument(NamedTuple):
    """An argument at a time: its value, its rate, and its changes along the directions."""

    value: float
    rate: float
    changes: Array  # Shape (m,)
    size: float  # The sum of the magnitudes of its linear terms in the states


def arguments_of(
    field: VectorField, edges: Sequence[Edge], here: Course, now: Values, speeds: Array
) -> list[Argument]:
    """Return the arguments of edges at a point, for states that change with `speeds`, (n,)."""
    n, m = now.sensitivities.shape
    changes = np.concatenate([speeds[:, None], now.sensitivities, np.diag(now.states)], axis=1)
    by_scalars = np.zeros((len(now.scalars), 1 + m + n))
    by_scalars[:, 1 : 1 + m] = now.scalar_sensitivities
    return [
        Argument(float(u[0]), float(u[1]), u[2 : 2 + m], float(np.abs(u[2 + m :]).sum()))
        for u in moving_arguments(field, edges, here, changes[None], by_scalars)[:, :, 0]
    ]


def next_zero(times: tuple[float, float], before: Argument, after: Argument) -> float:
    """Return the time at which an argument is zero, by the secant of -u/u'; else infinity."""
    if not (before.value * before.rate < 0.0 and after.value * after.rate < 0.0):
        return np.inf
    first, second = (-u.value / u.rate for u in (before, after))
    slope = (first - second) / (times[1] - times[0])
    return times[1] + second / slope if slope > 0.0 else np.inf


def limits(field: VectorField, course: Course, state: str) -> Array:
    """Return the rates of the states with one of them at its edge, shape (k, n)."""
    at = field.states.index(state)
    limits_of = []
    for value in (0.0, TINY):
        states = course.states.copy()
        states[:, at] = value
        limits_of.append(rates(field, course._replace(states=states)))
    return np.where(np.isnan(limits_of[0]), limits_of[1], limits_of[0])


def rates_while_held(field: VectorField, here: Course) -> Array | None:
    """Return the rates of the states at a point where one is held; None if none is held."""
    limit_rates = None
    for edge in edges_of(field):
        if edge.state is None or not edge.ends:
            continue
        at = field.states.index(edge.state)
        if here.states[0, at] == 0.0:
            limit_rates = limits(field, here, edge.state)[0] if limit_rates is None else limit_rates
            limit_rates[at] = max(limit_rates[at], 0.0)
    return limit_rates


def not_defined(field: VectorField, values: Mapping[str, Any]) -> str:
    """Return a description of the undefined operations at these values of all names."""
    undefined = []
    for edge in edges_of(field):
        value = edge.argument.evaluate({n: values[n] for n in edge.argument.names}, NUMPY)
        if edge.ends and (value < 0.0 or (edge.infinite and value == 0.0)):
            undefined.append(f"{edge.argument.text} = {float(value):.4g} in {edge.operation}")
    return f", with {', '.join(undefined)}" if undefined else ""


def model_ends(edge: Edge, time: float) -> EngineFailure:
    """Return the reason why a model ends at an edge, with a remedy."""
    inside = edge.argument.text
    reason = f"{edge.operation} ends here: {inside} reaches 0 and would become negative"
    if "log" in edge.operation or edge.infinite:
        reason += "; bound the unknowns so that it stays positive, or state what holds below"
    else:
        reason += f"; write max({inside}, 0) for it if the term is zero beyond, or "
        reason += f"sign({inside})*... of abs({inside}) if it changes its direction there"
    return EngineFailure(time, reason)
