"""Functions that are estimated: their bases, their expansion, and what a problem makes of them."""

from typing import Any

import numpy as np
import pytest

import odefit
from odefit import InputError, Model, Problem
from odefit.common.arrays import Array
from odefit.expressions.algebras import NUMPY
from odefit.problem import problem_from_mapping, problem_to_mapping
from odefit.problem.inputs.issues import Issues
from odefit.problem.unknown_functions.bases import Basis, basis, bends
from odefit.problem.unknown_functions.expansion import expanded
from odefit.problem.unknown_functions.specification import read_function
from odefit.reporting.formulas.equations import PLAIN, ode_lines, special_words, written_lines
from odefit.simulation import Failure, ForwardMap

PLACES = (0.0, 0.2, 0.5, 0.6, 1.0)
AT = np.linspace(0.0, 1.0, 23)


def problem(table: dict[str, Any], **given: Any) -> Problem:
    model = Model(ode={"x": "u - 0.5*x"}, observables={"y": "x"}, inputs={"u": table})
    data = {"t": [0.0, 2.0, 5.0, 8.0], "y": [0.0, 1.0, 1.5, 1.7]}
    return Problem(model, data=data, initial={"x": 0.0}, noise={"y": {"sd": 0.1}}, **given)


def values(text: str, names: dict[str, Any]) -> Array:
    issues = Issues()
    found = issues.expression("here", text)
    assert found is not None, issues.errors
    return np.broadcast_to(found.evaluate(names, NUMPY), np.shape(names.get("t", 0.0)))


def basis_values(made: Basis, at: Array) -> Array:
    """Return the functions of a basis at coordinates from 0 to 1, shape (k, n)."""
    place = np.clip(np.searchsorted(made.knots, at, side="right") - 1, 0, len(made.pieces) - 1)
    powers = (at - made.knots[place])[:, None] ** np.arange(made.pieces.shape[2])
    return np.asarray(np.einsum("kp,knp->kn", powers, made.pieces[place]))


@pytest.mark.parametrize("kind", ["constant", "linear", "spline"])
def test_coefficients_that_are_equal_are_a_constant(kind: str) -> None:
    assert basis_values(basis(kind, PLACES), AT).sum(axis=1) == pytest.approx(np.ones(len(AT)))


@pytest.mark.parametrize("kind", ["linear", "spline"])
def test_coefficients_on_a_line_are_that_line_and_have_no_second_differences(kind: str) -> None:
    made = basis(kind, PLACES)
    assert basis_values(made, AT) @ made.sites == pytest.approx(AT, abs=1e-13)
    assert bends(made.sites) @ (3.0 - 2.0 * made.sites) == pytest.approx(0.0, abs=1e-12)


def test_powers_beyond_the_knots_are_the_same_spline_and_a_line_outside() -> None:
    made = basis("spline", PLACES)
    line, added = made.jumps()

    def whole(u: Array) -> Array:
        ramps = np.maximum(u[:, None] - made.knots, 0.0)
        terms = sum(ramps[:, [m]] ** p * added[m, :, p] for m in range(5) for p in range(4))
        return np.asarray(line[0] + u[:, None] * line[1] + terms)

    assert whole(AT) == pytest.approx(basis_values(made, AT), abs=1e-12)
    assert np.diff(whole(np.array([1.1, 1.4, 1.7])), 2, axis=0) == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize(
    "more",
    [{}, {"scale": "log10"}, {"sd": 0.2}, {"shape": "convex"}, {"scale": "log10", "sd": 1.0}],
)
@pytest.mark.parametrize("kind", ["linear", "spline"])
def test_the_expression_of_time_has_the_values_of_the_basis(
    kind: str, more: dict[str, Any]
) -> None:
    table = {"estimate": kind, "knots": [1.0, 2.0, 4.0, 5.0], **more}
    function = read_function("u", table, "[inputs] u", Issues())
    assert function is not None
    made = expanded(function)
    rng = np.random.default_rng(1)
    names = {k: rng.uniform(0.5, 2.0) for k in made.features} | {"u_from": 1.0, "u_to": 5.0}
    names |= {c: float(values(text, names)) for c, text in made.constants.items()}
    plain = basis(kind, function.places)
    coefficients = [names[k] for k in made.constants] or [names[k] for k in made.features]
    direct = basis_values(plain, AT) @ np.array(coefficients)
    direct = 10.0**direct if function.log else direct
    inside = values(made.text, {**names, "t": 1.0 + 4.0 * AT})
    assert inside == pytest.approx(direct, rel=1e-12)
    held = values(made.text, {**names, "t": np.array([-3.0, 1.0, 5.0, 9.0])})
    assert held[[0, 2]] == pytest.approx(held[[1, 3]])


@pytest.mark.parametrize("shape", ["increasing", "decreasing", "convex", "concave"])
def test_a_shape_holds_for_all_values_within_the_bounds(shape: str) -> None:
    table = {"estimate": "spline", "of": "x", "range": [0, 1], "knots": 6, "shape": shape}
    function = read_function("u", table, "[inputs] u", Issues())
    assert function is not None
    made = expanded(function)
    rng = np.random.default_rng(2)
    names = {k: rng.exponential() for k in made.features} | {"u_from": 0.0, "u_to": 1.0}
    names |= {c: float(values(text, names)) for c, text in made.constants.items()}
    course = np.array([float(values(made.text, {**names, "x": x})) for x in np.linspace(0, 1, 50)])
    order = 1 if shape in ("increasing", "decreasing") else 2
    sign = 1.0 if shape in ("increasing", "convex") else -1.0
    assert (sign * np.diff(course, order) > -1e-10).all()


