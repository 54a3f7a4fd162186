"""Designs that tell two models apart: published ones, the equivalence theorem, and simulations."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import least_squares
from scipy.special import lambertw

import odefit
from odefit import InputError, Model, Problem, Result
from odefit.cli.main import main


def of_time(name: str, formula: str, parameters: dict[str, Any]) -> Problem:
    """Return a model whose observable is a formula of time, measured from -1 to 1."""
    return Problem(
        Model(ode={"s": "0*s"}, observables={"y": formula}),
        data={"t": [-1.0, 1.0], "y": [0.0, 0.0]},
        parameters=parameters,
        initial={"s": 1.0},
        noise={"y": {"sd": 1.0}},
        name=name,
    )


def quadratic() -> Problem:
    guesses = {name: {"guess": 0.0} for name in ("a0", "a1", "a2")}
    return of_time("quadratic", "a0 + a1*t + a2*t^2", guesses)


@pytest.mark.slow
def test_the_design_of_atkinson_and_fedorov_is_reproduced() -> None:
    """Biometrika 62, 1975: points -1, -0.669, 0.144, 0.957 and the discrepancy 1.087e-3."""
    right = of_time("exponentials", "4.5 - 1.5*exp(t) - 2*exp(-t)*s", {"s0": {"fixed": 1.0}})
    found = odefit.design(right, against=quadratic(), times=(-1.0, 1.0), count=4)
    best = found.continuous
    assert best is not None
    assert best.excess < 1e-3
    points: dict[float, float] = {}
    for point in best.points:
        near = [t for t in points if abs(t - point.measurement.time) < 0.02]
        key = near[0] if near else point.measurement.time
        points[key] = points.get(key, 0.0) + point.weight
    assert sorted(points) == pytest.approx([-1.0, -0.669, 0.144, 0.957], abs=5e-3)
    weights = [points[t] for t in sorted(points)]
    assert weights == pytest.approx([0.253, 0.428, 0.247, 0.072], abs=4e-3)
    assert np.exp(best.value) / 4 == pytest.approx(1.087e-3, abs=1e-6)
    # No time has a larger derivative than the mean: the equivalence theorem.
    assert max(float(np.max(curve.values)) for curve in found.curves) < 1 + 1e-3
    assert found.rivalry is not None
    assert found.rivalry.models == ("exponentials", "quadratic")
    # The exact design is at least as good as every other of four times in a grid.
    exact = found.rivalry.distance**2

    def discrepancy(times: Any) -> float:
        t = np.asarray(times)
        y = 4.5 - 1.5 * np.exp(t) - 2 * np.exp(-t)
        columns = np.column_stack([np.ones_like(t), t, t**2])
        rest = y - columns @ np.linalg.lstsq(columns, y, rcond=None)[0]
        return float(rest @ rest)

    assert exact == pytest.approx(discrepancy(found.times), rel=1e-6)
    grid = np.linspace(-1, 1, 21)
    for a in grid[:6]:
        for b in grid[a < grid][:12]:
            for c in grid[b < grid][:12]:
                for d in grid[c < grid]:
                    assert discrepancy([a, b, c, d]) <= exact * (1 + 1e-6)


S0, SD = 10.0, 0.1
EARLY = np.linspace(0.5, 3.0, 6)


def saturated(t: Any, v: float, k: float) -> Any:
    """Return the substrate of an enzyme, in closed form."""
    argument: Any = S0 / k * np.exp((S0 - v * np.asarray(t)) / k)
    return k * np.real(lambertw(argument))


def power(t: Any, k: float, n: float) -> Any:
    """Return the substrate of a reaction of order n, in closed form."""
    return np.maximum(S0 ** (1 - n) - (1 - n) * k * np.asarray(t), 1e-12) ** (1 / (1 - n))


def problem(name: str, rate: str, parameters: dict[str, Any], y: Any) -> Problem:
    return Problem(
        Model(ode={"s": f"-{rate}"}, observables={"y": "s"}),
        experiments=[odefit.Experiment("data", {"t": EARLY, "y": y}, t0=0.0)],
        parameters=parameters,
        initial={"s": S0},
        noise={"y": {"sd": SD}},
        name=name,
    )


@pytest.fixture(scope="module")
def fits() -> tuple[Result, Result]:
    """Return two laws fitted to early measurements, which cannot tell them apart."""
    y = saturated(EARLY, 1.5, 3.0) + SD * np.random.default_rng(1).standard_normal(len(EARLY))
    laws = {
        "enzyme": ("V*s/(K + s)", {"V": (0.5, 10.0), "K": (0.3, 60.0)}),
        "power": ("k*s^n", {"k": (0.05, 3.0), "n": (0.05, 0.95)}),
    }
    first, second = (
        odefit.fit(problem(name, *law, y), seed=1, jobs=1) for name, law in laws.items()
    )
    return first, second


@pytest.mark.slow
def test_the_distance_is_that_of_the_closest_fit(fits: tuple[Result, Result]) -> None:
    """Against SciPy on closed forms; the measurements that there are count for the other model."""
    first, second = fits
    found = odefit.design(first, against=second, times=(0.0, 12.0), count=3)
    assert found.criterion.value == "T"
    times = np.array(found.times)
    v, k = (first.parameters["estimate"][name] for name in ("V", "K"))
    y = np.asarray(first.problem.conditions[0].series["y"].values)

    def residuals(values: Any) -> Any:
        data = (power(EARLY, *values) - y) / SD
        return np.concatenate([data, (power(times, *values) - saturated(times, v, k)) / SD])

    start = [second.parameters["estimate"][name] for name in ("k", "n")]
    alone = residuals(start)[: len(y)]
    best = least_squares(residuals, start, bounds=([0.05, 0.05], [3.0, 0.95]), xtol=1e-14)
    assert found.rivalry is not None
    assert found.rivalry.distance**2 == pytest.approx(2 * best.cost - alone @ alone, rel=1e-4)
    assert list(found.rivalry.closest.values()) == pytest.approx(best.x, rel=1e-3)
    assert found.continuous is not None
    assert found.continuous.excess < 1e-3
    assert found.efficiency <= 1 + 1e-6
    # No other choice of three times in a grid is better.
    grid = np.linspace(0.25, 12.0, 12)
    for a in grid:
        for b in grid[grid >= a]:
            times = np.array([a, b, b])
            other = least_squares(residuals, best.x, bounds=([0.05, 0.05], [3.0, 0.95]))
            assert 2 * other.cost - alone @ alone <= found.rivalry.distance**2 * (1 + 1e-6)


@pytest.mark.slow
def test_simulated_measurements_distinguish_the_models_as_planned(
    fits: tuple[Result, Result],
) -> None:
    """The mean sum of squares of the wrong model is the planned one and its degrees of freedom."""
    first, _ = fits
    power_law = problem("power", "k*s^n", {"k": (0.05, 3.0), "n": (0.05, 0.95)}, EARLY)
    found = odefit.design(
        first,
        against=power_law.with_unknowns(guess={"k": 0.5, "n": 0.5}),
        existing=False,
        times=(0.0, 12.0),
        count=6,
    )
    assert found.rivalry is not None
    times = np.array(found.times)
    v, k = (first.parameters["estimate"][name] for name in ("V", "K"))
    random, squares = np.random.default_rng(3), []
    for _ in range(300):
        y = saturated(times, v, k) + SD * random.standard_normal(len(times))

        def residuals(p: Any, y: Any = y) -> Any:
            return (power(times, *p) - y) / SD

        fitted = least_squares(residuals, [0.5, 0.5], bounds=([0.01, 0.01], [9, 0.99]))
        squares.append(2 * fitted.cost)
    error = np.std(squares) / np.sqrt(len(squares))
    assert np.mean(squares) == pytest.approx(found.rivalry.distance**2 + 6 - 2, abs=4 * error)


@pytest.mark.slow
def test_buzzi_ferraris_weighs_differences_against_uncertainty(
    fits: tuple[Result, Result],
) -> None:
    """The first time maximises the criterion, computed from closed forms by differences."""
    first, second = fits
    times = np.linspace(0.5, 12.0, 24)
    found = odefit.design(
        first, against=second, criterion="Buzzi-Ferraris", times=times.tolist(), count=1
    )
    models = [(saturated, first, ("V", "K")), (power, second, ("k", "n"))]
    spread, curves = 2 * SD**2 * np.ones(len(times)), []
    for curve, result, keys in models:
        values = np.array([result.parameters["estimate"][key] for key in keys])

        def slopes(t: Any, values: Any = values, curve: Any = curve) -> Any:
            steps = np.diag(1e-6 * values)
            return np.column_stack(
                [(curve(t, *(values + h)) - curve(t, *(values - h))) / (2 * h.sum()) for h in steps]
            )

        covariance = np.linalg.inv(slopes(EARLY).T @ slopes(EARLY)) * SD**2
        spread = spread + np.einsum("ij,jk,ik->i", slopes(times), covariance, slopes(times))
        curves.append(curve(times, *values))
    squares = (curves[0] - curves[1]) ** 2
    criterion = (squares + 2 * SD**2) / spread
    # None exceeds 1: the differences alone decide, and the text says so.
    assert criterion.max() < 1
    best = int(np.argmax(squares / spread))
    assert np.asarray(found.times) == pytest.approx(times[[best]])
    assert np.exp(found.value) == pytest.approx(criterion[best], rel=1e-3)
    assert "no single measurement is expected" in str(found)
    # With more measurements both models are known well enough.
    many = [model.problem.with_experiments(_more()) for model in (first, second)]
    surer = odefit.design(
        odefit.fit(many[0], seed=1, jobs=1),
        against=odefit.fit(many[1], seed=1, jobs=1),
        criterion="Buzzi-Ferraris",
        times=times.tolist(),
        count=2,
    )
    assert np.exp(surer.value) > 1
    assert "is expected" not in str(surer)


def _more() -> list[odefit.Experiment]:
    """Return the experiment with many early measurements."""
    times = np.linspace(0.02, 6.5, 300)
    y = saturated(times, 1.5, 3.0) + SD * np.random.default_rng(2).standard_normal(300)
    return [odefit.Experiment("data", {"t": times, "y": y}, t0=0.0)]


@pytest.mark.slow
def test_the_command_line_distinguishes_two_results(
    fits: tuple[Result, Result], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [tmp_path / "enzyme.json", tmp_path / "power.json"]
    for result, file in zip(fits, files, strict=True):
        result.save(file)
    written = [tmp_path / "d.json", tmp_path / "d.svg"]
    options = ["--times", "0:12", "--count", "3", "--json", written[0], "--plot", written[1]]
    arguments = ["design", files[0], "--against", files[1], *options]
    assert main([str(a) for a in arguments]) == 0
    printed = capsys.readouterr().out
    assert '"enzyme" and "power"' in printed
    assert "standard deviations of the noise" in printed
    found = json.loads(written[0].read_text(encoding="utf-8"))
    assert len(found["times"]) == 3
    assert found["criterion"] == "T"
    assert found["discrimination"]["models"] == ["enzyme", "power"]
    assert len(found["discrimination"]["predictions"]) == len(found["measurements"])
    assert "<svg" in written[1].read_text(encoding="utf-8")


def test_mistakes_are_reported(fits: tuple[Result, Result]) -> None:
    first, second = fits
    with pytest.raises(InputError, match="give the other model"):
        odefit.design(first, criterion="T", times=(0, 12))
    with pytest.raises(InputError, match="it is T or Buzzi-Ferraris"):
        odefit.design(first, against=second, criterion="A", times=(0, 12))
    with pytest.raises(InputError, match="predicts the same"):
        odefit.design(first, against=first, existing=False, times=(0, 12))
    with pytest.raises(InputError, match="no experiment 'data'"):
        odefit.design(first, against=quadratic_in_another_experiment(), times=(0, 12))


def quadratic_in_another_experiment() -> Problem:
    return Problem(
        Model(ode={"s": "-k"}, observables={"y": "s"}),
        parameters={"k": {"guess": 1.0}},
        initial={"s": S0},
        noise={"y": {"sd": SD}},
        experiments=[odefit.Experiment("else", {"t": EARLY, "y": EARLY})],
    )
