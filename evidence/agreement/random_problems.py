"""Random small problems with synthetic data, from a grammar: part of `differential.py`, `soak.py`.

A seed gives a problem: equations (flows between states, mass action, Michaelis-Menten, Hill,
growth, oscillators), inputs, switches, an algebraic variable, events, one to three experiments,
unknown initial values, observables with unknown scales, and noise. Its data are a simulation by
`by_scipy.py` at values that are known, so that nothing of odefit takes part.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from evidence.peers.by_scipy import ByHand

MAX_UNKNOWNS = 6
RANGE = 30.0  # bounds are the true value over this and times this
LARGEST = 300.0  # observables beyond this in size are drawn again

NOISES = (
    *("none", "none", "sd", "sd", "relative", "log", "log10", "estimate", "estimate"),
    *("log estimate", "expression", "student", "poisson"),
)


@dataclass(frozen=True)
class RandomProblem:
    """A problem that was drawn."""

    seed: int
    mapping: Mapping[str, Any]  # in format 1, with its data in place
    truth: Mapping[str, float]  # true values of the unknowns by key
    bounds: Mapping[str, tuple[float, float]]  # their bounds
    switches: tuple[float, ...]  # times at which comparisons of the time change
    features: tuple[str, ...]  # what it has, in words

    @property
    def by_hand(self) -> ByHand:
        """The same problem for SciPy."""
        # Comparisons of the time are those of a piece of the trajectory.
        ode = {k: v.replace("t <", "inside <") for k, v in self.mapping["ode"].items()}
        return ByHand({**self.mapping, "ode": ode}, self.switches)


class _Draft:
    """A problem that is being drawn."""

    def __init__(self, random: np.random.Generator) -> None:
        self.random = random
        self.parameters: dict[str, float] = {}
        self.constants: dict[str, float] = {}
        self.ode: dict[str, str] = {}
        self.initial: dict[str, float] = {}
        self.features: list[str] = []
        self.switches: list[float] = []
        self.inputs: dict[str, str] = {}
        self.end = 1.0

    def chance(self, probability: float) -> bool:
        return bool(self.random.random() < probability)

    def between(self, low: float, high: float) -> float:
        """A number, its logarithm uniform, of three digits."""
        drawn = math.exp(self.random.uniform(math.log(low), math.log(high)))
        return float(f"{drawn:.3g}")

    def choose(self, *options: Any) -> Any:
        return options[int(self.random.integers(len(options)))]

    def parameter(self, name: str, low: float, high: float) -> str:
        """A new unknown, or a known constant where there are enough of them."""
        name = f"{name}{len(self.parameters) + len(self.constants) + 1}"
        many = len(self.parameters) >= MAX_UNKNOWNS - 1
        known = many or self.chance(0.1)
        (self.constants if known else self.parameters)[name] = self.between(low, high)
        return name

    def has(self, feature: str) -> None:
        if feature not in self.features:
            self.features.append(feature)


def _network(d: _Draft) -> None:
    """Flows between states, each with a loss, and a few laws beside them."""
    names = ["A", "B", "C"][: int(d.random.integers(1, 4))]
    d.end = d.between(3.0, 12.0)
    terms: dict[str, list[str]] = {name: [] for name in names}
    for k, name in enumerate(names):
        law = d.choose("linear", "linear", "michaelis-menten", "hill loss")
        d.has(law)
        if law == "linear":
            rate = f"{d.parameter('k', 0.1, 1.5)}*{name}"
        elif law == "michaelis-menten":
            rate = f"{d.parameter('v', 0.3, 2.0)}*{name}/({d.parameter('km', 0.3, 3.0)} + {name})"
        else:
            half = d.parameter("h", 0.5, 2.0)
            rate = f"{d.parameter('v', 0.3, 2.0)}*{name}^2/({half}^2 + {name}^2)"
        terms[name].append(f"- {rate}")
        if k + 1 < len(names) and d.chance(0.7):
            terms[names[k + 1]].append(f"+ {rate}")
        d.initial[name] = d.between(0.5, 5.0) if k == 0 or d.chance(0.5) else 0.0
    for law in d.random.permutation(
        ["mass action", "dimer", "hill", "repression", "supply", "logistic", "forcing", "switch"]
    )[: int(d.random.integers(0, 3))]:
        at = d.choose(*names)
        other = d.choose(*names)
        if law == "mass action" and len(names) > 1:
            a, b = names[:2]
            rate = f"{d.parameter('k', 0.05, 0.5)}*{a}*{b}"
            for name in (a, b):
                terms[name].append(f"- {rate}")
            if len(names) > 2:
                terms[names[2]].append(f"+ {rate}")
        elif law == "dimer":
            rate = f"{d.parameter('k', 0.02, 0.2)}*{at}^2"
            terms[at].append(f"- 2*{rate}")
        elif law == "hill":
            half = d.parameter("h", 0.5, 2.0)
            terms[at].append(f"+ {d.parameter('v', 0.2, 1.0)}*{other}^2/({half}^2 + {other}^2)")
        elif law == "repression":
            half = d.parameter("h", 0.5, 2.0)
            terms[at].append(f"+ {d.parameter('v', 0.3, 1.5)}/(1 + ({other}/{half})^2)")
        elif law == "supply":
            terms[at].append(f"+ {d.parameter('s', 0.1, 1.0)}")
        elif law == "logistic":
            most = d.parameter("m", 3.0, 9.0)
            terms[at].append(f"+ {d.parameter('r', 0.2, 1.0)}*{at}*(1 - {at}/{most})")
        elif law == "forcing":
            terms[at].append(f"+ {d.parameter('f', 0.2, 1.0)}*(1 + sin(2*t))")
        elif law == "switch":
            time = d.between(0.2 * d.end, 0.7 * d.end)
            d.switches.append(time)
            terms[at].append(f"+ {d.parameter('s', 0.3, 1.5)}*piecewise(1, t < {time!r}, 0)")
        else:
            continue
        d.has(str(law))
    d.ode = {name: " ".join(parts).removeprefix("+ ") for name, parts in terms.items()}
    if d.chance(0.3):
        kind = d.choose("linear", "constant", "cubic")
        d.has(f"{kind} input")
        d.inputs["u"] = kind
        d.ode[names[0]] += f" + {d.parameter('b', 0.3, 2.0)}*u"


def _growth(d: _Draft) -> None:
    law = d.choose("logistic", "gompertz", "infection", "predator")
    d.has(law)
    d.end = d.between(6.0, 15.0)
    if law in ("logistic", "gompertz"):
        logistic = law == "logistic"
        rate = d.parameter("r", *((0.3, 1.2) if logistic else (0.2, 0.8)))
        most = d.parameter("m", 4.0, 20.0)
        d.ode = {"N": f"{rate}*N*" + (f"(1 - N/{most})" if logistic else f"log({most}/N)")}
        d.initial = {"N": d.between(0.2, 1.0)}
    elif law == "infection":
        spread, end = d.parameter("b", 0.8, 2.0), d.parameter("g", 0.1, 0.5)
        rate = f"{spread}*S*I/10"
        d.ode = {"S": f"-{rate}", "I": f"{rate} - {end}*I"}
        d.initial = {"S": d.between(8.0, 12.0), "I": d.between(0.05, 0.5)}
    else:
        a, b = d.parameter("a", 0.4, 1.2), d.parameter("b", 0.2, 0.8)
        c, e = d.parameter("c", 0.2, 0.8), d.parameter("e", 0.3, 1.0)
        d.ode = {"N": f"{a}*N - {b}*N*P", "P": f"{c}*N*P - {e}*P"}
        d.initial = {"N": d.between(0.5, 2.0), "P": d.between(0.5, 2.0)}


def _oscillator(d: _Draft) -> None:
    law = d.choose("harmonic", "van der pol", "fitzhugh", "pendulum")
    d.has(law)
    d.end = d.between(4.0, 10.0)
    if law == "harmonic":
        w, c = d.parameter("w", 0.5, 2.5), d.parameter("c", 0.05, 0.5)
        d.ode = {"x": "y", "y": f"-{w}^2*x - {c}*y"}
    elif law == "van der pol":
        m = d.parameter("m", 0.2, 2.0)
        d.ode = {"x": "y", "y": f"{m}*(1 - x^2)*y - x"}
    elif law == "fitzhugh":
        a, b = d.parameter("a", 0.1, 0.4), d.parameter("b", 0.1, 0.4)
        c = d.parameter("c", 1.5, 3.5)
        d.ode = {"x": f"{c}*(x - x^3/3 + y)", "y": f"-(x - {a} + {b}*y)/{c}"}
    else:
        g, c = d.parameter("g", 0.5, 3.0), d.parameter("c", 0.05, 0.4)
        d.ode = {"x": "y", "y": f"-{g}*sin(x) - {c}*y"}
    d.initial = {"x": d.between(0.5, 1.5), "y": d.between(0.1, 1.0)}


def _observables(d: _Draft, noise: str) -> dict[str, str]:
    states = list(d.ode)
    found = {name: name for name in states}
    if len(states) > 1 and d.chance(0.4):
        d.has("partly observed")
        del found[d.choose(*states)]
    if d.chance(0.25):
        d.has("scaled observable")
        first = next(iter(found))
        del found[first]
        found["scaled"] = f"{d.parameter('q', 0.5, 3.0)}*{first}"
    elif len(states) > 1 and d.chance(0.15):
        d.has("sum observed")
        found["total"] = " + ".join(states[:2])
    if noise == "poisson":
        found = {f"n_{k}": f"20*({v})" for k, v in list(found.items())[:2]}
    return found


def _experiments(d: _Draft) -> list[dict[str, Any]]:
    count = d.choose(1, 1, 2, 3)
    if count > 1:
        d.has("several experiments")
    late = d.chance(0.2)
    found = []
    for k in range(count):
        times = np.sort(d.random.uniform(0.02, 1.0, int(d.random.integers(8, 14)))) * d.end
        if d.chance(0.5):
            times = np.append([0.0], times)
        times = np.unique(np.round(times, 3))
        table: dict[str, Any] = {"name": f"run {k + 1}", "t0": 0.0, "times": times}
        if late and times[0] == 0.0:
            del table["t0"]
        if k:
            state = d.choose(*d.initial)
            table["initial"] = {state: d.between(0.4, 3.0)}
        if k and d.constants and d.chance(0.5):
            name = d.choose(*d.constants)
            table["constants"] = {name: d.constants[name] * d.between(0.5, 2.0)}
        if d.chance(0.3):
            d.has("events")
            table["event"] = [_event(d, times) for _ in range(d.choose(1, 2))]
        found.append(table)
    return found


def _event(d: _Draft, times: np.ndarray) -> dict[str, Any]:
    at = d.between(0.1 * d.end, 0.9 * d.end)
    if d.chance(0.3):
        d.has("event at a measurement")
        at = float(times[len(times) // 2])
    state = d.choose(*d.ode)
    text = d.choose(f"{state} + {d.between(0.5, 2.0)!r}", f"0.5*{state}", d.between(0.5, 2.0))
    assign = {state: text}
    if d.constants and d.chance(0.3):
        d.has("event on a constant")
        name = d.choose(*d.constants)
        assign[name] = f"{d.choose(0.5, 1.5)}*{name}"
    when = {"time": at} if d.chance(0.5) else {"times": [at]}
    return {**when, "assign": assign}


def _noise(d: _Draft, kind: str, observables: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    known: dict[str, dict[str, Any]] = {
        "estimate": {"sd": "estimate"},
        "log estimate": {"transform": "log", "sd": "estimate"},
        "poisson": {"distribution": "poisson"},
    }
    drawn: dict[str, dict[str, Any]] = {
        "relative": {},
        "log": {"transform": "log"},
        "log10": {"transform": "log10"},
        "student": {"loss": "student"},
    }
    found: dict[str, dict[str, Any]] = {}
    for name in observables if kind != "none" else ():
        if kind in known:
            found[name] = dict(known[kind])
        elif kind == "expression":
            found[name] = {"sd": f"0.02 + noise*abs({name})"}
        else:
            size = d.between(0.02, 0.08 if kind == "student" else 0.1)
            found[name] = {**drawn.get(kind, {}), "relative" if kind == "relative" else "sd": size}
    return found


def _drawn(seed: int, attempt: int) -> RandomProblem | None:
    """One attempt at a problem; None if its trajectories are of no use."""
    d = _Draft(np.random.default_rng([seed, attempt]))
    d.choose(_network, _network, _network, _growth, _oscillator)(d)
    noise = str(d.choose(*NOISES))
    d.has(f"noise: {noise}")
    observables = _observables(d, noise)
    noises = _noise(d, noise, observables)
    experiments = _experiments(d)
    truth = dict(d.parameters)
    tables: dict[str, dict[str, Any]] = {
        name: {"scale": "log10"} if d.chance(0.5) else {} for name in d.parameters
    }
    several = len(experiments) > 1 and d.chance(0.25)
    own = d.choose(*truth) if several and truth else None
    if own is not None:
        d.has("per experiment")
        tables[own]["per_experiment"] = True
        first = truth.pop(own)
        truth.update({f"{own}[{e['name']}]": first * d.between(0.6, 1.6) for e in experiments})
    initial: dict[str, Any] = dict(d.initial)
    for name, number in d.initial.items():
        if number > 0 and len(truth) < MAX_UNKNOWNS and d.chance(0.3):
            d.has("unknown initial value")
            truth[name], initial[name] = number, {}
    if noise == "expression":
        truth["noise"], tables["noise"] = 0.05, {}
    estimated = [f"{k}_sd" for k, v in noises.items() if v.get("sd") == "estimate"]
    truth.update({key: d.between(0.03, 0.1) for key in estimated})
    algebraic = {}
    if d.chance(0.1):
        d.has("algebraic variable")
        state = next(iter(d.ode))
        algebraic["z"] = f"z - {state}/(1 + 0.2*{state}^2)"
        if noise != "poisson":
            observables["z"] = "z"
            noises.update({"z": {"sd": 0.03}} if noises else {})
    if not truth:
        return None
    bounds = {key: (number / RANGE, number * RANGE) for key, number in truth.items()}
    for key, table in [*tables.items(), *((k, v) for k, v in initial.items() if v == {})]:
        number = truth.get(key, d.parameters.get(key, 0.0))
        keys = [k for k in truth if k.partition("[")[0] == key]
        low, high = number / RANGE, number * RANGE
        table.update(lower=low, upper=high)
        bounds.update(dict.fromkeys(keys, (low, high)))
    bounds.update(dict.fromkeys(estimated, (1e-6, 1e3)))
    mapping = {
        "format": 1,
        "name": f"random {seed}",
        "ode": d.ode,
        "algebraic": algebraic,
        "observables": observables,
        "constants": d.constants,
        "inputs": {k: {"interpolation": v} for k, v in d.inputs.items()},
        "parameters": tables,
        "initial": initial,
        "noise": noises,
    }
    mapping = {k: v for k, v in mapping.items() if v}
    mapping.setdefault("parameters", {})
    mapping["experiment"] = [_without_data(e, mapping, d) for e in experiments]
    drawn = RandomProblem(seed, mapping, truth, bounds, tuple(d.switches), tuple(d.features))
    return drawn if _measure(drawn, noises, d.random) else None


def _without_data(table: dict[str, Any], mapping: Mapping[str, Any], d: _Draft) -> dict[str, Any]:
    """An experiment with its times, inputs, and ones wherever something will be measured."""
    times = [float(t) for t in table.pop("times")]
    data: dict[str, list[float | None]] = {"t": list(times)}
    for name in mapping["observables"]:
        held = [1.0 if d.chance(0.9) else None for _ in times]
        data[name] = [1.0] * len(times) if sum(h is not None for h in held) < 4 else held
    for name in mapping.get("inputs", {}):
        knots = np.unique(np.round(d.random.uniform(0, d.end, 4), 2)).tolist()
        if d.chance(0.5):
            knots = [0.0, *(k for k in knots if k > 0)]
        extra = [t for t in knots if t not in data["t"]]
        for column in data.values():
            column.extend([None] * len(extra))
        data["t"][len(times) :] = extra
        at = {t: d.between(0.2, 2.0) for t in knots}
        data[name] = [at.get(float(t or 0.0)) for t in data["t"]]
    return {**table, "data": data}


def _measure(drawn: RandomProblem, noises: Mapping[str, Any], random: np.random.Generator) -> bool:
    """Put simulated data in place; False if they are of no use."""
    by_hand = drawn.by_hand
    for run, table in zip(by_hand.runs, drawn.mapping["experiment"], strict=True):
        try:
            seen = by_hand.predicted(run, drawn.truth)
        except ArithmeticError:
            return False
        row = {float(t): k for k, t in enumerate(run.times)}
        for name in drawn.mapping["observables"]:
            curve, given = seen[name], noises.get(name, {})
            if not np.isfinite(curve).all() or np.abs(curve).max() > LARGEST:
                return False
            positive = bool({"relative", "transform", "distribution"} & set(given))
            if positive and curve.min() < 0.05:
                return False
            column = table["data"][name]
            for k, t in enumerate(table["data"]["t"]):
                if column[k] is not None:
                    exact = float(curve[row[float(t)]])
                    column[k] = _scattered(exact, name, drawn, random)
    return True


def _scattered(exact: float, name: str, drawn: RandomProblem, random: np.random.Generator) -> float:
    given, truth = drawn.mapping.get("noise", {}).get(name, {}), drawn.truth
    normal = float(random.normal())
    if given.get("distribution") == "poisson":
        return float(random.poisson(exact))
    sd = given.get("sd", 0.03)
    if sd == "estimate":
        sd = truth[f"{name}_sd"]
    elif isinstance(sd, str):
        sd = 0.02 + truth["noise"] * abs(exact)
    if "relative" in given:
        sd = given["relative"] * exact
    if given.get("loss") == "student":
        return exact + float(sd) * float(random.standard_t(4))
    if "transform" in given:
        return exact * math.exp(float(sd) * normal * (1 if given["transform"] == "log" else 2.3))
    return exact + float(sd) * normal


def random_problem(seed: int) -> RandomProblem:
    for attempt in range(1000):
        found = _drawn(seed, attempt)
        if found is not None:
            return found
    raise RuntimeError(f"nothing came of seed {seed}")


def near(drawn: RandomProblem, factor: float = 0.1) -> dict[str, float]:
    """The true values, each times the exponential of a normal number times `factor`."""
    random = np.random.default_rng([drawn.seed, 1_000_000])
    found = {}
    for (key, number), (low, high) in zip(drawn.truth.items(), drawn.bounds.values(), strict=True):
        found[key] = min(max(number * math.exp(factor * float(random.normal())), low), high)
    return found
