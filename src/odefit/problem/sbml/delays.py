"""Delays in formulas, where an exact form exists.

The states in a delayed expression are integrated a second time, shifted by the delay, as additional
states. These rest at the initial values until the delay has passed. This is exact if the delayed
expression does not depend on its own past. Before the start, states have their initial values,
functions of time continue, and rates of change are zero.
"""

from __future__ import annotations

from collections.abc import Mapping

from odefit.expressions.expressions import TIME, ExpressionError
from odefit.problem.sbml.math_trees import RATE_PREFIX
from odefit.problem.sbml.symbols import Reading
from odefit.problem.sbml.terms import (
    ZERO,
    Term,
    compared,
    difference,
    expanded,
    names_in,
    numeric,
    piecewise,
    replaced_in,
)


class Delays:
    """Delayed expressions of a model with these right-hand sides, with their new states."""

    def __init__(self, reading: Reading, states: Mapping[str, str]) -> None:
        self.copies: dict[str, str] = {}  # right-hand sides of the copies of states
        self.starts: dict[str, Term] = {}  # their initial values
        self._reading = reading
        self._states = {n: Term(text) for n, text in states.items()}
        rates = {n for n in reading.definitions if n.startswith(RATE_PREFIX)}
        plain = {n: t for n, t in reading.definitions.items() if n not in rates}
        self._written, self._rates = expanded(plain), expanded(reading.definitions)
        self._made: dict[tuple[str, str], str] = {}
        self._changed = {s.name for s in reading.by_id.values() if s.event}
        for name in reading.delays:
            try:
                self._define(name, ())
            except ExpressionError as error:
                reading.error(reading.places[name], str(error))
                reading.definitions[name] = ZERO

    def _define(self, name: str, inside: tuple[str, ...]) -> None:
        """Define the replacement of a delayed expression."""
        if name in self._reading.definitions:
            return
        if name in inside:
            raise ExpressionError(
                "a delayed expression depends on its own past; odefit has no delay differential "
                "equations"
            )
        expression, delay = self._reading.delays[name]
        around = (*inside, name)
        delay = self._whole(replaced_in(numeric(delay), self._rates), around)
        now = self._whole(replaced_in(numeric(expression), self._written), around)
        rates = [n for n in names_in(now.text) if n.startswith(RATE_PREFIX)]
        before = {n: self._whole(self._rates[n], around) for n in rates}
        needed = self._needed([now, *before.values()], around)
        if needed or rates:
            self._check(delay)
        earlier = compared("<", Term(TIME), delay)
        shift = {TIME: difference(Term(TIME), delay)}
        histories = self._reading.histories
        copies = {n: Term(self._copy(n, delay)) for n in needed}
        shift |= copies
        for state, text in needed.items():
            rate = piecewise([ZERO, earlier, replaced_in(text, shift)])
            self._states[copies[state].text] = rate
            self.copies[copies[state].text] = rate.text
        for state, history in histories.items():
            past = replaced_in(history, {TIME: shift[TIME]})
            shift[state] = piecewise([past, earlier, copies.get(state, Term(state))])
        for rate_name, rate in before.items():
            shift[rate_name] = piecewise([ZERO, earlier, replaced_in(rate, shift)])
        self._reading.definitions[name] = replaced_in(now, shift)

    def _whole(self, term: Term, inside: tuple[str, ...]) -> Term:
        """Return a term with its delayed expressions replaced."""
        delayed = [n for n in names_in(term.text) if n in self._reading.delays]
        for name in delayed:
            self._define(name, inside)
        return replaced_in(term, {n: self._reading.definitions[n] for n in delayed})

    def _needed(self, terms: list[Term], inside: tuple[str, ...]) -> dict[str, Term]:
        """Return the states on which terms depend, with their right-hand sides."""
        needed: dict[str, Term] = {}
        pending = [n for term in terms for n in names_in(term.text)]
        while pending:
            name = pending.pop()
            if name in self._reading.conditions or name in self._changed:
                raise ExpressionError(
                    f"a delayed expression depends on '{name}', which an event or an equation "
                    "determines; odefit has no delay differential equations"
                )
            if name in self._states and name not in needed:
                needed[name] = self._whole(self._states[name], inside)
                pending += names_in(needed[name].text)
        return needed

    def _check(self, delay: Term) -> None:
        """Refuse a non-constant delay of states."""
        for name in names_in(delay.text):
            if name == TIME or name in self._states or name in self._changed:
                raise ExpressionError(
                    f"a delay of '{delay.text}' is not constant; odefit has no delay differential "
                    "equations"
                )

    def _copy(self, state: str, delay: Term) -> str:
        """Return the name of a state's delayed copy."""
        key = state, delay.text
        if key not in self._made:
            self._made[key] = self._reading.new_name(f"{state}_delayed")
            self.starts[self._made[key]] = Term(state)
        return self._made[key]
