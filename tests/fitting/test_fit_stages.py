"""A mistake in a stage after the search costs what that stage would tell, and nothing else."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import odefit
from odefit import InputError, Model, Problem, Result, SingleShooting, Status
from odefit.fitting import fit_stages
from odefit.fitting.fit_stages import STAGES, FitState
from odefit.methods import polish
from odefit.methods.estimate import Estimate
from odefit.methods.running.control import Control
from odefit.reporting.notices import UNINTEGRATED
from odefit.reporting.terminal import result_text

MODULE: Any = import_module("odefit.fitting.fit_result")
"""The module whose functions the tests break."""

ERRORS: tuple[Exception, ...] = (
    ZeroDivisionError("division by zero in the prime field"),
    ValueError("operands could not be\nbroadcast"),
    np.linalg.LinAlgError("Singular matrix"),
    IndexError(),
)
"""What mistakes have raised."""

FUNCTIONS = {
    # what is broken: the stage of which it is a part
    "certify_region": "confidence region",
    "certify_answer": "certificate",
    "second_opinion": "second opinion",
    "with_other_optima": "other optima",
    "assess_local": "local optimality",
    "linear_uncertainty": "uncertainty",
    "with_curvature": "curvature",
    "with_folds": "folds",
    "distinct_solutions": "distinct solutions",
    "assess_goodness": "goodness of fit",
    "treated": "wanted intervals",
    "assess_misfit": "misfit",
    "suspected_outliers": "suspected outliers",
    "robust_outliers": "outliers",
    "indistinguishable_solutions": "count of solutions",
    "equal_solutions": "equal solutions",
    "assess_completeness": "assessment",
    "assess_certificate": "assessment",
    "misfit_notices": "warnings",
    "fit_notices": "warnings",
}

CERTIFIED: dict[str, Any] = {"certify_region": "region", "certify_answer": True}
"""The proofs that have to be asked for."""

NEVER_BREAK = {
    "answer",  # below
    "answer as it was found",
    "agreement with the bounds",  # tests/assessment/test_bound_agreement.py
    "status",
    "known count of solutions",
    "local optimality of the only solution",
    "solutions that fit",  # tests/fitting/test_other_optima.py
    "measurement that settles",  # tests/fitting/test_several_answers.py
}
"""Stages that are broken as a whole."""


def problem(outlier: float = 1.5) -> Problem:
    """A decay whose fourth value lies far out, so that no stage is left out."""
    times = np.linspace(0.0, 4.0, 25)
    values = 2.0 * np.exp(-0.7 * times) + 0.02 * np.cos(37.0 * times)
    values[3] += outlier
    return Problem(
        Model(ode={"x": "-k*x"}, observables={"y": "s*x"}),
        {"t": times, "y": values},
        {"k": {"lower": 0.1, "upper": 3.0}, "s": {"lower": 0.1, "upper": 9.0}},
        {"x": 1.0},
        noise={"y": {"sd": 0.02}},
    )


def fitted(outlier: float = 1.5, **options: Any) -> Result:
    return odefit.fit(problem(outlier), seed=1, jobs=1, intervals="scaled", **options)


@pytest.fixture(scope="module")
def unbroken() -> Callable[[float], Result]:
    found = {outlier: fitted(outlier) for outlier in (0.0, 1.5)}
    return lambda outlier: found[outlier]


def raises(error: Exception) -> Callable[..., Any]:
    def broken(*_: Any, **__: Any) -> Any:
        raise error

    return broken


def same_answer(result: Result, unbroken: Result, stage: str, error: Exception) -> None:
    """Hold a result with a broken stage against one without."""
    assert result.best.vector.tolist() == unbroken.best.vector.tolist()
    assert result.objective == unbroken.objective
    assert stage in [f.stage for f in result.failed_stages]
    failure = next(f for f in result.failed_stages if f.stage == stage)
    assert failure.error == type(error).__name__
    assert failure.reason == " ".join(str(error).split())
    (warning,) = [w for w in result.warnings if f", {stage}: {failure.error}" in w]
    assert "the estimates stand" in warning


@pytest.mark.parametrize(
    ("name", "error"),
    [
        pytest.param(
            *(name, error),
            marks=() if (i + k) % len(ERRORS) == 0 else pytest.mark.slow,
            id=f"{name}-{type(error).__name__}",
        )
        for i, name in enumerate(FUNCTIONS)
        for k, error in enumerate(ERRORS)
    ],
)
def test_a_stage_that_fails_costs_no_estimate(
    name: str,
    error: Exception,
    unbroken: Callable[[float], Result],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    tmp_path: Path,
) -> None:
    outlier = 0.0 if name in ("indistinguishable_solutions", "robust_outliers") else 1.5
    monkeypatch.setattr(MODULE, name, raises(error))
    with caplog.at_level(logging.INFO, "odefit"):
        result = fitted(outlier, certify=CERTIFIED.get(name, False))
    same_answer(result, unbroken(outlier), FUNCTIONS[name], error)
    assert f"failed after the search: {FUNCTIONS[name]}" in caplog.text
    assert "Traceback" in caplog.text
    assert "in broken" in caplog.text
    # All that is made of a result is made of this one as well.
    assert "mistake in odefit" in " ".join(result_text(result).split())
    result.save(tmp_path / "result.json")
    again = odefit.load_result(tmp_path / "result.json")
    assert list(again.failed_stages) == list(result.failed_stages)
    assert len(result.residuals) == 25
    assert np.isfinite(result.simulate()["y"]).all()


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name == "linear_uncertainty" else pytest.mark.slow)
        for name in FUNCTIONS
    ],
)
def test_a_report_is_written_even_if_a_stage_fails(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(MODULE, name, raises(ERRORS[0]))
    outlier = 0.0 if name in ("indistinguishable_solutions", "robust_outliers") else 1.5
    fitted(outlier, certify=CERTIFIED.get(name, False)).report(tmp_path / "report.html")
    page = " ".join((tmp_path / "report.html").read_text(encoding="utf-8").split())
    assert "mistake in odefit" in page
    assert "<svg" in page


@pytest.mark.parametrize(
    "stage",
    [
        pytest.param(i, marks=pytest.mark.slow if i % 2 else (), id=f"{i} {stage.name}")
        for i, stage in enumerate(STAGES)
    ],
)
def test_any_stage_may_fail_as_a_whole(
    stage: int, unbroken: Callable[[float], Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    error = ZeroDivisionError("float division by zero")
    broken = replace(STAGES[stage], run=raises(error))
    if stage >= 3:  # before them there is no answer
        broken = replace(broken, needs=lambda s: s.outcome is not None)
    monkeypatch.setattr(MODULE, "STAGES", [*STAGES[:stage], broken, *STAGES[stage + 1 :]])
    result = fitted()
    if STAGES[stage].name.startswith("answer") and not result.failed_stages:
        return  # this fit has not come to it
    reached = unbroken(1.5)
    assert [f.stage for f in result.failed_stages] == [STAGES[stage].name]
    assert result.best.vector == pytest.approx(reached.best.vector, rel=1e-3)
    assert result.status in (Status.CONVERGED, Status.NOT_CONVERGED)


def test_without_any_stage_the_answer_is_the_end_of_the_search(
    unbroken: Callable[[float], Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(MODULE, "answer", raises(ZeroDivisionError()))
    result = fitted()
    assert result.best.vector == pytest.approx(unbroken(1.5).best.vector, rel=1e-3)
    assert result.status is Status.NOT_CONVERGED
    assert result.uncertainty is None
    assert UNINTEGRATED in result.warnings
    assert [f.stage for f in result.failed_stages] == ["answer"]
    assert "k" in result_text(result)


def test_a_failed_improvement_returns_its_start(
    unbroken: Callable[[float], Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = MODULE.answer

    def unimproved(*arguments: Any) -> Any:
        if arguments[-1]:
            raise FloatingPointError("overflow")
        return whole(*arguments)

    monkeypatch.setattr(MODULE, "answer", unimproved)
    result = fitted()
    assert result.best.vector == pytest.approx(unbroken(1.5).best.vector, rel=1e-3)
    assert result.uncertainty is not None
    assert [f.stage for f in result.failed_stages] == ["answer"]


def test_an_overflow_in_a_stage_gives_no_warning_and_no_failure(
    unbroken: Callable[[float], Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = MODULE.assess_goodness

    def overflowing(*arguments: Any, **options: Any) -> Any:
        assert np.isinf(np.linalg.norm(np.full(3, 1e200)))
        return whole(*arguments, **options)

    monkeypatch.setattr(MODULE, "assess_goodness", overflowing)
    result = fitted()
    assert result.failed_stages == ()
    assert result.goodness == unbroken(1.5).goodness


def test_a_fit_without_mistakes_has_no_failed_stages(
    unbroken: Callable[[float], Result],
) -> None:
    result = unbroken(1.5)
    assert result.failed_stages == ()
    assert "failed_stages" not in odefit.result_data.result_file.to_mapping(result)
    assert len(result.outliers) == 1


def test_a_stage_changes_the_parts_that_it_declares(monkeypatch: pytest.MonkeyPatch) -> None:
    changed: dict[str, set[str]] = {}

    def watched(stage: Any) -> Any:
        def run(state: FitState) -> FitState:
            after: FitState = stage.run(state)
            names = {name for name, value in vars(after).items() if value is not vars(state)[name]}
            changed[stage.name] = names
            return after

        return replace(stage, run=run)

    monkeypatch.setattr(MODULE, "STAGES", [watched(stage) for stage in STAGES])
    fitted()
    gives = {stage.name: {*stage.gives} for stage in STAGES}
    assert (
        changed.items() >= {"local optimality": {"local"}, "uncertainty": {"uncertainty"}}.items()
    )
    assert all(names <= gives[name] for name, names in changed.items())


def test_every_stage_is_broken_by_a_test() -> None:
    assert {*FUNCTIONS.values()} | NEVER_BREAK == {stage.name for stage in STAGES}


def test_wrong_use_is_still_refused() -> None:
    with pytest.raises(InputError):
        odefit.fit(problem(), level=2.0)


def test_a_search_whose_algebra_fails_is_a_start_that_failed(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    module: Any = import_module("odefit.methods.single_shooting")
    monkeypatch.setattr(module, "minimise", raises(ZeroDivisionError("float division by zero")))
    with caplog.at_level(logging.INFO, "odefit"):
        result = odefit.fit(problem(), SingleShooting())
    assert result.status is Status.FAILED
    assert "ZeroDivisionError: float division by zero" in result.message
    assert "Traceback" in caplog.text


class EndedLate(SingleShooting):
    """A search after whose end integrations are cut off, as they are some time after a limit."""

    def solve(self, problem: Problem, control: Control) -> Estimate:
        estimate = super().solve(problem, control)
        control.cut_off.now()
        return estimate


@pytest.mark.parametrize("large", ["sensitivities", "Jacobian"])
def test_costly_stages_of_a_large_model_are_skipped_after_a_limit(
    monkeypatch: pytest.MonkeyPatch, large: str
) -> None:
    in_time = odefit.fit(problem(), SingleShooting())
    if large == "sensitivities":
        monkeypatch.setattr(polish, "LATE_SECONDS", 0.0)
    else:
        monkeypatch.setattr(fit_stages, "MAX_LATE_WORK", 0.0)
    late = odefit.fit(problem(), EndedLate())
    assert late.failed_stages == ()
    assert late.best.vector == pytest.approx(in_time.best.vector, rel=1e-5)
    assert late.objective == pytest.approx(in_time.objective, rel=1e-8)
    assert late.uncertainty is None
    assert late.assessment.local is None
    assert len(late.solutions) == 1
    assert "missing parts were not computed" in " ".join(result_text(late).split())


def test_a_small_model_is_assessed_after_a_limit() -> None:
    late = odefit.fit(problem(), EndedLate())
    assert late.uncertainty is not None
    assert late.assessment.local is not None
