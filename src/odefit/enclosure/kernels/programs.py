"""Tape programs as arrays, for compiled evaluation over Taylor models.

Only sums, differences, products and quotients are compiled: a program with elementary functions is
evaluated by :mod:`odefit.enclosure.arithmetic.taylor_evaluation`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from odefit.common.arrays import Array, IntArray
from odefit.enclosure.arithmetic.taylor_evaluation import TapeProgram, support_of
from odefit.enclosure.arithmetic.taylor_models import (
    CONSTANT,
    Monomials,
    Support,
    TaylorModel,
)
from odefit.enclosure.system import System

CODES: Mapping[str, int] = {"+": 0, "-": 1, "*": 2, "/": 3}
"""The operations that are compiled, with their numbers in the kernels."""

MISSING = -1
"""The place of a variable on which no term of a program depends."""


class Program(NamedTuple):
    """A program for the kernels. Every entry of the tape that it needs has a place.

    `operations`, shape (operations, 4), are code, left, right and result; `lengths` the number of
    orders in time of each place, 1 for constants. `pairs`, shape (pairs, 3), are products of
    monomials; those of an operation begin at `first`, and `every` has the pairs of all monomials.
    `degrees` are those of the monomials. The other arrays are places: of the terms (`targets`), the
    states, the time and the inputs. Constants have the first places.
    """

    operations: IntArray
    lengths: IntArray
    first: IntArray
    pairs: IntArray
    every: IntArray
    degrees: IntArray
    targets: IntArray
    states: IntArray
    clock: int
    inputs: IntArray


class PlacedProgram:
    """A program with the entries of its constants, in the order of their places."""

    def __init__(self, program: Program, entries: list[int]) -> None:
        self.program, self._entries = program, entries

    def constants(self, known: Mapping[int, TaylorModel], boxes: int) -> tuple[Array, Array]:
        """Return coefficients, shape (B, constants, M), and remainders, (B, constants)."""
        m = len(self.program.degrees)
        c = np.zeros((boxes, len(self._entries), m))
        remainder = np.zeros((boxes, len(self._entries)))
        for k, entry in enumerate(self._entries):
            c[:, k], remainder[:, k] = known[entry].c[:, 0].T, known[entry].remainder
        return c, remainder


def is_compiled(program: TapeProgram) -> bool:
    """Return whether a program has only operations that the kernels know."""
    return all(program.tape.entries[i].operation in CODES for i in program.varying)


def placed(
    system: System,
    program: TapeProgram,
    monomials: Monomials,
    length: int,
    supports: Mapping[int, Support],
) -> PlacedProgram:
    """Return a program with `length` orders in time for the kernels.

    `supports` are those of the constants by entry; constants without one may have any.
    """
    changing = {*system.states, *system.inputs.values(), system.time}
    constants = [i for i in program.constant if i not in changing]
    variables = [i for i in program.order if i in changing]
    entries = [*constants, *variables, *program.varying]
    places = {entry: place for place, entry in enumerate(entries)}
    of: dict[int, Support] = {i: supports.get(i) for i in constants}
    of |= {i: None if i in system.states else CONSTANT for i in variables}
    lengths = dict.fromkeys(constants, 1) | dict.fromkeys(variables, length)
    operations: list[tuple[int, int, int, int]] = []
    pairs: list[tuple[int, int, int]] = []
    first = [0]
    for i in program.varying:
        operation, a, b = program.tape.entries[i]
        of[i] = support_of(monomials, operation, of[a], of[b])
        lengths[i] = 1 if lengths[a] == lengths[b] == 1 else length
        operations.append((CODES[operation], places[a], places[b], places[i]))
        if operation == "*":
            pairs += monomials.pairs(of[a], of[b])
        elif operation == "/":
            pairs += monomials.pairs(of[b], None)
        first.append(len(pairs))
    arrays = Program(
        np.array(operations, dtype=np.int64).reshape(-1, 4),
        np.array([lengths[i] for i in entries], dtype=np.int64),
        np.array(first, dtype=np.int64),
        np.array(pairs, dtype=np.int64).reshape(-1, 3),
        np.array(monomials.pairs(None, None), dtype=np.int64).reshape(-1, 3),
        monomials.degrees.astype(np.int64),
        np.array([places[term.index] for term in program.terms], dtype=np.int64),
        np.array([places.get(i, MISSING) for i in system.states], dtype=np.int64),
        places.get(system.time, MISSING),
        np.array([places.get(i, MISSING) for i in system.inputs.values()], dtype=np.int64),
    )
    return PlacedProgram(arrays, constants)
