"""The exact number of solutions for generic data, by a Groebner basis modulo a prime.

The equations state that the Taylor coefficients of the outputs are those at a random point. Their
solutions are counted in the algebraic closure of a prime field, where nothing is rounded and no
solution can be missed. The probabilistic part is the conclusion from a random point and a large
prime to almost all parameters and the rational numbers (H. Hong, A. Ovchinnikov, G. Pogudin and C.
Yap, Global identifiability of differential models, Comm. Pure Appl. Math. 73, 2020, for the point).
"""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from odefit.structure.exact.f4 import groebner_basis
from odefit.structure.exact.monomials import Packing
from odefit.structure.exact.polynomials import (
    Polynomial,
    add,
    constant,
    is_constant,
    variable,
    variables,
    without_linear,
)
from odefit.structure.exact.quotient import NotZeroDimensionalError, Quotient, distinct_roots
from odefit.structure.exact.symbolic_series import SymbolicSeries, Variables
from odefit.structure.homotopy.square import Row, SquareSystem
from odefit.structure.series.deadline import Deadline, UnfinishedError
from odefit.structure.series.differentiated_system import DifferentiatedSystem
from odefit.structure.series.modular_points import ModularExpansionPoint, modular_point
from odefit.structure.series.number_fields import PRIME, Residues

MAX_POINTS = 5
"""Largest number of random points that are tried to avoid divisions by zero."""


@dataclass(frozen=True, eq=False)
class ExactCount:
    """The number of solutions for generic data, complex ones included.

    `values` has the number of distinct values of each solved unknown, `distinct` the number of
    solutions that differ in the requested unknowns. `dimension` counts multiplicities: it equals
    `total` unless a solution is multiple. The count is exact for the random point and prime that
    were drawn. It holds for almost all parameters unless the prime divides a certain number or the
    point lies on a certain hypersurface. That contains a share below D/p of all points, for degree
    D and prime p. Neither is excluded by proof, so counts with two seeds are compared.
    """

    total: int
    values: Mapping[str, int]
    dimension: int
    distinct: int


def exact_count(
    square: SquareSystem,
    *,
    structural: bool,
    order: int = 0,
    limit: Deadline | None = None,
    seed: int = 0,
    names: Collection[str] = (),
) -> ExactCount | None:
    """Count the solutions of a square system, or of all equations, at random known numbers.

    `structural=False` counts the solutions of the square system itself, which a homotopy has to
    track. True counts the indistinguishable ones, with one more derivative of every output (or
    those up to `order`). That suffices: the first derivative beyond the rows is algebraic over the
    rows, so that by differentiating its minimal polynomial all later ones are rational in those
    used. Around given initial values this need not hold, and the number is an upper bound. The
    solutions that differ in the unknowns `names` are counted as well. Returns None if the allowed
    work or memory does not suffice, if the equations divide by zero at all random points, or if
    there are infinitely many solutions.
    """
    deadline = square.system.deadline if limit is None else limit
    rows = _rows(square, structural, order)
    try:
        equations, depth = _equations(square, rows, seed, deadline)
        solved = square.solved.tolist()
        together = [c for c in solved if square.system.names[c] in names]
        counted = _counted(equations, depth, solved, together, seed, deadline)
    except (UnfinishedError, NotZeroDimensionalError, ZeroDivisionError):
        return None
    total, dimension, values, distinct = counted
    names = square.system.names
    return ExactCount(
        total,
        {names[c]: n for c, n in values.items()},
        dimension,
        distinct,
    )


def _rows(square: SquareSystem, structural: bool, least: int) -> list[Row]:
    """Return the equations whose solutions are counted."""
    if not structural:
        return list(square.rows)
    rows = []
    for k, expansion in enumerate(square.system.expansions):
        for i, highest in enumerate(square.orders(k)):
            beyond = max(highest + 1, least) if i < len(expansion.observables) else 0
            rows += [Row(k, order, i) for order in range(beyond + 1)]
    return rows


