"""The command ``odefit design``."""

from __future__ import annotations

import argparse
import datetime
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from odefit.cli.exit_statuses import DONE, NO_FIT
from odefit.cli.plot import check_figure, write_figure
from odefit.cli.shared import (
    add_reading,
    add_seed,
    add_table,
    add_values,
    check_files,
    check_positive,
    check_writable,
    csv_file,
    is_result,
    loaded,
    saved_result,
    write_and_show,
)
from odefit.cli.unknowns import add_fix, with_unknowns
from odefit.common.errors import InputError
from odefit.common.option_checks import natural_in
from odefit.expressions.expressions import number_in
from odefit.problem.inputs.dates import moment, pair_of_dates

if TYPE_CHECKING:
    from odefit.problem.problem import Problem
    from odefit.result.designs import Design
    from odefit.result.result import Result

DESCRIPTION = (
    "Find the measurements that determine the unknowns best: observables, times, initial values, "
    "doses and inputs. The data of a result count as measured; those of a problem do not."
)

MOST_TIMES = 10_000
"""Largest number of candidate times that may be listed."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``odefit design``."""
    parser.add_argument("source", metavar="PROBLEM.toml|PETAB.yaml|RESULT.json")
    parser.add_argument(
        "--result",
        metavar="FILE",
        type=Path,
        help="take values from a result, whose data count as measured",
    )
    parser.add_argument(
        "--against",
        metavar="OTHER.json|OTHER.toml",
        help="another model with the same observables: find measurements that distinguish the two",
    )
    add_values(parser, "--set", "NAME=VALUE", "values of unknowns (default: the guesses)")
    add_values(
        parser,
        "--observable",
        "NAME",
        "what may be measured: observables, states, or new ones such as 'total = x1 + x2' "
        "(default: the observables of the problem)",
    )
    add_values(
        parser,
        "--times",
        "FROM:TO[:COUNT]",
        "the window of the times, or COUNT times in it, or a list such as 1,2,5, also as dates; "
        "for one observable as NAME=FROM:TO (default: the span of the data)",
    )
    parser.add_argument(
        "--count",
        metavar="N",
        type=int,
        help="number of measurements (default: that of the unknowns)",
    )
    parser.add_argument(
        "--criterion",
        metavar="NAME",
        default="D",
        help="criterion: D (the default), A, E, modified-E, Ds or c; with --against T (the "
        "default) or Buzzi-Ferraris",
    )
    add_values(parser, "--of", "TEXT", "quantities to determine, such as k1, 'CL = k*V' or y@12")
    add_values(parser, "--experiment", "NAME", "experiments that may be run again (default: all)")
    add_values(
        parser,
        "--vary",
        "NAME=FROM:TO[@T1,T2]",
        "what new runs may set: an initial value, a constant or an input; a list such as 0,5,10 "
        "gives levels; the times of pieces or doses follow @",
    )
    add_values(parser, "--sd", "NAME=VALUE", "standard deviations where the problem has none")
    add_values(parser, "--cost", "NAME=VALUE", "cost of a measurement, by observable, and of a run")
    parser.add_argument(
        "--budget", metavar="B", type=float, help="largest total cost, instead of --count"
    )
    parser.add_argument(
        "--replicates",
        metavar="N",
        type=int,
        help="largest number of measurements at one time of a run",
    )
    parser.add_argument(
        "--spacing",
        metavar="T",
        type=float,
        default=0.0,
        help="shortest time between two measurements",
    )
    parser.add_argument("--runs", metavar="N", type=int, help="largest number of new runs")
    parser.add_argument(
        "--together", action="store_true", help="measure all observables at each time"
    )
    parser.add_argument(
        "--natural", action="store_true", help="for A and E: errors in natural units, not relative"
    )
    parser.add_argument(
        "--over",
        metavar="REGION",
        default="estimate",
        help="average over the profile, bootstrap or posterior of a result (default: estimate)",
    )
    parser.add_argument(
        "--level",
        metavar="P",
        type=float,
        default=0.95,
        help="level of the intervals (default: 0.95)",
    )
    parser.add_argument("--json", metavar="FILE", type=Path, help="write the design to this file")
    parser.add_argument("--plot", metavar="FILE.png", type=Path, help="draw the design")
    add_table(parser)
    add_fix(parser)
    add_reading(parser)
    add_seed(parser)
    parser.add_argument("--jobs", metavar="N", type=int, help="number of processes for --over")
    parser.add_argument("--time-limit", metavar="S", type=float, help="end --over after S seconds")


