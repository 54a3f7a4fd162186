"""Solutions of the discretised equations over boxes of unknowns.

A block of points (an element, or the steps that have to be solved for together) has the equations
``A x = B f(x)``. Their solution is expanded in the box by Newton's iteration with the inverse Y of
the Jacobian at its middle, which is right to one more degree in each turn. For the deviation e
of the true solution from that polynomial, ``e = (1 - Y G') e - Y G``: with the polynomial's
defect and bounds of ``1 - Y G'`` over the box follows a bound of e (R. Krawczyk, 1969). It is that
of the solution which continues the one before; other solutions that a nonlinear scheme may have
are not meant.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from odefit.discretisation.mesh import Segment
from odefit.enclosure.discretised.right_hand_sides import Slopes
from odefit.enclosure.error_propagation import ErrorBound, coordinates, mapped
from odefit.enclosure.rounding import ROUNDING_MARGIN, UNIT_ROUNDOFF
from odefit.problem.arrays import Array, BoolArray, IntArray
from odefit.problem.errors import InputError

NEWTON = 12
"""Turns of Newton's iteration in the middle of a box at most."""

NARROW = 0.1
"""Relative half width of boxes for whose middle more is tried than Newton's iteration."""

FIRST_SHARE = 1e-6
"""Of the slopes, where a solution is followed from a step of no length to that of the block."""

SHARES = 14
"""Stages of that."""

SHARE_TURNS = 3
"""Of Newton's iteration in each stage but the last."""

SETTLED = 1e-13
"""Relative size of a correction after which it ends."""

LOOSEST = 1e3
"""Norm of a contraction's bound above which no solution is tried."""

GUESSES = 4
"""Attempts at guessing how far the solution is from its polynomial."""


@dataclass(frozen=True, eq=False)
class Block:
    """Points that are solved for together.

    Attributes
    ----------
    old, new
        Points of the segment.
    states_old, states_new, slopes_old, slopes_new
        Coefficients of A and B, shape (rows, points).
    """

    old: list[int]
    new: list[int]
    states_old: Array
    states_new: Array
    slopes_old: Array
    slopes_new: Array

    @property
    def explicit(self) -> bool:
        """One point follows from those before: there is one solution, whatever the equations."""
        states, slopes = self.states_new, self.slopes_new
        return not (np.triu(states, 1).any() or np.triu(slopes).any())


def blocks(segment: Segment) -> Iterator[Block]:
    """In the order of time: as few equations as determine their points."""
    relations = segment.relations
    states, slopes = relations.states, relations.rhs
    rows = states.shape[0]
    last = np.zeros(rows, dtype=np.intp)
    used: list[set[int]] = []
    for row in range(rows):
        columns = set(states.indices[states.indptr[row] : states.indptr[row + 1]].tolist())
        columns |= set(slopes.indices[slopes.indptr[row] : slopes.indptr[row + 1]].tolist())
        used.append(columns)
        last[row] = max(columns)
    order = np.argsort(last, kind="stable")
    done, begin = 0, 0
    for boundary in relations.boundary[1:].tolist():
        own = order[begin : int(np.searchsorted(last[order], boundary, side="right"))]
        if len(own) != boundary - done:
            continue
        new = list(range(done + 1, boundary + 1))
        old = sorted({c for row in own for c in used[row]} - set(new))
        yield Block(
            old,
            new,
            states[own][:, old].toarray(),
            states[own][:, new].toarray(),
            slopes[own][:, old].toarray(),
            slopes[own][:, new].toarray(),
        )
        done, begin = boundary, begin + len(own)
    if done + 1 < len(relations.times):
        raise InputError(
            "BranchAndBound, scheme: its equations do not determine its points step by step; "
            "take one of those that are named"
        )


@dataclass(eq=False)
class Point:
    """The solution at one point of a mesh, as models of states and slopes, and their deviation.

    Attributes
    ----------
    c, f
        Polynomials, shape (n, M, B).
    sizes
        Bound of the deviation of the states, shape (n, B).
    f_sizes
        Of what the polynomial of the slopes leaves out at the polynomial of the states.
    """

    c: Array
    sizes: Array
    f: Array | None = None
    f_sizes: Array | None = None

    def take(self, boxes: IntArray) -> Point:
        """Of some boxes."""
        f = None if self.f is None else self.f[:, :, boxes]
        f_sizes = None if self.f_sizes is None else self.f_sizes[:, boxes]
        return Point(self.c[:, :, boxes], self.sizes[:, boxes], f, f_sizes)


