"""A problem smoothed, separated and matched."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from odefit.methods.integral_matching.criterion import Criterion
from odefit.methods.integral_matching.curves import Piece, pieces
from odefit.methods.integral_matching.doses import before_events
from odefit.methods.integral_matching.readout import measured_states
from odefit.methods.integral_matching.separation import Block, Matched, Penalty, separated
from odefit.methods.smoothing.smoother import Smoother
from odefit.methods.trust_region import Tolerances
from odefit.problem.algebras import NUMPY
from odefit.problem.arrays import Array, BoolArray
from odefit.problem.binding import bound_value
from odefit.problem.errors import InputError
from odefit.problem.expressions import Expression
from odefit.problem.problem import Problem
from odefit.problem.vector_field import VectorField
from odefit.simulation import Failure, ForwardMap
from odefit.simulation.engines import EngineName
from odefit.structure.invariants import invariants
from odefit.structure.linearity import acting_together, independent, interactions, largest_linear

TOLERANCES = Tolerances(cost=1e-8, step=1e-8, evaluations=200, patience=60)
"""Of the search for nonlinear unknowns: the smoothed data are no better."""

ROUNDS = 8
"""Turns of assimilating hidden states and matching, at most."""

SETTLED = 1e-2
"""Relative change of the unknowns in a turn that is not worth another."""


@dataclass(frozen=True, eq=False)
class Match:
    """Unknowns for which smoothed data solve the equations best.

    Attributes
    ----------
    vector
        Unknowns, shape (n,).
    cost
        Half the integral criterion, states in units of their largest magnitude, without
        penalties; infinite if there is no match.
    converged
        Whether the search for nonlinear unknowns ended at a minimum.
    linear, nonlinear
        Names of the unknowns that were solved for, and of those that were searched for.
    singular
        Names of linear unknowns that the smoothed data do not determine.
    evaluations
        Of the criterion.
    pieces
        The smoothed states.
    message
        In words.
    """

    vector: Array
    cost: float
    converged: bool
    linear: tuple[str, ...]
    nonlinear: tuple[str, ...]
    singular: tuple[str, ...]
    evaluations: int
    pieces: Sequence[Piece]
    message: str


class Matching:
    """Integral matching of one problem.

    Parameters
    ----------
    smoother
        Of every measured series.
    linear
        Unknowns to take for the linear ones; None for a largest possible set.
    separable
        Whether they are solved for at all.
    penalty
        On them.
    engine
        For states that are neither measured nor given by what is.

    Attributes
    ----------
    hidden
        States that are not measured.
    route
        How these are found: "" if there are none, "invariants", or "assimilation".
    nonlinear
        Unknowns that have to be searched for.
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
        self.problem = problem
        self._penalty = penalty
        self._engine = engine
        _check(problem)
        measured = measured_states(problem.model, problem.conditions)
        self.hidden = tuple(s for s in problem.model.states if s not in measured)
        weights = invariants(problem, self.hidden)
        self.route = "assimilation" if weights is None else "invariants" if self.hidden else ""
        self._weights = np.zeros((0, len(problem.model.states))) if weights is None else weights
        self._pieces, self._left = pieces(problem, smoother, measured)
        self._separable, self._given = separable, linear

    @cached_property
    def _criterion(self) -> Criterion:
        return Criterion(self.problem, self._pieces, self.hidden, self._weights)

    @cached_property
    def _linear(self) -> tuple[int, ...]:
        """Unknowns that are solved for."""
        problem, n = self.problem, len(self.problem.unknowns)
        if not self._separable:
            return ()
        if self.route == "invariants":
            together = self._together
            # With the starts of pieces, unless they too act on each other.
            extra = [k for k in range(n, len(together)) if not together[k, k]]
            barred = together[:n, independent(extra, together)].any(axis=1)
            together = together[:n, :n] | np.diag(barred)
        else:
            together = interactions(problem)[1]
        if self._given is not None:
            noise = [k for k in self._given if problem.unknowns[k].kind == "noise"]
            wrong = noise + [k for k in self._given if together[k, list(self._given)].any()]
            if wrong:
                names = ", ".join(problem.keys[k] for k in wrong)
                raise InputError(
                    f"IntegralMatching, linear: the equations are not linear in {names} together"
                )
            return self._given
        return largest_linear(problem, together)

    @cached_property
    def _together(self) -> BoolArray:
        """Which components of the criterion's vector act on each other, shape (size, size)."""
        criterion = self._criterion
        base = np.linspace(0.6, 1.1, criterion.size)
        every = range(criterion.size)
        return acting_together(lambda v: np.concatenate(criterion.residuals(v, every)[1]), base)

    def _starts(self, criterion: Criterion) -> list[int]:
        """Free starts of pieces that are solved for."""
        extra = range(len(self.problem.unknowns), criterion.size)
        if self.route != "invariants":
            return list(extra)
        together, linear = self._together, list(self._linear)
        fine = [k for k in extra if not together[k, linear].any() and not together[k, k]]
        return independent(fine, together)

    @property
    def nonlinear(self) -> tuple[int, ...]:
        """Unknowns that are searched for: they act, and are not solved for."""
        acting = self._acting().any(axis=0)
        return tuple(int(k) for k in np.flatnonzero(acting) if k not in self._linear)

    def _acting(self) -> BoolArray:
        """Which unknowns act in which state's equation, shape (conditions * states, n)."""
        acts = interactions(self.problem)[0]
        return acts.reshape(-1, acts.shape[2])

    def match(
        self, start: Array, stop: Callable[[], bool], forward: ForwardMap | None = None
    ) -> Match:
        """Match from `start`, shape (n,), of which the linear unknowns do not matter."""
        if self.route != "assimilation":
            return self._matched(self._criterion, start, stop)
        from odefit.methods.integral_matching.hidden import assimilated

        forward = forward or ForwardMap(self.problem, self._engine)
        best: Match | None = None
        vector = start
        # Those of the equations are matched, those of the observables alone found here.
        parameters = np.array([u.kind == "parameter" for u in self.problem.unknowns], dtype=bool)
        held = parameters & self._acting().any(axis=0)
        for _ in range(ROUNDS):
            found = assimilated(forward, self._pieces, self.hidden, vector, held, stop)
            if isinstance(found, Failure):
                if best is not None:
                    break
                return self._failed(start, str(found))
            completed, vector = found
            criterion = Criterion(self.problem, completed, self.hidden, self._weights)
            best = self._matched(criterion, vector, stop)
            scale = np.maximum(np.abs(best.vector), np.abs(vector))
            moved = np.abs(best.vector - vector) / np.where(scale > 0, scale, 1.0)
            vector = best.vector
            if stop() or moved.max(initial=0.0) <= SETTLED:
                break
        assert best is not None
        listed = ", ".join(self.hidden)
        return replace(
            best,
            message=f"{best.message}; {listed} not measured, found in turns with the unknowns: "
            "this need not lead to the best answer",
        )

    def _failed(self, start: Array, reason: str) -> Match:
        return Match(start, np.inf, False, (), (), (), 0, self._pieces, reason)

    def _matched(self, criterion: Criterion, start: Array, stop: Callable[[], bool]) -> Match:
        problem, n = self.problem, len(self.problem.unknowns)
        extra = criterion.size - n
        vector = np.concatenate([start, np.zeros(extra)])
        for (number, state), k in criterion.starts.items():
            condition = problem.conditions[criterion.pieces[number].condition]
            bound = condition.initial[state]
            vector[k] = bound_value(bound, condition.scalars, list(start), NUMPY)
        lower = np.concatenate([problem.lower, np.full(extra, -np.inf)])
        upper = np.concatenate([problem.upper, np.full(extra, np.inf)])
        linear = (*self._linear, *self._starts(criterion))
        found: list[Matched] = []
        blocks = self._blocks(criterion, linear)
        for block in blocks:
            matched = separated(
                criterion, block, vector, lower, upper, self._penalty, TOLERANCES, stop
            )
            changed = [*block.linear, *block.nonlinear]
            vector[changed] = matched.vector[changed]
            found.append(matched)
        own = {k for b in blocks for k in (*b.linear, *b.nonlinear)}
        at_start = self._at_start(own | self._led_back(criterion, vector, own))
        vector = self._with_noise(vector[:n])
        cost = float(sum(m.cost for m in found))
        singular = tuple(problem.keys[k] for m in found for k in m.singular if k < n)
        names = tuple(problem.keys[k] for b in blocks for k in b.linear if k < n)
        searched = tuple(problem.keys[k] for b in blocks for k in b.nonlinear if k < n)
        return Match(
            vector,
            cost,
            all(m.converged for m in found),
            names,
            searched,
            singular,
            sum(m.evaluations for m in found),
            criterion.pieces,
            _words(names, searched, singular, self._separable, cost, self._left, at_start),
        )

    def _blocks(self, criterion: Criterion, linear: Sequence[int]) -> list[Block]:
        """Equations that share unknowns, apart from the others."""
        size = criterion.size
        acts = np.zeros((len(criterion.equations), size), dtype=bool)
        by_state = interactions(self.problem)[0]
        states = self.problem.model.states
        initial = np.array([u.kind == "initial" for u in self.problem.unknowns], dtype=bool)
        for row, (number, state) in enumerate(criterion.equations):
            condition = criterion.pieces[number].condition
            if self.route == "invariants":
                acts[row, : len(self.problem.unknowns)] = by_state.any(axis=(0, 1))
            else:
                acts[row, : by_state.shape[2]] = by_state[condition, states.index(state)]
            if not criterion.pieces[number].begins:
                acts[row, : len(initial)] &= ~initial
                # A hidden state that is recovered brings its own start.
                shared = self.hidden if self.route == "invariants" else ()
                for s in {state, *shared}:
                    acts[row, criterion.starts[number, s]] = True
        chosen = set(linear)
        found = []
        for rows in _components(acts):
            own = np.flatnonzero(acts[rows].any(axis=0))
            found.append(
                Block(
                    tuple(rows),
                    tuple(int(k) for k in own if k in chosen),
                    tuple(int(k) for k in own if k not in chosen),
                )
            )
        return [b for b in found if b.linear or b.nonlinear]

    def _led_back(self, criterion: Criterion, vector: Array, matched: set[int]) -> set[int]:
        """Unknown initial values before the first measurement, by following the equations.

        They are written into `vector`, unless they are among the `matched` unknowns.

        Returns
        -------
        Those that are found so.
        """
        found: set[int] = set()
        given = vector.copy()
        for number, piece in enumerate(criterion.pieces):
            condition = self.problem.conditions[piece.condition]
            if piece.begins or piece.since > condition.t0:
                continue
            states = criterion.before(number, given, condition.t0)
            if self.route == "assimilation":
                # Which has found them itself.
                states = {s: value for s, value in states.items() if s not in self.hidden}
            if any(t == condition.t0 for t, _ in condition.events):
                states = before_events(
                    self.problem.model, condition, given[: len(self.problem.unknowns)], states
                )
            for state, value in states.items():
                bound = condition.initial[state]
                if not isinstance(bound, float | Expression) and bound not in matched:
                    found.add(bound)
                    vector[bound] = np.clip(
                        value, self.problem.lower[bound], self.problem.upper[bound]
                    )
        return found

    def _at_start(self, found: set[int]) -> list[str]:
        """Names of unknown initial values that are not among the `found` unknowns."""
        assimilated = self.hidden if self.route == "assimilation" else ()
        return [
            self.problem.keys[k]
            for k, unknown in enumerate(self.problem.unknowns)
            if unknown.kind == "initial" and k not in found and unknown.name not in assimilated
        ]

    def _with_noise(self, vector: Array) -> Array:
        """With the smoother's noise where that is an unknown."""
        sds = {name: sd for piece in self._pieces for name, sd in piece.sds.items()}
        vector = vector.copy()
        for k, unknown in enumerate(self.problem.unknowns):
            name = unknown.name.removesuffix("_sd")
            sd = sds.get(name, 0.0)
            if unknown.kind == "noise" and sd > 0:
                noise = self.problem.noise[name]
                if noise.transform is not None:
                    # On that scale: relative to a typical value.
                    series = [c.series[name] for c in self.problem.conditions if name in c.series]
                    sd /= float(np.median(np.abs(np.concatenate([s.values for s in series]))))
                    sd /= 1.0 if noise.transform == "log" else np.log(10.0)
                vector[k] = np.clip(sd, self.problem.lower[k], self.problem.upper[k])
        return vector


