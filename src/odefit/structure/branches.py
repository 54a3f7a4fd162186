"""Points at which new states are what they stand for, and solutions of which that holds.

A rational model with more states (see :mod:`odefit.structure.lifting`) has solutions that the
original has not: another sign of a square root, or values of ``w = exp(e)`` and ``e`` that do not
belong together. At a point where all new states have their values, such solutions are recognised.
"""

from __future__ import annotations

import numpy as np

from odefit.problem.arrays import ComplexArray
from odefit.structure.jets import Block, number_of
from odefit.structure.lifting import Definition
from odefit.structure.square import CANDIDATES, SquareSystem
from odefit.structure.tape import Term

CLOSE = 1e-6
"""Relative difference up to which a new state has its value."""

TRIES = 30
"""Random points, for each that is wanted."""


def consistent_point(
    square: SquareSystem, rng: np.random.Generator
) -> tuple[ComplexArray, ComplexArray] | None:
    """A real random point at which all new states have their values, and its parameters.

    None if there are algebraic equations too, or if no such point is found.
    """
    system = square.system
    if system.problem.model.algebraic:
        return None
    found = []
    for _ in range(CANDIDATES * TRIES):
        values, around = system.generic(rng, square.order)
        values = rng.uniform(0.3, 1.3, len(values)).astype(complex)
        for k, block in enumerate(system.blocks):
            functions = around[k][1]
            for i, term in enumerate(block.program.equations.functions):
                if block.lifting.functions[term.index][1] == 0:
                    functions[i, 0] = abs(functions[i, 0])
            own = values[system.columns[k]]
            at = _variables(block, own, around[k][0], functions[:, 0])
            for d in block.lifting.definitions:
                if not block.lifting.known(d.state):
                    at[d.state.index] = _value(block, d, at)
            for place, name in enumerate(block.unknowns):
                state = next((s for s, n in block.states.items() if n == name), None)
                if state is not None and state not in block.lifting.model.states:
                    own[place] = at[block.lifting.states[state].index]
            values[system.columns[k]] = own
        if np.isfinite(values).all():
            found.append((values, around))
        if len(found) == CANDIDATES:
            return square.best(found)
    return None


def on_the_branch(
    square: SquareSystem,
    solutions: ComplexArray,
    parameters: ComplexArray,
    determined: frozenset[str],
) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Of which solutions, shape (m, n), the new states have the values that they stand for.

    Looked at are those states that depend on `determined` unknowns alone, and are determined.
    """
    many = np.repeat(parameters[None], len(solutions), axis=0)
    everything = square.everything(solutions, many)
    around = square.surroundings(parameters)
    good = np.ones(len(solutions), dtype=bool)
    for k, block in enumerate(square.system.blocks):
        testable = [
            d
            for d in block.lifting.definitions
            if not block.lifting.known(d.state)
            and block.states.get(block.lifting.tape.names[d.state.index]) in determined
            and all(unknowns_in(block, a) <= determined for a in d.arguments)
        ]
        for i, values in enumerate(everything):
            own = values[square.system.columns[k]]
            at = _variables(block, own, around[k][0], around[k][1][:, 0])
            for d in testable:
                value, given = _value(block, d, at), at[d.state.index]
                good[i] &= abs(value - given) <= CLOSE * max(abs(value), abs(given))
    return good


def unknowns_in(block: Block, term: Term) -> frozenset[str]:
    """Names of the unknowns on which a term depends at the time of the block."""
    e = block.program.equations
    start = {s.index: i for s, i in zip(e.states, e.initial, strict=True)}
    names = {t.index: n for t, n in zip(e.unknowns, block.unknowns, strict=True)}
    found: set[str] = set()
    for index in e.tape.depends(term):
        if index in names:
            found.add(names[index])
        elif index in start:
            below = e.tape.depends(start[index])
            found |= {names[i] for i in below if i in names}
    return frozenset(found)


def _variables(
    block: Block, own: ComplexArray, known: ComplexArray, functions: ComplexArray
) -> dict[int, complex]:
    """By variable of the tape its value, states included."""
    e = block.program.equations
    at = {t.index: complex(v) for t, v in zip(e.known, known, strict=True)}
    at |= {t.index: complex(v) for t, v in zip(e.functions, functions, strict=True)}
    at |= {t.index: complex(v) for t, v in zip(e.unknowns, own, strict=True)}
    at |= {s.index: number_of(e.tape, i, at) for s, i in zip(e.states, e.initial, strict=True)}
    return at


def _value(block: Block, definition: Definition, at: dict[int, complex]) -> complex:
    """What a new state stands for; NaN where that is not defined."""
    tape = block.lifting.tape
    try:
        given = [number_of(tape, a, at) for a in definition.arguments]
        return complex(definition.function(*given))
    except (ValueError, OverflowError, ZeroDivisionError):
        return complex("nan")
