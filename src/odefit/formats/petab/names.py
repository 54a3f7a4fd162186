"""The names in the formulas of a PEtab problem, and their meanings in the model."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from odefit.common.errors import did_you_mean, shown
from odefit.expressions.expressions import FUNCTIONS, TIME, ExpressionError, parse, parse_condition
from odefit.formats.petab.description import Description
from odefit.problem.inputs.issues import Issues
from odefit.problem.sbml import SbmlModel, formula_text, substituted


class PetabNames:
    """Names of a PEtab problem as names of format 1, and its formulas as expressions.

    `parameters` are those of the parameter table, `constants` the other constants of the model,
    `defined` the states and constants that a condition can assign, `variables` the states and
    algebraic variables.
    """

    def __init__(self, description: Description, model: SbmlModel, issues: Issues) -> None:
        self.model = model
        self._issues = issues
        self._renamed = {**model.names}
        for alias, target in description.aliases.items():
            self._renamed[alias] = model.names.get(target, target)
        ids = [p.name for p in description.parameters] + [o.name for o in description.observables]
        for name in ids:
            if name in FUNCTIONS or name == TIME or name.startswith("__"):
                self._renamed.setdefault(name, f"{name.lstrip('_')}_")
        for row in description.observables:
            # As our export writes an observable with the name of a state.
            if row.title and row.name == f"observable_{row.title}" and row.title not in ids:
                self._renamed.setdefault(row.name, row.title)
        self.parameters = {self.of(p.name) for p in description.parameters}
        constants = {*model.constants, *model.computed, *model.without_value} - {*model.states}
        self.constants = constants - self.parameters
        self.defined = {*constants, *model.states}
        self.variables = {*model.states, *model.algebraic}
        self.known = {*constants, *self.parameters, *self.variables, *model.assigned, TIME}

    def of(self, name: str) -> str:
        """Return the name in format 1 of an id of PEtab."""
        return self._renamed.get(name, name)

    def expression(
        self, text: str, place: str, further: Collection[str] = (), *, assigned: bool = True
    ) -> str:
        """Return a formula of PEtab as the text of an expression; ``"0"`` with a reported reason.

        It may contain `further` names. With `assigned`, variables of assignment rules are written
        out.
        """
        try:
            formula = formula_text(text)
        except ValueError as error:
            self._issues.error(place, f"{shown(text)}: {error}")
            return "0"
        renamed = {n: self.of(n) for n in names_in(formula) if self.of(n) != n}
        formula = substituted(formula, renamed)
        allowed = {*self.known, *further}
        for name in sorted(names_in(formula) - allowed):
            self._issues.error(
                place, f"unknown name {shown(name)} in {shown(text)}{did_you_mean(name, allowed)}"
            )
        rules = self.model.assigned
        return substituted(formula, rules) if assigned else formula


def names_in(text: str) -> frozenset[str]:
    """Return the names in the text of an expression or condition; none if it is neither."""
    for read in (parse, parse_condition):
        try:
            return read(text).names
        except ExpressionError:
            continue
    return frozenset()


def number_in(text: str) -> float | None:
    """Return the value of the text of an expression without names, or None."""
    try:
        return parse(text).constant
    except ExpressionError:
        return None


def reachable(used: Iterable[str], defined: Mapping[str, Iterable[str]]) -> set[str]:
    """Return the names in `used`, and those in their definitions, and so on."""
    names: set[str] = set()
    waiting = list(used)
    while waiting:
        name = waiting.pop()
        if name not in names:
            names.add(name)
            waiting += defined.get(name, ())
    return names
