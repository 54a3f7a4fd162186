"""Three outliers in 35 values are found by name, with a loss and without."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

import odefit
from odefit.methods.fit_quality.robust_fits import normal_unit, suspected_outliers
from odefit.methods.running.control import Control
from odefit.problem.noise import Noise

TIMES = np.linspace(0.0, 10.0, 35)
WRONG = [6, 17, 28]
JUMPS = [2.0, -1.5, 1.8]


def growth(seed: int, noise: dict[str, Any], *, outliers: bool = True, drop: bool = False) -> Any:
    random = np.random.default_rng(seed)
    values = 5 / (1 + 24 * np.exp(-0.9 * TIMES)) + 0.05 * random.standard_normal(35)
    kept = np.ones(35, dtype=bool)
    if outliers:
        values[WRONG] += JUMPS
    if drop:
        kept[WRONG] = False
    return odefit.Problem(
        odefit.Model(ode={"x": "r*x*(1 - x/K)"}),
        data={"t": TIMES[kept], "x": values[kept]},
        parameters={"r": {"lower": 0}, "K": {"lower": 0}},
        initial={"x": {"lower": 0}},
        noise={"x": noise},
    )


@cache
def fit_without_outliers(seed: int) -> odefit.Result:
    return odefit.fit(growth(seed, {"sd": 0.05}, drop=True))


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "noise",
    [
        {"sd": 0.05, "loss": "student"},
        pytest.param({"sd": "estimate", "loss": "student"}, marks=pytest.mark.slow),
        {"sd": 0.05, "loss": "huber"},
    ],
)
def test_a_loss_names_the_outliers_and_fits_as_without_them(
    seed: int, noise: dict[str, Any]
) -> None:
    result = odefit.fit(growth(seed, noise))
    without = fit_without_outliers(seed)
    assert result.status.value == "converged"
    assert [o.time for o in result.outliers] == pytest.approx(TIMES[WRONG])
    assert [np.sign(o.distance) for o in result.outliers] == [-1.0, 1.0, -1.0]
    assert all(o.weight < 0.1 for o in result.outliers)
    assert without.uncertainty is not None
    distance = np.abs(result.best.vector[:3] - without.best.vector)
    assert (distance < 2 * without.uncertainty.standard_errors).all()
    assert any("3 outliers count little" in w for w in result.warnings)


@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 2))])
def test_a_plain_fit_ends_soon_and_says_which_values_look_like_outliers(seed: int) -> None:
    result = odefit.fit(growth(seed, {"sd": 0.05}))
    assert result.status.value == "converged"
    assert len(result.starts) <= 20
    assert [o.time for o in result.outliers] == pytest.approx(TIMES[WRONG])
    said = next(w for w in result.warnings if "outliers" in w)
    assert said.startswith("3 values look like outliers: x = ")
    assert 'loss = "student"' in said


SYSTEMS: dict[str, tuple[dict[str, str], dict[str, float], dict[str, float], float, float]] = {
    "infected": (
        {"S": "-beta*S*I/1000", "I": "beta*S*I/1000 - gamma*I"},
        {"beta": 0.6, "gamma": 0.2},
        {"S": 990.0, "I": 10.0},
        40.0,
        8.0,
    ),
    "oscillating": (
        {"I": "v", "v": "mu*(1 - I^2)*v - w*I"},
        {"mu": 1.5, "w": 1.0},
        {"I": 2.0, "v": 0.0},
        15.0,
        0.05,
    ),
}
"""Equations, parameters, initial values, length and noise: SIR and van der Pol's oscillator."""


def with_gross_outliers(name: str, *, drop: bool = False, **noise: Any) -> odefit.Problem:
    """Return data with outliers 16 to 20 standard deviations away, or without these values."""
    ode, truth, initial, length, sd = SYSTEMS[name]
    times = np.linspace(0, length, 35)
    model, unknown = (
        odefit.Model(ode=ode, observables={"y": "I"}),
        {key: {"lower": 0} for key in truth},
    )
    blank = odefit.Problem(model, {"t": times, "y": times}, parameters=unknown, initial=initial)
    simulation: Any = odefit.simulate(blank, blank.vector(truth))
    values = np.array(simulation.observables["y"])
    values += sd * np.random.default_rng(2).standard_normal(35)
    values[WRONG] += 20 * sd * np.array([1, -0.8, 0.9])
    kept = np.ones(35, dtype=bool)
    kept[WRONG] = not drop
    return odefit.Problem(
        model,
        {"t": times[kept], "y": values[kept]},
        parameters=unknown,
        initial=dict.fromkeys(initial, {"lower": 0} if name == "infected" else {}),
        noise={"y": {"sd": sd} | noise},
    )


every_system = pytest.mark.parametrize(
    "name", ["infected", pytest.param("oscillating", marks=pytest.mark.slow)]
)


@pytest.mark.slow
@every_system
def test_a_plain_fit_of_free_initial_values_ends_soon_though_there_are_outliers(name: str) -> None:
    problem = with_gross_outliers(name)
    result = odefit.fit(problem)
    assert result.status.value == "converged"
    assert len(result.starts) <= 20
    assert [o.time for o in result.outliers] == pytest.approx(problem.conditions[0].times[WRONG])


@every_system
@pytest.mark.parametrize("loss", ["student", pytest.param("huber", marks=pytest.mark.slow)])
def test_with_a_loss_the_estimates_are_those_without_the_outliers(name: str, loss: str) -> None:
    """Within two standard errors of the fit in which these three values are missing."""
    problem = with_gross_outliers(name, loss=loss)
    robust = odefit.fit(problem)
    without = odefit.fit(with_gross_outliers(name, drop=True))
    assert [o.time for o in robust.outliers] == pytest.approx(problem.conditions[0].times[WRONG])
    assert without.uncertainty is not None
    distance = np.abs(robust.best.vector - without.best.vector)
    assert (distance < 2 * without.uncertainty.standard_errors).all()
    assert without.outliers == ()


