"""Tests of the reasoning of the automatic method in words."""

import math
from dataclasses import replace

import numpy as np

from odefit import Control, Start, Status
from odefit.methods.automatic.evidence import Evidence
from odefit.methods.automatic.message import message_of
from odefit.methods.automatic.unseen import Unseen
from odefit.methods.estimate import Cause, Route
from odefit.methods.fit_quality.noise_fit import NoiseFit

BEST = Start(0, np.ones(1), np.ones(1), 2.0, Status.CONVERGED, "", 1, 0.0, 1.0)
MATCHING = Route("integral matching", 1, 0, 1, 2.0, 0.1, "")
SHOOTING = Route("single shooting", 4, 0, 3, 2.0, 0.1, "")
AS_NOISE = NoiseFit(True, 1536.0, 1501, freedom=1495.0)


def found(fit: NoiseFit = AS_NOISE, enough: bool = True, hits: int = 4) -> Evidence:
    return Evidence(BEST, hits, fit, enough, 5, True)


def test_a_message_names_agreeing_routes_and_the_noise() -> None:
    assert message_of(found(), [MATCHING, SHOOTING], None) == (
        "integral matching and three of four starts of single shooting end at the same optimum. "
        "Chi-square is 1536 for 1501 values"
    )


def test_routes_that_disagree_come_first() -> None:
    lost = Route("multiple shooting", 3, 0, 0, 70.0, 0.1, "")
    said = message_of(found(), [SHOOTING, lost], None)
    assert said.startswith(
        "the routes disagree: single shooting found a better fit than multiple shooting. "
    )


def test_a_route_that_returned_to_the_best_end_does_not_disagree() -> None:
    """Its starts began there, and are no evidence, but they found nothing else."""
    evidence = replace(found(), alike=(BEST,))
    returned = Route("single shooting elsewhere", 6, 0, 0, 2.0, 0.1, "", cost=BEST.cost)
    assert "disagree" not in message_of(evidence, [SHOOTING, returned], None)
    worse = replace(returned, cost=BEST.cost + 1.0)
    assert "disagree" in message_of(evidence, [SHOOTING, worse], None)


def test_an_optimum_that_was_reached_once() -> None:
    alone = Route("single shooting", 4, 1, 1, 2.0, 0.1, "")
    said = message_of(found(NoiseFit(None), False, 1), [alone], None)
    assert said == (
        "one of four starts of single shooting ends at the lowest optimum, "
        "which no other start has reached"
    )


def test_ends_that_one_start_alone_has_reached_are_reported() -> None:
    said = message_of(replace(found(), enough=False, unseen=Unseen(40, 9)), [SHOOTING], None)
    assert said.endswith(
        "Nine of 40 independent starts that fit within the noise ended where no other did, "
        "so a better optimum may remain unseen"
    )


class TestIteratedLocalSearch:
    """What it has found stands beside the routes that it begins at; it does not disagree."""

    alone = Route("single shooting", 4, 1, 1, 2.0, 0.1, "")
    lost = Route("single shooting", 12, 0, 0, 70.0, 0.1, "")

    def test_a_message_says_that_a_route_found_nothing_better(self) -> None:
        returned = Route("iterated local search", 6, 0, 0, 2.0, 0.1, "")
        said = message_of(found(NoiseFit(None), False, 1), [self.alone, returned], None)
        assert said == (
            "one of four starts of single shooting ends at the lowest optimum, "
            "which no other start has reached. Iterated local search found nothing better in "
            "six starts"
        )

    def test_a_message_says_that_one_route_alone_found_the_best(self) -> None:
        best = Route("iterated local search", 6, 0, 1, 2.0, 0.1, "")
        said = message_of(found(NoiseFit(None), False, 1), [self.lost, best], None)
        assert said == (
            "iterated local search from the end of one start ends at the lowest optimum, "
            "which no independent start has reached"
        )

    def test_a_message_says_that_other_starts_found_the_best_too(self) -> None:
        best = Route("iterated local search", 6, 0, 2, 2.0, 0.1, "")
        said = message_of(found(NoiseFit(None), False, 3), [self.alone, best], None)
        assert said == (
            "one of four starts of single shooting and iterated local search from the ends of "
            "two other starts end at the same optimum"
        )


def test_a_search_that_ended_early_names_the_limit() -> None:
    unknown = found(NoiseFit(None), enough=False)
    late = message_of(unknown, [SHOOTING], Cause.TIME_LIMIT)
    assert "The time limit ended the search" in late
    assert "The caller ended the search" in message_of(unknown, [SHOOTING], Cause.CALLER)


def test_the_message_of_a_fit_at_the_noise_mentions_no_incomplete_evidence() -> None:
    late = found(enough=False)
    assert "ended the search" not in message_of(late, [SHOOTING], Cause.TIME_LIMIT)
    assert late.status(Control(), False) is Status.CONVERGED


def test_no_usable_start_says_why() -> None:
    nothing = Evidence(None, 0, NoiseFit(None), False, 6, False)
    failed = Route("single shooting", 6, 6, 0, math.inf, 0.1, "the solution blows up at t = 2")
    said = message_of(nothing, [failed], None)
    assert said.startswith("all 6 starts failed: the solution blows up at t = 2.")
    none = Evidence(None, 0, NoiseFit(None), False, 0, False)
    assert message_of(none, [], None) == "stopped before the first start was finished"
