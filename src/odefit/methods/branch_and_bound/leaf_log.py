"""The leaves of a tree, kept for a certificate: every box with the reason for leaving it.

Leaves cover the bounds of the unknowns: boxes that are fathomed, cut off by a contraction, or open
at the end. The search aims at a slightly smaller gap than requested, so that a later proof of the
leaves need not be as sharp.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from odefit.certificates.document import Document, Leaves
from odefit.certificates.statement import fingerprint_of, statement_of
from odefit.common.arrays import Array
from odefit.common.errors import InputError
from odefit.problem.problem import Problem

SEARCHED_SHARE = 0.7
"""Share of the gap at which the search aims if leaves are kept; the certificate claims the full
gap."""

UPPER_MARGIN = 1e-6
"""Relative margin of the upper bound in a certificate, for enclosures that are less sharp."""

CLAIMED_SHARE = 0.5
"""Share of the excess of a leaf's bound over the lower bound that its claim keeps."""


class LeafLog:
    """The leaves so far. `path` is the file written at the end."""

    def __init__(self, problem: Problem, path: str | Path) -> None:
        self._path = Path(path)
        self._problem = problem
        self._statement = statement_of(problem)
        if not self._path.parent.is_dir():
            raise InputError(f"{path}: there is no directory {self._path.parent}")
        self._lower: list[Array] = []
        self._upper: list[Array] = []
        self._squares: list[float] = []
        self._reasons: list[str] = []

    def add(self, lower: Array, upper: Array, square: float, reason: str) -> None:
        """Add a leaf, over which the objective is at least `square`."""
        self._lower.append(lower)
        self._upper.append(upper)
        self._squares.append(square)
        self._reasons.append(reason)

    def cut_off(
        self, lower: Array, upper: Array, smaller: Array, larger: Array, square: float
    ) -> None:
        """Add the region between a box and the smaller one to which it was contracted."""
        low, high = lower.copy(), upper.copy()
        for k in range(len(low)):
            if smaller[k] > low[k]:
                end = high.copy()
                end[k] = smaller[k]
                self.add(low.copy(), end, square, "contracted")
                low[k] = smaller[k]
            if larger[k] < high[k]:
                begin = low.copy()
                begin[k] = larger[k]
                self.add(begin, high.copy(), square, "contracted")
                high[k] = larger[k]

    def write(
        self, incumbent: Array, lower: float, upper: float, gap: float, offset: float
    ) -> None:
        """Write the certificate once all remaining boxes have been added.

        The search has proved that the sum of squares is at least `lower`, and that it is at most
        `upper` at `incumbent`; the objective is larger by `offset`. `gap` is the requested
        difference of the bounds.
        """
        claimed = max(min(lower, lower - (1 - SEARCHED_SHARE) * gap), 0.0)
        squares = np.array(self._squares)
        more = np.clip(squares - lower, 0.0, None) * CLAIMED_SHARE
        contracted = np.array(self._reasons) == "contracted"
        bounds = offset + claimed + np.where(contracted, 0.0, np.minimum(more, claimed))
        leaves = Leaves(np.array(self._lower), np.array(self._upper), bounds, self._reasons)
        statement = self._statement
        most = upper * (1 + UPPER_MARGIN) + UPPER_MARGIN * gap
        ends = claimed + offset, most + offset
        Document(statement, fingerprint_of(statement), *ends, incumbent, leaves).write(self._path)
