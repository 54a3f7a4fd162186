"""The parts of a program that depend on the model, for any language."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from odefit.expressions.expressions import TIME, Expression
from odefit.reporting.programs.code import Language, safe_names, written
from odefit.reporting.programs.standalone import PARAMETER, Change, StandAlone

STEP = "    "


@dataclass(frozen=True)
class Bodies:
    """The bodies of a program's functions, as lines."""

    model: StandAlone
    language: Language

    @cached_property
    def names(self) -> Mapping[str, str]:
        """The names in the program of all quantities that expressions refer to."""
        model = self.model
        every = (*model.states, *model.algebraic, *model.constants, *model.inputs)
        places = {
            PARAMETER.format(key): self.language.at("p", i)
            for i, key in enumerate(model.parameters)
        }
        return {**safe_names(every, self.language), TIME: "t", **places}

    def constants(self) -> str:
        """Return the lines that compute the constants ``c`` of each experiment from ``p``."""
        parts = []
        for run in self.model.runs:
            lines = []
            needed = {n for e in run.constants.values() for n in e.names}
            for i, (name, expression) in enumerate(run.constants.items()):
                value = self._text(expression)
                if name in needed:
                    lines.append(self._declared(name, value))
                    value = self.names[name]
                lines.append(self._stored("c", i, value))
            parts.append(lines)
        return self._branches("experiment", parts)

    def initial(self) -> str:
        """Return the lines that compute the initial values ``x`` of each experiment."""
        parts = []
        for run in self.model.runs:
            lines = self._unpacked(run.initial.values(), (("c", self.model.constants),))
            if run.settled:
                remark = "A steady state at the estimates, which does not follow c."
                lines.append(f"{self.language.remark} {remark}")
            values = run.initial.values()
            lines += [self._stored("x", i, self._text(e)) for i, e in enumerate(values)]
            parts.append(lines)
        return self._branches("experiment", parts)

    def rates(self) -> str:
        """Return the lines that compute the right-hand sides ``dx``."""
        return self._computed("dx", self.model.rates.values())

    def observables(self) -> str:
        """Return the lines that compute the observables ``y``."""
        return self._computed("y", self.model.observables.values())

    def change_times(self) -> str:
        """Return the lines that compute the times ``times`` of the changes of each experiment."""
        parts = []
        for run in self.model.runs:
            expressions = [change.time for change in run.changes]
            lines = self._unpacked(expressions, (("c", self.model.constants),))
            lines += [self._stored("times", i, self._text(e)) for i, e in enumerate(expressions)]
            parts.append(lines)
        return self._branches("experiment", parts)

    def changes(self) -> str:
        """Return the lines that set ``x_new`` and ``c_new`` at a change."""
        parts = []
        for run in self.model.runs:
            inner = [self._change(change) for change in run.changes]
            parts.append(self._branches("change", inner, 0).splitlines())
        return self._branches("experiment", parts)

    def _change(self, change: Change) -> list[str]:
        lines = self._values(change.assign.values())
        for name, expression in change.assign.items():
            states = name in self.model.states
            array, group = (
                ("x_new", self.model.states) if states else ("c_new", self.model.constants)
            )
            lines.append(self._stored(array, group.index(name), self._text(expression)))
        return lines

    def _computed(self, array: str, expressions: Iterable[Expression]) -> str:
        expressions = tuple(expressions)
        lines = self._values(expressions)
        lines += [self._stored(array, i, self._text(e)) for i, e in enumerate(expressions)]
        return "\n".join(STEP + line for line in lines)

    def _values(self, expressions: Iterable[Expression]) -> list[str]:
        """Return the lines that define the names used in expressions."""
        model = self.model
        needed = {n for e in expressions for n in e.names}
        solved = {z: e for z, e in model.algebraic.items() if z in needed}
        every = (*expressions, *solved.values())
        groups = (("x", model.states), ("c", model.constants), ("u", model.inputs))
        lines = self._unpacked(every, groups)
        return lines + [self._declared(z, self._text(e)) for z, e in solved.items()]

    def _unpacked(
        self, expressions: Iterable[Expression], groups: Sequence[tuple[str, Sequence[str]]]
    ) -> list[str]:
        """Return the lines that name the array elements used in expressions."""
        needed = {n for e in expressions for n in e.names}
        return [
            self._declared(name, self.language.at(array, i))
            for array, names in groups
            for i, name in enumerate(names)
            if name in needed
        ]

    def _declared(self, name: str, value: str) -> str:
        return self.language.declared.format(name=self.names[name], value=value)

    def _stored(self, array: str, place: int, value: str) -> str:
        return self.language.stored.format(element=self.language.at(array, place), value=value)

    def _text(self, expression: Expression) -> str:
        return written(expression, self.language, self.names)

    def _branches(self, variable: str, parts: Sequence[Sequence[str]], depth: int = 1) -> str:
        """Return lines that select between parts by a variable."""
        lines: list[str] = []
        used = [(i, part) for i, part in enumerate(parts) if part]
        for k, (i, part) in enumerate(used):
            head = self.language.otherwise_branch if k else self.language.branch
            lines.append(head.format(variable=variable, value=i + self.language.first_index))
            lines += [STEP + line for line in part]
        if used and self.language.end:
            lines.append(self.language.end)
        return "\n".join(STEP * depth + line for line in lines)
