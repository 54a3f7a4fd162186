"""What intervals and partly lost boxes say, against exact solutions to forty digits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mpmath
import numpy as np
import pytest

import odefit
from odefit import Event, Experiment, Model, Problem
from odefit.common.arrays import Array
from odefit.enclosure import Enclosure, affine_maps, differential_inequalities, flow
from odefit.enclosure.arithmetic.intervals import Interval
from odefit.enclosure.differential_inequalities import (
    Comparison,
    DifferentialInequalities,
    StateIntervals,
    highest,
)
from odefit.enclosure.kernels.comparison import highest as compiled_highest
from odefit.enclosure.system import System
from tests.enclosure.containment import checked, sane
from tests.enclosure.solutions import decay, holds, observed, oscillator

PINENE_TIMES = [100.0, 1230.0, 3060.0, 36420.0]


def pinene(q: Sequence[Any]) -> Any:
    p1, p2, p3, p4, p5 = q
    return mpmath.matrix(
        [
            [-p1 - p2, 0, 0, 0, 0],
            [p1, 0, 0, 0, 0],
            [p2, 0, -p3 - p4, 0, p5],
            [0, 0, p3, 0, 0],
            [0, 0, p4, 0, -p5],
        ]
    )


def linear_pinene(t: Any, q: Sequence[Any]) -> list[Any]:
    """By the eigenvalues of the two that exchange: exponentials of large matrices are slow."""
    start = mpmath.matrix([100, 0, 0, 0, 0])
    values, left, right = mpmath.eig(pinene(q), left=True, right=True)
    total = mpmath.matrix([0] * 5)
    for k, value in enumerate(values):
        row, column = left[k, :], right[:, k]
        total += column * ((row * start)[0] / (row * column)[0] * mpmath.exp(value * t))
    return [mpmath.re(x) for x in total]


def along(system: System, lower: Array, upper: Array, start: Array, times: Sequence[float]) -> Any:
    """State intervals at some times, for boxes of unknowns with these corners."""
    unknowns = {e: Interval(lower[:, k], upper[:, k]) for k, e in enumerate(system.unknowns)}
    own = DifferentialInequalities(system)
    states = [Interval(np.full(len(lower), x), np.full(len(lower), x)) for x in start]
    enclosed, now = own.start(states, 0.0), 0.0
    for time in times:
        enclosed, now = own.advance(enclosed, unknowns, now, time), time
        yield enclosed


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_random_boxes_of_a_stiff_network_are_enclosed(seed: int) -> None:
    problem = odefit.library.load("alpha-pinene")
    system = System(problem, problem.conditions[0])
    rng = np.random.default_rng(seed)
    lower = 10.0 ** rng.uniform(-7, 0, (8, 5))
    upper = lower * 10.0 ** rng.uniform(0, 2, (8, 5))
    found: list[StateIntervals] = list(
        along(system, lower, upper, np.array([100.0, 0, 0, 0, 0]), PINENE_TIMES)
    )
    with mpmath.workdps(40):
        for b in range(8):
            for share in (*rng.integers(0, 2, (2, 5)), rng.random(5)):
                q = [mpmath.mpf(v) for v in (lower[b] + share * (upper[b] - lower[b])).tolist()]
                for time, enclosed in zip(PINENE_TIMES, found, strict=True):
                    for state, true in zip(enclosed.states, linear_pinene(time, q), strict=True):
                        assert state.low[b] - 1e-20 <= true <= state.high[b] + 1e-20
    for enclosed in found:
        for state in enclosed.states:
            assert (state.low >= 0).all()
            assert (state.high <= 100 * (1 + 1e-6)).all()


def test_decay_at_any_rate_takes_one_step() -> None:
    problem = observed({"x": "-k*x"}, [1e6], {"x": 1.0}, ["k"])
    system = System(problem, problem.conditions[0])
    lower, upper = np.array([[1e-3], [0.0], [1e9]]), np.array([[1e3], [1e3], [1e9]])
    (enclosed,) = along(system, lower, upper, np.ones(1), [1e6])
    assert enclosed.states[0].low.tolist() == [0.0, 0.0, 0.0]
    assert enclosed.states[0].high[0] < 1e-280
    assert 1.0 <= enclosed.states[0].high[1] < 1.0 + 1e-8


@pytest.mark.parametrize("guesses", [0, 1, 3])
@pytest.mark.parametrize("refinements", [0, 2])
def test_growth_is_not_assumed_to_be_small(
    guesses: int, refinements: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guesses that are not confirmed are no bounds: x of 1/(1 - t x0) goes to infinity."""
    monkeypatch.setattr(differential_inequalities, "MAX_GUESSES", guesses)
    monkeypatch.setattr(differential_inequalities, "REFINEMENTS", refinements)
    problem = observed({"x": "y*x", "y": "y^2"}, [0.5, 0.9], {"x": {}, "y": {}}, [])
    system = System(problem, problem.conditions[0])
    for y in (0.1, 1.0, 1.2):
        last = None
        for time, enclosed in zip(
            (0.5, 0.9), along_states(system, [1.0, y], (0.5, 0.9)), strict=True
        ):
            true = y / (1 - time * y) if time * y < 1 else np.inf
            assert enclosed.states[1].high[0] >= true
            assert enclosed.states[0].high[0] >= true / y
            assert 0 <= enclosed.states[1].low[0] <= true
            last = enclosed
        assert last is not None


