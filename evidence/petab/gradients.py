"""Gradients of published PEtab problems beside AMICI's, where differences have too few digits.

    python -m evidence.petab.gradients FOLDER [--amici PYTHON] [--models NAME ...]
        [--compiled FOLDER] [--shift 0.05] [--out FILE.md]

FOLDER has one folder a problem. Both are evaluated beside the nominal values, every unknown moved
by 5 % (--shift) up or down (seeded), at a tolerance of 1e-10, without priors. The gradient is that
of the log-likelihood by the logarithms of the unknowns; the error of a component is relative to
itself or to a millionth of the largest one, if that is more. AMICI integrates the forward
sensitivities, or where these fail the adjoint ones. Without --amici the gradient, at a tolerance
of 1e-11, is compared with central differences of fourth order, for each component at the step that
suits best; the error is relative to a thousandth of the largest component at least.
"""

from __future__ import annotations

import argparse
import copy
import json
import sys
from pathlib import Path

import numpy as np

from evidence.petab.collection import STENCIL, WEIGHTS, nominal
from evidence.running.processes import machine, markdown, publish, run_process
from odefit.common.arrays import Array
from odefit.formats.petab import read_petab
from odefit.problem.problem import Problem
from odefit.problem.toml.files import problem_from_mapping
from odefit.simulation import Evaluation, ForwardMap

TOLERANCE = 1e-10  # tolerance of both programs
LEAST = 1e-6  # share of the largest component below which the error counts relative to this
STEPS = (1e-3, 3e-4, 3e-3)  # relative steps of the differences
FINE_TOLERANCE = 1e-11  # tolerance where differences are taken
LEAST_OF_DIFFERENCES = 1e-3  # as :data:`LEAST`, for differences, which have fewer digits
LIMIT = 1800.0  # seconds that AMICI gets for a problem

# What runs in the Python that has AMICI
AMICI = """
import json, sys, numpy as np
import amici, petab.v1 as petab
from amici.petab.petab_import import import_petab_problem
from amici.petab.simulations import simulate_petab
yaml, out, name, tolerance = sys.argv[1:4] + [float(sys.argv[4])]
values = json.loads(sys.argv[5])
problem = petab.Problem.from_yaml(yaml)
if petab.measurement_table_has_timepoint_specific_mappings(
    problem.measurement_df, allow_scalar_numeric_noise_parameters=True
):
    petab.flatten_timepoint_specific_output_overrides(problem)
model = import_petab_problem(problem, model_output_dir=out, model_name=name, verbose=False)
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


def differences(forward: ForwardMap, vector: Array, own: Array) -> Array:
    """Return the gradient of the log-likelihood by the logarithms of the unknowns, shape (m,).

    Each component is that of the step with which it is nearest to `own`.
    """
    found = np.full(len(vector), np.inf)
    for k in range(len(vector)):
        for step in STEPS:
            slope = 0.0
            for i, weight in zip(STENCIL, WEIGHTS, strict=True):
                moved = vector.copy()
                moved[k] *= 1.0 + i * step
                slope -= weight * forward.cost(moved) / step
            if abs(slope - own[k]) < abs(found[k] - own[k]):
                found[k] = slope
    return found


def compare(folder: Path, python: str | None, compiled: Path, shift: float) -> list[str]:
    """Return the row of a problem: its name, what it is compared with, and the errors."""
    yaml = folder / f"{folder.name}.yaml"
    found = read_petab(yaml)
    mapping = copy.deepcopy(dict(found.mapping))
    for value in mapping["parameters"].values():
        if isinstance(value, dict):
            value.pop("prior", None)
    problem = problem_from_mapping(mapping)
    vector = nominal(found)
    signs = np.random.default_rng(1).choice((-1.0, 1.0), len(vector))
    vector = np.clip(vector * (1.0 + shift * signs), problem.lower, problem.upper)
    tolerance = FINE_TOLERANCE if python is None else TOLERANCE
    forward = ForwardMap(problem, tolerance=tolerance)
    at = forward.evaluate(vector)
    if not isinstance(at, Evaluation):
        return [folder.name, f"odefit fails: {at}"]
    own = -(at.jacobian.T @ at.residuals) * vector
    if python is None:
        return errors_of(problem, own, differences(forward, vector, own), "differences", None)
    values = dict(zip(problem.keys, map(float, vector), strict=True))
    arguments = [str(yaml), str(compiled / folder.name), folder.name, str(TOLERANCE)]
    ended = run_process([python, "-c", AMICI, *arguments, json.dumps(values)], LIMIT)
    lines = [line for line in ended.output.splitlines() if line.startswith("{")]
    if not lines:
        print(ended.errors[-500:], file=sys.stderr)
        return [folder.name, "AMICI fails"]
    other = json.loads(lines[-1])
    theirs = np.array([other["gradient"][key] for key in problem.keys]) * vector
    gap = abs((at.log_likelihood or np.nan) - other["llh"])
    return errors_of(problem, own, theirs, other["method"], gap)


def errors_of(
    problem: Problem, own: Array, other: Array, kind: str, gap: float | None
) -> list[str]:
    """Return the row of a problem whose gradient was computed twice."""
    least = LEAST_OF_DIFFERENCES if gap is None else LEAST
    sizes = np.maximum(np.abs(other), least * np.abs(other).max())
    errors = np.abs(own - other) / sizes
    worst = int(np.argmax(errors))
    whole = float(np.linalg.norm(own - other) / np.linalg.norm(other))
    return [
        problem.name, kind, "" if gap is None else f"{gap:.2g}", f"{whole:.2g}",
        f"{errors[worst]:.2g} ({problem.keys[worst]})", f"{float(np.median(errors)):.2g}",
    ]  # fmt: skip


def main() -> None:
    """Compare, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--models", nargs="+")
    parser.add_argument("--amici", metavar="PYTHON")
    parser.add_argument("--compiled", type=Path, default=Path("amici_models"))
    parser.add_argument("--shift", type=float, default=0.05)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    names = options.models or sorted(p.name for p in options.folder.iterdir() if p.is_dir())
    rows = []
    for name in names:
        row = compare(options.folder / name, options.amici, options.compiled, options.shift)
        print("  ".join(row), file=sys.stderr, flush=True)
        rows.append([*row, *[""] * (6 - len(row))])
    header = [
        "problem", "beside", "difference of log-likelihoods", "gradient as a whole",
        "largest error of a component", "median",
    ]  # fmt: skip
    publish(f"{markdown(header, rows)}\n\n{machine()}", options.out)


if __name__ == "__main__":
    main()
