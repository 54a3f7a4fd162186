"""The commands of the command line; each takes the parsed options and returns an exit status."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from odefit.methods.control import Progress
from odefit.methods.estimate import Status
from odefit.methods.registry import OPTIONS, make_method
from odefit.problem.errors import InputError
from odefit.problem.packages import require

DONE, UNUSABLE, NO_FIT, TIME_LIMIT, INTERRUPTED = 0, 2, 3, 4, 130
"""Exit statuses."""

EXIT_STATUS = {
    Status.CONVERGED: DONE,
    Status.NOT_CONVERGED: NO_FIT,
    Status.FAILED: NO_FIT,
    Status.TIME_LIMIT: TIME_LIMIT,
    Status.INTERRUPTED: INTERRUPTED,
}
"""The exit status for every way in which a fit can end."""


def fit(options: argparse.Namespace) -> int:
    """Run ``odefit fit``: estimate, print the table, and write what was asked for."""
    from odefit.fit import fit as run_fit
    from odefit.formats.loading import load
    from odefit.methods.checkpoint import ForeignCheckpointError
    from odefit.reporting.terminal import print_result
    from odefit.result import Result

    for option in ("jobs", "time_limit", "starts"):
        value = getattr(options, option)
        if value is not None and not value > 0:
            name = option.replace("_", "-")
            raise InputError(f"--{name}: expected a positive number, got {value:g}")
    for path in (options.json, options.report, options.checkpoint):
        check_writable(path)
    if options.report is not None:
        # Before the fit, which may take long.
        require("matplotlib")
        require("jinja2")
    method = make_method(options.method, {name: getattr(options, name) for name in OPTIONS})
    problem = load(options.problem, nominal=options.nominal)
    checkpoint = options.checkpoint
    temporary = checkpoint is None and options.json is not None
    if temporary:
        checkpoint = options.json.with_name(options.json.name + ".checkpoint")

    def run() -> Result:
        with progress_line() as report:
            return run_fit(
                problem,
                method,
                seed=options.seed,
                time_limit=options.time_limit,
                jobs=options.jobs,
                progress=report,
                checkpoint=checkpoint,
                certify=options.certify,
                intervals=options.intervals,
            )

    try:
        result = run()
    except ForeignCheckpointError:
        if not temporary:
            raise
        print(f"{checkpoint}: belongs to another fit and is removed", file=sys.stderr)
        checkpoint.unlink()
        result = run()
    if options.json is not None:
        result.save(options.json)
    print_result(result)
    if options.report is not None:
        if result.solutions:
            result.report(options.report)
            print(f"report: {options.report}", file=sys.stderr)
        else:
            print("no report: no solution was found", file=sys.stderr)
    status = EXIT_STATUS[result.status]
    if temporary and status in (DONE, NO_FIT):
        checkpoint.unlink(missing_ok=True)
    return status


def compare(options: argparse.Namespace) -> int:
    """Run ``odefit compare``: compare results of the same data."""
    from odefit.reporting.comparison import compare as compare_results
    from odefit.result import load_result

    results = [load_result(path) for path in options.results]
    names = [Path(path).stem for path in options.results]
    print(compare_results(*results, names=names))
    return DONE


def check(options: argparse.Namespace) -> int:
    """Run ``odefit check``: validate and describe a problem."""
    from odefit.formats.loading import load
    from odefit.reporting.description import print_description

    print_description(load(options.problem, nominal=options.nominal), seed=options.seed)
    return DONE


def convert(options: argparse.Namespace) -> int:
    """Run ``odefit convert``: write a problem in another format."""
    from odefit.formats.loading import load
    from odefit.formats.saving import save

    print(save(load(options.problem, nominal=options.nominal), options.target))
    return DONE


def simulate(options: argparse.Namespace) -> int:
    """Run ``odefit simulate``: print or write the trajectories."""
    from odefit.formats.loading import load
    from odefit.simulation.simulation_table import (
        simulation_table,
        times_from_text,
        values_from_text,
    )

    problem = load(options.problem, nominal=options.nominal)
    check_writable(options.csv)
    times = None if options.times is None else times_from_text(options.times)
    given = values_from_text(options.set)
    nodes = None
    if options.result is not None:
        from odefit.result import load_result

        result = load_result(options.result)
        if not result.solutions:
            raise InputError(f"{options.result}: holds no solution: {result.message}")
        nodes = None if given else result.best.nodes  # those of the answer as it is
        given = {**result.best.initial, **result.best.parameters, **given}
    table = simulation_table(problem, given, times, strict=options.result is None, nodes=nodes)
    if options.csv is None:
        table.to_csv(sys.stdout, index=False)
    else:
        table.to_csv(options.csv, index=False)
    return DONE


def check_writable(path: Path | None) -> None:
    """Refuse early what could not be written after a long fit."""
    if path is None:
        return
    if path.is_dir():
        raise InputError(f"{path}: is a directory, expected a file to write")
    if not path.parent.is_dir():
        raise InputError(f"{path}: the directory {path.parent} does not exist; make it first")


def progress_line() -> AbstractContextManager[Callable[[Progress], None] | None]:
    """Return a line of progress on a terminal, and nothing elsewhere."""
    if not sys.stderr.isatty():
        return nullcontext()
    from odefit.reporting.progress import TerminalProgress

    return TerminalProgress()
