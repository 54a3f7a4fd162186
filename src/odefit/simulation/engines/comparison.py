"""The comparison of an explicit engine with the implicit one, in predicted times.

Both integrate the same problem once in a while, and the ratio of their steps is remembered. Each
integration then predicts the times of both from the steps of the last one, for its own number of
sensitivities and outputs and for its own tolerances.
"""

from __future__ import annotations

import math
import zlib
from dataclasses import dataclass, replace

from odefit.simulation.engines.engine import EngineFailure, Solved, Values
from odefit.simulation.engines.engine_choice import LATER_TRIALS, TRIAL, EngineChoice
from odefit.simulation.engines.steps import (
    EXPLICIT_ORDER,
    MIN_TAYLOR_STEPS,
    STEP_ORDER,
    StepCosts,
    usual_steps,
)

FEWEST_STEPS = 100
"""Number of steps that the implicit engine needs at least at the tolerance of statistics."""

BEFORE_LOADING = 1000
"""Number of implicit steps that an integration by the Taylor method is worth before the implicit
engine is tried, which may have to be loaded for that alone."""

MARGIN = 1.6
"""Ratio of the times of the engines above which the explicit one gives way. It is more accurate,
predictions have errors, and changes have a cost."""

MARGIN_OF_TAYLOR = 3.0
"""The ratio :data:`MARGIN` for the Taylor method, which is as accurate in searches as elsewhere: at
2.0, starts of a search over many periods ended beside the optimum.
"""

AT_ONCE = 3.0
"""Time of a first explicit integration, relative to the least of an implicit one, above which the
latter is tried at once."""

UNFINISHED = 1.5
"""Steps that an engine would have needed at least, relative to those of a trial that ended at its
limit."""

HOPELESS = 10.0
"""The ratio :data:`UNFINISHED` for a trial that failed, or cannot predict its steps."""


