"""One experiment on a tape: equations, their derivatives, initial values, events, observables."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from odefit.enclosure.function_rewriting import Functions
from odefit.enclosure.taylor_evaluation import TapeProgram
from odefit.problem.arrays import Array
from odefit.problem.binding import bound_value
from odefit.problem.condition import Condition
from odefit.problem.errors import InputError
from odefit.problem.expressions import TIME, Expression
from odefit.problem.problem import Problem
from odefit.problem.vector_field import VectorField
from odefit.structure.tape import NotRationalError, Recording, Tape, Term


@dataclass(frozen=True, eq=False)
class Mode:
    """Right-hand sides from one event that changes a constant to the next.

    Attributes
    ----------
    since
        Time from which on they hold.
    rates
        Of the states.
    slopes
        Their derivatives by the states, entries of the tape.
    """

    since: float
    rates: TapeProgram
    slopes: TapeProgram

    def order(self, states: int) -> tuple[list[list[int]], Array]:
        """Groups of states that act on each other, those that act on others first.

        Returns
        -------
        groups
            Numbers of states.
        reach
            Whether state i depends on state j, directly or through others, or is it, as zeros and
            ones, shape (n, n).
        """
        reach = np.eye(states)
        for number, term in enumerate(self.slopes.terms):
            if term.value != 0:
                reach[divmod(number, states)] = 1.0
        for _ in range(states):
            reach = (reach @ reach > 0).astype(float)
        # Those of one group depend on equally many; what depends on fewer comes first.
        groups: list[list[int]] = []
        for i in np.argsort(reach.sum(axis=1), kind="stable").tolist():
            same = [g for g in groups if reach[i, g[0]] and reach[g[0], i]]
            if same:
                same[0].append(i)
            else:
                groups.append([i])
        return groups, reach


class System:
    """The equations of one condition of a problem, over the unknowns.

    Parameters
    ----------
    problem, condition
        Whose equations.

    Attributes
    ----------
    tape
        On which everything is.
    unknowns, states, inputs
        Entries of the tape that are variables.
    time
        The entry of the time.
    motions
        In the order of time.
    initial
        Initial values, over the unknowns.

    Raises
    ------
    InputError
        Something has a kink, or there are algebraic equations that cannot be eliminated.
    """

    def __init__(self, problem: Problem, condition: Condition) -> None:
        self.problem, self.condition = problem, condition
        self.tape = Tape()
        self._field = VectorField.of(problem.model, problem.conditions)
        tape, model = self.tape, problem.model
        unknown = [tape.variable(f"unknown {k}") for k in range(len(problem.unknowns))]
        self._states = {name: tape.variable(f"state {name}") for name in model.states}
        self._inputs = {name: tape.variable(f"input {name}") for name in model.inputs}
        self._time = tape.variable("time")
        self.unknowns = [u.index for u in unknown]
        self.states = [s.index for s in self._states.values()]
        self.inputs = {name: term.index for name, term in self._inputs.items()}
        self.time = self._time.index
        self._algebra = Recording(tape, Functions(tape))
        try:
            self._elimination = self._eliminated()
            scalars = {
                name: bound_value(bound, condition.scalars, unknown, self._algebra)
                for name, bound in condition.scalars.items()
            }
            self._stages: list[tuple[float, Mapping[str, Term]]] = [(-math.inf, scalars)]
            self._jumps: list[tuple[float, Mapping[str, Expression], Mapping[str, Term]]] = []
            for time, assign in condition.events:
                self._jumps.append((time, assign, scalars))
                scalars = {**scalars, **self._assigned(time, assign, scalars)}
                self._stages.append((time, scalars))
            self.motions = [self._motion(since, scalars) for since, scalars in self._stages]
            initial = [
                bound_value(condition.initial[name], condition.scalars, unknown, self._algebra)
                for name in model.states
            ]
            self.initial = TapeProgram(tape, initial)
        except NotRationalError as error:
            raise InputError(f"enclosure: {error}; take another method") from None

    def _motion(self, since: float, scalars: Mapping[str, Term]) -> Mode:
        known = {n: scalars[n] for n in self._field.scalars}
        known |= {**self._states, **self._inputs, TIME: self._time}
        rates = self.problem.model.rhs(self._complete(known), self._algebra)
        slopes = [
            self.tape.derivative(rate, state) for rate in rates for state in self._states.values()
        ]
        changing = [*self.states, *self.inputs.values(), self.time]
        return Mode(
            since,
            TapeProgram(self.tape, rates, changing),
            TapeProgram(self.tape, slopes, changing),
        )

    def _assigned(
        self, time: float, assign: Mapping[str, Expression], scalars: Mapping[str, Term]
    ) -> dict[str, Term]:
        """Constants after an event."""
        known = {**scalars, **self._states, TIME: self._algebra.number(repr(time))}
        for name in self._inputs:
            known[name] = self.tape.number(self.input_at(name, time))
        found = {}
        for name in scalars.keys() & assign.keys():
            found[name] = assign[name].evaluate(known, self._algebra)
            if self.tape.depends(found[name]) & set(self.states):
                raise InputError(
                    f"enclosure: the event at t = {time:g} sets {name} to {assign[name]}, which "
                    "depends on states; make it a state whose derivative is zero"
                )
        return found

    def input_at(self, name: str, time: float) -> Fraction:
        """An input, exactly."""
        given = self.condition.inputs[name]
        place = int(np.searchsorted(given.times, time, side="right"))
        coefficients = given.polynomials()[place].tolist()
        if not all(map(math.isfinite, coefficients)):
            raise InputError(f"enclosure: input {name} is too steep at t = {time:g}")
        tau = Fraction(time) - Fraction(float(given.times[max(place - 1, 0)]))
        return sum((Fraction(c) * tau**j for j, c in enumerate(coefficients)), Fraction(0))

    def _eliminated(self) -> list[list[Fraction]]:
        """Minus the inverse of the algebraic equations' derivatives, exactly."""
        tape, model = self.tape, self.problem.model
        names = tuple(model.algebraic)
        variables = {name: tape.variable(f"algebraic {name}") for name in names}
        others = {n for e in model.algebraic.values() for n in e.names} - set(names)
        known = {n: tape.variable(f"some {n}") for n in others} | self._folded() | variables
        rows = model.constraints(known, self._algebra)
        matrix = [[tape.derivative(row, v).value for v in variables.values()] for row in rows]
        found = None if self._field.algebraic else _inverse(matrix)
        if found is None:
            raise InputError(
                f"enclosure: the algebraic equations are not linear in {', '.join(names)} with "
                "constant coefficients; take another method"
            )
        return [[-a for a in row] for row in found]

    def _folded(self) -> dict[str, Term]:
        return {n: self._algebra.number(repr(v)) for n, v in self._field.folded.items()}

    def _complete(self, known: Mapping[str, Term]) -> dict[str, Term]:
        """With folded constants and eliminated algebraic variables."""
        full: dict[str, Term] = {**self._folded(), **known}
        names = tuple(self.problem.model.algebraic)
        zero = self.tape.number(0)
        at_zero = self.problem.model.constraints(
            {**full, **dict.fromkeys(names, zero)}, self._algebra
        )
        for name, row in zip(names, self._elimination, strict=True):
            total = zero
            for factor, value in zip(row, at_zero, strict=True):
                total = total + self.tape.number(factor) * value
            full[name] = total
        return full

    def motion(self, time: float) -> Mode:
        """What holds from `time` on."""
        return [m for m in self.motions if m.since <= time][-1]

    def observables(self, names: list[str], time: float) -> TapeProgram:
        """What is measured at `time`, before events at that time."""
        try:
            scalars = [found for since, found in self._stages if since < time][-1]
            return self._at([self.problem.model.observables[name] for name in names], scalars)
        except NotRationalError as error:
            raise InputError(f"enclosure, observables: {error}; take another method") from None

    def influence(self, program: TapeProgram) -> Array:
        """Which unknowns may act on each term of a program, shape (terms, n)."""
        tape, n = self.tape, len(self.unknowns)
        every = set(range(len(self.states)))
        acting = [set(tape.depends(t)) for t in self.initial.terms]
        reach = np.eye(len(self.states))
        for motion in self.motions:
            reach = np.maximum(reach, motion.order(len(self.states))[1])
            for i, rate in enumerate(motion.rates.terms):
                acting[i] |= tape.depends(rate)
        for _ in self.motions:  # from one motion to the next
            reach = (reach @ reach > 0).astype(float)
        for time, assign, _ in self._jumps:
            places, jump = self.jump(assign, time)
            for i, term in zip(places, jump.terms, strict=True):
                acting[i] |= tape.depends(term)
        # Events may carry anything from one state to another.
        jumps = any(name in self._states for _, e in self.condition.events for name in e)
        found = np.zeros((len(program.terms), n))
        for row, term in enumerate(program.terms):
            direct = tape.depends(term)
            own = {i for i in every if self.states[i] in direct}
            states = every if jumps and own else {j for i in own for j in every if reach[i, j]}
            entries = set(direct).union(*(acting[j] for j in states))
            found[row] = [entry in entries for entry in self.unknowns]
        return found

    def jump(self, assign: Mapping[str, Expression], time: float) -> tuple[list[int], TapeProgram]:
        """Which states an event sets, by number, and to what."""
        names = list(self._states)
        own = [n for n in names if n in assign]
        # Of events at the same time, each sees what those before it have set.
        scalars = next(s for t, a, s in self._jumps if t == time and a is assign)
        try:
            return [names.index(n) for n in own], self._at([assign[n] for n in own], scalars)
        except NotRationalError as error:
            raise InputError(f"enclosure, events: {error}; take another method") from None

    def _at(self, expressions: list[Expression], scalars: Mapping[str, Term]) -> TapeProgram:
        known = self._complete({**scalars, **self._states, **self._inputs, TIME: self._time})
        return TapeProgram(self.tape, [e.evaluate(known, self._algebra) for e in expressions])

    @property
    def breaks(self) -> list[float]:
        """Times after t0 at which something is not smooth."""
        events = {t for t, _ in self.condition.events}
        corners = {float(t) for i in self.condition.inputs.values() for t in i.times}
        return sorted(t for t in events | corners if t > self.condition.t0)


def _inverse(matrix: list[list[Fraction | None]]) -> list[list[Fraction]] | None:
    """By elimination; None if an entry is not known, or the matrix is singular."""
    n = len(matrix)
    rows: list[list[Fraction]] = []
    for i, row in enumerate(matrix):
        own = [a for a in row if a is not None]
        if len(own) < n:
            return None
        rows.append(own + [Fraction(i == j) for j in range(n)])
    for k in range(n):
        pivot = next((i for i in range(k, n) if rows[i][k] != 0), None)
        if pivot is None:
            return None
        rows[k], rows[pivot] = rows[pivot], rows[k]
        rows[k] = [a / rows[k][k] for a in rows[k]]
        for i in range(n):
            if i != k and rows[i][k] != 0:
                rows[i] = [a - rows[i][k] * b for a, b in zip(rows[i], rows[k], strict=True)]
    return [row[n:] for row in rows]
