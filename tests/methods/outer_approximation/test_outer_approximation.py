"""The whole method: bounds that hold, grow, and survive limits; messages that help."""

from __future__ import annotations

import math
import threading
import time
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import odefit
from odefit import InputError, Model, OuterApproximation, Problem
from odefit.methods import Control
from odefit.methods.estimate import Certificate, Estimate, Status
from tests.methods.outer_approximation.problems import problem

SMALL: dict[str, Any] = {"elements": 2, "points": 2, "starts": 1, "polish": False}


def solved(own: Problem, seconds: float = 300.0, **options: Any) -> Estimate:
    method = OuterApproximation(**{**SMALL, **options})
    return method.solve(own, Control(seed=1, jobs=1, deadline=time.monotonic() + seconds))


def certificate(estimate: Estimate) -> Certificate:
    assert estimate.certificate is not None
    return estimate.certificate


STATES = {
    "decay": {"x": (0.0, 2.0)},
    "harmonic": {"x": (-2.0, 2.0), "y": (-2.0, 2.0)},
    "predator": {"r": (0.0, 4.0), "w": (0.0, 4.0)},
    "saturated": {"s": (0.0, 2.0)},
}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(
            n, marks=pytest.mark.slow if n in {"saturated", "predator", "harmonic"} else ()
        )
        for n in STATES
    ],
)
def test_the_bounds_meet_or_their_gap_shrinks_monotonically(name: str) -> None:
    own = problem(name, noise=0.05)
    estimate = solved(own, tolerance=0.02, bounds=STATES[name])
    c = certificate(estimate)
    assert estimate.status is Status.CONVERGED
    assert c.closed
    assert 0 <= c.lower <= c.upper
    assert c.upper - c.lower <= 0.02 * c.upper
    lower = [s.lower for s in c.history]
    upper = [s.upper for s in c.history]
    assert lower == sorted(lower)
    assert upper == sorted(upper, reverse=True)
    assert "2 elements x 2 points" in c.scope


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_no_objective_on_a_grid_is_below_the_bound(seed: int) -> None:
    """One parameter: the discretised trajectory is known in closed form."""
    own = problem("decay", noise=0.3, seed=seed)
    c = certificate(solved(own, tolerance=0.01, bounds={"x": (0.0, 2.0)}))
    data = own.data()["x"].to_numpy()
    times = own.data()["t"].to_numpy()
    best = math.inf
    for k in np.linspace(0.0, 4.0, 2001):
        best = min(best, float(np.sum((collocated(k, times) - data) ** 2)))
    assert c.lower <= best
    assert c.upper == pytest.approx(best, rel=1e-3)


def collocated(k: float, times: np.ndarray) -> np.ndarray:
    """x' = -k x by two elements of two Legendre points on [0, 2], at `times`."""
    nodes = np.array([0.0, 0.5 - math.sqrt(3) / 6, 0.5 + math.sqrt(3) / 6])
    start, found = 1.0, np.empty(len(times))
    for element in range(2):
        vandermonde = np.vander(nodes, increasing=True)
        slopes = np.array([[0.0, 1.0, 2 * s] for s in nodes[1:]])
        rows = np.vstack([vandermonde[:1], slopes + k * vandermonde[1:]])
        coefficients = np.linalg.solve(rows, [start, 0.0, 0.0])
        inside = (times >= element) & ((times < element + 1) | (element == 1))
        found[inside] = np.polynomial.polynomial.polyval(times[inside] - element, coefficients)
        start = float(coefficients.sum())
    return found


@pytest.mark.slow
def test_a_cut_and_groups_of_elements_give_a_valid_bound() -> None:
    own = problem("predator", noise=0.1)
    free = certificate(solved(own, tolerance=0.5))
    options: dict[str, Any] = {
        "tolerance": 0.02,
        "cut": 1.2 * free.upper,
        "contractions": 0,
        "cuts": [(0,), (1,)],
        "iterations": 2,
        "pieces": 2,
        "recontract": False,
    }
    c = certificate(solved(own, **options))
    assert {"master"} <= {s.stage for s in c.history}
    assert c.lower <= free.upper


