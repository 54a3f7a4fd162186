"""States carried along an experiment, through its events.

Between events they follow their Taylor series (:mod:`odefit.structure.taylor_integration`); on
the way back an event is undone: its assignments are solved for the values before it.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from odefit.problem.algebras import DUAL, Dual
from odefit.problem.arrays import Array, ComplexArray
from odefit.problem.binding import scalar_value
from odefit.problem.expressions import TIME, Expression
from odefit.structure.auxiliary_states import fill_dependent_states
from odefit.structure.differentiated_system import DifferentiatedSystem
from odefit.structure.expansion import Expansion
from odefit.structure.taylor_integration import taylor_integrate

ROUNDS = 30
"""Newton steps that undo an event, at most; it is mostly a dose, and one is enough."""


def forward(
    system: DifferentiatedSystem, k: int, values: ComplexArray, vector: Array, time: float
) -> ComplexArray | None:
    """The unknowns of the system with the states of expansion `k` carried from t0 to `time`.

    Parameters
    ----------
    values
        Shape (unknowns,), the states being those at t0, before any event.
    vector
        Unknowns of the problem, of which events may depend.
    time
        At an event, its states are those before it, unless it is t0.

    Returns
    -------
    array or None
        None if the trajectory does not reach there.
    """
    expansion = system.expansions[k]
    now, moved = expansion.condition.t0, values
    for at, assign in _passed(expansion, time):
        there = taylor_integrate(system, k, moved, now, at)
        if there is None:
            return None
        now, moved = at, _after(system, k, there, vector, at, assign)
    return taylor_integrate(system, k, moved, now, time)


def back(
    system: DifferentiatedSystem, k: int, values: ComplexArray, vector: Array, time: float
) -> ComplexArray | None:
    """The same from `time` back to t0.

    What an event forgets (a state that is set to a number) is left as it is after it.
    """
    expansion = system.expansions[k]
    now, moved = time, values
    for at, assign in reversed(_passed(expansion, time)):
        there = taylor_integrate(system, k, moved, now, at)
        if there is None:
            return None
        now, moved = at, _before(system, k, there, vector, at, assign)
    return taylor_integrate(system, k, moved, now, expansion.condition.t0)


def _passed(expansion: Expansion, time: float) -> list[tuple[float, Mapping[str, Expression]]]:
    condition = expansion.condition
    return [(t, a) for t, a in condition.events if t < time or t == condition.t0]


def _columns(
    system: DifferentiatedSystem, expansion: Expansion, assign: Mapping[str, Expression]
) -> dict[str, int]:
    """By assigned state, its place among the unknowns of the system."""
    return {n: system.names.index(expansion.states[n]) for n in assign if n in expansion.states}


def _known(
    system: DifferentiatedSystem,
    expansion: Expansion,
    values: ComplexArray,
    vector: Array,
    time: float,
    assign: Mapping[str, Expression],
) -> dict[str, Dual]:
    """What the names in the assignments stand for."""
    known: dict[str, Dual] = {}
    for name in {n for e in assign.values() for n in e.names}:
        if name == TIME:
            value = time
        elif name in expansion.states:
            value = float(values[system.names.index(expansion.states[name])].real)
        elif name in expansion.condition.inputs:
            value = float(expansion.condition.inputs[name](np.array([time]))[0])
        else:
            value = float(scalar_value(name, expansion.condition.scalars, vector).value)
        known[name] = Dual(value)
    return known


def _after(
    system: DifferentiatedSystem,
    k: int,
    values: ComplexArray,
    vector: Array,
    time: float,
    assign: Mapping[str, Expression],
) -> ComplexArray:
    expansion = system.expansions[k]
    known = _known(system, expansion, values, vector, time, assign)
    result = values.copy()
    for name, column in _columns(system, expansion, assign).items():
        result[column] = float(assign[name].evaluate(known, DUAL).value)
    return fill_dependent_states(system, k, result, time)


def _before(
    system: DifferentiatedSystem,
    k: int,
    values: ComplexArray,
    vector: Array,
    time: float,
    assign: Mapping[str, Expression],
) -> ComplexArray:
    expansion = system.expansions[k]
    columns = _columns(system, expansion, assign)
    known = _known(system, expansion, values, vector, time, assign)
    wanted = values[list(columns.values())].real
    at = wanted.copy()
    for _ in range(ROUNDS):
        known |= {n: Dual(at[i], {i: 1.0}) for i, n in enumerate(columns) if n in known}
        with np.errstate(all="ignore"):
            new = [assign[n].evaluate(known, DUAL) for n in columns]
        missing = np.array([float(d.value) for d in new]) - wanted
        slope = np.array([d.gradient(len(at)) for d in new]).reshape(len(at), len(at))
        if not (np.isfinite(missing).all() and np.isfinite(slope).all()):
            break
        step = np.linalg.lstsq(slope, missing, rcond=None)[0]
        at = at - step
        if (np.abs(step) <= 1e-14 * np.abs(at)).all():
            break
    result = values.copy()
    result[list(columns.values())] = at
    return fill_dependent_states(system, k, result, time, before=True)
