"""Values of auxiliary states and algebraic variables consistent with the rest at one time.

A model made rational with auxiliary states (see :mod:`odefit.structure.series.lifting`) has
solutions that the original lacks: another sign of a square root, or inconsistent values of ``w =
exp(e)`` and ``e``. Comparison with a point at which all auxiliary states have the values of their
functions reveals such solutions.
"""

from __future__ import annotations

import numpy as np

from odefit.common.arrays import BoolArray, ComplexArray
from odefit.structure.homotopy.square import GENERIC_CANDIDATES, SquareSystem
from odefit.structure.series.differentiated_system import DifferentiatedSystem
from odefit.structure.series.expansion import Expansion, ExpansionPoint, evaluate_term
from odefit.structure.series.lifting import Definition
from odefit.structure.series.tape import Term

MAX_NEWTON_STEPS = 60
"""Largest number of Newton steps for the algebraic variables."""

SAME_VALUE = 1e-6
"""Relative difference up to which an auxiliary state has the value of its function."""

MAX_TRIES = 30
"""Largest number of random points that are tried for each consistent one."""


def fill_dependent_states(
    system: DifferentiatedSystem, k: int, values: ComplexArray, time: float, *, before: bool = False
) -> ComplexArray:
    """Return all unknowns, with the dependent ones of expansion `k` computed at `time`.

    Algebraic variables start from their `values`, shape (unknowns,). With `before`, an input that
    is not smooth at `time` counts with its values before that time.
    """
    expansion = system.expansions[k]
    if not expansion.lifting.definitions and not expansion.lifting.model.algebraic:
        return values
    result = values.copy()
    place = {name: i for i, name in enumerate(system.names)}
    point = expansion.expansion_point(time, 0, before=before)
    at = _variables(expansion, values[system.columns[k]], point)
    with np.errstate(all="ignore"):
        if expansion.lifting.model.algebraic:
            _solve_algebraic_equations(expansion, at)
        _fill_auxiliary_states(expansion, at)
    for state, unknown in expansion.states.items():
        if state not in expansion.lifting.model.states:
            result[place[unknown]] = at[expansion.lifting.states[state].index]
    return result


def consistent_point(
    square: SquareSystem, rng: np.random.Generator
) -> tuple[ComplexArray, ComplexArray] | None:
    """Return a real random point at which auxiliary states are consistent, and its parameters.

    Returns None if there are also algebraic equations, or if no such point is found.
    """
    system = square.system
    if system.problem.model.algebraic:
        return None
    parts = []
    for _ in range(GENERIC_CANDIDATES * MAX_TRIES):
        system.deadline.check()
        values, points = system.generic_point(rng, square.order)
        values = rng.uniform(0.3, 1.3, len(values)).astype(complex)
        for k, expansion in enumerate(system.expansions):
            functions = points[k].functions
            for i, term in enumerate(expansion.program.equations.functions):
                if expansion.lifting.functions[term.index][1] == 0:
                    functions[i, 0] = abs(functions[i, 0])
            unknowns = values[system.columns[k]]
            at = _variables(expansion, unknowns, points[k])
            _fill_auxiliary_states(expansion, at)
            state_of = {name: state for state, name in expansion.states.items()}
            for place, name in enumerate(expansion.unknowns):
                state = state_of.get(name)
                if state is not None and state not in expansion.lifting.model.states:
                    unknowns[place] = at[expansion.lifting.states[state].index]
            values[system.columns[k]] = unknowns
        if np.isfinite(values).all():
            parts.append((values, points))
        if len(parts) == GENERIC_CANDIDATES:
            return square.best_conditioned(parts)
    return None


