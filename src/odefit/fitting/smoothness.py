"""The smoothness of unknown functions, chosen before the search.

A function with a penalty is a mixed model: the standard deviation s of its differences z is that of
their normal prior. Restricted maximum likelihood maximises the likelihood of s with all unknowns
integrated out by Laplace's method; its optimum is a fixed point of

    s^2 = z'z / (q - trace(V) / s^2),

with the q differences z at the best fit for s and their covariance V there (the generalised
Fellner-Schall method: S. N. Wood and M. Fasiolo, Biometrics 73, 2017, 1071-1081). If s changes
along the function, its two numbers maximise the likelihood of the linearised model, in turns with
fits (see :mod:`odefit.assessment.intervals.penalised_differences`). It changes if the user requests
it, or if the likelihood ratio is significant. Cross-validation minimises the squares of the
residuals of each measurement from a fit without it, to first order r/(1 - h) with the leverage h.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from odefit.assessment.intervals.penalised_differences import differences_of
from odefit.common.arrays import Array, IntArray
from odefit.common.errors import InputError
from odefit.methods.running.control import Control
from odefit.methods.single_shooting import SingleShooting
from odefit.methods.starts import guess, sample, with_guess
from odefit.problem.parameters import Parameter
from odefit.problem.priors import Prior
from odefit.problem.problem import Problem
from odefit.problem.unknown_functions.specification import CRITERIA
from odefit.result_data.notices import Notice, NoticeKind
from odefit.simulation import Evaluation, Failure, ForwardMap
from odefit.simulation.engines.engine_choice import UNDECIDED

STEPS = 40
"""Largest number of fits with another standard deviation."""

SETTLED = 0.01
"""Change of the logarithm of a standard deviation that counts as converged."""

FARTHEST = 1e4
"""The standard deviation stays within this factor of its start value. For data on a straight line
it would fall without end, and stop mattering long before."""

FARTHEST_STEP = 2.0
"""Largest change of the logarithm of a standard deviation between two fits, where it changes along
the function."""

UNEVEN_GAIN = 3.84
"""Twice the logarithm of the ratio of likelihoods above which the smoothness that is chosen by
restricted maximum likelihood changes along a function: the quantile of chi-square at 95 %."""

FEWEST_UNEVEN = 4
"""Smallest number of differences of a function whose smoothness may change along it."""

GRID = 9
"""Number of standard deviations at which cross-validation is first evaluated."""

BEGINNINGS = 8
"""Number of random start values tried if the guess does not lead to a fit."""


@dataclass(frozen=True, eq=False)
class Smoothness:
    """A problem with the smoothness of its functions chosen.

    Attributes
    ----------
    problem
        The problem with priors of that smoothness.
    vector
        The best fit so far, shape (n,); None if there was nothing to choose.
    notices
        The choices, one fact for each function.
    """

    problem: Problem
    vector: Array | None = None
    notices: tuple[Notice, ...] = ()

    def searched(self, problem: Problem) -> Problem:
        """Return a problem whose guess is the best fit so far, for the search alone."""
        return problem if self.vector is None else with_guess(problem, self.vector)


@dataclass(eq=False)
class _Fits:
    """Fits of one problem at several standard deviations, each from the end of the last."""

    problem: Problem
    control: Control
    forward: ForwardMap
    vector: Array
    evaluation: Evaluation | None = None
    covariance: Array = field(default_factory=lambda: np.zeros((0, 0)))
    """The covariance of the unknowns at the last fit, by the expected information."""

    def at(self, sds: Mapping[str, float | Array]) -> bool:
        """Fit with standard deviations by function; return whether there is a fit."""
        self.problem = with_sds(self.problem, sds)
        self.forward = self.forward.of(self.problem)
        run = SingleShooting().run(self.forward, 0, self.vector, self.control)
        if not math.isfinite(run.objective):
            return False
        evaluation = self.forward.evaluate(run.vector, UNDECIDED)
        if isinstance(evaluation, Failure):
            return False
        self.vector, self.evaluation = run.vector, evaluation
        rows = evaluation.information
        self.covariance = np.asarray(np.linalg.pinv(rows.T @ rows, hermitian=True))
        return True

    def places(self, name: str) -> IntArray:
        """Return the indices of a function's differences among the unknowns."""
        penalised = self.problem.given.unknown_functions[name].penalised
        return np.array([i for i, u in enumerate(self.problem.unknowns) if u.name in penalised])

    def effective(self, name: str) -> float:
        """Return the effective number of differences that the data determine."""
        at, sds = self.places(name), []
        for i in at:
            prior = self.problem.parameters[self.problem.unknowns[i].name].prior
            sds.append(math.inf if prior is None or prior.sd is None else prior.sd)
        return max(float(np.sum(1.0 - np.diag(self.covariance)[at] / np.square(sds))), 1e-12)

    def next_sds(self, name: str, sds: float | Array, begun: Array) -> float | Array:
        """Return the standard deviations of a function that follow from the last fit."""
        low, high = float(begun[0]) / FARTHEST, float(begun[0]) * FARTHEST
        expansion = self.problem.given.unknown_functions[name]
        if isinstance(sds, float):
            z = self.vector[self.places(name)]
            squares = max(float(z @ z), 1e-300)
            return min(max(math.sqrt(squares / self.effective(name)), low), high)
        assert self.evaluation is not None
        rows = self.evaluation.information
        differences = differences_of(self.problem, self.vector, rows, name, expansion)
        if differences is None:
            return sds
        differences = replace(differences, adaptive=True)
        level, tilt = differences.best(FARTHEST_STEP)
        return np.clip(np.exp(level + tilt * expansion.along), low, high)

    def uneven(self, name: str) -> bool:
        """Return whether the data speak for a smoothness that changes along a function."""
        expansion = self.problem.given.unknown_functions[name]
        if self.evaluation is None or len(expansion.along) < FEWEST_UNEVEN:
            return False
        rows = self.evaluation.information
        differences = differences_of(self.problem, self.vector, rows, name, expansion)
        return differences is not None and differences.gain(FARTHEST_STEP) > UNEVEN_GAIN

    def left_out(self) -> float:
        """Return the squared leave-one-out residuals."""
        assert self.evaluation is not None
        measured = self.problem.size
        rows = self.evaluation.jacobian[:measured]
        leverage = np.einsum("ij,jk,ik->i", rows, self.covariance, rows)
        remainders = np.maximum(1.0 - leverage, 1e-6)
        return float(np.sum((self.evaluation.residuals[:measured] / remainders) ** 2))


