"""Random small problems fitted by four routes that share nothing but the problem.

Each problem (`random_problems.py`) is fitted from values near the true ones by `SingleShooting`,
`Transcription` without its own shooting, `MultipleShooting`, and SciPy by hand (`fit_by_scipy.py`).

- *Values*: the log-likelihood, or sum of squares, that odefit reports of its answer is that which
  SciPy finds for the same unknowns.
- *Optima*: the answers of all routes are as good as the best of them, judged by SciPy: -2 log L
  (without noise model n log of the sum of squares) differs by no more than `ALIKE`.

A route that is worse is explained: SciPy's search goes on from its answer. Where that stays there,
the answer is a local optimum of its own; where it goes on to the best answer, the route has stopped
too early.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

import odefit
from evidence.agreement.random_problems import RandomProblem, near, random_problem
from evidence.running.campaign import Option, Record, Task, tasks_of
from evidence.running.output import listed
from odefit.problem import problem_from_mapping

ALIKE = 1e-4  # difference of -2 log L within which optima agree
SAME_VALUE = 1e-6  # difference of -2 log L at the same unknowns, relative to one and its size

# How far inside the bounds, relative, SciPy's search goes on from an answer that is worse
OFF_BOUNDS = 1e-2
SCIPY = "SciPy by hand"
METHODS: Mapping[str, Any] = {
    "SingleShooting": odefit.SingleShooting(),
    "Transcription": odefit.Transcription(starts=1, shooting=False),
    "MultipleShooting": odefit.MultipleShooting(starts=1),
}


@dataclass(frozen=True)
class Answer:
    """What a route found."""

    status: str  # ``"converged"`` and so on, or ``"refused"``
    message: str = ""  # what was said with it
    values: Mapping[str, float] | None = None  # the unknowns by key
    reported: float | None = None  # -2 log L or the sum of squares, as odefit says it
    cost: float | None = None  # the same by SciPy


def guessed(drawn: RandomProblem) -> dict[str, Any]:
    """The mapping of a problem with guesses near the true values."""
    start = {key.partition("[")[0]: number for key, number in near(drawn).items()}
    mapping = {**drawn.mapping}
    for section in ("parameters", "initial"):
        mapping[section] = {
            key: {**table, "guess": start[key]}
            if isinstance(table, Mapping) and key in start
            else table
            for key, table in mapping[section].items()
        }
    return mapping


def by_odefit(problem: odefit.Problem, method: Any, drawn: RandomProblem) -> Answer:
    try:
        result = odefit.fit(problem, method, jobs=1)
    except odefit.InputError as error:
        return Answer("refused", str(error))
    status = result.status.value
    if not result.solutions:
        return Answer(status, result.message)
    best = result.solutions[0]
    values = dict(zip(problem.keys, best.vector.tolist(), strict=True))
    likelihood = best.log_likelihood
    reported = best.objective if likelihood is None else -2 * likelihood
    return Answer(status, result.message, values, reported, drawn.by_hand.cost(values))


def by_scipy(drawn: RandomProblem) -> Answer:
    by_hand = drawn.by_hand
    values = by_hand.fitted(near(drawn), drawn.bounds)
    return Answer("converged", "", values, None, by_hand.cost(values))


def measure(drawn: RandomProblem, cost: float) -> float:
    """What is compared of optima: -2 log L, or n log of the sum of squares."""
    if drawn.by_hand.likelihood:
        return cost
    size = sum(len(s.values) for run in drawn.by_hand.runs for s in run.series.values())
    return size * float(np.log(max(cost, 1e-300)))


def explained(drawn: RandomProblem, answer: Answer, best: float) -> str:
    """Why an answer is worse than the best."""
    assert answer.values is not None
    assert answer.cost is not None
    at = measure(drawn, answer.cost)
    further = drawn.by_hand.fitted(answer.values, drawn.bounds, OFF_BOUNDS)
    end = measure(drawn, drawn.by_hand.cost(further))
    if end > at - ALIKE:
        inside = all(
            low * (1 + 1e-6) < answer.values[k] < high * (1 - 1e-6)
            for k, (low, high) in drawn.bounds.items()
        )
        return "local optimum" if inside else "local optimum at a bound"
    if answer.status != "converged":
        return "not converged, and says so"
    if end > best + ALIKE:
        return "stopped early, on the way to another optimum"
    return "stopped early"


def outcome(drawn: RandomProblem) -> dict[str, Any]:
    """What all routes make of a problem, as plain values."""
    problem = problem_from_mapping(guessed(drawn))
    answers = {name: by_odefit(problem, method, drawn) for name, method in METHODS.items()}
    answers[SCIPY] = by_scipy(drawn)
    costs = {k: measure(drawn, a.cost) for k, a in answers.items() if a.cost is not None}
    best = min(costs.values())
    found: dict[str, Any] = {"seed": drawn.seed, "features": drawn.features, "routes": {}}
    for name, answer in answers.items():
        told: dict[str, Any] = {"status": answer.status}
        if answer.cost is None:
            told.update(verdict=answer.status, message=answer.message)
        else:
            excess = costs[name] - best
            verdict = "agrees" if excess <= ALIKE else explained(drawn, answer, best)
            told.update(verdict=verdict, excess=excess)
            if answer.reported is not None:
                size = max(1.0, abs(answer.cost)) if drawn.by_hand.likelihood else answer.cost
                told["value"] = abs(answer.reported - answer.cost) / max(size, 1e-12)
        found["routes"][name] = told
    return found


OPTIONS = (
    Option("count", 500, "number of problems", least=1),
    Option("first", 0, "the first seed", least=0),
)


def tasks(count: int, first: int) -> list[Task]:
    return tasks_of("seed", range(first, first + count))


def run(task: Task) -> dict[str, Any]:
    return outcome(random_problem(task["seed"]))


def tables(records: Sequence[Record]) -> Mapping[str, pd.DataFrame]:
    """Return verdicts by route with what was drawn, and all differences."""
    outcomes = [r.result for r in records if r.result is not None]
    names = (*METHODS, SCIPY)
    verdicts = Counter((n, o["routes"][n]["verdict"]) for o in outcomes for n in names)
    rows = [
        [v, *(str(verdicts[n, v]) for n in names)]
        for v in sorted({v for _, v in verdicts}, key=lambda v: (v != "agrees", v))
    ]
    values = [
        o["routes"][n]["value"] for o in outcomes for n in METHODS if "value" in o["routes"][n]
    ]
    together = sum(all(o["routes"][n]["verdict"] == "agrees" for n in names) for o in outcomes)
    features = Counter(f for o in outcomes for f in o["features"])
    exact = sum(v <= SAME_VALUE for v in values)
    notes = (
        f"{len(outcomes)} random problems; all four routes agree on {together}.",
        f"Values agree within {SAME_VALUE:g} in {exact} of {len(values)} answers.",
        f"Their largest difference is {max(values, default=0.0):.2g}.",
        "Drawn: " + ", ".join(f"{k} {n}" for k, n in sorted(features.items())) + ".",
    )
    different = [
        [
            str(o["seed"]),
            name,
            route["verdict"],
            f"{route['excess']:.3g}" if "excess" in route else "",
            route["status"],
            f"{route.get('value', 0.0):.2g}",
            route.get("message", ""),
        ]
        for o in outcomes
        for name, route in o["routes"].items()
        if route["verdict"] != "agrees" or route.get("value", 0.0) > SAME_VALUE
    ]
    head = ("seed", "route", "verdict", "worse by", "status", "values differ by", "message")
    return {
        "verdicts": listed(["verdict", *names], rows, *notes),
        "differences": listed(head, different),
    }
