"""Whole problems: enclosed residuals against the forward map's, at thousands of points."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest

from odefit import (
    Event,
    Experiment,
    ForwardMap,
    InputError,
    Model,
    Noise,
    Parameter,
    Problem,
    library,
)
from odefit.common.arrays import Array
from odefit.enclosure import Enclosure, differential_inequalities, flow
from odefit.enclosure.residuals import Residuals
from odefit.simulation.engines.cut_off import NEVER, CutOff, cutting_off
from tests.enclosure.containment import at, box, checked, directions, sane, vectors
from tests.simulation.zoo import NOISE, ZOO, Case

LIBRARY = {
    "alpha-pinene": [1e-6, 1e-2, 0.1, 0.4],
    "harmonic": [1e-6, 1e-2, 0.1, 0.4],
    "lotka-volterra-f": [1e-6, 1e-2, 0.05, 0.2],
    "fitzhugh-nagumo": [2e-3],
    "bbg": [1e-2, 0.05],
    "mammillary-3-f": [1e-6, 1e-2, 0.1, 0.4],
}
"""Relative half widths of boxes around the reference."""

RATIONAL = [
    "experiments with their own values",
    "replicates gaps and unsorted rows",
    "doses and switches",
    "linear algebra",
    "a parameter that does nothing",
    "fixed values",
]

FOUR = {"t": [0.0, 1.0, 2.0, 4.0], "y": [1.0, 0.7, 0.6, 0.2]}


def reference(name: str) -> Array:
    known = library.reference(name)
    values = {**known.parameters, **known.initial}
    return np.array([values[u.name] for u in library.load(name).unknowns])


@pytest.mark.slow
@pytest.mark.parametrize("name", LIBRARY)
def test_library_problems_are_enclosed(name: str) -> None:
    problem, vector = library.load(name), reference(name)
    enclosure, forward = Enclosure(problem), ForwardMap(problem)
    for relative in LIBRARY[name]:
        found = checked(problem, *box(vector, relative), enclosure, forward, 10)
        assert found.c.shape == (problem.size, len(enclosure.monomials), 1)
        if relative <= 1e-2:
            assert np.isfinite(found.remainder).all()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["alpha-pinene", "harmonic"])
@pytest.mark.parametrize("degree", [0, 1, 3])
def test_library_problems_at_every_degree(name: str, degree: int) -> None:
    problem, vector = library.load(name), reference(name)
    for relative in (1e-3, 0.05):
        checked(problem, *box(vector, relative), Enclosure(problem, degree))


@pytest.mark.slow
def test_boxes_far_from_the_reference_are_enclosed() -> None:
    """A point in each of a hundred boxes (the stiff engine would not be accurate enough)."""
    problem = library.load("alpha-pinene")
    rng = np.random.default_rng(0)
    middle = rng.uniform(0, 1, (100, 5)) * 10.0 ** -rng.uniform(3, 6, (100, 5))
    radius = middle * 10.0 ** -rng.uniform(1, 4, (100, 1))
    lower, upper = middle - radius, middle + radius
    enclosure, forward = Enclosure(problem), ForwardMap(problem, "heyoka")
    found = enclosure(lower, upper)
    sane(found)
    known = 0
    for b in range(100):
        d = rng.uniform(-1, 1, (1, 5))
        true = forward.evaluate(vectors(lower[b], upper[b], d)[0])
        polynomial = found.c[:, :, b] @ at(enclosure.monomials, d)[0]
        distance = np.abs(true.residuals - polynomial)  # type: ignore[union-attr]
        assert (distance <= found.remainder[:, b] + 1e-9).all()
        known += int(np.isfinite(found.remainder[:, b]).all())
    assert known > 50


@pytest.mark.slow
@pytest.mark.parametrize("name", RATIONAL)
def test_residuals_are_enclosed_for_every_feature_of_problems(name: str) -> None:
    problem, vector = ZOO[name]()
    enclosure, forward = Enclosure(problem), ForwardMap(problem)
    for relative in (0.0, 1e-3, 0.1):
        checked(problem, *box(vector, relative), enclosure, forward, 8)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    ["none", "a number", "a column", "relative", "a prior", "log", "log10", "log, unweighted"],
)
@pytest.mark.parametrize("degree", [0, 2])
def test_residuals_with_known_standard_deviations_are_enclosed(name: str, degree: int) -> None:
    problem, vector = NOISE[name]()
    enclosure = Enclosure(problem, degree)
    for relative in (0.0, 1e-2):
        found = checked(problem, *box(vector, relative), enclosure, count=8)
        assert len(found.remainder) == enclosure.size


def with_input(interpolation: str, ode: str = "u - k*x", **more: Any) -> Case:
    problem = Problem(
        Model(
            ode={"x": ode},
            observables={"y": "x*(1 + u)/(2 + u^2) + t/10"},
            inputs={"u": interpolation},
        ),
        {
            "t": [0.0, 0.5, 1.0, 1.7, 2.0, 2.5, 4.0, 5.0],
            "u": [-1.0, np.nan, 2.0, 1.0, np.nan, -1.0, 0.5, np.nan],
            "y": [0.0, 1.0, np.nan, 1.5, 0.3, 0.2, 0.1, 0.2],
        },
        {"k": {}},
        {"x": {}},
        **more,
    )
    return problem, problem.vector({"k": 0.6, "x": 0.9})


@pytest.mark.slow
@pytest.mark.parametrize("interpolation", ["linear", "constant", "cubic"])
@pytest.mark.parametrize("ode", ["u - k*x", "k*u*(1 - x*u)/(3 + t)", "u"])
def test_inputs_are_enclosed(interpolation: str, ode: str) -> None:
    problem, vector = with_input(interpolation, ode)
    forward = ForwardMap(problem)
    for order in (1, 10):
        enclosure = Enclosure(problem, 2, order)
        for relative in (0.0, 0.05) if order == 10 else (0.02,):
            found = checked(problem, *box(vector, relative), enclosure, forward, 5)
            if order == 10:
                assert found.remainder.max() < (1e-4 if relative == 0 else 0.1)


def test_inputs_may_begin_late_and_end_early() -> None:
    data = {"t": [0.0, 1.0, 2.0, 3.0, 4.0], "u": [np.nan, 1.0, 3.0, 2.0, np.nan], "y": [0.0] * 5}
    for interpolation in ("linear", "constant", "cubic"):
        problem = Problem(
            Model(
                ode={"x": "u - k*x"},
                observables={"y": "x + u"},
                inputs={"u": interpolation},
            ),
            data,
            {"k": {}},
            {"x": 0.0},
        )
        checked(problem, *box(np.array([0.4]), 0.05))


def eventful() -> Case:
    """Doses, constants that are switched, in both orders at the same time, an input in one."""
    problem = Problem(
        Model(
            ode={"gut": "-ka*gut*on", "blood": "ka*gut*on - ke*blood/(1 + blood*s)"},
            observables={"c": "(blood + gut*share)/V", "g": "gut"},
            constants={"on": 1.0, "s": 0.1, "share": 0.0},
            inputs={"u": "linear"},
        ),
        parameters={"ka": {}, "ke": {}, "V": {}, "F": {}},
        initial={"gut": "F*10", "blood": {}},
        experiments=[
            Experiment(
                "run",
                constants={"s": "ke/10"},
                data={
                    "t": [0.0, 1.0, 2.0, 3.0, 5.0, 6.0],
                    "c": [0.0, 1.0, 2.0, 1.0, 0.5, 0.1],
                    "g": [1.0] * 6,
                    "u": [0.5, 1.0, 2.0, 1.5, 1.0, 1.0],
                },
                events=[
                    Event((0.0, 2.0), {"gut": "gut + F*10*u", "blood": "blood*0.5 + gut/9"}),
                    Event((2.0,), {"on": "0.1 + u/7", "share": "ka/3"}),
                    Event((2.0,), {"gut": "gut*on + t", "s": "s*2 + share"}),
                    Event((4.5,), {"on": "on*2 + t/10"}),
                    Event((6.0,), {"blood": 0.0}),
                ],
            )
        ],
    )
    values = {"ka": 1.1, "ke": 0.3, "V": 2.0, "F": 0.7, "blood": 0.4}
    return problem, problem.vector(values)


@pytest.mark.slow
def test_events_of_every_kind_are_followed() -> None:
    problem, vector = eventful()
    enclosure, forward = Enclosure(problem), ForwardMap(problem)
    for relative in (0.0, 1e-4, 1e-2, 0.1):
        found = checked(problem, *box(vector, relative), enclosure, forward)
        assert np.isfinite(found.remainder).all()


@pytest.mark.slow
def test_priors_experiments_and_unknown_initial_values_are_enclosed() -> None:
    model = Model(
        ode={"x": "-k*x*z", "z": "a*(x - z)"},
        observables={"y": "x/(1 + z)", "w": "(x^2 - z)/(k + x)"},
    )
    problem = Problem(
        model,
        parameters={"k": {"prior": {"mean": 0.4, "sd": 0.1}}, "a": {"per_experiment": True}},
        initial={"x": Parameter(per_experiment=True), "z": {"prior": {"mean": 1.0, "sd": 0.3}}},
        experiments=[
            Experiment("one", {**FOUR, "y_sd": [0.1, 0.2, 0.1, 0.05], "w": [0.1] * 4}),
            Experiment("two", {**FOUR, "w": [0.3, 0.2, np.nan, 0.1]}, t0=-1.0, initial={"z": 0.5}),
        ],
        noise={"w": Noise(relative=0.2), "y": Noise(sd=0.05)},
    )
    rng = np.random.default_rng(2)
    vector = rng.uniform(0.4, 1.2, len(problem.unknowns))
    enclosure, forward = Enclosure(problem), ForwardMap(problem)
    for relative in (0.0, 1e-3, 0.05):
        found = checked(problem, *box(vector, relative), enclosure, forward)
        assert np.isfinite(found.remainder).all()


@pytest.mark.slow
def test_functions_of_points_agree_with_many_digits() -> None:
    """Lotka-Volterra with the Taylor method of mpmath, thirty digits."""
    problem = Problem(
        Model(ode={"x": "a*x - b*x*y", "y": "b*x*y - y/3"}),
        {"t": [1.0, 3.0], "x": [0.0, 0.0], "y": [0.0, 0.0]},
        {"a": {}, "b": {}},
        {"x": {}, "y": 0.7},
        t0=0.0,
    )
    vector = np.array([0.9, 0.8, 1.3])
    enclosure = Enclosure(problem, 2, 20)
    point = enclosure(*box(vector, 0.0))
    assert point.remainder.max() < 1e-6
    wide = enclosure(*box(vector, 0.02))
    corners = directions(3, 0)[[0, 6]]
    with mpmath.workdps(30):
        third = mpmath.mpf(1) / 3

        def truth(v: Array) -> list[Any]:
            a, b, x0 = (mpmath.mpf(float(p)) for p in v)
            path = mpmath.odefun(
                lambda _, s: [a * s[0] - b * s[0] * s[1], b * s[0] * s[1] - third * s[1]],
                0,
                [x0, mpmath.mpf(7) / 10],
            )
            ends = [path(1), path(3)]
            return [ends[j][i] for i in range(2) for j in range(2)]

        for i, true in enumerate(truth(vector)):
            claimed, bound = (
                mpmath.mpf(float(p[i, ..., 0].flat[0])) for p in (point.c, point.remainder)
            )
            assert abs(true - claimed) <= bound
        lower, upper = box(vector, 0.02)
        for d in corners:
            v = vectors(lower[0], upper[0], d)
            values = wide.c[:, :, 0] @ at(enclosure.monomials, d[None])[0]
            for i, true in enumerate(truth(v)):
                assert abs(float(true - mpmath.mpf(float(values[i])))) <= wide.remainder[i, 0]


def random_field(rng: np.random.Generator) -> dict[str, str]:
    """Polynomial and rational right-hand sides of two states."""
    terms = ["x", "y", "x*y", "x^2", "y^2*x", "1", "p/(1 + x^2)", "y/(2 + y^2 + q^2)", "p*q*x"]
    found = {}
    for state in "xy":
        chosen = rng.choice(terms, 3, replace=False)
        signs = rng.choice(["p", "q", "0.3", "-p", "-0.7", "-q"], 3)
        found[state] = " + ".join(f"({s})*{t}" for s, t in zip(signs, chosen, strict=True))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_random_equations_are_enclosed(seed: int) -> None:
    rng = np.random.default_rng(seed)
    problem = Problem(
        Model(ode=random_field(rng)),
        {"t": [0.0, 0.7, 1.5], "x": [0.1, 0.2, 0.3], "y": [0.0, 1.0, 0.5]},
        {"p": {}, "q": {}},
        {"x": {}, "y": 0.5},
    )
    vector = rng.uniform(0.2, 0.8, 3)
    enclosure, forward = Enclosure(problem, int(rng.integers(0, 4))), ForwardMap(problem)
    for relative in (1e-2, 0.1, 0.5):
        checked(problem, *box(vector, relative), enclosure, forward, 10)


def test_an_observable_with_a_pole_in_the_box() -> None:
    problem = Problem(
        Model(ode={"x": "-k*x"}, observables={"y": "1/(x - 0.5)"}), FOUR, {"k": {}}, {"x": 1.0}
    )
    found = checked(problem, np.array([[0.6]]), np.array([[0.8]]))
    assert np.isfinite(found.remainder[[0, 2, 3]]).all()
    assert np.isinf(found.remainder[1]).all()


@pytest.mark.slow
def test_boxes_far_from_the_data_are_not_computed_to_the_end() -> None:
    problem, vector = library.load("alpha-pinene"), reference("alpha-pinene")
    enclosure = Enclosure(problem)
    near, far = box(vector, 1e-3), box(vector * 3.0, 1e-3)
    lower, upper = (np.concatenate(pair) for pair in zip(near, far, strict=True))
    whole, part = enclosure(lower, upper), enclosure(lower, upper, radius=10.0)
    sane(part)
    known = np.isfinite(part.remainder)
    assert known[:, 0].all()
    assert not known[:, 1].all()
    np.testing.assert_allclose(part.c[:, :, 1][known[:, 1]], whole.c[:, :, 1][known[:, 1]])
    seen = Residuals(part.c[known[:, 1]][:, :, 1:], part.remainder[known[:, 1]][:, 1:])
    assert seen.squares_bound()[0] > 100.0


def stiff() -> Problem:
    """Products of states of which differential inequalities are needed in large boxes."""
    model = Model(ode={"x": "-k*x*y", "y": "m*x - 40*y"})
    return Problem(model, {"t": [0.0, 1.0, 2.0], "x": [1.0, 0.9, 0.8]}, {"k": {}, "m": {}},
                   {"x": 1.0, "y": 0.0})  # fmt: skip


@pytest.mark.parametrize("calls", [0, 1, 5, 40])
def test_after_a_cut_off_everything_left_is_unknown(
    calls: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It comes at the first, second, sixth or 41st step or guess of an enclosure."""
    problem = stiff()
    enclosure, lower, upper = Enclosure(problem), np.array([[0.1, 0.1]]), np.array([[9.0, 9.0]])
    whole, by = enclosure(lower, upper), CutOff()
    done = 0

    def counted(function: Callable[..., Any]) -> Callable[..., Any]:
        def called(*arguments: Any, **more: Any) -> Any:
            nonlocal done
            if done == calls:
                by.now()
            done += 1
            return function(*arguments, **more)

        return called

    monkeypatch.setattr(flow, "_step_ends", counted(flow._step_ends))
    bounds = differential_inequalities._TimeSpan._bounds
    monkeypatch.setattr(differential_inequalities._TimeSpan, "_bounds", counted(bounds))
    with cutting_off(by):
        found = enclosure(lower, upper)
    assert by.reached
    assert done <= calls + 3  # one more step, or the refinements of one confirmed guess
    assert np.isinf(found.remainder[-1]).all()
    assert not np.isnan(found.c).any()
    # what was known before is as it would have been
    kept = np.isfinite(found.remainder) & np.isfinite(whole.remainder)
    np.testing.assert_array_equal(found.remainder[kept], whole.remainder[kept])
    with cutting_off(NEVER):
        np.testing.assert_array_equal(enclosure(lower, upper).remainder, whole.remainder)


REFUSED: dict[str, tuple[Callable[[], Problem], str]] = {
    "estimated noise": (
        lambda: NOISE["estimated"]()[0],
        r"noise\.y\.sd: the likelihood has no lower bound, .* positive lower bounds",
    ),
    "kinks": (lambda: ZOO["kinks"]()[0], "'max' has a kink and cannot be enclosed"),
    "nonlinear algebra": (
        lambda: ZOO["nonlinear algebra"]()[0],
        "algebraic equations are not linear in z with constant coefficients",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_problem_without_enclosure_is_refused(name: str) -> None:
    build, message = REFUSED[name]
    with pytest.raises(InputError, match=message):
        Enclosure(build())


def test_too_many_unknowns_are_refused() -> None:
    names = [f"p{k}" for k in range(60)]
    problem = Problem(Model(ode={"y": " + ".join(names)}), FOUR, {n: {} for n in names}, {"y": 1.0})
    with pytest.raises(InputError, match="60 unknowns: polynomials of degree 3"):
        Enclosure(problem, 3)
