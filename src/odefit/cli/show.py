"""The command ``odefit show``."""

from __future__ import annotations

import argparse
from typing import Any

from odefit.cli.shared import DONE


def add_parser(commands: Any) -> None:
    """Add the command and its options."""
    parser = commands.add_parser(
        "show",
        help="print a result again",
        description="Print what 'odefit fit' has printed of a result.",
    )
    parser.set_defaults(run=run)
    parser.add_argument("result", metavar="RESULT.json")


def run(options: argparse.Namespace) -> int:
    """Run ``odefit show``: print a result with its notes."""
    from odefit.reporting.terminal import print_notes, print_result
    from odefit.result.result import load_result

    result = load_result(options.result)
    print_result(result)
    print_notes(result)
    if result.profiles is not None:
        print(f"\n{result.profiles}")
    return DONE
