"""The command ``odefit profile``."""

from __future__ import annotations

import argparse
import sys
import time
from concurrent.futures import Executor
from pathlib import Path
from typing import TYPE_CHECKING

from odefit.cli.exit_statuses import NO_FIT, TIME_LIMIT
from odefit.cli.plot import check_figure, write_figure
from odefit.cli.shared import (
    add_log,
    add_memory,
    add_reading,
    add_report,
    add_seed,
    add_work,
    check_files,
    check_positive,
    exit_status,
    is_result,
    loaded,
    logged,
    progress_line,
    report_later,
    signals_heeded,
)
from odefit.cli.unknowns import add_unknowns, changed, with_unknowns
from odefit.common.errors import InputError
from odefit.common.option_checks import check_level
from odefit.methods.estimate import Status
from odefit.methods.running.control import Interruption
from odefit.methods.running.memory import memory_limit

if TYPE_CHECKING:
    from odefit.result.result import Result


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``odefit profile``."""
    parser.add_argument("source", metavar="PROBLEM.toml|PETAB.yaml|RESULT.json")
    parser.add_argument(
        "--only", metavar="KEYS", help="profile only these unknowns, e.g. k1,k2 (default: all)"
    )
    parser.add_argument(
        "--expression",
        metavar="TEXT",
        action="append",
        default=[],
        help='profile another quantity, e.g. "CL = k*V", or a state or observable at a time, e.g. '
        "x1@5",
    )
    parser.add_argument(
        "--level", metavar="P", type=float, help="level of the intervals (default: that of the fit)"
    )
    parser.add_argument(
        "--json", metavar="FILE", type=Path, help="write the result with its profiles to this file"
    )
    parser.add_argument("--plot", metavar="FILE.png", type=Path, help="draw the profiles")
    add_report(parser)
    add_log(parser)
    add_reading(parser)
    add_seed(parser)
    add_unknowns(parser)
    add_work(
        parser,
        seconds="end after S seconds, those of the fit included, with the profiles so far",
        checkpoint="keep finished profiles here and continue from them",
    )
    add_memory(parser)


def run(options: argparse.Namespace) -> int:
    """Run ``odefit profile``: profiles of a result, or of the fit of a problem."""
    with logged(options.log), signals_heeded() as signals:
        return _profile(options, signals)


def _profile(options: argparse.Namespace, signals: Interruption) -> int:
    check_positive(options, "jobs", "time_limit")
    if options.level is not None:
        check_level(options.level, "--level")
    memory_limit(options.memory, "--memory")
    check_files(options)
    if options.plot is not None:
        check_figure(options.plot)
    from odefit.methods.running.cluster import dask_cluster

    with dask_cluster(options.dask) as executor:
        return _profiled(options, executor, signals)


def _profiled(options: argparse.Namespace, executor: Executor | None, signals: Interruption) -> int:
    from odefit.reporting.terminal import print_profiles

    began = time.perf_counter()
    result = _result(options, executor, signals)
    if not result.solutions:
        return _without(result, f"no solution was found: {result.message}", NO_FIT, options)
    saved = is_result(options.source)  # the fit's limit no longer applies
    if result.status in (Status.INTERRUPTED, Status.MEMORY_LIMIT) and not saved:
        status = exit_status(result.status, signals)
        return _without(result, f"the fit: {result.status.value}", status, options)
    left = None
    if options.time_limit is not None:
        left = options.time_limit - (time.perf_counter() - began)
        if left <= 0:
            return _without(result, "the fit has used all the time", TIME_LIMIT, options)
    keys = None if options.only is None else [k.strip() for k in options.only.split(",")]
    with progress_line() as report:
        profiles = result.profile(
            keys,
            level=options.level,
            expressions=options.expression,
            time_limit=left,
            memory=options.memory,
            executor=executor,
            jobs=options.jobs,
            checkpoint=options.checkpoint,
            progress=report,
            stop=signals,
        )
    refusals: list[str] = []
    result = result.with_profiles(profiles)
    if options.json is not None:
        with report_later(refusals, f"writing {options.json}"):
            result.save(options.json)
    if options.plot is not None:
        with report_later(refusals, "the figure"):
            write_figure(profiles.plot(), options.plot)
    if options.report is not None:
        with report_later(refusals, "the report"):
            result.report(options.report)
            print(f"report: {options.report}", file=sys.stderr)
    with report_later(refusals, "printing the profiles"):
        print_profiles(profiles)
    if refusals:
        raise InputError(refusals)
    return exit_status(profiles.status, signals)


def _without(result: Result, reason: str, status: int, options: argparse.Namespace) -> int:
    """Write the fit without profiles; return the exit status."""
    from odefit.reporting.terminal import print_result

    print(f"no profiles: {reason}", file=sys.stderr)
    refusals: list[str] = []
    if options.json is not None:
        with report_later(refusals, f"writing {options.json}"):
            result.save(options.json)
    with report_later(refusals, "printing the result"):
        print_result(result)
    if refusals:
        raise InputError(refusals)
    return status


def _result(
    options: argparse.Namespace, executor: Executor | None, signals: Interruption
) -> Result:
    """Return the result in a file, or that of a fit."""
    from odefit.fitting.fit import fit
    from odefit.result.result import load_result

    if is_result(options.source):
        if option := changed(options):
            raise InputError(
                f"{option}: the profiles of a result are those of its own unknowns; "
                f"first run odefit fit PROBLEM {option} ... --json {options.source}"
            )
        return load_result(options.source)
    problem = with_unknowns(loaded(options.source, options), options)
    with progress_line() as report:
        result = fit(
            problem,
            seed=options.seed,
            time_limit=options.time_limit,
            memory=options.memory,
            executor=executor,
            jobs=options.jobs,
            progress=report,
            checkpoint=options.checkpoint,
            stop=signals,
        )
    if result.status is not Status.CONVERGED:
        print(f"the fit: {result.status.value}: {result.message}", file=sys.stderr)
    return result
