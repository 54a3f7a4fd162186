"""Expressions that are built from others keep their meaning."""

from __future__ import annotations

import numpy as np
import pytest

from odefit.expressions.algebras import NUMPY
from odefit.expressions.expressions import parse
from odefit.expressions.formulas import with_magnitudes


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("sqrt(v^2)", "abs(v)"),
        ("a*sqrt((v - c)^2)/b", "a*abs(v - c)/b"),
        ("(v*v)^(1/2)", "abs(v)"),
        ("(v^2)^(1/4)", "abs(v)^0.5"),
        ("sqrt(v^4)", "v^2.0"),
        ("sqrt(v^6)", "abs(v)^3.0"),
        ("(v^2)^n", "abs(v)^(2.0*n)"),
        ("sqrt(sqrt(v^2)^2)", "abs(abs(v))"),
    ],
)
def test_roots_of_even_powers_are_powers_of_magnitudes(text: str, written: str) -> None:
    before, after = parse(text), with_magnitudes(parse(text))
    assert after.text == written
    for v in (-1.3, -0.2, 0.0, 0.7):
        values = {k: np.float64(x) for k, x in {"v": v, "a": 2, "b": 3, "c": 0.4, "n": 0.3}.items()}
        old, new = (e.evaluate({n: values[n] for n in e.names}, NUMPY) for e in (before, after))
        assert new == pytest.approx(old, rel=1e-14)


@pytest.mark.parametrize("text", ["sqrt(v^2 + w^2)", "sqrt(v^3)", "(v^2)^3", "sqrt(v*w)", "v^n"])
def test_other_roots_stay_as_they_are(text: str) -> None:
    expression = parse(text)
    assert with_magnitudes(expression) is expression
