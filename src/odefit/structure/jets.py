"""The problem as equations between unknowns and Taylor coefficients of the outputs.

A block is an experiment around one time. Its states there are either what the problem's initial
values say (around t0), or unknowns of their own (around any time). Several blocks share the
parameters: that is how several experiments, or several times of one, are used together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from odefit.problem.arrays import ComplexArray
from odefit.problem.binding import bound_value
from odefit.problem.condition import Condition
from odefit.problem.errors import InputError
from odefit.problem.expressions import TIME
from odefit.problem.model import Model
from odefit.problem.problem import Problem
from odefit.structure.lifting import Lifting
from odefit.structure.series import COMPLEX, MODULAR, PRIME, Equations, Jets, SeriesProgram
from odefit.structure.tape import NotRationalError, Recording, Tape, Term

Residues = npt.NDArray[np.int64]

PROJECTIONS = 50
"""Newton steps, at most, that make a random point agree with polynomial relations."""

Anchor = Literal["initial", "free"]
"""Where the states of a block come from: the problem's initial values, or nowhere."""


class NoStructureError(InputError):
    """The equations of a problem have no Taylor series: there is no structure to look at.

    Parameters
    ----------
    problem
        Its name.
    reason
        Why.
    """

    def __init__(self, problem: str, reason: str) -> None:
        self.problem = problem
        self.reason = reason
        super().__init__(f"{problem!r} has no power series: {reason}; take another method")

    def __reduce__(self) -> tuple[type[NoStructureError], tuple[str, str]]:  # type: ignore[override]
        return NoStructureError, (self.problem, self.reason)


@dataclass(frozen=True, eq=False)
class Block:
    """One experiment around one time.

    Attributes
    ----------
    condition
        The experiment.
    program
        Its equations, ready to run. Outputs are first the measured observables, then terms
        that are zero, then what the differentials of new states are made of.
    unknowns
        Names of the block's unknowns, as :class:`JetSystem` knows them.
    observables
        Names of the measured ones.
    zeros
        Number of terms that are zero at every time.
    lifting
        How the model was made rational.
    differentials
        By new state, its place among the outputs, and pairs (factor, argument) of places.
    states
        By state, where the algebraic unknown of its value is, if it has one of its own.
    """

    condition: Condition
    program: SeriesProgram
    unknowns: tuple[str, ...]
    observables: tuple[str, ...]
    zeros: int
    lifting: Lifting
    differentials: tuple[tuple[int, tuple[tuple[int, int], ...]], ...]
    states: Mapping[str, str]

    @property
    def outputs(self) -> int:
        """Number of outputs that hold equations."""
        return len(self.observables) + self.zeros

    def surroundings(
        self,
        time: complex,
        order: int,
        rng: np.random.Generator | None = None,
        *,
        before: bool = False,
    ) -> tuple[ComplexArray, ComplexArray]:
        """Known numbers, and Taylor coefficients of known functions, around `time`.

        Parameters
        ----------
        rng
            With it, everything known is random (generic), and not that of the experiment.
        before
            At a corner of an input, what was before it counts, and not what comes after.
        """
        e = self.program.equations
        functions = np.zeros((len(e.functions), order + 1), dtype=complex)
        series: dict[str, ComplexArray] = {}
        longest = order + 1 + max((d for _, d in self.lifting.functions.values()), default=0)
        for k, term in enumerate(e.functions):
            name, differentiated = self.lifting.functions[term.index]
            if name not in series:
                series[name] = self._known_function(name, time, longest, rng, before)
            coefficients = series[name]
            for _ in range(differentiated):
                coefficients = coefficients[1:] * np.arange(1, len(coefficients))
            functions[k] = coefficients[: order + 1]
        if rng is not None:
            return random_complex(rng, len(e.known)), functions
        at = {t.index: complex(f[0]) for t, f in zip(e.functions, functions, strict=True)}
        at |= {i: complex(v) for i, v in self.lifting.constants.items()}
        for definition in self.lifting.definitions:
            if self.lifting.known(definition.state):
                given = [number_of(e.tape, a, at) for a in definition.arguments]
                at[definition.state.index] = definition.function(*given)
        known = np.array([at.get(_base(self, t), 1.0) for t in e.known], dtype=complex)
        return known, functions

    def _known_function(
        self,
        name: str,
        time: complex,
        length: int,
        rng: np.random.Generator | None,
        before: bool,
    ) -> ComplexArray:
        series = np.zeros(length, dtype=complex)
        if name == TIME:
            series[:2] = [time, 1.0][:length]
        elif rng is not None:
            series[:] = rng.normal(size=length) + 1j * rng.normal(size=length)
        else:
            given = self.condition.inputs[name]
            side: Literal["left", "right"] = "left" if before else "right"
            piece = int(np.searchsorted(given.times, time.real, side=side))
            shift = time.real - given.times[max(piece - 1, 0)]
            polynomial = np.polynomial.Polynomial(given.polynomials()[piece])
            moved = polynomial(np.polynomial.Polynomial([shift, 1.0]))
            coefficients = np.atleast_1d(moved.coef)[:length]
            series[: len(coefficients)] = coefficients
        return series