ALIKE = 0.9  # ratio of numbers of steps from which on they count as the same


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The predicted times of an explicit engine and of the implicit one for an integration.

    Times are in ns, and those `beside` do not depend on the steps. Steps that a choice remembers
    are those at the tolerances of statistics: an integration with others needs a share.
    """

    # Explicit steps in a little more than the time of a usual implicit integration.
    usual_limit: int
    explicit_beside: float
    explicit_step: float
    explicit_share: float
    implicit_beside: float
    implicit_step: float
    implicit_share: float
    fewest: float  # steps that the implicit engine needs at least
    margin: float
    closed: float  # time of the closed form, infinite without one

    @classmethod
    def of(
        cls,
        costs: StepCosts,
        explicit: str,
        outputs: int,
        *,
        explicit_share: float = 1.0,
        implicit_share: float = 1.0,
        margin: float = MARGIN,
        closed: float = math.inf,
    ) -> Comparison:
        """Return the comparison for the costs of some equations.

        Here shares are tolerances of statistics over those of the integration.
        """
        share = implicit_share ** (1 / STEP_ORDER)
        explicit_beside = costs.beside_steps(explicit, outputs)
        explicit_step = costs.work_of_step(explicit)
        implicit_beside = costs.beside_steps("bdf", outputs)
        implicit_step = costs.work_of_step("bdf")
        # Finer tolerances than those of statistics need more steps, and coarser ones may.
        usual = implicit_beside + usual_steps(outputs) * max(share, 1.0) * implicit_step
        steps = int((MARGIN * usual - explicit_beside) / explicit_step)
        return cls(
            usual_limit=max(steps, MIN_TAYLOR_STEPS),
            explicit_beside=explicit_beside,
            explicit_step=explicit_step,
            explicit_share=explicit_share ** (1 / EXPLICIT_ORDER),
            implicit_beside=implicit_beside,
            implicit_step=implicit_step,
            implicit_share=share,
            fewest=(BEFORE_LOADING if explicit == "heyoka" else FEWEST_STEPS) * share,
            margin=margin,
            closed=closed,
        )

    def explicit_time(self, steps: float) -> float:
        """Return the time of an explicit integration, in ns."""
        return self.explicit_beside + steps * self.explicit_step

    def implicit_time(self, steps: float) -> float:
        """Return the time of an integration by the implicit engine, in ns."""
        return self.implicit_beside + steps * self.implicit_step

    def takes_closed_form(self, choice: EngineChoice) -> bool:
        """Return whether the closed form is expected to be faster than the implicit engine."""
        return self.closed < math.inf and self.closed <= self.implicit_time(
            self._implicit_steps(choice)
        )

    def _implicit_steps(self, choice: EngineChoice) -> float:
        """Return the predicted steps of the implicit engine, infinite if they are not known."""
        return choice.explicit * choice.ratio * self.implicit_share or math.inf

    def _stiff_time(self, choice: EngineChoice) -> float:
        """Return the time of the faster one of the implicit engine and the closed form, in ns."""
        return min(self.implicit_time(self._implicit_steps(choice)), self.closed)

    def prefers_implicit(self, choice: EngineChoice) -> bool:
        """Return whether the implicit engine, or the closed form, is expected to be faster."""
        time = self._stiff_time(choice)
        if not choice.explicit or time == math.inf:
            return choice.stiff
        return self.explicit_time(choice.explicit * self.explicit_share) > self.margin * time

    def after_explicit(self, choice: EngineChoice, steps: int) -> EngineChoice:
        """Return the choice after an explicit integration."""
        return self._after(choice, steps / self.explicit_share, False)

    def after_implicit(self, choice: EngineChoice, steps: int | None) -> EngineChoice:
        """Return the choice after an implicit integration; no steps if by the closed form."""
        explicit = choice.explicit
        if steps is not None and choice.ratio:
            explicit = steps / self.implicit_share / choice.ratio
        return self._after(choice, explicit, True)

    def _after(self, choice: EngineChoice, explicit: float, stiff: bool) -> EngineChoice:
        """Return the choice with another number of steps, or itself if that has hardly changed."""
        least, most = ALIKE * choice.explicit, choice.explicit / ALIKE
        if choice.stiff is stiff and least <= explicit <= most:
            return choice
        return self._judged(replace(choice, explicit=explicit, stiff=stiff))

    def tries_implicit(self, choice: EngineChoice, steps: int, initial: Values) -> bool:
        """Return whether the implicit engine repeats an explicit integration in some steps."""
        over_least = min(self.explicit_time(steps), self.closed) / self.implicit_time(self.fewest)
        if over_least <= self.margin:
            return False
        return (over_least > AT_ONCE and not choice.ratio) or _is_drawn(choice, initial)

    def tries_explicit(self, choice: EngineChoice, initial: Values) -> bool:
        """Return whether the explicit engine repeats an implicit integration."""
        return _is_drawn(choice, initial)

    def compared(
        self, choice: EngineChoice, explicit: float, implicit: float | None
    ) -> EngineChoice:
        """Return the choice after a problem was integrated twice, in some numbers of steps.

        `implicit` is None for the closed form.
        """
        explicit = max(explicit, 1.0) / self.explicit_share
        ratio = choice.ratio
        if implicit is not None:
            ratio = max(implicit, 1.0) / self.implicit_share / explicit
        after = self._judged(replace(choice, explicit=explicit, ratio=ratio))
        again = bool(choice.ratio) and after.stiff is choice.stiff
        return replace(after, rare=LATER_TRIALS if again else TRIAL)

    def _judged(self, choice: EngineChoice) -> EngineChoice:
        stiff = self.prefers_implicit(choice)
        return choice if choice.stiff is stiff else replace(choice, stiff=stiff)

    def explicit_limit(self, implicit: int | None) -> int:
        """Return the explicit steps in the time of implicit ones, or of the closed form."""
        time = self.closed if implicit is None else self.implicit_time(implicit)
        return max(int((time - self.explicit_beside) / self.explicit_step), MIN_TAYLOR_STEPS)

    def implicit_limit(self, explicit: float) -> int:
        """Return the implicit steps up to which the implicit engine is preferred to the explicit.

        They are at least the fewest.
        """
        left = self.explicit_time(explicit) / self.margin - self.implicit_beside
        return max(int(left / self.implicit_step), int(self.fewest))


def _is_drawn(choice: EngineChoice, initial: Values) -> bool:
    """Return whether a trial is due, by lot: callers may pass the same choice again and again.

    The lot depends on the values alone, so that results are the same on any machine.
    """
    lot = zlib.crc32(initial.states.tobytes(), zlib.crc32(initial.scalars.tobytes()))
    return lot % choice.rare == 0


def needed_steps(solved: Solved) -> float:
    """Return the steps that an integration needed, or would have needed to reach the end."""
    if not isinstance(solved, EngineFailure):
        return solved.steps
    taken = max(solved.steps, 1)
    if not solved.out_of_steps or math.isinf(solved.steps_ahead):
        return HOPELESS * taken
    return max(taken + solved.steps_ahead, UNFINISHED * taken)
