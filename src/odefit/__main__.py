"""The program ``odefit``, also as ``python -m odefit``."""

import signal


def program() -> int:
    """Run the command line, and return the exit status.

    Until it has its own handlers, the system handles Ctrl-C: Python would print a traceback of its
    imports.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from odefit.cli import main

    return main()


if __name__ == "__main__":
    raise SystemExit(program())
