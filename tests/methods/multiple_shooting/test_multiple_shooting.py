"""The method as users meet it: what it finds, what it says, and how it ends."""

from __future__ import annotations

import os
import signal
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

import odefit
from odefit import (
    Control,
    Event,
    Experiment,
    ForwardMap,
    InputError,
    Model,
    MultipleShooting,
    MultiStart,
    Problem,
    Progress,
    Result,
    Status,
    library,
)
from odefit.methods.estimate import Start
from odefit.methods.shooting.node_evaluation import evaluate_nodes
from odefit.methods.shooting.search import ShootingSearch
from odefit.reporting.figures.residual_data import residuals_of
from odefit.simulation import Failure, residual_table
from odefit.simulation.nodes import Nodes
from tests.methods.problems import decay, explosive, oscillator
from tests.methods.shooting.instances import LORENZ, bock, columns, exchange, lorenz
from tests.methods.shooting.test_node_evaluation import noisy, scaled, switched
from tests.methods.test_multi_start import essence
from tests.simulation.numerics import simulated
from tests.simulation.zoo import ZOO

NAN = float("nan")
ONE = MultipleShooting(starts=1)


def fitted(problem: Problem, **options: Any) -> Result:
    arguments: dict[str, Any] = {"starts": 1, **options}
    return odefit.fit(problem, MultipleShooting(**arguments), jobs=1)


# What it finds -----------------------------------------------------------------------------------


PUBLISHED = ("bock", "henon-heiles", "rikitake", "fitzhugh-nagumo-v", "sir", "lotka-volterra-f")


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=pytest.mark.slow if n == "rikitake" else ()) for n in PUBLISHED],
)
def test_exact_data_give_the_exact_values_from_one_start(name: str) -> None:
    result = fitted(library.load(name))
    assert result.status is Status.CONVERGED
    wanted = library.reference(name).parameters
    found = {k: result.best.parameters[k] for k in wanted}
    assert found == pytest.approx(wanted, rel=1e-6)


