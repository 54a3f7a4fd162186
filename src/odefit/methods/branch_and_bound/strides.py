"""Many equal steps of a linear motion at once.

Where the equations are linear in the states and do not depend on time, one step of a scheme is an
affine map of the states, and equal steps are its powers: by repeated squaring of the map over the
box, a thousand steps cost ten products of matrices. Deviations meet few operations that way, so
that no frame has to follow them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from odefit.enclosure.models import SLACK, TINY, UNIT, Flags, Indices, Model
from odefit.enclosure.monomials import Monomials
from odefit.enclosure.system import Motion, System
from odefit.enclosure.values import Program
from odefit.methods.branch_and_bound.blocks import Block, Point, Solver
from odefit.problem.algebras import Array
from odefit.structure.tape import Tape, Term

FEWEST = 24
"""Equal steps in a row from which on a map for them pays."""

EQUAL = 1e-11
"""Relative difference of the coefficients of steps that count as equal; it is accounted for."""


WORST = 1e4
"""Condition number of eigenvectors above which they are not used."""


@dataclass(frozen=True, eq=False)
class Run:
    """Blocks in a row that are equal, and between which nothing is read off.

    Attributes
    ----------
    count
        Of blocks.
    kind
        Number of the step among those that are different.
    """

    count: int
    kind: int


class Plan:
    """Where a segment has so many equal steps in a row that a map for them pays.

    Parameters
    ----------
    blocks
        Of the segment.
    read
        Whether something is read off within each block or at its end.
    last_use
        The last block that needs each point.

    Attributes
    ----------
    steps
        One of each kind of equal blocks.
    doubts
        Largest relative difference within each kind.
    runs
        By number of the first block.
    """

    def __init__(
        self, blocks: Sequence[Block], read: Sequence[bool], last_use: Mapping[int, int]
    ) -> None:
        self.steps: list[Block] = []
        self.doubts: list[float] = []
        self.runs: dict[int, Run] = {}
        kinds: list[int | None] = []
        for number, block in enumerate(blocks):
            later = any(last_use.get(k, 0) > number for k in block.new[:-1])
            end = last_use.get(block.new[-1], 0) > number + 1
            if read[number] or later or end or not one_step(block):
                kinds.append(None)
                continue
            kinds.append(self._kind(block))
        begin = 0
        for number in range(1, len(kinds) + 1):
            if number < len(kinds) and kinds[number] == kinds[begin]:
                continue
            kind = kinds[begin]
            if kind is not None:
                self.runs[begin] = Run(number - begin, kind)
            begin = number
        for kind in range(len(self.steps)):
            own = {k: run for k, run in self.runs.items() if run.kind == kind}
            if sum(run.count for run in own.values()) < FEWEST:
                for k in own:
                    del self.runs[k]

    def _kind(self, block: Block) -> int:
        for kind, step in enumerate(self.steps):
            apart = difference(step, block)
            if apart <= EQUAL:
                self.doubts[kind] = max(self.doubts[kind], apart)
                return kind
        self.steps.append(block)
        self.doubts.append(0.0)
        return len(self.steps) - 1


def affine(system: System, motion: Motion) -> bool:
    """Whether a motion is linear in the states and the same at all times."""
    tape = system.tape
    changing = {*system.states, *system.inputs.values(), system.time}
    return not any(tape.depends(term) & changing for term in motion.slopes.terms) and not any(
        tape.depends(term) & (changing - set(system.states)) for term in motion.rates.terms
    )


def difference(first: Block, other: Block) -> float:
    """Of the coefficients of two one-step blocks, relative; infinite if they are not comparable."""
    worst = 0.0
    for name in ("states_old", "states_new", "slopes_old", "slopes_new"):
        a, b = getattr(first, name), getattr(other, name)
        if a.shape != b.shape or ((a == 0) != (b == 0)).any():
            return np.inf
        used = a != 0
        worst = max(worst, float((np.abs(b - a)[used] / np.abs(a)[used]).max(initial=0.0)))
    return worst


def one_step(block: Block) -> bool:
    """Its points follow from the last point before it alone."""
    return block.old == [block.new[0] - 1]


class Composition:
    """Programs that compose affine maps of n states, and apply them.

    Parameters
    ----------
    groups, reach
        Of the states, see :meth:`odefit.enclosure.system.Motion.order`.

    Attributes
    ----------
    pairs
        Entries of a matrix that may not be zero.
    """

    def __init__(self, groups: Sequence[Sequence[int]], reach: Array) -> None:
        n = len(reach)
        self.groups, self.states = groups, n
        tape = Tape()
        pairs = [(i, j) for i in range(n) for j in range(n) if reach[i, j]]
        outer = {p: tape.variable(f"outer {p}") for p in pairs}
        inner = {p: tape.variable(f"inner {p}") for p in pairs}
        shift = [tape.variable(f"outer shift {i}") for i in range(n)]
        start = [tape.variable(f"start {i}") for i in range(n)]

        def total(parts: Sequence[Term]) -> Term:
            found = parts[0]
            for part in parts[1:]:
                found = found + part
            return found

        product = [
            total(
                [outer[i, k] * inner[k, j] for k in range(n) if (i, k) in outer and (k, j) in inner]
            )
            for i, j in pairs
        ]
        image = [
            total([*(outer[i, j] * start[j] for j in range(n) if (i, j) in outer), shift[i]])
            for i in range(n)
        ]
        self.pairs = pairs
        self._outer = [outer[p].index for p in pairs]
        self._inner = [inner[p].index for p in pairs]
        self._shift, self._start = [t.index for t in shift], [t.index for t in start]
        self._product, self._image = Program(tape, product), Program(tape, image)

    def applied(
        self, matrix: Sequence[Model], shift: Sequence[Model], start: Sequence[Model], m: Monomials
    ) -> list[Model]:
        """``P x + g``; entries of P in the order of `pairs`."""
        known = dict(zip(self._outer, matrix, strict=True))
        known |= dict(zip(self._shift, shift, strict=True))
        known |= dict(zip(self._start, start, strict=True))
        found = self._image.static(m, known, len(start[0].remainder))
        return [found[term.index] for term in self._image.terms]

    def product(self, outer: Sequence[Model], inner: Sequence[Model], m: Monomials) -> list[Model]:
        """Of two matrices."""
        known = dict(zip(self._outer, outer, strict=True))
        known |= dict(zip(self._inner, inner, strict=True))
        found = self._product.static(m, known, len(outer[0].remainder))
        return [found[term.index] for term in self._product.terms]


class Strides:
    """Powers of the map of one step, in B boxes.

    Parameters
    ----------
    composition
        Of maps of so many states.
    monomials
        In the unknowns.
    solver
        For the step, in ``(n + 1) B`` boxes: all boxes again and again.
    block
        The step.
    """

    def __init__(
        self, composition: Composition, monomials: Monomials, solver: Solver, block: Block
    ) -> None:
        self._composition, self._monomials = composition, monomials
        matrix, shift = _one_step(composition, monomials, solver, block)
        self._basis = _basis(composition, monomials, matrix)
        if self._basis is not None:
            into, back = self._basis
            matrix = composition.product(into, matrix, monomials)
            matrix = composition.product(matrix, back, monomials)
            shift = self._mapped(into, shift)
        self._powers = [(matrix, shift)]

    def __call__(self, point: Point, count: int) -> Point:
        """After `count` steps."""
        nothing = np.zeros(point.c.shape[2])
        x = [
            Model(c[:, None, :], None, size, nothing)
            for c, size in zip(point.c, point.sizes, strict=True)
        ]
        if self._basis is not None:
            x = self._mapped(self._basis[0], x)
        power = 0
        while count >> power:
            if power == len(self._powers):
                matrix, shift = self._powers[-1]
                again = self._composition.applied(matrix, shift, shift, self._monomials)
                square = self._composition.product(matrix, matrix, self._monomials)
                self._powers.append((square, again))
            if count >> power & 1:
                x = self._composition.applied(*self._powers[power], x, self._monomials)
            power += 1
        if self._basis is not None:
            x = self._mapped(self._basis[1], x)
        return Point(np.stack([m.c[:, 0] for m in x]), np.stack([m.remainder for m in x]))

    def _mapped(self, matrix: Sequence[Model], x: Sequence[Model]) -> list[Model]:
        zero = Model.constant(self._monomials, np.zeros(len(x[0].remainder)))
        return self._composition.applied(matrix, [zero] * len(x), x, self._monomials)

    def take(self, boxes: Indices) -> Strides:
        """In some of the boxes."""
        found = object.__new__(Strides)
        found._composition, found._monomials = self._composition, self._monomials
        found._basis = None
        if self._basis is not None:
            into, back = self._basis
            found._basis = [m.take(boxes) for m in into], [m.take(boxes) for m in back]
        found._powers = [
            ([m.take(boxes) for m in matrix], [m.take(boxes) for m in shift])
            for matrix, shift in self._powers
        ]
        return found


def _one_step(
    composition: Composition, monomials: Monomials, solver: Solver, block: Block
) -> tuple[list[Model], list[Model]]:
    """The map of a step, from its solutions that start at zero and at each unit vector."""
    n = solver.states
    boxes = solver.boxes // (n + 1)
    c = np.zeros((n, len(monomials), (n + 1) * boxes))
    for j in range(n):
        c[j, 0, j * boxes : (j + 1) * boxes] = 1.0
    found = solver.step(block, Point(c, np.zeros((n, (n + 1) * boxes))))
    nothing = np.zeros(boxes)

    def model(i: int, j: int) -> Model:
        own = slice(j * boxes, (j + 1) * boxes)
        return Model(found.c[i, :, None, own], None, found.sizes[i, own], nothing)

    shift = [model(i, n) for i in range(n)]
    tape = Tape()
    difference = Program(tape, [tape.variable("with") - tape.variable("without")])
    matrix = []
    for i, j in composition.pairs:
        left, right = (tape.variable(name).index for name in ("with", "without"))
        known = {left: model(i, j), right: shift[i]}
        done = difference.static(monomials, known, boxes)
        matrix.append(done[difference.terms[0].index])
    return matrix, shift


def _basis(
    composition: Composition, monomials: Monomials, matrix: Sequence[Model]
) -> tuple[list[Model], list[Model]] | None:
    """In which the map is nearly diagonal in the middle of each box, and its inverse.

    What decays is then seen to decay: bounds of an entry of a power are no sums over modes. Only
    states that act on each other are mixed.
    """
    boxes, n = len(matrix[0].remainder), composition.states
    groups = [g for g in composition.groups if len(g) > 1]
    if not groups:
        return None
    middle = np.zeros((boxes, n, n))
    for (i, j), model in zip(composition.pairs, matrix, strict=True):
        middle[:, i, j] = model.c[0, 0]
    into = np.zeros((boxes, n, n)) + np.eye(n)
    back = into.copy()
    for group in groups:
        mine = np.array(group)
        own = np.ix_(np.arange(boxes), mine, mine)
        vectors = _vectors(middle[own])
        back[own], into[own] = vectors, np.linalg.inv(vectors)
    # back (1 - e) is the inverse of `into`, with a small e.
    product = into @ back
    rough = 4 * n * UNIT * (np.abs(into) @ np.abs(back))
    lacking = np.abs(np.eye(n) - product) + rough
    size = lacking.sum(axis=2).max(axis=1)
    share = np.where(size < 0.5, 2.0 * size, np.inf)
    doubt = np.abs(back).max(axis=(1, 2)) * n * share * SLACK
    nothing = np.zeros(boxes)
    first, second = [], []
    for i, j in composition.pairs:
        same = any(i in g and j in g for g in composition.groups)
        first.append(Model.constant(monomials, into[:, i, j]))
        inverse = Model.constant(monomials, back[:, i, j])
        mixed = (same and i != j) or (any(i in g for g in groups) and i == j)
        inverse.remainder = doubt if mixed else nothing
        second.append(inverse)
    return first, second


def _vectors(matrices: Array) -> Array:
    """Eigenvectors as columns, real and imaginary parts; unit vectors where these will not do."""
    n = matrices.shape[1]
    fine: Flags = np.all(np.isfinite(matrices), axis=(1, 2))
    values, vectors = np.linalg.eig(np.where(fine[:, None, None], matrices, np.eye(n)))
    # Of a pair, the first column is the real part and the second one the imaginary part.
    real = np.where(np.imag(values)[:, None, :] < 0, np.imag(vectors), np.real(vectors))
    real = real / np.maximum(np.abs(real).max(axis=1, keepdims=True), TINY)
    fine &= np.isfinite(real).all(axis=(1, 2))
    real = np.where(fine[:, None, None], real, np.eye(n))
    fine &= np.linalg.cond(real) < WORST
    found: Array = np.where(fine[:, None, None], real, np.eye(n))
    return found
