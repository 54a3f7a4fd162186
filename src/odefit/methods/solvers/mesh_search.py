"""A quick local search of a discretised problem: an upper bound for global methods.

The optimum on a mesh is mostly next to an optimum of the integrated trajectories. A search on
trajectories finds this far faster than a general solver of the discretised problem. On a coarse
mesh it may be elsewhere, or the integration may fail from most starts, so the discretised problem
is searched as well. From the ends of both searches, the local minimum on the mesh is computed.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

from odefit.common.arrays import Array
from odefit.discretisation.discretisation import Discretisation
from odefit.discretisation.formulations import Baseline
from odefit.discretisation.instance import Instance, guess_states
from odefit.methods.estimate import Start, Status
from odefit.methods.local.cost_tolerance import CostTolerance
from odefit.methods.multi_start import MultiStart
from odefit.methods.running.control import Control
from odefit.methods.running.start_checkpoint import opened, start_from_json, start_to_json
from odefit.methods.solvers.guarded_solve import solve_locally
from odefit.methods.solvers.local_search import POLISHING, LocalSearch
from odefit.methods.solvers.nlpsol import WARM_START_IPOPT, Ipopt
from odefit.methods.solvers.reduced_space import ReducedSpace
from odefit.methods.solvers.solver import (
    LEAST_SECONDS,
    Answer,
    Limits,
    Outcome,
    answer_from_json,
    answer_to_json,
    make_answer,
)
from odefit.simulation import ForwardMap

SHOOTING_SHARE = 0.55
"""Share of the time for starts on the integrated trajectories."""

TRANSCRIPTION_SHARE = 0.2
"""Share of the time for starts of the discretised problem, once with improvement on the true
trajectories and once without."""

TRANSCRIPTION_STARTS = 5
"""Number of starts of the discretised problem whose ends are not improved by integration."""

NLP_SHARE = 0.1
"""Share of the time for the nonlinear program, from the local minima that these starts find."""

FOUND = "found"
"""The key of a search's findings in a checkpoint."""

MAX_MINIMA = 6
"""Number of local minima of each search, the lowest ones, from which the mesh is searched."""


def mesh_search(
    local: LocalSearch,
    forward: ForwardMap,
    d: Discretisation,
    control: Control,
    *,
    starts: int | None = None,
    screening: int = 64,
    first: tuple[float, ...] | None = None,
) -> tuple[Answer | None, Start | None]:
    """Return the best local answer on the mesh, and the best on the integrated trajectories.

    The solver of `local` is replaced by a quick one. The deadline is that of `control`; after an
    interruption the best so far is returned, if need be the unchanged integrated trajectories.
    `starts` is their number in either search, None to let the evidence decide; `screening` and
    `first` have their meaning in :class:`MultiStart`, `first` for the discretised problem alone.
    """
    search = MultiStart(local, starts=starts, screening=screening, first=first)
    options = {"search": asdict(search), "seed": control.seed}
    checkpoint = opened(control, "answer on the mesh", forward.problem, options)
    if checkpoint is None:
        return _Search(local, search, forward, d, control).run()
    with checkpoint:
        known = _from_json(checkpoint.records.get(FOUND), d)
        if known is not None:
            return known
        answer, true = outcome = _Search(local, search, forward, d, control).run()
        if not control.should_stop():
            ends = None if true is None else start_to_json(true)
            on_mesh = None if answer is None else answer_to_json(answer)
            checkpoint.put(FOUND, {"mesh": on_mesh, "true": ends})
        return outcome


def _from_json(record: Any, d: Discretisation) -> tuple[Answer | None, Start | None] | None:
    """Return the findings of a search; None if the record is damaged or missing."""
    unknowns = len(d.problem.unknowns)
    try:
        on_mesh, end = record["mesh"], record["true"]
        shape = d.points, len(d.variables)
        answer = None if on_mesh is None else answer_from_json(on_mesh, shape, unknowns)
    except (KeyError, TypeError, ValueError, OverflowError):
        return None
    true = None if end is None else start_from_json(end, unknowns)
    return None if end is not None and true is None else (answer, true)


