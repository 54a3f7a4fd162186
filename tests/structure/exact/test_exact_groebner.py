"""Groebner bases modulo the prime: known systems, and SymPy on random ones."""

from __future__ import annotations

import itertools
import random
import time
from typing import Any

import pytest

from odefit.structure.exact.f4 import Element, groebner_basis
from odefit.structure.exact.monomials import Packing
from odefit.structure.exact.quotient import NotZeroDimensionalError, Quotient, distinct_roots
from odefit.structure.series.deadline import Deadline, UnfinishedError
from odefit.structure.series.number_fields import PRIME

Dense = dict[tuple[int, ...], int]


def basis_of(system: list[Dense], count: int) -> tuple[list[Element], Packing]:
    packing = Packing(count)
    terms = [{packing.pack(m): c for m, c in f.items()} for f in system]
    return groebner_basis(terms, packing), packing


def dense(element: Element, packing: Packing) -> Dense:
    """With coefficients modulo the prime."""
    pairs = zip(element.monomials, element.coefficients.tolist(), strict=True)
    return {packing.unpack(m): c for m, c in pairs}


def quotient_of(system: list[Dense], count: int) -> Quotient:
    return Quotient(*basis_of(system, count))


def cyclic(n: int) -> list[Dense]:
    """``sum of products of d neighbours = 0``, and the whole product is 1."""
    system: list[Dense] = []
    for d in range(1, n):
        f: Dense = {}
        for start in range(n):
            chosen = {(start + k) % n for k in range(d)}
            f[tuple(int(i in chosen) for i in range(n))] = 1
        system.append(f)
    return [*system, {(1,) * n: 1, (0,) * n: -1}]


def katsura(n: int) -> list[Dense]:
    """``sum of u_l u_(m - l) = u_m`` for m < n, and all u sum up to 1."""

    def unit(*numbers: int) -> tuple[int, ...]:
        return tuple(numbers.count(i) for i in range(n + 1))

    system: list[Dense] = []
    for m in range(n):
        f: Dense = {unit(m): -1}
        for k in range(-n, n + 1):
            if abs(m - k) <= n:
                key = unit(abs(k), abs(m - k))
                f[key] = f.get(key, 0) + 1
        system.append(f)
    total = {unit(k): 1 if k == 0 else 2 for k in range(n + 1)}
    return [*system, total | {unit(): -1}]


def test_cyclic_5_has_70_solutions() -> None:
    quotient = quotient_of(cyclic(5), 5)
    assert quotient.dimension == 70
    generic = {0: 12345, 1: 678910, 2: 11121, 3: 31415, 4: 92653}
    assert distinct_roots(quotient.minimal_polynomial(generic)) == 70


def test_cyclic_4_has_a_curve_of_solutions() -> None:
    with pytest.raises(NotZeroDimensionalError, match="infinitely many"):
        quotient_of(cyclic(4), 4)


@pytest.mark.parametrize("n", [2, 3, 4, 5])
def test_katsura_has_two_to_the_n_solutions(n: int) -> None:
    assert quotient_of(katsura(n), n + 1).dimension == 2**n


def test_one_variable_leaves_the_greatest_common_divisor() -> None:
    first: Dense = {(3,): 1, (2,): -6, (1,): 11, (0,): -6}  # roots 1, 2, 3
    second: Dense = {(2,): 1, (1,): -5, (0,): 6}  # 2, 3
    found, packing = basis_of([first, second], 1)
    assert [dense(f, packing) for f in found] == [{(2,): 1, (1,): PRIME - 5, (0,): 6}]


def test_linear_equations_are_solved() -> None:
    system: list[Dense] = [{(1, 0): 1, (0, 1): 1, (0, 0): -3}, {(1, 0): 1, (0, 1): -1, (0, 0): -1}]
    found, packing = basis_of(system, 2)
    assert [dense(f, packing) for f in found] == [
        {(0, 1): 1, (0, 0): PRIME - 1},
        {(1, 0): 1, (0, 0): PRIME - 2},
    ]


def test_contradictions_leave_one() -> None:
    system: list[Dense] = [{(1, 1): 1, (0, 0): -1}, {(1, 0): 1}]
    found, packing = basis_of(system, 2)
    assert [dense(f, packing) for f in found] == [{(0, 0): 1}]
    assert Quotient(found, packing).dimension == 0


def test_without_equations_nothing_is_eliminated() -> None:
    assert basis_of([{}, {(1, 0): PRIME}], 2)[0] == []


def random_system(rng: random.Random, count: int, degree: int) -> list[Dense]:
    monomials = [m for m in itertools.product(range(degree + 1), repeat=count) if sum(m) <= degree]
    return [
        {m: rng.randrange(-9, 10) for m in rng.sample(monomials, min(5, len(monomials)))}
        for _ in range(count)
    ]


@pytest.mark.parametrize("seed", range(12))
def test_sympy_finds_the_same_basis(seed: int) -> None:
    sympy: Any = pytest.importorskip("sympy")
    rng = random.Random(seed)
    count = 2 + seed % 2
    system = random_system(rng, count, 3 if count == 2 else 2)
    variables = sympy.symbols(f"x0:{count}")
    polynomials = [
        sympy.Poly(dict(f), *variables, modulus=PRIME) for f in system if any(c for c in f.values())
    ]
    theirs = sympy.groebner(polynomials, *variables, modulus=PRIME, order="grevlex")
    expected = {frozenset((m, int(c) % PRIME) for m, c in f.terms()) for f in theirs.polys}
    found, packing = basis_of(system, count)
    assert {frozenset(dense(f, packing).items()) for f in found} == expected


def test_groebner_bases_obey_the_time_limit() -> None:
    packing = Packing(8)
    terms = [{packing.pack(m): c for m, c in f.items()} for f in cyclic(8)]
    began = time.perf_counter()
    with pytest.raises(UnfinishedError, match="time"):
        groebner_basis(terms, packing, Deadline(0.3))
    assert time.perf_counter() - began < 20.0  # it takes minutes
