"""Systems with the same equations, whatever their doses and initial values.

Subjects of one study often differ only in doses. Such numbers become known variables, so that what
the equations tell is found once for all subjects.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from odefit.structure.series.differentiated_system import DifferentiatedSystem
from odefit.structure.series.expansion import Expansion
from odefit.structure.series.tape import needed


def with_same_equations(systems: Sequence[DifferentiatedSystem]) -> list[list[int]]:
    """Return the systems, by number, in groups with the same equations.

    Numbers in which the initial values of a group's members differ become known variables. No
    system may have been evaluated before.
    """
    groups: dict[object, list[int]] = {}
    for number, system in enumerate(systems):
        groups.setdefault(_form(system), []).append(number)
    for members in groups.values():
        _release(members=[systems[number] for number in members])
    return list(groups.values())


def _form(system: DifferentiatedSystem) -> object:
    """Return a value that systems share if they differ only in numbers of initial values."""
    parts: list[object] = [len(system.names)]
    for expansion, columns in zip(system.expansions, system.columns, strict=True):
        e = expansion.program.equations
        values = _initial_numbers(expansion)
        others = ((i, v) for i, v in e.tape.numbers.items() if i not in values)
        groups = (e.unknowns, e.states, e.rhs, e.initial, e.outputs, e.known, e.functions)
        parts += (
            expansion.time,
            expansion.constraints,
            tuple(columns.tolist()),
            tuple(e.tape.entries),
            tuple(sorted(others)),
            tuple(sorted(expansion.exact.items())),
            tuple(tuple(t.index for t in group) for group in groups),
        )
    return tuple(parts)


def _initial_numbers(expansion: Expansion) -> dict[int, Fraction]:
    """Return the numbers, by their entries, on which only initial values depend."""
    e = expansion.program.equations
    if expansion.lifting.definitions:
        return {}  # the initial values of auxiliary states follow from them
    elsewhere = set(needed(e.tape, [*e.rhs, *e.outputs]))
    entries = (i for i in needed(e.tape, e.initial) if i not in elsewhere)
    return {i: e.tape.numbers[i] for i in entries if i in e.tape.numbers}


def _release(members: Sequence[DifferentiatedSystem]) -> None:
    """Make the numbers of initial values that differ between systems of one form variables."""
    for alike in zip(*(system.expansions for system in members), strict=True):
        values = [_initial_numbers(expansion) for expansion in alike]
        differing = [i for i in values[0] if len({one[i] for one in values}) > 1]
        for expansion in alike if differing else ():
            expansion.release(differing)
