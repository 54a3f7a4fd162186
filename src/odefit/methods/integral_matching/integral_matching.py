"""The method of integral matching, which estimates without integrating the equations.

I. Dattner, S. Gugushvili, H. Ship and E. O. Voit, Separable nonlinear least-squares parameter
estimation for complex dynamic systems.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar
from weakref import WeakKeyDictionary

from odefit.common.arrays import Array
from odefit.common.errors import InputError, did_you_mean
from odefit.common.option_checks import number, whole
from odefit.methods.best_so_far import rescued
from odefit.methods.estimate import Estimate, NodeEvaluator, Start, Status
from odefit.methods.integral_matching.bootstrap import MIN_SAMPLES, MatchErrors, bootstrap
from odefit.methods.integral_matching.matching import Match, Matching
from odefit.methods.integral_matching.separation import Penalty
from odefit.methods.local.cost_tolerance import CostTolerance
from odefit.methods.method import LocalMethod, Method
from odefit.methods.multi_start import MultiStart
from odefit.methods.running.control import Control
from odefit.methods.shooting.search import ShootingSearch
from odefit.methods.single_shooting import START_SEARCH
from odefit.methods.smoothing import SplineByNoise
from odefit.methods.smoothing.smoother import Smoother
from odefit.methods.starts import check_start, chosen
from odefit.problem.problem import Problem
from odefit.simulation import Evaluation, ForwardMap
from odefit.simulation.engines.engine_choice import UNDECIDED
from odefit.simulation.engines.registry import EngineName

POLISH = START_SEARCH  # local search that improves a match on the true trajectories


@dataclass(frozen=True)
class IntegralMatching(Method, LocalMethod):
    """Insert smoothed data into the integrated equations, and solve for linear unknowns directly.

    Attributes
    ----------
    separable
        Whether unknowns that enter linearly are computed in closed form (8); otherwise a search
        finds all (6).
    linear
        Names of the unknowns to treat as linear; None for a largest possible set.
    smoother
        The smoother of every measured series.
    ridge, lasso
        Weights of the penalties on linear unknowns, see :class:`Penalty`.
    start
        Start values of unknowns by name; linear unknowns need none.
    polish
        Whether each answer is improved on the true (integrated) trajectories. Without it, the
        answer is the match itself, unless ``fit`` gets ``polish=True``.
    starts
        Number of starts; None means one if all unknowns are linear, and otherwise lets the evidence
        decide, see :class:`MultiStart`.
    engine
        The integration engine of the true trajectories.

    Raises
    ------
    InputError
        An option has an unusable value; from :meth:`solve`, data are too few to be smoothed, or no
        unknown acts in any equation.

    Examples
    --------
    >>> import odefit
    >>> problem = odefit.library.load("seasonal-lotka-volterra")
    >>> odefit.fit(problem, odefit.IntegralMatching()).status.value
    'converged'
    """

    start_option: ClassVar[str] = "start"
    separable: bool = True
    linear: Sequence[str] | None = None
    smoother: Smoother = field(default_factory=SplineByNoise)
    ridge: float = 0.0
    lasso: float = 0.0
    start: Mapping[str, float] | None = field(default=None, hash=False)
    polish: bool = True
    starts: int | None = None
    engine: EngineName = "auto"

    def __post_init__(self) -> None:
        number(self.ridge, "IntegralMatching, ridge", least=0.0)
        number(self.lasso, "IntegralMatching, lasso", least=0.0)
        if not hasattr(self.smoother, "fit"):
            raise InputError(
                "IntegralMatching, smoother: expected an object such as SmoothingSpline(), got "
                f"{self.smoother!r}"
            )
        if isinstance(self.linear, str):
            object.__setattr__(self, "linear", (self.linear,))
        elif self.linear is not None:
            object.__setattr__(self, "linear", tuple(self.linear))
        check_start(self.start, "IntegralMatching")
        if self.starts is not None:
            whole(self.starts, "IntegralMatching, starts")

    @property
    def name(self) -> str:
        """The method's name in results."""
        return "IntegralMatching" if self.separable else "IntegralMatching(not separable)"

    @property
    def answer_is_final(self) -> bool:
        """True without polishing: :func:`odefit.fit` then leaves the answer unchanged."""
        return not self.polish

    @property
    def evaluate_nodes(self) -> NodeEvaluator:
        """The function that evaluates an end on nodes, which :attr:`polish` may produce."""
        return ShootingSearch().evaluate_nodes

    def solve(self, problem: Problem, control: Control) -> Estimate:
        """Estimate the unknowns; results depend on the seed, never on the number of workers."""
        starts = self.starts
        matching = self.matching(problem)
        if starts is None and not matching.nonlinear and matching.route != "assimilation":
            starts = 1
        first = (
            None
            if self.start is None
            else tuple(self._start_vector(problem, control.seed).tolist())
        )
        one = replace(self, starts=None)
        search = MultiStart(one, starts=starts, screening=1, first=first)
        return search.solve(problem, control)

    def match(self, problem: Problem, *, seed: int = 0) -> Match:
        """Match from the guess, without any integration.

        Raises InputError if data are too few to be smoothed, or unusable.
        """
        return self.matching(problem).match(
            self._start_vector(problem, seed), Control(seed).should_stop
        )

    def standard_errors(
        self, problem: Problem, match: Match, *, samples: int = 100, seed: int = 0
    ) -> MatchErrors:
        """Return standard errors of the match itself, by matching simulated data `samples` times.

        Their noise is that of the problem if it gives any, otherwise the smoothers' estimate.
        Raises InputError if the match has no trajectory, or too few samples could be matched.

        Examples
        --------
        >>> import odefit
        >>> problem = odefit.library.load("seasonal-lotka-volterra", noise=0.1, seed=1)
        >>> method = odefit.IntegralMatching()
        >>> found = method.standard_errors(problem, method.match(problem), samples=10)
        >>> sorted(found.errors)
        ['alpha', 'beta', 'delta', 'epsilon', 'gamma', 'omega']
        """
        whole(samples, "IntegralMatching, samples", MIN_SAMPLES)

        def rematch(sampled: Problem, vector: Array) -> Match:
            return self.matching(sampled).match(vector, lambda: False)

        forward = ForwardMap(problem, self.engine)
        return bootstrap(problem, match, rematch, samples, seed, forward)

    def matching(self, problem: Problem) -> Matching:
        """Return the smoothed problem, which can be matched from any start.

        Raises InputError if data are too few to be smoothed, or an option names something other
        than an unknown.
        """
        linear = None
        _check_names("start", self.start or {}, problem)
        if self.linear is not None:
            _check_names("linear", self.linear, problem)
            linear = tuple(problem.keys.index(name) for name in self.linear)
        penalty = Penalty(self.ridge, self.lasso)
        return Matching(problem, self.smoother, linear, self.separable, penalty, self.engine)

    def prepared(self, forward: ForwardMap) -> Matching:
        """Return :meth:`matching` of the problem of `forward`, made once for all its starts."""
        matchings = _matchings.setdefault(forward, {})
        if self not in matchings:
            matchings[self] = self.matching(forward.problem)
        return matchings[self]

    def run(self, forward: ForwardMap, index: int, start: Array, control: Control) -> Start:
        """Carry out one start; a failed integration never raises an error."""
        began = time.perf_counter()
        match = self.prepared(forward).match(start, control.should_stop, forward)
        if not math.isfinite(match.cost):
            end = Start(
                index=index,
                start=start,
                vector=match.vector,
                objective=math.inf,
                status=Status.FAILED,
                message=match.message,
                evaluations=match.evaluations,
                seconds=time.perf_counter() - began,
                cost=math.inf,
            )
            return rescued(forward, end, [start], control) if control.should_stop() else end
        if self.polish:
            end = self._polished(forward, index, match.vector, control)
            if end.status is Status.FAILED and control.should_stop():
                end = rescued(forward, end, [start], control)
            return replace(
                end,
                start=start,
                message=f"{match.message}; then {end.message}",
                evaluations=end.evaluations + match.evaluations,
                seconds=time.perf_counter() - began,
            )
        evaluation = forward.evaluate(match.vector, UNDECIDED)
        status = Status.CONVERGED if match.converged else Status.NOT_CONVERGED
        message, objective, cost = match.message, math.inf, math.inf
        if isinstance(evaluation, Evaluation):
            objective, cost = evaluation.objective, evaluation.cost
        else:
            status, message = Status.FAILED, f"{message}; {evaluation}"
        return Start(
            index=index,
            start=start,
            vector=match.vector,
            objective=objective,
            status=status,
            message=message,
            evaluations=match.evaluations,
            seconds=time.perf_counter() - began,
            cost=cost,
            exact=cost <= CostTolerance.of(forward).zero(forward.accuracy(evaluation.choice)),
        )

    def _polished(self, forward: ForwardMap, index: int, vector: Array, control: Control) -> Start:
        """Return the better of single and multiple shooting from a match.

        Single shooting alone does not converge for chaotic systems, however good the match.
        """
        single = POLISH.run(forward, index, vector, control)
        single = replace(single, message=f"single shooting: {single.message}")
        if single.exact or control.should_stop():
            return single
        multiple = ShootingSearch().run(forward, index, vector, control)
        better = multiple.status is not Status.FAILED and multiple.cost < single.cost
        best = multiple if better else single
        return replace(best, evaluations=single.evaluations + multiple.evaluations)

    def _start_vector(self, problem: Problem, seed: int) -> Array:
        """Return the given start values, completed by guesses."""
        _check_names("start", self.start or {}, problem)
        return chosen(problem, self.start, seed)


def _check_names(option: str, names: Iterable[str], problem: Problem) -> None:
    """Refuse an option with a name that is not an unknown; the message suggests a similar one."""
    for name in names:
        if name not in problem.keys:
            hint = did_you_mean(str(name), problem.keys)
            raise InputError(f"IntegralMatching, {option}: there is no unknown {name!r}{hint}")


_matchings: WeakKeyDictionary[ForwardMap, dict[IntegralMatching, Matching]] = WeakKeyDictionary()
"""Smoothed problems by forward map and method, so that all starts of a fit share them."""
