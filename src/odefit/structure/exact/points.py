"""Random points modulo the prime, on the polynomial relations that a model comes with."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from odefit.structure.exact.deadline import Deadline
from odefit.structure.exact.expansion import Expansion, Variables
from odefit.structure.exact.f4 import groebner_basis
from odefit.structure.exact.monomials import Packing
from odefit.structure.exact.polynomials import (
    Polynomial,
    constant,
    is_constant,
    substitute,
    variable,
    variables,
)
from odefit.structure.exact.quotient import NotZeroDimensionalError, Quotient
from odefit.structure.exact.univariate import root
from odefit.structure.jets import Block, JetSystem, Residues
from odefit.structure.series import MODULAR, PRIME

ATTEMPTS = 300
"""Random points, at most, until one satisfies the relations: half have a square root, a third a
cube root, and so on."""


@dataclass(frozen=True, eq=False)
class Point:
    """A point, and what the experiments prescribe.

    Attributes
    ----------
    values
        Of all unknowns of the system.
    known
        By block, its known numbers.
    functions
        By block, Taylor coefficients of its known functions, shape (functions, order + 1).
    outputs
        By block, Taylor coefficients of its outputs there, shape (order + 1, outputs).
    """

    values: Residues
    known: tuple[Residues, ...]
    functions: tuple[Residues, ...]
    outputs: tuple[Residues, ...]

    def expansion(
        self, system: JetSystem, k: int, made: Variables, open_: set[int], deadline: Deadline
    ) -> Expansion:
        """Block `k` in polynomials of the unknowns in the columns `open_`, all others given."""
        e = system.blocks[k].program.equations
        columns = system.columns[k].tolist()
        values = {
            t.index: variable(c) if c in open_ else constant(int(self.values[c]))
            for t, c in zip(e.unknowns, columns, strict=True)
        }
        values |= {t.index: constant(int(v)) for t, v in zip(e.known, self.known[k], strict=True)}
        functions = {
            t.index: [int(c) for c in series]
            for t, series in zip(e.functions, self.functions[k], strict=True)
        }
        return Expansion(e, made, values, functions, deadline)


def random_point(system: JetSystem, order: int, seed: int, deadline: Deadline) -> Point | None:
    """A random point, and the outputs there up to `order`.

    Returns
    -------
    Point or None
        None if no point satisfies the relations of the model: none was found in
        :data:`ATTEMPTS` attempts, each of which draws everything anew and solves the relations
        for new states and algebraic variables alone.

    Raises
    ------
    UnfinishedError
        The time allowed has passed.
    """
    generator, rng = np.random.default_rng(seed), random.Random(seed)
    for _ in range(ATTEMPTS):
        deadline.check()
        values = generator.integers(1, PRIME, len(system.names))
        around = [
            system.modular_surroundings(k, order, generator) for k in range(len(system.blocks))
        ]
        known, functions = tuple(a[0][0] for a in around), tuple(a[1][0] for a in around)
        point = Point(values, known, functions, ())
        try:
            if all(_satisfied(system, k, point, rng, deadline) for k in range(len(system.blocks))):
                outputs = [_outputs(system, k, point, order) for k in range(len(system.blocks))]
                return Point(values, known, functions, tuple(outputs))
        except ZeroDivisionError:
            continue
    return None


def _outputs(system: JetSystem, k: int, point: Point, order: int) -> Residues:
    jets = system.blocks[k].program.run(
        MODULAR,
        point.values[None, system.columns[k]],
        order,
        point.known[k][None],
        point.functions[k][None],
        derivatives=False,
    )
    return np.asarray(jets.outputs[0])


def _satisfied(
    system: JetSystem, k: int, point: Point, rng: random.Random, deadline: Deadline
) -> bool:
    """Give the values of new states and algebraic variables that the relations ask for."""
    block = system.blocks[k]
    if not block.zeros:
        return True
    free = _free(system, block)
    expansion = point.expansion(system, k, Variables(len(system.names)), free, deadline)
    outputs = block.program.equations.outputs[len(block.observables) : block.outputs]
    zeros = expansion.coefficients((t.index, 0) for t in outputs)
    # What hangs on known numbers alone is not the unknowns' concern.
    relations = [f for f in zeros if not is_constant(f)] + expansion.relations
    found = _solution(relations, free, rng, deadline)
    if found is None:
        return False
    for column, value in found.items():
        point.values[column] = value
    return True


def _free(system: JetSystem, block: Block) -> set[int]:
    """Columns of the values that the relations may determine."""
    names = {own for state, own in block.states.items() if state not in block.lifting.model.states}
    return {c for c, name in enumerate(system.names) if name in names}


def _solution(
    equations: Sequence[Polynomial], free: set[int], rng: random.Random, deadline: Deadline
) -> dict[int, int] | None:
    """Values in the prime field of the `free` variables, as far as they appear."""
    left = list(equations)
    found: dict[int, int] = {}
    while True:
        left = [f for f in left if f]
        if any(is_constant(f) for f in left):
            return None
        used = sorted(set().union(*(variables(f) for f in left)))
        candidates = sorted(free.intersection(used))
        if not candidates:
            return found
        packing = Packing(len(used))
        terms = [packed(f, used, packing) for f in left]
        try:
            quotient = Quotient(groebner_basis(terms, packing, deadline), packing, deadline)
        except NotZeroDimensionalError:
            v, value = rng.choice(candidates), rng.randrange(1, PRIME)
        else:
            v = candidates[0]
            one = root(quotient.minimal_polynomial({used.index(v): 1}), rng)
            if one is None:
                return None
            value = one
        found[v] = value
        left = [substitute(f, v, constant(value)) for f in left]


def packed(f: Polynomial, used: Sequence[int], packing: Packing) -> dict[int, int]:
    """A polynomial with packed monomials.

    Parameters
    ----------
    used
        The variables of `packing`, in its order.
    """
    place = {v: packing.variables[i] for i, v in enumerate(used)}
    return {sum(e * place[v] for v, e in m): c for m, c in f.items()}
