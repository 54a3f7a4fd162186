"""The command ``odefit compare``."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from odefit.cli.shared import DONE


def add_parser(commands: Any) -> None:
    """Add the command and its options."""
    parser = commands.add_parser(
        "compare",
        help="compare models of the same data",
        description="Compare results of the same data: information criteria, the weights of "
        "Akaike, and tests of nested models.",
    )
    parser.set_defaults(run=run)
    parser.add_argument("results", metavar="RESULT.json", nargs="+")


def run(options: argparse.Namespace) -> int:
    """Run ``odefit compare``: compare results of the same data."""
    from odefit.reporting.comparison import compare as compare_results
    from odefit.result.result import load_result

    results = [load_result(path) for path in options.results]
    names = distinct_names(options.results)
    print(compare_results(*results, names=names))
    return DONE


def distinct_names(paths: Sequence[str]) -> list[str]:
    """Return a short name for each result file: its own, or with as many folders as tell apart.

    Files with equal names in different folders are named ``run1/fit`` and ``run2/fit``.
    """
    parts = [Path(path).resolve().with_suffix("").parts for path in paths]
    names = []
    for own in parts:
        others = [p for p in parts if p != own]
        count = next(
            (k for k in range(1, len(own)) if all(p[-k:] != own[-k:] for p in others)), len(own)
        )
        names.append("/".join(own[-count:]))
    return names
