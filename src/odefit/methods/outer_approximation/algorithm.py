"""Steps 1 to 4 of the algorithm: contraction, master problem, slave problem, until they meet."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from odefit.methods.estimate import BoundStep
from odefit.methods.outer_approximation.contraction import Contraction
from odefit.methods.outer_approximation.decomposition import group_cuts
from odefit.methods.outer_approximation.master import (
    Partition,
    binaries,
    clipped,
    divided_at,
    master,
    partitioned,
    pieces,
)
from odefit.methods.outer_approximation.mixed_integer import Workshop
from odefit.methods.outer_approximation.propagation import Infeasible, Propagation
from odefit.methods.outer_approximation.relaxation import HyperPlanes
from odefit.methods.outer_approximation.standard_form import StandardForm
from odefit.methods.solvers.solver import Answer
from odefit.problem.arrays import Array
from odefit.problem.errors import InputError

if TYPE_CHECKING:
    from odefit.methods.outer_approximation.outer_approximation import OuterApproximation

Slave = Callable[[Array], Answer]
"""Solves the nonlinear program locally from a point of the master problem."""

Tell = Callable[[BoundStep], None]

STALLED = 0.02
"""Contraction ends early when no parameter's range, nor the bound, moved by this part."""

WITHIN = 1 - 1e-6
"""Of the tolerance that a proof by an empty region leaves."""

ROUND_SHARE = 0.1
"""Of the time that is left, what a round may spend on variables that are no parameters."""

SHARPER = 0.1
"""Of the tolerance, the gap to which a master problem is solved."""

MASTER_SHARE = 0.5
"""Of the time that is left, what one master problem may take."""


