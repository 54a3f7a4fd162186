"""Tests of which ends are evidence of their own."""

import numpy as np

from odefit import Start, Status
from odefit.methods.automatic.families import Families


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


def test_a_search_that_goes_on_is_part_of_its_start() -> None:
    families = Families()
    families.add(ENDS[2], ENDS[0], goes_on=True)
    families.add(ENDS[3], ENDS[2], goes_on=True)
    families.add(ENDS[4], ENDS[3])  # a start of its own, of the same family
    families.add(ENDS[5], ENDS[4], goes_on=True)
    assert families.begun(ENDS) == [ENDS[0], ENDS[1], ENDS[4]]
    assert [families.begun_by(e) for e in ENDS] == [0, 1, 0, 0, 4, 4]
    assert families.first_of_each(ENDS) == [ENDS[0], ENDS[1]]
