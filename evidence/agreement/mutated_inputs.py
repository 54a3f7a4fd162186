"""Mutated inputs: changed files of every kind are refused in a sentence, or are usable problems.

``tools/mutated_inputs.py`` changes the files, reads each as users do, and calls a fault whatever is
neither a refusal nor a problem with a possible meaning. A task is a kind of files.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from evidence.running.campaign import Option, Record, Task, tasks_of

TOOL = Path(__file__).parents[2] / "tools" / "mutated_inputs.py"
KINDS = (
    *("problem", "table", "doses", "check", "new", "guesses", "petab", "sbml", "antimony"),
    *("result", "checkpoint", "cache"),
)
ENDS = {"refused": "refused", "same": "same problem", "another": "another problem"}

OPTIONS = (
    Option("count", 400, "number of files of each kind", least=1),
    Option("seed", 1, "seed of the mutations", least=0),
)


def tasks(count: int, seed: int) -> list[Task]:
    return tasks_of("kind", KINDS, count=count, seed=seed)


def run(task: Task) -> Mapping[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "outcomes.json"
        options = [f"--{name}={task[name]}" for name in ("count", "seed")]
        command = [sys.executable, str(TOOL), f"--kinds={task['kind']}", f"--json={file}", *options]
        subprocess.run(command, stdout=subprocess.DEVNULL, check=False)  # status 1 for faults
        (found,) = json.loads(file.read_text(encoding="utf-8")).values()
    counts = Counter(verdict for _, verdict, *_ in found)
    return {
        **{name: counts.pop(name, 0) for name in ENDS},
        "faults": dict(counts),
        "memory": max(memory for *_, memory, _ in found),
        "seconds": max(seconds for *_, seconds in found),
    }


def tables(records: Sequence[Record]) -> dict[str, pd.DataFrame]:
    rows = []
    for record in records:
        found = record.result
        if found is None:
            rows.append({"kind of file": record.task["kind"], "faults": record.outcome})
            continue
        ends = {title: found[name] for name, title in ENDS.items()}
        rows.append(
            {
                "kind of file": record.task["kind"],
                "files": sum(ends.values()) + sum(found["faults"].values()),
                **ends,
                "faults": ", ".join(f"{n} {kind}" for kind, n in found["faults"].items()) or "0",
                "slowest, s": round(found["seconds"], 1),
                "most memory, MB": round(found["memory"] / 1e6),
            }
        )
    return {"mutated": pd.DataFrame(rows)}
