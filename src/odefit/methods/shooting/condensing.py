"""Condensing: the linearised problem without its inner nodes (section 2.3).

The backward recursion (12) multiplies the Wronskians of all intervals. Along an unstable trajectory
of many Lyapunov times the product overflows every number format, and the forward recursion (14)
amplifies rounding as much. Here inner nodes are eliminated as well, but in pairs of neighbouring
intervals, by orthogonal transformations (S. J. Wright, Stable parallel algorithms for two-point
boundary value problems, 1992). Decaying modes come from the left, growing ones from the right, so
every coefficient remains bounded if the boundary value problem is well posed. All pairs of a level
are eliminated at once; K nodes take log2 K levels, and work in proportion to K.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from odefit.common.arrays import Array, IntArray


@dataclass(frozen=True, eq=False)
class EliminationLevel:
    """One level of the elimination: the neighbouring intervals that are joined.

    Intervals are given as positions in the list that the previous level left.
    """

    # positions of the intervals that are joined; the first ends where the second starts
    first: IntArray
    second: IntArray
    # nodes at the ends of each joined interval, and the eliminated one between them
    left: IntArray
    middle: IntArray
    right: IntArray
    unpaired: IntArray  # positions of the unchanged intervals
    # permutation that puts the joined ones and then the others into the order of time
    order: IntArray


class Chains:
    """The chains of nodes, one for each condition, and the order in which they are eliminated.

    The nodes of all chains, `lengths` of each, are numbered one after the other. The interval of
    residual i begins with node ``row_nodes[i]``. The first and last node of each chain and the
    nodes `staying` are not eliminated; the condensed problem has equations between neighbours of
    these (`kept_pairs`). Interval i that ends at a node leads from ``left[i]`` to the next node.
    """

    def __init__(
        self,
        lengths: Sequence[int],
        size: int,
        unknowns: int,
        row_nodes: IntArray,
        staying: Sequence[int] = (),
    ) -> None:
        self.size, self.unknowns, self.row_nodes = size, unknowns, row_nodes
        starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.intp)
        self.nodes = int(starts[-1])
        self.firsts, self.lasts = starts[:-1], starts[1:] - 1
        inner = np.ones(self.nodes, dtype=bool)
        inner[self.lasts] = False
        self.left = np.flatnonzero(inner)
        stays = ~inner
        stays[self.firsts] = True
        stays[np.asarray(staying, dtype=np.intp)] = True
        self.retained = np.flatnonzero(stays)
        self.levels, self.kept_pairs = _elimination(
            [(int(i), int(i) + 1) for i in self.left], stays
        )
        self.groups = _residual_groups(row_nodes, size + unknowns)


def _elimination(
    intervals: list[tuple[int, int]], stays: npt.NDArray[np.bool_]
) -> tuple[list[EliminationLevel], list[tuple[int, int]]]:
    """Return the levels of the elimination, and the remaining pairs of nodes."""
    levels: list[EliminationLevel] = []
    while True:
        joined: list[tuple[int, int]] = []
        unpaired: list[int] = []
        k = 0
        while k < len(intervals):
            end = intervals[k][1]
            if k + 1 < len(intervals) and intervals[k + 1][0] == end and not stays[end]:
                joined.append((k, k + 1))
                k += 2
            else:
                unpaired.append(k)
                k += 1
        if not joined:
            return levels, intervals
        new = [(intervals[a][0], intervals[b][1]) for a, b in joined]
        new += [intervals[k] for k in unpaired]
        order = sorted(range(len(new)), key=new.__getitem__)
        pairs = np.array(joined, dtype=np.intp)
        ends = np.array(new[: len(joined)], dtype=np.intp)
        middle = np.array([intervals[a][1] for a, _ in joined], dtype=np.intp)
        levels.append(
            EliminationLevel(
                first=pairs[:, 0],
                second=pairs[:, 1],
                left=ends[:, 0],
                middle=middle,
                right=ends[:, 1],
                unpaired=np.array(unpaired, dtype=np.intp),
                order=np.array(order, dtype=np.intp),
            )
        )
        intervals = [new[k] for k in order]


@dataclass(frozen=True, eq=False)
class ResidualGroup:
    """Nodes with the same number of residuals."""

    nodes: IntArray  # numbers of the nodes, shape (b,)
    rows: IntArray  # numbers of their residuals, shape (b, count)


def _residual_groups(row_nodes: IntArray, width: int) -> list[ResidualGroup]:
    order = np.argsort(row_nodes, kind="stable")
    nodes, first, counts = np.unique(row_nodes[order], return_index=True, return_counts=True)
    groups = []
    for count in np.unique(counts):
        chosen = np.flatnonzero(counts == count)
        rows = order[first[chosen, None] + np.arange(count)]
        groups.append(ResidualGroup(nodes[chosen], rows))
    return groups


@dataclass(frozen=True, eq=False)
class _LevelFactors:
    """The factors that carry further right-hand sides through a level of the elimination."""

    # QR factors of the coefficients of the nodes in the middle
    orthogonal: Array
    triangle: Array
    to_ends: Array  # matrix C in s_middle = C (s_left, s_right, q) + c
    # coefficients of the nodes in the middle in the least squares rows
    first_rows: Array
    second_rows: Array
    # orthogonal factor by which the joined rows were compressed; None if they were not
    rows_orthogonal: Array | None


@dataclass(frozen=True, eq=False)
class CondensedRightHandSides:
    """Right-hand sides of the condensed problem."""

    conditions: Array  # right-hand sides of the equations, shape (pairs, N)
    rows: Array  # right-hand sides of the least squares rows, shape (pairs, k)
    # right-hand sides of the residuals at the last node of each chain, shape (chains, l)
    last_rows: Array
    # for each level the constants c in s_middle = C (s_left, s_right, q) + c
    constants: tuple[Array, ...]


class CondensedProblem:
    """The linearised problem without its inner nodes (13).

    There are I intervals that end at a node, N values of a node, n unknowns and r residuals.
    Derivatives are taken with respect to the node at the start of an interval and to the unknowns.
    Those of the ends of intervals have the shapes (I, N, N) and (I, N, n), those of the residuals
    (r, N) and (r, n).

    `conditions`, shape (pairs, N, 2 N + n), are the equations between the nodes of each kept pair:
    coefficients of the left node, the right node, and the unknowns. `rows`, (pairs, k, 2 N + n),
    are least squares rows in the same columns; `last_rows`, (chains, l, N + n), those at the last
    node of each chain.
    """

    def __init__(
        self,
        chains: Chains,
        by_node: Array,
        by_unknown: Array,
        rows_by_node: Array,
        rows_by_unknown: Array,
    ) -> None:
        self.chains = chains
        size, n = chains.size, chains.unknowns
        count = len(chains.left)
        self._compressed: list[Array | None] = []
        blocks = self._compress(np.concatenate([rows_by_node, rows_by_unknown], axis=1))
        height = blocks.shape[1]
        self._height = height
        self.last_rows = blocks[chains.lasts]
        # Columns of a single interval: left node, right node, unknowns.
        conditions = np.zeros((count, size, 2 * size + n))
        conditions[:, :, :size] = by_node
        conditions[:, :, size : 2 * size] = -np.eye(size)
        conditions[:, :, 2 * size :] = by_unknown
        rows = np.zeros((count, height, 2 * size + n))
        rows[:, :, :size] = blocks[chains.left, :, :size]
        rows[:, :, 2 * size :] = blocks[chains.left, :, size:]
        self._steps: list[_LevelFactors] = []
        for level in chains.levels:
            conditions, rows = self._join(level, conditions, rows)
        self.conditions, self.rows = conditions, rows

    def reduce(self, conditions: Array, rows: Array) -> CondensedRightHandSides:
        """Condense the right-hand sides `conditions`, shape (I, N), and `rows`, shape (r,)."""
        chains, size = self.chains, self.chains.size
        blocks = np.zeros((chains.nodes, self._height))
        for group, orthogonal in zip(chains.groups, self._compressed, strict=True):
            block = rows[group.rows]
            if orthogonal is not None:
                block = np.einsum("bij,bi->bj", orthogonal, block)
            blocks[group.nodes, : block.shape[1]] = block
        e, z = conditions, blocks[chains.left]
        constants = []
        for level, step in zip(chains.levels, self._steps, strict=True):
            stacked = np.concatenate([e[level.first], e[level.second]], axis=1)
            turned = np.einsum("bij,bi->bj", step.orthogonal, stacked)
            c = np.linalg.solve(step.triangle, turned[:, :size, None])[:, :, 0]
            constants.append(c)
            new = np.concatenate(
                [
                    z[level.first] - np.einsum("bij,bj->bi", step.first_rows, c),
                    z[level.second] - np.einsum("bij,bj->bi", step.second_rows, c),
                ],
                axis=1,
            )
            unpaired = z[level.unpaired]
            if step.rows_orthogonal is not None:
                new = np.einsum("bij,bi->bj", step.rows_orthogonal, new)
            width = max(new.shape[1], unpaired.shape[1])
            z = np.concatenate([_padded(new, width), _padded(unpaired, width)])[level.order]
            e = np.concatenate([turned[:, size:], e[level.unpaired]])[level.order]
        return CondensedRightHandSides(e, z, blocks[chains.lasts], tuple(constants))

    def expand(self, nodes: Array, unknowns: Array, sides: CondensedRightHandSides | None) -> None:
        """Fill in the eliminated nodes, of shape (nodes, N); without `sides` these are zero."""
        for number in range(len(self._steps) - 1, -1, -1):
            step, level = self._steps[number], self.chains.levels[number]
            shared = np.broadcast_to(unknowns, (len(level.left), len(unknowns)))
            known = np.concatenate([nodes[level.left], nodes[level.right], shared], axis=1)
            values = np.einsum("bij,bj->bi", step.to_ends, known)
            nodes[level.middle] = values if sides is None else values + sides.constants[number]

    def _compress(self, rows: Array) -> Array:
        """Return residuals by node, shape (nodes, height, N + n), height at most the columns."""
        chains, width = self.chains, rows.shape[1]
        height = max((min(g.rows.shape[1], width) for g in chains.groups), default=0)
        blocks = np.zeros((chains.nodes, height, width))
        for group in chains.groups:
            block = rows[group.rows]
            orthogonal = None
            if block.shape[1] > width:
                orthogonal, block = np.linalg.qr(block)
            self._compressed.append(orthogonal)
            blocks[group.nodes, : block.shape[1]] = block
        return blocks

    def _join(self, level: EliminationLevel, conditions: Array, rows: Array) -> tuple[Array, Array]:
        """Eliminate the nodes in the middle of the joined intervals of a level."""
        size, n = self.chains.size, self.chains.unknowns
        first, second = conditions[level.first], conditions[level.second]
        middle = np.concatenate([first[:, :, size : 2 * size], second[:, :, :size]], axis=1)
        orthogonal, triangle = np.linalg.qr(middle, mode="complete")
        triangle = triangle[:, :size]
        rest = np.zeros((len(level.first), 2 * size, 2 * size + n))
        rest[:, :size, :size] = first[:, :, :size]
        rest[:, :size, 2 * size :] = first[:, :, 2 * size :]
        rest[:, size:, size:] = second[:, :, size:]
        rest = orthogonal.transpose(0, 2, 1) @ rest
        to_ends = -np.linalg.solve(triangle, rest[:, :size])
        a, b = rows[level.first], rows[level.second]
        on_first, on_second = a[:, :, size : 2 * size], b[:, :, :size]
        upper = on_first @ to_ends
        upper[:, :, :size] += a[:, :, :size]
        upper[:, :, 2 * size :] += a[:, :, 2 * size :]
        lower = on_second @ to_ends
        lower[:, :, size:] += b[:, :, size:]
        new = np.concatenate([upper, lower], axis=1)
        rows_orthogonal = None
        if new.shape[1] > new.shape[2]:
            rows_orthogonal, new = np.linalg.qr(new)
        self._steps.append(
            _LevelFactors(orthogonal, triangle, to_ends, on_first, on_second, rows_orthogonal)
        )
        unpaired = rows[level.unpaired]
        height = max(new.shape[1], unpaired.shape[1])
        rows = np.concatenate([_padded(new, height), _padded(unpaired, height)])[level.order]
        conditions = np.concatenate([rest[:, size:], conditions[level.unpaired]])[level.order]
        return conditions, rows


def _padded(rows: Array, height: int) -> Array:
    """Return the rows with rows of zeros added up to `height`."""
    missing = height - rows.shape[1]
    if not missing:
        return rows
    return np.concatenate([rows, np.zeros((len(rows), missing, *rows.shape[2:]))], axis=1)
