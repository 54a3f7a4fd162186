"""Values of new states and of algebraic variables that agree with the rest at one time."""

from __future__ import annotations

import numpy as np

from odefit.problem.arrays import ComplexArray
from odefit.structure.jets import Block, JetSystem, number_of
from odefit.structure.tape import Term

ROUNDS = 60
"""Newton steps for the algebraic variables, at most."""


def completed(
    system: JetSystem, k: int, values: ComplexArray, time: float, *, before: bool = False
) -> ComplexArray:
    """The unknowns of the system, those of block `k` that are defined by others filled in.

    Parameters
    ----------
    values
        All unknowns of the system, shape (unknowns,); algebraic variables start from what they
        are there.
    time
        At which the states of the block are.
    before
        At a corner of an input, what was before it counts, and not what comes after.
    """
    block = system.blocks[k]
    if not block.lifting.definitions and not block.lifting.model.algebraic:
        return values
    result = values.copy()
    place = {name: i for i, name in enumerate(system.names)}
    at = _variables(system, k, values, time, before)
    with np.errstate(all="ignore"):
        if block.lifting.model.algebraic:
            _solve_constraints(block, at)
        _define(block, at)
    for state, unknown in block.states.items():
        if state not in block.lifting.model.states:
            result[place[unknown]] = at[block.lifting.states[state].index]
    return result


def _variables(
    system: JetSystem, k: int, values: ComplexArray, time: float, before: bool
) -> dict[int, complex]:
    """By variable of the block's tape, its value; new states count as one where not yet known."""
    block = system.blocks[k]
    e = block.program.equations
    known, functions = block.surroundings(time, 0, before=before)
    at = {d.state.index: 1.0 + 0.0j for d in block.lifting.definitions}
    at |= {t.index: complex(v) for t, v in zip(e.known, known, strict=True)}
    at |= {t.index: complex(f[0]) for t, f in zip(e.functions, functions, strict=True)}
    own = values[system.columns[k]]
    at |= {t.index: complex(v) for t, v in zip(e.unknowns, own, strict=True)}
    for state, start in zip(e.states, e.initial, strict=True):
        at[state.index] = number_of(e.tape, start, at)
    return at


def _define(block: Block, at: dict[int, complex]) -> None:
    """Values of the new states, in the order in which they depend on each other."""
    tape = block.lifting.tape
    for d in block.lifting.definitions:
        if not block.lifting.known(d.state):
            try:
                at[d.state.index] = d.function(*(number_of(tape, a, at) for a in d.arguments))
            except (ValueError, OverflowError, ZeroDivisionError):
                at[d.state.index] = complex("nan")


def _solve_constraints(block: Block, at: dict[int, complex]) -> None:
    """Newton's method on the algebraic equations, the new states following along."""
    tape, lifting = block.lifting.tape, block.lifting
    variables = [lifting.states[n] for n in lifting.model.algebraic]
    constraints = lifting.zeros[-len(lifting.model.algebraic) :]
    slopes = [[lifting.partial(g, z) for z in variables] for g in constraints]

    def numbers(terms: list[Term]) -> ComplexArray:
        return np.array([number_of(tape, t, at) for t in terms], dtype=complex)

    for _ in range(ROUNDS):
        _define(block, at)
        matrix = np.array([numbers(row) for row in slopes])
        try:
            step = np.linalg.solve(matrix, numbers(constraints))
        except np.linalg.LinAlgError:
            return
        for z, change in zip(variables, step, strict=True):
            at[z.index] -= complex(change)
        if np.all(np.abs(step) <= 1e-13 * np.abs([at[z.index] for z in variables])):
            return