@pytest.mark.parametrize("noise", [{"sd": "estimate"}, {}])
def test_the_option_is_named_if_the_noise_is_unknown(noise: dict[str, Any]) -> None:
    result = odefit.fit(growth(0, noise))
    assert any('x = { sd = "estimate", loss = "student" } in [noise]' in w for w in result.warnings)


@pytest.mark.slow
def test_a_search_whose_starts_never_converge_ends_when_outliers_explain_that() -> None:
    """Michaelis-Menten kinetics: the best plain fit is at the edge, where starts crawl."""
    random = np.random.default_rng(0)
    times = np.linspace(0, 10, 35)
    model = odefit.Model(ode={"s": "-V*s/(K + s)"}, observables={"y": "s"})
    parameters = {"V": {"lower": 0}, "K": {"lower": 0}}
    blank = odefit.Problem(
        model, {"t": times, "y": times}, parameters=parameters, initial={"s": 5.0}
    )
    simulation = odefit.simulate(blank, blank.vector({"V": 1.0, "K": 0.5}))
    values = np.array(simulation.observables["y"]) + 0.05 * random.standard_normal(35)
    values[WRONG] += 5 * np.array([1, -1, 1])
    problem = odefit.Problem(
        model,
        {"t": times, "y": values},
        parameters=parameters,
        initial={"s": 5.0},
        noise={"y": {"sd": 0.05}},
    )
    result = odefit.fit(problem)
    assert len(result.starts) <= 20
    assert [o.time for o in result.outliers] == pytest.approx(times[WRONG])


@pytest.mark.slow
def test_right_data_have_no_outliers() -> None:
    for noise in ({"sd": 0.05}, {"sd": 0.05, "loss": "student"}):
        result = odefit.fit(growth(4, noise, outliers=False))
        assert result.outliers == ()
        assert not any("outlier" in w for w in result.warnings)


@pytest.mark.slow
def test_a_wrong_model_is_not_excused_by_outliers() -> None:
    random = np.random.default_rng(0)
    values = 3 + np.sin(3 * TIMES) + 0.05 * random.standard_normal(35)
    problem = odefit.Problem(
        odefit.Model(ode={"x": "r*x*(1 - x/K)"}),
        data={"t": TIMES, "x": values},
        parameters={"r": {"lower": 0, "upper": 10}, "K": {"lower": 0, "upper": 10}},
        initial={"x": 3.0},
        noise={"x": {"sd": 0.05}},
    )
    result = odefit.fit(problem, odefit.Automatic(most=30))
    assert result.outliers == ()
    assert result.status.value == "not converged"


@pytest.mark.parametrize("together", [False, True])
def test_consecutive_wrong_values_are_a_lack_of_fit_and_not_outliers(together: bool) -> None:
    """A wrong optimum may miss a tenth of a long series, and fit the rest as well as noise."""
    random = np.random.default_rng(5)
    times = np.linspace(0.0, 10.0, 400)
    values = np.exp(-0.5 * times) + 0.01 * random.standard_normal(400)
    wrong = np.arange(100, 130) if together else random.permutation(400)[:30]
    values[wrong] += 0.3
    problem = odefit.Problem(
        odefit.Model(ode={"x": "-k*x"}),
        data={"t": times, "x": values},
        parameters={"k": {"lower": 0.0, "upper": 10.0}},
        initial={"x": 1.0},
        noise={"x": {"sd": 0.01}},
    )
    found = suspected_outliers(odefit.ForwardMap(problem), [np.array([0.5])], Control(jobs=1))
    assert len(found) == (0 if together else 30)


@pytest.mark.slow
def test_outliers_survive_the_result_file(tmp_path: Any) -> None:
    result = odefit.fit(growth(0, {"sd": 0.05, "loss": "student"}))
    path = tmp_path / "result.json"
    result.save(path)
    assert list(odefit.load_result(path).outliers) == list(result.outliers)


@pytest.mark.parametrize("loss", ["huber", "student"])
def test_the_normal_unit_turns_an_estimated_scale_into_a_standard_deviation(loss: Any) -> None:
    """The scale that a loss estimates of many normal values, times the unit, is their sd."""
    from scipy.optimize import brentq

    law = Noise(loss=loss).law
    values = np.random.default_rng(1).standard_normal(200_000)

    def score(scale: float) -> float:
        scales = np.full(len(values), scale)
        return float(law.terms(values, np.zeros(len(values)), scales).scale_slopes.sum())

    assert brentq(score, 0.3, 3.0) * normal_unit(law) == pytest.approx(1.0, rel=5e-3)


@pytest.mark.parametrize(
    "noise",
    [Noise(loss="huber"), Noise(loss="student"), Noise(distribution="laplace"), Noise()],
)
def test_random_values_have_the_density(noise: Noise) -> None:
    """Scores of location and scale have the expectations zero and the information as variance."""
    n = 200_000
    values = noise.law.standard_values(n, np.random.default_rng(5))
    terms = noise.law.terms(np.zeros(n), values, np.ones(n))
    location = terms.residuals * terms.slopes
    b, _, d = noise.law.information(np.zeros(1), np.ones(1))[0]
    assert abs(location.mean()) < 5 * b / np.sqrt(n)
    assert abs(terms.scale_slopes.mean()) < 5 * d / np.sqrt(n)
    assert location.std() == pytest.approx(b, rel=0.01)
    assert terms.scale_slopes.std() == pytest.approx(d, rel=0.05)
