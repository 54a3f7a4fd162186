"""Predictions one step ahead: against a filter in closed form, and rates of false evidence."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import odefit
from odefit import Event, Experiment, Model, Problem, Result, Scenario, SingleShooting
from odefit.assessment.predictions.obstacles import NoOneStep, Obstacle
from odefit.assessment.predictions.one_step import one_step_ahead
from odefit.common.arrays import Array

K, B, SD = 0.5, 2.0, 0.1
TIMES = np.linspace(0.25, 10.0, 40)


def exact(t: Any, u: float, b: float = B) -> Any:
    return b * u / K * (1 - np.exp(-K * t))


def table(random: np.random.Generator, u: float, extra: Any = 0.0) -> dict[str, Any]:
    values = exact(TIMES, u) + SD * random.standard_normal(len(TIMES)) + extra
    return {"t": np.append(0.0, TIMES), "u": np.full(41, u), "x": np.append(np.nan, values)}


def fitted(seed: int, transform: str | None = None) -> Result:
    random = np.random.default_rng(seed)
    problem = Problem(
        Model(ode={"x": "b*u - k*x"}, inputs={"u": "constant"}),
        parameters={"b": {"guess": B}, "k": {"guess": K}},
        initial={"x": 0.0},
        noise={"x": {"sd": SD, "transform": transform}},
        experiments=[Experiment(f"u = {u:g}", table(random, u)) for u in (1.0, 2.0)],
    )
    return odefit.fit(problem, SingleShooting(), jobs=1)


@pytest.fixture(scope="module")
def result() -> Result:
    return fitted(1)


def filtered(
    y: Array, b: float, k: float, u: float, disturbance: float, log: bool = False
) -> tuple[Array, float]:
    """Return predictions one step ahead and -2 log of the likelihood, for x' = b u - k x."""
    every = np.append(0.0, TIMES)  # the times of the table
    size = np.sqrt(np.mean((b * u / k * (1 - np.exp(-k * every))) ** 2))
    rate = (disturbance * size) ** 2 / TIMES[-1]
    x, variance, t, total, predicted = 0.0, 0.0, 0.0, 0.0, []
    for time, value in zip(TIMES, y, strict=True):
        decay = np.exp(-k * (time - t))
        x = x * decay + b * u / k * (1 - decay)
        variance = variance * decay**2 + rate * (time - t)
        predicted.append(x)
        slope, difference = (1 / x, np.log(value / x)) if log else (1.0, value - x)
        spread = slope**2 * variance + SD**2
        total += difference**2 / spread + np.log(spread)
        gain = slope * variance / spread
        x, variance, t = x + gain * difference, variance * (1 - gain * slope), time
    return np.array(predicted), total


@pytest.mark.slow
@pytest.mark.parametrize("transform", [None, "log"])
def test_the_filter_is_that_of_a_linear_system_in_closed_form(transform: str | None) -> None:
    result = fitted(1, transform)
    b, k = (result.parameters["estimate"][name] for name in ("b", "k"))
    new = table(np.random.default_rng(3), 1.5, 0.4 * np.sin(TIMES))
    found = result.validate(new).one_step
    assert found is not None
    assert found.disturbance > 0.02
    log = transform == "log"
    predicted, best = filtered(new["x"][1:], b, k, 1.5, found.disturbance, log)
    (ahead,) = found.predicted.values()
    np.testing.assert_allclose(ahead, predicted, rtol=1e-6)
    # The size of the disturbances is the best of many.
    sizes = np.geomspace(1e-3, 3.0, 400)
    likelihoods = [filtered(new["x"][1:], b, k, 1.5, s, log)[1] for s in sizes]
    assert best < min(likelihoods) + 0.02
    free = filtered(new["x"][1:], b, k, 1.5, 0.0, log)[1]
    from scipy.stats import chi2

    assert found.probability == pytest.approx(0.5 * chi2.sf(free - best, 1), rel=1e-3)


