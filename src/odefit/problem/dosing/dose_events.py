"""Dose records of one subject as events: boluses, infusions, additional doses, resets.

An infusion into a state is a constant added to its right-hand side. Events at the beginning and end
of the infusion change the constant, so that nothing is smoothed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from odefit.common.errors import did_you_mean, shown
from odefit.common.option_checks import natural_in
from odefit.expressions.expressions import parse
from odefit.problem.dosing.dose_records import Record
from odefit.problem.dosing.quantities import Quantity, as_text, before, combined, quotient
from odefit.problem.experiment import Cycle, Doses, Event, of_state
from odefit.problem.inputs.issues import Issues
from odefit.problem.model import Model
from odefit.problem.parameters import Parameter

MAX_DOSES = 100_000
"""Largest number of doses in a table, including additional ones."""

SAME = 1e-6
"""Relative difference within which an amount equals rate times duration."""


@dataclass(frozen=True)
class Arrival:
    """One dose as it arrives."""

    record: Record
    time: Quantity  # the time of arrival
    target: str  # the state that receives it
    amount: Quantity | None  # the amount of a bolus; None for an infusion
    rate: Quantity = 0.0  # of an infusion
    end: Quantity = 0.0
    implied: bool = False  # True for an additional dose


@dataclass(eq=False)
class Course:
    """The events of one subject."""

    events: list[Event] = field(default_factory=list)  # its events in the order of time
    steady_state: bool | Cycle = False  # the steady state at its start, if any
    constants: dict[str, Any] = field(default_factory=dict)  # constants with their own values
    # end and rate of infusions that began before its first time, by constant
    running: dict[str, list[tuple[float, float]]] = field(default_factory=dict)


class DoseEvents:
    """Converts records to events.

    Resets restore the `initial` values. `columns` says whether the table has RATE or DUR.
    `infusions` names the rate of each state that receives an infusion.
    """

    def __init__(
        self, model: Model, doses: Doses, initial: Mapping[str, Any], columns: bool, issues: Issues
    ) -> None:
        self._model, self._doses, self._issues = model, doses, issues
        self._initial, self._columns = initial, columns
        self._states = list(model.ode)
        self._dose_count = 0
        self.infusions: dict[str, str] = {}

    def find_infusions(self, records: Sequence[Record], taken: set[str]) -> None:
        """Name the rates of all infusions in some records, different from names in `taken`."""
        for record in records:
            state = self._target(record, quiet=True) if record.doses else None
            if state is None or state in self.infusions or not self._infused(record, state):
                continue
            name = f"{state}_infusion"
            while name in taken:
                name += "_"
            self.infusions[state] = name

    def course(self, records: Sequence[Record], t0: float) -> Course:
        """Return the events of one subject, whose records are in the order of the table."""
        course_of = Course()
        resets = [r for r in records if r.resets]
        arrivals = [arrival for r in records if r.doses for arrival in self._arrivals(r)]
        for record in [r for r in records if r.doses and r.steady]:
            self._begin_steady(record, records, t0, course_of)
            if record.rate and not record.amount:  # at rest so far, and off from now on
                arrivals = [a for a in arrivals if a.record is not record]
        # In a row with a reset, the dose follows the reset, because the sort is stable.
        ordered = [(r.time, r.order, self._reset(r, records)) for r in resets]
        for arrival in arrivals:
            self._bolus(arrival, _first_reset(arrival, resets), records, ordered)
        for state, name in self.infusions.items():
            doses = [a for a in arrivals if a.target == state and a.amount is None]
            self._infusion(name, doses, resets, course_of.running.get(name, []), ordered)
        course_of.events += [e for _, _, e in sorted(ordered, key=lambda entry: entry[:2])]
        if not resets:
            course_of.events = _together(course_of.events)
        return course_of

    def _target(self, record: Record, *, quiet: bool = False) -> str | None:
        """Return the state that receives a dose."""
        into, states, problem = self._doses.into, self._states, None
        if isinstance(into, str):
            return into if into in states else None
        if record.target is None:
            if into is None and len(states) == 1:
                return states[0]
            problem = (
                'the state that the dose goes into is not given; write doses = { into = "STATE" }'
            )
        elif isinstance(into, Mapping):
            if record.target in into:
                return str(into[record.target])
            problem = f"CMT = {record.target} is not among those that doses.into names"
        elif record.target in states:
            return record.target
        elif 1 <= (number := natural_in(record.target) or 0) <= len(states):
            return states[number - 1]
        else:
            numbered = ", ".join(f"{i} = {s}" for i, s in enumerate(states, 1))
            problem = (
                f"CMT = {shown(record.target)} is neither a state nor the number of one "
                f"({numbered}){did_you_mean(record.target, states)}; write doses = {{ into = ... }}"
            )
        if not quiet:
            self._issues.error(record.place, problem)
        return None

    def _infused(self, record: Record, state: str) -> bool:
        if record.rate or record.duration:
            return True
        settings = (self._doses.duration, self._doses.rate)
        return not self._columns and any(of_state(v, state) is not None for v in settings)

    def _of(self, name: Literal["lag", "bioavailability", "duration", "rate"], state: str) -> Any:
        quantity = of_state(getattr(self._doses, name), state)
        return (
            quantity if quantity is None or quantity.constant is None else float(quantity.constant)
        )

    def _arrivals(self, record: Record) -> list[Arrival]:
        state = self._target(record)
        if state is None:
            return []
        lag = self._of("lag", state)
        rate, length = self._rate_and_length(record, state)
        interval = record.interval or 0.0
        if record.additional and not interval:
            self._issues.error(
                record.place, "ADDL asks for additional doses, but II, their interval, is empty"
            )
            return []
        self._dose_count += record.additional + 1
        if self._dose_count > MAX_DOSES:
            if self._dose_count - record.additional - 1 <= MAX_DOSES:
                self._issues.error(
                    record.place,
                    f"with the doses of ADDL = {record.additional:g} there are more than "
                    f"{MAX_DOSES:,} doses; give as many as the times of the data need",
                )
            return []
        amount = None if self._infused(record, state) else self._amount(record, state)
        nominal = [record.time + k * interval for k in range(record.additional + 1)]
        times = [combined(time, "+", lag) for time in nominal]
        return [
            Arrival(
                record=record,
                time=time,
                target=state,
                amount=amount,
                rate=rate,
                end=combined(time, "+", length),
                implied=k > 0,
            )
            for k, time in enumerate(times)
        ]

    def _amount(self, record: Record, state: str) -> Quantity:
        return combined(record.amount or 0.0, "*", self._of("bioavailability", state))

    def _rate_and_length(self, record: Record, state: str) -> tuple[Quantity, Quantity]:
        """Return rate and duration of an infusion; zeros for a bolus."""
        if not self._infused(record, state):
            return 0.0, 0.0
        amount = self._amount(record, state)
        rate, length = record.rate, record.duration
        own_rate = rate if rate is not None and rate > 0 else None
        total = record.amount or 0.0
        if own_rate and length and abs(own_rate * length - total) > SAME * total:
            self._issues.error(
                record.place,
                f"RATE = {own_rate:g} over DUR = {length:g} is not AMT = {total:g}; "
                "keep one of RATE and DUR",
            )
        if rate is not None and rate < 0:
            modelled: Literal["rate", "duration"] = "rate" if rate == -1 else "duration"
            value = self._of(modelled, state)
            if rate not in (-1, -2) or value is None:
                self._issues.error(
                    record.place,
                    f'RATE = {rate:g} needs doses = {{ {modelled} = "EXPRESSION" }}'
                    if rate in (-1, -2)
                    else f"expected a rate, 0, -1 or -2 in RATE, got {rate:g}",
                )
                return 0.0, 0.0
        elif own_rate:
            modelled, value = "rate", own_rate
        elif length:
            modelled, value = "duration", length
        else:
            duration = self._of("duration", state)
            modelled = "rate" if duration is None else "duration"
            value = self._of("rate", state) if duration is None else duration
        if modelled == "rate":
            return value, quotient(amount, value)
        return quotient(amount, value), value

    def _bolus(
        self,
        arrival: Arrival,
        cancelled: float,
        records: Sequence[Record],
        ordered: list[tuple[float, int, Event]],
    ) -> None:
        amount, time, state = arrival.amount, arrival.time, arrival.target
        if amount is None or (isinstance(time, float) and time >= cancelled):
            return
        if not isinstance(time, float) and math.isfinite(cancelled):
            amount = before(amount, time, cancelled)
        measured: Literal["before", "after"] = "before"
        if isinstance(time, float) and not arrival.implied:
            measured = self._measured(arrival.record, time, state, records)
        text = f"{state} + {as_text(amount)}"
        event = Event((time,), {state: text}, measured=measured)
        ordered.append((_key(time, arrival), arrival.record.order, event))

    def _measured(
        self, record: Record, time: float, state: str | None, records: Sequence[Record]
    ) -> Literal["before", "after"]:
        """Return whether measurements at the time of a record precede it, by the order of rows."""
        model = self._model
        acting = {state, *model.algebraic}
        seen = {n for n, e in model.observables.items() if state is None or acting & e.names}
        orders = [r.order for r in records if r.time == time and seen & r.values.keys()]
        if not orders or max(orders) < record.order:
            return "before"
        if min(orders) < record.order:
            self._issues.error(
                record.place,
                f"there are measurements at t = {time:g} both above and below the row of the dose, "
                "whose values change at once; give those below a slightly later time",
            )
        return "after"

    def _infusion(
        self,
        name: str,
        arrivals: Sequence[Arrival],
        resets: Sequence[Record],
        running: Sequence[tuple[float, float]],
        ordered: list[tuple[float, int, Event]],
    ) -> None:
        """Add the events of all infusions into one state."""
        ends = {id(a): _first_reset(a, resets) for a in arrivals}
        if not all(isinstance(q, float) for a in arrivals for q in (a.time, a.rate, a.end)):
            for a in arrivals:
                rate = a.rate
                on = off = rate
                if math.isfinite(ends[id(a)]):
                    on, off = (before(rate, time, ends[id(a)]) for time in (a.time, a.end))
                for time, sign, change in ((a.time, "+", on), (a.end, "-", off)):
                    event = Event((time,), {name: f"{name} {sign} {as_text(change)}"})
                    ordered.append((_key(time, a), a.record.order, event))
            for end, rate in running:
                ordered.append((end, -1, Event((end,), {name: f"{name} - {rate!r}"})))
            return
        first = min((r.time for r in resets), default=math.inf)
        spans = [(-math.inf, min(end, first), rate, -1) for end, rate in running]
        for a in arrivals:
            assert isinstance(a.time, float)
            assert isinstance(a.end, float)
            assert isinstance(a.rate, float)
            end = min(a.end, ends[id(a)])
            if a.time < end:
                spans.append((a.time, end, a.rate, a.record.order))
        for time in sorted({t for span in spans for t in span[:2] if math.isfinite(t)}):
            # Rates are summed again, so that ends differing by rounding leave no remainder.
            rate = math.fsum(r for start, end, r, _ in spans if start <= time < end)
            order = max(o for start, end, _, o in spans if time in (start, end))
            ordered.append((time, order, Event((time,), {name: rate})))

    def _reset(self, record: Record, records: Sequence[Record]) -> Event:
        assign: dict[str, Any] = {}
        for state in self._states:
            value = self._initial.get(state, 0.0)
            if isinstance(value, (Parameter, Mapping)):
                self._issues.error(
                    record.place,
                    f"EVID = {record.kind} brings {state} back to its initial value, which is "
                    "unknown; make it a parameter: [initial] "
                    f'{state} = "{state}_0", [parameters] {state}_0 = {{ ... }}',
                )
                value = 0.0
            assign[state] = value
        assign |= dict.fromkeys(self.infusions.values(), 0.0)
        return Event(
            (record.time,), assign, measured=self._measured(record, record.time, None, records)
        )

    def _begin_steady(
        self, record: Record, records: Sequence[Record], t0: float, course: Course
    ) -> None:
        """Start the subject in the steady state of a repeated dose or a constant infusion."""
        state = self._target(record, quiet=True)
        if state is None:
            return
        others = [r for r in records if r is not record and (r.values or r.doses or r.resets)]
        if record.time != t0 or any(r.time < record.time for r in others):
            self._issues.error(
                record.place,
                f"SS = 1 is allowed only at the first time of a subject, t = {t0:g}, and in its "
                f"first row, as that is the state in which the subject begins; here it is at t = "
                f"{record.time:g}. Give the rows from here on an ID of their own (they restart, "
                "in the steady state), or write the doses that lead there as records (ADDL, II)",
            )
            return
        if course.steady_state is not False:
            self._issues.error(record.place, "SS = 1 in two rows of one subject; keep one of them")
            return
        if record.rate and not record.amount:
            if record.rate < 0 or record.interval or record.additional:
                self._issues.error(
                    record.place,
                    "a constant infusion up to now (SS = 1, AMT = 0) has a positive RATE, and "
                    "neither II nor ADDL",
                )
            name = self.infusions[state]
            course.steady_state, course.constants[name] = True, record.rate
            course.events.append(Event((record.time,), {name: 0.0}))
            return
        if not record.interval:
            message = "SS = 1 needs II, the interval between the doses before"
            self._issues.error(record.place, message)
            return
        self._cycle(record, state, record.interval, course)

    def _cycle(self, record: Record, state: str, period: float, course: Course) -> None:
        lag = self._of("lag", state)
        begin: Quantity = 0.0 if lag is None else lag
        if not self._infused(record, state):
            amount = self._amount(record, state)
            if isinstance(begin, float):
                self._check_lag(begin, period, record)
            else:  # with a longer one, evaluation fails like a division by zero
                shorter = f"piecewise(1, {begin.text} < {period!r}, 0)"
                amount = parse(f"{as_text(amount)}/{shorter}")
                begin = parse(f"{as_text(begin)}*{shorter}")
            event = Event((begin,), {state: f"{state} + {as_text(amount)}"})
            course.steady_state = Cycle(period, (event,))
            return
        name = self.infusions[state]
        rate, length = self._rate_and_length(record, state)
        if not (isinstance(begin, float) and isinstance(rate, float) and isinstance(length, float)):
            self._issues.error(
                record.place,
                "the steady state of repeated infusions needs a lag time, a rate and a duration "
                "that are numbers; take a bolus, or write the infusions before as records",
            )
            return
        if begin >= period:
            self._check_lag(begin, period, record)
            return
        running = max(math.ceil((begin + length) / period) - 1, 0)  # still from earlier doses
        off = begin + length - running * period
        times = sorted({t for t in (begin, off) if t < period})
        events = [Event((t,), {name: rate * (running + (t >= begin) - (t >= off))}) for t in times]
        course.steady_state = Cycle(period, tuple(events))
        course.constants[name] = rate * running
        ends = [record.time + begin + length - j * period for j in range(running, 0, -1)]
        course.running[name] = [(end, rate) for end in ends]

    def _check_lag(self, lag: float, period: float, record: Record) -> None:
        if not 0.0 <= lag < period:
            self._issues.error(
                record.place, f"the lag time {lag:g} is not between 0 and II = {period:g}"
            )


def _first_reset(arrival: Arrival, resets: Sequence[Record]) -> float:
    return min((r.time for r in resets if r.order > arrival.record.order), default=math.inf)


def _together(events: Sequence[Event]) -> list[Event]:
    """Merge events with equal assignments that add to states into one with several times."""
    by_key: dict[Any, Event] = {}
    for event in events:
        fixed = all(isinstance(t, float) for t in event.times)
        adds = fixed and all(isinstance(v, str) for v in event.assign.values())
        key: Any = (tuple(event.assign.items()), event.measured) if adds else id(event)
        if key in by_key:
            event = Event((*by_key[key].times, *event.times), event.assign, measured=event.measured)
        by_key[key] = event
    return list(by_key.values())


def _key(time: Quantity, arrival: Arrival) -> float:
    return time if isinstance(time, float) else arrival.record.time
