"""Problems in other units: part of `units.py`.

A problem is written in other units of states, unknowns and time. Its answer must be the same one
in these units. Own models have clean equations, as a user would write them in these units; in any
other problem every name N of an expression becomes (N/unit), which is exact.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.integrate import solve_ivp

from odefit.expressions.algebras import NUMPY
from odefit.expressions.expressions import parse
from odefit.expressions.grammar import RESERVED

Units = Mapping[str, float]  # the size of each old unit in the new one: a value of 1 becomes this
Powers = Mapping[str, int]
NAME = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True)
class OwnModel:
    """A model without numbers that have a unit."""

    ode: Mapping[str, str]  # Right-hand sides
    states: Mapping[str, str]  # the unit of each state, by its name
    unknowns: Mapping[str, tuple[float, Powers]]  # true value and powers of units of each parameter
    initial: Mapping[str, float]  # true initial value of each state
    observables: Mapping[str, tuple[str, str]]  # expression and unit of each
    times: Sequence[float]  # times of the measurements
    free: Sequence[str] = ()  # states whose initial value is unknown
    # What the noise table says of every observable: ``"none"``, ``"sd"``, ``"relative"`` or
    # ``"estimate"``
    noise: str = "none"
    # ``"positive"`` for a lower bound of zero alone, ``"box"`` for a factor of 30 either way
    bounds: str = "positive"
    level: float = 0.03


_ENTRIES: dict[str, dict[str, Any]] = tomllib.loads(
    Path(__file__).with_name("own_models.toml").read_text(encoding="utf-8")
)
OWN = {name: OwnModel(**entry) for name, entry in _ENTRIES.items()}


@dataclass(frozen=True)
class Guise:
    """A problem in some units, and what its answer has to be multiplied by."""

    mapping: Mapping[str, Any]  # the problem in format 1
    factors: Mapping[str, float]  # by key of an unknown, what its value in the plain units becomes
    objective: float = 1.0  # what the objective becomes


def own_guise(name: str, units: Units) -> Guise:
    """Return one of the own models in units; those that are not named stay as they are."""
    model = OWN[name]

    def factor(powers: Powers) -> float:
        return float(np.prod([units.get(u, 1.0) ** p for u, p in powers.items()]))

    data = _simulated(name)
    time = units.get("t", 1.0)
    columns: dict[str, list[float | None]] = {"t": [t * time for t in model.times]}
    noise: dict[str, Any] = {}
    for observable, (_, unit) in model.observables.items():
        own = units.get(unit, 1.0)
        columns[observable] = [v * own for v in data[observable]]
        if model.noise == "relative":  # a value of zero would have an infinite weight
            columns[observable] = [v or None for v in columns[observable]]
        if model.noise == "sd":
            size = float(np.max(np.abs(data[observable])))
            noise[observable] = {"sd": model.level * size * own}
        elif model.noise == "relative":
            noise[observable] = {"relative": model.level}
        elif model.noise == "estimate":
            noise[observable] = {"sd": "estimate"}
    factors = {k: factor(powers) for k, (_, powers) in model.unknowns.items()}
    factors |= {state: units.get(model.states[state], 1.0) for state in model.free}
    if model.noise == "estimate":
        factors |= {f"{o}_sd": units.get(u, 1.0) for o, (_, u) in model.observables.items()}
    truth = {k: value for k, (value, _) in model.unknowns.items()}

    def bounded(key: str, value: float) -> dict[str, Any]:
        if model.bounds == "positive":
            return {"lower": 0.0}
        own = value * factors[key]
        return {"lower": own / 30, "upper": own * 30, "scale": "log10"}

    initial: dict[str, Any] = {}
    for state, value in model.initial.items():
        if state in model.free:
            initial[state] = bounded(state, value)
        else:
            initial[state] = value * units.get(model.states[state], 1.0)
    observables = {o: e for o, (e, _) in model.observables.items()}
    mapping: dict[str, Any] = {
        "format": 1,
        "name": f"{name} in {dict(units)}",
        "ode": dict(model.ode),
        "observables": observables,
        "parameters": {k: bounded(k, v) for k, v in truth.items()},
        "initial": initial,
        "noise": noise,
        "experiment": [{"name": "run", "t0": 0.0, "data": columns}],
    }
    squares = 1.0
    if model.noise == "none":
        (unit,) = {u for _, u in model.observables.values()}
        squares = units.get(unit, 1.0) ** 2
    return Guise(mapping, factors, squares)


def _simulated(name: str) -> dict[str, list[float]]:
    """Return data in the plain units, by SciPy."""
    model = OWN[name]
    truth = {k: np.float64(v) for k, (v, _) in model.unknowns.items()}
    parsed = {s: parse(e) for s, e in model.ode.items()}
    names = list(model.ode)

    def rhs(t: float, x: Any) -> list[float]:
        at = {**truth, **dict(zip(names, x, strict=True)), "t": np.float64(t)}
        return [float(parsed[s].evaluate(at, NUMPY)) for s in names]

    sol = solve_ivp(
        rhs,
        (0.0, max(model.times)),
        [model.initial[s] for s in names],
        method="Radau",
        t_eval=list(model.times),
        rtol=1e-10,
        atol=1e-16,
    )
    rng = np.random.default_rng([len(name), *name.encode()])
    found = {}
    for observable, (expression, _) in model.observables.items():
        at = {**truth, **dict(zip(names, sol.y, strict=True))}
        exact = np.asarray(parse(expression).evaluate(at, NUMPY))
        draws = rng.standard_normal(len(exact))
        if model.noise == "relative":
            noisy = exact * (1 + model.level * draws)
        else:
            noisy = exact + model.level * np.abs(exact).max() * draws
        found[observable] = [float(f"{v:.6g}") for v in noisy]
    return found


def other_guise(plain: Mapping[str, Any], units: Units, time: float = 1.0) -> Guise:
    """Return any problem of format 1 with some states and parameters in other units."""
    for key in ("algebraic", "inputs"):
        if plain.get(key):
            raise ValueError(f"it has {key}")
    states = list(plain["ode"])
    observables = plain.get("observables") or {s: s for s in states}

    def rewritten(text: Any) -> Any:
        if not isinstance(text, str):
            return text

        def one(match: re.Match[str]) -> str:
            name = match.group()
            if name == "t":
                return f"(t/{time!r})"
            unit = units.get(name, 1.0)
            return name if name in RESERVED or unit == 1.0 else f"({name}/{unit!r})"

        return re.sub(r"(?<![\w.])[A-Za-z_]\w*", one, text)

    def scaled(parameter: Any, unit: float) -> Any:
        if not isinstance(parameter, Mapping):
            return parameter * unit
        if "prior" in parameter:
            raise ValueError("it has priors")
        keys = ("lower", "upper", "guess", "fixed")
        return {k: v * unit if k in keys else v for k, v in parameter.items()}

    ode = {s: f"{units.get(s, 1.0) / time!r}*({rewritten(e)})" for s, e in plain["ode"].items()}
    initial = {}
    for state, value in plain.get("initial", {}).items():
        own = units.get(state, 1.0)
        text = isinstance(value, str)
        initial[state] = f"{own!r}*({rewritten(value)})" if text else scaled(value, own)
    of = {o: units.get(e, 1.0) if e in states else 1.0 for o, e in observables.items()}
    if not plain.get("noise"):
        of = dict.fromkeys(of, max(of.values(), key=lambda v: abs(math.log(v))))

    def observed(observable: str, text: str) -> str:
        if text in states and units.get(text, 1.0) == of[observable]:
            return text
        return f"{of[observable]!r}*({rewritten(text)})"

    noise = {}
    for observable, given in plain.get("noise", {}).items():
        sd = given.get("sd")
        if isinstance(sd, str) and sd != "estimate":
            raise ValueError("its noise is an expression")
        number = isinstance(sd, int | float)
        noise[observable] = {**given, "sd": sd * of[observable]} if number else dict(given)
    experiments = []
    for experiment in plain["experiment"]:
        if set(experiment) - {"name", "data", "t0", "initial"}:
            raise ValueError("its experiments have events or constants")
        data = {}
        for column, values in experiment["data"].items():
            own = of.get(column.removesuffix("_sd"), time if column == "t" else 1.0)
            data[column] = [v if v is None else v * own for v in values]
        changed = {**experiment, "data": data}
        if "t0" in experiment:
            changed["t0"] = experiment["t0"] * time
        if "initial" in experiment:
            changed["initial"] = {
                s: scaled(v, units.get(s, 1.0)) for s, v in experiment["initial"].items()
            }
        experiments.append(changed)
    mapping = {
        **plain,
        "ode": ode,
        "observables": {o: observed(o, e) for o, e in observables.items()},
        "parameters": {
            k: scaled(v, units.get(k, 1.0)) for k, v in plain.get("parameters", {}).items()
        },
        "initial": initial,
        "noise": noise,
        "experiment": experiments,
    }
    sizes = set(of.values())
    if not noise and len(sizes) > 1:
        raise ValueError("its sum of squares depends on the units")
    return Guise(mapping, units, sizes.pop() ** 2 if not noise else 1.0)
