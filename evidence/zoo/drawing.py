"""Random problems of the field from `blocks.toml`: a number gives a problem with its data.

A block is drawn in the units of a laboratory, with its sampling: five to forty points (at least
twenty where something switches), replicates, gaps, values below a limit, noise of some per cent,
wide bounds or none. Its data are a simulation by SciPy (`searching.py`) at known values, without
code of odefit.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from evidence.peers import by_scipy
from evidence.zoo.searching import ByBlock

BLOCKS: Mapping[str, Mapping[str, Any]] = tomllib.loads(
    Path(__file__).with_name("blocks.toml").read_text(encoding="utf-8")
)
NOISES = ("none", "none", "other", "sd", "sd", "relative", "estimate", "limit")
OTHERS = ("log", "student", "poisson")  # the scales that "other" takes in turn
COUNTS = 20.0  # largest value above which an observable without a unit may be a count
BOUNDS = ("positive", "positive", "large", "large", "box", "box", "factor", "nothing")
DIGITS = 4  # significant digits of data


@dataclass(frozen=True)
class Drawn:
    """A problem that was drawn."""

    number: int
    block: str
    mapping: Mapping[str, Any]  # in format 1, with its data
    truth: Mapping[str, float]  # the unknowns by key; no standard deviation of the noise
    by_hand: ByBlock  # the same problem for SciPy
    features: tuple[str, ...]

    @property
    def judge(self) -> ByBlock:
        """Return the same problem for SciPy, which judges an answer also where LSODA fails."""
        judge = copy(self.by_hand)
        judge.insistent = True
        return judge


class _Draft:
    """A block during the drawing of its numbers."""

    def __init__(self, entry: Mapping[str, Any], random: np.random.Generator) -> None:
        self.entry, self.random = entry, random
        self.amount = float(self.choice(entry.get("amounts", [1.0])))
        self.time = float(self.choice(entry.get("times", [1.0])))
        self.names: dict[str, float] = {}

    def choice(self, options: Any) -> Any:
        if not isinstance(options, list):
            return options
        return options[int(self.random.integers(len(options)))]

    def between(self, low: float, high: float) -> float:
        """A number of three digits, its logarithm uniform."""
        drawn = math.exp(self.random.uniform(math.log(low), math.log(high)))
        return float(f"{drawn:.3g}")

    def number(self, text: str, powers: tuple[float, ...] = (0.0, 0.0)) -> float:
        """Return the number of a text: a range or an expression, with powers of the units."""
        if text.startswith("="):
            expression, *rest = text[1:].rsplit(" ", 2) if text.count(" ") > 1 else (text[1:],)
            value = by_scipy.value(by_scipy.compiled(expression), self.names)
        else:
            low, high, *rest = text.split()
            if rest[:1] == ["shift"]:
                return round(float(self.random.uniform(float(low), float(high))), 1)
            value = self.between(float(low), float(high))
        own = [float(p) for p in rest] + list(powers)[len(rest) :]
        return float(f"{value * self.amount ** own[0] * self.time ** own[1]:.6g}")


def drawn(number: int) -> Drawn:
    """Return the problem of a number; blocks take turns."""
    name = list(BLOCKS)[number % len(BLOCKS)]
    for attempt in range(100):
        found = _attempt(number, name, np.random.default_rng([number, attempt, 35]))
        if found is not None:
            return found
    raise ValueError(f"the block {name!r} gives no problem for {number}")


def _attempt(number: int, name: str, random: np.random.Generator) -> Drawn | None:
    d = _Draft(BLOCKS[name], random)
    entry = d.entry
    hidden = {k: d.number(v) for k, v in entry.get("hidden", {}).items()}
    d.names.update(hidden)
    constants = {k: d.number(v) for k, v in entry.get("known", {}).items()}
    constants |= entry.get("switch", {})
    truth: dict[str, float] = {}
    for key, text in entry["unknown"].items():
        truth[key] = d.names[key] = d.number(text)
    initial: dict[str, Any] = {}
    fixed_units = "amounts" not in entry
    for state, given in entry["initial"].items():
        text = d.choice(given)
        if text.startswith("="):
            initial[state] = text[1:]
        elif text == "0":
            initial[state] = 0.0
        else:
            value = d.number(text.removeprefix("free "), (0.0 if fixed_units else 1.0, 0.0))
            if text.startswith("free"):
                truth[state], initial[state] = value, {}
            else:
                initial[state] = value
    span = d.number(entry["span"]) * d.time
    seen = d.choice(entry["seen"])
    noise = str(d.choice(list(NOISES)))
    level = d.between(0.01, 0.08)
    ode = {k: d.choice(v) for k, v in entry["ode"].items()}
    events = [
        {k: d.number(v) if k == "time" and v.startswith("=") else v for k, v in e.items()}
        for e in entry.get("event", ())
    ]
    experiments = _experiments(d, constants, span, len(truth), seen)
    bounds = str(d.choice(list(BOUNDS)))
    tables = {key: _bounded(d, bounds, value) for key, value in truth.items()}
    mapping: dict[str, Any] = {
        "format": 1,
        "name": f"zoo {number}: {name}",
        "ode": ode,
        "observables": dict(seen),
        "constants": constants,
        "inputs": {k: {"interpolation": "constant"} for k in entry.get("input", {})},
        "parameters": {k: tables[k] for k in entry["unknown"]},
        "initial": {k: tables[k] if v == {} else v for k, v in initial.items()},
        "noise": {},
        "experiment": [{**e, "event": events} if events else e for e in experiments],
    }
    sizes = _measured(number, mapping, entry, truth, d, noise, level)
    if sizes is None:
        return None
    by_hand = ByBlock(mapping, entry, min(sizes.values()))
    kind = " ".join(k for field in mapping["noise"].values() for k in field) or "no noise given"
    features = (kind, bounds, f"{by_hand.count} points")
    return Drawn(number, name, mapping, truth, by_hand, features)


def _experiments(
    d: _Draft, constants: dict[str, float], span: float, unknowns: int, seen: Mapping[str, str]
) -> list[dict[str, Any]]:
    """Return experiments with times and inputs, and 1 in place of the data."""
    across = d.entry.get("across", {})
    levels: list[dict[str, float]] = [{}]
    for name, text in across.items():
        low, high, *rest = text.split()
        count = int(d.random.integers(3, 6))
        space = np.linspace if rest == ["line"] else np.geomspace
        unit = 1.0 if rest == ["line"] else d.amount ** float((rest or ["0"])[0])
        levels = [{name: float(f"{v * unit:.4g}")} for v in space(float(low), float(high), count)]
        constants |= levels[0]
    least, most = map(float, d.entry.get("points", "5 40").split())
    total = max(round(d.between(least, most)), unknowns + 2)
    found = []
    for k, level in enumerate(levels):
        points = max(math.ceil(total / len(levels)), 3)
        kind = d.choice(["even", "even", "geometric", "scattered"])
        if kind == "even":
            times = np.linspace(0, 1, points + 1)[d.random.integers(0, 2) :]
        elif kind == "geometric":
            times = np.geomspace(0.03, 1, points)
        else:
            times = np.sort(d.random.uniform(0.02, 1, points))
        if points > 10 and d.random.random() < 0.2:  # a gap
            begin = d.random.uniform(0.2, 0.6)
            times = times[(times < begin) | (times > begin + 0.25)]
        times = np.unique([float(f"{t * span:.4g}") for t in times])
        if len(times) < 20 and d.random.random() < 0.2:  # replicates
            times = np.repeat(times, 2)
        data: dict[str, list[float | None]] = {"t": times.tolist()}
        data |= {name: [1.0] * len(times) for name in seen}
        for name, text in d.entry.get("input", {}).items():
            low, high = map(float, text.split())
            knots = np.round(np.linspace(0, 0.95 * span, int(d.random.integers(6, 16))), 6)
            values = d.random.uniform(low, high, len(knots)) * (d.random.random(len(knots)) < 0.6)
            rows: list[tuple[float, float | None]] = [(t, None) for t in times.tolist()]
            rows += list(zip(knots.tolist(), np.round(values, 3).tolist(), strict=True))
            rows.sort(key=lambda row: row[0])
            data = {k: [None] * len(knots) for k in data}
            data["t"], data[name] = [t for t, _ in rows], [v for _, v in rows]
            for observable in seen:
                data[observable] = [1.0 if v is None else None for _, v in rows]
        constants_of = {"constants": level} if level else {}
        found.append({"name": f"run {k + 1}", "t0": 0.0, "data": data, **constants_of})
    return found


def _bounded(d: _Draft, kind: str, value: float) -> dict[str, Any]:
    """The bounds of an unknown, as people give them."""
    if kind == "positive":
        return {"lower": 0.0}
    if kind == "large":
        return {"lower": 0.0, "upper": 10.0 ** (math.ceil(math.log10(value)) + 3)}
    if kind == "box":
        middle = math.log10(value) + d.random.uniform(-1, 1)
        low, high = 10.0 ** round(middle - 3), 10.0 ** round(middle + 3)
        return {"lower": low, "upper": high, "scale": "log10"}
    if kind == "factor":
        return {"lower": float(f"{value / 30:.3g}"), "upper": float(f"{value * 30:.3g}")}
    return {}


def _measured(
    number: int,
    mapping: dict[str, Any],
    entry: Mapping[str, Any],
    truth: Mapping[str, float],
    d: _Draft,
    noise: str,
    level: float,
) -> dict[str, float] | None:
    """Fill in data with noise; return the size of each observable, or None without data."""
    exact = ByBlock(mapping, entry, 1e-3 * d.amount)
    try:
        curves = [exact.predicted(run, truth) for run in exact.runs]
    except ArithmeticError:
        return None
    sizes = {k: max(float(np.abs(c[k]).max()) for c in curves) for k in mapping["observables"]}
    least = {k: min(float(c[k].min()) for c in curves) for k in mapping["observables"]}
    flat = [k for k, size in sizes.items() if not 0.05 * size < size - least[k] < math.inf]
    if flat:
        return None
    positive = min(least.values()) > 1e-3 * min(sizes.values())
    if noise == "other":
        noise = OTHERS[number // len(BLOCKS) % len(OTHERS)]
    if noise == "poisson" and (d.amount != 1.0 or min(sizes.values()) < COUNTS):
        noise = "log"
    if noise in ("relative", "log") and not positive:
        noise = "student" if noise == "log" else "sd"
    if noise == "estimate" and len(sizes) > 1:
        noise = "none"
    for k, size in sizes.items():
        sd = float(f"{level * size:.3g}")
        fields: dict[str, dict[str, Any]] = {
            "none": {},
            "sd": {"sd": sd},
            "relative": {"relative": level},
            "estimate": {"sd": "estimate"},
            "limit": {"sd": sd, "lower_limit": float(f"{2 * sd:.3g}")},
            "log": {"transform": "log", "sd": level},
            "student": {"loss": "student", "sd": sd},
            "poisson": {"distribution": "poisson"},
        }
        if fields[noise]:
            mapping["noise"][k] = fields[noise]
        for run, curve, experiment in zip(exact.runs, curves, mapping["experiment"], strict=True):
            rows = dict(zip(run.times.tolist(), curve[k].tolist(), strict=True))
            column = experiment["data"][k]
            for i, held in enumerate(column):
                if held is not None:
                    value = rows[experiment["data"]["t"][i]]
                    column[i] = _noisy(value, noise, level, fields[noise], sd, d.random)
    return sizes


def _noisy(
    value: float,
    noise: str,
    level: float,
    field: Mapping[str, Any],
    sd: float,
    random: np.random.Generator,
) -> float:
    if noise == "poisson":
        return float(random.poisson(max(value, 0.0)))
    draw = float(random.standard_t(4) if noise == "student" else random.standard_normal())
    if noise == "log":
        value *= math.exp(level * draw)
    else:
        value += (level * abs(value) if noise == "relative" else sd) * draw
    return float(f"{max(value, field.get('lower_limit', -math.inf)):.{DIGITS}g}")


def sampled(name: str, entry: Mapping[str, Any], number: int) -> Drawn:
    """Return a problem with the data set of a number, simulated by SciPy.

    The `entry` has equations, true values with their bounds, times and noise, as in ``hills.toml``.
    """
    random = np.random.default_rng([number, len(name), 37])
    truth = {key: float(value) for key, (value, _, _) in entry["unknown"].items()}
    bounds = {
        key: {
            "lower": float(f"{value / below:.3g}"),
            "upper": float(f"{value * above:.3g}"),
            "scale": "log10",
        }
        for key, (value, below, above) in entry["unknown"].items()
    }
    free = {key: bounds[key] for key in entry["ode"] if key in bounds}
    first, last, count = entry["times"]
    space = np.geomspace if entry.get("spacing") == "geometric" else np.linspace
    times = [float(f"{t:.{DIGITS}g}") for t in space(first, last, count)]
    mapping: dict[str, Any] = {
        "format": 1,
        "name": f"{name} {number}",
        "ode": entry["ode"],
        "constants": entry.get("constants", {}),
        "observables": entry["seen"],
        "parameters": {key: table for key, table in bounds.items() if key not in free},
        "initial": {**entry["initial"], **free},
        "noise": {},
        "experiment": [
            {"name": "run", "t0": 0.0, "data": {"t": times} | dict.fromkeys(entry["seen"], times)}
        ],
    }
    exact = ByBlock(mapping, {}, 1e-3)
    data = dict(mapping["experiment"][0]["data"])
    for key, curve in exact.predicted(exact.runs[0], truth).items():
        if entry["noise"] == "poisson":
            data[key] = random.poisson(np.maximum(curve, 0.0)).astype(float).tolist()
            mapping["noise"][key] = {"distribution": "poisson"}
            continue
        sd = float(f"{entry['level'] * np.abs(curve).max():.3g}")
        noisy = curve + sd * random.standard_normal(len(curve))
        data[key] = [float(f"{value:.{DIGITS}g}") for value in noisy]
        told = {"sd": {"sd": sd}, "estimate": {"sd": "estimate"}, "none": None}[entry["noise"]]
        if told is not None:
            mapping["noise"][key] = told
    mapping["experiment"][0]["data"] = data
    by_hand = ByBlock(mapping, {}, 1e-3)
    return Drawn(number, name, mapping, truth, by_hand, (entry["noise"],))
