"""The commands that list what comes with odefit: ``methods`` and ``library``."""

from __future__ import annotations

import argparse
import shutil
import textwrap
import tomllib
from pathlib import Path

import odefit.library
from odefit.cli.exit_statuses import DONE
from odefit.common.errors import InputError
from odefit.common.partial_files import write_together
from odefit.methods.registry import DEFAULT_METHOD, METHODS

NOISE = {"none": "noiseless", "real": "measured", "gaussian": "synthetic noise"}
"""Words for the noise of the data of a problem."""

WIDTH = 79
"""Width of the text on a problem, in columns."""

MIN_WIDTH, MAX_WIDTH = 40, 100
"""Smallest and largest width of the text on methods."""

GAP = "  "
"""Space between the columns of the list of methods."""


def add_library(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``odefit library``."""
    parser.add_argument("name", metavar="NAME", nargs="?", help="a problem of the list")
    parser.add_argument(
        "--copy", metavar="FOLDER", help="copy the problem file and its data into this folder"
    )


def run_library(options: argparse.Namespace) -> int:
    """Run ``odefit library``: list the problems, describe one, or copy its files."""
    if options.name is None:
        if options.copy is not None:
            raise InputError(
                "--copy needs the name of a problem: odefit library NAME --copy FOLDER"
            )
        _list_problems()
        return DONE
    file = odefit.library.path(options.name)
    if options.copy is not None:
        print(_copied(file.parent, Path(options.copy)))
        return DONE
    known = odefit.library.reference(options.name)
    print(f"{known.name}: {NOISE[known.noise]} data; papers: {', '.join(known.papers)}")
    print(f"\n{textwrap.fill(' '.join(known.source.split()), WIDTH)}\n")
    values = {**known.parameters, **known.initial}
    widest = max(map(len, values), default=0)
    print("Reference values:")
    for name, value in values.items():
        open_ = "  (the data cannot determine it)" if name in known.not_identifiable else ""
        print(f"    {name:<{widest}}  {value:g}{open_}")
    print(f"\nodefit fit {file}")
    return DONE


def _list_problems() -> None:
    """Print one line for each problem."""
    rows = [("problem", "states", "unknowns", "data")]
    for name in odefit.library.names():
        raw = tomllib.loads(odefit.library.path(name).read_text(encoding="utf-8"))
        known = odefit.library.reference(name)
        unknowns = str(len(known.parameters) + len(known.initial))
        rows.append((name, str(len(raw["ode"])), unknowns, NOISE[known.noise]))
    widths = [max(len(row[i]) for row in rows) for i in range(4)]
    for name, states, unknowns, data in rows:
        print(f"{name:<{widths[0]}}  {states:>{widths[1]}}  {unknowns:>{widths[2]}}  {data}")
    print("\nodefit library NAME describes one; --copy FOLDER copies its files.")


def _copied(source: Path, target: Path) -> Path:
    """Copy the files of a problem, and return the path of its problem file.

    Raises
    ------
    InputError
        A file of the same name exists.
    """
    files = sorted(path for path in source.iterdir() if path.is_file())
    present = [path.name for path in files if (target / path.name).exists()]
    if present:
        raise InputError(
            f"{target} holds a file {present[0]} already: choose another folder for --copy"
        )
    write_together({target / path.name: path.read_bytes() for path in files})
    return target / "problem.toml"


def add_methods(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``odefit methods``."""
    parser.add_argument("name", metavar="NAME", nargs="?", help=f"one of: {', '.join(METHODS)}")


def run_methods(options: argparse.Namespace) -> int:
    """Run ``odefit methods``: print a line on each method, or the options of one."""
    width = min(max(shutil.get_terminal_size().columns, MIN_WIDTH), MAX_WIDTH)
    if options.name is None:
        _list_methods(width)
        return DONE
    from odefit.methods.method_options import entry_of, method_options, summary_of

    entry = entry_of(options.name, "odefit methods")
    print(entry.name)
    print(f"{_indented(summary_of(entry.name), width)}\n")
    for option in method_options(entry.name):
        print(f"{option.name} = {option.default}")
        print(_indented(f"{option.meaning} Takes {option.takes}.", width))
    print(f"\nodefit fit PROBLEM.toml --method {entry.name} --set OPTION=VALUE sets an option.")
    return DONE


def _list_methods(width: int) -> None:
    """Print a table of the methods, with a sentence on each."""
    from odefit.methods.method_options import summary_of

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
