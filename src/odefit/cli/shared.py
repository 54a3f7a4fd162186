"""Parts that commands share: exit statuses, options and their checks, the progress line."""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from odefit.cli.exit_statuses import DONE, HUNG_UP, INTERRUPTED, NO_FIT, TERMINATED, TIME_LIMIT
from odefit.common.errors import InputError
from odefit.methods.estimate import Cause, Status
from odefit.methods.running.checkpoint import CheckpointWarning
from odefit.methods.running.control import Control, Interruption, Progress, interruptible

if TYPE_CHECKING:
    import pandas as pd

    from odefit.common.arrays import Array
    from odefit.problem.problem import Problem
    from odefit.result.result import Result

EXIT_STATUS = {
    Status.CONVERGED: DONE,
    Status.NOT_CONVERGED: NO_FIT,
    Status.FAILED: NO_FIT,
    Status.TIME_LIMIT: TIME_LIMIT,
    Status.INTERRUPTED: INTERRUPTED,
    Status.MEMORY_LIMIT: TIME_LIMIT,
}
"""The exit status for each way in which a fit can end."""

OF_SIGNALS = {Cause.TERMINATED: TERMINATED, Cause.HUNG_UP: HUNG_UP}
"""The exit status for each signal but Ctrl-C, which ends the page of ``odefit explore``."""


def exit_status(status: Status, signals: Interruption) -> int:
    """Return the exit status for how the work ended and which signals arrived."""
    if status is Status.INTERRUPTED and signals.cause in OF_SIGNALS:
        return OF_SIGNALS[signals.cause]
    return EXIT_STATUS[status]


@contextmanager
def signals_heeded() -> Iterator[Interruption]:
    """Let a signal end the work within the block, but not the writing of its output.

    A second signal ends the program immediately.
    """
    signals = Interruption()
    with interruptible(Control(interrupted=signals)):
        yield signals


PROBLEM_FILE = "PROBLEM.toml|PETAB.yaml"
"""The placeholder for a problem file."""


def add_reading(parser: argparse.ArgumentParser) -> None:
    """Add the options that say how the files of a problem are read."""
    parser.add_argument(
        "--nominal",
        action="store_true",
        help="take the nominal values of a PEtab problem as guesses",
    )
    parser.add_argument(
        "--within",
        metavar="FOLDER",
        type=Path,
        help="allow data files anywhere in this folder (default: the folder of the problem file)",
    )


def loaded(path: str | Path, options: argparse.Namespace) -> Problem:
    """Return the problem in a file, read as the options of :func:`add_reading` say."""
    from odefit.formats.files import load

    return load(path, nominal=options.nominal, within=options.within)


def add_values(parser: argparse.ArgumentParser, option: str, form: str, meaning: str) -> None:
    """Add an option that takes several values of a form such as NAME=VALUE."""
    parser.add_argument(option, metavar=form, nargs="+", action="extend", default=[], help=meaning)


def add_times(parser: argparse.ArgumentParser) -> None:
    """Add the option that gives other times."""
    parser.add_argument(
        "--times",
        metavar="FROM:TO:COUNT",
        help="times to use instead of those of the data, such as 0:10:101 or 0,2,5",
    )


def add_table(parser: argparse.ArgumentParser) -> None:
    """Add the option that writes a table to a file."""
    parser.add_argument(
        "-o", "--csv", metavar="FILE.csv", type=Path, help="write the table to this file"
    )


def add_seed(parser: argparse.ArgumentParser) -> None:
    """Add the seed of every random choice."""
    parser.add_argument(
        "--seed", metavar="N", type=int, default=0, help="seed of every random choice (default: 0)"
    )


def add_work(parser: argparse.ArgumentParser, seconds: str, checkpoint: str) -> None:
    """Add the options of long work, described for the command at hand."""
    parser.add_argument(
        "--jobs", metavar="N", type=int, help="number of processes (default: one for each core)"
    )
    parser.add_argument(
        "--dask",
        metavar="ADDRESS",
        help="work on the Dask cluster with the scheduler at this address",
    )
    parser.add_argument("--time-limit", metavar="S", type=float, help=seconds)
    parser.add_argument("--checkpoint", metavar="FILE", type=Path, help=checkpoint)


