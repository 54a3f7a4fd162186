"""The command ``odefit residuals``."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from odefit.cli.shared import (
    DONE,
    add_reading,
    check_writable,
    is_result,
    loaded,
    saved_result,
    write_csv,
)
from odefit.cli.unknowns import add_fix, with_unknowns
from odefit.common.errors import InputError


def add_parser(commands: Any) -> None:
    """Add the command and its options."""
    parser = commands.add_parser(
        "residuals",
        help="residuals as a table",
        description="Print a row for each measurement as CSV: measured, predicted, residual, "
        "weighted residual and standard deviation; of a result, or of a problem at given values.",
    )
    parser.set_defaults(run=run)
    parser.add_argument("source", metavar="RESULT.json|PROBLEM.toml|PETAB.yaml")
    parser.add_argument(
        "--set",
        metavar="NAME=VALUE",
        nargs="+",
        action="extend",
        default=[],
        help="of a problem: values of unknowns; without it the guesses",
    )
    parser.add_argument("-o", "--csv", metavar="FILE.csv", type=Path, help="write to this file")
    add_fix(parser)
    add_reading(parser)


def run(options: argparse.Namespace) -> int:
    """Run ``odefit residuals``: print or write residuals."""
    check_writable(options.csv)
    if is_result(options.source):
        if options.set or options.fix:
            raise InputError(
                "--set: a result has its own values; name the problem to give others: "
                "odefit residuals PROBLEM --set ..."
            )
        try:
            table = saved_result(options.source).residuals
        except RuntimeError as error:
            raise InputError(str(error)) from error
        write_csv(table, options.csv)
        return DONE
    from odefit.reporting.summary import residuals_at
    from odefit.simulation.simulations import chosen_values, values_from_text

    problem = with_unknowns(loaded(options.source, options), options)
    problem, vector = chosen_values(problem, values_from_text(options.set))
    try:
        table = residuals_at(problem, vector)
    except RuntimeError as error:
        raise InputError(str(error)) from error
    write_csv(table, options.csv)
    return DONE
