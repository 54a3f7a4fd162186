"""As many equations as unknowns: a square subsystem of the jets, and its parameter homotopy.

Rows are taken in order of derivative, all outputs of order 0 before those of order 1, each if it
raises the rank of the Jacobian at a random point modulo a prime (section 4, step 4 of Bassik et
al., with exact ranks). Everything that data and experiments prescribe (Taylor coefficients of the
outputs, values that are held fixed, time and inputs) is one vector of parameters; the system is
known at a generic one and wanted at that of the data.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from odefit.problem.arrays import Array, ComplexArray, IntArray
from odefit.structure.echelon import Echelon
from odefit.structure.homotopy.tracker import solve
from odefit.structure.jets import JetSystem, Residues
from odefit.structure.points import modular_point

CANDIDATES = 6
"""Random points of which the best is taken."""

DIFFERENCE = 1e-6
"""Relative step of the finite differences by known functions (used for predictions alone)."""


@dataclass(frozen=True)
class Row:
    """One equation: a Taylor coefficient of an output of a block."""

    block: int
    order: int
    output: int


class SquareSystem:
    """Equations that determine every algebraic unknown that can be.

    Parameters
    ----------
    system
        All equations there are.
    seed
        Of the random point.
    most
        Highest order of derivative.

    Attributes
    ----------
    rows
        The equations, n of them.
    solved, held
        Columns of the system's unknowns that are solved for (n), and that no equation
        determines given the others: these are held at given values.
    determined
        By unknown of the system, whether all equations together determine it.
    """

    def __init__(self, system: JetSystem, seed: int = 0, most: int | None = None) -> None:
        self.system = system
        rng = np.random.default_rng(seed)
        count = len(system.names)
        echelon = Echelon(count)
        self.rows: list[Row] = []
        # Around given initial values, or with known functions, the rank may rest for a while.
        known = any(b.program.equations.functions for b in system.blocks)
        patient = system.anchor == "initial" or known
        highest = system.enough if most is None else most
        values, around = modular_point(system, rng, highest)
        jets = [
            system.residues(k, values, highest, rng, around[k]) for k in range(len(system.blocks))
        ]
        for order in range(highest + 1):
            before = echelon.rank
            for k, block in enumerate(system.blocks):
                derivatives = jets[k].derivatives
                assert derivatives is not None
                outputs = block.outputs if order == 0 else len(block.observables)
                for i in range(outputs):
                    row: Residues = np.zeros(count, dtype=np.int64)
                    row[system.columns[k]] = derivatives[0, order, i]
                    if echelon.add(row):
                        self.rows.append(Row(k, order, i))
            if echelon.rank == count or (echelon.rank == before and not patient):
                break
        self.solved = np.array(sorted(echelon.pivots), dtype=np.intp)
        self.held = np.array([k for k in range(count) if k not in echelon.pivots], dtype=np.intp)
        self.determined = tuple(echelon.determines(k) for k in range(count))
        self._places = [
            [(place, row) for place, row in enumerate(self.rows) if row.block == k]
            for k in range(len(system.blocks))
        ]

    @property
    def size(self) -> int:
        """Number n of equations and of unknowns that are solved for."""
        return len(self.rows)

    def orders(self, block: int) -> list[int]:
        """By output of a block, the highest order of derivative that is used; -1 for none."""
        highest = [-1] * self.system.blocks[block].outputs
        for row in self.rows:
            if row.block == block:
                highest[row.output] = max(highest[row.output], row.order)
        return highest

    @property
    def order(self) -> int:
        """The highest order of all."""
        return max((row.order for row in self.rows), default=0)

    # The vector of parameters -----------------------------------------------------------------

    @cached_property
    def _layout(self) -> tuple[slice, slice, list[tuple[slice, slice]], int]:
        n, held = self.size, len(self.held)
        at = n + held
        blocks = []
        for block in self.system.blocks:
            e = block.program.equations
            known = slice(at, at + len(e.known))
            functions = slice(known.stop, known.stop + len(e.functions) * (self.order + 1))
            blocks.append((known, functions))
            at = functions.stop
        return slice(0, n), slice(n, n + held), blocks, at

    @property
    def parameters(self) -> int:
        """Length of the vector of parameters."""
        return self._layout[3]

    @cached_property
    def live(self) -> IntArray:
        """Where in it known numbers and functions are that the equations depend on."""
        at = []
        for block, (known, functions) in zip(self.system.blocks, self._layout[2], strict=True):
            e = block.program.equations
            terms = (*e.rhs, *e.initial, *e.outputs[: block.outputs])
            used = set().union(*(e.tape.depends(term) for term in terms))
            at += [known.start + i for i, t in enumerate(e.known) if t.index in used]
            for i, t in enumerate(e.functions):
                if t.index in used:
                    first = functions.start + i * (self.order + 1)
                    at += range(first, first + self.order + 1)
        return np.array(at, dtype=np.intp)

    def pack(
        self,
        targets: ComplexArray,
        held: ComplexArray,
        surroundings: Sequence[tuple[ComplexArray, ComplexArray]],
    ) -> ComplexArray:
        """The vector of parameters from its parts.

        Parameters
        ----------
        targets
            Left-hand sides of the rows, shape (n,).
        held
            Values of the unknowns that are held.
        surroundings
            By block, what :meth:`Block.surroundings` gives.
        """
        parts = [targets, held]
        for known, functions in surroundings:
            parts += [known, functions.reshape(-1)]
        return np.concatenate(parts).astype(complex)

    def surroundings(self, parameters: ComplexArray) -> list[tuple[ComplexArray, ComplexArray]]:
        """By block, known numbers and series of known functions, from the vector of parameters."""
        found = []
        for block, (known, functions) in zip(self.system.blocks, self._layout[2], strict=True):
            count = len(block.program.equations.functions)
            series = parameters[functions].reshape(count, self.order + 1)
            found.append((parameters[known], series))
        return found

    def generic(self, rng: np.random.Generator) -> tuple[ComplexArray, ComplexArray]:
        """A random point, shape (n,), and the parameters at which it is a solution.

        Of a few points it is the best: see :meth:`best`.
        """
        return self.best([self.system.generic(rng, self.order) for _ in range(CANDIDATES)])

    def best(
        self, candidates: Sequence[tuple[ComplexArray, Sequence[tuple[ComplexArray, ComplexArray]]]]
    ) -> tuple[ComplexArray, ComplexArray]:
        """One of some points, as :meth:`generic` has it.

        It is that in which small relative changes of the parameters change the solution least:
        paths from and to places where solutions nearly meet, or run away, are long.

        Parameters
        ----------
        candidates
            Values of all unknowns of the system, and surroundings of the blocks.
        """
        points = np.array([values[self.solved] for values, _ in candidates])
        nothing = np.zeros(self.size, dtype=complex)
        parameters = np.array(
            [self.pack(nothing, values[self.held], around) for values, around in candidates]
        )
        with np.errstate(all="ignore"):
            outputs, jacobians, _ = self.values(points, parameters)
            parameters[:, : self.size] = outputs
            changes = solve(jacobians, outputs[:, :, None] * np.eye(self.size))
            moves = np.abs(changes) / np.abs(points)[:, :, None]
        worst = moves.sum(axis=2).max(axis=1, initial=0.0)
        chosen = int(np.where(np.isfinite(worst), worst, np.inf).argmin())
        return points[chosen], parameters[chosen]

    # Evaluation -------------------------------------------------------------------------------

    def everything(self, points: ComplexArray, parameters: ComplexArray) -> ComplexArray:
        """All unknowns of the system, shape (b, unknowns), those held included."""
        held = self._layout[1]
        values = np.empty((len(points), len(self.system.names)), dtype=complex)
        values[:, self.solved] = points
        values[:, self.held] = parameters[:, held]
        return values

    def values(
        self, points: ComplexArray, parameters: ComplexArray, derivatives: bool = True
    ) -> tuple[ComplexArray, ComplexArray, ComplexArray]:
        """Left-hand sides, with Jacobians by what is solved for and by what is held.

        Parameters
        ----------
        points, parameters
            Shapes (b, n) and (b, parameters).
        """
        values = self.everything(points, parameters)
        n, count = self.size, len(self.system.names)
        left = np.zeros((len(points), n), dtype=complex)
        jacobian = np.zeros((len(points), n, count if derivatives else 0), dtype=complex)
        for k, (known, functions) in enumerate(self._layout[2]):
            places = self._places[k]
            if not places:
                continue
            highest = max(row.order for _, row in places)
            e = self.system.blocks[k].program.equations
            series = parameters[:, functions].reshape(len(points), len(e.functions), -1)
            jets = self.system.run(k, values, highest, parameters[:, known], series, derivatives)
            at = np.array([place for place, _ in places])
            orders = np.array([row.order for _, row in places])
            outputs = np.array([row.output for _, row in places])
            left[:, at] = jets.outputs[:, orders, outputs]
            if jets.derivatives is not None:
                picked = jets.derivatives[:, orders, outputs]
                jacobian[:, at[:, None], self.system.columns[k][None, :]] = picked
        if not derivatives:
            return left, jacobian, jacobian
        return left, jacobian[:, :, self.solved], jacobian[:, :, self.held]


class Between:
    """The homotopy from one vector of parameters to another, on an arc.

    The weight of the start is ``r / (g - (g - 1) r)``: another `g` (of modulus 1) is another way
    around the singular parameters.

    Parameters
    ----------
    square
        The equations.
    start, end
        Vectors of parameters by path, shape (paths, parameters).
    detours
        The numbers `g`, shape (paths,).
    """

    def __init__(
        self, square: SquareSystem, start: ComplexArray, end: ComplexArray, detours: ComplexArray
    ) -> None:
        self.square = square
        self.start = start
        self.end = end
        self.detours = detours
        self._moves = bool(np.any((start != end)[:, square.live]))

    def evaluate(
        self, paths: IntArray, points: ComplexArray, remaining: Array
    ) -> tuple[ComplexArray, ComplexArray, ComplexArray]:
        """See :class:`odefit.structure.homotopy.tracker.Homotopy`."""
        square, n = self.square, self.square.size
        g = self.detours[paths]
        scale = g - (g - 1) * remaining
        at, speed = self.along(paths, (remaining / scale)[:, None], (g / scale**2)[:, None])
        left, jacobian, by_held = square.values(points, at)
        by_remaining = -speed[:, :n]
        held = slice(n, n + len(square.held))
        if len(square.held):
            by_remaining = by_remaining + np.einsum("bij,bj->bi", by_held, speed[:, held])
        if self._moves:
            moved = at.copy()
            moved[:, held.stop :] += DIFFERENCE * speed[:, held.stop :]
            other, _, _ = square.values(points, moved, derivatives=False)
            by_remaining = by_remaining + (other - left) / DIFFERENCE
        return left - at[:, :n], jacobian, by_remaining

    def along(
        self, paths: IntArray, weight: ComplexArray, quicker: ComplexArray
    ) -> tuple[ComplexArray, ComplexArray]:
        """The parameters where the start has `weight`, and their derivatives by r.

        Parameters
        ----------
        paths
            Numbers of the paths, shape (b,).
        weight, quicker
            Of the start, and its derivative by r, shape (b, 1).
        """
        change = self.start[paths] - self.end[paths]
        return self.end[paths] + weight * change, quicker * change
