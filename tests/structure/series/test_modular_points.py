"""Random points modulo the prime satisfy the algebraic constraints."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odefit.structure.series.differentiated_system import DifferentiatedSystem
from odefit.structure.series.modular_points import (
    GrowingSeries,
    modular_point,
    solved_in_order,
)
from odefit.structure.series.number_fields import PRIME
from tests.structure.models import problem


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    ("term", "algebraic"),
    [
        ("sqrt(x + a)", {}),
        ("x^(1/3)", {}),
        ("sin(a*x)", {}),
        ("asin(x)*sqrt(a)", {}),
        ("z", {"z": "z^2 + a*z - x"}),
        ("z*v", {"z": "z*v - x*a", "v": "v^2 + z - sqrt(x)"}),
    ],
)
def test_all_constraints_hold(term: str, algebraic: dict[str, str], seed: int) -> None:
    model = problem({"x": f"-x + {term}"}, {"y": "x"}, ["a"], algebraic=algebraic)
    system = DifferentiatedSystem(model, free_states=False)
    rng = np.random.default_rng(seed)
    values, points = modular_point(system, rng, 2)
    assert np.all((values > 0) & (values < PRIME))
    expansion = system.expansions[0]
    taylor = system.run_modular(0, values[None], 2, points[0])
    # At every order, since what is constrained is constant in time.
    assert not taylor.outputs[0, :, len(expansion.observables) : expansion.outputs].any()


def test_gradients_are_the_same_however_the_orders_grow() -> None:
    model = problem({"x": "-a*x*z", "z": "b*x - z"}, {"y": "x", "w": "c*z"}, ["a", "b", "c"])
    system = DifferentiatedSystem(model, free_states=False)
    values, points = modular_point(system, np.random.default_rng(1), 20)
    growing = GrowingSeries(system, values, points, 20)
    taylor = system.run_modular(0, values[None], 20, points[0])
    assert taylor.derivatives is not None
    for order in (0, 1, 2, 9, 5, 20):
        for output in (0, 1):
            expected = taylor.derivatives[0, order, output]
            assert (growing.gradient(0, order, output)[system.columns[0]] == expected).all()
            assert growing.output(0, order, output) == taylor.outputs[0, order, output]


def tried_one_by_one(involved: dict[int, set[int]]) -> list[tuple[int, list[int]]] | None:
    """Return the order that the definition gives, in cubic time."""
    left = dict(involved)
    order: list[tuple[int, list[int]]] = []
    while left:
        for i, columns in left.items():
            others: set[int] = set().union(*(c for j, c in left.items() if j != i))
            if columns - others:
                order.insert(0, (i, sorted(columns - others)))
                del left[i]
                break
        else:
            return None
    return order


@given(st.lists(st.sets(st.integers(0, 9), min_size=1, max_size=4), max_size=8))
def test_equations_are_solved_in_the_order_that_the_definition_gives(
    sets: list[set[int]],
) -> None:
    involved = dict(enumerate(sets))
    order = solved_in_order(involved)
    expected = tried_one_by_one(involved)
    assert (order is None) == (expected is None)
    assert [(i, sorted(columns)) for i, columns in order or ()] == (expected or [])


def test_the_order_of_a_long_chain_takes_linear_work() -> None:
    """1,000 equations took seconds: for each that was found, unions of all others were made."""
    looked_at = 0

    class Columns(set[int]):
        def __iter__(self):  # type: ignore[no-untyped-def]
            nonlocal looked_at
            looked_at += len(self)
            return super().__iter__()

    n = 2000
    order = solved_in_order({i: Columns({i, i + 1}) for i in range(n)})
    assert order is not None
    assert sorted(i for i, _ in order) == list(range(n))
    assert looked_at <= 10 * n
