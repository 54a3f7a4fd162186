"""Every problem of the library loads, with the data that are asked for, and fits its reference."""

from __future__ import annotations

import numpy as np
import pytest

from odefit import ForwardMap, InputError, Problem, library
from odefit.common.arrays import Array
from odefit.simulation import Evaluation

SEVERAL_SETS = [n for n in library.names() if library.reference(n).datasets > 1]
SEVERAL_SIZES = [n for n in library.names() if library.reference(n).samples]


def observed(problem: Problem) -> list[Array]:
    """The measured values of all observables in all experiments."""
    return [
        np.asarray(experiment.data[name], dtype=float)
        for experiment in problem.experiments
        for name in problem.model.observables
    ]


def squares(problem: Problem, known: library.Reference) -> float:
    at = ForwardMap(problem).evaluate(problem.vector({**known.parameters, **known.initial}))
    assert isinstance(at, Evaluation)
    return at.objective


@pytest.mark.slow
@pytest.mark.parametrize("name", library.names())
def test_the_reference_has_all_unknowns_and_its_objective(name: str) -> None:
    problem, known = library.load(name), library.reference(name)
    assert known.name == problem.name == name
    assert {*known.parameters, *known.initial} == set(problem.keys)
    assert {*known.not_identifiable} <= set(problem.keys)
    size = sum(float(np.nansum(values**2)) for values in observed(problem))
    assert squares(problem, known) == pytest.approx(known.objective, rel=1e-6, abs=1e-9 * size)


@pytest.mark.slow
@pytest.mark.parametrize("name", SEVERAL_SETS)
def test_each_data_set_is_that_of_its_own_reference(name: str) -> None:
    first = observed(library.load(name))
    assert library.reference(name).dataset == 0
    for dataset in range(1, library.reference(name).datasets):
        problem, known = library.load(name, dataset=dataset), library.reference(name, dataset)
        assert known.dataset == dataset
        assert all((a != b).any() for a, b in zip(observed(problem), first, strict=True))
        size = sum(float(np.nansum(values**2)) for values in observed(problem))
        assert squares(problem, known) <= 1e-9 * size


@pytest.mark.parametrize("name", SEVERAL_SIZES)
def test_the_number_of_samples_is_that_requested_or_the_fewest(name: str) -> None:
    sizes = library.reference(name).samples
    assert list(sizes) == sorted(sizes)
    for samples in (None, *sizes):
        (experiment,) = library.load(name, samples=samples).experiments
        assert len(experiment.data["t"]) == (samples or sizes[0])


def test_noise_has_the_size_of_its_share_of_the_spread_of_each_observable() -> None:
    name = "seasonal-lotka-volterra"
    exact = observed(library.load(name, samples=200))
    noisy = observed(library.load(name, samples=200, noise=0.1, seed=3))
    for values, changed in zip(exact, noisy, strict=True):
        errors = (changed - values) / (0.1 * values.std(ddof=1))
        assert abs(errors.mean()) < 4 / np.sqrt(200)
        assert errors.std() == pytest.approx(1.0, abs=4 / np.sqrt(400))


def test_a_seed_gives_the_same_noise_again_and_another_one_another() -> None:
    one, same, other, none = (
        observed(library.load("sir", noise=level, seed=seed))[0]
        for level, seed in ((0.1, 7), (0.1, 7), (0.1, 8), (0.0, 7))
    )
    assert (one == same).all()
    assert (one != other).all()
    assert (one != none).all()
    assert (none == observed(library.load("sir"))[0]).all()


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("siir", {}, "no library problem 'siir'; did you mean 'sir'"),
        ("zzzzzz", {}, "no library problem 'zzzzzz'; `odefit.library.names"),
        ("sir", {"samples": 20}, "'sir' has no sample size 20. Expected: 18, 36"),
        ("bbg", {"samples": 20}, "'bbg' comes in one sample size; leave `samples` out"),
        ("sir", {"dataset": 1}, "'sir' has no data set 1. Expected: 0$"),
        ("rational-hiv", {"dataset": 5}, "'rational-hiv' has no data set 5. Expected: 0 to 4$"),
        ("sir", {"noise": -0.1}, "noise level: expected a finite number >= 0, received -0.1"),
        ("sir", {"noise": np.nan}, "noise level: expected a finite number >= 0, received nan"),
        ("alpha-pinene", {"noise": 0.1}, "'alpha-pinene' has noisy data already"),
    ],
)
def test_an_unknown_library_problem_is_refused_with_the_names_that_exist(
    name: str, options: dict[str, float], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        library.load(name, **options)  # type: ignore[arg-type]
