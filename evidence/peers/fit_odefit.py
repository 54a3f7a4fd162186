"""Fits by odefit inside one process: `whole_fit.py` starts it and reads what it prints.

    python evidence/peers/fit_odefit.py PROBLEM.toml SEED

The command line is timed as a process by `whole_fit.py` itself; this shows where its time goes:
imports, the first fit, and the same fit once more, when everything is loaded that is loaded on
first use.
"""

from __future__ import annotations

import time

BEGAN = time.perf_counter()

import json
import sys

import odefit

IMPORTED = time.perf_counter()


def main(arguments: list[str]) -> None:
    """Fit twice and print the outcome as JSON."""
    file, seed = arguments[0], int(arguments[1])
    result = odefit.fit(odefit.load(file), seed=seed)
    done = time.perf_counter()
    odefit.fit(odefit.load(file), seed=seed)
    again = time.perf_counter() - done
    best = result.best
    print(
        json.dumps(
            {
                "objective": best.objective,
                "unknowns": {**best.initial, **best.parameters},
                "import": IMPORTED - BEGAN,
                "work": done - IMPORTED,
                "again": again,
            }
        )
    )


if __name__ == "__main__":
    main(sys.argv[1:])
