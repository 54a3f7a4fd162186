"""The objective of an answer agrees with the bounds that are proved for it, or there are none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from odefit import BranchAndBound, Model, MultiStart, Problem, SingleShooting, Status, fit
from odefit.methods.estimate import Certificate, Estimate
from odefit.methods.method import Method
from odefit.methods.running.control import Control
from odefit.simulation import Evaluation, Failure, ForwardMap
from odefit.simulation.trajectories.trajectory import Trajectory

TIMES = np.linspace(0.0, 4.0, 9)
VALUES = 2.0 * np.exp(-0.7 * TIMES) + 0.05 * np.cos(9.0 * TIMES)


def decay() -> Problem:
    return Problem(
        Model(ode={"x": "-k*x"}),
        {"t": TIMES, "x": VALUES},
        {"k": {"lower": 0.1, "upper": 5.0}},
        {"x": {"lower": 0.5, "upper": 5.0}},
    )


def least_squares() -> float:
    """The smallest objective, from the exact solution."""

    def at(rate: float) -> float:
        shape = np.exp(-rate * TIMES)
        return float(np.sum((shape @ VALUES / (shape @ shape) * shape - VALUES) ** 2))

    found = minimize_scalar(at, bounds=(0.1, 5.0), method="bounded", options={"xatol": 1e-12})
    return float(found.fun)


@dataclass(frozen=True)
class Claiming(Method):
    """A method that claims bounds for what single shooting finds."""

    lower: float
    upper: float
    discretised: bool = False

    @property
    def name(self) -> str:
        return "Claiming"

    def solve(self, problem: Problem, control: Control) -> Estimate:
        found = MultiStart(SingleShooting(), starts=2).solve(problem, control)
        proof = Certificate(
            self.lower,
            self.upper,
            "as claimed",
            discretised=self.discretised,
            solver="a claim",
            closed=True,
        )
        return replace(found, certificate=proof)


@pytest.mark.slow
def test_an_answer_below_its_lower_bound_has_no_certificate() -> None:
    result = fit(decay(), Claiming(1.0, 1.1), seed=1)
    assert result.objective == pytest.approx(least_squares(), rel=1e-6)
    assert result.assessment.bounds is None
    told = [w for w in result.warnings if w.startswith("No certificate is given")]
    assert len(told) == 1
    assert "was below 1, which is proved to be a lower bound" in told[0]
    assert result.assessment.local is not None
    assert "not proved" in result.assessment.local.sentence


@pytest.mark.slow
def test_an_answer_above_what_was_found_has_no_certificate() -> None:
    result = fit(decay(), Claiming(1e-5, 1.1e-5), seed=1)
    assert result.assessment.bounds is None
    assert any("was above 1.1e-05, which is proved to be reached" in w for w in result.warnings)


@pytest.mark.parametrize("difference", [0.0, 1e-12])
def test_rounding_does_not_make_a_contradiction(difference: float) -> None:
    least = least_squares()
    lower = least * (1.0 + difference)
    result = fit(decay(), Claiming(lower, lower), seed=1)
    assert result.assessment.bounds is not None
    assert result.warnings == ()


def test_bounds_of_a_discretised_problem_say_nothing_of_the_integrated_one() -> None:
    result = fit(decay(), Claiming(1.0, 1.1, discretised=True), seed=1)
    assert result.assessment.bounds is not None


@pytest.mark.slow
@pytest.mark.parametrize("factor", [0.1, 10.0])
@pytest.mark.parametrize("certify", [False, True])
def test_a_wrongly_integrated_answer_is_integrated_again(
    factor: float, certify: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    evaluate_along = ForwardMap.evaluate_along

    def wrong(
        self: ForwardMap,
        vector: np.ndarray,
        trajectories: Sequence[Trajectory],
        *,
        derivatives: bool = True,
    ) -> Evaluation | Failure:
        found = evaluate_along(self, vector, trajectories, derivatives=derivatives)
        if isinstance(found, Failure) or self.engines.setting != "auto":
            return found
        return replace(
            found,
            residuals=factor * found.residuals,
            jacobian=factor * found.jacobian,
            cost=factor**2 * found.cost,
            objective=factor**2 * found.objective,
        )

    monkeypatch.setattr(ForwardMap, "evaluate_along", wrong)
    method = MultiStart(SingleShooting(), starts=2) if certify else BranchAndBound(starts=2)
    result = fit(decay(), method, seed=1, certify=certify)
    assert result.status is Status.CONVERGED
    assert result.objective == pytest.approx(least_squares(), rel=1e-5)
    bounds = result.assessment.bounds
    assert bounds is not None
    assert bounds.lower <= result.objective <= bounds.upper * (1 + 1e-6)
    assert any("integrated again by the engine bdf" in w for w in result.warnings)
