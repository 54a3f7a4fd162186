"""Upper bounds of the objective after a cut-off."""

from __future__ import annotations

import numpy as np
import pytest

from odefit.common.arrays import Array
from odefit.enclosure import Residuals
from odefit.methods.branch_and_bound import local_minima
from odefit.methods.branch_and_bound.local_minima import late_objective_at, objective_at
from odefit.simulation.engines.cut_off import CutOff, cut_off, cutting_off
from tests.methods.branch_and_bound.quartic import Quartic

POINT = np.array([-1.0, -1.4])


class CutShort(Quartic):
    """Its residuals are unknown after a cut-off, for which it waits if it is `endless`."""

    def __init__(self, endless: bool = False) -> None:
        super().__init__()
        self._endless = endless

    def __call__(self, lower: Array, upper: Array, radius: float = np.inf) -> Residuals:
        found = super().__call__(lower, upper, radius)
        while self._endless and not cut_off().reached:
            pass
        if cut_off().reached:
            found.remainder[:] = np.inf
        return found


def test_the_first_objective_of_a_search_that_begins_late_is_known() -> None:
    ended = CutOff()
    ended.now()
    with cutting_off(ended):
        assert np.isinf(objective_at(CutShort(), POINT))
        found = late_objective_at(CutShort(), POINT)
    assert found == objective_at(Quartic(), POINT)


def test_a_late_objective_does_not_take_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_minima, "GRACE_SECONDS", 0.01)
    ended = CutOff()
    ended.now()
    with cutting_off(ended):
        assert np.isinf(late_objective_at(CutShort(endless=True), POINT))
