"""Residuals in whole arrays: the same as one observable and condition at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from odefit import Event, Experiment, ForwardMap, Model, Parameter, Problem
from odefit.expressions.algebras import DUAL, Dual
from odefit.expressions.expressions import Expression
from odefit.problem.binding import scalar_value
from odefit.problem.condition import Condition
from odefit.problem.noise import Noise
from odefit.simulation import Evaluation, Failure
from tests.simulation.numerics import Array, evaluated
from tests.simulation.zoo import NOISE, ZOO, Case


def one_at_a_time(problem: Problem, vector: Array) -> tuple[Array, Array, float]:
    """Residuals, Jacobian and cost by dual numbers, condition by condition, written out again."""
    forward, n = ForwardMap(problem), len(vector)
    values, rows, cost = [], [], 0.0
    for condition in problem.conditions:
        trajectory = forward.trajectory(vector, condition.name)
        assert not isinstance(trajectory, Failure)
        predicted = forward.predictions(condition, vector, trajectory, noise=True)
        for name, series in condition.series.items():
            noise, count = problem.noise.get(name, Noise()), len(series.values)
            model, measured = predicted[name].take(series.rows, len(condition.times)), series.values
            if noise.transform is not None:
                model = DUAL.call(noise.transform, [model])
                measured = np.log(measured) / (1 if noise.transform == "log" else np.log(10))
            sd = spread(problem, condition, vector, predicted, name)
            relative = sd.gradient(n, count) / sd.array(count)[:, None]
            r, slope = noise.law.root((model.array(count) - measured) / sd.array(count))
            values.append(r)
            rows.append((slope / sd.array(count))[:, None] * model.gradient(n, count))
            cost += 0.5 * float(r @ r)
            if sd.partials:
                values.append((1 - r**2) / np.sqrt(2))
                rows.append(np.sqrt(2) * relative)
                cost += float(np.sum(np.log(sd.array(count))))
    return np.concatenate(values), np.concatenate(rows), cost


def spread(
    problem: Problem, condition: Condition, vector: Array, predicted: dict[str, Dual], name: str
) -> Dual:
    noise, series = problem.noise.get(name, Noise()), condition.series[name]
    if series.sds is not None or noise.relative is not None:
        own = np.abs(series.values) * (noise.relative or 0.0) if series.sds is None else series.sds
        return Dual(own)
    if noise.sd == "estimate":
        index = problem.keys.index(f"{name}_sd")
        return Dual(vector[index], {index: 1.0})
    if not isinstance(noise.sd, Expression):
        return Dual(noise.sd or 1.0)
    at = {
        other: predicted[other].take(series.rows, len(condition.times))
        if other in predicted
        else scalar_value(other, condition.scalars, vector)
        for other in noise.sd.names
    }
    found: Dual = noise.sd.evaluate(at, DUAL)
    return found


def many_conditions() -> Case:
    """Everything that may differ between conditions does: bindings, noise, events, inputs."""
    data = {
        "t": [0.0, 1.0, 2.0, 2.0, 3.0],
        "u": [0.0, 1.0, 0.5, 0.5, 2.0],
        "y": [1.0, np.nan, 0.7, 0.6, 0.2],
        "z": [1.0, 0.5, 0.3, np.nan, 0.1],
        "x": [1.0, 0.8, np.nan, np.nan, 0.3],
    }
    problem = Problem(
        Model(
            ode={"x": "-k*x*on + c*q + 0.1*u", "q": "k*x - q"},
            observables={"y": "s*(x + 2*q) + o*on", "z": "log(x + q + 1)*f + u", "x": "x"},
            constants={"on": 1.0, "c": 0.2, "o": 0.0, "f": 1.0, "s": 1.0},
            inputs={"u": "linear"},
        ),
        parameters={"k": {}, "s1": {}, "s2": {}, "noise": {}, "x0": Parameter(per_experiment=True)},
        initial={"x": "x0", "q": "s1^2/k"},
        noise={"y": {"sd": "noise*f + 0.01*z"}, "z": {"sd": "estimate"}, "x": {"sd": 0.3}},
        experiments=[
            Experiment("one", data, constants={"s": "s1", "o": "s2"}),
            Experiment("two", {**data, "y_sd": np.full(5, 0.2)}, constants={"s": "s2"}),
            Experiment("three", data, constants={"s": "s1*s2", "f": 2.0, "o": "noise"}),
            Experiment(
                "four",
                data,
                constants={"s": 0.5, "o": "s1"},
                events=[Event((1.5,), {"on": "on/2 + s2"}), Event((1.5,), {"x": "x*c"})],
            ),
        ],
    )
    return problem, np.linspace(0.4, 1.3, len(problem.keys))


def noise_of_everything() -> Case:
    """Standard deviations of states, algebraic variables, inputs, time and constants."""
    data = {
        "t": [0.0, 1.0, 2.0, 2.0, 3.0],
        "u": [0.0, 1.0, 0.5, 0.5, 2.0],
        "y": [1.0, np.nan, 0.7, 0.6, 0.2],
        "v": [1.0, 0.5, 0.3, 0.2, 0.1],
        "w": [0.1, 0.6, 0.7, 0.6, 0.2],
        "q": [1.0, 0.5, 0.3, 0.2, 0.1],
    }
    problem = Problem(
        Model(
            ode={"x": "-k*x*on + 0.1*u", "p": "k*x - p"},
            algebraic={"z": "z - x*p*on - 1"},
            observables={"y": "s*x", "v": "x + p", "w": "p", "q": "x"},
            constants={"on": 1.0},
            inputs={"u": "linear"},
        ),
        parameters={"k": {}, "s": {}, "a": {}},
        initial={"x": "2*s", "p": 0.5},
        noise={
            "y": {"sd": "0.1 + a*x^2 + 0.1*v"},
            "v": {"sd": "a*z + 0.1*u*on + 0.05*t"},
            "w": {"sd": "0.2 + 0.1*t + u"},
            "q": {"sd": "0.1 + 0.1*t", "loss": "student"},
        },
        experiments=[
            Experiment("one", data),
            Experiment("two", data, events=[Event((1.5,), {"on": "on/2 + a"})]),
        ],
    )
    return problem, np.array([0.7, 1.2, 0.3])


CASES = {
    **ZOO,
    **NOISE,
    "many conditions": many_conditions,
    "noise of everything": noise_of_everything,
}


@pytest.mark.parametrize("name", CASES)
def test_whole_arrays_are_the_same_as_one_observable_at_a_time(name: str) -> None:
    problem, vector = CASES[name]()
    residuals, jacobian, cost = one_at_a_time(problem, vector)
    found = evaluated(ForwardMap(problem), vector)
    count = len(residuals)
    assert found.residuals[:count] == pytest.approx(residuals, rel=1e-11, abs=1e-12)
    assert found.jacobian[:count] == pytest.approx(jacobian, rel=1e-9, abs=1e-10)
    priors = found.residuals[count:]
    assert found.cost == pytest.approx(cost + 0.5 * float(priors @ priors), rel=1e-10)


@pytest.mark.parametrize("engine", ["heyoka", "casadi"])
def test_the_cost_alone_has_the_logarithms_of_sds_that_depend_on_states(engine: str) -> None:
    problem = Problem(
        Model(ode={"x": "-k*x"}, observables={"y": "x"}),
        {"t": [0.0, 1.0, 2.0], "y": [1.0, 0.5, 0.3]},
        {"k": {}},
        {"x": 1.0},
        noise={"y": {"sd": "0.1 + 0.2*y"}},
    )
    forward = ForwardMap(problem, engine)  # type: ignore[arg-type]
    alone = forward.evaluate_cost(np.array([0.7]))
    assert isinstance(alone, Evaluation)
    whole = evaluated(forward, np.array([0.7]))
    assert alone.cost == pytest.approx(whole.cost, rel=1e-7)
    assert alone.log_likelihood == pytest.approx(whole.log_likelihood, rel=1e-7)


def test_a_failure_names_experiment_observable_and_time() -> None:
    problem = Problem(
        Model(ode={"x": "-k*x"}, observables={"y": "log(x - c)"}, constants={"c": 0.0}),
        parameters={"k": {}},
        initial={"x": 1.0},
        experiments=[
            Experiment("fine", {"t": [0.0, 1.0], "y": [0.0, -1.0]}),
            Experiment("beyond", {"t": [0.0, 1.0], "y": [0.0, -1.0]}, constants={"c": 0.5}),
        ],
    )
    found = ForwardMap(problem).evaluate(np.array([1.0]))
    assert isinstance(found, Failure)
    assert (found.experiment, found.time) == ("beyond", 1.0)
    assert found.reason == "observable 'y' is nan"


def test_a_derivative_of_zero_stays_zero_where_an_observable_is_infinitely_steep() -> None:
    """sqrt(x) at x = 0: x moves with b only where it has left zero."""
    problem = Problem(
        Model(ode={"x": "b"}, observables={"y": "sqrt(x) + a"}),
        {"t": [0.0, 1.0], "y": [1.0, 1.0]},
        {"a": {}, "b": {}},
        {"x": 0.0},
    )
    found = evaluated(ForwardMap(problem), problem.vector({"a": 2.0, "b": 4.0}))
    assert found.jacobian == pytest.approx(np.array([[1.0, 0.0], [1.0, 0.25]]), rel=1e-9)


def test_the_noise_follows_events_that_assign_its_constants() -> None:
    times = [0.0, 1.0, 2.0]
    problem = Problem(
        Model(ode={"x": "-k*x"}, observables={"y": "c*x"}, constants={"c": 1.0}),
        parameters={"k": {}},
        initial={"x": 1.0},
        noise={"y": {"sd": "0.1*c + 0.2*y"}},
        experiments=[
            Experiment("a", {"t": times, "y": times}, events=[Event((0.5,), {"c": "3"})]),
        ],
    )
    vector = np.array([0.7])
    x = np.exp(-0.7 * np.array(times))
    c = np.array([1.0, 3.0, 3.0])
    y = c * x
    found = evaluated(ForwardMap(problem), vector)
    assert found.residuals[:3] == pytest.approx((y - times) / (0.1 * c + 0.2 * y), rel=1e-9)
    assert found.residuals == pytest.approx(one_at_a_time(problem, vector)[0], rel=1e-10)


@pytest.mark.parametrize("engine", ["heyoka", "casadi"])
def test_derivatives_of_noise_that_depends_on_states_are_those_of_differences(engine: str) -> None:
    problem, vector = noise_of_everything()
    forward = ForwardMap(problem, engine)  # type: ignore[arg-type]
    found = evaluated(forward, vector)
    gradient = found.jacobian.T @ found.residuals
    for i, step in enumerate(1e-5 * np.eye(len(vector))):
        costs = [evaluated(forward, vector + s * step).cost for s in (1, -1)]
        assert gradient[i] == pytest.approx((costs[0] - costs[1]) / 2e-5, rel=1e-5, abs=1e-6)


def test_a_standard_deviation_that_is_not_positive_is_a_failure_with_its_reason() -> None:
    problem = Problem(
        Model(ode={"x": "-k*x"}, observables={"y": "x"}),
        {"t": [0.0, 1.0, 2.0], "y": [1.0, 0.5, 0.3]},
        {"k": {}},
        {"x": 1.0},
        noise={"y": {"sd": "x - 0.2"}},
    )
    assert isinstance(ForwardMap(problem).evaluate(np.array([0.5])), Evaluation)
    found = ForwardMap(problem).evaluate(np.array([1.0]))
    assert isinstance(found, Failure)
    assert found.time == 2.0
    assert found.reason == (
        "the standard deviation of 'y' is -0.0646647, and must be positive; "
        "write sqrt(a^2 + (...)^2) with a > 0 if y may reach zero"
    )


@pytest.mark.parametrize(
    "noise",
    [
        {"sd": "estimate"},
        {"sd": "0.05 + 0.1*s*x"},
        {"sd": "estimate", "transform": "log"},
        {"sd": "estimate", "distribution": "laplace"},
        {"sd": "estimate", "lower_limit": 1.5},
    ],
    ids=range(5),
)
def test_values_with_their_own_sd_and_others_count_by_the_sum_of_their_likelihoods(
    noise: dict[str, Any],
) -> None:
    """The same data twice: in one column, and as two experiments with one kind of value each."""
    sds = [None, 0.2, None, 0.1]
    data: dict[str, Any] = {"t": [0.5, 1.0, 1.5, 2.0], "x": [3.2, 2.4, 1.9, 1.3], "x_sd": sds}

    def forward(*rows: list[int]) -> ForwardMap:
        columns = [{name: [v[i] for i in part] for name, v in data.items()} for part in rows]
        return ForwardMap(
            Problem(
                Model(ode={"x": "-k*x"}),
                parameters={"k": {}, "s": {}} if "s*" in str(noise["sd"]) else {"k": {}},
                initial={"x": 5.0},
                noise={"x": noise},
                experiments=[
                    Experiment(f"run {i}", table, t0=0.0) for i, table in enumerate(columns)
                ],
            )
        )

    whole, apart = forward([0, 1, 2, 3]), forward([0, 2], [1, 3])
    assert len(whole.problem.unknowns) == len(apart.problem.unknowns) == 2
    for vector in (np.array([0.6, 0.4]), np.array([0.9, 1.3])):
        first, second = whole.evaluate(vector), apart.evaluate(vector)
        assert not isinstance(first, Failure)
        assert not isinstance(second, Failure)
        assert first.cost == pytest.approx(second.cost, rel=1e-12)
        assert first.log_likelihood == pytest.approx(second.log_likelihood, rel=1e-12)
        gradients = [e.jacobian.T @ e.residuals for e in (first, second)]
        np.testing.assert_allclose(gradients[0], gradients[1], rtol=1e-10)
        trajectories = whole.trajectories(vector)
        assert not isinstance(trajectories, Failure)
        (block,) = whole.series_residuals(vector, trajectories)
        assert not isinstance(block, Failure)
        found = block.sds
        assert found[[1, 3]].tolist() == [0.2, 0.1]
        assert (found[[0, 2]] > 0.05).all()
