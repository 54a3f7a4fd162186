"""Quantities over time: against exact solutions, and with derivatives against differences."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import brentq

from odefit import Event, Experiment, InputError, Model, Problem, Scenario
from odefit.assessment.functionals.over_time import over_time
from odefit.assessment.predictions.prediction_runs import runs_of
from odefit.simulation import ForwardMap

KA, KE, V, DOSE = 1.2, 0.3, 2.0, 10.0


def bateman(t: float) -> float:
    """Return the concentration after an oral dose, by its closed form."""
    return DOSE * KA / (V * (KA - KE)) * (math.exp(-KE * t) - math.exp(-KA * t))


PEAK = math.log(KA / KE) / (KA - KE)


@pytest.fixture(scope="module")
def problem() -> Problem:
    t = np.linspace(0.5, 12.0, 8)
    return Problem(
        Model(
            ode={"g": "-ka*g", "c": "ka*g/V - ke*c"},
            observables={"C": "c"},
            constants={"limit": 1.0},
        ),
        {"t": t, "C": [bateman(x) for x in t]},
        {"ka": (0.1, 10.0), "ke": (0.01, 2.0), "V": (0.1, 20.0)},
        {"g": DOSE, "c": 0.0},
        t0=0.0,
    )


@pytest.fixture(scope="module")
def forward(problem: Problem) -> ForwardMap:
    return ForwardMap(problem)


RISE, FALL = (brentq(lambda t: bateman(t) - 1.0, *ends) for ends in ((0.0, PEAK), (PEAK, 20.0)))
AREA = DOSE / V / KE - DOSE * KA / (V * (KA - KE)) * (
    math.exp(-KE * 24.0) / KE - math.exp(-KA * 24.0) / KA
)

EXACT = {
    "AUC = integral(C, 0:24)": AREA,
    "mean(C, 0:24)": AREA / 24.0,
    "Cmax = max(C)": bateman(PEAK),
    "argmax(C)": PEAK,
    "min(C, 1:3)": min(bateman(1.0), bateman(3.0)),
    "argmin(C, 1:3)": 3.0,
    "first(t where C > limit)": RISE,
    "first_time(C <= limit, 4:24)": FALL,
    "first(C < 2*limit)": 0.0,
    "time_above(C, limit, 0:24)": FALL - RISE,
    "time_below(C, limit, 0:24)": 24.0 - FALL + RISE,
    "C@5 / C@2": bateman(5.0) / bateman(2.0),
    "log(2)/ke": math.log(2.0) / KE,
    "max(max(C), 2*limit)": bateman(PEAK),
    "g*max(C)": DOSE * bateman(PEAK),
    "c@inf": 0.0,
}


@pytest.mark.slow
@pytest.mark.parametrize("text", EXACT)
def test_values_are_those_of_the_closed_form(
    problem: Problem, forward: ForwardMap, text: str
) -> None:
    vector = problem.vector({"ka": KA, "ke": KE, "V": V})
    quantity = over_time(problem, text, "data")
    value, gradient = quantity.at(forward, vector)
    assert value == pytest.approx(EXACT[text], rel=1e-8, abs=1e-9)
    for k, step in enumerate(1e-5 * vector):
        shift = step * np.eye(3)[k]
        ends = [quantity.at(forward, vector + sign * shift)[0] for sign in (1.0, -1.0)]
        assert gradient[k] == pytest.approx((ends[0] - ends[1]) / (2 * step), rel=1e-5, abs=1e-6)


def test_extrema_and_areas_account_for_doses_and_corners_of_inputs() -> None:
    model = Model(ode={"x": "u - 0.5*x"}, inputs={"u": "constant"})
    data = {"t": [0.0, 1.0, 5.0], "u": [0.0, 2.0, 0.0], "x": [0.0, 0.0, 1.0]}
    dose = Event((3.3,), {"x": "x + 4"})
    experiment = Experiment("e", data, events=[dose])
    problem = Problem(model, parameters={"k": (0, 1)}, initial={"x": 0.0}, experiments=[experiment])
    forward, vector = ForwardMap(problem), np.array([0.5])
    before = 4.0 * (1.0 - math.exp(-0.5 * 2.3))
    last = 4.0 + before * math.exp(-0.85) - 4.0 * math.exp(-0.85)
    assert over_time(problem, "max(x)", "e").at(forward, vector)[0] == pytest.approx(before + 4.0)
    assert over_time(problem, "argmax(x)", "e").at(forward, vector)[0] == pytest.approx(3.3)
    jump = over_time(problem, "first(x > 5)", "e").at(forward, vector)
    assert jump[0] == pytest.approx(3.3, abs=1e-6)
    # x' = u - x/2 + 4 delta(t - 3.3), integrated: the area is twice what came in and did not stay.
    end = last + 4.0 * math.exp(-0.85)
    area = over_time(problem, "integral(x)", "e").at(forward, vector)[0]
    assert area == pytest.approx(2.0 * (2.0 * 4.0 + 4.0 - end), rel=1e-8)


def test_a_quantity_that_never_happens_has_no_value(problem: Problem, forward: ForwardMap) -> None:
    vector = problem.vector({"ka": KA, "ke": KE, "V": V})
    assert math.isnan(over_time(problem, "first(C > 99)", "data").at(forward, vector)[0])


def test_a_scenario_has_a_window_of_its_own(problem: Problem) -> None:
    whole, runs = runs_of(problem, Scenario("half", initial={"g": DOSE / 2}), [24.0])
    vector = problem.vector({"ka": KA, "ke": KE, "V": V})
    quantity = over_time(whole, "integral(C)", "half", (0.0, runs[0].times[-1]))
    assert quantity.at(ForwardMap(whole), vector)[0] == pytest.approx(AREA / 2, rel=1e-8)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("max(D)", "unknown name 'D'"),
        ("C", "'C' changes in time; write a functional of it, such as max(C)"),
        ("max(C", "expected"),
        ("first(C)", "expected one comparison, such as first(x > 2)"),
        ("first(C > 1 && C < 2)", "give each condition a quantity of its own"),
        ("integral(max(C))", "stands within another functional"),
        ("max(C, 24:0)", "the window from 24 to 0 is empty"),
        ("max(C, 0:inf)", "is empty, infinite"),
        ("max(C, a:3)", "is not FROM:TO"),
        ("C@-1", "the time -1 is before t0 = 0"),
        ("q@1", "unknown name 'q' before '@'"),
        ("time_above(C)", "time_above takes 2 arguments"),
        ("integral()", "empty"),
    ],
)
def test_mistakes_are_reported_with_the_remedy(problem: Problem, text: str, said: str) -> None:
    with pytest.raises(InputError) as caught:
        over_time(problem, text, "data")
    assert said in str(caught.value)
