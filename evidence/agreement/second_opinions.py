"""Random smooth models with steps, pulses and extreme sizes: does any integration mislead?

Each number gives a model: flows between one to three states, saturation, decay, oscillation, and
smooth steps and pulses of time or of a state (tanh, logistic, Gaussian, double exponential, Hill
functions of high power), from narrow to wide, in units between 1e-12 and 1e12. odefit integrates it
as in a user's call, with the second opinion. SciPy's DOP853 or Radau integrates it with steps that
are short beside every feature. The table counts the models whose values are wrong without a
warning; the target is zero. The reference uses no code of odefit and has its own right-hand sides.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
import pandas as pd
from scipy.integrate import solve_ivp

import odefit
from evidence.running.campaign import Option, Record, Task, tasks_of
from evidence.running.output import listed
from odefit import Failure, ForwardMap
from odefit.common.arrays import Array
from odefit.reporting.notices import opinion_sentence
from odefit.simulation.second_opinion import better_map, second_opinion

RIGHT = 1e-5  # error of a state, relative to its largest value, up to which values are right


# Evaluations of the right-hand sides after which SciPy gives no reference: half a minute
MAX_RATES = 2_000_000


class TooManyRatesError(Exception):
    """SciPy needs too many evaluations."""


@dataclass(frozen=True)
class SmoothModel:
    """A model that was drawn."""

    number: int
    ode: dict[str, str]  # ode, initial: Right-hand sides and initial values, in odefit's notation
    initial: dict[str, float]
    times: Array  # output times
    # The same right-hand sides in Python, written beside the texts
    rates: Callable[[float, Array], list[float]]
    narrowest: float  # duration of the narrowest feature
    stiff: bool  # whether a state is so fast that the reference has to be implicit


def _logistic(u: float) -> float:
    return 1.0 / (1.0 + math.exp(-u)) if u > -700 else 0.0


SHAPES: dict[str, tuple[str, Callable[[float], float]]] = {
    "tanh": ("0.5*(1 + tanh({u}))", lambda u: 0.5 * (1.0 + math.tanh(u))),
    "logistic": ("1/(1 + exp(-({u})))", _logistic),
    "gauss": ("exp(-({u})^2)", lambda u: math.exp(-u * u)),
    "gompertz": ("exp(-exp(-({u})))", lambda u: math.exp(-math.exp(min(-u, 700.0)))),
    "sech": ("1/cosh({u})", lambda u: 1.0 / math.cosh(u) if abs(u) < 700 else 0.0),
}


def drawn(number: int) -> SmoothModel:
    rng = np.random.default_rng([number, 33])
    n = int(rng.integers(1, 4))
    span = float(10.0 ** rng.uniform(-9, 9)) if rng.random() < 0.3 else 20.0
    units = [float(10.0 ** rng.integers(-12, 13)) if rng.random() < 0.4 else 1.0 for _ in range(n)]
    names = [f"x{i}" for i in range(n)]
    texts: list[str] = []
    terms: list[list[Callable[[float, Array], float]]] = []
    narrowest = span / 20
    stiff = False
    for i in range(n):
        rate = float(rng.uniform(0.5, 20.0)) / span
        if rng.random() < 0.15:
            rate *= 1e4
            stiff = True
        parts = [f"-{rate!r}*{names[i]}"]
        own: list[Callable[[float, Array], float]] = [lambda t, x, r=rate, i=i: -r * x[i]]  # type: ignore[misc]
        if i and rng.random() < 0.7:
            feed = float(rng.uniform(0.5, 10.0)) / span * units[i] / units[i - 1]
            parts.append(f"{feed!r}*{names[i - 1]}")
            own.append(lambda t, x, f=feed, i=i: f * x[i - 1])  # type: ignore[misc]
        if rng.random() < 0.75 or i == 0:
            kind = str(rng.choice(list(SHAPES)))
            text, shape = SHAPES[kind]
            height = float(rng.uniform(0.3, 10.0)) / span * units[i] * (1 + stiff * 1e3)
            if i and rng.random() < 0.4:
                middle = float(rng.uniform(0.05, 0.5)) * units[i - 1]
                width = float(10.0 ** rng.uniform(-2.5, -0.5)) * units[i - 1]
                inner = f"({names[i - 1]} - {middle!r})/{width!r}"
                own.append(
                    lambda t, x, h=height, s=shape, m=middle, w=width, i=i: (
                        h  # type: ignore[misc]
                        * s((x[i - 1] - m) / w)
                    )
                )
                narrowest = min(narrowest, 0.02 * span * width / units[i - 1])
            else:
                middle = float(rng.uniform(0.1, 0.9)) * span
                width = float(10.0 ** rng.uniform(-4, -0.7)) * span
                inner = f"(t - {middle!r})/{width!r}"
                own.append(
                    lambda t, x, h=height, s=shape, m=middle, w=width: h * s((t - m) / w)  # type: ignore[misc]
                )
                narrowest = min(narrowest, width)
            parts.append(f"{height!r}*{text.format(u=inner)}")
        texts.append(" + ".join(parts))
        terms.append(own)
    initial = {
        name: 0.0 if rng.random() < 0.6 else float(rng.uniform(0.1, 2.0)) * unit
        for name, unit in zip(names, units, strict=True)
    }
    times = span * np.linspace(0.0, 1.0, int(rng.integers(6, 40)))

    def rates(t: float, x: Array) -> list[float]:
        return [sum(term(t, x) for term in own) for own in terms]

    return SmoothModel(
        number, dict(zip(names, texts, strict=True)), initial, times, rates, narrowest, stiff
    )


def reference(model: SmoothModel) -> tuple[Array, Array] | None:
    """Return the states at the output times by SciPy, shape (k, n), and their largest values.

    The result is None if SciPy fails too, or needs more than `MAX_RATES` evaluations.
    """
    evaluations = 0

    def rates(t: float, x: Array) -> list[float]:
        nonlocal evaluations
        evaluations += 1
        if evaluations > MAX_RATES:
            raise TooManyRatesError
        return model.rates(t, x)

    begin = np.array(list(model.initial.values()))
    span = float(model.times[-1])
    longest = max(model.narrowest, span / 5_000)
    peak = np.array([_largest_rate(model, i) for i in range(len(begin))])
    sizes = np.maximum(np.abs(begin), 1e-3 * span * peak)
    try:
        found = solve_ivp(
            rates,
            (0.0, span),
            begin,
            method="Radau" if model.stiff else "DOP853",
            t_eval=np.union1d(model.times, np.linspace(0.0, span, 4001)),
            rtol=1e-9,
            atol=1e-13 * np.where(sizes > 0, sizes, 1.0),
            max_step=longest,
        )
    except TooManyRatesError:
        return None
    if not found.success:
        return None
    # The effect of a pulse between two outputs may have decayed by the next output.
    largest = np.abs(found.y).max(axis=1, initial=0.0)
    return np.asarray(found.y[:, np.isin(found.t, model.times)].T), largest


def _largest_rate(model: SmoothModel, state: int) -> float:
    zero = np.array(list(model.initial.values()))
    times = np.linspace(0.0, float(model.times[-1]), 2001)
    return max(abs(model.rates(float(t), zero)[state]) for t in times)


def judged(number: int) -> dict[str, Any]:
    """Return odefit's values of a model, and their error."""
    model = drawn(number)
    data = pd.DataFrame({"t": model.times} | dict.fromkeys(model.ode, 0.0))
    problem = odefit.Problem(odefit.Model(ode=model.ode), data=data, initial=model.initial)
    began = time.process_time()
    forward = ForwardMap(problem)
    vector = np.zeros(0)
    opinion = second_opinion(forward, vector, noise=False)
    seconds = time.process_time() - began
    sentence = opinion_sentence(opinion)
    used = better_map(forward, opinion) or forward
    trajectory = used.trajectory(vector, sensitivities=False)
    if isinstance(trajectory, Failure):
        said = f"odefit fails: {trajectory}"
        return {"number": number, "error": None, "told": said, "seconds": seconds}
    known = reference(model)
    if known is None:
        return {"number": number, "error": None, "told": sentence, "seconds": seconds}
    exact, largest = known
    begin = np.abs(np.array(list(model.initial.values())))
    sizes = np.maximum(largest, begin)
    error = np.abs(trajectory.states - exact).max(axis=0) / np.where(sizes > 0, sizes, 1.0)
    return {
        "number": number,
        "error": float(error.max()),
        "told": sentence,
        "seconds": seconds,
    }


