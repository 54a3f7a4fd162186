"""The standard form (18)-(25): linear rows, and the simplest nonlinear terms between variables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_array, csr_array

from odefit.common.arrays import Array, BoolArray, IntArray
from odefit.common.errors import InputError
from odefit.discretisation.assembly import Assembly, assemble
from odefit.discretisation.discretisation import Discretisation
from odefit.discretisation.formulations import Baseline
from odefit.enclosure.arithmetic.rounding import UNIT_ROUNDOFF
from odefit.methods.outer_approximation.reformulation import (
    Affine,
    AffineAlgebra,
    Definition,
    Reformulation,
    UnivariateTerm,
)

Bounds = tuple[Array, Array]
"""Lower and upper bounds of all variables, each of shape (n,)."""

COEFFICIENT_ERROR = 16 * UNIT_ROUNDOFF
"""Relative error of the coefficients of rows, which are sums and products of given numbers."""


@dataclass(frozen=True, eq=False)
class StandardForm:
    """``min sum of w_r^2 over residuals + linear . w + constant`` subject to (19)-(25)."""

    names: tuple[str, ...]
    lower: Array  # infinite if nothing is known yet
    upper: Array
    matrix: csr_array  # of the linear rows ``matrix @ w = target`` (19)
    target: Array
    bilinear: IntArray
    """Indices (k, i, j) of the terms ``w_k = w_i w_j`` (22), shape (terms, 3). A fraction
    ``w_k = w_i / w_j`` (23) is here as ``w_i = w_k w_j``."""
    univariate: tuple[UnivariateTerm, ...]
    residuals: IntArray  # indices of the variables whose squares are the objective
    linear: Array  # with `constant`: logarithms of estimated standard deviations
    constant: float
    originals: int  # variables of the discretised problem, before the auxiliary ones
    parameters: IntArray  # indices of the variables that are unknowns of the problem
    elements: IntArray
    """First and last finite element of a variable, counted from 0, shape (n, 2). The end of an
    element also belongs to the next one. They are -1 and the largest integer for variables without
    an element, such as parameters."""
    definitions: Mapping[int, Definition]  # in the order of computation

    @property
    def size(self) -> int:
        """Number of variables, n."""
        return len(self.names)

    @property
    def factors(self) -> IntArray:
        """Indices of the variables that occur in nonlinear terms, increasing."""
        arguments = [t.argument for t in self.univariate]
        return np.unique(np.concatenate([self.bilinear[:, 1:].ravel(), arguments])).astype(np.intp)

    def within(self, group: Sequence[int]) -> BoolArray:
        """Return the variables that belong to a group of consecutive elements, or to none."""
        first, last = self.elements.T
        inside: BoolArray = (first < 0) | ((last >= min(group)) & (first <= max(group)))
        return inside

    def objective(self, w: Array) -> float:
        """Return the objective at the variables `w`, shape (n,)."""
        r = w[self.residuals]
        return float(r @ r + self.linear @ w + self.constant)


def standard_form(d: Discretisation) -> StandardForm:
    """Return the discretised problem (13)-(17) with every expression taken apart.

    Raises InputError if one is undefined at known values.
    """
    a = assemble(d, Baseline())
    known = Reformulation([a.name(k) for k in range(a.size)])
    algebra = AffineAlgebra(known)
    w = [
        algebra.affine(low) if low == high else known.variable(k)
        for k, (low, high) in enumerate(zip(a.lower.tolist(), a.upper.tolist(), strict=True))
    ]
    try:
        rows = _equations(a, w, algebra)
        residuals, rest = _objective(a, w, algebra)
    except (ZeroDivisionError, OverflowError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(
            f"outer approximation: the model is not defined at its known values ({error})"
        ) from error
    numbers = np.array([known.auxiliary(r) for r in residuals], dtype=np.intp)
    rows += known.rows
    n = len(known.names)
    lower, upper, linear = np.full(n, -np.inf), np.full(n, np.inf), np.zeros(n)
    lower[: a.size], upper[: a.size] = a.lower, a.upper
    linear[list(rest.coefficients)] = list(rest.coefficients.values())
    entries = [(c, k, i) for k, row in enumerate(rows) for i, c in row.coefficients.items()]
    value, row, column = (np.array(part) for part in zip(*entries, strict=True))
    return StandardForm(
        tuple(known.names),
        lower,
        upper,
        csr_array(coo_array((value, (row, column)), shape=(len(rows), n))),
        np.array([-r.constant for r in rows]),
        np.array(known.bilinear, dtype=np.intp).reshape(-1, 3),
        tuple(known.univariate),
        numbers,
        linear,
        rest.constant,
        a.size,
        np.arange(a.at_points, a.at_points + len(d.problem.unknowns)),
        _elements(a, known),
        known.definitions,
    )


def _equations(a: Assembly, w: list[Affine], algebra: AffineAlgebra) -> list[Affine]:
    """Return the left-hand sides that are equal to zero."""
    outputs = [w]
    for block in a.discretisation.blocks:
        evaluated = a.evaluated(block, w, algebra)
        outputs.append([algebra.affine(o) for instance in evaluated for o in instance])
    equations = []
    for _, _, parts in a.rows():
        total = algebra.affine(0.0)
        for variables, (numbers, weights) in zip(outputs, parts, strict=True):
            for number, weight in zip(numbers.tolist(), weights.tolist(), strict=True):
                total = total + variables[number].scaled(weight)
        if total.coefficients:
            equations.append(total)
    return equations


def _objective(a: Assembly, w: list[Affine], algebra: AffineAlgebra) -> tuple[list[Affine], Affine]:
    """Return the residuals, and the rest of the objective besides their squares."""
    rest = algebra.affine(0.0)
    residuals = []
    for block in a.discretisation.residuals:
        for outputs in a.evaluated(block, w, algebra):
            residual, *log_sd = (algebra.affine(o) for o in outputs)
            for s in log_sd:
                rest = rest + s.scaled(2.0)
            if residual.coefficients:
                residuals.append(residual)
            else:  # measured at a time where the state is known
                rest = rest + residual.constant**2
    return residuals, rest


def _elements(a: Assembly, known: Reformulation) -> IntArray:
    """Return the first and last element of every variable, see :class:`StandardForm`."""
    d = a.discretisation
    elements = np.empty((len(known.names), 2), dtype=np.intp)
    elements[:, 0], elements[:, 1] = -1, np.iinfo(np.intp).max
    width = len(d.variables)
    for number in range(len(d.problem.conditions)):
        meshes = [p.segment.mesh for p in d.segments if p.segment.condition == number]
        mesh = np.unique(np.concatenate(meshes))
        for point in np.flatnonzero(d.condition_of == number).tolist():
            time = d.times[point]
            ends = [int(np.searchsorted(mesh, time, side)) - 1 for side in ("left", "right")]
            elements[point * width : (point + 1) * width] = np.clip(ends, 0, len(mesh) - 2)
    for k, definition in known.definitions.items():
        arguments = list(definition.arguments)
        elements[k] = elements[arguments, 0].max(), elements[arguments, 1].min()
    return elements
