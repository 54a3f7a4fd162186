"""The campaign `coverage`: what it simulates, and what its tables count."""

from __future__ import annotations

import numpy as np
import pytest

from evidence import campaign
from evidence.intervals.coverage import run, tables
from evidence.intervals.coverage_problems import KNOWN
from evidence.running.campaign import Record
from odefit import InputError


def test_there_are_a_thousand_data_sets_of_each_problem() -> None:
    numbers: dict[str, list[int]] = {}
    for task in campaign("coverage").tasks():
        numbers.setdefault(task["problem"], []).extend(range(task["first"], task["last"] + 1))
    assert set(numbers) == set(KNOWN)
    assert all(found == list(range(1000)) for found in numbers.values())
    few = campaign("coverage").with_options({"sets": "7", "problems": "enzyme"}).tasks()
    assert [(t["first"], t["last"]) for t in few] == [(0, 6)]


@pytest.mark.parametrize(
    "options", [{"sets": "none"}, {"problems": "enzymes"}, {"seeds": "3"}, {"sets": "0"}]
)
def test_meaningless_options_are_refused(options: dict[str, str]) -> None:
    with pytest.raises(InputError):
        campaign("coverage").with_options(options)


LONG = ("enzyme", "lotka-volterra", "exponentials", "logistic")


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.slow] if n in LONG else []) for n in KNOWN]
)
def test_data_are_the_truth_with_the_stated_noise(name: str) -> None:
    known = KNOWN[name]
    exact = known.exact()
    assert known.data_set(0).keys == tuple(known.truth)
    scores = []
    for number in range(30):
        for condition in known.data_set(number).conditions:
            for observable, series in condition.series.items():
                values, true = series.values, exact[observable]
                off = np.log(values / true) if known.logarithmic else values - true
                scores.append(off / known.spreads(observable, true))
    assert np.concatenate(scores).std() == pytest.approx(1.0, abs=0.12)
    again = [known.data_set(3).conditions[0].series[o].values for o in known.sds]
    assert all(
        np.array_equal(a, known.data_set(3).conditions[0].series[o].values)
        for a, o in zip(again, known.sds, strict=True)
    )


@pytest.mark.slow
def test_a_batch_counts_the_right_fits() -> None:
    (task,) = campaign("coverage").with_options({"sets": "2", "problems": "decay"}).tasks()
    result = run(task)
    record = Record(task["key"], task, "done", result, "", 1.0)
    found = tables([record])
    coverage = found["coverage"].set_index(["problem", "unknown"])
    assert coverage.loc[("decay", "k"), "intervals"] == 2
    assert coverage.loc[("decay", "all"), "intervals"] == 6
    assert found["fits"].loc[0, "fits"] == 2
    for data_set in result["data sets"]:
        for values in data_set["unknowns"].values():
            assert values["found"]
            assert not values["beyond"]
            assert not values["undetermined"]
