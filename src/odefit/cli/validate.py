"""The command ``odefit validate``."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from odefit.cli.exit_statuses import DONE
from odefit.cli.plot import check_figure, write_figure
from odefit.cli.shared import (
    add_report,
    add_table,
    check_files,
    check_positive,
    check_writable,
    csv_file,
    exit_status,
    progress_line,
    saved_result,
    scenarios_in,
    signals_heeded,
    write_and_show,
)
from odefit.common.errors import InputError

if TYPE_CHECKING:
    from odefit.result.result import Result
    from odefit.result.validation import CrossValidation, Validation

DESCRIPTION = (
    "Compare a result with measurements that were not fitted: fit in per cent, R squared, reduced "
    "chi-square, coverage of the prediction band, patterns of residuals, predictions one step "
    "ahead beside the free run, and whether the model predicts as well as it fits. Nothing is "
    "fitted, except initial values that --free-initial names."
)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``odefit validate``."""
    parser.add_argument("result", metavar="RESULT.json")
    parser.add_argument(
        "data",
        metavar="DATA.csv|FILE.toml",
        nargs="*",
        help="tables of new measurements with their inputs, scenarios that name one, or problem "
        "files, whose experiments are compared",
    )
    parser.add_argument(
        "--free-initial",
        metavar="STATE",
        nargs="*",
        help="fit the initial values of these states to the new measurements (without names: of "
        "all states)",
    )
    parser.add_argument(
        "--cross",
        metavar="PART",
        choices=("experiment", "subject", "block"),
        help="instead of new measurements: leave out experiments, subjects or blocks of time in "
        "turn, and predict each by a fit of the rest (cross-validation)",
    )
    parser.add_argument(
        "--folds",
        metavar="N",
        type=int,
        help="with --cross: number of parts (default: 5 blocks, or one for each experiment or "
        "subject)",
    )
    parser.add_argument(
        "--jobs",
        metavar="N",
        type=int,
        help="with --cross: number of processes (default: one for each core)",
    )
    parser.add_argument(
        "--dask",
        metavar="ADDRESS",
        help="with --cross: work on the Dask cluster with the scheduler at this address",
    )
    parser.add_argument(
        "--time-limit",
        metavar="S",
        type=float,
        help="with --cross: end after S seconds, with the parts so far",
    )
    parser.add_argument(
        "--level",
        metavar="P",
        type=float,
        default=0.95,
        help="level of the prediction band (default: 0.95)",
    )
    parser.add_argument("--json", metavar="FILE", type=Path, help="write all numbers to this file")
    parser.add_argument(
        "--plot", metavar="FILE.svg|.pdf|.png", type=Path, help="draw model and new measurements"
    )
    add_report(parser)
    add_table(parser)


def run(options: argparse.Namespace) -> int:
    """Run ``odefit validate``: compare a result with new measurements."""
    if options.cross is not None:
        return _cross(options)
    for name in ("folds", "jobs", "dask", "time_limit"):
        if getattr(options, name) is not None:
            raise InputError(f"--{name.replace('_', '-')}: belongs to --cross")
    if not options.data:
        raise InputError("give a file of new measurements, or --cross block to leave out parts")
    _check_outputs(options)
    result = saved_result(options.result)
    runs = _runs(result, options.data)
    free = options.free_initial
    try:
        with progress_line("comparing with new measurements ..."):
            validation = result.validate(
                runs, free_initial=free if free else free is not None, level=options.level
            )
    except RuntimeError as error:
        raise InputError(str(error)) from error
    write_and_show(
        [
            (options.json, validation.save, "the validation"),
            (options.csv, lambda path: csv_file(validation.measurements, path), "the table"),
            *_outputs(validation, options),
        ],
        lambda: print(validation),
    )
    return DONE


def _cross(options: argparse.Namespace) -> int:
    """Cross-validate a result, and print how well the rest predicts each part."""
    if options.data or options.free_initial is not None:
        raise InputError("--cross: leaves out parts of the fitted data; give no other measurements")
    check_positive(options, "jobs", "time_limit")
    _check_outputs(options)
    result = saved_result(options.result)
    from odefit.methods.running.cluster import dask_cluster

    with (
        signals_heeded() as signals,
        dask_cluster(options.dask) as executor,
        progress_line("cross-validation") as report,
    ):
        validation = result.cross_validate(
            options.cross,
            options.folds,
            jobs=options.jobs,
            executor=executor,
            time_limit=options.time_limit,
            progress=report,
            stop=signals,
        )
    write_and_show(
        [
            (options.json, validation.save, "the cross-validation"),
            (options.csv, lambda path: csv_file(validation.table(), path), "the table"),
            *_outputs(validation, options),
        ],
        lambda: print(validation),
    )
    return exit_status(validation.status, signals)


def _check_outputs(options: argparse.Namespace) -> None:
    """Refuse files of unknown formats, or in places that cannot be written to."""
    check_files(options)
    check_writable(options.csv)
    if options.plot is not None:
        check_figure(options.plot)


def _outputs(validation: Validation | CrossValidation, options: argparse.Namespace) -> list[Any]:
    """Return the figure and the report to be written."""
    return [
        (options.plot, lambda path: write_figure(validation.plot(), path), "the figure"),
        (options.report, validation.report, "the report"),
    ]


def _runs(result: Result, files: list[str]) -> list[Any]:
    """Return the runs in some files, all mistakes at once."""
    runs: list[Any] = []
    mistakes: list[str] = []
    for file in files:
        try:
            if _is_problem(Path(file)):
                from odefit.formats.files import load

                runs += load(file).experiments
            else:
                runs += scenarios_in(result, [file])
        except InputError as error:
            mistakes += error.messages
    if mistakes:
        raise InputError(mistakes)
    return runs


def _is_problem(path: Path) -> bool:
    """Tell whether a file is a problem file, and not a scenario."""
    if path.suffix.lower() in (".yaml", ".yml"):
        return True
    if path.suffix.lower() != ".toml":
        return False
    from odefit.problem.inputs.file_access import MAX_PROBLEM_SIZE, read_text
    from odefit.problem.inputs.issues import Issues
    from odefit.problem.toml.files import parsed_toml

    issues = Issues()
    text = read_text(path, str(path), issues, MAX_PROBLEM_SIZE)
    try:
        issues.raise_errors()
        tables = parsed_toml(text or "", str(path))
    except InputError:
        return False  # reading it gives the reason
    return not {"ode", "reactions"}.isdisjoint(tables)
