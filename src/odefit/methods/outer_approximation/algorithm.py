"""Steps 1 to 4: bounds are contracted, then master and slave problems are solved in turn.

Strengthening cuts come from temporal decomposition: a group keeps the equations of some consecutive
elements and drops those that join it to the others. Its smallest error is a lower bound of that
part of the full objective. A checkpoint holds points, cuts, bounds and pieces so far.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from odefit.common.arrays import Array, BoolArray
from odefit.common.errors import InputError
from odefit.discretisation.discretisation import Discretisation
from odefit.methods.estimate import BoundStep
from odefit.methods.outer_approximation.bound_tightening import FBBT, BoundTightening, Infeasible
from odefit.methods.outer_approximation.master_problem import (
    Partition,
    active_pieces_halved,
    binary_count,
    master_problem,
    restricted,
    uniform_partition,
    variables_to_partition,
)
from odefit.methods.outer_approximation.mixed_integer import MixedIntegerSolver, SolverProcess
from odefit.methods.outer_approximation.relaxation import HyperPlanes, StrengtheningCut
from odefit.methods.outer_approximation.standard_form import Bounds, StandardForm
from odefit.methods.running.checkpoint import Checkpoint
from odefit.methods.running.start_checkpoint import natural, numbers, step_from_json, step_to_json
from odefit.methods.solvers.solver import Answer, answer_from_json, answer_to_json


def strengthening_cuts(
    form: StandardForm,
    bounds: Bounds,
    planes: HyperPlanes,
    partition: Partition,
    groups: Sequence[Sequence[int]],
    cutoff: float,
    process: SolverProcess,
    gap: float,
    seconds: float,
    stop: Callable[[], bool],
) -> list[StrengtheningCut]:
    """Return a cut for each group of consecutive elements that has measurements.

    After a `stop`, the cuts so far are returned; `seconds` limits all groups together. Raises
    Infeasible if a group alone is proved to exceed the cutoff.
    """
    cuts = []
    for group in groups:
        if stop():
            break
        inside = form.within(group)
        residuals = np.flatnonzero(inside[form.residuals])
        if not len(residuals):
            continue
        keep = rows_within(form, inside)
        program = master_problem(form, *bounds, planes, partition, cutoff, keep=keep)
        cost = np.zeros(len(program.cost))
        cost[form.size + residuals] = 1.0
        answer = process.solve(replace(program, cost=cost), gap, seconds / len(groups), stop)
        if 0 < answer.bound < math.inf:  # if a single group exceeds the cutoff, so does the whole
            cuts.append(StrengtheningCut(tuple(residuals.tolist()), answer.bound))
    return cuts


def rows_within(form: StandardForm, inside: BoolArray) -> BoolArray:
    """Return the rows with no variables but those `inside`, shape (rows,)."""
    inside_rows: BoolArray = (abs(form.matrix) @ (~inside).astype(float)) == 0
    return inside_rows


STALLED_CONTRACTION = 0.02
"""Relative change of a parameter's range or of the bound below which contraction ends early."""

PROOF_MARGIN = 1e-6
"""Share of the tolerance that a proof by infeasibility leaves unused, so that rounding does not
reopen the gap."""

OBBT_SHARE = 0.1
"""Share of the remaining time for variables other than parameters in a round of OBBT."""

MILP_GAP_SHARE = 0.1
"""Gap to which a mixed-integer program is solved, relative to the tolerance of the search."""

MASTER_SHARE = 0.5
"""Share of the remaining time for one master problem."""

DECOMPOSITION_SHARE = 0.3
"""Share of the remaining time for the problems of all groups of elements together."""


@dataclass(frozen=True)
class SearchOptions:
    """Options of the algorithm, as those of :class:`OuterApproximation` of the same names."""

    tolerance: float
    cut: float | None
    contractions: int
    recontract: bool
    pieces: int
    hyperplanes: int
    cuts: Sequence[Sequence[int]]
    iterations: int
    milp: MixedIntegerSolver
    most_binaries: int


