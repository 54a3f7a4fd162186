"""The command ``odefit simulate``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from odefit.cli.shared import (
    DONE,
    PROBLEM_FILE,
    add_reading,
    check_writable,
    loaded,
    saved_result,
    write_csv,
)
from odefit.cli.unknowns import add_fix, with_unknowns


def add_parser(commands: Any) -> None:
    """Add the command and its options."""
    parser = commands.add_parser(
        "simulate", help="simulate a problem", description="Simulate a problem."
    )
    parser.set_defaults(run=run)
    parser.add_argument("problem", metavar=PROBLEM_FILE)
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
    add_fix(parser)
    add_reading(parser)


def run(options: argparse.Namespace) -> int:
    """Run ``odefit simulate``: print or write the trajectories."""
    from odefit.reporting.notices import opinion_sentence
    from odefit.simulation.simulations import (
        confirmed_simulation,
        times_from_text,
        values_from_text,
    )

    problem = with_unknowns(loaded(options.problem, options), options)
    check_writable(options.csv)
    times = None if options.times is None else times_from_text(options.times)
    given = values_from_text(options.set)
    nodes = None
    if options.result is not None:
        result = saved_result(options.result)
        nodes = None if given else result.best.nodes  # those of the answer as it is
        given = {**result.best.initial, **result.best.parameters, **given}
    table, opinion = confirmed_simulation(
        problem, given, times, strict=options.result is None, nodes=nodes
    )
    if sentence := opinion_sentence(opinion):
        print(f"note: {sentence}", file=sys.stderr)
    write_csv(table, options.csv)
    return DONE
