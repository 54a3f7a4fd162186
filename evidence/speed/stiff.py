"""Cost and gradient of stiff and larger models, by odefit's engine and by CasADi's CVODES.

    python -m evidence.speed.stiff [FOLDER] [--models NAME ...] [--tolerance 1e-8] [--repeats 5]
        [--limit 120] [--out FILE]

FOLDER holds problems as JSON mappings that `odefit.problem.problem_from_mapping` reads, with the
values at which they are timed as guesses; without it, the library's problems are timed at their
references. Each model and engine is a process of its own, on one core. "First" is the time from
the file to the first sensitivities, imports included; compiled kernels are on disk. The others are
the least CPU times of the repeats: "cost" of `evaluate_cost`, "sensitivities" of `evaluate`, which
has residuals with their Jacobian, and "gradient" of `gradient`, which has the gradient of the cost
alone, by the adjoint where that pays ("sensitivities" beside it where it does not). "Difference" is
that of the two gradients: the largest over the unknowns, in units of each, relative to the largest
sum of what the residuals add to a derivative, as they all but cancel at an optimum.
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Literal, cast, get_args

import numpy as np

from evidence.running.processes import Finished, machine, markdown, publish, run_process

EngineName = Literal["auto", "casadi"]
ENGINES: tuple[EngineName, ...] = get_args(EngineName)


def least(function: Callable[[], object], repeats: int) -> float:
    """Return the least CPU time of a function, in milliseconds."""
    times = []
    for _ in range(repeats):
        began = time.process_time()
        function()
        times.append(time.process_time() - began)
    return 1e3 * min(times)


def measure(
    source: str, engine: EngineName, tolerance: float, repeats: int
) -> dict[str, float | str]:
    """Time one model by one engine."""
    began = time.perf_counter()
    import odefit
    from odefit.problem import problem_from_mapping
    from odefit.simulation import Evaluation
    from odefit.simulation.evaluation import CostGradient

    if source.endswith(".json"):
        problem = problem_from_mapping(json.loads(Path(source).read_text(encoding="utf-8")))
        guesses = {
            u.name: 1.0 if u.parameter.guess is None else u.parameter.guess
            for u in problem.unknowns
        }
        vector = np.array([guesses[u.name] for u in problem.unknowns])
    else:
        problem = odefit.library.load(source)
        reference = odefit.library.reference(source)
        vector = problem.vector({**reference.parameters, **reference.initial})
    forward = odefit.ForwardMap(problem, engine, tolerance)
    found = forward.evaluate(vector)
    first = time.perf_counter() - began
    if not isinstance(found, Evaluation):
        return {"failure": str(found)}
    choice = found.choice
    forward.evaluate_cost(vector, choice)
    own = forward.gradient(vector, choice)
    if not isinstance(own, CostGradient):
        return {"failure": str(own)}
    units = np.where(vector == 0.0, 1.0, np.abs(vector))
    parts = found.residuals[:, None] * found.jacobian * units
    difference = float(np.abs(own.gradient * units - parts.sum(axis=0)).max())
    size = float(np.abs(parts).sum(axis=0).max())
    return {
        "states": len(forward.field.states),
        "unknowns": len(problem.unknowns),
        "conditions": len(problem.conditions),
        "first": first,
        "cost": least(lambda: forward.evaluate_cost(vector, choice), repeats),
        "sensitivities": least(lambda: forward.evaluate(vector, choice), repeats),
        "gradient": least(lambda: forward.gradient(vector, choice), repeats),
        "adjoint": own.adjoint,
        "difference": difference / size if size > 0 else 0.0,
        "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6,
    }


def child(source: str, engine: str, options: argparse.Namespace) -> dict[str, float | str]:
    """Time one model by one engine in a process of its own."""
    command = [sys.executable, __file__, "--child", source, engine]
    command += [str(options.tolerance), str(options.repeats)]
    finished: Finished = run_process(command, options.limit)
    if finished.status is None:
        return {"failure": f"more than {options.limit:g} s"}
    if finished.status:
        return {"failure": finished.errors.strip().splitlines()[-1]}
    result: dict[str, float | str] = json.loads(finished.output)
    return result


def shortened(failure: str) -> str:
    """Return a failure as a table has room for it."""
    return failure if failure.startswith("more than") else "fails"


def main() -> None:
    """Time all models, and print the tables."""
    if len(sys.argv) > 1 and sys.argv[1] == "--child":
        source, engine, tolerance, repeats = sys.argv[2:]
        print(json.dumps(measure(source, cast(EngineName, engine), float(tolerance), int(repeats))))
        return
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--models", nargs="*", default=[])
    parser.add_argument("--tolerance", type=float, default=1e-8)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--limit", type=float, default=120.0)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    if options.folder is None:
        import odefit

        sources = {name: name for name in odefit.library.names()}
    else:
        sources = {
            path.stem.partition("_")[0]: str(path) for path in sorted(options.folder.glob("*.json"))
        }
    if options.models:
        sources = {k: v for k, v in sources.items() if any(m in k for m in options.models)}
    rows, faster, notes = [], [], []
    for name, source in sources.items():
        ours, theirs = (child(source, engine, options) for engine in ENGINES)
        if "failure" in ours:
            rows.append([name, str(ours["failure"]), *[""] * 11])
            continue
        cost = float(ours["cost"])
        row = [name, f"{ours['states']}, {ours['unknowns']}, {ours['conditions']}"]
        row += [f"{float(ours['first']):.2f}", f"{cost:.2f}"]
        for key in ("sensitivities", "gradient"):
            row += [f"{float(ours[key]):.2f}", f"{float(ours[key]) / cost:.1f}"]
        row += [f"{float(ours['difference']):.0e}" if ours["adjoint"] else "sensitivities"]
        row += [f"{float(ours['memory']):.2f}"]
        if "failure" in theirs:
            row += [shortened(str(theirs["failure"])), "", ""]
            notes.append(f"{name}, CVODES: {theirs['failure']}.")
        else:
            taken = float(theirs["sensitivities"])
            faster.append(taken / float(ours["sensitivities"]))
            row += [f"{float(theirs['cost']):.2f}", f"{taken:.2f}", f"{faster[-1]:.1f}"]
        rows.append(row)
    header = ["model", "states, unknowns, conditions", "first, s", "cost, ms", "sensitivities, ms"]
    header += ["/ cost", "gradient, ms", "gradient / cost", "difference", "memory, GB"]
    header += ["CVODES cost, ms", "CVODES sensitivities, ms", "faster"]
    table = markdown(header, rows)
    text = f"{machine()}\n\n{table}"
    if faster:
        mean = math.exp(float(np.mean(np.log(faster))))
        text += f"\n\nSensitivities are {mean:.1f} times faster than CVODES' in the geometric mean."
    publish("\n\n".join([text, *notes]), options.out)


if __name__ == "__main__":
    main()