@pytest.mark.slow
def test_a_cut_that_nothing_reaches_is_the_bound() -> None:
    own = problem("decay", noise=0.3)
    best = certificate(solved(own, tolerance=0.01)).upper
    c = certificate(solved(own, tolerance=0.01, cut=0.5 * best))
    assert c.lower == pytest.approx(0.5 * best)
    assert c.upper == pytest.approx(best)
    assert not c.closed


@pytest.mark.slow
def test_scip_solves_the_master_problem_too() -> None:
    pytest.importorskip("pyscipopt")
    own = problem("decay", noise=0.3)
    options: dict[str, Any] = {"tolerance": 1e-3, "contractions": 0, "recontract": False}
    found = [
        certificate(solved(own, **options, milp=name, iterations=1)) for name in ("highs", "scip")
    ]
    assert found[0].lower == pytest.approx(found[1].lower, rel=1e-3)
    assert found[0].upper == pytest.approx(found[1].upper)
    assert "SCIP" in found[1].solver


@pytest.mark.slow
def test_the_time_limit_keeps_the_bound_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    own = problem("predator", noise=0.1)
    clock = time.monotonic

    def report(progress: odefit.Progress) -> None:
        if progress.message.startswith("relaxation"):
            monkeypatch.setattr(time, "monotonic", lambda: clock() + 1000)

    method = OuterApproximation(tolerance=1e-6, starts=1, polish=False)
    control = Control(seed=1, jobs=1, deadline=time.monotonic() + 500, report=report)
    estimate = method.solve(own, control)
    assert estimate.status is Status.TIME_LIMIT
    c = certificate(estimate)
    assert not c.closed
    assert 0 < c.lower < c.upper


@pytest.mark.slow
def test_an_interruption_keeps_the_bound_so_far() -> None:
    own = problem("predator", noise=0.1)
    stop = threading.Event()
    seen: list[str] = []

    def report(progress: odefit.Progress) -> None:
        seen.append(progress.message)
        if progress.message.startswith("relaxation"):
            stop.set()

    method = OuterApproximation(tolerance=1e-6, starts=1, polish=False)
    estimate = method.solve(own, Control(seed=1, jobs=1, interrupted=stop, report=report))
    assert estimate.status is Status.INTERRUPTED
    c = certificate(estimate)
    assert c.lower > 0
    assert [s.stage for s in c.history] == ["local", "relaxation", "contraction"]
    assert any("<= optimum <=" in s for s in seen)


@pytest.mark.slow
def test_a_fit_reports_the_bounds_and_keeps_the_log(tmp_path: Any) -> None:
    own = problem("decay", noise=0.2)
    method = OuterApproximation(elements=2, points=2, tolerance=0.02, starts=2)
    result = odefit.fit(own, method, seed=1, jobs=1)
    bounds = result.assessment.bounds
    assert bounds is not None
    assert bounds.gap <= 0.02
    assert bounds.scope.startswith("discretised (Legendre collocation, 2 elements x 2 points; ")
    result.save(tmp_path / "result.json")
    again = odefit.load_result(tmp_path / "result.json")
    # what the sentence is made of is not saved beside it
    saved = replace(bounds, solver="", negligible=0.0, rigorous=False, assumed={})
    assert again.assessment.bounds == saved
    assert len(bounds.history) > 0


# Input ------------------------------------------------------------------------------------------


def unbounded(**more: Any) -> Problem:
    times = np.linspace(0.0, 2.0, 5)
    return Problem(
        Model(ode={"x": "-k*x", "h": "x - h*m"}, observables={"y": "x"}),
        {"t": times, "y": np.exp(-times)},
        {"k": {"lower": 0.0}, "m": {"lower": -1.0, "upper": 1.0}, **more},
        {"x": 1.0, "h": 0.0},
    )


