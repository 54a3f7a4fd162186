"""The verification of a certificate, leaf by leaf."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import Any

import numpy as np

from odefit.certificates.document import Document
from odefit.certificates.statement import fingerprint_of, without_bounds
from odefit.certificates.verification.balls import arb
from odefit.certificates.verification.bounds import bounds
from odefit.certificates.verification.cover import uncovered_part
from odefit.certificates.verification.formulas import Formulas
from odefit.certificates.verification.likelihoods import (
    SPECIAL_FUNCTIONS,
    Part,
    formula_part,
    least_of,
)
from odefit.certificates.verification.trajectories import Box, Condition, LostError
from odefit.common.errors import InputError

MOST_BOXES = 4000
"""Largest number of boxes into which a leaf is divided."""

TOGETHER = 8
"""Number of leaves of one task for a process."""

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
    executor: Executor | None = None,
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
    executor
        Processes that prove the leaves; None to prove them in this one.

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
        return checker.check(progress, executor)
    except (ValueError, LookupError, TypeError, AttributeError, OverflowError) as error:
        raise InputError(f"the certificate's statement is damaged: {error}") from None


class _Checker:
    """The verification of one document."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._unknowns = document.statement["unknowns"]
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

    def check(
        self, progress: Callable[[int, int], None] | None, executor: Executor | None
    ) -> Verdict:
        """Return the outcome for the statement of the document itself."""
        d, leaves = self._document, self._document.leaves
        lower, upper = d.box
        point = np.stack([d.incumbent, d.incumbent])
        if (d.incumbent < lower).any() or (d.incumbent > upper).any():
            return self.verdict(Finding.INCUMBENT, place=point)
        if not Prover(d.statement).at_most(d.incumbent, d.upper):
            return self.verdict(Finding.INCUMBENT, place=point)
        part = uncovered_part(lower, upper, leaves.lower, leaves.upper)
        if part is not None:
            return self.verdict(Finding.UNCOVERED, place=part)
        below = np.flatnonzero(leaves.bounds < d.lower)
        if len(below):
            first = int(below[0])
            ends = np.stack([leaves.lower[first], leaves.upper[first]])
            return self.verdict(Finding.BELOW, first + 1, ends)
        count = len(leaves.bounds)
        for number, (finding, place, boxes) in enumerate(self._outcomes(executor), start=1):
            self._boxes += boxes
            if finding is not Finding.HOLDS:
                return self.verdict(finding, number, place)
            if progress is not None:
                progress(number, count)
        return self.verdict(Finding.HOLDS)

    def _outcomes(self, executor: Executor | None) -> Iterator[Outcome]:
        """Yield the outcomes of all leaves in their order, by the processes of an executor."""
        leaves = self._document.leaves
        boxes = np.stack([leaves.lower, leaves.upper], axis=1)
        if executor is None:
            prover = Prover(self._document.statement)
            yield from map(prover.leaf, boxes, leaves.bounds.tolist())
            return
        text = json.dumps(self._document.statement)
        waiting = [
            executor.submit(
                _outcomes_of, text, boxes[k : k + TOGETHER], leaves.bounds[k : k + TOGETHER]
            )
            for k in range(0, len(boxes), TOGETHER)
        ]
        try:
            for future in waiting:
                yield from future.result()
        finally:
            for future in waiting:
                future.cancel()


Outcome = tuple[Finding, np.ndarray, int]
"""The outcome for a leaf, the box that decided it, and the number of boxes."""


def _outcomes_of(statement: str, boxes: np.ndarray, bounds: np.ndarray) -> list[Outcome]:
    """Return the outcomes of some leaves, up to the first one that is not proved."""
    outcomes: list[Outcome] = []
    prover = _prover(statement)
    for ends, bound in zip(boxes, bounds.tolist(), strict=True):
        outcomes.append(prover.leaf(ends, bound))
        if outcomes[-1][0] is not Finding.HOLDS:
            break
    return outcomes


@lru_cache(maxsize=1)
def _prover(statement: str) -> Prover:
    return Prover(json.loads(statement))


class Prover:
    """Proofs of bounds of the objective of one statement."""

    def __init__(self, statement: Mapping[str, Any]) -> None:
        self._symbols = [u["symbol"] for u in statement["unknowns"]]
        self._priors = statement["priors"]
        self._terms = Formulas(statement.get("terms", []), self._symbols, SPECIAL_FUNCTIONS)
        self._conditions = [
            Condition(c, self._symbols, statement["states"]) for c in statement["conditions"]
        ]

    def at_most(self, vector: np.ndarray, most: float) -> bool:
        """Return whether the objective at a point is proved to be at most a number."""
        box = Box(self._symbols, vector.tolist(), vector.tolist())
        parts, complete = self._parts(box, None)
        return complete and bool(bounds(parts, box.ring).upper <= arb(most))

    def leaf(self, ends: np.ndarray, bound: float) -> Outcome:
        """Prove the bound of a leaf, whose corners are the rows of `ends`."""
        waiting, boxes = [ends], 0
        needed = arb(bound)
        while waiting:
            part = waiting.pop()
            if boxes >= MOST_BOXES:
                return Finding.UNPROVED, part, boxes
            boxes += 1
            box = Box(self._symbols, part[0].tolist(), part[1].tolist())
            parts, complete = self._parts(box, needed)
            known = bounds(parts, box.ring)
            if known.lower >= needed:
                continue
            if complete and known.upper < needed:
                # Rounding may put the place beside the point that was found, but within the box.
                place = np.array(box.middle) + np.array(box.radius) * np.array(known.point)
                place = np.clip(place, part[0], part[1])
                return Finding.REFUTED, np.stack([place, place]), boxes
            halves = _halves(part, known.bends if complete else None)
            if halves is None:
                return Finding.UNPROVED, part, boxes
            waiting += halves
        return Finding.HOLDS, ends, boxes

    def _parts(self, box: Box, enough: arb | None) -> tuple[list[Part], bool]:
        """Return parts of the objective over a box, and whether these are all, and enclosed.

        They end once the sum of their least values has reached `enough`: none of those left out is
        negative.
        """
        known = box.unknown_models()
        parts = [formula_part(self._terms, box.models, known)]
        for prior in self._priors:
            off = known[prior["unknown"]] + box.models.constant(-arb(float(prior["mean"])))
            parts.append(Part.square(off * box.models.constant(1 / arb(float(prior["sd"])))))
        total, complete = least_of(parts), True
        for condition in self._conditions:
            try:
                for part in condition.parts(box):
                    parts.append(part)
                    total += part.least
                    if enough is not None and total >= enough:
                        return parts, False
            except LostError:
                complete = False
        return parts, complete and all(part.enclosed for part in parts)


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