BATCH = 50  # models of a task
OPTIONS = (
    Option("count", 2000, "number of models", least=1),
    Option("first", 0, "number of the first", least=0),
    Option("library", False, "its cost in fits of the library instead, yes or no"),
)


def tasks(count: int, first: int, library: bool) -> list[Task]:
    if library:
        return tasks_of("problem", odefit.library.names())
    end = first + count
    return [
        {"key": f"{low} to {min(low + BATCH, end) - 1}", "first": low, "end": min(low + BATCH, end)}
        for low in range(first, end, BATCH)
    ]


def run(task: Task) -> dict[str, Any]:
    """Judge a batch of models, or time the second opinion of a fit."""
    if "problem" in task:
        return {"rows": [share(task["problem"])]}
    return {"models": [judged(number) for number in range(task["first"], task["end"])]}


def share(name: str) -> list[str]:
    """Return the second opinion's share of the processor time of a fit of the library."""
    stages: Any = import_module("odefit.fitting.fit_result")
    asked = stages.second_opinion
    spent = 0.0

    def timed(*arguments: Any, **options: Any) -> Any:
        nonlocal spent
        began = time.process_time()
        found = asked(*arguments, **options)
        spent += time.process_time() - began
        return found

    stages.second_opinion = timed
    problem = odefit.library.load(name)
    best = math.inf, 0.0
    for _ in range(3):
        spent, began = 0.0, time.process_time()
        odefit.fit(problem, seed=1, jobs=1)
        best = min(best, (time.process_time() - began, spent))
    stages.second_opinion = asked
    return [name, f"{1e3 * best[1]:.1f}", f"{1e3 * best[0]:.0f}", f"{best[1] / best[0]:.1%}"]


def tables(records: Sequence[Record]) -> Mapping[str, pd.DataFrame]:
    """Return the models that are wrong, warned of or not judged, and the shares of fits."""
    found = [m for r in records for m in (r.result or {}).get("models", [])]
    rows, wrong = [], 0
    for model in found:
        error, sentence = model["error"], model["told"]
        failed = error is None and sentence and sentence.startswith("odefit fails")
        silent = error is not None and not error <= RIGHT and not sentence
        wrong += silent
        if silent or sentence or error is None:
            shown = "" if failed else "no reference" if error is None else f"{error:.2g}"
            verdict = "wrong without a word" if silent else ""
            rows.append([str(model["number"]), shown, verdict, sentence or ""])
    spoken = sum(bool(m["told"]) for m in found)
    times = [m["seconds"] for m in found]
    notes = [f"{len(found)} models: {wrong} wrong without a word, {spoken} with one."]
    if times:
        notes.append(f"Median {1e3 * float(np.median(times)):.1f} ms of the processor.")
    shares = listed(("problem", "second opinion, ms", "fit, ms", "share"), records)
    named = {"models": listed(("number", "error", "verdict", "told"), rows, *notes)}
    return named | ({"library": shares} if len(shares) else {})
