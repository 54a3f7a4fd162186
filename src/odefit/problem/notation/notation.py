"""A model's own notations, and the expansion of expressions, tables and models."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from odefit.common.errors import shown
from odefit.expressions.derived_functions import DerivedFunction
from odefit.expressions.expressions import Expression, ExpressionError, as_expression
from odefit.expressions.formulas import Part, number, text_of
from odefit.expressions.grammar import tokens_of
from odefit.expressions.parser import Parser
from odefit.problem.experiment import Event, Experiment
from odefit.problem.inputs.issues import Issues
from odefit.problem.noise import Noise
from odefit.problem.notation.arrays import Arrays, number_text, whole_numbers
from odefit.problem.notation.functions import own_functions
from odefit.problem.notation.network import network_of, read_compartments
from odefit.problem.notation.reactions import read_reactions

NO_INDICES: Mapping[str, int] = {}


@dataclass(frozen=True)
class Notation:
    """The functions, named expressions and arrays of a model."""

    arrays: Arrays = field(default_factory=lambda: Arrays({}))
    functions: Mapping[str, DerivedFunction] = field(default_factory=dict)  # those of the user
    broken: frozenset[str] = frozenset()  # names of those that have a mistake
    taken: frozenset[str] = frozenset()  # names of the model, perhaps ``i`` and ``j``
    # texts as given, by section and key
    written: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    species: frozenset[str] = frozenset()  # states that reactions change
    conserved: tuple[Expression, ...] = ()  # conserved sums of states

    def text(
        self, value: Any, place: str, issues: Issues, indices: Mapping[str, int] = NO_INDICES
    ) -> Any:
        """Return a text expanded; other values are returned unchanged.

        A mistake is added to `issues` and replaced by zero, so that it is reported only once.
        """
        if not isinstance(value, str):
            return value
        try:
            return self.written_out(value, indices)
        except ExpressionError as error:
            issues.error(place, str(error))
            return "0"

    def written_out(self, text: str, indices: Mapping[str, int] = NO_INDICES) -> str:
        """Return the text of an expression without functions, definitions and arrays.

        The parser reports mistakes unrelated to these notations.
        """
        expanded = self.arrays.written_out(text, indices, self.taken)
        used = self._own_names(expanded)
        if not used:
            return expanded
        if used & self.broken:
            return "0"
        parser = Parser(expanded, self.functions)
        program = parser.parse(condition=None)
        return text_of(program) if parser.used_own else expanded

    def _own_names(self, text: str) -> set[str]:
        if not self.functions and not self.broken:
            return set()
        try:
            names = {t.text for t in tokens_of(text) if t.kind == "name"}
        except ExpressionError:
            return set()  # the parser reports the reason
        return names & {*self.functions, *self.broken}

    def table(self, table: Any, place: str, issues: Issues) -> Any:
        """Return a table with array keys and all values expanded.

        The value of an array is one value for all elements, an expression in ``i`` and ``j``, or a
        list with one value each. A table that is not a mapping is returned unchanged.
        """
        if not isinstance(table, Mapping):
            return table
        entries: dict[Any, Any] = {}
        origin: dict[Any, Any] = {}
        for key, value in table.items():
            at = f"{place} {key}"
            try:
                elements = self.arrays.elements(key)
            except ExpressionError as error:
                issues.error(at, str(error))
                continue
            array = bool(elements[0].indices)
            if array and place == "[parameters]" and _is_bounds(value, len(elements)):
                value = {"lower": value[0], "upper": value[1]}
            values = self._values(value, len(elements), array, at, issues)
            for element, one in zip(elements, values, strict=True):
                name = element.name if element.indices else key
                if name in entries:
                    first, second = shown(origin[name]), shown(key)
                    issues.error(at, f"'{name}' is given twice, by {first} and by {second}")
                    continue
                origin[name] = key
                entries[name] = self._value(one, at, issues, element.indices)
        return entries

    @staticmethod
    def _values(value: Any, count: int, array: bool, place: str, issues: Issues) -> Sequence[Any]:
        if not array or not isinstance(value, (list, tuple)):
            return [value] * count
        if len(value) != count:
            issues.error(
                place, f"{len(value)} values for {count} elements; give as many, or one for all"
            )
            return [*value, *[0.0] * count][:count]
        return value

    def _value(self, value: Any, place: str, issues: Issues, indices: Mapping[str, int]) -> Any:
        if isinstance(value, Noise):
            changed = {
                name: self.text(getattr(value, name), f"{place}.{name}", issues, indices)
                for name in SPREADS
            }
            return replace(value, **changed)
        if isinstance(value, Mapping):
            return {
                k: self.text(v, f"{place}.{k}", issues, indices) if k in SPREADS else v
                for k, v in value.items()
            }
        return self.text(value, place, issues, indices)

    def experiment(self, experiment: Experiment, place: str, issues: Issues) -> Experiment:
        """Return an experiment with its tables and events expanded."""
        return replace(
            experiment,
            initial=self.table(experiment.initial, f"{place} initial", issues),
            constants=self.table(experiment.constants, f"{place} constants", issues),
            events=tuple(
                self._event(event, f"{place} event {i}", issues)
                for i, event in enumerate(experiment.events, 1)
            ),
        )

    def _event(self, event: Event, place: str, issues: Issues) -> Event:
        times = event.times
        if isinstance(times, (list, tuple)):
            times = tuple(self.text(t, f"{place} time", issues) for t in times)
        before = len(issues.errors)
        when = self.text(event.when, f"{place} when", issues)
        return replace(
            event,
            times=times,
            assign=self.table(event.assign, f"{place} assign", issues),
            when=when if len(issues.errors) == before else "false",
            delay=self.text(event.delay, f"{place} delay", issues),
            priority=self.text(event.priority, f"{place} priority", issues),
        )


def _is_bounds(value: Any, count: int) -> bool:
    """Return whether two numbers must be bounds, because they cannot be values of the elements."""
    pair = isinstance(value, (list, tuple)) and len(value) == 2 != count
    return pair and all(v is None or isinstance(v, (int, float)) for v in value)


SPREADS = ("sd", "dispersion")
"""Fields of a noise that may hold expressions."""


def notation_of(
    functions: Mapping[str, object],
    definitions: Mapping[str, object],
    sections: Sequence[Mapping[str, object]],
    constants: Mapping[str, object],
    arrays: Iterable[str],
    issues: Issues,
) -> Notation:
    """Return the notation of a model.

    Keys of `sections` and `arrays` declare the arrays. Indices may use integers among the
    `constants`.
    """
    known = Arrays(whole_numbers(constants))
    taken = frozenset(str(key) for table in (*sections, arrays) for key in table)
    for key in (*taken, *definitions):
        known.declare(key)
    bare = Notation(known, taken=taken | {str(key) for key in definitions})
    defined, broken = own_functions(
        functions,
        bare.table(definitions, "[definitions]", issues),
        lambda text, names: known.written_out(text, NO_INDICES, names),
        issues,
    )
    for name, function in defined.items():
        if name in taken:
            where = "[functions]" if function.arguments else "[definitions]"
            issues.error(f"{where} {name}", f"'{name}' is another quantity, too; rename one")
    return Notation(known, defined, broken, taken)


PLAIN = ("ode", "algebraic", "observables", "constants", "inputs")
"""Tables that remain after expansion."""


@dataclass(frozen=True)
class WrittenOut:
    """A model without notation of its own."""

    # the tables of :data:`PLAIN`; anything that was not a table is unchanged
    tables: Mapping[str, Any]
    notation: Notation  # the notation, for the expressions of a problem


def written_out(tables: Mapping[str, Any], arrays: Iterable[str], issues: Issues) -> WrittenOut:
    """Return a model without functions, definitions, arrays and reactions.

    `tables` has the tables of :data:`PLAIN`, and ``functions``, ``definitions``, ``reactions`` and
    ``compartments``, or None for each; `arrays` are keys of arrays of parameters.
    """
    sections = {name: {} if table is None else table for name, table in tables.items()}
    known = {name: t if isinstance(t, Mapping) else {} for name, t in sections.items()}
    functions = {
        name: dict(issues.items(f"[{name}]", sections[name]))
        for name in ("functions", "definitions", "reactions", "compartments")
    }
    numbers = Arrays(whole_numbers(known["constants"]))
    reactions, members = read_reactions(functions["reactions"], numbers, issues)
    compartments = read_compartments(functions["compartments"], numbers, issues)
    definitions = dict(functions["definitions"])
    for name, compartment in compartments.items():
        if name in definitions:
            issues.error(f"[compartments] {name}", f"'{name}' is in [definitions], too; rename one")
        definitions.setdefault(name, compartment.size)
    notation = notation_of(
        functions["functions"],
        definitions,
        [known[name] for name in ("ode", "algebraic", "constants", "inputs")],
        known["constants"],
        [*arrays, *members],
        issues,
    )
    plain = {name: notation.table(sections[name], f"[{name}]", issues) for name in PLAIN}
    states = plain["ode"] if isinstance(plain["ode"], Mapping) else {}
    held = {*notation.functions, *notation.broken}
    for name in ("algebraic", "constants", "inputs"):
        held |= set(plain[name]) if isinstance(plain[name], Mapping) else set()
    network = network_of(
        reactions,
        compartments,
        frozenset(held),
        _parts(states) if reactions else {},
        notation.written_out,
        notation.functions,
        issues,
    )
    if reactions:
        made = {name: part.expression() for name, part in network.terms.items()}
        plain["ode"] = {**states, **made}
    written = {name: {str(k): _shown(v) for k, v in functions[name].items()} for name in functions}
    return WrittenOut(
        plain,
        replace(
            notation,
            written=written,
            species=frozenset(network.terms),
            conserved=tuple(part.expression() for part in network.conserved),
        ),
    )


def _parts(states: Mapping[str, Any]) -> dict[str, Part]:
    """Return the right-hand sides without mistakes; others are reported where they are parsed."""
    parts = {}
    for name, value in states.items():
        try:
            parts[name] = Part(as_expression(value).program)
        except (ExpressionError, TypeError, ValueError, OverflowError):
            parts[name] = number(0.0)
    return parts


def _shown(value: object) -> str:
    """Return a value of a table in the form that users see."""
    if isinstance(value, Mapping):
        if isinstance(value.get("equation"), str):
            return f"{value['equation']}, with the rate {_shown(value.get('rate'))}"
        if isinstance(value.get("species"), (list, tuple)):
            names = [s for s in value["species"] if isinstance(s, str)]
            return f"size {_shown(value.get('size'))}: {', '.join(names)}"
    if isinstance(value, (Expression, str)):
        return str(value)
    return number_text(value) or shown(value)
