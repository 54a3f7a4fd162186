"""Tables of the measurements and the unknowns in plain texts, for the report in Markdown."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from odefit.problem.problem import Problem
from odefit.reporting.documents.estimate_tables import number_in_words
from odefit.reporting.formulas.equations import (
    PLAIN,
    algebraic_equations,
    constant_equations,
    initial_equations,
    input_lines,
    noise_words,
    observable_equations,
    ode_equations,
    special_words,
    symbols_of,
)
from odefit.reporting.numbers import significant
from odefit.reporting.sentences import some

MAX_ROWS = 60
"""Experiments that a table lists."""


@dataclass(frozen=True)
class Table:
    """A table of texts; ``numeric`` holds the indices of the columns of numbers."""

    columns: list[str]
    rows: list[list[str]]
    numeric: tuple[int, ...]


@dataclass(frozen=True)
class Equations:
    """A group of equations in MathML under a title, with a remark in words."""

    title: str
    formulas: list[str]
    words: str = ""


def equation_groups(problem: Problem) -> Iterator[Equations]:
    """Yield the equations of a problem by kind; a kind of which there are none is left out."""
    symbols = symbols_of(problem)
    starts = dict.fromkeys(u.name for u in problem.unknowns if u.kind == "initial")
    unchanged = [name for name, e in problem.given.observables.items() if e.name == name]
    groups = [
        Equations("Differential equations", list(ode_equations(problem, symbols))),
        Equations("Algebraic equations", list(algebraic_equations(problem, symbols))),
        Equations(
            "Initial values",
            list(initial_equations(problem, symbols)),
            f"Estimated: {some(list(starts))}." if starts else "",
        ),
        Equations(
            "Observables",
            list(observable_equations(problem, symbols)),
            f"Measured as they are: {some(unchanged)}." if unchanged else "",
        ),
        Equations("Constants", list(constant_equations(problem, symbols))),
    ]
    yield from (g for g in groups if g.formulas or g.words)


def known_lines(problem: Problem) -> list[str]:
    """Return a sentence on each known input and on the noise of each observable."""
    measured = {name for c in problem.conditions for name in c.series}
    names = [n for n in problem.given.observables if n in measured]
    words = {n: noise_words(problem, n, PLAIN, "standard deviation") for n in names}
    if len(names) > 1 and len(set(words.values())) == 1:
        noise = [f"Noise of all observables: {words[names[0]]}"]
    else:
        noise = [f"Noise of {name}: {said}" for name, said in words.items()]
    return [*(f"Input {line}" for line in input_lines(problem)), *noise]


def special_lines(problem: Problem) -> list[str]:
    """Return a sentence on each experiment that has values or events of its own."""
    said = [(e.name, special_words(e, PLAIN)) for e in problem.experiments[:MAX_ROWS]]
    return [f"{name}: {'; '.join(pieces)}" for name, pieces in said if pieces]


def data_table(problem: Problem) -> Table:
    """Return what was measured in each of the first :data:`MAX_ROWS` experiments."""
    unit = f" ({problem.time_unit})" if problem.time_unit else ""
    rows = [
        [
            c.name,
            _number(c.t0),
            f"{_number(c.times[0])} to {_number(c.times[-1])}",
            str(c.size),
            ", ".join(f"{name} {len(s.values)}" for name, s in c.series.items()),
        ]
        for c in problem.conditions[:MAX_ROWS]
    ]
    columns = ["Experiment", f"Start{unit}", f"Measured{unit}", "Values", "By observable"]
    return Table(columns, rows, (1, 2, 3))


def unknowns_table(problem: Problem) -> Table:
    """Return the unknowns with their bounds, guesses, scales and priors."""
    unknowns = problem.unknowns
    guesses = any(u.parameter.guess is not None for u in unknowns)
    priors = any(u.parameter.prior for u in unknowns)
    columns = ["Unknown", "Kind", "Lower", "Upper", *["Guess"] * guesses, "Scale"]
    rows = []
    for unknown in unknowns:
        p = unknown.parameter
        row = [
            unknown.key,
            "initial value" if unknown.kind == "initial" else unknown.kind,
            _number(p.lower),
            _number(p.upper),
        ]
        if guesses:
            row.append("" if p.guess is None else _number(p.guess))
        row.append(p.scale or "chosen by the method")
        if priors:
            row.append(str(p.prior or ""))
        rows.append(row)
    return Table(
        [*columns, *["Prior"] * priors],
        rows,
        (2, 3, 4) if guesses else (2, 3),
    )


def _number(value: float) -> str:
    return number_in_words(significant(float(value), 5))
