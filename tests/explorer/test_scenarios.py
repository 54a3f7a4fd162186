"""Single doses of a scenario have amounts and times of their own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import odefit
from odefit.explorer.scenarios import MAX_RECORDS, givens, with_scenario
from odefit.simulation import simulate

RECORDS: dict[str, list[Any]] = {
    "TIME": [0.0, 1.0, 8.0, 12.0, 16.0, 16.0, 24.0],
    "AMT": [100.0, None, None, None, 50.0, 30.0, None],
    "RATE": [0.0, None, None, None, 0.0, 15.0, None],
    "DV": [None, 5.0, 4.0, 3.0, None, None, 6.0],
}


def pharmacology(records: dict[str, list[Any]] | None = None) -> odefit.Problem:
    return odefit.Problem(
        odefit.Model({"gut": "-ka*gut", "blood": "ka*gut - k*blood"}, {"c": "blood/V"}),
        RECORDS if records is None else records,
        {"ka": 0.8, "k": (0.01, 1.0), "V": 20.0},
        {"gut": 0.0, "blood": 0.0},
        doses=odefit.Doses(into="gut"),
        time="TIME",
        time_unit="h",
    )


def blood(problem: odefit.Problem) -> float:
    return float(simulate(problem, [0.1], [30.0]).states["blood"][0])


def oral(amount: float, since: float) -> float:
    """The amount in the blood so long after a dose: Bateman's function."""
    return amount * 0.8 / 0.7 * float(np.exp(-0.1 * since) - np.exp(-0.8 * since))


def test_each_dose_record_of_a_table_is_listed_with_its_amount_and_its_time() -> None:
    problem = pharmacology()
    listed = [g for g in givens(problem, problem.experiments[0]) if g.record is not None]
    assert [(g.record, g.kind, g.name, g.value, g.unit) for g in listed] == [
        (1, "amount", "gut", 100.0, ""),
        (1, "time", "", 0.0, "h"),
        (2, "amount", "gut", 50.0, ""),
        (2, "time", "", 16.0, "h"),
        (3, "level", "gut_infusion", 15.0, ""),
        (3, "time", "", 16.0, "h"),
        (4, "level", "gut_infusion", 0.0, ""),
        (4, "time", "", 18.0, "h"),
    ]


def test_covariates_of_a_subject_are_constants_that_can_change() -> None:
    records = {**RECORDS, "ID": ["A"] * 7, "WT": [70.0] * 7}
    problem = odefit.Problem(
        odefit.Model({"gut": "-gut", "blood": "gut - k*WT/70*blood"}, {"c": "blood"}),
        records,
        {"k": (0.01, 1.0)},
        {"gut": 0.0, "blood": 0.0},
        doses=odefit.Doses(into="gut"),
        by="ID",
        time="TIME",
    )
    listed = givens(problem, problem.experiments[0])
    assert [(g.key, g.value) for g in listed if g.kind == "constant"] == [("WT", 70.0)]
    heavier = with_scenario(problem, {"ID A": {"WT": 140.0}})
    np.testing.assert_allclose(
        simulate(heavier, [0.1], [30.0]).states["blood"],
        simulate(problem, [0.2], [30.0]).states["blood"],
        rtol=1e-8,
    )


def test_one_dose_can_be_larger_and_later_while_the_others_stay() -> None:
    no_infusion = {k: v[:5] + v[6:] for k, v in RECORDS.items()}
    problem = pharmacology(no_infusion)
    (name,) = [e.name for e in problem.experiments]
    keys = {
        (g.record, g.kind): g.key
        for g in givens(problem, problem.experiments[0])
        if g.record is not None
    }
    changed = with_scenario(problem, {name: {keys[2, "amount"]: 80.0, keys[2, "time"]: 20.0}})
    assert blood(changed) == pytest.approx(oral(100, 30) + oral(80, 10), rel=1e-7)
    assert blood(problem) == pytest.approx(oral(100, 30) + oral(50, 14), rel=1e-7)
    # What holds for all doses comes on top of what holds for one.
    both = with_scenario(problem, {name: {keys[1, "amount"]: 60.0, "doses": 2.0, "shift": 1.0}})
    assert blood(both) == pytest.approx(2 * (oral(60, 29) + oral(50, 13)), rel=1e-7)


def test_a_dose_with_a_parameter_in_it_has_a_factor_and_one_at_an_unknown_time_no_time() -> None:
    problem = odefit.Problem(
        odefit.Model({"x": "-k*x"}),
        experiments=[
            odefit.Experiment(
                "run",
                {"t": [0.0, 5.0], "x": [1.0, 1.0]},
                events=[odefit.Event(("lag",), {"x": "x + F*10"})],
            )
        ],
        parameters={"k": (0.0, 1.0), "lag": 1.0, "F": 0.5},
        initial={"x": 1.0},
    )
    (listed,) = [g for g in givens(problem, problem.experiments[0]) if g.record is not None]
    assert (listed.kind, listed.name, listed.value) == ("factor", "x", 1.0)
    changed = with_scenario(problem, {"run": {listed.key: 3.0}})
    found = simulate(changed, [0.2], [5.0]).states["x"][0]
    assert found == pytest.approx(np.exp(-1.0) + 15 * np.exp(-0.8), rel=1e-7)


def test_a_list_of_hundreds_of_doses_has_the_first() -> None:
    many = {
        "TIME": [*np.arange(100.0), 100.0],
        "AMT": [*np.full(100, 10.0), None],
        "DV": [*[None] * 100, 1.0],
    }
    problem = pharmacology(many)
    listed = [g for g in givens(problem, problem.experiments[0]) if g.record is not None]
    assert max(g.record or 0 for g in listed) == MAX_RECORDS
    assert [g.value for g in listed if g.kind == "time"] == list(range(MAX_RECORDS))
