"""Standard errors and intervals: exact where theory is, absent where nothing is known."""

from __future__ import annotations

import math
import tracemalloc
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats

from odefit import Control, ForwardMap, Model, Problem, SingleShooting, Status
from odefit.assessment import Uncertainty
from odefit.assessment.intervals.uncertainty import assess_uncertainty, singular_directions
from odefit.methods.local.scaling import bounds_touched
from odefit.simulation import Evaluation

Array = npt.NDArray[np.float64]

TIMES = np.linspace(0.0, 5.0, 12)
NOISE = 0.1 * np.random.default_rng(7).normal(size=12)


def fitted(problem: Problem) -> Array:
    (start,) = SingleShooting(evaluations=200).solve(problem, Control()).starts
    assert start.status is Status.CONVERGED, start.message
    return start.vector


def assessed(problem: Problem, vector: Array | None = None, level: float = 0.95) -> Uncertainty:
    """At the fit, or at `vector`."""
    at = fitted(problem) if vector is None else vector
    forward = ForwardMap(problem)
    evaluation = forward.evaluate(at)
    assert isinstance(evaluation, Evaluation), evaluation
    return assess_uncertainty(forward, at, evaluation, level)


def line(y: Array = 1 + 2 * TIMES + NOISE, **more: Any) -> Problem:
    """x = a + b t: linear regression."""
    return Problem(
        Model(ode={"x": "b"}),
        {"t": TIMES, "x": y},
        {"b": {"guess": 1.0, **more.pop("b", {})}},
        {"x": {"guess": 0.0}},
        **more,
    )


DESIGN = np.column_stack([TIMES, np.ones(12)])


def test_linear_regression_has_its_textbook_covariance() -> None:
    problem = line()
    found = assessed(problem)
    y = problem.data()["x"].to_numpy()
    answer, residual, *_ = np.linalg.lstsq(DESIGN, y, rcond=None)
    variance = residual[0] / 10
    covariance = variance * np.linalg.inv(DESIGN.T @ DESIGN)
    assert fitted(problem) == pytest.approx(answer, rel=1e-9)
    assert found.variance == pytest.approx(variance, rel=1e-9)
    assert found.degrees_of_freedom == 10
    assert found.rank == 2
    assert found.covariance == pytest.approx(covariance, rel=1e-8)
    assert found.standard_errors == pytest.approx(np.sqrt(np.diag(covariance)), rel=1e-8)
    expected = covariance[0, 1] / math.sqrt(covariance[0, 0] * covariance[1, 1])
    assert found.correlation == pytest.approx(np.array([[1, expected], [expected, 1]]), rel=1e-8)
    assert found.directions == ()
    assert found.trouble == {}


@pytest.mark.parametrize("level", [0.5, 0.9, 0.95, 0.999])
def test_intervals_are_quantiles_of_student_s_distribution(level: float) -> None:
    found = assessed(line(), level=level)
    half = stats.t(10).ppf(0.5 + level / 2) * found.standard_errors
    assert np.ptp(found.intervals, axis=1) / 2 == pytest.approx(half, rel=1e-9)
    assert found.intervals.mean(axis=1) == pytest.approx(fitted(line()), rel=1e-9)
    assert found.level == level


def test_given_noise_needs_no_estimate_of_it() -> None:
    found = assessed(line(noise={"x": {"sd": 0.1}}))
    covariance = 0.01 * np.linalg.inv(DESIGN.T @ DESIGN)
    assert found.covariance == pytest.approx(covariance, rel=1e-8)
    assert found.degrees_of_freedom == math.inf
    assert found.variance == 1.0
    half = stats.norm.ppf(0.975) * found.standard_errors
    assert np.ptp(found.intervals, axis=1) / 2 == pytest.approx(half, rel=1e-9)


