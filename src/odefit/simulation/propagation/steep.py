"""Equations with unbounded derivatives where a state is zero: under a root or a power.

States that rest at zero are removed from such equations. An absent substance decays, binds and is
consumed at a rate of zero, and stays at zero. Engines fail there, although nothing moves, as
derivatives of some order are infinite. Replacing the state by the number zero leaves the equations
unchanged, and their sensitivities as well, if none of them moves the state.

States that leave zero take a special first step. Examples are a tank that fills from empty, or a
response that is the root of a concentration that begins at zero. Engines fail at such a point or
lose their accuracy, since Taylor coefficients, Newton matrices and sensitivities are infinite. A
step of Euler's method, so short that its error is far below the accuracy of any engine, leads away
from it: after the step the state is positive.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from odefit.common.arrays import Array
from odefit.expressions.algebras import DUAL, NUMPY, Dual
from odefit.expressions.expressions import TIME, Expression
from odefit.expressions.formulas import Part, PartAlgebra, evaluated, number
from odefit.expressions.grammar import PIECEWISE, Instruction
from odefit.problem.building.switches import PREFIX
from odefit.problem.condition import Condition
from odefit.problem.vector_field import VectorField, with_equations
from odefit.simulation.engines.engine import EngineFailure, Values
from odefit.simulation.engines.engines import Engines

ZERO = number(0.0)

_Equations = tuple[tuple[Expression, ...], tuple[Expression, ...]]

_MADE: WeakKeyDictionary[Engines, dict[_Equations, tuple[VectorField, Engines]]]
_MADE = WeakKeyDictionary()
"""Fields without resting states and their engines, by the engines of the whole field, so that all
conditions share compiled code."""


def is_steep(field: VectorField) -> bool:
    """Return whether a right-hand side has roots or fractional powers of moving quantities."""
    return _steep_operations(field) > 0


def _steep_operations(field: VectorField) -> int:
    moving = _moving_names(field)
    return sum(_steep(e, moving) for e in field.model.ode.values())


@lru_cache(maxsize=64)
def _steep_in_time(field: VectorField) -> bool:
    """Return whether the time alone may move the argument of a root or fractional power."""
    timed = frozenset({*field.inputs, TIME})
    return any(_steep(e, timed) for e in field.model.ode.values())


def _moving_names(field: VectorField) -> frozenset[str]:
    """Return the names whose values change along a segment; all others are constants there."""
    return frozenset({*field.states, *field.algebraic, *field.inputs, TIME})


def _is_steep(rate: Expression, name: str, moving: frozenset[str]) -> bool:
    """Return whether a right-hand side has roots or powers, and a state in it."""
    return name in rate.names and _steep(rate, moving) > 0


def _steep(rate: Expression, moving: frozenset[str]) -> int:
    """Return the number of roots, and of non-integer powers, of moving quantities.

    A power of constants, such as an allometric factor of a weight, is itself constant.
    """
    count, moves = 0, list[bool]()
    for at, (kind, text, arity) in enumerate(rate.program):
        if kind in ("name", "number"):
            moves.append(kind == "name" and text in moving)
            continue
        taken = {"negate": 1, "binary": 2}.get(kind, arity)
        operands = moves[-taken:]
        if text == "sqrt" or (text == "^" and kind == "binary"):
            broken = text == "sqrt" or not _whole(rate.program[at - 1])
            count += operands[0] and broken
        moves[-taken:] = [any(operands)]
    return count


def _whole(exponent: Instruction) -> bool:
    """Return whether an exponent is an integer."""
    return exponent.kind == "number" and float(exponent.text).is_integer()


class RestingStates:
    """The equations of a field without the states that rest at zero."""

    def __init__(self, field: VectorField, engines: Engines) -> None:
        self._field, self._engines = field, engines
        self._steep = _steep_operations(field)

    def without(self, now: Values) -> tuple[VectorField, Engines]:
        """Return the field with zeros for resting states, and its engines.

        They are the original field and engines if nothing rests, or if nothing is gained.

        A state that the sensitivities move from zero does not rest.
        """
        field = self._field
        still = (now.states == 0.0) & ~now.sensitivities.any(axis=1)
        names = {name for name, rests in zip(field.states, still, strict=True) if rests}
        scalars = dict(zip(field.scalars, now.scalars.tolist(), strict=True))
        names, rates = _resting(field, names, {**field.folded, **scalars})
        if not names:
            return field, self._engines
        ode = {s: part.expression() for s, part in rates.items()}
        other = with_rates(field, self._engines, ode, field.model.algebraic)
        easier = _steep_operations(other[0]) < self._steep
        return other if easier else (field, self._engines)


def with_rates(
    field: VectorField,
    engines: Engines,
    ode: Mapping[str, Expression],
    algebraic: Mapping[str, Expression],
) -> tuple[VectorField, Engines]:
    """Return a field with other right-hand sides and algebraic equations, and its engines."""
    known = _MADE.setdefault(engines, {})
    key = tuple(ode.values()), tuple(algebraic.values())
    if key not in known:
        model = with_equations(field.model, ode, algebraic)
        other = VectorField(model, field.scalars, field.folded, field.elimination)
        known[key] = other, engines.for_another_field(replace(engines.needed, measured={}))
    return known[key]


def resting_warnings(field: VectorField, conditions: Sequence[Condition]) -> tuple[str, ...]:
    """Return a sentence on states that begin at zero in all experiments and never leave it.

    Under a root or fractional power of a state the equations also allow it to leave. From zero x' =
    sqrt(x) has the solutions 0 and t^2/4, so that the user may have meant the second solution.
    """
    if field.algebraic or not is_steep(field):
        return ()
    names = set(field.states)
    for c in conditions:
        moved = {name for event in c.assignments for name in event}
        names &= {n for n, v in c.initial.items() if isinstance(v, float) and v == 0.0} - moved
        if c.steady_start:
            return ()
    scalars = dict.fromkeys(field.scalars, 1.0)  # exponents are positive
    moving = _moving_names(field)
    steep = {n for n in names if _is_steep(field.model.ode[n], n, moving)}
    resting = sorted(_resting(field, names, {**field.folded, **scalars})[0] & steep)
    if not resting:
        return ()
    begin, rest, pronoun, grows = (
        ("begins", "rests", "it", "it does grow")
        if len(resting) == 1
        else ("begin", "rest", "them", "they do grow")
    )
    sentence = (
        f"{', '.join(resting)} {begin} at 0 and {rest} there: no term of the equations moves "
    )
    sentence += f"{pronoun} from 0. If {grows}, give a small positive initial value"
    return (sentence,)


def _resting(
    field: VectorField, names: set[str], scalars: Mapping[str, float]
) -> tuple[set[str], dict[str, Part]]:
    """Return the states that rest at zero together, and all rates while they do."""
    algebra = AtZero({n: np.float64(v) for n, v in scalars.items()})
    switches = {n: number(v) for n, v in scalars.items() if n.startswith(PREFIX)}
    while names:  # a switch is constant along a segment, as only time moves it
        known = switches | dict.fromkeys(names, ZERO)
        rates = {s: evaluated(e, known, algebra) for s, e in field.model.ode.items()}
        leaving = {name for name in names if rates[name].number != 0.0}
        if not leaving:
            return names, rates
        names = names - leaving
    return set(), {}


class AtZero(PartAlgebra):
    """Parts in which expressions determined by zeros become numbers.

    Values of parameters and constants decide between branches and give the sign of an exponent.
    Their values never become part of an expression, since they may change.
    """

    def __init__(self, scalars: Mapping[str, Any]) -> None:
        self._scalars = scalars

    def power(self, base: Part, exponent: Part) -> Part:
        if base.number == 0.0 and (self._value(exponent) or 0.0) > 0.0:
            return ZERO
        return super().power(base, exponent)

    def call(self, function: str, arguments: Sequence[Part]) -> Any:
        if function == PIECEWISE:
            return self._piecewise(arguments)
        if function in ("min", "max"):
            values = [self._value(argument) for argument in arguments]
            known = [value for value in values if value is not None]
            if len(known) == len(values):
                chosen = min(known) if function == "min" else max(known)
                if known.count(chosen) == 1:
                    return arguments[known.index(chosen)]
        result = super().call(function, arguments)
        if all(argument.number is not None for argument in arguments):
            value = self._value(result)
            if value is not None and not isinstance(value, np.bool_) and np.isfinite(value):
                return number(float(value))
        return result

    def _piecewise(self, arguments: Sequence[Part]) -> Part:
        """Return the branch that is known to be taken, or all remaining branches."""
        left: list[Part] = []
        for value, condition in zip(arguments[:-1:2], arguments[1::2], strict=True):
            holds = self._value(condition)
            if holds is None:
                left += [value, condition]
            elif holds:
                left.append(value)
                break
        else:
            left.append(arguments[-1])
        if all(value.number == 0.0 for value in left[::2]):
            return ZERO
        whole: Part = left[0] if len(left) == 1 else super().call(PIECEWISE, left)
        return whole

    def _value(self, part: Part) -> Any:
        """Return the value of a part without moving quantities; None for other parts."""
        if not part.names <= self._scalars.keys():
            return None
        with np.errstate(all="ignore"):  # an undefined value decides nothing
            return part.expression().evaluate(self._scalars, NUMPY)


SHORT = 1e-10
"""Length of the step, relative to the distance to the first output. If states move like the power
3/2 of the time, the step's error relative to their values there is the same power of this."""