class Solver:
    """Blocks of one segment, in B boxes.

    Parameters
    ----------
    slopes
        Its right-hand sides.
    doubt
        Largest relative error of the coefficients of the blocks, far below that of ROUNDING_MARGIN.

    Attributes
    ----------
    states, boxes
        Their numbers.
    """

    def __init__(self, slopes: Slopes, doubt: float = 0.0) -> None:
        self._slopes = slopes
        self.states, self.boxes = slopes.states, slopes.boxes
        self._doubt = doubt
        self._boxes, self._monomials, self._n = slopes.boxes, slopes.monomials, slopes.states
        self._groups, self._reach = slopes.motion.order(slopes.states)

    def read(
        self,
        points: Mapping[int, Point],
        of_states: Mapping[int, float],
        of_slopes: Mapping[int, float],
    ) -> Point:
        """States that are sums of values and slopes at points, by the scheme's polynomial."""
        some = next(iter(points.values()))
        c, sizes = np.zeros_like(some.c), np.zeros_like(some.sizes)
        total = np.zeros_like(sizes)
        for k, weight in of_states.items():
            c += weight * points[k].c
            sizes += abs(weight) * points[k].sizes
            total += abs(weight) * np.abs(points[k].c).sum(1)
        for k, weight in of_slopes.items():
            f, f_sizes = self._slopes.around(points[k].c, points[k].sizes, k)
            c += weight * f
            sizes += abs(weight) * f_sizes
            total += abs(weight) * np.abs(f).sum(1)
        count = len(of_states) + len(of_slopes) + 2
        return Point(c, (sizes + 2 * count * UNIT_ROUNDOFF * total) * ROUNDING_MARGIN)

    def step(self, block: Block, point: Point) -> Point:
        """The last point of a block, from the only one before."""
        points = {block.old[0]: point}
        self.solve(block, points, ErrorBound.of(point.sizes.T))
        return points[block.new[-1]]

    def solve(self, block: Block, points: dict[int, Point], spread: ErrorBound) -> ErrorBound:
        """Put the block's new points among the others; where its last one is."""
        n, boxes, q = self._n, self._boxes, len(block.new)
        m = len(self._monomials)
        wide = self._slopes.fine
        constant = np.zeros((n, q, wide, boxes))  # A_old x_old - B_old f_old
        loose = np.zeros((n, q, boxes))
        rounding = np.zeros((n, q, boxes))
        for j, old in enumerate(block.old):
            a, b = block.states_old[:, j], block.slopes_old[:, j]
            point = points[old]
            constant[:, :, :m] += a[None, :, None, None] * point.c[:, None]
            rounding += np.abs(a)[None, :, None] * np.abs(point.c).sum(1)[:, None]
            if b.any():
                if point.f is None:
                    f, rest = self._slopes.sharp(point.c[:, None], [old])
                    point.f, point.f_sizes = f[:, 0], rest[:, 0]
                assert point.f_sizes is not None
                constant -= b[None, :, None, None] * point.f[:, None]
                loose += np.abs(b)[None, :, None] * point.f_sizes[:, None]
                rounding += np.abs(b)[None, :, None] * np.abs(point.f).sum(1)[:, None]
        a, b = block.states_new, block.slopes_new
        x = np.repeat(points[block.old[-1]].c[:, None], q, axis=1)
        x[:, :, :1] = self._middles(a, b, constant[:, :, :1], x[:, :, :1], block.new)
        inverse = self._inverse(a, b, x, block.new)
        # From the middle on, each turn is right to one more degree.
        for _ in range(max(self._monomials.degree, 1)):
            f = self._slopes.polynomials(x, block.new)
            defect = constant[:, :, :m] + np.einsum("rp,npmb->nrmb", a, x)
            defect -= np.einsum("rp,npmb->nrmb", b, f)
            step = np.einsum("bij,jmb->imb", inverse, defect.reshape(n * q, m, boxes))
            x = x - step.reshape(n, q, m, boxes)
        # With the next degree: Y takes from it what the equations have in common.
        f, rest = self._slopes.sharp(x, block.new)
        defect = constant - np.einsum("rp,npmb->nrmb", b, f)
        defect[:, :, :m] += np.einsum("rp,npmb->nrmb", a, x)
        m = wide
        rounding += np.einsum("rp,npb->nrb", np.abs(a), np.abs(x).sum(2))
        rounding += np.einsum("rp,npb->nrb", np.abs(b), np.abs(f).sum(2))
        loose += np.einsum("rp,npb->nrb", np.abs(b), rest)
        loose += (4 * (q + len(block.old) + 2) * UNIT_ROUNDOFF + 2 * self._doubt) * rounding
        own = np.abs(np.einsum("bij,jmb->imb", inverse, defect.reshape(n * q, m, boxes))).sum(1)
        small = np.abs(
            np.einsum("bij,jmb->imb", np.abs(inverse), np.abs(defect).reshape(n * q, m, boxes))
        ).sum(1)
        own += 4 * n * q * UNIT_ROUNDOFF * small
        own += np.einsum("bij,jb->ib", np.abs(inverse), loose.reshape(n * q, boxes))
        sizes, spread = self._deviation(block, points, x, inverse, own.T * ROUNDING_MARGIN, spread)
        for p, place in enumerate(block.new):
            points[place] = Point(x[:, p], sizes[:, p], f[:, p], rest[:, p])
        points[block.new[-1]].sizes = np.minimum(sizes[:, -1], spread.sizes.T)
        return spread

    def _middles(self, a: Array, b: Array, constant: Array, x: Array, new: Sequence[int]) -> Array:
        """The solution in the middle of the boxes, from a guess, shape (n, q, 1, B)."""
        turns = 1 if self._slopes.linear else NEWTON
        found, near = self._newton(a, b, constant, x, new, turns)
        lost = ~near & (self._slopes.widest <= NARROW)
        if self._slopes.linear or not lost.any():
            return found
        # Slopes grow from next to nothing, and the solution with them.
        path = x
        for share in np.geomspace(FIRST_SHARE, 1.0, SHARES):
            path, _ = self._newton(a, share * b, constant, path, new, SHARE_TURNS)
        path, _ = self._newton(a, b, constant, path, new, NEWTON)
        return np.where(lost & np.isfinite(path).all(axis=(0, 1, 2)), path, found)

    def _newton(
        self, a: Array, b: Array, constant: Array, x: Array, new: Sequence[int], turns: int
    ) -> tuple[Array, BoolArray]:
        """Iterated in the middle of the boxes; and whether it came to rest, shape (B,)."""
        n, q, boxes = self._n, len(new), self._boxes
        for _ in range(turns):
            inverse = self._inverse(a, b, x, new)
            defect = constant + np.einsum("rp,npmb->nrmb", a, x)
            defect -= np.einsum("rp,npmb->nrmb", b, self._slopes.middles(x, new))
            step = np.einsum("bij,jmb->imb", inverse, defect.reshape(n * q, 1, boxes))
            x = x - step.reshape(n, q, 1, boxes)
            size = np.abs(x).max(axis=(0, 1, 2), initial=1e-300)
            near: BoolArray = np.abs(step).max(axis=(0, 1)) <= SETTLED * size
            if (near | ~np.isfinite(size)).all():
                break
        return x, near

    def _inverse(self, a: Array, b: Array, x: Array, new: Sequence[int]) -> Array:
        """Of the Jacobian of a block in the middle of the boxes, rows and columns by state."""
        n, q = self._n, len(new)
        slopes = self._slopes.centre(x, new)
        jacobian = np.einsum("rp,ij->irjp", a, np.eye(n))[None] - np.einsum(
            "rp,bpij->birjp", b, slopes
        )
        flat = jacobian.reshape(self._boxes, n * q, n * q)
        usable: BoolArray = np.all(np.isfinite(flat), axis=(1, 2))
        flat = np.where(usable[:, None, None], flat, np.eye(n * q))
        try:
            found = np.linalg.inv(flat)
        except np.linalg.LinAlgError:
            found = np.linalg.pinv(flat)
        # What cannot be is made zero: a state of which nothing is known spoils no other.
        found = found * np.kron(self._reach, np.ones((q, q)))
        return np.where(usable[:, None, None], found, np.nan)

    def _deviation(
        self,
        block: Block,
        points: Mapping[int, Point],
        x: Array,
        inverse: Array,
        own: Array,
        spread: ErrorBound,
    ) -> tuple[Array, ErrorBound]:
        """Bounds of the deviation at all new points, shape (n, q, B), and at the last one."""
        n, q, boxes = self._n, len(block.new), self._boxes
        size = n * q
        absolute = np.abs(inverse)
        # What deviations at old points do: through the middle's derivatives, and around them.
        carried = np.zeros((boxes, size))
        outer = own.copy()
        last = block.old[-1]
        through = np.zeros((boxes, size, n))
        for j, old in enumerate(block.old):
            a, b = block.states_old[:, j], block.slopes_old[:, j]
            point = points[old]
            matrix = np.einsum("r,ik->irk", a, np.eye(n))[None].repeat(boxes, axis=0)
            if b.any():
                slopes, rest = self._slopes.varied(point.c[:, None], point.sizes[:, None], [old])
                varying = np.abs(slopes[:, :, 1:]).sum(axis=2) + rest
                varying = varying * ROUNDING_MARGIN + 4 * UNIT_ROUNDOFF * np.abs(slopes[:, :, 0])
                matrix = matrix - np.einsum("r,bik->birk", b, slopes[:, 0, 0])
                moved = _times(varying[:, 0], point.sizes.T)
                spill = np.abs(b) * moved[:, :, None]
                outer += _times(absolute, spill.reshape(boxes, size))
            product = -inverse @ matrix.reshape(boxes, size, n)
            rough = absolute @ np.abs(matrix).reshape(boxes, size, n)
            fuzz = (4 * size * UNIT_ROUNDOFF + 2 * self._doubt) * rough
            outer += _times(fuzz, point.sizes.T)
            if old == last:
                through = product
            else:
                outer += _times(np.abs(product), point.sizes.T)
        carried = _times(np.abs(through), points[last].sizes.T)
        g = (carried + outer) * ROUNDING_MARGIN
        guess = 2.0 * g + 1e-300
        for attempt in range(GUESSES):
            matrix = self._contraction(block, x, inverse, guess)
            sizes = self._solved(matrix, g, q)
            held = (sizes <= guess) | ~np.isfinite(sizes)
            if held.all() or attempt == GUESSES - 1:
                break
            guess = np.where(held, guess, 1.2 * np.minimum(sizes, 1e300))
        # All is for deviations up to the guess: it has to be the one that was found to hold.
        sizes = np.where(held, sizes, np.inf)
        for group in self._groups:
            # A bound that was not confirmed takes along all that were derived from it.
            feeding = np.isinf(sizes.reshape(boxes, n, q)).any(axis=2) @ self._reach[group].T > 0
            lost: BoolArray = np.any(feeding, axis=1)
            own = np.repeat(lost[:, None], len(group) * q, axis=1)
            places = (np.array(group)[:, None] * q + np.arange(q)).ravel()
            sizes[:, places] = np.where(own, np.inf, sizes[:, places])
        # The last point, in the frame: what came through, and all else.
        rest = outer + _times(matrix, sizes)
        pick = np.arange(n) * q + q - 1
        frame = mapped(
            spread, (through[:, pick], 0.0), rest[:, pick] * ROUNDING_MARGIN, (np.eye(n)[None], 0.0)
        )
        by_state = np.moveaxis(sizes.reshape(boxes, n, q), 0, 2)
        least = np.minimum(sizes[:, pick], frame.sizes)
        back = np.abs(np.swapaxes(frame.frame, 1, 2))
        lengths = np.fmin(
            frame.lengths, coordinates(frame.frame, _times(back, least) * ROUNDING_MARGIN)
        )
        return by_state, ErrorBound(least, frame.frame, lengths)

    def _solved(self, matrix: Array, g: Array, q: int) -> Array:
        """The least s with ``s >= g + matrix s``, states that feed others first."""
        found = np.full_like(g, np.inf)
        before: list[int] = []
        for group in self._groups:
            own = [i * q + p for i in group for p in range(q)]
            right = g[:, own]
            if before:
                right = right + _times(matrix[:, own][:, :, before], found[:, before])
            found[:, own] = _solved(matrix[:, own][:, :, own], right * ROUNDING_MARGIN)
            before += own
        return found

    def _contraction(self, block: Block, x: Array, inverse: Array, guess: Array) -> Array:
        """Bound of |1 - Y G'| over the box and the guess, shape (B, nq, nq)."""
        n, q, boxes = self._n, len(block.new), self._boxes
        size = n * q
        sizes = np.moveaxis(guess.reshape(boxes, n, q), 0, 2)
        parts, left = self._slopes.varied(x, sizes, block.new)
        # With the rounding of the products below, which may cancel.
        left = left + 4 * UNIT_ROUNDOFF * np.abs(parts[:, :, 0])
        a, b = block.states_new, block.slopes_new
        middle = np.einsum("rp,ij->irjp", a, np.eye(n))[None] - np.einsum(
            "rp,bpij->birjp", b, parts[:, :, 0]
        )
        middle = middle.reshape(boxes, size, size)
        found = np.abs(np.eye(size) - inverse @ middle)
        spoilt = 4 * size * UNIT_ROUNDOFF + 2 * self._doubt
        rough = np.abs(middle)
        if self._doubt:
            # What cancels in the middle is not as exact as it looks.
            rough = np.einsum("rp,ij->irjp", np.abs(a), np.eye(n))[None] + np.einsum(
                "rp,bpij->birjp", np.abs(b), np.abs(parts[:, :, 0])
            )
            rough = rough.reshape(boxes, size, size)
        found += spoilt * (np.abs(inverse) @ rough + np.eye(size))
        for k in range(1, parts.shape[2]):
            # Each direction by itself: signs within it count.
            varied = np.einsum("rp,bpij->birjp", b, parts[:, :, k]).reshape(boxes, size, size)
            found += np.abs(inverse @ varied) + spoilt * (np.abs(inverse) @ np.abs(varied))
        remaining = np.einsum("rp,bpij->birjp", np.abs(b), left).reshape(boxes, size, size)
        found += np.abs(inverse) @ remaining
        return np.asarray(found * ROUNDING_MARGIN)


