"""Small problems with a known optimum, their discretisations and standard forms."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from odefit import Model, Problem
from odefit.common.arrays import Array, IntArray
from odefit.discretisation.instance import guess_from_data
from odefit.methods.outer_approximation.bound_tightening import FBBT
from odefit.methods.outer_approximation.master_problem import MasterProblem, Partition
from odefit.methods.outer_approximation.reformulation import Definition
from odefit.methods.outer_approximation.standard_form import StandardForm, standard_form
from odefit.methods.outer_approximation.univariate import supporting_lines
from odefit.methods.solvers.nlpsol import Ipopt
from odefit.methods.transcription import (
    Baseline,
    Collocation,
    Discretisation,
    Instance,
    Limits,
    UniformMesh,
)
from odefit.simulation.simulations import confirmed_simulation

CHOICES: dict[str, dict[str, Any]] = {
    "decay": {
        "model": Model(ode={"x": "-k*x"}),
        "parameters": {"k": {"lower": 0.0, "upper": 4.0}},
        "initial": {"x": 1.0},
        "truth": {"k": 0.8},
        "states": (0.0, 2.0),
    },
    "harmonic": {
        "model": Model(ode={"x": "w*y", "y": "-w*x"}),
        "parameters": {"w": {"lower": 0.2, "upper": 3.0}},
        "initial": {"x": 1.0, "y": 0.0},
        "truth": {"w": 1.2},
        "states": (-2.0, 2.0),
    },
    "predator": {
        "model": Model(ode={"r": "a*r - b*r*w", "w": "b*r*w - w"}),
        "parameters": {"a": {"lower": 0.2, "upper": 3.0}, "b": {"lower": 0.2, "upper": 3.0}},
        "initial": {"r": 1.0, "w": 0.6},
        "truth": {"a": 1.1, "b": 0.9},
        "states": (0.0, 4.0),
    },
    "saturated": {
        "model": Model(ode={"s": "-v*s/(k + s)"}),
        "parameters": {"v": {"lower": 0.1, "upper": 3.0}, "k": {"lower": 0.1, "upper": 3.0}},
        "initial": {"s": 1.0},
        "truth": {"v": 1.0, "k": 0.5},
        "states": (0.0, 2.0),
    },
    "functions": {
        "model": Model(ode={"x": "-k*sqrt(x) + 0.1*sin(x)*exp(-k) - 0.1*x^3"}),
        "parameters": {"k": {"lower": 0.1, "upper": 2.0}},
        "initial": {"x": 1.0},
        "truth": {"k": 0.5},
        "states": (0.01, 2.0),
    },
}
"""Models, and values from which data come."""


SLACK = 1e-7
"""What the local solver leaves of equations."""


@dataclass(frozen=True, eq=False)
class Planted:
    """A problem with its answer.

    Attributes
    ----------
    problem, d, form
        The problem, discretised, and in standard form.
    low, high
        Bounds of all variables after FBBT, without a cutoff.
    w
        A local solution, all variables of the standard form.
    """

    problem: Problem
    d: Discretisation
    form: StandardForm
    low: Array
    high: Array
    w: Array

    @property
    def objective(self) -> float:
        """Of the solution."""
        return self.form.objective(self.w)


def problem(name: str, noise: float = 0.02, seed: int = 0, times: int = 6) -> Problem:
    """Noisy data of a model of :data:`CHOICES`."""
    given = CHOICES[name]
    t = np.linspace(0.0, 2.0, times)
    zero = {s: np.zeros(times) for s in given["model"].states}
    empty = Problem(given["model"], {"t": t, **zero}, given["parameters"], given["initial"])
    table, _ = confirmed_simulation(empty, given["truth"], t)
    random = np.random.default_rng(seed)
    data = {s: table[s].to_numpy() + noise * random.normal(size=times) for s in zero}
    return Problem(given["model"], {"t": t, **data}, given["parameters"], given["initial"])


def lifted(form: StandardForm, values: Array, unknowns: Array) -> Array:
    """All variables of the standard form from those of the discretised problem, shape (n,)."""
    w = np.full(form.size, np.nan)
    w[: form.originals] = np.concatenate([values.ravel(), unknowns])
    define(form.definitions, w)
    return w


def define(definitions: Mapping[int, Definition], w: Array) -> None:
    """Give the auxiliary variables in `w` their values."""
    for k, what in definitions.items():
        a = [float(w[i]) for i in what.arguments]
        if what.function is not None:
            w[k] = what.function.at(a[0])
        elif what.kind == "sum":
            w[k] = what.constant + sum(c * x for c, x in zip(what.coefficients, a, strict=True))
        else:
            w[k] = a[0] * a[1] if what.kind == "product" else a[0] / a[1]


def planted(name: str, noise: float = 0.02, seed: int = 0, elements: int = 2) -> Planted:
    """A problem, and the solution next to where its data come from."""
    own = problem(name, noise, seed)
    d = Discretisation(own, Collocation(2, "legendre"), UniformMesh(elements))
    a, b = CHOICES[name]["states"]
    free = d.lower < d.upper
    d.lower, d.upper = np.where(free, a, d.lower), np.where(free, b, d.upper)
    truth = own.vector(CHOICES[name]["truth"])
    start = Instance(d, Baseline(), guess_from_data(d, truth), truth)
    answer = Ipopt().solve(start, Limits())
    assert answer.success
    assert answer.values is not None
    assert answer.unknowns is not None
    form = standard_form(d)
    low, high = FBBT(form).tighten(form.lower, form.upper)
    return Planted(own, d, form, low, high, lifted(form, answer.values, answer.unknowns))


def holds(p: Planted, low: Array, high: Array) -> bool:
    """Whether bounds of all variables contain the solution."""
    width = SLACK * np.maximum(1.0, np.abs(p.w))
    return bool((p.w >= low - width).all() and (p.w <= high + width).all())


def in_pieces(
    form: StandardForm,
    low: Array,
    high: Array,
    points: Array,
    program: MasterProblem,
    partition: Partition,
) -> Array:
    """Points of the relaxation with the columns of the pieces, as (31)-(37) have them.

    Parameters
    ----------
    points
        Shape (count, columns of the relaxation).
    """
    found = np.zeros((len(points), len(program.cost)))
    found[:, : points.shape[1]] = points
    rows = np.arange(len(points))
    at = points.shape[1]
    active: dict[int, tuple[IntArray, int]] = {}
    for k, edges in partition.items():
        if len(edges) > 2:
            count = len(edges) - 1
            place = np.clip(np.searchsorted(edges, points[:, k], "right") - 1, 0, count - 1)
            active[k] = place, count
            found[rows, at + place] = 1.0
            at += count
    for _, i, j in form.bilinear.tolist():
        for a, b in ((i, j), (j, i)):
            if a in active and high[b] > low[b]:
                place, count = active[a]
                found[rows, at + place] = points[:, b] - low[b]
                at += count
                break
    for t in form.univariate:
        if t.argument in active and all(
            supporting_lines(t.function, *ends) for ends in pairwise(partition[t.argument])
        ):
            place, count = active[t.argument]
            found[rows, at + place] = points[:, t.argument] - partition[t.argument][0]
            at += count
    assert at == found.shape[1]
    return found
