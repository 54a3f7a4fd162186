"""Strengthening cuts by temporal decomposition: the least error of a group of elements alone.

A group keeps the equations of some consecutive elements and loses those that join it to the
others. Its least error is a lower bound of that part of the objective in the whole.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from odefit.common.arrays import BoolArray
from odefit.methods.outer_approximation.master_problem import Partition, master_problem
from odefit.methods.outer_approximation.mixed_integer import SolverProcess
from odefit.methods.outer_approximation.relaxation import HyperPlanes, StrengtheningCut
from odefit.methods.outer_approximation.standard_form import Bounds, StandardForm


def strengthening_cuts(
    form: StandardForm,
    bounds: Bounds,
    planes: HyperPlanes,
    partition: Partition,
    groups: Sequence[Sequence[int]],
    cutoff: float,
    process: SolverProcess,
    gap: float,
    seconds: float,
    stop: Callable[[], bool],
) -> list[StrengtheningCut]:
    """Return a cut for each group of consecutive elements that has measurements.

    The cuts so far are returned after a `stop`; all groups together have so many seconds.
    Infeasible is raised if a group alone is proved to exceed the cutoff.
    """
    found = []
    for group in groups:
        if stop():
            break
        inside = form.within(group)
        own = np.flatnonzero(inside[form.residuals])
        if not len(own):
            continue
        keep = rows_within(form, inside)
        program = master_problem(form, *bounds, planes, partition, cutoff, keep=keep)
        cost = np.zeros(len(program.cost))
        cost[form.size + own] = 1.0
        answer = process.solve(replace(program, cost=cost), gap, seconds / len(groups), stop)
        if 0 < answer.bound < math.inf:  # if a group alone is too much, the whole will say so
            found.append(StrengtheningCut(tuple(own.tolist()), answer.bound))
    return found


def rows_within(form: StandardForm, inside: BoolArray) -> BoolArray:
    """Return which rows have none but variables that are `inside`, shape (rows,)."""
    found: BoolArray = (abs(form.matrix) @ (~inside).astype(float)) == 0
    return found
