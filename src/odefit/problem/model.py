"""The model: the equations of a problem, evaluable over any algebra."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal, get_args

from odefit.problem.errors import one_of, shown
from odefit.problem.expressions import (
    FUNCTIONS,
    NAME_PATTERN,
    PIECEWISE,
    TIME,
    Algebra,
    Expression,
    Instruction,
    parse,
)
from odefit.problem.grammar import RESERVED
from odefit.problem.issues import Issues, finite_number
from odefit.problem.sbml import read_sbml

Interpolation = Literal["linear", "constant", "cubic"]

MAX_NAME_LENGTH = 255
"""The length of names in characters; tools that generate models make long ones."""


@dataclass(frozen=True, init=False)
class Model:
    """An ODE or index-1 DAE model, written once and evaluable over any algebra.

    Parameters
    ----------
    ode
        Right-hand side of each state. Names that are neither states, algebraic variables,
        constants, inputs nor the time ``t`` are parameters.
    observables
        Expressions of what is measured, by name; without it every state under its own name.
    algebraic
        For each algebraic variable, an expression that is zero (index 1: the equations determine
        the variables).
    constants
        Known numbers.
    inputs
        Interpolation of each known input, which is a column of the data
        (``"linear"``, ``"constant"`` held from the left, or ``"cubic"``).

    issues
        A list to which mistakes are added instead of being raised, for readers of files.

    Raises
    ------
    InputError
        The equations cannot be used; there is a message for everything that is wrong.

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

    def __init__(
        self,
        ode: Mapping[str, Expression | str | float],
        observables: Mapping[str, Expression | str | float] | None = None,
        algebraic: Mapping[str, Expression | str | float] | None = None,
        constants: Mapping[str, float] | None = None,
        inputs: Mapping[str, Interpolation] | None = None,
        *,
        issues: Issues | None = None,
    ) -> None:
        found = Issues() if issues is None else issues
        parsed_ode = _parse_all("[ode]", ode, found)
        if not parsed_ode and not found.has_errors("[ode]"):
            found.error("[ode]", 'no equation; write a line such as x = "-k*x" for every state')
        if not observables:
            observables = {s: Expression(str(s), (Instruction("name", s),)) for s in parsed_ode}
        fields: dict[str, dict[str, Any]] = {
            "ode": parsed_ode,
            "observables": _parse_all("[observables]", observables, found),
            "algebraic": _parse_all("[algebraic]", algebraic or {}, found),
            "constants": _numbers("[constants]", constants or {}, found),
            "inputs": _interpolations("[inputs]", inputs or {}, found),
        }
        for name, value in fields.items():
            object.__setattr__(self, name, MappingProxyType(value))
        self._check_names(found)
        self._check_index(found)
        if issues is None:
            found.raise_errors()

    @classmethod
    def from_sbml(
        cls, path_or_text: str | os.PathLike[str], parameters: Iterable[str] = ()
    ) -> Model:
        """Return the equations of an SBML model, every state observed under its own name.

        Initial values and events are no part of a model: :func:`odefit.read_sbml` gives these, and
        says what was translated how.

        Parameters
        ----------
        path_or_text
            The path of an SBML file, or SBML itself.
        parameters
            The constants of the file that are parameters of the model; the others keep their
            values. Constants without a value are parameters, too.

        Raises
        ------
        InputError
            The file cannot be read, has something that odefit has not, or has no such constant;
            or the package python-libsbml is missing (``pip install 'odefit[petab]'``).
        """
        sections = read_sbml(path_or_text).mapping(parameters)
        return cls(
            ode=sections["ode"],
            algebraic=sections.get("algebraic"),
            constants=sections["constants"],
        )

    def __getstate__(self) -> dict[str, dict[str, Any]]:
        return {name: dict(value) for name, value in self.__dict__.items()}

    def __setstate__(self, state: dict[str, dict[str, Any]]) -> None:
        for name, value in state.items():
            object.__setattr__(self, name, MappingProxyType(value))

    def _check_names(self, issues: Issues) -> None:
        sections = {
            "[ode]": self.ode,
            "[algebraic]": self.algebraic,
            "[constants]": self.constants,
            "[inputs]": self.inputs,
        }
        owner: dict[str, str] = {}
        for section, table in sections.items():
            for name in table:
                check_name(name, section, issues)
                if name in owner:
                    issues.error(
                        f"{section} {name}",
                        f"the name is already used in {owner[name]}; choose another",
                    )
                owner.setdefault(name, section)
        columns = {*self.observables, *self.inputs}
        pure = {name for name in self.observables if name not in owner}
        for name, expression in self.observables.items():
            if name not in owner:
                check_name(name, "[observables]", issues)
            itself = expression.name == name and owner.get(name) in {"[ode]", "[algebraic]"}
            if name in owner and not itself:
                issues.error(
                    f"[observables] {name}",
                    f"the name is already used in {owner[name]}; choose another",
                )
            for what, meaning in (("sd", "its standard deviation"), ("cens", "its censoring")):
                if f"{name}_{what}" in columns:
                    issues.error(
                        f"[observables] {name}",
                        f"the data column {name}_{what} would be both {meaning} and "
                        f"'{name}_{what}'; rename one of them",
                    )
            for other in sorted(expression.names & pure):
                issues.error(
                    f"[observables] {name}",
                    f"refers to the observable '{other}'; write its expression out",
                )

    def _check_index(self, issues: Issues) -> None:
        """Report algebraic equations that cannot determine the algebraic variables."""
        variables = set(self.algebraic)
        used = _all_names(self.algebraic.values())
        for name, expression in self.algebraic.items():
            place = f"[algebraic] {name}"
            if issues.has_errors(place):
                return  # its expression is not known
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
                f"'{name}' occurs in no algebraic equation, so that nothing determines it",
            )

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
        """Return the right-hand sides over `algebra`, one a state, with `values` for all names."""
        return [e.evaluate(values, algebra) for e in self.ode.values()]

    def constraints(self, values: Mapping[str, Any], algebra: Algebra[Any]) -> list[Any]:
        """Return the left-hand sides of the algebraic equations over `algebra`."""
        return [e.evaluate(values, algebra) for e in self.algebraic.values()]

    def observe(self, values: Mapping[str, Any], algebra: Algebra[Any]) -> list[Any]:
        """Return the observables over `algebra`."""
        return [e.evaluate(values, algebra) for e in self.observables.values()]


