"""Small discretised problems for the tests of solvers."""

from __future__ import annotations

import functools
import importlib.util

import numpy as np
import pytest

from odefit import Model, Problem, library
from odefit.discretisation.discretisation import Discretisation
from odefit.discretisation.formulations import Baseline, Formulation
from odefit.discretisation.instance import Instance
from odefit.discretisation.mesh import UniformMesh
from odefit.discretisation.schemes import SCHEMES
from odefit.methods.solvers.nlpsol import Ipopt
from odefit.methods.solvers.solver import Answer, Limits

RATE = 0.8


def needs(package: str) -> pytest.MarkDecorator:
    """Skip without an optional package."""
    absent = importlib.util.find_spec(package) is None
    return pytest.mark.skipif(absent, reason=f"{package} is not installed")


def decay(
    steps: int = 4,
    scheme: str = "trapezoid",
    formulation: Formulation | None = None,
    slope: str = "-k*x",
    upper: float = 5.0,
    noise: float = 0.05,
    start: bool = False,
) -> Instance:
    """x' = -k x from 2, measured every half with an error that alternates."""
    times = np.linspace(0.0, 2.0, 5)
    values = 2.0 * np.exp(-RATE * times) + noise * np.array([1.0, -1.0, 1.0, -1.0, 1.0])
    problem = Problem(
        Model(ode={"x": slope}, observables={"y": "x"}),
        {"t": times, "y": values},
        {"k": {"lower": 0.01, "upper": upper}},
        {"x": 2.0},
    )
    d = Discretisation(problem, SCHEMES[scheme], UniformMesh(steps))
    form = Baseline() if formulation is None else formulation
    if not start:
        return Instance(d, form)
    values_at = np.interp(d.times, times, values)
    return Instance(d, form, values_at[:, None], np.array([1.0]))


@functools.cache
def harmonic() -> tuple[Discretisation, Answer]:
    """The oscillator on ten steps, and what IPOPT finds from a good start."""
    problem = library.load("harmonic")
    reference = library.reference("harmonic")
    d = Discretisation(problem, SCHEMES["trapezoid"], UniformMesh(10))
    vector = problem.vector({**reference.parameters, **reference.initial})
    values = np.zeros((d.points, len(d.variables)))
    return d, Ipopt().solve(Instance(d, Baseline(), values, vector), Limits(20))


def scan(instance: Instance, rates: int = 20001) -> float:
    """The least objective of :func:`decay` on a fine grid of rates, by the scheme's own formula."""
    d = instance.discretisation
    h = np.diff(d.times[: d.steps + 1])[0]
    k = np.linspace(0.01, 5.0, rates)
    growth = {
        "trapezoid": (1 - k * h / 2) / (1 + k * h / 2),
        "Euler": 1 - k * h,
    }[d.scheme.name]
    series = d.problem.conditions[0].series["y"]
    step = np.round(d.problem.conditions[0].times[series.rows] / h).astype(int)
    x = 2.0 * growth[:, None] ** step[None, :]
    return float(((x - series.values) ** 2).sum(axis=1).min())