class JetSystem:
    """All blocks of a problem, and the unknowns that they share.

    Parameters
    ----------
    problem
        The problem.
    anchor
        Where the states of the blocks come from.
    copies
        Blocks an experiment, for ``"free"``: each around a time of its own.

    Attributes
    ----------
    names
        The algebraic unknowns: those of the problem by their keys, then states of blocks, then
        initial values of new states.
    blocks
        See :class:`Block`.

    Raises
    ------
    NoStructureError
        The model has no Taylor series: abs, min or max.
    """

    def __init__(self, problem: Problem, anchor: Anchor, copies: int = 1) -> None:
        self.problem = problem
        self.anchor = anchor
        self.blocks: list[Block] = []
        self.names: list[str] = []
        for condition in problem.conditions:
            for copy in range(copies):
                label = condition.name if len(problem.conditions) > 1 else ""
                label += f"#{copy + 1}" if copies > 1 else ""
                try:
                    block = _block(problem, condition, anchor, label)
                except NotRationalError as error:
                    raise NoStructureError(problem.name, str(error)) from None
                self.blocks.append(block)
        used = {name for block in self.blocks for name in block.unknowns}
        self.names = [k for k in problem.keys if k in used]
        self.names += [n for block in self.blocks for n in block.unknowns if n not in self.names]
        self.names = list(dict.fromkeys(self.names))
        self.columns = [
            np.array([self.names.index(n) for n in block.unknowns], dtype=np.intp)
            for block in self.blocks
        ]

    @property
    def enough(self) -> int:
        """Order of derivative beyond which nothing new is to be expected."""
        states = max((len(b.lifting.states) for b in self.blocks), default=0)
        return len(self.names) + 1 + (states if self.anchor == "initial" else 0)

    def generic(
        self, rng: np.random.Generator, order: int
    ) -> tuple[ComplexArray, list[tuple[ComplexArray, ComplexArray]]]:
        """A random point on which all terms that are zero vanish, and random surroundings."""
        values = random_complex(rng, len(self.names))
        around = [b.surroundings(complex(rng.normal()), order, rng) for b in self.blocks]
        for k, block in enumerate(self.blocks):
            free = [
                place
                for place, name in enumerate(block.unknowns)
                if name in block.states.values() and name not in self._model_states(block)
            ]
            if block.zeros and free:
                self._project(k, values, around[k], free)
        return values, around

    def _model_states(self, block: Block) -> set[str]:
        return {block.states[s] for s in block.lifting.model.states if s in block.states}

    def _project(
        self,
        k: int,
        values: ComplexArray,
        around: tuple[ComplexArray, ComplexArray],
        free: list[int],
    ) -> None:
        """Move the `free` unknowns of a block so that its zeros vanish: Newton, least steps."""
        block = self.blocks[k]
        rows = slice(len(block.observables), block.outputs)
        known, functions = around[0][None], around[1][None, :, :1]
        for _ in range(PROJECTIONS):
            jets = self.run(k, values[None], 0, known, functions)
            assert jets.derivatives is not None
            matrix = jets.derivatives[0, 0, rows][:, free]
            step = np.linalg.lstsq(matrix, -jets.outputs[0, 0, rows], rcond=None)[0]
            values[self.columns[k][free]] += step
            if np.abs(step).max(initial=0.0) < 1e-14:
                break

    def run(
        self,
        block: int,
        values: ComplexArray,
        order: int,
        known: ComplexArray,
        functions: ComplexArray,
        derivatives: bool = True,
    ) -> Jets[np.complex128]:
        """Taylor coefficients of a block over complex numbers; see :class:`SeriesProgram`."""
        program = self.blocks[block].program
        own = values[:, self.columns[block]]
        return program.run(COMPLEX, own, order, known, functions, derivatives)

    def residues(
        self,
        block: int,
        values: Residues,
        order: int,
        rng: np.random.Generator,
        around: tuple[Residues, Residues] | None = None,
    ) -> Jets[np.int64]:
        """The same for one point modulo the prime, everything known being random too.

        Parameters
        ----------
        around
            What is known, if it is not to be drawn: see :meth:`modular_surroundings`.
        """
        known, functions = around or self.modular_surroundings(block, order, rng)
        own = values[None, self.columns[block]]
        return self.blocks[block].program.run(MODULAR, own, order, known, functions)

    def modular_surroundings(
        self, block: int, order: int, rng: np.random.Generator
    ) -> tuple[Residues, Residues]:
        """Random known numbers, shape (1, known), and series (1, functions, order + 1)."""
        e = self.blocks[block].program.equations
        known = rng.integers(1, PRIME, (1, len(e.known)))
        return known, self._random_functions(block, order, rng)

    def _random_functions(self, block: int, order: int, rng: np.random.Generator) -> Residues:
        """Random series of the known functions, derivatives consistent with each other."""
        e, lifting = self.blocks[block].program.equations, self.blocks[block].lifting
        longest = order + 1 + max((d for _, d in lifting.functions.values()), default=0)
        series: dict[str, Residues] = {}
        result = np.zeros((1, len(e.functions), order + 1), dtype=np.int64)
        for k, term in enumerate(e.functions):
            name, differentiated = lifting.functions[term.index]
            if name not in series:
                series[name] = rng.integers(1, PRIME, longest)
                if name == TIME:
                    series[name][1:2] = 1
                    series[name][2:] = 0
            coefficients = series[name]
            for _ in range(differentiated):
                coefficients = coefficients[1:] * np.arange(1, len(coefficients)) % PRIME
            result[0, k] = coefficients[: order + 1]
        return result


