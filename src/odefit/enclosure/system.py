"""The equations of one condition on a tape: modes, initial values, events and observables.

Functions that Taylor models lack are rewritten in terms of those that they have.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from odefit.common.arrays import Array
from odefit.common.errors import InputError
from odefit.common.exact_linear_algebra import inverse
from odefit.enclosure.arithmetic.taylor_evaluation import TapeProgram
from odefit.expressions.expressions import NON_SMOOTH, TIME, Expression
from odefit.expressions.grammar import named
from odefit.problem.binding import bound_value
from odefit.problem.condition import Condition
from odefit.problem.problem import Problem
from odefit.problem.variants.features import refuse_integrated_features
from odefit.problem.vector_field import VectorField
from odefit.structure.series.tape import NotRationalError, Recording, Tape, Term

MAX_EXPONENT = 64
"""Largest fixed exponent of a power; larger exponents, and those below its reciprocal, use
logarithms."""

VALUES_AT_ZERO: Mapping[str, int] = {
    "exp": 1, "sin": 0, "cos": 1, "tan": 0, "asin": 0, "atan": 0, "sinh": 0, "cosh": 1,
    "tanh": 0, "sqrt": 0,
}  # fmt: skip
"""Values of functions at zero, where they are known exactly."""


class FunctionRewriting:
    """Rewrites functions as :data:`odefit.structure.series.tape.ELEMENTARY` operations of a tape.

    :class:`odefit.structure.series.tape.Recording` lifts with it for enclosures, in continuous time
    and on meshes, so that functions become operations instead of new states.
    """

    def __init__(self, tape: Tape) -> None:
        self._tape = tape
        self._rules: Mapping[str, Callable[[Term], Term]] = {
            "exp": self._exp,
            "log": self._log,
            "log10": lambda x: self._log(x) / self._log(tape.number(10)),
            "sqrt": self._root,
            "sin": lambda x: tape.apply("sin", x, x),
            "cos": lambda x: tape.apply("cos", x, x),
            "tan": lambda x: tape.apply("sin", x, x) / tape.apply("cos", x, x),
            "asin": self._asin,
            "acos": lambda x: self._atan(tape.number(1)) * tape.number(2) - self._asin(x),
            "atan": self._atan,
            "sinh": lambda x: (self._exp(x) - self._exp(-x)) * tape.number(Fraction(1, 2)),
            "cosh": lambda x: (self._exp(x) + self._exp(-x)) * tape.number(Fraction(1, 2)),
            "tanh": self._tanh,
        }

    def __call__(self, function: str, arguments: Sequence[Term]) -> Term:
        """Return the value of a function, or of ``"^"``; kinks raise NotRationalError."""
        if function in NON_SMOOTH:
            raise NotRationalError(f"{named(function)!r} has a kink and cannot be enclosed")
        if function == "^":
            return self._power(*arguments)
        x = arguments[0]
        if x.value == 0 and function in VALUES_AT_ZERO:
            return self._tape.number(VALUES_AT_ZERO[function])
        return self._rules[function](x)

    def _exp(self, x: Term) -> Term:
        return self._tape.apply("exp", x, x)

    def _log(self, x: Term) -> Term:
        return self._tape.number(0) if x.value == 1 else self._tape.apply("log", x, x)

    def _root(self, x: Term) -> Term:
        return self._power(x, self._tape.number(Fraction(1, 2)))

    def _power(self, base: Term, exponent: Term) -> Term:
        p, b = exponent.value, base.value
        if b == 1 or (b == 0 and p is not None and p > 0):
            return base
        if p is not None and Fraction(1, MAX_EXPONENT) <= abs(p) <= MAX_EXPONENT:
            return self._tape.apply("^", base, exponent)
        if p is not None or b is not None:
            return self._exp(exponent * self._log(base))
        # The second factor is nearly one, so its remainder is small.
        middle = self._tape.apply("middle", exponent, exponent)
        near = self._exp((exponent - middle) * self._log(base))
        return self._tape.apply("^", base, middle) * near

    def _asin(self, x: Term) -> Term:
        return self._tape.apply("asin", x, self._root(self._tape.number(1) - x * x))

    def _atan(self, x: Term) -> Term:
        return self._tape.apply("atan", x, self._tape.number(1) + x * x)

    def _tanh(self, x: Term) -> Term:
        cosh = self._rules["cosh"](x)
        return self._tape.apply("tanh", x, cosh * cosh)


@dataclass(frozen=True, eq=False)
class Mode:
    """The right-hand sides, and their Jacobian row by row, after an event."""

    begin: float
    right_hand_sides: TapeProgram
    jacobian: TapeProgram

    @cached_property
    def dependence(self) -> Array:
        """One where state i is j or depends on it, even indirectly, otherwise zero, (n, n)."""
        n = len(self.right_hand_sides.terms)
        entries = np.array([term.value != 0 for term in self.jacobian.terms])
        return _closure(entries.reshape(n, n) + np.eye(n))

    @cached_property
    def groups(self) -> list[list[int]]:
        """Numbers of the states that depend on each other, with groups that others need first."""
        mutual = self.dependence * self.dependence.T
        groups: list[list[int]] = []
        # States of one group depend on equally many states; those that depend on fewer come first.
        for i in np.argsort(self.dependence.sum(axis=1), kind="stable").tolist():
            group = next((g for g in groups if mutual[i, g[0]]), None)
            if group is None:
                groups.append([i])
            else:
                group.append(i)
        return groups


def _closure(relation: Array) -> Array:
    """Return the transitive closure of a reflexive relation of 0 and 1, shape (n, n)."""
    for _ in range(len(relation).bit_length()):
        relation = (relation @ relation > 0).astype(float)
    return relation


class System:
    """The equations of one condition of a problem, over the unknowns, recorded on a tape.

    `modes` are the right-hand sides between events, in the order of time. Raises InputError for an
    expression with a kink, and for algebraic equations that cannot be eliminated.
    """

    def __init__(self, problem: Problem, condition: Condition) -> None:
        refuse_integrated_features(problem, "an enclosure")
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
        self._algebra = Recording(tape, FunctionRewriting(tape))
        try:
            self._elimination = self._algebraic_solution()
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
            self.modes = [self._mode(begin, scalars) for begin, scalars in self._stages]
            initial = [
                bound_value(condition.initial[name], condition.scalars, unknown, self._algebra)
                for name in model.states
            ]
            self.initial = TapeProgram(tape, initial)
        except NotRationalError as error:
            raise InputError(f"enclosure: {error}; take another method") from None

    def _mode(self, begin: float, scalars: Mapping[str, Term]) -> Mode:
        known = {n: scalars[n] for n in self._field.scalars}
        known |= {**self._states, **self._inputs, TIME: self._time}
        rates = self.problem.model.rhs(self._complete(known), self._algebra)
        jacobian = [
            self.tape.derivative(rate, state) for rate in rates for state in self._states.values()
        ]
        changing = [*self.states, *self.inputs.values(), self.time]
        programs = (TapeProgram(self.tape, terms, changing) for terms in (rates, jacobian))
        return Mode(begin, *programs)

    def _assigned(
        self, time: float, assign: Mapping[str, Expression], scalars: Mapping[str, Term]
    ) -> dict[str, Term]:
        """Return the constants that an event sets, by name, with their new values."""
        known = {**scalars, **self._states, TIME: self._algebra.number(repr(time))}
        for name in self._inputs:
            known[name] = self.tape.number(self.input_at(name, time))
        assigned = {}
        for name in scalars.keys() & assign.keys():
            assigned[name] = assign[name].evaluate(known, self._algebra)
            if self.tape.depends(assigned[name]) & set(self.states):
                raise InputError(
                    f"enclosure: the event at t = {time:g} sets {name} to {assign[name]}, which "
                    "depends on states; make it a state whose derivative is zero"
                )
        return assigned

    def input_polynomial(self, name: str, time: float) -> tuple[list[float], float]:
        """Return an input from `time` to its next knot: four coefficients, and the origin.

        The lowest power comes first. The argument is the time since the origin.
        """
        signal = self.condition.inputs[name]
        piece = int(np.searchsorted(signal.times, time, side="right"))
        return signal.polynomials()[piece].tolist(), float(signal.times[max(piece - 1, 0)])

    def input_at(self, name: str, time: float) -> Fraction:
        """Return the exact value of an input at a time."""
        coefficients, origin = self.input_polynomial(name, time)
        if not all(map(math.isfinite, coefficients)):
            raise InputError(f"enclosure: input {name} is too steep at t = {time:g}")
        tau = Fraction(time) - Fraction(origin)
        return sum((Fraction(c) * tau**j for j, c in enumerate(coefficients)), Fraction(0))

    def _algebraic_solution(self) -> list[list[Fraction]]:
        """Return minus the inverse of the algebraic equations' Jacobian, exactly."""
        tape, model = self.tape, self.problem.model
        names = tuple(model.algebraic)
        variables = {name: tape.variable(f"algebraic {name}") for name in names}
        others = {n for e in model.algebraic.values() for n in e.names} - set(names)
        known = {n: tape.variable(f"some {n}") for n in others} | self._folded() | variables
        rows = model.constraints(known, self._algebra)
        matrix = [[tape.derivative(row, v).value for v in variables.values()] for row in rows]
        inverted = None if self._field.algebraic else inverse(matrix)
        if inverted is None:
            raise InputError(
                f"enclosure: the algebraic equations are not linear in {', '.join(names)} with "
                "constant coefficients; take another method"
            )
        return [[-a for a in row] for row in inverted]

    def _folded(self) -> dict[str, Term]:
        return {n: self._algebra.number(repr(v)) for n, v in self._field.folded.items()}

    def _complete(self, known: Mapping[str, Term]) -> dict[str, Term]:
        """Return known terms with folded constants and eliminated algebraic variables."""
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

    def mode_at(self, time: float) -> Mode:
        """Return the mode that holds from `time` on."""
        return [m for m in self.modes if m.begin <= time][-1]

    def observables(
        self, names: Sequence[str], time: float, transforms: Sequence[str | None] = ()
    ) -> TapeProgram:
        """Return the observables with the given names at `time`, before events at that time.

        Those with a function among the `transforms` are its values.
        """
        try:
            scalars = [stage for begin, stage in self._stages if begin < time][-1]
            evaluated = self._at([self.problem.model.observables[name] for name in names], scalars)
            functions = transforms or [None] * len(names)
            terms = [
                term if function is None else self._algebra.call(function, [term])
                for term, function in zip(evaluated.terms, functions, strict=True)
            ]
            return TapeProgram(self.tape, terms)
        except NotRationalError as error:
            raise InputError(f"enclosure, observables: {error}; take another method") from None

    def unknown_term(self, number: int) -> Term:
        """Return the term of an unknown."""
        return Term(self.tape, self.unknowns[number])

    def spread(
        self, expression: Expression, time: float, predictions: Mapping[str, Term] | None = None
    ) -> Term:
        """Return a spread at `time`, before events at that time.

        Observables in it may be replaced by other terms, given by name.
        """
        scalars = [stage for begin, stage in self._stages if begin < time][-1]
        observables = self.problem.model.observables
        names = [name for name in observables if name in expression.names]
        replaced = dict(predictions or {})
        missing = [name for name in names if name not in replaced]
        try:
            terms = self._at([observables[name] for name in missing], scalars).terms
            known = {**scalars, **self._states, **self._inputs, TIME: self._time}
            known |= {**dict(zip(missing, terms, strict=True)), **replaced}
            term: Term = expression.evaluate(self._complete(known), self._algebra)
            return term
        except NotRationalError as error:
            raise InputError(f"enclosure, noise: {error}; take another method") from None

    def influence(self, program: TapeProgram) -> Array:
        """Return which unknowns may act on each term of a program, as 0 and 1, (terms, n)."""
        tape, n = self.tape, len(self.unknowns)
        every = set(range(len(self.states)))
        acting = [set(tape.depends(t)) for t in self.initial.terms]
        dependence = np.eye(len(self.states))
        for mode in self.modes:
            dependence = np.maximum(dependence, mode.dependence)
            for i, rate in enumerate(mode.right_hand_sides.terms):
                acting[i] |= tape.depends(rate)
        for _ in self.modes:  # from one mode to the next
            dependence = (dependence @ dependence > 0).astype(float)
        for time, assign, _ in self._jumps:
            places, jump = self.jump(assign, time)
            for i, term in zip(places, jump.terms, strict=True):
                acting[i] |= tape.depends(term)
        # Events may transfer any dependence from one state to another.
        jumps = any(name in self._states for _, e in self.condition.events for name in e)
        influence = np.zeros((len(program.terms), n))
        for row, term in enumerate(program.terms):
            direct = tape.depends(term)
            direct_states = {i for i in every if self.states[i] in direct}
            states = (
                every
                if jumps and direct_states
                else {j for i in direct_states for j in every if dependence[i, j]}
            )
            entries = set(direct).union(*(acting[j] for j in states))
            influence[row] = [entry in entries for entry in self.unknowns]
        return influence

    def jump(self, assign: Mapping[str, Expression], time: float) -> tuple[list[int], TapeProgram]:
        """Return the numbers of the states that an event sets, and their new values."""
        names = list(self._states)
        assigned = [n for n in names if n in assign]
        # Each event at the same time sees the constants set by earlier ones.
        scalars = next(s for t, a, s in self._jumps if t == time and a is assign)
        try:
            return [names.index(n) for n in assigned], self._at(
                [assign[n] for n in assigned], scalars
            )
        except NotRationalError as error:
            raise InputError(f"enclosure, events: {error}; take another method") from None

    def _at(self, expressions: list[Expression], scalars: Mapping[str, Term]) -> TapeProgram:
        known = self._complete({**scalars, **self._states, **self._inputs, TIME: self._time})
        return TapeProgram(self.tape, [e.evaluate(known, self._algebra) for e in expressions])

    @property
    def breaks(self) -> list[float]:
        """Times after t0 at which the solution is not smooth: events and knots of inputs."""
        events = {t for t, _ in self.condition.events}
        corners = {float(t) for i in self.condition.inputs.values() for t in i.times}
        return sorted(t for t in events | corners if t > self.condition.t0)
