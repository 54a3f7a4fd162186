"""Problems whose unknowns have finite bounds, as every proof of a global optimum needs them.

Bounds that the problem lacks are given to the method, or proposed from the data on request; they
are never invented.
"""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np

from odefit.common.arrays import Array
from odefit.common.errors import InputError, one_of
from odefit.common.option_checks import number
from odefit.methods.domains import Domains
from odefit.methods.running.control import Control
from odefit.problem.noise import Noise
from odefit.problem.problem import Problem
from odefit.problem.variants.features import refuse_integrated_features
from odefit.problem.variants.start_ranges import ranges
from odefit.simulation import ForwardMap
from odefit.simulation.engines.cut_off import CountedSeconds
from odefit.simulation.engines.registry import EngineName

GivenBounds = Mapping[str, tuple[float, float]] | Literal["propose"] | None
"""The option `bounds` of a global method: bounds by name, or the acceptance of proposals."""

PROPOSAL_FACTOR = 10.0  # ratio of proposed bounds to the range of start values

MIN_POSITIVE_SHARE = 1e-3
"""Smallest value of a positive quantity, relative to its size, if nothing else is known."""

MIN_SECONDS = 0.01  # least number of seconds for a local search, however late it begins


@dataclass(frozen=True, eq=False)
class BoundedProblem:
    """The beginning of a global method: a problem with finite bounds, and a time limit."""

    original: Problem  # without these bounds
    problem: Problem
    control: Control
    engine: EngineName  # of the integrated trajectories
    began: float  # in seconds of time.perf_counter
    work: float = math.inf  # operations after which the method's own search ends

    @classmethod
    def of(
        cls,
        original: Problem,
        bounds: GivenBounds,
        control: Control,
        seconds: float,
        engine: EngineName,
        others: Sequence[str] = (),
        squares: bool = True,
    ) -> BoundedProblem:
        """Begin to solve a problem within a number of seconds, if `control` has no deadline.

        `others` may have bounds besides the unknowns. Raises InputError if bounds are missing or
        name something unknown, or if `squares` are needed and the noise or priors have others.
        """
        refuse_integrated_features(original, "a method that proves bounds")
        if squares:
            require_squares(original)
        check_names(original, bounds, others)
        began, work = time.perf_counter(), math.inf
        if control.deadline is None and isinstance(seconds, CountedSeconds):
            work = seconds.operations
        elif control.deadline is None:
            control = control.ending_in(seconds)
        problem = with_bounds(original, finite_bounds(original, bounds))
        return cls(original, problem, control, engine, began, work)

    @property
    def bounds(self) -> Array:
        """Bounds of the unknowns, shape (n, 2)."""
        return np.column_stack([self.problem.lower, self.problem.upper])

    @cached_property
    def forward(self) -> ForwardMap:
        """The forward map of the problem."""
        return ForwardMap(self.problem, self.engine)

    @property
    def seconds_left(self) -> float:
        """Seconds until the deadline; never negative."""
        assert self.control.deadline is not None
        return self.control.seconds_left

    def local_control(self, share: float) -> Control:
        """Return the control of a local search that may take this share of the remaining time."""
        if self.control.deadline is None:
            return self.control.for_part("local search")
        seconds = share * max(self.seconds_left, MIN_SECONDS)
        return self.control.for_part("local search").ending_in(seconds)

    @property
    def assumed(self) -> dict[str, tuple[float, float]]:
        """The bounds of unknowns, by key, that differ from those of the given problem."""
        limits = np.column_stack([self.original.lower, self.original.upper])
        same = (limits == self.bounds).all(axis=1)
        return {
            key: (float(low), float(high))
            for key, (low, high), equal in zip(self.original.keys, self.bounds, same, strict=True)
            if not equal
        }


def require_squares(problem: Problem) -> None:
    """Refuse noise and priors for which no bounds of the objective are known.

    These are noise that is not normal, censored values, and priors other than normal densities of
    the unknown or of its logarithm.
    """
    for key, prior in problem.priors.items():
        if not prior.gaussian:
            raise InputError(
                f"the prior of {key}, {prior}: this method bounds sums of squares, which belong to "
                "normal priors; BranchAndBound() in continuous time bounds others as well"
            )
    for condition in problem.conditions:
        for name, series in condition.series.items():
            noise = problem.noise.get(name, Noise())
            if noise.gaussian and series.censored is None:
                continue
            feature = "censored values" if noise.gaussian else noise.choice
            raise InputError(
                f"noise.{name}, {feature}: this method bounds sums of squares, which belong to "
                "normal noise; BranchAndBound() in continuous time bounds others as well"
            )