def test_a_function_is_an_observable_and_its_knots_span_the_data() -> None:
    p = problem({"estimate": "linear", "knots": 3})
    assert p.keys == ("u_1", "u_2", "u_3")
    assert list(p.model.observables) == ["y", "u"]
    assert not p.warnings
    forward = ForwardMap(p)
    # With u = 1 + t/4 until t = 4, x' = u - x/2 has the solution 1 + t/2 - exp(-t/2).
    course = forward.trajectory(np.array([1.0, 2.0, 4.0]), None, np.array([2.0]))
    assert not isinstance(course, Failure)
    assert course.states[0, 0] == pytest.approx(2.0 - np.exp(-1.0), rel=1e-6)


def test_a_change_point_has_exact_sensitivities() -> None:
    p = problem({"estimate": "constant", "changes": 1})
    assert p.keys == ("u_time_1", "u_1", "u_2")
    forward, vector = ForwardMap(p), np.array([3.0, 1.0, 2.0])
    found = forward.evaluate(vector)
    assert not isinstance(found, Failure)
    for i in range(3):
        h = np.eye(3)[i] * 1e-5
        ends = [forward.evaluate(vector + sign * h) for sign in (1, -1)]
        above, below = (end.residuals for end in ends if not isinstance(end, Failure))
        assert found.jacobian[:, i] == pytest.approx((above - below) / 2e-5, abs=2e-4)


def test_written_problems_keep_their_functions() -> None:
    p = problem({"estimate": "spline", "knots": 4, "smooth": "reml", "sd": 0.5, "guess": 1.0})
    again = problem_from_mapping(problem_to_mapping(p))
    assert again.keys == p.keys
    assert again.given == p.given
    assert again.given.unknown_functions["u"].function == p.given.unknown_functions["u"].function
    assert again.priors == p.priors


def test_given_fields_of_a_coefficient_are_kept() -> None:
    p = problem({"estimate": "linear", "knots": 3}, parameters={"u_2": {"fixed": 1.5}})
    assert p.keys == ("u_1", "u_3")


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"estimate": "splin"}, "did you mean 'spline'"),
        ({"estimate": "spline", "knot": 3}, "did you mean 'knots'"),
        ({"estimate": "spline", "knots": 1}, "a whole number from 2"),
        ({"estimate": "spline", "knots": [0, 2, 1]}, "increasing numbers"),
        ({"estimate": "spline", "of": "x*y0", "knots": 3}, "range = [0, 10]"),
        ({"estimate": "linear", "changes": 1}, "change points belong to"),
        ({"estimate": "spline", "shape": "convex", "sd": 1.0}, "neither smooth nor sd"),
        ({"estimate": "spline", "scale": "log10", "lower": 0.0}, "above zero"),
        ({"estimate": "constant", "of": "x", "range": [0, 1]}, "functions of time"),
        ({"estimate": "spline", "smooth": "rmel"}, "did you mean 'reml'"),
    ],
)
def test_mistakes_are_reported_with_a_remedy(table: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError) as told:
        problem(table)
    assert words in str(told.value)
    assert "[inputs] u" in str(told.value)


def test_a_description_names_the_function_instead_of_its_pieces() -> None:
    table = {"estimate": "spline", "knots": 5, "of": "x", "range": [0.0, 2.0]}
    model = odefit.Model(ode={"x": "-f*x"}, observables={"y": "x"}, inputs={"f": table})
    data = {"t": [0.0, 1.0, 2.0], "y": [1.0, 0.6, 0.4]}
    problem = odefit.Problem(model, data=data, initial={"x": 1.0}, noise={"y": {"sd": 0.1}})
    assert list(ode_lines(problem)) == ["dx/dt = -f*x"]
    (written,) = written_lines(problem)
    assert written == "f = an unknown function of x: a cubic spline with 5 knots"
    assert special_words(problem, problem.experiments[0], PLAIN) == []


def test_an_unmeasured_function_has_no_prediction_band() -> None:
    table = {"estimate": "linear", "knots": [0.0, 2.0], "guess": 0.5}
    model = odefit.Model(ode={"x": "-f*x"}, observables={"y": "x"}, inputs={"f": table})
    data = {"t": [0.0, 0.5, 1.0, 1.5, 2.0], "y": [1.0, 0.8, 0.62, 0.5, 0.41]}
    problem = odefit.Problem(model, data=data, initial={"x": 1.0}, noise={"y": {"sd": 0.01}})
    found = odefit.fit(problem, odefit.SingleShooting(), jobs=1).predict().set_index("name")
    for name, columns, missing in (("f", "pi", True), ("f", "ci", False), ("y", "pi", False)):
        ends = found.loc[name, [f"{columns}_low", f"{columns}_high"]].to_numpy(dtype=float)
        assert (np.isnan(ends) == missing).all()
