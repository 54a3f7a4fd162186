"""The same problem in other guises: part of `metamorphic.py`.

A guise is a function of a problem in format 1 and of random numbers. It returns the problem in its
guise and the data to undo it, or raises NotSoError where it does not apply. Names in expressions
become what they are in the guise: exact to rounding.
"""

from __future__ import annotations

import math
import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import odefit
from evidence.agreement.logarithms import logarithms
from odefit.expressions.grammar import RESERVED
from odefit.problem import problem_from_mapping, problem_to_mapping

Plain = Mapping[str, Any]  # a problem in format 1
Units = Mapping[str, float]  # the size of each old unit in the new unit
BOUNDS = ("lower", "upper", "guess", "fixed")


class NotSoError(Exception):
    """A guise does not apply to a problem."""


@dataclass(frozen=True)
class Guise:
    """A problem in a guise, and the way back."""

    mapping: Plain
    units: Units = field(default_factory=dict)  # by plain key, the factor of its values
    names: Mapping[str, str] = field(default_factory=dict)  # plain names by those of the guise
    objective: float = 1.0  # the factor of the objective
    ordered: bool = False  # unknowns are those of the plain problem in order, under other names
    shifts: Mapping[str, float] = field(default_factory=dict)  # by plain key, added to logarithms


@dataclass(frozen=True)
class _Writing:
    """How names and the time are written."""

    units: Units = field(default_factory=dict)
    time: float = 1.0
    shift: float = 0.0
    names: Mapping[str, str] = field(default_factory=dict)  # new names by plain ones
    shifts: Mapping[str, float] = field(default_factory=dict)  # added to logarithms of quantities

    def unit(self, name: str) -> float:
        return self.units.get(name, 1.0)

    def name(self, key: str) -> str:
        """The new name of a variable, or of a column with its standard deviations."""
        for end in ("_sd", "_cens"):
            if key not in self.names and key.removesuffix(end) in self.names:
                return self.names[key.removesuffix(end)] + end
        return self.names.get(key, key)

    def text(self, given: Any) -> Any:
        """An expression in plain values."""
        if not isinstance(given, str):
            return given

        def one(match: re.Match[str]) -> str:
            name = match.group()
            if name in RESERVED:
                return name
            if name == "t":
                plain = self.time == 1.0 and self.shift == 0.0
                return name if plain else f"((t - {self.shift!r})/{self.time!r})"
            own = self.name(name)
            if name in self.shifts:
                return f"({own} - ({self.shifts[name]!r}))"
            return own if self.unit(name) == 1.0 else f"({own}/({self.unit(name)!r}))"

        return re.sub(r"(?<![\w.])[A-Za-z_]\w*", one, given)

    def value(self, given: Any, name: str) -> Any:
        """A value of a name: a number, an expression, or the table of an unknown."""
        unit = self.unit(name)
        if name in self.shifts and isinstance(given, Mapping):
            return {k: v + self.shifts[name] if k in BOUNDS else v for k, v in given.items()}
        if isinstance(given, str):
            return self.text(given) if unit == 1.0 else f"({unit!r})*({self.text(given)})"
        if not isinstance(given, Mapping):
            return given if unit == 1.0 else given * unit
        if unit == 1.0:
            return dict(given)
        if "prior" in given or (unit < 0 and given.get("scale", "linear") != "linear"):
            raise NotSoError("an unknown has a prior or a scale")
        table = {k: v * unit if k in BOUNDS else v for k, v in given.items()}
        if unit < 0:
            swapped = {"lower": table.pop("upper", None), "upper": table.pop("lower", None)}
            table |= {k: v for k, v in swapped.items() if v is not None}
        return table

    def at(self, given: Any) -> Any:
        """A time."""
        if self.time == 1.0 and self.shift == 0.0:
            return self.text(given)
        if isinstance(given, str):
            far = given in ("inf", "-inf")
            return given if far else f"{self.shift!r} + {self.time!r}*({self.text(given)})"
        return self.shift + self.time * given

    def event(self, given: Plain) -> dict[str, Any]:
        found = dict(given)
        for key in ("time", "until"):
            if key in found:
                found[key] = self.at(found[key])
        if "times" in found:
            found["times"] = [self.at(t) for t in found["times"]]
        if "every" in found:
            found["every"] *= self.time
        if "when" in found:
            found["when"] = self.text(found["when"])
        found["assign"] = {self.name(k): self.value(v, k) for k, v in given["assign"].items()}
        return found


