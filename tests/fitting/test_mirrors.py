"""A mirror solution just outside a bound has an optimum at the bound, which may fit as well."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import odefit
from odefit import Automatic, Model, Problem, Result

TIMES = np.linspace(0.3, 12.0, 14)
KA, KE = 0.9, 0.2


@cache
def fitted(most: float) -> Result:
    """A dose that is absorbed and eliminated, whose rates may change places.

    `most` is the upper bound of the rate of elimination.
    """
    curve = KA / (KA - KE) * (np.exp(-KE * TIMES) - np.exp(-KA * TIMES))
    problem = Problem(
        Model(ode={"gut": "-ka*gut", "blood": "ka*gut - ke*blood"}, observables={"c": "blood/V"}),
        {"t": TIMES, "c": curve + 0.03 * np.random.default_rng(3).standard_normal(len(TIMES))},
        {
            "ka": {"lower": 0.01, "upper": 9.0, "guess": KA},
            "ke": {"lower": 0.01, "upper": most, "guess": KE},
            "V": {"lower": 0.01, "upper": 9.0, "guess": 1.0},
        },
        {"gut": 1.0, "blood": 0.0},
        noise={"c": {"sd": 0.03}},
        t0=0.0,
    )
    return odefit.fit(problem, Automatic(starts=1), jobs=1)


def test_a_mirror_solution_just_outside_a_bound_fits_at_the_bound() -> None:
    free, bounded = fitted(9.0), fitted(0.85)
    mirror = max(s.vector[1] for s in free.fitting)
    assert 0.85 < mirror < 1.2
    assert sorted(s.vector[1] for s in bounded.fitting) == pytest.approx(
        [min(s.vector[1] for s in free.fitting), 0.85], rel=1e-3
    )
    assert bounded.ambiguous
    assert 0.0 < bounded.fitting[1].objective - bounded.objective < 3.84


def test_a_mirror_solution_far_outside_the_bounds_does_not_fit() -> None:
    assert fitted(0.4).assessment.complete is not None
    assert len(fitted(0.4).fitting) < 2
    assert not fitted(0.4).ambiguous


def test_a_copy_of_an_answer_at_a_bound_is_improved_before_it_counts() -> None:
    """The rates change places, and one of them may be larger there: that copy is the answer."""
    ka, ke = 3.0, 0.4
    curve = ka / (ka - ke) * (np.exp(-ke * TIMES) - np.exp(-ka * TIMES))
    problem = Problem(
        Model(ode={"gut": "-ka*gut", "blood": "ka*gut - ke*blood"}, observables={"c": "blood/V"}),
        {"t": TIMES, "c": curve + 0.02 * np.random.default_rng(3).standard_normal(len(TIMES))},
        {
            "ka": {"lower": 0.01, "upper": 9.0, "guess": 0.5, "unit": "1/h"},
            "ke": {"lower": 0.01, "upper": 2.0, "guess": 1.8, "unit": "1/(h*1)"},
            "V": {"lower": 0.01, "upper": 9.0, "guess": 0.3},
        },
        {"gut": 1.0, "blood": 0.0},
        noise={"c": {"sd": 0.02}},
        t0=0.0,
    )
    result = odefit.fit(problem, Automatic(starts=1), jobs=1)
    assert result.params["ka"].value == pytest.approx(ka, rel=0.3)
    assert result.params["ke"].value == pytest.approx(ke, rel=0.1)
    assert all(s.objective >= result.objective for s in result.solutions)
    assert result.assessment.local is not None
    assert result.assessment.local.optimal
    assert not result.outliers
    at_bound = [s for s in result.solutions if s.vector[1] == pytest.approx(2.0)]
    assert len(at_bound) <= 1
