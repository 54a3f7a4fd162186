"""Names that the equations do not allow to be zero."""

from __future__ import annotations

import numpy as np
import pytest

from odefit import Model, Noise, Problem
from odefit.methods.domains import Domains


def domains(motion: str, **more: object) -> Domains:
    times = np.linspace(0.0, 1.0, 5)
    values: dict[str, dict[str, float]] = {"a": {}, "b": {}, "c": {}}
    return Domains.of(
        Problem(Model(ode={"x": motion}), {"t": times, "x": 1 + times}, values, {"x": 1.0}, **more)  # type: ignore[arg-type]
    )


@pytest.mark.parametrize(
    ("motion", "positive", "nonzero"),
    [
        ("a*x + b^2 + c*abs(x)", "", ""),
        ("a*log(x) + b + c", "x", "x"),
        ("a*log10(b*x/c)", "bx", "bcx"),
        ("x/(a + b) + c", "", ""),
        ("x/(a*b) - c", "", "ab"),
        ("x/(-a) + b + 1/sqrt(c)", "", "ac"),
        ("a*x^b + c", "x", "x"),
        ("a*x^0.5 + b + c", "", ""),
        ("a*x^-0.5 + b + c", "x", "x"),
        ("a*x^(-2) + b + c", "", "x"),
        ("exp(a/(1 + b)) + log(1 + c)*x", "", ""),
    ],
)
def test_logarithms_powers_and_divisors_have_domains(
    motion: str, positive: str, nonzero: str
) -> None:
    found = domains(motion)
    assert found.positive == set(positive)
    assert found.nonzero == set(nonzero)


def test_standard_deviations_are_positive() -> None:
    assert domains("a*x + b + c", noise={"x": Noise(sd="estimate")}).positive == {"x_sd"}
    own = {"x": {"sd": "c*x"}}
    assert domains("a*x + b + c", noise=own).positive == {"c", "x"}