def _components(acts: BoolArray) -> list[list[int]]:
    """Rows that share columns, directly or through others."""
    rest = set(range(len(acts)))
    found = []
    while rest:
        rows = [min(rest)]
        columns = acts[rows[0]]
        while True:
            more = [r for r in sorted(rest) if r not in rows and (acts[r] & columns).any()]
            if not more:
                break
            rows += more
            columns = acts[rows].any(axis=0)
        rest -= set(rows)
        found.append(sorted(rows))
    return found


def _words(
    linear: Sequence[str],
    nonlinear: Sequence[str],
    singular: Sequence[str],
    separable: bool,
    cost: float,
    left: Sequence[str],
    at_start: Sequence[str],
) -> str:
    if not np.isfinite(cost):
        return "the equations cannot be evaluated on the smoothed data"
    if not separable:
        said = f"matched by nonlinear least squares ({len(nonlinear)} unknowns)"
    elif not linear:
        said = "no unknown enters linearly: matched by nonlinear least squares"
    else:
        said = f"matched: {len(linear)} unknowns in closed form, {len(nonlinear)} by search"
    if singular:
        said += f"; the smoothed data do not tell apart {', '.join(singular)}"
    if left:
        more = f" and {len(left) - 1} more" if len(left) > 1 else ""
        said += f"; left out: {left[0]}{more}"
    if at_start:
        said += f"; the smoothed data do not tell {', '.join(at_start)}: left at the start"
    return said


def _check(problem: Problem) -> None:
    """Refuse what cannot be matched at all."""
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
                seen = event[name].names & {*problem.model.states, *problem.model.algebraic}
                if seen:
                    raise InputError(
                        f'IntegralMatching: "{condition.name}", the event at t = {time:g} sets '
                        f"{name} by {', '.join(sorted(seen))}; take another method"
                    )
