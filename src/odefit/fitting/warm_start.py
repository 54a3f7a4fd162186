"""A fit that starts from another fit's answer, from its file, or from values by name.

Every method begins with the problem's guess if there is one. So the given values become the guess
of the searched problem, and their objective is kept beside the ends of the search.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from odefit.common.arrays import Array
from odefit.common.errors import InputError, closest, did_you_mean
from odefit.methods.estimate import Estimate, Route, Start, Status
from odefit.methods.local.cost_tolerance import CostTolerance
from odefit.methods.method import Method
from odefit.methods.starts import completed_guess, with_guess
from odefit.problem.inputs.issues import Issues, finite_number
from odefit.problem.parameters import Parameter, Unknown
from odefit.problem.problem import Problem
from odefit.result_data import ResultData
from odefit.result_data.result_file import read_result
from odefit.simulation import Failure, ForwardMap
from odefit.simulation.engines.engine_choice import UNDECIDED
from odefit.simulation.nodes import Nodes, node_names

GIVEN_START = "start as given"
"""The name in ``result.routes`` of the given start values."""

StartValues = ResultData | str | Path | Mapping[str, float]
"""The types that ``odefit.fit(..., start=)`` takes."""


@dataclass(frozen=True, eq=False)
class WarmStart:
    """Values from which a fit starts.

    ``vector``, shape (n,), is within the bounds; ``nodes`` are those of the source's answer, if
    they suit the problem; ``remarks`` name missing and unused values.
    """

    vector: Array
    nodes: Nodes | None
    remarks: tuple[str, ...]

    def searched(self, problem: Problem) -> Problem:
        """Return the problem with this start as its guess, for the search only."""
        return with_guess(problem, self.vector)

    def beside(self, problem: Problem, method: Method, estimate: Estimate) -> Estimate:
        """Return an estimate whose last route is this start.

        If the search finds nothing better, the start becomes one of its ends.
        """
        began = time.perf_counter()
        if self.nodes is None:
            outcome = ForwardMap(problem).evaluate_cost(self.vector, UNDECIDED)
        else:
            from odefit.methods.shooting.node_evaluation import evaluate_nodes  # rarely needed

            at_nodes = evaluate_nodes(problem, self.vector, self.nodes)
            outcome = at_nodes if isinstance(at_nodes, Failure) else at_nodes[0]
        route = Route(
            name=GIVEN_START,
            starts=1,
            failed=1,
            hits=0,
            objective=math.inf,
            seconds=time.perf_counter() - began,
            message=f"cannot be integrated: {outcome}",
        )
        routes = _routes(problem, method, estimate)
        if isinstance(outcome, Failure):
            return replace(estimate, routes=(*routes, route))
        status, best = estimate.status, estimate.best
        if status in (Status.CONVERGED, Status.FAILED):
            status = Status.NOT_CONVERGED
        end = Start(
            index=max((s.index for s in estimate.starts), default=-1) + 1,
            start=self.vector,
            vector=self.vector,
            objective=outcome.objective,
            status=Status.NOT_CONVERGED if best is None else status,
            message="the given start, unchanged",
            evaluations=1,
            seconds=route.seconds,
            cost=outcome.cost,
            nodes=self.nodes,
        )
        as_good = best is not None and CostTolerance.of(ForwardMap(problem)).same(end, best)
        better = best is None or (end.cost < best.cost and not as_good)
        route = replace(
            route,
            failed=0,
            hits=int(better or as_good),
            objective=end.objective,
            message="better than anything the search found" if better else "as it was given",
            cost=end.cost,
        )
        evaluate = estimate.evaluate_nodes
        if self.nodes is not None and evaluate is None:
            evaluate = evaluate_nodes
        estimate = replace(estimate, evaluate_nodes=evaluate)
        if not better:
            return replace(estimate, routes=(*routes, route))
        return replace(
            estimate,
            starts=(*estimate.starts, end),
            status=status,
            message=f"{estimate.message}; the search found nothing better than the given start",
            routes=(*(replace(r, hits=0) for r in routes), route),
        )


def warm_start(problem: Problem, start: StartValues, method: Method | None = None) -> WarmStart:
    """Return the values from which a fit of `problem` starts.

    They come from a result, the path of a result file, or values in natural units by key of
    unknown. Unknowns without a value have the problem's guess, or the middle of their range. An
    :class:`InputError` refuses unknown keys, values of which none belongs to the problem, and
    methods with their own start values.
    """
    if method is not None:
        _refuse_two_starts(method)
    if isinstance(start, (str, Path)):
        path = Path(start)
        if path.suffix.lower() != ".json":
            raise InputError(
                f"start: expected a result, the file of one such as result.json, or values by name "
                f"of unknown, got {str(start)!r}"
            )
        return _from_result(problem, read_result(path), f"start {path.name}")
    if isinstance(start, ResultData):
        return _from_result(problem, start, "start")
    if isinstance(start, Mapping):
        return _from_values(problem, start)
    raise InputError(
        "start: expected a result, the file of one such as result.json, or values by name of "
        f"unknown such as {{'k': 0.1}}, got {start!r}"
    )


def _refuse_two_starts(method: Method) -> None:
    """Refuse a method that has its own start values besides those of the fit."""
    option = method.start_option
    if option and getattr(method, option) is not None:
        raise InputError(
            f"start: the method has start values of its own ({option}); leave one of them out"
        )


def _from_result(problem: Problem, result: ResultData, place: str) -> WarmStart:
    if not result.solutions:
        raise InputError(f"{place}: contains no solution: {result.message}")
    best = result.best
    known = {**best.parameters, **best.initial}
    values = dict(zip(result.problem.keys, map(float, best.vector), strict=True))
    if not any(_value_of(u, values, {})[0] is not None for u in problem.unknowns):
        raise InputError(
            f"{place}: its unknowns ({', '.join(values)}) are not among those of this problem "
            f"({', '.join(problem.keys)}); name the result of a similar problem, or leave it out"
        )
    return _made(problem, values, known, place, _fitting(best.nodes, problem, result.problem))


def _from_values(problem: Problem, by_key: Mapping[str, Any]) -> WarmStart:
    issues = Issues()
    known = {*problem.keys, *problem.parameters, *problem.model.states}
    values: dict[str, float] = {}
    for key, value in by_key.items():
        if key not in known and str(key).partition("[")[0] not in known:
            near = did_you_mean(str(key), problem.keys)
            issues.error("start", f"there is no unknown {key!r}{near}")
            continue
        number = finite_number(value, f"start {key}", issues)
        if number is not None:
            values[str(key)] = number
    if not by_key:
        issues.error("start", "expected at least one value")
    issues.raise_errors()
    return _made(problem, values, {}, "start", None)


def _made(
    problem: Problem,
    values: Mapping[str, float],
    known: Mapping[str, float],
    place: str,
    nodes: Nodes | None,
) -> WarmStart:
    """Return the start with remarks on its unknowns."""
    vector = completed_guess(problem)
    remarks: list[str] = []
    used: set[str] = set()
    missing: list[str] = []
    for i, unknown in enumerate(problem.unknowns):
        value, sources = _value_of(unknown, values, known)
        used.update(sources)
        if value is None:
            missing.append(unknown.key)
            remarks.append(f"{unknown.key!r} has no value there and begins at {vector[i]:g}")
            continue
        inside = _inside(unknown, value, float(vector[i]))
        if inside != value:
            p = unknown.parameter
            remarks.append(
                f"{unknown.key!r} = {value:g} is outside the bounds [{p.lower:g}, {p.upper:g}] "
                f"and begins at {inside:g}"
            )
        elif unknown.key not in values and sources and sources <= set(known):
            remarks.append(f"{unknown.key!r} was known there and begins at that value, {value:g}")
        vector[i] = inside
    for key in [k for k in values if k not in used]:
        name = key.partition("[")[0]
        if _held(problem, name):
            continue  # the user asked for it, so no remark is needed
        if name in problem.parameters or name in problem.model.states:
            remarks.append(
                f"{key!r} = {values[key]:g} is not used, since it is fixed or known in this problem"
            )
        else:
            meant = closest(key, missing)
            hint = f"; if it is now called {meant!r}, give that name" if meant else ""
            remarks.append(f"{key!r} is not a name of this problem and is left out{hint}")
    return WarmStart(vector, nodes, tuple(f"{place}: {remark}" for remark in remarks))


def _held(problem: Problem, name: str) -> bool:
    """Return the remark on a parameter or initial value that the problem holds fixed, if any."""
    entries: list[object] = [problem.parameters.get(name), problem.initial.get(name)]
    entries += [e.initial.get(name) for e in problem.experiments]
    return any(isinstance(p, Parameter) and p.fixed is not None for p in entries)


def _value_of(
    unknown: Unknown, values: Mapping[str, float], known: Mapping[str, float]
) -> tuple[float | None, set[str]]:
    """Return the value of an unknown in a start, and the keys that it comes from.

    A quantity that has become shared starts at the mean of its values by experiment. One that has
    come to differ between experiments starts at their common value.
    """
    for table in (values, known):
        for key in (unknown.key, unknown.name):
            if key in table:
                return table[key], {key}
        if unknown.experiment is None:
            parts = [k for k in table if k.startswith(f"{unknown.name}[")]
            if parts:
                return sum(table[k] for k in parts) / len(parts), set(parts)
    return None, set()


def _inside(unknown: Unknown, value: float, otherwise: float) -> float:
    """Return the value within the bounds nearest to `value`."""
    p = unknown.parameter
    inside = min(max(value, p.lower), p.upper)
    return otherwise if p.scale == "log10" and inside <= 0 else inside


def _fitting(nodes: Nodes | None, problem: Problem, other: Problem) -> Nodes | None:
    """Return the nodes of an answer, if its trajectories are those of `problem`."""
    if nodes is None:
        return None

    def frame(one: Problem) -> Sequence[object]:
        names = node_names(ForwardMap(one).field, one.conditions)
        return [names, one.keys, [(c.name, c.t0, c.end) for c in one.conditions]]

    return nodes if frame(problem) == frame(other) else None


def _routes(problem: Problem, method: Method, estimate: Estimate) -> list[Route]:
    """Return the routes of an estimate; a method that combines no others is its own route."""
    if estimate.routes:
        return list(estimate.routes)
    tolerance, best = CostTolerance.of(ForwardMap(problem)), estimate.best
    usable = [s for s in estimate.starts if s.status is not Status.FAILED]
    return [
        Route(
            name=method.name,
            starts=len(estimate.starts),
            failed=len(estimate.starts) - len(usable),
            hits=0 if best is None else sum(tolerance.same(s, best) for s in usable),
            objective=math.inf if best is None else best.objective,
            seconds=sum(s.seconds for s in estimate.starts),
            message=estimate.message,
            cost=None if best is None else best.cost,
        )
    ]
