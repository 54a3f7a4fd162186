"""Published PEtab problems fitted from random starts, beside pyPESTO with AMICI and fides.

    python -m evidence.petab.fits FOLDER --models Boehm_JProteomeRes2014 ... [--seeds 1 2]
        [--limit 120] [--peer PYTHON] [--compiled FOLDER] [--out FILE.md]

Nominal values are removed, bounds are the same, and so is the time limit, on one core. The figure
is -2 log L plus priors' terms, less that at the nominal values: negative or small means that the
published answer is reached. pyPESTO draws starts in the scaled parameters within the bounds and
minimises with fides, one start after the other until the limit; that its model is compiled is not
counted. FOLDER and --compiled are those of `petab_collection.py`; PYTHON has pyPESTO, AMICI and
fides.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import odefit
from evidence.running.processes import machine, markdown, publish, run_process
from odefit.formats.petab import read_petab
from odefit.simulation import Failure, ForwardMap

REACHED = 0.1  # difference of -2 log L up to which the published answer counts as reached

# What runs in the Python that has the peers
PEER = """
import json, logging, sys, time, warnings
warnings.simplefilter("ignore"); logging.disable(logging.ERROR)
import numpy as np
import petab.v1 as petab, amici, pypesto, pypesto.petab, pypesto.optimize as optimize
yaml, out, name, seed, limit = *sys.argv[1:4], int(sys.argv[4]), float(sys.argv[5])
problem = petab.Problem.from_yaml(yaml)
if petab.measurement_table_has_timepoint_specific_mappings(
    problem.measurement_df, allow_scalar_numeric_noise_parameters=True
):
    petab.flatten_timepoint_specific_output_overrides(problem)
importer = pypesto.petab.PetabImporter(problem, output_folder=out, model_name=name)
factory = importer.create_objective_creator()
model = factory.create_model(force_compile=False)
solver = factory.create_solver(model)
solver.setAbsoluteTolerance(1e-8); solver.setRelativeTolerance(1e-8)
objective = factory.create_objective(model=model, solver=solver)
try:
    target = importer.create_problem(objective)
except TypeError:
    target = importer.create_problem()
nominal = target.objective(np.asarray(problem.x_nominal_free_scaled))
rng = np.random.default_rng(seed)
best, starts, first = np.inf, 0, None
began = time.perf_counter()
while time.perf_counter() - began < limit:
    left = limit - (time.perf_counter() - began)
    solver_options = {"maxtime": left, "maxiter": 1000}
    optimizer = optimize.FidesOptimizer(verbose=logging.ERROR, options=solver_options)
    x0 = rng.uniform(target.lb, target.ub)
    if not np.isfinite(target.objective(x0)):
        starts += 1
        continue
    result = optimizer.minimize(target, x0, id=str(starts))
    starts += 1
    if result.fval < best - 0.05:
        best, first = result.fval, time.perf_counter() - began
print(json.dumps({"gap": 2 * (best - nominal), "starts": starts, "found_after": first,
                  "seconds": time.perf_counter() - began}))
"""


def own(path: Path, seed: int, limit: float) -> dict[str, Any]:
    """Fit a problem with the default, from nothing."""
    began = time.perf_counter()
    found = read_petab(path)
    forward = ForwardMap(found.problem)
    nominal = forward.evaluate_cost(np.array([found.nominal[k] for k in found.problem.keys]))
    loaded = time.perf_counter() - began
    began = time.perf_counter()
    result = odefit.fit(found.problem, seed=seed, time_limit=limit, jobs=1)
    taken = time.perf_counter() - began
    row: dict[str, Any] = {
        "load": loaded,
        "seconds": taken,
        "status": result.status.value,
        "starts": len(result.starts),
    }
    if isinstance(nominal, Failure) or not result.solutions:
        return row
    values = {**result.best.initial, **result.best.parameters}
    vector = np.array([values[key] for key in found.problem.keys])
    end = forward.evaluate_cost(vector)
    if not isinstance(end, Failure):
        row["gap"] = 2.0 * (end.cost - nominal.cost)
    return row


def peer(python: str, path: Path, compiled: Path, seed: int, limit: float) -> dict[str, Any]:
    """Fit a problem with pyPESTO, AMICI and fides."""
    name = path.stem
    arguments = [str(path), str(compiled / name), name, str(seed), str(limit)]
    ended = run_process([python, "-c", PEER, *arguments], 3 * limit + 600)
    lines = [line for line in ended.output.splitlines() if line.startswith("{")]
    if not lines:
        print(f"{name}: peer: {ended.errors.strip()[-400:]}", file=sys.stderr)
        return {}
    return dict(json.loads(lines[-1]))


def cells(row: dict[str, Any]) -> list[str]:
    """Return gap, seconds and starts for the table."""
    gap = row.get("gap")
    found = "–" if gap is None else f"{gap:+.3g}" if abs(gap) > REACHED else f"{gap:+.1e}"
    seconds = row.get("seconds")
    return [found, "–" if seconds is None else f"{seconds:.0f}", str(row.get("starts", "–"))]


def main() -> None:
    """Fit, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--models", nargs="+", required=True)
    parser.add_argument("--seeds", nargs="+", type=int, default=[1])
    parser.add_argument("--limit", type=float, default=120.0)
    parser.add_argument("--peer", metavar="PYTHON")
    parser.add_argument("--compiled", type=Path, default=Path("amici_models"))
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    rows = []
    for name in options.models:
        for seed in options.seeds:
            path = options.folder / name / f"{name}.yaml"
            mine = own(path, seed, options.limit)
            other = (
                peer(options.peer, path, options.compiled, seed, options.limit)
                if options.peer
                else {}
            )
            print(json.dumps([name, seed, mine, other]), file=sys.stderr, flush=True)
            rows.append([name, str(seed), mine["status"], *cells(mine), *cells(other)])
    header = ["problem", "seed", "status", "gap", "s", "starts", "peer: gap", "s", "starts"]
    publish(f"{markdown(header, rows)}\n\n{machine()}", options.out)


if __name__ == "__main__":
    main()
