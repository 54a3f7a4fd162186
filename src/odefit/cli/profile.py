"""The command ``odefit profile``."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from odefit.cli.commands import (
    EXIT_STATUS,
    INTERRUPTED,
    NO_FIT,
    TIME_LIMIT,
    check_writable,
    progress_line,
)
from odefit.methods.estimate import Status
from odefit.problem.errors import InputError
from odefit.problem.packages import require

if TYPE_CHECKING:
    from odefit.profiles import Profiles
    from odefit.result import Result


def profile(options: argparse.Namespace) -> int:
    """Run ``odefit profile``: profiles of a result, or of the fit of a problem."""
    for option in ("jobs", "time_limit"):
        value = getattr(options, option)
        if value is not None and not value > 0:
            name = option.replace("_", "-")
            raise InputError(f"--{name}: expected a positive number, got {value:g}")
    if options.level is not None and not 0 < options.level < 1:
        raise InputError(
            f"--level: expected a number between 0 and 1 such as 0.95, got {options.level:g}"
        )
    for path in (options.json, options.plot, options.report, options.checkpoint):
        check_writable(path)
    if options.plot is not None or options.report is not None:
        require("matplotlib")
    if options.report is not None:
        require("jinja2")
    began = time.perf_counter()
    result = _result(options)
    if not result.solutions:
        print(f"no profiles: no solution was found: {result.message}", file=sys.stderr)
        return NO_FIT
    if result.status is Status.INTERRUPTED:
        return INTERRUPTED
    left = None
    if options.time_limit is not None:
        left = options.time_limit - (time.perf_counter() - began)
        if left <= 0:
            print("no profiles: the fit has taken all the time", file=sys.stderr)
            return TIME_LIMIT
    keys = None if options.only is None else [k.strip() for k in options.only.split(",")]
    with progress_line() as report:
        found = result.profile(
            keys,
            level=options.level,
            expressions=options.expression,
            time_limit=left,
            jobs=options.jobs,
            checkpoint=options.checkpoint,
            progress=report,
        )
    print(found)
    result = result.with_profiles(found)
    if options.json is not None:
        result.save(options.json)
    if options.plot is not None:
        _draw(found, options.plot)
    if options.report is not None:
        result.report(options.report)
        print(f"report: {options.report}", file=sys.stderr)
    return EXIT_STATUS[found.status]


def _result(options: argparse.Namespace) -> Result:
    """Return the result in a file, or that of a fit."""
    from odefit.fit import fit
    from odefit.formats.loading import load
    from odefit.result import load_result

    if Path(options.source).suffix.lower() == ".json":
        return load_result(options.source)
    problem = load(options.source, nominal=options.nominal)
    with progress_line() as report:
        result = fit(
            problem,
            seed=options.seed,
            time_limit=options.time_limit,
            jobs=options.jobs,
            progress=report,
        )
    if result.status is not Status.CONVERGED:
        print(f"the fit: {result.status.value}: {result.message}", file=sys.stderr)
    return result


def _draw(profiles: Profiles, path: Path) -> None:
    """Write a figure to a file."""
    from odefit.reporting.figures.style import plain_style

    with plain_style():
        try:
            profiles.plot().savefig(path, dpi=144)
        except ValueError as error:
            raise InputError(f"{path}: cannot be drawn: {error}") from error
