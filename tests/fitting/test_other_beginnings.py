"""Initial values drawn for oscillations at their aliases."""

from __future__ import annotations

import numpy as np
import pytest

import odefit
from evidence.zoo.drawing import sampled
from evidence.zoo.hills import HILLS
from odefit import Control, ForwardMap, Model, Problem
from odefit.fitting.other_beginnings import (
    FOLLOWED,
    other_beginnings,
    other_motions,
    some_beginnings_known,
)
from odefit.fitting.other_speeds import nearest_aliases
from odefit.methods.incremental_shooting import FINAL
from odefit.problem import problem_from_mapping

ANSWER = np.array([6.1159, 3.7081, 0.9245, 2.0786, 0.8199])


def ring(number: int = 8) -> Problem:
    """A ring of three genes of which one is measured, with its initial value known."""
    mapping = sampled("ring-of-genes", HILLS["ring-of-genes"], number).mapping
    return problem_from_mapping(mapping)


def test_the_nearest_alias_gains_one_cycle_between_measurements() -> None:
    """The period is that of the cycle, not of the way to it, which is shorter."""
    aliases = nearest_aliases(ForwardMap(ring()), ANSWER)
    assert [speed for _, speed in aliases] == pytest.approx([3.346, 5.346], abs=0.01)
    place, speed = aliases[-1]
    assert place == pytest.approx(ANSWER * speed ** np.array([1.0, 0.0, 1.0, 0.0, 0.0]), rel=1e-6)


@pytest.mark.slow
def test_drawn_initial_values_at_an_alias_lead_to_a_lower_optimum() -> None:
    forward = ForwardMap(ring())
    answer = FINAL.run(forward, 0, ANSWER, Control())
    assert 2 * answer.cost == pytest.approx(22.3087, abs=1e-3)
    ((_, _), (alias, _)) = other_motions(forward, answer.vector, [])
    places = other_beginnings(forward, alias, Control())
    assert len(places) == FOLLOWED
    costs = [place.cost for place in places]
    assert costs == sorted(costs)
    for place in places:
        assert place.vector[:3] == pytest.approx(alias[:3])
        assert forward.cost(place.vector) == pytest.approx(place.cost)
    ends = [FINAL.run(forward, 0, place.vector, Control()) for place in places]
    assert 2 * min(end.cost for end in ends) == pytest.approx(21.5899, abs=1e-3)


def test_one_motion_of_each_speed_is_tried() -> None:
    forward = ForwardMap(ring())
    fast = ANSWER * 2
    motions = other_motions(forward, ANSWER, [(fast, 5.3), (ANSWER, 5.2), (ANSWER, 9.0)])
    assert [speed for _, speed in motions] == pytest.approx([5.3, 9.0, 3.346], abs=0.01)
    assert motions[0][0] is fast


def test_initial_values_are_drawn_only_if_some_are_known_and_others_are_not() -> None:
    times = np.linspace(0.0, 10.0, 30)
    model, data = Model(ode={"x": "v", "v": "-k*x"}), {"t": times, "x": np.cos(times)}

    def problem(x: float | str, v: float | str) -> Problem:
        unknown = dict.fromkeys(("k", *(n for n in (x, v) if isinstance(n, str))), (0.1, 9.0))
        return Problem(model, data, unknown, {"x": x, "v": v})

    assert some_beginnings_known(problem("a", 0.0))
    assert not some_beginnings_known(problem(1.0, 0.0))
    assert not some_beginnings_known(problem("a", "b"))
    assert not other_motions(ForwardMap(problem(1.0, 0.0)), np.array([1.0]), [])


@pytest.mark.slow
def test_a_fit_tells_the_lower_optimum_at_the_alias() -> None:
    """Of 27 fits of nine data sets, six were called converged without it."""
    result = odefit.fit(ring(), seed=0, jobs=1)
    assert result.objective == pytest.approx(21.5899, abs=1e-3)
    assert result.ambiguous
    assert any(s.vector == pytest.approx(ANSWER, rel=1e-2) for s in result.fitting)
