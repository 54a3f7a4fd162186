"""Upper bounds of the objective after a cut-off."""

from __future__ import annotations

import numpy as np
import pytest

from odefit.common.arrays import Array
from odefit.enclosure import Residuals
from odefit.methods.branch_and_bound import local_minima
from odefit.methods.branch_and_bound.local_minima import (
    around,
    late_objective_at,
    linearised,
    local_minimum,
    objective_at,
)
from odefit.simulation.engines.cut_off import CutOff, cut_off, cutting_off
from tests.methods.branch_and_bound.quartic import BEST, LOWER, UPPER, Quartic

POINT = np.array([-1.0, -1.4])


def test_a_point_and_what_it_is_linearised_are_enclosed_at_once() -> None:
    enclosure = Quartic()
    objective, near = around(enclosure, POINT, LOWER, UPPER)
    assert enclosure.calls == 1
    assert objective == objective_at(Quartic(), POINT)
    alone = linearised(Quartic(), POINT, LOWER, UPPER)
    assert near is not None
    assert alone is not None
    np.testing.assert_array_equal(near.jacobian, alone.jacobian)
    assert 2 * near.cost == pytest.approx(objective, rel=1e-9)


def test_the_objective_of_a_minimum_holds_at_its_point() -> None:
    found, objective = local_minimum(Quartic(), POINT, LOWER, UPPER, lambda: False)
    assert objective == objective_at(Quartic(), found)
    assert float(Quartic.exact(*found)) <= objective <= BEST * (1 + 1e-6)
    enclosure = Quartic()
    again, same = local_minimum(enclosure, POINT, LOWER, UPPER, lambda: False, 10.0)
    assert (again.tolist(), same) == (POINT.tolist(), objective_at(Quartic(), POINT))
    assert enclosure.calls == 1


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
