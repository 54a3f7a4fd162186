"""The tables of docs/benchmarks/ come from results files: write them, or check that they agree.

    python -m evidence.page write
    python -m evidence.page check
    python -m evidence.page record TABLE.md speed/start-up --command COMMAND --made DATE \
        --machine WORDS --version WORDS [--remark WORDS]

A results file is ``evidence/results/pages/PAGE/TABLE.csv``: lines ``# key: value`` that say which
command made it, when, on what machine and with which version, then a table as CSV. ``record``
makes one of the first table in a Markdown file, as benchmarks and campaigns write them (``-`` reads
it from standard input). In the page the table stands between ``<!-- results: PAGE/TABLE -->``
and ``<!-- /results -->``, and is never edited there.
"""

from __future__ import annotations

import argparse
import csv
import io
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = ROOT / "docs" / "benchmarks"
RESULTS = ROOT / "evidence" / "results" / "pages"
FACTS = ("command", "made", "machine", "version")  # what every results file says of its table
UNKNOWN = "not recorded"  # what stands where nobody wrote down a fact

# A generated table in a page
PLACE = re.compile(
    r"^<!-- results: (?P<name>[\w-]+/[\w-]+) -->\n(?P<body>.*?)^<!-- /results -->$",
    re.DOTALL | re.MULTILINE,
)

_RULE = re.compile(r"^\|[-: |]+\|$")


class ResultsError(ValueError):
    """A results file or a page that cannot be used, with its place."""


@dataclass(frozen=True)
class Results:
    """A table with what is known of how it was made."""

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
        """Return the table as it stands in a page, with a line that says where it comes from."""
        rules = ["---:" if a == "r" else "---" for a in self.align]
        lines = [_line(self.head), f"|{'|'.join(rules)}|", *map(_line, self.rows)]
        link = f"[{name}.csv](../../evidence/results/pages/{name}.csv)"
        made = self.facts["made"]
        words = f"Results: {link}, " + (f"made {made}" if made != UNKNOWN else "date not recorded")
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
        raise ResultsError(
            f"{path}: write lines '# KEY: VALUE' for {', '.join(missing)} at the top; "
            f"'{UNKNOWN}' where nobody knows"
        )
    align = facts.pop("align")
    head, *rows = csv.reader(body)
    wrong = [i for i, row in enumerate(rows, 1) if len(row) != len(head)]
    if wrong or len(align) != len(head):
        raise ResultsError(
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
    raise ResultsError(f"{where} has no table in Markdown")


def _cells(line: str) -> list[str]:
    inside = line.strip().removeprefix("|").removesuffix("|")
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", inside)]


def renewed(page: Path, results: Path = RESULTS) -> str:
    """Return the text of a page with the tables of its results files."""

    def table(place: re.Match[str]) -> str:
        name = place["name"]
        path = results / f"{name}.csv"
        if not path.is_file():
            raise ResultsError(f"{page}: there is no results file {path}")
        made = read_results(path).markdown(name)
        return f"<!-- results: {name} -->\n{made}<!-- /results -->"

    return PLACE.sub(table, page.read_text(encoding="utf-8"))


def stale(pages: Path = PAGES, results: Path = RESULTS) -> list[str]:
    """Return what is wrong with pages and results files, a sentence each."""
    found, used = [], set()
    for page in sorted(pages.glob("*.md")):
        text = page.read_text(encoding="utf-8")
        used |= {place["name"] for place in PLACE.finditer(text)}
        if renewed(page, results) != text:
            found.append(f"{page.name} is not what its results files say; run 'write'")
        bare = [line for line in PLACE.sub("", text).splitlines() if _RULE.match(line)]
        if bare:
            found.append(f"{page.name} has {len(bare)} tables without a results file; see 'record'")
    there = {p.relative_to(results).with_suffix("").as_posix() for p in results.rglob("*.csv")}
    found += [f"no page shows {name}.csv" for name in sorted(there - used)]
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program, and return its exit status."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    commands = parser.add_subparsers(dest="command_name", required=True)
    commands.add_parser("write", help="write the tables into the pages")
    commands.add_parser("check", help="say where pages and results files differ")
    record = commands.add_parser("record", help="make a results file of a table in Markdown")
    record.add_argument("table", help="the Markdown file, or - for standard input")
    record.add_argument("name", help="PAGE/TABLE")
    for fact in FACTS:
        record.add_argument(f"--{fact}", required=True, help=f"or '{UNKNOWN}'")
    record.add_argument("--remark", default="")
    options = parser.parse_args(arguments)
    try:
        if options.command_name == "record":
            text = (
                sys.stdin.read()
                if options.table == "-"
                else Path(options.table).read_text(encoding="utf-8")
            )
            facts = {fact: getattr(options, fact) for fact in FACTS}
            facts |= {"remark": options.remark} if options.remark else {}
            path = RESULTS / f"{options.name}.csv"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(Results(facts, *first_table(text, options.table)).csv(), "utf-8")
            return 0
        if options.command_name == "write":
            for page in sorted(PAGES.glob("*.md")):
                page.write_text(renewed(page), encoding="utf-8")
            return 0
        found = stale()
    except (ResultsError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    print("\n".join(found) or "pages and results files agree")
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main())
