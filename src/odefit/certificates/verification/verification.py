"""The verification of a certificate, leaf by leaf."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np

from odefit.certificates.document import Document
from odefit.certificates.statement import fingerprint_of, without_bounds
from odefit.certificates.verification.balls import ZERO, arb
from odefit.certificates.verification.bounds import bounds, distance_squared
from odefit.certificates.verification.cover import uncovered_part
from odefit.certificates.verification.polynomials import Model
from odefit.certificates.verification.trajectories import Box, Condition, LostError
from odefit.common.errors import InputError

MOST_BOXES = 4000
"""Largest number of boxes into which a leaf is divided."""

GEOMETRIC_RATIO = 4.0
"""Ratio of positive ends above which an interval is divided at their geometric mean."""


class Finding(Enum):
    """The outcome of a verification."""

    HOLDS = "holds"
    CHANGED = "changed"  # the file was changed after it was written
    OTHER_STATEMENT = "other statement"  # it does not have the fingerprint of its statement
    OTHER_PROBLEM = "other problem"  # than the one given with it
    INCUMBENT = "incumbent"  # its objective is not proved to be at most the upper bound
    UNCOVERED = "uncovered"  # no leaf covers a part of the bounds
    BELOW = "below"  # a leaf's bound is below the lower bound
    REFUTED = "refuted"  # a leaf has values with a smaller objective than its bound
    UNPROVED = "unproved"  # a leaf's bound could not be proved


@dataclass(frozen=True)
class Verdict:
    """The outcome of a verification, with its place.

    Attributes
    ----------
    finding
        The outcome.
    lower, upper
        The bounds of the objective that the certificate claims.
    leaves, boxes
        The number of leaves, and of boxes into which they were divided so far.
    leaf
        The number of the first leaf that fails, from 1.
    place
        The box of the failure, by name of unknown.
    """

    finding: Finding
    lower: float
    upper: float
    leaves: int
    boxes: int = 0
    leaf: int | None = None
    place: Mapping[str, tuple[float, float]] | None = None

    @property
    def holds(self) -> bool:
        """True if the certificate is proved again."""
        return self.finding is Finding.HOLDS


def verify_document(
    document: Document,
    statement: Mapping[str, Any] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Verdict:
    """Prove a certificate again, or return the place at which it fails.

    Parameters
    ----------
    document
        The certificate.
    statement
        The problem that it must prove, written out, whatever its bounds; None to use the
        certificate's own.
    progress
        Called with the numbers of leaves that are proved and of all leaves.

    Raises
    ------
    InputError
        Its statement contains a text that is not a formula.
    """
    checker = _Checker(document)
    if not document.intact:
        return checker.verdict(Finding.CHANGED)
    if fingerprint_of(document.statement) != document.fingerprint:
        return checker.verdict(Finding.OTHER_STATEMENT)
    if statement is not None and without_bounds(statement) != without_bounds(document.statement):
        return checker.verdict(Finding.OTHER_PROBLEM)
    try:
        return checker.check(progress)
    except (ValueError, LookupError, TypeError, AttributeError, OverflowError) as error:
        raise InputError(f"the certificate's statement is damaged: {error}") from None


class _Checker:
    """The verification of one document."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._unknowns = document.statement["unknowns"]
        self._symbols = [u["symbol"] for u in self._unknowns]
        self._boxes = 0

    def verdict(self, finding: Finding, leaf: int | None = None, place: Any = None) -> Verdict:
        """Return an outcome; `place` has the ends of a box, shape (2, n)."""
        d = self._document
        where = None
        if place is not None:
            ends = np.asarray(place, dtype=float).T.tolist()
            where = {u["name"]: (a, b) for u, (a, b) in zip(self._unknowns, ends, strict=True)}
        count = len(d.leaves.bounds)
        return Verdict(finding, d.lower, d.upper, count, self._boxes, leaf, where)

    def check(self, progress: Callable[[int, int], None] | None) -> Verdict:
        """Return the outcome for the statement of the document itself."""
        d, leaves = self._document, self._document.leaves
        lower, upper = d.box
        states = d.statement["states"]
        self._conditions = [Condition(c, self._symbols, states) for c in d.statement["conditions"]]
        point = np.stack([d.incumbent, d.incumbent])
        if (d.incumbent < lower).any() or (d.incumbent > upper).any():
            return self.verdict(Finding.INCUMBENT, place=point)
        if not self._at_most(d.incumbent, d.upper):
            return self.verdict(Finding.INCUMBENT, place=point)
        part = uncovered_part(lower, upper, leaves.lower, leaves.upper)
        if part is not None:
            return self.verdict(Finding.UNCOVERED, place=part)
        count = len(leaves.bounds)
        for number, bound in enumerate(leaves.bounds.tolist(), start=1):
            ends = np.stack([leaves.lower[number - 1], leaves.upper[number - 1]])
            if bound < d.lower:
                return self.verdict(Finding.BELOW, number, ends)
            finding, place = self._leaf(ends, bound)
            if finding is not Finding.HOLDS:
                return self.verdict(finding, number, place)
            if progress is not None:
                progress(number, count)
        return self.verdict(Finding.HOLDS)

    def _at_most(self, vector: np.ndarray, most: float) -> bool:
        """Return whether the objective at a point is proved to be at most a number."""
        box = Box(self._symbols, vector.tolist(), vector.tolist())
        residuals, complete = self._residuals(box, None)
        return complete and bool(bounds(residuals, box.ring).upper <= arb(most))

    def _residuals(self, box: Box, enough: arb | None) -> tuple[list[Model], bool]:
        """Return residuals over a box, and whether these are all.

        They end once the sum of their smallest squares has reached `enough`.
        """
        known = box.unknown_models()
        residuals = []
        for prior in self._document.statement["priors"]:
            off = known[prior["unknown"]] + box.models.constant(-arb(float(prior["mean"])))
            residuals.append(off * box.models.constant(1 / arb(float(prior["sd"]))))
        total = sum((distance_squared(r) for r in residuals), ZERO)
        complete = True
        for condition in self._conditions:
            try:
                for residual in condition.residuals(box):
                    if not residual.size.is_finite():
                        raise LostError
                    residuals.append(residual)
                    total += distance_squared(residual)
                    if enough is not None and total >= enough:
                        return residuals, False
            except LostError:
                complete = False
        return residuals, complete

    def _leaf(self, ends: np.ndarray, bound: float) -> tuple[Finding, np.ndarray]:
        """Prove the bound of a leaf; return the outcome and the box that decided it."""
        waiting, most = [ends], self._boxes + MOST_BOXES
        needed = arb(bound)
        while waiting:
            part = waiting.pop()
            if self._boxes >= most:
                return Finding.UNPROVED, part
            self._boxes += 1
            box = Box(self._symbols, part[0].tolist(), part[1].tolist())
            residuals, complete = self._residuals(box, needed)
            known = bounds(residuals, box.ring)
            if known.lower >= needed:
                continue
            if complete and known.upper < needed:
                # Rounding may put the place beside the point that was found, but within the box.
                place = np.array(box.middle) + np.array(box.radius) * np.array(known.point)
                place = np.clip(place, part[0], part[1])
                return Finding.REFUTED, np.stack([place, place])
            halves = _halves(part, known.bends if complete else None)
            if halves is None:
                return Finding.UNPROVED, part
            waiting += halves
        return Finding.HOLDS, ends


def _halves(part: np.ndarray, bends: list[float] | None) -> list[np.ndarray] | None:
    """Divide a box in the direction with the largest effect; None if it is too small."""
    low, high = part
    widths = (high - low) / np.maximum(np.maximum(np.abs(low), np.abs(high)), 1e-300)
    score = widths if bends is None else np.array(bends)
    k = int(np.argmax(np.where(widths > 0, score, -1.0)))
    a, b = float(low[k]), float(high[k])
    at = a / 2 + b / 2
    if 0 < GEOMETRIC_RATIO * a < b:
        at = float(np.sqrt(a) * np.sqrt(b))
    if not a < at < b:
        return None
    first, second = part.copy(), part.copy()
    first[1, k] = second[0, k] = at
    return [first, second]
