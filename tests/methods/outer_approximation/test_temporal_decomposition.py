"""A group of elements on its own costs no more than it does in the whole."""

from __future__ import annotations

import math

import numpy as np
import pytest

from odefit.methods.outer_approximation.algorithm import rows_within
from odefit.methods.outer_approximation.linear_programs import minimise
from odefit.methods.outer_approximation.relaxation import (
    HyperPlanes,
    StrengtheningCut,
    linear_relaxation,
    objective_coefficients,
)
from tests.methods.outer_approximation.problems import planted


@pytest.mark.parametrize("group", [(0,), (1, 2), (0, 1, 2)])
def test_the_bound_of_a_group_holds_in_the_whole(group: tuple[int, ...]) -> None:
    p = planted("predator", noise=0.1, elements=3)
    form, r = p.form, p.form.residuals
    inside = form.within(group)
    own = np.flatnonzero(inside[r])
    keep = rows_within(form, inside)
    assert keep.all() == (len(group) == 3)
    planes = HyperPlanes.uniform(len(r), 30)
    part = np.zeros(form.size + len(r))
    part[form.size + own] = 1.0
    bound = minimise(linear_relaxation(form, p.low, p.high, planes, keep=keep), part).bound
    assert bound <= float(np.sum(p.w[r[own]] ** 2))
    free = minimise(
        linear_relaxation(form, p.low, p.high, planes), objective_coefficients(form)
    ).bound
    groups = [StrengtheningCut(tuple(own.tolist()), float(np.sum(p.w[r[own]] ** 2)))]
    cut = minimise(
        linear_relaxation(form, p.low, p.high, planes, cuts=groups), objective_coefficients(form)
    ).bound
    assert free <= cut <= p.objective * (1 + 1e-6)
    assert math.isfinite(cut)


def test_elements_share_their_ends() -> None:
    p = planted("decay", elements=2)
    names = np.array(p.form.names)
    inside = p.form.within((0,))
    assert inside[names == "k"].all()
    assert inside[names == "x at t = 1"].any()
    assert not inside[names == "x at t = 2"].any()
