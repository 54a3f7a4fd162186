"""CPU time of default fits of dense series, each in a process of its own, from start to answer.

    python -m evidence.front_door.dense_fits [--repeats 5] [--noise 0.01] [--systems NAME ...]
        [--library NAME ...] [--against OTHER/src] [--out FILE.md]

`odefit.fit(problem, jobs=1)` of the systems in `dense_systems.py`, draw 0, and of problems
of the library. "Fit" is the call alone, with the modules that it imports; "process" includes the
start of Python, the import of odefit and the simulation of the data. With `--against`, the same is
done with another copy of odefit, taking turns; "alike" says whether both objectives agree to nine
digits. Medians in seconds of CPU time; a first round, which fills the caches of compiled models
and kernels, is not counted.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path

from evidence.running.processes import machine, markdown, publish, run_process

ROOT = Path(__file__).resolve().parents[2]

from evidence.front_door.dense_systems import SYSTEMS  # noqa: E402

LIBRARY = ("alpha-pinene", "fitzhugh-nagumo", "gma", "henon-heiles", "hiv-p", "lotka-volterra-f")
LIMIT = 600.0

# Fits one problem with the odefit in a folder
FIT = """
import sys, time
source, root, name, noise = sys.argv[1:]
sys.path[:0] = [source, root]
import odefit
if noise == "library":
    problem = odefit.library.load(name)
else:
    from evidence.front_door.dense_data import dense_problem
    problem, _ = dense_problem(name, float(noise), 0)
began = time.process_time()
result = odefit.fit(problem, jobs=1)
ended = time.process_time()
print(ended - began, ended, result.objective)
"""


def fitted(source: Path, name: str, noise: str) -> tuple[float, float, float]:
    """CPU seconds of the fit and of the process, and the objective."""
    command = [sys.executable, "-c", FIT, str(source), str(ROOT), name, noise]
    finished = run_process(command, LIMIT)
    if finished.status != 0:
        raise SystemExit(f"{name}: exit status {finished.status}\n{finished.errors}")
    fit, process, objective = map(float, finished.output.split()[-3:])
    return fit, process, objective


def row(name: str, noise: str, sources: Sequence[Path], repeats: int) -> list[float]:
    """Medians of fit and process by copy, of both ratios, and whether the objectives agree."""
    spent = [[fitted(source, name, noise) for source in sources] for _ in range(repeats + 1)]
    counted = spent[1:]
    medians = [
        statistics.median(s[copy][k] for s in counted)
        for copy in range(len(sources))
        for k in (0, 1)
    ]
    if len(sources) == 1:
        return medians
    ratios = [statistics.median(s[0][k] / s[1][k] for s in counted) for k in (0, 1)]
    mine, other = (s[2] for s in spent[-1])
    return [*medians, *ratios, float(abs(mine - other) <= 1e-9 * max(abs(mine), abs(other)))]


def main() -> None:
    """Read the command line, run, report."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--noise", default="0.01", help="noise of the dense series")
    parser.add_argument("--systems", nargs="*", default=list(SYSTEMS), help="dense systems")
    parser.add_argument("--library", nargs="*", default=LIBRARY, help="problems of the library")
    parser.add_argument("--against", type=Path, help="src folder of another copy of odefit")
    parser.add_argument("--out", type=Path, help="write the table to this file")
    arguments = parser.parse_args()
    os.environ.pop("PYTHONPATH", None)
    sources = [ROOT / "src", *([arguments.against.resolve()] if arguments.against else [])]
    problems = [(name, arguments.noise) for name in arguments.systems]
    problems += [(name, "library") for name in arguments.library]
    header = ["problem", "fit, s", "process, s"]
    if len(sources) == 2:
        header += ["other: fit, s", "process, s", "fit, ratio", "process, ratio", "alike"]
    rows, found = [], []
    for name, noise in problems:
        values = row(name, noise, sources, arguments.repeats)
        found.append(values)
        cells = [f"{v:.2f}" for v in values]
        if len(sources) == 2:
            cells[-1] = "yes" if values[-1] else "no"
        rows.append([name, *cells])
        print(*rows[-1], file=sys.stderr, flush=True)
    middle = [statistics.median(column) for column in zip(*found, strict=True)]
    rows.append(["median", *(f"{v:.2f}" for v in middle[:6]), *[""] * (len(sources) - 1)])
    publish(f"{markdown(header, rows)}\n\n{machine()}", arguments.out)


if __name__ == "__main__":
    main()
