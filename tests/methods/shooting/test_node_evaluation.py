"""An answer on nodes is worth what it is worth on one trajectory."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import odefit
from odefit import ForwardMap, Problem, Status, library
from odefit.assessment.intervals.uncertainty import assess_uncertainty
from odefit.assessment.local import assess_local
from odefit.methods.shooting.node_evaluation import evaluate_nodes
from odefit.simulation import Evaluation, Failure
from odefit.simulation.nodes import Nodes
from tests.methods.problems import decay, oscillator
from tests.methods.shooting.instances import bock, columns, exchange
from tests.simulation.numerics import Array
from tests.simulation.sampling import nodes_on


def noisy(name: str, size: float = 0.05) -> Problem:
    """A library problem with noise of a relative size."""
    problem = library.load(name)
    random = np.random.default_rng(1)
    data = {}
    for key, column in columns(problem).items():
        if key == "t":
            data[key] = column
        else:
            spread = size * np.nanmax(np.abs(column))
            data[key] = column + spread * random.normal(size=len(column))
    return Problem(
        problem.model, data, problem.parameters, problem.initial, t0=problem.conditions[0].t0
    )


def scaled() -> Problem:
    return exchange(
        parameters={"k1": {"scale": "log10"}, "k2": {"prior": {"mean": 0.4, "sd": 0.05}}},
        noise={"x": {"sd": "estimate"}, "y": {"sd": 0.02}},
    )


def ridge() -> Problem:
    """Only the product of scale and initial value is seen."""
    return decay(initial={"x": {"lower": 0.0}})


PROBLEMS: dict[str, Callable[[], Problem]] = {
    "exchange": exchange,
    "scales, prior, estimated noise": scaled,
    "decay": decay,
    "oscillator": oscillator,
    "lotka-volterra": lambda: noisy("lotka-volterra-f"),
    "sir": lambda: noisy("sir", 0.02),
    "alpha-pinene": lambda: library.load("alpha-pinene"),
    "doses and switches": lambda: switched(),
}


def switched() -> Problem:
    from odefit import Event, Experiment, Model

    random = np.random.default_rng(0)
    t = np.linspace(0.0, 6.0, 25)
    x = np.where(t <= 2, np.exp(-0.8 * t), 0.0)
    x = np.where(t > 2, (np.exp(-1.6) + 1) * np.exp(-0.2 * (t - 2)), x)
    data = {"t": t, "x": x + 0.02 * random.normal(size=25)}
    return Problem(
        Model(ode={"x": "-k*x*on"}, constants={"on": 1.0}),
        parameters={"k": {}, "f": {}},
        initial={"x": {}},
        experiments=[
            Experiment("run", data, events=[Event((2.0,), {"x": "x + 1", "on": "f"})]),
        ],
    )


def cuts_of(problem: Problem) -> list[Array]:
    found = []
    for c in problem.conditions:
        inner = c.times[(c.times > c.t0) & (c.times < c.times[-1])]
        found.append(np.concatenate([[c.t0], inner[1::3]]))
    return found


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(
            n,
            marks=pytest.mark.slow
            if n in {"alpha-pinene", "lotka-volterra", "sir", "decay"}
            else (),
        )
        for n in PROBLEMS
    ],
)
def test_covariance_and_optimality_are_those_of_the_single_integration(name: str) -> None:
    problem = PROBLEMS[name]()
    result = odefit.fit(problem, odefit.MultiStart(starts=3), jobs=1)
    assert result.status is Status.CONVERGED
    forward = ForwardMap(problem)
    vector = result.best.vector
    nodes = nodes_on(forward, vector, cuts_of(problem))
    found = evaluate_nodes(problem, vector, nodes)
    assert not isinstance(found, Failure)
    evaluation, gap = found
    assert gap < 1e-7
    single = forward.evaluate(vector)
    assert isinstance(single, Evaluation)
    assert evaluation.objective == pytest.approx(single.objective, rel=1e-7)
    assert evaluation.jacobian.T @ evaluation.jacobian == pytest.approx(
        single.jacobian.T @ single.jacobian, rel=1e-4, abs=1e-6 * np.abs(single.jacobian).max() ** 2
    )
    through = ForwardMap(problem, nodes=nodes)
    one = assess_uncertainty(forward, vector, single)
    other = assess_uncertainty(through, vector, evaluation)
    if forward.likelihood:
        # The rows of the condensed problem are no measurements: they have no leverages.
        assert "maximum likelihood estimate" in other.sentence
        assert (other.standard_errors <= one.standard_errors).all()
        return
    assert other.standard_errors == pytest.approx(one.standard_errors, rel=1e-4)
    assert other.correlation == pytest.approx(one.correlation, rel=1e-4, abs=1e-4)
    assert other.degrees_of_freedom == one.degrees_of_freedom
    assert assess_local(through, vector, evaluation).optimal


@pytest.mark.slow
@pytest.mark.parametrize(
    "noise",
    [{"distribution": "poisson"}, {"loss": "student", "sd": 5.0}],
    ids=["counts", "student"],
)
def test_answers_on_nodes_have_standard_errors_where_noise_is_not_normal(
    noise: dict[str, object],
) -> None:
    """The Fisher information of the nodes is none of the unknowns alone.

    Standard errors on nodes are those of large samples, so that there are many values.
    """
    times = np.linspace(0.0, 4.0, 90)
    counts = np.random.default_rng(4).poisson(200 * np.exp(-0.7 * times))
    data = {"t": times, "y": counts}
    plain = decay()
    problem = Problem(plain.model, data, plain.parameters, plain.initial, noise={"y": noise})
    result = odefit.fit(problem, odefit.SingleShooting())
    vector, forward = result.best.vector, ForwardMap(problem)
    nodes = nodes_on(forward, vector, cuts_of(problem))
    found = evaluate_nodes(problem, vector, nodes)
    assert not isinstance(found, Failure)
    through = ForwardMap(problem, nodes=nodes)
    other = assess_uncertainty(through, vector, found[0])
    assert result.uncertainty is not None
    assert other.standard_errors == pytest.approx(result.uncertainty.standard_errors, rel=0.1)


def test_the_gradient_too_is_that_of_the_single_integration() -> None:
    problem = exchange()
    forward = ForwardMap(problem)
    vector = np.array([0.5, 0.5, 0.9, 0.2])  # no optimum
    found = evaluate_nodes(problem, vector, nodes_on(forward, vector, cuts_of(problem)))
    assert not isinstance(found, Failure)
    single = forward.evaluate(vector)
    assert isinstance(single, Evaluation)
    expected = single.jacobian.T @ single.residuals
    assert found[0].jacobian.T @ found[0].residuals == pytest.approx(expected, rel=1e-4)
    local = assess_local(forward, vector, found[0])
    assert not local.optimal
    assert local.gradient == pytest.approx(assess_local(forward, vector, single).gradient, rel=1e-3)


def test_a_direction_without_effect_is_undetermined_on_nodes_too() -> None:
    problem = ridge()
    vector = problem.vector({"k": 0.7, "s": 2.0, "x": 1.0})
    forward = ForwardMap(problem)
    nodes = nodes_on(forward, vector, cuts_of(problem))
    found = evaluate_nodes(problem, vector, nodes)
    assert not isinstance(found, Failure)
    said = assess_uncertainty(ForwardMap(problem, nodes=nodes), vector, found[0])
    assert said.rank == 2
    assert np.isfinite(said.standard_errors).tolist() == [True, False, False]
    (direction,) = said.directions
    assert set(direction.keys) == {"s", "x"}


def test_a_discontinuous_trajectory_is_reported_with_its_gap() -> None:
    problem = exchange()
    vector = np.array([0.6, 0.4, 1.0, 0.1])
    nodes = nodes_on(ForwardMap(problem), vector, [np.array([0.0, 5.0])])
    moved = Nodes(nodes.times, (nodes.values[0] + [[0.0, 0.0], [0.2, 0.0]],))
    found = evaluate_nodes(problem, vector, moved)
    assert not isinstance(found, Failure)
    # Of the size of x, the largest measurement.
    assert found[1] == pytest.approx(0.2 / columns(problem)["x"].max(), rel=1e-3)


def test_nodes_that_cannot_be_integrated_are_a_failure() -> None:
    from tests.methods.problems import explosive

    nodes = Nodes((np.array([0.0, 2.0]),), (np.array([[1.0], [1e5]]),))
    found = evaluate_nodes(explosive(), np.array([0.1]), nodes)
    assert isinstance(found, Failure)


@pytest.mark.parametrize("mu", [20.0, pytest.param(60.0, marks=pytest.mark.slow), 120.0])
def test_errors_far_below_rounding_cast_no_doubt_on_the_optimum(mu: float) -> None:
    """Bock's p is fixed to 1e-20 by the data: any rounding is a thousand standard errors."""
    problem = bock(mu, noise=0.05)
    result = odefit.fit(problem, odefit.MultipleShooting(starts=1))
    assert result.status is Status.CONVERGED
    assert result.assessment.local is not None
    assert result.assessment.local.optimal
    assert result.best.vector == pytest.approx([np.pi], rel=1e-8)
    assert result.uncertainty is not None
    assert 0 <= result.uncertainty.standard_errors[0] < 1e-7
