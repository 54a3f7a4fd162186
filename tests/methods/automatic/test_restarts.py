"""Tests of the epochs of iterated local search."""

import numpy as np

from odefit import Start, Status
from odefit.methods.automatic.families import Families
from odefit.methods.automatic.restarts import MAX_TRIALS, Restarts
from odefit.methods.local.cost_tolerance import CostTolerance

TOLERANCE = CostTolerance(None, 1e-4, 0.0)


def end(index: int, cost: float) -> Start:
    vector = np.full(2, float(index))
    return Start(index, vector, vector, 2 * cost, Status.CONVERGED, "", 1, 0.0, cost)


def with_trials(costs: list[float]) -> tuple[list[Start], Restarts]:
    """Return two independent ends, and starts near the first that end at these costs."""
    families, ends = Families(), [end(0, 5.0), end(1, 6.0)]
    for cost in costs:
        ends.append(end(len(ends), cost))
        families.add(ends[-1], ends[0])
    return ends, Restarts(families, TOLERANCE)


def test_an_epoch_is_over_after_many_starts_without_a_gain() -> None:
    ends, restarts = with_trials([5.0] * (MAX_TRIALS - 1))
    assert restarts.current(ends) == ends
    ends, restarts = with_trials([5.0] * MAX_TRIALS)
    assert restarts.current(ends) == []


def test_a_gain_prolongs_it_and_a_small_one_does_not() -> None:
    costs = [5.0] * (MAX_TRIALS - 1)
    ends, restarts = with_trials([*costs, 4.0, *costs])
    assert restarts.current(ends) == ends
    ends, restarts = with_trials([*costs, 5.0 - 1e-3])
    assert restarts.current(ends) == []


def test_failures_are_starts_as_well() -> None:
    ends, restarts = with_trials([np.inf] * MAX_TRIALS)
    assert restarts.current(ends) == []


def test_the_next_epoch_knows_its_own_starts_alone() -> None:
    ends, restarts = with_trials([4.0] + [5.0] * MAX_TRIALS)
    assert restarts.current(ends) == []
    fresh = end(len(ends), 7.0)
    assert restarts.current([*ends, fresh]) == [fresh]
    # What was under way when the epoch ended belongs to the old one.
    late = end(len(ends) + 1, 3.0)
    restarts._families.add(late, ends[0])
    assert restarts.current([*ends, fresh, late]) == [fresh]
    near = end(len(ends) + 2, 6.5)
    restarts._families.add(near, fresh)
    assert restarts.current([*ends, fresh, late, near]) == [fresh, near]
