"""Where the data are differentiated: in a segment in which nothing happens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import pytest

from odefit import Event, Experiment, Model, Problem
from odefit.methods.algebraic.derivatives import (
    DataSegment,
    Differentiation,
    SmoothedData,
    longest_segment,
)
from odefit.methods.smoothing import AAA, GaussianProcess
from odefit.structure.homotopy.square import SquareSystem
from odefit.structure.series.differentiated_system import DifferentiatedSystem
from tests.methods.algebraic.models import LOGISTIC, integrated, prey, prey_rhs

TIMES = np.linspace(0.0, 10.0, 11)


def segment(
    events: Sequence[Event] = (), from_start: bool = False, t0: float | None = None, **data: Any
) -> DataSegment:
    """Of one experiment with the values 0, 1, 2, ... at the times 0, 1, ... 10."""
    columns = {"t": TIMES, "y": TIMES, **data}
    experiment = Experiment("run", columns, t0=t0, events=events)
    problem = Problem(LOGISTIC, None, {"k": {}, "j": {}}, {"x": {}}, experiments=[experiment])
    (expansion,) = DifferentiatedSystem(problem, free_states=True).expansions
    return longest_segment(expansion, from_start)


def with_input(
    kind: Literal["constant", "linear", "cubic"], values: Sequence[float]
) -> DataSegment:
    model = Model(ode={"x": "-k*x + j*u"}, observables={"y": "x"}, inputs={"u": kind})
    data = {"t": TIMES, "y": TIMES, "u": np.array(values)}
    problem = Problem(model, data, {"k": {}, "j": {}}, {"x": {}})
    (expansion,) = DifferentiatedSystem(problem, free_states=True).expansions
    return longest_segment(expansion)


def test_without_events_it_is_everything() -> None:
    found = segment()
    assert (found.start, found.end) == (0.0, 10.0)
    times, values = found.series["y"]
    assert times.tolist() == values.tolist() == TIMES.tolist()


def test_the_expansion_begins_at_t0_even_without_a_measurement() -> None:
    assert segment(t0=-3.0).start == -3.0


@pytest.mark.parametrize(("time", "start", "end"), [(3.5, 3.5, 10.0), (7.5, 0.0, 7.5)])
def test_an_event_divides_it_and_the_longer_part_is_taken(
    time: float, start: float, end: float
) -> None:
    found = segment([Event((time,), {"x": "x + 1"})])
    assert (found.start, found.end) == (start, end)
    times, _ = found.series["y"]
    assert times.tolist() == [t for t in TIMES if start <= t <= end]


@pytest.mark.parametrize(("time", "first", "last"), [(6.0, 0.0, 6.0), (4.0, 5.0, 10.0)])
def test_a_measurement_at_an_event_sees_the_state_before_it(
    time: float, first: float, last: float
) -> None:
    times, _ = segment([Event((time,), {"x": "x + 1"})]).series["y"]
    assert (times[0], times[-1]) == (first, last)


def test_an_event_at_t0_leaves_the_measurement_at_t0_out() -> None:
    times, _ = segment([Event((0.0,), {"x": "x + 1"})]).series["y"]
    assert times.tolist() == TIMES[1:].tolist()


def test_a_measurement_at_t0_counts() -> None:
    times, _ = segment([Event((8.0,), {"x": "x + 1"})]).series["y"]
    assert times[0] == 0.0


def test_derivatives_at_t0_need_the_first_part_even_if_it_is_shorter() -> None:
    found = segment([Event((3.5,), {"x": "x + 1"})], from_start=True)
    assert (found.start, found.end) == (0.0, 3.5)


def test_data_after_a_change_of_a_parameter_do_not_count() -> None:
    """There, another equation holds."""
    found = segment([Event((3.5,), {"k": "2*k"})])
    assert (found.start, found.end) == (0.0, 3.5)


def test_replicates_are_averaged_in_the_order_of_time() -> None:
    found = segment(t=[2.0, 0.0, 1.0, 1.0, 1.0], y=[5.0, 1.0, 2.0, 3.0, 7.0])
    times, values = found.series["y"]
    assert times.tolist() == [0.0, 1.0, 2.0]
    assert values.tolist() == [1.0, 4.0, 5.0]


def test_unmeasured_values_are_left_out() -> None:
    times, _ = segment(y=np.where(TIMES == 4.0, np.nan, TIMES)).series["y"]
    assert 4.0 not in times
    assert len(times) == 10


def test_a_corner_of_a_linear_input_divides_it() -> None:
    found = with_input("linear", [0.0] * 4 + [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0])
    assert (found.start, found.end) == (3.0, 10.0)


def test_knots_on_one_line_are_not_corners() -> None:
    assert with_input("linear", TIMES.tolist()).start == 0.0


def test_a_jump_of_a_constant_input_divides_it() -> None:
    found = with_input("constant", [1.0] * 7 + [2.0] * 4)
    assert (found.start, found.end) == (0.0, 7.0)


def test_a_spline_has_no_corners() -> None:
    found = with_input("cubic", np.sin(TIMES).tolist())
    assert (found.start, found.end) == (0.0, 10.0)


def test_an_estimate_has_the_derivatives_that_the_rows_need() -> None:
    """Taylor coefficients of r at the middle, from its own equation."""
    problem = prey()
    square = SquareSystem(DifferentiatedSystem(problem, free_states=True))
    estimate = SmoothedData(square).differentiate(Differentiation(AAA(), 0.5))
    assert estimate.times == (2.0,)
    assert [row.order for row in square.rows] == [0, 1, 2, 3, 4]
    values = square.system.names
    assert set(values) >= {"a", "b", "c"}
    # An integration to the middle, then r' = a r - b r w by hand.

    r, w = integrated(prey_rhs, [1.2, 0.4], np.array([0.0, 2.0]))[:, -1]
    a, b, c = 0.7, 0.9, 0.5
    rate = a * r - b * r * w
    bend = (a - b * w) * rate - b * r * (b * r * w - c * w)
    assert estimate.targets[:3] == pytest.approx([r, rate, bend / 2], rel=1e-9)
    assert (np.abs(estimate.targets[:3] - [r, rate, bend / 2]) <= 10 * estimate.errors[:3]).all()


def test_an_estimate_at_t0_is_at_t0() -> None:
    square = SquareSystem(DifferentiatedSystem(prey(), free_states=False))
    estimate = SmoothedData(square).differentiate(Differentiation(AAA(), None))
    assert estimate.times == (0.0,)
    assert estimate.targets[:2] == pytest.approx([1.2, 0.7 * 1.2 - 0.9 * 1.2 * 0.4], rel=1e-8)


@pytest.mark.parametrize(
    ("middle", "count", "expected"),
    [
        (0.5, 3, [0.3, 0.5, 0.7]),
        (0.5, 1, [0.5]),
        (0.1, 3, [0.05, 0.1, 0.3]),  # not at the edge, where derivatives are known worst
        (0.9, 2, [0.7, 0.95]),
    ],
)
def test_times_used_together_lie_around_their_middle_in_order(
    middle: float, count: int, expected: list[float]
) -> None:
    assert Differentiation(AAA(), middle).fractions(count) == pytest.approx(expected)


def test_noise_is_known_by_observable() -> None:
    noise = 0.01 * np.random.default_rng(2).normal(size=31)

    problem = prey(values=integrated(prey_rhs, [1.2, 0.4])[0] + noise)
    (found,) = SmoothedData(SquareSystem(DifferentiatedSystem(problem, free_states=True))).noise(
        GaussianProcess()
    )
    assert found["y"] == pytest.approx(0.01, rel=0.5)