SHARED: dict[str, Callable[[], Problem]] = {
    "exchange": exchange,
    "decay": decay,
    "oscillator": oscillator,
    "scales, prior, estimated noise": scaled,
    "doses and switches": switched,
    "lotka-volterra": lambda: noisy("lotka-volterra-f"),
    "sir": lambda: noisy("sir", 0.02),
    "alpha-pinene": lambda: library.load("alpha-pinene"),
    "fitzhugh-nagumo": lambda: noisy("fitzhugh-nagumo-v"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SHARED)
def test_the_answer_is_that_of_single_shooting(name: str) -> None:
    problem = SHARED[name]()
    single = odefit.fit(problem, jobs=1)
    result = odefit.fit(problem, MultipleShooting(starts=2), jobs=1)
    assert result.status is Status.CONVERGED
    assert result.objective == pytest.approx(single.objective, rel=1e-5)
    assert result.best.vector == pytest.approx(single.best.vector, rel=1e-3, abs=1e-6)
    assert result.uncertainty is not None
    assert single.uncertainty is not None
    errors = single.uncertainty.standard_errors
    assert result.uncertainty.standard_errors == pytest.approx(errors, rel=1e-2)


@pytest.mark.parametrize(
    "nodes", [1, 5, [0.3, 3.33, 7.0], *(pytest.param(n, marks=pytest.mark.slow) for n in (2, 1000))]
)
@pytest.mark.parametrize("states", ["relaxed", "data", "simulation"])
def test_the_answer_does_not_depend_on_nodes_or_their_start_values(nodes: Any, states: str) -> None:
    result = fitted(exchange(), nodes=nodes, states=states)
    assert result.status is Status.CONVERGED
    assert result.objective == pytest.approx(0.010545993130, rel=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("integrator", ["auto", "heyoka", "casadi", "local-linearization"])
def test_the_answer_does_not_depend_on_the_integrator(integrator: str) -> None:
    result = fitted(exchange(), integrator=integrator)
    assert result.status is Status.CONVERGED
    assert result.objective == pytest.approx(0.010545993130, rel=1e-6)
    named = "" if integrator == "auto" else f"({integrator})"
    assert f"MultipleShooting{named}" in result.method


@pytest.mark.slow
@pytest.mark.parametrize("name", ["kinks", "linear algebra", "nonlinear algebra"])
def test_a_model_that_only_the_stiff_engine_integrates_is_fitted(name: str) -> None:
    """More data than unknowns, made from the case's own values."""
    problem, vector = ZOO[name]()
    measured = columns(problem)
    times = np.linspace(0.0, float(np.max(measured["t"])), 9)
    path = simulated(problem, vector, times)
    full = {"t": times, **{k: path.observables[k] for k in measured if k != "t"}}
    again = Problem(problem.model, full, problem.parameters, problem.initial)
    start = dict(zip(problem.keys, 1.1 * vector, strict=True))
    result = fitted(again, nodes=3, start=start)
    scale = sum(float(v @ v) for k, v in full.items() if k != "t")
    assert result.objective < 1e-10 * scale


@pytest.mark.slow
def test_the_voltage_alone_determines_all_unknowns_from_twenty_far_starts() -> None:
    """FitzHugh and Nagumo's parameters off by up to a factor of five, and noise."""
    exact = library.load("fitzhugh-nagumo-v")
    reference = library.reference("fitzhugh-nagumo-v")
    data = columns(exact)
    data["V"] += 0.1 * np.random.default_rng(5).normal(size=len(data["V"]))
    problem = Problem(exact.model, data, exact.parameters, exact.initial, t0=0.0)
    random = np.random.default_rng(0)
    forward = ForwardMap(problem)
    objectives = []
    for index in range(20):
        start = {k: reference.parameters[k] * 5 ** random.uniform(-1, 1) for k in "abc"}
        vector = problem.vector({**start, "V": -1.0, "R": 0.0})
        end = ShootingSearch().run(forward, index, vector, Control())
        assert end.status is Status.CONVERGED
        assert "then single shooting" not in end.message
        objectives.append(end.objective)
    assert objectives == pytest.approx([0.7305536065] * 20, rel=1e-7)


@pytest.mark.parametrize("mu", [pytest.param(60.0, marks=pytest.mark.slow), 120.0])
def test_an_unstable_solution_is_an_answer_on_nodes(mu: float) -> None:
    result = fitted(bock(mu))
    assert result.status is Status.CONVERGED
    assert result.best.vector == pytest.approx([np.pi], rel=1e-12)
    assert result.best.nodes is not None
    times = np.linspace(0.0, 1.0, 101)
    path = result.simulate(times)
    assert path["x1"].to_numpy() == pytest.approx(np.sin(np.pi * times), abs=1e-6)


# An answer on nodes ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def chaos() -> Result:
    """Lorenz' equations over thirty Lyapunov times."""
    return fitted(lorenz(33.0, step=0.1))


def test_chaos_over_thirty_lyapunov_times_is_fitted(chaos: Result) -> None:
    assert chaos.status is Status.CONVERGED
    assert chaos.best.nodes is not None
    assert chaos.assessment.local is not None
    assert chaos.assessment.local.optimal
    assert chaos.uncertainty is not None
    errors = chaos.uncertainty.standard_errors
    assert np.isfinite(errors).all()
    truth = np.array([LORENZ[k] for k in chaos.problem.keys])
    assert (np.abs(chaos.best.vector - truth) < 3 * errors).all()
    assert errors[0] < 0.2
    # As many squares as measurements, within four of their standard deviations.
    size = chaos.problem.size
    assert chaos.objective == pytest.approx(size, abs=4 * np.sqrt(2 * size))


def test_a_result_says_that_its_trajectory_passes_nodes(chaos: Result) -> None:
    continuity = chaos.assessment.continuity
    assert continuity is not None
    assert continuity.fine
    assert chaos.best.nodes is not None
    assert continuity.nodes == chaos.best.nodes.count
    assert continuity.gap < 1e-9
    assert continuity.sentence in " ".join(str(chaos).split())


def test_residuals_and_curves_are_those_of_the_trajectory_on_nodes(chaos: Result) -> None:
    assert {t.observable for t in residuals_of(chaos)} == {"x", "y", "z"}
    tables = residual_table(chaos.problem, chaos.best.vector, chaos.best.nodes)
    assert not isinstance(tables, Failure)
    squares = sum(float(np.sum(t.standardized**2)) for t in tables)
    assert squares == pytest.approx(chaos.objective, rel=1e-8)
    path = chaos.simulate()
    for name in "xyz":
        assert np.abs(path[name].to_numpy() - chaos.problem.data()[name]).max() < 6.0


def test_the_shooting_trajectory_is_continuous_to_rounding_between_the_data(chaos: Result) -> None:
    assert chaos.best.nodes is not None
    node_times = chaos.best.nodes.times[0][1:]
    times = np.unique(np.concatenate([node_times - 1e-7, node_times, node_times + 1e-7]))
    path = chaos.simulate(times)["x"].to_numpy()
    assert np.abs(np.diff(path.reshape(-1, 3), axis=1)).max() < 1e-4


def test_a_multiple_shooting_result_is_saved_loaded_and_reported(
    chaos: Result, tmp_path: Path
) -> None:
    chaos.save(tmp_path / "r.json")
    back = odefit.load_result(tmp_path / "r.json")
    assert back.best.nodes is not None
    assert chaos.best.nodes is not None
    for mine, read in zip(chaos.best.nodes.values, back.best.nodes.values, strict=True):
        assert np.array_equal(mine, read)
    assert np.array_equal(back.simulate().to_numpy(), chaos.simulate().to_numpy())
    assert back.assessment.continuity == chaos.assessment.continuity
    back.report(tmp_path / "r.md")
    page = (tmp_path / "r.md").read_text(encoding="utf-8")
    assert "where it is continuous" in page


def test_a_trajectory_of_a_single_integration_has_no_nodes() -> None:
    result = fitted(lorenz(3.0))
    assert result.best.nodes is None
    assert result.assessment.continuity is None


@pytest.mark.slow
def test_sensitivities_that_differ_by_rounding_alone_are_not_relied_on() -> None:
    """After twenty Lyapunov times the trajectory still follows, what it is worth does not."""
    result = fitted(lorenz(24.0, step=0.1))
    assert result.best.nodes is not None
    assert result.uncertainty is not None
    assert result.uncertainty.rank == 6
    assert not result.uncertainty.trouble


# What it says of problems that cannot be solved --------------------------------------------------


def test_fewer_data_than_unknowns_are_refused() -> None:
    problem = Problem(
        Model(ode={"x": "-k*x", "y": "k*x"}),
        {"t": [0.0, 1.0], "x": [1.0, 0.5]},
        {"k": {}},
        {"x": {}, "y": {}},
    )
    with pytest.raises(InputError, match="2 measurements cannot determine 3 unknowns"):
        fitted(problem)


def test_a_state_without_effect_on_outputs_is_called_undetermined() -> None:
    t = np.linspace(0.0, 6.0, 25)
    random = np.random.default_rng(0)
    problem = Problem(
        Model(ode={"x": "-k*x", "y": "k*x - m*y"}),
        {"t": t, "x": 2 * np.exp(-0.5 * t) + 0.02 * random.normal(size=25)},
        {"k": {"lower": 0.0, "upper": 5.0}, "m": {"lower": 0.0, "upper": 5.0}},
        {"x": {}, "y": {}},
    )
    history = MultipleShooting().follow(problem)
    assert history.converged
    assert (history.table()["undetermined"] == 2).all()
    result = fitted(problem)
    assert result.status is Status.CONVERGED
    assert result.best.parameters["k"] == pytest.approx(0.5, abs=0.05)
    assert result.uncertainty is not None
    assert result.uncertainty.trouble == {"m": "no effect", "y": "no effect"}


def test_undetermined_states_are_named_on_nodes() -> None:
    """A constraint keeps the nodes; what nobody sees is said all the same."""
    t = np.linspace(0.0, 6.0, 25)
    problem = Problem(
        Model(ode={"x": "-k*x", "y": "k*x - m*y"}),
        {"t": t, "x": 2 * np.exp(-0.5 * t) + 0.01 * np.cos(9 * t)},
        {"k": {"lower": 0.0, "upper": 5.0}, "m": {"lower": 0.0, "upper": 5.0}},
        {"x": {}, "y": {}},
    )
    result = fitted(problem, constraints=["k = 0.49"])
    assert result.status is Status.CONVERGED
    assert result.best.nodes is not None
    assert result.uncertainty is not None
    assert result.uncertainty.trouble == {"m": "no effect", "y": "no effect"}


@pytest.mark.slow
def test_a_product_that_alone_affects_the_data_is_reported() -> None:
    problem = decay(initial={"x": {"lower": 0.0, "upper": 9.0}})
    result = odefit.fit(problem, MultipleShooting(starts=5))
    best = result.best
    assert best.parameters["s"] * best.initial["x"] == pytest.approx(2.0, abs=0.1)
    assert result.uncertainty is not None
    assert set(result.uncertainty.trouble) == {"s", "x"}
    (direction,) = result.uncertainty.directions
    assert set(direction.keys) == {"s", "x"}


@pytest.mark.slow
def test_starts_that_blow_up_fail_with_time_and_reason_after_one_evaluation() -> None:
    problem = Problem(
        Model(ode={"x": "exp(k*x)"}),
        {"t": np.linspace(0.0, 4.0, 9), "x": np.linspace(1.0, 9.0, 9)},
        {"k": {"lower": 1.0, "upper": 3.0}},
        {"x": {}},
    )
    result = odefit.fit(problem, MultipleShooting(starts=3), jobs=1)
    assert result.status is Status.FAILED
    assert 'experiment "data", t = ' in result.message
    assert "without bound" in result.message
    assert [s.evaluations for s in result.starts] == [1, 1, 1]


def test_starts_that_blow_up_do_not_keep_others_from_the_answer() -> None:
    result = odefit.fit(explosive(30.0), MultipleShooting(), jobs=1)
    assert result.status is Status.CONVERGED
    assert result.best.vector == pytest.approx([0.1])
    assert any("failed" in w for w in result.warnings)


# How it ends -------------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [1e-6, 0.02, 0.2])
def test_a_time_limit_is_kept_and_named(limit: float) -> None:
    began = time.perf_counter()
    result = odefit.fit(
        noisy("fitzhugh-nagumo-v"), MultipleShooting(starts=500), time_limit=limit, jobs=1
    )
    assert time.perf_counter() - began < limit + 10.0
    assert result.status is Status.TIME_LIMIT
    assert "narrower bounds" not in result.message


@pytest.mark.skipif(os.name != "posix", reason="needs POSIX signals")
def test_an_interrupt_gives_the_best_so_far() -> None:
    sent: list[int] = []

    def interrupt(progress: Progress) -> None:
        if progress.done == 1 and not sent:  # a second one would end the process
            sent.append(1)
            os.kill(os.getpid(), signal.SIGINT)

    problem, method = noisy("fitzhugh-nagumo-v"), MultipleShooting(starts=5000)
    result = odefit.fit(problem, method, jobs=1, progress=interrupt)
    assert result.status is Status.INTERRUPTED
    assert result.solutions
    assert len(result.starts) < 50


@pytest.mark.slow
def test_the_same_seed_is_the_same_answer_whatever_the_jobs() -> None:
    problem = noisy("fitzhugh-nagumo-v")
    method = MultipleShooting(starts=3)
    one = method.solve(problem, Control(seed=3, jobs=1))
    two = method.solve(problem, Control(seed=3, jobs=2))
    other = method.solve(problem, Control(seed=4, jobs=1))
    assert essence(one) == essence(two)
    assert essence(one) != essence(other)


def kept_records(path: Path) -> int:
    """Return the number of records that a checkpoint holds."""
    with closing(sqlite3.connect(path)) as connection:
        (count,) = connection.execute("SELECT COUNT(*) FROM records").fetchone()
    return int(count)


@pytest.mark.slow
def test_a_checkpoint_continues_to_the_same_answer(tmp_path: Path) -> None:
    problem = lorenz(5.0, step=0.2)
    path = tmp_path / "kept"
    method = MultipleShooting(starts=3, start={"r": 20.0}, constraints=["s <= 12"])
    plain = method.solve(problem, Control(seed=1, jobs=1))
    MultipleShooting(starts=1, start={"r": 20.0}, constraints=["s <= 12"]).solve(
        problem, Control(seed=1, jobs=1, checkpoint=path)
    )
    assert kept_records(path) == 1
    resumed = method.solve(problem, Control(seed=1, jobs=1, checkpoint=path))
    assert essence(resumed) == essence(plain)
    for a, b in zip(plain.starts, resumed.starts, strict=True):
        assert (a.nodes is None) == (b.nodes is None)
        if a.nodes is not None and b.nodes is not None:
            assert np.array_equal(a.nodes.values[0], b.nodes.values[0])
            assert a.nodes.constraints == b.nodes.constraints == ("s <= 12",)
    assert kept_records(path) == 3


@pytest.mark.parametrize(
    "options",
    [
        {"nodes": np.array([2.0, 4.0])},
        {"nodes": np.int64(4)},
        {"nodes": {"data": (2.0, 4.0)}},
        {"start": MappingProxyType({"k1": 0.5})},
        {"constraints": [odefit.Constraint("k1 <= 2")]},
    ],
    ids=["array", "numpy integer", "mapping", "view of a mapping", "constraint"],
)
def test_options_of_any_kind_go_to_checkpoints_and_workers(
    options: dict[str, Any], tmp_path: Path
) -> None:
    import pickle

    method = MultipleShooting(starts=1, **options)
    found = method.solve(exchange(), Control(jobs=1, checkpoint=tmp_path / "kept"))
    again = method.solve(exchange(), Control(jobs=1, checkpoint=tmp_path / "kept"))
    assert essence(found) == essence(again)
    assert isinstance(pickle.loads(pickle.dumps(method.search(exchange()))), MultiStart)


# Options -----------------------------------------------------------------------------------------


SENSELESS: list[tuple[dict[str, Any], str]] = [
    ({"integrator": "rk4"}, "integrator: expected one of auto, heyoka"),
    ({"integrator": None}, "integrator: expected one of"),
    ({"states": "x"}, 'states: expected "relaxed"'),
    ({"start": 3}, "start: expected values by name"),
    ({"start": {"k1": "a"}}, "start, k1: expected a finite number"),
    ({"start": {"k1": NAN}}, "start, k1: expected a finite number"),
    ({"tolerance": 0}, "tolerance: expected a number above 0"),
    ({"tolerance": -1.0}, "tolerance: expected a number above 0"),
    ({"tolerance": "a"}, "tolerance: expected a number above 0"),
    ({"tolerance": float("inf")}, "tolerance: expected a number above 0"),
    ({"iterations": 0}, "iterations: expected a whole number of at least 1"),
    ({"iterations": 1.5}, "iterations: expected a whole number"),
    ({"starts": 0}, "starts: expected a whole number of at least 1"),
    ({"nodes": 0}, "nodes: expected a whole number of at least 1"),
]


@pytest.mark.parametrize(("options", "said"), SENSELESS, ids=lambda v: str(v)[:30])
def test_senseless_options_are_refused_at_once(options: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=f"MultipleShooting, {said}"):
        MultipleShooting(**options)


def test_a_start_for_an_unknown_name_is_refused() -> None:
    with pytest.raises(InputError, match="start: there is no 'k3'"):
        fitted(exchange(), start={"k3": 1.0})


@pytest.mark.slow
def test_the_values_of_another_result_can_be_started_from() -> None:
    """Fixed ones, and initial values, are among them."""
    problem = exchange(parameters={"k1": {}, "k2": {"fixed": 0.4}})
    single = odefit.fit(problem, jobs=1)
    start = {**single.best.parameters, **single.best.initial}
    result = fitted(problem, start=start)
    assert result.starts[0].start == pytest.approx(single.best.vector)
    assert result.objective == pytest.approx(single.objective)


def test_a_start_beyond_bounds_begins_at_them() -> None:
    result = fitted(exchange(), start={"k1": -3.0, "k2": 50.0})
    assert result.starts[0].start[:2].tolist() == [0.0, 5.0]
    assert result.objective == pytest.approx(0.010545993130, rel=1e-7)


def test_few_iterations_leave_it_unconverged_or_to_single_shooting() -> None:
    history = MultipleShooting(iterations=1, states="data").follow(exchange())
    assert not history.converged
    assert history.message == "stopped after 1 iterations"
    result = fitted(exchange(), iterations=1, states="data")
    assert "then single shooting" in result.starts[0].message
    assert result.objective == pytest.approx(0.010545993130, rel=1e-7)


def test_a_discontinuous_trajectory_is_not_an_answer() -> None:
    """With constraints there is no single shooting to go on with."""
    result = fitted(exchange(), iterations=1, states="data", constraints=["k1 + k2 = 1"])
    assert result.status is Status.FAILED
    assert not result.solutions
    assert "stopped after 1 iterations" in result.message


def test_progress_is_reported_step_by_step() -> None:
    said: list[str] = []
    odefit.fit(exchange(), ONE, jobs=1, progress=lambda p: said.append(p.message))
    assert any("iteration 1: level" in message for message in said)


@pytest.mark.slow
def test_several_experiments_have_separate_events_and_values() -> None:
    random = np.random.default_rng(0)
    t = np.linspace(0.0, 5.0, 16)

    def data(x0: float, dose: float) -> dict[str, Any]:
        x = x0 * np.exp(-0.7 * t) + np.where(t > 2.3, dose * np.exp(-0.7 * (t - 2.3)), 0.0)
        return {"t": t, "x": x + 0.01 * random.normal(size=16)}

    problem = Problem(
        Model(ode={"x": "-k*x"}, constants={"D": 0.0}),
        parameters={"k": {"lower": 0.0, "upper": 9.0}, "f": {"lower": 0.0, "upper": 9.0}},
        initial={"x": {"per_experiment": True, "lower": 0.0}},
        experiments=[
            Experiment("a", data(1.0, 2.0), events=[Event((2.3,), {"x": "x + f*2"})]),
            Experiment("b", data(3.0, 0.0)),
        ],
    )
    single = odefit.fit(problem, jobs=1)
    result = fitted(problem)
    assert result.best.vector == pytest.approx(single.best.vector, rel=1e-5)
    assert result.best.parameters["f"] == pytest.approx(1.0, abs=0.05)


def test_a_start_has_no_nodes_by_default() -> None:
    start = Start(0, np.zeros(1), np.zeros(1), 0.0, Status.CONVERGED, "", 1, 0.0)
    assert start.nodes is None
    nodes = Nodes((np.array([0.0, 1.0]), np.array([0.0])), (np.zeros((2, 1)), np.zeros((1, 1))))
    assert nodes.count == 3


# Long series --------------------------------------------------------------------------------------


def long_series(seed: int = 0) -> tuple[Problem, dict[str, float]]:
    """Return predators and prey over fifteen periods, the prey alone measured 1,501 times."""
    truth = {"a": 0.9, "c": 0.5, "d": 0.6, "x": 0.3, "y": 0.4}
    times = np.linspace(0.0, 128.0, 1501)
    model = Model(ode={"x": "a*x - b*x*y", "y": "c*x*y - d*y"}, observables={"prey": "x"})
    unknown = {"lower": 1e-5, "upper": 10.0}
    parameters: dict[str, Any] = dict.fromkeys("acd", unknown) | {"b": {"fixed": 0.8}}
    given = parameters, {"x": unknown, "y": unknown}
    first = Problem(model, {"t": times, "prey": np.ones(1501)}, *given)
    prey = simulated(first, first.vector(truth), times).states["x"]
    noise = 0.01 * np.random.default_rng(seed).normal(size=1501)
    return Problem(model, {"t": times, "prey": prey + noise}, *given), truth


@pytest.mark.slow
def test_a_long_series_is_searched_with_a_part_of_it_and_ended_with_all() -> None:
    problem, truth = long_series()
    forward = ForwardMap(problem)
    at_truth = forward.cost(problem.vector(truth))
    end = ONE.solve(problem, Control(seed=1)).starts[0]
    assert end.status is Status.CONVERGED
    assert at_truth - 10 * 1e-4 < end.cost < at_truth  # chi-square of five unknowns
    assert end.cost == pytest.approx(forward.cost(end.vector), rel=1e-9)
    assert "(a part of the data)" in end.message


@pytest.mark.slow
def test_an_end_on_nodes_is_one_with_all_data() -> None:
    """Over thirty Lyapunov times no single integration tells its own sensitivities."""
    problem = lorenz(33.0, noise=0.1, step=0.02)
    end = ONE.solve(problem, Control()).starts[0]
    assert end.status is Status.CONVERGED
    assert "part of the data" in end.message
    assert end.nodes is not None
    assert end.objective == pytest.approx(problem.size, rel=0.1)
    found = evaluate_nodes(problem, end.vector, end.nodes)
    assert not isinstance(found, Failure)
    assert found[0].objective == pytest.approx(end.objective, rel=1e-6)


@pytest.mark.parametrize(("lower_by", "on_nodes"), [(1e-4, False), (0.5, True)])
def test_small_gaps_do_not_keep_an_answer_on_nodes(
    monkeypatch: pytest.MonkeyPatch, lower_by: float, on_nodes: bool
) -> None:
    """An iteration that has not converged may have a slightly lower cost than any trajectory."""
    ended = ShootingSearch._end_on_nodes

    def unconverged(*arguments: Any) -> Start:
        end = ended(*arguments)
        return replace(end, status=Status.NOT_CONVERGED, cost=(1.0 - lower_by) * end.cost)

    monkeypatch.setattr(ShootingSearch, "_end_on_nodes", unconverged)
    forward = ForwardMap(decay(noise=0.3))
    found = ShootingSearch().run(forward, 0, np.array([0.5, 1.5]), Control(jobs=1))
    assert (found.nodes is not None) is on_nodes
    assert found.status is (Status.NOT_CONVERGED if on_nodes else Status.CONVERGED)
