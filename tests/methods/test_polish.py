"""The answer of a search: an end that reproduces the data to rounding stays, others improve."""

from __future__ import annotations

import numpy as np
import pytest

from odefit import ForwardMap, Model, Problem, library
from odefit.methods.estimate import Estimate, Start, Status
from odefit.methods.local.cost_tolerance import CostTolerance
from odefit.methods.polish import Answer, answer_by, past_rounding
from odefit.methods.running.control import Control
from odefit.simulation import Evaluation

TRUTH = {"a": 1.0, "b": 1.0, "c": 1.0, "d": 1.0, "x": 0.0, "y": 0.1, "px": 0.56, "py": 0.1}


def answered(exact: bool) -> tuple[Answer, ForwardMap]:
    """Return the answer from the truth of a chaotic system, integrated by the implicit engine."""
    problem = library.load("henon-heiles")
    vector = problem.vector(TRUTH)
    forward = ForwardMap(problem, "bdf")
    end = Start(0, vector, vector, 0.0, Status.CONVERGED, "", 1, 0.0, 0.0, exact=exact)
    estimate = Estimate((end,), Status.CONVERGED, "")
    found = answer_by(forward, end, estimate, Control(), True)
    assert isinstance(found, Answer)
    return found, forward


def test_an_exact_end_stays_and_is_integrated_more_finely() -> None:
    found, forward = answered(exact=True)
    assert found.start.exact
    assert np.array_equal(found.start.vector, forward.problem.vector(TRUTH))
    coarse = forward.cost(found.start.vector)
    assert coarse > CostTolerance.of(forward).absolute
    assert found.evaluation.cost < 1e-2 * coarse
    assert found.forward.cost(found.start.vector) < 1e-2 * coarse


def test_steps_past_rounding_lead_through_higher_costs_to_the_truth() -> None:
    """Two rates that nearly agree: the cost is at rounding where they are wrong by a hundredth."""
    times, truth = np.linspace(0.0, 1.0, 21), np.array([0.5, 0.52, 1.0, 1.0])
    positive = {"lower": 0.01, "upper": 9.0}
    problem = Problem(
        Model(ode={"x": "-a*x", "z": "-b*z"}, observables={"y": "x + z"}),
        {"t": times, "y": np.exp(-0.5 * times) + np.exp(-0.52 * times)},
        {"a": positive, "b": positive},
        {"x": positive, "z": positive},
        t0=0.0,
    )
    forward = ForwardMap(problem)
    at = forward.evaluate(truth)
    assert isinstance(at, Evaluation)
    weakest = np.linalg.svd(at.jacobian)[2][-1]
    end = truth + 0.01 * weakest
    assert CostTolerance.of(forward).negligible(forward.cost(end))
    once = forward.evaluate(end)
    assert isinstance(once, Evaluation)
    step = np.linalg.lstsq(once.jacobian, once.residuals)[0]
    assert forward.cost(end - step) > 2 * once.cost
    found = past_rounding(forward, end)
    assert found == pytest.approx(truth, abs=1e-7)
    assert past_rounding(forward, truth) == pytest.approx(truth, abs=1e-7)


def test_an_end_with_residuals_is_improved() -> None:
    found, forward = answered(exact=False)
    assert found.evaluation.cost < forward.cost(forward.problem.vector(TRUTH))
    assert not np.array_equal(found.start.vector, forward.problem.vector(TRUTH))


@pytest.mark.parametrize("upper", [None, 1.0])
def test_the_answer_reaches_a_bound_that_the_search_has_all_but_reached(
    upper: float | None,
) -> None:
    """The data would have c = -0.1; a last step of 1e-14 promises nothing, but names the bound."""
    times = np.linspace(0.0, 4.0, 9)
    noise = 0.01 * np.cos(7.0 * times)
    data = {"t": times, "x": 2.0 * np.exp(-times) - 0.1 * (1 - np.exp(-times)) + noise}
    bounds = {"lower": 0.0} | ({} if upper is None else {"upper": upper})
    unknowns = {"k": {"lower": 0.0}, "c": bounds}
    problem = Problem(Model(ode={"x": "-k*x + c"}), data, unknowns, {"x": 2.0})

    def answered_from(**values: float) -> Answer:
        vector = problem.vector(values)
        end = Start(0, vector, vector, 1.0, Status.CONVERGED, "", 1, 0.0, 0.5)
        estimate = Estimate((end,), Status.CONVERGED, "")
        found = answer_by(ForwardMap(problem), end, estimate, Control(), True)
        assert isinstance(found, Answer)
        return found

    optimum = answered_from(k=1.09, c=0.0).start.vector
    k = float(optimum[problem.keys.index("k")])
    found = answered_from(k=k, c=1e-14)
    assert found.start.vector.tolist() == pytest.approx(optimum.tolist(), rel=1e-9)
    assert found.start.vector[problem.keys.index("c")] == 0.0
    assert found.start.cost == pytest.approx(found.evaluation.cost)
