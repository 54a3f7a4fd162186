"""The report in Markdown: all that the HTML report says in words and tables, without figures."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from odefit.problem.problem import Problem
from odefit.reporting.documents.estimate_tables import (
    estimates_markdown,
    in_markdown,
    number_in_words,
)
from odefit.reporting.documents.problem_tables import (
    MAX_ROWS,
    Table,
    data_table,
    equation_groups,
    known_lines,
    special_lines,
    unknowns_table,
)
from odefit.reporting.formulas.equations import written_lines
from odefit.reporting.formulas.math_markup import latex_equations
from odefit.reporting.numbers import duration, significant
from odefit.reporting.profiles import profile_text
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


def report_markdown(result: ResultData, date: str = "") -> str:
    """Return the report as Markdown; without the date it depends on the result alone."""
    return "\n".join(_lines(result, date)).rstrip() + "\n"


def _lines(result: ResultData, date: str) -> Iterator[str]:
    problem = result.problem
    found = verdict(result)
    yield f"# {in_markdown(problem.name)}\n"
    if problem.description:
        yield f"{in_markdown(problem.description)}\n"
    yield f"**{found.headline}** {in_markdown(' '.join(found.sentences))}\n"
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
        yield "## What is known of this answer\n"
        yield from _bullets(f"{f.title}: {f.sentence}" for f in findings(result))
    if result.profiles is not None:
        yield "## Profile likelihood\n"
        yield f"```text\n{profile_text(result.profiles)}\n```\n"
    yield "## The search\n"
    yield f"{starts_sentence(result.starts)} {in_markdown(sentence(result.message))}\n"
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
    """Yield the sections on the problem itself."""
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
    """Return a table of plain texts in Markdown."""
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
            number_in_words(significant(result.value_of(r), 6)),
            duration(r.seconds),
        ]
        for r in routes
    ]
    yield _table(head, rows)


def _table(
    head: Sequence[str], rows: Sequence[Sequence[str]], numeric: Collection[int] | None = None
) -> str:
    """Return a table; without `numeric` all columns but the first hold numbers."""
    right = range(1, len(head)) if numeric is None else numeric
    aligned = ["--:" if i in right else ":--" for i in range(len(head))]
    return "".join(f"| {' | '.join(line)} |\n" for line in (head, aligned, *rows))


def _bullets(texts: Iterable[str]) -> Iterator[str]:
    yield "".join(f"- {in_markdown(text)}\n" for text in texts)
