"""``--method branch-and-bound`` and ``--method outer-approximation``."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from odefit import BranchAndBound
from tests.cli.commands import run

PROBLEM = """
format = 1
name = "decay"

[ode]
x = "{ode}"

[parameters]
k = {{ lower = 0.0{upper} }}

[initial]
x = 1.0

[[experiment]]
name = "run"
data = "data.csv"
"""

BRANCH = "--method branch-and-bound --starts 1 --jobs 1"
MESH = f"{BRANCH} --mesh 5 --scheme legendre"
OUTER = "--method outer-approximation --elements 2 --starts 1 --jobs 1"


@pytest.fixture(autouse=True)
def bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the same model with and without an upper bound, which is the working one."""
    (tmp_path / "data.csv").write_text("t,x\n0.5,0.72\n1,0.45\n2,0.3\n", encoding="utf-8")
    for name, ode, upper in (
        ("open", "-k*x", ""),
        ("closed", "-k*x", ", upper = 5.0"),
        ("kink", "-k*abs(x)", ", upper = 5.0"),
    ):
        text = PROBLEM.format(ode=ode, upper=upper)
        (tmp_path / f"{name}.toml").write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def fitted(command: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    """Exit status, standard output and standard error, without line breaks."""
    status = run("fit", *command.split())
    out, err = (" ".join(text.split()) for text in capsys.readouterr())
    assert "Traceback" not in out + err
    return status, out, err


@pytest.mark.parametrize(
    ("options", "scope", "solver", "first"),
    [
        (BRANCH, "in continuous time", "branch and bound over boxes, with all", "local search"),
        pytest.param(
            MESH,
            "discretised (Legendre",
            "branch and bound over boxes, with all",
            "local search",
            marks=pytest.mark.slow,
        ),
        (
            OUTER,
            "discretised (Legendre collocation, 2 elements x 3 points",
            "outer approximation with",
            "local",
        ),
    ],
)
def test_the_certificate_is_printed_and_its_log_written(
    bounded: Path,
    capsys: pytest.CaptureFixture[str],
    options: str,
    scope: str,
    solver: str,
    first: str,
) -> None:
    status, out, _ = fitted(f"closed.toml {options} --json r.json --report r.md", capsys)
    assert status == 0
    assert scope in out
    assert f"computed by {solver}" in out
    found = json.loads((bounded / "r.json").read_text(encoding="utf-8"))["assessment"]["global"]
    assert found["closed"]
    assert found["lower"] <= found["upper"]
    assert found["history"][0]["stage"] == first
    assert f"computed by {solver}" in (bounded / "r.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("options", [pytest.param(MESH, marks=pytest.mark.slow), OUTER])
def test_missing_bounds_are_unusable_input_until_they_are_accepted(
    capsys: pytest.CaptureFixture[str], options: str
) -> None:
    status, _, err = fitted(f"open.toml {options}", capsys)
    assert status == 2
    assert "--bounds propose" in err
    status, out, _ = fitted(f"open.toml {options} --bounds propose", capsys)
    assert status == 0
    assert "these as given to the method (k from 0 to" in out


@pytest.mark.parametrize(
    ("command", "part"),
    [
        (f"kink.toml {BRANCH}", "'abs' has a kink"),
        (f"kink.toml {BRANCH} --scheme legendre", "'abs' has a kink"),
        (f"closed.toml {BRANCH} --scheme gauss", "unknown scheme 'gauss'"),
        (f"closed.toml {BRANCH} --mesh 0", "mesh"),
        (f"closed.toml {BRANCH} --mesh 1 --scheme simpson", "at least 2 steps"),
        (f"closed.toml {BRANCH} --elements 3", "--method outer-approximation"),
        ("closed.toml --elements 3", "--method outer-approximation"),
        ("closed.toml --bounds propose", "--bounds"),
        ("closed.toml --method branch-and-bounds", "branch-and-bound"),
    ],
)
def test_unusable_input_is_refused(
    capsys: pytest.CaptureFixture[str], command: str, part: str
) -> None:
    status, _, err = fitted(command, capsys)
    assert status == 2
    assert part in err


@pytest.mark.slow
def test_a_time_limit_keeps_the_best_so_far(
    bounded: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Its bounds can never meet, with these.
    monkeypatch.setattr(BranchAndBound, "__init__", _endless(BranchAndBound.__init__))
    status, out, _ = fitted(f"closed.toml {BRANCH} --time-limit 0.7 --json r.json", capsys)
    assert status == 4
    assert "time limit was reached" in out
    found = json.loads((bounded / "r.json").read_text(encoding="utf-8"))
    assert found["status"] == "time limit"
    assert not found["assessment"]["global"]["closed"]


def _endless(init: Callable[..., None]) -> Callable[..., None]:
    def started(self: BranchAndBound, **options: Any) -> None:
        init(self, gap=0.0, absolute_gap=0.0, **options)

    return started


COMPILING = """
import sys, threading
from odefit.cli import main
from odefit.enclosure.continuous import Enclosure
from odefit.methods.branch_and_bound import region_tree, tree
tree.COMPILED_FROM = region_tree.COMPILED_FROM = 0.0
Enclosure.compiled = property(lambda self: threading.Event().wait())
sys.exit(main())
"""
"""The command line on a computer where the compilation of enclosures does not end."""


@pytest.mark.parametrize(
    "options", [BRANCH, "--certify --starts 1 --jobs 1"], ids=["method", "certificate"]
)
def test_a_time_limit_does_not_wait_for_a_compilation(options: str, bounded: Path) -> None:
    command = f"fit closed.toml {options} --json r.json --time-limit 3"
    ran = subprocess.run(
        [sys.executable, "-c", COMPILING, *command.split()],
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert ran.returncode == 4 or (ran.returncode == 0 and "--certify" in options), ran.stderr
    assert "Traceback" not in ran.stderr
    found = json.loads((bounded / "r.json").read_text(encoding="utf-8"))
    assert found["parameters"]["k"] == pytest.approx(1.143, abs=0.001)


COLD = """
import sys
import numba.core.event
from odefit.cli import main
from odefit.methods.branch_and_bound import region_tree, tree
tree.COMPILED_FROM = region_tree.COMPILED_FROM = 0.0
class Told(numba.core.event.Listener):
    def on_start(self, event): self.tell("begun", event)
    def on_end(self, event): self.tell("compiled", event)
    def tell(self, word, event):
        if "_advance" in str(event.data.get("dispatcher")):
            print(word, file=sys.stderr, flush=True)
numba.core.event.register("numba:compile", Told())
sys.exit(main())
"""
"""The command line, which tells when the long compilation of enclosures begins and ends."""


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="needs POSIX signals")
@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize(
    "options", [BRANCH, "--certify --starts 1 --jobs 1"], ids=["method", "certificate"]
)
def test_a_signal_does_not_wait_for_the_first_compilation(
    options: str, by: signal.Signals, bounded: Path
) -> None:
    text = PROBLEM.format(ode="-k*x*x/(1 + x)", upper=", upper = 5.0")
    (bounded / "nonlinear.toml").write_text(text, encoding="utf-8")
    seed = random.randrange(1000)
    process = subprocess.Popen(
        [sys.executable, "-c", COLD, *f"fit nonlinear.toml {options} --json r.json".split()],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=dict(os.environ) | {"NUMBA_CACHE_DIR": str(bounded / "cold")},
    )
    assert process.stderr is not None
    assert any(line == "begun\n" for line in process.stderr)
    time.sleep(random.Random(seed).uniform(0.0, 2.0))  # of some twenty seconds
    process.send_signal(by)
    _, err = process.communicate(timeout=300)
    assert process.returncode == 128 + by, (seed, err)
    assert "compiled" not in err, seed
    assert "Traceback" not in err, seed
    found = json.loads((bounded / "r.json").read_text(encoding="utf-8"))
    assert found["status"] == "interrupted"
    assert 0.1 < found["parameters"]["k"] < 5.0
