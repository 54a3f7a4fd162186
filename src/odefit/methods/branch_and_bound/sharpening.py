"""The choice of how sharply boxes are enclosed, by what their evaluation achieves for its work.

A sharper enclosure takes longer and leaves less of each box. Which one pays depends on the problem
and on the size that boxes have reached, so a long search compares neighbouring levels on some of
its boxes from time to time. It takes the level at which the volume that is left falls fastest.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from math import comb

import numpy as np

from odefit.common.arrays import Array
from odefit.enclosure.arithmetic.taylor_models import Monomials
from odefit.methods.branch_and_bound.node_evaluator import (
    NodeEvaluation,
    ResidualEnclosure,
    evaluate_nodes,
)
from odefit.simulation.engines.cut_off import cut_off

SAMPLE_SIZE = 64
"""Number of boxes on which levels are compared."""

COMPARED_SHARE = 0.05
"""Largest share of comparisons in the work of a search."""

STEADY_PROGRESS = 0.05
"""Progress of an evaluation that neither fathoms nor contracts: its box is divided. It is in units
of the logarithm of the volume."""


class Sharpening:
    """The level of the enclosures of a search, 0 at first."""

    def __init__(self, enclosure: ResidualEnclosure) -> None:
        self._enclosure = enclosure
        self.level = 0
        self.work = 0.0  # operations of all comparisons

    def resume(self, level: int, work: float) -> None:
        """Continue at a level, after comparisons with some work; ValueError if it is unknown."""
        if not self._known(level):
            raise ValueError(f"there is no level {level}")
        self.level, self.work = level, work

    def due(self, work: float, boxes: int) -> bool:
        """Return whether a comparison is cheap, given the work so far and that for each box now."""
        neighbours = [level for level in (self.level - 1, self.level + 1) if self._known(level)]
        if not neighbours:
            return False
        cost = 1.0 + sum(self._relative_cost(level) for level in neighbours)
        expected = SAMPLE_SIZE * cost * work / max(boxes, 1)
        return self.work + expected <= COMPARED_SHARE * work

    def compare(self, lower: Array, upper: Array, radius: float, stop: Callable[[], bool]) -> None:
        """Choose the level by some of the boxes with these corners, shapes (B, n)."""
        count = len(lower)
        if count < SAMPLE_SIZE:
            return
        sample = np.arange(SAMPLE_SIZE) * count // SAMPLE_SIZE
        rates: dict[int, float] = {}
        for level in (self.level - 1, self.level, self.level + 1):
            if not self._known(level):
                continue
            if stop():
                return
            boxes = lower[sample], upper[sample], radius
            evaluation = evaluate_nodes(self._enclosure, *boxes, compiled=True, level=level)
            if cut_off().reached:  # parts of it are unknown only for want of time
                return
            self.work += evaluation.work
            rates[level] = progress(evaluation, radius) / max(evaluation.work, 1.0)
        self.level = max(rates, key=lambda level: rates[level])

    def _known(self, level: int) -> bool:
        return level >= 0 and self._enclosure.sharper(level) is not None

    def _relative_cost(self, level: int) -> float:
        """Return about the work at a level relative to that at the present one."""
        return _products(self._monomials(level)) / _products(self._monomials(self.level))

    def _monomials(self, level: int) -> Monomials:
        enclosure = self._enclosure.sharper(level)
        assert enclosure is not None, "only levels that are known are compared"
        return enclosure.monomials


def progress(evaluation: NodeEvaluation, radius: float) -> float:
    """Return by how much an evaluation lowers the logarithm of the volume that is left."""
    bounds = evaluation.bounds
    share = np.prod(np.clip((bounds.upper - bounds.lower) / 2, 0.0, 1.0), axis=1)
    left = float(np.where(bounds.norm >= radius, 0.0, share).mean())
    # What is less than half a box of the sample is not known any better.
    return STEADY_PROGRESS - math.log(max(left, 0.5 / len(share)))


def _products(monomials: Monomials) -> int:
    """Return the number of products of two monomials that are kept."""
    return comb(2 * monomials.variables + monomials.degree, monomials.degree)
