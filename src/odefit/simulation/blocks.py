"""Blocks of the Jacobian at an answer: experiments with separate unknowns.

A question about one of these unknowns needs only the experiments of its block, a small part of the
work for all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np

from odefit.common.arrays import Array, IntArray
from odefit.problem.problem import Problem
from odefit.problem.variants.parts import Part, part_with, separate_parts
from odefit.simulation.engines.engine_choice import UNDECIDED
from odefit.simulation.evaluation import Evaluation
from odefit.simulation.forward import ForwardMap

SAME = 1e-6
"""Relative difference below which an unknown has its value in the answer."""


@dataclass(frozen=True, eq=False)
class Block:
    """Experiments on which some unknowns act alone.

    `forward` is their forward map, with fixed noise if they share it with others; `places` are its
    unknowns among all, and `at_answer` is its evaluation at the answer.
    """

    forward: ForwardMap
    places: IntArray
    at_answer: Evaluation


@dataclass(frozen=True, eq=False)
class Blocks:
    """All blocks around an answer, `vector`, shape (n,); `noise` if unknowns of noise join them."""

    vector: Array
    blocks: Sequence[Block]
    noise: bool

    @classmethod
    def around(cls, forward: ForwardMap, vector: Array) -> Blocks | None:
        """Return the blocks; None if all experiments share unknowns, or one is not integrated.

        The last blocks around an answer of a forward map are kept.
        """
        known = _known.get(forward)
        if known is None or not np.array_equal(known[0], vector):
            known = _known[forward] = vector.copy(), cls._around(forward, vector)
        return known[1]

    @classmethod
    def _around(cls, forward: ForwardMap, vector: Array) -> Blocks | None:
        problem = forward.problem
        if forward.nodes is not None:
            return None
        blocks, noise = [], False
        for part in separate_parts(problem):
            noise |= bool(part.shared)
            block = _block(forward, part, vector)
            if block is None:
                return None
            blocks.append(block)
        return cls(vector, tuple(blocks), noise) if len(blocks) > 1 else None

    def of(self, index: int) -> Block | None:
        """Return the block of an unknown; None for an unknown that joins several blocks."""
        return next((b for b in self.blocks if index in b.places), None)

    def only(self, vector: Array) -> Block | None:
        """Return the only block in which a vector differs from the answer, or None.

        Differences by rounding do not count.
        """
        size = np.maximum(np.abs(vector), np.abs(self.vector))
        changed = np.flatnonzero(np.abs(vector - self.vector) > SAME * size)
        block = self.of(int(changed[0])) if len(changed) else None
        return block if block is not None and np.isin(changed, block.places).all() else None

    def with_values(self, block: Block, values: Array) -> Array:
        """Return the answer with other values of the unknowns of a block, shape (n,)."""
        vector = self.vector.copy()
        vector[block.places] = values
        return vector


_known: WeakKeyDictionary[ForwardMap, tuple[Array, Blocks | None]] = WeakKeyDictionary()


def block_with(forward: ForwardMap, index: int, vector: Array) -> Block | None:
    """Return the experiments on which one unknown acts, with their own unknowns.

    Unknowns that act on other experiments as well are held at their values in `vector`, shape (n,).
    None is returned if the unknown acts on all experiments, or if one cannot be integrated.
    """
    part = None if forward.nodes is not None else part_with(forward.problem, index)
    return None if part is None else _block(forward, part, vector)


def with_engines_of(forward: ForwardMap, problem: Problem) -> ForwardMap:
    """Return the forward map of another problem with the engines and the accuracy of one."""
    _, engine, tolerance, _, steps, controlled = forward.arguments
    return ForwardMap(problem, engine, tolerance, None, steps, controlled)


def _block(forward: ForwardMap, part: Part, vector: Array) -> Block | None:
    """Return the block of a part, whose shared unknowns are held."""
    alone = with_engines_of(forward, part.alone_at(vector))
    at = alone.evaluate(vector[part.unshared], UNDECIDED)
    return Block(alone, part.unshared, at) if isinstance(at, Evaluation) else None
