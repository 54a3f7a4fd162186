"""A count at t0, where the model expects none whatever the unknowns are, is remarked on."""

from __future__ import annotations

from typing import Any

import pytest

import odefit
from odefit.problem.experiment import Event


def reports(first: float, **changes: Any) -> tuple[str, ...]:
    """Return the remarks on weekly reports of new cases, of which the first is at t0."""
    experiment: dict[str, Any] = {"t0": 0.0, "events": (Event((7.0, 14.0), {"new": 0.0}),)}
    problem = odefit.Problem(
        odefit.Model(ode={"cases": "k*cases", "new": "k*cases"}, observables={"reported": "new"}),
        experiments=[
            odefit.Experiment(
                "run",
                {"t": [0.0, 7.0, 14.0], "reported": [first, 5.0, 9.0]},
                **{**experiment, **changes.pop("experiment", {})},
            )
        ],
        parameters={"k": (0.0, 1.0)},
        initial={"cases": 4.0, "new": 0.0, **changes.pop("initial", {})},
        noise={"reported": changes.pop("noise", {"distribution": "poisson"})},
    )
    return problem.warnings


def test_the_remark_says_what_to_do() -> None:
    (remark,) = reports(3.0)
    assert "column reported: 3 was counted at t = 0" in remark
    assert "the model has reported = 0 whatever the unknowns are" in remark
    assert "let the experiment begin earlier, with t0, or leave the field empty" in remark


@pytest.mark.parametrize(
    ("first", "changes"),
    [
        (0.0, {}),
        (3.0, {"experiment": {"t0": -7.0}}),
        (3.0, {"initial": {"new": {"lower": 0.0, "upper": 10.0}}}),
        (3.0, {"initial": {"new": 2.0}}),
        (3.0, {"noise": {"sd": 1.0}}),
    ],
    ids=["no count", "an earlier t0", "an unknown", "a positive number", "normal noise"],
)
def test_other_first_values_are_taken_as_they_are(first: float, changes: dict[str, Any]) -> None:
    assert not [w for w in reports(first, **changes) if "counted" in w]