def add_memory(parser: argparse.ArgumentParser) -> None:
    """Add the memory limit."""
    parser.add_argument(
        "--memory",
        metavar="SIZE",
        help="end with the best answer so far when this program and its processes use more than "
        "this, e.g. 4GB (default: when the machine or container has hardly any memory left)",
    )


def add_log(parser: argparse.ArgumentParser) -> None:
    """Add the option that keeps a log."""
    parser.add_argument(
        "--log",
        metavar="FILE",
        type=Path,
        help="append a log of what was tried, when, and how it ended",
    )


class _LogFile(logging.FileHandler):
    """A log that never ends the work; a failure to write is reported once."""

    reported = False

    def handleError(self, record: logging.LogRecord) -> None:
        """Report that the file cannot be written."""
        error = sys.exc_info()[1]
        if not isinstance(error, OSError):
            super().handleError(record)
        elif not self.reported:
            self.reported = True
            print(
                f"warning: {self.baseFilename}: cannot be written: {error.strerror}",
                file=sys.stderr,
            )

    def close(self) -> None:
        """Close the file, and drop output that could not be written."""
        with suppress(OSError) if self.reported else nullcontext():
            super().close()


@contextmanager
def logged(path: Path | None) -> Iterator[None]:
    """Write log records of the block to a file, if there is one."""
    if path is None:
        yield
        return
    check_writable(path)
    logger = logging.getLogger("odefit")
    try:
        handler = _LogFile(path, mode="a", encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror or error}") from error
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    before = logger.level
    logger.setLevel(logging.INFO)
    logger.addHandler(handler)
    try:
        yield
    except InputError as error:
        logger.log(logging.ERROR, "%s", error)
        raise
    except Exception:
        logger.exception("unexpected")
        raise
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)
        handler.close()


def check_positive(options: argparse.Namespace, *names: str) -> None:
    """Refuse given numbers that are not positive."""
    for option in names:
        value = getattr(options, option)
        if value is not None and not value > 0:
            name = option.replace("_", "-")
            raise InputError(f"--{name}: expected a positive number, got {value:g}")


def add_report(parser: argparse.ArgumentParser) -> None:
    """Add the option that writes a report."""
    parser.add_argument(
        "--report",
        metavar="FILE.html|.md",
        type=Path,
        help="write a report; the ending decides the format",
    )


def check_files(options: argparse.Namespace) -> None:
    """Refuse files of unknown formats, or in places that cannot be written to."""
    from odefit.reporting.documents.file_kinds import check_report, check_table, suffix_of

    for name in ("json", "report", "table", "plot", "checkpoint", "certificate"):
        path = getattr(options, name, None)
        check_writable(path)
        # If the checkpoint cannot be written, a message says so and the work continues.
        if path is not None and name != "checkpoint" and not os.access(path.parent, os.W_OK):
            raise InputError(f"{path}: the directory {path.parent} cannot be written to")
    if getattr(options, "report", None) is not None:
        check_report(options.report)
    if getattr(options, "table", None) is not None:
        check_table(options.table)
    if getattr(options, "json", None) is not None:
        others = "--table writes .csv, .tex and .md, --report .html and .md"
        suffix_of(options.json, {".json": ""}, "--json", others)


@contextmanager
def report_later(refusals: list[str], content: str) -> Iterator[None]:
    """Add a mistake with a file to `refusals`, so that all other files are still written.

    A mistake in odefit does not prevent the rest either. It is reported with `content`, such as
    "the report", and its traceback goes to the log. The exit status remains that of the answer.
    """
    try:
        yield
    except InputError as error:
        refusals.extend(error.messages)
    except OSError as error:
        place = error.filename or "standard output"
        refusals.append(f"{place}: cannot be written: {error.strerror or error}")
    except (MemoryError, ImportError) as error:
        reason = " ".join(str(error).split()) or "an allocation has failed"
        refusals.append(f"{content}: there is not enough memory, or a package is missing: {reason}")
    except Exception as error:
        logging.getLogger("odefit").exception("failed: %s", content)
        print(
            f"warning: {content} failed because of a mistake in odefit: {type(error).__name__}: "
            f"{error}. The result stands. The traceback is in the log (--log FILE); please report "
            "it",
            file=sys.stderr,
        )