@dataclass(eq=False)
class Search:
    """The state of the algorithm.

    Attributes
    ----------
    options
        Of the method.
    form
        The problem in standard form.
    slave
        Step 3.
    reach
        The cut while there is no answer. It need not be reached: bounds never exceed it.
    negligible
        Absolute difference of bounds that counts as none.
    stop
        Whether to end early; the bounds so far are then the answer.
    left
        Seconds that are left.
    tell
        Called with every new step of the log.
    lower, best
        The lower bound, and the best answer; its objective is the upper bound.
    low, high
        Bounds of all variables in which better answers must lie, shape (n,).
    history
        The log.
    """

    options: OuterApproximation
    form: StandardForm
    low: Array
    high: Array
    slave: Slave
    reach: float
    negligible: float
    stop: Callable[[], bool]
    left: Callable[[], float]
    tell: Tell | None = None
    best: Answer | None = None
    lower: float = -math.inf
    history: list[BoundStep] = field(default_factory=list)
    began: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        self.propagation = Propagation(self.form)
        self._proving = math.inf
        if not self.form.linear.any():
            self.lower = max(self.form.constant, 0.0)  # of a sum of squares

    @property
    def upper(self) -> float:
        """The best objective so far (step 3b)."""
        return math.inf if self.best is None else self.best.objective

    @property
    def closed(self) -> bool:
        """Step 4a."""
        near = max(self.options.tolerance * abs(self.upper), self.negligible)
        return math.isfinite(self.upper) and self.upper - self.lower <= near

    @property
    def cut(self) -> float:
        """Objectives above this are not looked at (47).

        What was asked for, or the best objective less the tolerance: where nothing is left
        below that, the bounds have met.
        """
        asked = self.options.cut
        if self.best is None:
            return self.reach if asked is None else asked
        if asked is not None:
            return min(asked, self.upper)
        # a little less than the tolerance, so that rounding does not leave the gap above it
        return self.upper - WITHIN * max(self.options.tolerance * abs(self.upper), self.negligible)

    def note(self, stage: str, iteration: int) -> None:
        """One line of the log."""
        seconds = time.monotonic() - self.began
        step = BoundStep(stage, iteration, min(self.lower, self.upper), self.upper, seconds)
        self.history.append(step)
        if self.tell is not None:
            self.tell(step)

    def proved(self, bound: float, cut: float) -> None:
        """Nothing whose objective is under `cut` has one under `bound`."""
        self.lower = max(self.lower, min(bound, cut))

    def run(self) -> None:
        """All of it; returns when the bounds have met, or at a stop."""
        self.note("local", 1)
        if self.closed:
            return
        try:
            self.low, self.high = self.propagation(self.low, self.high, self._cut())
            planes = HyperPlanes.uniform(len(self.form.residuals), self.options.hyperplanes)
            contraction = Contraction(
                self.form, self.propagation, planes, self.stop, left=self.left
            )
            self._contract(contraction)
            if not self.closed and not self.stop():
                self._iterate(contraction)
        except Infeasible:
            self.lower = max(self.lower, self._proving)
            self.note("nothing left", 1)

    def _cut(self) -> float:
        """The cut, noted as what is proved if nothing is left below it."""
        self._proving = self.cut
        return self._proving

    def _contract(self, contraction: Contraction) -> None:
        """Before the first master problem, as in the paper, and until little moves."""
        own = self.form.parameters
        for number in range(1, self.options.contractions + 1):
            cut = self._cut()
            before = (self.high - self.low)[own], self.lower
            if number == 1:
                bound, _ = contraction.bound(self.low, self.high, cut)
                self.proved(bound, cut)
                self.note("relaxation", 1)
            seconds = ROUND_SHARE * self.left()
            self.low, self.high = contraction.round(self.low, self.high, cut, seconds)
            self.low, self.high = contraction.shave(self.low, self.high, cut)
            bound, x = contraction.bound(self.low, self.high, cut)
            self.proved(bound, cut)
            if self.best is None and x is not None:
                self._descend(x)
            self.note("contraction", number)
            if self.closed or self.stop():
                return
            width = (self.high - self.low)[own]
            moved = np.any(width < (1 - STALLED) * before[0])
            if not moved and self.lower - before[1] <= STALLED * abs(self.cut - before[1]):
                return

    def _iterate(self, contraction: Contraction) -> None:
        """Steps 2 to 4."""
        partition = self._partition()
        with Workshop(self.options.milp_solver) as workshop:
            groups = group_cuts(self, contraction, partition, workshop)
            if groups:
                contraction.groups = groups
                self.note("groups", len(groups))
            for number in range(1, self.options.iterations + 1):
                cut = self._cut()
                program = master(
                    self.form, self.low, self.high, contraction.planes, partition, cut, groups
                )
                seconds = min(max(MASTER_SHARE * self.left(), 1.0), self.left())
                gap = SHARPER * self.options.tolerance
                found = workshop.solve(program, gap, seconds, self.stop)
                if found.bound == math.inf:  # the solver says so, within its tolerance
                    self.proved(cut - found.margin, cut)
                else:
                    self.proved(found.bound + self.form.constant, cut)
                if found.x is not None and not self.stop():
                    self._descend(found.x)
                self.note("master", number)
                if self.closed or self.stop() or found.x is None:
                    return
                x = found.x[: self.form.size]
                r = self.form.residuals
                contraction.planes.add(x[r], self.low[r], self.high[r])
                partition = divided_at(partition, x, self.low, self.high)
                self._check(partition)
                if self.options.recontract:
                    cut = self._cut()
                    seconds = ROUND_SHARE * self.left()
                    self.low, self.high = contraction.round(self.low, self.high, cut, seconds)
                    self.low, self.high = contraction.shave(self.low, self.high, cut)
                    partition = clipped(partition, self.low, self.high)

    def _partition(self) -> Partition:
        variables = partitioned(self.form, self.low, self.high)
        found = pieces(self.low, self.high, variables, self.options.pieces)
        self._check(found)
        return found

    def _check(self, partition: Partition) -> None:
        """Refuse what no solver would come to an end with.

        Raises
        ------
        InputError
            With the numbers, and what to do.
        """
        count = binaries(partition)
        if count > self.options.most_binaries:
            raise InputError(
                f"outer approximation: the master problem has {count} binary variables "
                f"({len(partition)} variables in {self.options.pieces} pieces or more), more than "
                f"most_binaries={self.options.most_binaries}; take fewer pieces, elements or "
                "points, narrower bounds, or allow more"
            )

    def _descend(self, w: Array) -> None:
        """Step 3: the slave problem from the master's point."""
        answer = self.slave(w)
        if answer.success and answer.objective < self.upper:
            self.best = answer
