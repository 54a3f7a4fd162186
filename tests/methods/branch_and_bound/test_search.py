"""Lower bounds of random small problems are below the best fit that is known."""

from __future__ import annotations

import numpy as np
import pytest

from odefit import BranchAndBound
from odefit.methods.estimate import Status
from tests.methods.branch_and_bound.batches import stopped_after
from tests.methods.branch_and_bound.random_problems import MODELS, best_known, small

NOISY, EXACT = [26, 32, 45, 47, 98, 141, 174], [71, 96, 156]
"""Random problems with and without noise, of all models; the first one has the widest box."""


@pytest.mark.slow
@pytest.mark.parametrize("number", NOISY + EXACT)
def test_the_lower_bound_is_below_the_best_fit(number: int) -> None:
    found = small(number)
    best = best_known(found, 6)
    estimate = BranchAndBound(starts=3, gap=1e-2).solve(found.problem, stopped_after(8))
    certificate = estimate.certificate
    assert certificate is not None
    assert certificate.scope == "continuous time"
    assert certificate.rigorous
    assert certificate.lower <= best
    assert certificate.lower <= certificate.upper
    lower = [step.lower for step in certificate.history]
    assert lower == sorted(lower)
    assert certificate.closed or estimate.status is Status.INTERRUPTED
    if certificate.closed:
        assert estimate.status is Status.CONVERGED
        room = max(1e-2 * certificate.upper, certificate.negligible)
        assert certificate.upper - certificate.lower <= room * (1 + 1e-9)
        assert certificate.upper <= best + room * (1 + 1e-9)
    assert found.noisy is (number in NOISY)
    if not found.noisy:
        assert certificate.closed
        assert certificate.lower == 0.0


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_the_bound_on_a_mesh_is_below_all_objectives_there(name: str) -> None:
    """The bound there is of another problem: its best value is looked for in the box."""
    number = list(MODELS).index(name) + 7
    found = small(number)
    method = BranchAndBound(scheme="trapezoid", mesh=8, starts=2, gap=1e-2)
    certificate = method.solve(found.problem, stopped_after(5)).certificate
    assert certificate is not None
    assert "discretised (trapezoid" in certificate.scope
    enclosure = method.enclosure(found.problem)
    rng = np.random.default_rng(0)
    low, high = found.problem.lower, found.problem.upper
    points = rng.uniform(low, high, (2000, len(low)))
    there = enclosure(points, points)
    least = np.abs(there.c).sum(axis=1) + there.remainder
    objective = (least**2).sum(axis=0)
    assert certificate.lower <= objective.min()
    assert certificate.lower <= certificate.upper
