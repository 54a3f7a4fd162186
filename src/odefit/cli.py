"""The command line. Results go to standard output, everything else to standard error."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from odefit.methods import Method, Progress, Status
    from odefit.result import Result

DONE, UNUSABLE, NO_FIT, TIME_LIMIT, INTERRUPTED = 0, 2, 3, 4, 130
"""Exit statuses."""

METHODS = (
    "multi-start",
    "single-shooting",
    "transcription",
    "algebraic",
    "multiple-shooting",
    "integral-matching",
    "outer-approximation",
    "branch-and-bound",
)
"""What ``--method`` takes."""


_OPTIONS = {
    "transcription": ("scheme", "mesh", "solver"),
    "multiple-shooting": ("nodes", "integrator"),
    "outer-approximation": ("elements", "bounds"),
    "branch-and-bound": ("scheme", "mesh", "bounds"),
}
"""Options of the command line that belong to some methods."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the exit status.

    0 done, 2 unusable input, 3 no acceptable fit found, 4 time limit reached (the best so far
    is written all the same), 130 interrupted.
    """
    options = _parser().parse_args(arguments)
    from odefit.problem.errors import InputError

    try:
        return int(options.run(options))
    except InputError as error:
        for message in error.messages:
            print(f"error: {message}", file=sys.stderr)
        return UNUSABLE
    except BrokenPipeError:
        # The reader of a pipe has gone, as with `odefit ... | head`.
        sys.stderr.close()
        return DONE
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="odefit",
        description="Estimate the parameters of ODE models from data, "
        "and say how far the answer can be trusted.",
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and exit")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _fit_parser(commands)
    _check_parser(commands)
    _simulate_parser(commands)
    return parser


class _Version(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: Any, **__: Any) -> None:
        from importlib.metadata import version

        print(f"odefit {version('odefit')}")
        parser.exit()


def _fit_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "fit", help="estimate the unknowns of a problem", description="Estimate the unknowns."
    )
    parser.set_defaults(run=_fit)
    parser.add_argument("problem", metavar="PROBLEM.toml")
    parser.add_argument("--method", metavar="NAME", help=f"one of: {', '.join(METHODS)}")
    parser.add_argument("--starts", metavar="N", type=int, help="number of starts")
    parser.add_argument(
        "--scheme", metavar="NAME", help="of transcription: trapezoid, radau, runge-kutta, ..."
    )
    parser.add_argument(
        "--mesh", metavar="M", type=int, help="of transcription: M equal steps (default: adaptive)"
    )
    parser.add_argument(
        "--solver", metavar="NAME", help="of transcription: ipopt, scip (with bounds), ..."
    )
    parser.add_argument(
        "--nodes", metavar="N", type=int, help="of multiple-shooting (default: as the data carry)"
    )
    parser.add_argument(
        "--integrator", metavar="NAME", help="of multiple-shooting: local-linearization, ..."
    )
    parser.add_argument(
        "--elements", metavar="N", type=int, help="of outer-approximation: finite elements"
    )
    parser.add_argument(
        "--bounds",
        choices=["propose"],
        help="of the two global methods: accept bounds that the data suggest, where there are none",
    )
    parser.add_argument("--json", metavar="FILE", type=Path, help="write the result to this file")
    parser.add_argument("--report", metavar="FILE.html", type=Path, help="write a report")
    parser.add_argument("--seed", metavar="N", type=int, default=0, help="default: 0")
    parser.add_argument("--jobs", metavar="N", type=int, help="processes (default: one a core)")
    parser.add_argument("--time-limit", metavar="S", type=float, help="seconds")
    parser.add_argument(
        "--checkpoint",
        metavar="FILE",
        type=Path,
        help="keep finished starts here and go on from them (default with --json: "
        "FILE.checkpoint, removed at the end)",
    )


def _check_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "check",
        help="validate and describe a problem",
        description="Validate and describe a problem; say what its data can determine.",
    )
    parser.set_defaults(run=_check)
    parser.add_argument("problem", metavar="PROBLEM.toml")
    parser.add_argument("--seed", metavar="N", type=int, default=0, help="default: 0")


def _simulate_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "simulate", help="simulate a problem", description="Simulate a problem."
    )
    parser.set_defaults(run=_simulate)
    parser.add_argument("problem", metavar="PROBLEM.toml")
    parser.add_argument(
        "--set",
        metavar="NAME=VALUE",
        nargs="+",
        action="extend",
        default=[],
        help="values of unknowns; without it the guesses",
    )
    parser.add_argument("--result", metavar="FILE", type=Path, help="take values from a result")
    parser.add_argument(
        "--times", metavar="FROM:TO:COUNT", help="other times than those of the data"
    )
    parser.add_argument("--csv", metavar="FILE", type=Path, help="write to this file")


def _positive(value: float | None, option: str) -> None:
    from odefit.problem.errors import InputError

    if value is not None and not value > 0:
        raise InputError(f"{option}: expected a positive number, got {value:g}")


def _fit(options: argparse.Namespace) -> int:
    from odefit.fit import fit
    from odefit.methods.checkpoint import ForeignCheckpointError
    from odefit.problem.files import load

    for option in ("jobs", "time_limit", "starts"):
        _positive(getattr(options, option), f"--{option.replace('_', '-')}")
    for path in (options.json, options.report, options.checkpoint):
        _check_writable(path)
    method = _method(options)
    problem = load(options.problem)
    checkpoint = options.checkpoint
    temporary = checkpoint is None and options.json is not None
    if temporary:
        checkpoint = options.json.with_name(options.json.name + ".checkpoint")

    def run() -> Result:
        with _progress() as report:
            return fit(
                problem,
                method,
                seed=options.seed,
                time_limit=options.time_limit,
                jobs=options.jobs,
                progress=report,
                checkpoint=checkpoint,
            )

    try:
        result = run()
    except ForeignCheckpointError:
        if not temporary:
            raise
        print(f"{checkpoint}: is of another fit, which is given up", file=sys.stderr)
        checkpoint.unlink()
        result = run()
    if options.json is not None:
        result.save(options.json)
    from odefit.reporting.terminal import print_result

    print_result(result)
    if options.report is not None:
        if result.solutions:
            result.report(options.report)
            print(f"report: {options.report}", file=sys.stderr)
        else:
            print("no report: no solution was found", file=sys.stderr)
    status = _exit_status(result.status)
    if temporary and status in (DONE, NO_FIT):
        checkpoint.unlink(missing_ok=True)
    return status


def _exit_status(status: Status) -> int:
    return {
        "converged": DONE,
        "not converged": NO_FIT,
        "failed": NO_FIT,
        "time limit": TIME_LIMIT,
        "interrupted": INTERRUPTED,
    }[status.value]


def _method(options: argparse.Namespace) -> Method:
    from odefit.methods import MultiStart, SingleShooting
    from odefit.problem.errors import InputError, did_you_mean

    name, starts = options.method, options.starts
    given: dict[str, Any] = {}
    for option in sorted({o for names in _OPTIONS.values() for o in names}):
        value = getattr(options, option)
        if value is None:
            continue
        owners = [method for method, names in _OPTIONS.items() if option in names]
        if name not in owners:
            raise InputError(f"--{option}: is an option of --method {' or '.join(owners)}")
        given[option] = value
    if name == "transcription":
        from odefit.methods.transcription import Transcription

        return Transcription(starts=starts, **given)
    if name == "multiple-shooting":
        from odefit.methods.multiple_shooting import MultipleShooting

        return MultipleShooting(starts=starts, **given)
    if name == "integral-matching":
        from odefit.methods.integral_matching import IntegralMatching

        return IntegralMatching(starts=starts)
    if name == "outer-approximation":
        from odefit.methods.outer_approximation import OuterApproximation

        return OuterApproximation(starts=starts, **given)
    if name == "branch-and-bound":
        from odefit.methods.branch_and_bound import BranchAndBound

        return BranchAndBound(starts=starts, **given)
    if name == "algebraic":
        if options.starts is not None:
            raise InputError("--starts: the algebraic method has none: it finds all solutions")
        from odefit.methods.algebraic import Algebraic

        return Algebraic()
    if name == "single-shooting":
        if starts is not None:
            raise InputError("--starts: single-shooting has one start; use --method multi-start")
        return SingleShooting()
    if name in (None, "multi-start"):
        return MultiStart(starts=starts)
    raise InputError(
        f"--method: unknown method {name!r}{did_you_mean(str(name), METHODS)} "
        f"Methods are: {', '.join(METHODS)}"
    )


def _check_writable(path: Path | None) -> None:
    """Refuse early what could not be written after a long fit."""
    from odefit.problem.errors import InputError

    if path is None:
        return
    if path.is_dir():
        raise InputError(f"{path}: is a directory, expected a file to write")
    if not path.parent.is_dir():
        raise InputError(f"{path}: the directory {path.parent} does not exist; make it first")


def _progress() -> AbstractContextManager[Callable[[Progress], None] | None]:
    """A line on the terminal; silence elsewhere."""
    if not sys.stderr.isatty():
        return nullcontext()
    from odefit.reporting.progress import TerminalProgress

    return TerminalProgress()


def _check(options: argparse.Namespace) -> int:
    from odefit.problem.files import load
    from odefit.reporting.description import print_description

    print_description(load(options.problem), seed=options.seed)
    return DONE


def _simulate(options: argparse.Namespace) -> int:
    from odefit.problem.errors import InputError
    from odefit.problem.files import load
    from odefit.simulation.table import simulation_table, times_from_text, values_from_text

    problem = load(options.problem)
    _check_writable(options.csv)
    times = None if options.times is None else times_from_text(options.times)
    given = values_from_text(options.set)
    nodes = None
    if options.result is not None:
        from odefit.result_file import load_result

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
