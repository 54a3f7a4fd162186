"""Enclosures in balls contain what other programs compute, and have outward rounding."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("flint", reason="the extra odefit[certificates] is not installed")

from odefit.certificates.statement import statement_of
from odefit.certificates.verification.balls import ZERO, arb
from odefit.certificates.verification.bounds import bounds
from odefit.certificates.verification.likelihoods import Part
from odefit.certificates.verification.polynomials import Model
from odefit.simulation import Evaluation, ForwardMap
from odefit.simulation.engines.engine_choice import UNDECIDED
from tests.certificates.problems import ten
from tests.certificates.verification.enclosing import enclosed_residuals


def at(model: Model, d: np.ndarray) -> tuple[float, float]:
    """The value of a polynomial at a point of its box, and the bound of its remainder."""
    total = 0.0
    for powers, p in zip(model.ring.monomials, model.c, strict=True):
        value = p[0] if p.length() else ZERO
        total += float(value.mid()) * float(np.prod([d[k] for k in powers]))
    return total, float(model.rest)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["quadratic", "saturated", "root", "forced", "dose", "event"])
def test_the_residuals_of_an_integrator_lie_in_the_enclosures(name: str) -> None:
    problem = ten()[name]
    rng = np.random.default_rng(4)
    middle = problem.lower + (0.3 + 0.4 * rng.random(len(problem.lower))) * (
        problem.upper - problem.lower
    )
    half = 0.02 * (problem.upper - problem.lower)
    found, box = enclosed_residuals(statement_of(problem), middle - half, middle + half)
    forward = ForwardMap(problem)
    for _ in range(5):
        d = rng.uniform(-1, 1, len(middle))
        evaluation = forward.evaluate(middle + half * d, UNDECIDED)
        assert isinstance(evaluation, Evaluation)
        values = np.sort(evaluation.residuals[: len(found)])
        pairs = [at(model, d) for model in found]
        centres = np.sort([value for value, _ in pairs])
        rest = max(rest for _, rest in pairs)
        assert rest < 0.05 * (1 + np.abs(values).max())
        assert (np.abs(centres - values) <= rest + 1e-5 * (1 + np.abs(values))).all()
        total = float(values @ values)
        assert float(bounds([Part.square(r) for r in found], box.ring).lower) <= total * (1 + 1e-5)


def test_a_bound_fails_if_its_remainder_is_left_out() -> None:
    """A third-order term has to lie within the remainder: without it the claim is wrong."""
    problem = ten()["quadratic"]
    middle, half = np.array([1.0, 1.0]), np.array([0.2, 0.15])
    found, _ = enclosed_residuals(statement_of(problem), middle - half, middle + half)
    forward = ForwardMap(problem)
    outside = 0
    for d in (np.array([1.0, 1.0]), np.array([-1.0, 1.0]), np.array([-1.0, -1.0])):
        evaluation = forward.evaluate(middle + half * d, UNDECIDED)
        assert isinstance(evaluation, Evaluation)
        for model, value in zip(found, evaluation.residuals, strict=True):
            centre, rest = at(model, d)
            assert abs(centre - value) <= rest * (1 + 1e-9) + 1e-7
            outside += abs(centre - value) > 1e-5
    assert outside > 0


def test_a_box_of_one_point_is_enclosed_to_nine_digits() -> None:
    problem = ten()["dose"]
    point = np.array([0.7, 1.1])
    found, box = enclosed_residuals(statement_of(problem), point, point)
    evaluation = ForwardMap(problem).evaluate(point, UNDECIDED)
    assert isinstance(evaluation, Evaluation)
    known = bounds([Part.square(r) for r in found], box.ring)
    assert float(known.upper) == pytest.approx(evaluation.objective, rel=1e-6)
    assert known.lower <= known.upper
    assert float(known.upper - known.lower) <= 1e-9 * float(known.upper)


def test_an_interval_of_a_thin_box_holds_the_exact_solution() -> None:
    problem = ten()["decay"]
    k = 0.7
    found, _ = enclosed_residuals(statement_of(problem), np.array([k]), np.array([k]))
    condition = statement_of(problem)["conditions"][0]
    begin = condition["segments"][0]["begin"]
    for model, entry in zip(found, condition["data"], strict=True):
        exact = ((-arb(k) * arb(entry["time"] - begin)).exp() - arb(entry["value"])) / arb(
            entry["sd"]
        )
        assert model.range.overlaps(exact)
        assert float(model.range.rad()) < 1e-9
