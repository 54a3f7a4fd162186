"""Small problems whose designs are known."""

from __future__ import annotations

from odefit import Model, Problem


def box_lucas() -> Problem:
    """A to B to C, of which B is measured."""
    return Problem(
        Model(ode={"a": "-k1*a", "b": "k1*a - k2*b"}, observables={"y": "b"}),
        data={"t": [0.0, 20.0], "y": [0.0, 0.1]},
        parameters={"k1": {}, "k2": {}},
        initial={"a": 1.0, "b": 0.0},
        noise={"y": {"sd": 0.02}},
        time_unit="h",
    )


RATES = {"k1": 0.7, "k2": 0.2}


def decay() -> Problem:
    """An exponential decay with an unknown amplitude."""
    return Problem(
        Model(ode={"x": "-k*x"}, observables={"y": "x"}),
        data={"t": [0.0, 20.0], "y": [1.0, 0.1]},
        parameters={"k": {}, "A": {}},
        initial={"x": "A"},
        noise={"y": {"sd": 0.1}},
    )


def initial_rates() -> Problem:
    """Michaelis-Menten rates at a concentration that a run may set."""
    return Problem(
        Model(ode={"s": "0*s"}, observables={"v": "V*s/(Km + s)"}),
        data={"t": [0.0, 1.0], "v": [0.1, 0.1]},
        parameters={"V": {}, "Km": {}},
        initial={"s": 1.0},
        noise={"v": {"sd": 0.1}},
    )


def scaled() -> Problem:
    """A to B to C with an unknown scale of B and an unknown dose: only their product is seen."""
    return Problem(
        Model(ode={"a": "-k1*a", "b": "k1*a - k2*b"}, observables={"y": "s*b"}),
        data={"t": [0.0, 20.0], "y": [0.0, 0.1]},
        parameters={"k1": {}, "k2": {}, "s": {}, "A": {}},
        initial={"a": "A", "b": 0.0},
        noise={"y": {"sd": 0.1}},
    )


SCALED = {"k1": 0.7, "k2": 0.2, "s": 1.0, "A": 1.0}


def theophylline() -> Problem:
    """The concentration after an oral dose, as a sum of two exponentials."""
    return Problem(
        Model(ode={"a": "-th1*a", "b": "-th2*b"}, observables={"y": "th3*(a - b)"}),
        data={"t": [0.0, 20.0], "y": [0.0, 1.0]},
        parameters={"th1": {}, "th2": {}, "th3": {}},
        initial={"a": 1.0, "b": 1.0},
        noise={"y": {"sd": 1.0}},
    )


HORSE = {"th1": 0.05884, "th2": 4.298, "th3": 21.80}
