"""Evaluations of problems whose input has a knot in every row, beside heyoka's Taylor method.

The input is linear between rows of 0.02 s; residuals and Jacobian are evaluated. "Linear" is a
damped spring with an unknown gain, "bilinear" has the input multiply a state, "cubic" is the spring
with a term in x^3, without a closed form. Times are the processor's, the smallest of the repeats.
"Difference" is the largest of residuals and Jacobian, relative to the largest value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from evidence.running.campaign import Option, Record, Task, tasks_of
from evidence.running.output import listed
from evidence.speed.stiff import least

if TYPE_CHECKING:
    import pandas as pd

MODELS: dict[str, tuple[dict[str, str], dict[str, float]]] = {
    "linear": ({"x": "v", "v": "g*u - k*x - c*v"}, {"k": 4.0, "c": 0.35, "g": 1.6}),
    "bilinear": (
        {"x": "v", "v": "g*u - (k + m*u)*x - c*v"},
        {"k": 4.0, "c": 0.35, "g": 1.6, "m": 0.2},
    ),
    "cubic": (
        {"x": "v", "v": "g*u - k*x - c*v - e*x^3"},
        {"k": 4.0, "c": 0.35, "g": 1.6, "e": 0.1},
    ),
}
HEAD = ("equations", "rows", "odefit, ms", "heyoka, ms", "heyoka / odefit", "difference")
OPTIONS = (
    Option("rows", (1_000, 20_000), "numbers of rows", least=2),
    Option("repeats", 3, "runs of which the least counts", least=1),
)


def tasks(rows: Sequence[int], repeats: int) -> list[Task]:
    """Return a task for each model with each number of rows."""
    return [
        task
        for count in rows
        for task in tasks_of("model", list(MODELS), rows=count, repeats=repeats)
    ]


def run(task: Task) -> Mapping[str, Any]:
    """Evaluate one model with a number of rows by both engines."""
    from odefit import ForwardMap, Model, Problem
    from odefit.simulation import Evaluation

    ode, values = MODELS[task["model"]]
    times = 0.02 * np.arange(task["rows"])
    u = sum(np.sin(w * times + p) for w, p in ((0.31, 0.0), (0.83, 1.0), (1.7, 2.0), (3.1, 0.5)))
    columns = {"t": times, "u": np.round(u, 4), "x": np.zeros(len(times))}
    model = Model(ode=ode, inputs={"u": "linear"})
    problem = Problem(model, columns, {name: {} for name in values}, {"x": {}, "v": 0.0})
    vector = np.array([*values.values(), 0.2])
    found, spent = [], []
    for engine in ("auto", "heyoka"):
        forward = ForwardMap(problem, engine)
        at = forward.evaluate(vector)
        assert isinstance(at, Evaluation)
        spent.append(least(lambda: forward.evaluate(vector), task["repeats"]))  # noqa: B023
        found.append(np.column_stack([at.residuals, at.jacobian]))
    difference = float((np.abs(found[0] - found[1]) / np.abs(found[1]).max(axis=0)).max())
    return {"odefit": spent[0], "heyoka": spent[1], "difference": difference}


def tables(records: Sequence[Record]) -> Mapping[str, pd.DataFrame]:
    """Return the times side by side."""
    rows = []
    for record in records:
        if record.result is None:
            continue
        ours, theirs = record.result["odefit"], record.result["heyoka"]
        row = [record.task["model"], f"{record.task['rows']:,}", f"{ours:.1f}", f"{theirs:.1f}"]
        rows.append([*row, f"{theirs / ours:.0f}", f"{record.result['difference']:.0e}"])
    return {"knots": listed(HEAD, rows)}
