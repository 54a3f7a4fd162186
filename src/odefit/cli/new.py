"""The command ``odefit new``."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from pathlib import Path
from typing import Any

from odefit.cli.shared import DONE, check_writable
from odefit.common.errors import InputError


def add_parser(commands: Any) -> None:
    """Add the command and its options."""
    parser = commands.add_parser(
        "new",
        help="write a first problem file for a CSV table",
        description="Write a commented problem file for the columns of a CSV table, with a "
        "placeholder for the model that runs at once.",
    )
    parser.set_defaults(run=run)
    parser.add_argument("data", metavar="DATA.csv", type=Path)
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE.toml",
        type=Path,
        help="the problem file (default: DATA.toml beside the table)",
    )
    parser.add_argument("--force", action="store_true", help="replace the file if it exists")


def run(options: argparse.Namespace) -> int:
    """Run ``odefit new``: write a first problem file."""
    from odefit.problem.toml.drafts import draft
    from odefit.result_data.result_file import write_atomically

    target = options.output or options.data.with_suffix(".toml")
    if target.suffix.lower() != ".toml":
        raise InputError(f"{target}: a problem file ends in .toml; write -o {target.stem}.toml")
    check_writable(target)
    if target.exists() and not options.force:
        raise InputError(f"{target}: exists already; write --force to replace it, or -o OTHER.toml")
    made = draft(options.data, target.parent, target.stem)
    write_atomically(target, made.text)
    for remark in made.remarks:
        print(f"not used: column {remark}", file=sys.stderr)
    print(f"{target}: replace the placeholder in [ode], then run")
    typed = shlex.quote(str(target))
    folder = Path(os.path.realpath(target.parent))
    table = Path(os.path.realpath(options.data))
    if not table.is_relative_to(folder):
        common = os.path.commonpath([folder, table.parent])
        typed += f" --within {shlex.quote(common)}"
    print(f"  odefit check {typed}")
    print(f"  odefit fit {typed}")
    return DONE
