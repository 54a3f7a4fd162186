"""Finite bounds: given, or proposed and accepted, never made up unasked."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from odefit import Model, Parameter, Problem, library
from odefit.common.errors import InputError
from odefit.methods.bounded_problem import (
    BoundedProblem,
    GivenBounds,
    check_bounds,
    check_names,
    finite_bounds,
    with_bounds,
)
from odefit.methods.running.control import Control

TIMES = np.linspace(0.0, 4.0, 9)


def problem(k: Any = None, s: Any = None, **more: Any) -> Problem:
    return Problem(
        Model(ode={"x": "-k*x"}, observables={"y": "s*x"}),
        {"t": TIMES, "y": 2 * np.exp(-0.7 * TIMES)},
        {"k": k or {}, "s": s or {}},
        {"x": 1.0},
        **more,
    )


def assumed(own: Problem, given: GivenBounds) -> dict[str, tuple[float, float]]:
    return BoundedProblem.of(own, given, Control(), 1.0, "auto").assumed


def test_bounds_of_the_problem_are_enough() -> None:
    own = problem({"lower": 0.0, "upper": 3.0}, {"lower": -1.0, "upper": 5.0})
    assert finite_bounds(own, None).tolist() == [[0.0, 3.0], [-1.0, 5.0]]
    assert with_bounds(own, finite_bounds(own, None)) is own
    assert assumed(own, None) == {}


def test_all_missing_values_are_named_with_lines_to_paste() -> None:
    with pytest.raises(InputError) as raised:
        finite_bounds(problem(), None)
    said = str(raised.value)
    pasted = eval(re.search(r"bounds=(\{.*?\})", said).group(1))  # type: ignore[union-attr]
    assert set(pasted) == {"k", "s"}
    found = finite_bounds(problem(), pasted)
    assert np.isfinite(found).all()
    assert '"propose"' in said
    assert "--bounds propose" in said


def test_given_bounds_narrow_those_of_the_problem() -> None:
    own = problem({"lower": 0.0, "upper": 3.0}, {"lower": 0.0})
    given = {"k": (-1.0, 2.0), "s": (1.0, 4.0)}
    assert finite_bounds(own, given).tolist() == [[0.0, 2.0], [1.0, 4.0]]
    assert assumed(own, given) == {"k": (0.0, 2.0), "s": (1.0, 4.0)}


def test_bounds_disjoint_from_the_problem_s_are_refused() -> None:
    own = problem({"lower": 0.0, "upper": 3.0}, {"lower": 0.0, "upper": 1.0})
    with pytest.raises(InputError, match="does not overlap"):
        finite_bounds(own, {"k": (4.0, 5.0)})
    assert finite_bounds(own, {"k": (3.0, 5.0)})[0].tolist() == [3.0, 3.0]


def test_a_one_sided_bound_is_kept_in_a_proposal() -> None:
    found = finite_bounds(problem({"lower": -7.0}, {"upper": -2.0}), "propose")
    assert found[0, 0] == -7.0
    assert found[1, 1] == -2.0
    assert (found[:, 0] < found[:, 1]).all()
    assert np.isfinite(found).all()


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"lower": 0.0},
        {"lower": 1e6},
        {"upper": -1e6},
        {"scale": "log10", "lower": 1e-9},
        {"guess": 1e5},
        {"guess": -3.0},
    ],
)
def test_proposals_are_finite_and_contain_the_guess(fields: dict[str, Any]) -> None:
    own = problem(fields)
    found = finite_bounds(own, "propose")
    assert np.isfinite(found).all()
    assert (found[:, 0] < found[:, 1]).all()
    assert found[0, 0] >= fields.get("lower", -np.inf)
    assert found[0, 1] <= fields.get("upper", np.inf)
    if "guess" in fields:
        assert found[0, 0] <= fields["guess"] <= found[0, 1]


@pytest.mark.parametrize("fields", [{}, {"lower": 0.0}, {"lower": 0.0, "upper": 1e-9}])
def test_divisors_and_arguments_of_logarithms_get_a_positive_lower_bound(
    fields: dict[str, Any],
) -> None:
    model = Model(ode={"x": "-k*x/h + 0*log(m)"}, observables={"y": "s*x"})
    own = Problem(
        model,
        {"t": TIMES, "y": 2 * np.exp(-0.7 * TIMES)},
        {"k": fields, "h": fields, "m": fields, "s": {"scale": "log10"}},
        {"x": 1.0},
        noise={"y": {"sd": "estimate"}},
    )
    found = dict(zip(own.keys, finite_bounds(own, "propose").tolist(), strict=True))
    assert found.pop("k")[0] == 0.0
    assert all(0.0 < low < high for low, high in found.values())
    assert set(found) <= set(assumed(own, "propose"))


def test_a_bound_of_zero_is_kept_unless_proposals_are_accepted() -> None:
    own = problem({"lower": 0.0, "upper": 3.0}, {"lower": 0.0}, noise={"y": {"sd": "estimate"}})
    found = finite_bounds(own, {"s": (0.0, 1.0), "y_sd": (0.0, 1.0)})
    assert found.tolist() == [[0.0, 3.0], [0.0, 1.0], [0.0, 1.0]]


@pytest.mark.parametrize(
    "name", ["alpha-pinene", "harmonic", "lotka-volterra-f", "fitzhugh-nagumo", "bbg", "sir"]
)
def test_proposals_hold_the_answers_of_library_problems(name: str) -> None:
    own, known = library.load(name), library.reference(name)
    values = {**known.parameters, **known.initial}
    found = finite_bounds(own, "propose")
    for (low, high), unknown in zip(found, own.unknowns, strict=True):
        assert low <= values[unknown.key] <= high


def test_unknown_initial_values_and_experiments_are_unknowns_too() -> None:
    own = Problem(
        Model(ode={"x": "-k*x"}),
        {"t": TIMES, "x": np.exp(-TIMES)},
        {"k": {}},
        {"x": Parameter()},
    )
    given = {"k": (0.0, 1.0), "x": (0.0, 2.0)}
    found = finite_bounds(own, given)
    assert found.tolist() == [list(given[key]) for key in own.keys]


def test_a_deadline_is_set_unless_one_exists() -> None:
    own = problem({"lower": 0.0, "upper": 3.0}, {"lower": -1.0, "upper": 5.0})
    begun = BoundedProblem.of(own, None, Control(), 60.0, "auto")
    assert 0.0 < begun.seconds_left <= 60.0
    assert begun.control.deadline is not None
    local = begun.local_control(0.25).deadline
    assert local is not None
    assert local < begun.control.deadline
    again = BoundedProblem.of(own, None, Control(deadline=7.0), 60.0, "auto")
    assert again.control.deadline == 7.0
    assert again.seconds_left == 0.0


def test_a_problem_with_other_bounds_is_another_problem() -> None:
    own = problem({"lower": 0.0}, {"lower": 0.0})
    before = own.lower.copy(), own.upper.copy()
    bounds = np.array([[0.5, 2.0], [1.0, 3.0]])
    found = with_bounds(own, bounds)
    assert found is not own
    assert (found.lower == bounds[:, 0]).all()
    assert (found.upper == bounds[:, 1]).all()
    assert (own.lower == before[0]).all()
    assert (own.upper == before[1]).all()
    assert found.keys == own.keys
    assert [u.parameter.lower for u in found.unknowns] == [0.5, 1.0]


def test_all_names_that_do_not_exist_are_refused_at_once() -> None:
    with pytest.raises(InputError) as raised:
        check_names(problem(), {"kk": (0, 1), "k": (0, 1), "speed": (0, 1)})
    said = str(raised.value)
    assert "'kk'; did you mean 'k'?" in said
    assert "'speed'" in said
    check_names(problem(), {"x": (0, 1)}, ("x",))
    check_names(problem(), "propose")
    check_names(problem(), None)


@pytest.mark.parametrize(
    ("given", "part"),
    [
        ("yes", "'yes'"),
        (3, "got 3"),
        ({"k": 3}, "'k': expected (lower, upper), got 3"),
        ({"k": (1, 2, 3)}, "expected (lower, upper)"),
        ({"k": "01"}, "'k': expected a finite number"),
        ({"k": (0, np.nan)}, "'k': expected a finite number"),
        ({"k": (0, np.inf)}, "'k': expected a finite number"),
        ({"k": (2, 1)}, "the lower bound is above the upper bound"),
    ],
)
def test_invalid_bounds_are_refused(given: Any, part: str) -> None:
    with pytest.raises(InputError) as raised:
        check_bounds("Method", given)
    assert str(raised.value).startswith("Method, bounds")
    assert part in str(raised.value)


def test_valid_bounds_are_accepted() -> None:
    for fine in (None, "propose", {}, {"k": (0, 1)}, {"k": [0.0, 0.0]}):
        check_bounds("Method", fine)
