"""Published findings of structural identifiability, reproduced."""

from __future__ import annotations

import numpy as np
import pytest

import odefit
from odefit.problem.model import Model
from odefit.problem.problem import Problem
from odefit.structure.structural_identifiability import StructuralIdentifiability
from tests.structure.literature import PUBLISHED, Published

SLOW = ("goodwin", "akt pathway", "hiv immune", "hiv latent", "sirs forced", "seir quarantine")
"""Models whose solutions take seconds to count, a minute in all."""


def problem_of(published: Published) -> Problem:
    """The model with all of its unknowns, and data of no importance."""
    times = np.linspace(0.0, 1.0, 6)
    data = {"t": times, **{y: np.cos(times) for y in published.observables}}
    data |= {u: np.sin(times + 1.0) for u in published.inputs}
    model = Model(
        ode=dict(published.ode),
        observables=dict(published.observables),
        inputs=dict.fromkeys(published.inputs, "cubic"),
    )
    parameters: dict[str, dict[str, float]] = {
        n: {} for n in published.unknowns if n not in published.ode
    }
    return Problem(
        model, data, parameters, {state: {} for state in published.ode}, name=published.name
    )


def agree(published: Published, found: StructuralIdentifiability) -> None:
    assert set(found.named("globally")) == set(published.globally)
    assert set(found.named("locally")) == set(published.locally)
    assert set(found.named("in combination", "no effect")) == set(published.non_identifiable)
    for name, values in published.values.items():
        assert found[name].values == values
    if published.count is not None:
        assert found.solutions == published.count


@pytest.mark.parametrize(
    "published",
    [
        pytest.param(p, marks=pytest.mark.slow if p.name in {"akt pathway", "goodwin"} else ())
        for p in PUBLISHED
    ],
    ids=lambda p: p.name,
)
def test_local_identifiability_agrees_with_the_literature(published: Published) -> None:
    found = odefit.identifiability(problem_of(published), count=False)
    assert set(found.named("in combination", "no effect")) == set(published.non_identifiable)
    assert found.solutions is None
    assert found.missing == (1 if published.name == "two compartments" else 0)


# The biohydrogenation model is looked at in test_identifiability.py.
@pytest.mark.slow
@pytest.mark.parametrize(
    "published",
    [p for p in PUBLISHED if p.name not in (*SLOW, "biohydrogenation")],
    ids=lambda p: p.name,
)
def test_global_identifiability_agrees_with_the_literature(published: Published) -> None:
    agree(published, odefit.identifiability(problem_of(published)))


@pytest.mark.slow
@pytest.mark.parametrize(
    "published", [p for p in PUBLISHED if p.name in SLOW], ids=lambda p: p.name
)
def test_slow_runs_are_counted_too(published: Published) -> None:
    agree(published, odefit.identifiability(problem_of(published)))
