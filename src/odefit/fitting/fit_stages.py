"""The stages of a fit after its search: what each is called, and what stands in its place.

A stage takes what is known of the fit, and returns it with what it has found. Where something ends
it early (a second Ctrl-C, a lack of memory, the cut-off of integrations), or where it fails because
of a mistake in the program, what was known before goes on to the next stage. So no stage can cost
what the search and the stages before it have found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

import numpy as np

from odefit.assessment.fit_quality.misfit import Misfit
from odefit.assessment.parts import Assessment, Goodness, Local, Treatment, Uncertainty
from odefit.fitting.fit_log import log_failure, log_stage
from odefit.methods.estimate import Cause, Completeness, Estimate, Start, Status
from odefit.methods.fit_measure import FitMeasure
from odefit.methods.outliers import Outlier
from odefit.methods.polish import Answer
from odefit.methods.running.control import Control, Interruption, Progress
from odefit.problem.problem import Problem
from odefit.result_data import Solution, StageFailure
from odefit.simulation.engines.cut_off import NEVER, CutOffError, cutting_off
from odefit.simulation.second_opinion import SecondOpinion


@dataclass(frozen=True)
class Wanted:
    """What is wanted of a fit beside its estimate, see :func:`odefit.fit`."""

    level: float
    polish: bool
    structure: bool
    certify: bool
    intervals: Treatment
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class FitState:
    """What is known of a fit after some of its stages.

    Attributes
    ----------
    problem, control, wanted, began
        What is fitted, within which limits, what is asked of the answer, and when the fit began, in
        seconds of :func:`time.perf_counter`.
    estimate
        What the search has found.
    status, message
        How the fit has ended, as far as is known.
    found
        The answer; None if there is none that can be integrated.
    local, uncertainty, goodness, misfit, outliers
        What the answer is worth; None where nothing is known.
    complete
        How many solutions the equations admit; None where that is not known.
    solutions, equal
        The distinct solutions, and those that fit as well as the best.
    assessment
        What is proved of the answer.
    unproved
        A sentence on why there is no certificate.
    proposed
        Other values that a proof has come across.
    opinion
        What another engine says of the answer's trajectories; None where none was asked.
    warnings
        What the user should know.
    failures
        The stages that have failed.
    """

    problem: Problem
    control: Control
    wanted: Wanted
    began: float
    estimate: Estimate
    status: Status
    message: str
    found: Answer | None = None
    local: Local | None = None
    uncertainty: Uncertainty | None = None
    goodness: Goodness | None = None
    misfit: Misfit | None = None
    outliers: tuple[Outlier, ...] = ()
    complete: Completeness | None = None
    solutions: tuple[Solution, ...] = ()
    equal: tuple[Solution, ...] = ()
    assessment: Assessment = field(default_factory=Assessment)
    unproved: str = ""
    proposed: tuple[Start, ...] = ()
    opinion: SecondOpinion | None = None
    warnings: tuple[str, ...] = ()
    failures: tuple[StageFailure, ...] = ()

    @property
    def answer(self) -> Answer:
        """The answer, for stages that are carried out only where there is one."""
        assert self.found is not None
        return self.found


def _always(_: FitState) -> bool:
    return True


def _unchanged(state: FitState) -> FitState:
    return state


@dataclass(frozen=True)
class Stage:
    """A stage of a fit.

    Attributes
    ----------
    name
        Its name in results and in the log.
    run
        What it adds to what is known.
    needed
        Whether it is carried out.
    otherwise
        What is known in its place where it was ended early or has failed.
    doing
        What is told while it runs; empty for short stages.
    """

    name: str
    run: Callable[[FitState], FitState]
    needed: Callable[[FitState], bool] = _always
    otherwise: Callable[[FitState], FitState] = _unchanged
    doing: str = ""


def carried_out(stages: Iterable[Stage], state: FitState) -> FitState:
    """Return what is known of a fit after some stages."""
    for stage in stages:
        if stage.needed(state):
            if stage.doing:
                _tell(state, stage.doing)
            state = _after(stage, state)
    return state


def _after(stage: Stage, state: FitState) -> FitState:
    """Return what is known after a stage."""
    control = state.control
    try:
        # What overflows is infinite, which stages look for. NumPy's warnings tell users nothing.
        with cutting_off(control.cut_off.as_error()), np.errstate(all="ignore"):
            return stage.run(state)
    except CutOffError:
        pass
    except (KeyboardInterrupt, MemoryError) as error:
        assert isinstance(control.interrupted, Interruption)
        control.interrupted.end(
            Cause.OUT_OF_MEMORY if isinstance(error, MemoryError) else Cause.CTRL_C
        )
    except Exception as error:  # noqa: BLE001 - the answer is there, and must not be lost
        state = _failed(stage, state, error)
    try:
        with cutting_off(NEVER):  # what stands in its place has to be there
            return stage.otherwise(state)
    except Exception as error:  # noqa: BLE001 - as above
        return _failed(stage, state, error)


def _failed(stage: Stage, state: FitState, error: Exception) -> FitState:
    """Return what is known, with the failure of a stage, whose traceback goes to the log."""
    log_failure(stage.name, error)
    failure = StageFailure(stage.name, type(error).__name__, " ".join(str(error).split()))
    known = [f for f in state.failures if f.stage == stage.name]
    return state if known else replace(state, failures=(*state.failures, failure))


def _tell(state: FitState, doing: str) -> None:
    """Report what is done after the search."""
    control, estimate = state.control, state.estimate
    log_stage(doing)
    if control.report is None or estimate.best is None:
        return
    failed = sum(s.status is Status.FAILED for s in estimate.starts)
    count = len(estimate.starts)
    measure = FitMeasure.of(state.problem)
    lowest = measure.of_start(estimate.best)
    control.report(Progress(count, failed, lowest, 0, doing, measure=measure.name))
