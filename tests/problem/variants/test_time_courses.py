"""Tests of known time courses in equations."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from odefit import Model, Problem
from odefit.expressions.expressions import parse
from odefit.problem.variants.sizes import typical_sizes
from odefit.problem.variants.time_courses import with_courses

TIMES = np.linspace(0.0, 10.0, 101)


def test_a_piecewise_of_time_is_replaced_by_a_name_with_its_largest_value() -> None:
    course = "piecewise(2, t < 3, 2 + 30*(t - 3), t < 4, 32 - 5*(t - 4))"
    written, sizes = with_courses(parse(f"k*({course} - 11)"), TIMES)
    ((name, size),) = sizes.items()
    assert size == pytest.approx(32.0)
    assert written.names == {"k", name}


def test_nested_courses_are_one() -> None:
    inner = "piecewise(1, t < 5, -9)"
    written, sizes = with_courses(parse(f"x*piecewise(2, t < 3, 2*{inner})"), TIMES)
    assert written.names == {"x"} | ({*sizes} & written.names)
    assert max(sizes.values()) == 18.0


@pytest.mark.parametrize(
    "text", ["piecewise(a, t < 3, b)", "piecewise(1, t < a, 2)", "piecewise(1, x < 3, t)", "k*t"]
)
def test_a_course_of_more_than_time_stays(text: str) -> None:
    assert with_courses(parse(text), TIMES) == (parse(text), {})


def test_sizes_equal_those_with_the_same_input_as_a_column() -> None:
    data = {"t": [0.0, 2.0, 4.0, 8.0, 16.0], "y": [1.0, 2.0, 4.0, 3.0, 1.0]}
    column = {"u": [0.0, 130.0, 20.0, 11.0, 7.0]}
    knots = list(zip(data["t"], column["u"], strict=True))
    pieces = [f"{a} + {(b - a) / (v - u)}*(t - {u}), t < {v}" for (u, a), (v, b) in pairwise(knots)]
    course = f"piecewise({', '.join(pieces)}, 7.0)"
    unknowns = {"k": {"lower": 0.0}, "s": {"lower": 0.0}}

    def sizes(rate: str, **inputs: str) -> dict[str, float]:
        model = Model({"x": f"k*({rate} - 11) - s*x"}, {"y": "x"}, inputs=inputs)
        problem = Problem(model, data | (column if inputs else {}), unknowns, {"x": 1.0})
        return {n: size.size for (_, n), size in typical_sizes(problem).unknowns.items()}

    assert sizes(course) == pytest.approx(sizes("u", u="linear"), rel=0.01)
