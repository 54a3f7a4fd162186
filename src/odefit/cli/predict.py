"""The command ``odefit predict``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from odefit.cli.exit_statuses import DONE
from odefit.cli.plot import check_figure, write_figure
from odefit.cli.shared import (
    add_seed,
    add_table,
    add_times,
    add_values,
    check_positive,
    check_writable,
    json_file,
    json_rows,
    progress_line,
    saved_result,
    scenarios_in,
    times_by_experiment,
    write_csv,
)
from odefit.common.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

    from odefit.methods.running.control import Control
    from odefit.reporting.predictions import BandKind
    from odefit.result.result import Result

DESCRIPTION = (
    "Print predictions of a result as CSV, with standard errors, confidence bands (where the "
    "model's curve is) and prediction bands (where the next measurement is); of fitted "
    "experiments, or of scenarios with other inputs, doses, initial values and constants; or "
    "quantities such as areas and maxima with their intervals. With --csv, --json or --plot, the "
    "files are written instead, and nothing is printed."
)

SAMPLED = ("bootstrap", "posterior")
"""Methods for bands by samples."""

FORMAT = 1
"""The format of the JSON file."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``odefit predict``."""
    parser.add_argument("result", metavar="RESULT.json")
    add_times(parser)
    parser.add_argument(
        "--level", metavar="P", type=float, default=0.95, help="level of the bands (default: 0.95)"
    )
    parser.add_argument(
        "--experiment", metavar="NAME", help="predict this experiment (default: all)"
    )
    add_values(
        parser,
        "--scenario",
        "FILE.toml|FILE.csv",
        "runs that differ from a fitted experiment, instead of the experiments",
    )
    add_values(
        parser,
        "--quantity",
        "TEXT",
        "a table of quantities instead of curves, such as 'AUC = integral(C)', 'max(C, 0:24)', "
        "'first(t where C > 2)' or 'C@inf'",
    )
    parser.add_argument(
        "--by",
        choices=("linear", "profile", *SAMPLED),
        default="linear",
        help="linear bands (the default), bands by profile likelihood, which take longer, or "
        "percentiles of samples",
    )
    parser.add_argument(
        "--solutions",
        choices=("all", "mixture", "best"),
        default="all",
        help="where several solutions fit: bands over all of them (the default), over their "
        "mixture by weight, or of only the best",
    )
    parser.add_argument(
        "--samples", metavar="N", type=int, default=500, help="number of samples (default: 500)"
    )
    add_seed(parser)
    parser.add_argument(
        "--jobs",
        metavar="N",
        type=int,
        help="number of processes for samples (default: one for each core)",
    )
    add_table(parser)
    parser.add_argument(
        "--json",
        metavar="FILE",
        type=Path,
        help="write predictions, quantities and notes to this file",
    )
    parser.add_argument(
        "--plot", metavar="FILE.svg|.pdf|.png", type=Path, help="draw the curves in one figure"
    )


def run(options: argparse.Namespace) -> int:
    """Run ``odefit predict``: print or write predictions."""
    from odefit.methods.running.control import Control

    for path in (options.csv, options.json, options.plot):
        check_writable(path)
    if options.plot is not None:
        check_figure(options.plot)
    check_positive(options, "samples", "jobs")
    result = saved_result(options.result)
    times = times_by_experiment(options.times, result.problem)
    runs = _runs(result, options, times)
    with progress_line("predicting ...") as report:
        control = Control(report=report)
        try:
            by = band_kind(result, options)
            table, notes, data = _tables(result, runs, times, by, options, control)
            if options.plot is not None:
                _draw(result, runs, times, by, options, control)
        except RuntimeError as error:
            raise InputError(str(error)) from error
    if options.json is not None:
        json_file(data, options.json)
    if options.csv is not None or (options.json is None and options.plot is None):
        write_csv(table, options.csv)
    for path in (options.plot, options.json):
        if path is not None:
            print(f"written: {path}", file=sys.stderr)
    for line in dict.fromkeys(notes):
        print(f"note: {line}", file=sys.stderr)
    return DONE


def _runs(result: Result, options: argparse.Namespace, times: Any) -> list[Any]:
    """Return the runs that the options name, all mistakes in the files at once."""
    if not options.scenario:
        every = [c.name for c in result.problem.conditions]
        return every if options.experiment is None else [options.experiment]
    if options.experiment is not None:
        raise InputError(
            "--experiment: a scenario names its experiment itself; write "
            f'like = "{options.experiment}" in its file'
        )
    return scenarios_in(result, options.scenario, times)


def band_kind(result: Result, options: argparse.Namespace) -> BandKind:
    """Return the source of the bands, for which samples may be drawn here."""
    if options.by == "bootstrap":
        return result.bootstrap(options.samples, seed=options.seed, jobs=options.jobs)
    if options.by == "posterior":
        draws = max(options.samples // 4, 25)
        return result.sample(draws=draws, seed=options.seed, jobs=options.jobs)
    return str(options.by)


def _tables(
    result: Result,
    runs: list[Any],
    times: Any,
    by: BandKind,
    options: argparse.Namespace,
    control: Control,
) -> tuple[pd.DataFrame, list[str], dict[str, Any]]:
    """Return the printed table, its notes, and the content of the JSON file."""
    from odefit.reporting.predictions import prediction_table
    from odefit.reporting.quantities import quantity_table

    data: dict[str, Any] = {"format": FORMAT, "problem": result.problem.name, "by": options.by}
    data["level"] = options.level
    notes: list[str] = []
    tables = {}
    if not options.quantity or options.json is not None:
        tables["predictions"] = prediction_table(
            result, times, options.level, runs, by, control, options.solutions
        )
    if options.quantity:
        tables["quantities"] = quantity_table(
            result, options.quantity, runs, times, options.level, by, control
        )
    for name, table in tables.items():
        notes += table.attrs["notes"]
        data[name] = json_rows(table)
    shown = tables["quantities" if options.quantity else "predictions"]
    data["extrapolations"] = shown.attrs["extrapolations"]
    data["notes"] = list(dict.fromkeys(notes))
    single = len(runs) == 1 and len(result.problem.conditions) == 1 and not options.scenario
    return shown.drop(columns="experiment") if single else shown, notes, data


def _draw(
    result: Result,
    runs: list[Any],
    times: Any,
    by: BandKind,
    options: argparse.Namespace,
    control: Control,
) -> None:
    from odefit.reporting.figures.predictions import plot_predictions

    figure = plot_predictions(
        result, runs, times=times, band=by, level=options.level, control=control
    )
    write_figure(figure, options.plot)