def _equations(
    square: SquareSystem, rows: Sequence[Row], seed: int, deadline: Deadline
) -> tuple[list[Polynomial], list[int]]:
    """Return polynomials equal to zero, and the depths of their variables.

    The polynomials state that the rows have their values at a random point, and define the new
    variables. Raises ZeroDivisionError at an unlucky point.
    """
    system = square.system
    order = max((row.order for row in rows), default=0)
    values, points, outputs = _random_outputs(system, order, np.random.default_rng(seed))
    variables = Variables(len(system.names))
    solved = set(square.solved.tolist())
    equations: list[Polynomial] = []
    for k, expansion in enumerate(system.expansions):
        own_rows = [row for row in rows if row.expansion == k]
        e = expansion.program.equations
        columns = system.columns[k].tolist()
        numbers = {
            t.index: variable(c) if c in solved else constant(int(values[c]))
            for t, c in zip(e.unknowns, columns, strict=True)
        }
        numbers |= {
            t.index: constant(int(v)) for t, v in zip(e.known, points[k].known, strict=True)
        }
        functions = {
            t.index: [int(c) for c in coefficients]
            for t, coefficients in zip(e.functions, points[k].functions, strict=True)
        }
        series = SymbolicSeries(e, variables, numbers, functions, deadline)
        left = series.coefficients((e.outputs[row.output].index, row.order) for row in own_rows)
        for row, f in zip(own_rows, left, strict=True):
            # Constraints between known numbers need not hold for random numbers.
            if row.output < len(expansion.observables) or not is_constant(f):
                value = int(outputs[k][row.order, row.output])
                equations.append(add(f, constant(value), -1))
        equations += series.relations
    return equations, variables.depth


def _random_outputs(
    system: DifferentiatedSystem, order: int, rng: np.random.Generator
) -> tuple[Residues, list[ModularExpansionPoint], list[Residues]]:
    """Return a random point modulo the prime, and each expansion's outputs up to `order` there.

    Raises ZeroDivisionError if the equations divide by zero at all tried points.
    """
    for attempt in range(MAX_POINTS):
        values, points = modular_point(system, rng, order)
        try:
            runs = [
                system.run_modular(k, values[None], order, point, derivatives=False)
                for k, point in enumerate(points)
            ]
        except ZeroDivisionError:
            if attempt == MAX_POINTS - 1:
                raise
            continue
        break
    return values, points, [run.outputs[0] for run in runs]


def _counted(
    equations: Sequence[Polynomial],
    depth: Sequence[int],
    counted: Sequence[int],
    together: Sequence[int],
    seed: int,
    deadline: Deadline,
) -> tuple[int, int, dict[int, int], int]:
    """Count the solutions, with and without multiplicities, and the values of `counted` variables.

    The last number counts the solutions that differ in the variables `together`.
    """
    eliminated = without_linear(equations, depth, deadline)
    used = set().union(*(variables(f) for f in eliminated.equations))
    forms = {v: eliminated.forms.get(v, variable(v)) for v in counted}
    if any(not variables(f) <= used for f in forms.values()):
        raise NotZeroDimensionalError("an unknown is in no equation")
    # The greatest variables are the least needed ones.
    order = sorted(used, key=lambda v: (-depth[v], v))
    if not order:
        return 1, 1, dict.fromkeys(counted, 1), 1
    packing = Packing(len(order))
    terms = [_packed(f, order, packing) for f in eliminated.equations]
    quotient = Quotient(groebner_basis(terms, packing, deadline), packing, deadline)
    rng = random.Random(seed)
    generic = {i: rng.randrange(1, PRIME) for i in range(len(order))}
    total = distinct_roots(quotient.minimal_polynomial(generic))
    place = {v: i for i, v in enumerate(order)}

    def values_of(linear: dict[int, int]) -> int:
        """Return the number of values of a linear form."""
        return distinct_roots(quotient.minimal_polynomial(linear)) if any(linear.values()) else 1

    values = {}
    for v, f in forms.items():
        values[v] = values_of({place[m[0][0]]: c for m, c in f.items() if m})
    # A random combination takes as many values as there are solutions that differ in its terms.
    combined: dict[int, int] = {}
    for v in together if total > 1 else ():
        weight = rng.randrange(1, PRIME)
        for m, c in forms[v].items():
            if m:
                i = place[m[0][0]]
                combined[i] = (combined.get(i, 0) + weight * c) % PRIME
    return total, quotient.dimension, values, values_of(combined)


def _packed(f: Polynomial, used: Sequence[int], packing: Packing) -> dict[int, int]:
    """Return a polynomial with packed monomials; `used` are the variables of `packing`."""
    place = {v: packing.variables[i] for i, v in enumerate(used)}
    return {sum(e * place[v] for v, e in m): c for m, c in f.items()}
