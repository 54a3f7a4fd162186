"""The study's measures, against values by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from evidence.transcription import runs as metrics
from evidence.transcription.plan import Configuration, instance_of
from odefit import library
from odefit.methods.solvers.solver import penalised_objective


def test_max_re_is_the_worst_parameter_and_leaves_initial_values_out() -> None:
    problem, reference = library.load("harmonic"), library.reference("harmonic")
    assert problem.keys == ("p1", "p2", "x1", "x2")
    # p1 = 9.8 and p2 = 1.3; the initial values are 1 and 1
    found = metrics.max_relative_error(problem, reference, np.array([9.31, 1.326, 99.0, -99.0]))
    assert found == pytest.approx(0.05)


def test_max_re_of_a_negative_parameter_is_positive() -> None:
    problem = library.load("mammillary-3-f")
    reference = library.reference("mammillary-3-f")
    values = np.array([{**reference.initial, **reference.parameters}[k] for k in problem.keys])
    assert metrics.max_relative_error(problem, reference, values) == 0.0
    values[list(problem.keys).index("a01")] = 0.2  # the reference is -0.2
    assert metrics.max_relative_error(problem, reference, values) == pytest.approx(2.0)


def test_nrmse_is_the_root_mean_square_over_the_range_of_all_data() -> None:
    problem = library.load("harmonic")
    series = problem.conditions[0].series
    y1, y2 = series["y1"].values, series["y2"].values
    span = max(y1.max(), y2.max()) - min(y1.min(), y2.min())
    # Ten residuals of 0.3 and ten of 0.4: the mean square is 0.125.
    predicted = [{"y1": y1 + 0.3, "y2": y2 - 0.4}]
    expected = math.sqrt(0.125) / span
    assert metrics.normalised_error(problem, predicted) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("max_re", "nrmse", "expected"),
    [
        (0.0, 1.0, "found"),
        (0.1, 1.0, "found"),
        (0.1001, 0.0, "near"),
        (0.5, 0.0, "near"),
        (0.5001, 0.99e-4, "alternative"),
        (0.5001, 1e-4, "elsewhere"),
        (math.nan, 0.0, "elsewhere"),
        (None, None, "elsewhere"),
    ],
)
def test_a_solution_counts_in_one_column(
    max_re: float | None, nrmse: float | None, expected: str
) -> None:
    assert metrics.place(max_re, nrmse) == expected


def test_a_certificate_needs_a_bound_within_either_gap() -> None:
    assert metrics.certified(10.0, 9.99, 0.0)
    assert not metrics.certified(10.0, 9.98, 0.0)
    assert metrics.certified(1e-7, 0.0, 1e-6)  # an optimum of zero has no relative gap
    assert not metrics.certified(1e-5, 0.0, 1e-6)
    assert not metrics.certified(1e-7, None, 1e-6)
    assert not metrics.certified(math.nan, 0.0, 1e-6)
    assert not metrics.certified(1.0, -math.inf, 1e-6)


def test_the_gap_is_relative_to_the_objective() -> None:
    assert metrics.relative_gap(10.0, 9.0) == pytest.approx(0.1)
    assert metrics.relative_gap(10.0, None) is None
    assert metrics.relative_gap(0.0, 0.0) is None


def test_soft_constraints_cost_their_penalty() -> None:
    c = Configuration("harmonic", "Euler", "SoftCons", 1e3, 230, "Ipopt")
    soft = instance_of(c)
    d = soft.discretisation
    # x1 = 1, x2 = 0 at all times, p1 = 2, p2 = 4: with h = 0.01, each of the 230 rows of x1
    # holds, and each of x2 is off by h * x1 / p2.
    values = np.tile([1.0, 0.0], (d.points, 1))
    unknowns = np.array([2.0, 4.0, 1.0, 0.0])
    plain = d.objective(values, unknowns)
    found = penalised_objective(soft, values, unknowns)
    assert found - plain == pytest.approx(1e3 * 230 * 0.01 / 4.0)
    hard = instance_of(Configuration("harmonic", "Euler", "Baseline", 0.0, 230, "Ipopt"))
    assert penalised_objective(hard, values, unknowns) == plain
    # A slack of the size of a solver's tolerance costs nothing.
    values[1:, 0] += 5e-7
    unknowns = np.array([2.0, 1e9, 1.0, 0.0])
    assert penalised_objective(soft, values, unknowns) == d.objective(values, unknowns)