def test_a_prior_counts_as_a_measurement() -> None:
    found = assessed(line(noise={"x": {"sd": 0.1}}, b={"prior": {"mean": 2.0, "sd": 0.01}}))
    information = DESIGN.T @ DESIGN / 0.01 + np.diag([1 / 0.01**2, 0.0])
    assert found.covariance == pytest.approx(np.linalg.inv(information), rel=1e-8)


def test_an_estimated_sd_has_the_error_of_theory() -> None:
    """Its maximum likelihood estimate s has the standard error s / sqrt(2 (n - 2))."""
    problem = line(noise={"x": {"sd": "estimate"}})
    vector = fitted(problem)
    found = assessed(problem)
    b, a, sd = vector
    mean_square = np.mean((a + b * TIMES - problem.data()["x"].to_numpy()) ** 2)
    assert problem.keys == ("b", "x", "x_sd")
    assert sd == pytest.approx(math.sqrt(mean_square), rel=1e-5)
    assert found.standard_errors[2] == pytest.approx(sd / math.sqrt(20), rel=1e-4)
    covariance = mean_square * 12 / 10 * np.linalg.inv(DESIGN.T @ DESIGN)
    assert found.covariance[:2, :2] == pytest.approx(covariance, rel=1e-4)
    assert found.covariance[:2, 2] == pytest.approx([0, 0], abs=1e-7)


def test_an_interval_on_a_log_scale_is_symmetric_there() -> None:
    y = 3 * np.exp(-0.5 * TIMES) + NOISE
    plain, log = (
        Problem(
            Model(ode={"x": "-k*x"}),
            {"t": TIMES, "x": y},
            {"k": {"guess": 0.5, "scale": scale}},
            {"x": 3.0},
        )
        for scale in ("linear", "log10")
    )
    one, other = assessed(plain), assessed(log)
    k = fitted(plain)[0]
    assert other.standard_errors == pytest.approx(one.standard_errors, rel=1e-6)
    low, high = other.intervals[0]
    assert low * high == pytest.approx(k**2, rel=1e-6)
    assert high / k == pytest.approx(math.exp((one.intervals[0, 1] - k) / k), rel=1e-6)


@pytest.mark.slow
def test_the_covariance_does_not_depend_on_units() -> None:
    plain = assessed(line())
    small = Problem(
        Model(ode={"x": "b*1e9"}),
        {"t": TIMES, "x": 1 + 2 * TIMES + NOISE},
        {"b": {"guess": 1e-9}},
        {"x": {"guess": 0.0}},
    )
    found = assessed(small)
    assert found.standard_errors[0] * 1e9 == pytest.approx(plain.standard_errors[0], rel=1e-6)
    assert found.correlation == pytest.approx(plain.correlation, rel=1e-6)


def test_experiments_add_their_information() -> None:
    """The same data twice, as one experiment and as two with shared unknowns."""
    from odefit import Experiment

    data = {"t": TIMES, "x": 1 + 2 * TIMES + NOISE}
    twice = Problem(
        Model(ode={"x": "b"}),
        parameters={"b": {"guess": 1.0}},
        initial={"x": {"guess": 0.0}},
        experiments=[Experiment("a", data), Experiment("b", data)],
    )
    found, once = assessed(twice), assessed(line())
    assert found.degrees_of_freedom == 22
    assert found.covariance == pytest.approx(
        once.covariance / 2 * (found.variance / once.variance), rel=1e-8
    )


def test_as_many_unknowns_as_measurements_have_no_errors() -> None:
    problem = Problem(
        Model(ode={"x": "b"}),
        {"t": [0.0, 1.0], "x": [1.0, 3.0]},
        {"b": {"guess": 1.0}},
        {"x": {"guess": 0.0}},
    )
    found = assessed(problem)
    assert np.isnan(found.standard_errors).all()
    assert np.isnan(found.intervals).all()
    assert "no error can be estimated" in found.sentence


# What cannot be determined -----------------------------------------------------------------------


