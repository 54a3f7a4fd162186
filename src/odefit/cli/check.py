"""The command ``odefit check``."""

from __future__ import annotations

import argparse
from typing import Any

from odefit.cli.shared import DONE, PROBLEM_FILE, add_reading, add_seed, loaded
from odefit.cli.unknowns import add_unknowns, with_unknowns


def add_parser(commands: Any) -> None:
    """Add the command and its options."""
    parser = commands.add_parser(
        "check",
        help="validate and describe a problem",
        description="Validate and describe a problem; say what its data can determine.",
    )
    parser.set_defaults(run=run)
    parser.add_argument("problem", metavar=PROBLEM_FILE)
    add_reading(parser)
    add_seed(parser)
    add_unknowns(parser)


def run(options: argparse.Namespace) -> int:
    """Run ``odefit check``: validate and describe a problem."""
    from odefit.reporting.description import print_description

    problem = with_unknowns(loaded(options.problem, options), options)
    print_description(problem, seed=options.seed)
    return DONE
