"""The events of an experiment: at known times, or to be located."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from odefit.common.errors import did_you_mean
from odefit.expressions.expressions import TIME, Expression, parse
from odefit.expressions.formulas import call, number
from odefit.problem.binding import Bound
from odefit.problem.building.name_checks import Names
from odefit.problem.building.preparation import experiment_place
from odefit.problem.building.switches import crossing, known_value
from odefit.problem.condition import LocatedEvent
from odefit.problem.experiment import Event, Experiment
from odefit.problem.inputs.issues import Issues
from odefit.problem.model import Model

Assign = Mapping[str, Expression]
KnownEvent = tuple[float, Assign]
# The place of an event in messages, the event, its assignments, and its times if they are known
Row = tuple[str, Event, Assign, list[Bound] | None]


@dataclass(eq=False)
class Happening:
    """The events of an experiment."""

    # events at known times, in the given order
    at: list[KnownEvent] = field(default_factory=list)
    # those of these times whose measurements use the values after all events
    measured_after: set[float] = field(default_factory=set)
    # events at times that depend on the unknowns or on the trajectory
    located: list[LocatedEvent] = field(default_factory=list)

    def known(self) -> tuple[KnownEvent, ...]:
        """Return the events at known times in the order of time."""
        return tuple(sorted(self.at, key=lambda event: event[0]))


def resolved_events(
    experiment: Experiment,
    t0: float | None,
    model: Model,
    names: Names,
    scalars: Mapping[str, Bound],
    issues: Issues,
) -> Happening:
    """Return the events of an experiment whose initial values hold at `t0`, if known."""
    place = experiment_place(experiment.name)
    assigned = {n for event in experiment.events for n in event.assign}
    happening = Happening()
    rows: list[Row] = []
    for count, event in enumerate(experiment.events, 1):
        at = f"{place} event {count}"
        assign = _assignments(event, at, model, names, issues)
        times: list[Bound] = []
        for time in event.times:
            if isinstance(time, Expression):
                times += _computed_time(time, at, assigned, names, scalars, issues)
            elif isinstance(time, float):
                if t0 is not None and time < t0:
                    issues.error(
                        f"{at} time",
                        f"t = {time:g} is before t0 = {t0:g} of the experiment; "
                        "lower t0, or take the event into the initial values",
                    )
                else:
                    times.append(time)
        if isinstance(event.when, Expression):
            _check_condition(event, at, model, names, issues)
            rows.append((at, event, assign, _decided(event, t0, assigned, scalars)))
        elif event.when is None:
            rows.append((at, event, assign, times))
    separate = _separate(rows)
    queued = not separate and any(_waits(event) for _, event, _, _ in rows)
    for at, event, assign, known in rows:
        after = event.measured == "after"
        if known is None or (queued and event.when is not None):
            happening.located.append(_located(event, assign))
            continue
        for moment in known:
            if not isinstance(moment, float):
                happening.located.append(LocatedEvent(moment, None, assign, after))
            elif t0 is not None and moment < t0:
                issues.warn(
                    f"{at} time", f"t = {moment:g} is before t0 = {t0:g}: the event does not happen"
                )
            else:
                later = moment + event.delay if isinstance(event.delay, float) else moment
                happening.at.append((later, assign))
                if after:
                    happening.measured_after.add(later)
    return happening


def _check_condition(event: Event, at: str, model: Model, names: Names, issues: Issues) -> None:
    """Report parts that the condition, delay and priority of an event must not contain."""
    kinds = "states, inputs, parameters, constants and t"
    allowed = {*model.ode, *names.scalars, TIME, *model.inputs}
    for key in ("when", "delay", "priority"):
        expression = getattr(event, key)
        if isinstance(expression, Expression):
            names.refers(expression, allowed, f"{at} {key}", kinds)
    assert isinstance(event.when, Expression)
    for sign in ("==", "!="):
        if sign in event.when.functions and event.when.names - names.scalars:
            issues.error(
                f"{at} when",
                f"{event.when.text!r} waits for {sign}, and the moment at which a trajectory "
                "meets that cannot be located; write <= or >=",
            )
    if isinstance(event.delay, float) and event.delay < 0:
        issues.error(f"{at} delay", f"expected no negative number, got {event.delay:g}")


def _waits(event: Event) -> bool:
    """True if the order of events, or waiting for them, matters."""
    return bool(
        event.delay != 0.0
        or event.priority is not None
        or not event.persistent
        or event.values == "trigger"
    )


def _separate(rows: Sequence[Row]) -> bool:
    """True if all events have distinct known times and depend on no earlier state or condition."""
    moments: list[float] = []
    for _, event, assign, times in rows:
        if times is None or not isinstance(event.delay, float):
            return False
        early = event.values == "trigger" and any(e.constant is None for e in assign.values())
        if event.delay and (early or not event.persistent):
            return False
        for time in times:
            if not isinstance(time, float):
                return False
            moments.append(time + event.delay)
    near = 1e-9 * max(map(abs, moments), default=0.0)
    return all(b - a > near for a, b in pairwise(sorted(moments)))


def _located(event: Event, assign: Assign) -> LocatedEvent:
    """Return an event that waits for its condition."""
    assert isinstance(event.when, Expression)
    delay = event.delay if isinstance(event.delay, Expression) else None
    if isinstance(event.delay, float) and event.delay:
        delay = parse(repr(event.delay))
    priority = event.priority if isinstance(event.priority, Expression) else None
    return LocatedEvent(
        None,
        event.when,
        assign,
        event.measured == "after",
        event.initially,
        delay,
        priority,
        event.persistent,
        event.values == "trigger",
    )


def _assignments(event: Event, at: str, model: Model, names: Names, issues: Issues) -> Assign:
    targets = {*model.ode, *names.scalars}
    allowed = {*targets, TIME, *model.inputs}
    assign = {n: e for n, e in event.assign.items() if isinstance(e, Expression)}
    for target, expression in assign.items():
        if target not in targets:
            known = target in names.everything
            hint = (
                f"only a state or a constant can be assigned, '{target}' is neither"
                if known
                else f"there is no state or constant '{target}'{did_you_mean(target, targets)}"
            )
            issues.error(f"{at} assign.{target}", hint)
        kinds = "states, inputs, parameters, constants and t"
        names.refers(expression, allowed, f"{at} assign.{target}", kinds)
    return assign


def _computed_time(
    time: Expression,
    at: str,
    assigned: set[str],
    names: Names,
    scalars: Mapping[str, Bound],
    issues: Issues,
) -> list[Bound]:
    """Return the time of an event that is an expression in parameters and constants."""
    names.refers(time, names.scalars, f"{at} time", "parameters and constants")
    if not time.names <= scalars.keys():
        return []
    for changed in sorted(time.names & assigned):
        issues.error(
            f"{at} time",
            f"'{changed}' in {time.text!r} is assigned by an event, so the time is not fixed; "
            f'write when = "t >= {time.text}" instead',
        )
    return [known_value(time, scalars)]


def _decided(
    event: Event, t0: float | None, assigned: set[str], scalars: Mapping[str, Bound]
) -> list[Bound] | None:
    """Return the times at which a condition becomes true; None if they depend on the trajectory.

    The times are known for a single comparison that is linear in time, with parameters and
    constants that no event changes.
    """
    assert isinstance(event.when, Expression)
    free = {n for n in scalars if n not in assigned}
    crossings = crossing(event.when, free)
    if crossings is None or t0 is None:
        return None
    time, rising, strict = crossings
    known = known_value(time.expression(), scalars)
    if not isinstance(known, float):
        if not rising:
            return None
        return [known if event.initially else call("max", [time, number(t0)]).expression()]
    later = known > t0 or (known == t0 and strict)
    if rising and later:
        return [known]
    holds = known <= t0 if rising else t0 < known or (t0 == known and not strict)
    return [t0] if holds and not event.initially else []
