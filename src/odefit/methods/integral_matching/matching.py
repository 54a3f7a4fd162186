"""Integral matching of one problem: smoothed, separated into blocks, and matched."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from odefit.common.arrays import Array, BoolArray
from odefit.common.errors import InputError, counted
from odefit.expressions.algebras import NUMPY
from odefit.expressions.expressions import Expression
from odefit.methods.integral_matching.assimilation import assimilated
from odefit.methods.integral_matching.criterion import IntegralCriterion
from odefit.methods.integral_matching.segments import SmoothedSegment, smoothed_segments
from odefit.methods.integral_matching.separation import (
    BlockSolution,
    EquationBlock,
    Penalty,
    solve_block,
)
from odefit.methods.integral_matching.state_reconstruction import (
    measured_states,
    states_before_events,
)
from odefit.methods.local.stopping import Tolerances
from odefit.methods.smoothing.smoother import Smoother
from odefit.problem.binding import bound_value
from odefit.problem.noise_distributions.registry import log_of_base
from odefit.problem.problem import Problem
from odefit.problem.variants.features import refuse_integrated_features
from odefit.problem.vector_field import VectorField
from odefit.simulation import Failure, ForwardMap
from odefit.simulation.engines.registry import EngineName
from odefit.structure.invariants import invariants
from odefit.structure.linearity import (
    acting_together,
    independent_set,
    interactions,
    linear_unknowns,
)

TOLERANCES = Tolerances(cost=1e-8, step=1e-8, evaluations=200, patience=60)
"""Tolerances of the search for nonlinear unknowns; the smoothed data are not more accurate."""

MAX_ALTERNATIONS = 8  # largest number of alternations between assimilation and matching
SETTLED = 1e-2  # relative change of the unknowns below which these alternations end


@dataclass(frozen=True, eq=False)
class Match:
    """The unknowns for which smoothed data solve the equations best.

    Attributes
    ----------
    vector
        Unknowns, shape (n,).
    cost
        Half the integral criterion, states in units of their largest magnitude, without penalties;
        infinite if there is no match.
    converged
        Whether the search for nonlinear unknowns ended at a minimum.
    linear, nonlinear
        Names of the unknowns computed in closed form, and of those found by a search.
    singular
        Names of linear unknowns that the smoothed data do not determine.
    evaluations
        Number of evaluations of the criterion.
    segments
        The smoothed states.
    message
        The method of the match, in words.
    """

    vector: Array
    cost: float
    converged: bool
    linear: tuple[str, ...]
    nonlinear: tuple[str, ...]
    singular: tuple[str, ...]
    evaluations: int
    segments: Sequence[SmoothedSegment]
    message: str


class Matching:
    """A smoothed problem, which can be matched from any start.

    `linear` are the indices of the unknowns to treat as linear, None for a largest possible set;
    with `separable` they are computed in closed form. The `engine` integrates if unmeasured
    `hidden` states do not follow from invariants. Raises InputError if nothing can be matched, or
    no segment can be smoothed.
    """

    def __init__(
        self,
        problem: Problem,
        smoother: Smoother,
        linear: tuple[int, ...] | None,
        separable: bool,
        penalty: Penalty,
        engine: EngineName,
    ) -> None:
        refuse_integrated_features(problem, "integral matching")
        self.problem = problem
        self._penalty = penalty
        self._engine = engine
        _check(problem)
        measured = measured_states(problem.model, problem.conditions)
        self.hidden = tuple(s for s in problem.model.states if s not in measured)
        combinations = invariants(problem, self.hidden)
        self.route = "assimilation" if combinations is None else "invariants" if self.hidden else ""
        self._invariants = (
            np.zeros((0, len(problem.model.states))) if combinations is None else combinations
        )
        self._segments, self._left_out = smoothed_segments(problem, smoother, measured)
        self._separable, self._stated_linear = separable, linear

    @cached_property
    def criterion(self) -> IntegralCriterion:
        """The integral criterion on measured states."""
        return IntegralCriterion(self.problem, self._segments, self.hidden, self._invariants)

    @cached_property
    def linear(self) -> tuple[int, ...]:
        """The indices of the unknowns that are computed in closed form.

        Raises InputError if the equations are not linear in the requested unknowns.
        """
        problem, n = self.problem, len(self.problem.unknowns)
        if not self._separable:
            return ()
        if self.route == "invariants":
            together = self._together
            # Free initial states are linear too, unless they interact.
            extra = [k for k in range(n, len(together)) if not together[k, k]]
            excluded = together[:n, independent_set(extra, together)].any(axis=1)
            together = together[:n, :n] | np.diag(excluded)
        else:
            together = interactions(problem)[1]
        if self._stated_linear is not None:
            noise = [k for k in self._stated_linear if problem.unknowns[k].kind == "noise"]
            wrong = noise + [
                k for k in self._stated_linear if together[k, list(self._stated_linear)].any()
            ]
            if wrong:
                names = ", ".join(problem.keys[k] for k in wrong)
                raise InputError(
                    f"IntegralMatching, linear: the equations are not linear in {names} together"
                )
            return self._stated_linear
        return linear_unknowns(problem, together)

    @cached_property
    def _together(self) -> BoolArray:
        """The pairs of components of the criterion's vector that interact, shape (size, size)."""
        criterion = self.criterion
        base = np.linspace(0.6, 1.1, criterion.size)
        every, equations = range(criterion.size), range(len(criterion.equations))
        return acting_together(
            lambda v: criterion.stacked(v, every, equations, condensed=True)[1], base
        )

    def _linear_starts(self, criterion: IntegralCriterion) -> list[int]:
        """Return the indices of the free initial states that are computed in closed form."""
        extra = range(len(self.problem.unknowns), criterion.size)
        if self.route != "invariants":
            return list(extra)
        together, linear = self._together, list(self.linear)
        possible = [k for k in extra if not together[k, linear].any() and not together[k, k]]
        return independent_set(possible, together)

    @property
    def nonlinear(self) -> tuple[int, ...]:
        """Indices of the unknowns that are searched: they act, and are not linear."""
        return tuple(int(k) for k in np.flatnonzero(self._acting()) if k not in self.linear)

    def _acting(self) -> BoolArray:
        """Return which unknowns act in the equation of any state, shape (n,)."""
        return np.asarray(interactions(self.problem)[0].any(axis=(0, 1)))

    def match(
        self, start: Array, stop: Callable[[], bool], forward: ForwardMap | None = None
    ) -> Match:
        """Match from `start`, shape (n,), where the values of linear unknowns do not matter."""
        if self.route != "assimilation":
            return self._match(self.criterion, start, stop)
        forward = forward or ForwardMap(self.problem, self._engine)
        best: Match | None = None
        vector = start
        # Parameters of the equations are matched; those of the observables alone are assimilated.
        parameters = np.array([u.kind == "parameter" for u in self.problem.unknowns], dtype=bool)
        held = parameters & self._acting()
        for _ in range(MAX_ALTERNATIONS):
            states = assimilated(forward, self._segments, self.hidden, vector, held, stop)
            if isinstance(states, Failure):
                if best is not None:
                    break
                return Match(
                    vector=start,
                    cost=np.inf,
                    converged=False,
                    linear=(),
                    nonlinear=(),
                    singular=(),
                    evaluations=0,
                    segments=self._segments,
                    message=str(states),
                )
            completed, vector = states
            criterion = IntegralCriterion(self.problem, completed, self.hidden, self._invariants)
            best = self._match(criterion, vector, stop)
            scale = np.maximum(np.abs(best.vector), np.abs(vector))
            change = np.abs(best.vector - vector) / np.where(scale > 0, scale, 1.0)
            vector = best.vector
            if stop() or change.max(initial=0.0) <= SETTLED:
                break
        assert best is not None
        return replace(
            best,
            message=f"{best.message}; {', '.join(self.hidden)} not measured, estimated in turns "
            "with the unknowns: this need not lead to the best answer",
        )

    def _match(self, criterion: IntegralCriterion, start: Array, stop: Callable[[], bool]) -> Match:
        problem, n = self.problem, len(self.problem.unknowns)
        extra = criterion.size - n
        vector = np.concatenate([start, np.zeros(extra)])
        for (index, state), k in criterion.free_starts.items():
            condition = problem.conditions[criterion.segments[index].condition]
            bound = condition.initial[state]
            vector[k] = bound_value(bound, condition.scalars, list(start), NUMPY)
        lower = np.concatenate([problem.lower, np.full(extra, -np.inf)])
        upper = np.concatenate([problem.upper, np.full(extra, np.inf)])
        solutions: list[BlockSolution] = []
        blocks = self.blocks(criterion, (*self.linear, *self._linear_starts(criterion)))
        for block in blocks:
            solution = solve_block(
                criterion, block, vector, lower, upper, self._penalty, TOLERANCES, stop
            )
            changed = [*block.linear, *block.nonlinear]
            vector[changed] = solution.vector[changed]
            solutions.append(solution)
        matched = {k for b in blocks for k in (*b.linear, *b.nonlinear)}
        solved = matched | self._integrate_back(criterion, vector, matched)
        vector = self._with_noise(vector[:n])
        cost = float(sum(s.cost for s in solutions))
        singular = tuple(problem.keys[k] for s in solutions for k in s.singular if k < n)
        linear = tuple(problem.keys[k] for b in blocks for k in b.linear if k < n)
        nonlinear = tuple(problem.keys[k] for b in blocks for k in b.nonlinear if k < n)
        return Match(
            vector=vector,
            cost=cost,
            converged=all(s.converged for s in solutions),
            linear=linear,
            nonlinear=nonlinear,
            singular=singular,
            evaluations=sum(s.evaluations for s in solutions),
            segments=criterion.segments,
            message=self._message(linear, nonlinear, singular, cost, solved),
        )

    def blocks(self, criterion: IntegralCriterion, linear: Sequence[int]) -> list[EquationBlock]:
        """Return the blocks of equations that share unknowns, given the linear ones among these."""
        acts = np.zeros((len(criterion.equations), criterion.size), dtype=bool)
        by_state = interactions(self.problem)[0]
        states = self.problem.model.states
        initial = np.array([u.kind == "initial" for u in self.problem.unknowns], dtype=bool)
        for row, (index, state) in enumerate(criterion.equations):
            segment = criterion.segments[index]
            if self.route == "invariants":
                acts[row, : len(initial)] = by_state.any(axis=(0, 1))
            else:
                acts[row, : by_state.shape[2]] = by_state[segment.condition, states.index(state)]
            if not segment.at_start:
                acts[row, : len(initial)] &= ~initial
                # A hidden state that an invariant gives adds its own initial state.
                shared = self.hidden if self.route == "invariants" else ()
                for s in {state, *shared}:
                    acts[row, criterion.free_starts[index, s]] = True
        chosen = set(linear)
        equation_blocks = []
        for rows, unknowns in connected_rows(acts):
            solved = tuple(k for k in unknowns if k in chosen)
            searched = tuple(k for k in unknowns if k not in chosen)
            equation_blocks.append(EquationBlock(tuple(rows), solved, searched))
        return equation_blocks

    def _integrate_back(
        self, criterion: IntegralCriterion, vector: Array, matched: set[int]
    ) -> set[int]:
        """Find initial values before the first measurement by integrating the equations back.

        They are written into `vector` unless they are `matched`; their indices are returned.
        """
        initial: set[int] = set()
        start = vector.copy()
        for index, segment in enumerate(criterion.segments):
            condition = self.problem.conditions[segment.condition]
            if segment.at_start or segment.start > condition.t0:
                continue
            states = criterion.states_before(index, start, condition.t0)
            if self.route == "assimilation":
                # Assimilation has already found the hidden states.
                states = {s: value for s, value in states.items() if s not in self.hidden}
            if any(t == condition.t0 for t, _ in condition.events):
                unknowns = start[: len(self.problem.unknowns)]
                states = states_before_events(self.problem.model, condition, unknowns, states)
            for state, value in states.items():
                bound = condition.initial[state]
                if not isinstance(bound, float | Expression) and bound not in matched:
                    initial.add(bound)
                    low, high = self.problem.lower[bound], self.problem.upper[bound]
                    vector[bound] = np.clip(value, low, high)
        return initial

    def _with_noise(self, vector: Array) -> Array:
        """Return the unknowns with the smoother's noise for unknowns of the noise."""
        sds = {name: sd for segment in self._segments for name, sd in segment.sds.items()}
        vector = vector.copy()
        for k, unknown in enumerate(self.problem.unknowns):
            name = unknown.name.removesuffix("_sd")
            sd = sds.get(name, 0.0)
            if unknown.kind == "noise" and sd > 0:
                noise = self.problem.noise[name]
                if noise.transform is not None:
                    # On a logarithmic scale the noise is relative to a typical value.
                    series = [c.series[name] for c in self.problem.conditions if name in c.series]
                    sd /= float(np.median(np.abs(np.concatenate([s.values for s in series]))))
                    sd /= log_of_base(noise.transform)
                vector[k] = np.clip(sd, self.problem.lower[k], self.problem.upper[k])
        return vector

    def _message(
        self,
        linear: Sequence[str],
        nonlinear: Sequence[str],
        singular: Sequence[str],
        cost: float,
        matched: set[int],
    ) -> str:
        """Describe a match, given the indices of all unknowns that were `matched`."""
        if not np.isfinite(cost):
            return "the equations cannot be evaluated on the smoothed data"
        if not self._separable:
            message = f"matched by nonlinear least squares ({counted(len(nonlinear), 'unknown')})"
        elif not linear:
            message = "no unknown enters linearly: matched by nonlinear least squares"
        else:
            closed = f"{counted(len(linear), 'unknown')} in closed form"
            message = f"matched: {closed}, {len(nonlinear)} by search"
        if singular:
            message += f"; the smoothed data do not distinguish {', '.join(singular)}"
        if self._left_out:
            others = f" and {len(self._left_out) - 1} more" if len(self._left_out) > 1 else ""
            message += f"; left out: {self._left_out[0]}{others}"
        assimilated_states = self.hidden if self.route == "assimilation" else ()
        at_start = [
            self.problem.keys[k]
            for k, unknown in enumerate(self.problem.unknowns)
            if unknown.kind == "initial"
            and k not in matched
            and unknown.name not in assimilated_states
        ]
        if at_start:
            names = ", ".join(at_start)
            message += f"; the smoothed data do not determine {names}: left at the start value"
        return message


