"""The smoothness of unknown functions: what is chosen is the optimum of its criterion."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

import odefit
from odefit.common.arrays import Array
from odefit.fitting.smoothness import chosen_smoothness, with_sds
from odefit.methods.running.control import Control, control_of
from odefit.result_data.notices import NoticeKind
from odefit.simulation import Evaluation, ForwardMap

TIMES = np.linspace(0.0, 15.0, 31)
RATE = 0.4


def absorbed(times: Array) -> tuple[Array, Array]:
    """The input, and the amount that it makes in one compartment, in closed form."""
    k = RATE
    slow = (np.exp(-0.3 * times) - np.exp(-k * times)) / (k - 0.3)
    fast = (np.exp(-1.5 * times) - np.exp(-k * times)) / (k - 1.5)
    return 10 * (np.exp(-0.3 * times) - np.exp(-1.5 * times)), 10 * (slow - fast)


def wave(times: Array) -> Array:
    """The amount that the input 3 + 1.5 sin(0.8 t) makes: it bends everywhere alike."""
    k, w = RATE, 0.8
    waves = k * np.sin(w * times) - w * np.cos(w * times) + w * np.exp(-k * times)
    return np.asarray(3 / k * (1 - np.exp(-k * times)) + 1.5 * waves / (k**2 + w**2))


def problem(
    smooth: str,
    noise: Mapping[str, Any] | None = None,
    seed: int = 3,
    exact: Callable[[Array], Array] = lambda times: absorbed(times)[1],
) -> odefit.Problem:
    table = {"estimate": "spline", "knots": 8, "smooth": smooth, "sd": 1.0, "guess": 2.0}
    model = odefit.Model(ode={"x": "u - 0.4*x"}, observables={"y": "x"}, inputs={"u": table})
    rng = np.random.default_rng(seed)
    y = exact(TIMES) + 0.3 * rng.standard_normal(len(TIMES))
    given = {"y": {"sd": 0.3}} if noise is None else noise
    return odefit.Problem(model, data={"t": TIMES, "y": y}, initial={"x": 0.0}, noise=given)


def control() -> Control:
    return control_of(0, None, None, None, None, None, None, None)


def linear_parts(p: odefit.Problem) -> tuple[Array, Array, list[int]]:
    """The problem is linear: residuals at zero, derivatives, and the penalised places."""
    found = ForwardMap(p).evaluate(np.zeros(len(p.unknowns)))
    assert isinstance(found, Evaluation)
    measured = p.size
    penalised = p.given.unknown_functions["u"].penalised
    at = [i for i, u in enumerate(p.unknowns) if u.name in penalised]
    return found.residuals[:measured], found.jacobian[:measured], at


@pytest.mark.slow
def test_a_function_that_is_steep_in_one_part_has_an_uneven_smoothness() -> None:
    """Found by the likelihood ratio, it is the same as the one that is asked for."""
    (found,) = chosen_smoothness(problem("reml"), None, control()).notices
    (asked,) = chosen_smoothness(problem("adaptive"), None, control()).notices
    assert found.names == asked.names == ("u", "adaptive")
    for key in ("sd", "last"):
        assert found.numbers[key] == pytest.approx(asked.numbers[key], rel=0.05)
    (even,) = chosen_smoothness(problem("reml", exact=wave), None, control()).notices
    assert even.names == ("u", "reml")


@pytest.mark.slow
def test_the_optimum_is_that_of_the_marginal_likelihood() -> None:
    p = problem("reml", exact=wave)
    chosen = chosen_smoothness(p, None, control())
    (notice,) = chosen.notices
    r, jacobian, at = linear_parts(p)

    def minus_log_likelihood(sd: float) -> float:
        # All unknowns integrated out of a linear model: flat ones, and normal ones of this sd.
        penalty = np.zeros(jacobian.shape[1])
        penalty[at] = sd**-2
        hessian = jacobian.T @ jacobian + np.diag(penalty)
        best = -np.linalg.solve(hessian, jacobian.T @ r)
        cost = np.sum((r + jacobian @ best) ** 2) + best @ (penalty * best)
        return float(cost + np.linalg.slogdet(hessian)[1] + 2 * len(at) * np.log(sd))

    grid = np.exp(np.linspace(-6, 4, 2001))
    best = grid[np.argmin([minus_log_likelihood(sd) for sd in grid])]
    assert notice.kind is NoticeKind.SMOOTHNESS
    assert notice.numbers["settled"]
    assert notice.numbers["sd"] == pytest.approx(best, rel=0.05)


@pytest.mark.slow
def test_cross_validation_leaves_each_value_out() -> None:
    p = problem("cv")
    chosen = chosen_smoothness(p, None, control())
    r, jacobian, at = linear_parts(p)

    def error(sd: float) -> float:
        penalty = np.zeros(jacobian.shape[1])
        penalty[at] = sd**-2
        total = 0.0
        for i in range(len(r)):
            kept = np.arange(len(r)) != i
            some = jacobian[kept]
            hessian = some.T @ some + np.diag(penalty)
            best = -np.linalg.solve(hessian, some.T @ r[kept])
            total += float(r[i] + jacobian[i] @ best) ** 2
        return total

    found = chosen.notices[0].numbers["sd"]
    grid = np.exp(np.linspace(-6, 4, 101))
    assert error(found) <= 1.01 * min(error(sd) for sd in grid)


@pytest.mark.slow
def test_a_fit_reports_its_smoothness_and_its_band_contains_the_input() -> None:
    result = odefit.fit(problem("reml"), odefit.SingleShooting())
    assert any("restricted maximum likelihood" in w for w in result.warnings)
    table = result.predict(TIMES)
    band = table[table.name == "u"]
    truth = absorbed(TIMES)[0]
    inside = (band.ci_low.to_numpy() <= truth) & (truth <= band.ci_high.to_numpy())
    assert inside.mean() > 0.8


def test_smoothness_without_noise_is_refused() -> None:
    with pytest.raises(odefit.InputError, match="follows from the noise"):
        odefit.fit(problem("reml", noise={}), odefit.SingleShooting())


def test_other_standard_deviations_change_the_priors_alone() -> None:
    p = with_sds(problem("reml"), {"u": 0.25})
    assert {prior.sd for prior in p.priors.values()} == {0.25}
    assert p.keys == problem("reml").keys


@pytest.mark.slow
def test_an_adaptive_smoothness_ends_at_the_largest_likelihood() -> None:
    p = problem("adaptive")
    chosen = chosen_smoothness(p, None, control())
    (notice,) = chosen.notices
    r, jacobian, at = linear_parts(p)
    along = p.given.unknown_functions["u"].along

    def minus_log_posterior(level: float, tilt: float) -> float:
        logarithms = level + tilt * along
        penalty = np.zeros(jacobian.shape[1])
        penalty[at] = np.exp(-2 * logarithms)
        hessian = jacobian.T @ jacobian + np.diag(penalty)
        best = -np.linalg.solve(hessian, jacobian.T @ r)
        cost = np.sum((r + jacobian @ best) ** 2) + best @ (penalty * best)
        prior = (tilt / 3.0) ** 2
        return float(cost + np.linalg.slogdet(hessian)[1] + 2 * logarithms.sum() + prior)

    levels, tilts = np.linspace(-4, 3, 71), np.linspace(-5, 5, 101)
    least = min(minus_log_posterior(a, b) for a in levels for b in tilts)
    first, last = (np.log(notice.numbers[key]) for key in ("sd", "last"))
    tilt = (last - first) / (along[-1] - along[0])
    assert notice.numbers["settled"]
    assert minus_log_posterior(first - tilt * along[0], tilt) < least + 0.02


@pytest.mark.slow
def test_the_band_of_a_positive_function_is_symmetric_on_its_logarithm() -> None:
    table = {"estimate": "spline", "knots": 5, "smooth": "reml", "scale": "log10", "guess": 2.0}
    model = odefit.Model(ode={"x": "u - 0.4*x"}, observables={"y": "x"}, inputs={"u": table})
    y = absorbed(TIMES)[1] + 0.3 * np.random.default_rng(3).standard_normal(len(TIMES))
    p = odefit.Problem(
        model, data={"t": TIMES, "y": y}, initial={"x": 0.0}, noise={"y": {"sd": 0.3}}
    )
    predicted = odefit.fit(p, odefit.SingleShooting()).predict(TIMES)
    band = predicted[predicted.name == "u"]
    low, value, high = (band[key].to_numpy() for key in ("ci_low", "value", "ci_high"))
    assert (low > 0).all()
    assert value / low == pytest.approx(high / value)
