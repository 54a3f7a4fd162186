"""Whatever is in the files of a PEtab problem, it gives a problem or an InputError.

``ODEFIT_MUTATIONS=2000 python -m pytest tests/formats/petab/test_mutations.py`` makes that many.
"""

from __future__ import annotations

import os
import random
import shutil
from contextlib import suppress
from pathlib import Path

import pytest

import odefit
from petab_judge import Fingerprint, outcome, unmutated
from petab_mutations import Expectation, Mutation, Original, mutations, originals, reorder

SUITE = Path(__file__).parents[2] / "data" / "petab" / "suite"
COUNT = int(os.environ.get("ODEFIT_MUTATIONS", "150"))


def problems() -> list[Original]:
    return [original for version in ("v1", "v2") for original in originals(SUITE / version)]


@pytest.mark.parametrize("count", [min(40, COUNT), pytest.param(COUNT, marks=pytest.mark.slow)])
def test_every_mutation_is_reported_without_a_traceback(count: int, tmp_path: Path) -> None:
    pytest.importorskip("yaml")
    first: dict[int, Fingerprint] = {}
    given = []
    for original in problems():
        with suppress(odefit.InputError):  # test_conformity.py says which should be read
            first[id(original)] = unmutated(original, tmp_path)
            given.append(original)
    assert len(given) >= 50
    faults = []
    verdicts = set()
    for original, mutation in mutations(given, count, seed=7):
        found = outcome(mutation, original.main, first[id(original)], tmp_path)
        verdicts.add(found.verdict)
        if found.verdict == "fault":
            faults.append(f"{original.main}, {mutation.kind}, {mutation.detail}: {found.text}")
    assert not faults, "\n".join(faults)
    assert verdicts >= {"refused", "changed", "same"}


def judged(original: Original, mutation: Mutation, folder: Path) -> str:
    return outcome(mutation, original.main, unmutated(original, folder), folder).verdict


def test_the_judge_detects_unnoticed_errors(tmp_path: Path) -> None:
    original = problems()[0]
    reordered = reorder(original, random.Random(1))
    assert judged(original, reordered, tmp_path) == "same"
    expectations: tuple[Expectation, ...] = ("noticed", "refused")
    for expected in expectations:
        silent = Mutation("", "", reordered.files, expected)
        assert judged(original, silent, tmp_path) == "fault"
    name = next(n for n in original.files if "measurements" in n)
    other = original.files[name].replace("0.1", "0.3").replace("0.7", "0.9")
    changed = Mutation("", "", {**original.files, name: other}, "same")
    assert judged(original, changed, tmp_path) == "fault"


def broken(tmp_path: Path, case: str, file: str, old: str, new: str) -> str:
    """The message about a case of the suite in which a text is replaced."""
    folder = tmp_path / "case"
    shutil.copytree(SUITE / case, folder)
    text = (folder / file).read_text(encoding="utf-8")
    assert old in text
    (folder / file).write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(odefit.InputError) as caught:
        odefit.load(folder / f"_{case[-4:]}.yaml")
    return str(caught.value)


@pytest.mark.parametrize(
    ("case", "file", "old", "new", "message"),
    [
        ("v1/0001", "_0001.yaml", "parameter_file: _parameters.tsv",
         "parameter_file: _parameters.tsv\nparameter_file: others.tsv",
         "line 3: the key 'parameter_file' occurs twice"),
        ("v1/0001", "_0001.yaml", "format_version: 1", "format_version: 3",
         "_0001.yaml: format_version: odefit reads PEtab versions 1 and 2"),
        ("v2/0001", "_0001.yaml", "location: _model.xml", "location: []",
         "_0001.yaml: model_files, model_0, location: expected one file, got 0"),
        ("v2/0022", "_mapping.tsv", "condition2\t", "condition2\t\tname\ncondition2\t",
         "petabEntityId 'condition2' occurs twice"),
    ],
)  # fmt: skip
def test_faults_that_mutations_revealed_are_refused(
    tmp_path: Path, case: str, file: str, old: str, new: str, message: str
) -> None:
    assert message in broken(tmp_path, case, file, old, new)