def decay(
    ode: Mapping[str, str],
    observables: Mapping[str, str],
    values: Mapping[str, float],
    initial: Mapping[str, Any],
    bounds: Mapping[str, Any] | None = None,
    noise: float = 1.0,
) -> tuple[Problem, Array]:
    """Noisy data of the model at `values`, and that vector."""
    model = Model(ode=ode, observables=observables)
    names = [n for n in values if n not in ode]
    blank = {"t": TIMES, **{name: np.zeros(12) for name in observables}}
    problem = Problem(model, blank, {n: {} for n in names}, initial)
    vector = problem.vector(values)
    evaluation = ForwardMap(problem).evaluate(vector)
    assert isinstance(evaluation, Evaluation)
    exact = evaluation.residuals.reshape(len(observables), 12)
    data = {"t": TIMES}
    for row, name in zip(exact, observables, strict=True):
        data[name] = row + noise * 0.01 * np.roll(NOISE, len(data))
    fields = {n: dict((bounds or {}).get(n, {})) for n in names}
    return Problem(model, data, fields, initial), vector


def sentences(problem: Problem, vector: Array) -> tuple[Uncertainty, str]:
    found = assessed(problem, vector)
    for key in found.trouble:
        if found.trouble[key] in {"not determined", "no effect", "at a bound"}:
            assert np.isnan(found.standard_errors[problem.keys.index(key)]), key
    return found, found.sentence


@pytest.mark.slow
def test_a_product_is_named() -> None:
    problem, vector = decay(
        {"x": "-k1*k2*x"}, {"y": "x"}, {"k1": 0.3, "k2": 2.0, "x": 1.5}, {"x": {}}
    )
    found, text = sentences(problem, vector)
    assert "k1 and k2 only as the product k1*k2." in text.replace("k2 and k1", "k1 and k2").replace(
        "k2*k1", "k1*k2"
    )
    assert set(found.trouble) == {"k1", "k2"}
    assert found.rank == 2
    (direction,) = found.directions
    assert set(direction.keys) == {"k1", "k2"}
    assert abs(direction.weights[0]) == pytest.approx(abs(direction.weights[1]), rel=1e-6)


def test_an_unknown_determined_beside_a_product_keeps_its_standard_error() -> None:
    """The same as with the product as one parameter."""
    problem, vector = decay(
        {"x": "-k1*k2*x"}, {"y": "x"}, {"k1": 0.3, "k2": 2.0, "x": 1.5}, {"x": {}}
    )
    other = Problem(
        Model(ode={"x": "-k*x"}, observables={"y": "x"}), problem.data(), {"k": {}}, {"x": {}}
    )
    found = assessed(problem, vector)
    plain = assessed(other, np.array([0.6, 1.5]))
    # One residual variance is over 12 - 3 measurements, the other over 12 - 2.
    mine = found.standard_errors[2] / math.sqrt(found.variance)
    theirs = plain.standard_errors[1] / math.sqrt(plain.variance)
    assert mine == pytest.approx(theirs, rel=1e-6)


def test_an_undetermined_direction_does_not_cost_a_degree_of_freedom() -> None:
    """12 measurements and two determined directions leave ten."""
    problem, vector = decay(
        {"x": "-k1*k2*x"}, {"y": "x"}, {"k1": 0.3, "k2": 2.0, "x": 1.5}, {"x": {}}
    )
    assert assessed(problem, vector).degrees_of_freedom == 10


def test_a_ratio_is_named() -> None:
    problem, vector = decay({"x": "-V/K*x"}, {"y": "x"}, {"V": 0.6, "K": 2.0, "x": 1.5}, {"x": {}})
    _, text = sentences(problem, vector)
    assert "only as the ratio V/K." in text or "only as the ratio K/V." in text


