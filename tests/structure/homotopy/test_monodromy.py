"""All solutions of the square systems of the library's rational models."""

from __future__ import annotations

import numpy as np
import pytest

from odefit import library
from odefit.structure.counting import count_solutions
from odefit.structure.homotopy.monodromy import DOUBT, all_solutions, doubt
from odefit.structure.jets import JetSystem
from odefit.structure.partners import find_partners
from odefit.structure.square import SquareSystem

COUNTS = {
    "harmonic": (1, 1),
    "van-der-pol": (1, 1),
    "mammillary-3": (1, 1),
    "fitzhugh-nagumo": (2, 1),
    "lotka-volterra": (2, 1),
    "mammillary-4": (2, 2),
    "seir": (4, 2),
    "hiv": (4, 1),
    "biohydrogenation": (6, 2),
}
"""Solutions of the square system, and those of them that agree in all derivatives."""


@pytest.mark.parametrize("name", COUNTS)
def test_all_solutions_are_found_and_structural_ones_are_told_apart(name: str) -> None:
    total, structural = COUNTS[name]
    square = SquareSystem(JetSystem(library.load(f"rational-{name}"), "free"))
    found = all_solutions(square)
    assert found.closed
    assert len(found.solutions) == total
    counted = count_solutions(square, found)
    assert (counted.total, counted.spurious) == (structural, total - structural)


@pytest.mark.parametrize("name", COUNTS)
def test_partners_are_as_many_without_all_solutions(name: str) -> None:
    square = SquareSystem(JetSystem(library.load(f"rational-{name}"), "free"))
    point, parameters = square.generic(np.random.default_rng(1))
    found = find_partners(square, point, parameters)
    assert found.complete
    assert len(found.solutions) == COUNTS[name][1]


def test_every_solution_solves_the_system_at_its_parameters() -> None:
    square = SquareSystem(JetSystem(library.load("rational-fitzhugh-nagumo"), "free"))
    found = all_solutions(square)
    many = np.repeat(found.parameters[None], len(found.solutions), axis=0)
    left, _, _ = square.values(found.solutions, many)
    assert np.abs(left - many[:, : square.size]).max() < 1e-9


def test_a_seed_repeats_the_search() -> None:
    square = SquareSystem(JetSystem(library.load("rational-lotka-volterra"), "free"))
    first, second = all_solutions(square, 3), all_solutions(square, 3)
    np.testing.assert_array_equal(first.solutions, second.solutions)


def test_an_end_before_the_end_is_admitted() -> None:
    square = SquareSystem(JetSystem(library.load("rational-hiv"), "free"))
    found = all_solutions(square, stop=lambda: True)
    assert not found.closed
    assert found.doubt > DOUBT


def test_the_doubt_falls_with_arrivals_and_rises_with_solutions() -> None:
    assert doubt(1, 0) == 1.0
    assert doubt(1, 20) == pytest.approx(0.5**20)
    assert doubt(3, 20) > doubt(1, 20) > doubt(1, 30)
