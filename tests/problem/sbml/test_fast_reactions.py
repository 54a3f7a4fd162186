"""Fast reactions are at equilibrium at all times."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import odefit
from odefit.problem.sbml import read_sbml, substituted
from tests.problem.sbml.texts import (
    compartment,
    event,
    listed,
    parameter,
    reaction,
    sbml,
    species,
)


def document(*reactions: str, more: str = "", size: float = 1.0) -> str:
    """Species A = 1, B = 3 and C = 0 in amounts."""
    body = listed("Compartments", compartment("c", size))
    body += listed(
        "Species",
        *(species(n, v, given="Amount") for n, v in {"A": 1.0, "B": 3.0, "C": 0.0}.items()),
    )
    body += listed("Parameters", parameter("kf", 1.0), parameter("kr", 2.0))
    return sbml(body + listed("Reactions", *reactions) + more, version=1)


def amounts(text: str, times: list[float]) -> dict[str, Any]:
    model = read_sbml(text)
    sections = model.mapping()
    sections["observables"] = {
        f"of_{n}": substituted(f"{n}*c", {**model.assigned, **model.computed}) for n in "ABC"
    }
    data = {"t": times} | {f"of_{n}": [1.0] * len(times) for n in "ABC"}
    sections["experiment"][0]["data"] = data
    found = odefit.simulate(odefit.problem.problem_from_mapping(sections), np.zeros(0))
    return {n: found.observables[f"of_{n}"] for n in "ABC"}


@pytest.mark.parametrize("size", [1.0, 0.25])
def test_a_linear_fast_reaction_is_a_closed_form(size: float) -> None:
    text = document(
        reaction("f", "A", "B", "c*(kf*A - kr*B)", fast=True),
        reaction("s", "B", "C", "c*B", fast=False),
        size=size,
    )
    assert not read_sbml(text).algebraic
    found = amounts(text, [0.0, 1.0])
    # A = 2 B at all times, and (A + B)' = -B.
    total = 4.0 * np.exp(-np.array([0.0, 1.0]) / 3.0)
    assert found["A"] == pytest.approx(2 * total / 3)
    assert found["B"] == pytest.approx(total / 3)


def test_a_fast_reaction_that_ends_leaves_nothing() -> None:
    found = amounts(document(reaction("f", "2*A", "C", "A", fast=True)), [0.0, 1.0])
    assert found["A"] == pytest.approx(0.0, abs=1e-12)
    assert found["C"] == pytest.approx(0.5)


def test_another_fast_reaction_is_an_equation() -> None:
    text = document(reaction("f", "A B", "C", "kf*A*B - kr*C", fast=True))
    assert list(read_sbml(text).algebraic) == ["f_extent"]
    found = amounts(text, [0.0, 1.0])
    # (1 - e) (3 - e) = 2 e
    extent = 3.0 - np.sqrt(6.0)
    assert found["C"] == pytest.approx(extent)


def test_an_event_on_one_species_of_a_fast_reaction_leaves_the_others() -> None:
    text = document(
        reaction("f", "A", "B", "c*(kf*A - kr*B)", fast=True),
        more=listed("Events", event("e", "time >= 1", {"A": "8"})),
    )
    found = amounts(text, [0.5, 1.5])
    assert found["B"] == pytest.approx([4 / 3, (8 + 4 / 3) / 3])
    hidden = document(
        reaction("f", "A B", "C", "kf*A*B - kr*C", fast=True),
        more=listed("Events", event("e", "time >= 1", {"A": "8"})),
    )
    with pytest.raises(odefit.InputError, match=r"event 'e' .*depends on 'f_extent'"):
        read_sbml(hidden)
