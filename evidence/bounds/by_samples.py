"""Many trajectories at once by SciPy alone: objectives at samples, and local searches.

Nothing here comes from odefit. The states of all vectors of unknowns are one system for SciPy's
explicit Runge-Kutta method of order 8. Its error is controlled on average, so the lowest objectives
are computed again one by one (:class:`evidence.peers.by_scipy.ByHand`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import solve_ivp
from scipy.optimize import least_squares

from evidence.peers.by_scipy import compiled
from evidence.zoo.drawing import Drawn
from evidence.zoo.searching import bounded_residuals

Array = NDArray[np.float64]
TOGETHER = 1000  # trajectories of one integration
RELATIVE, ABSOLUTE = 1e-6, 1e-8  # tolerances on average, the second in units of the observables
LARGEST = 1e6  # size of a state, in units of the observables, at which its trajectory ends
ITERATIONS = 25  # of the local searches
STEP = 1e-4  # of differences, in logarithms
AGAIN = 20  # lowest objectives of the samples that are computed again
POLISHED = 5  # best ends of local searches that are searched further
FUNCTIONS = {"exp": np.exp, "log": np.log, "sin": np.sin, "cos": np.cos, "sqrt": np.sqrt}


class Together:
    """A problem with one experiment, without inputs or events, for many vectors of unknowns.

    The unknowns are logarithms, shape (m, n), in the order of `keys`, between `lower` and `upper`.
    """

    def __init__(self, drawn: Drawn) -> None:
        self._hand, mapping = drawn.by_hand, drawn.mapping
        self._run = self._hand.runs[0]
        self.keys = list(drawn.truth)
        tables: Mapping[str, Any] = {**mapping["initial"], **mapping["parameters"]}
        self.lower, self.upper = (
            np.log([tables[key][side] for key in self.keys]) for side in ("lower", "upper")
        )
        self._slopes = [compiled(text) for text in mapping["ode"].values()]
        series = self._run.series
        self._seen = {name: compiled(mapping["observables"][name]) for name in series}
        self._sd = {name: float(mapping["noise"][name]["sd"]) for name in series}
        self._size = max(float(np.abs(s.values).max()) for s in series.values())
        self._initial = mapping["initial"]
        self._constants = mapping["constants"]

    def residuals(self, logs: Array) -> Array:
        """Return the weighted residuals of all vectors, shape (m, R); NaN where it fails."""
        parts = [logs[k : k + TOGETHER] for k in range(0, len(logs), TOGETHER)]
        with np.errstate(all="ignore"):
            return np.concatenate([self._together(part) for part in parts])

    def objectives(self, logs: Array) -> Array:
        """Return the sums of squares of all vectors, shape (m,); infinite where it fails."""
        squares = (self.residuals(logs) ** 2).sum(axis=1)
        return np.where(np.isfinite(squares), squares, np.inf)

    def _together(self, logs: Array) -> Array:
        count, states = len(logs), list(self._initial)
        unknown = dict(zip(self.keys, np.exp(logs).T, strict=True))
        names = {**FUNCTIONS, **self._constants, **unknown}
        x = [np.full(count, v) if np.isscalar(v) else unknown[k] for k, v in self._initial.items()]

        def slopes(t: float, y: Array) -> Array:
            now = y.reshape(len(states), count)
            values = {**names, **dict(zip(states, now, strict=True)), "t": t}
            # The formulas were compiled from problems that this campaign itself has written.
            rates = [eval(c, {"__builtins__": {}}, values) + 0 * now[0] for c in self._slopes]  # noqa: S307
            alive = (np.abs(now) < LARGEST * self._size).all(axis=0)
            return np.where(alive, rates, 0.0).ravel()

        times = self._run.times
        path = solve_ivp(
            slopes,
            (self._run.t0, float(times[-1])),
            np.concatenate(x).astype(float),
            "DOP853",
            times,
            rtol=RELATIVE,
            atol=ABSOLUTE * self._size,
        )
        found: list[Array] = []
        for name, code in self._seen.items():
            series = self._run.series[name]
            if not path.success:
                found.append(np.full((count, len(series.values)), np.nan))
                continue
            curves = path.y.reshape(len(states), count, len(times))
            values = {**names, **dict(zip(states, curves, strict=True))}
            curve = eval(code, {"__builtins__": {}}, values)[:, series.rows]  # noqa: S307
            found.append((curve - series.values) / self._sd[name])
        residuals = np.concatenate(found, axis=1)
        lost = np.asarray(~(np.abs(residuals) < LARGEST).all(axis=1))
        return np.where(lost[:, None], np.nan, residuals)

    def ends(self, logs: Array) -> tuple[Array, Array]:
        """Return where local searches from these points end, and their objectives.

        They are Levenberg's and Marquardt's, all at once, with derivatives by differences.
        """
        here, n = logs.copy(), logs.shape[1]
        value, damping = self.objectives(here), np.full(len(logs), 1e-2)
        for _ in range(ITERATIONS):
            shifted = [here, *(here + STEP * np.eye(n)[k] for k in range(n))]
            all_of = self.residuals(np.concatenate(shifted)).reshape(n + 1, len(logs), -1)
            r = np.nan_to_num(all_of[0])
            jacobian = np.nan_to_num((all_of[1:] - all_of[0]) / STEP)
            gradient = np.einsum("kmr,mr->mk", jacobian, r)
            curvature = np.einsum("kmr,lmr->mkl", jacobian, jacobian)
            # Unknowns at a bound that the gradient holds there do not move.
            held = ((here <= self.lower) & (gradient > 0)) | ((here >= self.upper) & (gradient < 0))
            curvature[held[:, :, None] | held[:, None, :]] = 0.0
            scale = np.einsum("mkk->mk", curvature) + 1e-12
            matrix = curvature + np.eye(n) * (damping[:, None] * scale + held)[:, :, None]
            step = np.linalg.solve(matrix, np.where(held, 0.0, gradient)[:, :, None])[:, :, 0]
            there = np.clip(here - step, self.lower, self.upper)
            after = self.objectives(there)
            better = after < value
            here = np.where(better[:, None], there, here)
            value = np.where(better, after, value)
            damping = np.clip(np.where(better, damping / 4, damping * 4), 1e-9, 1e9)
        return here, value

    def least(self, samples: int, searches: int, random: np.random.Generator) -> float:
        """Return the lowest objective of samples and local searches, computed again one by one."""
        points = random.uniform(self.lower, self.upper, (samples, len(self.keys)))
        best = points[np.argsort(self.objectives(points), kind="stable")[:AGAIN]]
        starts = random.uniform(self.lower, self.upper, (searches, len(self.keys)))
        ends, values = self.ends(starts)
        last = ends[np.argsort(values, kind="stable")[:POLISHED]]
        return min(map(self._measured, [*best, *(self._polished(end) for end in last)]))

    def _polished(self, logs: Array) -> Array:
        """Return the local minimum next to a point, by SciPy alone."""
        inside = np.clip(logs, self.lower + 1e-9, self.upper - 1e-9)

        def residuals(at: Array) -> Array:
            return np.asarray(bounded_residuals(self._hand, self._named(at)))

        bounds = self.lower, self.upper
        return np.asarray(least_squares(residuals, inside, "3-point", bounds, max_nfev=40).x)

    def _measured(self, logs: Array) -> float:
        try:
            return float(self._hand.measure(self._named(logs)))
        except (ArithmeticError, ValueError):  # SciPy cannot integrate there
            return np.inf

    def _named(self, logs: Array) -> dict[str, float]:
        return dict(zip(self.keys, np.exp(logs).tolist(), strict=True))