def check_name(name: object, section: str, issues: Issues) -> None:
    """Report a name that an expression could not refer to."""
    if not isinstance(name, str) or not NAME_PATTERN.match(name):
        issues.error(
            f"{section} {shown(name)}",
            "a name is letters without accents, digits and _, not starting with a digit",
        )
    elif len(name) > MAX_NAME_LENGTH:
        issues.error(f"{section} {shown(name)}", f"a name has at most {MAX_NAME_LENGTH} characters")
    elif name.startswith("__"):
        issues.error(f"{section} {name}", "names that start with __ are reserved; choose another")
    elif name == TIME:
        issues.error(f"{section} {name}", "'t' is the time; choose another name")
    elif name in RESERVED:
        what = "function" if name in FUNCTIONS or name == PIECEWISE else "word of conditions"
        issues.error(f"{section} {name}", f"'{name}' is a {what}; choose another name")


def _all_names(expressions: Iterable[Expression]) -> set[str]:
    return {name for expression in expressions for name in expression.names}


def _parse_all(section: str, table: object, issues: Issues) -> dict[str, Expression]:
    # A mistaken expression stays as a zero, so that its name does not count as unknown as well.
    return {
        k: issues.expression(f"{section} {k}", v) or parse("0")
        for k, v in issues.items(section, table)
    }


def _numbers(section: str, table: object, issues: Issues) -> dict[str, float]:
    # A mistaken number stays too.
    return {
        k: finite_number(v, f"{section} {k}", issues) or 0.0
        for k, v in issues.items(section, table)
    }


def _interpolations(section: str, table: object, issues: Issues) -> dict[str, Interpolation]:
    found: dict[str, Interpolation] = {}
    for name, value in issues.items(section, table):
        if value not in get_args(Interpolation):
            hint = one_of(value, get_args(Interpolation)) if isinstance(value, str) else ""
            issues.error(f"{section} {name}", f"unknown interpolation {shown(value)}{hint}")
            found[name] = "linear"
        else:
            found[name] = value
    return found
