"""Residuals, their Jacobian, the cost and the likelihood."""

from __future__ import annotations

import math
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import stats

from odefit import Event, Experiment, ForwardMap, InputError, Model, Problem
from odefit.simulation import Evaluation, Failure, residual_table, simulate
from odefit.simulation.engines.registry import EngineName
from tests.simulation.numerics import Array, differences, evaluated, simulated
from tests.simulation.zoo import NOISE, ZOO, measured_with

ENGINES: tuple[EngineName, ...] = ("heyoka", "runge-kutta", "bdf", "casadi")


@pytest.mark.parametrize("name", ZOO)
def test_the_jacobian_is_that_of_the_residuals(name: str) -> None:
    problem, vector = ZOO[name]()
    forward = ForwardMap(problem)
    found = evaluated(forward, vector)
    expected = differences(lambda v: evaluated(forward, v).residuals, vector, 1e-3)
    assert found.jacobian == pytest.approx(expected, rel=1e-5, abs=1e-6)
    assert len(found.residuals) == problem.size


@pytest.mark.parametrize("name", ZOO)
def test_residuals_are_predicted_minus_measured(name: str) -> None:
    """In the order of experiments, observables and times, by the other way through simulate."""
    problem, vector = ZOO[name]()
    expected = []
    for condition in problem.conditions:
        simulation = simulate(problem, vector, experiment=condition.name)
        assert not isinstance(simulation, Failure)
        for observable, series in condition.series.items():
            expected += list(simulation.observables[observable][series.rows] - series.values)
    found = evaluated(ForwardMap(problem), vector)
    assert found.residuals == pytest.approx(np.array(expected), rel=1e-6, abs=1e-7)
    assert found.objective == pytest.approx(found.residuals @ found.residuals)
    assert found.log_likelihood is None


@pytest.mark.parametrize("name", NOISE)
def test_the_gradient_of_the_cost_is_jacobian_times_residuals(name: str) -> None:
    problem, vector = NOISE[name]()
    forward = ForwardMap(problem)
    found = evaluated(forward, vector)
    expected = differences(lambda v: evaluated(forward, v).cost, vector, 1e-3)
    assert found.jacobian.T @ found.residuals == pytest.approx(expected, rel=1e-6, abs=1e-8)


def log_density(problem: Problem, vector: Array) -> float:
    """Of all measurements, by SciPy's distributions and the sds written out by hand."""
    values = dict(zip(problem.keys, vector, strict=True))
    k, s, x0 = values["k"], values["s"], values["x"]
    condition = problem.conditions[0]
    x = x0 * np.exp(-k * condition.times)
    predicted = {"y": s * x, "z": 1 - x / 2}
    total = 0.0
    for name, series in condition.series.items():
        noise = problem.noise.get(name, None)
        mean = predicted[name][series.rows]
        measured = series.values
        if series.sds is not None:
            sd = series.sds
        elif noise is None or (noise.sd is None and noise.relative is None):
            sd = np.ones(len(measured))
        elif noise.relative is not None:
            sd = noise.relative * np.abs(measured)
        elif noise.sd == "estimate":
            sd = np.full(len(measured), values[f"{name}_sd"])
        else:
            text = str(noise.sd)
            names = {n: p[series.rows] for n, p in predicted.items()}
            sd = eval(text, {"abs": np.abs}, {**values, **names}) * np.ones(len(measured))
        transform = None if noise is None else noise.transform
        if transform == "log":
            total += float(np.sum(stats.lognorm(s=sd, scale=mean).logpdf(measured)))
        elif transform == "log10":
            density = stats.norm(np.log10(mean), sd).logpdf(np.log10(measured))
            total += float(np.sum(density - np.log(measured * math.log(10))))
        else:
            total += float(np.sum(stats.norm(mean, sd).logpdf(measured)))
    return total


@pytest.mark.parametrize("name", [n for n in NOISE if n not in {"none", "a prior"}])
def test_the_log_likelihood_is_that_of_scipy(name: str) -> None:
    problem, vector = NOISE[name]()
    found = evaluated(ForwardMap(problem), vector)
    if name == "log, unweighted":
        assert found.log_likelihood is None
        return
    assert found.log_likelihood == pytest.approx(log_density(problem, vector), rel=1e-9)


@pytest.mark.parametrize("name", NOISE)
def test_differences_of_cost_are_those_of_the_posterior(name: str) -> None:
    """What is minimised is the negative logarithm of likelihood times prior, but for a constant."""
    problem, vector = NOISE[name]()
    forward = ForwardMap(problem)

    def posterior(v: Array) -> float:
        total = log_density(problem, v)
        for value, unknown in zip(v, problem.unknowns, strict=True):
            prior = unknown.parameter.prior
            if prior is not None:
                assert prior.mean is not None
                assert prior.sd is not None
                total += float(stats.norm(prior.mean, prior.sd).logpdf(value))
        return total

    moved = vector * 1.1
    gained = evaluated(forward, moved).cost - evaluated(forward, vector).cost
    assert gained == pytest.approx(posterior(vector) - posterior(moved), rel=1e-8)


