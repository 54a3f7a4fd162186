"""Tests of local searches between the times at which an event passes a measurement."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import odefit
from odefit.common.arrays import Array
from odefit.methods.local.event_times import event_places, minimise_between
from odefit.methods.local.scaling import Scaling
from odefit.methods.local.stopping import Tolerances
from odefit.methods.local.trust_region import minimise

TIMES = np.linspace(0.0, 30.0, 31)
PLACES = [np.arange(1.0, 10.0), np.zeros(0)]
FREE = np.full(2, -np.inf), np.full(2, np.inf)


@dataclass(frozen=True)
class At:
    cost: float
    residuals: Array
    jacobian: Array


def cost_of(rows: Callable[[Array], tuple[Array, Array]]) -> Callable[[Array], At]:
    def evaluate(x: Array) -> At:
        residuals, jacobian = rows(x)
        return At(0.5 * float(residuals @ residuals), residuals, jacobian)

    return evaluate


def bent(x: Array, kink: float) -> tuple[Array, Array]:
    """Residuals with a kink in the first unknown: the second one follows it in a valley."""
    side = 3.0 if x[0] > kink else -1.0
    return (
        np.array([2.0 + side * (x[0] - kink), 20.0 * (x[1] - x[0] ** 2)]),
        np.array([[side, 0.0], [-40.0 * x[0], 20.0]]),
    )


def stepped(x: Array) -> tuple[Array, Array]:
    """A residual that jumps by one at each place, beside one with its minimum at 7.5."""
    jumps = abs(np.floor(x[0]) - 4.0)
    return np.array([1.0 + jumps, 0.1 * (x[0] - 7.5)]), np.array([[0.0, 0.0], [0.1, 0.0]])


def ended(rows: Callable[[Array], tuple[Array, Array]], start: list[float]) -> Any:
    evaluate, tolerances = cost_of(rows), Tolerances(evaluations=300)
    first = minimise(evaluate, np.array(start), *FREE, tolerances)
    return minimise_between(evaluate, first, *FREE, tolerances, lambda: False, None, PLACES)


@pytest.mark.parametrize("start", [[2.3, 1.0], [4.5, 30.0], [7.7, -5.0], [9.9, 50.0]])
def test_the_minimum_in_a_kink_is_reached_from_both_sides(start: list[float]) -> None:
    minimum = ended(lambda x: bent(x, 5.0), start)
    assert minimum.converged
    assert minimum.vector == pytest.approx([5.0, 25.0], rel=1e-6)


def test_a_search_continues_across_places_without_a_kink() -> None:
    minimum = ended(lambda x: (x - [6.4, 2.0], np.eye(2)), [1.2, 0.0])
    assert minimum.vector == pytest.approx([6.4, 2.0])
    assert minimum.evaluations < 20


def test_a_cost_that_jumps_is_lowest_before_the_jump() -> None:
    minimum = ended(stepped, [4.2, 0.0])
    assert minimum.vector[0] == pytest.approx(5.0, abs=1e-6)
    assert minimum.vector[0] < 5.0


@pytest.mark.parametrize(("bound", "start"), [(0.5, 0.7), (9.5, 9.3), (3.5, 3.4), (3.0, 2.8)])
def test_a_search_ends_at_a_bound_beyond_which_the_cost_falls(bound: float, start: float) -> None:
    """Bounds before the first place, after the last one, between two of them, and at one."""
    lower, upper = FREE[0].copy(), FREE[1].copy()
    (upper if start < bound else lower)[0] = bound
    evaluate = cost_of(lambda x: (x - [2 * bound - start, 0.0], np.eye(2)))
    tolerances = Tolerances(evaluations=300)
    first = minimise(evaluate, np.array([start, 1.0]), lower, upper, tolerances)
    end = minimise_between(evaluate, first, lower, upper, tolerances, lambda: False, None, PLACES)
    assert end.vector == pytest.approx([bound, 0.0], abs=1e-8)


def problem(rate: str, **more: Any) -> odefit.Problem:
    """Return a problem with exact data of a heater that is switched off at t = 12."""
    exact = np.where(TIMES < 12.0, 1.0 - np.exp(-0.2 * TIMES), 0.0)
    exact += np.where(TIMES >= 12.0, (1.0 - np.exp(-2.4)) * np.exp(-0.2 * (TIMES - 12.0)), 0.0)
    noise = 0.02 * np.random.default_rng(4).normal(size=len(TIMES))
    return odefit.Problem(
        odefit.Model({"x": rate}, {"y": "x"}),
        {"t": TIMES, "y": exact + noise},
        {"k": {"lower": 0.01, "upper": 2.0}, "off": {"lower": 1.0, "upper": 29.0}, **more},
        {"x": 0.0},
    )


@pytest.mark.parametrize("scale", ["linear", "log10"])
@pytest.mark.parametrize(
    ("switch", "expected"),
    [("t < off", TIMES), ("t < 2*off + 3", (TIMES - 3.0) / 2.0), ("3 > t - off", TIMES - 3.0)],
)
def test_places_are_the_values_at_which_a_switch_passes_a_measurement(
    switch: str, expected: Array, scale: str
) -> None:
    off = {"lower": 1.0, "upper": 29.0, "scale": scale}
    given = problem(f"k*(if({switch}, 1, 0) - x)", off=off)
    of_k, places = event_places(given, Scaling.of(given), np.arange(2))
    inside = expected[(expected > 1.0) & (expected < 29.0)]
    assert not of_k.size
    assert places == pytest.approx(np.log10(inside) if scale == "log10" else inside)


def test_places_of_a_dosing_lag_do_not_repeat() -> None:
    doses = [odefit.Event((f"{12 * n} + lag",), {"x": "x + 1"}) for n in range(3)]
    run = odefit.Experiment(
        "one", {"t": [6.0, 18.0, 30.0], "y": [1.0, 1.0, 1.0]}, events=doses, t0=0.0
    )
    given = odefit.Problem(
        odefit.Model({"x": "-0.1*x"}, {"y": "x"}),
        None,
        {"lag": {"lower": 0.0, "upper": 10.0}},
        {"x": 0.0},
        experiments=[run],
    )
    (places,) = event_places(given, Scaling.of(given), np.arange(1))
    assert places == pytest.approx([6.0])


def test_a_switch_that_depends_on_two_unknowns_has_no_places() -> None:
    given = problem("k*(if(t < off + d, 1, 0) - x)", d={"lower": 0.0, "upper": 5.0})
    assert not any(p.size for p in event_places(given, Scaling.of(given), np.arange(3)))


def test_a_fit_ends_at_the_best_switch_time() -> None:
    """The best of fits with the switch at each of many times is a reference without kinks."""
    given = problem("k*(if(t < off, 1, 0) - x)")
    result = odefit.fit(given, seed=1)
    assert result.status.value == "converged"
    scanned = [
        odefit.fit(given.with_unknowns(fix={"off": off}), odefit.SingleShooting()).objective
        for off in (11.9, 12.0, 12.1)
    ]
    assert result.objective <= min(scanned) * (1 + 1e-6)
    assert "at a kink" in str(result)
