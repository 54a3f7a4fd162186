"""The campaign's comparison with SciPy: a typical hand-written script.

`least_squares` has the bounds and takes finite differences, in log10 coordinates where the problem
asks for them. It begins at the same start values as the package, one after the other; the best end
counts. Where standard deviations depend on unknowns, each adds a residual sqrt(2 (log sd + 25)) to
that of its measurement. Half the sum of squares is then the negative log-likelihood, except for a
constant (A. Raue et al., Lessons learned from quantitative dynamical modeling in systems biology,
2013, do so). That serves SciPy better than its `minimize` by L-BFGS-B on the negative
log-likelihood. In 30 s and from the same starts it reached more on six of the seven published
problems with such noise. These are Boehm -145.8 beside -147.6, Elowitz 21.4 beside -6.9, Perelson
-222.3 beside -227.6, Giordano 2914 beside 2000, Fiedler 27 beside 4, and Raia -637 beside -105104.
It reached less on Brannmark, where both were far from any fit.
"""

from __future__ import annotations

import time
import warnings

import numpy as np
from scipy.optimize import least_squares

from evidence.peers.script import LARGE, Script
from evidence.peers.stated import Found, check_stated, estimates_noise
from odefit import Problem
from odefit.common.arrays import Array
from odefit.methods.starts import sample

STARTS = 10  # the number of starts
STEP = 1e-6  # relative step of the finite differences, for integrations with a tolerance of 1e-9
LOG_SHIFT = 25.0  # added to logarithms of standard deviations, so that they have a root
SMALLEST = 1e-12  # the lower bound of a standard deviation without one


class _Late(Exception):  # noqa: N818 - no error
    """The time limit has passed."""


def by_hand(problem: Problem, seed: int, limit: float) -> Found:
    """Fit from ten starts, or fewer at the time limit."""
    check_stated(problem)
    deadline = time.monotonic() + limit
    best: list[tuple[float, Array]] = []

    def check() -> None:
        if time.monotonic() >= deadline:
            raise _Late

    script = Script(problem, check)
    coordinates = Coordinates(problem)
    noise = estimates_noise(problem)

    def residuals(x: Array) -> Array:
        vector = coordinates.natural(x)
        found = with_noise(script, vector) if noise else script.residuals(vector)
        cost = float(found @ found)
        if not best or cost < best[0][0]:
            best[:] = [(cost, vector)]
        return found

    starts = 0
    late = False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scripts of this kind warn without end
        for start in sample(problem, 0, STARTS, seed):
            try:
                starts += 1
                least_squares(
                    residuals,
                    coordinates.of(start),
                    bounds=(coordinates.lower, coordinates.upper),
                    diff_step=(STEP,),
                )
            except _Late:
                late = True
                break
            except ValueError:  # residuals that are not finite, a start at its bound
                continue
    return Found(best[0][1] if best else None, starts, late, f"{starts} starts")


def with_noise(script: Script, vector: Array) -> Array:
    """Return residuals and roots of shifted logarithms of standard deviations, shape (2 n,)."""
    stated = [s for parts in script.statements(vector) for s in parts.values()]
    residuals = np.concatenate([s.residuals for s in stated])
    with np.errstate(all="ignore"):
        logs = 2 * (np.log(np.concatenate([s.sds for s in stated])) + LOG_SHIFT)
    roots = np.where(logs >= 0, np.sqrt(np.maximum(logs, 0.0)), LARGE)
    return np.concatenate([residuals, roots])


class Coordinates:
    """The coordinates of the search: natural units, or log10 where the problem asks for it.

    Logarithms are 1 at the lower bound, so that a relative step is never tiny.
    """

    def __init__(self, problem: Problem) -> None:
        scaled = [u.parameter.scale == "log10" for u in problem.unknowns]
        noise = np.array([u.kind == "noise" for u in problem.unknowns], dtype=bool)
        least = np.where(noise, np.maximum(problem.lower, SMALLEST), problem.lower)
        self._log = (noise | np.array(scaled, dtype=bool)) & (least > 0)
        self._least = np.where(self._log, least, 1.0)
        self.lower, self.upper = self.of(least), self.of(problem.upper)

    def of(self, vector: Array) -> Array:
        """Return the coordinates of unknowns in natural units, shape (n,)."""
        with np.errstate(all="ignore"):
            return np.where(self._log, np.log10(vector / self._least) + 1, vector)

    def natural(self, x: Array) -> Array:
        """Return the unknowns of coordinates, shape (n,)."""
        with np.errstate(over="ignore"):
            return np.where(self._log, self._least * 10 ** np.where(self._log, x - 1, 0.0), x)
