"""What is said of bounds and of meshes: what is known, and no more."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from odefit.assessment.discretised import assess_agreement, assess_certificate
from odefit.methods.estimate import FINE_MESH_ERROR, Agreement, Certificate

OPEN = Certificate(
    4.0,
    20.0,
    "discretised (trapezoid, M = 11)",
    solver="SCIP",
    negligible=1e-3,
    discretised=True,
)
CLOSED = replace(OPEN, lower=19.99, closed=True)
ZERO = replace(OPEN, lower=0.0, upper=2e-5, closed=True)
FOUND = Agreement("trapezoid", 40, 19.5, 19.9, 0.004, vector=(0.0, 2.0, 9.7))
KEYS, FINAL = ("p3", "p4", "p5"), np.array([0.0, 2.0, 10.0])


def test_without_bounds_there_is_no_remark() -> None:
    assert assess_certificate(None) is None
    assert assess_agreement(None, KEYS, FINAL) is None


def test_open_bounds_are_reported_with_their_gap() -> None:
    found = assess_certificate(OPEN)
    assert found is not None
    assert not found.closed
    assert (found.lower, found.upper, found.scope) == (4.0, 20.0, OPEN.scope)
    assert found.gap == pytest.approx(0.8)
    assert found.sentence == (
        "No values within the bounds of the unknowns have an objective below 4 in the problem as "
        "discretised (trapezoid, M = 11); 20 was found there (gap 80.00%). The bound was computed "
        "by SCIP, as exact as its tolerances, and does not hold for continuous time."
    )


def test_closed_bounds_are_still_reported_with_their_gap() -> None:
    found = assess_certificate(CLOSED)
    assert found is not None
    assert found.closed
    assert "below 19.99 in" in found.sentence
    assert "(gap 0.05%)" in found.sentence


def test_a_minimum_of_zero_has_no_relative_gap() -> None:
    found = assess_certificate(ZERO)
    assert found is not None
    assert found.closed
    assert "equal for practical purposes (they differ by 2e-05)" in found.sentence
    assert "gap" not in found.sentence


def test_nearly_equal_positive_bounds_are_called_equal() -> None:
    found = assess_certificate(replace(CLOSED, lower=20.0 - 0.0005))
    assert found is not None
    assert "equal for practical purposes (they differ by 0.0005)" in found.sentence
    assert "gap" not in found.sentence


def test_bounds_that_differ_by_just_what_is_negligible_are_called_equal() -> None:
    found = assess_certificate(replace(ZERO, upper=ZERO.negligible))
    assert found is not None
    assert "equal for practical purposes (they differ by 0.001)" in found.sentence


def test_bounds_that_have_not_met_are_not_called_equal() -> None:
    """However small their difference is."""
    found = assess_certificate(replace(ZERO, closed=False))
    assert found is not None
    assert not found.closed
    assert "equal" not in found.sentence
    assert "gap 100.00%" in found.sentence


@pytest.mark.parametrize("certificate", [OPEN, CLOSED, ZERO])
def test_no_sentence_speaks_of_the_optimum_in_continuous_time(certificate: Certificate) -> None:
    found = assess_certificate(certificate)
    assert found is not None
    for word in ("global", "optimum", "optimal", "proved"):
        assert word not in found.sentence
    assert "does not hold for continuous time" in found.sentence
    assert "SCIP" in found.sentence


@pytest.mark.parametrize("bound", [19.2605049, 1.99999999, 123456.78, -3.00000049])
def test_no_more_is_claimed_than_the_bound_itself(bound: float) -> None:
    found = assess_certificate(replace(OPEN, lower=bound))
    assert found is not None
    said = float(found.sentence.split("below ")[1].split()[0])
    assert said <= bound
    assert said == pytest.approx(bound, rel=1e-5)


@pytest.mark.parametrize(
    "solver", ["SCIP", "branch and bound over boxes", "outer approximation with HiGHS"]
)
@pytest.mark.parametrize("rigorous", [False, True])
def test_a_message_names_the_problem_and_the_accuracy_of_a_bound(
    solver: str, rigorous: bool
) -> None:
    found = assess_certificate(replace(OPEN, solver=solver, rigorous=rigorous))
    assert found is not None
    exact = "with all rounding outwards" if rigorous else "as exact as its tolerances"
    assert f" The bound was computed by {solver}, {exact}, and does not" in found.sentence


def test_bounds_that_are_not_the_problem_s_own_are_reported() -> None:
    found = assess_certificate(replace(OPEN, assumed={"k": (0.0, 14.5), "s": (1e-6, 2.0)}))
    assert found is not None
    assert found.sentence.startswith(
        "No values within the bounds of the unknowns, these as given to the method (k from 0 to "
        "14.5, s from 1e-06 to 2), have an objective below 4 in the problem"
    )
    many = assess_certificate(replace(OPEN, assumed={f"k{i}": (0.0, 1.0) for i in range(30)}))
    assert many is not None
    assert "k7 from 0 to 1, and 22 more)," in many.sentence


def test_a_bound_in_continuous_time_is_not_played_down() -> None:
    found = assess_certificate(replace(OPEN, scope="continuous time", discretised=False))
    assert found is not None
    assert "does not speak" not in found.sentence


def test_the_distance_of_mesh_and_truth_is_reported_with_the_unknown_that_moved() -> None:
    found = assess_agreement(FOUND, KEYS, FINAL)
    assert found is not None
    assert found.fine
    assert (found.scheme, found.steps) == ("trapezoid", 40)
    assert (found.objective, found.true_objective) == (19.5, 19.9)
    assert found.sentence == (
        "The discretised trajectories (trapezoid, 40 steps) differ from the integrated ones by "
        "0.004 of the largest value at the measurements; the discretised answer differs from the "
        "final one by 0.03 at most, relative (p5)."
    )


@pytest.mark.parametrize(
    ("error", "fine"), [(FINE_MESH_ERROR, True), (1.01 * FINE_MESH_ERROR, False)]
)
def test_a_mesh_is_too_coarse_above_a_hundredth(error: float, fine: bool) -> None:
    found = assess_agreement(replace(FOUND, error=error), KEYS, FINAL)
    assert found is not None
    assert found.fine is fine
    assert ("too coarse to be trusted on its own" in found.sentence) is not fine


def test_an_answer_that_cannot_be_integrated_is_reported_as_such() -> None:
    found = assess_agreement(replace(FOUND, error=math.inf, true_objective=math.inf), KEYS, FINAL)
    assert found is not None
    assert not found.fine
    assert found.sentence == (
        "The discretised answer (trapezoid, 40 steps) cannot be integrated: the mesh is too "
        "coarse, or the solution grows without bound."
    )
