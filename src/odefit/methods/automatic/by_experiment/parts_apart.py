"""Groups of experiments that share no unknowns: each group is fitted separately.

The Jacobian is then block diagonal, and so the optimum of all groups consists of the optima of
each. A search for all at once would have to find every one of them from one start.

Groups that share only an estimated noise are fitted separately as well. If the noise is a single
standard deviation, its value does not affect the optimum of the other unknowns, and each group is a
least-squares fit. Otherwise each group first has its own noise. A search for all groups then
continues from their ends, so the answer is an optimum of the joint likelihood; see
:mod:`odefit.methods.automatic.by_experiment.parts_joined`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from odefit.methods.automatic.by_experiment.parts_joined import composed, joined_ends
from odefit.methods.estimate import Doubt, Estimate, Route, Start, Status
from odefit.methods.fit_quality.limits import SIGNIFICANCE
from odefit.methods.local.cost_tolerance import close
from odefit.methods.running.control import Control
from odefit.problem.noise import Noise
from odefit.problem.problem import Problem
from odefit.problem.variants.parts import Part, groups_of, part_of
from odefit.problem.variants.sizes import expected_sizes
from odefit.simulation import Evaluation, ForwardMap
from odefit.simulation.engines.engine_choice import UNDECIDED

VALUES_PER_NOISE = 3
"""Smallest number of measurements of a part for each estimated noise, beyond its other unknowns:
with fewer, the noise of the part can become zero."""


MOST_SWAPPED = 2
"""Number of other ends of a part that are combined with the best ends of all other parts."""

NEAR = 1e-2
"""Relative difference of all unknowns up to which two ends of a part are the same."""

REACH = 20.0
"""Deviance between such an end and the best of its part up to which it may be another answer."""


def fitted_apart(
    problem: Problem, solve: Callable[[Problem, Control], Estimate], control: Control
) -> Estimate | None:
    """Return the estimate made of fits of the parts; None if there are no parts.

    Also returns None if the answer of a part needs more than one integration.
    """
    parts = parts_of(problem)
    estimates = []
    for i, part in enumerate(parts):
        limited = control.for_part(f"part {i}").with_share(1.0 / (len(parts) - i))
        one = solve(part.problem, limited)
        if one.best is None or one.best.nodes is not None:
            return None
        estimates.append(one)
    return _together(problem, parts, estimates, control) if parts else None


def parts_of(problem: Problem) -> list[Part]:
    """Return the parts of a problem that can be fitted separately; none if they cannot.

    An unknown that acts on several experiments joins them, unless it acts only on the noise.
    """
    groups = groups_of(problem)
    if groups is None or any(problem.unknowns[i].key in problem.priors for i in groups.joining):
        return []
    plain = _as_least_squares(problem, groups.joining)
    of, without = plain or problem, plain is not None
    parts = [part_of(of, group, groups.joining, without=without) for group in groups.groups]
    return [p for p in parts if p is not None] if all(p and _enough(p) for p in parts) else []


def _enough(part: Part) -> bool:
    """Return whether a part has enough measurements for its unknowns."""
    noise = len(part.places) - len(part.unshared)
    needed = len(part.problem.unknowns) + (VALUES_PER_NOISE - 1) * noise
    return part.problem.size + len(part.problem.priors) >= needed


def _as_least_squares(problem: Problem, joining: frozenset[int]) -> Problem | None:
    """Return the problem without its noise if that is one standard deviation of all values.

    Returns None if the noise affects the optimum of the other unknowns.
    """
    noise = {n: problem.noise.get(n, Noise()) for c in problem.conditions for n in c.series}
    if len(joining) != 1 or len(noise) != 1:
        return None
    ((name, model),) = noise.items()
    unknown = problem.unknowns[next(iter(joining))]
    alone = Noise(sd="estimate", transform=model.transform, distribution=model.distribution)
    stated = any(
        s.sds is not None or s.censored is not None
        for c in problem.conditions
        for s in c.series.values()
    )
    if unknown.kind != "noise" or model != alone or not model.law.normal or stated:
        return None
    return problem.with_noise({**problem.noise, name: replace(model, sd=None)})


def _together(
    problem: Problem, parts: Sequence[Part], estimates: Sequence[Estimate], control: Control
) -> Estimate:
    """Return one estimate: its starts combine the best end of each part, then the second best."""
    orders = [
        sorted((s for s in e.starts if math.isfinite(s.cost)), key=lambda s: (s.cost, s.index))
        for e in estimates
    ]
    joining = sorted(set[int]().union(*(p.shared for p in parts)))
    swapped = list(_swapped(parts, orders))
    if joining:
        starts = joined_ends(problem, parts, orders, swapped, control)
    else:
        starts = _composed_ends(problem, parts, [*zip(*orders, strict=False), *swapped])
    hardest = max(estimates, key=lambda e: len(e.starts))
    other = next((e for e in estimates if e.status is not Status.CONVERGED), hardest)
    sufficient = [e.sufficient for e in estimates]
    apart, names = "were fitted apart", ", ".join(problem.keys[i] for i in joining)
    if joining:
        apart = f"but for the noise ({names}) were fitted apart, then all together"
    begin = (
        f"the experiments fall into {len(parts)} groups with unknowns of their own, which "
        f"{apart}; of the group with the longest search: "
    )
    return Estimate(
        tuple(starts),
        other.status,
        begin + other.message,
        routes=_routes(estimates),
        told=other.told,
        finding=begin + (other.finding or other.message),
        sufficient=None if None in sufficient else all(sufficient),
        doubt=_doubt(problem, parts, estimates),
    )


def _swapped(
    parts: Sequence[Part], orders: Sequence[Sequence[Start]]
) -> Iterator[tuple[Start, ...]]:
    """Yield the best ends of all parts, with one part at another end that fits as well.

    Other solutions of a part thus become solutions of the whole problem, although no start has them
    in all parts.
    """
    best = [order[0] for order in orders]
    for k, (part, order) in enumerate(zip(parts, orders, strict=True)):
        sizes = expected_sizes(part.problem)
        distinct = [order[0]]
        deviance = _deviance(part, order[0])
        for end in order[1:]:
            if len(distinct) > MOST_SWAPPED or deviance * (end.cost - order[0].cost) > REACH:
                break
            if end.status is not Status.CONVERGED or end.nodes is not None:
                continue
            if not any(close(end.vector, d.vector, NEAR, sizes) for d in distinct):
                distinct.append(end)
                yield (*best[:k], end, *best[k + 1 :])


def _deviance(part: Part, best: Start) -> float:
    """Return the factor from differences of a part's cost to differences of the deviance."""
    forward = ForwardMap(part.problem)
    if forward.given_noise or forward.likelihood:
        return 2.0
    degrees = part.problem.size - len(part.problem.unknowns)
    return max(degrees, 0) / best.cost if best.cost > 0.0 else math.inf