def on_principal_branch(
    square: SquareSystem,
    solutions: ComplexArray,
    parameters: ComplexArray,
    determined: frozenset[str],
) -> BoolArray:
    """Return the solutions at which auxiliary states have principal values of their functions.

    Only those states are examined that are `determined` and depend on determined unknowns alone.
    `solutions`, shape (m, n), are those at one vector of parameters.
    """
    unknowns = square.all_unknowns(solutions, parameters)
    good = np.ones(len(solutions), dtype=bool)
    for k, (expansion, point) in enumerate(
        zip(square.system.expansions, square.expansion_points(parameters), strict=True)
    ):
        testable = [
            d
            for d in expansion.lifting.definitions
            if not expansion.lifting.known(d.state)
            and expansion.states.get(expansion.lifting.tape.names[d.state.index]) in determined
            and all(unknowns_in(expansion, a) <= determined for a in d.arguments)
        ]
        for i, values in enumerate(unknowns):
            at = _variables(expansion, values[square.system.columns[k]], point)
            for d in testable:
                value, branch_value = _function_value(expansion, d, at), at[d.state.index]
                good[i] &= abs(value - branch_value) <= SAME_VALUE * max(
                    abs(value), abs(branch_value)
                )
    return good


def unknowns_in(expansion: Expansion, term: Term) -> frozenset[str]:
    """Return the names of the unknowns on which a term depends at the time of the expansion."""
    e = expansion.program.equations
    start = {s.index: i for s, i in zip(e.states, e.initial, strict=True)}
    names = {t.index: n for t, n in zip(e.unknowns, expansion.unknowns, strict=True)}
    names_found: set[str] = set()
    for index in e.tape.depends(term):
        if index in names:
            names_found.add(names[index])
        elif index in start:
            below = e.tape.depends(start[index])
            names_found |= {names[i] for i in below if i in names}
    return frozenset(names_found)


def _variables(
    expansion: Expansion, unknowns: ComplexArray, point: ExpansionPoint[np.complex128]
) -> dict[int, complex]:
    """Return the values of the tape's variables by their indices, states included.

    Auxiliary states that are not among the `unknowns` of the expansion are set to one.
    """
    e = expansion.program.equations
    at = {d.state.index: 1.0 + 0.0j for d in expansion.lifting.definitions}
    at |= {t.index: complex(v) for t, v in zip(e.known, point.known, strict=True)}
    at |= {t.index: complex(f[0]) for t, f in zip(e.functions, point.functions, strict=True)}
    at |= {t.index: complex(v) for t, v in zip(e.unknowns, unknowns, strict=True)}
    at |= {
        s.index: evaluate_term(e.tape, start, at)
        for s, start in zip(e.states, e.initial, strict=True)
    }
    return at


def _function_value(
    expansion: Expansion, definition: Definition, at: dict[int, complex]
) -> complex:
    """Return the value of an auxiliary state's function; NaN if it is undefined."""
    tape = expansion.lifting.tape
    try:
        arguments = [evaluate_term(tape, a, at) for a in definition.arguments]
        return complex(definition.function(*arguments))
    except (ValueError, OverflowError, ZeroDivisionError):
        return complex("nan")


def _fill_auxiliary_states(expansion: Expansion, at: dict[int, complex]) -> None:
    """Set auxiliary states to their values, in the order of their dependencies."""
    for d in expansion.lifting.definitions:
        if not expansion.lifting.known(d.state):
            at[d.state.index] = _function_value(expansion, d, at)


def _solve_algebraic_equations(expansion: Expansion, at: dict[int, complex]) -> None:
    """Solve for the algebraic variables by Newton's method, updating the auxiliary states."""
    tape, lifting = expansion.lifting.tape, expansion.lifting
    variables = [lifting.states[n] for n in lifting.model.algebraic]
    constraints = lifting.constraints[-len(lifting.model.algebraic) :]
    jacobian = [[lifting.partial(g, z) for z in variables] for g in constraints]

    def numbers(terms: list[Term]) -> ComplexArray:
        return np.array([evaluate_term(tape, t, at) for t in terms], dtype=complex)

    for _ in range(MAX_NEWTON_STEPS):
        _fill_auxiliary_states(expansion, at)
        matrix = np.array([numbers(row) for row in jacobian])
        try:
            step = np.linalg.solve(matrix, numbers(constraints))
        except np.linalg.LinAlgError:
            return
        for z, change in zip(variables, step, strict=True):
            at[z.index] -= complex(change)
        if np.all(np.abs(step) <= 1e-13 * np.abs([at[z.index] for z in variables])):
            return