def written(plain: Plain, writing: _Writing) -> Guise:
    """Return a problem with other units, another time or other names."""
    w, states = writing, list(plain["ode"])
    observables = plain.get("observables") or {s: s for s in states}
    of = {o: w.unit(e) if e in states else 1.0 for o, e in observables.items()}
    noise, weighted = plain.get("noise", {}), _weighted(plain)
    if not weighted:  # squares of all are added
        of = dict.fromkeys(of, max(of.values(), key=lambda v: abs(math.log(abs(v)))))
    with_of = _Writing(
        {**{k: v for k, v in of.items() if k not in states}, **w.units}, names=w.names
    )

    def observed(name: str, text: str) -> str:
        if text in states and w.unit(text) == of[name]:
            return w.name(text)
        return w.text(text) if of[name] == 1.0 else f"({of[name]!r})*({w.text(text)})"

    def spread(name: str, given: Plain) -> dict[str, Any]:
        size, table = abs(of[name]), dict(given)
        if of[name] != 1.0 and set(given) - {"sd", "relative"}:
            raise NotSoError("its noise has more than a standard deviation")
        sd = given.get("sd")
        if isinstance(sd, str) and sd != "estimate":
            table["sd"] = f"{size!r}*({with_of.text(sd)})"
        elif isinstance(sd, int | float):
            table["sd"] = sd * size
        return table

    experiments = []
    for given in plain["experiment"]:
        if isinstance(given.get("steady_state"), Mapping):
            raise NotSoError("it has repeated doses")
        found = dict(given)
        found["t0"] = w.at(given["t0"])
        found["data"] = {
            w.name(k): [w.at(v) for v in column]
            if k == "t"
            else [v if v is None else v * of.get(k.removesuffix("_sd"), 1.0) for v in column]
            for k, column in given["data"].items()
        }
        if "initial" in given:
            found["initial"] = {w.name(k): w.value(v, k) for k, v in given["initial"].items()}
        if "constants" in given:
            found["constants"] = {w.name(k): w.text(v) for k, v in given["constants"].items()}
        if "event" in given:
            found["event"] = [w.event(e) for e in given["event"]]
        experiments.append(found)
    mapping = {
        **plain,
        "ode": {
            w.name(s): w.text(e)
            if (rate := w.unit(s) / w.time) == 1.0
            else f"({rate!r})*({w.text(e)})"
            for s, e in plain["ode"].items()
        },
        "algebraic": {w.name(k): w.text(e) for k, e in plain.get("algebraic", {}).items()},
        "observables": {w.name(o): observed(o, e) for o, e in observables.items()},
        "constants": {w.name(k): v for k, v in plain.get("constants", {}).items()},
        "inputs": {w.name(k): v for k, v in plain.get("inputs", {}).items()},
        "parameters": {w.name(k): w.value(v, k) for k, v in plain.get("parameters", {}).items()},
        "initial": {w.name(k): w.value(v, k) for k, v in plain.get("initial", {}).items()},
        "noise": {w.name(o): spread(o, v) for o, v in noise.items()},
        "experiment": experiments,
    }
    mapping.pop("units", None)
    units = {**w.units, **{f"{o}_sd": abs(v) for o, v in of.items()}}
    squares = 1.0 if weighted else next(iter(of.values())) ** 2
    return Guise(mapping, units, {v: k for k, v in w.names.items()}, squares, shifts=w.shifts)


def _weighted(plain: Plain) -> bool:
    """Return whether measurements have standard deviations, in the noise or in columns."""
    columns = [k for e in plain["experiment"] for k in e["data"]]
    return bool(plain.get("noise")) or any(k.endswith("_sd") for k in columns)


def _power(random: np.random.Generator, decades: int) -> float:
    return float(10.0 ** random.integers(-decades, decades + 1))


def _states_in_units(plain: Plain, random: np.random.Generator) -> Guise:
    states = plain["ode"]
    if not _weighted(plain):  # measurements in one unit, of which squares are added
        return written(plain, _Writing(dict.fromkeys(states, _power(random, 12))))
    return written(plain, _Writing({s: _power(random, 12) for s in states}))


def _time_in_unit(plain: Plain, random: np.random.Generator) -> Guise:
    return written(plain, _Writing(time=_power(random, 9)))


def _time_shifted(plain: Plain, random: np.random.Generator) -> Guise:
    """Count time in seconds since 1970: rounding leaves 12 digits of a span of days to weeks."""
    unit = 10.0 ** round(6.0 - math.log10(_span(plain)))
    return written(plain, _Writing(time=unit, shift=1.7e9))


