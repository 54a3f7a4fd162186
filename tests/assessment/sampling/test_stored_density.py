"""Densities kept in a checkpoint: those of the same points are found, others are replaced."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from odefit.assessment.sampling.log_posterior import LogPosterior
from odefit.assessment.sampling.stored_density import BLOCK, StoredDensity
from odefit.common.arrays import Array
from odefit.methods.running.checkpoint import Checkpoint
from odefit.simulation.engines.cut_off import CutOff, cutting_off
from tests.methods.checkpoints import records

POINTS = np.random.default_rng(0).standard_normal((3 * BLOCK + 7, 2))


class Normal:
    """A density with an impossible point; its rounding depends on the calls before."""

    def __init__(self) -> None:
        self.calls = self.since = 0

    def forget_engines(self) -> None:
        self.since = 0

    def __call__(self, point: Array) -> tuple[float, Array]:
        self.calls += 1
        self.since += 1
        if np.array_equal(point, POINTS[4]):
            return -math.inf, np.zeros(2)
        return -0.5 * float(point @ point) + 1e-15 * self.since, -point


def along(path: Path, points: Array) -> tuple[list[Any], int]:
    """Return the density at points, one after another, and how often it was evaluated."""
    density = Normal()
    with Checkpoint(path, "densities", "a problem") as checkpoint:
        stored = StoredDensity(cast(LogPosterior, density), checkpoint)
        values = [(value, slope.tolist()) for value, slope in map(stored, points)]
    return values, density.calls


@pytest.mark.parametrize("first", [0, 1, BLOCK - 1, BLOCK, 2 * BLOCK + 3])
def test_complete_blocks_are_found_and_others_are_repeated(tmp_path: Path, first: int) -> None:
    path = tmp_path / "kept"
    wanted, _ = along(tmp_path / "whole", POINTS)
    along(path, POINTS[:first])
    found, calls = along(path, POINTS)
    assert found == wanted
    assert calls == len(POINTS) - BLOCK * (first // BLOCK)
    assert sorted(records(path, "densities")) == ["0", "1", "2"]


@pytest.mark.parametrize("value", ["5", "[]", '"AAAA"', '"ä"', "null"])
def test_a_damaged_block_is_repeated(tmp_path: Path, value: str) -> None:
    path = tmp_path / "kept"
    wanted, _ = along(path, POINTS)
    with Checkpoint(path, "densities", "a problem") as checkpoint:
        checkpoint.put("1", json.loads(value))
    assert along(path, POINTS) == (wanted, BLOCK + 7)
    assert along(path, POINTS) == (wanted, 7)


def test_a_block_of_other_points_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "kept"
    along(path, POINTS)
    others = POINTS.copy()
    others[BLOCK + 50 :] += 1.0
    wanted, _ = along(tmp_path / "whole", others)
    found, calls = along(path, others)
    assert [value for value, _ in found] == pytest.approx([value for value, _ in wanted])
    assert calls == 2 * BLOCK - 50 + 7
    assert along(path, others) == (found, 7)


def test_values_that_a_limit_ended_are_not_kept(tmp_path: Path) -> None:
    path, flag = tmp_path / "kept", CutOff()
    flag.now()
    with cutting_off(flag):
        along(path, POINTS)
    assert records(path, "densities") == {}