@pytest.mark.parametrize("name", [*ZOO, *NOISE])
def test_the_cost_alone_is_the_cost_of_the_evaluation(name: str) -> None:
    problem, vector = {**ZOO, **NOISE}[name]()
    for engine in ("auto", "bdf", "casadi"):
        forward = ForwardMap(problem, engine)
        cost = evaluated(forward, vector).cost
        assert forward.cost(vector) == pytest.approx(cost, rel=1e-6, abs=1e-9)


def test_a_cost_that_is_not_defined_is_infinite() -> None:
    problem = Problem(
        Model(ode={"x": "k*x^2"}), {"t": [0.0, 2.0], "x": [1.0, 1.0]}, {"k": {}}, {"x": 1.0}
    )
    assert ForwardMap(problem).cost(np.array([1.0])) == math.inf


def test_an_estimated_sd_has_the_known_fisher_information() -> None:
    """2 n / sigma^2 for n measurements, whatever the residuals."""
    problem, vector = NOISE["estimated"]()
    found = evaluated(ForwardMap(problem), vector)
    k = problem.keys.index("y_sd")
    # The part of the sd in r' scatters around zero; at residuals of one sd it is 3 (1 + 2).
    j = found.jacobian[:, k]
    n = len(problem.conditions[0].series["y"].values)
    sigma = vector[k]
    without = j[n:] @ j[n:]
    assert without == pytest.approx(2 * n / sigma**2)


# Random models --------------------------------------------------------------------------------

rates = st.floats(0.1, 2.0)


@st.composite
def mass_action(draw: st.DrawFn) -> tuple[Problem, Array]:
    """A closed network of reactions A -> B and A + B -> C with unknown rates and starts."""
    species = [f"s{i}" for i in range(draw(st.integers(2, 4)))]
    one = st.sampled_from(species)
    terms: dict[str, list[str]] = {s: [] for s in species}
    parameters = []
    for number in range(draw(st.integers(1, 4))):
        reactants = draw(st.lists(one, min_size=1, max_size=2))
        product = draw(one)
        rate = "*".join([f"k{number}", *reactants])
        parameters.append(f"k{number}")
        for reactant in reactants:
            terms[reactant].append(f"- {rate}")
        terms[product].append(f"+ {rate}")
    ode = {s: f"0*{s} " + " ".join(t) for s, t in terms.items()}
    known = draw(st.booleans())
    initial: dict[str, Any] = {s: (0.7 if known and s == "s0" else {}) for s in species}
    times = np.array([0.0, 0.4, 1.5])
    data = {"t": times, "y": np.ones(3), "z": np.ones(3)}
    observables = {"y": f"scale*{draw(one)} + {draw(one)}", "z": f"exp(-{draw(one)})"}
    problem = Problem(
        Model(ode=ode, observables=observables),
        data,
        {p: {} for p in (*parameters, "scale")},
        initial,
    )
    return problem, np.array(
        draw(st.lists(rates, min_size=len(problem.keys), max_size=len(problem.keys)))
    )


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(mass_action(), st.sampled_from(ENGINES))
def test_the_jacobian_of_any_reaction_network_is_right(
    case: tuple[Problem, Array], engine: EngineName
) -> None:
    problem, vector = case
    forward = ForwardMap(problem, engine)
    expected = differences(lambda v: evaluated(forward, v).residuals, vector, 1e-2)
    assert evaluated(forward, vector).jacobian == pytest.approx(expected, rel=1e-5, abs=2e-6)


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(1, 3).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, 2**31))))
def test_a_linear_system_is_its_matrix_exponential(drawn: tuple[int, int]) -> None:
    from scipy.linalg import expm

    n, seed = drawn
    random = np.random.default_rng(seed)
    a, start = random.normal(size=(n, n)), random.normal(size=n)
    names = [f"x{i}" for i in range(n)]
    ode = {
        names[i]: " + ".join(
            f"({a[i, j]!r})*{names[j]}".replace("np.float64", "") for j in range(n)
        )
        for i in range(n)
    }
    times = np.array([0.0, 0.5, 2.0])
    data = {"t": times, **{name: np.zeros(3) for name in names}}
    problem = Problem(Model(ode=ode), data, {}, {name: {} for name in names})
    found = evaluated(ForwardMap(problem), start)
    powers = [expm(a * t) for t in times]
    expected = np.array([p @ start for p in powers])
    assert found.residuals == pytest.approx(expected.T.ravel(), rel=1e-9, abs=1e-10)
    by_start = np.array(powers).transpose(1, 0, 2).reshape(3 * n, n)
    assert found.jacobian == pytest.approx(by_start, rel=1e-9, abs=1e-10)


# Calls ----------------------------------------------------------------------------------------


