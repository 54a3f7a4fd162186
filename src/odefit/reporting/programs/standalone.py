"""A model with its estimates, in the form that programs in all languages need."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from odefit.common.arrays import Array
from odefit.common.errors import InputError, counted
from odefit.expressions.expressions import TIME, Expression, parse
from odefit.expressions.formulas import PARTS, Part, name, number
from odefit.problem.binding import Bound
from odefit.problem.condition import Condition
from odefit.problem.experiment import Input
from odefit.problem.problem import Problem
from odefit.simulation.engines.failure import Failure
from odefit.simulation.forward import ForwardMap
from odefit.simulation.simulations import simulated

CHECKED_TIMES = 5
"""Largest number of times of each experiment at which a program is compared with odefit."""


@dataclass(frozen=True)
class Change:
    """New values of states and constants, at a time that may depend on parameters."""

    time: Expression
    assign: Mapping[str, Expression]


@dataclass(frozen=True)
class Run:
    """An experiment: values of constants, initial values, inputs and changes."""

    name: str
    t0: float
    # an expression in parameters, or in constants that come before it
    constants: Mapping[str, Expression]
    initial: Mapping[str, Expression]
    inputs: Mapping[str, Input]
    changes: tuple[Change, ...]
    seen_after: tuple[float, ...]  # times of changes whose new values already hold for outputs
    settled: bool  # True if the initial values are numbers of a steady state at the estimates
    times: Array  # times of odefit's values, shape (n,)
    observables: Array  # odefit's values, shape (n, observables)


@dataclass(frozen=True)
class StandAlone:
    """The content of a program of a model with estimates."""

    title: str
    parameters: Mapping[str, float]  # the unknowns by key, with their values
    states: tuple[str, ...]
    sizes: Mapping[str, float]  # the largest magnitude of each state
    constants: tuple[str, ...]  # parameters and constants that the equations need
    inputs: tuple[str, ...]
    algebraic: Mapping[str, Expression]  # in the states, constants, inputs and the time
    rates: Mapping[str, Expression]
    observables: Mapping[str, Expression]
    runs: tuple[Run, ...]


def standalone(problem: Problem, vector: Array) -> StandAlone:
    """Return the content of a program of a problem, at a vector of unknowns, shape (n,).

    Raises InputError if the model uses a feature that such programs lack.
    """
    forward = ForwardMap(problem)
    _refuse(problem, forward)
    model = forward.field.model
    algebraic = _solved(forward)
    rates = dict(zip(model.states, model.ode.values(), strict=True))
    constants = _constants(problem, [*rates.values(), *algebraic.values()])
    sizes = dict.fromkeys(model.states, 0.0)
    settled = any(map(_settled, problem.conditions))
    before = ForwardMap(_measured_before(problem)) if settled else forward
    runs = tuple(
        _run(forward, before, condition, vector, constants, sizes)
        for condition in problem.conditions
    )
    return StandAlone(
        title=problem.name,
        parameters=dict(zip(problem.keys, map(float, vector), strict=True)),
        states=model.states,
        sizes={s: size or 1.0 for s, size in sizes.items()},
        constants=constants,
        inputs=tuple(model.inputs),
        algebraic=algebraic,
        rates=rates,
        observables=model.observables,
        runs=runs,
    )


def _refuse(problem: Problem, forward: ForwardMap) -> None:
    """Refuse features that a stand-alone program lacks."""
    if forward.field.algebraic:
        variables = ", ".join(f"'{z}'" for z in forward.field.algebraic)
        raise InputError(
            f"[algebraic]: the equations of {variables} have no closed solution, which a "
            "stand-alone program needs; write the solution out in [definitions], or convert to "
            "PEtab instead"
        )
    for condition in problem.conditions:
        triggered = sum(event.when is not None for event in condition.located)
        if triggered:
            raise InputError(
                f"experiment '{condition.name}': {counted(triggered, 'event')} with a condition "
                "(when = ...), which a stand-alone program does not look for; give the times of "
                "these events, or convert to PEtab instead"
            )


def _solved(forward: ForwardMap) -> dict[str, Expression]:
    """Return the algebraic variables as expressions in the other quantities."""
    model = forward.field.model
    if not model.algebraic:
        return {}
    names = {n for e in model.algebraic.values() for n in e.names} - set(model.algebraic)
    folded = forward.field.folded
    values = {n: name(n) for n in names if n not in folded}
    full: dict[str, Part] = forward.field.complete(values, PARTS)
    return {z: full[z].expression() for z in model.algebraic}


def _constants(problem: Problem, expressions: list[Expression]) -> tuple[str, ...]:
    """Return the parameters and constants that equations, observables and events need, in order."""
    used = {n for e in (*expressions, *problem.model.observables.values()) for n in e.names}
    for condition in problem.conditions:
        changes = [e for assign in condition.assignments for e in assign.values()]
        changes += [e.time for e in condition.located if isinstance(e.time, Expression)]
        changes += [v for v in condition.initial.values() if isinstance(v, Expression)]
        used |= {n for e in changes for n in e.names}
        used |= {n for assign in condition.assignments for n in assign}
    scalars = problem.conditions[0].scalars
    used &= scalars.keys()
    while True:  # names that others depend on
        deeper = {
            n
            for c in problem.conditions
            for name_ in used
            if isinstance(bound := c.scalars[name_], Expression)
            for n in bound.names
        }
        if deeper <= used:
            return _ordered(problem, [n for n in scalars if n in used])
        used |= deeper


def _ordered(problem: Problem, names: list[str]) -> tuple[str, ...]:
    """Return names sorted so that each follows the names it depends on in any experiment."""
    ordered: dict[str, None] = {}

    def add(name: str) -> None:
        if name in ordered:
            return
        for condition in problem.conditions:
            bound = condition.scalars[name]
            if isinstance(bound, Expression):
                for needed in sorted(bound.names):
                    add(needed)
        ordered[name] = None

    for each in names:
        add(each)
    return tuple(ordered)


def _settled(condition: Condition) -> bool:
    """Return whether a condition begins at a steady or periodic state."""
    return condition.steady_start or condition.repeated is not None


def _run(
    forward: ForwardMap,
    before: ForwardMap,
    condition: Condition,
    vector: Array,
    constants: tuple[str, ...],
    sizes: dict[str, float],
) -> Run:
    """Return an experiment with odefit's values, and enlarge `sizes` to cover its states.

    With the map `before`, outputs use the values before an event at their time.
    """
    problem = forward.problem
    finite = condition.times[np.isfinite(condition.times)]
    every = np.unique(np.append(finite, condition.t0))
    course = simulated(problem, vector, every, condition.name, forward=forward)
    if isinstance(course, Failure):
        raise InputError(f"experiment '{condition.name}': the simulation failed: {course}")
    for state in sizes:
        sizes[state] = max(sizes[state], float(np.abs(course.states[state]).max()))
    settled = _settled(condition)
    initial = dict(condition.initial)
    if settled:
        initial = dict(_start(before, condition, vector))
    changes = [Change(_number(time), assign) for time, assign in condition.events]
    changes += [Change(_expression(e.time, problem), e.assign) for e in condition.located]
    measured = every[every > condition.t0] if len(every) > 1 else every
    chosen = np.unique(np.linspace(0, len(measured) - 1, CHECKED_TIMES).round().astype(int))
    rows = np.searchsorted(every, measured[chosen])
    values = np.stack([o[rows] for o in course.observables.values()], axis=1)
    return Run(
        name=condition.name,
        t0=condition.t0,
        constants={n: _expression(condition.scalars[n], problem) for n in constants},
        initial={s: _expression(v, problem) for s, v in initial.items()},
        inputs=condition.inputs,
        changes=tuple(changes),
        seen_after=tuple(sorted(condition.measured_after)),
        settled=settled,
        times=measured[chosen],
        observables=values,
    )


def _measured_before(problem: Problem) -> Problem:
    """Return the problem with outputs that use the values before an event at their time."""
    return problem.with_experiments(
        [
            replace(e, events=tuple(replace(event, measured="before") for event in e.events))
            for e in problem.experiments
        ]
    )


def _start(before: ForwardMap, condition: Condition, vector: Array) -> dict[str, float]:
    """Return the states of a steady start, before any event at t0."""
    problem, t0 = before.problem, np.array([condition.t0])
    start = simulated(problem, vector, t0, condition.name, forward=before)
    if isinstance(start, Failure):
        raise InputError(f"experiment '{condition.name}': the simulation failed: {start}")
    return {s: float(start.states[s][0]) for s in condition.initial}


PARAMETER = "parameter {}"
"""The name of an unknown's place in the list of parameters, which no user's name can equal."""


def _expression(bound: Bound | None, problem: Problem) -> Expression:
    """Return a number, an unknown or an expression as an expression."""
    if isinstance(bound, Expression):
        return bound
    if isinstance(bound, float):
        return _number(bound)
    assert bound is not None
    return name(PARAMETER.format(problem.keys[bound])).expression()


def _number(value: float) -> Expression:
    return parse(repr(value)) if value >= 0 else number(float(value)).expression()


__all__ = ["PARAMETER", "TIME", "Change", "Run", "StandAlone", "standalone"]