def _composed_ends(
    problem: Problem, parts: Sequence[Part], compositions: Sequence[Sequence[Start]]
) -> list[Start]:
    """Return the ends of the whole problem, combined from those of the parts."""
    forward = ForwardMap(problem)
    starts = []
    for i, ends in enumerate(compositions):
        begin, vector = composed(problem, parts, ends)
        at = forward.evaluate(vector, UNDECIDED)
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
                forward.cost(vector, UNDECIDED),
                exact=all(s.exact for s in ends),
            )
        )
    return starts


def _doubt(problem: Problem, parts: Sequence[Part], estimates: Sequence[Estimate]) -> Doubt | None:
    """Return the gravest doubt of a part, unless one so grave is likely among so many parts."""
    pairs = [(e.doubt, p) for e, p in zip(estimates, parts, strict=True) if e.doubt is not None]
    if not pairs:
        return None
    doubt, part = min(pairs, key=lambda pair: pair[0].p)
    p = doubt.p if doubt.p == 1.0 else len(parts) * doubt.p
    if doubt.p < 1.0 and p >= SIGNIFICANCE:
        return next((_named(d, part, problem) for d, part in pairs if d.p == 1.0), None)
    return replace(_named(doubt, part, problem), p=p)


def _named(doubt: Doubt, part: Part, problem: Problem) -> Doubt:
    """Return a doubt with the names that a part's unknowns have in the whole problem."""
    keys = dict(zip(part.problem.keys, part.places, strict=True))
    return replace(doubt, lost=tuple(problem.keys[keys[name]] for name in doubt.lost))


def _routes(estimates: Sequence[Estimate]) -> tuple[Route, ...]:
    """Return the routes of all parts, merged by name."""
    routes = []
    for alike in zip(*(e.routes for e in estimates), strict=False):
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
