"""The command line of the evidence, ``python -m evidence``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from evidence import CAMPAIGNS, campaign
from evidence.running.runner import run_campaign
from odefit.common.errors import InputError
from odefit.methods.running.cluster import dask_cluster

DONE, UNUSABLE, INTERRUPTED = 0, 2, 130  # exit statuses, as those of odefit


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line, and return the exit status."""
    options = _parser().parse_args(arguments)
    try:
        if options.action == "list":
            return _list()
        return _run(options)
    except InputError as error:
        for message in error.messages:
            print(f"error: {message}", file=sys.stderr)
        return UNUSABLE
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m evidence",
        description="Reproduce a table of a paper, or compare odefit with other programs.",
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    actions.add_parser("list", help="name all campaigns")
    run = actions.add_parser("run", help="run a campaign, or go on with one that was stopped")
    run.add_argument("name", metavar="NAME")
    run.add_argument("--out", metavar="DIR", type=Path, help="default: study-NAME")
    run.add_argument("--jobs", metavar="N", type=int, help="processes (default: one a core)")
    run.add_argument("--dask", metavar="ADDRESS", help="run on the Dask cluster at this address")
    run.add_argument("--limit", metavar="N", type=int, help="make no more than N runs")
    run.add_argument(
        "--set",
        metavar="NAME=VALUE",
        nargs="+",
        action="extend",
        default=[],
        help="options of the campaign, e.g. noise=1e-4",
    )
    return parser


def _list() -> int:
    for name, one in sorted(CAMPAIGNS.items()):
        print(f"{name:24s} {one.description}")
    return DONE


def _run(options: argparse.Namespace) -> int:
    for option in ("jobs", "limit"):
        value = getattr(options, option)
        if value is not None and not value > 0:
            raise InputError(f"--{option}: expected a positive number, got {value}")
    chosen = campaign(options.name).with_options(_choices(options.set))
    out = options.out or Path(f"study-{options.name}")
    with dask_cluster(options.dask) as executor:
        run_campaign(chosen, out, options.jobs, options.limit, executor)
    return DONE


def _choices(texts: Sequence[str]) -> dict[str, str]:
    """Options of a campaign, from ``NAME=VALUE`` texts."""
    found = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not (equals and name.strip() and value.strip()):
            raise InputError(f"--set: expected NAME=VALUE, got {text!r}")
        found[name.strip()] = value.strip()
    return found
