"""Random points at which all terms that are zero vanish: modulo the prime, and for numbers."""

from __future__ import annotations

import numpy as np

from odefit.structure.jets import JetSystem, Residues
from odefit.structure.series import MODULAR, PRIME

ATTEMPTS = 20
"""Random points that are tried."""

Surroundings = tuple[Residues, Residues]


def modular_point(
    system: JetSystem, rng: np.random.Generator, order: int
) -> tuple[Residues, list[Surroundings]]:
    """Random unknowns modulo the prime, and random surroundings of every block.

    Each zero is solved for an unknown in which it is of degree one or two. Where no such unknown
    is left, the zero keeps a value that is not zero, which is another point of the same family
    (the equations are those of a first integral), generic all the same.
    """
    for _ in range(ATTEMPTS):
        values = rng.integers(1, PRIME, len(system.names))
        around = [system.modular_surroundings(k, order, rng) for k in range(len(system.blocks))]
        blocks = range(len(system.blocks))
        moved = all(_on_zeros(system, k, values, around[k]) for k in blocks)
        if moved and not any(_zeros(system, k, values[None], around[k]).any() for k in blocks):
            break
    return values, around


def _zeros(system: JetSystem, k: int, points: Residues, around: Surroundings) -> Residues:
    """What should vanish in a block, shape (points, zeros)."""
    block = system.blocks[k]
    known = np.repeat(around[0], len(points), axis=0)
    functions = np.repeat(around[1][:, :, :1], len(points), axis=0)
    own = points[:, system.columns[k]]
    run = block.program.run(MODULAR, own, 0, known, functions, derivatives=False)
    return np.asarray(run.outputs[:, 0, len(block.observables) : block.outputs])


def _on_zeros(system: JetSystem, k: int, values: Residues, around: Surroundings) -> bool:
    """Move unknowns of a block so that its zeros vanish; whether that was possible."""
    block = system.blocks[k]
    if not block.zeros:
        return True
    plan = _plan(system, k, values, around)
    return plan is not None and all(
        _solve(system, k, zero, columns, values, around) for zero, columns in plan
    )


def _plan(
    system: JetSystem, k: int, values: Residues, around: Surroundings
) -> list[tuple[int, list[int]]] | None:
    """In which order zeros are solved, and for which unknowns each can be: those of no earlier."""
    block = system.blocks[k]
    known, functions = around
    own = values[None, system.columns[k]]
    run = block.program.run(MODULAR, own, 0, known, functions[:, :, :1])
    assert run.derivatives is not None
    slopes = run.derivatives[0, 0, len(block.observables) : block.outputs]
    involved = {
        i: {int(system.columns[k][c]) for c in np.flatnonzero(row)} for i, row in enumerate(slopes)
    }
    left = {i: columns for i, columns in involved.items() if columns}
    plan: list[tuple[int, list[int]]] = []
    while left:
        for i, columns in left.items():
            others = set().union(*(c for j, c in left.items() if j != i))
            if columns - others:
                # The later unknowns first: initial values of new states, then the model's.
                plan.insert(0, (i, sorted(columns - others, reverse=True)))
                del left[i]
                break
        else:
            return None
    return plan


def _solve(
    system: JetSystem,
    k: int,
    which: int,
    columns: list[int],
    values: Residues,
    around: Surroundings,
) -> bool:
    """Move one unknown so that a zero of a block vanishes; whether that was possible."""
    for column in columns:
        points = np.repeat(values[None], 4, axis=0)
        # Around what it is now, since something may be divided by it.
        points[:, column] = (points[:, column] + np.arange(4)) % PRIME
        root = _root(_zeros(system, k, points, around)[:, which])
        if root is not None:
            values[column] = (values[column] + root) % PRIME
            if not _zeros(system, k, values[None], around)[0, which]:
                return True
    return False


def _root(samples: Residues) -> int | None:
    """A root of a polynomial of degree one or two, from its values at 0, 1, 2, 3."""
    f0, f1, f2, f3 = (int(v) for v in samples)
    if (f3 - 3 * f2 + 3 * f1 - f0) % PRIME:
        return None
    half = pow(2, -1, PRIME)
    a = (f2 - 2 * f1 + f0) * half % PRIME
    b = (f1 - f0 - a) % PRIME
    if a == 0:
        return None if b == 0 else -f0 * pow(b, -1, PRIME) % PRIME
    discriminant = (b * b - 4 * a * f0) % PRIME
    # The prime is 3 modulo 4, so that this is a square root if there is one.
    root = pow(discriminant, (PRIME + 1) // 4, PRIME)
    if root * root % PRIME != discriminant:
        return None
    return (root - b) * half * pow(a, -1, PRIME) % PRIME
