"""The discretised problem written out, for solvers that take single expressions.

The variables w are those at points, the unknowns, and slack variables, as in
:mod:`~odefit.methods.solvers.nonlinear_program`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array, hstack

from odefit.common.arrays import Array
from odefit.discretisation.blocks import Block
from odefit.discretisation.discretisation import Discretisation
from odefit.discretisation.formulations import Constraints, Formulation
from odefit.discretisation.instance import Instance
from odefit.expressions.expressions import Algebra

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Assembly:
    """Constraints ``lower_g <= linear w + sum over blocks of weights outputs(w) <= upper_g``.

    The variables have the bounds `lower` and `upper`, shape (size,). `linear` has shape
    (constraints, size), `weights` of each block (constraints, instances * outputs).
    """

    discretisation: Discretisation
    constraints: Constraints
    lower: Array
    upper: Array
    linear: csr_array
    weights: tuple[csr_array, ...]

    @property
    def size(self) -> int:
        """Number of variables w."""
        return len(self.lower)

    @property
    def at_points(self) -> int:
        """Number of variables at points; they come first."""
        return self.discretisation.points * len(self.discretisation.variables)

    def name(self, number: int) -> str:
        """Return the name of variable `number` for messages."""
        d = self.discretisation
        if number < self.at_points:
            point, variable = divmod(number, len(d.variables))
            return f"{d.variables[variable]} at t = {d.times[point]:g}"
        number -= self.at_points
        count = len(d.problem.unknowns)
        return d.problem.unknowns[number].name if number < count else f"slack {number - count}"

    def evaluated(self, block: Block, w: Sequence[T | float], algebra: Algebra[T]) -> list[list[T]]:
        """Return the outputs of `block`, instance by instance, from variables w in an algebra.

        Variables with a known value may be plain floats, and so may the outputs.
        """
        known = w[self.at_points :], block.data.tolist()
        return [self._outputs(block, k, w, algebra, *known) for k in range(block.instances)]

    def evaluated_at(
        self, block: Block, instance: int, w: Sequence[T | float], algebra: Algebra[T]
    ) -> list[T]:
        """Return the outputs of one instance of `block`, like :meth:`evaluated` for all."""
        unknowns = w[self.at_points :]
        return self._outputs(block, instance, w, algebra, unknowns, block.data.tolist())

    def _outputs(
        self,
        block: Block,
        instance: int,
        w: Sequence[Any],
        algebra: Algebra[Any],
        unknowns: Sequence[Any],
        data: list[list[float]],
    ) -> list[Any]:
        at: dict[str, Any] = {}
        if block.points is not None:
            width = len(self.discretisation.variables)
            first = int(block.points[instance]) * width
            at = dict(zip(block.variables, w[first : first + width], strict=True))
        columns = dict(zip(block.columns, data[instance], strict=True))
        return block.evaluate(at, unknowns, columns, algebra)

    def rows(self) -> Iterator[tuple[float, float, list[Terms]]]:
        """Yield the bounds of every constraint and its terms: in w, then in outputs of blocks."""
        matrices = [self.linear, *self.weights]
        parts = [(m.indptr.tolist(), m.indices, m.data) for m in matrices]
        c = self.constraints
        for row in range(len(c.rows)):
            terms = [
                (indices[starts[row] : starts[row + 1]], data[starts[row] : starts[row + 1]])
                for starts, indices, data in parts
            ]
            yield float(c.lower[row]), float(c.upper[row]), terms

    def objective_terms(
        self,
        w: Sequence[Any],
        algebra: Algebra[Any],
        square: Callable[[Any], Any] = lambda residual: residual * residual,
    ) -> list[Any]:
        """Return the terms whose sum is the formulation's objective, over an algebra."""
        terms: list[Any] = []
        for block in self.discretisation.residuals:
            for residual, *log_sd in self.evaluated(block, w, algebra):
                terms.append(square(residual))
                terms += [2.0 * s for s in log_sd]
        penalty = self.constraints.penalty
        return terms + [penalty * s for s in w[self.size - self.constraints.slacks :]]

    @property
    def likelihood(self) -> bool:
        """True if the objective has logarithms of standard deviations, and may be negative."""
        return any(b.outputs > 1 for b in self.discretisation.residuals)

    def pack(self, values: Array, unknowns: Array) -> Array:
        """Return w from values at points, shape (P, v), and unknowns, with the slacks needed."""
        c = self.constraints
        slacks = np.zeros(c.slacks)
        if c.slacks:
            with_slack = np.flatnonzero(c.slack >= 0)
            rows = self.discretisation.defects(values, unknowns)[c.rows[with_slack]]
            np.maximum.at(slacks, c.slack[with_slack], np.abs(rows))
        return np.concatenate([values.ravel(), unknowns, slacks])

    def start(self, instance: Instance) -> Array:
        """Return a start within the bounds: that of the instance, with zeros for missing values."""
        d = self.discretisation
        values, unknowns = instance.values, instance.unknowns
        if values is None:
            values = np.zeros((d.points, len(d.variables)))
        if unknowns is None:
            unknowns = np.zeros(len(d.problem.unknowns))
        values = np.clip(values, d.lower, d.upper)
        unknowns = np.clip(unknowns, d.problem.lower, d.problem.upper)
        return np.nan_to_num(self.pack(values, unknowns))

    def known(self, w: Sequence[T]) -> list[T | float]:
        """Return `w` with numbers in place of variables that have only one possible value."""
        bounds = zip(w, self.lower.tolist(), self.upper.tolist(), strict=True)
        return [low if low == high else variable for variable, low, high in bounds]

    def unpack(self, w: Array) -> tuple[Array, Array]:
        """Return values at points and unknowns from `w`."""
        d = self.discretisation
        values = w[: self.at_points].reshape(d.points, len(d.variables))
        return values, w[self.at_points : self.at_points + len(d.problem.unknowns)]


Terms = tuple[npt.NDArray[Any], Array]
"""Numbers of variables or outputs, and their coefficients."""


def assemble(discretisation: Discretisation, formulation: Formulation) -> Assembly:
    """Return the constraints of `discretisation` under `formulation`."""
    d = discretisation
    c = formulation.constraints(d.rows.dynamic)
    count = len(c.rows)
    chosen = csr_array((np.ones(count), (np.arange(count), c.rows)), (count, len(d.rows.dynamic)))
    with_slack = np.flatnonzero(c.slack >= 0)
    slack = csr_array((c.sign[with_slack], (with_slack, c.slack[with_slack])), (count, c.slacks))
    linear = [csr_array(chosen @ d.rows.values), csr_array(chosen @ d.rows.unknowns), slack]
    return Assembly(
        d,
        c,
        np.concatenate([d.lower.ravel(), d.problem.lower, np.zeros(c.slacks)]),
        np.concatenate([d.upper.ravel(), d.problem.upper, np.full(c.slacks, np.inf)]),
        csr_array(hstack(linear, format="csr")),
        tuple(csr_array(chosen @ w) for w in d.rows.outputs),
    )
