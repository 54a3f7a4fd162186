"""Contradictions within a result: numbers without a reason, and intervals without its solutions.

Every number that is missing from a table of a result has its reason in a note. Intervals and bands
contain the values at each of the solutions that fit the data.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from odefit.assessment.functionals.over_time import over_time
from odefit.simulation.other_integrations import able_to_integrate

ROUNDING = 1e-6
"""Relative distance of a value from an interval that errors of integration explain."""

PREDICTED = ("std_error", "ci_low", "ci_high")
ESTIMATED = ("estimate", "std_error", "rse", "ci_low", "ci_high")


def contradictions(result: Any) -> list[str]:
    """Return the contradictions within a result that has a solution; empty if there are none."""
    return [*_of_parameters(result), *_of_bands(result), *quantity_contradictions(result)]


def profile_contradictions(result: Any, profiles: Any) -> Iterator[str]:
    """Yield the contradictions between the profiles of a result and its solutions."""
    if profiles.adopted:
        return  # a better optimum replaces those of the result
    for profile in profiles.profiles:
        if np.isnan([profile.lower, profile.upper]).any() and all(
            end == "limit" for end in profile.ends
        ):
            yield f"profile of {profile.key}: an end is missing without a reason"
        place = result.problem.keys.index(profile.key)
        for number, vector in _vectors(result):
            outside = _outside(vector[place], profile.lower, profile.upper)
            if outside:
                yield f"profile of {profile.key}: solution {number} is {outside}"


def _vectors(result: Any) -> list[tuple[int, Any]]:
    """Return the numbers and vectors of the solutions that fit and need one integration each."""
    return [(k, s.vector) for k, s in enumerate(result.fitting, 1) if s.nodes is None]


def _of_parameters(result: Any) -> Iterator[str]:
    table = result.parameters
    for name, row in table.iterrows():
        if row[list(ESTIMATED)].isna().any() and not row["note"]:
            yield f"parameters: {name} lacks a number without a note"
    for place, key in enumerate(result.problem.keys):
        low, high = table.loc[key, ["ci_low", "ci_high"]]
        for number, vector in _vectors(result):
            if outside := _outside(vector[place], low, high):
                yield f"parameters: {key} of solution {number} is {outside}"


def _of_bands(result: Any) -> Iterator[str]:
    if result.best.nodes is not None:
        return
    table = result.predict()
    notes = table.attrs["notes"]
    for name, rows in table.groupby("name"):
        for column in PREDICTED:
            if rows[column].isna().any() and not _mentioned(str(name), notes):
                yield f"predict: {column} of {name} is missing without a note"
        values = rows["value"].to_numpy()
        away = ROUNDING * np.nanmax(np.abs(values), initial=0.0)
        low, high = rows["ci_low"].to_numpy(), rows["ci_high"].to_numpy()
        if ((values < low - away) | (values > high + away)).any():
            yield f"predict: {name} is outside its own band"


def quantity_contradictions(result: Any, by: str = "linear") -> Iterator[str]:
    """Yield the contradictions between the integral of the first state and the solutions."""
    if result.best.nodes is not None:
        return
    states = list(result.problem.model.states)
    texts = [f"area_of_{states[0]} = integral({states[0]})"]
    table = result.quantities(texts, by=by)
    notes = table.attrs["notes"]
    for _, row in table.iterrows():
        name = row["quantity"]
        if row[["value", *PREDICTED]].isna().any() and not _mentioned(name, notes):
            yield f"quantities: {name} lacks a number without a note"
        forward = able_to_integrate(result.problem, result.best.vector)
        quantity = over_time(result.problem, texts[0], row["experiment"])
        for number, vector in _vectors(result):
            value, _ = quantity.at(forward, vector)
            if outside := _outside(value, row["ci_low"], row["ci_high"]):
                yield f"quantities: {name} at solution {number} is {outside}"


def _mentioned(name: str, notes: Sequence[str]) -> bool:
    return any(name in note for note in notes)


def _outside(value: float, low: float, high: float) -> str:
    """Return a value and the interval that does not contain it, as text; empty if it does."""
    away = ROUNDING * max(abs(value), abs(low), abs(high), 1e-300)
    if value < low - away or value > high + away:
        return f"{value:g}, outside of [{low:g}, {high:g}]"
    return ""
