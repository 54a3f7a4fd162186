"""When a route of the automatic method may have starts, and how long one of them may take."""

from __future__ import annotations

from collections.abc import Sequence

from odefit.methods.automatic.evidence import Evidence
from odefit.methods.automatic.iterated_search import can_begin_at
from odefit.methods.automatic.routes import (
    HALVING,
    ITERATED,
    MATCHING,
    MULTIPLE,
    SHOOTING,
    TRANSCRIPTION,
    SearchRoute,
)
from odefit.methods.estimate import Start

TIME_SHARE = 0.5
"""Share of the time that is left which one start may take."""

SLOW_SHARE = 0.1
"""Share of that time which one start of a route may take whose starts are long where trajectories
are hard to follow: of direct transcription, and of multiple shooting as long as nothing shows that
the best answer is none. On the published model of Crauste et al. one of each took a quarter of a
fit of a minute, on that of Fujita et al. one of direct transcription a sixth."""

AFTER_STARTS = {
    MATCHING: (0, 0),
    SHOOTING: (0, 0),
    HALVING: (2, 2),
    ITERATED: (4, 4),
    MULTIPLE: (3, 12),
    TRANSCRIPTION: (40, 100),
}
"""Number of independent starts after which a route is open: where the best answer is known to be
none, and where that is not known."""

OFTEN = 0.3
"""Share of the independent starts at the best optimum from which on nothing better is looked for
near the ends of others: random starts find it."""

SELDOM = 0.1
"""Share of them from which on successive halving is left out: whole searches do as well."""

AFTER_STARTS_IF_SLOW = (60, 120)
"""Number of starts after which multiple shooting is open where it is slow, as for few data or stiff
equations; as in :data:`AFTER_STARTS`, where the best answer is known to be none, and where not."""


def is_open(route: SearchRoute, evidence: Evidence, independent: Sequence[Start]) -> bool:
    """Return whether a route may have starts, from the independent starts so far.

    Parameters
    ----------
    route
        The route.
    evidence
        What is known of all ends.
    independent
        The ends of the independent starts of the epoch of iterated local search.
    """
    after, seen, wanted = AFTER_STARTS[route.name], evidence.count, True
    if route.name == HALVING:
        wanted = not evidence.certain and (evidence.hits == 1 or _rare(evidence, SELDOM))
    elif route.name == ITERATED:
        wanted = not evidence.certain and _rare(evidence, OFTEN)
        seen = sum(can_begin_at(s) for s in independent)
    elif route.name == MULTIPLE and (evidence.fit.stiff or route.sparse):
        after = AFTER_STARTS_IF_SLOW
    return wanted and seen >= after[0 if evidence.unexplained else 1]


def share_of_time(route: str, unexplained: bool) -> float:
    """Return the share of the time that is left which one start of a route may take.

    Parameters
    ----------
    route
        The name of the route.
    unexplained
        Whether the best answer so far is known to be none.
    """
    slow = route == TRANSCRIPTION or (route == MULTIPLE and not unexplained)
    return SLOW_SHARE if slow else TIME_SHARE


def _rare(evidence: Evidence, share: float) -> bool:
    """Return whether fewer than a share of the independent starts reach the best optimum."""
    return evidence.hits < share * evidence.count
