"""The generated pages of the reference have every option, engine, warning and refusal."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from docs import reference_pages
from odefit.cli.command_table import COMMANDS
from odefit.methods.method_options import method_options
from odefit.methods.registry import METHODS
from odefit.reporting.notices import WORDS
from odefit.result_data.notices import NoticeKind
from odefit.simulation.engines.registry import ENGINES


def test_the_page_of_options_has_every_option_with_its_default() -> None:
    page = reference_pages.options_page()
    for name in METHODS:
        section = page.partition(f"## {name}")[2].partition("\n## ")[0]
        for option in method_options(name):
            assert f"| `{option.name}` | `{reference_pages.cell(option.default)}` |" in section


def test_the_page_of_engines_has_a_row_for_each() -> None:
    page = reference_pages.engines_page()
    assert all(f"| `{name}` | {row.method} |" in page for name, row in ENGINES.items())


@pytest.mark.slow
def test_every_warning_is_listed_and_those_with_words_by_example() -> None:
    page = reference_pages.messages_page()
    assert all(f"| `{kind.value}` | " in page for kind in NoticeKind)
    assert reference_pages.EXAMPLES.keys() == WORDS.keys()


def test_refusals_are_collected_from_the_whole_package() -> None:
    refusals = reference_pages.refusals()
    assert all(refusals.values())
    assert sum(map(len, refusals.values())) > 600
    assert not any("……" in text for text in refusals["Fits and methods"])
    assert any(text.startswith("…: unknown method …") for text in refusals["Fits and methods"])


def test_a_message_is_split_where_its_remedy_begins() -> None:
    split = reference_pages.split
    assert split("'t' is the time; choose another name") == (
        "'t' is the time",
        "choose another name",
    )
    assert split("nothing is measured") == ("nothing is measured", "")


def test_parts_of_a_message_that_depend_on_the_input_become_an_ellipsis() -> None:
    source = 'raise InputError(f"{place}: unknown name {name!r}" + remedy(name))'
    assert list(reference_pages.messages_in(ast.parse(source))) == []
    source = 'issues.error(at, f"{n} is not a state; write one of {states}")'
    assert list(reference_pages.messages_in(ast.parse(source))) == [
        "… is not a state; write one of …"
    ]


def test_pages_are_written_once(tmp_path: Path) -> None:
    reference_pages.write(tmp_path)
    written = {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    assert written.keys() == set(reference_pages.PAGES)
    reference_pages.write(tmp_path)
    assert {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()} == written


def test_the_page_of_commands_has_every_command_with_its_examples() -> None:
    page = reference_pages.commands_page()
    for command in COMMANDS:
        assert f"| [`{command.name}`](#{command.name}) | {command.help} |" in page
        section = page.partition(f"\n## {command.name}\n")[2].partition("\n## ")[0]
        assert all(example in section for example, _ in command.examples)
    assert "%(default)s" not in page
    assert "`--bounds NAME=LOW:HIGH ...`" in page
