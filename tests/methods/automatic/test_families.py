"""A family counts once, and iterated local search restarts after a long time without success."""

from __future__ import annotations

import numpy as np

from odefit import Start, Status
from odefit.methods.automatic.families import MAX_TRIALS, Families, Restarts
from odefit.methods.local.cost_tolerance import CostTolerance


def end(index: int) -> Start:
    nowhere = np.zeros(1)
    return Start(index, nowhere, nowhere, 2.0, Status.CONVERGED, "", 1, 0.0, 1.0)


ENDS = [end(k) for k in range(6)]


def test_without_iterated_search_every_end_counts() -> None:
    assert Families().independent(ENDS) == ENDS
    assert Families().first_of_each(ENDS) == ENDS


def test_a_family_counts_once_however_often_it_returns() -> None:
    families = Families()
    families.add(ENDS[2], ENDS[0])
    families.add(ENDS[3], ENDS[2])  # from an end of the same family
    families.add(ENDS[4], ENDS[1])
    assert families.independent(ENDS) == [ENDS[0], ENDS[1], ENDS[5]]
    assert families.first_of_each(ENDS) == [ENDS[0], ENDS[1], ENDS[5]]
    assert families.first_of_each([ENDS[3], ENDS[2], ENDS[4]]) == [ENDS[2], ENDS[4]]


def test_an_independent_start_stands_for_its_family() -> None:
    families = Families()
    families.add(ENDS[2], ENDS[3])
    assert families.first_of_each([ENDS[2], ENDS[3]]) == [ENDS[3]]


def test_a_continued_search_belongs_to_its_start() -> None:
    families = Families()
    families.add(ENDS[2], ENDS[0], goes_on=True)
    families.add(ENDS[3], ENDS[2], goes_on=True)
    families.add(ENDS[4], ENDS[3])  # a start of its own, of the same family
    families.add(ENDS[5], ENDS[4], goes_on=True)
    assert families.begun(ENDS) == [ENDS[0], ENDS[1], ENDS[4]]
    assert [families.begun_by(e) for e in ENDS] == [0, 1, 0, 0, 4, 4]
    assert families.first_of_each(ENDS) == [ENDS[0], ENDS[1]]


TOLERANCE = CostTolerance(None, 1e-4, 0.0)


def ended(index: int, cost: float) -> Start:
    vector = np.full(2, float(index))
    return Start(index, vector, vector, 2 * cost, Status.CONVERGED, "", 1, 0.0, cost)


def with_trials(costs: list[float]) -> tuple[list[Start], Restarts]:
    """Return two independent ends, and starts near the first that end at these costs."""
    families, ends = Families(), [ended(0, 5.0), ended(1, 6.0)]
    for cost in costs:
        ends.append(ended(len(ends), cost))
        families.add(ends[-1], ends[0])
    return ends, Restarts(families, TOLERANCE)


def test_an_epoch_is_over_after_many_starts_without_a_gain() -> None:
    ends, restarts = with_trials([5.0] * (MAX_TRIALS - 1))
    assert restarts.current(ends) == ends
    ends, restarts = with_trials([5.0] * MAX_TRIALS)
    assert restarts.current(ends) == []


def test_a_gain_prolongs_the_search_and_a_small_one_does_not() -> None:
    costs = [5.0] * (MAX_TRIALS - 1)
    ends, restarts = with_trials([*costs, 4.0, *costs])
    assert restarts.current(ends) == ends
    ends, restarts = with_trials([*costs, 5.0 - 1e-3])
    assert restarts.current(ends) == []


def test_failed_starts_count_as_starts() -> None:
    ends, restarts = with_trials([np.inf] * MAX_TRIALS)
    assert restarts.current(ends) == []


def test_the_next_epoch_counts_only_its_starts() -> None:
    ends, restarts = with_trials([4.0] + [5.0] * MAX_TRIALS)
    assert restarts.current(ends) == []
    fresh = ended(len(ends), 7.0)
    assert restarts.current([*ends, fresh]) == [fresh]
    # What was under way when the epoch ended belongs to the old one.
    late = ended(len(ends) + 1, 3.0)
    restarts._families.add(late, ends[0])
    assert restarts.current([*ends, fresh, late]) == [fresh]
    near = ended(len(ends) + 2, 6.5)
    restarts._families.add(near, fresh)
    assert restarts.current([*ends, fresh, late, near]) == [fresh, near]
