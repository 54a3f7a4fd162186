"""Projection bounds of discretised problems, compared with least squares by splines."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest
from scipy.interpolate import BSpline

from odefit import Event, Experiment, Model, Problem, library
from odefit.common.arrays import Array
from odefit.discretisation.mesh import UniformMesh
from odefit.discretisation.schemes import Collocation
from odefit.enclosure.discretised.residuals import DiscretisedEnclosure


def spline_distance(times: Array, values: Array, elements: int, degree: int) -> float:
    """Return the squared distance of values from continuous piecewise polynomials."""
    inner = np.linspace(times[0], times[-1], elements + 1)
    ends = [inner[[0]], inner[[-1]]]
    knots = np.concatenate([ends[0], np.repeat(inner, degree), ends[1]])
    basis = BSpline.design_matrix(times, knots, degree).toarray()
    fitted = basis @ np.linalg.lstsq(basis, values, rcond=None)[0]
    return float(np.sum((values - fitted) ** 2))


@pytest.mark.slow
@pytest.mark.parametrize(("elements", "degree"), [(1, 2), (4, 3), (5, 5)])
@pytest.mark.parametrize("kind", ["legendre", "radau"])
def test_the_projection_bound_is_the_distance_from_piecewise_polynomials(
    elements: int, degree: int, kind: Literal["legendre", "radau"]
) -> None:
    rng = np.random.default_rng(elements)
    times = np.linspace(0.0, 3.0, 121)
    values = np.exp(-times) + 0.1 * rng.normal(size=len(times))
    problem = Problem(
        Model(ode={"x": "-k*x"}, observables={"y": "2*x + c"}),
        {"t": times, "y": values},
        {"k": {}, "c": {}},
        {"x": {}},
    )
    mesh = UniformMesh(elements)
    found = DiscretisedEnclosure(problem, Collocation(degree, kind), mesh, 1).lower_bound
    assert found == pytest.approx(spline_distance(times, values, elements, degree), rel=1e-8)


def test_a_jump_of_a_state_is_free() -> None:
    """Two segments: the sum of both distances."""
    times = np.linspace(0.0, 2.0, 81)
    values = np.sin(7 * times)
    problem = Problem(
        Model(ode={"x": "-k*x"}),
        parameters={"k": {}, "dose": {}},
        initial={"x": {}},
        experiments=[
            Experiment("run", {"t": times, "x": values}, events=[Event((1.0,), {"x": "x + dose"})])
        ],
    )
    found = DiscretisedEnclosure(problem, Collocation(2, "legendre"), UniformMesh(2), 1).lower_bound
    early = times <= 1.0
    parts = []
    for t, y, begin in ((times[early], values[early], 0.0), (times[~early], values[~early], 1.0)):
        powers = np.vander(t - begin, 3)
        fitted = powers @ np.linalg.lstsq(powers, y, rcond=None)[0]
        parts.append(float(np.sum((y - fitted) ** 2)))
    assert found == pytest.approx(sum(parts), rel=1e-9)


@pytest.mark.slow
def test_continuity_raises_the_bound_of_hiv_proteinase() -> None:
    """Continuity between elements counts: without it, the floor was 0.018359."""
    problem = library.load("hiv-proteinase")
    found = DiscretisedEnclosure(problem, Collocation(5, "legendre"), UniformMesh(5), 1).lower_bound
    assert 0.018653 < found < 0.018654


def test_few_measurements_have_no_projection_bound() -> None:
    problem = library.load("alpha-pinene")
    enclosure = DiscretisedEnclosure(problem, Collocation(3, "legendre"), UniformMesh(5), 1)
    assert enclosure.lower_bound == 0.0
