"""Seven problems with known truths, for :mod:`evidence.intervals.coverage`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from odefit import Failure, Model, Noise, Problem
from odefit.common.arrays import Array
from odefit.simulation import simulated
from odefit.simulation.residuals.random_values import random_values


@dataclass(frozen=True)
class Known:
    """A problem whose true values are known."""

    name: str  # name, description: Name and description, for tables
    description: str
    truth: Mapping[str, float]  # the true values of the unknowns by key, noise parameters too
    # A function that makes the problem of the measurements by observable
    problem: Callable[[Mapping[str, Any]], Problem]
    times: tuple[float, ...]  # the times of the measurements
    # The standard deviations of the noise by observable, of the logarithm where `logarithmic`; of
    # counts the dispersions
    sds: Mapping[str, float]
    logarithmic: bool = False  # whether the noise is log-normal
    # The distribution of noise that is neither normal nor log-normal
    distribution: Literal["laplace", "negative-binomial"] | None = None

    def data_set(self, number: int) -> Problem:
        """Return the problem with the simulated measurements of data set `number`."""
        random = np.random.default_rng([number, len(self.name)])
        data: dict[str, Any] = {"t": list(self.times)}
        for name, values in self.exact().items():
            if self.distribution is not None:
                noise_model = Noise(distribution=self.distribution)
                spreads = self.spreads(name, values)
                data[name] = random_values(noise_model, values, spreads, random)
                continue
            noise = self.sds[name] * random.standard_normal(len(values))
            data[name] = values * np.exp(noise) if self.logarithmic else values + noise
        return self.problem(data)

    def spreads(self, name: str, exact: Array) -> Array:
        """Return the standard deviations of the measurements of an observable, shape (n,)."""
        if self.distribution == "negative-binomial":
            return np.asarray(np.sqrt(exact + self.sds[name] * exact**2))
        return np.full(len(exact), self.sds[name])

    def exact(self) -> dict[str, Array]:
        """Return the true values of the observables at the times."""
        ones = {"t": list(self.times)} | {name: np.ones(len(self.times)) for name in self.sds}
        empty = self.problem(ones)
        found = simulated(empty, empty.vector(self.truth))
        if isinstance(found, Failure):
            raise RuntimeError(f"{self.name}: {found}")  # noqa: TRY004 - no wrong type
        return {name: found.observables[name] for name in self.sds}


def _decay(noise: Mapping[str, str], largest: float) -> Callable[[Mapping[str, Any]], Problem]:
    """Return a factory of decays with this noise, whose initial value is at most `largest`."""

    def made(data: Mapping[str, Any]) -> Problem:
        return Problem(
            Model(ode={"x": "-k*x"}),
            data,
            {"k": {"lower": 1e-3, "upper": 50.0}},
            {"x": {"lower": 0.0, "upper": largest}},
            noise={"x": noise},
        )

    return made


def _enzyme(data: Mapping[str, Any]) -> Problem:
    rate = {"lower": 1e-2, "upper": 1e5, "scale": "log10"}
    return Problem(
        Model(
            ode={
                "E": "-k1*E*S + (km1 + k2)*ES",
                "S": "-k1*E*S + km1*ES",
                "ES": "k1*E*S - (km1 + k2)*ES",
                "P": "k2*ES",
            },
            observables={"product": "P"},
        ),
        data,
        {"k1": rate, "km1": rate, "k2": rate},
        {"E": 0.1, "S": 10.0, "ES": 0.0, "P": 0.0},
        noise={"product": {"sd": 0.1}},
        name="enzyme",
    )


def enzyme(times: Sequence[float], k2: float) -> Problem:
    """Return the enzyme with noise of seed 0, at other times or of another rate."""
    empty = _enzyme({"t": times, "product": np.ones(len(times))})
    found = simulated(empty, empty.vector({"k1": 100.0, "km1": 300.0, "k2": k2}))
    assert not isinstance(found, Failure)
    noise = 0.1 * np.random.default_rng(0).standard_normal(len(times))
    return _enzyme({"t": times, "product": found.observables["product"] + noise})


def _exponentials(data: Mapping[str, Any]) -> Problem:
    size = {"lower": 0.0, "upper": 10.0}
    return Problem(
        Model(ode={"a": "-fast*a", "b": "-slow*b"}, observables={"y": "a + b"}),
        data,
        {"fast": {"lower": 0.45, "upper": 50.0}, "slow": {"lower": 1e-3, "upper": 0.45}},
        {"a": size, "b": size},
        noise={"y": {"sd": 0.02}},
    )


def _lotka_volterra(data: Mapping[str, Any]) -> Problem:
    rate = {"lower": 1e-2, "upper": 10.0}
    size = {"lower": 1e-2, "upper": 20.0}
    return Problem(
        Model(ode={"x": "a*x - b*x*y", "y": "c*x*y - d*y"}),
        data,
        {"a": rate, "b": rate, "c": rate, "d": rate},
        {"x": size, "y": size},
    )


def _logistic(data: Mapping[str, Any]) -> Problem:
    return Problem(
        Model(ode={"x": "r*x*(1 - x/K)"}),
        data,
        {"r": {"lower": 1e-2, "upper": 20.0}, "K": {"lower": 0.1, "upper": 1e3}},
        {"x": {"lower": 1e-3, "upper": 10.0}},
        noise={"x": {"sd": "estimate", "transform": "log"}},
    )


def _spread(first: float, last: float, count: int) -> tuple[float, ...]:
    return tuple(first + (last - first) * i / (count - 1) for i in range(count))


# The problems by name
KNOWN = {
    known.name: known
    for known in (
        Known(
            "decay",
            "a decay of six points, noise estimated",
            {"k": 0.7, "x": 2.0, "x_sd": 0.05},
            _decay({"sd": "estimate"}, 100.0),
            _spread(0.0, 5.0, 6),
            {"x": 0.05},
        ),
        Known(
            "enzyme",
            "an enzyme by mass action of which the product alone is measured",
            {"k1": 100.0, "km1": 300.0, "k2": 50.0},
            _enzyme,
            _spread(0.1, 4.0, 40),
            {"product": 0.1},
        ),
        Known(
            "exponentials",
            "the sum of two exponentials",
            {"fast": 1.0, "slow": 0.2, "a": 1.0, "b": 1.0},
            _exponentials,
            _spread(0.0, 10.0, 21),
            {"y": 0.02},
        ),
        Known(
            "lotka-volterra",
            "predator and prey, plain least squares",
            {"a": 1.0, "b": 0.5, "c": 0.3, "d": 0.8, "x": 2.0, "y": 1.0},
            _lotka_volterra,
            _spread(0.0, 10.0, 21),
            {"x": 0.2, "y": 0.2},
        ),
        Known(
            "logistic",
            "logistic growth with log-normal noise, estimated",
            {"r": 1.0, "K": 5.0, "x": 0.1, "x_sd": 0.15},
            _logistic,
            _spread(0.0, 8.0, 12),
            {"x": 0.15},
            logarithmic=True,
        ),
        Known(
            "laplace",
            "a decay with 40 values, Laplace noise, estimated",
            {"k": 0.7, "x": 2.0, "x_sd": 0.1},
            _decay({"sd": "estimate", "distribution": "laplace"}, 100.0),
            _spread(0.0, 3.0, 40),
            {"x": 0.1},
            distribution="laplace",
        ),
        Known(
            "counts",
            "a decay with 40 negative binomial counts, dispersion estimated",
            {"k": 0.7, "x": 40.0, "x_dispersion": 0.2},
            _decay({"distribution": "negative-binomial", "dispersion": "estimate"}, 1e4),
            _spread(0.0, 3.0, 40),
            {"x": 0.2},
            distribution="negative-binomial",
        ),
    )
}
