"""Ranges of start values follow from bounds and data."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from odefit import fit
from odefit.explorer.sliders import first_values, sliders
from odefit.problem import Event, Experiment, Model, Problem, load
from odefit.problem.variants.start_ranges import Range, ranges, values_at


def test_the_time_of_an_event_is_within_the_measurements_of_all_experiments_that_have_it() -> None:
    def experiment(name: str, begin: float, end: float, *events: Event) -> Experiment:
        return Experiment(name, {"t": [begin, end], "x": [1.0, 2.0]}, events=events)

    event = Event(("tau",), {"x": "x + 1"})
    problem = Problem(
        Model(ode={"x": "-k*x"}),
        experiments=[
            experiment("A", 0.0, 4.0, event),
            experiment("B", -3.0, 2.0, event),
            experiment("C", 1.0, 7.0, event),
            experiment("D", -20.0, 20.0),
        ],
        parameters={"k": {}, "tau": {"lower": -100.0, "upper": 100.0}},
        initial={"x": 1.0},
    )
    assert ranges(problem)[1] == Range(-3.0, 7.0, False)


@pytest.mark.parametrize(
    ("rate", "name", "high"),
    [
        ("k*exp(-E/0.008314*(1/T - 1/310))", "E", 300.0),
        ("k*exp(1000*E/8.314*(1/310 - 1/T))", "E", 300.0),
        ("k*exp(E*(T - 310)/(0.008314*T*310))", "E", 300.0),
        ("k*exp(-E/8.314*(1/T - 1/310))", "E", 3e5),
        ("10^k*exp(-E/(0.008314*T))", "k", 20.0),
    ],
)
def test_an_unknown_linear_in_an_exponent_is_uniform_from_zero(
    rate: str, name: str, high: float
) -> None:
    """An energy of 300 kJ/mol is no more 0.033 than it is 150."""
    other = "k" if name == "E" else "E"
    problem = Problem(
        Model(ode={"x": f"-({rate})*x"}, constants={"T": 298.0}),
        {"t": [0.0, 10.0, 20.0], "x": [1.0, 0.7, 0.5]},
        {name: {"lower": 0.0, "upper": high}, other: {"lower": 1e-3, "upper": 300.0}},
        {"x": 1.0},
    )
    own = problem.keys.index(name)
    assert ranges(problem)[own] == Range(0.0, high, False)
    slider = sliders(problem, first_values(problem))[own]
    assert not slider.logarithmic
    assert first_values(problem)[own] == pytest.approx(0.5 * high)


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e4])
@pytest.mark.parametrize(
    "noise", [{"transform": "log"}, {"transform": "log10"}, {"distribution": "log-normal"}]
)
def test_the_spread_of_logarithms_has_no_unit(noise: dict[str, str], unit: float) -> None:
    problem = Problem(
        Model(ode={"x": "-k*x"}),
        {"t": [0.0, 10.0, 20.0], "x": [600 * unit, 400 * unit, 300 * unit]},
        {"k": {}},
        {"x": 600.0 * unit},
        noise={"x": {"sd": "estimate", **noise}},
    )
    assert ranges(problem)[problem.keys.index("x_sd")] == Range(1e-3, 1.0, True)


def test_a_rate_in_an_exponent_with_the_time_stays_logarithmic() -> None:
    problem = Problem(
        Model(ode={"x": "-k*exp(-d*t)*x"}),
        {"t": [0.0, 10.0, 20.0], "x": [1.0, 0.7, 0.5]},
        {"k": {"lower": 0.0}, "d": {"lower": 0.0, "upper": 10.0}},
        {"x": 1.0},
    )
    assert all(found.logarithmic for found in ranges(problem))


def test_a_threshold_of_a_measured_state_is_where_that_is_measured() -> None:
    def experiment(name: str, *values: float) -> Experiment:
        data = {"t": [0.0, 1.0, 2.0], "x": values}
        events = [
            Event((), {"x": "0"}, when="x >= hi && t > 0.5"),
            Event((), {"x": "1"}, when="lo > x"),
        ]
        return Experiment(name, data, events=events)

    problem = Problem(
        Model(ode={"x": "k - x"}),
        experiments=[experiment("A", 2.0, 4.0, 8.0), experiment("B", 3.0, 12.0, 7.0)],
        parameters={
            "k": {},
            "hi": {"lower": 0.0, "upper": 1e6},
            "lo": {"lower": 1.5, "upper": 3.0},
        },
        initial={"x": 2.0},
    )
    assert ranges(problem)[1:] == [Range(1.0, 13.0, False), Range(1.5, 3.0, False)]


GAS = 0.008314  # kJ/(mol K)


def arrhenius(**parameters: dict[str, float]) -> Problem:
    """Return a decay at four temperatures with A = 4.2e9 1/s and E = 78.5 kJ/mol, without noise."""
    times = np.array([0.0, 300.0, 600.0, 1200.0, 2400.0, 3600.0, 5400.0, 7200.0])
    experiments = [
        Experiment(
            f"T{T}",
            {"t": times, "c": 1.3 * np.exp(-4.2e9 * math.exp(-78.5 / (GAS * T)) * times)},
            constants={"T": float(T)},
        )
        for T in (300, 315, 330, 345)
    ]
    model = Model(ode={"c": f"-A*exp(-E/({GAS}*T))*c"}, constants={"T": 300.0})
    return Problem(
        model, experiments=experiments, parameters=parameters, initial={"c": {"lower": 0.0}}
    )


@pytest.mark.parametrize("top", [300.0, math.inf])
def test_an_energy_is_uniform_and_its_prefactor_gives_an_observable_rate(
    top: float,
) -> None:
    problem = arrhenius(A={"lower": 0.0, "upper": 1e20}, E={"lower": 0.0, "upper": top})
    whole, energy, _ = ranges(problem)
    assert energy.low == 0.0
    assert not energy.logarithmic
    assert 200.0 < energy.high <= 300.0
    assert whole.low < 1e-4
    assert whole.high == 1e20
    A, E, _ = values_at(problem, np.random.default_rng(1).random((200, 3))).T
    rates = A * np.exp(-E / (GAS * 322.0))
    free = A < 1e20
    assert 80 < free.sum() < 180
    assert rates[free].min() > 0.1 / 7200.0 / 3.0
    assert rates[free].max() < 10.0 / 300.0 * 3.0


def test_a_prefactor_follows_an_energy_that_is_given() -> None:
    problem = arrhenius(A={"lower": 0.0}, E={"lower": 0.0})
    given = np.array([np.nan, 78.5, np.nan])
    (vector,) = values_at(problem, np.full((1, 3), 0.5), given)
    assert vector[1] == 78.5
    assert 4.2e7 < vector[0] < 4.2e11


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_arrhenius_parameters_in_wide_bounds_are_found(seed: int) -> None:
    problem = arrhenius(A={"lower": 0.0, "upper": 1e20}, E={"lower": 0.0, "upper": 300.0})
    result = fit(problem, seed=seed, jobs=1)
    assert result.params["E"].value == pytest.approx(78.5, rel=1e-6)
    assert result.params["A"].value == pytest.approx(4.2e9, rel=1e-5)


def test_an_exponent_in_bounds_that_say_nothing_is_near_one() -> None:
    wide = {"lower": 0.0, "upper": 1e6}
    times = np.arange(0.0, 51.0, 2.0)
    data = {"t": times, "h": (3.0**0.4 - 0.02 * times) ** 2.5}
    problem = Problem(Model(ode={"h": "-a*h^n"}), data, {"a": wide, "n": wide}, {"h": wide})
    a, n, _ = ranges(problem)
    assert (n.low, n.high) == pytest.approx((0.1, 10.0))
    assert a.low < 0.05 < a.high


def test_a_parameter_that_is_a_measured_initial_value_is_close_to_the_measurement() -> None:
    data = {"t": [0.0, 30.0, 60.0], "i": [300.0, 4e5, 8e6]}
    model = Model(ode={"S": "-b*S*I/6.6e7", "I": "b*S*I/6.6e7 - g*I"}, observables={"i": "I"})
    wide = {"lower": 0.0, "upper": 1e6}
    names = {"b": wide, "g": wide, "I0": wide}
    found = ranges(Problem(model, data, names, {"S": "6.6e7 - I0", "I": "I0"}))[2]
    assert found == Range(285.0, 315.0, False)


def test_a_rate_over_a_time_may_be_far_below_all_rates() -> None:
    """p3 of the glucose minimal model is 1.7e-5 per unit of insulin and square minute."""
    problem = load(Path(__file__).parents[2] / "cases" / "glucose-minimal-model" / "pb.toml")
    found = dict(zip(problem.keys, ranges(problem), strict=True))["p3"]
    assert 1e-8 < found.low < 1e-6
    assert found.high == 1.0


def absorbed(initial: str = "4", **parameters: dict[str, float]) -> Problem:
    """Return an oral dose whose constants are logarithms, as pharmacologists write it in R."""
    model = Model(
        ode={"g": "-exp(lKa)*g", "y": "exp(lKa)*g*10^(lKe - lCl) - 10^lKe*y"},
        observables={"y": "y"},
    )
    data = {"t": [0.25, 0.5, 1.0, 2.0, 5.0, 9.0, 24.0], "y": [3.0, 5.0, 8.0, 8.0, 6.0, 4.0, 1.0]}
    names: dict[str, dict[str, float]] = {"lKe": {}, "lKa": {}, "lCl": {}} | parameters
    return Problem(model, data, names, {"g": initial, "y": 0.0}, t0=0.0)


def test_the_logarithm_of_a_rate_has_the_range_of_the_rate_in_logarithms() -> None:
    plain = Problem(
        Model(ode={"g": "-k*g"}),
        {"t": [0.25, 0.5, 24.0], "g": [3.0, 5.0, 1.0]},
        {"k": {"lower": 0.0}},
        {"g": 4.0},
        t0=0.0,
    )
    rate = ranges(plain)[0]
    decadic, natural, clearance = ranges(absorbed())
    assert (natural.low, natural.high) == pytest.approx((math.log(rate.low), math.log(rate.high)))
    assert (decadic.low, decadic.high) == pytest.approx(
        (math.log10(rate.low), math.log10(rate.high))
    )
    assert not any(found.logarithmic for found in (natural, decadic, clearance))
    assert clearance.low < math.log10(0.04) < clearance.high


def test_the_logarithm_of_an_initial_value_has_its_size() -> None:
    dose = dict(zip("ekcd", ranges(absorbed("exp(ldose)", ldose={})), strict=True))["d"]
    assert dose.low < math.log(4.0) < dose.high < math.log(4e4)


def test_bounds_of_a_logarithm_are_kept() -> None:
    bounded = absorbed(lKe={"lower": -3.0, "upper": 2.0}, lKa={"lower": 0.0}, lCl={"upper": -1.0})
    elimination, absorption, clearance = ranges(bounded)
    assert elimination == Range(-3.0, 2.0, False)
    assert absorption.low == 0.0 < absorption.high < 5.0
    assert clearance.low < clearance.high == -1.0
    far = ranges(absorbed(lKa={"lower": 50.0}))[1]
    assert 50.0 <= far.low < far.high


@pytest.mark.parametrize(
    ("rate", "unit"),
    [
        (f"10^lA*exp(-E/({GAS}*T))", math.log(10)),
        (f"exp(lA - E/({GAS}*T))", 1.0),
        (f"exp(-E/({GAS}*T) + lA)", 1.0),
    ],
)
def test_the_logarithm_of_a_prefactor_follows_the_energy(rate: str, unit: float) -> None:
    """log10(A) is 9.6 for A = 4.2e9 1/s at E = 78.5 kJ/mol, and that of the rate at E = 0."""
    given = arrhenius(A={"lower": 0.0}, E={"lower": 0.0})
    problem = Problem(
        Model(ode={"c": f"-{rate}*c"}, constants={"T": 300.0}),
        experiments=given.experiments,
        parameters={"lA": {}, "E": {"lower": 0.0}},
        initial={"c": {"lower": 0.0}},
    )
    for energy, expected in ((78.5, 9.6), (0.0, -3.1)):
        u = np.random.default_rng(1).random((50, 3))
        values = values_at(problem, u, np.array([np.nan, energy, np.nan]))[:, 0]
        values *= unit / math.log(10)
        assert values.min() < expected < values.max()
        assert np.ptp(values) < 8.0


def test_an_exponent_of_either_sign_is_sought_on_both_sides_of_zero() -> None:
    problem = Problem(
        Model(ode={"y": "-a*exp(-b*T)*y"}, constants={"T": 100.0}),
        {"t": [0.0, 10.0, 20.0], "y": [1.0, 0.7, 0.5]},
        {"a": {"lower": 0.0}, "b": {}},
        {"y": 1.0},
    )
    _, slope = ranges(problem)
    assert slope.low == -slope.high < 0.0


def test_an_unknown_that_is_more_than_a_logarithm_has_the_range_of_an_exponent() -> None:
    def found(rate: str) -> Range:
        data = {"t": [0.25, 0.5, 24.0], "x": [3.0, 5.0, 1.0]}
        return ranges(Problem(Model(ode={"x": rate}), data, {"k": {}}, {"x": 4.0}, t0=0.0))[0]

    both = found("-k*x*(1 + exp(k))")
    assert both.low < 0.0 < both.high
    assert both.high > 10.0 > found("-exp(k)*x").high > 0.0


@pytest.mark.parametrize(
    "rate",
    ["-k*x*(t - b)", "if(t > b, -k*x, 0)", "-k*x/(1 + exp((b - t)/0.5))"],
)
def test_an_unknown_subtracted_from_the_time_is_a_time_of_the_measurements(rate: str) -> None:
    data = {"t": [2.0, 3.0, 9.0], "x": [1.0, 0.9, 0.1]}
    model = Model(ode={"x": rate})
    problem = Problem(
        model, data, {"k": {}, "b": {"lower": -100.0, "upper": 7.0}}, {"x": 1.0}, t0=1.0
    )
    assert ranges(problem)[1] == Range(1.0, 7.0, False)


@pytest.mark.parametrize(
    ("difference", "low", "high"),
    [
        ("t/60 - b", 2.0, 6.0),
        ("(t - 120)/60 - b", 0.0, 4.0),
        ("2*t - b - 10", 230.0, 710.0),
        ("b*1e3 - t", 0.12, 0.36),
    ],
)
def test_the_range_of_a_time_is_in_its_unit(difference: str, low: float, high: float) -> None:
    data = {"t": [120.0, 130.0, 360.0], "x": [1.0, 0.9, 0.1]}
    model = Model(ode={"x": f"-k*x/(1 + exp({difference}))"})
    problem = Problem(model, data, {"k": {}, "b": {}}, {"x": 1.0}, t0=120.0)
    time = ranges(problem)[1]
    assert (time.low, time.high) == pytest.approx((low, high))
    assert not time.logarithmic


@pytest.mark.parametrize("unit", [1.0, 60.0])
@pytest.mark.parametrize("rate", ["-2*(t/{u} - b)/w^2*x/{u}", "k*exp(-((t/{u} - b)/w)^2)"])
def test_a_width_is_neither_narrower_than_half_the_gap_nor_wider_than_twice_the_span(
    rate: str, unit: float
) -> None:
    times = unit * np.linspace(0.0, 100.0, 101)
    model = Model(ode={"x": rate.format(u=unit)})
    bounds: dict[str, dict[str, float]] = {name: {} for name in "bwk" if name != "k" or "k" in rate}
    problem = Problem(model, {"t": times, "x": np.ones(101)}, bounds, {"x": 1.0})
    width = ranges(problem)[problem.keys.index("w")]
    assert width.logarithmic
    assert 0.2 < width.low < 1.3
    assert 80.0 < width.high < 500.0
    assert width.high / width.low == pytest.approx(400.0)


@pytest.mark.parametrize("rate", ["-k*x*(t + b)", "-k*x - b*t", "-k*x*(2*t - b^2)"])
def test_unknowns_not_added_to_the_time_are_not_times(rate: str) -> None:
    data = {"t": [0.0, 1.0, 9.0], "x": [1.0, 0.9, 0.1]}
    problem = Problem(Model(ode={"x": rate}), data, {"k": {}, "b": {}}, {"x": 1.0})
    assert ranges(problem)[1] != Range(0.0, 9.0, False)
