"""The program ``odefit``, also as ``python -m odefit``."""

import _signal  # type: ignore[import-not-found, unused-ignore]  # `signal` takes milliseconds


def program() -> int:
    """Run the command line, and return the exit status.

    Until it has its own handlers, the system handles Ctrl-C: Python would print a traceback of its
    imports.
    """
    if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
        _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
    from odefit.cli import main

    return main()


if __name__ == "__main__":
    raise SystemExit(program())
