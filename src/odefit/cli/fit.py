"""The command ``odefit fit``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from odefit.assessment.parts import INTERVAL_CHOICES
from odefit.cli.exit_statuses import DONE, NO_FIT
from odefit.cli.shared import (
    PROBLEM_FILE,
    add_log,
    add_memory,
    add_reading,
    add_report,
    add_seed,
    add_values,
    add_work,
    check_files,
    check_positive,
    exit_status,
    loaded,
    logged,
    progress_line,
    report_later,
    signals_heeded,
)
from odefit.cli.unknowns import PROPOSE, add_unknowns, with_unknowns
from odefit.common.errors import InputError
from odefit.methods.registry import METHODS, OPTIONS
from odefit.methods.running.control import Interruption
from odefit.methods.running.memory import memory_limit

if TYPE_CHECKING:
    from odefit.result.result import Result


CERTIFY_REGION = "--certify-region"
"""The option that ``--certify region`` stands for."""


def written_out(arguments: Sequence[str]) -> list[str]:
    """Return arguments with one option in place of ``--certify region``.

    An option with an optional value would take a problem file that follows it for its value.
    """
    words, rest = [], list(arguments)
    while rest and rest[0] != "--":
        if rest[:2] == ["--certify", "region"]:
            words.append(CERTIFY_REGION)
            rest = rest[2:]
            continue
        word = rest.pop(0)
        words.append(CERTIFY_REGION if word == "--certify=region" else word)
    return words + rest


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``odefit fit``."""
    parser.add_argument("problem", metavar=PROBLEM_FILE)
    parser.add_argument(
        "--method", metavar="NAME", help=f"the method (default: automatic): {', '.join(METHODS)}"
    )
    add_values(
        parser,
        "--set",
        "OPTION=VALUE",
        "any option of the method, which 'odefit methods NAME' lists; may be repeated",
    )
    for name, option in OPTIONS.items():
        if name == "bounds":
            continue  # it also takes bounds by name
        owners = [entry.name for entry in METHODS.values() if name in entry.options]
        parser.add_argument(
            f"--{name}",
            metavar=None if option.choices else option.metavar,
            type=option.kind,
            choices=option.choices,
            help=f"{option.meaning}; for {', '.join(owners)}",
        )
    parser.add_argument(
        "--certify",
        action="store_true",
        help="prove, in the time left, how much better any other values within the bounds can be",
    )
    parser.add_argument(
        CERTIFY_REGION,
        action="store_true",
        help="also prove a box around the whole confidence region; the same as --certify region",
    )
    parser.add_argument(
        "--certificate",
        metavar="FILE",
        type=Path,
        help="write that proof to this file, for 'odefit verify'; implies --certify",
    )
    parser.add_argument(
        "--intervals",
        choices=INTERVAL_CHOICES,
        default=INTERVAL_CHOICES[0],
        help="treatment of intervals where the residuals do not look like noise: as they are, "
        "scaled by the root of the reduced chi-square, or withheld; or a sandwich, which allows "
        "for noise that is correlated in time (default: %(default)s)",
    )
    parser.add_argument(
        "--weights", "--weight", "--sigma", "--sd", nargs="?", const="", help=argparse.SUPPRESS
    )
    parser.add_argument("--json", metavar="FILE", type=Path, help="write the result to this file")
    add_report(parser)
    add_log(parser)
    parser.add_argument(
        "--table",
        metavar="FILE.csv|.tex|.md",
        type=Path,
        help="write the table of estimates; the ending decides the format",
    )
    parser.add_argument(
        "--start", metavar="RESULT.json", type=Path, help="begin at the answer of another fit"
    )
    add_unknowns(parser)
    add_reading(parser)
    add_seed(parser)
    add_work(
        parser,
        seconds="end after S seconds, with the best answer so far",
        checkpoint="keep finished starts in this file and continue from them (default with --json: "
        "FILE.checkpoint, removed at the end)",
    )
    add_memory(parser)


def run(options: argparse.Namespace) -> int:
    """Run ``odefit fit``: estimate, print the table, and write the requested files."""
    with logged(options.log), signals_heeded() as signals:
        return _fit(options, signals)


def _fit(options: argparse.Namespace, signals: Interruption) -> int:
    from odefit.fitting.fit import fit as run_fit
    from odefit.methods.method_options import configured
    from odefit.methods.running.checkpoint import ForeignCheckpointError, remove_checkpoint
    from odefit.methods.running.cluster import dask_cluster
    from odefit.reporting.terminal import print_notes, print_result, print_warnings

    if options.weights is not None:
        raise InputError(
            "--weights: is not an option; weights follow from standard deviations (weight w: "
            "standard deviation 1/sqrt(w)); write these in the data, for an observable y in a "
            "column y_sd, or in the problem file below [noise] as y = { sd = 0.5 }"
        )
    check_positive(options, "jobs", "time_limit", "starts")
    memory_limit(options.memory, "--memory")
    check_files(options)  # before the fit, which may take long
    chosen_options = {name: getattr(options, name) for name in OPTIONS if name != "bounds"}
    chosen_options["bounds"] = PROPOSE if PROPOSE in options.bounds else None
    method = configured(options.method, chosen_options, options.set)
    problem = with_unknowns(loaded(options.problem, options), options)
    with report_later([], "printing warnings"):
        print_warnings(problem.warnings)  # before the fit, which may take long
    checkpoint = options.checkpoint
    temporary = checkpoint is None and options.json is not None
    if temporary:
        checkpoint = options.json.with_name(options.json.name + ".checkpoint")

    def fitted() -> Result:
        with dask_cluster(options.dask) as executor, progress_line() as report:
            return run_fit(
                problem,
                method,
                seed=options.seed,
                time_limit=options.time_limit,
                executor=executor,
                jobs=options.jobs,
                progress=report,
                checkpoint=checkpoint,
                certify="region" if options.certify_region else options.certify,
                certificate=options.certificate,
                intervals=options.intervals,
                start=options.start,
                memory=options.memory,
                stop=signals,
            )

    try:
        result = fitted()
    except ForeignCheckpointError:
        if not temporary:
            raise
        print(f"{checkpoint}: belongs to another fit and is removed", file=sys.stderr)
        remove_checkpoint(checkpoint)
        result = fitted()
    refusals: list[str] = []
    try:  # write files before printing, whether or not either fails
        written = _write(result, options, refusals)
    finally:
        with report_later(refusals, "printing the result"):
            print_result(result)
        with report_later(refusals, "printing its notes"):
            print_notes(result, printed=problem.warnings)
    if refusals:
        raise InputError(refusals)
    status = exit_status(result.status, signals)
    if temporary and options.json in written and status in (DONE, NO_FIT):
        remove_checkpoint(checkpoint)
    return status


def _write(result: Result, options: argparse.Namespace, refusals: list[str]) -> list[Path]:
    """Write the requested files; return which of the result and its table were written."""
    written = []
    for path in (options.json, options.table):
        if path is not None:
            with report_later(refusals, f"writing {path}"):
                result.save(path)
                written.append(path)
    if options.report is not None:
        if result.solutions:
            with report_later(refusals, "the report"):
                result.report(options.report)
                print(f"report: {options.report}", file=sys.stderr)
        else:
            print("no report: no solution was found", file=sys.stderr)
    return written
