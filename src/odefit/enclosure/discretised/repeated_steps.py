"""Many equal steps of a scheme at once, where they are powers of one map."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from odefit.enclosure.affine_maps import Composition, Powers
from odefit.enclosure.discretised.block_enclosures import Block, Point, Solver
from odefit.enclosure.monomials import Monomials
from odefit.enclosure.taylor_evaluation import TapeProgram
from odefit.enclosure.taylor_models import TaylorModel
from odefit.structure.tape import Tape

FEWEST = 24
"""Equal steps in a row from which on a map for them pays."""

EQUAL = 1e-11
"""Relative difference of the coefficients of steps that count as equal; it is accounted for."""

KINDS = 8
"""Of different steps, those that a step is compared with: the last ones."""


@dataclass(frozen=True, eq=False)
class Run:
    """Blocks in a row that are equal, and of whose points only the last is needed later.

    Attributes
    ----------
    count
        Of blocks.
    kind
        Number of the step among those that are different.
    """

    count: int
    kind: int


class Plan:
    """Where a segment has so many equal steps in a row that a map for them pays.

    Parameters
    ----------
    blocks
        Of the segment.
    last_use
        The last block that needs each point.

    Attributes
    ----------
    steps
        One of each kind of equal blocks.
    doubts
        Largest relative difference within each kind.
    runs
        By number of the first block.
    """

    def __init__(self, blocks: Sequence[Block], last_use: Mapping[int, int]) -> None:
        self.steps: list[Block] = []
        self.doubts: list[float] = []
        self.runs: dict[int, Run] = {}
        kinds: list[int | None] = []
        for number, block in enumerate(blocks):
            later = any(last_use.get(k, 0) > number for k in block.new[:-1])
            end = last_use.get(block.new[-1], 0) > number + 1
            if later or end or not one_step(block):
                kinds.append(None)
                continue
            kinds.append(self._kind(block))
        number = 0
        for kind, same in itertools.groupby(kinds):
            count = len(list(same))
            if kind is not None and kinds.count(kind) >= FEWEST:
                self.runs[number] = Run(count, kind)
            number += count

    def _kind(self, block: Block) -> int:
        for kind in range(len(self.steps) - 1, max(len(self.steps) - KINDS, 0) - 1, -1):
            apart = difference(self.steps[kind], block)
            if apart <= EQUAL:
                self.doubts[kind] = max(self.doubts[kind], apart)
                return kind
        self.steps.append(block)
        self.doubts.append(0.0)
        return len(self.steps) - 1


def difference(first: Block, other: Block) -> float:
    """Of the coefficients of two one-step blocks, relative; infinite if they are not comparable."""
    worst = 0.0
    for name in ("states_old", "states_new", "slopes_old", "slopes_new"):
        a, b = getattr(first, name), getattr(other, name)
        if a.shape != b.shape or ((a == 0) != (b == 0)).any():
            return np.inf
        used = a != 0
        worst = max(worst, float((np.abs(b - a)[used] / np.abs(a)[used]).max(initial=0.0)))
    return worst


def one_step(block: Block) -> bool:
    """Its points follow from the last point before it alone."""
    return block.old == [block.new[0] - 1]


def powers(composition: Composition, monomials: Monomials, solver: Solver, block: Block) -> Powers:
    """Of the map of a step, from its solutions that start at zero and at each unit vector.

    Parameters
    ----------
    composition
        Of maps of so many states.
    monomials
        In the unknowns.
    solver
        For the step, in ``(n + 1) B`` boxes: all boxes again and again.
    block
        The step.
    """
    n = solver.states
    boxes = solver.boxes // (n + 1)
    c = np.zeros((n, len(monomials), (n + 1) * boxes))
    for j in range(n):
        c[j, 0, j * boxes : (j + 1) * boxes] = 1.0
    found = solver.step(block, Point(c, np.zeros((n, (n + 1) * boxes))))
    nothing = np.zeros(boxes)

    def model(i: int, j: int) -> TaylorModel:
        own = slice(j * boxes, (j + 1) * boxes)
        return TaylorModel(found.c[i, :, None, own], None, found.sizes[i, own], nothing)

    shift = [model(i, n) for i in range(n)]
    tape = Tape()
    difference = TapeProgram(tape, [tape.variable("with") - tape.variable("without")])
    matrix = []
    for i, j in composition.pairs:
        left, right = (tape.variable(name).index for name in ("with", "without"))
        known = {left: model(i, j), right: shift[i]}
        done = difference.static(monomials, known, boxes)
        matrix.append(done[difference.terms[0].index])
    return Powers(composition, monomials, matrix, shift)
