"""Doses of long tables act as the closed forms of linear compartments say, by superposition."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import least_squares

import odefit
from odefit import Failure, ForwardMap, Model, Problem, simulate
from tests.simulation.numerics import Array

TIMES = np.array([0.5, 1.0, 2.0, 5.0, 8.0, 9.0, 13.0, 20.0, 26.0, 40.0])
ORAL = Model(ode={"gut": "-ka*gut", "blood": "ka*gut - ke*blood"}, observables={"c": "blood/V"})
VEIN = Model(ode={"A": "-CL/V*A"}, observables={"c": "A/V"})
TWO = Model(ode={"a": "k21*b - (k12 + ke)*a", "b": "k12*a - k21*b"}, observables={"c": "a/V"})
ORAL_VALUES = {"ka": 1.3, "ke": 0.21, "V": 12.0, "t_lag": 0.37, "F": 0.8}
VEIN_VALUES = {"CL": 3.0, "V": 10.0, "D": 2.7, "R": 11.0, "t_lag": 0.4, "F": 0.7}
TWO_VALUES = {"k12": 0.5, "k21": 0.3, "ke": 0.2, "V": 8.0, "t_lag": 0.2, "F": 0.9}


def problem(
    model: Model, values: dict[str, float], dose: dict[str, Any], doses: Any, **kinds: Any
) -> Problem:
    """One subject with one dose record at time 0 and measurements at TIMES."""
    used = str([e.text for e in (*model.ode.values(), *model.observables.values())]) + str(doses)
    rows = [{"ID": 7, "TIME": 0.0, **dose}]
    rows += [{"ID": 7, "TIME": t, "DV": 1.0} for t in TIMES]
    return Problem(
        model,
        pd.DataFrame(rows),
        {k: {} for k in values if k in used},
        dict.fromkeys(model.ode, 0.0),
        time="TIME",
        by="ID",
        doses=doses,
        **kinds,
    )


def concentrations(given: Problem, values: dict[str, float]) -> Array:
    forward = ForwardMap(given)
    vector = given.vector({k: values[k] for k in given.keys})
    trajectories = forward.trajectories(vector)
    assert not isinstance(trajectories, Failure), trajectories
    condition = given.conditions[0]
    predicted = forward.predictions(condition, vector, trajectories[0])
    return np.asarray(predicted["c"].array(len(condition.times)))


def oral(t: Array) -> Array:
    """Concentration at times after a dose of 1 into the gut."""
    ka, ke, v = (ORAL_VALUES[n] for n in ("ka", "ke", "V"))
    s = np.maximum(t, 0.0)
    return np.asarray(
        np.where(t >= 0, ka / (v * (ka - ke)) * (np.exp(-ke * s) - np.exp(-ka * s)), 0.0)
    )


def vein(t: Array, duration: float) -> Array:
    """Concentration at times after the start of an infusion of rate 1."""
    k, v = VEIN_VALUES["CL"] / VEIN_VALUES["V"], VEIN_VALUES["V"]
    flows, rest = np.clip(t, 0.0, duration), np.maximum(t - duration, 0.0)
    return np.asarray((1 - np.exp(-k * flows)) / (k * v) * np.exp(-k * rest))


def two(t: Array) -> Array:
    """Concentration at times after a bolus of 1 into the first of two compartments."""
    k12, k21, ke, v = (TWO_VALUES[n] for n in ("k12", "k21", "ke", "V"))
    total = k12 + k21 + ke
    root = np.sqrt(total**2 - 4 * k21 * ke)
    fast, slow = (total + root) / 2, (total - root) / 2
    s = np.maximum(t, 0.0)
    found = ((fast - k21) * np.exp(-fast * s) + (k21 - slow) * np.exp(-slow * s)) / (fast - slow)
    return np.asarray(np.where(t >= 0, found / v, 0.0))


def repeated(one: Callable[[Array], Array], interval: float, first: int, count: int) -> Array:
    return np.asarray(sum(one(TIMES - interval * k) for k in range(first, count)))


LONG_AGO = -400
"""The number of the first of many doses: before it, nothing is left but rounding."""

CASES: dict[str, tuple[Model, dict[str, float], dict[str, Any], Any, Array]] = {
    "oral doses": (
        ORAL,
        ORAL_VALUES,
        {"AMT": 100.0, "II": 8.0, "ADDL": 3, "CMT": 1},
        None,
        100 * repeated(oral, 8.0, 0, 4),
    ),
    "lag and bioavailability": (
        ORAL,
        ORAL_VALUES,
        {"AMT": 100.0, "II": 8.0, "ADDL": 3},
        {"into": "gut", "lag": "t_lag", "bioavailability": "F"},
        80 * repeated(lambda t: oral(t - 0.37), 8.0, 0, 4),
    ),
    "oral steady state": (
        ORAL,
        ORAL_VALUES,
        {"AMT": 100.0, "II": 8.0, "ADDL": 1, "SS": 1, "CMT": "gut"},
        None,
        100 * repeated(oral, 8.0, LONG_AGO, 2),
    ),
    "steady state with a lag": (
        ORAL,
        ORAL_VALUES,
        {"AMT": 100.0, "II": 8.0, "SS": 1},
        {"into": "gut", "lag": {"gut": "t_lag"}},
        100 * repeated(lambda t: oral(t - 0.37), 8.0, LONG_AGO, 1),
    ),
    "bolus into two compartments": (
        TWO,
        TWO_VALUES,
        {"AMT": 50.0, "II": 6.0, "ADDL": 2},
        {"into": "a"},
        50 * repeated(two, 6.0, 0, 3),
    ),
    "steady state of two compartments": (
        TWO,
        TWO_VALUES,
        {"AMT": 50.0, "II": 6.0, "SS": 1},
        {"into": "a", "bioavailability": "F"},
        45 * repeated(two, 6.0, LONG_AGO, 1),
    ),
    "steady state of two compartments with a lag": (
        TWO,
        TWO_VALUES,
        {"AMT": 50.0, "II": 6.0, "SS": 1, "ADDL": 1},
        {"into": "a", "lag": "t_lag"},
        50 * repeated(lambda t: two(t - 0.2), 6.0, LONG_AGO, 2),
    ),
    "infusion by rate": (
        VEIN,
        VEIN_VALUES,
        {"AMT": 100.0, "RATE": 20.0},
        None,
        20 * vein(TIMES, 5.0),
    ),
    "infusion by duration": (
        VEIN,
        VEIN_VALUES,
        {"AMT": 100.0, "DUR": 4.0},
        None,
        25 * vein(TIMES, 4.0),
    ),
    "infusions that overlap": (
        VEIN,
        VEIN_VALUES,
        {"AMT": 100.0, "RATE": 20.0, "II": 4.0, "ADDL": 2},
        None,
        20 * repeated(lambda t: vein(t, 5.0), 4.0, 0, 3),
    ),
    "a fraction of an infusion is shorter": (
        VEIN,
        VEIN_VALUES,
        {"AMT": 100.0, "RATE": 20.0},
        {"bioavailability": "F"},
        20 * vein(TIMES, 3.5),
    ),
    "a duration that is estimated": (
        VEIN,
        VEIN_VALUES,
        {"AMT": 100.0, "RATE": -2},
        {"duration": "D", "lag": "t_lag", "bioavailability": "F"},
        70 / 2.7 * vein(TIMES - 0.4, 2.7),
    ),
    "a rate that is estimated": (
        VEIN,
        VEIN_VALUES,
        {"AMT": 100.0, "RATE": -1},
        {"rate": "R"},
        11 * vein(TIMES, 100.0 / 11),
    ),
    "infusions without columns of their own": (
        VEIN,
        VEIN_VALUES,
        {"AMT": 100.0, "II": 8.0, "ADDL": 1},
        {"duration": "D"},
        100 / 2.7 * repeated(lambda t: vein(t, 2.7), 8.0, 0, 2),
    ),
    "steady state of short infusions": (
        VEIN,
        VEIN_VALUES,
        {"AMT": 100.0, "DUR": 2.0, "II": 8.0, "SS": 1},
        {"lag": 0.5},
        50 * repeated(lambda t: vein(t - 0.5, 2.0), 8.0, LONG_AGO, 1),
    ),
    "steady state of infusions that overlap": (
        VEIN,
        VEIN_VALUES,
        {"AMT": 100.0, "RATE": 10.0, "II": 4.0, "SS": 1, "ADDL": 2},
        None,
        10 * repeated(lambda t: vein(t, 10.0), 4.0, LONG_AGO, 3),
    ),
    "a constant infusion that ends": (
        VEIN,
        VEIN_VALUES,
        {"AMT": 0.0, "RATE": 20.0, "SS": 1},
        None,
        20 / 3.0 * np.exp(-0.3 * TIMES),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_doses_add_up_as_closed_forms_do(case: str) -> None:
    model, values, dose, doses, exact = CASES[case]
    found = concentrations(problem(model, values, dose, doses), values)
    np.testing.assert_allclose(found, exact, rtol=1e-8, atol=1e-8 * exact.max())


@pytest.mark.parametrize(
    "case",
    [
        "lag and bioavailability",
        "steady state with a lag",
        "steady state of two compartments with a lag",
        "a duration that is estimated",
        "steady state of infusions that overlap",
    ],
)
def test_derivatives_are_those_of_the_residuals(case: str) -> None:
    model, values, dose, doses, _ = CASES[case]
    given = problem(model, values, dose, doses)
    forward = ForwardMap(given)
    vector = given.vector({k: values[k] for k in given.keys})

    def residuals(at: Array) -> Array:
        found = forward.evaluate(at)
        assert not isinstance(found, Failure), found
        return found.residuals

    steps = 1e-5 * np.diag(np.abs(vector))
    columns = [(residuals(vector + h) - residuals(vector - h)) / (2 * h.sum()) for h in steps]
    found = forward.evaluate(vector)
    assert not isinstance(found, Failure)
    np.testing.assert_allclose(
        found.jacobian, np.stack(columns, 1), atol=1e-6 * np.abs(found.jacobian).max()
    )


def test_a_nonlinear_steady_state_is_that_of_many_doses() -> None:
    pytest.importorskip("heyoka")
    model = Model(ode={"A": "-vm*A/(km + A)"}, observables={"c": "A"})
    values = {"vm": 8.0, "km": 5.0}
    steady = problem(model, values, {"AMT": 20.0, "II": 8.0, "SS": 1}, None)
    found = concentrations(steady, values)
    # Before the first measurement, 300 doses.
    rows = [{"TIME": 0.0, "AMT": 20.0, "II": 8.0, "ADDL": 300}]
    rows += [{"TIME": 2400.0 + t, "DV": 1.0} for t in TIMES]
    many = Problem(
        model, pd.DataFrame(rows), {"vm": {}, "km": {}}, {"A": 0.0}, time="TIME", doses={}
    )
    np.testing.assert_allclose(found, concentrations(many, values), rtol=1e-8)


def test_an_accumulating_state_has_no_periodic_state() -> None:
    model = Model(ode={"A": "-k*A", "urine": "k*A"}, observables={"c": "A"})
    steady = problem(model, {"k": 1.0}, {"AMT": 20.0, "II": 8.0, "SS": 1}, {"into": "A"})
    failed = ForwardMap(steady).evaluate(np.array([0.3]))
    assert isinstance(failed, Failure)
    assert "before the experiment, repeated events lead to no periodic state: urine" in str(failed)


def test_a_lag_longer_than_the_dosing_interval_is_a_failure() -> None:
    steady = problem(ORAL, ORAL_VALUES, *CASES["steady state with a lag"][2:4])
    values = {**ORAL_VALUES, "t_lag": 9.0}
    vector = steady.vector({k: values[k] for k in steady.keys})
    assert isinstance(ForwardMap(steady).evaluate(vector), Failure)


def test_the_order_of_rows_says_what_a_measurement_at_a_dose_sees() -> None:
    dose, measured = {"TIME": 2.0, "AMT": 10.0}, {"TIME": 2.0, "DV": 1.0}
    first = {"TIME": 0.0, "AMT": 10.0}
    found = []
    for rows in ([first, dose, measured], [first, measured, dose]):
        data = pd.DataFrame(rows)
        given = Problem(VEIN, data, {"CL": {}, "V": {}}, {"A": 0.0}, time="TIME", doses={})
        found.append(concentrations(given, VEIN_VALUES)[0])
    assert found[1] == pytest.approx(np.exp(-0.6), rel=1e-9)
    assert found[0] == pytest.approx(1 + np.exp(-0.6), rel=1e-9)


def test_a_reset_ends_infusions_and_cancels_pending_doses() -> None:
    rows = [
        {"TIME": 0.0, "AMT": 100.0, "RATE": 10.0, "EVID": 1, "II": 3.0, "ADDL": 5},
        {"TIME": 4.0, "DV": 1.0, "EVID": 0},
        {"TIME": 5.0, "EVID": 3},
        {"TIME": 6.0, "DV": 1.0, "EVID": 0},
        {"TIME": 7.0, "AMT": 50.0, "EVID": 4},
        {"TIME": 9.0, "DV": 1.0, "EVID": 0},
    ]
    data = pd.DataFrame(rows)
    for doses, late in (({}, 0.0), ({"lag": "t_lag"}, 0.4)):
        names = ("CL", "V", *(("t_lag",) if late else ()))
        given = Problem(VEIN, data, {k: {} for k in names}, {"A": 2.0}, time="TIME", doses=doses)
        found = concentrations(given, VEIN_VALUES)
        at = np.array([4.0 - late])
        start = 2 / 10 * np.exp(-0.3 * np.array([4.0, 1.0, 2.0]))
        before = 10 * (vein(at, 10.0) + vein(at - 3.0, 10.0))[0]
        after = 5.0 * np.exp(-0.3 * (2.0 - late))
        expected = start + np.array([before, 0.0, after])
        np.testing.assert_allclose(found, expected, rtol=1e-8)


def test_a_simulation_has_the_curve_between_measurements() -> None:
    model, values, dose, doses, _ = CASES["oral steady state"]
    given = problem(model, values, dose, doses)
    vector = given.vector({k: values[k] for k in given.keys})
    times = np.array([0.0, 0.25, 7.9])
    found = simulate(given, vector, times=times)
    assert not isinstance(found, Failure)
    exact = np.sum([100 * oral(times - 8.0 * k) for k in range(LONG_AGO, 1)], axis=0)
    np.testing.assert_allclose(found.observables["c"], exact, rtol=1e-8)


@pytest.mark.slow
def test_twelve_subjects_are_fitted_as_each_one_alone_by_its_closed_form() -> None:
    file = Path(__file__).parents[1] / "data" / "theophylline.csv"
    data = pd.read_csv(file, comment="#", na_values=".")
    bounds = {"lower": 0.01, "upper": 20.0, "scale": "log10", "per_experiment": True}
    given = Problem(
        ORAL,
        data,
        dict.fromkeys(("ka", "ke", "V"), bounds),
        {"gut": 0.0, "blood": 0.0},
        by="ID",
        time="TIME",
        doses={"into": "gut"},
    )
    assert (len(given.experiments), given.size) == (12, 132)
    result = odefit.fit(given, seed=1, jobs=1)
    total = 0.0
    for _, rows in data.groupby("ID"):
        t, y = (rows[rows.EVID == 0][c].to_numpy() for c in ("TIME", "DV"))

        def residuals(log: Array, t: Any = t, y: Any = y, dose: float = rows.AMT.max()) -> Array:
            ka, ke, v = np.exp(log)
            return np.asarray(dose * ka / (v * (ka - ke)) * (np.exp(-ke * t) - np.exp(-ka * t)) - y)

        starts = [np.log([ka, 0.08, 0.5]) for ka in (0.7, 2.0, 8.0)]
        total += min(2 * least_squares(residuals, s, xtol=1e-12).cost for s in starts)
    assert result.best.objective == pytest.approx(total, rel=1e-6)
