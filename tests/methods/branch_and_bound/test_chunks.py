"""Chunks are neither too small for arrays nor too large to be shared."""

from __future__ import annotations

import pytest

from odefit.methods.branch_and_bound.chunks import (
    AHEAD,
    CHUNK_SIZE,
    CHUNK_WORK,
    MOST_AHEAD,
    SIZES,
    next_size,
)


def formed(open_nodes: int, work: float = 0.0) -> list[int]:
    """The chunks that are formed of so many nodes before any is merged."""
    sizes: list[int] = []
    while size := next_size(open_nodes, len(sizes), sum(sizes), work):
        sizes.append(size)
        open_nodes -= size
    return sizes


def test_two_workers_have_equal_shares_of_few_nodes() -> None:
    assert [formed(n) for n in (0, 1, CHUNK_SIZE // 2 - 1)] == [[], [1], [CHUNK_SIZE // 2 - 1]]
    assert formed(CHUNK_SIZE // 2) == [CHUNK_SIZE // 4] * 2
    assert formed(CHUNK_SIZE) == [CHUNK_SIZE // 2] * 2
    assert formed(2 * CHUNK_SIZE - 2) == [CHUNK_SIZE - 1] * 2


def test_many_nodes_are_shared_by_many_workers_and_half_of_them_wait() -> None:
    assert formed(AHEAD * CHUNK_SIZE) == [CHUNK_SIZE] * AHEAD
    assert formed(16 * CHUNK_SIZE) == [CHUNK_SIZE] * 8
    assert formed(10**6) == [CHUNK_SIZE] * MOST_AHEAD


@pytest.mark.parametrize(("work", "size"), [(1e4, SIZES[1]), (1e5, 250), (1e9, SIZES[0])])
def test_chunks_have_a_like_amount_of_work(work: float, size: int) -> None:
    assert formed(10**4, work)[0] == size
    assert CHUNK_WORK == 250 * 1e5


def test_few_nodes_wait_for_those_under_way_unless_a_worker_would_be_idle() -> None:
    assert next_size(CHUNK_SIZE // 4 - 1, 1, 1) == 0
    assert next_size(CHUNK_SIZE // 4, 1, 1) == CHUNK_SIZE // 4
    assert next_size(CHUNK_SIZE - 1, 2, 2) == 0
