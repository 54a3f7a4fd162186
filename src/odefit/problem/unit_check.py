"""Units checked: sums add like to like, and both sides of equations agree."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

from odefit.common.errors import shown
from odefit.expressions.expressions import Expression
from odefit.expressions.formulas import PARTS, Part, call
from odefit.expressions.formulas import name as part_of_name
from odefit.expressions.grammar import COMPARISONS, CONDITIONS, PIECEWISE
from odefit.expressions.postfix import TIME
from odefit.problem.building.preparation import experiment_place
from odefit.problem.habits import not_a_problem
from odefit.problem.parameters import Parameter
from odefit.problem.problem import Problem
from odefit.problem.units import NUMBER, Unit, unit_of


@dataclass(frozen=True)
class UnitReport:
    """The check of the units of a problem.

    Attributes
    ----------
    problems
        A sentence for each place where units disagree, with both units.
    checked
        Places in which every unit is known, and which were checked fully.
    unchecked
        Places that were checked in part, because units are missing.
    missing
        Names in the equations that have no unit.
    labels
        Sentences on labels that are not units for Pint, such as ``cells``.
    """

    problems: tuple[str, ...]
    checked: tuple[str, ...]
    unchecked: tuple[str, ...]
    missing: tuple[str, ...]
    labels: tuple[str, ...]

    def lines(self) -> list[str]:
        """Return all findings in sentences."""
        total = len(self.checked) + len(self.unchecked)
        text_lines = list(self.problems)
        if not self.checked and not self.problems:
            text_lines.append("Nothing could be checked as a whole.")
        else:
            fit = "" if self.problems else ", and they fit"
            count = f"{len(self.checked)} of {total} expressions"
            text_lines.append(f"{count} were checked as a whole{fit}.")
        if self.unchecked:
            text_lines.append(f"Checked in part, or not at all: {_some(self.unchecked)}.")
        if self.missing:
            text_lines.append(f"Without a unit: {_some(self.missing)}.")
        return [*text_lines, *self.labels]


def _some(names: Sequence[str]) -> str:
    rest = len(names) - 12
    return ", ".join(names[:12]) + (f" and {rest} more" if rest > 0 else "")


@dataclass(frozen=True)
class _Measured:
    """A part of an expression with its unit; None if unknown, as for zero."""

    part: Part
    unit: Unit | None
    algebra: _UnitAlgebra

    def __mul__(self, other: _Measured) -> _Measured:
        known = self.unit is not None and other.unit is not None
        return self._with(self.part * other.part, self.unit * other.unit if known else None)  # type: ignore[operator]

    def __truediv__(self, other: _Measured) -> _Measured:
        known = self.unit is not None and other.unit is not None
        return self._with(self.part / other.part, self.unit / other.unit if known else None)  # type: ignore[operator]

    def __add__(self, other: _Measured) -> _Measured:
        return self._with(self.part + other.part, self.algebra.equal(self, other, "a sum of"))

    def __sub__(self, other: _Measured) -> _Measured:
        unit = self.algebra.equal(self, other, "a difference of")
        return self._with(self.part - other.part, unit)

    def __neg__(self) -> _Measured:
        return self._with(-self.part, self.unit)

    def _with(self, part: Part, unit: Unit | None) -> _Measured:
        return _Measured(part, unit, self.algebra)


class _UnitAlgebra:
    """The algebra of units, which records disagreements."""

    def __init__(self) -> None:
        self.place = ""
        self.problems: dict[str, None] = {}
        self.complete = True

    def number(self, text: str) -> _Measured:
        value = float(text)
        known = value.is_integer() and value != 0.0
        if not known and value != 0.0:
            self.complete = False
        return self.measured(PARTS.number(text), NUMBER if known else None)

    def measured(self, part: Part, unit: Unit | None) -> _Measured:
        """Return a part with its unit."""
        return _Measured(part, unit, self)

    def equal(self, left: _Measured, right: _Measured, description: str) -> Unit | None:
        """Record it if two quantities have different units; return the known unit.

        The record calls the quantities by `description`.
        """
        if left.unit is None or right.unit is None:
            return left.unit if right.unit is None else right.unit
        if not left.unit.same(right.unit):
            self.problems.setdefault(
                f"{self.place}: {description} {_text(left)} in {left.unit} and {_text(right)} in "
                f"{right.unit}{_hint(left, right)}"
            )
            return None  # so that consequences are not reported too
        return left.unit

    def pure(self, value: _Measured, description: str) -> None:
        """Record a unit of a quantity that has to be a number."""
        if value.unit is not None and not value.unit.same(NUMBER):
            self.problems.setdefault(
                f"{self.place}: {description} {_text(value)} in {value.unit}, where a number "
                "without a unit is expected; divide by a reference value"
            )

    def power(self, base: _Measured, exponent: _Measured) -> _Measured:
        self.pure(exponent, "the exponent is")
        unit, written = base.unit, exponent.part.expression()
        if unit is not None and unit.powers:
            constant = written.constant
            unit = (
                unit.to_symbol(written.text)
                if constant is None
                else unit.to(Fraction(constant).limit_denominator(1000))
            )
        return self.measured(PARTS.power(base.part, exponent.part), unit)

    def call(self, function: str, arguments: Sequence[_Measured]) -> _Measured:
        return self.measured(
            call(function, [a.part for a in arguments]), self._unit_of(function, arguments)
        )

    def _unit_of(self, function: str, arguments: Sequence[_Measured]) -> Unit | None:
        if function in COMPARISONS:
            self.equal(arguments[0], arguments[1], f"'{function}' compares")
        elif function == PIECEWISE:
            return self._alike([*arguments[:-1:2], arguments[-1]], "a choice of")
        elif function in ("min", "max"):
            return self._alike(arguments, f"{function} of")
        elif function == "abs":
            return arguments[0].unit
        elif function == "sqrt":
            unit = arguments[0].unit
            return None if unit is None else unit.to(Fraction(1, 2))
        elif function not in CONDITIONS:
            self.pure(arguments[0], f"{function} of")
        return NUMBER

    def _alike(self, values: Sequence[_Measured], description: str) -> Unit | None:
        first, *rest = values
        for other in rest:
            first = self.measured(first.part, self.equal(first, other, description))
        return first.unit


def _text(value: _Measured) -> str:
    return shown(value.part.expression().text)


def _hint(left: _Measured, right: _Measured) -> str:
    assert left.unit is not None
    assert right.unit is not None
    ratio = left.unit.ratio(right.unit)
    if ratio is not None:
        return f", which differ by a factor of {max(ratio, 1 / ratio):.6g}"
    if any(v.part.number is not None for v in (left, right)):
        return "; give the number a name in [constants], and a unit"
    return ""


def has_units(problem: Problem) -> bool:
    """True if some unit besides those of parameters allows comparisons."""
    unknown = (p for p in problem.initial.values() if isinstance(p, Parameter))
    return bool(problem.units) or any(p.unit for p in unknown)


def unit_labels(problem: Problem) -> dict[str, str]:
    """Return the labels of all units by name, including those of parameters and initial values."""
    labels = {k: p.unit for k, p in problem.parameters.items() if p.unit}
    labels |= {k: p.unit for k, p in problem.initial.items() if isinstance(p, Parameter) and p.unit}
    return {**labels, **problem.units}


def check_units(problem: Problem) -> UnitReport:
    """Check the units of a problem, as far as they are given.

    Integers in expressions have no unit. Decimal numbers have an unknown unit, like every quantity
    without a given unit, so that products with them are not checked.

    Returns
    -------
    What disagrees, what was checked, and what has no unit.

    Raises
    ------
    InputError
        Pint is missing (``pip install 'odefit[units]'``).

    Examples
    --------
    >>> import odefit
    >>> problem = odefit.library.load("alpha-pinene")
    >>> odefit.check_units(problem).problems
    ()
    """
    if not isinstance(problem, Problem):
        raise not_a_problem("check_units", problem)
    notes: list[str] = []
    known: dict[str, Unit] = {}
    labels = unit_labels(problem)
    if problem.time_unit:
        labels = {TIME: problem.time_unit, **labels}
    for name, label in labels.items():
        unit = unit_of(label)
        if unit is None:
            subject = "the time" if name == TIME else f"'{name}'"
            notes.append(
                f"The unit {shown(label)} of {subject} is a label that Pint does not know."
            )
        else:
            known[name] = unit
    algebra = _UnitAlgebra()
    checked: list[str] = []
    unchecked: list[str] = []
    used: set[str] = set()
    for place in _places(problem, known):
        before = len(algebra.problems)
        algebra.place, algebra.complete = place.place, True
        operands = {
            n: algebra.measured(part_of_name(n), known.get(n)) for n in place.expression.names
        }
        value = place.expression.evaluate(operands, algebra)
        used |= {*place.expression.names, place.owner}
        if place.unit is not None and len(algebra.problems) == before:
            side = algebra.measured(part_of_name(place.side), place.unit)
            algebra.equal(side, value, "the two sides differ:")
        whole = algebra.complete and place.expression.names <= set(known)
        sides = place.unit is not None or not place.owner
        (checked if whole and sides else unchecked).append(place.place)
    missing = sorted(n for n in used - set(known) if n)
    return UnitReport(
        tuple(algebra.problems), tuple(checked), tuple(unchecked), tuple(missing), tuple(notes)
    )


class _Place(NamedTuple):
    """An expression with its place, and its value's text, name and unit.

    The name is empty for zero and for conditions, which are not compared.
    """

    place: str
    expression: Expression
    side: str = ""
    owner: str = ""
    unit: Unit | None = None


def _places(problem: Problem, known: Mapping[str, Unit]) -> Iterator[_Place]:
    model = problem.given
    time = known.get(TIME)
    for state, expression in model.ode.items():
        unit = known.get(state)
        rate = unit / time if unit is not None and time is not None else None
        yield _Place(f"[ode] {state}", expression, f"d{state}/dt", state, rate)
    for name, expression in model.algebraic.items():
        yield _Place(f"[algebraic] {name}", expression)
    for name, expression in model.observables.items():
        if expression.name != name:
            yield _Place(f"[observables] {name}", expression, name, name, known.get(name))
    for name, noise in problem.noise.items():
        if isinstance(noise.sd, Expression) and noise.sd.names and noise.transform is None:
            yield _Place(f"[noise] {name}.sd", noise.sd, name, name, known.get(name))
    yield from _values("[initial] ", problem.initial, known)
    for experiment in problem.experiments:
        place = experiment_place(experiment.name)
        yield from _values(f"{place} initial.", experiment.initial, known)
        yield from _values(f"{place} constants.", experiment.constants, known)
        for k, event in enumerate(experiment.events, 1):
            yield from _values(f"{place} event {k} assign.", event.assign, known)
            if isinstance(event.when, Expression):
                yield _Place(f"{place} event {k} when", event.when)
            if isinstance(event.delay, Expression):
                yield _Place(f"{place} event {k} delay", event.delay, TIME, TIME, time)
            for at in event.times:
                if isinstance(at, Expression):
                    yield _Place(f"{place} event {k} time", at, TIME, TIME, time)


def _values(place: str, table: Mapping[str, Any], known: Mapping[str, Unit]) -> Iterator[_Place]:
    """Yield expressions of a table; plain numbers take the unit of their quantity."""
    for name, value in table.items():
        if isinstance(value, Expression) and value.names:
            yield _Place(f"{place}{name}", value, name, name, known.get(name))
