"""The README and the pages of docs/ are true: what they show loads, compiles and runs.

A fenced block that follows the line ``<!-- file: NAME -->`` is written to NAME in an empty folder,
one folder a page. There every whole problem file loads, and the page's Python and ``odefit``
commands run in their order. A block after ``<!-- sketch -->`` is only compiled.
"""

from __future__ import annotations

import ast
import csv
import pkgutil
import re
import shlex
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import odefit
from docs import reference_pages

ROOT = Path(__file__).parents[1]
PAGES = sorted(
    str(path.relative_to(ROOT)) for path in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md"))
)
BLOCK = re.compile(
    r"^(?P<indent> *)(?:<!-- (?P<note>[^\n]*?) -->\n(?:[ \n]*\n)? *)?```(?P<language>\w+)[^\n]*\n"
    r"(?P<body>.*?)^ *```$",
    re.DOTALL | re.MULTILINE,
)


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    language: str
    note: str
    body: str

    @property
    def file(self) -> str | None:
        """Name of the file that it shows."""
        return self.note.removeprefix("file: ") if self.note.startswith("file: ") else None

    @property
    def tables(self) -> dict[str, Any]:
        """A TOML block as tables."""
        return tomllib.loads(self.body)

    @property
    def whole(self) -> bool:
        """Is it a complete problem file?"""
        return self.language == "toml" and {"format", "ode", "experiment"} <= set(self.tables)


def blocks(page: str) -> list[Block]:
    text = (ROOT / page).read_text(encoding="utf-8")
    return [Block(m["language"], m["note"] or "", m["body"]) for m in BLOCK.finditer(text)]


def write_files(page: str, folder: Path) -> None:
    for block in blocks(page):
        if block.file is not None:
            (folder / block.file).write_text(block.body, encoding="utf-8")


def make_up_data(tables: dict[str, Any], folder: Path) -> None:
    """Write the data files that a page's problem file names and the page does not show."""
    columns = ["t", *tables.get("observables", tables["ode"]), *tables.get("inputs", {})]
    for experiment in tables["experiment"]:
        path = folder / experiment["data"]
        if not path.exists():
            t0 = experiment.get("t0", 0.0)
            with path.open("w", newline="", encoding="utf-8") as stream:
                rows = csv.writer(stream)
                rows.writerow(columns)
                rows.writerows([t0 + i, *[1.0 + i / 10] * (len(columns) - 1)] for i in range(10))


def test_the_readme_has_one_command_to_fit_and_one_to_test() -> None:
    commands = {b.note: b.body.strip() for b in blocks("README.md") if b.note.startswith("ci: ")}
    assert set(commands) == {"ci: fit", "ci: test"}
    assert all("\n" not in command for command in commands.values())


def test_the_readme_shows_the_problem_that_it_fits() -> None:
    (command,) = (b.body for b in blocks("README.md") if b.note == "ci: fit")
    (path,) = (word for word in shlex.split(command) if word.endswith(".toml"))
    assert odefit.load(ROOT / path).name == "alpha-pinene"


def test_problem_files_of_all_pages_load(tmp_path: Path) -> None:
    for page in PAGES:
        folder = tmp_path / page.replace("/", "-")
        folder.mkdir()
        write_files(page, folder)
        for number, block in enumerate(b for b in blocks(page) if b.language == "toml"):
            assert block.tables  # at least, it is TOML
            if block.whole:
                make_up_data(block.tables, folder)
                path = folder / (block.file or f"problem_{number}.toml")
                path.write_text(block.body, encoding="utf-8")
                problem = odefit.load(path)
                assert problem.name == block.tables.get("name", problem.name)


FIRST_PAGES = ("README.md", "docs/index.md", "docs/problem-file.md")
"""What a newcomer reads first; what the other pages do is tried with the slow tests."""


