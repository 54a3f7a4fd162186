"""Bands are compared with true curves and new measurements, and models with larger ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import odefit
from evidence.intervals import comparisons, small_samples
from evidence.intervals.coverage import examined
from evidence.intervals.small_sample_problems import SAMPLES
from evidence.running.campaign import Record


def test_predicted_measurements_scatter_about_the_true_curve() -> None:
    for sample in SAMPLES.values():
        exact, new = sample.predicted(0)
        again, other = sample.predicted(1)
        for name in exact:
            np.testing.assert_array_equal(exact[name], again[name])
        (name, *_) = (key for key in exact if key != "t")
        assert not np.array_equal(new[name], exact[name])
        if exact[name].max() > 1.0:  # there are no cases at the end of the longer epidemic
            assert not np.array_equal(new[name], other[name])
        far = np.abs(new[name] - exact[name]) / np.maximum(np.abs(exact[name]), 0.2)
        assert np.median(far) < 1.0


def test_counts_are_predicted_in_the_weeks_after_the_data() -> None:
    sample = SAMPLES["counts-14"]
    exact, _ = sample.predicted(0)
    assert list(exact["t"]) == [105.0, 112.0, 119.0, 126.0]
    problem = sample.data_set(0)
    assert problem.conditions[0].times[-1] == 98.0
    simulated = odefit.simulate(problem, dict(sample.truth), times=exact["t"])
    np.testing.assert_allclose(simulated.observables["cases"], exact["cases"], rtol=1e-5)


def test_true_curves_and_new_measurements_inside_bands_are_counted() -> None:
    sample = SAMPLES["fold"]
    result = odefit.fit(sample.data_set(0), odefit.SingleShooting(), start=dict(sample.truth))
    counts = small_samples.in_bands(result, sample, 0)
    assert counts["values"] == 10
    assert counts["curve inside"] <= counts["shown"]
    assert counts["new inside"] <= counts["shown"]
    found = examined(result, 0, sample.truth)["unknowns"]
    intervals = {"unknowns": found, "bad": False, "adopted": False, "status": "converged"}
    intervals |= {"fit seconds": 1.0, "profile seconds": 1.0, "minimisations": 1}
    one = {"values": 10, "shown": 10, "curve inside": 9, "new inside": 8}
    none = {"values": 10, "shown": 0, "curve inside": 0, "new inside": 0}
    sets = [{**intervals, "bands": one}, {**intervals, "bands": none}]
    task = {"key": "fold", "problem": "fold"}
    record = Record("fold", task, "done", {"data sets": sets}, "", 1.0)
    (row,) = small_samples.tables([record])["bands"].to_dict("records")
    assert (row["data sets"], row["% with a band"]) == (2, 50.0)
    assert row["% of true curves inside"] == 90.0
    assert row["% of new measurements inside"] == 80.0


def test_a_value_between_the_intervals_of_two_solutions_is_not_held() -> None:
    """The two rates of this data set are told apart, though the true ones are equal."""
    sample = SAMPLES["fold"]
    result = odefit.fit(sample.data_set(23), seed=23, jobs=1)
    found = examined(result, 23, sample.truth)["unknowns"]["ka"]
    low, high = result.params["ka"].ci or (np.nan, np.nan)
    assert low < sample.truth["ka"] < high
    assert (found["shown"], found["linear"], found["profile"]) == (True, False, False)


def test_a_larger_model_is_compared_in_each_data_set() -> None:
    task: dict[str, Any] = {"key": "decay", "problem": "decay, 8 points", "first": 0, "last": 1}
    result = comparisons.run(task)
    assert {one["kind"] for one in result["data sets"]} == {"F"}
    chances = [0.01, 0.2, 0.6, 0.04]
    sets = [{"number": k, "kind": "F", "p": p} for k, p in enumerate(chances)]
    record = Record("decay", task, "done", {"data sets": sets}, "", 1.0)
    (row,) = comparisons.tables([record])["comparisons"].to_dict("records")
    assert row["% larger model called better"] == pytest.approx(50.0)
