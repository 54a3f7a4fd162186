"""Problem files and helpers that the tests of the command line share."""

from __future__ import annotations

import sys

import pytest

import odefit
from odefit.cli import main

DECAY = """format = 1
name = "decay"
[ode]
x = "-k*x"
[observables]
y = "s*x"
[parameters]
k = { lower = 0.0, upper = 10.0 }
s = { lower = 0.0 }
[initial]
x = 1.0
[[experiment]]
data = "data.csv"
"""

DATA = "t,y\n0,2.01\n1,0.99\n2,0.52\n3,0.24\n4,0.13\n"

COMMAND = (sys.executable, "-m", "odefit")
HIV = str(odefit.library.path("hiv-proteinase"))

BLOW_UP = """format = 1
[ode]
x = "k*x^2"
[parameters]
k = { lower = 1.0, upper = 3.0 }
[initial]
x = 1.0
[[experiment]]
data = "blow_up.csv"
"""


def run(*arguments: str) -> int:
    """The exit status, argparse's own included."""
    try:
        return main(arguments)
    except SystemExit as end:
        return int(end.code or 0)


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Standard error of a command that ends with status 2 and no traceback."""
    assert run(*arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "Traceback" not in captured.err
    assert captured.err.strip()
    return captured.err
