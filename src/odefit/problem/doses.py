"""What is said of doses: where they go, after which delay, and how much of them arrives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from odefit.common.errors import did_you_mean, one_of, shown
from odefit.expressions.expressions import Expression
from odefit.problem.inputs.issues import Issues

ByState = Expression | str | float | Mapping[str, Expression | str | float]
"""An expression for all doses, or one for each state that doses go into."""


@dataclass(frozen=True)
class Doses:
    """How the dose records of a long table act.

    Attributes
    ----------
    into
        The state that all doses go into, or a state for each value of the column CMT. By default
        CMT has the names of states, or their numbers in the order of the equations; without CMT
        there must be one state alone.
    lag
        The time between a dose and its arrival: a number or an expression in parameters and
        constants, one for all doses or one for each state.
    bioavailability
        The fraction of the amount that arrives, in the same form. As in NONMEM, it shortens
        infusions of a given rate, and lowers the rate of those of a given duration.
    duration, rate
        The duration or the rate of infusions, in the same form: of all doses in a table without
        RATE and DUR; otherwise of those with RATE = -2 or RATE = -1.

    Examples
    --------
    >>> Doses(into="gut", lag="t_lag", bioavailability="F")
    Doses(into='gut', lag='t_lag', bioavailability='F', duration=None, rate=None)
    """

    into: str | Mapping[str, str] | None = None
    lag: ByState | None = None
    bioavailability: ByState | None = None
    duration: ByState | None = None
    rate: ByState | None = None


DOSE_FIELDS = tuple(field.name for field in fields(Doses))


def as_doses(
    value: Doses | Mapping[str, Any] | None, states: list[str], place: str, issues: Issues
) -> Doses:
    """Return `value` with every expression parsed; doses can go into `states`."""
    if value is None:
        return Doses()
    if isinstance(value, Doses):
        given = {name: getattr(value, name) for name in DOSE_FIELDS}
    elif isinstance(value, Mapping):
        given = dict(value)
        for key in [k for k in given if k not in DOSE_FIELDS]:
            issues.error(f"{place}.{key}", f"unknown field{one_of(str(key), DOSE_FIELDS)}")
    else:
        issues.error(place, f'expected a table such as {{ into = "gut" }}, got {shown(value)}')
        return Doses()
    into = given.get("into")
    if isinstance(into, Mapping):
        into = {str(k): v for k, v in into.items()}
    targets = into.values() if isinstance(into, dict) else () if into is None else (into,)
    for target in targets:
        if not isinstance(target, str) or target not in states:
            name = str(target)
            issues.error(
                f"{place}.into", f"there is no state {shown(target)}{did_you_mean(name, states)}"
            )
    found = {
        name: _by_state(given[name], states, f"{place}.{name}", issues)
        for name in DOSE_FIELDS[1:]
        if given.get(name) is not None
    }
    return Doses(into, **found)


def of_state(value: ByState | None, state: str) -> Expression | None:
    """Return the expression that holds for doses into `state`."""
    if isinstance(value, Mapping):
        value = value.get(state)
    return value if isinstance(value, Expression) else None


def expressions_of(doses: Doses) -> list[Expression]:
    """Return all expressions."""
    found: list[Any] = []
    for name in DOSE_FIELDS[1:]:
        value = getattr(doses, name)
        found += value.values() if isinstance(value, Mapping) else [value]
    return [e for e in found if isinstance(e, Expression)]


def _by_state(value: Any, states: list[str], place: str, issues: Issues) -> Any:
    if not isinstance(value, Mapping):
        return issues.expression(place, value)
    for state in value:
        if state not in states:
            issues.error(
                f"{place}.{state}", f"there is no state '{state}'{did_you_mean(state, states)}"
            )
    return {s: issues.expression(f"{place}.{s}", v) for s, v in value.items()}
