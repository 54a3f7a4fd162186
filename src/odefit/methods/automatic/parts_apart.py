"""Experiments with unknowns of their own alone: each group of them is a fit of its own.

The Jacobian has blocks then, and so has the search: the optimum of all is that of each, where a
search for all at once has to find every one of them from one start.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from odefit.common.arrays import IntArray
from odefit.methods.estimate import Doubt, Estimate, Route, Start, Status
from odefit.methods.fit_quality.limits import SIGNIFICANCE
from odefit.methods.running.control import Control
from odefit.problem.binding import dynamic_unknowns
from odefit.problem.condition import Condition
from odefit.problem.noise import Noise
from odefit.problem.parameters import Unknown
from odefit.problem.problem import Problem
from odefit.problem.vector_field import VectorField
from odefit.simulation import Evaluation, ForwardMap


@dataclass(frozen=True)
class Part:
    """The fit of some experiments: its problem, and the places of its unknowns among all."""

    problem: Problem
    places: IntArray


def fitted_apart(
    problem: Problem, solve: Callable[[Problem, Control], Estimate], control: Control
) -> Estimate | None:
    """Return the estimate that fits of the parts make; None where there are no parts.

    None as well where the answer of a part needs more than one integration.
    """
    parts = parts_of(problem)
    found = []
    for i, part in enumerate(parts):
        own = control.for_part(f"part {i}").with_share(1.0 / (len(parts) - i))
        one = solve(part.problem, own)
        if one.best is None or one.best.nodes is not None:
            return None
        found.append(one)
    return _together(problem, parts, found) if parts else None


def parts_of(problem: Problem) -> list[Part]:
    """Return the parts of a problem; none where all experiments hang together.

    An estimated noise, and any other unknown that acts on several experiments, joins these.
    """
    if len(problem.conditions) < 2 or any(u.kind == "noise" for u in problem.unknowns):
        return []
    field = VectorField.of(problem.model, problem.conditions)
    groups: list[tuple[set[int], list[int]]] = []  # unknowns and experiments
    for number, condition in enumerate(problem.conditions):
        acting, members = _acting(problem, condition, field), [number]
        for group in [g for g in groups if g[0] & acting]:
            groups.remove(group)
            acting, members = acting | group[0], group[1] + members
        groups.append((acting, sorted(members)))
    groups = [g for g in groups if g[0]]
    if len(groups) < 2 or len(set().union(*(g[0] for g in groups))) < len(problem.unknowns):
        return []
    parts = [_part(problem, *group) for group in sorted(groups, key=lambda g: g[1])]
    return [p for p in parts if p is not None] if all(parts) else []


def _acting(problem: Problem, condition: Condition, field: VectorField) -> set[int]:
    """Return the unknowns that act on what is measured in an experiment."""
    names = set(field.scalars)
    for name in condition.series:
        names |= problem.model.observables[name].names
        for expression in problem.noise.get(name, Noise()).expressions:
            names |= {n for s in expression.names for n in _written_out(problem, s)}
    return dynamic_unknowns(condition, sorted(names & condition.scalars.keys()))


def _written_out(problem: Problem, name: str) -> frozenset[str]:
    observable = problem.model.observables.get(name)
    return frozenset({name}) if observable is None else observable.names


def _part(problem: Problem, acting: set[int], members: Sequence[int]) -> Part | None:
    """Return the fit of some experiments; None if they cannot be fitted by themselves."""
    experiments = [problem.experiments[i] for i in members]
    names = {e.name for e in experiments}
    alone = problem.with_experiments(experiments)
    mine = {i: problem.unknowns[i] for i in acting}
    places: list[int] = []
    others: dict[str, float] = {}
    for unknown in alone.unknowns:
        same = [i for i, u in mine.items() if _is_same(u, unknown, names)]
        if len(same) > 1:
            return None
        places += same
        if not same:
            others[unknown.key] = _any_value(unknown)
    if len(places) != len(acting):
        return None
    alone = alone.with_unknowns(fix=others) if others else alone
    enough = alone.size + len(alone.priors) >= len(alone.unknowns)
    return Part(alone, np.array(places, dtype=np.intp)) if enough else None


def _is_same(mine: Unknown, other: Unknown, names: set[str]) -> bool:
    """Return whether an unknown of all is one of some experiments."""
    if (mine.name, mine.kind) != (other.name, other.kind):
        return False
    return mine.experiment == other.experiment or (
        other.experiment is None and mine.experiment in names
    )


def _any_value(unknown: Unknown) -> float:
    """Return a value of an unknown that acts on nothing."""
    p = unknown.parameter
    values = (p.guess, 0.5 * (p.lower + p.upper), p.lower, p.upper, 1.0)
    return next(float(v) for v in values if v is not None and math.isfinite(v))


def _together(problem: Problem, parts: Sequence[Part], found: Sequence[Estimate]) -> Estimate:
    """Return one estimate: its starts are made of the best of each part, the second best, ..."""
    orders = [
        sorted((s for s in e.starts if math.isfinite(s.cost)), key=lambda s: (s.cost, s.index))
        for e in found
    ]
    forward = ForwardMap(problem)
    starts = []
    for i, ends in enumerate(zip(*orders, strict=False)):
        begin, vector = np.full((2, len(problem.unknowns)), math.nan)
        for part, end in zip(parts, ends, strict=True):
            begin[part.places], vector[part.places] = end.start, end.vector
        at = forward.evaluate(vector)
        if not isinstance(at, Evaluation):
            continue
        worst = next((s for s in ends if s.status is not Status.CONVERGED), ends[0])
        starts.append(
            Start(
                i,
                begin,
                vector,
                at.objective,
                worst.status,
                worst.message,
                sum(s.evaluations for s in ends),
                sum(s.seconds for s in ends),
                forward.cost(vector),
                exact=all(s.exact for s in ends),
            )
        )
    hardest = max(found, key=lambda e: len(e.starts))
    other = next((e for e in found if e.status is not Status.CONVERGED), hardest)
    sufficient = [e.sufficient for e in found]
    return Estimate(
        tuple(starts),
        other.status,
        f"the experiments fall into {len(parts)} groups with unknowns of their own, which were "
        f"fitted apart; of the one that needed most: {other.message}",
        routes=_routes(found),
        told=other.told,
        sufficient=None if None in sufficient else all(sufficient),
        doubt=_doubt(problem, parts, found),
    )


def _doubt(problem: Problem, parts: Sequence[Part], found: Sequence[Estimate]) -> Doubt | None:
    """Return the gravest doubt of a part, unless so many parts have one as grave by chance."""
    pairs = [(e.doubt, p) for e, p in zip(found, parts, strict=True) if e.doubt is not None]
    if not pairs:
        return None
    doubt, part = min(pairs, key=lambda pair: pair[0].p)
    p = doubt.p if doubt.p == 1.0 else len(parts) * doubt.p
    if doubt.p < 1.0 and p >= SIGNIFICANCE:
        return next((_named(d, part, problem) for d, part in pairs if d.p == 1.0), None)
    return replace(_named(doubt, part, problem), p=p)


def _named(doubt: Doubt, part: Part, problem: Problem) -> Doubt:
    """Return a doubt with the names that the unknowns of a part have among all."""
    keys = dict(zip(part.problem.keys, part.places, strict=True))
    return replace(doubt, lost=tuple(problem.keys[keys[name]] for name in doubt.lost))


def _routes(found: Sequence[Estimate]) -> tuple[Route, ...]:
    """Return the routes of all parts, those of one name as one."""
    routes = []
    for alike in zip(*(e.routes for e in found), strict=False):
        costs = [math.inf if r.cost is None else r.cost for r in alike]
        taken = max(alike, key=lambda r: r.starts)
        routes.append(
            Route(
                taken.name,
                sum(r.starts for r in alike),
                sum(r.failed for r in alike),
                sum(r.hits for r in alike),
                sum(r.objective for r in alike),
                sum(r.seconds for r in alike),
                taken.message,
                sum(costs) if math.isfinite(sum(costs)) else None,
            )
        )
    return tuple(routes)
