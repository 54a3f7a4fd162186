"""The command ``odefit methods``."""

from __future__ import annotations

import argparse
import shutil
import textwrap

from odefit.cli.exit_statuses import DONE
from odefit.methods.method_options import entry_of, method_options, summary_of
from odefit.methods.registry import DEFAULT_METHOD, METHODS

MIN_WIDTH, MAX_WIDTH = 40, 100
"""Smallest and largest width of the text."""

GAP = "  "
"""Space between the columns of the list of methods."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``odefit methods``."""
    parser.add_argument("name", metavar="NAME", nargs="?", help=f"one of: {', '.join(METHODS)}")


def run(options: argparse.Namespace) -> int:
    """Run ``odefit methods``: print a line on each method, or the options of one."""
    width = min(max(shutil.get_terminal_size().columns, MIN_WIDTH), MAX_WIDTH)
    if options.name is None:
        _list_all(width)
        return DONE
    entry = entry_of(options.name, "odefit methods")
    print(entry.name)
    print(f"{_indented(summary_of(entry.name), width)}\n")
    for option in method_options(entry.name):
        print(f"{option.name} = {option.default}")
        print(_indented(f"{option.meaning} Takes {option.takes}.", width))
    print(f"\nodefit fit PROBLEM.toml --method {entry.name} --set OPTION=VALUE sets an option.")
    return DONE


def _list_all(width: int) -> None:
    """Print a table of the methods, with a sentence on each."""
    widest = max(map(len, METHODS))
    print(f"{'method':<{widest}}{GAP}idea")
    for name in METHODS:
        default = "The default. " if name == DEFAULT_METHOD else ""
        lines = textwrap.wrap(f"{default}{summary_of(name)}", width - widest - len(GAP))
        for label, line in zip((name, *len(lines) * ("",)), lines, strict=False):
            print(f"{label:<{widest}}{GAP}{line}")
    print("\nodefit methods NAME lists the options of one.")


def _indented(text: str, width: int) -> str:
    return textwrap.fill(text, width, initial_indent="    ", subsequent_indent="    ")