@pytest.mark.slow
def test_without_disturbances_it_is_the_free_run(result: Result) -> None:
    found = result.validate(table(np.random.default_rng(7), 1.5))
    assert found.one_step is not None
    assert found.one_step.probability > 0.05
    assert "predicts no better than in free run" in str(found)
    quiet = result.validate(table(np.random.default_rng(7), 1.5), one_step=False)
    assert quiet.one_step is None
    assert not len(quiet.series[0].ahead)
    assert "ahead" not in str(quiet).splitlines()[-1]


@pytest.mark.slow
def test_states_that_drift_away_are_seen(result: Result) -> None:
    new = table(np.random.default_rng(7), 1.5, 0.5 * np.sin(TIMES))
    found = result.validate(new)
    (one,) = found.series
    assert found.one_step is not None
    assert found.one_step.probability < 1e-6
    assert one.ahead_percent > one.fit_percent + 5
    assert found.one_step.mean_square < 0.5 * found.reduced_chi_square
    assert "drift away from the equations" in str(found)
    errors = one.measured - one.ahead
    spread = one.measured - one.measured.mean()
    percent = 100 * (1 - np.linalg.norm(errors) / np.linalg.norm(spread))
    assert one.ahead_percent == pytest.approx(percent)


def test_doses_between_measurements_are_given_once() -> None:
    """A dose at a measured time acts after it, and is no disturbance."""
    random = np.random.default_rng(2)
    times = np.arange(1.0, 13.0)

    def amount(doses: list[float], t: Any) -> Any:
        return sum(10.0 * np.exp(-0.3 * (t - d)) * (t > d) for d in doses)

    def data(doses: list[float]) -> dict[str, Any]:
        return {"t": times, "x": amount(doses, times) + 0.05 * random.standard_normal(12)}

    problem = Problem(
        Model(ode={"x": "-k*x"}),
        parameters={"k": {"guess": 0.3}},
        initial={"x": 0.0},
        noise={"x": {"sd": 0.05}},
        experiments=[
            Experiment("one", data([0.5]), t0=0.0, events=[Event((0.5,), {"x": "x + 10"})])
        ],
    )
    result = odefit.fit(problem, SingleShooting(), jobs=1)
    doses = [{"times": [0.0, 4.0, 7.5], "amount": 10.0, "into": "x"}]
    scenario = Scenario("three", data=data([0.0, 4.0, 7.5]), doses=doses)
    found = result.validate(scenario)
    assert found.one_step is not None
    assert found.one_step.probability > 0.05
    np.testing.assert_allclose(found.series[0].ahead, found.series[0].predicted, rtol=0.02)


@pytest.mark.slow
def test_a_right_model_is_rarely_called_wrong(result: Result) -> None:
    """At most 5 % by the likelihood ratio at a bound, of 120 data sets; 12 are below 1e-4."""
    accused = 0
    for seed in range(120):
        found = result.validate(table(np.random.default_rng(100 + seed), 1.5)).one_step
        assert found is not None
        accused += found.probability < 0.05
    assert accused <= 14


DECAY: dict[str, Any] = {
    "model": Model(ode={"x": "-k*x"}),
    "data": {"t": [0.0, 1.0, 2.0], "x": [1.0, 0.6, 0.4]},
    "parameters": {"k": {}},
    "initial": {"x": 1.0},
    "noise": {"x": {"sd": 0.1}},
}
TABLE = DECAY["data"]


