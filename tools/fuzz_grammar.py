"""Random right models from a grammar, with data simulated by SciPy: part of `fuzz_models.py`.

A number always gives the same model: one to four states in different units, from 1e-15 to 1e13,
with rates that have roots, powers, Hill terms, exponentials, logarithms, kinks and conditions;
known, unknown and computed initial values, often zero; events, experiments, noise. Each model is
valid at its hidden true values: SciPy integrates it there, and the result, with or without noise,
is the data. So odefit takes no part in making the data, and no refusal can be due to an invalid
model.
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from scipy.integrate import solve_ivp

ATTEMPTS = 200
"""Largest number of models drawn for one number until SciPy can integrate one."""

EVALUATIONS = 20_000
"""Number of evaluations of a right-hand side after which another model is drawn."""

LARGEST = 1e4
"""Size of a state, in its own unit, beyond which another model is drawn."""

UNITS = (1.0, 1.0, 1.0, 1.0, 1e3, 1e-3, 1e6, 1e-6, 1e-9, 1e-12, 1e-15, 1e9, 1e13)
"""Units of states; most are near 1."""

FUNCTIONS: Mapping[str, Any] = {
    **{name: getattr(math, name) for name in "exp log log10 sqrt sin cos tan tanh".split()},
    "abs": abs,
    "min": min,
    "max": max,
    "if_": lambda condition, a, b: a if condition else b,
}
"""The functions that the texts of a model call, in Python."""


class UnusableError(Exception):
    """SciPy cannot follow a model that was drawn."""


@dataclass(frozen=True)
class FuzzModel:
    """A model that was drawn.

    Attributes
    ----------
    number
        The number that gives it.
    mapping
        The problem in format 1, with its data in place.
    truth
        The hidden values of the unknowns, by key.
    features
        The features of the model, in words.
    curves
        The observables at the hidden true values, by experiment, from SciPy's LSODA.
    followed
        Gives the same curves by another method of SciPy, more accurately.
    """

    number: int
    mapping: Mapping[str, Any]
    truth: Mapping[str, float]
    features: tuple[str, ...]
    curves: tuple[Mapping[str, list[float]], ...]
    followed: Callable[[], tuple[Mapping[str, list[float]], ...]] = field(compare=False)

    @property
    def toml(self) -> str:
        """The problem as a file."""
        return toml_text(self.mapping)


def fuzz_model(number: int) -> FuzzModel:
    """Return the model of a number."""
    for attempt in range(ATTEMPTS):
        draft = _Draft(np.random.default_rng([number, attempt]))
        try:
            strict = np.errstate(over="raise", divide="raise", invalid="raise")
            with strict, warnings.catch_warnings():
                warnings.simplefilter("error")  # messages of LSODA on a hopeless integration
                return _drawn(number, draft)
        except (UnusableError, ArithmeticError, ValueError, UserWarning):
            continue
    raise RuntimeError(f"no model in {ATTEMPTS} attempts for {number}")


@dataclass
class _Draft:
    """A model that is being drawn."""

    random: np.random.Generator
    units: dict[str, float] = field(default_factory=dict)
    ode: dict[str, str] = field(default_factory=dict)
    values: dict[str, float] = field(default_factory=dict)
    initial: dict[str, Any] = field(default_factory=dict)
    start: dict[str, float] = field(default_factory=dict)
    features: list[str] = field(default_factory=list)
    end: float = 1.0

    def chance(self, probability: float) -> bool:
        return bool(self.random.random() < probability)

    def choose(self, *options: Any) -> Any:
        return options[int(self.random.integers(len(options)))]

    def between(self, low: float, high: float) -> float:
        """A number of three digits, its logarithm uniform."""
        return float(f"{math.exp(self.random.uniform(math.log(low), math.log(high))):.3g}")

    def parameter(self, low: float, high: float, unit: float = 1.0) -> str:
        """A new parameter, in a unit."""
        name = f"p{len(self.values) + 1}"
        self.values[name] = float(f"{self.between(low, high) * unit:.3g}")
        return name

    def has(self, feature: str) -> None:
        if feature not in self.features:
            self.features.append(feature)


def _shape(d: _Draft, name: str) -> str:
    """A function of a state that is about 1 in its unit."""
    unit = d.units[name]

    def size() -> str:
        return d.parameter(0.3, 3.0, unit)

    kind = d.choose(
        *("linear", "linear", "root", "power", "negative power", "unknown power", "hill", "hill"),
        *("unknown hill", "exp", "log", "tanh", "min", "max", "abs", "if", "log10", "gauss"),
    )
    d.has(kind)
    if kind == "linear":
        return f"{name}/{size()}"
    if kind == "root":
        scaled = f"{name}/{size()}"
        roots = f"sqrt({scaled})", f"({scaled})^0.5", f"sqrt({name})/sqrt({size()})"
        return str(d.choose(*roots))
    if kind == "power":
        return f"({name}/{size()})^{d.choose('0.75', '1.5', '2', '3', '(1/3)', '0.1')}"
    if kind == "negative power":
        return f"(1 + {name}/{size()})^{d.choose('(-1)', '(-0.5)', '(-2)', '-1.5')}"
    if kind == "unknown power":
        return f"({name}/{size()})^{d.parameter(0.4, 2.5)}"
    if kind == "hill":
        half, n = size(), d.choose("2", "3", "4", "0.5", "1.5")
        return f"{name}^{n}/({half}^{n} + {name}^{n})"
    if kind == "unknown hill":
        half, n = size(), d.parameter(0.6, 5.0)
        return f"{name}^{n}/({half}^{n} + {name}^{n})"
    if kind == "exp":
        return str(d.choose(f"exp(-{name}/{size()})", f"(1 - exp(-{name}/{size()}))"))
    if kind == "log":
        return f"log(1 + {name}/{size()})"
    if kind == "log10":
        return f"log10(1 + {name}/{size()})"
    if kind == "tanh":
        return f"tanh({name}/{size()})"
    if kind == "min":
        return f"min({name}/{size()}, 1)"
    if kind == "max":
        return f"max({name} - {size()}, 0)/{unit!r}"
    if kind == "abs":
        return f"abs({name} - {size()})/{unit!r}"
    if kind == "gauss":
        return f"exp(-({name}/{size()})^2)"
    return f"if({name} > {size()}, {d.choose('1', '0')}, {d.choose('0.5', '0.2')})"


def _of_time(d: _Draft) -> str:
    kind = d.choose("sine", "cosine", "step", "decay", "smooth step")
    d.has(kind)
    if kind == "sine":
        return f"(1 + sin({d.parameter(0.5, 8.0, 1 / d.end)}*t))"
    if kind == "cosine":
        return f"cos(2*t/{d.end!r})^2"
    if kind == "step":
        return f"if(t < {d.between(0.2, 0.8) * d.end:.3g}, 1, {d.choose('0', '0.3')})"
    if kind == "decay":
        return f"exp(-{d.parameter(0.5, 5.0, 1 / d.end)}*t)"
    return f"(1 + tanh((t - {0.5 * d.end!r})/{0.2 * d.end!r}))"


def _equations(d: _Draft) -> None:
    count = d.choose(1, 1, 2, 2, 3, 4)
    names = ["x", "y", "z", "w"][:count]
    common = d.choose(*UNITS)
    mixed = d.chance(0.15)
    d.units = {n: d.choose(*UNITS) if mixed else common for n in names}
    if any(u != 1.0 for u in d.units.values()):
        d.has("mixed units" if mixed else "unit")
    d.end = d.choose(1.0, 10.0, 10.0, 24.0, 1e3, 1e-3, 1e6)
    for n in names:
        unit, rate = d.units[n], 1.0 / d.end
        parts = []
        if d.chance(0.85):
            k = d.parameter(0.5, 4.0, rate)
            parts.append(f"- {k}*{n}")
        else:
            v, half = d.parameter(0.5, 4.0, unit * rate), d.parameter(0.3, 3.0, unit)
            parts.append(f"- {v}*{n}/({half} + {n})")
        for _ in range(d.choose(0, 1, 1, 2, 2) if count < 3 else d.choose(0, 1, 1)):
            v = d.parameter(0.5, 5.0, unit * rate)
            sign = "+" if d.chance(0.75) else "-"
            factor = _of_time(d) if d.chance(0.2) else _shape(d, d.choose(*names))
            parts.append(f"{sign} {v}*{factor}")
        if d.chance(0.3):
            parts.append(f"+ {d.parameter(0.5, 4.0, unit * rate)}")
        d.ode[n] = " ".join(parts).removeprefix("+ ")
    if d.chance(0.03):
        d.ode[names[-1]] = "0"
        d.has("a constant state")


def _initial_values(d: _Draft) -> None:
    for n, unit in d.units.items():
        kind = d.choose("zero", "zero", "number", "number", "unknown", "expression")
        d.has(f"initial {kind}")
        value = float(f"{d.between(0.2, 5.0) * unit:.3g}")
        if kind == "zero":
            d.initial[n], value = d.choose(0, 0.0), 0.0
        elif kind == "number":
            d.initial[n] = value
        elif kind == "unknown":
            d.initial[n] = None
        else:
            p = d.parameter(0.3, 3.0, unit)
            d.initial[n] = d.choose(f"{p}/3", f"2*{p}", f"sqrt({p}^2)", f"{p}")
            value = _value(d.initial[n], d.values)
        d.start[n] = value


def _value(text: Any, names: Mapping[str, float]) -> float:
    """Return the value of a text of this grammar."""
    code = re.sub(r"\bif\(", "if_(", str(text)).replace("^", "**")
    # Only the grammar itself has written this text.
    found = eval(code, {"__builtins__": {}}, {**FUNCTIONS, **names})  # noqa: S307
    if isinstance(found, complex) or not math.isfinite(found):
        raise UnusableError
    return float(found)


def _experiments(d: _Draft) -> list[dict[str, Any]]:
    count = d.choose(1, 1, 1, 2, 3)
    if count > 1:
        d.has("several experiments")
    found = []
    for k in range(count):
        points = np.sort(d.random.uniform(0.02, 1.0, int(d.random.integers(6, 13)))) * d.end
        times = [float(f"{t:.4g}") for t in points]
        if d.chance(0.6):
            times = [0.0, *times]
        table: dict[str, Any] = {"name": f"run {k + 1}", "t0": 0.0, "times": sorted(set(times))}
        if k:
            n = d.choose(*d.units)
            table["initial"] = {n: float(f"{d.between(0.2, 3.0) * d.units[n]:.3g}")}
        if d.chance(0.2):
            d.has("events")
            table["event"] = [_event(d)]
        found.append(table)
    return found


def _event(d: _Draft) -> dict[str, Any]:
    n = d.choose(*d.units)
    dose = f"{n} + {d.between(0.5, 2.0) * d.units[n]:.3g}"
    text = d.choose(dose, dose, f"0.5*{n}", 0.0)
    at = float(f"{d.between(0.1, 0.9) * d.end:.3g}")
    if d.chance(0.2):
        at = 0.0
    return {"time": at, "assign": {n: text}}


def _observables(d: _Draft) -> dict[str, str]:
    names = list(d.units)
    found = {f"m{n}": n for n in names}
    if len(names) > 1 and d.chance(0.4):
        d.has("a state never measured")
        del found[f"m{d.choose(*names)}"]
    kind = d.choose("plain", "plain", "plain", "scaled", "root", "log", "sum")
    first = next(iter(found))
    n = found[first]
    if kind == "scaled":
        found[first] = f"{d.parameter(0.5, 3.0)}*{n}"
    elif kind == "root":
        found[first] = f"sqrt({n}/{d.units[n]!r})"
    elif kind == "log":
        found[first] = f"log({n}/{d.units[n]!r} + 0.1)"
    elif kind == "sum" and len(names) > 1:
        found[first] = " + ".join(f"{m}/{d.units[m]!r}" for m in names)
    if kind != "plain":
        d.has(f"{kind} observed")
    return found


def _followed(
    d: _Draft,
    table: Mapping[str, Any],
    observables: Mapping[str, str],
    method: Literal["LSODA", "Radau"] = "LSODA",
    accuracy: float = 1e-8,
) -> dict[str, np.ndarray]:
    """Return the observables at the times of an experiment, by SciPy."""
    names = list(d.units)
    size = np.array([d.units[n] for n in names])
    start = np.array([d.start[n] for n in names])
    for n, v in table.get("initial", {}).items():
        start[names.index(n)] = v
    evaluations = 0

    def rate(t: float, scaled: np.ndarray) -> np.ndarray:
        nonlocal evaluations
        evaluations += 1
        if evaluations > EVALUATIONS:
            raise UnusableError
        at = {**d.values, **dict(zip(names, (scaled * size).tolist(), strict=True)), "t": t}
        return np.asarray(np.array([_value(d.ode[n], at) for n in names]) / size)

    times, here, state = table["times"], 0.0, start / size
    seen: dict[float, np.ndarray] = {0.0: state} if times[0] == 0.0 else {}
    for stop, event in [*((e["time"], e) for e in table.get("event", [])), (times[-1], None)]:
        if stop > here:
            wanted = np.array([t for t in times if here < t < stop] + [stop])
            run = solve_ivp(
                rate,
                (here, stop),
                state,
                method,
                wanted,
                rtol=accuracy,
                atol=accuracy / 100,
                max_step=d.end,
            )
            if not run.success or np.abs(run.y).max() > LARGEST:
                raise UnusableError
            seen.update(zip(wanted.tolist(), run.y.T, strict=True))
            here, state = stop, run.y[:, -1]
        if event is not None:
            at = {**d.values, **dict(zip(names, (state * size).tolist(), strict=True)), "t": here}
            state = state.copy()
            for n, text in event["assign"].items():
                state[names.index(n)] = _value(text, at) / d.units[n]
    found: dict[str, list[float]] = {o: [] for o in observables}
    for t in times:
        at = {**d.values, **dict(zip(names, (seen[t] * size).tolist(), strict=True)), "t": t}
        for o, text in observables.items():
            found[o].append(_value(text, at))
    return {o: np.array(v) for o, v in found.items()}


def _noise(d: _Draft, name: str, size: float, kind: str, measured: str) -> dict[str, Any]:
    if kind == "sd":
        return {"sd": float(f"{0.03 * size:.3g}")}
    if kind == "estimate":
        return {"sd": "estimate"}
    if kind == "relative":
        return {"relative": d.between(0.02, 0.1)}
    if kind == "expression":
        return {"sd": f"{0.02 * size!r} + 0.03*abs({name})"}
    return {"transform": measured, "sd": d.between(0.02, 0.1)}


def _parameters(d: _Draft, truth: dict[str, float]) -> dict[str, Any]:
    """Return the table of parameters: bounds, scales, guesses and fixed values."""
    names = [*d.values]
    known = {n for n in names if d.chance(0.15)}
    style = d.choose("bounds", "bounds", "bounds", "wide", "wide", "log", "log", "positive", "none")
    d.has(f"bounds: {style}")
    special = d.random.random()
    if special < 0.06:
        d.has("all fixed but one")
        known = set(names) - {d.choose(*names)}
    elif special < 0.12:
        d.has("nothing unknown")
        known = set(names)
        for n, given in d.initial.items():
            d.initial[n] = d.start[n] if given is None else given
    while len(names) - len(known) > 6:
        known.add(d.choose(*[n for n in names if n not in known]))
    tables: dict[str, Any] = {}
    for n in names:
        if n in known:
            tables[n] = {"fixed": d.values[n]}
            continue
        tables[n], truth[n] = _bounds(d, style, d.values[n]), d.values[n]
    if d.chance(0.12) and special >= 0.12:
        d.has("an unused parameter")
        tables["unused"] = _bounds(d, style, 1.0)
        truth["unused"] = 1.0
    for n, given in d.initial.items():
        if given is None:
            d.initial[n], truth[n] = _bounds(d, style, d.start[n]), d.start[n]
    return tables


def _bounds(d: _Draft, style: str, value: float) -> dict[str, Any]:
    guess = {"guess": float(f"{value * d.between(0.6, 1.6):.3g}")} if d.chance(0.4) else {}
    if style == "none":
        return {**guess}
    if style == "positive":
        return {"lower": 0.0, **guess}
    reach = 1e4 if style == "wide" else 20.0
    low, high = float(f"{value / reach:.3g}"), float(f"{value * reach:.3g}")
    if style == "log":
        return {"lower": low, "upper": high, "scale": "log10", **guess}
    return {"lower": d.choose(low, 0.0), "upper": high, **guess}


def _drawn(number: int, d: _Draft) -> FuzzModel:
    _equations(d)
    _initial_values(d)
    observables = _observables(d)
    experiments = _experiments(d)
    truth: dict[str, float] = {}
    parameters = _parameters(d, truth)
    curves = [_followed(d, table, observables) for table in experiments]
    kind = d.choose("none", "none", "sd", "sd", "estimate", "relative", "expression", "transform")
    data = d.choose("noisy", "noisy", "noisy", "exact", "constant")
    d.has(f"noise: {kind}")
    d.has(f"data: {data}")
    noise: dict[str, Any] = {}
    for o in observables:
        together = np.concatenate([c[o] for c in curves])
        size = float(np.abs(together).max()) or 1.0
        if kind == "relative" or kind == "transform":
            positive = bool((together > 1e-3 * size).all())
            own = kind if positive and data != "constant" else "sd"
        else:
            own = kind
        if own != "none":
            noise[o] = _noise(d, o, size, own, d.choose("log", "log10"))
        for table, curve in zip(experiments, curves, strict=True):
            values = curve[o]
            if data == "constant":
                values = np.full(len(values), float(np.median(values)))
            elif data == "noisy" and own in ("relative", "transform"):
                values = values * np.exp(0.04 * d.random.normal(size=len(values)))
            elif data == "noisy":
                values = values + 0.03 * size * d.random.normal(size=len(values))
            digits = 17 if data == "exact" else 6
            column = [float(f"{v:.{digits}g}") for v in values]
            table.setdefault("data", {"t": table["times"]})[o] = column
    known = tuple({o: v.tolist() for o, v in c.items()} for c in curves)
    again = [{k: v for k, v in table.items() if k != "data"} for table in experiments]

    def followed() -> tuple[Mapping[str, list[float]], ...]:
        by_radau = [_followed(d, table, observables, "Radau", 1e-10) for table in again]
        return tuple({o: v.tolist() for o, v in c.items()} for c in by_radau)

    for table in experiments:
        del table["times"]
    if d.chance(0.1):
        d.has("values not measured")
        first = experiments[0]["data"]
        column = first[next(iter(observables))]
        column[1] = None
    mapping: dict[str, Any] = {
        "format": 1,
        "name": f"model {number}",
        "ode": d.ode,
        "observables": observables,
        "parameters": parameters,
        "initial": d.initial,
        "noise": noise,
        "experiment": experiments,
    }
    if len(truth) > sum(len(t["data"]["t"]) for t in experiments):
        raise UnusableError
    given = {k: v for k, v in mapping.items() if v != {}}
    return FuzzModel(number, given, truth, tuple(d.features), known, followed)


# Files ------------------------------------------------------------------------------------------


def toml_text(mapping: Mapping[str, Any]) -> str:
    """Return a problem as TOML."""
    lines = [f"{k} = {_inline(v)}" for k, v in mapping.items() if not isinstance(v, dict | list)]
    for key, section in mapping.items():
        if isinstance(section, dict):
            lines += ["", f"[{key}]", *(f"{k} = {_inline(v)}" for k, v in section.items())]
        elif isinstance(section, list):
            for table in section:
                lines += ["", f"[[{key}]]", *(f"{k} = {_inline(v)}" for k, v in table.items())]
    return "\n".join(lines) + "\n"


def _inline(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{k} = {_inline(v)}" for k, v in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_inline, value)) + "]"
    if value is None:
        return "nan"
    return f'"{value}"' if isinstance(value, str) else repr(value)
