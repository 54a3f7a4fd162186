"""Analytic models made rational with auxiliary states.

``w = exp(e)`` obeys ``w' = w e'``, which is rational if ``e`` is. The other functions are treated
in the same way, each with one or two auxiliary states. This loses the relation between the initial
values of the auxiliary states and the rest. It is kept as a polynomial constraint if it is one
(``w^2 = e`` for a square root). It is always kept as a relation between differentials (``dw = w
de``), on which alone local identifiability depends.
"""

from __future__ import annotations

import cmath
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from odefit.expressions.chains import balanced
from odefit.expressions.expressions import NON_SMOOTH, TIME
from odefit.expressions.grammar import named
from odefit.problem.model import Model
from odefit.structure.series.deadline import NEVER, Deadline
from odefit.structure.series.tape import NotRationalError, Recording, Tape, Term

MAX_ROOT = 8
"""Largest denominator of an exponent for which the power keeps its polynomial constraint."""


@dataclass(frozen=True, eq=False)
class Differential:
    """The differential of an auxiliary state: ``d state = sum of factor * d argument``."""

    state: Term
    terms: tuple[tuple[Term, Term], ...]


@dataclass(frozen=True, eq=False)
class Definition:
    """The function represented by an auxiliary state: ``state = function(arguments)``.

    `polynomial` is true if the relation is among the algebraic constraints, like that of a root.
    `exact` is the function of rational numbers; None if its value is not known to be rational.
    """

    state: Term
    arguments: tuple[Term, ...]
    function: Callable[..., complex]
    polynomial: bool = False
    exact: Callable[..., Fraction | None] = lambda *arguments: None