@pytest.mark.parametrize(
    "page",
    [p if p in FIRST_PAGES else pytest.param(p, marks=pytest.mark.slow) for p in PAGES],
)
def test_the_code_and_commands_of_a_page_run(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_files(page, tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    names: dict[str, Any] = {"__name__": "page"}
    for block in blocks(page):
        if block.language == "python":
            code = compile(block.body, f"{page}, Python", "exec")
            if block.note != "sketch":
                exec(code, names)
        elif block.language == "sh" and block.note != "sketch":
            for line in block.body.splitlines():
                if line.startswith("odefit "):
                    assert command_line(shlex.split(line)[1:]) == 0, line


def command_line(arguments: list[str]) -> int:
    from odefit.cli import main

    try:
        return int(main(arguments) or 0)
    except SystemExit as end:  # how argparse ends for --help
        return int(end.code or 0)


def defaults() -> list[tuple[str, str]]:
    """Names and values of the tables in docs/defaults.md."""
    text = (ROOT / "docs" / "defaults.md").read_text(encoding="utf-8")
    return re.findall(r"^\| `(odefit[\w.]+)` \| ([^|]+?) \|", text, re.MULTILINE)


def test_the_page_of_defaults_gives_the_true_values() -> None:
    stated = {name: ast.literal_eval(value) for name, value in defaults()}
    assert len(stated) > 30  # limits that a user meets; options are on a generated page
    assert {name: pkgutil.resolve_name(name) for name in stated} == stated


def test_links_between_pages_lead_somewhere() -> None:
    made = {f"docs/{name}" for name in reference_pages.PAGES}  # when the documentation is built
    dead = [
        f"{page}: {target}"
        for page in (*PAGES, "CHANGELOG.md")
        for target in re.findall(
            r"\]\(([^)#\s]+)(?:#[^)]*)?\)", (ROOT / page).read_text(encoding="utf-8")
        )
        if "://" not in target
        and not ((ROOT / page).parent / target).exists()
        and str((ROOT / page).parent.relative_to(ROOT) / target) not in made
    ]
    assert not dead


def anchors(page: Path) -> set[str]:
    """Return the anchors of the headings of a page, made as by GitHub and by MyST."""
    made = page.name in reference_pages.PAGES and page.parent == ROOT / "docs"
    written = (
        getattr(reference_pages, f"{page.stem}_page")()  # a file once the documentation is built
        if made
        else page.read_text(encoding="utf-8")
    )
    text = re.sub(r"^ *```.*?^ *```$", "", written, flags=re.M | re.S)
    heads = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    plain = [re.sub(r"\]\([^)]*\)|[`*\[\]]", "", head).lower() for head in heads]
    slugs = [re.sub(r"[^\w\-]+", "-", head).strip("-") for head in plain]
    slugs += [re.sub(r"[^\w\- ]", "", head).strip().replace(" ", "-") for head in plain]
    return {
        *slugs,
        *(f"{slug}-{number}" for slug in slugs for number in range(1, slugs.count(slug))),
    }


def test_anchors_of_links_between_pages_are_headings() -> None:
    link = re.compile(r"\]\(([^)#\s]*)#([^)\s]+)\)")
    dead = []
    for page in (*PAGES, "CHANGELOG.md"):
        for target, anchor in link.findall((ROOT / page).read_text(encoding="utf-8")):
            path = (ROOT / page).parent / target if target else ROOT / page
            if "://" not in target and path.suffix == ".md" and anchor not in anchors(path):
                dead.append(f"{page}: {target}#{anchor}")
    assert not dead


def test_the_glossary_has_each_term_once_and_leads_to_a_page() -> None:
    text = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    terms = [row[0].casefold() for row in rows[1:]]
    assert len(terms) > 80
    assert terms == sorted(set(terms), key=lambda term: term.replace("-", " "))
    for row in rows[1:]:
        _, meaning, link = row
        assert meaning.endswith("."), row
        assert re.fullmatch(r"\[.+\]\(.+\)", link), row
