"""One experiment, expanded into Taylor series around one time.

The states at that time are either given by the problem's initial values (around t0), or separate
unknowns (around any time).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Generic, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from odefit.common.arrays import ComplexArray
from odefit.expressions.expressions import TIME
from odefit.problem.binding import bound_value
from odefit.problem.condition import Condition
from odefit.problem.model import Model
from odefit.problem.problem import Problem
from odefit.structure.series.deadline import NEVER, Deadline
from odefit.structure.series.lifting import Lifting
from odefit.structure.series.number_fields import COMPLEX, MODULAR, PRIME, Numbers, Scalars
from odefit.structure.series.series import RationalODE, SeriesProgram
from odefit.structure.series.tape import NotRationalError, Recording, Tape, Term, needed

AT_START = "(start)"
"""The suffix of the names of known initial values of auxiliary states."""


class ExpansionPoint(NamedTuple, Generic[Scalars]):
    """Known numbers, and Taylor coefficients of known functions, shape (functions, order + 1)."""

    known: npt.NDArray[Scalars]
    functions: npt.NDArray[Scalars]


@dataclass(frozen=True, eq=False)
class Expansion:
    """One experiment, expanded around one time.

    The outputs of `program` are the measured observables, the algebraic constraints (terms that are
    zero at every time), then the parts of the differentials of auxiliary states. `differentials`
    holds for each its place among the outputs, and the places of its (factor, argument) pairs.
    `unknowns` are named as
    :class:`~odefit.structure.series.differentiated_system.DifferentiatedSystem` names them.
    `states` maps states to the unknown that is their value, `opened` to the unknown that is added
    to it. `time` is None for any time; `exact` holds the rational initial values of auxiliary
    states.
    """

    condition: Condition
    program: SeriesProgram
    unknowns: tuple[str, ...]
    observables: tuple[str, ...]
    constraints: int
    lifting: Lifting
    differentials: tuple[tuple[int, tuple[tuple[int, int], ...]], ...]
    states: Mapping[str, str]
    time: Fraction | None = None
    exact: Mapping[int, Fraction] = field(default_factory=dict)
    opened: Mapping[str, str] = field(default_factory=dict)

    @property
    def repeats(self) -> tuple[object, ...] | None:
        """A value that two expansions share if all their equations are the same; or None.

        It describes the present tape: read it before the program runs, which records derivatives.
        Interpolated inputs give None, as they differ.
        """
        if self.condition.inputs:
            return None
        e = self.program.equations
        groups = (e.unknowns, e.states, e.rhs, e.initial, e.outputs, e.known, e.functions)
        return (
            self.condition.t0,
            self.unknowns,
            self.observables,
            self.constraints,
            tuple(e.tape.entries),
            tuple(e.tape.numbers.items()),
            tuple(e.tape.names.items()),
            tuple(tuple(t.index for t in group) for group in groups),
            tuple(self.lifting.constants.items()),
        )

    def release(self, numbers: Sequence[int]) -> None:
        """Make some numbers, by their entries on the tape, known variables with their values."""
        e = self.program.equations
        for i in numbers:
            self.lifting.constants[i] = float(e.tape.numbers[i])
            e.tape.release(i, f"(number {i})")
        e = replace(e, known=(*e.known, *(Term(e.tape, i) for i in numbers)))
        self.program.equations = e

    @property
    def outputs(self) -> int:
        """Number of outputs that hold equations: observables and constraints."""
        return len(self.observables) + self.constraints

    def expansion_point(
        self, time: float, order: int, *, before: bool = False
    ) -> ExpansionPoint[np.complex128]:
        """Return the numbers and functions that the experiment prescribes at `time`, up to `order`.

        With `before`, an input that is not smooth there has its values before that time.
        """
        e = self.program.equations
        functions = self.function_series(
            COMPLEX, order, lambda name, length: self._input_series(name, time, length, before)
        )
        at = {t.index: complex(f[0]) for t, f in zip(e.functions, functions, strict=True)}
        at |= {i: complex(v) for i, v in self.lifting.constants.items()}
        for definition in self.lifting.definitions:
            if self.lifting.known(definition.state):
                arguments = [evaluate_term(e.tape, a, at) for a in definition.arguments]
                at[definition.state.index] = definition.function(*arguments)
        known = np.array([at.get(self._source(t), 1.0) for t in e.known], dtype=complex)
        return ExpansionPoint(known, functions)

    def generic_expansion_point(
        self, order: int, rng: np.random.Generator
    ) -> ExpansionPoint[np.complex128]:
        """Return random numbers and functions in place of those of the experiment.

        The time is random as well, unless the expansion has its own.
        """
        drawn = rng.normal()
        time = drawn if self.time is None else float(self.time)

        def series(name: str, length: int) -> ComplexArray:
            if name == TIME:
                return time_series(COMPLEX, time, length)
            return np.asarray(rng.normal(size=length) + 1j * rng.normal(size=length))

        functions = self.function_series(COMPLEX, order, series)
        known = random_complex(rng, len(self.program.equations.known))
        for i, value in self._exactly_known():
            known[i] = complex(value)
        return ExpansionPoint(known, functions)

    def modular_expansion_point(
        self, order: int, rng: np.random.Generator, *, any_time: bool = False
    ) -> ExpansionPoint[np.int64]:
        """Return random residues in place of all known numbers and functions, up to `order`.

        With `any_time` the time is random as well, although the expansion has its own.
        """
        fixed = None if self.time is None or any_time else MODULAR.exact(self.time)

        def series(name: str, length: int) -> npt.NDArray[np.int64]:
            drawn = rng.integers(1, PRIME, length)
            if name == TIME:
                return time_series(MODULAR, drawn[0] if fixed is None else fixed, length)
            return drawn

        known = rng.integers(1, PRIME, len(self.program.equations.known))
        for i, value in () if any_time else self._exactly_known():
            known[i] = MODULAR.exact(value)
        return ExpansionPoint(known, self.function_series(MODULAR, order, series))

    def _exactly_known(self) -> list[tuple[int, Fraction]]:
        """Return the places and values of the known rational numbers."""
        sources = [self._source(t) for t in self.program.equations.known]
        return [(i, self.exact[s]) for i, s in enumerate(sources) if s in self.exact]

    def function_series(
        self,
        numbers: Numbers[Scalars],
        order: int,
        series: Callable[[str, int], npt.NDArray[Scalars]],
    ) -> npt.NDArray[Scalars]:
        """Return Taylor coefficients of all known functions, shape (functions, order + 1).

        A known function is the time, an input, or a derivative of an input. `series` is called once
        for the time and each input with its name and the number of required coefficients.
        """
        terms = [self.lifting.functions[t.index] for t in self.program.equations.functions]
        longest = order + 1 + max((derivative for _, derivative in terms), default=0)
        by_name = {name: series(name, longest) for name in dict.fromkeys(n for n, _ in terms)}
        result = np.zeros((len(terms), order + 1), dtype=numbers.dtype)
        for k, (name, derivative) in enumerate(terms):
            coefficients = by_name[name]
            for _ in range(derivative):
                factors = np.arange(1, len(coefficients))
                coefficients = numbers.reduced(coefficients[1:] * factors)
            result[k] = coefficients[: order + 1]
        return result

    def _input_series(self, name: str, time: float, length: int, before: bool) -> ComplexArray:
        """Return the first Taylor coefficients of an input of the experiment, or of the time."""
        if name == TIME:
            return time_series(COMPLEX, time, length)
        series = np.zeros(length, dtype=complex)
        signal = self.condition.inputs[name]
        side: Literal["left", "right"] = "left" if before else "right"
        segment = int(np.searchsorted(signal.times, time, side=side))
        shift = time - signal.times[max(segment - 1, 0)]
        polynomial = np.polynomial.Polynomial(signal.polynomials()[segment])
        moved = polynomial(np.polynomial.Polynomial([shift, 1.0]))
        coefficients = np.atleast_1d(moved.coef)[:length]
        series[: len(coefficients)] = coefficients
        return series

    def _source(self, term: Term) -> int:
        """Return the index of the variable whose value a known variable has."""
        name = self.program.equations.tape.names[term.index]
        if name.endswith(AT_START):
            return self.lifting.states[name.removesuffix(AT_START)].index
        return term.index


def time_series(numbers: Numbers[Scalars], time: Any, length: int) -> npt.NDArray[Scalars]:
    """Return the first `length` Taylor coefficients of the time itself, around `time`."""
    series = np.zeros(length, dtype=numbers.dtype)
    series[:2] = [time, 1][:length]
    return series


def random_complex(rng: np.random.Generator, *shape: int) -> ComplexArray:
    """Return generic complex numbers of moderate size."""
    phases = np.exp(2j * np.pi * rng.uniform(size=shape))
    return np.asarray(rng.uniform(0.3, 1.3, shape) * phases)


def evaluate_term(tape: Tape, term: Term, values: Mapping[int, complex]) -> complex:
    """Return the value of one term, given those of its variables by their indices."""
    values_found: dict[int, complex] = {}
    for i in needed(tape, [term]):
        operation, a, b = tape.entries[i]
        if operation == "number":
            values_found[i] = complex(tape.numbers[i])
        elif operation == "variable":
            values_found[i] = values[i]
        elif operation == "+":
            values_found[i] = values_found[a] + values_found[b]
        elif operation == "-":
            values_found[i] = values_found[a] - values_found[b]
        elif operation == "*":
            values_found[i] = values_found[a] * values_found[b]
        else:
            values_found[i] = values_found[a] / values_found[b]
    return values_found[term.index]


def expand(
    problem: Problem,
    condition: Condition,
    free_states: bool,
    label: str,
    deadline: Deadline = NEVER,
    opened: bool = False,
) -> Expansion:
    """Record the equations of one experiment around one time.

    With `free_states` the states are separate unknowns, named with `label`, instead of the
    problem's initial values; with `opened` a variable is added to every given initial value. Raises
    NotRationalError if the equations cannot be made rational, or divide by zero.
    """
    tape = Tape()
    lifting = Lifting(tape, problem.model, deadline)
    unknowns: list[Any] = [tape.variable(f"?{key}") for key in problem.keys]
    names = {t.index: key for t, key in zip(unknowns, problem.keys, strict=True)}
    scalars = {
        name: bound_value(condition.scalars[name], condition.scalars, unknowns, lifting.algebra)
        for name in _used_scalars(problem.model, condition, free_states)
    }
    observables = lifting.record(scalars)
    measured = tuple(n for n in problem.model.observables if n in condition.series)
    initial: dict[str, Term] = {}
    exact: dict[str, Fraction] = {}
    if not free_states:
        for state, bound in condition.initial.items():
            initial[state] = bound_value(bound, condition.scalars, unknowns, lifting.algebra)
        initial = _after_events(condition, scalars, initial, lifting.algebra)
        lifting.complete_rhs()
        exact = _exact_starts(lifting, initial, _fraction(condition.t0))
    known: list[Term] = [Term(tape, i) for i in lifting.constants]
    known += lifting.generic
    own_names: dict[str, str] = {}
    for state, term in lifting.states.items():
        if state in initial:
            continue
        if lifting.known(term) and state not in (*problem.model.states, *problem.model.algebraic):
            initial[state] = tape.variable(f"{state}{AT_START}")
            known.append(initial[state])
            continue
        if state in exact:
            initial[state] = tape.number(exact[state])
            continue
        own_names[state] = f"{state}@{label}"
        initial[state] = tape.variable(own_names[state])
        names[initial[state].index] = own_names[state]
    added: dict[str, str] = {}
    free = {t.index for t, u in zip(unknowns, problem.unknowns, strict=True) if u.kind == "initial"}
    supplied = {*free, *(t.index for t in known)}
    # If all initial values are unknown, any time is generic.
    special = exact or any(initial[n].index not in free for n in problem.model.states)
    for state in lifting.states if opened else ():
        if state not in own_names and initial[state].index not in supplied:
            added[state] = f"{state}+@{label}"
            change = tape.variable(added[state])
            names[change.index] = added[state]
            initial[state] = initial[state] + change
    outputs = [observables[n] for n in measured] + lifting.constraints
    differentials, parts = _differential_outputs(lifting, len(outputs))
    outputs += parts
    # Initial values in terms of auxiliary states mean the initial values of these.
    auxiliary = {
        t.index: initial[n] for n, t in lifting.states.items() if n not in problem.model.states
    }
    rhs = tuple(lifting.rhs[n] for n in lifting.states)
    start = tuple(tape.substitute(initial[n], auxiliary) for n in lifting.states)
    appearing = tape.depends(*rhs, *start, *outputs)
    used = tuple(Term(tape, i) for i in names if i in appearing)
    equations = RationalODE(
        tape,
        used,
        tuple(lifting.states.values()),
        rhs,
        start,
        tuple(outputs),
        tuple(known),
        tuple(Term(tape, i) for i in lifting.functions),
    )
    return Expansion(
        condition,
        SeriesProgram(equations, deadline),
        tuple(names[t.index] for t in used),
        measured,
        len(lifting.constraints),
        lifting,
        differentials,
        own_names,
        None if free_states or not special else _fraction(condition.t0),
        {lifting.states[n].index: v for n, v in exact.items()},
        added,
    )


def _differential_outputs(
    lifting: Lifting, first: int
) -> tuple[tuple[tuple[int, tuple[tuple[int, int], ...]], ...], list[Term]]:
    """Return :attr:`Expansion.differentials`, and the outputs, from number `first` on, for them."""
    differentials, outputs = [], list[Term]()
    for d in lifting.differentials:
        if lifting.known(d.state):
            continue
        place = first + len(outputs)
        outputs.append(d.state)
        pairs = []
        for factor, argument in d.terms:
            pairs.append((first + len(outputs), first + len(outputs) + 1))
            outputs += [factor, argument]
        differentials.append((place, tuple(pairs)))
    return tuple(differentials), outputs


def _used_scalars(model: Model, condition: Condition, free_states: bool) -> set[str]:
    """Return the parameters and constants on which the expansion depends."""
    tables = (model.ode, model.algebraic, model.observables)
    used = {n for table in tables for e in table.values() for n in e.names}
    if not free_states:
        used |= {n for _, assign in condition.events for e in assign.values() for n in e.names}
    return used & condition.scalars.keys()


def _after_events(
    condition: Condition,
    scalars: Mapping[str, Term],
    initial: Mapping[str, Term],
    algebra: Recording,
) -> dict[str, Term]:
    """Return the initial values after the events at t0."""
    for time, assign in condition.events:
        if time != condition.t0:
            continue
        values = {**scalars, **initial, TIME: algebra.tape.number(_fraction(time))}
        new = {name: e.evaluate(values, algebra) for name, e in assign.items()}
        if set(new) - set(initial):
            raise NotRationalError("an event at t0 changes a constant; give its new value instead")
        initial = {**initial, **new}
    return dict(initial)


def _fraction(time: float) -> Fraction:
    """Return a time as the exact number of its decimal form."""
    return Fraction(repr(float(time)))


def _exact_starts(
    lifting: Lifting, initial: Mapping[str, Term], time: Fraction
) -> dict[str, Fraction]:
    """Return the initial values of auxiliary states that are rational numbers.

    The exponential of a state that begins at 0 begins at 1: any other value would give the ranks of
    another problem.
    """
    tape = lifting.tape
    at = {lifting.states[name].index: term for name, term in initial.items()}
    for index, (name, differentiated) in lifting.functions.items():
        if name == TIME and not differentiated:
            at[index] = tape.number(time)
    starts: dict[str, Fraction] = {}
    for definition in lifting.definitions:
        arguments = [tape.substitute(a, at).value for a in definition.arguments]
        value = None if None in arguments else definition.exact(*arguments)
        if value is not None:
            starts[tape.names[definition.state.index]] = value
            at[definition.state.index] = tape.number(value)
    return starts
