"""The process that compiles the engines' kernels computes what all others do."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

TRAJECTORY = """
import sys
import numpy as np
from odefit import ForwardMap, Model, Problem
ode = {"a": "-0.04*a + 1e4*b*c", "b": "0.04*a - 1e4*b*c - k*b^2", "c": "k*b^2"}
data = {"t": np.logspace(-3, -1, 12), "a": np.ones(12)}
start = {"a": 1.0, "b": 0.0, "c": 0.0}
problem = Problem(Model(ode=ode), data, {"k": {"lower": 1e6, "upper": 1e8}}, start)
found = ForwardMap(problem, sys.argv[1], 1e-5).evaluate(np.array([3e7]))
print(found.residuals.tobytes().hex(), found.jacobian.tobytes().hex())
"""


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["bdf", "runge-kutta"])
def test_the_first_process_gets_the_same_digits_as_later_ones(tmp_path: Path, engine: str) -> None:
    """The first one compiles, later ones load what is on disk."""
    environment = os.environ | {"XDG_CACHE_HOME": str(tmp_path)}
    command = [sys.executable, "-c", TRAJECTORY, engine]
    said = [
        subprocess.run(command, env=environment, check=True, capture_output=True).stdout
        for _ in range(2)
    ]
    assert list(tmp_path.rglob("*.o")), "the kernels are kept on disk"
    assert said[0] == said[1]
    assert said[0].strip()
