"""Record the fits of every library problem by every method, and compare two such records.

    python tools/record_fits.py record DIR [--limit SECONDS] [--only RECORD] [--methods NAME ...]
    python tools/record_fits.py compare BEFORE AFTER

Each fit runs in a separate process, on one core, with seed 1, and writes one JSON file to DIR: the
result file of odefit, or the message of a refusal. Existing files are kept, so that an interrupted
record continues. ``--only RECORD`` repeats only fits that another record has finished within its
limit. ``compare`` reads two folders and lists every number that differs by more than rounding; fits
that ended at a time limit in either are counted and left out.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

METHODS = {
    "automatic": "odefit.Automatic()",
    "multi-start": "odefit.MultiStart()",
    "single-shooting": "odefit.SingleShooting()",
    "multiple-shooting": "odefit.MultipleShooting(starts=2)",
    "integral-matching": "odefit.IntegralMatching()",
    "transcription": "odefit.Transcription(starts=1)",
    "transcription-trapezoid": "odefit.Transcription(starts=1, scheme='trapezoid', mesh=20)",
    "algebraic": "odefit.Algebraic()",
    "branch-and-bound": "odefit.BranchAndBound(bounds='propose')",
    "branch-and-bound-trapezoid": (
        "odefit.BranchAndBound(scheme='trapezoid', mesh=10, bounds='propose')"
    ),
    "outer-approximation": "odefit.OuterApproximation(bounds='propose')",
}
"""Expressions by name."""

CHILD = """
import json, sys
import odefit
problem, expression, limit, path = sys.argv[1:]
method = eval(expression)
try:
    result = odefit.fit(
        odefit.library.load(problem), method, seed=1, time_limit=float(limit), jobs=1
    )
except odefit.InputError as error:
    open(path, "w").write(json.dumps({"refused": str(error)}))
else:
    result.save(path)
"""

COMPARED = ("refused", "crashed", "status", "objective", "parameters", "initial", "solutions")
"""Parts of a result file that are compared, besides bounds and counts of solutions."""

TOLERANCE = 1e-6
"""Relative difference of two numbers that counts as rounding."""

ZERO = 1e-9
"""Absolute difference that counts as rounding: objectives of noise-free data are zero."""


def record(out: Path, limit: float, only: Path | None, methods: list[str]) -> None:
    """Run the fits that are missing in `out`."""
    import odefit

    out.mkdir(parents=True, exist_ok=True)
    environment = {
        **os.environ,
        "ODEFIT_CACHE": str(out / "cache"),
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "PYTHONHASHSEED": "0",
    }
    for method in methods or METHODS:
        expression = METHODS[method]
        for problem in odefit.library.names():
            path = out / f"{method}--{problem}.json"
            if path.exists() or (only is not None and not finished(only / path.name)):
                continue
            began = time.perf_counter()
            with tempfile.NamedTemporaryFile(suffix=".json", delete=False) as file:
                kept = Path(file.name)
            command = [sys.executable, "-c", CHILD, problem, expression, str(limit), str(kept)]
            try:
                run = subprocess.run(
                    command, env=environment, capture_output=True, text=True, timeout=4 * limit
                )
                text = kept.read_text(encoding="utf-8") or json.dumps(
                    {"crashed": run.stderr[-2000:]}
                )
            except subprocess.TimeoutExpired:
                text = json.dumps({"status": "time limit", "overran": True})
            path.write_text(text)
            kept.unlink()
            what = json.loads(text)
            print(
                f"{path.stem:60s} {time.perf_counter() - began:7.1f} s "
                f"{what.get('status') or next(iter(what))} {what.get('objective')}",
                flush=True,
            )


def finished(path: Path) -> bool:
    """Return whether a file holds an answer that was not cut short by a time limit."""
    return (
        path.exists() and json.loads(path.read_text(encoding="utf-8")).get("status") != "time limit"
    )


def compared(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return the estimates, objective, bounds and solution counts of a result file."""
    found = {key: result[key] for key in COMPARED if key in result}
    if "solutions" in found:
        found["solutions"] = [solution["objective"] for solution in found["solutions"]]
    assessment = result.get("assessment") or {}
    bounds, complete = assessment.get("global") or {}, assessment.get("complete") or {}
    found["bounds"] = {key: bounds.get(key) for key in ("lower", "upper")}
    found["counts"] = {key: complete.get(key) for key in ("possible", "found")}
    return found


def differences(a: Any, b: Any, place: str = "") -> Iterator[str]:
    """Return the places where `a` and `b` differ by more than rounding."""
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        for key in sorted({*a, *b}):
            if key not in a or key not in b:
                yield f"{place}/{key}: only in the {'first' if key in a else 'second'}"
            else:
                yield from differences(a[key], b[key], f"{place}/{key}")
    elif isinstance(a, list) and isinstance(b, list):
        if len(a) != len(b):
            yield f"{place}: {len(a)} and {len(b)} entries"
        for i, (x, y) in enumerate(zip(a, b, strict=False)):
            yield from differences(x, y, f"{place}[{i}]")
    elif isinstance(a, float) and isinstance(b, float | int):
        if not math.isclose(a, b, rel_tol=TOLERANCE, abs_tol=ZERO):
            yield f"{place}: {a!r} and {b!r}"
    elif a != b:
        yield f"{place}: {a!r} and {b!r}"


def compare(before: Path, after: Path) -> int:
    """Print all differences of two records; return the number of fits that differ."""
    same = differ = limited = 0
    for path in sorted(before.glob("*.json")):
        if not (finished(path) and finished(after / path.name)):
            limited += 1
            continue
        a, b = (
            json.loads((folder / path.name).read_text(encoding="utf-8"))
            for folder in (before, after)
        )
        found = list(differences(compared(a), compared(b)))
        differ += bool(found)
        same += not found
        for line in found[:12]:
            print(f"{path.stem}: {line}")
    print(f"{same} equal, {differ} different, {limited} left out (time limit, or missing)")
    return differ


def main() -> int:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    actions = parser.add_subparsers(dest="action", required=True)
    recording = actions.add_parser("record")
    recording.add_argument("out", type=Path)
    recording.add_argument("--limit", type=float, default=20.0)
    recording.add_argument("--only", type=Path)
    recording.add_argument("--methods", nargs="+", choices=METHODS, default=[])
    comparing = actions.add_parser("compare")
    comparing.add_argument("before", type=Path)
    comparing.add_argument("after", type=Path)
    options = parser.parse_args()
    if options.action == "record":
        record(options.out, options.limit, options.only, options.methods)
        return 0
    return min(compare(options.before, options.after), 1)


if __name__ == "__main__":
    sys.exit(main())