def test_another_accuracy_is_made_once_and_leaves_the_forward_map_as_it_was() -> None:
    problem, at = next(iter(ZOO.values()))()
    forward = ForwardMap(problem, "bdf", 1e-9)
    before = evaluated(forward, at).residuals
    coarse = forward.with_accuracy(1e-3, controlled=False)
    assert forward.with_accuracy(1e-3, controlled=False) is coarse
    assert forward.with_accuracy(1e-3) is not coarse
    assert forward.with_accuracy(1e-9) is forward
    assert coarse.arguments == (problem, "bdf", 1e-3, None, None, False)
    other = evaluated(coarse, at).residuals
    np.testing.assert_array_equal(other, evaluated(ForwardMap(*coarse.arguments), at).residuals)
    np.testing.assert_array_equal(evaluated(forward, at).residuals, before)
    assert (other != before).any()


def test_a_batch_counts_as_many_evaluations() -> None:
    problem, vector = NOISE["estimated"]()
    vectors = np.array([vector, 1.1 * vector, np.full(len(vector), -1.0)])
    forward = ForwardMap(problem)
    one, two, bad = forward.batch(vectors)
    assert isinstance(bad, Failure)
    for found, v in ((one, vectors[0]), (two, vectors[1])):
        assert isinstance(found, Evaluation)
        assert np.array_equal(found.residuals, evaluated(forward, v).residuals)


@pytest.mark.slow
def test_a_batch_may_go_to_other_processes() -> None:
    problem, vector = NOISE["a number"]()
    vectors = np.outer(np.linspace(0.5, 1.5, 5), vector)
    here = ForwardMap(problem).batch(vectors)
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as executor:
        there = ForwardMap(problem).batch(vectors, executor)
    for a, b in zip(here, there, strict=True):
        assert isinstance(a, Evaluation)
        assert isinstance(b, Evaluation)
        assert np.array_equal(a.jacobian, b.jacobian)


def test_an_evaluation_leaves_the_vector_and_the_problem_alone() -> None:
    problem, vector = NOISE["estimated"]()
    before = vector.copy()
    forward = ForwardMap(problem)
    first = evaluated(forward, vector)
    first.residuals[:] = 7.0
    first.jacobian[:] = 7.0
    second = evaluated(forward, vector)
    assert np.array_equal(vector, before)
    assert not (second.residuals == 7.0).any()
    assert not (second.jacobian == 7.0).any()


@pytest.mark.parametrize("times", [[1.0, 0.5], [1.0, 1.0], [-1.0, 1.0], [np.nan], [np.inf, 1.0]])
def test_unusable_times_are_refused(times: list[float]) -> None:
    problem, vector = measured_with(None)
    with pytest.raises(InputError, match="times"):
        simulate(problem, vector, np.array(times))


def test_without_times_there_are_no_rows() -> None:
    problem, vector = measured_with(None)
    found = simulated(problem, vector, np.array([]))
    assert found.states["x"].shape == (0,)


def test_an_experiment_that_does_not_exist_is_refused() -> None:
    problem, vector = measured_with(None)
    with pytest.raises(InputError, match="unknown experiment 'dta'; did you mean 'data'"):
        simulate(problem, vector, experiment="dta")


@pytest.mark.parametrize("name", NOISE)
def test_the_table_of_residuals_is_standardised(name: str) -> None:
    problem, vector = NOISE[name]()
    tables = residual_table(problem, vector)
    assert not isinstance(tables, Failure)
    squares = sum(float(t.standardized @ t.standardized) for t in tables)
    prior = sum(
        ((v - u.parameter.prior.mean) / u.parameter.prior.sd) ** 2
        for v, u in zip(vector, problem.unknowns, strict=True)
        if u.parameter.prior
    )
    assert squares + prior == pytest.approx(evaluated(ForwardMap(problem), vector).objective)
    assert [t.observable for t in tables] == ["y", "z"]
    assert tables[0].predicted == pytest.approx(1.3 * 1.5 * np.exp(-0.4 * tables[0].times))


def test_residuals_need_no_derivatives() -> None:
    """Of sqrt(x) at x(0) = 0 that is estimated they are infinite, and x = k t is plain."""
    times = np.array([0.0, 1.0, 4.0])
    model = Model(ode={"x": "k"}, observables={"m": "sqrt(x) + s"}, constants={"s": 0.5})
    data = {"t": times, "m": np.array([0.1, 1.0, 1.5])}
    event = Event((2.0,), {"s": "s + k"})
    run = Experiment("run", data, events=(event,))
    given = Problem(model, parameters={"k": {}}, initial={"x": {"lower": 0.0}}, experiments=[run])
    assert isinstance(ForwardMap(given).evaluate(np.array([1.0, 0.0])), Failure)
    tables = residual_table(given, np.array([1.0, 0.0]))
    assert not isinstance(tables, Failure)
    assert tables[0].predicted == pytest.approx([0.5, 1.5, 3.5])


def test_a_failure_takes_the_place_of_the_table() -> None:
    problem, vector = NOISE["log"]()
    vector[problem.keys.index("s")] = -1.0
    assert isinstance(residual_table(problem, vector), Failure)