def run(options: argparse.Namespace) -> int:
    """Run ``odefit design``: print the design, and write the requested files."""
    check_positive(options, "jobs", "time_limit")
    check_files(options)
    check_writable(options.csv)
    if options.plot is not None:
        check_figure(options.plot)
    from odefit.simulation.simulations import values_from_text

    values = values_from_text(options.set)
    arguments: dict[str, Any] = {
        "observables": options.observable or None,
        "times": _times(options.times),
        "of": options.of or None,
        "experiments": options.experiment or None,
        "vary": dict(_varied(text) for text in options.vary),
        "noise": values_from_text(options.sd, "--sd", "y=0.1"),
        "costs": values_from_text(options.cost, "--cost", "y=0.1"),
        "scale": "natural" if options.natural else "relative",
    }
    same = (
        "count", "criterion", "budget", "replicates", "spacing", "runs", "together", "over",
        "level", "seed", "time_limit", "jobs",
    )  # fmt: skip
    arguments |= {name: getattr(options, name) for name in same}
    problem, result = _source(options)
    if options.against is not None:
        arguments["against"] = _other(options)
    from odefit.result.designs import design

    plan = design(problem, values, result=result, **arguments)
    return _write(plan, options)


def _source(options: argparse.Namespace) -> tuple[Problem | Result, Result | None]:
    if is_result(options.source):
        if options.result is not None or options.fix:
            raise InputError(
                "--result, --fix: they are options for a problem, and this is a result"
            )
        return saved_result(options.source), None
    problem = with_unknowns(loaded(options.source, options), options)
    return problem, None if options.result is None else saved_result(options.result)


def _other(options: argparse.Namespace) -> Problem | Result:
    """Return the other model: a result, or a problem."""
    if is_result(options.against):
        return saved_result(options.against)
    return loaded(options.against, options)


def _write(plan: Design, options: argparse.Namespace) -> int:
    """Write the files of a design, and print it; return the exit status."""
    write_and_show(
        [
            (options.json, plan.save, "the design"),
            (options.csv, lambda path: csv_file(plan.table, path), "the table"),
            (options.plot, lambda path: write_figure(plan.plot(), path), "the figure"),
        ],
        lambda: print(plan),
    )
    return DONE if plan.found else NO_FIT


def _times(texts: Sequence[str]) -> Any:
    """Return the times given as texts: for all observables, or by observable."""
    by_name: dict[str, Any] = {}
    for text in texts:
        name, separator, rest = text.rpartition("=")
        by_name[name.strip() if separator else ""] = _range(rest, f"--times {text}")
    if not by_name:
        return None
    if "" in by_name:
        if len(by_name) > 1:
            raise InputError("--times: give one window for all observables, or one for each")
        return by_name[""]
    return by_name


def _range(text: str, place: str) -> Any:
    """Return the pair given as FROM:TO, or the list given as FROM:TO:COUNT or 1,2,5."""
    expected = f"{place}: expected FROM:TO, FROM:TO:COUNT or a list such as 1,2,5"
    listed = [_time_in(part) for part in text.split(",")]
    if None not in listed:
        return listed
    if (pair := _pair(text)) is not None:
        return pair
    ends, _, number = text.rpartition(":")
    pair, count = _pair(ends), natural_in(number)
    if pair is None or count is None:
        raise InputError(expected)
    if not 2 <= count <= MOST_TIMES:
        raise InputError(f"{place}: expected 2 to {MOST_TIMES} times, got {count}")
    low, high = pair
    if not low < high:
        raise InputError(expected)
    step = (high - low) / (count - 1)
    return [*(low + step * k for k in range(count - 1)), high]


def _pair(text: str) -> tuple[Any, Any] | None:
    """Return the two numbers or the two dates around a colon; None for any other text."""
    ends = [_time_in(part) for part in pair_of_dates(text) or text.split(":")]
    if len(ends) != 2 or None in ends or len({_kind(end) for end in ends}) != 1:
        return None
    return ends[0], ends[1]


def _kind(time: Any) -> Any:
    """Return what two times have in common that can be compared."""
    return time.tzinfo is None if isinstance(time, datetime.datetime) else float


def _time_in(text: str) -> float | datetime.datetime | None:
    """Return the date or the number in a text; None for any other."""
    return moment(text) or number_in(text)


def _varied(text: str) -> tuple[str, Any]:
    name, separator, rest = text.partition("=")
    if not separator:
        raise InputError(f"--vary {text}: expected NAME=FROM:TO, such as A=0:10")
    limits, at, times = rest.partition("@")
    values = _range(limits, f"--vary {text}")
    if not at:
        return name.strip(), values
    fields: dict[str, Any] = {"at": _range(times, f"--vary {text}")}
    if isinstance(values, tuple):
        fields |= {"lower": values[0], "upper": values[1]}
    else:
        fields["levels"] = values
    return name.strip(), fields
