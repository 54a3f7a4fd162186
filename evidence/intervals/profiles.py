"""Profile likelihoods: their ends beside refits by another optimiser, and their cost.

A problem is the name of one of the library, "enzyme" (Michaelis-Menten by mass action, of which
only the product is measured: 40 values with a standard deviation of 0.1, rates 100, 300 and 10
within [1e-2, 1e5]), or a file: TOML, or the same as JSON. All is computed on one core.

fit, profiles
    Evaluations of the model and seconds of the default fit, and of all profiles; the last column is
    the ratio of the seconds.
ends
    The number of ends found, of all ends (open ends are not counted), and the largest of their
    errors relative to the width of the interval (to the distance from the estimate where the other
    end is open). At each end the unknown is held and the others are fitted again by
    scipy.optimize.minimize (SLSQP) in logarithms where the scale is logarithmic, from the estimate
    and from several points between it and random ones; the error is the deviance there over the
    slope between the refits at both sides of the end. Where the valley of the best fits is too
    narrow for that, refits are on shooting nodes, too: SLSQP with continuity as its constraint.
    These begin at the profile's own point, at deviations of it, at the estimate, and at the closest
    points of other profiles; the slope is that of the profile. Where no refit joins its intervals
    at some ends, the number of checked ends is shown.

A second table lists all sides: the kind and place of their end, and the lowest deviance of the
refits there. Notes below the first table give the reasons for missing ends.

With the option `grid` whole curves are compared instead: at this number of values of each unknown,
evenly spaced in its coordinate over its interval (or over the drawn range where an end is open or
not found). Refits by SLSQP begin at the estimate, at the refit before, and at the profile's own
nearest point; in narrow valleys on nodes, at the profile's own nearest point and the closest point
of another profile. All differences are those of the curve through the points of the profile, with
their slopes.

above
    The largest height of the curve above a refit: the error of the profile as lowest cost.
below
    The largest height of a refit above the curve.
shift
    The larger of both over the slope of the curve, relative to the width of the compared range,
    where the deviance is at least a quarter of its limit.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy.interpolate import CubicHermiteSpline
from scipy.optimize import minimize

import odefit
from evidence.intervals.coverage_problems import enzyme
from evidence.intervals.refits_on_nodes import RefitsOnNodes
from evidence.running.campaign import Option, Record, Task, tasks_of
from evidence.running.measuring import problem_named
from evidence.running.measuring import seconds as in_seconds
from evidence.running.output import listed
from odefit import ForwardMap
from odefit.assessment.intervals.deviance import Deviance
from odefit.assessment.profiles import Profile, ProfilesData
from odefit.assessment.profiles.noise_limits import limits_by_unknown
from odefit.assessment.profiles.on_nodes import is_narrow, suits_nodes
from odefit.methods.local.scaling import Scaling
from odefit.simulation import Evaluation

ATTEMPTS = 3  # numbers of random starts of a refit beside that from the estimate

# Deviations of the start of a refit on nodes from the point of the profile, in coordinates
DEVIATIONS = (0.0, 0.02, 0.1)
NEIGHBOURS = 3  # number of other profiles from whose closest points refits on nodes begin
ASIDE = 0.02  # distance of the two refits beside an end, relative to its distance from the estimate


def loaded(name: str) -> odefit.Problem:
    times = np.linspace(0.25, 10.0, 40).tolist()
    return enzyme(times, 10.0) if name == "enzyme" else problem_named(name)


class Refits:
    """Refits with one unknown held, by an optimiser of SciPy."""

    def __init__(self, problem: odefit.Problem, vector: np.ndarray) -> None:
        self.forward = ForwardMap(problem)
        self.scaling = Scaling.of(problem)
        evaluation = self.forward.evaluate(vector)
        assert isinstance(evaluation, Evaluation)
        self.deviance = Deviance.of(self.forward, vector, evaluation)
        self.vector = vector
        narrow = suits_nodes(problem) and is_narrow(evaluation, vector, self.deviance.variance)
        self.on_nodes = RefitsOnNodes(problem) if narrow else None
        self.sizes = np.where(self.scaling.logarithmic, 1.0, np.maximum(np.abs(vector), 1e-300))

    def lowest(self, index: int, at: float, starts: list[np.ndarray]) -> tuple[float, np.ndarray]:
        """Return the lowest deviance with the unknown at this coordinate, and its vector."""
        others = np.arange(len(self.vector)) != index
        sizes = self.sizes[others]

        def full(u: np.ndarray) -> np.ndarray:
            z = np.empty(len(self.vector))
            z[others], z[index] = u * sizes, at
            return self.scaling.natural(z)

        def cost(u: np.ndarray) -> Any:
            x = full(u)
            found = self.forward.evaluate(x)
            if not isinstance(found, Evaluation):
                return 1e10, np.zeros(len(u))
            gradient = (found.jacobian.T @ found.residuals) * self.scaling.derivative(x)
            value = self.deviance.at(found.cost)
            return value, 2 / self.deviance.variance * gradient[others] * sizes

        bounds = list(
            zip(self.scaling.lower[others] / sizes, self.scaling.upper[others] / sizes, strict=True)
        )
        best, where = math.inf, self.vector
        for start in starts:
            u = self.scaling.coordinates(start)[others] / sizes
            options: Any = {"maxiter": 500, "ftol": 1e-10}
            for _ in range(3):
                with np.errstate(all="ignore"):
                    end = minimize(
                        cost, u, jac=True, bounds=bounds, method="SLSQP", options=options
                    )
                u = end.x
            if end.fun < best:
                best, where = float(end.fun), full(end.x)
        return best, where

    def limit(self, profile: Profile, end: float, profiles: ProfilesData) -> float:
        """Return the limit of the deviance at an end, by side for standard deviations."""
        evaluation = self.forward.evaluate(self.vector)
        assert isinstance(evaluation, Evaluation)
        own = limits_by_unknown(self.forward, self.vector, evaluation, profiles.level)
        index = self.forward.problem.keys.index(profile.key)
        lower, upper = own.get(index, (profiles.limit, profiles.limit))
        return lower if end < profile.estimate else upper

    def at_end(
        self, profile: Profile, end: float, profiles: ProfilesData, random: np.random.Generator
    ) -> tuple[float, float]:
        """Return the lowest deviance of the refits at an end, and the error of its coordinate."""
        limit = self.limit(profile, end, profiles)
        index = self.forward.problem.keys.index(profile.key)
        at = math.log10(end) if profile.logarithmic else end
        middle = math.log10(profile.estimate) if profile.logarithmic else profile.estimate
        if self.on_nodes is not None:
            curve, points = interpolated(profile)
            costs = [
                self.on_nodes.cost(index, end, start, away, seed)
                for seed, (start, away) in enumerate(starts_on_nodes(profile, end, profiles))
            ]
            lowest = self.deviance.at(min(costs))
            slope = float(curve(min(max(at, points[0]), points[-1]), 1))
            return lowest, abs((lowest - limit) / slope)
        starts = [self.vector]
        for _ in range(ATTEMPTS):
            z = self.scaling.coordinates(self.vector)
            z = z + 0.3 * self.sizes * random.normal(size=len(z))
            starts.append(self.scaling.natural(np.clip(z, self.scaling.lower, self.scaling.upper)))
        here, where = self.lowest(index, at, starts)
        aside = ASIDE * (at - middle)
        beyond, _ = self.lowest(index, at + aside, [where])
        before, _ = self.lowest(index, at - aside, [where])
        return here, abs((here - limit) / ((beyond - before) / (2 * aside)))


def starts_on_nodes(
    profile: Profile, end: float, profiles: ProfilesData
) -> list[tuple[np.ndarray, float]]:
    """Return the vectors from which refits on nodes begin at an end, and their deviations."""
    own = profile.vectors[int(np.argmin(np.abs(profile.values - end)))]
    others = [profiles.vector, *closest(profile, end, profiles)[:NEIGHBOURS]]
    return [(own, away) for away in DEVIATIONS] + [(vector, 0.0) for vector in others]


def closest(profile: Profile, value: float, profiles: ProfilesData) -> list[np.ndarray]:
    """Return the closest point of each other profile to a value of an unknown."""
    index = [p.key for p in profiles.profiles].index(profile.key)
    scale = np.log10 if profile.logarithmic else np.asarray
    found = []
    for other in profiles.profiles:
        if other is not profile:
            distances = np.abs(scale(other.vectors[:, index]) - scale(value))
            k = int(np.argmin(np.where(other.deviances <= profiles.limit, distances, math.inf)))
            found.append((float(distances[k]), other.key, other.vectors[k]))
    return [vector for _, _, vector in sorted(found, key=lambda f: f[:2])]


def row(name: str) -> tuple[list[str], list[list[str]], list[str]]:
    """Return the row of a problem, those of its sides, and the reasons for missing ends."""
    problem = loaded(name)
    began = time.perf_counter()
    result = odefit.fit(problem, jobs=1)
    fit = time.perf_counter() - began
    began = time.perf_counter()
    profiles = result.profile(jobs=1)
    spent = time.perf_counter() - began
    refits = Refits(problem, profiles.vector)
    sides, reasons = [], []
    random = np.random.default_rng(1)
    worst, wanted, found, checked = 0.0, 0, 0, 0
    for profile in profiles.profiles:
        scale = np.log10 if profile.logarithmic else np.asarray
        limits = [v for v in (profile.lower, profile.upper) if math.isfinite(v)]
        wanted += sum(not math.isinf(v) for v in (profile.lower, profile.upper))
        found += len(limits)
        width = (
            float(scale(profile.upper) - scale(profile.lower))
            if profile.closed
            else max([abs(float(scale(v) - scale(profile.estimate))) for v in limits], default=1.0)
        )
        for side, end, how, reason in zip(
            ("lower", "upper"),
            (profile.lower, profile.upper),
            profile.ends,
            profile.reasons,
            strict=True,
        ):
            cells = ["", "", ""]
            if reason:
                reasons.append(f"- {profile.key}, {side}: {reason}.")
            if math.isfinite(end):
                lowest, error = refits.at_end(profile, end, profiles, random)
                if math.isfinite(error):
                    worst = max(worst, error / width)
                    checked += 1
                cells = [f"{end:.5g}", f"{lowest:.4f}", f"{100 * error / width:.2g} %"]
            sides.append([f"{profile.key}, {side}", how, f"{profile.estimate:.5g}", *cells])
    found_row = [
        problem.name,
        str(len(problem.keys)),
        str(sum(s.evaluations for s in result.starts)),
        in_seconds(fit),
        str(profiles.evaluations),
        str(profiles.minimisations),
        in_seconds(spent),
        f"{spent / fit:.2f}",
        f"{found} of {wanted}",
        f"{100 * worst:.2g} %" + ("" if checked == found else f" of {checked}"),
    ]
    return found_row, sides, reasons


def interpolated(profile: Profile) -> tuple[CubicHermiteSpline, np.ndarray]:
    """Return the curve through the points of a profile, and its points in its coordinate."""
    at = np.log10(profile.values) if profile.logarithmic else np.asarray(profile.values)
    at, index = np.unique(at, return_index=True)
    return CubicHermiteSpline(at, profile.deviances[index], profile.slopes[index]), at


def grid_row(problem: odefit.Problem, profiles: ProfilesData, count: int) -> list[str]:
    """Return the row of a problem's whole curves beside refits on a grid."""
    refits = Refits(problem, profiles.vector)
    above = below = shift = 0.0
    compared = 0
    for profile in profiles.profiles:
        curve, points = interpolated(profile)
        scale = np.log10 if profile.logarithmic else np.asarray
        low, high = (
            float(scale(end)) if math.isfinite(end) else drawn
            for end, drawn in zip(
                (profile.lower, profile.upper), (points[0], points[-1]), strict=True
            )
        )
        if not low < high:
            continue
        index = problem.keys.index(profile.key)
        grid = np.linspace(low, high, count)
        middle = float(scale(profile.estimate))
        # Go outwards from the estimate, so that each refit can begin at its neighbour.
        for side in (grid[grid < middle][::-1], grid[grid >= middle]):
            neighbour = profiles.vector
            for at in side:
                value = float(10**at if profile.logarithmic else at)
                nearest = profile.vectors[int(np.argmin(np.abs(profile.values - value)))]
                if refits.on_nodes is None:
                    starts = [profiles.vector, neighbour, nearest]
                    lowest, neighbour = refits.lowest(index, float(at), starts)
                else:
                    starts = [nearest, *closest(profile, value, profiles)[:1]]
                    costs = [refits.on_nodes.cost(index, value, start) for start in starts]
                    lowest = refits.deviance.at(min(costs))
                    if math.isinf(lowest):
                        continue
                difference = float(curve(at)) - lowest
                above, below = max(above, difference), max(below, -difference)
                compared += 1
                slope = abs(float(curve(at, 1)))
                if float(curve(at)) >= 0.25 * profiles.limit and slope > 0:
                    shift = max(shift, abs(difference) / slope / (high - low))
    return [
        problem.name,
        str(len(problem.keys)),
        str(compared),
        f"{profiles.limit:.3g}",
        f"{above:.2g}",
        f"{below:.2g}",
        f"{100 * shift:.2g} %",
    ]


