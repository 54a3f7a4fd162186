"""Enclosures of discretised problems: the solution of the equations is inside, always."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from odefit import Event, Experiment, Model, Problem, library
from odefit.common.arrays import Array
from odefit.discretisation.discretisation import Discretisation
from odefit.discretisation.mesh import DataMesh, GivenMesh, Mesh, UniformMesh
from odefit.discretisation.schemes import SCHEMES
from odefit.enclosure import Residuals
from odefit.enclosure.arithmetic.taylor_models import Monomials
from odefit.enclosure.discretised.krawczyk import KrawczykSolver
from odefit.enclosure.discretised.residuals import DiscretisedEnclosure
from odefit.simulation.engines.cut_off import CutOff, cutting_off
from tests.enclosure.containment import at, directions, vectors
from tests.enclosure.discretised.discrete import Discrete
from tests.enclosure.discretised.elementary_problems import MODELS, problem_of
from tests.simulation.zoo import ZOO, Case

LIBRARY = {
    "alpha-pinene": (6, 0.3),
    "harmonic": (9, 0.1),
    "lotka-volterra-f": (12, 0.05),
    "fitzhugh-nagumo": (10, 0.02),
    "bbg": (10, 0.05),
}
"""Steps, and the largest relative half width of a box whose residuals are all known."""


def fitzhugh_nagumo() -> Case:
    """Its first two units of time."""
    times = np.array([0.0, 0.3, 0.7, 1.0, 1.5, 2.0])
    problem = Problem(
        Model(ode={"V": "c*(V - V^3/3 + R)", "R": "-(V - a + b*R)/c"}),
        {"t": times, "V": np.cos(times), "R": np.sin(times)},
        {"a": {}, "b": {}, "c": {}},
        {"V": -1.0, "R": {}},
    )
    return problem, problem.vector({"a": 0.2, "b": 0.3, "c": 3.0, "R": 1.0})


def of_library(name: str) -> Case:
    if name == "fitzhugh-nagumo":
        return fitzhugh_nagumo()
    problem, known = library.load(name), library.reference(name)
    values = {**known.parameters, **known.initial}
    return problem, np.array([values[u.name] for u in problem.unknowns])


def eventful(interpolation: str = "linear") -> Case:
    """Doses, a constant that is switched, an input, data between mesh points, two observables."""
    times = [0.0, 0.55, 1.0, 1.31, 2.0, 2.7, 3.3, 4.0]
    problem = Problem(
        Model(
            ode={"a": "u - k*a*on", "b": "k*a*on - m*b/(1 + b)"},
            observables={"y": "b*(1 + u)", "z": "a + t/10"},
            inputs={"u": interpolation},
            constants={"on": 1.0},
        ),
        parameters={"k": {}, "m": {"prior": {"mean": 0.6, "sd": 0.2}}},
        initial={"a": {}, "b": "k/5"},
        experiments=[
            Experiment(
                "run",
                {
                    "t": times,
                    "u": [0.5, np.nan, 1.5, np.nan, 0.7, np.nan, np.nan, 0.1],
                    "y": [0.1, 0.3, 0.6, 0.9, np.nan, 0.8, 0.7, 0.6],
                    "z": [1.0, np.nan, 1.2, 1.1, 2.0, 1.4, 1.0, 0.8],
                },
                events=[
                    Event((1.0, 3.3), {"a": "a + 0.5*k"}),
                    Event((2.0,), {"on": "0.5*k", "b": "b/(1 + k)"}),
                    Event((2.0,), {"a": "a + on"}),
                ],
            )
        ],
    )
    return problem, problem.vector({"k": 0.8, "m": 0.5, "a": 1.1})


def checked(
    problem: Problem,
    scheme: str,
    mesh: Mesh | int,
    vector: Array,
    radii: list[float],
    count: int = 20,
    degree: int = 2,
) -> list[Residuals]:
    """Enclosures over boxes around a vector, when all solutions are inside."""
    exact = Discrete(problem, scheme, mesh, vector)
    grid = UniformMesh(mesh) if isinstance(mesh, int) else mesh
    enclosure = DiscretisedEnclosure(problem, SCHEMES[scheme], grid, degree)
    radius = np.array(radii)[:, None] * np.abs(vector)
    lower, upper = vector - radius, vector + radius
    together = enclosure(lower, upper)
    found = []
    for b in range(len(radii)):
        d = directions(len(vector), count, b)
        values = at(enclosure.monomials, d) @ together.c[:, :, b].T
        rest = together.remainder[:, b]
        compared = 0
        for point, polynomial in zip(vectors(lower[b], upper[b], d), values, strict=True):
            true = exact.at(point)
            if true is None:
                continue
            compared += 1
            allowed = rest + 1e-9 * (1 + np.abs(true))
            assert (np.abs(true - polynomial) <= allowed).all(), (scheme, radii[b], point)
        assert compared or not np.isfinite(rest).all()
        found.append(Residuals(together.c[:, :, b : b + 1], together.remainder[:, b : b + 1]))
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "scheme"),
    [(name, scheme) for name in ("alpha-pinene", "fitzhugh-nagumo") for scheme in SCHEMES]
    + [("harmonic", "radau"), ("lotka-volterra-f", "simpson"), ("bbg", "trapezoid")],
)
def test_solutions_of_the_equations_lie_in_the_box(name: str, scheme: str) -> None:
    problem, vector = of_library(name)
    steps, widest = LIBRARY[name]
    mesh = 2 * steps if scheme == "euler" else steps
    found = checked(problem, scheme, mesh, vector, [0.0, 1e-5, 0.1 * widest, 5 * widest], 4)
    assert np.isfinite(found[2].remainder).all()
    assert (found[0].remainder <= 1e-6 * (1 + np.abs(found[0].c[:, 0]))).all()


@pytest.mark.slow
@pytest.mark.parametrize(("name", "scheme"), [(name, "legendre") for name in MODELS])
def test_elementary_functions_are_enclosed_on_a_mesh(name: str, scheme: str) -> None:
    problem, vector = problem_of(name)
    found = checked(problem, scheme, 6, vector, [0.0, 1e-5, 0.03, 0.3], 6)
    assert np.isfinite(found[2].remainder).all()
    assert found[0].remainder.max() <= 1e-9


@pytest.mark.slow
@pytest.mark.parametrize(
    ("scheme", "interpolation"),
    [*((scheme, "linear") for scheme in SCHEMES), ("trapezoid", "constant"), ("radau", "cubic")],
)
def test_events_and_inputs_are_enclosed(scheme: str, interpolation: str) -> None:
    problem, vector = eventful(interpolation)
    found = checked(problem, scheme, 12, vector, [0.0, 1e-3, 0.05, 0.8], 4)
    assert np.isfinite(found[2].remainder).all()


@pytest.mark.parametrize("degree", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 3))])
def test_enclosures_hold_at_every_degree(degree: int) -> None:
    problem, vector = eventful()
    widths = [0.0, 1e-3, 0.05]
    found = checked(problem, "radau", 6, vector, widths, 6, degree)
    assert np.isfinite(found[1].remainder).all()


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("experiments with their own values", marks=pytest.mark.slow),
        "replicates gaps and unsorted rows",
        "doses and switches",
        "linear algebra",
        "fixed values",
    ],
)
def test_residuals_are_enclosed_for_every_feature_of_problems(name: str) -> None:
    problem, vector = ZOO[name]()
    checked(problem, "trapezoid", 7, vector, [0.0, 1e-3, 0.1], 5)


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["trapezoid", "simpson", "radau"])
def test_residuals_are_enclosed_on_every_kind_of_mesh(scheme: str) -> None:
    problem, vector = eventful()
    given = GivenMesh({problem.conditions[0].name: np.array([0.0, 0.1, 0.5, 0.9, 1.5, 2.2, 4.5])})
    for mesh in (DataMesh(10, 2), given):
        checked(problem, scheme, mesh, vector, [0.0, 0.02], 5)


def test_a_measurement_next_to_a_mesh_point_is_that_point() -> None:
    """The transcription takes it at that point too."""
    near = 1.0 + 1e-10
    problem = Problem(
        Model(ode={"x": "-k*x"}),
        {"t": [0.0, near, 2.0], "x": [1.0, 0.4, 0.1]},
        {"k": {}},
        {"x": 1.0},
    )
    mesh = UniformMesh(2)
    enclosure = DiscretisedEnclosure(problem, SCHEMES["euler"], mesh)
    assert Discretisation(problem, SCHEMES["euler"], mesh).interpolated == []
    found = enclosure(np.array([[0.5]]), np.array([[0.5]]))
    assert found.c[1, 0, 0] == pytest.approx(0.1, abs=1e-15)


@pytest.mark.slow
@pytest.mark.parametrize("build", [lambda: of_library("lotka-volterra-f"), eventful])
def test_a_radius_changes_nothing_about_boxes_that_it_does_not_refute(build: Any) -> None:
    problem, vector = build()
    enclosure = DiscretisedEnclosure(problem, SCHEMES["trapezoid"], UniformMesh(15))
    rng = np.random.default_rng(0)
    middle = vector * np.exp(rng.normal(0, 1, (40, len(vector))))
    lower, upper = 0.99 * middle, 1.01 * middle
    everything = enclosure(lower, upper)
    least = np.sqrt(everything.squares_bound())
    for radius in (0.0, float(np.quantile(least, 0.3)), float(np.median(least)), 1e9):
        found = enclosure(lower, upper, radius)
        kept = least <= radius
        # (Sums of arrays of another shape are rounded in another way.)
        assert found.c[:, :, kept] == pytest.approx(everything.c[:, :, kept], rel=1e-9, abs=1e-12)
        own, other = found.remainder[:, kept], everything.remainder[:, kept]
        assert own == pytest.approx(other, rel=1e-6, abs=1e-12)
        # Where something is still said of the others, it is the same; else nothing is known.
        said = np.isfinite(found.remainder)
        own, other = found.remainder[said], everything.remainder[said]
        assert own == pytest.approx(other, rel=1e-6, abs=1e-12)
        refuted = found.squares_bound()[~kept]
        assert (refuted >= radius**2 * (1 - 1e-12)).all()


@pytest.mark.slow
def test_one_box_does_not_depend_on_the_others() -> None:
    problem, vector = eventful()
    enclosure = DiscretisedEnclosure(problem, SCHEMES["legendre"], UniformMesh(6))
    scales = np.array([1e-4, 1e-2, 0.3, 30.0, 1e6])[:, None]
    lower, upper = vector * (1 - scales), vector * (1 + scales)
    together = enclosure(lower, upper)
    for b in range(len(scales)):
        alone = enclosure(lower[b : b + 1], upper[b : b + 1])
        own, other = together.remainder[:, b], alone.remainder[:, 0]
        assert (np.isfinite(own) == np.isfinite(other)).all()
        fine = np.isfinite(own)
        assert own[fine] == pytest.approx(other[fine], rel=1e-6, abs=1e-12)


@pytest.mark.slow
def test_a_bound_that_no_guess_confirms_is_infinite(monkeypatch: pytest.MonkeyPatch) -> None:
    """A contraction holds for deviations up to the guess that it was computed with."""
    problem, vector = of_library("lotka-volterra-f")
    enclosure = DiscretisedEnclosure(problem, SCHEMES["trapezoid"], UniformMesh(12))
    assert np.isfinite(enclosure(0.999 * vector[None], 1.001 * vector[None]).remainder).all()
    growing = iter(10.0**k for k in range(1, 1000))

    def larger(self: KrawczykSolver, matrix: Array, g: Array, q: int) -> Array:
        return g * next(growing)

    monkeypatch.setattr(KrawczykSolver, "_least_solution", larger)
    found = enclosure(0.999 * vector[None], 1.001 * vector[None])
    assert np.isinf(found.remainder[2:]).all()


def test_uninformative_boxes_are_reported_as_such() -> None:
    problem = Problem(
        Model(ode={"x": "k*x^2"}),
        {"t": [0.0, 1.0, 2.0], "x": [1.0, 1.1, 1.2]},
        {"k": {}},
        {"x": 1.0},
    )
    enclosure = DiscretisedEnclosure(problem, SCHEMES["trapezoid"], UniformMesh(4))
    bad = np.array([[-1e300, -1e3, -np.inf, 0.09]]).T
    worse = np.array([[1e300, 1e3, np.inf, 0.11]]).T
    found = enclosure(bad, worse)
    assert np.isinf(found.remainder[1:, :3]).all()
    assert np.isfinite(found.remainder[:, 3]).all()


@pytest.mark.parametrize("scheme", ["trapezoid", "adams-moulton", "radau"])
def test_linear_equations_with_whole_boxes_of_solutions(scheme: str) -> None:
    """x' = -k x + c by its own recursion, at ten thousand points."""
    times = np.linspace(0.0, 2.0, 5)
    problem = Problem(
        Model(ode={"x": "c - k*x"}),
        {"t": times, "x": np.zeros(5)},
        {"k": {}, "c": {}},
        {"x": {}},
    )
    grid = SCHEMES[scheme].relations(np.linspace(0.0, 2.0, 5))
    a, b = grid.states.toarray(), grid.rhs.toarray()
    enclosure = DiscretisedEnclosure(problem, SCHEMES[scheme], UniformMesh(4))
    order = [problem.keys.index(key) for key in ("k", "c", "x")]
    rng = np.random.default_rng(1)
    for width in (1e-3, 0.1, 0.5):
        middle = np.array([0.7, 0.4, 1.0])
        lower, upper = (middle - width)[None], (middle + width)[None]
        given, swapped = np.empty((2, 1, 3))
        given[:, order], swapped[:, order] = lower, upper
        found = enclosure(given, swapped)
        assert np.isfinite(found.remainder).all()
        d = rng.uniform(-1, 1, (3000, 3))
        d[:500] = np.sign(d[:500])
        k, c, x = (middle + width * d).T
        matrix = a[None] + k[:, None, None] * b[None]
        right = c[:, None] * b.sum(axis=1) - matrix[:, :, 0] * x[:, None]
        solved = np.linalg.solve(matrix[:, :, 1:], right[:, :, None])[:, :, 0]
        true = np.column_stack([x, solved])[:, grid.boundary]
        own = np.empty_like(d)
        own[:, order] = d
        polynomial = at(Monomials.of(3, 2), own) @ found.c[:, :, 0].T
        distance = np.abs(true - polynomial) - found.remainder[:, 0]
        assert (distance <= 1e-12).all(), (width, distance.max())


