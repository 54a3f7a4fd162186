"""The commands on saved results: show, compare, residuals, verify."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from pathlib import Path

from odefit.cli.exit_statuses import DONE, NO_FIT
from odefit.cli.shared import (
    add_reading,
    add_table,
    add_values,
    check_positive,
    check_writable,
    is_result,
    loaded,
    progress_line,
    saved_result,
    write_csv,
)
from odefit.cli.unknowns import add_fix, with_unknowns
from odefit.common.errors import InputError
from odefit.common.packages import require
from odefit.methods.running.control import Progress

VERIFICATION = (
    "Verify a certificate of branch and bound, leaf by leaf, in the ball arithmetic of FLINT and "
    "with code that shares nothing with the search. The exit status is 0 if it holds, and 3 if not."
)


def add_show(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``odefit show``."""
    parser.add_argument("result", metavar="RESULT.json")


def run_show(options: argparse.Namespace) -> int:
    """Print a result with its notes."""
    from odefit.reporting.terminal import print_notes, print_profiles, print_result
    from odefit.result.result import load_result

    result = load_result(options.result)
    print_result(result)
    print_notes(result)
    if result.profiles is not None:
        print()
        print_profiles(result.profiles)
    return DONE


def add_compare(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``odefit compare``."""
    parser.add_argument("results", metavar="RESULT.json", nargs="+")
    parser.add_argument(
        "--nested",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="each model is a special case of those with more parameters, so that likelihood "
        "ratios test it, or is not (default: if the equations are the same and the unknowns are "
        "among theirs)",
    )


def run_compare(options: argparse.Namespace) -> int:
    """Compare results of the same data."""
    from odefit.reporting.comparison import compare as compare_results
    from odefit.result.result import load_result

    results = [load_result(path) for path in options.results]
    names = distinct_names(options.results)
    print(compare_results(*results, names=names, nested=options.nested))
    return DONE


def distinct_names(paths: Sequence[str]) -> list[str]:
    """Return a short name for each result file: its own, with folders where names are equal.

    Files with equal names in different folders are named ``run1/fit`` and ``run2/fit``.
    """
    parts = [Path(path).resolve().with_suffix("").parts for path in paths]
    names = []
    for path_parts in parts:
        others = [p for p in parts if p != path_parts]
        count = next(
            (
                k
                for k in range(1, len(path_parts))
                if all(p[-k:] != path_parts[-k:] for p in others)
            ),
            len(path_parts),
        )
        names.append("/".join(path_parts[-count:]))
    return names


def add_residuals(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``odefit residuals``."""
    parser.add_argument("source", metavar="RESULT.json|PROBLEM.toml|PETAB.yaml")
    meaning = "of a problem: values of unknowns (default: the guesses)"
    add_values(parser, "--set", "NAME=VALUE", meaning)
    add_table(parser)
    add_fix(parser)
    add_reading(parser)


def run_residuals(options: argparse.Namespace) -> int:
    """Print or write residuals."""
    check_writable(options.csv)
    if is_result(options.source):
        if options.set or options.fix:
            raise InputError(
                "--set: a result has its own values; name the problem to give others: "
                "odefit residuals PROBLEM --set ..."
            )
        try:
            table = saved_result(options.source).residuals
        except RuntimeError as error:
            raise InputError(str(error)) from error
        write_csv(table, options.csv)
        return DONE
    from odefit.reporting.summary import residuals_at
    from odefit.simulation.simulations import chosen_values, values_from_text

    problem = with_unknowns(loaded(options.source, options), options)
    problem, vector = chosen_values(problem, values_from_text(options.set))
    try:
        table = residuals_at(problem, vector)
    except RuntimeError as error:
        raise InputError(str(error)) from error
    write_csv(table, options.csv)
    return DONE


def add_verify(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``odefit verify``."""
    parser.add_argument("certificate", metavar="CERTIFICATE.json", type=Path)
    parser.add_argument(
        "problem",
        metavar="PROBLEM",
        nargs="?",
        help="the problem that the certificate must belong to, in any format that fit reads",
    )
    parser.add_argument(
        "--jobs", metavar="N", type=int, default=1, help="number of processes (default: 1)"
    )


@contextmanager
def _processes(count: int) -> Iterator[Executor | None]:
    """Yield processes for independent work, which end afterwards; None for a single one."""
    if count == 1:
        yield None
        return
    from loky import ProcessPoolExecutor

    from odefit.methods.running.child import end_with

    pool = ProcessPoolExecutor(count, initializer=end_with, initargs=(os.getpid(),))
    try:
        yield pool
    finally:
        pool.shutdown(kill_workers=True)


def run_verify(options: argparse.Namespace) -> int:
    """Run ``odefit verify``: say whether a certificate holds, and where not."""
    require("flint")
    from odefit.certificates.document import read_document
    from odefit.certificates.statement import statement_of
    from odefit.certificates.verification.verification import verify_document
    from odefit.formats.files import load
    from odefit.reporting.documents.certificates import verdict_text

    check_positive(options, "jobs")
    document = read_document(options.certificate)
    statement = None if options.problem is None else statement_of(load(options.problem))
    with progress_line("verifying ...") as report, _processes(options.jobs) as executor:

        def note(proved: int, leaves: int) -> None:
            if report is not None:
                report(Progress(proved, 0, float("inf"), 0, f"of {leaves}", unit="region"))

        verdict = verify_document(document, statement, note, executor)
    print(verdict_text(verdict, document, compared=statement is not None))
    return DONE if verdict.holds else NO_FIT