def _unknowns_in_units(plain: Plain, random: np.random.Generator) -> Guise:
    """Unknowns times powers of ten; the logarithm of a quantity is shifted instead."""
    named = [k for k, v in plain["parameters"].items() if "prior" not in v]
    powers = {k: _power(random, 12) for k in _some(named)}
    shifts = {k: math.log(powers[k]) for k in logarithms(plain, named)}
    units = {k: v for k, v in powers.items() if k not in shifts}
    return written(plain, _Writing(units, shifts=shifts))


def _other_sign(plain: Plain, random: np.random.Generator) -> Guise:
    seen = set((plain.get("observables") or {s: s for s in plain["ode"]}).values())
    hidden = [s for s in plain["ode"] if s not in seen]
    chosen = [str(random.choice(hidden))] if hidden else plain["ode"]
    return written(plain, _Writing(dict.fromkeys(chosen, -1.0)))


def _other_names(plain: Plain, random: np.random.Generator) -> Guise:
    sections = ("ode", "algebraic", "observables", "constants", "inputs", "parameters")
    names = dict.fromkeys(name for s in sections for name in plain.get(s, {}))
    for e in plain["experiment"]:
        names |= dict.fromkeys(e.get("constants", {}))
    numbers = random.permutation(len(names)).tolist()
    new = {name: f"q{k}_{name[:1]}" for name, k in zip(names, numbers, strict=True)}
    return written(plain, _Writing(names=new))


def _some(found: Sequence[Any]) -> Sequence[Any]:
    if not found:
        raise NotSoError("it has nothing of the kind")
    return found


def _tables(plain: Plain, change: Callable[[dict[str, Any]], dict[str, Any] | None]) -> Guise:
    """Return a problem whose unknowns have other tables; None leaves a table unchanged."""
    changed = 0

    def one(given: Any) -> Any:
        nonlocal changed
        new = change(dict(given)) if isinstance(given, Mapping) and "fixed" not in given else None
        changed += new is not None
        return given if new is None else new

    found = {**plain}
    for section in ("parameters", "initial"):
        found[section] = {k: one(v) for k, v in plain.get(section, {}).items()}
    if not changed:
        raise NotSoError("its scales are so")
    return Guise(found)


def _on_log_scale(plain: Plain, random: np.random.Generator) -> Guise:
    def change(table: dict[str, Any]) -> dict[str, Any] | None:
        linear = table.get("scale", "linear") == "linear" and table.get("lower", 0.0) > 0
        return {**table, "scale": "log10"} if linear and "prior" not in table else None

    return _tables(plain, change)


def _on_linear_scale(plain: Plain, random: np.random.Generator) -> Guise:
    def change(table: dict[str, Any]) -> dict[str, Any] | None:
        scale = table.pop("scale", "linear")
        return table if scale != "linear" and "prior" not in table else None

    return _tables(plain, change)


def _shuffled(given: Mapping[str, Any], random: np.random.Generator) -> dict[str, Any]:
    names = list(given)
    return {names[i]: given[names[i]] for i in random.permutation(len(names))}


def _rows_permuted(plain: Plain, random: np.random.Generator) -> Guise:
    found = []
    for e in plain["experiment"]:
        order = random.permutation(len(e["data"]["t"]))
        data = {k: [column[i] for i in order] for k, column in e["data"].items()}
        found.append({**e, "data": data})
    return Guise({**plain, "experiment": found})


def _columns_permuted(plain: Plain, random: np.random.Generator) -> Guise:
    found = [{**e, "data": _shuffled(e["data"], random)} for e in plain["experiment"]]
    observables = _shuffled(plain.get("observables") or {s: s for s in plain["ode"]}, random)
    return Guise({**plain, "observables": observables, "experiment": found})


def _states_permuted(plain: Plain, random: np.random.Generator) -> Guise:
    if len(plain["ode"]) < 2:
        raise NotSoError("it has one state")
    sections = {k: _shuffled(plain[k], random) for k in ("ode", "parameters") if plain.get(k)}
    observables = plain.get("observables") or {s: s for s in plain["ode"]}
    return Guise({**plain, **sections, "observables": observables})


def _experiments_permuted(plain: Plain, random: np.random.Generator) -> Guise:
    if len(plain["experiment"]) < 2:
        raise NotSoError("it has one experiment")
    order = np.roll(np.arange(len(plain["experiment"])), 1 + random.integers(2))
    return Guise({**plain, "experiment": [plain["experiment"][i] for i in order]})


