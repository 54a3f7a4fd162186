"""Cost and gradient of stiff and larger models, by odefit's engine and by CasADi's CVODES.

`folder` holds problems as JSON mappings that `odefit.problem.problem_from_mapping` reads, with the
values at which they are timed as guesses; without it, the library's problems are timed at their
references. Each model and engine is a separate process, on one core. "First" is the time from the
file to the first sensitivities, imports included; compiled kernels are on disk. The others are the
smallest CPU times of the repeats: "cost" of `evaluate_cost`, "sensitivities" of `evaluate`, which
computes residuals with their Jacobian, and "gradient" of `gradient`, which computes the gradient of
the cost alone. The gradient is by the adjoint where that pays, and is marked "sensitivities"
otherwise. "Difference" is that of the two gradients, the largest over the unknowns, in units of
each. It is relative to the largest sum of absolute terms of a derivative, because the terms almost
cancel at an optimum.
"""

from __future__ import annotations

import json
import math
import resource
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast, get_args

import numpy as np

from evidence.running.campaign import Option, Record, Task, tasks_of
from evidence.running.measuring import guesses, last_json, problem_named, run_process
from evidence.running.output import listed

if TYPE_CHECKING:
    import pandas as pd

EngineName = Literal["auto", "casadi"]
ENGINES: tuple[EngineName, ...] = get_args(EngineName)


def least(function: Callable[[], object], repeats: int) -> float:
    """Return the smallest CPU time of a function, in milliseconds."""
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
    from odefit.simulation import Evaluation
    from odefit.simulation.evaluation import CostGradient

    problem = problem_named(source)
    vector = np.array(list(guesses(problem).values()))
    if not source.endswith(".json"):
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


def child(source: str, engine: str, options: Task) -> dict[str, float | str]:
    """Time one model by one engine in a separate process."""
    code = "import sys; from evidence.speed.stiff import printed; printed(*sys.argv[1:])"
    command = [sys.executable, "-c", code, source, engine]
    command += [str(options["tolerance"]), str(options["repeats"])]
    finished = run_process(command, options["limit"])
    if finished.status is None:
        return {"failure": f"more than {options['limit']:g} s"}
    if finished.status:
        return {"failure": finished.errors.strip().splitlines()[-1]}
    return last_json(finished)


def shortened(failure: str) -> str:
    return failure if failure.startswith("more than") else "fails"


def printed(source: str, engine: str, tolerance: str, repeats: str) -> None:
    """Time one model, and print the measurements as JSON, in a child process."""
    found = measure(source, cast(EngineName, engine), float(tolerance), int(repeats))
    sys.stdout.write(json.dumps(found) + "\n")


HEAD = (
    *("model", "states, unknowns, conditions", "first, s", "cost, ms", "sensitivities, ms"),
    *("/ cost", "gradient, ms", "gradient / cost", "difference", "memory, GB"),
    *("CVODES cost, ms", "CVODES sensitivities, ms", "faster"),
)
OPTIONS = (
    Option("folder", "", "folder of problems as JSON; without it the library is timed"),
    Option("models", (), "parts of names of models, e.g. Bachmann"),
    Option("tolerance", 1e-8, "relative tolerance", above=0),
    Option("repeats", 5, "runs of which the least counts", least=1),
    Option("limit", 120.0, "seconds of a process", above=0),
)


def tasks(folder: str, models: Sequence[str], **options: Any) -> list[Task]:
    from odefit import library

    sources = [str(p) for p in sorted(Path(folder).glob("*.json"))] if folder else library.names()
    chosen = [s for s in sources if not models or any(m in Path(s).stem for m in models)]
    return tasks_of("source", chosen, **options)


def run(task: Task) -> dict[str, Any]:
    """Time one model by both engines."""
    return {engine: child(task["source"], engine, task) for engine in ENGINES}


def tables(records: Sequence[Record]) -> Mapping[str, pd.DataFrame]:
    rows, faster, notes = [], [], []
    for record in records:
        if record.result is None:
            continue
        name = Path(record.task["source"]).stem.partition("_")[0]
        ours, theirs = (record.result[engine] for engine in ENGINES)
        if "failure" in ours:
            rows.append([name, str(ours["failure"])])
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
    if faster:
        mean = math.exp(float(np.mean(np.log(faster))))
        said = f"Sensitivities are {mean:.1f} times faster than CVODES' in the geometric mean."
        notes.insert(0, said)
    return {"stiff": listed(HEAD, rows, *notes)}