def along_states(system: System, start: Sequence[float], times: Sequence[float]) -> Any:
    nothing = np.zeros((1, len(system.unknowns)))
    return along(system, nothing, nothing, np.array(start), times)


def test_rotations_are_bounded_by_differential_inequalities() -> None:
    """Signs change, and there is nothing to hold on to: wide, but not wrong."""
    problem = observed({"x": "w*y", "y": "-w*x"}, [0.4, 1.0], {"x": 1.0, "y": 0.0}, ["w"])
    system = System(problem, problem.conditions[0])
    lower, upper = np.array([[0.9], [0.2]]), np.array([[1.1], [0.2]])
    for time, enclosed in zip(
        (0.4, 1.0), along(system, lower, upper, np.array([1.0, 0.0]), (0.4, 1.0)), strict=True
    ):
        for w in (0.9, 1.0, 1.1):
            for state, true in zip(enclosed.states, oscillator(time, [w, 1.0]), strict=True):
                assert state.low[0] <= true <= state.high[0]
        for state, true in zip(enclosed.states, oscillator(time, [0.2, 1.0]), strict=True):
            assert state.low[1] <= true <= state.high[1]
            assert state.high[1] - state.low[1] < 0.5


def test_the_last_state_of_a_chain_holds_the_conserved_sum() -> None:
    """A chain x -> 2 y -> z at fast rates, of which x + y/2 + z is one: only this sum shows it."""
    rates = {"x": "-m*x", "y": "2*m*x - n*y", "z": "n*y/2"}
    problem = observed(rates, [5.0], {"x": 1.0, "y": 0.0, "z": 0.0}, ["m", "n"])
    system = System(problem, problem.conditions[0])
    lower, upper = np.array([[10.0, 20.0]]), np.array([[1e3, 1e4]])
    (enclosed,) = along(system, lower, upper, np.array([1.0, 0.0, 0.0]), [5.0])
    x, y, z = enclosed.states
    assert 0 <= x.low[0] <= np.exp(-50.0) <= x.high[0] < 1e-20
    assert 0 <= y.low[0] <= y.high[0] < 1e-3
    true = 1 - 2 * np.exp(-50.0) + np.exp(-100.0)  # at the lower rates
    assert 1 - 1e-3 < z.low[0] <= true <= z.high[0] <= 1 + 1e-9


