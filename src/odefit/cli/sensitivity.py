"""The command ``odefit sensitivity``."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from odefit.cli.exit_statuses import DONE
from odefit.cli.plot import check_figure, write_figure
from odefit.cli.shared import (
    add_reading,
    add_seed,
    add_times,
    add_values,
    check_positive,
    check_writable,
    csv_file,
    exit_status,
    is_result,
    json_file,
    json_rows,
    loaded,
    progress_line,
    saved_result,
    scenarios_in,
    signals_heeded,
    times_by_experiment,
    write_and_show,
)
from odefit.cli.unknowns import add_unknowns, with_unknowns
from odefit.common.errors import InputError
from odefit.expressions.expressions import number_in
from odefit.methods.estimate import Cause, Status

if TYPE_CHECKING:
    from odefit.result.sensitivities import Sensitivities

DESCRIPTION = "Show which unknowns the observables, quantities or the fit depend on."

FORMAT = 1
"""The format of the JSON file."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``odefit sensitivity``."""
    parser.add_argument("source", metavar="PROBLEM.toml|PETAB.yaml|RESULT.json")
    parser.add_argument(
        "--kind",
        choices=("local", "morris", "sobol"),
        default="local",
        help="derivatives at the estimates or guesses (local, the default), elementary effects "
        "(morris), or shares of the variance (sobol)",
    )
    add_values(
        parser,
        "--of",
        "NAME|TEXT",
        "observables, quantities such as 'AUC = integral(C)', or 'fit' (default: all observables)",
    )
    add_times(parser)
    add_values(
        parser, "--scenario", "FILE.toml|FILE.csv", "use these runs instead of the experiments"
    )
    add_values(parser, "--set", "NAME=VALUE", "values for a local analysis of a problem")
    add_values(
        parser, "--range", "NAME=LOW:HIGH", "ranges of a global analysis, instead of the bounds"
    )
    parser.add_argument(
        "--samples",
        metavar="N",
        type=int,
        help="trajectories of morris (default: 32), base points of sobol (default: 256)",
    )
    parser.add_argument(
        "--level",
        metavar="P",
        type=float,
        default=0.95,
        help="level of the intervals of indices (default: 0.95)",
    )
    parser.add_argument("--time-limit", metavar="S", type=float, help="end after S seconds")
    parser.add_argument("--csv", metavar="FILE", type=Path, help="write the table to this file")
    parser.add_argument(
        "--json", metavar="FILE", type=Path, help="write the table and notes to this file"
    )
    parser.add_argument("--plot", metavar="FILE.svg|.pdf|.png", type=Path, help="draw the indices")
    add_seed(parser)
    add_unknowns(parser)
    add_reading(parser)


def run(options: argparse.Namespace) -> int:
    """Run ``odefit sensitivity``: print a ranking, and write tables and figures."""
    with signals_heeded() as signals:
        return _sensitivity(options, signals)


def _sensitivity(options: argparse.Namespace, signals: Any) -> int:
    from odefit.result.sensitivities import sensitivity
    from odefit.simulation.simulations import values_from_text

    for path in (options.csv, options.json, options.plot):
        check_writable(path)
    if options.plot is not None:
        check_figure(options.plot)
    check_positive(options, "samples", "time_limit")
    source: Any
    if is_result(options.source):
        source = saved_result(options.source)
        problem = source.problem
    else:
        source = problem = with_unknowns(loaded(options.source, options), options)
        if options.scenario:
            raise InputError("--scenario: give the result of a fit instead of the problem")
    times = times_by_experiment(options.times, problem)
    runs = scenarios_in(source, options.scenario, times) if options.scenario else None
    with progress_line("simulating ...") as report:
        sensitivities = sensitivity(
            source,
            options.kind,
            options.of or None,
            times=times,
            experiment=runs,
            values=values_from_text(options.set) or None,
            ranges=_ranges(options.range) or None,
            samples=options.samples,
            level=options.level,
            seed=options.seed,
            time_limit=options.time_limit,
            progress=report,
            stop=signals,
        )
    write_and_show(
        [
            (options.json, lambda path: json_file(_content(sensitivities), path), "the indices"),
            (options.csv, lambda path: csv_file(sensitivities.table, path), "the table"),
            (options.plot, lambda path: write_figure(sensitivities.plot(), path), "the figure"),
        ],
        lambda: print(sensitivities),
    )
    if sensitivities.indices.ended is None:
        return DONE
    late = sensitivities.indices.ended is Cause.TIME_LIMIT
    return exit_status(Status.TIME_LIMIT if late else Status.INTERRUPTED, signals)


def _content(sensitivities: Sensitivities) -> dict[str, Any]:
    """Return the content of the JSON file."""
    return {
        "format": FORMAT,
        "kind": sensitivities.kind,
        "indices": json_rows(sensitivities.table),
        "evaluations": sensitivities.indices.evaluations,
        "failed": sensitivities.indices.failed,
        "notes": sensitivities.notes,
    }


def _ranges(texts: Sequence[str]) -> dict[str, tuple[float, float]]:
    """Return the ranges given as ``NAME=LOW:HIGH`` texts."""
    ranges = {}
    for text in texts:
        name, _, pair = text.rpartition("=")
        low, _, high = pair.partition(":")
        numbers = number_in(low), number_in(high)
        if not name or None in numbers:
            raise InputError(f"--range {text}: expected NAME=LOW:HIGH, such as k1=0.1:2")
        ranges[name.strip()] = (float(numbers[0] or 0.0), float(numbers[1] or 0.0))
    return ranges
