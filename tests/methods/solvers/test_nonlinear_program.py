"""The nonlinear program: its derivatives, and what it is made of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import casadi as ca
import numpy as np
import pytest

from odefit import ForwardMap, Model, Problem, fit, library
from odefit.common.arrays import Array
from odefit.discretisation.discretisation import Discretisation
from odefit.discretisation.formulations import Baseline, ExtraTol, Formulation, SoftCons
from odefit.discretisation.instance import Instance, Scales
from odefit.discretisation.mesh import DataMesh, UniformMesh
from odefit.discretisation.schemes import (
    AdamsMoulton,
    Collocation,
    Euler,
    RungeKutta,
    Scheme,
    Simpson,
    Trapezoid,
)
from odefit.methods.solvers.nlpsol import Ipopt
from odefit.methods.solvers.nonlinear_program import NonlinearProgram, nonlinear_program
from odefit.methods.solvers.solver import Limits, Outcome, constraint_violation
from tests.methods.transcription.exact import exact_values, reference_of
from tests.simulation.zoo import NOISE, ZOO, Case

CASES: dict[str, Callable[[], Case]] = ZOO | {f"noise: {k}": v for k, v in NOISE.items()}


def beside(d: Discretisation, vector: Array, seed: int = 0) -> tuple[Array, Array]:
    """Values at points and unknowns that satisfy nothing, all positive."""
    random = np.random.default_rng(seed)
    values = 0.5 + random.uniform(size=(d.points, len(d.variables)))
    return values, vector * (1 + 0.1 * random.uniform(size=len(vector)))


def dense(matrix: Any) -> Array:
    return np.asarray(ca.DM(matrix).full())


def derivatives(nlp: NonlinearProgram, w: Array, lam_f: float, lam_g: Array) -> dict[str, Array]:
    """By the program's own functions."""
    gradient = nlp.gradient(w, [])
    jacobian = nlp.jacobian(w, [])
    upper = dense(nlp.hessian(w, [], lam_f, lam_g))
    assert not np.tril(upper, -1).any()
    return {
        "f": dense(gradient[0]),
        "gradient": dense(gradient[1]),
        "g": dense(jacobian[0]),
        "jacobian": dense(jacobian[1]),
        "hessian": upper + np.triu(upper, 1).T,
    }


def by_casadi(nlp: NonlinearProgram, w: Array, lam_f: float, lam_g: Array) -> dict[str, Array]:
    """By differentiating objective and constraints as a whole."""
    x = ca.MX.sym("x", nlp.size)
    f, g = nlp.objective(x, ca.MX(0, 1)), nlp.equations(x)
    lagrangian = lam_f * f + ca.dot(ca.DM(lam_g), g)
    outputs = [f, ca.gradient(f, x), g, ca.jacobian(g, x), ca.hessian(lagrangian, x)[0]]
    found = ca.Function("all", [x], outputs)(w)
    names = ("f", "gradient", "g", "jacobian", "hessian")
    return dict(zip(names, map(dense, found), strict=True))


def check_derivatives(d: Discretisation, vector: Array, formulation: Formulation) -> None:
    nlp = nonlinear_program(d, formulation)
    random = np.random.default_rng(1)
    w = nlp.pack(*beside(d, vector))
    lam_f, lam_g = 0.7, random.normal(size=len(nlp.assembly.constraints.rows))
    found, expected = derivatives(nlp, w, lam_f, lam_g), by_casadi(nlp, w, lam_f, lam_g)
    for name, value in expected.items():
        assert np.isfinite(value).all()
        scale = max(1.0, np.abs(value).max())
        assert found[name] == pytest.approx(value, rel=1e-10, abs=1e-12 * scale), name


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_derivatives_are_those_of_objective_and_constraints(name: str) -> None:
    problem, vector = CASES[name]()
    check_derivatives(Discretisation(problem, Trapezoid(), UniformMesh(7)), vector, Baseline())


@pytest.mark.slow
@pytest.mark.parametrize("formulation", [Baseline(), ExtraTol(1e-3), SoftCons(10.0)])
@pytest.mark.parametrize(
    "scheme",
    [
        Euler(),
        AdamsMoulton(),
        AdamsMoulton("block"),
        Simpson(),
        RungeKutta(),
        Collocation(2),
        Collocation(2, "legendre"),
    ],
)
@pytest.mark.parametrize("name", ["doses and switches", "nonlinear algebra"])
def test_derivatives_are_right_for_every_scheme_and_formulation(
    name: str, scheme: Scheme, formulation: Formulation
) -> None:
    problem, vector = ZOO[name]()
    check_derivatives(Discretisation(problem, scheme, UniformMesh(4)), vector, formulation)


