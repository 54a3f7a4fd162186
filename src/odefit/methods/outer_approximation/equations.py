"""The discretised problem (13)-(17) in standard form."""

from __future__ import annotations

import numpy as np
from scipy.sparse import coo_array, csr_array

from odefit.discretisation.assembly import Assembly, assemble
from odefit.discretisation.discretisation import Discretisation
from odefit.discretisation.formulations import Baseline
from odefit.methods.outer_approximation.reformulation import Affine, AffineAlgebra, Terms
from odefit.methods.outer_approximation.standard_form import StandardForm
from odefit.problem.arrays import Array, IntArray
from odefit.problem.errors import InputError


def standard_form(d: Discretisation) -> StandardForm:
    """`d` with every expression taken apart.

    Raises
    ------
    InputError
        An expression is not defined at values that are known.
    """
    a = assemble(d, Baseline())
    terms = Terms([a.name(k) for k in range(a.size)])
    algebra = AffineAlgebra(terms)
    w = [
        Affine(terms, {}, low) if low == high else terms.variable(k)
        for k, (low, high) in enumerate(zip(a.lower.tolist(), a.upper.tolist(), strict=True))
    ]
    try:
        rows = _equations(a, w, algebra)
        residuals, linear = _objective(a, w, algebra)
    except (ZeroDivisionError, OverflowError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(
            f"outer approximation: the model is not defined at its known values ({error})"
        ) from error
    numbers = [terms.named(r) for r in residuals]
    return _assembled(a, terms, [*rows, *terms.rows], numbers, linear)


def _equations(a: Assembly, w: list[Affine], algebra: AffineAlgebra) -> list[Affine]:
    """Left-hand sides that are zero."""
    outputs = [w]
    for block in a.discretisation.blocks:
        evaluated = a.evaluated(block, w, algebra)
        outputs.append([algebra.affine(o) for instance in evaluated for o in instance])
    found = []
    for _, _, parts in a.rows():
        total = Affine(w[0].terms, {})
        for variables, (numbers, weights) in zip(outputs, parts, strict=True):
            for number, weight in zip(numbers.tolist(), weights.tolist(), strict=True):
                total = total + variables[number].scaled(weight)
        if total.coefficients:
            found.append(total)
    return found


def _objective(a: Assembly, w: list[Affine], algebra: AffineAlgebra) -> tuple[list[Affine], Affine]:
    """Residuals, and what the objective has beside their squares."""
    linear = Affine(w[0].terms, {})
    residuals = []
    for block in a.discretisation.residuals:
        for outputs in a.evaluated(block, w, algebra):
            residual, *log_sd = (algebra.affine(o) for o in outputs)
            residuals.append(residual)
            for s in log_sd:
                linear = linear + s.scaled(2.0)
    fixed = [r for r in residuals if not r.coefficients]
    for r in fixed:  # measured where the state is known
        linear = linear + r.constant**2
    return [r for r in residuals if r.coefficients], linear


def _assembled(
    a: Assembly, terms: Terms, rows: list[Affine], residuals: list[int], linear: Affine
) -> StandardForm:
    n = len(terms.names)
    lower, upper = np.full(n, -np.inf), np.full(n, np.inf)
    lower[: a.size], upper[: a.size] = a.lower, a.upper
    entries = [(k, i, c) for k, row in enumerate(rows) for i, c in row.coefficients.items()]
    row, column, value = (np.array(part) for part in zip(*entries, strict=True))
    matrix = csr_array(coo_array((value, (row, column)), shape=(len(rows), n)))
    c = np.zeros(n)
    for i, factor in linear.coefficients.items():
        c[i] = factor
    count = len(a.discretisation.problem.unknowns)
    return StandardForm(
        tuple(terms.names),
        lower,
        upper,
        matrix,
        np.array([-r.constant for r in rows]),
        np.array(terms.bilinear, dtype=np.intp).reshape(-1, 3),
        tuple(terms.univariate),
        np.array(residuals, dtype=np.intp),
        c,
        linear.constant,
        a.size,
        np.arange(a.at_points, a.at_points + count),
        _elements(a, terms),
        terms.definitions,
    )


def _elements(a: Assembly, terms: Terms) -> IntArray:
    """First and last element of every variable, see :class:`StandardForm`."""
    d = a.discretisation
    found = np.empty((len(terms.names), 2), dtype=np.intp)
    found[:, 0], found[:, 1] = -1, np.iinfo(np.intp).max
    width = len(d.variables)
    for number in range(len(d.problem.conditions)):
        own = [p.segment.mesh for p in d.segments if p.segment.condition == number]
        mesh = np.unique(np.concatenate(own))
        for point in np.flatnonzero(d.condition_of == number).tolist():
            time = d.times[point]
            ends = [int(np.searchsorted(mesh, time, side)) - 1 for side in ("left", "right")]
            found[point * width : (point + 1) * width] = np.clip(ends, 0, len(mesh) - 2)
    for k, definition in terms.definitions.items():
        arguments = list(definition.arguments)
        found[k] = found[arguments, 0].max(), found[arguments, 1].min()
    return found


def completed(form: StandardForm, values: Array, unknowns: Array) -> Array:
    """All variables of the standard form from those of the discretised problem, shape (n,)."""
    w = np.full(form.size, np.nan)
    w[: form.originals] = np.concatenate([values.ravel(), unknowns])
    for k, definition in form.definitions.items():
        w[k] = definition.value(w)
    return w
