"""The command ``odefit explore``."""

from __future__ import annotations

import argparse
import os
import sys
import threading
import webbrowser
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from odefit.cli.exit_statuses import DONE
from odefit.cli.shared import OF_SIGNALS, add_reading, is_result, loaded, signals_heeded
from odefit.common.errors import InputError
from odefit.methods.estimate import Cause

if TYPE_CHECKING:
    from odefit.explorer import Explorer

LOOK_SECONDS = 0.2  # seconds between checks for a signal


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``odefit explore``."""
    parser.add_argument("source", metavar="PROBLEM.toml|PETAB.yaml|RESULT.json")
    parser.add_argument("--result", metavar="FILE.json", type=Path, help="a result to compare with")
    parser.add_argument(
        "--port",
        metavar="N",
        type=int,
        default=0,
        help="port of the page (default: one that is free)",
    )
    parser.add_argument(
        "--no-browser", action="store_true", help="print the address without opening it"
    )
    add_reading(parser)


def run(options: argparse.Namespace) -> int:
    """Run ``odefit explore``: serve the page until Ctrl-C, or until the page stops it."""
    from odefit.explorer.doorway import doorway

    with signals_heeded() as signals:
        explorer = _explorer(options)
        try:
            print(explorer.url)
            print("This address is secret. Ctrl-C ends the page.", file=sys.stderr)
            sys.stdout.flush()
            with nullcontext() if options.no_browser else doorway(explorer.url) as door:
                if door is not None:
                    _open(door.file)
                while explorer.running and not (signals.is_set() or explorer.wait(LOOK_SECONDS)):
                    if door is not None and explorer.opened:
                        door.remove()
        except KeyboardInterrupt:  # a second signal, or one in a calling program
            signals.end(Cause.CTRL_C)
        finally:
            explorer.stop()
        if signals.is_set():
            print("ended", file=sys.stderr)
        status = DONE if signals.cause is None else OF_SIGNALS.get(signals.cause, DONE)
        if signals.is_set() and threading.active_count() > 1:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)  # a running compilation for the page would delay the end
        return status


def _explorer(options: argparse.Namespace) -> Explorer:
    """Return the page for a problem file, or for a result."""
    from odefit.explorer import explore
    from odefit.result.result import load_result

    source = Path(options.source)
    result = None if options.result is None else load_result(options.result)
    if is_result(source):
        if result is not None:
            raise InputError("--result: the source is a result itself; keep one of the two")
        return explore(load_result(source), port=options.port)
    problem = loaded(source, options)
    file = source if source.suffix.lower() == ".toml" else None
    return explore(problem, result=result, file=file, port=options.port)


def _open(file: Path) -> None:
    """Open the page's address, through a file, in the user's browser."""
    if not webbrowser.open(file.as_uri()):
        print("No browser was found: please open the address yourself.", file=sys.stderr)
