"""The distinct solutions among the ends of a fit, and which of them fit equally well."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from odefit.assessment.intervals.flat_directions import moved_by_flat_directions
from odefit.assessment.parts import Trouble, Uncertainty
from odefit.common.arrays import Array
from odefit.methods.estimate import Completeness, Estimate, Start, Status
from odefit.methods.local.cost_tolerance import CostTolerance, close, same_values
from odefit.methods.polish import Answer, evaluated
from odefit.methods.running.control import Control
from odefit.problem.problem import Problem
from odefit.problem.variants.parts import separate_parts
from odefit.problem.variants.sizes import expected_sizes
from odefit.result_data import Solution, values_at
from odefit.result_data.notices import Notice, NoticeKind
from odefit.simulation import Evaluation, Failure, ForwardMap
from odefit.simulation.engines.engine_choice import UNDECIDED, EngineChoice

COUNT_WORK, SEARCH_WORK = 2.5e7, 1e8
"""Operations (:mod:`odefit.structure.series.deadline`) allowed for counting the solutions with the
outputs of the answer; and, if there are others, for count and search together."""

MAX_SOLUTIONS = 20
"""Largest number of distinct solutions that a result lists, the best first."""

SOLUTION_DISTANCE = 1e-2
"""Largest relative difference of unknowns between two ends of one solution."""

DISTANCE = 0.2
"""Smallest relative difference of an unknown that makes two optima different answers, even if the
data determine it poorly."""

ON_ONE_HILL = 0.05
"""Largest deviance, by linearisation at the answer, of an end of the same cost on its hill."""

COUNTED_SOLUTION_DISTANCE = 1e-5
"""Largest relative difference of unknowns between two ends of one solution, for methods that count
solutions."""


def distinct_solutions(
    answer: Answer,
    estimate: Estimate,
    uncertainty: Uncertainty | None,
    polished: Sequence[Start] = (),
) -> tuple[Solution, ...]:
    """Return the distinct ends of starts, best first, with some of them `polished` since.

    In directions that the data do not determine, a start ends by chance; ends of equal cost that
    differ only along these are one solution. Methods that count solutions are the exception.
    """
    forward, best = answer.forward, answer.start
    tolerance = CostTolerance.of(forward)
    ridge = uncertainty is not None and estimate.completeness is None
    if uncertainty is not None and ridge:
        ridge = bool(uncertainty.directions) or Trouble.NO_EFFECT in uncertainty.trouble.values()
    closeness = SOLUTION_DISTANCE if estimate.completeness is None else COUNTED_SOLUTION_DISTANCE
    sizes, ignored = expected_sizes(forward.problem), None
    if ridge:
        closeness = DISTANCE
        ignored = moved_by_flat_directions(forward, best.vector, answer.evaluation)
    better = {start.index: start for start in polished}
    known = {start.index for start in estimate.starts}
    starts = [better.get(start.index, start) for start in estimate.starts]
    starts += [start for start in polished if start.index not in known]
    ends = sorted(
        (s for s in starts if s.status is Status.CONVERGED and math.isfinite(s.cost)),
        key=lambda s: (s.index not in better, s.cost, s.index),
    )
    distinct: list[Start] = [best]
    hits = [0]
    for end in ends:
        for k, other in enumerate(distinct):
            level = tolerance.same(end, other)
            same = level and (
                close(end.vector, other.vector, closeness, sizes, ignored)
                or (other is best and _on_one_hill(answer, uncertainty, estimate, end.vector))
            )
            # Only the best is polished, so that its cost may differ from theirs.
            if same or (estimate.completeness is None and same_values(end, other)):
                hits[k] += 1
                break
        else:
            distinct.append(end)
            hits.append(1)
    solutions = []
    choice = UNDECIDED
    # Many ends along one ridge do not take the places of optima that were polished.
    listed = list(zip(distinct, hits, strict=True))[:MAX_SOLUTIONS]
    listed[1:] = sorted(listed[1:], key=lambda pair: (pair[0].cost, pair[0].index))
    for start, count in listed:
        if start is best:
            evaluation: Evaluation | Failure = answer.evaluation
        else:
            evaluation, _ = evaluated(forward, start, estimate, choice)
        choice = evaluation.choice
        if isinstance(evaluation, Evaluation):
            solutions.append(solution(forward.problem, start, evaluation, max(count, 1)))
    return tuple(solutions)


def _on_one_hill(
    answer: Answer, uncertainty: Uncertainty | None, estimate: Estimate, vector: Array
) -> bool:
    """Return whether an end as good as the answer lies within a small part of its errors.

    A start that ends early along a poorly determined direction ends at another place of its hill.
    """
    if uncertainty is None or estimate.completeness is not None or not uncertainty.variance > 0:
        return False
    away = vector - answer.start.vector
    if not close(vector, answer.start.vector, DISTANCE, expected_sizes(answer.forward.problem)):
        return False
    rise = float(np.sum((answer.evaluation.information @ away) ** 2))
    return rise <= ON_ONE_HILL * uncertainty.variance


def solution(problem: Problem, start: Start, evaluation: Evaluation, hits: int) -> Solution:
    """Return the end of a start as a solution."""
    parameters, initial = values_at(problem, start.vector)
    return Solution(
        start.vector,
        parameters,
        initial,
        evaluation.objective,
        evaluation.log_likelihood,
        hits,
        start.nodes,
    )


def bounded(problem: Problem) -> bool:
    """Return whether an unknown has a bound."""
    return bool(np.isfinite(problem.lower).any() or np.isfinite(problem.upper).any())


def indistinguishable_solutions(
    answer: Answer,
    solutions: Sequence[Solution],
    control: Control,
) -> tuple[Completeness | None, tuple[Solution, ...]]:
    """Count the solutions with the outputs of the answer, and find the missing ones.

    `solutions` are the known distinct ones, the answer first. Return the count, or None, and all
    solutions within the bounds, the answer first.
    """
    from odefit.structure.same_outputs import (  # not every fit needs it
        GroupOfOutputs,
        same_outputs,
    )

    forward = answer.forward
    problem, vector = forward.problem, answer.start.vector
    counted = same_outputs(
        problem, vector, COUNT_WORK, SEARCH_WORK, seed=control.seed, stop=control.should_stop
    )
    if counted is None:
        return None, tuple(solutions)
    best = solutions[0]
    tolerance = CostTolerance.of(forward)
    every = problem.keys, counted.possible, counted.found
    groups = counted.groups or (
        GroupOfOutputs((), *every, len(counted.real), len(counted.nearly_real)),
    )
    equal: list[Solution] = []
    outside: list[dict[str, float]] = []
    within: dict[str, int] = {}
    numbers = np.ones(3, dtype=object)  # possible, found and real solutions, over all groups
    rows, nearly = iter(counted.real), iter(counted.nearly_real)
    sizes, coincide = expected_sizes(problem), False
    for group in groups:
        here = Counter[str]()
        distinct, ends = [vector], group.found
        exact = itertools.islice(rows, group.real)
        merging = itertools.islice(nearly, group.nearly_real)
        for other, real in _labelled(exact, merging):
            if any(close(other, known, SOLUTION_DISTANCE, sizes) for known in distinct):
                # They have merged, but for the errors of the answer. Paths may lead there twice.
                coincide, ends = True, min(ends, group.possible)
                continue
            end = _with_the_outputs(answer, other, tolerance)
            if end is None:
                here["lost"] += real  # the motion after the first event distinguishes it
                continue
            distinct.append(other)
            if np.all((other >= problem.lower) & (other <= problem.upper)):
                here["equal"] += 1
                equal.append(end)
            else:
                here["outside"] += 1
                values = dict(zip(problem.keys, map(float, other), strict=True))
                outside.append({key: values[key] for key in group.keys})
        lost, real_ones = here["lost"], 1 + here["equal"] + here["outside"]
        numbers *= [group.possible - lost, ends - lost, real_ones]
        within[", ".join(group.names)] = 1 + here["equal"]
    rest = []
    for s in solutions[1:]:
        same = [
            k for k, e in enumerate(equal) if close(s.vector, e.vector, SOLUTION_DISTANCE, sizes)
        ]
        if same:
            equal[same[0]] = replace(equal[same[0]], hits=equal[same[0]].hits + s.hits)
        else:
            rest.append(s)
    count = Completeness(
        int(numbers[0]),
        int(numbers[1]),
        real=int(numbers[2]),
        coincide=coincide,
        outside=tuple(outside),
        groups=within if counted.groups else {},
    )
    return count, (best, *equal, *rest)[:MAX_SOLUTIONS]


def _labelled(real: Iterable[Array], nearly: Iterable[Array]) -> Iterator[tuple[Array, bool]]:
    """Yield solutions with whether they are real, the real ones first."""
    yield from ((vector, True) for vector in real)
    yield from ((vector, False) for vector in nearly)


def _with_the_outputs(answer: Answer, vector: Array, tolerance: CostTolerance) -> Solution | None:
    """Return other values of the unknowns as a solution; None if they fit less well."""
    forward, least = answer.forward, answer.evaluation.cost
    evaluation = forward.evaluate_cost(vector, answer.evaluation.choice)
    slack = max(tolerance.relative * abs(least), tolerance.absolute)
    if isinstance(evaluation, Evaluation) and evaluation.cost > least + slack:
        evaluation = forward.evaluate(vector, answer.evaluation.choice)
        if isinstance(evaluation, Evaluation):
            accuracy = forward.accuracy(evaluation.choice)
            at = evaluation.cost, accuracy, evaluation.jacobian, vector
            if evaluation.cost > least + tolerance.noise(*at) and not tolerance.exact(*at):
                return None
    if isinstance(evaluation, Failure):
        return None
    end = replace(answer.start, vector=vector, start=vector, nodes=None)
    return solution(forward.problem, end, evaluation, 0)


def equal_solutions(
    forward: ForwardMap, solutions: Sequence[Solution], choice: EngineChoice
) -> list[Solution]:
    """Return the solutions that fit as well as the best."""
    tolerance = CostTolerance.of(forward)
    best = min((_cost(forward, s) for s in solutions), default=math.inf)
    zero = max(tolerance.zero(forward.accuracy(choice)), tolerance.absolute, 0.0)
    return [
        s
        for s in solutions
        if _cost(forward, s) - best <= max(tolerance.relative * abs(best), zero)
    ]


def ambiguity(
    problem: Problem,
    equal: Sequence[Solution],
    near: Sequence[Solution],
    complete: Completeness | None = None,
) -> list[Notice]:
    """Return a notice if several solutions fit equally well, or within the noise.

    Solutions of experiments with their own unknowns are counted by group, since they combine
    freely.
    """
    several = [*equal, *near]
    if len(several) < 2:
        return []
    vectors = np.array([s.vector for s in several])
    spread = np.ptp(vectors, axis=0) > SOLUTION_DISTANCE * np.abs(vectors).max(axis=0)
    names = tuple(k for k, differs in zip(problem.keys, spread, strict=True) if differs)
    if not names:
        return []
    groups = _alternatives(problem, several)
    if complete is not None and not near:
        groups = {name: n for name, n in complete.groups.items() if n > 1} or groups
    counted = complete is not None and complete.known and complete.found >= complete.possible
    numbers = {
        "count": float(math.prod(groups.values()) if groups else len(several)),
        "all": float(counted and not near),
    }
    by_group = {name: float(n) for name, n in groups.items()}
    if not near:
        return [Notice(NoticeKind.EQUAL_SOLUTIONS, numbers, names, groups=by_group)]
    numbers["equal"] = float(len(equal))
    return [Notice(NoticeKind.NEAR_SOLUTIONS, numbers, names, groups=by_group)]


def _alternatives(problem: Problem, solutions: Sequence[Solution]) -> dict[str, int]:
    """Return the number of values of each group of experiments in some solutions, if above one."""
    numbers: dict[str, int] = {}
    sizes = expected_sizes(problem)
    for part in separate_parts(problem):
        columns = part.unshared
        distinct: list[Array] = []
        for s in solutions:
            values = s.vector[columns]
            if not any(close(values, d, SOLUTION_DISTANCE, sizes[columns]) for d in distinct):
                distinct.append(values)
        if len(distinct) > 1:
            numbers[", ".join(part.names)] = len(distinct)
    return numbers


def number_within(
    problem: Problem, equal: Sequence[Solution], complete: Completeness | None
) -> int | None:
    """Return the number of equally good solutions within the bounds; None if unknown.

    The numbers of groups of experiments with their own unknowns are multiplied.
    """
    groups = {} if complete is None else complete.groups
    if not bounded(problem):
        return None
    return math.prod(groups.values()) if groups else len(equal)


def _cost(forward: ForwardMap, solution: Solution) -> float:
    if forward.likelihood and solution.log_likelihood is not None:
        return -solution.log_likelihood
    return 0.5 * solution.objective