@pytest.mark.slow
def test_missing_bounds_are_proposed_never_assumed() -> None:
    with pytest.raises(InputError, match=r'bounds=\{"k": \(0, .*bounds="propose"'):
        solved(unbounded())
    with pytest.raises(InputError) as told:
        solved(unbounded(k={"lower": 0.0, "upper": 3.0}, m={"lower": -3.0, "upper": 1.0}))
    assert '"h": (0, 10)' in str(told.value)
    accepted = solved(unbounded(), bounds="propose", contractions=0, iterations=0)
    assert certificate(accepted).lower >= 0


@pytest.mark.slow
def test_proposals_keep_logarithms_of_states_away_from_zero() -> None:
    """Powers with unknown exponents need positive states."""
    own = odefit.library.load("gma")
    options: dict[str, Any] = {"elements": 3, "points": 2, "contractions": 0, "iterations": 0}
    with pytest.raises(InputError, match="no finite bounds: log"):
        solved(own, **options)
    c = certificate(solved(own, **options, bounds="propose"))
    assert 0 <= c.lower <= c.upper < math.inf
    assert "x2 in [0.05, " in c.scope  # starts at 0.5, and is never lower


@pytest.mark.slow
def test_proposals_keep_deviations_above_zero() -> None:
    """A likelihood needs a positive standard deviation."""
    times = np.linspace(0.0, 2.0, 9)
    own = Problem(
        Model(ode={"x": "-k*x"}),
        {"t": times, "x": np.exp(-times) + 0.02 * np.cos(40 * times)},
        {"k": {"lower": 0.0, "upper": 5.0}},
        {"x": 1.0},
        noise={"x": {"sd": "estimate"}},
    )
    c = certificate(solved(own, bounds="propose", contractions=0, iterations=0))
    assert c.lower <= c.upper
    assert set(c.assumed) == {"x_sd"}
    assert c.assumed["x_sd"][0] > 0


@pytest.mark.slow
def test_a_term_without_bounds_is_named() -> None:
    times = np.linspace(0.0, 2.0, 5)
    own = Problem(
        Model(ode={"x": "-k*x^m"}),
        {"t": times, "x": np.exp(-2 * times)},
        {"k": {"lower": 0.0, "upper": 5.0}, "m": {"lower": 0.5, "upper": 2.0}},
        {"x": 1.0},
    )
    with pytest.raises(InputError, match=r"no finite bounds: log\(x at t = "):
        solved(own, cut=1.0)


@pytest.mark.slow
def test_too_many_binaries_are_refused_with_the_number() -> None:
    own = problem("predator", noise=0.1)
    with pytest.raises(InputError, match=r"most_binaries=3; take fewer pieces"):
        solved(own, most_binaries=3, contractions=0, tolerance=1e-4)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"elements": 0}, "elements: expected a whole number of at least 1"),
        ({"hyperplanes": 1}, "hyperplanes: expected a whole number of at least 2"),
        ({"tolerance": -1.0}, "tolerance: expected a number of at least 0"),
        ({"cut": math.nan}, "cut: expected a finite number"),
        ({"milp": "higs"}, "did you mean 'highs'"),
        ({"milp": 3}, 'expected "highs" or "scip"'),
        ({"bounds": {"k": (1.0, 0.0)}}, "the lower bound is above"),
        ({"bounds": {"k": 1.0}}, r"expected \(lower, upper\)"),
        ({"bounds": "yes"}, "propose"),
        ({"cuts": [(0, 2)]}, "consecutive elements"),
        ({"cuts": [(4, 5)]}, "from 0 to 4"),
    ],
)
def test_meaningless_options_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        OuterApproximation(**options)


def test_bounds_of_missing_names_are_refused() -> None:
    with pytest.raises(InputError, match="there is no 'kk'; did you mean 'k'"):
        solved(problem("decay"), bounds={"kk": (0.0, 1.0)})
