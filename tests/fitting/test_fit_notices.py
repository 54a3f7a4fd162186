"""How a fit ended, in its status and in words, follows from what was found."""

from __future__ import annotations

import numpy as np
import pytest

from odefit import Start, Status
from odefit.fitting.fit_notices import ending
from odefit.methods.estimate import Cause, Estimate

LIMIT = "The time limit ended the search before the evidence was complete"


@pytest.mark.parametrize("done", [True, False])
def test_no_limit_is_shown_for_an_answer_that_nothing_can_beat(done: bool) -> None:
    at = np.array([1.0])
    one = Start(0, at, at, 0.0, Status.CONVERGED, "", 1, 0.0, 0.0)
    estimate = Estimate(
        (one,),
        Status.TIME_LIMIT,
        f"one start ends here. {LIMIT}",
        told=Cause.TIME_LIMIT,
        sufficient=False,
        finding="one start ends here",
    )
    status, message, _ = ending(
        estimate, "", None, polish=True, done=done, optimal=True, early=False, corroborated=False
    )
    assert status is (Status.CONVERGED if done else Status.TIME_LIMIT)
    assert (LIMIT in message) is not done


@pytest.mark.parametrize("done", [True, False])
def test_a_remaining_gradient_does_not_refute_an_unbeatable_answer(
    done: bool,
) -> None:
    at = np.array([1.0])
    one = Start(0, at, at, 0.0, Status.CONVERGED, "", 1, 0.0, 0.0)
    estimate = Estimate((one,), Status.CONVERGED, "one start ends here", sufficient=True)
    last = "no smaller step improves the fit"
    status, message, _ = ending(
        estimate, last, None, polish=True, done=done, optimal=False, early=False, corroborated=True
    )
    assert status is (Status.CONVERGED if done else Status.NOT_CONVERGED)
    assert (last in message) is not done
