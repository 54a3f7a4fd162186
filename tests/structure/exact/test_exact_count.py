"""Numbers of solutions: the library's models, published ones, lifted ones, several experiments."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

import odefit
from odefit import Experiment, Model, Problem
from odefit.structure.exact.count import ExactCount, exact_count
from odefit.structure.homotopy.monodromy import MISS_PROBABILITY, all_solutions
from odefit.structure.homotopy.square import SquareSystem
from odefit.structure.series.deadline import Deadline
from odefit.structure.series.differentiated_system import DifferentiatedSystem
from odefit.structure.solutions.storage import stored_solutions
from tests.structure.literature import PUBLISHED, Published

LIBRARY = {
    "harmonic": (1, 1),
    "van-der-pol": (1, 1),
    "fitzhugh-nagumo": (2, 1),
    "lotka-volterra": (2, 1),
    "mammillary-3": (1, 1),
    "mammillary-4": (2, 2),
    "seir": (4, 2),
    "hiv": (4, 1),
    "biohydrogenation": (6, 2),
    "crauste": (41, 1),
}
"""Solutions of the square system, and of the whole."""

COSTLY = ("goodwin", "akt pathway", "hiv immune", "sirs forced")
"""Published models that take too long here."""


def square_of(problem: Problem) -> SquareSystem:
    return SquareSystem(DifferentiatedSystem(problem, free_states=True))


def library_square(name: str) -> SquareSystem:
    return square_of(odefit.library.load(f"rational-{name}"))


def model_square(
    ode: dict[str, str], observables: dict[str, str], copies: int = 1, **more: Any
) -> SquareSystem:
    times = np.linspace(0.0, 1.0, 6)
    inputs = more.pop("inputs", {})
    model = Model(ode=ode, observables=observables, inputs=inputs, **more)
    data = {"t": times, **dict.fromkeys([*observables, *inputs], np.cos(times))}
    parameters: dict[str, Any] = {name: {} for name in sorted(model.parameters)}
    states: dict[str, Any] = {state: {} for state in ode}
    experiments = [Experiment(f"run {k}", data) for k in range(copies)]
    return square_of(Problem(model, None, parameters, states, experiments=experiments))


def counted(square: SquareSystem, structural: bool, seed: int = 0) -> ExactCount:
    found = exact_count(square, structural=structural, limit=Deadline(60.0), seed=seed)
    assert found is not None
    assert found.dimension == found.total  # no solution is multiple
    assert list(found.values) == [square.system.names[c] for c in square.solved]
    return found


@pytest.mark.parametrize(
    ("name", "seed"),
    [
        *(
            pytest.param(name, 0, marks=pytest.mark.slow if name == "crauste" else ())
            for name in LIBRARY
        ),
        ("seir", 1),
        ("biohydrogenation", 1),
    ],
)
def test_library_models_have_the_known_numbers_of_solutions(name: str, seed: int) -> None:
    square = library_square(name)
    assert (counted(square, False, seed).total, counted(square, True, seed).total) == LIBRARY[name]


def test_values_of_each_unknown_are_counted() -> None:
    """Compartments 3 and 4 can be exchanged; compartments 1 and 2 stay as they are."""
    found = counted(library_square("mammillary-4"), True).values
    twice = {name for name, count in found.items() if count == 2}
    assert twice == {"k13", "k14", "k31", "k41", "x3@", "x4@"}
    assert set(found.values()) == {1, 2}


@pytest.mark.slow
@pytest.mark.parametrize(
    "published", [p for p in PUBLISHED if p.name not in COSTLY], ids=lambda p: p.name
)
def test_findings_agree_with_published_ones(published: Published) -> None:
    square = model_square(
        dict(published.ode),
        dict(published.observables),
        inputs=dict.fromkeys(published.inputs, "cubic"),
    )
    found = counted(square, True)
    determined = np.array(square.system.names)[list(square.determined)].tolist()
    values = {n.removesuffix("@"): c for n, c in found.values.items() if n in determined}
    assert {n for n, count in values.items() if count == 1} == set(published.globally)
    assert {n: count for n, count in values.items() if count > 1} == dict(published.values)
    if published.count is not None:
        assert found.total == published.count


def test_a_square_root_has_two_branches() -> None:
    """``w^2 = x`` holds at the random point; the sign of w goes with that of k."""
    square = model_square({"x": "-k*sqrt(x)"}, {"y": "x"})
    found = counted(square, True)
    assert found.total == 2
    assert found.values["k"] == 2
    assert found.values["x@"] == 1


def test_sine_and_cosine_lie_on_the_circle() -> None:
    """x, a s and a c are known, and so is a^2 = (a s)^2 + (a c)^2, but not the sign of a."""
    square = model_square({"x": "a*sin(x)"}, {"y": "x"})
    found = counted(square, True)
    assert found.total == 2
    assert list(found.values.values()) == [1 if n == "x@" else 2 for n in found.values]


def test_algebraic_equations_hold_at_the_point() -> None:
    """Two equations that hang together: only the pair of variables solves them."""
    square = model_square(
        {"x": "-u*x"},
        {"y": "x", "v": "v"},
        algebraic={"u": "u + v - a", "v": "u*v - 1"},
    )
    assert counted(square, True).total == 1


def test_experiments_share_parameters() -> None:
    """The sum of two exponentials: each run alone can exchange its rates, and so can both."""
    ode = {"x1": "-a*x1", "x2": "-b*x2"}
    once = counted(model_square(ode, {"y": "x1 + x2"}), True)
    twice = counted(model_square(ode, {"y": "x1 + x2"}, copies=2), True)
    assert once.total == twice.total == 2
    assert len(twice.values) == 6


def test_known_inputs_are_generic() -> None:
    """``x' = a x + b u`` with u known: everything has one value."""
    found = counted(model_square({"x": "a*x + b*u"}, {"y": "x"}, inputs={"u": "cubic"}), True)
    assert found.total == 1


@pytest.mark.parametrize("limit", [0.0, 0.2])
def test_the_time_is_kept(limit: float) -> None:
    published = next(p for p in PUBLISHED if p.name == "akt pathway")
    square = model_square(
        dict(published.ode), dict(published.observables), inputs={"pro_EGFR": "cubic"}
    )
    began = time.perf_counter()
    assert exact_count(square, structural=True, limit=Deadline(limit)) is None
    assert time.perf_counter() - began < limit + 10.0  # not for ever


def test_a_stop_ends_the_count() -> None:
    square = library_square("crauste")
    assert exact_count(square, structural=False, limit=Deadline(stop=lambda: True)) is None


def test_the_search_ends_when_all_expected_are_found() -> None:
    square = library_square("lotka-volterra")
    expected = counted(square, False).total
    found = all_solutions(square, expected=expected)
    assert (len(found.solutions), found.expected) == (2, 2)
    assert found.complete
    assert found.miss_probability == 0.0
    # So many arrivals would be needed without that number.
    assert found.paths < np.log(MISS_PROBABILITY) / np.log(2 / 3)


def test_a_missing_solution_makes_the_search_incomplete() -> None:
    found = all_solutions(library_square("harmonic"), expected=2)
    assert len(found.solutions) == 1
    assert found.miss_probability == 1.0
    assert not found.complete


def test_the_number_is_kept_with_the_solutions(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ODEFIT_CACHE", str(tmp_path))
    square = library_square("lotka-volterra")
    first, second = stored_solutions(square), stored_solutions(square)
    assert first.expected == second.expected == 2
    assert second.seconds == first.seconds  # it was read
    assert np.array_equal(first.solutions, second.solutions)
