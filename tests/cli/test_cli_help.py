"""The help of the program and of its commands, and completion in a shell."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from odefit.cli.command_table import COMMANDS
from odefit.cli.commands import EXAMPLES, parser
from tests.cli.commands import run

PARSER = parser()
OF_COMMANDS = {command.name: command.examples for command in COMMANDS}


def test_every_command_has_five_examples() -> None:
    assert {len(examples) for examples in (EXAMPLES, *OF_COMMANDS.values())} == {5}


@pytest.mark.parametrize(
    "example", [one for examples in (EXAMPLES, *OF_COMMANDS.values()) for one, _ in examples]
)
def test_an_example_is_a_right_command(example: str) -> None:
    program, *words = shlex.split(re.split(r" [>|] ", example)[0])
    assert program == "odefit"
    if words[-1] != "--help":
        assert PARSER.parse_args(words).run


@pytest.mark.parametrize("name", OF_COMMANDS)
def test_the_help_of_a_command_begins_with_its_usage_and_examples(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(name, "--help") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"usage: odefit {name} [options]")
    before = lines[: lines.index("options:")]
    for example, purpose in OF_COMMANDS[name]:
        assert any(line.strip().startswith(example) for line in before)
        assert any(line.endswith(purpose) for line in before)
    assert max(map(len, before[1:])) <= 80


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "words"), [("odefit pro", ["profile"]), ("odefit fit --time", ["--time-limit"])]
)
def test_a_shell_completes_commands_and_options(
    line: str, words: list[str], tmp_path: Path
) -> None:
    pytest.importorskip("argcomplete")
    completed = tmp_path / "words.txt"
    asked = {
        "_ARGCOMPLETE": "1",
        "_ARGCOMPLETE_IFS": "\n",
        "_ARGCOMPLETE_STDOUT_FILENAME": str(completed),
        "COMP_LINE": line,
        "COMP_POINT": str(len(line)),
    }
    command = [sys.executable, "-m", "odefit"]
    subprocess.run(command, env={**os.environ, **asked}, check=True, timeout=120)
    assert [word.strip() for word in completed.read_text(encoding="utf-8").split("\n")] == words
