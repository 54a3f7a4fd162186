"""Where starts lie: inside the bounds, and where the data say that answers are."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odefit import Experiment, Model, Problem, library
from odefit.methods.starts import guess, sample
from odefit.problem.variants.start_ranges import ranges

Array = npt.NDArray[np.float64]

DATA = {"t": [0.0, 10.0, 100.0], "y": [40.0, 20.0, 10.0]}
"""Rates live between 0.1/100 and 10/10, sizes near 40."""


def problem(parameters: Mapping[str, Any], **more: Any) -> Problem:
    arguments: dict[str, Any] = {
        "model": Model(ode={"x": "-k*x"}, observables={"y": "s*x + o"}),
        "data": DATA,
        "parameters": {"k": {}, "s": 1.0, "o": 0.0, **parameters},
        "initial": {"x": 1.0},
        **more,
    }
    return Problem(**arguments)


def observed(initial: Mapping[str, Any]) -> Problem:
    """The state is measured as it is, from the start."""
    model = Model(ode={"x": "-k*x"}, observables={"y": "x"})
    return Problem(model, DATA, {"k": {}}, {"x": initial})


def drawn(given: Problem, key: str, count: int = 256, design: Any = "latin") -> Array:
    return np.asarray(sample(given, 0, count, 1, design)[:, given.keys.index(key)])


def test_rates_between_zero_and_one_start_near_those_of_the_data() -> None:
    """Alpha-pinene: p in [0, 1], 36,000 minutes; uniform starts would all be far too fast."""
    given = library.load("alpha-pinene")
    points = sample(given, 0, 512, 3)
    assert (points > 0).all()
    assert (points <= 1).all()
    near = (points > 1e-6) & (points < 1e-3)
    assert near.mean() > 0.4
    # All five within a decade or two of the answer: often enough to be hit.
    reference = np.array(list(library.reference("alpha-pinene").parameters.values()))
    close = np.all(np.abs(np.log10(points / reference)) < 1.5, axis=1)
    assert close.sum() >= 3


@pytest.mark.parametrize("bounds", [{}, {"lower": 0.0}, {"lower": 0.0, "upper": 1e6}])
def test_a_rate_without_a_scale_starts_where_the_sampling_can_see_it(
    bounds: dict[str, float],
) -> None:
    values = drawn(problem({"k": bounds}), "k")
    assert (values > 0).all()
    seen = (values > 1e-3) & (values < 1.0)
    assert seen.mean() > 0.5


def test_a_log_scale_is_sampled_by_order_of_magnitude() -> None:
    values = np.log10(drawn(problem({"k": {"lower": 1e-6, "upper": 1e6, "scale": "log10"}}), "k"))
    assert np.histogram(values, 12, (-6, 6))[0] == pytest.approx(256 / 12, abs=1.5)


def test_wide_positive_bounds_are_sampled_by_order_of_magnitude_too() -> None:
    values = np.log10(drawn(problem({"k": {"lower": 1e-4, "upper": 10.0}}), "k"))
    assert np.histogram(values, 5, (-4, 1))[0] == pytest.approx(256 / 5, abs=1.5)


@pytest.mark.parametrize("bounds", [(-2.0, 2.0), (-5.0, -1.0), (1.0, 9.0), (-1.0, 0.0)])
def test_narrow_or_signed_bounds_are_sampled_evenly(bounds: tuple[float, float]) -> None:
    lower, upper = bounds
    values = drawn(problem({"k": {"lower": lower, "upper": upper}}), "k")
    assert np.histogram(values, 8, bounds)[0].tolist() == [32] * 8


def test_a_scale_times_an_initial_value_has_the_size_of_the_data() -> None:
    given = problem({"s": {"lower": 0.0}, "o": {}}, initial={"x": {"lower": 0.0}})
    scale, x = drawn(given, "s"), drawn(given, "x")
    assert (scale > 0).all()
    assert (x > 0).all()
    assert (x > 4.0).mean() > 0.25
    products = scale * x
    assert (products < 40 * 64).all()
    assert np.median(products) == pytest.approx(40 * 1e-3 * 8, rel=1.0)
    offsets = drawn(given, "o")
    assert -40 <= offsets.min() < -20
    assert 20 < offsets.max() <= 40


def test_a_measured_initial_value_starts_near_its_measurement() -> None:
    given = observed({})
    values = drawn(given, "x")
    assert values.min() >= 38.0
    assert values.max() <= 42.0


def test_a_measurement_outside_the_bounds_is_not_where_starts_are() -> None:
    given = observed({"lower": 1.0, "upper": 2.0})
    values = drawn(given, "x")
    assert values.min() >= 1.0
    assert values.max() <= 2.0


def test_an_estimated_standard_deviation_starts_positive() -> None:
    values = drawn(problem({}, noise={"y": {"sd": "estimate"}}), "y_sd")
    assert (values > 0).all()
    assert values.max() <= 40


def test_a_prior_determines_where_starts_are_drawn() -> None:
    values = drawn(problem({"k": {"prior": {"mean": 5.0, "sd": 0.5}}}), "k")
    assert values.min() == pytest.approx(4.0, abs=0.1)
    assert values.max() == pytest.approx(6.0, abs=0.1)


def test_a_rate_in_the_constants_of_an_experiment_is_a_rate() -> None:
    given = Problem(
        Model(ode={"x": "-c*x"}, observables={"y": "x"}, constants={"c": 0.1}),
        parameters={"slow": {}},
        initial={"x": 1.0},
        experiments=[Experiment("run", DATA, constants={"c": "2*slow"})],
    )
    values = drawn(given, "slow")
    assert (values > 0).all()
    assert values.max() <= 1.0


@pytest.mark.parametrize("design", ["latin", "sobol"])
def test_blocks_differ_and_seeds_differ_and_both_repeat(design: Any) -> None:
    given = library.load("lotka-volterra-f")
    first = sample(given, 0, 8, 1, design)
    assert np.array_equal(first, sample(given, 0, 8, 1, design))
    assert not np.isclose(first, sample(given, 1, 8, 1, design)).any()
    assert not np.isclose(first, sample(given, 0, 8, 2, design)).any()


def test_a_latin_hypercube_has_one_point_in_each_row() -> None:
    given = problem({"k": {"lower": 0.5, "upper": 1.5}, "s": {"lower": -1.0, "upper": 0.0}})
    points = sample(given, 0, 10, 1)
    for column, low in zip(points.T, (0.5, -1.0), strict=True):
        assert sorted(np.floor((column - low) * 10).tolist()) == list(range(10))


def test_starts_from_a_part_of_the_ranges_are_in_their_middle() -> None:
    given = problem({"k": {"lower": 1e-4, "upper": 1e4}, "s": {"lower": -1.0, "upper": 1.0}})
    points = sample(given, 0, 40, 1, part=0.5)
    low, high = points.min(axis=0), points.max(axis=0)
    assert (low >= [1e-2, -0.5]).all()
    assert (high <= [1e2, 0.5]).all()
    assert (low < [2e-2, -0.4]).all()
    assert (high > [50.0, 0.4]).all()


def test_the_guess_is_completed_from_the_middle_of_the_range() -> None:
    given = problem({"k": {"guess": 0.3}, "s": {"lower": 1.0, "upper": 3.0}})
    assert guess(given) == pytest.approx([0.3, 2.0])
    assert guess(problem({})) is None


numbers = st.one_of(
    st.just(0.0), st.floats(-1e9, 1e9), st.floats(-3, 3), st.floats(1e-12, 1e-3), st.just(math.inf)
)


@st.composite
def parameters(draw: st.DrawFn) -> dict[str, Any]:
    lower, upper = -abs(draw(numbers)) if draw(st.booleans()) else draw(numbers), draw(numbers)
    lower = lower if math.isfinite(lower) or lower < 0 else 0.0
    if lower > upper:
        lower, upper = upper, lower
    if lower == upper:
        upper = math.inf
    found: dict[str, Any] = {"lower": lower, "upper": upper}
    if lower == math.inf or upper == -math.inf:
        found = {}
    elif lower > 0 and draw(st.booleans()):
        found["scale"] = "log10"
    return found


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(parameters(), parameters(), parameters(), st.sampled_from(["latin", "sobol"]))
def test_every_start_is_inside_its_bounds(
    k: dict[str, Any], s: dict[str, Any], x: dict[str, Any], design: Any
) -> None:
    x.pop("scale", None)
    given = problem({"k": k, "s": s}, initial={"x": x})
    points = sample(given, 0, 16, 1, design)
    assert points.shape == (16, 3)
    assert np.isfinite(points).all()
    assert (points >= given.lower).all()
    assert (points <= given.upper).all()


@pytest.mark.parametrize("name", library.names())
def test_every_start_of_a_library_problem_is_inside_its_bounds(name: str) -> None:
    given = library.load(name)
    points = sample(given, 0, 64, 1)
    assert ((points >= given.lower) & (points <= given.upper)).all()
    assert all(r.low < r.high for r in ranges(given))


@pytest.mark.parametrize(
    "data",
    [
        {"t": [0.0], "y": [1.0]},  # one time, that of the initial values
        {"t": [0.0, 0.0], "y": [0.0, 0.0]},  # replicates of nothing
        {"t": [0.0, 1e-12], "y": [1e-150, 1e150]},
        {"t": [-3.0, 1e9], "y": [-5.0, -7.0]},
    ],
)
def test_odd_data_still_give_starts(data: dict[str, list[float]]) -> None:
    given = problem({"k": {}, "s": {}, "o": {}}, data=data, initial={"x": {}})
    points = sample(given, 0, 16, 1)
    assert np.isfinite(points).all()
