"""The report in Markdown: the words and tables of the HTML report, without its figures."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from odefit.common.errors import some
from odefit.problem.problem import Problem
from odefit.reporting.documents.estimate_tables import (
    estimates_markdown,
    in_markdown,
    number_in_words,
)
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
    written_lines,
)
from odefit.reporting.formulas.math_markup import latex_equations
from odefit.reporting.numbers import duration, significant, to_units
from odefit.reporting.profiles import REGION_TITLES, profile_text, region_rows, region_title
from odefit.reporting.sentences import (
    data_sentence,
    findings,
    remarks,
    sentence,
    starts_sentence,
    taken_routes,
    verdict,
)
from odefit.result_data import ResultData

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
    """Yield the equations of a problem by kind, without empty kinds."""
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
        noise = [f"Noise of {name}: {text}" for name, text in words.items()]
    return [*(f"Input {line}" for line in input_lines(problem)), *noise]


def special_lines(problem: Problem) -> list[str]:
    """Return a sentence on each experiment with values or events of its own."""
    pieces_by_experiment = [
        (e.name, special_words(problem, e, PLAIN)) for e in problem.experiments[:MAX_ROWS]
    ]
    return [f"{name}: {'; '.join(pieces)}" for name, pieces in pieces_by_experiment if pieces]


def data_table(problem: Problem) -> Table:
    """Return the measurements of each of the first :data:`MAX_ROWS` experiments in words."""
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


def report_markdown(result: ResultData, date: str = "") -> str:
    """Return the report as Markdown; apart from its date it depends only on the result."""
    return "\n".join(_lines(result, date)).rstrip() + "\n"


def _lines(result: ResultData, date: str) -> Iterator[str]:
    problem = result.problem
    conclusion = verdict(result)
    yield f"# {in_markdown(problem.name)}\n"
    if problem.description:
        yield f"{in_markdown(problem.description)}\n"
    yield f"**{conclusion.headline}** {in_markdown(' '.join(conclusion.sentences))}\n"
    yield f"{data_sentence(problem)}\n"
    yield "## Estimates\n"
    yield estimates_markdown(result)
    if result.solutions:
        value = number_in_words(significant(result.value_of(result.best), 7))
        yield f"{result.measure[0].upper()}{result.measure[1:]}: {value}\n"
    warnings = remarks(result)
    if warnings:
        yield "## Please note\n"
        yield from _bullets(warnings)
    if result.solutions:
        yield "## What is known about this answer\n"
        yield from _bullets(f"{f.title}: {f.sentence}" for f in findings(result))
        if result.assessment.region is not None:
            rows = region_rows(result.assessment.region)
            yield f"### {region_title(result.assessment.region)}\n"
            yield _table(REGION_TITLES, [[in_markdown(cell) for cell in row] for row in rows], ())
    if result.profiles is not None:
        yield "## Profile likelihood\n"
        yield f"```text\n{profile_text(result.profiles)}\n```\n"
    yield "## The search\n"
    yield f"{starts_sentence(result)} {in_markdown(sentence(result.message))}\n"
    yield from _routes(result)
    yield from _problem(problem)
    yield "## Settings\n"
    versions = ", ".join(f"{name} {version}" for name, version in result.versions.items())
    facts = [
        f"method {result.method}, seed {result.seed}, {duration(result.seconds)}",
        *([versions] if versions else []),
        *([date] if date else []),
    ]
    yield from _bullets(facts)


def _problem(problem: Problem) -> Iterator[str]:
    """Yield the sections on the problem."""
    yield "## Model\n"
    for group in equation_groups(problem):
        yield f"### {group.title}\n"
        yield latex_equations(group.formulas)
        if group.words:
            yield f"{in_markdown(group.words)}\n"
    known = known_lines(problem)
    if known:
        yield "### Inputs and noise\n"
        yield from _bullets(known)
    written = list(written_lines(problem))
    if written:
        yield "### Written out from\n"
        yield "\n".join(("```text", *written, "```\n"))
    yield "## Data\n"
    yield f"{data_sentence(problem)}\n"
    yield _escaped(data_table(problem))
    if len(problem.conditions) > MAX_ROWS:
        yield f"These are the first {MAX_ROWS} of {len(problem.conditions)} experiments.\n"
    special = special_lines(problem)
    if special:
        yield "### What is special about an experiment\n"
        yield from _bullets(special)
    yield "## Unknowns and bounds\n"
    if problem.unknowns:
        yield _escaped(unknowns_table(problem))
        yield "In natural units; the scale is the optimiser's coordinate alone.\n"
    else:
        yield "Nothing was estimated.\n"


def _escaped(table: Table) -> str:
    """Return a Markdown table of plain texts."""
    rows = [[in_markdown(cell) for cell in row] for row in table.rows]
    return _table([in_markdown(c) for c in table.columns], rows, table.numeric)


def _routes(result: ResultData) -> Iterator[str]:
    routes = taken_routes(result)
    if not routes:
        return
    head = ["Route", "Starts", "At the best", result.measure, "Time"]
    rows = [
        [
            in_markdown(r.name),
            str(r.starts),
            str(r.hits),
            number_in_words(to_units(result.value_of(r), 6)),
            duration(r.seconds),
        ]
        for r in routes
    ]
    yield _table(head, rows)


def _table(
    head: Sequence[str], rows: Sequence[Sequence[str]], numeric: Collection[int] | None = None
) -> str:
    """Return a Markdown table; by default all columns but the first hold numbers."""
    right = range(1, len(head)) if numeric is None else numeric
    aligned = ["--:" if i in right else ":--" for i in range(len(head))]
    return "".join(f"| {' | '.join(line)} |\n" for line in (head, aligned, *rows))


def _bullets(texts: Iterable[str]) -> Iterator[str]:
    yield "".join(f"- {in_markdown(text)}\n" for text in texts)
