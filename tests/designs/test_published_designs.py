"""Designs that are known from papers or in closed form."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

import odefit
from odefit.designs.factors import factors_of
from odefit.designs.information import InformationMap
from odefit.designs.parts import Run
from tests.designs.problems import (
    HORSE,
    RATES,
    SCALED,
    box_lucas,
    decay,
    initial_rates,
    scaled,
    theophylline,
)  # fmt: skip


@pytest.mark.slow
def test_box_and_lucas_measure_at_1_23_and_6_86() -> None:
    # G. E. P. Box and H. L. Lucas, Biometrika 46, 1959, 77-90; the digits are recomputed.
    found = odefit.design(box_lucas(), RATES, observables=["y"], times=(0, 20), count=2)
    assert found.times == pytest.approx([1.22946, 6.85767], abs=2e-4)
    assert found.efficiency == pytest.approx(1.0, abs=1e-6)


def test_the_planned_intervals_are_those_of_the_closed_form() -> None:
    found = odefit.design(box_lucas(), RATES, times=(0, 20), count=2)
    k1, k2 = RATES["k1"], RATES["k2"]
    t = np.array(found.times)
    step = 1e-6

    def y(k1: float, k2: float) -> Any:
        return k1 / (k1 - k2) * (np.exp(-k2 * t) - np.exp(-k1 * t))

    by_k1 = (y(k1 + step, k2) - y(k1 - step, k2)) / (2 * step)
    by_k2 = (y(k1, k2 + step) - y(k1, k2 - step)) / (2 * step)
    jacobian = np.column_stack([by_k1, by_k2]) / 0.02
    errors = np.sqrt(np.diag(np.linalg.inv(jacobian.T @ jacobian)))
    for interval, error, value in zip(found.intervals, errors, (k1, k2), strict=True):
        half = 1.959964 * error
        assert interval.after == pytest.approx((value - half, value + half), rel=1e-4)
        assert interval.before == (-math.inf, math.inf)


def test_a_decay_is_measured_at_once_and_after_its_time_constant() -> None:
    found = odefit.design(decay(), {"k": 0.25, "A": 2.0}, times=(0, 20))
    assert found.times == pytest.approx([0.0, 4.0], abs=1e-3)


def test_theophylline_in_a_horse_is_measured_at_three_times() -> None:
    # A. C. Atkinson, K. Chaloner, A. M. Herzberg and J. Juritz, Biometrics 49, 1993, 325-337.
    found = odefit.design(theophylline(), HORSE, times=(0, 20))
    assert found.times == pytest.approx([0.2288, 1.3886, 18.417], abs=6e-4)


@pytest.mark.parametrize(
    ("quantity", "published"),
    [
        ("th3*(1/th1 - 1/th2)", [(0.2331, 0.0135), (17.6339, 0.9865)]),
        ("log(th2/th1)/(th2 - th1)", [(0.1793, 0.6062), (3.5671, 0.3938)]),
    ],
)
def test_a_design_for_one_quantity_may_leave_others_undetermined(
    quantity: str, published: list[tuple[float, float]]
) -> None:
    """The area and the time of the peak, at two times for three unknowns (the same paper)."""
    found = odefit.design(
        theophylline(), HORSE, times=(0, 20), criterion="c", of=[quantity], count=10
    ).continuous
    assert found is not None
    assert found.excess < 1e-3
    for time, weight in published:
        near = [p for p in found.points if abs(p.measurement.time - time) < 0.05]
        total = sum(p.weight for p in near)
        assert total == pytest.approx(weight, abs=4e-4)
        mean = sum(p.weight * p.measurement.time for p in near) / total
        assert mean == pytest.approx(time, abs=4e-3)
    # Elfving's theorem: the variance is the square of the shortest way to the derivatives.
    th = np.array(list(HORSE.values()))
    t = np.linspace(0.0, 20.0, 4001)
    rows = np.column_stack([
        -th[2] * t * np.exp(-th[0] * t),
        th[2] * t * np.exp(-th[1] * t),
        np.exp(-th[0] * t) - np.exp(-th[1] * t),
    ])  # fmt: skip
    steps = np.diag(1e-6 * th)
    values = [eval(quantity, {"log": np.log, "th1": a, "th2": b, "th3": c}) for a, b, c in (
        *(th + steps), *(th - steps), th)]  # fmt: skip
    slopes = (np.array(values[:3]) - np.array(values[3:6])) / (2e-6 * th)
    scale = np.abs(rows).max(axis=0)
    shortest = linprog(
        np.ones(2 * len(t)),
        A_eq=np.hstack([rows.T, -rows.T]) / scale[:, None],
        b_eq=slopes / scale,
    )
    assert shortest.fun is not None
    variance = shortest.fun**2 / (10 * values[6] ** 2)
    assert math.exp(-found.value) == pytest.approx(variance, rel=1e-3)


@pytest.mark.slow
def test_initial_rates_are_measured_at_the_largest_concentration_and_below_km() -> None:
    km, largest = 2.0, 10.0
    found = odefit.design(
        initial_rates(), {"V": 1.0, "Km": km}, times=[0.0], vary={"s": (0.0, largest)}
    )
    settings = sorted(run.settings["s"] for run in found.runs)
    assert settings == pytest.approx([km * largest / (2 * km + largest), largest], abs=2e-3)


@pytest.mark.parametrize("criterion", ["D", "A", pytest.param("E", marks=pytest.mark.slow)])
def test_the_equivalence_theorem_holds(criterion: str) -> None:
    found = odefit.design(
        scaled(), SCALED, observables=["y", "a"], noise={"a": 0.1}, times=(0, 20), count=8,
        criterion=criterion,
    )  # fmt: skip
    assert found.continuous is not None
    assert found.continuous.excess < 1e-3
    assert found.continuous.checked > 900
    assert 0.9 < found.efficiency <= 1.0 + 1e-6
    assert sum(p.weight for p in found.continuous.points) == pytest.approx(1.0, abs=1e-2)


@pytest.mark.slow
@pytest.mark.parametrize(("criterion", "key"), [("c", "k1"), ("Ds", "k2")])
def test_the_equivalence_theorem_holds_for_one_unknown(criterion: str, key: str) -> None:
    found = odefit.design(box_lucas(), RATES, times=(0, 20), criterion=criterion, of=[key], count=6)
    assert found.continuous is not None
    assert found.continuous.excess < 1e-3
    other = odefit.design(box_lucas(), RATES, times=(0, 20), count=6)
    own = next(i for i in found.intervals if i.key == key)
    beside = next(i for i in other.intervals if i.key == key)
    assert own.error_after < beside.error_after


def test_the_modified_e_makes_both_axes_equal() -> None:
    found = odefit.design(box_lucas(), RATES, times=(0, 20), criterion="modified-E", count=2)
    assert found.continuous is None
    assert found.value == pytest.approx(0.0, abs=1e-3)  # the logarithm of the ratio


@pytest.mark.slow
def test_the_reactor_of_pyomo_doe_is_heated_as_well_or_better() -> None:
    # J. Wang and A. W. Dowling, AIChE Journal 68, 2022, e17813: nine times, three concentrations,
    # after experiments at 500 and 300 K. Their optimisation begins and ends near 570 K, then 300 K.
    names = ("CA", "CB", "CC")
    times = np.linspace(0.0, 1.0, 9)
    model = odefit.Model(
        ode={"CA": "-r1", "CB": "r1 - r2", "CC": "r2"},
        definitions={
            "r1": "A1*exp(-E1*1000/(8.314*T))*CA",
            "r2": "A2*exp(-E2*1000/(8.314*T))*CB",
        },
        constants={"T": 300.0},
    )
    blank = {"t": times, **{name: np.ones(9) for name in names}}
    values = {"A1": 84.79, "A2": 371.72, "E1": 7.78, "E2": 15.05}
    problem = odefit.Problem(
        model,
        experiments=[
            odefit.Experiment("hot", blank, constants={"T": 500.0}),
            odefit.Experiment("cold", blank, constants={"T": 300.0}),
        ],
        parameters={key: {} for key in values},
        initial={"CA": 5.0, "CB": 0.0, "CC": 0.0},
        noise={name: {"sd": 1.0} for name in names},
    )
    pieces = {"lower": 300.0, "upper": 700.0, "at": times[:-1].tolist()}
    asked = {
        "times": times.tolist(), "count": 9, "together": True, "replicates": 1, "runs": 1,
        "existing": True, "experiments": ["cold"],
    }  # fmt: skip
    vary = {"CA": (1.0, 5.0), "T": pieces}
    found = odefit.design(problem, values, vary=vary, **asked)
    theirs = Run("cold", {"CA": 5.0, **{f"T@{t:g}": 300.0 for t in times[:-1]}, "T@0": 570.0})
    vector = problem.vector(values)
    information = InformationMap(problem, names, factors_of(problem, vary, ["cold"]))
    rows = np.concatenate([
        information.existing(vector, measurements=True),
        information.of([theirs], [times], vector)[0].rows.reshape(-1, len(vector)),
    ]) * vector  # fmt: skip
    value = np.linalg.slogdet(rows.T @ rows)[1] / len(vector)
    assert found.runs[0].settings["CA"] == pytest.approx(5.0)
    assert found.value >= value - 1e-6
