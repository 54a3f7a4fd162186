"""Do two solutions of a square system agree in the next derivatives too?"""

from __future__ import annotations

import numpy as np

from odefit.problem.arrays import Array, BoolArray, ComplexArray
from odefit.problem.expressions import TIME
from odefit.structure.homotopy.tracker import solve
from odefit.structure.jets import Block, random_complex
from odefit.structure.series import COMPLEX
from odefit.structure.square import SquareSystem

FURTHER = 4
"""Orders beyond those of the square system in which solutions are compared."""

EQUAL = 1e-5
"""Relative difference of coefficients up to which they are the same."""

ZERO = 1e-7
"""Size, relative to the largest coefficient of that order, below which differences do not count
in full: some coefficients are zero but for rounding."""

SMALL = 1e-5
"""And what counts as the largest coefficient of an order if all are smaller."""


class Comparison:
    """Taylor coefficients of all outputs at one vector of parameters, further than needed."""

    def __init__(self, square: SquareSystem, parameters: ComplexArray, seed: int = 0) -> None:
        self.square = square
        self.parameters = parameters
        self.order = square.order + FURTHER
        rng = np.random.default_rng(seed)
        self._around = [
            (known, _continued(block, functions, self.order, rng))
            for block, (known, functions) in zip(
                square.system.blocks, square.surroundings(parameters), strict=True
            )
        ]
        self._floors: Array | None = None

    def refined(self, solutions: ComplexArray) -> ComplexArray:
        """Solutions after two more Newton steps."""
        many = np.repeat(self.parameters[None], len(solutions), axis=0)
        with np.errstate(all="ignore"):
            for _ in range(2):
                left, jacobian, _ = self.square.values(solutions, many)
                step = solve(jacobian, (many[:, : self.square.size] - left)[:, :, None])
                better = solutions + step[:, :, 0]
                fine = np.asarray(np.isfinite(better).all(axis=1))
                solutions = np.where(fine[:, None], better, solutions)
        return solutions

    def jets(self, solutions: ComplexArray) -> ComplexArray:
        """All coefficients of solutions, shape (m, coefficients)."""
        square = self.square
        refined = self.refined(solutions)
        many = np.repeat(self.parameters[None], len(solutions), axis=0)
        values = square.everything(refined, many)
        parts = []
        with np.errstate(all="ignore"):
            for k, block in enumerate(square.system.blocks):
                known, functions = self._around[k]
                run = block.program.run(
                    COMPLEX,
                    values[:, square.system.columns[k]],
                    self.order,
                    np.repeat(known[None], len(values), axis=0),
                    np.repeat(functions[None], len(values), axis=0),
                    derivatives=False,
                )
                measured = len(block.observables)
                parts += [*np.moveaxis(run.outputs[:, :, :measured], 1, 0)]
                # What is zero at every time is compared with numbers of the size of one.
                parts.append(1.0 + run.outputs[:, 0, measured : block.outputs])
        if self._floors is None:
            sizes = [np.full(p.shape[1], np.abs(p[0]).max(initial=SMALL)) for p in parts]
            self._floors = ZERO * np.concatenate(sizes)
        return np.concatenate(parts, axis=1)

    def equal(self, one: ComplexArray, others: ComplexArray) -> BoolArray:
        """Which of the others, shape (m, coefficients), agree with one of them."""
        assert self._floors is not None, "coefficients come from jets()"
        scale = np.maximum(np.maximum(np.abs(one), np.abs(others)), self._floors)
        with np.errstate(all="ignore"):
            far = np.abs(one - others) / scale
        return np.asarray(np.all(far < EQUAL, axis=1))


def _continued(
    block: Block, functions: ComplexArray, order: int, rng: np.random.Generator
) -> ComplexArray:
    """Taylor coefficients of known functions, shape (functions, order + 1), from the first ones.

    What is not known of them is random, the same in a function and in its derivatives.
    """
    terms = [block.lifting.functions[t.index] for t in block.program.equations.functions]
    given = functions.shape[1]
    longest = order + 1 + max((d for _, d in terms), default=0)
    series: dict[str, ComplexArray] = {}
    for k, (name, differentiated) in enumerate(terms):
        if name not in series:
            series[name] = random_complex(rng, longest)
            if name == TIME:
                series[name] = np.eye(1, longest, 1, dtype=complex)[0]
        factor = np.ones(given)
        for d in range(differentiated):
            factor = factor * (np.arange(given) + differentiated - d)
        series[name][differentiated : differentiated + given] = functions[k] / factor
    result = np.zeros((len(terms), order + 1), dtype=complex)
    for k, (name, differentiated) in enumerate(terms):
        coefficients = series[name]
        for _ in range(differentiated):
            coefficients = coefficients[1:] * np.arange(1, len(coefficients))
        result[k] = coefficients[: order + 1]
    return result
