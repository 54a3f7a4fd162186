"""The command line of the evidence, ``python -m evidence``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from evidence import overview, page
from evidence.everything import FOLDER, parts, run_all
from evidence.registry import ROWS, row
from evidence.running.runner import run_campaign
from odefit.common.errors import InputError
from odefit.methods.running.cluster import dask_cluster
from odefit.reporting.numbers import duration

DONE, FAILED, UNUSABLE, INTERRUPTED = 0, 1, 2, 130  # exit statuses, as those of odefit
ALL = "all"  # the name of everything that the pages show


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line, and return the exit status."""
    options = _parser().parse_args(arguments)
    try:
        if options.action == "list":
            return _list()
        return _page(options) if options.action == "page" else _run(options)
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
    actions.add_parser("list", help="name all evidence")
    run = actions.add_parser("run", help="run some of it, or go on with what was stopped")
    run.add_argument("names", metavar="NAME", nargs="+", help=f"'{ALL}': what the pages show")
    run.add_argument(
        "--only", metavar="PAGE", nargs="+", default=[], help=f"with '{ALL}': pages, e.g. speed"
    )
    run.add_argument("--out", metavar="DIR", type=Path, help="default: study-NAME")
    run.add_argument(
        "--jobs", metavar="N", type=int, help="number of processes (default: one for each core)"
    )
    run.add_argument("--dask", metavar="ADDRESS", help="run on the Dask cluster at this address")
    run.add_argument("--limit", metavar="N", type=int, help="make no more than N runs")
    run.add_argument(
        "--set",
        metavar="NAME=VALUE",
        nargs="+",
        action="extend",
        default=[],
        help=f"options of the campaign, e.g. noise=1e-4; with '{ALL}' ROW.NAME=VALUE",
    )
    pages = actions.add_parser("page", help="write tables of results into docs/benchmarks/")
    pages.add_argument("folders", metavar="DIR", nargs="*", type=Path, help="whose tables to take")
    pages.add_argument("--check", action="store_true", help="only say where pages are stale")
    return parser


def _list() -> int:
    for name, one in sorted(ROWS.items()):
        needs = f"; needs {', '.join(one.needs)}" if one.needs else ""
        print(f"{name:26s} {one.shows} ({duration(60 * one.minutes)}{needs})")
    return DONE


def _run(options: argparse.Namespace) -> int:
    for option in ("jobs", "limit"):
        value = getattr(options, option)
        if value is not None and not value > 0:
            raise InputError(f"--{option}: expected a positive number, got {value}")
    names, given = options.names, _choices(options.set)
    if names == [ALL]:
        left = run_all(parts(options.only, given), options.out or FOLDER, options.jobs)
        print("\n" + ("\n".join(left) or "every part has ended"))
        return FAILED if left else DONE
    if options.only:
        raise InputError(f"--only: chooses pages of 'run {ALL}'")
    chosen = [row(name).campaign().with_options(given) for name in names]
    for name, campaign in zip(names, chosen, strict=True):
        out = options.out or Path(f"study-{name}")
        folder = out / name if options.out and len(names) > 1 else out
        page.begin(folder)
        with dask_cluster(options.dask) as executor:
            run_campaign(campaign, folder, options.jobs, options.limit, executor)
        page.stamp(folder, name, given, options.limit)
    return DONE


def _page(options: argparse.Namespace) -> int:
    if options.check:
        wrong = page.stale() + overview.stale()
        print("\n".join(wrong) or "pages and results files agree")
        return FAILED if wrong else DONE
    for folder in options.folders:
        for name in page.record(folder):
            print(f"{name} is that of {folder}")
    page.write()
    overview.write()
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
