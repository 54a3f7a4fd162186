"""All commands and their options; parsing them, running a command, returning its status."""

from __future__ import annotations

import argparse
import os
import sys
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from odefit.cli import (
    design,
    examples,
    explore,
    fit,
    lists,
    plot,
    predict,
    profile,
    sensitivity,
    validate,
)
from odefit.cli import problem_commands as problems
from odefit.cli import result_commands as results
from odefit.cli.parser import CommandParser, mistaken_command
from odefit.cli.shared import plain_warnings


@dataclass(frozen=True)
class Command:
    """A command: the functions that add its options and run it, and its lines in the help."""

    name: str
    add_options: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]
    help: str
    description: str


COMMANDS = (
    Command(
        "fit",
        fit.add_options,
        fit.run,
        "estimate the unknowns of a problem",
        "Fit a problem: estimate its unknowns, and say how far the estimates can be trusted.",
    ),
    Command(
        "profile",
        profile.add_options,
        profile.run,
        "profile likelihoods: intervals without linearisation",
        "Profile likelihoods of the unknowns of a result, or of a problem, which is fitted first.",
    ),
    Command(
        "show",
        results.add_show,
        results.run_show,
        "print a result again",
        "Print the summary of a result, as 'odefit fit' did.",
    ),
    Command("plot", plot.add_options, plot.run, "draw a result", plot.DESCRIPTION),
    Command(
        "residuals",
        results.add_residuals,
        results.run_residuals,
        "residuals as a table",
        "Print a row for each measurement as CSV: measured, predicted, residual, weighted "
        "residual and standard deviation; of a result, or of a problem at given values.",
    ),
    Command(
        "predict",
        predict.add_options,
        predict.run,
        "predictions with confidence and prediction bands",
        predict.DESCRIPTION,
    ),
    Command(
        "design",
        design.add_options,
        design.run,
        "which measurements to make next",
        design.DESCRIPTION,
    ),
    Command(
        "validate",
        validate.add_options,
        validate.run,
        "compare a result with new measurements",
        validate.DESCRIPTION,
    ),
    Command(
        "verify",
        results.add_verify,
        results.run_verify,
        "verify a certificate",
        results.VERIFICATION,
    ),
    Command(
        "sensitivity",
        sensitivity.add_options,
        sensitivity.run,
        "which unknowns outputs depend on",
        sensitivity.DESCRIPTION,
    ),
    Command(
        "compare",
        results.add_compare,
        results.run_compare,
        "compare models of the same data",
        "Compare results of the same data: information criteria, Akaike weights, and "
        "tests of nested models.",
    ),
    Command(
        "check",
        problems.add_check,
        problems.run_check,
        "report mistakes in a problem, and describe it",
        "Read a problem, report all mistakes, describe it, and say what its data can determine.",
    ),
    Command(
        "simulate",
        problems.add_simulate,
        problems.run_simulate,
        "simulate a problem",
        "Simulate a problem, and print its states and observables as CSV.",
    ),
    Command(
        "explore",
        explore.add_options,
        explore.run,
        "sliders in the browser",
        "Move the unknowns of a problem by sliders in the browser, and see the curves move. Only "
        "this user on this machine can open the page. Ctrl-C ends it.",
    ),
    Command(
        "new",
        problems.add_new,
        problems.run_new,
        "write a first problem file for a CSV table",
        "Write a commented problem file for the columns of a CSV table, with a placeholder for "
        "the model that runs at once.",
    ),
    Command(
        "convert",
        problems.add_convert,
        problems.run_convert,
        "write a problem in another format, or a fitted model as a program",
        "Write a problem as a problem file with CSV tables, or as PEtab, version 2; or a model "
        "with its estimates as a stand-alone program in Python, C, Julia or MATLAB.",
    ),
    Command(
        "methods",
        lists.add_methods,
        lists.run_methods,
        "list the methods, or the options of one",
        "List the methods; with a name, all options of that method, which "
        "'odefit fit --method NAME --set OPTION=VALUE' sets.",
    ),
    Command(
        "library",
        lists.add_library,
        lists.run_library,
        "list the example problems, or describe one",
        "List the problems of the library, which come with odefit; with a name, describe one: "
        "the source of its data, and its known values.",
    ),
)
"""All commands in the order of the help, one row each."""


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
            examples.OF_ALL,
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
            description=_described(command.description, examples.OF_COMMANDS[command.name]),
        )
        added.set_defaults(run=command.run)
        command.add_options(added)
        added.usage = _usage(added)
    return whole


def _described(description: str, shown: tuple[tuple[str, str], ...]) -> str:
    """Return a description with examples below it, as wide as a small terminal."""
    return f"{textwrap.fill(description, examples.TOGETHER)}\n\n{examples.shown(shown)}"


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
