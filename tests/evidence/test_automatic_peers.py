"""The other programs of the campaign `automatic` are given the problem that odefit has."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from evidence.front_door.dense_data import dense_problem
from evidence.front_door.runs import peer
from evidence.peers.copasi import check_same, copasi, weights_told, with_best_noise
from evidence.peers.scipy_fit import LOG_SHIFT, Coordinates, by_hand, with_noise
from evidence.peers.script import Script
from evidence.peers.stated import check_stated, estimates_noise, noise_unknowns
from odefit import ForwardMap, library
from odefit.common.arrays import Array
from odefit.common.errors import InputError
from odefit.formats.petab import read_petab
from odefit.problem import Event, Experiment, Model, Problem
from odefit.simulation import Evaluation

PUBLISHED = Path(__file__).parents[1] / "data" / "petab"

SYSTEMS = ("switched-converter", "indirect-response", "dc-motor")


def published(name: str) -> tuple[Problem, Array]:
    """Return a problem of the collection and its nominal values."""
    found = read_petab(PUBLISHED / name / f"{name}.yaml")
    return found.problem, np.array([found.nominal[key] for key in found.problem.keys])


def mixed() -> tuple[Problem, Array]:
    """Return a problem with all that published ones have, and some unknowns.

    Experiments differ in a constant, an initial value, their first time, their events, an unknown
    and the time scale of what drives them. There are three kinds of noise: of a logarithm and
    estimated, an expression, and given value by value.
    """
    model = Model(
        ode={"a": "inflow - k*a", "b": "k*a - d*b*(1 + 0.1*sin(t))"},
        observables={"y": "scale*b", "z": "a + b", "w": "a"},
        constants={"inflow": 0.0},
    )
    log_unknown = {"lower": 1e-3, "upper": 1e3, "scale": "log10"}
    times = np.array([0.0, 1.0, 2.0, 3.5, 5.0])
    columns = {
        "t": times,
        "y": [np.nan, 1.2, 1.9, 1.5, 1.1],
        "z": [1.1, 1.0, np.nan, 2.0, 1.7],
        "w": [0.9, 0.7, 0.4, 1.2, np.nan],
        "w_sd": [0.1, 0.2, 0.1, 0.3, np.nan],
    }
    second = columns | {"t": times - 3.0, "y": [0.2, 0.6, 1.4, 2.5, 2.9]}
    events = (Event((2.0,), {"a": "a + 1.5*scale", "inflow": 0.2}), Event((2.0,), {"b": "2*b"}))
    problem = Problem(
        model,
        parameters={
            "k": log_unknown,
            "d": log_unknown,
            "scale": log_unknown | {"per_experiment": True},
            "s_abs": log_unknown,
            "s_rel": log_unknown,
            "s_log": log_unknown,
        },
        initial={"a": log_unknown, "b": "0.1*k"},
        noise={
            "y": {"sd": "s_log", "transform": "log10"},
            "z": {"sd": "s_abs + s_rel*z"},
            "w": {"sd": 1.0},
        },
        experiments=[
            Experiment("one", columns, t0=0.0, events=events),
            Experiment("two", second, t0=-3.0, constants={"inflow": 0.7}, initial={"b": 0.05}),
        ],
    )
    values = {"k": 0.6, "d": 0.3, "scale[one]": 2.0, "scale[two]": 3.0, "a": 1.1}
    return problem, problem.vector(values | {"s_abs": 0.1, "s_rel": 0.2, "s_log": 0.15})


def evaluated(problem: Problem, vector: Array) -> Evaluation:
    found = ForwardMap(problem).evaluate(vector)
    assert isinstance(found, Evaluation)
    return found


# The script by hand -----------------------------------------------------------------------------


@pytest.mark.parametrize("system", SYSTEMS)
def test_the_handwritten_script_minimises_the_same_objective(system: str) -> None:
    problem, truth = dense_problem(system, 1e-2, 0)
    vector = problem.vector(truth)
    residuals = Script(problem, lambda: None).residuals(vector)
    found = evaluated(problem, vector)
    assert float(residuals @ residuals) == pytest.approx(found.objective, rel=1e-6)


@pytest.mark.parametrize("name", ["hiv-proteinase", "rational-seir", "sir"])
def test_the_handwritten_script_handles_experiments_and_first_times(name: str) -> None:
    problem = library.load(name)
    known = library.reference(name)
    vector = problem.vector({**known.parameters, **known.initial})
    residuals = Script(problem, lambda: None).residuals(vector)
    scale = sum(float(s.values @ s.values) for c in problem.conditions for s in c.series.values())
    found = evaluated(problem, vector)
    assert abs(float(residuals @ residuals) - found.objective) < 1e-8 * scale


def test_the_script_handles_names_reserved_by_python() -> None:
    """The model of HIV has a parameter `lambda`."""
    problem = library.load("hiv-f")
    vector = np.full(len(problem.unknowns), 0.2)
    assert "lambda" in problem.keys
    residuals = Script(problem, lambda: None).residuals(vector)
    found = evaluated(problem, vector)
    assert float(residuals @ residuals) == pytest.approx(found.objective, rel=1e-6)


@pytest.mark.parametrize("name", ["Boehm_JProteomeRes2014", "Perelson_Science1996"])
def test_the_script_has_the_log_likelihood_of_published_problems(name: str) -> None:
    problem, vector = published(name)
    script = Script(problem, lambda: None)
    expected = evaluated(problem, vector).log_likelihood
    assert script.log_likelihood(vector) == pytest.approx(expected, abs=1e-5)


@pytest.mark.slow
def test_the_script_handles_transforms_noise_and_events_of_one_experiment() -> None:
    problem, vector = mixed()
    found = evaluated(problem, vector)
    script = Script(problem, lambda: None)
    residuals = script.residuals(vector)
    assert float(residuals @ residuals) == pytest.approx(found.objective, rel=1e-7)
    assert script.log_likelihood(vector) == pytest.approx(found.log_likelihood, abs=1e-6)


def test_half_squares_of_the_manual_search_differ_like_log_likelihoods() -> None:
    problem, vector = mixed()
    script = Script(problem, lambda: None)
    other = vector * (1 + 0.1 * np.cos(np.arange(len(vector))))
    halves = [0.5 * float(r @ r) for r in (with_noise(script, v) for v in (vector, other))]
    likelihoods = [evaluated(problem, v).log_likelihood or 0.0 for v in (vector, other)]
    assert halves[1] - halves[0] == pytest.approx(likelihoods[0] - likelihoods[1], abs=1e-5)
    assert halves[0] > LOG_SHIFT


def test_coordinates_of_the_handwritten_search_are_one_at_logarithmic_lower_bounds() -> None:
    problem, vector = mixed()
    coordinates = Coordinates(problem)
    np.testing.assert_allclose(coordinates.natural(coordinates.of(vector)), vector)
    np.testing.assert_array_equal(coordinates.lower, np.ones(len(vector)))
    plain = Coordinates(library.load("sir"))
    np.testing.assert_array_equal(plain.lower, library.load("sir").lower)


def test_the_handwritten_search_fits_estimated_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """The best standard deviation is the root mean square of the residuals."""
    monkeypatch.setattr("evidence.peers.scipy_fit.STARTS", 1)
    times = np.linspace(0.0, 4.0, 9)
    data = {"t": times, "x": np.exp(-0.5 * times) + 0.02 * np.cos(7 * times)}
    problem = Problem(
        Model(ode={"x": "-k*x"}),
        data,
        parameters={"k": {"lower": 1e-3, "upper": 1e2, "scale": "log10"}},
        initial={"x": 1.0},
        noise={"x": {"sd": "estimate"}},
    )
    found = by_hand(problem, 0, 600.0)
    assert found.vector is not None
    k, sd = found.vector
    residuals = np.exp(-k * times) - data["x"]
    assert k == pytest.approx(0.5, abs=0.02)
    assert sd == pytest.approx(np.sqrt(np.mean(residuals**2)), rel=1e-4)
    assert not found.late


# What is not stated -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("noise", "reason"),
    [
        ({"sd": 0.1, "loss": "huber"}, "normal noise"),
        ({"sd": 0.1, "distribution": "laplace"}, "normal noise"),
        ({"sd": 0.1, "lower_limit": 1e9}, "censored"),
    ],
)
def test_noise_that_other_programs_lack_is_refused(
    noise: dict[str, float | str], reason: str
) -> None:
    problem = library.load("sir")
    check_stated(problem)
    other = Problem(
        problem.model,
        parameters=problem.parameters,
        initial=problem.initial,
        noise=dict.fromkeys(problem.model.observables, noise),
        experiments=problem.experiments,
    )
    with pytest.raises(InputError, match=reason):
        check_stated(other)


@pytest.mark.parametrize(
    ("name", "reason"),
    [("Blasi_CellSystems2016", "steady states"), ("Oliveira_NatCommun2021", "at given times")],
)
def test_starts_and_events_that_other_programs_lack_are_refused(name: str, reason: str) -> None:
    problem, _ = published(name)
    with pytest.raises(InputError, match=reason):
        check_stated(problem)


def test_unknowns_of_the_noise_are_those_behind_its_expressions() -> None:
    problem, _ = mixed()
    names = [problem.keys[i] for i in noise_unknowns(problem)]
    assert names == ["s_abs", "s_rel", "s_log"]
    assert estimates_noise(problem)
    plain, _ = dense_problem("pendulum", 1e-2, 0)
    assert noise_unknowns(plain) == []
    assert not estimates_noise(plain)


# COPASI -----------------------------------------------------------------------------------------


def test_weights_of_estimated_noise_are_the_best_at_the_reference_or_missing() -> None:
    problem, vector = mixed()
    with pytest.raises(InputError, match="weights are given, not estimated"):
        weights_told(problem, None)
    first, second = weights_told(problem, vector)
    np.testing.assert_array_equal(first["w"], [0.1, 0.2, 0.1, 0.3])
    stated = Script(problem, lambda: None).statements(vector)
    squares = np.concatenate([parts["y"].differences for parts in stated]) ** 2
    np.testing.assert_allclose(first["y"], np.full(4, np.sqrt(np.mean(squares))), rtol=1e-6)
    assert second["y"][0] == first["y"][0]


@pytest.mark.slow
def test_the_unknowns_of_the_noise_are_at_their_optimum_in_the_answer() -> None:
    problem, vector = published("Boehm_JProteomeRes2014")
    wrong = vector.copy()
    wrong[-3:] *= 3.0
    found = with_best_noise(problem, wrong)
    np.testing.assert_array_equal(found[:-3], vector[:-3])
    before, after = (evaluated(problem, v).log_likelihood for v in (vector, found))
    assert before is not None
    assert after is not None
    assert before <= after < before + 1e-3  # the nominal values are the optimum


def test_a_peer_that_cannot_state_a_problem_says_why() -> None:
    problem, vector = published("Blasi_CellSystems2016")
    task = {"key": "", "method": "scipy", "seed": 0, "limit": 1.0}
    result = peer(task, problem, vector)
    assert result["status"] == "not applicable"
    assert "steady states" in result["message"]


@pytest.mark.slow
@pytest.mark.parametrize("system", SYSTEMS)
def test_copasi_minimises_the_same_objective(system: str, tmp_path: Path) -> None:
    problem, truth = dense_problem(system, 1e-2, 0)
    assert_same_in_copasi(problem, problem.vector(truth), tmp_path, 1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["Boehm_JProteomeRes2014", "Perelson_Science1996"])
def test_copasi_minimises_the_same_objective_of_published_problems(
    name: str, tmp_path: Path
) -> None:
    problem, vector = published(name)
    assert_same_in_copasi(problem, vector, tmp_path, 1e-6)


@pytest.mark.slow
def test_copasi_reads_experiments_that_differ_in_every_feature(tmp_path: Path) -> None:
    problem, vector = mixed()
    assert_same_in_copasi(problem, vector, tmp_path, 1e-6)


def assert_same_in_copasi(problem: Problem, vector: Array, folder: Path, close: float) -> None:
    pytest.importorskip("basico")
    from evidence.peers.copasi_model import CopasiModel

    stated = Script(problem, lambda: None).statements(vector)
    sds = [{name: part.sds for name, part in parts.items()} for parts in stated]
    model = CopasiModel(problem, sds, str(folder))
    try:
        check_same(model, problem, sds, vector)
        value = model.objective(vector)
        other = [{name: 2 * sd for name, sd in of.items()} for of in sds]
        with pytest.raises(InputError, match="another one there"):
            check_same(model, problem, other, vector)
    finally:
        model.close()
    assert value == pytest.approx(evaluated(problem, vector).objective, rel=close)


@pytest.mark.slow
def test_copasi_fits_what_acts_and_leaves_the_noise_to_the_weights(tmp_path: Path) -> None:
    pytest.importorskip("basico")
    from evidence.peers.copasi_model import CopasiModel

    problem, vector = mixed()
    model = CopasiModel(problem, weights_told(problem, vector), str(tmp_path))
    fitted = [problem.keys[i] for i in model.unknowns]
    model.close()
    assert fitted == [k for k in problem.keys if not k.startswith("s_")]


@pytest.mark.slow
def test_copasi_is_judged_with_the_best_noise() -> None:
    pytest.importorskip("basico")
    problem, vector = published("Perelson_Science1996")
    found = copasi(problem, 0, 20.0, vector)
    assert found.vector is not None
    assert evaluated(problem, found.vector).log_likelihood == pytest.approx(-222.2808, abs=1e-3)
    assert "weights as the published values imply" in found.message
