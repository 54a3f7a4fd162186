"""Problems with few values, or noise of an unknown size, whose data SciPy simulates.

See :mod:`evidence.intervals.small_samples`. No part of odefit makes the data.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.integrate import solve_ivp

from odefit import Event, Experiment, Model, Problem
from odefit.common.arrays import Array

Data = Mapping[str, Any]


@dataclass(frozen=True)
class SmallSample:
    """A problem whose true values are known.

    Attributes
    ----------
    name, description
        Name and description, for tables.
    truth
        The true values of the unknowns by key.
    measured
        Returns the measurements by column from random numbers.
    problem
        Returns the problem of these measurements.
    later
        Returns true values and new measurements by column, at the times of predictions. None for
        those of the data.
    """

    name: str
    description: str
    truth: Mapping[str, float]
    measured: Callable[[np.random.Generator], Data]
    problem: Callable[[Data], Problem]
    later: Callable[[np.random.Generator], tuple[Data, Data]] | None = None

    def data_set(self, number: int) -> Problem:
        """Return the problem with the measurements of data set `number`."""
        return self.problem(self.measured(np.random.default_rng([number, len(self.name), 37])))

    def predicted(self, number: int) -> tuple[Data, Data]:
        """Return true values and new measurements of data set `number`, by column."""
        rng = np.random.default_rng([number, len(self.name), 41])
        if self.later is not None:
            return self.later(rng)
        return self.measured(_WithoutNoise(np.random.PCG64())), self.measured(rng)


class _WithoutNoise(np.random.Generator):
    """Normal random numbers that are all zero, so that measurements are exact."""

    def standard_normal(self, size: Any = None, *_: Any, **__: Any) -> Any:
        """Return zeros."""
        return 0.0 if size is None else np.zeros(size)


def _solved(right: Callable[[float, Array], Any], start: Array, times: Array) -> Array:
    """Return the states at times, shape (states, k); the first time is that of the start."""
    span = float(times[0]), float(times[-1])
    found = solve_ivp(right, span, start, "LSODA", times, rtol=1e-9, atol=1e-9)
    return np.asarray(found.y)


# An epidemic with weekly counts -------------------------------------------------------------------

EPIDEMIC = {"b1": 0.62, "b2": 0.30, "rho": 0.25, "I": 20.0, "cases_dispersion": 0.05}
PEOPLE, CHANGE = 1e5, 42.0
LATER = 4  # weeks after the data that are predicted


def _means(weeks: int) -> tuple[Array, Array]:
    """Return the last days of weeks and the expected counts."""

    def right(b: float) -> Callable[[float, Array], Any]:
        def of(_: float, y: Array) -> Any:
            new = b * y[0] * y[2] / PEOPLE
            return [-new, new - 0.35 * y[1], 0.35 * y[1] - 0.25 * y[2], EPIDEMIC["rho"] * new]

        return of

    days = np.linspace(0.0, 7.0 * weeks, weeks + 1)
    state = np.array([PEOPLE, 0.0, EPIDEMIC["I"], 0.0])
    early = _solved(right(EPIDEMIC["b1"]), state, days[days <= CHANGE])
    late = _solved(right(EPIDEMIC["b2"]), early[:, -1], days[days >= CHANGE])
    return days[1:], np.diff(np.concatenate([early[3], late[3, 1:]]))


def _counted(rng: np.random.Generator, days: Array, means: Array) -> Data:
    size = 1.0 / EPIDEMIC["cases_dispersion"]
    return {"t": days, "cases": rng.negative_binomial(size, size / (size + means)) + 0.0}


def _weekly(weeks: int) -> Callable[[np.random.Generator], Data]:
    days, means = _means(weeks)
    return lambda rng: _counted(rng, days, means)


def _next_weeks(weeks: int) -> Callable[[np.random.Generator], tuple[Data, Data]]:
    days, means = (one[weeks:] for one in _means(weeks + LATER))
    return lambda rng: ({"t": days, "cases": means}, _counted(rng, days, means))


def _epidemic(data: Data) -> Problem:
    rate, new = {"lower": 0.01, "upper": 3.0}, "b*S*I/1e5"
    weekly = Event(tuple(7.0 * k for k in range(1, len(data["t"]) + LATER)), {"C": 0.0})
    return Problem(
        Model(
            ode={
                "S": f"-{new}",
                "E": f"{new} - 0.35*E",
                "I": "0.35*E - 0.25*I",
                "C": f"rho*{new}",
            },
            observables={"cases": "C"},
            constants={"b": 0.0},
        ),
        parameters={"b1": rate, "b2": rate, "rho": {"lower": 0.01, "upper": 1.0}},
        initial={"S": PEOPLE, "E": 0.0, "I": {"lower": 0.1, "upper": 1000.0}, "C": 0.0},
        noise={"cases": {"distribution": "negative-binomial", "dispersion": "estimate"}},
        experiments=[
            Experiment(
                "weeks",
                data,
                t0=0.0,
                constants={"b": "b1"},
                events=[weekly, Event((CHANGE,), {"b": "b2"})],
            )
        ],
    )


# Normal noise -------------------------------------------------------------------------------------

RESPONSE = {"kin": 5.0, "kout": 0.25, "Imax": 0.8, "IC50": 2.0, "sigma": 0.1}


def _response(rng: np.random.Generator) -> Data:
    times = np.array([0.0, 1, 2, 4, 6, 9, 12, 18, 24, 36])

    def right(t: float, r: Array) -> Any:
        c = 10.0 * np.exp(-0.15 * t)
        return 5.0 * (1 - 0.8 * c / (2.0 + c)) - 0.25 * r

    values = _solved(right, np.array([20.0]), times)[0]
    return {"t": times, "r": values * (1 + 0.1 * rng.standard_normal(len(times)))}


def _response_problem(data: Data) -> Problem:
    return Problem(
        Model(ode={"c": "-0.15*c", "r": "kin*(1 - Imax*c/(IC50 + c)) - kout*r"}),
        data,
        {
            "kin": {"lower": 0.1, "upper": 100.0},
            "kout": {"lower": 0.01, "upper": 5.0},
            "Imax": {"lower": 0.0, "upper": 1.0},
            "IC50": {"lower": 0.01, "upper": 100.0},
            "sigma": {"lower": 1e-3, "upper": 1.0},
        },
        {"c": 10.0, "r": "kin/kout"},
        noise={"r": {"sd": "sigma*r"}},
    )


OSCILLATOR = {"w": 1.5, "d": 0.15, "x": 1.0}


def _oscillation(times: Array) -> Array:
    w, d = OSCILLATOR["w"], OSCILLATOR["d"]

    def right(_: float, y: Array) -> Any:
        return [y[1], -w * w * y[0] - 2 * d * y[1]]

    found: Array = _solved(right, np.array([1.0, 0.0]), times)[0]
    return found


def _white(rng: np.random.Generator) -> Data:
    times = np.linspace(0.0, 12.0, 12)
    return {"t": times, "x": _oscillation(times) + 0.1 * rng.standard_normal(12)}


def _correlated(rng: np.random.Generator) -> Data:
    """Return forty values with AR(1) noise of coefficient 0.6."""
    times, noise = np.linspace(0.0, 12.0, 40), np.empty(40)
    noise[0] = rng.standard_normal()
    for k in range(1, 40):
        noise[k] = 0.6 * noise[k - 1] + 0.8 * rng.standard_normal()
    return {"t": times, "x": _oscillation(times) + 0.1 * noise}


def _oscillator(noise: Mapping[str, str]) -> Callable[[Data], Problem]:
    def made(data: Data) -> Problem:
        return Problem(
            Model(ode={"x": "v", "v": "-w^2*x - 2*d*v"}),
            data,
            {"w": {"lower": 0.5, "upper": 4.0}, "d": {"lower": 0.0, "upper": 2.0}},
            {"x": {"lower": 0.0, "upper": 10.0}, "v": 0.0},
            noise={"x": noise},
        )

    return made


def _two_methods(rng: np.random.Generator) -> Data:
    times = np.array([0.5, 1.0, 2.0, 3.0, 4.0])
    exact = 2.0 * np.exp(-0.4 * times)
    return {
        "t": times,
        "y": exact + 0.05 * rng.standard_normal(5),
        "z": 3.0 * exact + 0.3 * rng.standard_normal(5),
    }


def _two_methods_problem(data: Data) -> Problem:
    return Problem(
        Model(ode={"x": "-k*x"}, observables={"y": "x", "z": "3*x"}),
        data,
        {"k": {"lower": 0.01, "upper": 5.0}},
        {"x": {"lower": 0.0, "upper": 10.0}},
        noise={"y": {"sd": "estimate"}, "z": {"sd": "estimate"}},
        t0=0.0,
    )


def _distant(rng: np.random.Generator) -> Data:
    times = np.linspace(0.0, 10.0, 12)
    values = _solved(lambda _, s: -3.0 * s / (6.0 + s), np.array([5.0]), times)[0]
    return {"t": times, "s": values + 0.1 * rng.standard_normal(12)}


def _distant_problem(data: Data) -> Problem:
    wide = {"lower": 0.01, "upper": 1e4, "scale": "log10"}
    return Problem(
        Model(ode={"s": "-Vmax*s/(Km + s)"}),
        data,
        {"Vmax": wide, "Km": wide},
        {"s": {"lower": 0.0, "upper": 100.0}},
        noise={"s": {"sd": "estimate"}},
    )


def _dose(rng: np.random.Generator) -> Data:
    times = np.array([0.5, 1, 2, 3, 4, 6, 8, 12, 16, 24])
    return {"t": times, "c": 2.4 * times * np.exp(-0.3 * times) + 0.08 * rng.standard_normal(10)}


def _dose_problem(data: Data) -> Problem:
    limits = {"lower": 0.01, "upper": 10.0, "scale": "log10"}
    return Problem(
        Model(ode={"gut": "-ka*gut", "blood": "ka*gut - ke*blood"}, observables={"c": "blood/V"}),
        data,
        {"ka": limits, "ke": limits, "V": limits},
        {"gut": 4.0, "blood": 0.0},
        noise={"c": {"sd": 0.08}},
        t0=0.0,
    )


SAMPLES = {
    sample.name: sample
    for sample in (
        *(
            SmallSample(
                f"counts-{weeks}",
                f"an epidemic, {weeks} weekly counts",
                EPIDEMIC,
                _weekly(weeks),
                _epidemic,
                _next_weeks(weeks),
            )
            for weeks in (14, 26)
        ),
        SmallSample(
            "response",
            "indirect response, 10 values with proportional noise",
            RESPONSE,
            _response,
            _response_problem,
        ),
        SmallSample(
            "oscillator",
            "a damped oscillator, 12 values, noise estimated",
            OSCILLATOR,
            _white,
            _oscillator({"sd": "estimate"}),
        ),
        SmallSample(
            "correlated",
            "a damped oscillator, 40 values, AR(1) of 0.6, estimated",
            OSCILLATOR,
            _correlated,
            _oscillator({"sd": "estimate", "correlation": "ou"}),
        ),
        SmallSample(
            "white-model",
            "the same fitted with independent noise",
            OSCILLATOR,
            _correlated,
            _oscillator({"sd": "estimate"}),
        ),
        SmallSample(
            "methods",
            "two methods of measurement, five values each, both noises estimated",
            {"k": 0.4, "x": 2.0},
            _two_methods,
            _two_methods_problem,
        ),
        SmallSample(
            "distant",
            "Michaelis-Menten, Km above all values, noise estimated",
            {"Vmax": 3.0, "Km": 6.0, "s": 5.0},
            _distant,
            _distant_problem,
        ),
        SmallSample(
            "fold",
            "an oral dose with equal rates, where two solutions merge",
            {"ka": 0.3, "ke": 0.3, "V": 0.5},
            _dose,
            _dose_problem,
        ),
    )
}
