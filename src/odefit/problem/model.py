"""The model: the equations of a problem, evaluable over any algebra."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal, get_args

from odefit.common.errors import counted, shown
from odefit.expressions.expressions import (
    FUNCTIONS,
    NAME_PATTERN,
    PIECEWISE,
    TIME,
    Algebra,
    Expression,
    Instruction,
    parse,
)
from odefit.expressions.grammar import RESERVED
from odefit.problem.habits import MODEL_HABITS, interpolation_hint, with_habits
from odefit.problem.inputs.issues import Issues, finite_number
from odefit.problem.notation.notation import Notation, written_out
from odefit.problem.sbml import SbmlModel, read_antimony, read_sbml
from odefit.problem.unknown_functions.expansion import Expansion
from odefit.problem.unknown_functions.joining import observed, without_unknown

Interpolation = Literal["linear", "constant", "cubic"]

DERIVATIVE = re.compile(
    r"\s*(?:d\s*\(?\s*([A-Za-z_]\w*)\s*\)?\s*/\s*dt|([A-Za-z_]\w*)\s*(?:'|\(t\)|\.)+)\s*\Z"
)
"""Other notations for the derivative of a state: ``dx/dt``, ``d(x)/dt``, ``x'``."""

MAX_NAME_LENGTH = 255
"""Largest length of names in characters; tools that generate models make long ones."""


