"""All solutions of the square systems of the library's rational models."""

from __future__ import annotations

import numpy as np
import pytest

from odefit import library
from odefit.structure.homotopy.monodromy import MISS_PROBABILITY, all_solutions, miss_probability
from odefit.structure.homotopy.square import SquareSystem
from odefit.structure.series.differentiated_system import DifferentiatedSystem
from odefit.structure.solutions.comparison import count_indistinguishable
from odefit.structure.solutions.indistinguishable import find_indistinguishable

COUNTS = {
    "harmonic": (1, 1),
    "lotka-volterra": (2, 1),
    "seir": (4, 2),
    "biohydrogenation": (6, 2),
}
"""Solutions of the square system, and those of them that agree in all derivatives."""


@pytest.mark.slow
@pytest.mark.parametrize("name", COUNTS)
def test_all_solutions_are_found_and_indistinguishable_ones_are_counted(name: str) -> None:
    total, indistinguishable = COUNTS[name]
    square = SquareSystem(DifferentiatedSystem(library.load(f"rational-{name}"), free_states=True))
    found = all_solutions(square)
    assert found.complete
    assert len(found.solutions) == total
    assert count_indistinguishable(square, found) == indistinguishable


@pytest.mark.parametrize(
    "name", ["harmonic", pytest.param("lotka-volterra", marks=pytest.mark.slow), "seir"]
)
def test_indistinguishable_solutions_are_counted_without_finding_all(name: str) -> None:
    square = SquareSystem(DifferentiatedSystem(library.load(f"rational-{name}"), free_states=True))
    point, parameters = square.generic_point(np.random.default_rng(1))
    found = find_indistinguishable(square, point, parameters)
    assert found.complete
    assert len(found.solutions) == COUNTS[name][1]


def test_every_solution_solves_the_system_at_its_parameters() -> None:
    square = SquareSystem(
        DifferentiatedSystem(library.load("rational-fitzhugh-nagumo"), free_states=True)
    )
    found = all_solutions(square, expected=2)
    many = np.repeat(found.parameters[None], len(found.solutions), axis=0)
    left, _, _ = square.values(found.solutions, many)
    assert np.abs(left - many[:, : square.size]).max() < 1e-9


def test_a_seed_repeats_the_search() -> None:
    square = SquareSystem(
        DifferentiatedSystem(library.load("rational-lotka-volterra"), free_states=True)
    )
    first, second = (all_solutions(square, 3, expected=2) for _ in range(2))
    np.testing.assert_array_equal(first.solutions, second.solutions)


def test_a_stopped_search_for_all_solutions_is_incomplete() -> None:
    square = SquareSystem(DifferentiatedSystem(library.load("rational-hiv"), free_states=True))
    found = all_solutions(square, stop=lambda: True)
    assert not found.complete
    assert found.miss_probability > MISS_PROBABILITY


def test_a_missed_solution_is_less_probable_after_more_arrivals_at_fewer_solutions() -> None:
    assert miss_probability(1, 0) == 1.0
    assert miss_probability(1, 20) == pytest.approx(0.5**20)
    assert miss_probability(3, 20) > miss_probability(1, 20) > miss_probability(1, 30)