@pytest.mark.parametrize("name", ["lotka-volterra-f", "bbg"])
def test_derivatives_of_library_problems_are_finite_differences(name: str) -> None:
    problem, vector = reference_of(name)
    d = Discretisation(problem, Trapezoid(), DataMesh(20))
    nlp = nonlinear_program(d, Baseline(), scaled=False)
    w = nlp.pack(*beside(d, vector))
    random = np.random.default_rng(2)
    lam_g = random.normal(size=len(nlp.assembly.constraints.rows))
    found = derivatives(nlp, w, 1.0, lam_g)

    def gradient(w: Array) -> Array:
        jacobian = dense(nlp.jacobian(w, [])[1])
        return np.asarray(dense(nlp.gradient(w, [])[1])[:, 0] + jacobian.T @ lam_g)

    for _ in range(5):
        u = random.normal(size=nlp.size) * np.maximum(np.abs(w), 1e-3)
        h = 1e-6
        f = [float(nlp.objective(w + s * u, [])) for s in (h, -h)]
        slope = float(found["gradient"][:, 0] @ u)
        assert (f[0] - f[1]) / (2 * h) == pytest.approx(slope, rel=1e-5)
        g = [dense(nlp.equations(w + s * u))[:, 0] for s in (h, -h)]
        expected = found["jacobian"] @ u
        scale = np.abs(expected).max()
        assert (g[0] - g[1]) / (2 * h) == pytest.approx(expected, abs=1e-6 * scale)
        curvature = (gradient(w + h * u) - gradient(w - h * u)) / (2 * h)
        expected = found["hessian"] @ u
        assert curvature == pytest.approx(expected, abs=1e-5 * np.abs(expected).max())


# Agreement with the discretisation --------------------------------------------------------------


@pytest.mark.parametrize("name", CASES)
def test_the_program_has_the_discretisation_s_objective_and_rows(name: str) -> None:
    """CasADi and NumPy evaluate the same expressions."""
    problem, vector = CASES[name]()
    d = Discretisation(problem, Simpson(), UniformMesh(7))
    nlp = nonlinear_program(d, Baseline(), scaled=False)
    values, unknowns = beside(d, vector)
    w = nlp.pack(values, unknowns)
    assert float(nlp.objective(w, [])) == pytest.approx(d.objective(values, unknowns), rel=1e-12)
    g = dense(nlp.equations(w))[:, 0]
    assert g == pytest.approx(d.defects(values, unknowns), rel=1e-11, abs=1e-12)


@pytest.mark.parametrize("formulation", [Baseline(), ExtraTol(), SoftCons()])
def test_packing_and_unpacking_give_the_same(formulation: Formulation) -> None:
    problem, vector = ZOO["doses and switches"]()
    d = Discretisation(problem, Collocation(2), UniformMesh(5))
    nlp = nonlinear_program(d, formulation, scaled=False)
    values, unknowns = beside(d, vector)
    w = nlp.pack(values, unknowns)
    assert w.shape == nlp.lower.shape == nlp.upper.shape == (nlp.size,)
    found = nlp.unpack(w)
    assert (found[0] == values).all()
    assert (found[1] == unknowns).all()


def test_the_slacks_of_packing_are_the_smallest_that_are_feasible() -> None:
    problem, vector = ZOO["doses and switches"]()
    d = Discretisation(problem, Trapezoid(), UniformMesh(5))
    nlp = nonlinear_program(d, SoftCons(7.0), scaled=False)
    values, unknowns = beside(d, vector)
    w = nlp.pack(values, unknowns)
    slacks = w[-nlp.assembly.constraints.slacks :]
    assert slacks == pytest.approx(np.abs(d.defects(values, unknowns)[d.rows.dynamic]))
    expected = d.objective(values, unknowns) + 7 * slacks.sum()
    assert float(nlp.objective(w, [])) == pytest.approx(expected)


def test_known_values_and_the_user_s_bounds_are_bounds_of_the_variables() -> None:
    problem = library.load("alpha-pinene")
    d = Discretisation(problem, Trapezoid(), UniformMesh(4))
    nlp = nonlinear_program(d, SoftCons(), scaled=False)
    lower, unknowns = nlp.unpack(nlp.lower)
    upper, most = nlp.unpack(nlp.upper)
    assert lower[0].tolist() == upper[0].tolist() == [100, 0, 0, 0, 0]
    assert np.isinf(lower[1:]).all()
    assert unknowns.tolist() == problem.lower.tolist()
    assert most.tolist() == problem.upper.tolist()
    assert not nlp.lower[-nlp.assembly.constraints.slacks :].any()


