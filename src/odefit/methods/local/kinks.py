"""Minima in kinks of a cost, where the smooth pieces of equations with switches or events meet.

A residual has a kink where an event passes its measurement. If the minimum lies in a kink, no
gradient vanishes there, and steps by the model of one side become ever shorter. Here the models of
several pieces are combined, each from a point on its side: the next point minimises the largest of
them (C. Lemaréchal, An extension of Davidon methods to non differentiable problems, 1975, with the
Gauss-Newton Hessian of each piece). At the minimum a weighted mean of the gradients of all pieces
that meet there is zero (F. H. Clarke, Optimization and nonsmooth analysis, 1983).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from odefit.common.arrays import Array, BoolArray, IntArray
from odefit.methods.local.stopping import Minimum, Quadratic, Tolerances
from odefit.methods.local.trust_region import magnitudes, minimise

AT_MINIMUM, NO_STEP = (
    "no further decrease is possible",
    "no smaller step improves the fit",
)

SHORTER = 0.5  # ratio of the lengths of two failed steps up to which their slopes are compared

SAME_SLOPE = 0.6
"""Ratio of the slopes at the ends of the shorter and the longer failed step above which a kink lies
between them. The slope of a smooth cost falls with the length.
"""

MOST_PIECES = 6  # largest number of pieces whose models are combined

ACCEPTED = 1e-2  # share of the promised decrease above which a step is taken
GOOD = 0.5  # and above which the next may be longer

FIRST_DAMPING, LEAST_DAMPING, MOST_DAMPING = 1e-3, 1e-9, 1e12
"""Damping of steps, relative to the largest curvature of each unknown."""

MOST_FAILED = 4  # successive failed steps after which the damping grows

COARSER = 100.0
"""Factor of the tolerance of the cost along kinks, where Gauss-Newton steps gain slowly."""

NEAR = 0.3  # change by curvature up to which a model is accurate, in that tolerance

USUAL_SHARE = 0.05  # share of the way to a piece, if its model does not give the place of the kink
LEAST_SHARE = 1e-6  # share of the way to a piece within which no kink is sought
MOST_NEARER = 4  # largest number of points at which the kink before a piece is sought

MOST_ALONG = 120  # largest number of evaluations along kinks before single-piece steps resume

ALONE = 3  # successive steps decided by one piece after which the cost counts as smooth


@dataclass(frozen=True, eq=False)
class Piece:
    """A smooth piece of a cost by its quadratic model at a point, shape (n,)."""

    x: Array
    cost: float
    gradient: Array
    hessian: Array

    @classmethod
    def of(cls, x: Array, at: Quadratic) -> Piece:
        """Return the piece of a cost at a point, from its Gauss-Newton model there."""
        jacobian = at.jacobian
        return cls(x, at.cost, jacobian.T @ at.residuals, jacobian.T @ jacobian)

    def distance(self, x: Array) -> float:
        """Return the change of the model by its curvature alone from its point to another."""
        d = x - self.x
        return 0.5 * float(d @ self.hessian @ d)

    def seen_from(self, x: Array) -> tuple[float, Array]:
        """Return the value and the gradient of the model at another point."""
        d = x - self.x
        bent = self.hessian @ d
        return self.cost + float(self.gradient @ d) + 0.5 * float(d @ bent), self.gradient + bent


# Squares overflow far from any sensible answer, as in the trust-region method.
@np.errstate(all="ignore")
def minimise_past_kinks(
    evaluate: Callable[[Array], Quadratic | None],
    start: Array,
    lower: Array,
    upper: Array,
    tolerances: Tolerances,
    stop: Callable[[], bool] = lambda: False,
    sizes: Array | None = None,
) -> Minimum:
    """Minimise a cost with kinks within bounds: by smooth steps, and along kinks where they fail.

    The arguments are those of :func:`odefit.methods.local.trust_region.minimise`.
    """
    x, count = start, 0
    while True:
        watched = _Watched(evaluate)
        left = replace(tolerances, evaluations=tolerances.evaluations - count)

        def halted(watched: _Watched = watched) -> bool:
            return watched.kinked or stop()

        minimum = minimise(watched, x, lower, upper, left, halted, sizes=sizes)
        count += minimum.evaluations
        if not watched.kinked or minimum.evaluation is None or stop():
            return replace(minimum, evaluations=count)
        left = replace(tolerances, evaluations=tolerances.evaluations - count)
        few = replace(left, evaluations=min(left.evaluations, MOST_ALONG))
        along = _Along(evaluate, lower, upper, few, stop, sizes)
        ended, smooth = along.descend(minimum, watched.beyond)
        count += ended.evaluations
        if ended.converged or count >= tolerances.evaluations:
            return replace(ended, evaluations=count)
        x = ended.vector
        if not smooth:  # single-piece steps may succeed where combined steps have failed
            left = replace(tolerances, evaluations=tolerances.evaluations - count)
            last = minimise(evaluate, x, lower, upper, left, stop, sizes=sizes)
            return replace(last, evaluations=count + last.evaluations)


class _Watched:
    """A cost that detects kinks: two failed steps have about the same slope at their ends."""

    def __init__(self, evaluate: Callable[[Array], Quadratic | None]) -> None:
        self._evaluate = evaluate
        self._best: Piece | None = None
        self._failed: tuple[float, float] | None = None  # length and slope of the last failed step
        self.beyond: list[Piece] = []
        self.kinked = False

    def __call__(self, x: Array) -> Quadratic | None:
        at = self._evaluate(x)
        if at is None or not math.isfinite(at.cost):
            self._failed = None
            return at
        piece, best = Piece.of(x, at), self._best
        if best is None or piece.cost < best.cost:
            self._best, self._failed, self.beyond = piece, None, []
            return at
        d = x - best.x
        length = float(np.linalg.norm(d))
        if length == 0.0:
            return at
        slope = float(piece.gradient @ d) / length
        if slope > 0 and float(best.gradient @ d) < 0:
            if self._failed is not None and length <= SHORTER * self._failed[0]:
                self.kinked |= slope > SAME_SLOPE * self._failed[1]
            self._failed = length, slope
            self.beyond = [*self.beyond[-1:], piece]
        return at


class _Along:
    """A descent along kinks by the models of several pieces."""

    def __init__(
        self,
        evaluate: Callable[[Array], Quadratic | None],
        lower: Array,
        upper: Array,
        tolerances: Tolerances,
        stop: Callable[[], bool],
        sizes: Array | None,
    ) -> None:
        self._evaluate, self._stop = evaluate, stop
        self._lower, self._upper = lower, upper
        self._tolerances, self._sizes = tolerances, sizes

    def descend(self, minimum: Minimum, beyond: Sequence[Piece]) -> tuple[Minimum, bool]:
        """Return the end of the descent, and whether the cost is smooth from there on."""
        assert minimum.evaluation is not None
        x, at, tolerances = minimum.vector, minimum.evaluation, self._tolerances
        here = Piece.of(x, at)
        pieces, damping, failed, alone, count = [here, *beyond], FIRST_DAMPING, 0, 0, 0

        def end(message: str, converged: bool, smooth: bool = False) -> tuple[Minimum, bool]:
            return Minimum(x, at, converged, message, count), smooth

        while count < tolerances.evaluations:
            if self._stop():
                return end("the search was stopped", False)
            d, promised, shares = combined_step(pieces, here, damping, self._lower, self._upper)
            if not np.isfinite(d).all():
                return end("the models of the pieces overflow", False)
            least = max(COARSER * tolerances.cost * abs(here.cost), tolerances.least, 1e-300)
            small = tolerances.step * np.maximum(magnitudes(x, self._sizes), 1e-300)
            used = [p for p, share in zip(pieces, shares, strict=True) if share > 0]
            done = promised * max(damping / FIRST_DAMPING, 1.0) <= least
            if done or (np.abs(d) <= small).all():
                far = [p for p in used if p.distance(x) > NEAR * least]
                if not far:
                    return end(AT_MINIMUM if done else NO_STEP, True)
                # A distant model may be wrong about the kink: the next steps use nearer points.
                closer, tried = self._closer(here, far)
                count += tried
                pieces = [p for p in pieces if not any(p is one for one in far)] + closer
                if not closer:
                    damping = 8.0 * max(damping, FIRST_DAMPING)
                continue
            trial = np.clip(x + d, self._lower, self._upper)
            new, count = self._evaluate(trial), count + 1
            if new is None or not math.isfinite(new.cost):
                damping = min(max(16.0 * damping, FIRST_DAMPING), MOST_DAMPING)
                continue
            piece = Piece.of(trial, new)
            ratio = (here.cost - piece.cost) / max(promised, 1e-300)
            if ratio > ACCEPTED:
                alone = alone + 1 if len(used) == 1 else 0
                x, at, here, failed = trial, new, piece, 0
                if ratio > GOOD:
                    damping = max(0.1 * damping, LEAST_DAMPING)
                if alone >= ALONE:
                    return end("", False, smooth=True)
            else:
                failed += 1
                # A model above the cost here excludes nothing: the step was too long.
                if piece.seen_from(x)[0] > here.cost or failed > MOST_FAILED:
                    damping = min(8.0 * max(damping, LEAST_DAMPING), MOST_DAMPING)
            pieces = _distinct_pieces([here, piece, *used, *pieces])
        return end(f"stopped after {count} evaluations", False)

    def _closer(self, here: Piece, far: Sequence[Piece]) -> tuple[list[Piece], int]:
        """Return the pieces at points just beyond the kinks, and the number of evaluations.

        The kink towards a far piece is where its model and the one `here` are equal.
        """
        closer, count = [], 0
        for piece in far:
            way = piece.x - here.x
            share = _crossing(here, piece)
            for _ in range(MOST_NEARER):
                share = min(2.0 * share, 1.0)
                if share == 1.0:
                    break
                y = here.x + share * way
                at, count = self._evaluate(y), count + 1
                if at is None or not math.isfinite(at.cost):
                    break
                beyond = Piece.of(y, at)
                slopes = [float(p.seen_from(y)[1] @ way) for p in (here, piece)]
                slope = float(beyond.gradient @ way)
                if abs(slope - slopes[1]) < abs(slope - slopes[0]):
                    closer.append(beyond)
                    break
                share *= 4.0
        return closer, count


def _crossing(here: Piece, piece: Piece) -> float:
    """Return the share of the way to a piece at which its model becomes the higher one."""
    way = piece.x - here.x
    height, slope = piece.seen_from(here.x)
    constant, linear = height - here.cost, float((slope - here.gradient) @ way)
    if constant > 0:  # the kink is nearer than that model predicts
        return USUAL_SHARE
    if not linear > 0:
        return LEAST_SHARE
    return float(np.clip(-constant / linear, LEAST_SHARE, 1.0))


def _distinct_pieces(pieces: Sequence[Piece]) -> list[Piece]:
    """Return the first few distinct pieces."""
    distinct: list[Piece] = []
    for piece in pieces:
        if len(distinct) < MOST_PIECES and not any(piece is one for one in distinct):
            distinct.append(piece)
    return distinct


@np.errstate(all="ignore")  # as above
def combined_step(
    pieces: Sequence[Piece], here: Piece, damping: float, lower: Array, upper: Array
) -> tuple[Array, float, Array]:
    """Return the step to the lowest point of the largest of several models, within bounds.

    Also returned are the decrease that it promises and the share of each piece in it. A model that
    lies above the cost `here` is lowered to it.
    """
    seen = [p.seen_from(here.x) for p in pieces]
    heights = np.array([min(value - here.cost, 0.0) for value, _ in seen])
    slopes = np.array([slope for _, slope in seen])
    hessians = np.array([p.hessian for p in pieces])
    shares = np.zeros(len(pieces))
    shares[0] = 1.0
    free = np.ones(len(here.x), dtype=bool)
    d = np.zeros(len(here.x))
    largest = np.max(np.diagonal(hessians, axis1=1, axis2=2), axis=0)
    largest = np.maximum(largest, 1e-12 * max(float(largest.max(initial=0.0)), 1e-300))
    for _ in range(len(here.x) + 2):
        for _ in range(2):  # the Hessian of the mean depends on the shares
            hessian = np.einsum("k,kij->ij", shares, hessians) + np.diag(damping * largest)
            shares, d = _mean_step(heights, slopes, hessian, free, d)
        outside = free & ((here.x + d < lower) | (here.x + d > upper))
        if not outside.any():
            break
        d = np.where(outside, np.clip(d, lower - here.x, upper - here.x), d)
        free = free & ~outside
    values = heights + slopes @ d + 0.5 * hessians @ d @ d
    return d, -float(values.max()), shares


def _mean_step(
    heights: Array, slopes: Array, hessian: Array, free: BoolArray, held: Array
) -> tuple[Array, Array]:
    """Return the shares of the pieces and the step of their mean, with some components held.

    The minimum over d of max_i (h_i + g_i'd) + d'Hd/2 lies at d = -H^-1 (sum of s_i g_i), where the
    shares s maximise the dual over the simplex.
    """
    fixed = np.where(free, 0.0, held)
    bent = hessian @ fixed
    offset = heights + slopes @ fixed
    rows = (slopes + bent)[:, free]
    inner = hessian[np.ix_(free, free)]
    scale = 1.0 / np.sqrt(np.maximum(np.diag(inner), 1e-300))
    try:
        factor = np.linalg.cholesky(inner * scale * scale[:, None] + 1e-14 * np.eye(len(scale)))
        whitened = np.linalg.solve(factor, (rows * scale).T)
    except np.linalg.LinAlgError:
        return np.eye(len(heights))[0], np.zeros(len(held))
    shares = lowest_mean(whitened.T @ whitened, offset)
    step = fixed.copy()
    step[free] = -scale * np.linalg.solve(factor.T, whitened @ shares)
    return shares, step


def lowest_mean(products: Array, heights: Array) -> Array:
    """Return the shares s >= 0 with the sum one that minimise s'Qs/2 - h's, shape (k,).

    Q holds the scalar `products` of the gradients of k pieces. Without `heights` h, the mean of the
    gradients with these shares is the shortest. Pieces are few, so every subset is tried.
    """
    best: Array = np.eye(len(heights))[0]
    lowest = math.inf
    for chosen in _subsets(len(heights)):
        k = len(chosen)
        system = np.ones((k + 1, k + 1))
        system[:k, :k] = products[np.ix_(chosen, chosen)]
        system[k, k] = 0.0
        try:
            solved = np.linalg.solve(system, np.append(heights[chosen], 1.0))[:k]
        except np.linalg.LinAlgError:
            continue
        if not (np.isfinite(solved).all() and solved.min() >= 0.0):
            continue
        shares = np.zeros(len(heights))
        shares[chosen] = solved
        value = 0.5 * float(shares @ products @ shares) - float(heights @ shares)
        if value < lowest - 1e-12 * abs(lowest if math.isfinite(lowest) else 0.0):
            best, lowest = shares, value
    return best


def _subsets(count: int) -> Iterator[IntArray]:
    for size in range(1, count + 1):
        for chosen in combinations(range(count), size):
            yield np.array(chosen, dtype=np.intp)
