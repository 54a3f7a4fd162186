"""The switch between the explicit and the implicit engine of one problem."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from odefit.problem.vector_field import SensitivityPattern
from odefit.simulation.engines.comparison import Comparison, needed_steps
from odefit.simulation.engines.engine import (
    EngineFailure,
    Integration,
    SegmentSolution,
    Solved,
    at_one_end,
    either,
)
from odefit.simulation.engines.engine_choice import EngineChoice, Integrated
from odefit.simulation.engines.registry import EngineName, import_problem, missing_package
from odefit.simulation.engines.steps import MAX_TAYLOR_STEPS, TAYLOR_MARGIN

STATES_ALONE = SensitivityPattern(0, frozenset())

LONGER = 2
"""Time of an implicit integration, relative to the prediction for the explicit engine, after which
a problem is long rather than stiff."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Switch:
    """The engines for integrations with the same sensitivities and number of outputs.

    `implicit` returns the name of the implicit engine, once that is needed: this loads its
    packages. `by` integrates by one engine, in a number of steps or in as many as it usually takes.
    `closed` returns the solution in closed form, or None. `suffices` says whether a failure of the
    implicit engine is final. With `large` sensitivities, engines are first compared on the states
    alone.
    """

    explicit: EngineName
    implicit: Callable[[], EngineName]
    comparison: Comparison
    by: Callable[[EngineName, Integration, int | None], Solved]
    closed: Callable[[Integration], SegmentSolution | None]
    suffices: Callable[[EngineFailure], bool]
    large: bool

    def integrate(self, problem: Integration, choice: EngineChoice) -> Integrated:
        """Integrate a problem by the engine that is expected to be faster, else by the other."""
        if self.large and not choice.ratio:
            choice = self._by_states_alone(problem, choice)
        if self.comparison.prefers_implicit(choice):
            return self._implicit_first(problem, choice)
        return self._explicit_first(problem, choice)

    def _by_states_alone(self, problem: Integration, choice: EngineChoice) -> EngineChoice:
        """Return the choice after both engines have integrated the states alone."""
        start = problem.initial
        initial = start._replace(
            sensitivities=start.sensitivities[:, :0],
            scalar_sensitivities=start.scalar_sensitivities[:, :0],
        )
        alone = problem._replace(pattern=STATES_ALONE, initial=initial)
        implicit = self.by(self.implicit(), alone, None)
        if isinstance(implicit, EngineFailure):
            return replace(choice, stiff=True)
        most = self.comparison.explicit_limit(implicit.steps)
        trial = self.by(self.explicit, alone, most)
        return self.comparison.compared(choice, needed_steps(trial), implicit.steps)

    def _implicit_first(self, problem: Integration, choice: EngineChoice) -> Integrated:
        """Integrate a problem that was stiff so far; perhaps try the explicit engine."""
        comparison, name = self.comparison, self.explicit
        implicit, steps = self._by_implicit(problem, comparison.takes_closed_form(choice))
        if isinstance(implicit, EngineFailure):
            if self.suffices(implicit):
                return implicit, choice
            allowed = choice.taylor_steps or comparison.usual_limit
            return either(self.by(name, problem, allowed), implicit), choice
        after = comparison.after_implicit(choice, steps)
        if not comparison.tries_explicit(after, problem.initial):
            return implicit, after
        trial = self.by(name, problem, comparison.explicit_limit(steps))
        return implicit, comparison.compared(after, needed_steps(trial), steps)

    def _explicit_first(self, problem: Integration, choice: EngineChoice) -> Integrated:
        """Integrate a problem not known to be stiff; try the implicit engine if it may be."""
        comparison, name = self.comparison, self.explicit
        allowed = choice.taylor_steps or comparison.usual_limit
        first = self.by(name, problem, allowed)
        if isinstance(first, SegmentSolution):
            after = comparison.after_explicit(choice, first.steps)
            tried = comparison.tries_implicit(after, first.steps, problem.initial)
            if not tried or import_problem("casadi"):
                return first, after
            trial = self.by(self.implicit(), problem, comparison.implicit_limit(first.steps))
            return first, comparison.compared(after, first.steps, needed_steps(trial))
        if not first.out_of_steps and first.steps > 0:
            return first, choice  # a blow-up, which takes the other engine longer
        if import_problem("casadi"):
            return self._alone(problem), choice
        needed, most = first.steps + first.steps_ahead, None
        if first.out_of_steps and needed < MAX_TAYLOR_STEPS:
            most = comparison.implicit_limit(LONGER * needed)
        second, taken = self._by_implicit(problem, comparison.takes_closed_form(choice), most)
        if not first.out_of_steps:
            # A singular start that is a problem only for series: x^n at x = 0.
            return either(second, first), choice
        if isinstance(second, SegmentSolution) and comparison.explicit_limit(taken) < needed:
            return second, comparison.compared(choice, needed_steps(first), taken)
        if allowed >= MAX_TAYLOR_STEPS or first.steps_ahead > MAX_TAYLOR_STEPS:
            return either(second, first), choice
        if isinstance(second, EngineFailure) and self.suffices(second):
            return second, EngineChoice(stiff=True)
        if at_one_end(problem.segment.start, first, second):
            return second, choice
        # The segment is long rather than stiff.
        steps = int(min(MAX_TAYLOR_STEPS, TAYLOR_MARGIN * needed))
        longer = self.by(name, problem, steps)
        unfinished = isinstance(second, EngineFailure) and second.out_of_steps
        if most is not None and unfinished and isinstance(longer, EngineFailure):
            second, _ = self._by_implicit(problem, False)
        return either(longer, second), EngineChoice(taylor_steps=steps)

    def _by_implicit(
        self, problem: Integration, in_closed_form: bool, most: int | None = None
    ) -> tuple[Solved, int | None]:
        """Integrate equations that may be stiff, and return the steps; None if in closed form."""
        closed = self.closed(problem) if in_closed_form else None
        if closed is not None:
            return closed, None
        solved = self.by(self.implicit(), problem, most)
        return solved, solved.steps

    def _alone(self, problem: Integration) -> Solved:
        """Integrate by the explicit engine, where there is no implicit one."""
        last = self.by(self.explicit, problem, None)
        if isinstance(last, EngineFailure) and last.out_of_steps:
            without = "and without an implicit integrator stiff equations cannot be integrated"
            reason = f"{last.reason}, {without}: {missing_package('casadi')}"
            last = replace(last, reason=reason)
        return last
