"""Parsing of a command line, running its command, returning the status."""

from __future__ import annotations

import argparse
import os
import sys
import textwrap
from collections.abc import Sequence
from typing import Any

from odefit.cli import fit
from odefit.cli.command_table import COMMANDS
from odefit.cli.parser import CommandParser, mistaken_command
from odefit.cli.shared import plain_warnings

EXAMPLES = (
    ("odefit fit problem.toml --report report.html", "fit a model, and write a report"),
    ("odefit new data.csv", "begin a problem file from a table"),
    ("odefit check problem.toml", "read a problem, and say what its data can determine"),
    ("odefit profile result.json", "intervals from profile likelihoods"),
    ("odefit fit --help", "examples and options of a command"),
)
"""Examples of the whole program: commands, and what they are for."""

INDENT, GAP, TOGETHER = 2, 2, 79
"""Columns before an example and before its purpose, and of a line with both."""


def run(arguments: Sequence[str] | None) -> int:
    """Run a command, and return its exit status."""
    whole = parser()
    if "_ARGCOMPLETE" in os.environ:  # a shell asks for completions
        complete(whole)
    words = list(sys.argv[1:] if arguments is None else arguments)
    names = [command.name for command in COMMANDS]
    if words and words[0] not in (*names, "-h", "--help", "--version"):
        whole.error(mistaken_command(words[0], names))
    options = whole.parse_args(fit.written_out(words) if words[:1] == ["fit"] else words)
    with plain_warnings():
        return int(options.run(options))


def complete(whole: argparse.ArgumentParser) -> None:
    """Answer a shell that completes a command line, if the package argcomplete is installed."""
    try:
        import argcomplete
    except ImportError:
        return
    argcomplete.autocomplete(whole)


def parser() -> argparse.ArgumentParser:
    """Return the parser of all commands and their options."""
    whole = argparse.ArgumentParser(
        prog="odefit",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description=_described(
            "Estimate the parameters of ODE models from data, and say how far the answer can be "
            "trusted.",
            EXAMPLES,
        ),
    )
    whole.add_argument("--version", action=_Version, nargs=0, help="print the version and exit")
    commands = whole.add_subparsers(
        title="commands", metavar="COMMAND", required=True, parser_class=CommandParser
    )
    for command in COMMANDS:
        added = commands.add_parser(
            command.name,
            help=command.help,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            description=_described(command.description, command.examples),
        )
        added.set_defaults(run=command.run)
        command.add_options(added)
        added.usage = _usage(added)
    return whole


def _described(description: str, shown: tuple[tuple[str, str], ...]) -> str:
    """Return a description with examples below it, as wide as a small terminal."""
    return f"{textwrap.fill(description, TOGETHER)}\n\n{_examples(shown)}"


def _examples(examples: tuple[tuple[str, str], ...]) -> str:
    """Return the examples as lines, with their purposes beside them or, if long, below."""
    widest = max(len(command) for command, _ in examples)
    beside = all(INDENT + widest + GAP + len(purpose) <= TOGETHER for _, purpose in examples)
    lines = ["examples:"]
    for command, purpose in examples:
        if beside:
            lines.append(f"{' ' * INDENT}{command:<{widest + GAP}}{purpose}")
        else:
            lines += [f"{' ' * INDENT}{command}", f"{' ' * 3 * INDENT}{purpose}"]
    return "\n".join(lines)


def _usage(command: argparse.ArgumentParser) -> str:
    """Return the usage of a command without its options, which are listed below."""
    words = [command.prog, "[options]"]
    for action in command._get_positional_actions():
        name = str(action.metavar or action.dest)
        word = {"?": f"[{name}]", "*": f"[{name} ...]", "+": f"{name} [{name} ...]"}
        words.append(word.get(str(action.nargs), name))
    return " ".join(words)


class _Version(argparse.Action):
    """Prints the version; the package's metadata are read only then."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any, **__: Any) -> None:
        from importlib.metadata import version

        print(f"odefit {version('odefit')}")
        parser.exit()
