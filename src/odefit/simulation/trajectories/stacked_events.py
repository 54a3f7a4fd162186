"""Events of many conditions at once, which change the states linearly.

An event makes M x + c of the states x. Assignments that differ in numbers alone, as doses do, are
evaluated together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from odefit.common.arrays import Array, IntArray
from odefit.expressions.expressions import Expression
from odefit.expressions.gradients import Gradient
from odefit.expressions.grammar import Instruction
from odefit.problem.binding import Bound
from odefit.simulation.trajectories.stacked_binding import Quantity

Event = tuple[int, int, Mapping[str, Expression]]
"""The numbers of an event's condition and of the event there, and its assignment."""


class Changes(NamedTuple):
    """The changes of the states by events; no matrices if all events only add to states."""

    constant: Array  # c, shape (conditions, events, n)
    constant_along: Array  # shape (conditions, events, n, m)
    matrix: Array | None  # M, shape (conditions, events, n, n)
    matrix_along: Array | None  # shape (conditions, events, m, n, n)


class _Form(NamedTuple):
    """Assignments to one state that differ in numbers alone."""

    function: Gradient
    state: int
    places: tuple[IntArray, IntArray]  # conditions and events, shape (k,)
    names: Mapping[str, IntArray]  # rows of the quantities for each name, shape (k,)


class StackedEvents:
    """The events of conditions as functions of the quantities that `quantities` collects."""

    def __init__(
        self,
        states: Sequence[str],
        scalars: Sequence[Mapping[str, Bound]],
        events: Sequence[Event],
        shape: tuple[int, int],
        quantities: list[Quantity],
    ) -> None:
        self._states, self._shape = list(states), shape
        # Events are repeated, as at several points: each expression is examined once.
        every = {(name, id(e)): e for _, _, assignment in events for name, e in assignment.items()}
        self._adding = all(_adds(name, e, states) for (name, _), e in every.items())
        plain = {number: _without_numbers(e) for (_, number), e in every.items()}
        self._assigned = np.zeros((*shape, len(states)), dtype=bool)
        forms: dict[tuple[object, str], tuple[Expression, list[tuple[int, int, list[int]]]]] = {}
        for condition, event, assignment in events:
            for name, expression in assignment.items():
                form, numbers = plain[id(expression)]
                rows = []
                for other in sorted(form.names - set(states)):
                    bound = numbers[other] if other in numbers else scalars[condition][other]
                    rows.append(len(quantities))
                    quantities.append((condition, bound))
                lanes = forms.setdefault((form.program, name), (form, []))[1]
                lanes.append((condition, event, rows))
                self._assigned[condition, event, states.index(name)] = True
        self._forms = [
            _Form(
                Gradient(form, {n for n in form.names if n not in states and n[0] != "#"}),
                states.index(name),
                (np.array([c for c, _, _ in lanes]), np.array([e for _, e, _ in lanes])),
                {
                    other: np.array([rows[k] for _, _, rows in lanes])
                    for k, other in enumerate(sorted(form.names - set(states)))
                },
            )
            for (_, name), (form, lanes) in forms.items()
        ]

    def __call__(self, values: Array, along: Array) -> Changes:
        """Return the changes, from the quantities and their changes along m directions."""
        n, m = len(self._states), along.shape[1]
        # The first column is at states of zero, the others are at unit vectors.
        columns = 1 if self._adding else n + 1
        at = np.zeros((*self._shape, n, columns))
        at_along = np.zeros((*self._shape, n, columns, m))
        if not self._adding:
            at[..., 1:][~self._assigned] = np.broadcast_to(np.eye(n), (*self._shape, n, n))[
                ~self._assigned
            ]
        units = {name: np.eye(n + 1)[1 + i, :columns].copy() for i, name in enumerate(self._states)}
        for form in self._forms:
            count = len(form.places[0])
            by_name = {name: np.broadcast_to(u, (count, columns)) for name, u in units.items()}
            for name, rows in form.names.items():
                by_name[name] = np.broadcast_to(values[rows, None], (count, columns))
            new_values, partials = form.function(by_name)
            place = (*form.places, form.state)
            at[place] = new_values
            for name, partial in partials.items():
                inner = along[form.names[name]][:, None, :]
                slope = np.broadcast_to(partial, (count, columns))[..., None]
                at_along[place] += np.where(inner == 0.0, 0.0, slope * inner)
        constant, constant_along = at[..., 0], at_along[..., 0, :]
        if self._adding:
            return Changes(constant, constant_along, None, None)
        matrix = np.where(self._assigned[..., None], at[..., 1:] - at[..., :1], at[..., 1:])
        moving = at_along[..., 1:, :] - at_along[..., :1, :]
        return Changes(constant, constant_along, matrix, np.moveaxis(moving, -1, -3))


def _adds(name: str, expression: Expression, states: Sequence[str]) -> bool:
    """Return whether an assignment adds a term without states to its state."""
    first, *rest, last = expression.program if len(expression.program) > 2 else (None, None)
    if not isinstance(first, Instruction) or not isinstance(last, Instruction):
        return False
    inside = {i.text for i in rest if i.kind == "name"}
    sums = (first.kind, first.text, last.text) == ("name", name, "+") and _is_one(rest)
    return sums and not inside & set(states)


def _is_one(program: Sequence[Instruction]) -> bool:
    """Return whether instructions leave one value, and use none from before them."""
    depth = 0
    for kind, _, arity in program:
        taken = {"name": 0, "number": 0, "negate": 1, "binary": 2}.get(kind, arity)
        if taken > depth:
            return False
        depth += 1 - taken
    return depth == 1


def _without_numbers(expression: Expression) -> tuple[Expression, dict[str, float]]:
    """Return an expression with names for its numbers, and the numbers."""
    numbers: dict[str, float] = {}
    program = []
    for instruction in expression.program:
        if instruction.kind == "number":
            name = f"#{len(numbers)}"  # no name of a model begins like this
            numbers[name] = float(instruction.text)
            instruction = Instruction("name", name)
        program.append(instruction)
    return Expression(expression.text, tuple(program)), numbers
