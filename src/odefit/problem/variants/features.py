"""Features of a problem: switches, and features that only integration handles."""

from __future__ import annotations

import math
from collections.abc import Callable

from odefit.common.errors import InputError
from odefit.problem.condition import Condition
from odefit.problem.problem import Problem
from odefit.problem.vector_field import VectorField

Test = Callable[[Condition], bool]

NAMED = 2
"""Largest number of experiments that a sentence names."""


def integrated_features(
    problem: Problem, *, on_nodes: bool = False, noise: bool = True
) -> tuple[str, ...]:
    """Return clauses on features that only methods integrating from initial values handle.

    These are steady states, events at times that depend on the unknowns, and measurements that use
    the values after an event at their time. `on_nodes` leaves out features that trajectories on
    shooting nodes handle. `noise` adds observables of which only some values have their own
    standard deviations, and noise correlated in time, whose residuals depend on earlier ones.
    """
    tests: dict[str, Test] = {
        "begin at a steady state": lambda c: c.steady_start,
        "have measurements at t = inf": lambda c: len(c.times) > 0 and math.isinf(c.times[-1]),
        "have events at times that depend on the unknowns": lambda c: bool(c.located),
    }
    if not on_nodes:
        tests["have measurements that see the values after an event of their time"] = lambda c: any(
            c.sees_events(float(t)) for t in c.times
        )
    if noise and not on_nodes:
        tests["have standard deviations for only a part of the values of an observable"] = (
            lambda c: any(len(s.by_source_of_sds()) > 1 for s in c.series.values())
        )
    features = []
    correlated = [
        name for name, noise_of in problem.noise.items() if noise_of.correlation is not None
    ]
    if noise and correlated:
        features.append(f'the noise of {", ".join(correlated)} has correlation = "ou"')
    for several, has in tests.items():
        names = [f'"{c.name}"' for c in problem.conditions if has(c)]
        if len(names) == 1:
            one = several.replace("begin", "begins").replace("have", "has", 1)
            features.append(f"experiment {names[0]} {one}")
        elif names:
            shown, more = names[:NAMED], len(names) - NAMED
            last = f"{more} more" if more > 0 else shown.pop()
            features.append(f"experiments {', '.join(shown)} and {last} {several}")
    return tuple(features)


def switches(problem: Problem, field: VectorField) -> bool:
    """Return whether unknowns may act only beyond a kink, a condition or an event."""
    return not field.smooth or any(c.has_triggers for c in problem.conditions)


def kinks(problem: Problem, field: VectorField) -> bool:
    """Return whether the cost may have kinks: by switches, or by events at unknown times."""
    return switches(problem, field) or any(c.located for c in problem.conditions)


def refuse_integrated_features(problem: Problem, who: str, *, on_nodes: bool = False) -> None:
    """Refuse a problem with :func:`integrated_features`; `who` is the subject of the sentence."""
    features = integrated_features(problem, on_nodes=on_nodes)
    if features:
        raise InputError(
            f"{who} cannot take this problem: {', and '.join(features)}; take a method that "
            "integrates from the initial values, such as the default or multi-start"
        )
