"""Sensitivity indices against closed forms, through an ODE whose output is the function."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import pytest

import odefit
from odefit.assessment.sensitivity.distributions import over_draws, over_ranges

pytest.importorskip("SALib")


def function_problem(
    text: str, ranges: Mapping[str, Sequence[float]], observables: Mapping[str, str] | None = None
) -> odefit.Problem:
    """A problem whose state is a function of the unknowns at t = 1."""
    return odefit.Problem(
        odefit.Model(ode={"x": text}, observables=observables),
        data={"t": [0.0, 1.0], ("x" if observables is None else next(iter(observables))): [0, 1]},
        parameters={k: {"lower": low, "upper": high} for k, (low, high) in ranges.items()},
        initial={"x": 0.0},
    )


def ishigami() -> tuple[odefit.Problem, list[float], list[float]]:
    """The function of Ishigami and Homma (1990) with a = 7, b = 0.1, and its indices."""
    a, b = 7.0, 0.1
    text = "sin(p1) + 7*sin(p2)^2 + 0.1*p3^4*sin(p1) + 0*x"
    first = 0.5 * (1 + b * math.pi**4 / 5) ** 2
    second, third = a**2 / 8, b**2 * math.pi**8 * 8 / 225
    whole = first + second + third
    ranges = dict.fromkeys(("p1", "p2", "p3"), (-math.pi, math.pi))
    return (
        function_problem(text, ranges),
        [first / whole, second / whole, 0.0],
        [(first + third) / whole, second / whole, third / whole],
    )


def sobol_g() -> tuple[odefit.Problem, list[float], list[float]]:
    """The G function of Sobol with a = 0, 1, 9, and its indices."""
    a = (0.0, 1.0, 9.0)
    parts = [1 / (3 * (1 + one) ** 2) for one in a]
    whole = math.prod(1 + part for part in parts) - 1
    totals = [part * math.prod(1 + o for o in parts) / (1 + part) / whole for part in parts]
    text = "*".join(f"(abs(4*p{i} - 2) + {one})/(1 + {one})" for i, one in enumerate(a))
    ranges = {f"p{i}": (0.0, 1.0) for i in range(3)}
    return function_problem(f"{text} + 0*x", ranges), [p / whole for p in parts], totals


def product() -> tuple[odefit.Problem, list[float], list[float]]:
    """exp(p1 + p2) with p2 half as wide, whose factors' moments are integrals of exponentials."""

    def part(width: float) -> float:
        mean = (math.exp(width) - 1) / width
        return (math.exp(2 * width) - 1) / (2 * width) / mean**2 - 1

    one, two = part(2.0), part(1.0)
    whole = (1 + one) * (1 + two) - 1
    problem = function_problem("exp(p1 + p2) + 0*x", {"p1": (0.0, 2.0), "p2": (0.0, 1.0)})
    return problem, [one / whole, two / whole], [one * (1 + two) / whole, two * (1 + one) / whole]


@pytest.mark.parametrize("case", [ishigami, pytest.param(sobol_g, marks=pytest.mark.slow), product])
def test_sobol_indices_of_functions_with_closed_forms(case: object) -> None:
    problem, first, total = case()  # type: ignore[operator]
    found = odefit.sensitivity(problem, "sobol", times=[1.0], samples=512, seed=3)
    table = found.table
    for column, expected in (("first", first), ("total", total)):
        half = table[f"{column}_error"].to_numpy() * 1.5  # of 95 % intervals; there are many
        assert np.all(np.abs(table[column] - expected) <= np.maximum(half, 0.02)), column
    again = odefit.sensitivity(problem, "sobol", times=[1.0], samples=512, seed=3)
    assert np.array_equal(again.indices.values, found.indices.values)


def test_effects_of_a_linear_function_are_its_slopes() -> None:
    ranges = {"a": (0.0, 2.0), "b": (-1.0, 1.0), "c": (0.0, 1.0)}
    problem = function_problem("3*a - 2*b + 0*c + 0*x", ranges)
    table = odefit.sensitivity(problem, "morris", times=[1.0], seed=1).table.set_index("key")
    assert table["mu_star"].to_numpy() == pytest.approx([6.0, 4.0, 0.0], abs=1e-6)
    assert table["sigma"].to_numpy() == pytest.approx([0.0, 0.0, 0.0], abs=1e-6)


