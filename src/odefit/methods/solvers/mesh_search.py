"""The best answer of a discretised problem that is quickly found: an upper bound for its proofs.

The optimum on a mesh is mostly next to an optimum of the true trajectories, which a search of these
finds in far less time than a general solver of the discretised problem needs. On a coarse mesh it
may be elsewhere, or the true trajectories may not be followed from most starts: the discretised
problem is searched as well. Whatever is found is brought to its local minimum on the mesh.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

from odefit.discretisation.discretisation import Discretisation
from odefit.discretisation.formulations import Baseline
from odefit.discretisation.initial_guess import guess_states
from odefit.discretisation.instance import Instance
from odefit.methods.control import Control
from odefit.methods.cost_tolerance import CostTolerance
from odefit.methods.estimate import Start, Status
from odefit.methods.multi_start import MultiStart
from odefit.methods.solvers.local_search import POLISHING, LocalSearch
from odefit.methods.solvers.nlpsol import WARM_START_IPOPT, Ipopt
from odefit.methods.solvers.reduced_space import ReducedSpace
from odefit.methods.solvers.solver import LEAST_SECONDS, Answer, Limits, Outcome, make_answer
from odefit.problem.arrays import Array
from odefit.simulation import ForwardMap

SHOOTING_SHARE = 0.55
"""Of the time, for starts on the true trajectories."""

TRANSCRIPTION_SHARE = 0.2
"""The same of starts of the discretised problem, with improvement on the true trajectories and
without."""

TRANSCRIPTION_STARTS = 5
"""Starts of the discretised problem alone."""

NLP_SHARE = 0.1
"""The same of the general solver, from what these find."""

MAX_MINIMA = 6
"""Different levels of each search, from the lowest, that are followed on the mesh."""


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
    """Return the best local answer on the mesh, and the best on the true trajectories.

    Parameters
    ----------
    local
        How the discretised problem is searched; its solver is replaced by a quick one.
    forward
        The problem's forward map.
    d
        The discretised problem.
    control
        Has the deadline of this search. After an interruption the best so far is returned, if
        need be the true trajectories as they are.
    starts
        Starts of either search on the true trajectories; as many as the evidence asks for if
        None.
    screening, first
        As those of :class:`MultiStart`; `first` is that of the discretised problem alone.
    """
    search = MultiStart(local, starts=starts, screening=screening, first=first)
    return _Search(local, search, forward, d, control).run()


class _Search:
    """One search, and what it has found."""

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
        assert control.deadline is not None, "a search needs a deadline"
        self._deadline = control.deadline
        self._seconds = max(control.deadline - time.time(), LEAST_SECONDS)
        self._general = NLP_SHARE * self._seconds

    def run(self) -> tuple[Answer | None, Start | None]:
        """All phases."""
        problem = self._forward.problem
        one = replace(POLISHING, engine=self._local.engine)
        starts = self._search.starts
        shooting = replace(self._search, method=one, first=None)
        found = shooting.solve(problem, self._limited(SHOOTING_SHARE))
        self._follow(found.starts, true=True)
        # The evidence says that starts seldom end anywhere better: no other search is needed.
        conclusive = starts is None and found.status is Status.CONVERGED
        for polish in (False,) if conclusive else (True, False):
            if self._control.should_stop():
                break
            local = replace(self._local, solver=Ipopt(iterations=300), polish=polish)
            search = replace(
                self._search, method=local, starts=starts if polish else TRANSCRIPTION_STARTS
            )
            ends = search.solve(problem, self._limited(TRANSCRIPTION_SHARE)).starts
            self._follow(ends, true=polish)
        if self._best is None and self._true is not None:
            self._best = self._as_it_is(self._true.vector)
        return self._best, self._true

    def _limited(self, share: float) -> Control:
        deadline = min(time.time() + share * self._seconds, self._deadline)
        return replace(self._control, checkpoint=None, deadline=deadline)

    def _follow(self, ends: Sequence[Start], true: bool) -> None:
        """Bring the lowest of every level to the mesh."""
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
        """The local minima on the mesh next to a vector."""
        stop = self._control.should_stop
        self._note(self._reduced.refined(vector, None, stop))
        if stop() or self._general <= 0.0:
            return
        # With the states free it may come to another minimum, on meshes that are very coarse.
        began = time.monotonic()
        instance = Instance(
            self._d, Baseline(), guess_states(self._d, self._forward, vector), vector
        )
        left = max(self._deadline - time.time(), LEAST_SECONDS)
        found = WARM_START_IPOPT.solve(instance, Limits(min(self._general, left), stop=stop))
        self._note(found)
        if found is self._best and found.unknowns is not None:
            self._note(self._reduced.refined(found.unknowns, found.values, stop))
        self._general -= time.monotonic() - began

    def _as_it_is(self, vector: Array) -> Answer:
        """No answer of the discretised problem, but where one may be near."""
        instance = Instance(self._d, Baseline())
        values = guess_states(self._d, self._forward, vector)
        return make_answer(instance, Outcome.LIMIT, values, vector, None, 0.0, "interrupted")

    def _note(self, found: Answer | None) -> None:
        if found is None or not found.success:
            return
        if self._best is None or found.objective < self._best.objective:
            self._best = found
