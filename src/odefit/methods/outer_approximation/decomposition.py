"""Strengthening cuts by temporal decomposition: what a group of elements costs on its own.

A group keeps the equations of some consecutive elements and loses those that join it to the
others. Its least error, proved, is a lower bound of that part of the objective in the whole.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from odefit.methods.outer_approximation.linear_programs import Polyhedron
from odefit.methods.outer_approximation.master import Master, Partition, master
from odefit.methods.outer_approximation.mixed_integer import Workshop
from odefit.methods.outer_approximation.relaxation import GroupCut
from odefit.methods.outer_approximation.standard_form import StandardForm
from odefit.problem.arrays import BoolArray, IntArray

if TYPE_CHECKING:
    from odefit.methods.outer_approximation.algorithm import Search
    from odefit.methods.outer_approximation.contraction import Contraction

SHARPER = 0.1
"""Of the tolerance, the gap to which a group is solved."""

SHARE = 0.3
"""Of the time that is left, what all groups together may take."""


def group_cuts(
    search: Search, contraction: Contraction, partition: Partition, workshop: Workshop
) -> list[GroupCut]:
    """A cut for each group that was asked for.

    Raises
    ------
    Infeasible
        A group alone is proved to exceed the cut.
    """
    found = []
    groups = search.options.cuts
    seconds = SHARE * search.left() / max(len(groups), 1)
    for group in groups:
        if search.stop():
            break
        inside = search.form.within(group)
        own = np.flatnonzero(inside[search.form.residuals])
        if not len(own):
            continue
        program = _part(search, contraction, partition, inside, own)
        gap = SHARPER * search.options.tolerance
        answer = workshop.solve(program, gap, seconds, search.stop)
        if 0 < answer.bound < math.inf:  # if a group alone is too much, the whole will say so
            found.append(GroupCut(tuple(own.tolist()), answer.bound))
    return found


def rows_within(form: StandardForm, inside: BoolArray) -> BoolArray:
    """Rows of which every variable is inside, shape (rows,)."""
    outside = (~inside).astype(float)
    found: BoolArray = (abs(form.matrix) @ outside) == 0
    return found


def _part(
    search: Search, contraction: Contraction, partition: Partition, inside: BoolArray, own: IntArray
) -> Master:
    """The master problem of a group: rows within it, and its own part of the objective."""
    form = search.form
    program = master(
        form,
        search.low,
        search.high,
        contraction.planes,
        partition,
        search.cut,
        (),
        rows_within(form, inside),
    )
    cost = np.zeros(len(program.cost))
    cost[form.size + own] = 1.0
    p: Polyhedron = program.polyhedron
    return Master(p, cost, program.integer)