def _redundant_state(plain: Plain, random: np.random.Generator) -> Guise:
    rate = float(random.uniform(0.1, 1.0)) / _span(plain)
    observables = plain.get("observables") or {s: s for s in plain["ode"]}
    ode = {"spare_state": f"-{rate!r}*spare_state", **plain["ode"]}
    initial = {**plain.get("initial", {}), "spare_state": 1.0}
    return Guise({**plain, "ode": ode, "initial": initial, "observables": observables})


def _span(plain: Plain) -> float:
    times = [t for e in plain["experiment"] for t in e["data"]["t"] if not isinstance(t, str)]
    return (max(times) - min(e["t0"] for e in plain["experiment"])) or 1.0


def _experiment_split(plain: Plain, random: np.random.Generator) -> Guise:
    first, *rest = plain["experiment"]
    data, own = first["data"], [k for k, v in plain["parameters"].items() if "per_experiment" in v]
    free = [v for v in first.get("initial", {}).values() if isinstance(v, Mapping)]
    if own or free or plain.get("inputs") or len(data["t"]) < 4:
        raise NotSoError("its experiment has what belongs to it alone")
    halves = []
    for part in range(2):
        columns = {k: column[part::2] for k, column in data.items()}
        halves.append({**first, "name": f"half {part + 1}", "data": columns})
    return Guise({**plain, "experiment": [*halves, *rest]})


def _event_as_if(plain: Plain, random: np.random.Generator) -> Guise:
    """Write known changes of constants as conditions on the time in the equations."""
    events = [e.get("event", []) for e in plain["experiment"]]
    changes: dict[str, str] = {}
    constants = plain.get("constants", {})
    if not events[0] or any(e != events[0] for e in events):
        raise NotSoError("its experiments have no events, or different ones")
    for event in events[0]:
        times = event.get("times", [event.get("time")])
        if None in times or len(times) > 1 or set(event["assign"]) - set(constants):
            raise NotSoError("its events are no changes of constants at a time")
        for name, new in event["assign"].items():
            before = changes.get(name, repr(constants[name]))
            changes[name] = f"if(t > {times[0]}, {new}, {before})"

    def conditional(text: Any) -> Any:
        for name, new in changes.items():
            text = re.sub(rf"\b{name}\b", f"({new})", text) if isinstance(text, str) else text
        return text

    experiments = [{k: v for k, v in e.items() if k != "event"} for e in plain["experiment"]]
    ode = {k: conditional(v) for k, v in plain["ode"].items()}
    return Guise({**plain, "ode": ode, "experiment": experiments})


def _as_dae(plain: Plain, random: np.random.Generator) -> Guise:
    rates = {f"rate_of_{k}": f"rate_of_{k} - ({v})" for k, v in plain["ode"].items()}
    observables = plain.get("observables") or {s: s for s in plain["ode"]}
    ode = {k: f"rate_of_{k}" for k in plain["ode"]}
    algebraic = {**plain.get("algebraic", {}), **rates}
    return Guise({**plain, "ode": ode, "algebraic": algebraic, "observables": observables})


def _defined(plain: Plain, random: np.random.Generator) -> Guise:
    ode = {k: f"rate_of_{k}" for k in plain["ode"]}
    definitions = {f"rate_of_{k}": str(v) for k, v in plain["ode"].items()}
    return Guise({**plain, "ode": ode, "definitions": definitions})


def _by_petab(plain: Plain, random: np.random.Generator) -> Guise:
    with tempfile.TemporaryDirectory() as folder:
        odefit.save(problem_from_mapping(plain), Path(folder) / "petab")
        back = odefit.load(Path(folder) / "petab" / "problem.yaml")
        mapping = problem_to_mapping(back)
        if not _weighted(plain):  # which PEtab writes as a standard deviation of 1
            mapping.pop("noise")
        return Guise(mapping, ordered=True)


GUISES: Mapping[str, Callable[[Plain, np.random.Generator], Guise]] = {
    "states in other units": _states_in_units,
    "time in another unit": _time_in_unit,
    "time shifted to 1.7e9": _time_shifted,
    "unknowns in other units": _unknowns_in_units,
    "a state of other sign": _other_sign,
    "on log scale": _on_log_scale,
    "on linear scale": _on_linear_scale,
    "rows permuted": _rows_permuted,
    "columns permuted": _columns_permuted,
    "states permuted": _states_permuted,
    "experiments permuted": _experiments_permuted,
    "other names": _other_names,
    "a redundant state": _redundant_state,
    "an experiment split": _experiment_split,
    "an event as if": _event_as_if,
    "ODE as DAE": _as_dae,
    "rates defined": _defined,
    "by PEtab and back": _by_petab,
}