def test_local_indices_are_exact() -> None:
    problem = odefit.Problem(
        odefit.Model(ode={"x": "-k*x"}, observables={"y": "s*x"}),
        data={"t": [0.0, 1.0, 2.0], "y": [2.0, 1.0, 0.5]},
        parameters={"k": {"lower": 0, "guess": 0.7}, "s": {"lower": 0, "guess": 2.0}},
        initial={"x": 1.0},
        noise={"y": {"sd": 0.1}},
    )
    of = ["y", "AUC = integral(y, 0:2)", "fit"]
    found = odefit.sensitivity(problem, of=of, times=[1.0, 2.0])
    table = found.table.set_index(["output", "t", "key"])["elasticity"]
    assert table[("y", 1.0, "k")] == pytest.approx(-0.7, rel=1e-8)
    assert table[("y", 2.0, "s")] == pytest.approx(1.0, rel=1e-8)
    rows = found.table[found.table["output"] == "AUC"].set_index("key")
    area = 2.0 * (1 - math.exp(-1.4)) / 0.7
    slope = 2.0 * (2 * math.exp(-1.4) / 0.7 - (1 - math.exp(-1.4)) / 0.49)
    assert rows["derivative"]["k"] == pytest.approx(slope, rel=1e-6)
    assert rows["elasticity"]["k"] == pytest.approx(0.7 * slope / area, rel=1e-6)
    forward = odefit.ForwardMap(problem)
    fit = found.table[found.table["output"] == "fit"].set_index("key")["derivative"]
    h = 1e-5
    up, down = (forward.cost(np.array([0.7 + d, 2.0])) for d in (h, -h))
    assert fit["k"] == pytest.approx((up - down) / (2 * h), rel=1e-5)


def test_points_that_cannot_be_integrated_are_left_out_and_counted() -> None:
    problem = odefit.Problem(
        odefit.Model(ode={"x": "k*x^2"}),
        data={"t": [0.0, 1.0], "x": [1.0, 2.0]},
        parameters={"k": {"lower": 0.1, "upper": 1.2}},
        initial={"x": {"lower": 0.5, "upper": 1.0}},
    )
    found = odefit.sensitivity(problem, "sobol", times=[1.0], samples=32, seed=1)
    assert 0 < found.indices.failed < found.indices.evaluations
    assert np.isfinite(found.indices.others).all()
    assert "simulations of 128 failed; the parts of the design with them were left out" in str(
        found
    )


@pytest.mark.slow
def test_work_that_is_ended_has_the_indices_so_far() -> None:
    problem = odefit.library.load("harmonic")
    found = odefit.sensitivity(problem, "sobol", samples=2**14, seed=1, time_limit=0.5)
    assert found.indices.evaluations < 2**14
    assert any("Ended by the time limit after" in note for note in found.notes)


def test_draws_replace_ranges() -> None:
    problem = function_problem("a + b + 0*x", {"a": (0.0, 1.0), "b": (0.0, 1.0)})
    rng = np.random.default_rng(0)
    draws = np.column_stack([rng.normal(0, 2, 4000), rng.normal(0, 1, 4000)])
    table = odefit.sensitivity(problem, "sobol", times=[1.0], draws=draws, samples=256).table
    assert table["total"].to_numpy() == pytest.approx([0.8, 0.2], abs=0.05)
    assert over_draws(draws)[0].at(np.array([0.5]))[0] == pytest.approx(np.median(draws[:, 0]))


def test_ranges_are_logarithmic_where_they_span_decades() -> None:
    problem = function_problem("a + b + 0*x", {"a": (1e-3, 10.0), "b": (0.0, 1.0)})
    middle = [d.at(np.array([0.5]))[0] for d in over_ranges(problem)]
    assert middle == pytest.approx([0.1, 0.5])
    middle = [d.at(np.array([0.5]))[0] for d in over_ranges(problem, {"a": (2.0, 4.0)})]
    assert middle == pytest.approx([3.0, 0.5])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"kind": "sobl"}, "did you mean 'sobol'"),
        ({"kind": "sobol", "samples": 100}, "100 is not a power of two.*take 128"),
        ({"kind": "sobol", "samples": 4}, "a whole number of at least 8"),
        ({"kind": "morris", "samples": 10**11}, "at least 8 and at most 1000000, got 1000"),
        ({"kind": "sobol", "ranges": {"p": (0, 1)}}, "there is no unknown 'p'"),
        ({"kind": "sobol", "ranges": {"p1": (1, 0)}}, "two increasing finite numbers, got 1, 0"),
        ({"kind": "sobol", "ranges": {"p1": "wide"}}, "two numbers such as"),
        ({"kind": "sobol", "draws": np.zeros((3, 2))}, "at least 20 values of each unknown"),
        ({"ranges": {"p1": (0, 1)}}, "a local analysis has none of these"),
        ({"kind": "morris", "values": {"p1": 1.0}}, "varies the unknowns over their ranges"),
        ({"of": "z"}, "there is no observable 'z'"),
        ({"of": "max(z)"}, "z"),
        ({}, "no value for p1, p2"),
    ],
)
def test_nonsensical_arguments_are_refused(arguments: dict[str, object], message: str) -> None:
    problem = product()[0]
    with pytest.raises(odefit.InputError, match=message):
        odefit.sensitivity(problem, **arguments)  # type: ignore[arg-type]
