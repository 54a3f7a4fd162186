"""The reasoning of the automatic method in two or three sentences."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from odefit.common.errors import listed
from odefit.methods.automatic.evidence import Evidence
from odefit.methods.automatic.route_table import HALVING, ITERATED
from odefit.methods.estimate import NO_START, Cause, Route

NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
"""Small numbers as words."""

MIN_STARTS_TO_DISAGREE = 2
"""Number of usable starts of a route, none at the lowest cost, above which the message mentions
it."""


def message_of(evidence: Evidence, routes: Sequence[Route], cause: Cause | None) -> str:
    """Return the reasons to trust or doubt the answer, and the cause of an early end."""
    if evidence.best is None:
        return _nothing(evidence, routes)
    iterated = next((r for r in routes if r.name == ITERATED.name and r.starts), None)
    others = [r for r in routes if r.name != ITERATED.name]
    reached = [r for r in others if r.hits]
    # Most searches of successive halving are abandoned before they end.
    whole = [r for r in others if r.name != HALVING.name]
    missed = [
        r
        for r in whole
        if not r.hits
        and r.starts - r.failed >= MIN_STARTS_TO_DISAGREE
        and not _at_answer(r, evidence)
    ]
    sentences = []
    if missed and reached:
        names = listed([r.name for r in missed])
        reached_names = listed([r.name for r in reached])
        sentences.append(f"the routes disagree: {reached_names} found a better fit than {names}")
    sentences.append(_agreement(reached, iterated))
    if iterated is not None and not iterated.hits:
        sentences.append(f"{ITERATED.name} found nothing better in {_starts(iterated.starts)}")
    if evidence.best.exact:
        sentences.append("the data are reproduced to rounding, which cannot be beaten")
    elif evidence.fit.sentence:
        sentences.append(evidence.fit.sentence)
    if evidence.far:
        sentences.append(
            f"none of {evidence.count} independent starts came near the data, and later ones came "
            "no nearer than earlier ones: the search has ended"
        )
    if evidence.unseen is not None:
        sentences.append(
            f"{_number(evidence.unseen.alone)} of {evidence.unseen.ends} independent starts that "
            "fit within the noise ended where no other did, so a better optimum may remain unseen"
        )
    if named_cause(evidence, cause) is not None:
        sentences.append(f"{cause} ended the search before the evidence was complete")
    return ". ".join(s[0].upper() + s[1:] if i else s for i, s in enumerate(sentences))


def _at_answer(route: Route, evidence: Evidence) -> bool:
    """Return whether an end of a route is the best one, though none that counts as evidence."""
    highest = max((s.cost for s in evidence.alike), default=-math.inf)
    return route.cost is not None and route.cost <= highest


def named_cause(evidence: Evidence, cause: Cause | None) -> Cause | None:
    """Return the cause of an early end of the search, if :func:`message_of` names it."""
    settled = evidence.enough or (evidence.certain and evidence.converged)
    return None if evidence.best is None or settled else cause


def _agreement(reached: Sequence[Route], iterated: Route | None) -> str:
    """Return the routes that reached the best optimum, by independent starts or by iteration."""
    # Routes with one start first: "a of b starts of one and another" would count both.
    parts = [r.name for r in reached if r.starts == 1]
    parts += [
        f"{_number(r.hits)} of {_starts(r.starts)} of {r.name}" for r in reached if r.starts > 1
    ]
    hits = sum(r.hits for r in reached)
    if iterated is not None and iterated.hits:
        other = "other " if reached else ""
        one = iterated.hits == 1
        ends = (
            f"end of one {other}start" if one else f"ends of {_number(iterated.hits)} {other}starts"
        )
        parts.append(f"{ITERATED.name} from the {ends}")
        hits += iterated.hits if reached else 0
    if hits > 1:
        return f"{listed(parts)} end at the same optimum"
    which = "no other start" if reached else "no independent start"
    return f"{listed(parts)} ends at the lowest optimum, which {which} has reached"


def _nothing(evidence: Evidence, routes: Sequence[Route]) -> str:
    if not evidence.count:
        return NO_START
    reasons = Counter(r.message for r in routes if r.starts)
    listed = "; ".join(reason for reason, _ in reasons.most_common(3))
    all_of = "the only start" if evidence.count == 1 else f"all {evidence.count} starts"
    return (
        f"{all_of} failed: {listed}. Give narrower bounds or a guess near which "
        "the model can be integrated"
    )


def _number(n: int) -> str:
    return NUMBERS[n] if n < len(NUMBERS) else str(n)


def _starts(n: int) -> str:
    return f"{_number(n)} start{'' if n == 1 else 's'}"
