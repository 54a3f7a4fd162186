"""Recorded sums of products: what is known is computed once, and the rest like dual numbers do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odefit import IntegralMatching, library
from odefit.common.arrays import Array
from odefit.expressions.algebras import DUAL, Dual
from odefit.expressions.expressions import FUNCTIONS, Expression, parse
from odefit.methods.integral_matching.program import Program
from odefit.methods.integral_matching.segments import Grid
from odefit.methods.integral_matching.separated import Recorder, Separated, derivative

GRID = Grid.over(0.0, 2.0, np.array([0.7]), 40)
X, Y = np.linspace(0.2, 0.9, len(GRID.times)), 0.5 + 0.3 * np.cos(3 * GRID.times)
NAMES = ("a", "b", "c")
AT = np.array([0.4, 0.7, 0.3])
ONES = np.ones(len(GRID.times))


def recorded(recorder: Recorder, text: str | Expression, curves: Mapping[str, Array]) -> Separated:
    expression = text if isinstance(text, Expression) else parse(text)
    known: dict[str, Any] = {name: recorder.known(curve) for name, curve in curves.items()}
    known |= {name: recorder.unknown(k) for k, name in enumerate(NAMES)}
    found: Separated = expression.evaluate(known, recorder)
    return found


def by_dual_numbers(text: str, vector: Array, curves: Mapping[str, Array]) -> tuple[Array, Array]:
    known = {name: Dual(curve) for name, curve in curves.items()}
    known |= {name: Dual(vector[k], {k: 1.0}) for k, name in enumerate(NAMES)}
    with np.errstate(all="ignore"):
        found: Dual = parse(text).evaluate(known, DUAL)
    return found.array(len(GRID.times)), found.gradient(len(vector), len(GRID.times))


CURVES = {"x": X, "y": Y}
TEXTS = [
    "a*(x - y^3/3 + 2)",
    "-(x - a + b*y)/c",
    "a*x/(b + x) - c",
    "(a + b*x)*(c - y)",
    "a*(1 + b*sin(6*(x + c)))*x*y",
    "a*x^b*y^c - x^(a + y)",
    "(a*x)^2 - (b - c)^3 + 2^a",
    "min(a*x, b*y, c) + max(a, b)*x",
    "max(x, y) - abs(a - x)",
    "b*piecewise(a*x, x < 0.5 && !(y > 1), y*c, x + y > a || a > b, a*b)",
    "(a - b)/(a*b) + a/x - y/(x*c)",
    "exp(-a)*x - exp(-a*x) + a - -b",
    "0*a + x - x + 1",
    "*".join(["(1 + a*x/500)"] * 500),
    *(f"{f}(a*x)*b + {f}(c*0.5)" for f, (most, _) in FUNCTIONS.items() if most == 1),
]


@pytest.mark.parametrize("text", TEXTS, ids=lambda text: text[:40])
def test_values_and_derivatives_are_those_of_dual_numbers(text: str) -> None:
    recorder = Recorder(GRID)
    program = Program(recorder, [(recorded(recorder, text, CURVES), ONES)])
    values, derivatives = by_dual_numbers(text, AT, CURVES)
    for active in ([0, 1, 2], [2], [], [1, 0]):
        found = program.evaluate(AT, active)
        assert found[0] == pytest.approx(values, rel=1e-13, abs=1e-14)
        assert found[1] == pytest.approx(derivatives[:, active], rel=1e-12, abs=1e-13)


@pytest.mark.parametrize("text", TEXTS, ids=lambda text: text[:40])
def test_integrals_are_those_of_the_values(text: str) -> None:
    recorder = Recorder(GRID)
    integral = recorder.integral(recorded(recorder, text, CURVES))
    nested = recorder.integral(integral * recorder.unknown(0))
    program = Program(recorder, [(integral, ONES), (nested, 2.0 * X)])
    values, derivatives = by_dual_numbers(text, AT, CURVES)
    once = GRID.cumulative(values)
    slopes = GRID.cumulative(derivatives.T)
    twice = GRID.cumulative(AT[0] * once)
    found = program.evaluate(AT, range(3))
    assert found[0] == pytest.approx(np.append(once, 2 * X * twice), rel=1e-11, abs=1e-13)
    own = GRID.cumulative(AT[0] * slopes + np.outer([1, 0, 0], once))
    assert found[1] == pytest.approx(np.hstack([slopes, 2 * X * own]).T, rel=1e-11, abs=1e-12)


@given(
    st.lists(st.lists(st.floats(0.1, 2.0), min_size=3, max_size=3), min_size=2, max_size=5),
    st.lists(st.integers(0, 2), min_size=2, max_size=2, unique=True),
)
def test_values_reused_from_the_last_call_do_not_change_the_result(
    vectors: list[list[float]], active: list[int]
) -> None:
    recorder = Recorder(GRID)
    sums = [(recorded(recorder, t, CURVES), ONES) for t in (TEXTS[2], TEXTS[4], TEXTS[5])]
    used = Program(recorder, sums)
    for vector in vectors:
        for k in (0, 2):
            used.evaluate(np.array(vector) + np.eye(3)[k], active[:1])
        found = used.evaluate(np.array(vector), active)
        anew = Program(recorder, sums).evaluate(np.array(vector), active)
        assert all(np.array_equal(a, b) for a, b in zip(found, anew, strict=True))


def test_derivatives_of_zero_stay_zero_however_steep_the_function() -> None:
    curves = {"x": np.maximum(X - 0.5, 0.0), "y": Y}
    for text in ("sqrt(a*x)", "b + (a*x)^0.5", "log(1 + sqrt(x*a*b))", "x^a"):
        recorder = Recorder(GRID)
        program = Program(recorder, [(recorded(recorder, text, curves), ONES)])
        _, derivatives = by_dual_numbers(text, AT, curves)
        assert np.isfinite(derivatives).all()
        assert program.evaluate(AT, range(3))[1] == pytest.approx(derivatives, rel=1e-12)


def test_condensed_sums_have_the_same_products() -> None:
    recorder = Recorder(GRID)
    texts = [TEXTS[0], "(x + y)*c", TEXTS[2], TEXTS[1]]
    sums = [(recorded(recorder, t, CURVES), np.sqrt(1.0 + X)) for t in texts]
    full, short = Program(recorder, sums), Program(recorder, sums, condensed=True)
    assert full.size == 4 * len(X)
    assert short.size < len(X) + 15
    rows, less = (np.column_stack(p.evaluate(AT, range(3))) for p in (full, short))
    assert less.T @ less == pytest.approx(rows.T @ rows, rel=1e-12)


def test_known_integrals_are_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = Recorder(GRID)
    sums = [(recorder.integral(recorded(recorder, t, CURVES)), ONES) for t in TEXTS[:2]]
    program = Program(recorder, sums)
    monkeypatch.setattr(Grid, "cumulative", None)
    values, _ = program.evaluate(AT, range(3))
    monkeypatch.undo()
    expected = [GRID.cumulative(by_dual_numbers(t, AT, CURVES)[0]) for t in TEXTS[:2]]
    assert values == pytest.approx(np.concatenate(expected), abs=1e-13)


def test_products_of_sums_are_not_multiplied_out() -> None:
    """Both factors are small by cancellation: expanded, no digit would be left."""
    large = {"x": 1e9 + X, "y": 1e9 + Y}
    recorder = Recorder(GRID)
    product = recorded(recorder, "(x - a)*(y - b)", large)
    vector = np.array([1e9, 1e9, 0.0])
    found, _ = Program(recorder, [(product, ONES)]).evaluate(vector, [])
    assert found == pytest.approx((large["x"] - 1e9) * (large["y"] - 1e9), rel=1e-12)


def test_an_expression_recorded_twice_is_one_quantity() -> None:
    recorder = Recorder(GRID)
    known = {"x": recorder.known(X)} | {n: recorder.unknown(k) for k, n in enumerate(NAMES)}
    one, other = (parse("sin(a*x)/b").evaluate(known, recorder) for _ in range(2))
    assert list(one.terms) == list(other.terms)
    (curve,) = one.terms
    assert derivative(recorder, curve, 0) is derivative(recorder, curve, 0)
    assert derivative(recorder, curve, 2) is recorder.zero


@pytest.mark.slow
def test_equations_with_known_functions_of_time_need_few_rows() -> None:
    """FitzHugh-Nagumo is a sum of them, the seasonal Lotka-Volterra model is not."""
    for name, few in (("fitzhugh-nagumo-separable", True), ("seasonal-lotka-volterra", False)):
        criterion = IntegralMatching().matching(library.load(name)).criterion
        vector = np.linspace(0.5, 1.0, criterion.size)
        rows = criterion.stacked(vector, [], range(2), condensed=True)[0]
        full = criterion.stacked(vector, [], range(2))[0]
        assert (len(rows) < 10) == few
        assert rows @ rows == pytest.approx(full @ full, rel=1e-12)