def finite_bounds(problem: Problem, asked: GivenBounds) -> Array:
    """Return finite bounds of all unknowns, shape (n, 2).

    Accepted proposals also replace a lower bound of at most zero if zero is impossible. Raises
    InputError, with proposals, if an unknown has no finite bounds.
    """
    bounds = np.column_stack([problem.lower, problem.upper])
    proposed = _proposals(problem)
    missing = []
    for k, key in enumerate(problem.keys):
        given_bounds = asked.get(key) if isinstance(asked, Mapping) else None
        if given_bounds is not None:
            bounds[k] = max(bounds[k, 0], given_bounds[0]), min(bounds[k, 1], given_bounds[1])
            if bounds[k, 0] > bounds[k, 1]:
                raise InputError(
                    f"bounds, {key!r}: {tuple(given_bounds)} does not overlap with the "
                    f"problem's own bounds, {problem.lower[k]:g} to {problem.upper[k]:g}"
                )
        at_zero = asked == "propose" and bounds[k, 0] <= 0.0 < proposed[k][0]
        if np.isfinite(bounds[k]).all() and not at_zero:
            continue
        if asked == "propose":
            free = ~np.isfinite(bounds[k]) | np.array([at_zero, False])
            bounds[k] = np.where(free, proposed[k], bounds[k])
        else:
            missing.append(f'"{key}": ({proposed[k][0]:.3g}, {proposed[k][1]:.3g})')
    if missing:
        raise InputError(
            "global optimisation needs finite bounds of all unknowns, and some have none. The data "
            f"suggest bounds={{{', '.join(missing)}}}; give better ones in the problem or by this "
            'option, or accept these with bounds="propose" (on the command line, --bounds propose)'
        )
    return bounds


def _proposals(problem: Problem) -> list[tuple[float, float]]:
    """Return proposed bounds, which are wide compared with the ranges of start values.

    The lower bound is positive where zero is impossible: for standard deviations, for unknowns
    whose reciprocal or logarithm the equations contain, and on a logarithmic scale.
    """
    proposed = []
    domains = Domains.of(problem)
    for unknown, r in zip(problem.unknowns, ranges(problem), strict=True):
        p = unknown.parameter
        width = PROPOSAL_FACTOR * max(abs(r.low), abs(r.high))
        low = 0.0 if r.low >= 0 else -width
        positive = p.scale == "log10" or unknown.name in domains.positive
        positive = positive or (unknown.name in domains.nonzero and r.low >= 0)
        if positive:
            low = (r.low if r.low > 0 else MIN_POSITIVE_SHARE * r.high) / PROPOSAL_FACTOR
        if p.upper <= low:
            low = p.upper / PROPOSAL_FACTOR if positive and p.upper > 0 else p.upper - width
        lower = p.lower if math.isfinite(p.lower) and not (positive and p.lower <= 0) else low
        low = lower if lower == p.lower else float(f"{lower:.2g}")
        high = p.upper if math.isfinite(p.upper) else float(f"{max(width, low + width):.2g}")
        if p.guess is not None:
            low, high = min(low, p.guess), max(high, p.guess)
        proposed.append((low, high))
    return proposed


def with_bounds(problem: Problem, bounds: Array) -> Problem:
    """Return `problem` with these bounds of its unknowns, shape (n, 2)."""
    if (problem.lower == bounds[:, 0]).all() and (problem.upper == bounds[:, 1]).all():
        return problem
    bounded = copy.copy(problem)
    bounded.unknowns = tuple(
        replace(u, parameter=replace(u.parameter, lower=float(a), upper=float(b)))
        for u, (a, b) in zip(problem.unknowns, bounds, strict=True)
    )
    for name in ("lower", "upper"):  # computed from the unknowns, and kept
        vars(bounded).pop(name, None)
    return bounded


def with_held(problem: Problem, number: int, value: float) -> Problem:
    """Return `problem` with one unknown held at a value by its bounds."""
    bounds = np.column_stack([problem.lower, problem.upper])
    bounds[number] = value
    return with_bounds(problem, bounds)


def check_bounds(owner: str, asked: Any) -> None:
    """Refuse an unusable value of the option `bounds` of the method `owner`."""
    if asked is None or asked == "propose":
        return
    if not isinstance(asked, Mapping):
        raise InputError(
            f'{owner}, bounds: expected {{"name": (lower, upper)}} or "propose", got {asked!r}'
        )
    for name, pair in asked.items():
        place = f"{owner}, bounds, {name!r}"
        if not isinstance(pair, Sequence) or len(pair) != 2:
            raise InputError(f"{place}: expected (lower, upper), got {pair!r}")
        for end in pair:
            number(end, place)
        if pair[0] > pair[1]:
            raise InputError(f"{place}: the lower bound is above the upper bound, got {pair!r}")


def check_names(problem: Problem, asked: GivenBounds, others: Sequence[str] = ()) -> None:
    """Refuse bounds of names that neither the problem nor `others` have; list all of them."""
    if not isinstance(asked, Mapping):
        return
    known = [*problem.keys, *others]
    wrong = [
        f"bounds: there is no {name!r}{one_of(name, known)}" for name in asked if name not in known
    ]
    if wrong:
        raise InputError(wrong)
