"""Answers of solvers in a checkpoint."""

from __future__ import annotations

from typing import Any

import numpy as np

from odefit.methods.running.start_checkpoint import numbers
from odefit.methods.solvers.solver import Answer, Outcome


def answer_to_json(answer: Answer) -> dict[str, Any]:
    """Return an answer as a JSON value."""
    return {
        "outcome": answer.outcome.value,
        "values": None if answer.values is None else answer.values.tolist(),
        "unknowns": None if answer.unknowns is None else answer.unknowns.tolist(),
        "objective": float(answer.objective),
        "lower_bound": None if answer.lower_bound is None else float(answer.lower_bound),
        "violation": float(answer.violation),
        "seconds": float(answer.seconds),
        "message": answer.message,
        "iterations": int(answer.iterations),
    }


def answer_from_json(record: Any, shape: tuple[int, int], unknowns: int) -> Answer:
    """Return the answer of a record, whose values have the given `shape`, points by variables.

    A damaged record raises KeyError, TypeError or ValueError.
    """
    rows, vector, lower = record["values"], record["unknowns"], record["lower_bound"]
    values = None
    if rows is not None:
        values = np.array([numbers(row, shape[1]) for row in rows]).reshape(shape)
    return Answer(
        Outcome(record["outcome"]),
        values,
        None if vector is None else numbers(vector, unknowns),
        float(record["objective"]),
        None if lower is None else float(lower),
        float(record["violation"]),
        float(record["seconds"]),
        str(record["message"]),
        int(record["iterations"]),
    )