def test_the_jacobian_is_sparse() -> None:
    """A row of the trapezoid has two points and the unknowns."""
    d = Discretisation(library.load("alpha-pinene"), Trapezoid(), UniformMesh(1000))
    nlp = nonlinear_program(d, Baseline(), scaled=False)
    assert nlp.jacobian.nnz_out(1) < 10 * len(nlp.assembly.constraints.rows)
    assert nlp.hessian.nnz_out(0) < 10 * nlp.size


# Scales -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "formulation"),
    [
        ("alpha-pinene", Baseline()),
        ("alpha-pinene", ExtraTol(1e-3)),
        ("alpha-pinene", SoftCons(10.0)),
        pytest.param("hiv-proteinase", SoftCons(10.0), marks=pytest.mark.slow),
    ],
)
def test_a_scaled_program_is_the_same_program(name: str, formulation: Formulation) -> None:
    problem, vector = reference_of(name)
    d = Discretisation(problem, Trapezoid(), DataMesh())
    scaled, natural = (
        nonlinear_program(d, formulation),
        nonlinear_program(d, formulation, scaled=False),
    )
    values, unknowns = beside(d, vector)
    w, v = scaled.pack(values, unknowns), natural.pack(values, unknowns)
    assert scaled.unpack(w)[0] == pytest.approx(values, rel=1e-14)
    assert scaled.scale * w == pytest.approx(v, rel=1e-12)
    f = float(scaled.objective(w, [])) * Scales.of(d).objective
    assert f == pytest.approx(float(natural.objective(v, [])), rel=1e-12)
    inside = np.isfinite(scaled.lower)
    assert (scaled.lower * scaled.scale)[inside] == pytest.approx(natural.lower[inside])


@pytest.mark.parametrize("size", [1e6, 1.0, 1e-4, 1e-7, 1e-12])
def test_a_solution_does_not_depend_on_the_unit_of_the_states(size: float) -> None:
    """Without scales IPOPT calls any start solved where states are 1e-7."""
    problem = Problem(
        Model(ode={"x": "-k*x"}),
        data={"t": [0.0, 1.0, 2.0], "x": [size, 0.6 * size, 0.3 * size]},
        parameters={"k": {"lower": 0}},
        initial={"x": size},
    )
    d = Discretisation(problem, Trapezoid(), UniformMesh(20))
    instance = Instance(d, Baseline(), np.full((d.points, 1), size), np.array([5.0]))
    answer = Ipopt().solve(instance, Limits())
    assert answer.success
    assert answer.unknowns == pytest.approx([0.5607686], rel=1e-6)
    assert not constraint_violation(instance, np.full((d.points, 1), size), np.array([5.0])) < 0.1


# Solutions --------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "steps"), [("alpha-pinene", 60), ("lotka-volterra-f", 60), ("hiv-f", 40)]
)
def test_a_solution_on_a_fine_mesh_is_that_of_single_shooting(name: str, steps: int) -> None:
    """From 10 % beside the reference; the two share the problem and nothing else."""
    problem, vector = reference_of(name)
    d = Discretisation(problem, Collocation(3), DataMesh(steps))
    start = np.clip(1.1 * vector, problem.lower, problem.upper)
    values = exact_values(d, ForwardMap(problem), start)
    answer = Ipopt(1e-10).solve(Instance(d, Baseline(), values, start), Limits(60.0))
    assert answer.outcome is Outcome.SOLVED
    assert answer.success
    best = fit(problem, seed=1).best
    assert answer.unknowns == pytest.approx(best.vector, rel=1e-4)
    assert answer.objective == pytest.approx(best.objective, rel=1e-5)


def test_a_solution_with_an_estimated_sd_is_the_maximum_of_the_likelihood() -> None:
    times = np.linspace(0.0, 4.0, 9)
    wrong = 0.05 * np.array([1, -2, 0, 1, 1, -1, 2, -1, 0])
    problem = Problem(
        Model(ode={"x": "-k*x"}),
        {"t": times, "x": 2 * np.exp(-0.7 * times) + wrong},
        {"k": {"lower": 0.0, "upper": 10.0}},
        {"x": {"lower": 0.0, "upper": 5.0}},
        noise={"x": {"sd": "estimate"}},
    )
    d = Discretisation(problem, Collocation(3), DataMesh(20))
    vector = fit(problem, seed=1).best.vector
    values = exact_values(d, ForwardMap(problem), vector)
    start = 1.3 * vector
    answer = Ipopt().solve(Instance(d, Baseline(), values, start), Limits(20.0))
    assert answer.solved
    assert answer.unknowns == pytest.approx(vector, rel=1e-5)