@dataclass(eq=False)
class MasterSlaveSearch:
    """The algorithm and its state."""

    options: SearchOptions
    form: StandardForm
    low: Array  # bounds of all variables in which better answers must lie, shape (n,)
    high: Array
    slave: Callable[[Array], Answer]  # step 3, from a point of the master problem
    first_cutoff: float  # without an incumbent; no answer need reach it
    negligible: float  # absolute difference of the bounds at which to stop
    stop: Callable[[], bool]
    remaining: Callable[[], float]  # seconds
    report: Callable[[BoundStep], None] | None = None
    incumbent: Answer | None = None
    lower: float = -math.inf
    history: list[BoundStep] = field(default_factory=list)
    began: float = field(default_factory=time.monotonic)
    before: float = 0.0  # seconds that the search had taken before a kill
    keep: Callable[[MasterSlaveSearch], None] | None = None  # called at the end of each step
    rounds: int = 0  # of contraction
    contracted: bool = False
    partition: Partition | None = None  # of the next master problem
    masters: int = 0  # master problems that were solved
    memory: int = 0  # bytes that the solver's process may use; 0 for no limit

    def __post_init__(self) -> None:
        planes = HyperPlanes.uniform(len(self.form.residuals), self.options.hyperplanes)
        self.tightening = BoundTightening(
            self.form, FBBT(self.form), planes, self.stop, remaining=self.remaining
        )
        self._refuting = math.inf  # the cutoff that an infeasible step proves to be unreachable
        if not self.form.linear.any():
            self.lower = max(self.form.constant, 0.0)  # of a sum of squares

    @property
    def upper(self) -> float:
        """The upper bound, the best objective so far (step 3b)."""
        return math.inf if self.incumbent is None else self.incumbent.objective

    @property
    def _allowed(self) -> float:
        """Difference of the bounds at which to stop."""
        return max(self.options.tolerance * abs(self.upper), self.negligible)

    @property
    def closed(self) -> bool:
        """True if the bounds have met (step 4a)."""
        return math.isfinite(self.upper) and self.upper - self.lower <= self._allowed

    @property
    def cutoff(self) -> float:
        """The objective above which answers are ignored (47).

        It is the requested value, or the best objective minus the tolerance: if no answer is below
        that, the bounds have met.
        """
        asked = self.options.cut
        if self.incumbent is None:
            return self.first_cutoff if asked is None else asked
        if asked is not None:
            return min(asked, self.upper)
        return self.upper - (1 - PROOF_MARGIN) * self._allowed

    def run(self) -> None:
        """Search until the bounds have met, or until a stop."""
        if not self.history:
            self._log("local", 1)
        if self.closed:
            return
        try:
            if not self.rounds:
                self.low, self.high = self.tightening.fbbt.tighten(
                    self.low, self.high, self._refutable_cutoff()
                )
            if not self.contracted:
                self._contract()
            if not self.closed and not self.stop():
                self._iterate()
        except Infeasible:
            self.lower = max(self.lower, self._refuting)
            self._log("nothing left", 1)

    @property
    def seconds(self) -> float:
        """Seconds since the search began, including those before a kill."""
        return self.before + time.monotonic() - self.began

    def _keep(self) -> None:
        """Save the state at the end of a step, unless that was cut short."""
        if self.keep is not None and not self.stop():
            self.keep(self)

    def _log(self, stage: str, iteration: int) -> None:
        """Add the bounds to the history."""
        step = BoundStep(stage, iteration, min(self.lower, self.upper), self.upper, self.seconds)
        self.history.append(step)
        if self.report is not None:
            self.report(step)

    def _raise_lower(self, bound: float, cutoff: float) -> None:
        """Record that answers with an objective under `cutoff` have one of at least `bound`."""
        self.lower = max(self.lower, min(bound, cutoff))

    def _refutable_cutoff(self) -> float:
        """Return the cutoff, and record it as proved if no answer is below it."""
        self._refuting = self.cutoff
        return self._refuting

    def _tighten(self, cutoff: float) -> None:
        seconds = OBBT_SHARE * self.remaining()
        self.low, self.high = self.tightening.tighten(self.low, self.high, cutoff, seconds)

    def _bound_by_relaxation(self, cutoff: float) -> Array | None:
        """Raise the lower bound to that of the relaxation, and return the point that attains it."""
        bound, x = self.tightening.relaxation_bound(self.low, self.high, cutoff)
        self._raise_lower(bound, cutoff)
        return x

    def _contract(self) -> None:
        """Contract the bounds before the first master problem, until they hardly change."""
        parameters = self.form.parameters
        for number in range(self.rounds + 1, self.options.contractions + 1):
            cutoff = self._refutable_cutoff()
            width, lower = (self.high - self.low)[parameters], self.lower
            if number == 1:
                self._bound_by_relaxation(cutoff)
                self._log("relaxation", 1)
            self._tighten(cutoff)
            x = self._bound_by_relaxation(cutoff)
            if self.incumbent is None and x is not None:
                self._solve_slave(x)
            self._log("contraction", number)
            if self.closed or self.stop():
                return
            moved = np.any((self.high - self.low)[parameters] < (1 - STALLED_CONTRACTION) * width)
            risen = self.lower - lower > STALLED_CONTRACTION * abs(self.cutoff - lower)
            self.rounds, self.contracted = number, not (moved or risen)
            self._keep()
            if self.contracted:
                return

    def _iterate(self) -> None:
        """Solve master and slave problems in turn (steps 2 to 4)."""
        form, options, planes = self.form, self.options, self.tightening.planes
        gap = MILP_GAP_SHARE * options.tolerance
        with SolverProcess(options.milp, self.memory) as process:
            if self.partition is None:
                self.partition = self._first_partition(process, gap)
                self.contracted = True
                self._keep()
            for number in range(self.masters + 1, options.iterations + 1):
                partition, cuts = self.partition, self.tightening.cuts
                cutoff = self._refutable_cutoff()
                program = master_problem(form, self.low, self.high, planes, partition, cutoff, cuts)
                seconds = min(max(MASTER_SHARE * self.remaining(), 1.0), self.remaining())
                optimum = process.solve(program, gap, seconds, self.stop)
                if optimum.bound == math.inf:  # according to the solver, within its tolerance
                    self._raise_lower(cutoff - optimum.margin, cutoff)
                else:
                    self._raise_lower(optimum.bound + form.constant, cutoff)
                if optimum.x is not None and not self.stop():
                    self._solve_slave(optimum.x)
                self._log("master", number)
                if self.closed or self.stop() or optimum.x is None:
                    return
                x, r = optimum.x[: form.size], form.residuals
                planes.add(x[r], self.low[r], self.high[r])
                partition = active_pieces_halved(partition, x, self.low, self.high)
                self._check_size(partition)
                if options.recontract:
                    self._tighten(self._refutable_cutoff())
                    partition = restricted(partition, self.low, self.high)
                self.partition, self.masters = partition, number
                self._keep()

    def _first_partition(self, process: SolverProcess, gap: float) -> Partition:
        """Return the pieces of the first master problem, and compute the cuts by groups."""
        form, options = self.form, self.options
        variables = variables_to_partition(form, self.low, self.high)
        partition = uniform_partition(self.low, self.high, variables, options.pieces)
        self._check_size(partition)
        cuts = strengthening_cuts(
            form,
            (self.low, self.high),
            self.tightening.planes,
            partition,
            options.cuts,
            self.cutoff,
            process,
            gap,
            DECOMPOSITION_SHARE * self.remaining(),
            self.stop,
        )
        if cuts:
            self.tightening.cuts = cuts
            self._log("groups", len(cuts))
        return partition

    def _check_size(self, partition: Partition) -> None:
        """Refuse a master problem that is too large for any solver, with advice."""
        count = binary_count(partition)
        if count > self.options.most_binaries:
            raise InputError(
                f"outer approximation: the master problem has {count} binary variables "
                f"({len(partition)} variables in {self.options.pieces} pieces or more), more than "
                f"most_binaries={self.options.most_binaries}; take fewer pieces, elements or "
                "points, narrower bounds, or allow more"
            )

    def _solve_slave(self, w: Array) -> None:
        """Solve the slave problem from the master's point (step 3)."""
        answer = self.slave(w)
        if answer.success and answer.objective < self.upper:
            self.incumbent = answer


