"""AMICI and pyPESTO in a separate Python: scripts that read a PEtab problem and print JSON.

Each script begins with the arguments of its process: the problem's YAML file, the folder of the
compiled model, its name, and the script's own arguments.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from evidence.running.measuring import last_json, run_process

READ = """
import json, logging, statistics, sys, time, warnings
warnings.simplefilter("ignore"); logging.disable(logging.ERROR)
import numpy as np
import amici, petab.v1 as petab
yaml, out, name, *given = sys.argv[1:]
problem = petab.Problem.from_yaml(yaml)
if petab.measurement_table_has_timepoint_specific_mappings(
    problem.measurement_df, allow_scalar_numeric_noise_parameters=True
):
    petab.flatten_timepoint_specific_output_overrides(problem)
def imported():
    from amici.petab.petab_import import import_petab_problem
    return import_petab_problem(problem, model_output_dir=out, model_name=name, verbose=False)
"""

TIMES = """
from amici.petab.simulations import simulate_petab
budget = float(given[0])
began = time.perf_counter()
model = imported()
found = {"compile": time.perf_counter() - began}
solver = model.getSolver()
solver.setAbsoluteTolerance(1e-8); solver.setRelativeTolerance(1e-8)
solver.setMaxSteps(100000)
def ms(order, method):
    solver.setSensitivityOrder(order); solver.setSensitivityMethod(method)
    taken, cpu = [], []
    began = time.perf_counter()
    while len(taken) < 2 or time.perf_counter() - began < budget:
        start = time.perf_counter()
        result = simulate_petab(problem, model, solver=solver)
        taken.append(1e3 * (time.perf_counter() - start))
        cpu.append(sum(r.cpu_time_total for r in result["rdatas"]))
    return statistics.median(taken), statistics.median(cpu), result["llh"]
for key, order, method in (("cost", 0, amici.SensitivityMethod.none),
                           ("gradient", 1, amici.SensitivityMethod.forward),
                           ("adjoint", 1, amici.SensitivityMethod.adjoint)):
    try:
        wall, cpu, llh = ms(order, method)
        found[key] = [wall, cpu]
        if key == "cost":
            found["log_likelihood"] = llh
        elif llh != llh:
            found[key] = None
    except Exception as error:
        found[key] = None
print(json.dumps(found))
"""

GRADIENT = """
from amici.petab.simulations import simulate_petab
tolerance, values = float(given[0]), json.loads(given[1])
model = imported()
solver = model.getSolver()
solver.setRelativeTolerance(tolerance); solver.setAbsoluteTolerance(1e-2 * tolerance)
solver.setMaxSteps(1000000); solver.setSensitivityOrder(1)
for method in (amici.SensitivityMethod.forward, amici.SensitivityMethod.adjoint):
    solver.setSensitivityMethod(method)
    solver.setAbsoluteToleranceB(1e-2 * tolerance); solver.setRelativeToleranceB(tolerance)
    solver.setAbsoluteToleranceQuadratures(1e-2 * tolerance)
    solver.setRelativeToleranceQuadratures(tolerance)
    try:
        result = simulate_petab(problem, model, solver=solver, problem_parameters=values)
    except Exception as error:
        print(repr(error)[:300], file=sys.stderr)
        continue
    gradient = result["sllh"]
    if result["llh"] == result["llh"] and gradient and all(g == g for g in gradient.values()):
        name = "forward" if method == amici.SensitivityMethod.forward else "adjoint"
        print(json.dumps({"method": name, "llh": float(result["llh"]),
                          "gradient": {k: float(v) for k, v in gradient.items()}}))
        break
"""

FITS = """
import pypesto, pypesto.petab, pypesto.optimize as optimize
seed, limit = int(given[0]), float(given[1])
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


def by_amici(
    script: str, python: str, folder: Path, compiled: str, given: list[str], limit: float
) -> dict[str, Any]:
    """Run a script on the problem in a folder; return what it prints, or ``error`` alone."""
    name = folder.name
    arguments = [str(folder / f"{name}.yaml"), str(Path(compiled) / name), name, *given]
    ended = run_process([python, "-c", READ + script, *arguments], limit)
    return last_json(ended) or {"error": ended.errors.strip()[-400:] or "time limit"}


def problem_folders(folder: str, models: tuple[str, ...]) -> list[str]:
    """Return the names of the chosen problems in a folder, or of all."""
    return list(models) or sorted(p.name for p in Path(folder).iterdir() if p.is_dir())
