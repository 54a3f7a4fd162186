"""The unit in which a problem is written changes neither its answer nor what is said of it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import lambertw

import odefit
from odefit import Model, Problem
from odefit.assessment.identifiability import local_identifiability
from odefit.methods.estimate import Status
from odefit.simulation import ForwardMap
from odefit.simulation.trajectories.trajectory import Trajectory

TIMES = np.array([0.0, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 60.0, 80.0, 100.0])
SUBSTRATE = np.array(
    [61.2246, 51.9281, 47.45, 40.904, 35.361, 25.4488, 16.0914, 6.39229, 1.48312, 2.54769]
)
UNITS = {"pM": 1.0, "M": 1e-12, "fM": 1e-15, "G": 1e9, "1e13": 1e13}


def progress_curve(unit: float) -> Problem:
    """Return Michaelis-Menten kinetics, measured in a unit of concentration."""
    return Problem(
        Model(ode={"x": "-Vm*x/(Km + x)"}),
        {"t": TIMES, "x": SUBSTRATE * unit},
        {"Vm": {"lower": 0.0}, "Km": {"lower": 0.0}},
        {"x": {"lower": 0.0}},
    )


@pytest.mark.slow
@pytest.mark.parametrize("unit", UNITS.values(), ids=UNITS)
def test_a_progress_curve_has_the_same_answer_in_every_unit(unit: float) -> None:
    """The least squares of the closed form (Lambert's W), by SciPy."""
    result = odefit.fit(progress_curve(unit), seed=1)
    (vm, km, x) = result.solutions[0].vector / unit
    assert result.status is Status.CONVERGED
    assert result.objective / unit**2 == pytest.approx(8.3182404, rel=1e-6)
    assert (vm, km, x) == pytest.approx((2.2619066, 36.480884, 60.429179), rel=1e-4)
    assert result.uncertainty is not None
    assert not {"no effect", "not determined"} & set(result.uncertainty.trouble.values())


@pytest.mark.parametrize("unit", UNITS.values(), ids=UNITS)
def test_a_trajectory_is_the_same_in_every_unit(unit: float) -> None:
    problem = progress_curve(unit)
    vm, km, start = 2.0, 30.0, 60.0
    exact = km * np.real(lambertw(start / km * np.exp((start - vm * TIMES) / km), 0))
    found = ForwardMap(problem).trajectory(
        np.array([vm, km, start]) * unit, problem.conditions[0].name, TIMES, sensitivities=False
    )
    assert isinstance(found, Trajectory)
    assert found.states[:, 0] / unit == pytest.approx(exact, rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("unit", UNITS.values(), ids=UNITS)
def test_a_check_finds_the_same_unknowns_determined_in_every_unit(unit: float) -> None:
    found = local_identifiability(ForwardMap(progress_curve(unit)))
    assert found.rank == 3
    assert (found.no_effect, found.undetermined, found.directions) == ((), (), ())


def robertson() -> Problem:
    """Return Robertson's kinetics with relative noise of 2 %, of states from 1e-11 to 1."""
    rows = np.array(ROBERTSON).reshape(-1, 4)
    scale = {"scale": "log10"}
    return Problem(
        Model(
            ode={
                "y1": "-k1*y1 + k3*y2*y3",
                "y2": "k1*y1 - k3*y2*y3 - k2*y2^2",
                "y3": "k2*y2^2",
            }
        ),
        dict(zip(("t", "y1", "y2", "y3"), rows.T, strict=True)),
        {
            "k1": {"lower": 1e-4, "upper": 10.0, **scale},
            "k2": {"lower": 1e4, "upper": 1e10, **scale},
            "k3": {"lower": 1.0, "upper": 1e8, **scale},
        },
        {"y1": 1.0, "y2": 0.0, "y3": 0.0},
        noise={name: {"relative": 0.02} for name in ("y1", "y2", "y3")},
        t0=0.0,
    )


@pytest.mark.slow
def test_right_data_of_very_different_sizes_are_not_outliers() -> None:
    """By SciPy's Radau; y3 is 1.6e-11 at first, beside states of 1."""
    result = odefit.fit(robertson(), seed=1)
    assert result.status is Status.CONVERGED
    assert result.objective == pytest.approx(59.867, abs=1e-3)
    values = np.array([0.0398053, 3.02202e7, 10029.3])
    errors = np.array([1.6e-4, 2.4e5, 73.0])
    assert result.uncertainty is not None
    assert result.solutions[0].vector / values == pytest.approx(np.ones(3), abs=2e-5)
    assert result.uncertainty.standard_errors / errors == pytest.approx(np.ones(3), abs=0.05)
    assert "outlier" not in result.summary()


ROBERTSON = (
    *(1e-05, 1.00486, 4.18729e-07, 1.59283e-11),
    *(3.16228e-05, 0.966872, 1.26203e-06, 4.98138e-10),
    *(0.0001, 1.01312, 3.95338e-06, 1.65224e-08),
    *(0.000316228, 1.02286, 1.23635e-05, 4.71418e-07),
    *(0.001, 0.990908, 2.8649e-05, 1.05951e-05),
    *(0.00316228, 1.00848, 3.69886e-05, 8.9465e-05),
    *(0.01, 1.00462, 3.55966e-05, 0.000367584),
    *(0.0316228, 0.990866, 3.6688e-05, 0.00121444),
    *(0.1, 0.978897, 3.50567e-05, 0.00381199),
    *(0.316228, 0.94793, 3.31125e-05, 0.011677),
    *(1, 0.993722, 3.03811e-05, 0.0332744),
    *(3.16228, 0.918157, 2.3322e-05, 0.0825187),
    *(10, 0.883814, 1.64135e-05, 0.155511),
    *(31.6228, 0.751431, 1.01573e-05, 0.260298),
    *(100, 0.620664, 6.21629e-06, 0.378066),
    *(316.228, 0.473419, 3.61961e-06, 0.523648),
    *(1000, 0.346256, 1.99945e-06, 0.66839),
    *(3162.28, 0.204377, 1.03728e-06, 0.770276),
    *(10000, 0.11067, 4.90121e-07, 0.935314),
    *(31622.8, 0.0466429, 1.96504e-07, 0.956596),
    *(100000, 0.0179324, 7.16388e-08, 0.972129),
)
"""Times and states, simulated with Radau at 1e-10."""


def test_an_unknown_of_3e14_has_an_effect_and_its_neighbours_their_standard_errors() -> None:
    """The standard errors of linear regression on the same data."""
    times = np.linspace(0.0, 10.0, 21)
    noise = 0.01 * np.random.default_rng(4).standard_normal(21)
    data = 2.0 + 0.3 * times + noise
    problem = Problem(
        Model(ode={"x": "1e-15*A"}, observables={"y": "x + o"}),
        {"t": times, "y": data},
        {"A": {"lower": 0.0}, "o": {}},
        {"x": 0.0},
        noise={"y": {"sd": 0.01}},
        t0=0.0,
    )
    result = odefit.fit(problem, seed=1)
    design = np.column_stack([1e-15 * times, np.ones(21)])
    weighted = design / np.linalg.norm(design, axis=0) / 0.01
    covariance = np.linalg.inv(weighted.T @ weighted)
    expected = np.sqrt(np.diag(covariance)) / np.linalg.norm(design, axis=0)
    assert result.uncertainty is not None
    assert not result.uncertainty.trouble
    assert result.uncertainty.standard_errors == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("unit", [1.0, 1e-9, pytest.param(1e15, marks=pytest.mark.slow)])
def test_two_solutions_are_two_in_every_unit_of_time(unit: float) -> None:
    """Absorption and elimination change places, as the volume is not known."""
    times = np.linspace(0.5, 24.0, 12)
    ka, ke, volume, dose = 1.2, 0.2, 30.0, 320.0
    exact = dose / volume * ka / (ka - ke) * (np.exp(-ke * times) - np.exp(-ka * times))
    noise = 1 + 0.01 * np.random.default_rng(1).standard_normal(12)
    problem = Problem(
        Model(ode={"gut": "-ka*gut", "c": "ka*gut/V - ke*c"}, observables={"y": "c"}),
        {"t": times * unit, "y": exact * noise},
        {name: {"lower": 0.0} for name in ("ka", "ke", "V")},
        {"gut": dose, "c": 0.0},
        t0=0.0,
    )
    result = odefit.fit(problem, seed=1)
    best = result.solutions[0]
    level = [s for s in result.solutions if s.objective <= best.objective * (1 + 1e-4)]
    assert len(level) == 2
    assert sorted(s.parameters["ka"] * unit for s in level) == pytest.approx([0.2, 1.2], rel=0.05)
