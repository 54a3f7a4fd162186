"""The tables of docs/benchmarks/ come from results files: make these, write the pages, check them.

A results file is ``evidence/results/pages/PAGE/TABLE.csv``: lines ``# key: value`` with the
command, date, machine and version that made it, then a table as CSV. `record` makes the files of a
campaign's folder, for the tables that its row in the registry names. In the page a table lies
between ``<!-- results: PAGE/TABLE -->`` and ``<!-- /results -->``; it is never edited.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from evidence import commits
from evidence.registry import row
from evidence.running.measuring import machine
from odefit.common.errors import InputError
from odefit.common.partial_files import write_atomically

ROOT = Path(__file__).parents[1]
PAGES = ROOT / "docs" / "benchmarks"
RESULTS = ROOT / "evidence" / "results" / "pages"
FACTS = ("command", "made", "machine", "version")  # the facts of every results file
MADE = "made.json"  # in a folder of results: how they were made
BEGUN = "begun.json"  # also: the commits by which its runs were begun
OLDER = "older"  # why a table is not of a newer commit, in results of old commits

# A generated table in a page
PLACE = re.compile(
    r"^<!-- results: (?P<name>[\w-]+/[\w-]+) -->\n(?P<body>.*?)^<!-- /results -->$",
    re.DOTALL | re.MULTILINE,
)

_RULE = re.compile(r"^\|[-: |]+\|$")


@dataclass(frozen=True)
class Results:
    """A table with the facts on its making."""

    facts: Mapping[str, str]  # the command, date, machine and version, and remarks
    align: str  # a letter for each column: l or r
    head: Sequence[str]  # the titles of the columns, in Markdown
    rows: Sequence[Sequence[str]]  # the cells of each row, in Markdown

    def csv(self) -> str:
        """Return the text of the results file."""
        buffer = io.StringIO()
        for key, value in {**self.facts, "align": self.align}.items():
            buffer.write(f"# {key}: {value}\n")
        csv.writer(buffer, lineterminator="\n").writerows([self.head, *self.rows])
        return buffer.getvalue()

    def markdown(self, name: str) -> str:
        """Return the table as shown in a page, with a line on its source."""
        rules = ["---:" if a == "r" else "---" for a in self.align]
        lines = [_line(self.head), f"|{'|'.join(rules)}|", *map(_line, self.rows)]
        link = f"[{name}.csv](../../evidence/results/pages/{name}.csv)"
        made = self.facts["made"]
        words = f"{link}, {made.removeprefix('on ') if made != commits.UNKNOWN else 'no date'}"
        if reason := self.facts.get(OLDER):
            words += f". Not made again: {reason.rstrip('.')}"
        return "\n" + "\n".join(lines) + f"\n\n*{words}.*\n\n"


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def read_results(path: Path) -> Results:
    """Return a results file."""
    lines = path.read_text(encoding="utf-8").splitlines()
    facts, body = {}, list(lines)
    while body and body[0].startswith("# "):
        key, _, value = body.pop(0)[2:].partition(": ")
        facts[key] = value.strip()
    missing = [key for key in (*FACTS, "align") if not facts.get(key)]
    if missing:
        raise InputError(
            f"{path}: write lines '# KEY: VALUE' for {', '.join(missing)} at the top; "
            f"'{commits.UNKNOWN}' where nobody knows"
        )
    align = facts.pop("align")
    head, *rows = csv.reader(body)
    wrong = [i for i, row in enumerate(rows, 1) if len(row) != len(head)]
    if wrong or len(align) != len(head):
        raise InputError(
            f"{path}: every row has as many fields as there are columns and letters of 'align', "
            f"{len(head)}" + (f"; rows {wrong} have not" if wrong else "")
        )
    return Results(facts, align, head, rows)


def first_table(text: str, where: str = "the text") -> tuple[str, list[str], list[list[str]]]:
    """Return letters of alignment, titles and rows of the first table in a Markdown text."""
    lines = text.splitlines()
    for i, line in enumerate(lines):
        if i and _RULE.match(line.strip()):
            rules = [c.strip() for c in line.strip().strip("|").split("|")]
            rows = []
            for row in lines[i + 1 :]:
                if not row.startswith("|"):
                    break
                rows.append(_cells(row))
            align = "".join("r" if rule.endswith(":") else "l" for rule in rules)
            return align, _cells(lines[i - 1]), rows
    raise InputError(f"{where} has no table in Markdown")


def _cells(line: str) -> list[str]:
    inside = line.strip().removeprefix("|").removesuffix("|")
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", inside)]


def renewed(page: Path, results: Path = RESULTS) -> str:
    """Return the text of a page with the tables of its results files."""

    def table(place: re.Match[str]) -> str:
        name = place["name"]
        path = results / f"{name}.csv"
        if not path.is_file():
            raise InputError(f"{page}: there is no results file {path}")
        made = read_results(path).markdown(name)
        return f"<!-- results: {name} -->\n{made}<!-- /results -->"

    return PLACE.sub(table, page.read_text(encoding="utf-8"))


def stale(pages: Path = PAGES, results: Path = RESULTS) -> list[str]:
    """Return the faults of pages and results files, a sentence each."""
    found, used = [], set()
    for page in sorted(pages.glob("*.md")):
        text = page.read_text(encoding="utf-8")
        used |= {place["name"] for place in PLACE.finditer(text)}
        if renewed(page, results) != text:
            found.append(f"{page.name} is not what its results files say; run 'page'")
        bare = [line for line in PLACE.sub("", text).splitlines() if _RULE.match(line)]
        if bare:
            found.append(f"{page.name} has {len(bare)} tables without a results file")
    there = {p.relative_to(results).with_suffix("").as_posix() for p in results.rglob("*.csv")}
    found += [f"no page shows {name}.csv" for name in sorted(there - used)]
    for name in sorted(there):
        facts = read_results(results / f"{name}.csv").facts
        if commits.old(facts["version"]) and not facts.get(OLDER):
            found.append(
                f"{name}.csv is older than commit number {commits.SINCE}: make it again, or say "
                f"why not in a line '# {OLDER}: SENTENCE'"
            )
    return found


def begin(folder: Path) -> None:
    """Record in a folder of results the commit by which a run begins or resumes."""
    path = folder / BEGUN
    before = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else []
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: cannot be written to: {error.strerror}") from error
    write_atomically(path, json.dumps([*before, commits.current()]) + "\n")


def stamp(folder: Path, name: str, given: Mapping[str, str], limit: int | None = None) -> None:
    """Record in a folder of results the command, date, machine and version that made them."""
    chosen = f" --limit {limit}" if limit else ""
    chosen += " --set " + " ".join(f"{k}={v}" for k, v in given.items()) if given else ""
    path = folder / BEGUN
    begun = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else []
    today = datetime.now().astimezone()
    facts = {
        "campaign": name,
        "command": f"python -m evidence run {name}{chosen}",
        "made": f"on {today.day} {today:%B %Y}",
        "machine": machine(),
        "version": (
            f"odefit {commits.tree_version()}, {commits.named(begun or [commits.current()])}"
        ),
    }
    write_atomically(folder / MADE, json.dumps(facts, indent=1) + "\n")


def record(folder: Path, results: Path = RESULTS) -> list[str]:
    """Make results files of the tables of a folder that pages show; return their names."""
    try:
        facts = json.loads((folder / MADE).read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{folder}: no run has ended there") from error
    names = []
    for name, table in row(facts.pop("campaign")).fills.items():
        source = folder / f"{table}.md"
        if source.is_file():
            found = Results(facts, *first_table(source.read_text(encoding="utf-8"), str(source)))
            path = results / f"{name}.csv"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(found.csv(), encoding="utf-8")
            names.append(name)
    return names


def write() -> None:
    """Write the tables of the results files into the pages."""
    for page in sorted(PAGES.glob("*.md")):
        page.write_text(renewed(page), encoding="utf-8")