@pytest.mark.parametrize("bound", [highest, compiled_highest])
@pytest.mark.parametrize("seed", range(4))
def test_bounds_contain_the_solution_of_the_comparison_equation(
    seed: int, bound: Comparison
) -> None:
    """Against its solution in many small steps, from either side of zero."""
    rng = np.random.default_rng(seed)
    count = 60
    start = rng.choice([-1.0, 0.0, 1.0], count) * rng.uniform(0, 2, count)
    low = rng.choice([rng.normal(), -50.0, 3.0], count) * rng.uniform(size=count)
    factor = Interval(low, low + rng.uniform(0, 2, count))
    rest = rng.choice([-1.0, 0.0, 1.0], count) * rng.uniform(0, 3, count)
    h = 0.7
    with np.errstate(all="ignore"):
        found = bound(start, factor.low, factor.high, rest, h)
    u, steps = start.copy(), 20000
    sup = u.copy()
    for _ in range(steps):
        # Euler's method from below: the right-hand side is not overestimated where it is convex.
        u = u + h / steps * (np.maximum(factor.low * u, factor.high * u) + rest)
        sup = np.maximum(sup, u)
    room = 1e-2 * np.abs(u) + 1e-3
    assert (found >= u - room).all()
    assert (np.maximum(found, start) >= sup - room).all()
    # And no larger, but where zero is crossed.
    sharp = (start * rest >= 0) | (u * start > 0)
    assert (found[sharp] <= u[sharp] + 10 * room[sharp]).all()


@pytest.mark.parametrize("bound", [highest, compiled_highest])
def test_bounds_contain_the_solution_of_the_comparison_equation_at_overflow(
    bound: Comparison,
) -> None:
    big, one = np.full(1, 1e5), np.ones(1)
    with np.errstate(all="ignore"):
        assert bound(one, big, big, one, 1.0)[0] == np.inf
        # -1e-300 e^1e5 is far below what can be written, but not minus infinity.
        assert -np.inf < bound(-1e-300 * one, big, big, -one, 1.0)[0] <= -1e100
        assert bound(np.full(1, np.inf), -big, -big, one, 1.0)[0] == np.inf
        assert bound(0 * one, -np.inf * one, np.inf * one, 0 * one, 1.0)[0] in (
            0,
            np.inf,
        )
        assert bound(one, -big, -big, 0 * one, 1.0)[0] > 0


# Boxes of which something is lost --------------------------------------------------------------


def triangular() -> Problem:
    """y depends on x, not the other way; its rate may be anything."""
    return observed(
        {"y": "x - k*y^3 + y^2", "x": "-m*x"}, [0.5, 1.0, 4.0], {"y": 1.0, "x": {}}, ["k", "m"]
    )


def test_states_before_a_lost_one_stay() -> None:
    enclosure = Enclosure(triangular())
    lower, upper = (
        np.array([[-5.0, 0.5, 1.0], [1.0, 0.5, 1.0]]),
        np.array([[5.0, 0.6, 1.1], [1.1, 0.6, 1.1]]),
    )
    found = enclosure(lower, upper)
    sane(found)
    assert np.isinf(found.remainder[1:3, 0]).all()
    assert found.remainder[3:].max() < 1e-2


