"""A fit in the background tells how it stands, and can be ended at any moment."""

from __future__ import annotations

import time

import pytest

import odefit
from odefit.explorer.fit_job import FitJob, Report


def until_ended(job: FitJob, seconds: float = 60.0) -> Report:
    end = time.monotonic() + seconds
    while job.report().state in ("running", "stopping"):
        assert time.monotonic() < end, "the fit has not ended"
        time.sleep(0.02)
    return job.report()


def test_a_fit_that_is_closed_leaves_no_process_behind() -> None:
    problem = odefit.library.load("harmonic")
    job = FitJob()
    assert job.report().state == "idle"
    start = dict(zip(problem.keys, [1.0] * len(problem.keys), strict=True))
    assert job.start(problem, start, None, None) == 1
    job.close()
    report = until_ended(job, 10)
    assert report.state == "failed"
    assert report.result is None
    assert report.error == "The fit was ended before it had an answer."
    job.close()


@pytest.mark.slow
def test_a_stopped_fit_says_so_or_has_ended_before() -> None:
    problem = odefit.library.load("harmonic")
    job = FitJob()
    start = dict(zip(problem.keys, [1.0] * len(problem.keys), strict=True))
    job.start(problem, start, "multi-start", None)
    while job.report().progress is None and job.report().state == "running":
        time.sleep(0.02)
    job.stop()
    report = until_ended(job)
    assert report.state == "done"
    assert report.result is not None
    assert report.result.status in (odefit.Status.INTERRUPTED, odefit.Status.CONVERGED)
    assert report.seconds > 0


@pytest.mark.slow
def test_the_refusal_of_a_fit_is_reported() -> None:
    model = odefit.Model(ode={"x": "-k*x + m"})
    unknowns = {"k": {"lower": 0.0}, "m": {"lower": 0.0}}
    problem = odefit.Problem(model, {"t": [1.0], "x": [0.5]}, unknowns, {"x": 1.0}, t0=0.0)
    job = FitJob()
    job.start(problem, {"k": 1.0, "m": 0.1}, "single-shooting", None)
    report = until_ended(job)
    assert report.state == "failed"
    assert "fewer measurements than unknowns" in report.error or "1 measurement" in report.error