@dataclass(frozen=True, init=False)
class Model:
    """An ODE or index-1 DAE model, written once and evaluable over any algebra.

    Parameters
    ----------
    ode
        Right-hand side of each state, unless reactions give all of them. Names that are neither
        states, algebraic variables, constants, inputs nor the time ``t`` are parameters.
    observables
        Expressions of the measured quantities, by name; by default every state under its own name.
    algebraic
        For each algebraic variable, an expression that is zero (index 1: the equations determine
        the variables).
    constants
        Known numbers.
    inputs
        Interpolation of each known input, which is a column of the data (``"linear"``,
        ``"constant"`` held from the left, or ``"cubic"``). For an estimated function of time or of
        a state it is a mapping with ``"estimate"``.
    functions
        Functions for the model and its problem: ``{"mm(s, vmax, km)": "vmax*s/(km + s)"}``.
    definitions
        Named expressions, which replace their names wherever these occur.
    reactions
        Reactions, which add to the right-hand sides: ``{"r1": "A + B <-> C, kf, kr"}`` with mass
        action or a named law after the comma, or ``{"equation": "A -> B", "rate": "..."}``. Their
        species become states without an entry in `ode`, except constants and inputs.
    compartments
        Compartments of species, ``{"cell": {"size": "V", "species": ["A"]}}``, for reactions
        between them. The name of a compartment means its size.
    arrays
        Keys of arrays of parameters, as in ``["k[1:8]"]``, so that their indices are checked and
        ``sum(k)`` is possible. Other arrays are declared by their equations.
    issues
        A list to which mistakes are added instead of being raised, for readers of files.

    Attributes
    ----------
    notation
        Functions, named expressions and arrays, which the expanded equations no longer contain.
    unknown_functions
        Estimated functions by name, expanded in the equations and observables.

    Raises
    ------
    InputError
        The equations are invalid; there is one message for each mistake.

    Examples
    --------
    >>> model = Model(ode={"x": "-k*x"}, observables={"y": "scale*x"})
    >>> sorted(model.parameters)
    ['k', 'scale']
    """

    ode: Mapping[str, Expression]
    observables: Mapping[str, Expression]
    algebraic: Mapping[str, Expression]
    constants: Mapping[str, float]
    inputs: Mapping[str, Interpolation]
    notation: Notation = field(compare=False, repr=False)
    unknown_functions: Mapping[str, Expansion] = field(compare=False, repr=False)

    @with_habits(MODEL_HABITS)
    def __init__(
        self,
        ode: Mapping[str, Expression | str | float] | None = None,
        observables: Mapping[str, Expression | str | float] | None = None,
        algebraic: Mapping[str, Expression | str | float] | None = None,
        constants: Mapping[str, float] | None = None,
        inputs: Mapping[str, Any] | None = None,
        *,
        functions: Mapping[str, str] | None = None,
        definitions: Mapping[str, str | float] | None = None,
        reactions: Mapping[str, str | Mapping[str, Any]] | None = None,
        compartments: Mapping[str, Mapping[str, Any]] | None = None,
        arrays: Iterable[str] = (),
        issues: Issues | None = None,
    ) -> None:
        noted = Issues() if issues is None else issues
        split = without_unknown(inputs, definitions, noted)
        tables = {
            "ode": ode, "algebraic": algebraic, "observables": observables, "constants": constants,
            "inputs": split.inputs, "functions": functions, "definitions": split.definitions,
            "reactions": reactions, "compartments": compartments,
        }  # fmt: skip
        written = written_out(tables, arrays, noted)
        plain, observables = written.tables, written.tables["observables"]
        object.__setattr__(self, "notation", written.notation)
        parsed_ode = _parse_all("[ode]", plain["ode"], noted)
        wrong = noted.has_errors("[ode]") or noted.has_errors("[reactions]")
        if not parsed_ode and not wrong:
            noted.error(
                "[ode]",
                'no equation; write a line such as x = "-k*x" for every state, or [reactions]',
            )
        if not observables:
            observables = {s: Expression(str(s), (Instruction("name", s),)) for s in parsed_ode}
        observables = observed(observables, split.functions, written.notation.written_out, noted)
        fields: dict[str, dict[str, Any]] = {
            "ode": parsed_ode,
            "observables": _parse_all("[observables]", observables, noted),
            "algebraic": _parse_all("[algebraic]", plain["algebraic"], noted),
            "constants": _numbers("[constants]", plain["constants"], noted),
            "inputs": _interpolations("[inputs]", plain["inputs"], noted),
            "unknown_functions": dict(split.functions),
        }
        for name, value in fields.items():
            object.__setattr__(self, name, MappingProxyType(value))
        self._check_names(noted)
        self._check_index(noted)
        if issues is None:
            noted.raise_errors()

    @classmethod
    def from_sbml(
        cls, path_or_text: str | os.PathLike[str], parameters: Iterable[str] = ()
    ) -> Model:
        """Return the equations of :func:`odefit.read_sbml`, every state under its own name.

        Initial values and events are not part of a model. `parameters` are the constants of the
        file that are parameters of the model; so are constants without a value. Raises InputError
        for a file that cannot be read, and for a name that is not a constant.
        """
        return cls._of_sbml(read_sbml(path_or_text), parameters)

    @classmethod
    def from_antimony(
        cls, path_or_text: str | os.PathLike[str], parameters: Iterable[str] = ()
    ) -> Model:
        """Return the equations of :func:`odefit.read_antimony`, as :meth:`from_sbml` does."""
        return cls._of_sbml(read_antimony(path_or_text), parameters)

    @classmethod
    def _of_sbml(cls, model: SbmlModel, parameters: Iterable[str]) -> Model:
        sections = model.mapping(parameters)
        return cls(sections["ode"], None, sections.get("algebraic"), sections["constants"])

    @classmethod
    def from_function(
        cls,
        function: Callable[..., Any],
        states: Sequence[str] | None = None,
        parameters: Sequence[str] = (),
        observables: Mapping[str, Expression | str | float] | None = None,
        *,
        definitions: Mapping[str, str | float] | None = None,
        time_first: bool | None = None,
    ) -> Model:
        """Return the equations that a Python function computes.

        It is called once with expressions in place of numbers, which operators and functions of
        NumPy handle, and with numbers, to check that both agree. A branch on a state, a parameter
        or the time is refused, with its line; use ``np.where(condition, a, b)`` instead.

        Parameters
        ----------
        function
            ``f(t, x, p)``, ``f(t, x, k1, k2)`` or ``f(t, x, *p)`` as for SciPy's ``solve_ivp``, or
            with the states first as for ``odeint``. It returns one right-hand side for each state,
            as a list, an array or a dict. ``p`` can be indexed by numbers and by names.
        states, parameters
            Names; by default those of its arguments, ``f(t, A, B, k1)``, or of ``A, B = x`` in it.
        observables, definitions
            As for a model. A parameter with a definition is no unknown: ``{"d": "0.8*b"}``.
        time_first
            Whether the time comes first; by default the name ``t`` decides.

        Raises
        ------
        InputError
            The function cannot be read; the message has its file and line.

        Examples
        --------
        >>> def decay(t, x, k):
        ...     return [-k * x[0], k * x[0]]
        >>> model = Model.from_function(decay, states=["A", "B"], parameters=["k"])
        >>> str(model.ode["A"])
        '-k*A'
        """
        from odefit.problem.tracing.python_functions import traced_equations

        if callable(function) and (states is None or not parameters):
            from odefit.problem.tracing.argument_names import with_own_names

            function, states, parameters = with_own_names(function, states, parameters)
        of_states, of_parameters = _distinct(states or (), parameters)
        ode: Any = traced_equations(function, of_states, of_parameters, time_first)
        ode = {k: str(v) for k, v in ode.items()} if definitions else ode
        return cls(ode, observables, definitions=definitions)

    @classmethod
    def from_sympy(cls, equations: Any, observables: Any = None, algebraic: Any = None) -> Model:
        """Return a model whose equations are given in SymPy.

        Parameters
        ----------
        equations
            Right-hand sides by symbol, ``{x: -k*x}``, by ``x(t)`` or ``x(t).diff(t)``, or a list
            of ``Eq(x(t).diff(t), -k*x(t))``. The time is the symbol ``t``.
        observables, algebraic
            Expressions by name or symbol.

        Raises
        ------
        InputError
            A part has no counterpart in expressions.
        """
        from odefit.problem.tracing.sympy_equations import sympy_equations

        return cls(
            ode=sympy_equations(equations),
            observables=None if observables is None else sympy_equations(observables),
            algebraic=None if algebraic is None else sympy_equations(algebraic),
        )

    def __getstate__(self) -> dict[str, Any]:
        tables = {n: v for n, v in self.__dict__.items() if n != "notation"}
        return {**{n: dict(v) for n, v in tables.items()}, "notation": self.notation}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            whole = value if name == "notation" else MappingProxyType(value)
            object.__setattr__(self, name, whole)

    def _check_names(self, issues: Issues) -> None:
        owner: dict[str, str] = {}
        used = "the name is already used in {}; choose another"
        for section in ("ode", "algebraic", "constants", "inputs"):
            for name in getattr(self, section):
                check_name(name, f"[{section}]", issues)
                if name in owner:
                    issues.error(f"[{section}] {name}", used.format(owner[name]))
                owner.setdefault(name, f"[{section}]")
        columns = {*self.observables, *self.inputs}
        pure = {name for name in self.observables if name not in owner}
        for name, expression in self.observables.items():
            place = f"[observables] {name}"
            itself = expression.name == name and owner.get(name) in {"[ode]", "[algebraic]"}
            if name not in owner:
                check_name(name, "[observables]", issues)
            elif not itself:
                column = f'; where its column has that name, write columns = {{ NEW = "{name}" }}'
                issues.error(place, used.format(owner[name]) + column)
            for suffix, meaning in (("sd", "its standard deviation"), ("cens", "its censoring")):
                if f"{name}_{suffix}" in columns:
                    issues.error(
                        place,
                        f"the data column {name}_{suffix} would be both {meaning} and "
                        f"'{name}_{suffix}'; rename one of them",
                    )
            for other in sorted(expression.names & pure):
                message = f"refers to the observable '{other}'; write its expression out"
                issues.error(place, message)

    def _check_index(self, issues: Issues) -> None:
        """Report algebraic equations that cannot determine the algebraic variables."""
        variables = set(self.algebraic)
        used = _all_names(self.algebraic.values())
        for name, expression in self.algebraic.items():
            place = f"[algebraic] {name}"
            if issues.has_errors(place):
                return  # its expression is unknown
            if not expression.names & variables:
                issues.error(
                    place,
                    f"no algebraic variable occurs in {shown(expression.text)}; write an "
                    f'expression that is zero, such as {name} = "{name} - (...)"',
                )
                return
        for name in sorted(variables - used):
            issues.error(
                f"[algebraic] {name}",
                f"'{name}' occurs in no algebraic equation, so nothing determines it",
            )

    def __repr__(self) -> str:
        kinds = {"state": self.ode, "observable": self.observables, "parameter": self.parameters}
        return f"Model({', '.join(counted(len(names), kind) for kind, names in kinds.items())})"

    def __str__(self) -> str:
        """Return the equations, one per line, with all notations expanded."""
        lines = [f"d{state}/dt = {expression}" for state, expression in self.ode.items()]
        lines += [f"0 = {expression}" for expression in self.algebraic.values()]
        seen = {n: str(e) for n, e in self.observables.items()}
        return "\n".join([*lines, *(f"{n} = {e}" for n, e in seen.items() if n != e)])

    @property
    def states(self) -> tuple[str, ...]:
        """Names of the differential states, in order."""
        return tuple(self.ode)

    @property
    def parameters(self) -> frozenset[str]:
        """Names in the equations that nothing in the model defines."""
        used = _all_names((*self.ode.values(), *self.algebraic.values()))
        used |= _all_names(self.observables.values())
        known = {*self.ode, *self.algebraic, *self.constants, *self.inputs, TIME}
        return frozenset(used - known)

    def rhs(self, values: Mapping[str, Any], algebra: Algebra[Any]) -> list[Any]:
        """Return the right-hand sides over `algebra`, one for each state, given all `values`."""
        return [e.evaluate(values, algebra) for e in self.ode.values()]

    def constraints(self, values: Mapping[str, Any], algebra: Algebra[Any]) -> list[Any]:
        """Return the left-hand sides of the algebraic equations over `algebra`."""
        return [e.evaluate(values, algebra) for e in self.algebraic.values()]

    def observe(self, values: Mapping[str, Any], algebra: Algebra[Any]) -> list[Any]:
        """Return the observables over `algebra`."""
        return [e.evaluate(values, algebra) for e in self.observables.values()]