def chosen_smoothness(problem: Problem, start: Array | None, control: Control) -> Smoothness:
    """Return a problem whose functions have the smoothness that the data support.

    `start` gives initial values of the unknowns, shape (n,); None for the problem's guess.
    """
    functions = problem.given.unknown_functions
    criteria = {
        n: str(e.function.smooth)
        for n, e in functions.items()
        if e.function.smooth in CRITERIA and any(u.name in e.penalised for u in problem.unknowns)
    }
    if not criteria:
        return Smoothness(problem)
    forward = ForwardMap(problem)
    _refuse_unknown_noise(forward, criteria)
    begun = {n: _sds(problem, n) for n in criteria}
    fits = _begin(problem, forward, start, begun, control)
    if fits is None:
        return Smoothness(problem)  # the search reports the reason
    sds: dict[str, float | Array] = dict(begun)
    for name in [n for n, how in criteria.items() if how != "adaptive"]:
        sds[name] = float(begun[name][0])
    for name in [n for n, how in criteria.items() if how == "cv"]:
        sds[name] = _cross_validated(fits, name, sds, control)
    by_likelihood = [n for n, how in criteria.items() if how != "cv"]
    steps, settled = _fixed_point(fits, by_likelihood, sds, begun, control)
    fits.at(sds)
    uneven = [n for n, how in criteria.items() if how == "reml" and fits.uneven(n)]
    if uneven and settled:
        for name in uneven:
            criteria[name] = "adaptive"
            sds[name] = np.full(len(begun[name]), sds[name])
        more, settled = _fixed_point(fits, by_likelihood, sds, begun, control)
        steps += more
        fits.at(sds)
    notices = []
    for name, how in criteria.items():
        along = _sds(fits.problem, name)
        numbers = {
            "sd": float(along[0]),
            "last": float(along[-1]),
            "effective": fits.effective(name),
            "differences": float(len(fits.places(name))),
            "steps": float(steps),
            "settled": float(settled or how == "cv"),
        }
        notices.append(Notice(NoticeKind.SMOOTHNESS, numbers, (name, how)))
    return Smoothness(fits.problem, fits.vector, tuple(notices))