class _Search:
    """A search and its findings so far."""

    def __init__(
        self,
        local: LocalSearch,
        search: MultiStart,
        forward: ForwardMap,
        d: Discretisation,
        control: Control,
    ) -> None:
        self._local, self._search = local, search
        self._forward, self._d, self._control = forward, d, control
        self._reduced = ReducedSpace(forward, d)
        self._tolerance = CostTolerance.of(forward)
        self._followed: list[Start] = []
        self._best: Answer | None = None
        self._true: Start | None = None
        self._seconds = max(control.seconds_left, LEAST_SECONDS)
        self._nlp_seconds = NLP_SHARE * self._seconds

    def run(self) -> tuple[Answer | None, Start | None]:
        """Run all phases; return the best on the mesh and the best by integration."""
        problem = self._forward.problem
        one = replace(POLISHING, engine=self._local.engine)
        starts = self._search.starts
        shooting = replace(self._search, method=one, first=None)
        estimate = shooting.solve(problem, self._limited(SHOOTING_SHARE, "shooting"))
        self._follow(estimate.starts, true=True)
        # The evidence shows that starts seldom end anywhere better: no other search is needed.
        conclusive = starts is None and estimate.status is Status.CONVERGED
        for polish in (False,) if conclusive else (True, False):
            if self._control.should_stop():
                break
            local = replace(self._local, solver=Ipopt(iterations=300), polish=polish)
            search = replace(
                self._search, method=local, starts=starts if polish else TRANSCRIPTION_STARTS
            )
            part = "mesh, then trajectories" if polish else "mesh"
            ends = search.solve(problem, self._limited(TRANSCRIPTION_SHARE, part)).starts
            self._follow(ends, true=polish)
        if self._best is None and self._true is not None:
            self._best = self._unsolved(self._true.vector)
        return self._best, self._true

    def _limited(self, share: float, part: str) -> Control:
        control = self._control.for_part(part)
        if control.deadline is None:
            return control
        return control.ending_in(min(share * self._seconds, control.seconds_left))

    def _follow(self, ends: Sequence[Start], true: bool) -> None:
        """Search the mesh from the ends of lowest cost, one for each local minimum."""
        usable = [s for s in ends if s.status is not Status.FAILED]
        usable.sort(key=lambda s: (s.cost, s.index))
        if true and usable and (self._true is None or usable[0].cost < self._true.cost):
            self._true = replace(usable[0], index=1)
        if not true:
            self._followed = []  # their costs are those of the mesh
        count = 0
        for end in usable:
            if count == MAX_MINIMA or self._control.should_stop():
                break
            if any(self._tolerance.same(end, other) for other in self._followed):
                continue
            self._followed.append(end)
            count += 1
            self._on_mesh(end.vector)

    def _on_mesh(self, vector: Array) -> None:
        """Record the local minima on the mesh next to a vector."""
        stop = self._control.should_stop
        self._note(self._reduced.minimise(vector, None, stop))
        if stop() or self._nlp_seconds <= 0.0:
            return
        # On very coarse meshes, free states may lead to another minimum.
        began = time.monotonic()
        instance = Instance(
            self._d, Baseline(), guess_states(self._d, self._forward, vector), vector
        )
        left = max(self._control.seconds_left, LEAST_SECONDS)
        seconds = min(self._nlp_seconds, left)
        limits = Limits(None if math.isinf(seconds) else seconds, stop=stop)
        answer = solve_locally(WARM_START_IPOPT, instance, limits)
        self._note(answer)
        if answer is self._best and answer.unknowns is not None:
            self._note(self._reduced.minimise(answer.unknowns, answer.values, stop))
        self._nlp_seconds -= time.monotonic() - began

    def _unsolved(self, vector: Array) -> Answer:
        """Return the integrated trajectories as an answer, if no better one is known."""
        instance = Instance(self._d, Baseline())
        values = guess_states(self._d, self._forward, vector)
        return make_answer(instance, Outcome.LIMIT, values, vector, None, 0.0, "interrupted")

    def _note(self, answer: Answer | None) -> None:
        if answer is None or not answer.success:
            return
        if self._best is None or answer.objective < self._best.objective:
            self._best = answer