@pytest.mark.parametrize(
    ("ode", "scheme", "unique"),
    [
        ("-k*x^2", "trapezoid", False),
        ("-k*x^2", "legendre", False),
        ("-k*x^2", "euler", True),
        ("-k*x^2", "runge-kutta", True),
        ("-k^2*x", "radau", True),
        ("-k^2*x + t", "simpson", True),
    ],
)
def test_implicit_schemes_of_nonlinear_equations_may_have_several_solutions(
    ode: str, scheme: str, unique: bool
) -> None:
    data = {"t": [0.0, 1.0, 2.0], "x": [1.0, 0.5, 0.3]}
    problem = Problem(Model(ode={"x": ode}), data, {"k": {}}, {"x": 1.0})
    found = DiscretisedEnclosure(problem, SCHEMES[scheme], UniformMesh(4))
    assert found.unique_solution is unique


def test_the_scope_counts_the_steps_of_all_experiments() -> None:
    problem, _ = eventful()  # whose events at 1, 2 and 3.3 become mesh points
    enclosure = DiscretisedEnclosure(problem, SCHEMES["radau"], UniformMesh(8))
    assert enclosure.scope == f"discretised ({SCHEMES['radau'].name}, M = 9)"
    runs = [Experiment(name, {"t": [0.0, 2.0], "x": [1.0, 0.4]}) for name in ("a", "b")]
    problem = Problem(Model(ode={"x": "-k*x"}), None, {"k": {}}, {"x": 1.0}, experiments=runs)
    enclosure = DiscretisedEnclosure(problem, SCHEMES["euler"], UniformMesh(5))
    assert enclosure.scope.endswith("M = 10)")


@pytest.mark.parametrize("scheme", ["radau", "trapezoid"])
def test_after_a_cut_off_everything_left_is_unknown(
    scheme: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem, vector = fitzhugh_nagumo()
    enclosure = DiscretisedEnclosure(problem, SCHEMES[scheme], UniformMesh(10))
    lower, upper, by = vector[None] * 0.999, vector[None] * 1.001, CutOff()
    whole, solved = enclosure(lower, upper), KrawczykSolver.solve
    done = 0

    def counted(*arguments: Any) -> Any:
        nonlocal done
        done += 1
        if done == 4:
            by.now()
        return solved(*arguments)

    monkeypatch.setattr(KrawczykSolver, "solve", counted)
    with cutting_off(by):
        found = enclosure(lower, upper)
    assert done == 4
    known = np.isfinite(found.remainder)
    assert known.any()
    assert not known.all()
    np.testing.assert_array_equal(found.remainder[known], whole.remainder[known])