def test_a_sum_is_named() -> None:
    problem, vector = decay(
        {"x": "-(k1 + k2)*x"}, {"y": "x"}, {"k1": 0.3, "k2": 0.4, "x": 1.5}, {"x": {}}
    )
    _, text = sentences(problem, vector)
    assert "only as the sum k1 + k2." in text or "only as the sum k2 + k1." in text


@pytest.mark.slow
def test_a_difference_is_named() -> None:
    problem, vector = decay(
        {"x": "(birth - death)*x"}, {"y": "x"}, {"birth": 0.3, "death": 0.7, "x": 1.5}, {"x": {}}
    )
    _, text = sentences(problem, vector)
    assert "only as the difference" in text
    assert "birth" in text
    assert "death" in text


def test_a_scale_and_an_initial_value_are_named() -> None:
    problem, vector = decay({"x": "-k*x"}, {"y": "s*x"}, {"k": 0.6, "s": 3.0, "x": 1.5}, {"x": {}})
    found, text = sentences(problem, vector)
    assert "only as the product s*x." in text or "only as the product x*s." in text
    assert np.isfinite(found.standard_errors[0])


def test_powers_are_named() -> None:
    problem, vector = decay(
        {"x": "-a*b^2*x"}, {"y": "x"}, {"a": 0.3, "b": 1.2, "x": 1.5}, {"x": {}}
    )
    _, text = sentences(problem, vector)
    assert "only as the product a*b^2." in text or "only as the product b^2*a." in text


@pytest.mark.slow
def test_three_correlated_unknowns_are_named() -> None:
    problem, vector = decay(
        {"x": "-a*b*c*x"}, {"y": "x"}, {"a": 0.3, "b": 1.2, "c": 0.8, "x": 1.5}, {"x": {}}
    )
    found, text = sentences(problem, vector)
    assert found.rank == 2
    assert len(found.directions) == 2
    for name in "abc":
        assert found.trouble[name] == "not determined"
        assert name in text


def test_a_parameter_without_effect_is_named() -> None:
    problem, vector = decay(
        {"x": "-k*x", "q": "-dead*q"},
        {"y": "x"},
        {"k": 0.6, "dead": 1.0, "x": 1.5},
        {"x": {}, "q": 1.0},
    )
    found, text = sentences(problem, vector)
    assert "No effect on any measurement: dead." in text
    assert found.trouble == {"dead": "no effect"}
    assert np.isfinite(found.standard_errors[[0, 2]]).all()


def test_a_coincidence_at_one_point_is_not_called_a_product() -> None:
    """Sensitivities that are parallel, by a model that no finite move leaves unchanged."""
    times = np.array([1.0])
    problem = Problem(
        Model(ode={"x": "0*a"}, observables={"y": "a*b + (a - 1)^2 + (b - 1)^2"}),
        {"t": np.repeat(times, 4), "y": [1.0, 1.1, 0.9, 1.0]},
        {"a": {}, "b": {}},
        {"x": 1.0},
        t0=0.0,
    )
    found, text = sentences(problem, np.array([1.0, 1.0]))
    assert found.rank == 1
    assert "only as the product" not in text
    assert "a and b cannot be told apart" in text.replace("b and a", "a and b")


def test_a_parameter_at_its_bound_is_held_there() -> None:
    problem, vector = decay(
        {"x": "-k*x + c"},
        {"y": "x"},
        {"k": 0.6, "c": 0.0, "x": 1.5},
        {"x": {}},
        {"c": {"lower": 0.0}, "k": {"lower": 0.0}},
    )
    found, text = sentences(problem, vector)
    assert found.trouble == {"c": "at a bound"}
    assert "At a bound, and held there for the standard errors of the others: c." in text
    fixed = Problem(
        Model(ode={"x": "-k*x"}, observables={"y": "x"}), problem.data(), {"k": {}}, {"x": {}}
    )
    plain = assessed(fixed, vector[[0, 2]])
    assert found.standard_errors[[0, 2]] == pytest.approx(plain.standard_errors, rel=1e-6)