def connected_rows(matrix: BoolArray) -> list[tuple[list[int], list[int]]]:
    """Return the rows that share columns, directly or through other rows, with these columns.

    Rows without any column are omitted. Groups are in the order of their first rows.
    """
    columns = [set(np.flatnonzero(row).tolist()) for row in matrix]
    # The rows of each group so far, and its columns.
    groups: list[tuple[list[int], set[int]]] = []
    for row, columns_of in enumerate(columns):
        if columns_of:
            rows, shared = [row], columns_of
            for group in [g for g in groups if not columns_of.isdisjoint(g[1])]:
                groups.remove(group)
                rows, shared = [*group[0], *rows], shared | group[1]
            groups.append((rows, shared))
    return [
        (rows, sorted(columns_of)) for rows, columns_of in sorted((sorted(r), c) for r, c in groups)
    ]


def _check(problem: Problem) -> None:
    """Refuse a problem that cannot be matched, with an InputError."""
    field = VectorField.of(problem.model, problem.conditions)
    if field.algebraic:
        raise InputError(
            f"IntegralMatching: the algebraic equations are not linear in "
            f"{', '.join(field.algebraic)} with constant coefficients; take another method"
        )
    if not interactions(problem)[0].any():
        raise InputError(
            "IntegralMatching: no unknown acts in any equation or initial value; take another "
            "method"
        )
    for condition in problem.conditions:
        for time, event in condition.events:
            for name in event.keys() & condition.scalars.keys():
                states = event[name].names & {*problem.model.states, *problem.model.algebraic}
                if states:
                    raise InputError(
                        f'IntegralMatching: "{condition.name}", the event at t = {time:g} sets '
                        f"{name} by {', '.join(sorted(states))}; take another method"
                    )