def with_sds(problem: Problem, sds: Mapping[str, float | Array]) -> Problem:
    """Return a problem whose functions have other standard deviations of their differences.

    They are one number for a function, or one for each of its differences, shape (q,).
    """
    changed: dict[str, Parameter] = {}
    for name, function_sds in sds.items():
        keys = problem.given.unknown_functions[name].penalised
        for key, sd in zip(keys, np.broadcast_to(function_sds, len(keys)), strict=True):
            old = problem.parameters[key]
            if old.prior is not None:
                changed[key] = replace(old, prior=Prior(0.0, float(sd)))
    return problem.with_parameters(**changed)


def _sds(problem: Problem, name: str) -> Array:
    """Return the standard deviations of a function's differences in a problem, shape (q,).

    A difference without a prior, which a user has fixed, takes that of the previous one.
    """
    sds: list[float] = []
    for key in problem.given.unknown_functions[name].penalised:
        prior = problem.parameters[key].prior
        known = None if prior is None else prior.sd
        sds.append(known or (sds[-1] if sds else 1.0))
    return np.array(sds)


def _refuse_unknown_noise(forward: ForwardMap, criteria: Mapping[str, str]) -> None:
    """Refuse problems whose noise does not determine how closely a function follows the data."""
    names = ", ".join(criteria)
    if not (forward.given_noise or forward.likelihood):
        raise InputError(
            f"[inputs] {names}: the smoothness follows from the noise of the data, which is not "
            'given; write, for example, [noise] y = { sd = "estimate" }, or give sd here and '
            "no smooth"
        )
    problem = forward.problem
    if "cv" in criteria.values() and any(u.key.endswith("_sd") for u in problem.unknowns):
        raise InputError(
            f'[inputs] {names}: smooth = "cv" needs noise of known size; take '
            'smooth = "reml" where it is estimated'
        )


def _begin(
    problem: Problem,
    forward: ForwardMap,
    start: Array | None,
    sds: Mapping[str, Array],
    control: Control,
) -> _Fits | None:
    """Return the first fit, from the guess or from the best of some random start values."""
    first = guess(problem) if start is None else start
    points = [] if first is None else [first]
    points += list(sample(problem, 0, BEGINNINGS, control.seed))
    best: _Fits | None = None
    for i, point in enumerate(points):
        if control.should_stop():
            break
        fits = _Fits(problem, control, forward, np.asarray(point, dtype=float))
        if not fits.at(sds):
            continue
        if i == 0 and first is not None:
            return fits
        assert fits.evaluation is not None
        if best is None or best.evaluation is None or fits.evaluation.cost < best.evaluation.cost:
            best = fits
    return best


def _fixed_point(
    fits: _Fits,
    names: Collection[str],
    sds: dict[str, float | Array],
    begun: Mapping[str, Array],
    control: Control,
) -> tuple[int, bool]:
    """Change `sds` to the optimum; return the number of fits, and whether it converged."""
    if not names:
        return 0, True
    for step in range(1, STEPS + 1):
        if control.should_stop():
            return step - 1, False
        moved = 0.0
        for name in names:
            asked = fits.next_sds(name, sds[name], begun[name])
            moved = max(moved, float(np.max(np.abs(np.log(asked / sds[name])))))
            sds[name] = asked
        if moved < SETTLED:
            return step, True
        if not fits.at(sds):
            return step, False
    return STEPS, False


def _cross_validated(
    fits: _Fits, name: str, sds: Mapping[str, float | Array], control: Control
) -> float:
    """Return the standard deviation of a function with the smallest cross-validation error."""
    from scipy.optimize import minimize_scalar

    known: dict[float, float] = {}

    def error(logarithm: float) -> float:
        key = float(logarithm)
        if key not in known:
            done = not control.should_stop() and fits.at({**sds, name: math.exp(key)})
            known[key] = fits.left_out() if done else math.inf
        return known[key]

    begun = float(np.max(sds[name]))
    middle = math.log(begun)
    grid = middle + np.linspace(3.0, -5.0, GRID) * math.log(10.0) / 2
    errors = [error(x) for x in grid]
    best = int(np.argmin(errors))
    if not math.isfinite(errors[best]):
        return begun
    ends = grid[min(best + 1, GRID - 1)], grid[max(best - 1, 0)]
    search: Callable[..., object] = minimize_scalar
    search(error, bounds=ends, method="bounded", options={"maxiter": 8, "xatol": 0.05})
    return math.exp(min(known, key=lambda key: known[key]))
