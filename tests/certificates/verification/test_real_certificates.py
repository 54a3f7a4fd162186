"""Certificates of problems people have are proved again whole, and forgeries of them rejected."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("flint", reason="the extra odefit[certificates] is not installed")

from loky import ProcessPoolExecutor

import odefit
from evidence.bounds.textbook import SYSTEMS
from evidence.zoo.drawing import sampled
from odefit import BranchAndBound, Problem
from odefit.certificates.document import read_document
from odefit.certificates.statement import statement_of
from odefit.certificates.verification.verification import Finding, verify_document
from odefit.problem import problem_from_mapping
from tests.certificates.verification.test_verification import TAMPERINGS, _file
from tests.methods.branch_and_bound.test_likelihoods import CASES

TEXTBOOK = ("saturable-elimination", "harmonic")
LIKELIHOODS = ("Poisson", "Huber", "Laplace", "gamma prior", "censored", "epidemic")


def problem_of(name: str) -> Problem:
    if name in LIKELIHOODS:
        return CASES[name][0]
    return problem_from_mapping(sampled(name, SYSTEMS[name], 0).mapping)


def _other_data(forged: dict[str, Any], rng: np.random.Generator) -> None:
    for entry in forged["statement"]["conditions"][0]["data"]:
        far = 3 * entry.get("sd", 1 + 0.3 * entry["value"])
        entry["value"] += far if "sd" not in entry else far * rng.choice([-1, 1])


@pytest.mark.slow
@pytest.mark.parametrize("name", [*TEXTBOOK, *LIKELIHOODS])
def test_whole_certificates_pass_and_forgeries_fail(name: str, tmp_path: Path) -> None:
    problem, path = problem_of(name), tmp_path / "certificate.json"
    method = BranchAndBound(gap=0.01, starts=2, certificate=path)
    odefit.fit(problem, method, seed=1, jobs=1)
    document = read_document(path)
    assert document.lower >= 0.98 * document.upper
    assert verify_document(document, statement_of(problem)).finding is Finding.HOLDS
    right = json.loads(path.read_text(encoding="utf-8"))
    assert right["version"] == (2 if name in LIKELIHOODS else 1)
    for seed, tampering in enumerate(TAMPERINGS):
        forged = json.loads(json.dumps(right))
        change = _other_data if tampering.__name__ == "_other_data" else tampering
        change(forged, np.random.default_rng(seed))
        verdict = verify_document(_file(forged, tmp_path / "forged.json"))
        assert not verdict.holds, tampering.__name__
        assert verdict.finding not in (Finding.CHANGED, Finding.OTHER_STATEMENT)


@pytest.mark.slow
def test_processes_give_the_same_verdict(tmp_path: Path) -> None:
    path = tmp_path / "certificate.json"
    method = BranchAndBound(gap=0.01, starts=2, certificate=path)
    odefit.fit(problem_of("Poisson"), method, seed=1, jobs=1)
    document = read_document(path)
    right = json.loads(path.read_text(encoding="utf-8"))
    right["lower"] = right["upper"] * 1.01
    for leaf in right["leaves"]:
        leaf["bound"] = max(leaf["bound"], right["lower"])
    forged = _file(right, tmp_path / "forged.json")
    pool = ProcessPoolExecutor(2)
    try:
        for one in (document, forged):
            assert verify_document(one, executor=pool) == verify_document(one)
    finally:
        pool.shutdown(kill_workers=True)
