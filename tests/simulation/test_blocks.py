"""Blocks of the Jacobian: what belongs to one subject needs its experiments alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from odefit import Experiment, ForwardMap, Model, Problem
from odefit.simulation import Evaluation
from odefit.simulation.blocks import Blocks
from odefit.simulation.engines.engine_choice import UNDECIDED

TIMES = np.array([0.0, 0.5, 1.0, 2.0, 3.0])
ANSWER = np.array([0.5, 0.8, 1.1, 0.05])


def decay(noise: dict[str, Any] | None = None, *, own: bool = True) -> Problem:
    """Return three decays, each with a rate of its own or all with one."""
    scatter = 0.02 * np.sin(np.arange(15.0)).reshape(3, 5)
    subjects = [
        Experiment(name, {"t": TIMES, "y": np.exp(-k * TIMES) + s})
        for name, k, s in zip("ABC", ANSWER, scatter, strict=False)
    ]
    rate = {"lower": 0.01, "upper": 9.0, "per_experiment": own}
    model = Model(ode={"x": "-k*x"}, observables={"y": "x"})
    return Problem(
        model, experiments=subjects, parameters={"k": rate}, initial={"x": 1.0}, noise=noise
    )


@pytest.mark.parametrize("noise", [None, {"y": {"sd": 0.05}}, {"y": {"sd": "estimate"}}])
def test_the_cost_of_a_block_changes_as_that_of_the_whole(noise: dict[str, Any] | None) -> None:
    forward = ForwardMap(decay(noise))
    answer = ANSWER[: len(forward.problem.unknowns)]
    blocks = Blocks.around(forward, answer)
    assert blocks is not None
    assert [b.forward.problem.keys for b in blocks.blocks] == [("k",)] * 3
    before = forward.evaluate(answer, UNDECIDED)
    assert isinstance(before, Evaluation)
    for i, block in enumerate(blocks.blocks):
        moved = answer.copy()
        moved[i] *= 1.3
        assert blocks.only(moved) is block
        assert blocks.of(i) is block
        whole = forward.evaluate(moved, UNDECIDED)
        alone = block.forward.evaluate(moved[block.places], UNDECIDED)
        assert isinstance(whole, Evaluation)
        assert isinstance(alone, Evaluation)
        change = alone.cost - block.at_answer.cost
        assert change == pytest.approx(whole.cost - before.cost, rel=1e-6)
        assert blocks.with_values(block, moved[block.places]) == pytest.approx(moved)


def test_a_change_in_several_blocks_belongs_to_no_single_block() -> None:
    forward = ForwardMap(decay({"y": {"sd": "estimate"}}))
    blocks = Blocks.around(forward, ANSWER)
    assert blocks is not None
    assert blocks.noise
    assert blocks.only(ANSWER * np.array([1.1, 1.1, 1.0, 1.0])) is None
    assert blocks.only(ANSWER * np.array([1.0, 1.0, 1.0, 1.1])) is None  # the noise of all
    assert blocks.only(ANSWER * (1 + 1e-9)) is None


def test_subjects_with_one_rate_make_no_blocks() -> None:
    assert Blocks.around(ForwardMap(decay(own=False)), ANSWER[:1]) is None
