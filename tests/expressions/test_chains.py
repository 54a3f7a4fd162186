"""Long sums and products, put together by halves, mean the same."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odefit.expressions.algebras import NUMPY
from odefit.expressions.chains import LONG_CHAIN, balanced
from odefit.expressions.expressions import parse
from odefit.expressions.postfix import Expression


def depth(expression: Expression) -> int:
    """Return the number of operations of which each needs the one before."""
    levels: list[int] = []
    for instruction in expression.program:
        if instruction.kind in ("name", "number"):
            levels.append(0)
            continue
        first = len(levels) - instruction.arity
        levels[first:] = [1 + max(levels[first:])]
    return levels[0]


def test_a_short_expression_stays_as_it_is() -> None:
    text = " + ".join(f"a*{i}*x" for i in range(LONG_CHAIN - 1))
    expression = parse(text)
    assert balanced(expression) is expression


@pytest.mark.slow
@given(st.integers(0, 2**32 - 1))
@settings(max_examples=25, deadline=None)
def test_a_long_expression_has_the_same_value_and_few_levels(seed: int) -> None:
    drawn = random.Random(seed)
    terms = [
        drawn.choice(["{0}*x", "sin({0}*x)", "-x", "(x + {0})*(x - {0})", "x^{0}", "x/{0}"]).format(
            i % 7 + 1
        )
        for i in range(drawn.randrange(LONG_CHAIN, 400))
    ]
    inside = " + ".join(terms)
    factors = " * ".join(f"(1 + x/{1000 + i})" for i in range(drawn.randrange(40, 300)))
    expression = parse(f"({inside}) - {factors} + cos({inside})")
    found = balanced(expression)
    values = {"x": np.float64(0.3)}
    before, after = expression.evaluate(values, NUMPY), found.evaluate(values, NUMPY)
    assert abs(after - before) <= 1e-12 * (1.0 + abs(before)), seed
    assert found.text == expression.text
    assert sorted(found.program) == sorted(expression.program)
    assert depth(found) <= 30