@pytest.mark.parametrize(
    ("lower", "upper", "value", "touched"),
    [
        (0.0, 1.0, 0.0, True),
        (0.0, 1.0, 1.0, True),
        (0.0, 1.0, 1e-6, False),
        (0.0, 1.0, 1 - 1e-6, False),
        (-math.inf, math.inf, 0.0, False),
        (0.0, math.inf, 0.0, True),
        (0.0, math.inf, 1e-12, False),
        (1e-6, 1e6, 1e-6, True),
        (1e-6, 1e6, 1.1e-6, False),
        (1e-6, 1e6, 1e6 * (1 - 1e-12), True),
        (0.0, 1e6, 1e-4, False),
        (-1.0, 1.0, -1.0, True),
        (5.0, 5.000001, 5.0000005, False),
    ],
)
def test_bounds_are_touched_only_at_bounds(
    lower: float, upper: float, value: float, touched: bool
) -> None:
    problem = line(b={"lower": lower, "upper": upper, "guess": None})
    assert bounds_touched(problem, np.array([value, 0.0]))[0] == touched


def test_a_value_that_is_hardly_determined_is_marked() -> None:
    problem, vector = decay(
        {"x": "-k*x"},
        {"y": "x"},
        {"k": 1e-6, "x": 1.5},
        {"x": {}},
        {"k": {"lower": 0.0, "upper": 1.0}},
    )
    found, text = sentences(problem, vector)
    assert found.trouble == {"k": "weakly determined"}
    assert np.isfinite(found.standard_errors).all()
    assert "Hardly determined by the data (the standard error exceeds the value): k." in text


def test_undetermined_unknowns_cause_no_crash() -> None:
    problem = Problem(
        Model(ode={"x": "0*a*b"}),
        {"t": TIMES, "x": np.ones(12)},
        {"a": {}, "b": {}},
        {"x": 1.0},
    )
    found, text = sentences(problem, np.array([1.0, 2.0]))
    assert found.rank == 0
    assert set(found.trouble.values()) == {"no effect"}
    assert "No effect on any measurement: a, b." in text


@pytest.mark.slow
def test_ninety_five_per_cent_intervals_cover_ninety_five_per_cent() -> None:
    """Few data, so that the normal distribution would cover 87 per cent only."""
    random = np.random.default_rng(3)
    times = np.array([0.0, 1.0, 2.0, 3.0, 4.0])
    design = np.column_stack([times, np.ones(5)])
    hits, runs = 0, 600
    problem = Problem(
        Model(ode={"x": "b"}),
        {"t": times, "x": np.zeros(5)},
        {"b": {}},
        {"x": {}},
    )
    forward = ForwardMap(problem)
    jacobian = forward.evaluate(np.array([2.0, 1.0]))
    assert isinstance(jacobian, Evaluation)
    for _ in range(runs):
        y = 1 + 2 * times + random.normal(size=5)
        answer = np.linalg.lstsq(design, y, rcond=None)[0]
        residuals = design @ answer - y
        # The residuals of these data; the Jacobian is the same for all.
        evaluation = Evaluation(
            0.5 * float(residuals @ residuals),
            residuals,
            jacobian.jacobian,
            float(residuals @ residuals),
            None,
        )
        low, high = assess_uncertainty(forward, answer, evaluation).intervals[0]
        hits += low <= 2 <= high
    assert abs(hits / runs - 0.95) < 3 * math.sqrt(0.95 * 0.05 / runs)


def test_many_measurements_take_no_square_of_their_number() -> None:
    matrix = np.random.default_rng(0).normal(size=(20_000, 3))
    tracemalloc.start()
    try:
        values, directions, determined, _ = singular_directions(matrix)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (values.shape, directions.shape) == ((3,), (3, 3))
    assert determined.all()
    assert peak < 10 * matrix.nbytes
