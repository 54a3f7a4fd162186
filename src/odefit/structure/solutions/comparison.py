"""Comparison of a square system's solutions in the derivatives beyond it.

A square system uses as many Taylor coefficients as there are unknowns, and most of its solutions
differ in the next coefficients. Solutions that do not differ are indistinguishable.
"""

from __future__ import annotations

import numpy as np

from odefit.common.arrays import Array, BoolArray, ComplexArray
from odefit.expressions.expressions import TIME
from odefit.structure.homotopy.monodromy import GenericSolutions
from odefit.structure.homotopy.square import SquareSystem
from odefit.structure.homotopy.tracker import solve
from odefit.structure.series.expansion import Expansion, ExpansionPoint, random_complex, time_series
from odefit.structure.series.number_fields import COMPLEX

FURTHER_ORDERS = 4
"""Number of orders beyond those of the square system in which solutions are compared."""

SAME_COEFFICIENT = 1e-5
"""Relative difference up to which two Taylor coefficients are the same."""

NEARLY_ZERO = 1e-7
"""Size of a coefficient, relative to the largest one of its order, below which differences are
relative to this size: some coefficients are zero up to rounding."""

MIN_SCALE = 1e-5
"""Smallest size assumed for the largest coefficient of an order."""


class OutputComparison:
    """Compares solutions by the Taylor coefficients of all outputs, at one vector of parameters.

    Coefficients of known functions that the parameters do not give are random. Solutions are
    compared up to `order`, if that is higher than the orders of the square system.
    """

    def __init__(
        self, square: SquareSystem, parameters: ComplexArray, seed: int = 0, order: int = 0
    ) -> None:
        self.square = square
        self.parameters = parameters
        self.order = max(order, square.order) + FURTHER_ORDERS
        rng = np.random.default_rng(seed)
        self._points = [
            ExpansionPoint(known, _continued(expansion, functions, self.order, rng))
            for expansion, (known, functions) in zip(
                square.system.expansions, square.expansion_points(parameters), strict=True
            )
        ]
        self._floors: Array | None = None

    def refined(self, solutions: ComplexArray) -> ComplexArray:
        """Return the solutions after two more Newton steps."""
        many = np.repeat(self.parameters[None], len(solutions), axis=0)
        with np.errstate(all="ignore"):
            for _ in range(2):
                left, jacobian, _ = self.square.values(solutions, many)
                step = solve(jacobian, (many[:, : self.square.size] - left)[:, :, None])
                better = solutions + step[:, :, 0]
                fine = np.asarray(np.isfinite(better).all(axis=1))
                solutions = np.where(fine[:, None], better, solutions)
        return solutions

    def coefficients(self, solutions: ComplexArray) -> ComplexArray:
        """Return all Taylor coefficients at each solution, shape (m, coefficients)."""
        parts = self.parts(self.square.all_unknowns(self.refined(solutions), self.parameters))
        if self._floors is None:
            sizes = [np.full(p.shape[1], np.abs(p[0]).max(initial=MIN_SCALE)) for p in parts]
            self._floors = NEARLY_ZERO * np.concatenate(sizes)
        return np.concatenate(parts, axis=1)

    def parts(self, values: ComplexArray) -> list[ComplexArray]:
        """Return each expansion's coefficients by order, (m, outputs) each, and the constraints.

        `values` are all unknowns of the system at each of m points, shape (m, unknowns).
        """
        square = self.square
        parts: list[ComplexArray] = []
        with np.errstate(all="ignore"):
            for k, expansion in enumerate(square.system.expansions):
                known, functions = self._points[k]
                taylor = square.system.run(
                    k,
                    values,
                    self.order,
                    np.repeat(known[None], len(values), axis=0),
                    np.repeat(functions[None], len(values), axis=0),
                    derivatives=False,
                )
                measured = len(expansion.observables)
                parts += [*np.moveaxis(taylor.outputs[:, :, :measured], 1, 0)]
                # Constraints, which are zero, are compared with numbers of the size of one.
                parts.append(1.0 + taylor.outputs[:, 0, measured : expansion.outputs])
        return parts

    def equal(self, one: ComplexArray, others: ComplexArray) -> BoolArray:
        """Return which of the others, shape (m, coefficients), have the coefficients of `one`."""
        assert self._floors is not None, "coefficients come from coefficients()"
        scale = np.maximum(np.maximum(np.abs(one), np.abs(others)), self._floors)
        with np.errstate(all="ignore"):
            difference = np.abs(one - others) / scale
        return np.asarray(np.all(difference < SAME_COEFFICIENT, axis=1))


def count_indistinguishable(square: SquareSystem, generic: GenericSolutions) -> int:
    """Return the number of generic solutions that are indistinguishable from the first."""
    compare = OutputComparison(square, generic.parameters)
    coefficients = compare.coefficients(generic.solutions)
    return int(compare.equal(coefficients[0], coefficients).sum())


def _continued(
    expansion: Expansion, functions: ComplexArray, order: int, rng: np.random.Generator
) -> ComplexArray:
    """Return more Taylor coefficients of the known functions, shape (functions, order + 1).

    Beyond the given first coefficients a function is random, but consistent with its derivatives.
    """
    terms = [expansion.lifting.functions[t.index] for t in expansion.program.equations.functions]
    known = functions.shape[1]

    def series(name: str, length: int) -> ComplexArray:
        drawn = random_complex(rng, length)
        coefficients_of_name = time_series(COMPLEX, 0.0, length) if name == TIME else drawn
        for (other, derivative), coefficients in zip(terms, functions, strict=True):
            if other == name:
                factor = np.ones(known)
                for d in range(derivative):
                    factor = factor * (np.arange(known) + derivative - d)
                coefficients_of_name[derivative : derivative + known] = coefficients / factor
        return coefficients_of_name

    return expansion.function_series(COMPLEX, order, series)
