"""The entry point ``odefit``: it reads the options, runs a command and returns an exit status."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from odefit.assessment.parts import INTERVAL_CHOICES
from odefit.cli.commands import (
    DONE,
    INTERRUPTED,
    UNUSABLE,
    check,
    compare,
    convert,
    fit,
    simulate,
)
from odefit.cli.profile import profile
from odefit.methods.registry import METHODS, OPTIONS
from odefit.problem.errors import InputError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line, and return the exit status.

    It is 0 when the command is done, 2 for unusable input, 3 if no acceptable fit was found, 4 if
    the time limit was reached (the best so far is written all the same), and 130 after Ctrl-C.
    """
    options = _parser().parse_args(arguments)
    try:
        return int(options.run(options))
    except InputError as error:
        for message in error.messages:
            print(f"error: {message}", file=sys.stderr)
        return UNUSABLE
    except BrokenPipeError:
        # The reader of a pipe has gone, as with `odefit ... | head`.
        sys.stderr.close()
        return DONE
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="odefit",
        description="Estimate the parameters of ODE models from data, "
        "and say how far the answer can be trusted.",
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and exit")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _add_fit(commands)
    _add_profile(commands)
    _add_compare(commands)
    _add_check(commands)
    _add_simulate(commands)
    _add_convert(commands)
    return parser


class _Version(argparse.Action):
    """Prints the version; the package's metadata are read only then."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any, **__: Any) -> None:
        from importlib.metadata import version

        print(f"odefit {version('odefit')}")
        parser.exit()


def _add_fit(commands: Any) -> None:
    parser = commands.add_parser(
        "fit", help="estimate the unknowns of a problem", description="Estimate the unknowns."
    )
    parser.set_defaults(run=fit)
    parser.add_argument("problem", metavar="PROBLEM.toml|PETAB.yaml")
    parser.add_argument("--method", metavar="NAME", help=f"one of: {', '.join(METHODS)}")
    for name, option in OPTIONS.items():
        owners = [entry.name for entry in METHODS.values() if name in entry.options]
        parser.add_argument(
            f"--{name}",
            metavar=None if option.choices else option.metavar,
            type=option.kind,
            choices=option.choices,
            help=f"{option.meaning}; for {', '.join(owners)}",
        )
    parser.add_argument(
        "--certify",
        action="store_true",
        help="prove, in the time left, how much better any other values within the bounds can be",
    )
    parser.add_argument(
        "--intervals",
        choices=INTERVAL_CHOICES,
        default=INTERVAL_CHOICES[0],
        help="what becomes of intervals where the residuals are no noise: as they are, scaled by "
        "the root of the reduced chi-square, or withheld (default: %(default)s)",
    )
    parser.add_argument("--json", metavar="FILE", type=Path, help="write the result to this file")
    parser.add_argument("--report", metavar="FILE.html", type=Path, help="write a report")
    _add_problem_options(parser)
    parser.add_argument("--jobs", metavar="N", type=int, help="processes (default: one a core)")
    parser.add_argument("--time-limit", metavar="S", type=float, help="seconds")
    parser.add_argument(
        "--checkpoint",
        metavar="FILE",
        type=Path,
        help="keep finished starts here and go on from them (default with --json: "
        "FILE.checkpoint, removed at the end)",
    )


def _add_profile(commands: Any) -> None:
    parser = commands.add_parser(
        "profile",
        help="profile likelihoods: intervals without linearisation",
        description="Profile likelihoods of the unknowns of a result, or of a problem, which is "
        "fitted first.",
    )
    parser.set_defaults(run=profile)
    parser.add_argument("source", metavar="PROBLEM.toml|PETAB.yaml|RESULT.json")
    parser.add_argument(
        "--only", metavar="KEYS", help="these unknowns alone, e.g. k1,k2 (default: all)"
    )
    parser.add_argument(
        "--expression",
        metavar="TEXT",
        action="append",
        default=[],
        help='another quantity, e.g. "CL = k*V", or a state or observable at a time, e.g. x1@5',
    )
    parser.add_argument("--level", metavar="P", type=float, help="default: that of the fit")
    parser.add_argument(
        "--json", metavar="FILE", type=Path, help="write the result with its profiles to this file"
    )
    parser.add_argument("--plot", metavar="FILE.png", type=Path, help="draw the profiles")
    parser.add_argument("--report", metavar="FILE.html", type=Path, help="write a report")
    _add_problem_options(parser)
    parser.add_argument("--jobs", metavar="N", type=int, help="processes (default: one a core)")
    parser.add_argument(
        "--time-limit", metavar="S", type=float, help="seconds, those of the fit included"
    )
    parser.add_argument(
        "--checkpoint",
        metavar="FILE",
        type=Path,
        help="keep finished profiles here and go on from them",
    )


def _add_compare(commands: Any) -> None:
    parser = commands.add_parser(
        "compare",
        help="compare models of the same data",
        description="Compare results of the same data: information criteria, the weights of "
        "Akaike, and tests of nested models.",
    )
    parser.set_defaults(run=compare)
    parser.add_argument("results", metavar="RESULT.json", nargs="+")


def _add_check(commands: Any) -> None:
    parser = commands.add_parser(
        "check",
        help="validate and describe a problem",
        description="Validate and describe a problem; say what its data can determine.",
    )
    parser.set_defaults(run=check)
    parser.add_argument("problem", metavar="PROBLEM.toml|PETAB.yaml")
    _add_problem_options(parser)


def _add_simulate(commands: Any) -> None:
    parser = commands.add_parser(
        "simulate", help="simulate a problem", description="Simulate a problem."
    )
    parser.set_defaults(run=simulate)
    parser.add_argument("problem", metavar="PROBLEM.toml|PETAB.yaml")
    parser.add_argument(
        "--set",
        metavar="NAME=VALUE",
        nargs="+",
        action="extend",
        default=[],
        help="values of unknowns; without it the guesses",
    )
    parser.add_argument("--result", metavar="FILE", type=Path, help="take values from a result")
    parser.add_argument(
        "--times", metavar="FROM:TO:COUNT", help="other times than those of the data"
    )
    parser.add_argument("--csv", metavar="FILE", type=Path, help="write to this file")
    _add_nominal(parser)


def _add_convert(commands: Any) -> None:
    parser = commands.add_parser(
        "convert",
        help="write a problem in another format",
        description="Write a problem as a problem file with CSV tables, or as PEtab, version 2.",
    )
    parser.set_defaults(run=convert)
    parser.add_argument("problem", metavar="PROBLEM.toml|PETAB.yaml")
    parser.add_argument("target", metavar="NEW.toml|NEW.yaml|FOLDER")
    _add_nominal(parser)


def _add_problem_options(parser: argparse.ArgumentParser) -> None:
    _add_nominal(parser)
    parser.add_argument("--seed", metavar="N", type=int, default=0, help="default: 0")


def _add_nominal(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--nominal",
        action="store_true",
        help="take the nominal values of a PEtab problem as guesses",
    )
