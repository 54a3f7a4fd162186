"""Random right models, for what must hold of all: roots, powers, zeros, unused parameters."""

from __future__ import annotations

from typing import Any

import numpy as np

from odefit.problem.experiment import Event, Experiment
from odefit.problem.model import Model
from odefit.problem.problem import Problem

TIMES = np.linspace(0.0, 2.0, 7)

FORMS = (
    "{a}*{x}",
    "-{a}*{x}",
    "{a}",
    "{a}*{x}*{y}",
    "-{a}*{x}^2",
    "{a}*sqrt({x})",
    "{a}*{x}^0.5",
    "{a}*{x}^{b}",
    "{a}*{x}^(1/3)",
    "{a}*{x}^2.7",
    "{a}/({b} + {x})",
    "{a}*{x}/{y}",
    "{a}*{x}^{b}/(1 + {x}^{b})",
    "{a}*{x}^4/({b}^4 + {x}^4)",
    "{a}*exp(-{b}*{x})",
    "{a}*exp({x})",
    "-{a}*tanh({x})",
    "sin({a}*{x})",
    "sin({x})",
    "cos({a}*t)",
    "{a}*exp(-{b}*t)",
    "{a}*t^3",
    "log(1 + {x})",
    "{a}*log({x})",
    "atan({x})",
    "acos({x}/9)",
    "sinh({x})*{a}",
    "{a}*({x} - {y})",
    "2.5*{x}",
    "-{x}",
    "0",
    "sqrt({x}^2 + {a})",
    "{a}*abs({x})",
    "max({x}, {y})",
    "{a}^2",
)
"""Terms of right-hand sides and outputs; x and y are states, a and b parameters."""

STARTS: tuple[Any, ...] = (
    {},
    0.0,
    0.0,
    0.0,
    1.0,
    2.0,
    10.0,
    "{a}",
    "{a}/{b}",
    "2*{a}",
    "exp({a})",
    "sqrt({a})",
)
"""Initial values: unknown, numbers, and expressions in parameters."""


def random_problem(seed: int) -> Problem:
    """Return a random problem whose text is right; the data do not belong to it."""
    rng = np.random.default_rng([seed, 77])
    states = [f"x{i}" for i in range(1, int(rng.integers(1, 4)) + 1)]
    parameters = [f"p{i}" for i in range(1, int(rng.integers(1, 5)) + 1)]

    def filled(form: str) -> str:
        x, y = rng.choice(states, 2)
        a, b = rng.choice(parameters, 2)
        return form.format(x=x, y=y, a=a, b=b)

    def some(most: int) -> str:
        return " + ".join(filled(str(rng.choice(FORMS))) for _ in range(rng.integers(1, most + 1)))

    ode = {state: some(3) for state in states}
    measured = rng.integers(1, len(states) + 1)
    outputs = {f"o{i}": state for i, state in enumerate(rng.permutation(states)[:measured])}
    if rng.random() < 0.3:
        outputs = {"o0": some(2)}
    initial = {}
    for state in states:
        start = STARTS[rng.integers(len(STARTS))]
        initial[state] = filled(start) if isinstance(start, str) else start
    given = {p: {"fixed": 0.5} if rng.random() < 0.15 else {} for p in parameters}
    if rng.random() < 0.05:
        given = {p: {"fixed": 0.5} for p in parameters}
    events = []
    if rng.random() < 0.2:
        time = float(rng.choice([0.0, 1.0]))
        events = [Event((time,), {states[0]: filled("{x} + {a}")})]
    data = {"t": TIMES, **{name: 0.5 + 0.1 * np.cos(TIMES) for name in outputs}}
    return Problem(
        Model(ode=ode, observables=outputs),
        parameters=given,
        initial=initial,
        experiments=[Experiment("one", data, t0=0.0, events=events)],
    )
