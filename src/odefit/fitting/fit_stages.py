"""Stages after a search: the input and output of each, and its substitute.

A stage takes the state of a fit, and returns it with additions. It may end early (a second Ctrl-C,
a lack of memory, the cut-off of integrations), or fail because of a mistake in odefit. Then the
next stage receives the state before it. So no stage can lose the results of the search and of
earlier stages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from odefit.assessment.parts import Assessment, Local, ProvedRegion, Treatment, Uncertainty
from odefit.common.arrays import Array
from odefit.methods.bounded_problem import GivenBounds
from odefit.methods.estimate import Cause, Completeness, Estimate, Start, Status
from odefit.methods.fit_measure import FitMeasure
from odefit.methods.fit_quality.goodness_verdict import Goodness
from odefit.methods.fit_quality.misfit import Misfit
from odefit.methods.local.cost_tolerance import CostTolerance
from odefit.methods.local.decompositions import MAX_LATE_WORK
from odefit.methods.outliers import Outlier
from odefit.methods.polish import Answer
from odefit.methods.running.control import Control, Interruption, Progress
from odefit.methods.running.run_log import LOGGER
from odefit.problem.problem import Problem
from odefit.result.profiles import Profiles
from odefit.result_data import Solution, StageFailure
from odefit.result_data.notices import Notice
from odefit.simulation import Evaluation, ForwardMap
from odefit.simulation.engines.cut_off import NEVER, CutOffError, cutting_off
from odefit.simulation.second_opinion import SecondOpinion


@dataclass(frozen=True)
class Wishes:
    """The options of :func:`odefit.fit` that stages follow."""

    level: float
    polish: bool
    structure: bool
    certify: bool
    intervals: Treatment
    certificate: str | Path | None = None  # the file of the proof
    region: bool = False  # a confidence region is proved, too
    bounds: GivenBounds = None  # of the method, for unknowns without bounds
    given_start: bool = False
    remarks: tuple[str, ...] = ()
    smoothness: tuple[Notice, ...] = ()  # choices for estimated functions


@dataclass(frozen=True, eq=False, kw_only=True)
class FitState:
    """The state of a fit after some of its stages; None for anything unknown.

    A field with the name of one of :class:`odefit.result_data.ResultData` becomes part of the
    result, and so do the values in ``results``, by their names there.
    """

    problem: Problem
    control: Control
    estimate: Estimate
    wishes: Wishes
    status: Status
    message: str
    outcome: Answer | None = None
    """None if no end of the search can be integrated."""
    local: Local | None = None
    uncertainty: Uncertainty | None = None
    goodness: Goodness | None = None
    misfit: Misfit | None = None
    outliers: tuple[Outlier, ...] = ()
    complete: Completeness | None = None
    solutions: tuple[Solution, ...] = ()
    equal: tuple[Solution, ...] = ()
    """The solutions that fit as well as the best."""
    polished: tuple[Start, ...] = ()
    """Other optima whose deviance is within the limit of the likelihood ratio."""
    solutions_cut: bool = False
    """True if a limit ended the search for these."""
    near: tuple[Solution, ...] = ()
    """The solutions that fit less well than the best, but within that limit."""
    copies: tuple[Array, ...] = ()
    """Values with the outputs of the answer by the equations, shape (n,) each."""
    unsure: int = 0
    """Number of solutions that fit for which it is not known whether they are separate optima."""
    assessment: Assessment = field(default_factory=Assessment)
    unproved: str = ""
    """The reason for a missing certificate."""
    region: ProvedRegion | None = None
    no_region: str = ""
    """The reason for a missing confidence region."""
    profiles: Profiles | None = None
    proposed: tuple[Start, ...] = ()
    """Other values found by a proof."""
    opinion: SecondOpinion | None = None
    notices: tuple[Notice, ...] = ()
    reasons: tuple[Notice, ...] = ()
    failed_stages: tuple[StageFailure, ...] = ()
    results: Mapping[str, Any] = field(default_factory=dict)

    @property
    def answer(self) -> Answer:
        """The answer, for stages that run only if there is one."""
        assert self.outcome is not None
        return self.outcome

    @property
    def at_answer(self) -> tuple[ForwardMap, Array, Evaluation]:
        """The problem, the unknowns, shape (n,), and the evaluation there."""
        return self.answer.forward, self.answer.start.vector, self.answer.evaluation

    @property
    def unbeatable(self) -> bool:
        """True if the residuals are so small that no improvement is possible."""
        answer, tolerance = self.answer, CostTolerance.of(self.answer.forward)
        return answer.start.exact or tolerance.negligible(answer.evaluation.cost)

    @property
    def optimal(self) -> bool:
        """True if the answer is a local optimum."""
        return self.local is not None and self.local.optimal

    @property
    def corroborated(self) -> bool:
        """True if the search had enough evidence, or several methods ended at the answer."""
        if self.estimate.sufficient and not self.wishes.given_start:
            return True
        routes = self.estimate.routes
        methods = routes[:-1] if self.wishes.given_start else routes
        return sum(route.hits > 0 for route in methods) > 1


def answered(state: FitState) -> bool:
    """Return whether there is an answer that can be integrated."""
    return state.outcome is not None


def assessed(state: FitState) -> bool:
    """Return whether the errors of the answer are known."""
    return state.outcome is not None and state.uncertainty is not None


def countable(state: FitState) -> bool:
    """Return whether to count the solutions of the equations."""
    uncertainty = state.uncertainty
    return (
        state.outcome is not None
        and state.wishes.structure
        and state.estimate.completeness is None
        and state.status is Status.CONVERGED
        and uncertainty is not None
        and not uncertainty.directions
        and not any(trouble.lost for trouble in uncertainty.trouble.values())
    )


@dataclass(frozen=True)
class Stage:
    """A stage of a fit.

    Attributes
    ----------
    name
        Its name in results and in the log.
    run
        The function that returns the state after it.
    gives
        The fields of the state that it may change.
    needs
        The condition under which it is carried out; None for always.
    otherwise
        The function that replaces it after an early end or a failure; None to leave the state
        unchanged.
    doing
        A line for the progress display and the log; empty for short stages.
    derivatives
        True if the stage works on the Jacobian of the answer: it is left out after a cut-off where
        that is missing or large.
    """

    name: str
    run: Callable[[FitState], FitState]
    gives: tuple[str, ...]
    needs: Callable[[FitState], bool] | None = None
    otherwise: Callable[[FitState], FitState] | None = None
    doing: str = ""
    derivatives: bool = False


STAGES: list[Stage] = []
"""The stages of a fit after its search, in their order."""


def stage(
    name: str,
    *gives: str,
    needs: Callable[[FitState], bool] | None = None,
    otherwise: Callable[[FitState], FitState] | None = None,
    doing: str = "",
    derivatives: bool = False,
) -> Callable[[Callable[[FitState], FitState]], Callable[[FitState], FitState]]:
    """Make a function the next stage, see :class:`Stage`."""

    def added(run: Callable[[FitState], FitState]) -> Callable[[FitState], FitState]:
        STAGES.append(Stage(name, run, gives, needs, otherwise, doing, derivatives))
        return run

    return added


stage_on_jacobian = partial(stage, derivatives=True)


def carried_out(stages: Iterable[Stage], state: FitState) -> FitState:
    """Return the state of a fit after some stages."""
    for stage in stages:
        if stage.needs is None or stage.needs(state):
            if stage.doing:
                report(state, stage.doing)
            state = _after(stage, state)
    return state


def repeated(state: FitState, better: Answer, first: str, last: str) -> FitState:
    """Return the state after the stages from one to another, by name, for a better answer."""
    names = [stage.name for stage in STAGES]
    state = replace(
        state,
        outcome=better,
        local=None,
        uncertainty=None,
        goodness=None,
        misfit=None,
        outliers=(),
        complete=None,
    )
    return carried_out(STAGES[names.index(first) : names.index(last) + 1], state)


def _after(stage: Stage, state: FitState) -> FitState:
    """Return the state after a stage."""
    control = state.control
    try:
        # Overflow gives infinity, which stages check for. NumPy's warnings would not help users.
        with cutting_off(control.cut_off.as_error()), np.errstate(all="ignore"):
            if stage.derivatives and _too_late(state):
                raise CutOffError
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
    if stage.otherwise is None:
        return state
    try:
        with cutting_off(NEVER):  # the substitute has to exist
            return stage.otherwise(state)
    except Exception as error:  # noqa: BLE001 - as above
        return _failed(stage, state, error)


def _too_late(state: FitState) -> bool:
    """Return whether the linear algebra of a stage would delay an answer that is late already."""
    if state.outcome is None:
        return False
    rows, columns = state.outcome.evaluation.jacobian.shape
    large = rows * columns**2 > MAX_LATE_WORK
    return not state.outcome.differentiated or (state.control.cut_off.reached and large)


def _failed(stage: Stage, state: FitState, error: Exception) -> FitState:
    """Return the state with the failure of a stage, whose traceback goes to the log."""
    LOGGER.error("failed after the search: %s", stage.name, exc_info=error)
    failure = StageFailure(stage.name, type(error).__name__, " ".join(str(error).split()))
    if stage.name in [f.stage for f in state.failed_stages]:
        return state
    return replace(state, failed_stages=(*state.failed_stages, failure))


def report(state: FitState, doing: str) -> None:
    """Report the current stage after the search."""
    control, estimate = state.control, state.estimate
    LOGGER.info("%s", doing)
    if control.report is None or estimate.best is None:
        return
    failed = sum(s.status is Status.FAILED for s in estimate.starts)
    measure = FitMeasure.of(state.problem)
    lowest = measure.of_start(estimate.best)
    count = len(estimate.starts)
    control.report(Progress(count, failed, lowest, 0, doing, measure=measure.name))
