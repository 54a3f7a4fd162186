"""The number of cores that work may use."""

from __future__ import annotations

from odefit.common.cores import cores, using_cores


def test_cores_are_counted_within_a_block() -> None:
    assert cores() == 1
    with using_cores(3):
        with using_cores(1):
            assert cores() == 1
        assert cores() == 3
    assert cores() == 1