WITHIN = 0.25
"""Share of the step after which sensitivities have the mean of their rates, if these are unbounded
at its beginning. It is exact for a root: the mean of s^(-1/2) up to s is (s/4)^(-1/2)."""

FOLLOWING = 2.0 / 3.0
"""Ratio of the mean rate of a state moved by another one to its rate at the end of the step. It is
exact for a root: the mean of s^(1/2) up to s is 2/3 of it."""

IN_TIME = 0.02
"""Smallest power of the time since the start by which rates count as steep in the time."""

FLAT = 1e-11
"""Rate after the step, relative to that at the first output, below which it is flat or mere
rounding, so that engines begin without trouble."""

UNDEFINED = "the right-hand side is not defined at the start"

LEAST_POWER = -0.75
"""Smallest power of the time that a step integrates, to a relative error of 1e-5. A larger part of
the integral lies within the step as the power approaches -1, where it becomes infinite."""


def first_step(
    field: VectorField,
    start: float,
    output: float,
    inputs: Callable[[float], Sequence[float]],
    now: Values,
) -> tuple[float, Values] | EngineFailure | None:
    """Return the time and values after a first step, or None if none is needed or possible.

    It leads towards the time of the first output; `inputs` gives their values at a time. States
    that only others move, such as the second of two tanks, follow these. Rates may be powers of the
    time since the start, as in t^(b - 1) at t = 0. A failure is returned if the integral of a rate
    is infinite or nearly infinite, or if an infinite rate is not such a power. Engines replace a
    base of zero by a small number, and would begin with a large rate.
    """
    zero = np.flatnonzero(now.states == 0.0)
    step = SHORT * (output - start)
    timed = _steep_in_time(field)
    if start + 0.25 * step <= start or not (len(zero) or timed):
        return None
    count = now.sensitivities.shape[1]
    values: dict[str, Dual] = {}
    for i, name in enumerate(field.scalars):
        values[name] = _moving(now.scalars[i], now.scalar_sensitivities[i])

    def at(
        states: Array, sensitivities: Array = now.sensitivities, time: float = start
    ) -> tuple[Array, Array]:
        moving = dict(zip(field.states, map(_moving, states, sensitivities), strict=True))
        moving |= {n: Dual(v) for n, v in zip(field.inputs, inputs(time), strict=True)}
        rates = field.rhs({**values, TIME: Dual(time), **moving}, DUAL)
        moves = np.array([[_partial(f, k) for k in range(count)] for f in rates])
        return np.array([float(f.value) for f in rates]), moves.reshape(len(rates), count)

    with np.errstate(all="ignore"):  # undefined values are detected below
        rate, moves = at(now.states)
        undefined = not np.isfinite(rate).all()
        powers: list[Array] = []
        if timed:
            quarter, whole = (at(now.states, time=start + part * step) for part in (0.25, 1.0))
            powers = [_power(*pair) for pair in zip(quarter, whole, strict=True)]
            if any(map(_has_no_integral, (rate, moves), powers)):
                return EngineFailure(start, UNDEFINED)
        if powers and _follows_power(powers[0], whole[0], lambda: at(now.states, time=output)[0]):
            # Powers below the least one are rounding.
            means = [1.0 / (1.0 + np.maximum(power, LEAST_POWER)) for power in powers]
            rate, moves = (r * mean for r, mean in zip(whole, means, strict=True))
        elif not rate[zero].any():
            return None  # the states do not move
        elif not np.isfinite(moves).all():
            moves = at(now.states + WITHIN * step * rate)[1]
        states, sensitivities = now.states + step * rate, now.sensitivities + step * moves
        for _ in zero:
            rate, moves = at(states, sensitivities, start + step)
            led = (states == 0.0) & (rate != 0.0)
            if not led.any():
                break
            states[led], sensitivities[led] = (FOLLOWING * step * r[led] for r in (rate, moves))
        after = now._replace(states=states, sensitivities=sensitivities)
    possible = np.isfinite(after.states).all() and np.isfinite(after.sensitivities).all()
    if possible:
        return start + step, after
    return EngineFailure(start, UNDEFINED) if undefined else None


def _has_no_integral(rate: Array, power: Array) -> bool:
    """Return whether any rate is infinite at the start, and decreases too fast from there."""
    return bool((power[~np.isfinite(rate)] < LEAST_POWER).any())


def _follows_power(power: Array, whole: Array, later: Callable[[], Array]) -> bool:
    """Return whether any rate follows a power of the time, and is not negligible."""
    steep = np.abs(power) > IN_TIME
    return bool(steep.any() and (steep & ~(np.abs(whole) <= FLAT * np.abs(later()))).any())


def _power(quarter: Array, whole: Array) -> Array:
    """Return the power of the time that fits rates after a quarter of a step and at its end."""
    ratio = np.where((quarter != 0.0) & np.isfinite(whole / quarter), whole / quarter, 1.0)
    return np.asarray(np.log(np.maximum(ratio, 1e-300)) / np.log(4.0))


def _moving(value: float, sensitivities: Array) -> Dual:
    """Return a value with its nonzero derivatives."""
    return Dual(value, {k: float(s) for k, s in enumerate(sensitivities) if s != 0.0})


def _partial(f: Dual, direction: int) -> float:
    return float(np.asarray(f.partials.get(direction, 0.0)))
