"""The answer of any method: its best end that can be evaluated, with a last improvement.

A search may integrate more coarsely than the final evaluation, and its best end may then fail at
full accuracy. The next best ends, other engines and the tolerance of the search are tried before a
fit ends without an answer.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from odefit.common.arrays import Array
from odefit.methods.estimate import Estimate, Start, Status
from odefit.methods.local.cost_tolerance import CostTolerance
from odefit.methods.local.scaling import bounds_touched
from odefit.methods.running.control import Control, interruptible
from odefit.methods.running.remote_conditions import conditions_over_workers
from odefit.methods.single_shooting import SingleShooting
from odefit.problem.problem import Problem
from odefit.problem.variants.sizes import expected_sizes
from odefit.simulation import Evaluation, Failure, ForwardMap
from odefit.simulation.engines.cut_off import NEVER, CutOffError, cutting_off
from odefit.simulation.engines.engine_choice import UNDECIDED, EngineChoice
from odefit.simulation.engines.registry import EXPLICIT
from odefit.simulation.other_integrations import other_integrations
from odefit.simulation.trajectories.trajectory import Trajectory, without_sensitivities

POLISH = SingleShooting(evaluations=3000)  # the local search of the last improvement
LATE_SECONDS = 0.5
"""Largest duration of an integration with sensitivities after a cut-off, in seconds. It is
predicted from that of the states; the clock decides only if the user gave a limit."""

UNKNOWNS_TO_A_COST = 4.0
"""Number of unknowns whose sensitivities take as long to be integrated as the states: 2 to 7, as
measured on cascades and published models of 25 to 1,000 unknowns."""

REACHED = 1e-9
"""Distance from a bound, relative to the expected size of an unknown, that counts as reached if the
fit becomes no worse there: the accuracy of an integration."""

FINEST = 1e-12
"""Relative tolerance at which an end is integrated that reproduced the data in the search, but does
not at full accuracy. A chaotic system enlarges the errors of an integration by orders of magnitude,
and the search may have used a more accurate engine."""

STEPS_PAST_ROUNDING = 5  # from an end that reproduces the data

DIGITS = 9  # digits of costs: ends that agree in them fit equally well
MAX_ENDS = 8  # number of ends of starts tried as the answer, the best first


@dataclass(frozen=True, eq=False)
class Answer:
    """The answer of a fit: the end of a start, improved if that was requested and possible.

    `gap` is the largest discontinuity of its trajectories, relative to the sizes of the states. If
    the sensitivities of a large model would take long after the time limit, `differentiated` is
    False, and the Jacobian of the evaluation is zero. `trajectories` have no derivatives, and are
    None on nodes. `warning` gives the reason why it is not the method's best end, or not integrated
    as usual.
    """

    start: Start
    evaluation: Evaluation
    gap: float
    forward: ForwardMap
    trajectories: Sequence[Trajectory] | None = None
    warning: str = ""
    differentiated: bool = True


def answer(problem: Problem, estimate: Estimate, control: Control, polish: bool) -> Answer | None:
    """Return the best end of `estimate` that can be evaluated, or None.

    With `polish` it is improved until no step gains anything.
    """
    forward = ForwardMap(problem)
    ends = list(_distinct_ends(forward, estimate))
    reason = ""
    best_so_far: Answer | None = None
    for number, end in enumerate(ends):
        tried = answer_by(forward, end, estimate, control, polish)
        if isinstance(tried, Answer):
            best_so_far = tried
            break
        if number == 0:
            reason = str(tried)
        if control.should_stop() and number:
            break
    if not ends or (best_so_far is not None and best_so_far.start.index == ends[0].index):
        return best_so_far
    best = ends[0]
    same = best_so_far is not None and CostTolerance.of(forward).same(best_so_far.start, best)
    if not same and best.nodes is None:
        for other, how in other_integrations(problem, best.vector, control.should_stop):
            tried = answer_by(other, best, estimate, control, polish)
            if isinstance(tried, Answer) and (
                best_so_far is None or tried.evaluation.cost < best_so_far.evaluation.cost
            ):
                return replace(
                    tried,
                    warning="The best end of the search cannot be integrated at full accuracy "
                    f"({reason}): the answer was integrated by {how}",
                )
    if best_so_far is None:
        return None
    return replace(
        best_so_far,
        warning="The best end of the search cannot be integrated at full accuracy "
        f"({reason}): the answer is the best that can be, whose objective is "
        f"{best_so_far.evaluation.objective:.6g} instead of {best.objective:.6g}",
    )


def answer_by(
    forward: ForwardMap, end: Start, estimate: Estimate, control: Control, polish: bool
) -> Answer | Failure:
    """Return the answer from an end, or the reason why it cannot be evaluated."""
    better = _improved(forward, end, control) if polish else end
    with cutting_off(NEVER):  # without an evaluation there is no answer
        late = control.cut_off.reached
        answered = _answer_at(forward, better, estimate, late)
        if isinstance(answered, Failure) and better is not end:
            answered = _answer_at(forward, end, estimate, late)
        negligible = CostTolerance.of(forward).negligible
        if end.exact and isinstance(answered, Answer):
            finer = forward.with_accuracy(FINEST)
            if not negligible(answered.evaluation.cost):
                answered = _lower(answered, _answer_at(finer, end, estimate, late))
            elif polish and not late and better.nodes is None:
                # The errors of an explicit engine, which are those of the residuals, can be less.
                explicit = forward.engines.explicit(forward.field) is EXPLICIT
                accurate = finer if explicit else forward
                nearest = replace(better, vector=past_rounding(accurate, better.vector))
                answered = _lower(answered, _answer_at(accurate, nearest, estimate, late))
    return answered


def past_rounding(forward: ForwardMap, vector: Array) -> Array:
    """Return the lowest of some values after Gauss-Newton steps from an end that is exact.

    A search makes no steps at rounding. Where the data determine the unknowns poorly, the cost
    first rises, since the steps are long, and then falls below the one at the end.
    """
    sizes, lowest, best = expected_sizes(forward.problem), math.inf, vector
    for _ in range(STEPS_PAST_ROUNDING + 1):
        at = forward.evaluate(vector, UNDECIDED)
        if isinstance(at, Failure):
            break
        if at.cost < lowest:
            lowest, best = at.cost, vector
        scaled = at.jacobian * sizes
        if not np.isfinite(scaled).all():  # there is no step, and the answer must not be lost
            break
        step = sizes * np.linalg.lstsq(scaled, at.residuals)[0]
        vector = np.clip(vector - step, forward.problem.lower, forward.problem.upper)
    return best


def _lower(answered: Answer, other: Answer | Failure) -> Answer:
    """Return the other answer if its cost is lower."""
    if isinstance(other, Answer) and other.evaluation.cost < answered.evaluation.cost:
        return other
    return answered


def _answer_at(forward: ForwardMap, end: Start, estimate: Estimate, late: bool) -> Answer | Failure:
    if end.nodes is not None:
        evaluation, gap = evaluated(forward, end, estimate)
        if isinstance(evaluation, Failure):
            return evaluation
        return Answer(end, evaluation, gap, ForwardMap(forward.problem, nodes=end.nodes))
    began = time.perf_counter()
    trajectories = forward.trajectories(end.vector, sensitivities=not late)
    seconds = time.perf_counter() - began
    with_sensitivities = seconds * (1 + len(end.vector) / UNKNOWNS_TO_A_COST)
    differentiated = not (late and with_sensitivities > LATE_SECONDS)
    if late and differentiated:
        trajectories = forward.trajectories(end.vector)
    if isinstance(trajectories, Failure):
        return trajectories
    at = forward.evaluate_along(end.vector, trajectories, derivatives=differentiated)
    if isinstance(at, Failure):
        return at
    # The derivatives of a large model take much memory, and are already in the Jacobian.
    states = [without_sensitivities(one) for one in trajectories]
    return Answer(end, at, 0.0, forward, states, differentiated=differentiated)


def evaluated(
    forward: ForwardMap, start: Start, estimate: Estimate, choice: EngineChoice = UNDECIDED
) -> tuple[Evaluation | Failure, float]:
    """Evaluate the end of a start; return the largest discontinuity there if it is on nodes."""
    if start.nodes is None:
        return forward.evaluate(start.vector, choice), 0.0
    assert estimate.evaluate_nodes is not None, "a method that ends on nodes evaluates them"
    at_nodes = estimate.evaluate_nodes(forward.problem, start.vector, start.nodes)
    return (at_nodes, math.nan) if isinstance(at_nodes, Failure) else at_nodes


def _distinct_ends(forward: ForwardMap, estimate: Estimate) -> Iterator[Start]:
    """Yield a few distinct ends, the best first.

    Of costs that hardly differ, as along a ridge, those away from bounds come first.
    """

    def rank(end: Start) -> tuple[float, bool, float, int]:
        at_a_bound = bool(bounds_touched(forward.problem, end.vector).any())
        return float(f"{end.cost:.{DIGITS}g}"), at_a_bound, end.cost, end.index

    usable = [s for s in estimate.starts if s.status is not Status.FAILED and len(s.vector)]
    known: list[Start] = []
    for end in sorted(usable, key=rank):
        if any(np.array_equal(end.vector, k.vector) for k in known):
            continue
        known.append(end)
        yield end
        if len(known) == MAX_ENDS:
            return


def _improved(forward: ForwardMap, end: Start, control: Control) -> Start:
    """Return the end of a start, improved until no step gains anything.

    An answer on nodes is unchanged, since a single integration would lead elsewhere; so is an end
    from which the improvement fails.
    """
    if control.interrupted.is_set() or end.nodes is not None:
        return end
    with interruptible(control), conditions_over_workers(forward, control):
        try:
            again = POLISH.run(forward, end.index, end.vector, control)
            # A method's own cost may differ from that of the integrated trajectories.
            if again.status is Status.FAILED or (end.exact and not again.exact):
                return end
            end = again
            return end if control.should_stop() else _at_bounds(forward, end)
        except CutOffError:
            return end


def _at_bounds(forward: ForwardMap, end: Start) -> Start:
    """Return an end with unknowns at the bounds that they have all but reached.

    Next to a bound no step promises enough decrease for the search to continue. The end of the
    search depends on its steps; the decision that an unknown is at its bound must not.
    """
    problem, vector = forward.problem, end.vector
    reach = REACHED * expected_sizes(problem)
    low = (vector > problem.lower) & (vector - problem.lower <= reach)
    high = (vector < problem.upper) & (problem.upper - vector <= reach)
    if not (low.any() or high.any()):
        return end
    before = forward.evaluate(vector, UNDECIDED)
    if isinstance(before, Failure):
        return end
    gradient = before.jacobian.T @ before.residuals
    moved = np.where(low & (gradient > 0.0), problem.lower, vector)
    moved = np.where(high & (gradient < 0.0), problem.upper, moved)
    after = forward.evaluate(moved, before.choice)
    rounding = max(CostTolerance.of(forward).absolute, REACHED * abs(before.cost))
    if isinstance(after, Failure) or after.cost > before.cost + rounding:
        return end
    return replace(end, vector=moved, cost=after.cost, objective=after.objective)