class Lifting:
    """The equations of a model in one experiment, made rational and recorded on a tape.

    `states` and `rhs` hold states, algebraic variables and auxiliary states by name. `functions`
    maps variables that are known functions of time to an input (or the time) and the order of its
    derivative. `constraints` are terms that are zero at every time. `generic` are variables for
    transcendental numbers in `differentials`, `constants` those for irrational numbers, with their
    values.
    """

    def __init__(self, tape: Tape, model: Model, deadline: Deadline = NEVER) -> None:
        self.tape = tape
        self.deadline = deadline
        self.model = model
        self.algebra = Recording(tape, self._lift)
        self.states: dict[str, Term] = {}
        self.rhs: dict[str, Term] = {}
        self.functions: dict[int, tuple[str, int]] = {}
        self.constraints: list[Term] = []
        self.differentials: list[Differential] = []
        self.definitions: list[Definition] = []
        self._made: dict[int, Definition] = {}
        self.generic: list[Term] = []
        self.constants: dict[int, float] = {}
        self._lifted: dict[tuple[Any, ...], Term] = {}
        self._differential: dict[int, Differential] = {}

    def record(self, scalars: Mapping[str, Term]) -> dict[str, Term]:
        """Record the model with its parameters and constants; return the observables by name.

        Raises NotRationalError for abs, min, max and division by zero, and UnfinishedError at the
        deadline.
        """
        values = dict(scalars)
        for name in (*self.model.states, *self.model.algebraic):
            self.states[name] = values[name] = self.tape.variable(name)
        for name in (TIME, *self.model.inputs):
            values[name] = self.function(name)
        for name, expression in self.model.ode.items():
            self.deadline.check()
            self.rhs[name] = balanced(expression).evaluate(values, self.algebra)
        constraints = self.model.constraints(values, self.algebra)
        if constraints:
            self._differentiate_constraints(constraints)
        observables = {
            name: balanced(e).evaluate(values, self.algebra)
            for name, e in self.model.observables.items()
        }
        self.complete_rhs()
        return observables

    def complete_rhs(self) -> None:
        """Add or update the right-hand sides of auxiliary states."""
        rates = self._rates()  # auxiliary states change with their arguments instead
        for name, state in list(self.states.items()):
            if state.index in self._differential:
                self.rhs[name] = self._directional(state, rates, self.functions)

    def function(self, name: str, differentiated: int = 0) -> Term:
        """Return the known function with a name, or a derivative of it."""
        if name == TIME and differentiated:
            return self.tape.number(1 if differentiated == 1 else 0)
        term = self.tape.variable(name + "'" * differentiated)
        self.functions[term.index] = (name, differentiated)
        return term

    def rate(self, term: Term) -> Term:
        """Return the derivative of `term` by the time, along trajectories."""
        return self._directional(term, self._rates(), self.functions)

    def _rates(self) -> dict[int, Term]:
        return {self.states[name].index: rhs for name, rhs in self.rhs.items()}

    def _directional(
        self, term: Term, rates: Mapping[int, Term], functions: Mapping[int, tuple[str, int]]
    ) -> Term:
        """Return the derivative of `term` in the direction `rates`, by the indices of variables.

        Known `functions` change with their derivatives, and auxiliary states with their
        differentials.
        """
        self.deadline.check()
        terms = []
        for index in sorted(self.tape.depends(term)):
            if index in self._differential:
                rate = self.tape.number(0)
                for factor, argument in self._differential[index].terms:
                    rate = rate + factor * self._directional(argument, rates, functions)
            elif index in rates:
                rate = rates[index]
            elif index in functions:
                name, differentiated = functions[index]
                rate = self.function(name, differentiated + 1)
            else:
                continue
            terms.append(self.tape.derivative(term, Term(self.tape, index)) * rate)
        return self.tape.total(terms)

    def partial(self, term: Term, variable: Term) -> Term:
        """Return the derivative by a variable, including changes of auxiliary states."""
        return self._directional(term, {variable.index: self.tape.number(1)}, {})

    def known(self, term: Term) -> bool:
        """Return whether `term` is a function of the time, inputs and numbers alone."""
        for i in self.tape.depends(term):
            if i in self.functions or i in self.constants:
                continue
            if i not in self._made or not all(map(self.known, self._made[i].arguments)):
                return False
        return True

    # Auxiliary states -------------------------------------------------------------------------

    def _lift(self, function: str, arguments: Sequence[Term]) -> Term:
        """Return the value of a function that is not rational."""
        if function in NON_SMOOTH:
            raise NotRationalError(
                f"{named(function)}(...) has a kink: it has no Taylor series there"
            )
        if function == "^":
            base, exponent = arguments
            value = exponent.value
            if value is not None and value.denominator <= MAX_ROOT:
                return self._root(base, value.denominator).power(value.numerator)
            return self._once("^", arguments, lambda: self._power(base, exponent))
        return self._once(function, arguments, lambda: self._elementary(function, arguments[0]))

    def _once(self, key: str, arguments: Sequence[Term], make: Callable[[], Term]) -> Term:
        """Return the result of `make`, called once for the same `key` and arguments."""
        full = (key, *(a.index for a in arguments))
        if full not in self._lifted:
            self._lifted[full] = make()
        return self._lifted[full]

    def _state(
        self,
        name: str,
        terms: Callable[[Term], Sequence[tuple[Term, Term]]],
        arguments: Sequence[Term],
        function: Callable[..., complex],
        polynomial: bool = False,
        exact: Callable[..., Fraction | None] = lambda *arguments: None,
    ) -> Term:
        """Return a new auxiliary state, with its differential and its function."""
        label = f"{name}({len(self.definitions) + 1})"
        state = self.states[label] = self.tape.variable(label)
        self._differential[state.index] = differential = Differential(state, tuple(terms(state)))
        self.differentials.append(differential)
        definition = Definition(state, tuple(arguments), function, polynomial, exact)
        self.definitions.append(definition)
        self._made[state.index] = definition
        return state

    def _elementary(self, function: str, e: Term) -> Term:
        """Return the value of an elementary function of one argument."""
        one = self.tape.number(1)
        if function == "exp":
            return self._state("exp", lambda w: [(w, e)], (e,), cmath.exp, exact=_at(0, 1))
        if function == "log":
            return self._state("log", lambda w: [(one / e, e)], (e,), cmath.log, exact=_at(1, 0))
        if function == "log10":
            return self._lift("log", (e,)) / self._irrational("log(10)", math.log(10))
        if function == "sqrt":
            return self._root(e, 2)
        if function in ("sin", "cos", "tan"):
            s, c = self._sine_and_cosine(e)
            return s if function == "sin" else c if function == "cos" else s / c
        if function in ("sinh", "cosh", "tanh"):
            up = self._lift("exp", (e,))
            down, half = one / up, self.tape.number(Fraction(1, 2))
            sinh, cosh = (up - down) * half, (up + down) * half
            return sinh if function == "sinh" else cosh if function == "cosh" else sinh / cosh
        if function == "atan":
            slope = one / (one + e * e)
            return self._state("atan", lambda w: [(slope, e)], (e,), cmath.atan, exact=_at(0, 0))
        root = self._root(one - e * e, 2)
        if function == "asin":
            return self._state(
                "asin", lambda w: [(one / root, e)], (e,), cmath.asin, exact=_at(0, 0)
            )
        slope = -(one / root)
        return self._state("acos", lambda w: [(slope, e)], (e,), cmath.acos, exact=_at(1, 0))

    def _sine_and_cosine(self, e: Term) -> tuple[Term, Term]:
        """Return sine and cosine of `e`, each of which occurs in the other's derivative."""
        if ("sine", e.index) not in self._lifted:
            label = f"cos({len(self.definitions) + 2})"  # the label of the state after the next
            cosine = self.tape.variable(label)
            sine = self._state("sin", lambda w: [(cosine, e)], (e,), cmath.sin, exact=_at(0, 0))
            made = self._state("cos", lambda w: [(-sine, e)], (e,), cmath.cos, exact=_at(0, 1))
            assert made.index == cosine.index
            self.constraints.append(sine * sine + cosine * cosine - self.tape.number(1))
            self._lifted["sine", e.index], self._lifted["cosine", e.index] = sine, cosine
        return self._lifted["sine", e.index], self._lifted["cosine", e.index]

    def _power(self, base: Term, exponent: Term) -> Term:
        """Return ``b^a``, whose differential is ``a b^a db/b + b^a log(b) da``."""
        moving = {t.index for t in self.states.values()} | self.functions.keys()
        if self.tape.depends(exponent) & moving:
            log = self._lift("log", (base,))
        else:
            # Only the differential needs the logarithm, and there any number serves.
            log = self._once("generic", (base,), lambda: self._generic(base))
        return self._state(
            "power",
            lambda w: [(w * exponent / base, base), (w * log, exponent)],
            (base, exponent),
            lambda b, a: b**a,
            exact=lambda b, a: Fraction(1) if b == 1 or (a == 0 and b != 0) else None,
        )

    def _root(self, base: Term, degree: int) -> Term:
        """Return the root of a degree."""
        if degree == 1:
            return base
        if base.value is not None:
            value = float(base.value) ** (1 / degree)
            return self._irrational(f"{base.value}^(1/{degree})", value)
        return self._once(f"root {degree}", (base,), lambda: self._new_root(base, degree))

    def _new_root(self, base: Term, degree: int) -> Term:
        number = self.tape.number(degree)
        root = self._state(
            "root",
            lambda w: [(w / (number * base), base)],
            (base,),
            lambda b: b ** (1.0 / degree),
            polynomial=True,
        )
        self.constraints.append(root.power(degree) - base)
        return root

    def _generic(self, base: Term) -> Term:
        """Return a variable that represents the logarithm of `base` in differentials."""
        self.generic.append(self.tape.variable(f"log of {base.index}"))
        return self.generic[-1]

    def _irrational(self, name: str, value: float) -> Term:
        """Return a variable that represents an irrational number."""
        term = self.tape.variable(name)
        self.constants[term.index] = value
        return term

    # Algebraic equations ----------------------------------------------------------------------

    def _differentiate_constraints(self, constraints: Sequence[Term]) -> None:
        """Record the rates of the algebraic variables: ``-(dg/dz)^-1 dg/dt`` at constant z."""
        names = tuple(self.model.algebraic)
        variables = [self.states[name] for name in names]
        rows = [[*(self.partial(g, z) for z in variables), -self.rate(g)] for g in constraints]
        size = len(names)
        for k in range(size):
            pivot = next((i for i in range(k, size) if rows[i][k].value != 0), None)
            if pivot is None:
                raise NotRationalError("the algebraic equations do not determine their variables")
            rows[k], rows[pivot] = rows[pivot], rows[k]
            rows[k] = [entry / rows[k][k] for entry in rows[k]]
            for i in range(size):
                self.deadline.check()
                factor = rows[i][k]
                if i != k and factor.value != 0:
                    pairs = zip(rows[i], rows[k], strict=True)
                    rows[i] = [entry - factor * other for entry, other in pairs]
        for name, row in zip(names, rows, strict=True):
            self.rhs[name] = row[size]
        self.constraints += constraints


def _at(argument: int, value: int) -> Callable[[Fraction], Fraction | None]:
    """Return a function known only at one argument, where its value is rational."""
    return lambda number: Fraction(value) if number == argument else None
