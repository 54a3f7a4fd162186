"""The same problems in other guises: their answers must be the same.

Problems of the library, of the published estimates, of the zoo and of a folder of PEtab problems
are fitted by the default method. Each is fitted as it is and in each guise of `guises.py`. The
answer in a guise is brought back to the plain problem and compared: status, objective, estimates,
standard errors, the notes on each unknown, and the processor time, which may be twice that of the
plain problem. How many random starts a fit takes is chance: if only its time differs, both are
fitted from further seeds, and the median times count. A task is a problem in a guise from a seed;
a process fits the plain problem once.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pandas as pd

import odefit
from evidence.agreement.guises import GUISES, Guise, NotSoError
from evidence.published import estimates
from evidence.running.campaign import Option, Record, Task
from evidence.zoo.drawing import BLOCKS, drawn
from odefit import library
from odefit.problem import problem_from_mapping, problem_to_mapping

SAME_OBJECTIVE = 1e-5  # relative difference of objectives that is ignored
SAME_ESTIMATE = 0.05  # difference of an estimate, in standard errors, that is ignored
SAME_ERROR = 0.02  # relative difference of standard errors that is ignored
EXACT = 1e-6  # residuals, relative to the data, below which the data are without noise
LONGER = 2.0  # a fit in a guise may take this multiple of the plain problem's processor time,
SECONDS = 1.0  # and so many seconds more
FURTHER_SEEDS = 2  # seeds from which fits are repeated of which only the time differs
SHOWN = 3  # differences of a fit that its row shows
SOURCES = ("library", "published", "zoo", "petab")

OPTIONS = (
    Option("sources", SOURCES, f"which problems, of {','.join(SOURCES)}", SOURCES),
    Option("problems", (), "problems by name, all if none is named, e.g. sir,Rat43,zoo-17"),
    Option("guises", tuple(GUISES), "guises by name", GUISES),
    Option("seeds", 1, "seeds of each", least=1),
    Option("folder", "", "folder of PEtab problems as NAME.json; without it none"),
    Option("limit", 60.0, "time limit of a fit in seconds", above=0),
)


def tasks(
    sources: Sequence[str],
    problems: Sequence[str],
    guises: Sequence[str],
    seeds: int,
    folder: str,
    limit: float,
) -> list[Task]:
    known = {
        "library": library.names(),
        "published": list(estimates.PROBLEMS),
        "zoo": [f"zoo-{k}" for k in range(len(BLOCKS))],
        "petab": sorted(p.stem for p in Path(folder).glob("*.json")) if folder else [],
    }
    return [
        {
            "key": f"{source}, {name}, {guise}, seed {seed}",
            "source": source,
            "problem": name,
            "guise": guise,
            "seed": seed,
            "limit": limit,
            **({"folder": folder} if source == "petab" else {}),
        }
        for seed in range(seeds)
        for source in sources
        for name in known[source]
        if not problems or name in problems
        for guise in guises
    ]


def plain_problem(source: str, name: str, folder: str = "") -> Mapping[str, Any]:
    """Return a problem as it is, in format 1."""
    if source == "library":
        return problem_to_mapping(library.load(name))
    if source == "zoo":
        given = drawn(int(name.removeprefix("zoo-"))).mapping
    elif source == "published":
        given = estimates.mapping(name)
    else:
        given = json.loads((Path(folder) / f"{name}.json").read_text(encoding="utf-8"))
    return problem_to_mapping(problem_from_mapping(given))


def run(task: Task) -> dict[str, Any]:
    """Return the differences of a problem in a guise, or why the guise does not apply."""
    chosen = task["source"], task["problem"], task.get("folder", "")
    plain = plain_problem(*chosen)
    words = f"{task['problem']} {task['guise']} {task['seed']}"
    try:
        guise = GUISES[task["guise"]](plain, np.random.default_rng(crc32(words.encode())))
    except NotSoError as error:
        return {"not so": str(error)}
    known = _plain_answer(*chosen, task["seed"], task["limit"])
    keys = list(problem_from_mapping(plain).keys)
    here = answer(guise, task["seed"], task["limit"], keys)
    entry = estimates.PROBLEMS.get(task["problem"], {})
    told = [differences(known, _exchanged(here, names)) for names in estimates.renamings(entry)]
    differs = min(told, key=len)
    found: dict[str, Any] = {"differs": differs, "plain": known, "guise": here}
    if not differs or differs != slower(known["processor"], here["processor"]):
        return found
    seeds = [task["seed"] + k for k in range(1, 1 + FURTHER_SEEDS)]
    times: dict[str, list[Mapping[str, Any]]] = {
        "plain": [known, *(_plain_answer(*chosen, seed, task["limit"]) for seed in seeds)],
        "guise": [here, *(answer(guise, seed, task["limit"], keys) for seed in seeds)],
    }
    seconds = {kind: [a["processor"] for a in answers] for kind, answers in times.items()}
    differs = slower(*(float(np.median(seconds[kind])) for kind in ("plain", "guise")))
    return {**found, "differs": differs, "seconds": seconds}


def _exchanged(answer: Mapping[str, Any], names: Mapping[str, str | None]) -> dict[str, Any]:
    """Return an answer with equal terms exchanged."""
    found = {**answer, "free": [k for k, v in names.items() if v is None]}
    for part in ("estimates", "errors", "trouble"):
        if part in answer:
            keys = {k: names.get(k, k) for k in answer[part]}
            found[part] = {k: answer[part][v] for k, v in keys.items() if v in answer[part]}
    return found


@lru_cache(maxsize=4)
def _plain_answer(
    source: str, name: str, folder: str, seed: int, limit: float
) -> Mapping[str, Any]:
    return answer(Guise(plain_problem(source, name, folder)), seed, limit)


def answer(
    guise: Guise, seed: int = 1, limit: float = 60.0, plain_keys: Sequence[str] = ()
) -> dict[str, Any]:
    """Fit a problem, and return its answer brought back to the plain one, by plain keys.

    ``status``, ``objective``, ``estimates``, ``others`` (solutions as good), ``errors``,
    ``trouble`` of unknowns in words, ``exact`` (the data have no noise), ``processor`` (seconds).
    """
    problem = problem_from_mapping(guise.mapping)
    began = time.process_time()
    result = odefit.fit(problem, seed=seed, jobs=1, time_limit=limit)
    told: dict[str, Any] = {"status": result.status.value, "message": result.message}
    told["processor"] = time.process_time() - began
    if not result.solutions:
        return told
    keys = dict(zip(problem.keys, plain_keys, strict=True)) if guise.ordered else {}
    keys = {k: keys.get(k, _plain_key(k, guise)) for k in problem.keys}
    units = {k: guise.units.get(plain.partition("[")[0], 1.0) for k, plain in keys.items()}
    told["objective"] = result.objective / guise.objective
    shifts = {k: guise.shifts.get(plain.partition("[")[0], 0.0) for k, plain in keys.items()}
    told["estimates"], *told["others"] = [
        {
            keys[k]: v / units[k] - shifts[k]
            for k, v in zip(problem.keys, one.vector.tolist(), strict=True)
        }
        for one in result.solutions
        if one.objective <= (1 + SAME_OBJECTIVE) * result.objective
    ]
    squares = sum(float(s.values @ s.values) for c in problem.conditions for s in c.series.values())
    told["exact"] = not problem.noise and result.objective <= EXACT**2 * squares
    found = result.uncertainty
    if found is not None:
        errors = zip(problem.keys, found.standard_errors.tolist(), strict=True)
        told["errors"] = {keys[k]: v / abs(units[k]) for k, v in errors}
        told["trouble"] = {
            keys[k]: str(v) for k, v in found.trouble.items() if str(v) != "not linear"
        }
    return told


def _plain_key(key: str, guise: Guise) -> str:
    name, bracket, rest = key.partition("[")
    stem = name.removesuffix("_sd")
    if name not in guise.names and stem in guise.names:
        return f"{guise.names[stem]}_sd{bracket}{rest}"
    return guise.names.get(name, name) + bracket + rest


def slower(plain: float, other: float) -> list[str]:
    """Return the difference of the processor times of two fits in seconds, if it is one."""
    if other <= LONGER * plain + SECONDS:
        return []
    return [f"{other:.1f} s instead of {plain:.1f} s"]


def differences(plain: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """Return the differences between the answers to a plain problem and to its guise."""
    found = []
    if plain["status"] != other["status"]:
        found.append(f"{other['status']} instead of {plain['status']}")
    found += slower(plain["processor"], other["processor"])
    if "estimates" not in plain or "estimates" not in other:
        return found
    exact = plain["exact"] and other["exact"]
    known, here = plain["objective"], other["objective"]
    if not exact and abs(here - known) > SAME_OBJECTIVE * abs(known):
        found.append(f"objective {here:.7g} instead of {known:.7g}")
    trouble, own = plain.get("trouble", {}), other.get("trouble", {})
    found += [
        f"{key} {own.get(key)} instead of {trouble.get(key)}"
        for key in {**trouble, **own}
        if trouble.get(key) != own.get(key)
    ]
    if exact:
        return found  # the rest is rounding
    errors, spreads = plain.get("errors", {}), other.get("errors", {})
    left = {*trouble, *own, *other.get("free", ())}
    keys = [k for k in errors if math.isfinite(errors[k]) and k not in left]
    if missing := [k for k in keys if k not in other["estimates"]]:
        return [*found, f"nothing of {', '.join(missing)}"]

    def moved(estimates: Mapping[str, float]) -> list[str]:
        return [
            f"{k} = {estimates[k]:.6g} instead of {value:.6g}"
            for k in keys
            if abs(estimates[k] - (value := plain["estimates"][k]))
            > SAME_ESTIMATE * errors[k] + 1e-9 * abs(value)
        ]

    told = moved(other["estimates"])
    if told and not all(map(moved, other["others"])):
        return found  # another solution that fits as well equals that of the plain problem
    told += [
        f"error of {k} {spreads.get(k, math.nan):.3g} instead of {errors[k]:.3g}"
        for k in keys
        if not abs(spreads.get(k, math.nan) - errors[k]) <= SAME_ERROR * errors[k]
    ]
    return found + told


def tables(records: Sequence[Record]) -> Mapping[str, pd.DataFrame]:
    """Return per cent by source and by guise, and the failures by name."""
    rows = []
    for record in records:
        task, result = record.task, record.result
        if result is not None and "not so" in result:
            continue
        told = result["differs"] if result else [f"{record.outcome}: {record.reason}"]
        more = [f"{len(told) - SHOWN} more"] if len(told) > SHOWN else []
        rows.append(
            {
                **{k: task[k] for k in ("source", "problem", "guise", "seed")},
                "same": not told,
                "differs": "; ".join([*told[:SHOWN], *more]),
            }
        )
    if not rows:
        return {}
    runs = pd.DataFrame(rows)

    def counted(by: str) -> pd.DataFrame:
        table = runs.groupby(by, sort=False).agg(fits=("same", "size"), same=("same", "sum"))
        table["%"] = (100 * table["same"] / table["fits"]).round(2)
        return table.reset_index()

    runs["all"] = "all"
    total = counted("all").rename(columns={"all": "source"})
    return {
        "metamorphic": pd.concat([counted("source"), total]),
        "guises": counted("guise"),
        "failures": runs[~runs["same"]].drop(columns=["same", "all"]),
    }
