"""The command line. Results go to standard output, everything else to standard error."""

from odefit.cli.main import main

__all__ = ["main"]