def _times(matrices: Array, vectors: Array) -> Array:
    """Products of matrices (B, i, j) and vectors (B, j); zero times infinity is nothing."""
    infinite = np.isinf(vectors)
    if not infinite.any():
        return np.asarray(np.matmul(matrices, vectors[:, :, None])[:, :, 0])
    found = np.matmul(matrices, np.where(infinite, 0.0, vectors)[:, :, None])[:, :, 0]
    reached = np.matmul((matrices != 0).astype(float), infinite.astype(float)[:, :, None])
    return np.asarray(np.where(reached[:, :, 0] > 0, np.inf, found))


def _solved(matrix: Array, g: Array) -> Array:
    """The least s with ``s >= g + matrix s``, or a little more; infinite where there is none."""
    size = matrix.shape[1]
    usable: BoolArray = np.all(np.isfinite(matrix), axis=(1, 2))
    usable &= np.isfinite(g).all(axis=1)
    usable &= matrix.sum(axis=2).max(axis=1) < LOOSEST
    found = np.full_like(g, np.inf)
    if not usable.any():
        return found
    own, right = matrix[usable], g[usable]
    s: Array = right.copy()
    try:
        wanted = (right * (1 + 1e-9) + 1e-300)[:, :, None]
        s = np.linalg.solve(np.eye(size) - own, wanted)[:, :, 0].astype(float)
    except np.linalg.LinAlgError:
        # One of them is singular: the iteration tells them apart.
        for _ in range(200):
            s = (right + _times(own, s)) * (1 + 1e-9)
    good: BoolArray = np.all(s > 0, axis=1)
    good &= ((right + _times(own, s)) * ROUNDING_MARGIN <= s).all(axis=1)
    found[usable] = np.where(good[:, None], s, np.inf)
    return found
