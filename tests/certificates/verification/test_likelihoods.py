"""Parts of an objective in ball arithmetic agree with a fit, for every noise and every prior."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

pytest.importorskip("flint", reason="the extra odefit[certificates] is not installed")

from odefit.certificates.likelihoods import balanced
from odefit.certificates.statement import statement_of
from odefit.certificates.verification.bounds import bounds
from odefit.certificates.verification.formulas import FormulaError
from odefit.certificates.verification.likelihoods import Law
from odefit.common.errors import InputError
from odefit.simulation import ForwardMap
from tests.certificates.verification.enclosing import enclosed_parts
from tests.enclosure.likelihood.noisy_problems import (
    NOISE,
    PRIORS,
    TOLERANCE,
    box_about,
    built,
    drawn,
    noisy,
    twice_the_cost,
)

OF_PREDICTIONS = ("combined", "combined squares", "relative")
WRITTEN = (*(k for k in NOISE if k not in OF_PREDICTIONS), *(f"{k} prior" for k in PRIORS))


@pytest.mark.parametrize("name", WRITTEN)
def test_a_written_likelihood_is_twice_the_cost(name: str) -> None:
    problem = built(name)
    statement = json.loads(json.dumps(statement_of(problem)))
    forward, rng = ForwardMap(problem), np.random.default_rng(5)
    for _ in range(3):
        v = drawn(problem, rng)
        parts, box = enclosed_parts(statement, v, v)
        found = bounds(parts, box.ring)
        true = twice_the_cost(forward, v)
        assert float(found.upper) == pytest.approx(true, rel=TOLERANCE, abs=TOLERANCE)
        assert float(found.upper - found.lower) < 1e-6 * (1 + abs(true))


@pytest.mark.parametrize("name", WRITTEN)
def test_bounds_over_boxes_are_below_the_cost(name: str) -> None:
    problem = built(name)
    statement = statement_of(problem)
    forward, rng = ForwardMap(problem), np.random.default_rng(6)
    for width in (0.3, 0.03, 0.003):
        a, b = box_about(problem, drawn(problem, rng), width)
        parts, box = enclosed_parts(statement, a, b)
        least = float(bounds(parts, box.ring).lower)
        nearest = min(twice_the_cost(forward, rng.uniform(a, b)) for _ in range(6))
        assert least <= nearest + TOLERANCE * (1 + abs(nearest))
        if width < 0.01:
            assert least > nearest - 0.1 * (1 + abs(nearest))


@pytest.mark.parametrize("name", OF_PREDICTIONS)
def test_spreads_that_depend_on_predictions_are_not_written(name: str) -> None:
    with pytest.raises(InputError, match="a certificate cannot have a spread that depends on"):
        statement_of(noisy(name))


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"law": {"name": "binomial"}}, "unknown law 'binomial'"),
        ({"censored": 2}, "cannot be censored"),
        ({"law": {"name": "poisson"}, "censored": 1}, "cannot be censored"),
    ],
)
def test_a_law_without_a_meaning_is_refused(changes: dict[str, Any], part: str) -> None:
    entry = {"law": {"name": "normal"}, "value": 1.0, "spread": 0.1}
    with pytest.raises(FormulaError, match=part):
        Law(entry | changes, [])


def test_sums_of_many_terms_are_nested_little() -> None:
    text = balanced([str(k) for k in range(1000)])
    depth = np.cumsum([(c == "(") - (c == ")") for c in text])
    assert depth.max() == 10
    assert eval(text) == 499500
