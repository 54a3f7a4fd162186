"""The search ends at an optimum as good as the noise: these searched on to their limits."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.linalg import expm
from scipy.stats import chi2

import odefit
from odefit import Model, Problem, Status

YEAR = "6.283185307179586*t/52"


def building() -> Problem:
    """Two heat capacities between a heater and the weather; half of the states are measured."""
    random = np.random.default_rng(0)
    times, heat = 0.5 * np.arange(193), random.choice([0.0, 1.5, 3.0], 16)
    values, x = [], np.array([18.0, 16.0])
    for k, power in enumerate(heat):

        def rates(t: float, x: np.ndarray, power: float = power) -> list[float]:
            outside = 5 + 5 * np.sin(2 * np.pi * (t - 9) / 24)
            inner = (x[1] - x[0]) / 1.5
            return [(inner + power) / 2.0, ((outside - x[1]) / 5.0 - inner) / 15.0]

        ends = (6.0 * k, 6.0 * k + 6.0)
        at = np.linspace(*ends, 13)
        part = solve_ivp(rates, ends, x, "RK45", at, rtol=1e-9, atol=1e-9)
        values += part.y[0][:-1].tolist()
        x = part.y[:, -1]
    values.append(x[0])
    measured = np.array(values) + 0.1 * random.standard_normal(193)
    wall = "((Ti - Tw)/R1 + (5 + 5*sin(0.2617993877991494*(t - 9)) - Tw)/R2)/Cw"
    return Problem(
        Model(
            ode={"Ti": "((Tw - Ti)/R1 + P)/Ci", "Tw": wall},
            observables={"Ti": "Ti"},
            inputs={"P": "constant"},
        ),
        {"t": times, "Ti": measured, "P": heat[np.minimum(np.arange(193) // 12, 15)]},
        {key: {"lower": 0.0} for key in ("Ci", "Cw", "R1", "R2")},
        {"Ti": {}, "Tw": {}},
        noise={"Ti": {"sd": 0.1}},
    )


def epidemic() -> Problem:
    """Three years of weekly cases, with a rate of contact that depends on the season."""
    times, size = np.arange(156.0), 1e6

    def rates(t: float, x: np.ndarray) -> list[float]:
        new = 0.9 * (1 + 0.15 * np.cos(2 * np.pi * t / 52)) * x[0] * x[1] / size
        return [0.0004 * (size - x[0]) - new, new - 0.5004 * x[1]]

    course = solve_ivp(rates, (0, 155), [0.56 * size, 1e3], "LSODA", times, rtol=1e-10, atol=1e-6)
    noise = np.exp(0.05 * np.random.default_rng(0).standard_normal(156))
    new = f"b*(1 + a*cos({YEAR}))*S*I/N"
    return Problem(
        Model(
            ode={"S": f"mu*(N - S) - {new}", "I": f"{new} - (g + mu)*I"},
            observables={"I": "I"},
            constants={"N": size, "mu": 0.0004},
        ),
        {"t": times, "I": course.y[1] * noise},
        {"b": {"lower": 0.0}, "a": {"lower": 0.0, "upper": 1.0}, "g": {"lower": 0.0}},
        {"S": {"lower": 0.0, "upper": size}, "I": {"lower": 0.0}},
        noise={"I": {"transform": "log", "sd": 0.05}},
    )


def chain() -> Problem:
    """First-order steps from each of 199 substances to the next, six values of each."""
    count, random = 198, np.random.default_rng(0)
    rates, start = np.exp(random.uniform(-0.5, 0.5, count)), random.uniform(0.2, 1.0, count + 1)
    matrix = np.diag(rates, -1) - np.diag(np.append(rates, 0.0))
    times = np.linspace(1.0, 40.0, 6)
    values = np.array([expm(matrix * t) @ start for t in times])
    values += 0.002 * random.standard_normal(values.shape)
    names = [f"x{i}" for i in range(count + 1)]
    steps = [f"k{i}*x{i}" for i in range(count)]
    ode = {names[0]: f"-{steps[0]}", names[count]: steps[-1]}
    ode |= {names[i]: f"{steps[i - 1]} - {steps[i]}" for i in range(1, count)}
    return Problem(
        Model(ode={name: ode[name] for name in names}),
        {"t": times, **dict(zip(names, values.T, strict=True))},
        {f"k{i}": {"lower": 0.0} for i in range(count)},
        dict(zip(names, start.tolist(), strict=True)),
        noise={name: {"sd": 0.002} for name in names},
        t0=0.0,
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "starts"),
    [(building, 6), (epidemic, 6), (chain, 3)],
    ids=["building", "epidemic", "chain"],
)
def test_few_starts_suffice_where_chi_square_is_what_the_noise_says(
    make: Callable[[], Problem], starts: int
) -> None:
    problem = make()
    result = odefit.fit(problem, seed=1, jobs=1)
    assert result.status is Status.CONVERGED
    freedom = problem.size - len(problem.keys)
    assert chi2.cdf(result.objective, freedom) == pytest.approx(0.5, abs=0.499)
    assert sum(route.starts for route in result.routes) <= starts
