"""Smaller problems with the same cost, for searches.

Products at the end of a reaction chain, cumulated amounts and other states may influence nothing
that is measured. Replicates may be given as experiments of their own, although they are
measurements of one trajectory. A search needs neither such states nor these trajectories. Algebraic
variables that equations give explicitly are replaced by their expressions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from odefit.common.arrays import IntArray
from odefit.expressions.expressions import Expression
from odefit.problem.condition import Condition, Series
from odefit.problem.model import Model
from odefit.problem.problem import Problem
from odefit.problem.variants.explicit_equations import replaced, substitutions
from odefit.problem.vector_field import with_equations


@dataclass(frozen=True, eq=False)
class Reduced:
    """A smaller problem with the same unknowns and the same cost at each vector of unknowns.

    Attributes
    ----------
    problem
        The smaller problem. Its ``experiments`` are still those of the whole problem.
    places
        For each condition of the whole problem, the index of its condition in the smaller one.
    removed
        The states that were removed.
    """

    problem: Problem
    places: tuple[int, ...]
    removed: frozenset[str]


def reduced(problem: Problem) -> Reduced | None:
    """Return the problem without idle states and explicit equations, and with conditions joined.

    Returns None if nothing can be removed or joined.
    """
    smaller = copy(problem)
    explicit = substitutions(problem)
    if explicit:
        smaller.model, smaller.given = (
            replaced(m, explicit) for m in (problem.model, problem.given)
        )
        smaller.conditions = tuple(_guessing(c, smaller.model) for c in problem.conditions)
    idle = idle_states(smaller)
    if idle:
        smaller.model, smaller.given = (_model(m, idle) for m in (smaller.model, smaller.given))
        smaller.conditions = tuple(_without(c, idle) for c in smaller.conditions)
    places: list[int] = []
    groups: list[list[Condition]] = []
    separate = any(noise.correlation is not None for noise in problem.noise.values())
    for condition in smaller.conditions:
        like = (k for k, group in enumerate(groups) if _equal(group[0], condition))
        place = len(groups) if separate else next(like, len(groups))
        if place == len(groups):
            groups.append([])
        groups[place].append(condition)
        places.append(place)
    if not idle and not explicit and len(groups) == len(places):
        return None
    smaller.conditions = tuple(map(_joined, groups))
    return Reduced(smaller, tuple(places), idle)


def _guessing(condition: Condition, model: Model) -> Condition:
    """Return a condition with start values for the algebraic variables that the model has."""
    guesses = condition.algebraic_guess.items()
    return replace(condition, algebraic_guess={n: v for n, v in guesses if n in model.algebraic})


# Idle states ------------------------------------------------------------------------------------


def idle_states(problem: Problem) -> frozenset[str]:
    """Return the states that influence no measurement.

    None is idle in a problem with algebraic equations, with a steady state or with events that
    repeat until all states are periodic. Each state then takes part in a condition on the whole.
    """
    conditions = problem.conditions
    whole = (
        c.steady_start or c.repeated is not None or np.isinf(c.times).any() for c in conditions
    )
    if problem.model.algebraic or any(whole):
        return frozenset()
    states = problem.model.ode
    needed = {name for condition in conditions for name in condition.series}
    for noise in problem.noise.values():
        needed |= {n for e in noise.expressions for n in e.names}
    observables = problem.model.observables
    needed |= {n for name in needed & observables.keys() for n in observables[name].names}
    before = -1
    while len(needed) > before:
        before = len(needed)
        needed |= {n for s in needed & states.keys() for n in states[s].names}
        for condition in conditions:
            needed |= _names_in_events(condition, states.keys() - needed)
    idle = frozenset(states.keys() - needed)
    return idle if len(idle) < len(states) else frozenset()  # a model has a state


def _names_in_events(condition: Condition, idle: set[str]) -> set[str]:
    """Return the names on which events depend that assign more than idle states."""
    names = set[str]()
    for _, assign in condition.events:
        names |= {n for target, e in assign.items() if target not in idle for n in e.names}
    for event in condition.located:
        if event.assign.keys() <= idle:
            continue
        parts = (event.time, event.when, *event.waiting)
        names |= {n for e in parts if isinstance(e, Expression) for n in e.names}
        names |= {n for target, e in event.assign.items() if target not in idle for n in e.names}
    return names


def _model(model: Model, idle: frozenset[str]) -> Model:
    """Return a model without some states, and without the observables that depend on them."""
    ode = {state: e for state, e in model.ode.items() if state not in idle}
    observables = {name: e for name, e in model.observables.items() if not e.names & idle}
    return with_equations(model, ode, model.algebraic, observables=observables)


def _without(condition: Condition, idle: frozenset[str]) -> Condition:
    """Return a condition without some states."""

    def kept(assign: Mapping[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in assign.items() if name not in idle}

    events = tuple((time, kept(assign)) for time, assign in condition.events)
    located = (replace(event, assign=kept(event.assign)) for event in condition.located)
    return replace(
        condition,
        initial=kept(condition.initial),
        events=tuple((time, assign) for time, assign in events if assign),
        located=tuple(event for event in located if event.assign),
    )


# Equal conditions -------------------------------------------------------------------------------


def _equal(one: Condition, other: Condition) -> bool:
    """Return whether two conditions have the same trajectories."""
    apart = ("name", "times", "series", "origin")
    return all(
        _same(getattr(one, f.name), getattr(other, f.name))
        for f in fields(Condition)
        if f.name not in apart
    )


def _same(one: Any, other: Any) -> bool:
    """Return whether two parts of conditions are equal."""
    if one is other:
        return True
    if type(one) is not type(other):
        return False
    if isinstance(one, np.ndarray):
        return np.array_equal(one, other)
    if isinstance(one, Mapping):
        return one.keys() == other.keys() and all(_same(one[k], other[k]) for k in one)
    if isinstance(one, tuple):
        return len(one) == len(other) and all(map(_same, one, other))
    if hasattr(one, "__dataclass_fields__") and not isinstance(one, Expression):
        return all(_same(getattr(one, f.name), getattr(other, f.name)) for f in fields(one))
    return bool(one == other)


def _joined(conditions: Sequence[Condition]) -> Condition:
    """Return one condition with the measurements of several that have the same trajectory."""
    first = conditions[0]
    if len(conditions) == 1:
        return first
    times = np.unique(np.concatenate([c.times for c in conditions]))
    parts: dict[str, list[Series]] = {}
    for condition in conditions:
        for name, series in condition.series.items():
            rows = np.searchsorted(times, condition.times[series.rows])
            parts.setdefault(name, []).append(replace(series, rows=rows))
    joined = {name: _one_series(of_name) for name, of_name in parts.items()}
    return replace(first, times=times, series=joined)


def _one_series(parts: Sequence[Series]) -> Series:
    """Return one series of all measurements, in the order of time."""
    rows = np.concatenate([p.rows for p in parts])
    order = np.argsort(rows, kind="stable")
    # Without a standard deviation of its own, a value has that of the noise model.
    sds = _values([(p.sds, p.rows) for p in parts], np.nan)
    censored = _values([(p.censored, p.rows) for p in parts], 0)
    values = np.concatenate([p.values for p in parts])
    return Series(
        rows[order],
        values[order],
        None if sds is None else sds[order],
        None if censored is None else censored[order],
    )


def _values(parts: Sequence[tuple[Any, IntArray]], missing: float) -> Any:
    """Return one array of all values, with a number where a part has none; None if none has."""
    if all(values is None for values, _ in parts):
        return None
    return np.concatenate(
        [np.full(len(rows), missing) if values is None else values for values, rows in parts]
    )