@contextmanager
def plain_warnings() -> Iterator[None]:
    """Print messages on checkpoints as separate lines while work continues."""
    with warnings.catch_warnings():
        show = warnings.showwarning

        def show_plainly(
            message: Warning | str, category: type[Warning], *rest: Any, **options: Any
        ) -> None:
            if issubclass(category, CheckpointWarning):
                print(f"warning: {message}", file=sys.stderr)
            else:
                show(message, category, *rest, **options)

        warnings.simplefilter("default", CheckpointWarning)
        warnings.showwarning = show_plainly
        yield


def check_writable(path: Path | None) -> None:
    """Refuse, before a long fit, files that could not be written after it."""
    if path is None:
        return
    if path.is_dir():
        raise InputError(f"{path}: is a directory, expected a file to write")
    if not path.parent.is_dir():
        raise InputError(f"{path}: the directory {path.parent} does not exist; make it first")


def is_result(path: str | Path) -> bool:
    """Return whether the name of a file is that of a result file."""
    return Path(path).suffix.lower() == ".json"


def saved_result(path: str | Path) -> Result:
    """Return the result in a file; an :class:`InputError` refuses one without a solution."""
    from odefit.result.result import load_result

    if Path(path).suffix.lower() in (".toml", ".yaml", ".yml"):
        raise InputError(
            f"{path}: is a problem, not a result; fit it first: "
            f"odefit fit {path} --json result.json"
        )
    result = load_result(path)
    if not result.solutions:
        raise InputError(f"{path}: contains no solution: {result.message}")
    return result


def write_csv(table: pd.DataFrame, path: Path | None) -> None:
    """Write a table as CSV to a file, or to standard output."""
    if path is None:
        # Standard output already translates line ends, and would double those of pandas.
        table.to_csv(sys.stdout, index=False, lineterminator="\n")
        return
    csv_file(table, path)
    print(f"written: {path}", file=sys.stderr)


def csv_file(table: pd.DataFrame, path: Path) -> None:
    """Write a table as CSV to a file."""
    from odefit.common.partial_files import write_atomically

    write_atomically(path, table.to_csv(index=False, lineterminator="\n"))


def json_file(data: Mapping[str, Any], path: Path) -> None:
    """Write plain values as JSON to a file."""
    from odefit.common.partial_files import write_atomically

    write_atomically(path, json.dumps(data, indent=1, allow_nan=False) + "\n")


def json_rows(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a table for JSON, see :func:`plain_number`."""
    from odefit.result_data.result_file import plain_number

    return [
        {str(k): plain_number(v) if isinstance(v, float) else v for k, v in row.items()}
        for row in table.to_dict("records")
    ]


def write_and_show(
    files: Sequence[tuple[Path | None, Callable[[Path], None], str]], show: Callable[[], None]
) -> None:
    """Write each file, even if others fail, and then print their content.

    Each file is given by its path (or None), the function that writes it, and its name in messages.
    Raises one InputError for all files that could not be written.
    """
    refusals: list[str] = []
    for path, write, content in files:
        if path is not None:
            with report_later(refusals, content):
                write(path)
                print(f"written: {path}", file=sys.stderr)
    with report_later(refusals, "printing"):
        show()
    if refusals:
        raise InputError(refusals)


def times_by_experiment(text: str | None, problem: Problem) -> dict[str, Array] | None:
    """Return the times in a text, by experiment; dates count from the origin of each."""
    from odefit.simulation.simulations import times_from_text

    if text is None:
        return None
    return {c.name: times_from_text(text, problem, c.name) for c in problem.conditions}


def progress_line(
    begin: str = "fitting ...",
) -> AbstractContextManager[Callable[[Progress], None] | None]:
    """Return a progress line that begins with a word, and shows only on a terminal."""
    if not sys.stderr.isatty():
        return nullcontext()
    from odefit.reporting.progress import TerminalProgress

    return TerminalProgress(begin)


def scenarios_in(result: Result, files: list[str], times: Any = None) -> list[Any]:
    """Return the scenarios in some files; one message lists all mistakes."""
    from odefit.problem.toml.scenario_files import load_scenarios

    scenarios: list[Any] = []
    mistakes: list[str] = []
    for file in files:
        try:
            scenarios += load_scenarios(file, result.problem, times=times)
        except InputError as error:
            mistakes += error.messages
    if mistakes:
        raise InputError(mistakes)
    for note in dict.fromkeys(note for scenario in scenarios for note in scenario.notes):
        print(f"note: {note}", file=sys.stderr)
    return scenarios
