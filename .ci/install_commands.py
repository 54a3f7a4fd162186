"""Run each install command in README and docs in a separate environment.

install_commands.py list            prints the commands, with the pages that show them
install_commands.py run [NAME ...]  runs all of them, or those of these names: in a fresh
                                    environment each installs this checkout, and proves that the
                                    promised packages work

A name lists the installed parts: `plain`, extras such as `docs` or `dev,docs`, followed by an
option such as `constraint`. `odefit[global]` means the checkout with this extra, as odefit is in no
registry yet. Further commands of a line after `&&` are run unchanged.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"^ *```\w*[^\n]*\n(.*?)^ *```$", re.DOTALL | re.MULTILINE)
SPAN = re.compile(r"`([^`\n]*\bpip install\b[^`\n]*)`")
INSTALL = re.compile(r"\bpip install\b")
OWN_NAME = re.compile(r"""(?<=["'\s])odefit(?=\[|["'\s]|$)""")
NAMED = re.compile(r"`odefit(\[\w+\])`")
EXTRAS = re.compile(r"\.\[([\w,]+)\]")
NOT_COPIED = shutil.ignore_patterns(
    ".git", ".venv", "site", "dist", "__pycache__", ".*_cache", "worked-studies", "gallery"
)
LINES_OF_A_FAILURE = 40
SITE = "ODEFIT_SITE"
"""The environment variable with the folder to which the site is moved that a page builds."""

PROBLEM = """\
format = 1
time_unit = "h"
[ode]
x = "-k*x"
[parameters]
k = { lower = 0.0, upper = 2.0 }
[initial]
x = 10.0
[[experiment]]
data = { t = [0.0, 1.0, 2.0, 4.0], x = [10.1, 6.0, 3.7, 1.3] }
"""
"""The problem `decay.toml`, which the proofs fit; k is about 0.5."""

BEGINNING = """\
import os, pathlib
import odefit
tree = pathlib.Path(os.environ["ODEFIT_TREE"])
problem = odefit.load("decay.toml")
"""

PROOFS = {
    "plain": """
result = odefit.fit(problem, seed=1)
assert abs(result.best.parameters["k"] - 0.5) < 0.02
result.report("report.html")
""",
    "global": """
method = odefit.Transcription(scheme="trapezoid", mesh=4, solver="scip")
assert abs(odefit.fit(problem, method, seed=1).best.parameters["k"] - 0.5) < 0.02
""",
    "maingo": """
method = odefit.Transcription(scheme="euler", mesh=4, solver="maingo")
assert abs(odefit.fit(problem, method, seed=1).best.parameters["k"] - 0.5) < 0.02
""",
    "ampl": """
import pyomo.environ
from odefit.methods.solvers.ampl import AmplSolver
assert "is not on the PATH" in AmplSolver("no-such-solver").missing()
""",
    "distributed": """
from distributed import Client
own = {"n_workers": 1, "threads_per_worker": 1, "dashboard_address": "127.0.0.1:0"}
with Client(processes=False, **own) as client:
    result = odefit.fit(problem, seed=1, executor=client.get_executor())
assert abs(result.best.parameters["k"] - 0.5) < 0.02
""",
    "posterior": """
samples = odefit.fit(problem, seed=1).sample(draws=100, chains=1, tune=200, seed=1)
assert abs(samples.table().loc["k", "mean"] - 0.5) < 0.1
""",
    "petab": """
folder = tree / "tests" / "data" / "petab" / "suite"
for file in ("v1/0001/_0001.yaml", "v2/0001/_0001.yaml"):
    assert odefit.load(folder / file).keys
""",
    "antimony": """
assert odefit.read_antimony("S -> P; k*S; k = 0.5; S = 4; P = 0").initial == {"S": "4", "P": "0"}
""",
    "taylor": """
method = odefit.MultipleShooting(engine="heyoka")
assert abs(odefit.fit(problem, method, seed=1).best.parameters["k"] - 0.5) < 0.02
""",
    "excel": """
from python_calamine import CalamineWorkbook
assert CalamineWorkbook.from_filelike
""",
    "sensitivity": """
found = odefit.sensitivity(problem, "sobol", samples=8, seed=1)
assert found.table["total"].notna().any()
""",
    "certificates": """
import subprocess, sys
odefit.fit(problem, odefit.BranchAndBound(bounds="propose", certificate="proof.json"), seed=1)
subprocess.run([sys.executable, "-m", "odefit", "verify", "proof.json"], check=True)
""",
    "completion": """
import os, subprocess, sys
env = {**os.environ, "_ARGCOMPLETE": "1", "_ARGCOMPLETE_STDOUT_FILENAME": "words.txt",
       "COMP_LINE": "odefit pro", "COMP_POINT": "10", "_ARGCOMPLETE_IFS": " "}
subprocess.run([sys.executable, "-m", "odefit"], env=env, check=True)
assert open("words.txt", encoding="utf-8").read().split() == ["profile"]
""",
    "units": """
assert odefit.check_units(problem) is not None
""",
    "explore": """
import subprocess, sys, urllib.request
command = [sys.executable, "-c", "import odefit.cli; odefit.cli.main()", "explore", "decay.toml"]
page = subprocess.Popen([*command, "--no-browser"], stdout=subprocess.PIPE, text=True)
try:
    with urllib.request.urlopen(page.stdout.readline().strip(), timeout=60) as answer:
        assert b"<html" in answer.read()
finally:
    page.terminate()
    page.wait()
""",
    "bench": """
import basico, COPASI
""",
    "docs": """
import myst_parser, pydata_sphinx_theme, sphinx, sphinx_copybutton, sphinx_design, sphinx_gallery
assert odefit.explore and odefit.read_sbml
""",
    "test": """
import subprocess, sys
subprocess.run([sys.executable, "-m", "pytest", "--collect-only", "-q", "-m", ""], cwd=tree,
               check=True, stdout=subprocess.DEVNULL)
""",
    "dev": """
import subprocess, sys
for tool in ("ruff", "mypy", "pytest"):
    subprocess.run([sys.executable, "-m", tool, "--version"], check=True)
""",
}
"""Python code that proves that an extra works."""

LESS = """
result = odefit.fit(problem, seed=1)
assert abs(result.best.parameters["k"] - 0.5) < 0.02
result.save("result.json")
"""
"""The use for which an installation without most dependencies is promised to suffice."""

RUN_ELSEWHERE = {"python -m pytest": "`.ci/run` runs it whole, here its tests are collected"}
"""Continuations of lines on pages that are not run here, by their beginning, with the reason."""


@dataclass
class Command:
    """An install command on the pages.

    Attributes
    ----------
    name
        The installed parts.
    lines
        Its installing parts, in order.
    then
        The commands that the pages run after it.
    pages
        The pages that show it.
    """

    name: str
    lines: tuple[str, ...]
    then: list[str] = field(default_factory=list)
    pages: list[str] = field(default_factory=list)

    @property
    def extras(self) -> list[str]:
        """The extras that it installs."""
        return [e for line in self.lines for m in EXTRAS.finditer(line) for e in m[1].split(",")]

    @property
    def proof(self) -> str:
        """Python code that proves that everything is installed."""
        if any("--no-deps" in line for line in self.lines):
            return BEGINNING + LESS
        return BEGINNING + "".join(PROOFS[e] for e in ("plain", *self.extras))


def pages() -> list[Path]:
    """Return the pages whose commands users follow."""
    top = [path for path in sorted(ROOT.glob("*.md")) if path.name != "CHANGELOG.md"]
    return [*top, *sorted((ROOT / "docs").rglob("*.md"))]


def shown(text: str) -> list[str]:
    """Return the lines of a page that install something; related lines are joined.

    An extra that is named without a command counts as a command.

    Lines of a block are alternatives, except those after `--no-deps`, which install the rest.
    """
    found: list[str] = []
    for block in BLOCK.finditer(text):
        lines = [line.split(" #")[0].strip().removeprefix("$ ") for line in block[1].splitlines()]
        lines = [line for line in lines if INSTALL.search(line)]
        found += [" && ".join(lines)] if any("--no-deps" in n for n in lines) else lines
    text = BLOCK.sub("", text)
    return [*found, *SPAN.findall(text), *(f'pip install ".{e}"' for e in NAMED.findall(text))]


def commands(texts: Iterable[tuple[str, str]]) -> dict[str, Command]:
    """Return the distinct install commands of pages, by name.

    Parameters
    ----------
    texts
        Names and texts of pages.
    """
    found: dict[str, Command] = {}
    for page, text in texts:
        for line in shown(text):
            parts = [OWN_NAME.sub(".", part.strip()) for part in line.split("&&")]
            installs = tuple(_whole(part) for part in parts if INSTALL.search(part))
            command = found.setdefault(_name(installs), Command(_name(installs), installs))
            command.pages += [page] if page not in command.pages else []
            rest = [p for p in parts if not INSTALL.search(p) and p not in command.then]
            command.then += rest
    return found


def _whole(part: str) -> str:
    """Return an install command that names its target: this checkout, unless it names another."""
    words = shlex.split(part)
    words = words[words.index("install") + 1 :]
    return part if any(not word.startswith("-") for word in words) else f"{part} ."


def _name(installs: Sequence[str]) -> str:
    extras = Command("", tuple(installs)).extras
    options = [w for w in dict.fromkeys(shlex.split(" ".join(installs))) if w.startswith("--")]
    options = [option[2:] for option in options if option != "--editable"]
    return " ".join([",".join(extras) or "plain", *options])


def run(command: Command, tree: Path) -> bool:
    """Run a command in a separate environment, print the outcome, and return whether it succeeded.

    Parameters
    ----------
    command
        The command.
    tree
        A copy of the checkout, in which the command is run.
    """
    print(f"\n== {command.name}: {' && '.join(command.lines)}", flush=True)
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        venv.create(home / "env", with_pip=True)
        scripts = home / "env" / ("Scripts" if os.name == "nt" else "bin")
        left_out = {"PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "PYTHONDONTWRITEBYTECODE"}
        environment = {k: v for k, v in os.environ.items() if k not in left_out}
        environment |= {
            "PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}",
            "ODEFIT_TREE": str(tree),
            "MPLBACKEND": "Agg",
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        }
        (home / "decay.toml").write_text(PROBLEM, encoding="utf-8")
        steps = [(part, ["bash", "-euo", "pipefail", "-c", part], tree) for part in command.lines]
        for part in command.then:
            if reason := next((r for n, r in RUN_ELSEWHERE.items() if part.startswith(n)), None):
                print(f"   {part}: {reason}")
                continue
            strict = " --fail-on-warning --keep-going --quiet" * part.startswith("python -m sphinx")
            steps.append((part, ["bash", "-euo", "pipefail", "-c", part + strict], tree))
        steps.append(("the proof", [str(scripts / "python"), "-c", command.proof], home))
        for what, words, place in steps:
            done = subprocess.run(
                words,
                cwd=place,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                encoding="utf-8",
                errors="replace",
                check=False,
            )
            if done.returncode:
                print(*done.stdout.splitlines()[-LINES_OF_A_FAILURE:], sep="\n")
                print(f"   FAILED with status {done.returncode}: {what}", flush=True)
                return False
            print(f"   {what}: done ({time.monotonic() - began:.0f} s)", flush=True)
        if SITE in os.environ and (tree / "site").is_dir():
            shutil.move(tree / "site", os.environ[SITE])
    return True


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("verb", choices=("list", "run"))
    parser.add_argument("names", nargs="*", metavar="NAME")
    arguments = parser.parse_args()
    found = commands((str(p.relative_to(ROOT)), p.read_text(encoding="utf-8")) for p in pages())
    if unknown := [name for name in arguments.names if name not in found]:
        parser.error(f"there is no {', '.join(unknown)}; there are: {'; '.join(found)}")
    chosen = [found[name] for name in arguments.names or found]
    if arguments.verb == "list":
        for command in chosen:
            print(f"{command.name}: {' && '.join(command.lines)}  ({', '.join(command.pages)})")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        shutil.copytree(ROOT, tree, ignore=NOT_COPIED)
        right = sum(run(command, tree) for command in chosen)
    print(f"\ninstall commands: {right} passed, {len(chosen) - right} failed")
    return int(right < len(chosen))


if __name__ == "__main__":
    sys.exit(main())
