"""PEtab problems, mutated by their grammar, by bytes, and by the files that they name."""

from __future__ import annotations

import contextlib
import json
import random
from pathlib import Path
from typing import Any

import odefit
from input_kinds import (
    LARGE,
    TESTS,
    Case,
    WrongSuccessError,
)
from input_mutations import (
    PLACES,
    mutated_bytes,
)


def prepare_petab(folder: Path) -> list[tuple[Any, Any]]:
    """Return problems of the test suite with their fingerprints."""
    from petab_judge import unmutated
    from petab_mutations import originals

    suite = TESTS / "data" / "petab" / "suite"
    found = []
    for version in ("v1", "v2"):
        for original in originals(suite / version):
            with contextlib.suppress(odefit.InputError):  # see test_conformity.py
                found.append((original, unmutated(original, folder)))
    return found


def petab_case(given: list[tuple[Any, Any]], rng: random.Random, folder: Path) -> Case:
    """Change a PEtab problem: by its grammar, by bytes, or by the files that it names."""
    from petab_judge import outcome
    from petab_mutations import MUTATIONS, Mutation

    original, first = rng.choice(given)
    how = rng.choice(("grammar", "grammar", "grammar", "bytes", "place"))
    how = "bomb" if rng.random() < LARGE else how
    files = dict(original.files)
    mutation: Mutation | None = None
    if how == "grammar":
        while mutation is None or mutation.files == original.files:
            mutation = rng.choice(MUTATIONS)(original, rng)
    elif how == "bytes":
        name = rng.choice([*files])
        raw, detail = mutated_bytes(files[name].encode(), rng)
        files[name] = raw.decode("utf-8", "replace")
        mutation = Mutation("bytes", f"{name}: {detail}", files, "any")
    elif how == "place":
        old = rng.choice([n for n in files if n != original.main])
        place = rng.choice([p for p in PLACES if p.isprintable()])
        files[original.main] = files[original.main].replace(old, json.dumps(place), 1)
        mutation = Mutation("place", f"{old} is {place[:40]}", files, "refused")
    else:
        text = files[original.main]
        laughs = "a0: &a0 x\n" + "".join(
            f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 10)
        )
        files[original.main] = rng.choice(
            (laughs + text, text + "\n" + "- " * 3000, text + "\nx: " + "[" * 3000,
             text + "#" * 1_100_000, "!!python/object/apply:os.system ['true']\n" + text,
             "%YAML 9.9\n---\n" + text, text + "\n---\n" + text, text + "\n? [a, b]\n: c\n",
             text.replace("1", "1" * 5000, 1), text + "\n<<: {format_version: 1}\n")
        )  # fmt: skip
        mutation = Mutation("bomb", original.name, files, "any")
    chosen = mutation

    def run() -> str:
        found = outcome(chosen, original.main, first, folder)
        if found.verdict == "refused":
            raise odefit.InputError(found.text)
        if found.verdict == "fault":
            raise WrongSuccessError(found.text)
        return found.verdict

    return Case(f"{original.name}, {chosen.kind}, {chosen.detail}", "any", run)
