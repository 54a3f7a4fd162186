"""How a trajectory through nodes is to be read, in words."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from odefit.assessment.continuity import CONTINUITY_TOLERANCE, assess_continuity
from odefit.assessment.parts import Continuity
from odefit.simulation.nodes import Nodes

NODES = Nodes((np.array([0.0, 1.0, 2.0]), np.array([0.0])), (np.zeros((3, 1)), np.zeros((1, 1))))


def read(nodes: Nodes, gap: float) -> Continuity:
    found = assess_continuity(nodes, gap)
    assert found is not None
    return found


def test_a_single_integration_is_not_mentioned() -> None:
    assert assess_continuity(None, 0.0) is None
    assert assess_continuity(None, 1.0) is None


def test_nodes_of_all_experiments_count() -> None:
    found = read(NODES, 1e-12)
    assert found.nodes == 4
    assert found.fine
    assert found.sentence.startswith(
        "The trajectory passes 4 nodes, where it is continuous to 1e-12 of the sizes of the states"
    )


def test_without_constraints_rounding_is_the_reason_for_nodes() -> None:
    assert "No single integration" in read(NODES, 0.0).sentence
    assert read(NODES, 0.0).constraints == ()


def test_constraints_are_named_and_are_then_the_reason() -> None:
    held = replace(NODES, constraints=("k1 + k2 = 1", "x@5 <= 2"), experiments=("a", "a"))
    found = read(held, 1e-15)
    assert found.constraints == ("k1 + k2 = 1", "x@5 <= 2")
    assert "k1 + k2 = 1, x@5 <= 2" in found.sentence
    assert "No single integration" not in found.sentence


@pytest.mark.parametrize(
    ("gap", "fine"),
    [
        (0.0, True),
        (CONTINUITY_TOLERANCE, True),
        (2 * CONTINUITY_TOLERANCE, False),
        (0.5, False),
        (math.nan, False),
    ],
)
def test_a_visible_gap_is_not_a_continuous_trajectory(gap: float, fine: bool) -> None:
    found = read(NODES, gap)
    assert found.fine is fine
    assert ("broken" in found.sentence) is not fine


def test_findings_are_complete_sentences() -> None:
    for gap in (0.0, 1e-3):
        said = read(NODES, gap).sentence
        assert said.endswith(".")
        assert ".." not in said
