"""The entry point ``odefit``: it reads the options, runs a command and returns an exit status."""

from __future__ import annotations

import argparse
import errno
import io
import sys
from collections.abc import Sequence
from typing import Any

from odefit.cli import (
    check,
    compare,
    convert,
    explore,
    fit,
    methods,
    new,
    plot,
    predict,
    profile,
    residuals,
    show,
    simulate,
)
from odefit.cli.shared import DONE, INTERRUPTED, UNUSABLE, plain_warnings
from odefit.common.errors import InputError

COMMANDS = (
    fit,
    profile,
    show,
    plot,
    residuals,
    predict,
    compare,
    check,
    simulate,
    explore,
    new,
    convert,
    methods,
)
"""A module a command: ``add_parser`` adds it with its options, and ``run`` runs it."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line, and return the exit status.

    It is 0 when the command is done, 2 for unusable input, 3 if no acceptable fit was found, 4 if
    the time limit was reached (the best so far is written all the same), and 130 after Ctrl-C.
    """
    _write_any_text()
    options = _parser().parse_args(arguments)
    try:
        with plain_warnings():
            status = int(options.run(options))
        sys.stdout.flush()  # here, where it can be told that the disk is full
        return status
    except InputError as error:
        for message in error.messages:
            print(f"error: {message}", file=sys.stderr)
        return UNUSABLE
    except BrokenPipeError:
        # The reader of a pipe has gone, as with `odefit ... | head`.
        sys.stderr.close()
        return DONE
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO):
            raise
        place = error.filename or "standard output"
        print(f"error: {place}: cannot be written: {error.strerror}", file=sys.stderr)
        return UNUSABLE
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED


def _write_any_text() -> None:
    """Let standard output take lines and Greek letters where its encoding has none of them.

    On Windows a pipe or a file has the encoding of the region; there a question mark is better than
    a fit whose table cannot be printed.
    """
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="replace")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="odefit",
        description="Estimate the parameters of ODE models from data, "
        "and say how far the answer can be trusted.",
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and exit")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in COMMANDS:
        command.add_parser(commands)
    return parser


class _Version(argparse.Action):
    """Prints the version; the package's metadata are read only then."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any, **__: Any) -> None:
        from importlib.metadata import version

        print(f"odefit {version('odefit')}")
        parser.exit()