@pytest.mark.slow
def test_a_lost_state_spoils_no_bound() -> None:
    """The first two of a chain, whatever becomes of the third."""
    problem = observed(
        {"a": "-k*a", "b": "b*(1 - b)*r + 0*a", "c": "c^2 + a"},
        [0.3, 1.0, 2.0],
        {"a": {}, "b": 0.2, "c": 1.0},
        ["k", "r"],
    )
    enclosure = Enclosure(problem)
    lower, upper = np.array([[0.7, 1.0, 1.0]]), np.array([[0.9, 1.2, 1.1]])
    found = enclosure(lower, upper)
    rows = np.arange(6)

    def known(t: Any, v: Sequence[Any]) -> Sequence[Any]:
        growth = mpmath.exp(v[1] * t)
        a = decay(t, [v[0], v[2]])[0]
        return [a, growth / (4 + growth), None]

    assert np.isfinite(found.remainder[rows]).all()
    assert np.isinf(found.remainder[7:]).all()
    alone = observed(
        {"a": "-k*a", "b": "b*(1 - b)*r"}, [0.3, 1.0, 2.0], {"a": {}, "b": 0.2}, ["k", "r"]
    )
    both = holds(alone, Enclosure(alone), lower, upper, lambda t, v: known(t, v)[:2])
    assert np.abs(both.remainder - found.remainder[rows]).max() < 0.05


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_wide_boxes_of_stiff_networks_are_enclosed(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Taylor models for some states and intervals for others, whichever give up."""
    monkeypatch.setattr(flow, "MAX_STEPS", [20, 60, 400][seed])
    monkeypatch.setattr(affine_maps, "STIFF_RATE", np.inf)
    problem = odefit.library.load("alpha-pinene")
    enclosure, forward = Enclosure(problem), odefit.ForwardMap(problem)
    rng = np.random.default_rng(seed)
    partly = 0
    for _ in range(3):
        lower = np.array([[5e-5, 2e-5, *10.0 ** rng.uniform(-5, -2.5, 3)]])
        upper = lower * 10.0 ** rng.uniform(0, 0.7, (1, 5))
        found = checked(problem, lower, upper, enclosure, forward, 4)
        known = np.isfinite(found.remainder[:, 0])
        partly += bool(known.any() and (found.c[known, 1:] == 0).all(axis=1).any())
    assert partly


def test_fast_rates_are_refuted_at_once() -> None:
    """Time constants of a minute, a day between data."""
    problem = odefit.library.load("alpha-pinene")
    enclosure = Enclosure(problem)
    lower = np.array([[0.01, 0, 0, 0, 0], [5e-5, 2e-5, 1e-2, 1e-5, 0.01]])
    upper = np.array([[1.0, 1, 1, 1, 1], [7e-5, 4e-5, 1.0, 1e-4, 0.1]])
    assert (enclosure(lower, upper, 4.5).squares_bound() > 19.9).all()


def test_events_and_inputs_with_intervals(monkeypatch: pytest.MonkeyPatch) -> None:
    """All by intervals, since series are not allowed a single step."""
    monkeypatch.setattr(flow, "MAX_STEPS", 0)
    problem = Problem(
        Model(
            ode={"x": "u - k*s*x", "z": "-x*z + k"}, inputs={"u": "linear"}, constants={"s": 1.0}
        ),
        parameters={"k": {}},
        initial={"x": 1.0, "z": 0.5},
        experiments=[
            Experiment(
                "run",
                data={
                    "t": [0.0, 0.5, 1.0, 2.0, 4.0],
                    "u": [0.5, 1.0, 2.0, 1.0, 0.0],
                    "x": [9.0, 9.0, -9.0, 9.0, -9.0],
                    "z": [9.0] * 5,
                },
                events=[
                    Event((1.0,), {"x": "x + 3*z"}),
                    Event((2.5,), {"s": "2 + k", "z": "z/2"}),
                ],
            )
        ],
    )
    found = checked(problem, np.array([[0.6]]), np.array([[0.62]]))
    assert np.isfinite(found.remainder).all()
    assert (found.c[:, 1:] == 0).all(axis=1).any()


def test_states_that_depend_on_an_abandoned_state_stay_enclosed() -> None:
    """The rate of y is harmless, but made of an x whose rate is not."""
    problem = observed({"y": "x/9 - y/8", "x": "-k*x"}, [1.0, 2.0], {"y": 0.0, "x": 30.0}, ["k"])

    def solution(t: Any, v: Sequence[Any]) -> Sequence[Any]:
        k = v[0]
        y = 30 * (mpmath.exp(-t / 8) - mpmath.exp(-k * t)) / (9 * (k - mpmath.mpf(1) / 8))
        return [y, 30 * mpmath.exp(-k * t)]

    for lower, upper in ((1e3, 1e4), (3.0, 4000.0), (0.5, 1e6)):
        holds(problem, Enclosure(problem), np.array([[lower]]), np.array([[upper]]), solution)