@pytest.mark.parametrize(
    ("obstacle", "name", "changes"),
    [
        (
            Obstacle.ALGEBRAIC,
            "",
            {
                "model": Model(
                    ode={"x": "-k*z"}, algebraic={"z": "z^3 + z - x"}, observables={"x": "x"}
                ),
                "initial": {"x": 1.0, "z": {"guess": 0.7}},
            },
        ),
        (
            Obstacle.TRIGGERED,
            "",
            {"events": [Event((), {"x": "x + 1"}, when="x < 0.5")]},
        ),
        (Obstacle.STEADY, "", {"model": Model(ode={"x": "1 - k*x"}), "steady_state": True}),
        (Obstacle.AT_INFINITY, "", {"data": {"t": [0.0, np.inf], "x": [1.0, 0.0]}}),
        (Obstacle.LONG, "", {"data": {"t": np.arange(601.0), "x": np.ones(601)}}),
        (
            Obstacle.CHANGED,
            "c",
            {
                "model": Model(ode={"x": "-c*k*x"}, constants={"c": 1.0}),
                "events": [Event((1.5,), {"c": "1 + x"})],
            },
        ),
        (
            Obstacle.CENSORED,
            "x",
            {"noise": {"x": {"sd": 0.1, "lower_limit": 0.5}}},
        ),
        (Obstacle.NOISE, "x", {"noise": {"x": {"sd": 0.1, "distribution": "laplace"}}}),
        (Obstacle.CORRELATED, "x", {"noise": {"x": {"sd": 0.1, "correlation": "ou"}}}),
    ],
)
def test_the_obstacle_to_predictions_one_step_ahead_is_reported(
    obstacle: Obstacle, name: str, changes: dict[str, Any]
) -> None:
    given = {**DECAY, **changes}
    run = {key: given.pop(key) for key in ("events", "steady_state") if key in given}
    data = given.pop("data")
    problem = Problem(**given, experiments=[Experiment("one", data, **run)])
    found = one_step_ahead(problem, np.full(len(problem.unknowns), 0.5), 1.0)
    assert found == NoOneStep(obstacle, "one", name)


def test_the_report_says_why_there_are_none(result: Result, tmp_path: Any) -> None:
    new = table(np.random.default_rng(7), 1.5)
    events = [Event((), {"x": "x - 1"}, when="x > 4")]
    found = result.validate(Experiment("other", new, t0=0.0, events=events))
    assert found.one_step is None
    why = "no predictions one step ahead, as other has events that a condition triggers."
    assert why in str(found)
    assert "1-step" not in str(found)
    found.save(tmp_path / "found.json")
    assert why in (tmp_path / "found.json").read_text(encoding="utf-8")
    found.report(tmp_path / "found.md")
    words = (tmp_path / "found.md").read_text(encoding="utf-8")
    assert why in words
    assert "| one step ahead |" not in words


def test_a_constant_that_events_change_is_followed() -> None:
    """Also at the time of a measurement, and as the switches of a function of time are."""
    random = np.random.default_rng(5)
    times = np.arange(0.0, 13.0)
    values = np.exp(-0.2 * np.minimum(times, 4.0) - 0.6 * np.clip(times - 4.0, 0.0, 3.5))
    values *= np.exp(-0.1 * np.clip(times - 7.5, 0.0, None))
    data = {"t": times, "x": 10.0 * values + 0.02 * random.standard_normal(13)}
    problem = Problem(
        Model(ode={"x": "-c*k*x"}, constants={"c": 1.0}),
        parameters={"k": {"guess": 0.2}},
        initial={"x": 10.0},
        noise={"x": {"sd": 0.02}},
        experiments=[
            Experiment(
                "one", data, events=[Event((4.0,), {"c": "3*c"}), Event((7.5,), {"c": "0.5"})]
            )
        ],
    )
    result = odefit.fit(problem, SingleShooting(), jobs=1)
    found = result.validate(problem.experiments[0])
    assert found.one_step is not None
    assert found.one_step.probability > 0.05
    np.testing.assert_allclose(found.series[0].ahead, found.series[0].predicted, atol=0.03)


def test_a_function_of_time_has_predictions_one_step_ahead() -> None:
    random = np.random.default_rng(6)
    times = np.linspace(0.0, 20.0, 21)
    problem = Problem(
        Model(
            ode={"x": "u - 0.4*x"},
            inputs={"u": {"estimate": "spline", "knots": 5, "guess": 0.3}},
        ),
        data={"t": times, "x": 1 - np.exp(-0.4 * times) + 0.02 * random.standard_normal(21)},
        initial={"x": 0.0},
        noise={"x": {"sd": 0.02}},
    )
    result = odefit.fit(problem, SingleShooting(), jobs=1)
    found = result.validate(problem.experiments[0])
    assert found.one_step is not None
    assert found.one_step.disturbance == 0.0
    np.testing.assert_allclose(found.series[0].ahead, found.series[0].predicted, rtol=1e-6)
