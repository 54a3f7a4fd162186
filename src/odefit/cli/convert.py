"""The command ``odefit convert``."""

from __future__ import annotations

import argparse
from typing import Any

from odefit.cli.shared import DONE, PROBLEM_FILE, add_reading, loaded


def add_parser(commands: Any) -> None:
    """Add the command and its options."""
    parser = commands.add_parser(
        "convert",
        help="write a problem in another format",
        description="Write a problem as a problem file with CSV tables, or as PEtab, version 2.",
    )
    parser.set_defaults(run=run)
    parser.add_argument("problem", metavar=PROBLEM_FILE)
    parser.add_argument("target", metavar="NEW.toml|NEW.yaml|FOLDER")
    add_reading(parser)


def run(options: argparse.Namespace) -> int:
    """Run ``odefit convert``: write a problem in another format."""
    from odefit.formats.files import save

    print(save(loaded(options.problem, options), options.target))
    return DONE