def random_complex(rng: np.random.Generator, *shape: int) -> ComplexArray:
    """Generic numbers of moderate size."""
    phases = np.exp(2j * np.pi * rng.uniform(size=shape))
    return np.asarray(rng.uniform(0.3, 1.3, shape) * phases)


def number_of(tape: Tape, term: Term, values: Mapping[int, complex]) -> complex:
    """The value of one term, given those of its variables."""
    from odefit.structure.tape import needed

    found: dict[int, complex] = {}
    for i in needed(tape, [term]):
        operation, a, b = tape.entries[i]
        if operation == "number":
            found[i] = complex(tape.numbers[i])
        elif operation == "variable":
            found[i] = values[i]
        elif operation == "+":
            found[i] = found[a] + found[b]
        elif operation == "-":
            found[i] = found[a] - found[b]
        elif operation == "*":
            found[i] = found[a] * found[b]
        else:
            found[i] = found[a] / found[b]
    return found[term.index]


def _base(block: Block, term: Term) -> int:
    """The variable whose value a known variable has."""
    e = block.program.equations
    name = e.tape.names[term.index]
    if name.endswith(_AT_START):
        return block.lifting.states[name.removesuffix(_AT_START)].index
    return term.index


_AT_START = "(start)"


def _block(problem: Problem, condition: Condition, anchor: Anchor, label: str) -> Block:
    tape = Tape()
    lifting = Lifting(tape, problem.model)
    unknowns: list[Any] = [tape.variable(f"?{key}") for key in problem.keys]
    names = {t.index: key for t, key in zip(unknowns, problem.keys, strict=True)}
    scalars = {
        name: bound_value(condition.scalars[name], condition.scalars, unknowns, lifting.algebra)
        for name in _used(problem.model, condition, anchor)
    }
    observables = lifting.record(scalars)
    measured = tuple(n for n in problem.model.observables if n in condition.series)
    initial: dict[str, Term] = {}
    own: dict[str, str] = {}
    if anchor == "initial":
        for state, bound in condition.initial.items():
            initial[state] = bound_value(bound, condition.scalars, unknowns, lifting.algebra)
        scalars, initial = _after_events(condition, scalars, initial, lifting.algebra)
        lifting.settle()
    known: list[Term] = [Term(tape, i) for i in lifting.constants]
    known += lifting.generic
    for state, term in lifting.states.items():
        if state in initial:
            continue
        if lifting.known(term) and state not in (*problem.model.states, *problem.model.algebraic):
            initial[state] = tape.variable(f"{state}{_AT_START}")
            known.append(initial[state])
            continue
        name = f"{state}@{label}" if label else f"{state}@"
        initial[state] = tape.variable(name)
        names[initial[state].index] = name
        own[state] = name
    outputs = [observables[n] for n in measured] + lifting.zeros
    differentials = []
    for d in lifting.differentials:
        if lifting.known(d.state):
            continue
        place = len(outputs)
        outputs.append(d.state)
        pairs = []
        for factor, argument in d.terms:
            pairs.append((len(outputs), len(outputs) + 1))
            outputs += [factor, argument]
        differentials.append((place, tuple(pairs)))
    states = tuple(lifting.states.values())
    rhs = tuple(lifting.rhs[n] for n in lifting.states)
    # Initial values in terms of new states mean the initial values of these.
    new = {t.index: initial[n] for n, t in lifting.states.items() if n not in problem.model.states}
    start = tuple(tape.substitute(initial[n], new) for n in lifting.states)
    needed_names: set[int] = set()
    for term in (*rhs, *start, *outputs):
        needed_names |= tape.depends(term)
    used = [Term(tape, i) for i in names if i in needed_names]
    functions = tuple(Term(tape, i) for i in lifting.functions)
    program = SeriesProgram(
        Equations(tape, tuple(used), states, rhs, start, tuple(outputs), tuple(known), functions)
    )
    return Block(
        condition,
        program,
        tuple(names[t.index] for t in used),
        measured,
        len(lifting.zeros),
        lifting,
        tuple(differentials),
        own,
    )


def _used(model: Model, condition: Condition, anchor: Anchor) -> set[str]:
    tables = (model.ode, model.algebraic, model.observables)
    used = {n for table in tables for e in table.values() for n in e.names}
    if anchor == "initial":
        used |= {n for _, assign in condition.events for e in assign.values() for n in e.names}
    return used & condition.scalars.keys()


def _after_events(
    condition: Condition,
    scalars: dict[str, Term],
    initial: dict[str, Term],
    algebra: Recording,
) -> tuple[dict[str, Term], dict[str, Term]]:
    """Initial values as the events at t0 leave them."""
    for time, assign in condition.events:
        if time != condition.t0:
            continue
        values = {**scalars, **initial, TIME: algebra.number(repr(float(time)))}
        new = {name: e.evaluate(values, algebra) for name, e in assign.items()}
        if set(new) - set(initial):
            raise NotRationalError("an event at t0 changes a constant; give its new value instead")
        initial = {**initial, **new}
    return scalars, initial
