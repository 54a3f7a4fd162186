"""The secant estimate of the second-order part of a Hessian, on functions that are quadratic."""

from __future__ import annotations

import numpy as np
import pytest

from odefit.methods.local.trust_region import SecondOrderPart


@pytest.mark.parametrize("seed", range(5))
def test_after_as_many_steps_as_unknowns_it_is_exact(seed: int) -> None:
    """Symmetric rank-one updates of a quadratic function end at its Hessian, whatever the steps."""
    rng = np.random.default_rng(seed)
    n = 4
    jacobian, part = rng.standard_normal((7, n)), rng.standard_normal((n, n))
    part = part + part.T
    hessian = jacobian.T @ jacobian + part
    found = SecondOrderPart(n)
    for step in rng.standard_normal((n, n)):
        found.update(step, hessian @ step, jacobian, np.ones(n))
    np.testing.assert_allclose(found.matrix, part, rtol=1e-7, atol=1e-8)


def test_a_step_without_information_changes_nothing() -> None:
    found = SecondOrderPart(2)
    jacobian, step = np.eye(2), np.array([1.0, 0.0])
    found.update(step, step, jacobian, np.ones(2))
    assert not found.matrix.any(), "the Gauss-Newton model is right already"
    orthogonal = np.array([0.0, 5.0])
    found.update(step, step + orthogonal, jacobian, np.ones(2))
    assert not found.matrix.any(), "the update would divide by zero"
    found.update(step, np.array([np.inf, 0.0]), jacobian, np.ones(2))
    assert not found.matrix.any()


def test_the_model_that_predicts_better_is_taken_and_small_differences_do_not_count() -> None:
    found = SecondOrderPart(1)
    assert not found.in_use
    found.compare(actual=1.0, gauss_newton=2.0, with_it=1.5)
    assert found.in_use
    found.compare(actual=1.0, gauss_newton=1.9, with_it=2.0)
    assert found.in_use
    found.compare(actual=1.0, gauss_newton=1.1, with_it=2.0)
    assert not found.in_use
    found.compare(actual=1.0, gauss_newton=2.0, with_it=1.9)
    assert not found.in_use
