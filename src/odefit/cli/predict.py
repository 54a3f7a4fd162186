"""The command ``odefit predict``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from odefit.cli.shared import DONE, check_writable, saved_result, write_csv
from odefit.common.errors import InputError


def add_parser(commands: Any) -> None:
    """Add the command and its options."""
    parser = commands.add_parser(
        "predict",
        help="predictions with confidence and prediction bands",
        description="Print predictions of a result as CSV, with standard errors, confidence bands "
        "(where the model's curve is) and prediction bands (where the next measurement is).",
    )
    parser.set_defaults(run=run)
    parser.add_argument("result", metavar="RESULT.json")
    parser.add_argument(
        "--times", metavar="FROM:TO:COUNT", help="other times than those of the data"
    )
    parser.add_argument("--level", metavar="P", type=float, default=0.95, help="default: 0.95")
    parser.add_argument("--experiment", metavar="NAME", help="default: all of them")
    parser.add_argument(
        "--by",
        choices=("linear", "profile"),
        default="linear",
        help="linear bands (the default), or by profile likelihood, which take longer",
    )
    parser.add_argument("-o", "--csv", metavar="FILE.csv", type=Path, help="write to this file")


def run(options: argparse.Namespace) -> int:
    """Run ``odefit predict``: print or write predictions."""
    import pandas as pd

    from odefit.simulation.simulations import times_from_text

    check_writable(options.csv)
    times = None if options.times is None else times_from_text(options.times)
    result = saved_result(options.result)
    every = [c.name for c in result.problem.conditions]
    names = every if options.experiment is None else [options.experiment]
    parts, notes = [], []
    for name in names:
        try:
            table = result.predict(times, options.level, name, options.by)
        except RuntimeError as error:
            raise InputError(str(error)) from error
        notes += table.attrs["notes"]
        if len(every) > 1:
            table.insert(0, "experiment", name)
        parts.append(table)
    write_csv(pd.concat(parts, ignore_index=True), options.csv)
    for line in dict.fromkeys(notes):
        print(f"note: {line}", file=sys.stderr)
    return DONE
