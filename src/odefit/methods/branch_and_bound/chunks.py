"""Chunks of nodes that are evaluated together, and how many of them are under way at once.

Chunks are merged in the order in which they were formed, and formed from what has been merged. So
the tree is the same wherever, and in which order, they are evaluated.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from odefit.common.arrays import Array

CHUNK_SIZE = 256
"""Number of nodes that are evaluated together: enough for efficient operations on arrays."""

SIZES = 96, 512
"""Smallest and largest number of nodes that are evaluated together, if more are open."""

CHUNK_WORK = 2.5e7
"""Operations of a chunk between these sizes: half a second. Smaller chunks would spend more time on
operations of Python, and workers could not share what is left at the end in larger ones."""

AHEAD = 4
"""Number of chunks that may be under way: two workers then have work while one chunk is merged."""

AHEAD_SHARE = 0.5
"""Share of all nodes up to which more chunks are under way. If no better point is found, all of
them have to be evaluated anyway; otherwise these were too many."""

MOST_AHEAD = 32
"""Largest number of full chunks under way if many nodes are open, for many workers."""


class Chunk(NamedTuple):
    """Boxes with corners of shape (B, n), and how they are evaluated.

    Points with a residual norm above `radius` need not be bounded accurately. The code may be
    `compiled`, and the enclosure is sharper by `level`.
    """

    lower: Array
    upper: Array
    radius: float
    compiled: bool = False
    level: int = 0


def next_size(open_nodes: int, chunks: int, nodes: int, work: float = 0.0) -> int:
    """Return the number of open nodes for another chunk, or 0 if none should be formed now.

    So many `chunks` with so many `nodes` are under way. A node takes about so much `work`, in
    operations, which is 0 while that does not matter. The number of workers has no effect.

    Examples
    --------
    >>> next_size(100, 0, 0), next_size(200, 0, 0), next_size(1000, 1, 256)
    (100, 100, 256)
    >>> next_size(1000, 4, 1024), next_size(10_000, 4, 1024)
    (0, 256)
    >>> next_size(1000, 1, 256, work=2e5), next_size(100, 1, 256), next_size(60, 1, 256)
    (125, 100, 0)
    """
    size = CHUNK_SIZE if work <= 0 else round(float(np.clip(CHUNK_WORK / work, *SIZES)))
    many = min(AHEAD_SHARE * (open_nodes + nodes), MOST_AHEAD * CHUNK_SIZE)
    if chunks >= AHEAD and nodes + size > many:
        return 0
    if open_nodes >= 2 * size or (chunks > 1 and open_nodes >= size):
        return size
    if open_nodes >= size or (chunks == 0 and open_nodes >= size // 2):
        return -(-open_nodes // 2)
    # Few nodes wait for others, unless a worker would have nothing to do.
    least = (1, size // 4)[chunks] if chunks < 2 else size
    return open_nodes if open_nodes >= least else 0