GRID = (
    *("problem", "unknowns", "values compared", "limit of the deviance"),
    *("curve above refits, at most", "refits above curve, at most", "largest shift, of the width"),
)
HEAD = (
    *("problem", "unknowns", "evaluations of the fit", "fit", "evaluations of the profiles"),
    *("refits", "profiles", "profiles/fit", "ends found", "largest error"),
)
SIDES = ("problem", "side", "how it ends", "estimate", "end", "deviance of the refits", "error")
OPTIONS = (
    Option("problems", ("alpha-pinene", "enzyme"), "problems of the library, enzyme, or files"),
    Option("grid", 0, "number of values at which whole curves are compared instead", least=0),
)


def tasks(problems: Sequence[str], grid: int) -> list[Task]:
    return tasks_of("problem", problems, grid=grid)


def run(task: Task) -> Mapping[str, Any]:
    if task["grid"]:
        problem = loaded(task["problem"])
        profiles = odefit.fit(problem, jobs=1).profile(jobs=1)
        return {"grid": grid_row(problem, profiles, task["grid"])}
    cells, sides, reasons = row(task["problem"])
    return {"rows": [cells], "sides": [[cells[0], *side] for side in sides], "notes": reasons}


def tables(records: Sequence[Record]) -> Mapping[str, pd.DataFrame]:
    results = [r.result for r in records if r.result is not None]
    grid = [r["grid"] for r in results if "grid" in r]
    if grid:
        return {"grid": listed(GRID, grid)}
    sides = [side for r in results for side in r["sides"]]
    return {"profiles": listed(HEAD, records), "sides": listed(SIDES, sides)}
