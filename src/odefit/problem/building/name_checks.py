"""The names of a problem: which are declared, and which may be used where."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable

from odefit.common.errors import closest, did_you_mean, shown
from odefit.expressions.expressions import TIME, Expression
from odefit.problem.building.preparation import Definition, experiment_place
from odefit.problem.experiment import Cycle, Experiment
from odefit.problem.inputs.issues import Issues
from odefit.problem.model import check_name
from odefit.problem.noise_habits import ESTIMATED, noise_of_unknown_name
from odefit.problem.parameters import Parameter

MAX_SUGGESTIONS = 50
"""Largest number of unknown names that get a suggestion: it takes time, and more have one cause."""


KNOWN_NUMBERS = {
    "pi": "; write pi = 3.141592653589793 in [constants]",
    "e": "; for a power of e write exp(x), or e = 2.718281828459045 in [constants]",
    "inf": "; expressions take only finite numbers",
    "Inf": "; expressions take only finite numbers",
    "nan": "; expressions take only finite numbers",
    "time": "; the time is t",
    "T": "; the time is t; declare 'T' in [parameters] or [constants] if it is another quantity",
}
"""Names known from other tools, with their spelling here."""


def _estimated(state: str) -> Callable[[str, bool], str | None]:
    """Return the remedy for a word that says that an initial value is to be estimated."""

    def meant(name: str, alone: bool) -> str | None:
        wish = alone and name.casefold() in ESTIMATED
        return f"; write {state} = {{}} to have it estimated" if wish else None

    return meant


class Names:
    """The names of a problem, and the check that each is declared and used where it may be.

    `constants` includes those that only experiments give, `scalars` has parameters and constants,
    and `everything` has all names for a right-hand side.
    """

    def __init__(self, definition: Definition, issues: Issues) -> None:
        self._model = model = definition.model
        self._parameters = parameters = definition.parameters
        self._initial = definition.initial
        self._noise = definition.noise
        self._experiments = experiments = definition.experiments
        self._issues = issues
        self._reported: set[str] = set()
        extra = {k for e in experiments for k in e.constants} - {*model.constants, *parameters}
        extra -= {*model.ode, *model.algebraic, *model.inputs, TIME}  # reported as not constant
        expressions = tuple(self._all_expressions())
        self._used = {name for e in expressions for name in e.names}
        self._unused_extra = extra - self._used
        self.constants = ({*model.constants} | extra) - {*parameters}
        self.scalars = {*parameters, *self.constants}
        self.everything = {
            *self.scalars, *model.ode, *model.algebraic, *model.inputs, TIME
        }  # fmt: skip

    @property
    def extra_constants(self) -> set[str]:
        """Constants that equations refer to and that only experiments give."""
        return self.constants - {*self._model.constants} - self._unused_extra

    @property
    def _equations_are_known(self) -> bool:
        sections = ("[ode]", "[algebraic]", "[observables]")
        return not any(self._issues.has_errors(section) for section in sections)

    def check(self) -> None:
        """Report names that clash, are missing, unknown or unused."""
        self._check_model()
        self._check_parameters()
        self._check_initial()
        self._check_experiments()
        tables = {"[parameters]": self._parameters, "[inputs]": self._model.inputs}
        for section, table in tables.items():
            for name in table:
                if name not in self._used:
                    self._issues.warn(f"{section} {name}", "occurs in no equation")

    def refers(
        self,
        expression: Expression,
        allowed: set[str],
        place: str,
        kinds: str = "",
        remedy: str = "",
        other: Callable[[str, bool], str | None] = lambda name, alone: None,
    ) -> None:
        """Report names in `expression` that are not `allowed`; `kinds` describes the allowed ones.

        An undeclared name is reported only once. For a declared name, `remedy` is added to the
        message. Of an undeclared one, which may be the whole expression, `other` may know the
        remedy.
        """
        for name in sorted(expression.names - allowed):
            inside = f"in {shown(expression.text)}"
            if name in self.everything:
                kind = self._kind(name)
                message = f"'{name}' {inside} is {kind}; only {kinds} can be used here{remedy}"
            elif name in self._model.observables:
                message = f"'{name}' {inside} is an observable; write its expression out"
            elif name in self._reported:
                continue
            else:
                self._reported.add(name)
                few = len(self._reported) <= MAX_SUGGESTIONS
                hint = other(name, expression.name == name) or KNOWN_NUMBERS.get(name) or ""
                hint = hint or (did_you_mean(name, allowed) if few else "")
                hint = hint or "; declare it in [parameters] or [constants]"
                message = f"unknown name {shown(name)} {inside}{hint}"
            self._issues.error(place, message)

    def _kind(self, name: str) -> str:
        """Return what a declared name stands for."""
        tables = {
            "a state": self._model.ode,
            "an algebraic variable": self._model.algebraic,
            "an input": self._model.inputs,
            "a parameter": self._parameters,
            "a constant": self.constants,
        }
        return next((kind for kind, table in tables.items() if name in table), "the time")

    def _check_parameters(self) -> None:
        model = self._model
        taken = {
            **dict.fromkeys(model.observables, "[observables]"),
            **dict.fromkeys(model.ode, "[ode]"),
            **dict.fromkeys(model.notation.species, "[reactions]"),
            **dict.fromkeys(model.algebraic, "[algebraic]"),
            **dict.fromkeys(model.inputs, "[inputs]"),
            **dict.fromkeys(model.constants, "[constants]"),
            **{
                name: "[functions]" if function.arguments else "[definitions]"
                for name, function in model.notation.functions.items()
            },
        }
        for name in self._parameters:
            check_name(name, "[parameters]", self._issues)
            if name in taken:
                self._issues.error(
                    f"[parameters] {name}",
                    f"the name is already used in {taken[name]}; choose another",
                )

    def _check_initial(self) -> None:
        model, issues = self._model, self._issues
        known = {*model.ode, *model.algebraic}
        meant = set()
        for name in self._initial:
            if name not in known:
                meant.add(closest(str(name), known))
                issues.error(
                    f"[initial] {name}",
                    f"there is no state '{name}' in [ode]{did_you_mean(str(name), known)}",
                )
        for state in model.states:
            set_in = [state in e.initial for e in self._experiments]
            everywhere = bool(set_in) and all(set_in)
            if state not in self._initial and not everywhere and state not in meant:
                issues.error(
                    f"[initial] {state}",
                    f"the initial value is missing; write {state} = NUMBER, or {state} = {{}} "
                    "to have it estimated",
                )
        for name, value in self._initial.items():
            self._initial_value(name, value, f"[initial] {name}")

    def _initial_value(self, name: str, value: Expression | Parameter, place: str) -> None:
        if isinstance(value, Expression):
            remedy = "".join(
                f"; make the initial value of {state} a parameter, and use that: [parameters] "
                f'{state}_0 = {{}}, [initial] {state} = "{state}_0"'
                for state in sorted(value.names & {*self._model.states} - self.scalars)[:1]
            )
            self.refers(
                value, self.scalars, place, "parameters and constants", remedy, _estimated(name)
            )
        if name not in self._model.algebraic:
            return
        guess = isinstance(value, Parameter) and value == Parameter(guess=value.guess)
        number = isinstance(value, Expression) and not value.names
        if not guess and not number and not self._issues.has_errors(place):
            self._issues.error(
                place,
                f"the value of the algebraic variable '{name}' follows from the equations; "
                "give a number to start the search for it, or leave it out",
            )

    def _check_experiments(self) -> None:
        model, issues = self._model, self._issues
        seen: set[str] = set()
        states = {*model.ode, *model.algebraic}
        for experiment in self._experiments:
            place = experiment_place(experiment.name)
            if experiment.name in seen:
                issues.error(place, "two experiments have this name; rename one")
            seen.add(experiment.name)
            for name, value in experiment.initial.items():
                if name not in states:
                    issues.error(
                        f"{place} initial.{name}",
                        f"there is no state '{name}'{did_you_mean(str(name), states)}",
                    )
                elif isinstance(value, (Expression, Parameter)):
                    self._initial_value(name, value, f"{place} initial.{name}")
            self._check_experiment_constants(experiment, place)
            for name in sorted(self.extra_constants - set(experiment.constants)):
                issues.error(
                    f"{place} constants",
                    f"no value for '{name}', which other experiments give; "
                    "give one here, or a common one in [constants]",
                )

    def _check_experiment_constants(self, experiment: Experiment, place: str) -> None:
        model, issues = self._model, self._issues
        constants = {k: v for k, v in experiment.constants.items() if isinstance(v, Expression)}
        computed = {name for name, value in constants.items() if value.names}
        for name, value in constants.items():
            at = f"{place} constants.{name}"
            check_name(name, f"{place} constants", issues)
            if name in {*model.ode, *model.algebraic, *model.inputs, TIME}:
                issues.error(at, f"'{name}' is a state or an input, not a constant")
                continue
            if name in self._unused_extra and self._equations_are_known:
                hint = did_you_mean(name, self._used & self.scalars)
                if hint:
                    issues.error(at, f"'{name}' occurs in no equation{hint}")
                else:
                    issues.warn(at, "occurs in no equation")
            for other in sorted(value.names & computed):
                itself = "itself" if other == name else f"'{other}', which is computed here too"
                issues.error(at, f"refers to {itself}; write its value out")
            allowed = self.scalars | computed
            self.refers(value, allowed, at, "parameters and constants")

    def _check_model(self) -> None:
        model = self._model
        kinds = "states, inputs, parameters, constants and t"
        for section, table in (("[ode]", model.ode), ("[algebraic]", model.algebraic)):
            for name, expression in table.items():
                self.refers(expression, self.everything, f"{section} {name}", kinds)
        # The model has reported an observable in an observable.
        allowed = self.everything | set(model.observables)
        for name, expression in model.observables.items():
            self.refers(expression, allowed, f"[observables] {name}", kinds)
        for name, noise in self._noise.items():
            if isinstance(noise.spread, Expression):
                place = f"[noise] {name}.{noise.law.spread_field}"
                meant = functools.partial(noise_of_unknown_name, observable=name)
                self.refers(noise.spread, allowed, place, f"observables, {kinds}", other=meant)
            if isinstance(noise.correlation_time, Expression):
                place = f"[noise] {name}.correlation_time"
                known = "parameters and constants"
                self.refers(noise.correlation_time, self.scalars, place, known)

    def _all_expressions(self) -> Iterable[Expression]:
        model = self._model
        yield from (*model.ode.values(), *model.algebraic.values(), *model.observables.values())
        yield from (v for v in self._initial.values() if isinstance(v, Expression))
        yield from (expression for n in self._noise.values() for expression in n.expressions)
        for e in self._experiments:
            values: list[object] = [*e.initial.values(), *e.constants.values()]
            repeated = e.steady_state.events if isinstance(e.steady_state, Cycle) else ()
            for event in (*e.events, *repeated):
                values += event.expressions
            yield from (v for v in values if isinstance(v, Expression))