def _distinct(*lists: Sequence[str]) -> list[tuple[str, ...]]:
    """Return lists of names as tuples; an unusable or repeated name is an InputError."""
    tuples = [(names,) if isinstance(names, str) else tuple(names) for names in lists]
    every = [name for names in tuples for name in names]
    issues = Issues()
    for name in every:
        check_name(name, "names", issues)
    for name in {name for name in every if every.count(name) > 1}:
        issues.error(f"names {name}", "the name is given twice")
    issues.raise_errors()
    return tuples


def check_name(name: object, section: str, issues: Issues) -> None:
    """Report a name that expressions cannot refer to."""
    if not isinstance(name, str) or not NAME_PATTERN.match(name):
        meant = DERIVATIVE.match(name) if isinstance(name, str) else None
        issues.error(
            f"{section} {shown(name)}",
            "a name is letters without accents, digits and _, not starting with a digit"
            if meant is None
            else f"write the name of the state alone on the left: {meant[1] or meant[2]} = ...",
        )
    elif len(name) > MAX_NAME_LENGTH:
        issues.error(f"{section} {shown(name)}", f"a name has at most {MAX_NAME_LENGTH} characters")
    elif name.startswith("__"):
        issues.error(f"{section} {name}", "names that start with __ are reserved; choose another")
    elif name == TIME:
        issues.error(f"{section} {name}", "'t' is the time; choose another name")
    elif name in RESERVED:
        kind = "function" if name in FUNCTIONS or name == PIECEWISE else "word of conditions"
        issues.error(f"{section} {name}", f"'{name}' is a {kind}; choose another name")


def _all_names(expressions: Iterable[Expression]) -> set[str]:
    return {name for expression in expressions for name in expression.names}


def _parse_all(section: str, table: object, issues: Issues) -> dict[str, Expression]:
    # A mistaken expression becomes zero, so that its name is not reported as unknown too.
    return {
        k: issues.expression(f"{section} {k}", v) or parse("0")
        for k, v in issues.items(section, table)
    }


def _numbers(section: str, table: object, issues: Issues) -> dict[str, float]:
    # A mistaken number is kept too.
    return {
        k: finite_number(v, f"{section} {k}", issues) or 0.0
        for k, v in issues.items(section, table)
    }


def _interpolations(section: str, table: object, issues: Issues) -> dict[str, Interpolation]:
    interpolations: dict[str, Interpolation] = {}
    for name, value in issues.items(section, table):
        if value not in get_args(Interpolation):
            hint = interpolation_hint(value, get_args(Interpolation))
            issues.error(f"{section} {name}", f"unknown interpolation {shown(value)}{hint}")
            interpolations[name] = "linear"
        else:
            interpolations[name] = value
    return interpolations
