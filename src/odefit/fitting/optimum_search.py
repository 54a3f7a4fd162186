"""The search for optima within the noise, from ends of a search and from places of promise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from odefit.assessment.intervals.deviance import Deviance
from odefit.assessment.intervals.flat_directions import moved_by_flat_directions
from odefit.assessment.local import assess_local
from odefit.common.arrays import Array, BoolArray
from odefit.common.effects import undetermined
from odefit.fitting.places import Candidate
from odefit.fitting.solutions import DISTANCE
from odefit.methods.bounded_problem import with_held
from odefit.methods.estimate import Start, Status
from odefit.methods.local.cost_tolerance import close
from odefit.methods.polish import Answer
from odefit.methods.running.control import Control, interruptible
from odefit.methods.single_shooting import SingleShooting
from odefit.problem.variants.sizes import expected_sizes, sizes_at
from odefit.simulation import Evaluation, ForwardMap
from odefit.simulation.blocks import Blocks
from odefit.simulation.engines.cut_off import CutOffError
from odefit.simulation.engines.engine_choice import UNDECIDED

NEAR = 1e-2
"""Ends whose unknowns all differ by less than this lead to the same optimum."""

MOST = 60
"""Evaluations for one end."""

TIMES = 4
"""Largest number of times that an end which fits and still improves gets these evaluations, since
ridges may be long."""

HOPEFUL = 30.0
"""Largest deviance, relative to the limit, that a place may predict or keep after some steps."""

FIRST = 15
"""Evaluations of the first steps from a place."""

NOISE_HELD = 2.0
"""Deviance with the noise held, relative to the limit, from which it may come within the limit when
the noise follows."""


def closeness(answer: Answer) -> tuple[Array, BoolArray]:
    """Return the expected sizes of unknowns, and those that flat directions move far."""
    forward, vector = answer.forward, answer.start.vector
    moved = moved_by_flat_directions(forward, vector, answer.evaluation)
    return expected_sizes(forward.problem), moved


class OptimumSearch:
    """Polishes ends and places within `left` evaluations of the model."""

    def __init__(
        self,
        answer: Answer,
        deviance: Deviance,
        limit: float,
        control: Control,
        known: Sequence[Start],
    ) -> None:
        self.left = math.inf
        self.polished: list[Start] = list(known)
        self._forward, self.control = answer.forward, control
        self._deviance, self._limit = deviance, limit
        self._objective = answer.evaluation.objective
        self._sizes, self._ignored = closeness(answer)
        vector = answer.start.vector
        sizes = sizes_at(answer.forward.problem, vector)
        self._flat = undetermined(answer.evaluation.information, sizes)
        self._blocks = Blocks.around(answer.forward, vector)
        self._tried: list[Array] = [vector, *(s.vector for s in known)]
        self._known: list[Array] = list(self._tried)
        self.cut = False  # whether the control has ended it

    @property
    def over(self) -> bool:
        """True if no evaluations are left, or the run is to end."""
        if self.left <= 0:
            return True
        self.cut = self.cut or self.control.should_stop()
        return self.cut

    @property
    def optima(self) -> tuple[Start, ...]:
        """The optima found so far, the lowest first."""
        return tuple(sorted(self.polished, key=lambda s: (s.cost, s.index)))

    def from_place(self, place: Candidate, index: int) -> bool:
        """Follow a place with an expected optimum for as long as its cost stays as predicted."""
        begun = self._run(place.vector, index, FIRST, place.held)
        if begun is None:
            return False
        if begun.status is Status.FAILED or self._deviance.at(begun.cost) > HOPEFUL * self._limit:
            return not self.over
        return self.follow(begun.vector, index)

    def follow(self, vector: Array, index: int) -> bool:
        """Polish an end, and keep it if it is another optimum; return whether to continue."""
        if self.over:
            return False
        if self._begun(vector):
            return True
        self._tried.append(vector)
        polished = self._polished(vector, index)
        if polished is None:
            return False
        joined = self._blocks is not None and self._blocks.noise
        limit = NOISE_HELD * self._limit if joined else self._limit
        if polished.status is Status.FAILED or self._deviance.at(polished.cost) > limit:
            return True
        if joined:
            polished = self._polished(polished.vector, index, whole=True)
            if polished is None:
                return False
            if self._deviance.at(polished.cost) > self._limit:
                return True
        self._tried.append(polished.vector)
        if self._close(polished.vector, self._known, DISTANCE):
            return True
        evaluation = self._forward.evaluate(polished.vector, UNDECIDED)
        if isinstance(evaluation, Evaluation) and (
            assess_local(self._forward, polished.vector, evaluation).optimal
        ):
            self.polished.append(
                replace(
                    polished,
                    status=Status.CONVERGED,
                    cost=evaluation.cost,
                    objective=evaluation.objective,
                )
            )
            self._known.append(polished.vector)
        return True

    def _polished(self, vector: Array, index: int, *, whole: bool = False) -> Start | None:
        """Return the optimum that an end leads to, as far as evaluations allow; None if cut off."""
        end = self._run(vector, index, MOST, whole=whole)
        for _ in range(1, TIMES):
            unfinished = end is not None and end.status is Status.NOT_CONVERGED
            if end is None or not unfinished or self._deviance.at(end.cost) > self._limit:
                break
            end = self._run(end.vector, index, MOST, whole=whole)
        return end

    def _run(
        self, vector: Array, index: int, most: int, held: int | None = None, *, whole: bool = False
    ) -> Start | None:
        """Return the end of a search with limited evaluations; None if it was cut off.

        The unknown number `held`, if any, stays where it is. Where the vector differs from the
        answer in one block of experiments, the search is for these alone, unless for the `whole`.
        """
        if self.over:
            return None
        blocks = self._blocks
        block = None if blocks is None or whole else blocks.only(vector)
        if blocks is None or block is None:
            end = self._searched(self._forward, vector, index, most, held)
            self.left -= 0 if end is None else end.evaluations
            return end
        places = block.places
        inside = None if held is None else int(np.flatnonzero(places == held)[0])
        end = self._searched(block.forward, vector[places], index, most, inside)
        if end is None:
            return None
        self.left -= end.evaluations / len(blocks.blocks)
        at = block.at_answer
        return replace(
            end,
            start=blocks.with_values(block, end.start),
            vector=blocks.with_values(block, end.vector),
            cost=self._deviance.minimum - at.cost + end.cost,
            objective=self._objective - at.objective + end.objective,
        )

    def _searched(
        self, forward: ForwardMap, vector: Array, index: int, most: int, held: int | None
    ) -> Start | None:
        if held is not None:
            forward = forward.of(with_held(forward.problem, held, vector[held]))
        search = SingleShooting(evaluations=int(min(self.left, most)) + 1)
        try:
            with interruptible(self.control):
                return search.run(forward, index, vector, self.control)
        except CutOffError:
            self.cut = True
            return None

    def _begun(self, vector: Array) -> bool:
        """Return whether the way from an end is known.

        Unknowns that flat directions move little need not be as near as the others.
        """
        return any(
            close(vector, x, NEAR, self._sizes, self._flat)
            and close(vector, x, DISTANCE, self._sizes, self._ignored)
            for x in self._tried
        )

    def _close(self, vector: Array, others: Sequence[Array], distance: float) -> bool:
        return any(close(vector, x, distance, self._sizes, self._ignored) for x in others)
