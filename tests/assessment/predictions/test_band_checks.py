"""Linear bands of states are withheld where unknowns lead much further than linearisation tells."""

from __future__ import annotations

import numpy as np

import odefit
from odefit.assessment.predictions.bands import NoBand
from odefit.assessment.predictions.prediction import LinearBands
from odefit.simulation import ForwardMap

TIMES = np.linspace(0.0, 10.0, 11)
VALUES = 5.0 - 0.004 * TIMES + 0.1 * np.cos(7.0 * TIMES)


def fitted(bend: float, *, measured: bool = False, least: float = 0.0) -> odefit.Result:
    """Return a fit with a slope w below 0, or at 0, its `least` value; h changes with w and w^2."""
    observables = {"y": "c + w*t/10"} | ({"z": "h"} if measured else {})
    data = {"t": TIMES, "y": VALUES}
    if measured:
        data["z"] = 1.0 - np.exp(-TIMES) + 0.1 * np.sin(5.0 * TIMES)
    problem = odefit.Problem(
        odefit.Model({"h": f"c/5*(1 + 0.15*w + {bend!r}*w^2) - h"}, observables=observables),
        data,
        {"c": {"lower": 0.0, "upper": 20.0}, "w": {"lower": least, "upper": 5.0}},
        {"h": 0.0},
        noise={name: {"sd": 0.1} for name in observables},
    )
    return odefit.fit(problem, odefit.SingleShooting(), start={"c": 5.0, "w": 0.1})


def test_a_state_that_an_unknown_at_a_bound_leads_far_has_no_linear_band() -> None:
    result = fitted(100.0)
    table = result.predict()
    rows = table[table["name"] == "h"]
    assert rows[["std_error", "ci_low", "ci_high"]].isna().all(axis=None)
    assert (
        "no band of h: values far beyond a linear one fit as well once w leaves its bound; take "
        "the band by profile"
    ) in table.attrs["notes"]
    assert table[table["name"] == "y"]["ci_low"].notna().any()
    by_profile = result.predict(by="profile")
    assert by_profile[by_profile["name"] == "h"]["ci_high"].max() > 1.5


def test_a_state_that_hardly_bends_keeps_its_band() -> None:
    result = fitted(0.0)
    table = result.predict()
    rows = table[table["name"] == "h"]
    assert (rows["ci_high"] - rows["ci_low"])[1:].gt(0.01 * rows["value"][1:]).all()
    assert any("wider on one side for w" in note for note in table.attrs["notes"])


def test_a_state_that_bends_with_a_hardly_determined_unknown_has_no_linear_band() -> None:
    result = fitted(100.0, least=-5.0)
    assert result.uncertainty is not None
    assert result.uncertainty.standard_errors[1] > abs(result.best.vector[1])
    table = result.predict()
    rows = table[table["name"] == "h"]
    assert rows[["std_error", "ci_low", "ci_high"]].isna().all(axis=None)
    (note,) = table.attrs["notes"]
    assert note == (
        "no band of h: values far beyond a linear one fit as well, as the model bends within it; "
        "take the band by profile"
    )
    straight = fitted(0.0, least=-5.0).predict()
    assert straight[["ci_low", "ci_high"]].notna().all(axis=None)


def test_a_measured_state_is_not_checked() -> None:
    result = fitted(100.0, measured=True)
    forward = ForwardMap(result.problem)
    vector = result.best.vector
    bands = LinearBands(forward, vector).bands(result.problem.conditions[0], TIMES, 0.95)
    assert isinstance(bands, list)
    (measured,) = (band for band in bands if band.name == "z")
    assert NoBand.BENT not in measured.lacking