STATE = "state"
"""The key of the only record."""


def save_search(checkpoint: Checkpoint, search: MasterSlaveSearch) -> None:
    """Save all that a search needs to continue from the end of its last step."""
    if not checkpoint.due:
        return
    tightening, partition = search.tightening, search.partition
    state = {
        "low": search.low.tolist(),
        "high": search.high.tolist(),
        "lower": search.lower,
        "incumbent": None if search.incumbent is None else answer_to_json(search.incumbent),
        "planes": tightening.planes.added,
        "turn": tightening.turn,
        "probes": [[k, upper, part] for (k, upper), part in tightening.probes.items()],
        "cuts": [[list(cut.residuals), cut.least] for cut in tightening.cuts],
        "partition": None if partition is None else {str(k): e for k, e in partition.items()},
        "rounds": search.rounds,
        "contracted": search.contracted,
        "masters": search.masters,
        "history": [step_to_json(step) for step in search.history],
        "seconds": search.seconds,
    }
    checkpoint.save({STATE: state})


def resume_search(checkpoint: Checkpoint, search: MasterSlaveSearch, d: Discretisation) -> None:
    """Let a search continue from a checkpoint with a state; refuse a damaged one."""
    state = checkpoint.records.get(STATE)
    if state is None:
        return
    try:
        _resume(state, search, d)
    except (KeyError, TypeError, ValueError, OverflowError, AttributeError) as error:
        raise InputError(
            f"{checkpoint.path}: is damaged ({error}); remove it to start again"
        ) from error


def _resume(state: Mapping[str, Any], search: MasterSlaveSearch, d: Discretisation) -> None:
    n, unknowns = len(search.low), len(d.problem.unknowns)
    shape = d.points, len(d.variables)
    low, high = numbers(state["low"], n), numbers(state["high"], n)
    planes = [numbers(added).tolist() for added in state["planes"]]
    if len(planes) != len(search.form.residuals) or not np.isfinite([*low, *high]).all():
        raise ValueError("it belongs to another problem")
    incumbent = state["incumbent"]
    cuts = tuple(
        StrengtheningCut(tuple(natural(r) for r in added), float(least))
        for added, least in state["cuts"]
    )
    probes = {(natural(k), bool(upper)): float(part) for k, upper, part in state["probes"]}
    partition: Partition | None = None
    if state["partition"] is not None:
        partition = {int(k): tuple(numbers(e).tolist()) for k, e in state["partition"].items()}
    tightening = search.tightening
    if incumbent is not None:
        search.incumbent = answer_from_json(incumbent, shape, unknowns)
    search.low, search.high, search.lower = low, high, float(state["lower"])
    search.partition, search.rounds = partition, natural(state["rounds"])
    search.contracted, search.masters = bool(state["contracted"]), natural(state["masters"])
    search.history = [step_from_json(step) for step in state["history"]]
    search.before = float(state["seconds"])
    tightening.planes.added = planes
    tightening.turn, tightening.probes = natural(state["turn"]), probes
    tightening.cuts = cuts
