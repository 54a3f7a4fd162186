"""One fit in a separate process: `whole_fit.py` starts it and reads what it prints as JSON.

    python evidence/peers/fit_in_process.py TOOL PROBLEM SEED
    python evidence/peers/fit_in_process.py check PROBLEM VALUES

odefit
    Two fits, to divide the time of the command line: imports, the first fit, and a second fit with
    all modules loaded.
by-hand
    A typical script: the right-hand side as a Python function, `solve_ivp`, `least_squares` with
    bounds and its finite-difference Jacobian, ten random starts uniform in the bounds.
scatter-search, levenberg-marquardt
    COPASI's methods from one and from ten random starts, all settings at their defaults except
    weight 1 for every measurement. COPASI draws the starts itself, without a seed.

"aside" are the seconds to state the problem for another program and to import odefit for it; they
do not count as the other program's.
"""

from __future__ import annotations

import time

BEGAN = time.perf_counter()

import json
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

TOOL, NAME, LAST = sys.argv[1:4] if __name__ == "__main__" else ("by-hand", "", "0")
if TOOL == "odefit":
    import odefit
elif TOOL == "by-hand":
    import scipy.integrate
    import scipy.optimize
else:
    import basico  # noqa: F401 - timed
    import pandas as pd  # noqa: F401 - timed

IMPORTED = time.perf_counter()
sys.path.insert(0, str(Path(__file__).parents[2]))

STARTS = 10
COPASI = {
    "scatter-search": ("Scatter Search", 1),
    "levenberg-marquardt": ("Levenberg - Marquardt", 10),
}


def by_odefit(name: str, seed: int) -> dict[str, Any]:
    """Fit twice."""
    result = odefit.fit(odefit.library.load(name), seed=seed)
    done = time.perf_counter()
    odefit.fit(odefit.library.load(name), seed=seed)
    again = time.perf_counter() - done
    best = result.best
    unknowns = {**best.initial, **best.parameters}
    return {
        "objective": best.objective,
        "unknowns": unknowns,
        "work": done - IMPORTED,
        "again": again,
    }


def by_another(tool: str, name: str, last: str) -> dict[str, Any]:
    """Fit by SciPy or COPASI, or return COPASI's objective at given values."""
    import numpy as np

    from evidence.peers.copasi_model import CopasiModel
    from evidence.peers.script import Script
    from odefit import library

    problem = library.load(name)
    keys = list(problem.keys)
    ready = time.perf_counter()
    found: list[tuple[float, list[float]]] = []
    if tool == "by-hand":
        warnings.simplefilter("ignore")  # scripts of this kind warn without end
        script = Script(problem, lambda: None, (1e-8, 1e-10))
        rng, bounds = np.random.default_rng(int(last)), (problem.lower, problem.upper)
        for _ in range(STARTS):
            start = rng.uniform(*bounds)
            try:
                fit = scipy.optimize.least_squares(script.residuals, start, bounds=bounds)
            except ValueError:
                continue
            found.append((2 * float(fit.cost), fit.x.tolist()))
    else:
        ones = [
            {n: np.ones(len(s.values)) for n, s in c.series.items()} for c in problem.conditions
        ]
        with tempfile.TemporaryDirectory() as folder:
            model = CopasiModel(problem, ones, folder, tolerances=None)
            if tool == "check":
                return {"objective": model.objective(problem.vector(json.loads(last)))}
            method, starts = COPASI[tool]
            for k in range(starts):
                seed = 1000 * int(last) + k + 1
                values = model.estimated(method, seed, 1e6, randomise=True, update=False)
                if values is not None:
                    found.append((model.objective(values), values.tolist()))
    objective, best = min(found)
    return {
        "objective": objective,
        "unknowns": dict(zip(keys, best, strict=True)),
        "work": time.perf_counter() - ready,
        "aside": ready - IMPORTED,
    }


if __name__ == "__main__":
    answer = by_odefit(NAME, int(LAST)) if TOOL == "odefit" else by_another(TOOL, NAME, LAST)
    print(json.dumps({"import": IMPORTED - BEGAN, **answer}))
