"""Structural identifiability: the unknowns that perfect data determine, and how uniquely.

Perfect data give all derivatives of all measured outputs at the initial time. Known and fixed
values count as known, inputs as known generic functions.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator

import numpy as np

from odefit.problem.binding import unknowns_of
from odefit.problem.habits import not_a_problem
from odefit.problem.model import Model
from odefit.problem.parameters import Unknown
from odefit.problem.problem import Problem
from odefit.simulation.engines.cut_off import CountedSeconds
from odefit.structure.rank.combinations import IdentifiableCombinations, identifiable_combinations
from odefit.structure.rank.ranks import LocalRank, local_rank
from odefit.structure.series.deadline import Deadline, UnfinishedError
from odefit.structure.series.differentiated_system import DifferentiatedSystem, NoTaylorSeriesError
from odefit.structure.series.expansion import Expansion
from odefit.structure.series.tape import NotRationalError, Term
from odefit.structure.solutions.auxiliary_states import unknowns_in
from odefit.structure.solutions.solution_numbers import SolutionNumbers, count_solutions
from odefit.structure.structural_identifiability import (
    StructuralIdentifiability,
    UnknownIdentifiability,
)

TIME_LIMIT = CountedSeconds(120.0)
"""Default of the time limit, in seconds counted as work."""

PERIODIC_STATES = ("sin(", "cos(")
"""Prefixes of auxiliary states that determine their arguments only up to a period."""


def structural_identifiability(
    problem: Problem | Model,
    *,
    count: bool = True,
    time_limit: float | None = TIME_LIMIT,
    seed: int = 0,
    report: Callable[[StructuralIdentifiability], None] = lambda _: None,
) -> StructuralIdentifiability:
    """Analyse which unknowns of a problem perfect data would determine.

    Parameters
    ----------
    problem
        The problem; of its data only the measured observables of each experiment are used. Or
        equations alone: one experiment then measures all observables, and all parameters and
        initial values are unknown.
    count
        Whether to count the solutions, which distinguishes "globally" from "locally".
    time_limit
        Time limit in seconds; None for no limit. The default is converted to work, 50 million
        operations a second, so that it ends at the same point on every computer. Local
        identifiability is decided first, and then the solutions are counted: findings that are
        undecided at the limit are reported as undecided.
    seed
        Seed of the random points.
    report
        Called before the count with the findings so far: local identifiability.

    Returns
    -------
    StructuralIdentifiability
        The identifiability of each unknown, as far as the time sufficed; if the equations have no
        Taylor series (abs, min, max), the reason why nothing was found.

    Examples
    --------
    >>> import odefit
    >>> found = odefit.identifiability(odefit.library.load("harmonic"))
    >>> found["p1"].status
    'globally'
    """
    if isinstance(problem, Model):
        problem = _measured(problem)
    if not isinstance(problem, Problem):
        raise not_a_problem("identifiability", problem)
    return analysed(problem, Deadline(time_limit), count, seed, report)


def analysed(
    problem: Problem,
    deadline: Deadline,
    count: bool = True,
    seed: int = 0,
    report: Callable[[StructuralIdentifiability], None] = lambda _: None,
    count_work: float = math.inf,
) -> StructuralIdentifiability:
    """Return the result of :func:`structural_identifiability`, with a limit on time or work.

    The count of the solutions may take `count_work` operations of the remaining ones.
    """
    began = time.monotonic()
    try:
        system = DifferentiatedSystem(
            problem, free_states=False, deadline=deadline, replicates=False
        )
        local = local_rank(system, seed)
    except NoTaylorSeriesError as error:
        return StructuralIdentifiability(problem.name, (), reason=error.reason)
    except UnfinishedError:
        return StructuralIdentifiability(
            problem.name,
            tuple(UnknownIdentifiability(u.key, "undecided") for u in problem.unknowns),
            unfinished=True,
            seconds=time.monotonic() - began,
        )
    combined = IdentifiableCombinations((), 0, ())
    if local.best.complete:
        combined = identifiable_combinations(local, problem.keys, deadline)

    def result(counted: SolutionNumbers, *, unfinished: bool) -> StructuralIdentifiability:
        classify = _Classification(problem, system, local, frozenset(combined.involved), counted)
        return StructuralIdentifiability(
            problem.name,
            tuple(classify.unknown(i, u) for i, u in enumerate(problem.unknowns)),
            counted.solutions if counted.complete else None,
            counted.held,
            tuple(str(c) for c in combined.combinations),
            combined.missing,
            {
                expansion.condition.name: dict(zip(expansion.observables, orders, strict=True))
                for expansion, orders in zip(system.expansions, local.best.orders, strict=True)
            },
            local.error,
            counted.miss_probability,
            tuple(classify.remarks()),
            "",
            time.monotonic() - began,
            counted.exact,
            unfinished,
            None if local.final or local.proved else local.reached,
        )

    late = not local.best.complete or (not local.final and deadline.passed)
    before = result(SolutionNumbers(), unfinished=late)
    if not count or before.unfinished:
        return before
    report(before)
    deadline.narrow(count_work)
    try:
        counted = count_solutions(system, local, frozenset(combined.involved), seed)
    except UnfinishedError:
        counted = SolutionNumbers()
    return result(counted, unfinished=not counted.complete and deadline.passed)


def _measured(model: Model) -> Problem:
    """Return a problem in which all outputs of a model are measured, and nothing else is known."""
    columns = dict.fromkeys(("t", *model.observables, *model.inputs), (0.0, 1.0))
    return Problem(
        model,
        data=columns,
        parameters={name: {} for name in sorted(model.parameters)},
        initial={state: {} for state in model.states},
    )


# The classification ---------------------------------------------------------------------------


class _Classification:
    """Classifies the identifiability of single unknowns, and the limits of the findings."""

    def __init__(
        self,
        problem: Problem,
        system: DifferentiatedSystem,
        local: LocalRank,
        involved: frozenset[str],
        counted: SolutionNumbers,
    ) -> None:
        self.problem = problem
        self.system = system
        self.local = local
        self.involved = involved
        self.counted = counted
        self.place = {name: i for i, name in enumerate(local.names)}
        self.later = _acting_later(problem)
        self.on_noise = acting_on_noise(problem)
        self.events = any(
            c.located or any(t > c.t0 for t, _ in c.events) for c in problem.conditions
        )

    def unknown(self, index: int, unknown: Unknown) -> UnknownIdentifiability:
        key, best = unknown.key, self.local.best
        place = self.place.get(key)
        if place is not None and not best.complete and not best.determined[place]:
            return UnknownIdentifiability(key, "undecided")
        if place is not None and not self.local.final and not best.determined[place]:
            return self._not_followed(key)
        if place is None or not best.effective[place]:
            if index in self.later:
                return UnknownIdentifiability(
                    key, "outside", None, "acts only after the first event"
                )
            if unknown.kind == "noise" or index in self.on_noise:
                return UnknownIdentifiability(key, "outside", None, "acts only on the noise")
            if self.events:
                return UnknownIdentifiability(
                    key, "outside", None, "changes no output before the first event"
                )
            return UnknownIdentifiability(key, "no effect")
        if not best.determined[place]:
            if self.events:
                return UnknownIdentifiability(
                    key, "outside", None, "not determined before the first event"
                )
            return UnknownIdentifiability(
                key, "in combination" if key in self.involved else "no effect"
            )
        if best.algebraic[place] and key in self.counted.unique:
            return UnknownIdentifiability(key, "globally", 1)
        if not self.counted.complete:
            return UnknownIdentifiability(key, "locally")
        if best.algebraic[place]:
            values = self.counted.values[key]
            return UnknownIdentifiability(key, "globally" if values == 1 else "locally", values)
        return self._transcendental(key)

    def _not_followed(self, key: str) -> UnknownIdentifiability:
        """Return the finding on an unknown that the examined derivatives do not determine."""
        orders = f"the derivatives up to order {self.local.reached} do not determine it"
        if self.events:
            return UnknownIdentifiability(key, "outside", None, f"{orders}, before the first event")
        return UnknownIdentifiability(key, "undecided", None, f"{orders}, and later ones may")

    def _transcendental(self, key: str) -> UnknownIdentifiability:
        """Classify an unknown that is determined through non-rational functions."""
        uncounted = UnknownIdentifiability(
            key, "locally", None, "acts through functions that are not rational"
        )
        algebraic = frozenset(np.array(self.local.names)[self.local.best.algebraic].tolist())
        periodic = False
        followed: set[str] = set()
        for expansion in self.system.expansions:
            for d in expansion.lifting.definitions:
                if expansion.lifting.known(d.state) or d.state.index in expansion.exact:
                    continue  # its initial value carries no information
                within = frozenset[str]().union(*(unknowns_in(expansion, a) for a in d.arguments))
                name = expansion.lifting.tape.names[d.state.index]
                state = expansion.states[name]
                if key not in within:
                    # The function's value follows from the outputs, or from its arguments.
                    if state not in algebraic and not within <= algebraic:
                        return uncounted
                    continue
                affine = all(_affine(expansion, a, key) for a in d.arguments)
                if not (affine and state in algebraic and within - {key} <= algebraic):
                    return uncounted
                periodic |= name.startswith(PERIODIC_STATES)
                followed |= {state, *within} - {key}
        remark = "up to the period" if periodic else ""
        values = max((self.counted.values[n] for n in followed), default=0)
        if 1 in (values, self.counted.solutions):
            return UnknownIdentifiability(key, "globally", 1, remark)
        if values == self.counted.solutions:
            return UnknownIdentifiability(key, "locally", values, remark)
        return uncounted

    def remarks(self) -> Iterator[str]:
        """Yield sentences on the limits of the findings."""
        problem = self.problem
        if self.counted.branches:
            yield (
                "Only solutions in which functions (exp, log, sqrt, powers, ...) have their "
                "principal values are counted."
            )
        elif self.counted.branches is False:
            yield (
                "Functions (exp, log, sqrt, powers, ...) count as additional states: some of "
                "the solutions may belong to their other branches."
            )
        if self.counted.compared is not None:
            yield (
                "Around the given initial values, solutions that agree in the first derivatives "
                f"may differ in later ones: these were compared numerically, up to order "
                f"{self.counted.compared} and along the trajectories."
            )
        if problem.model.inputs:
            yield "Inputs count as known functions that vary enough."
        if self.events:
            yield (
                "Only the time before the first event is examined here: later data may determine "
                "more. Under 'What the data can determine', odefit check covers the data of all "
                "times."
            )


def _affine(expansion: Expansion, argument: Term, key: str) -> bool:
    """Return whether an argument is of first degree in an unknown that it directly contains."""
    tape = expansion.lifting.tape
    names = dict(zip(expansion.unknowns, expansion.program.equations.unknowns, strict=True))
    derivative = tape.derivative(argument, names[key])
    try:
        direct = tape.substitute(argument, {names[key].index: tape.number(0)})
    except NotRationalError:
        return False  # undefined if the unknown is zero
    return key not in unknowns_in(expansion, derivative) | unknowns_in(expansion, direct)


def _acting_later(problem: Problem) -> set[int]:
    """Return the numbers of the unknowns that act in events after the initial time."""
    unknowns: set[int] = set()
    for condition in problem.conditions:
        for moment, assign in condition.events:
            if moment > condition.t0:
                for name in {n for e in assign.values() for n in e.names}:
                    if name in condition.scalars:
                        unknowns |= unknowns_of(condition.scalars[name], condition.scalars)
    return unknowns


def acting_on_noise(problem: Problem) -> set[int]:
    """Return the numbers of the unknowns on which the noise depends."""
    names = {
        name
        for noise in problem.noise.values()
        for expression in noise.expressions
        for name in expression.names
    }
    return {
        index
        for condition in problem.conditions
        for name in names & condition.scalars.keys()
        for index in unknowns_of(condition.scalars[name], condition.scalars)
    }
