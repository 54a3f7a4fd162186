"""Certificates are proved again if they are right, and rejected with the place if not."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("flint", reason="the extra odefit[certificates] is not installed")

from odefit.certificates.document import Document, Leaves, read_document
from odefit.certificates.statement import fingerprint_of, statement_of
from odefit.certificates.verification.verification import Finding, verify_document
from odefit.methods.branch_and_bound import tree
from odefit.methods.branch_and_bound.node_evaluator import ResidualEnclosure
from odefit.methods.branch_and_bound.sharpening import Sharpening
from tests.certificates.problems import certificate, oscillator, quadratic, ten

Tampering = Callable[[dict[str, Any], np.random.Generator], None]


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> Document:
    return certificate(quadratic(), tmp_path_factory.mktemp("certificate"))


@pytest.mark.slow
def test_a_certificate_of_the_search_holds(document: Document) -> None:
    verdict = verify_document(document, statement_of(quadratic()))
    assert verdict.finding is Finding.HOLDS
    assert verdict.boxes >= verdict.leaves > 10
    assert 0.97 * document.upper < document.lower < document.upper


@pytest.mark.slow
def test_the_lower_bound_cannot_be_raised_above_the_optimum(document: Document) -> None:
    leaves = replace(document.leaves, bounds=np.maximum(document.leaves.bounds, document.upper))
    raised = replace(document, lower=document.upper * 1.001, leaves=leaves)
    assert verify_document(raised).finding is Finding.BELOW
    leaves = replace(leaves, bounds=np.maximum(leaves.bounds, document.upper * 1.001))
    verdict = verify_document(replace(raised, leaves=leaves))
    assert verdict.finding is Finding.REFUTED
    assert verdict.leaf is not None


def test_a_missing_leaf_is_noticed(document: Document) -> None:
    few = document.leaves
    kept = np.arange(len(few.bounds)) != 5
    reasons = [r for r, k in zip(few.reasons, kept, strict=True) if k]
    leaves = Leaves(few.lower[kept], few.upper[kept], few.bounds[kept], reasons)
    verdict = verify_document(replace(document, leaves=leaves))
    assert verdict.finding is Finding.UNCOVERED
    assert verdict.place is not None
    for k, (low, high) in enumerate(verdict.place.values()):
        assert few.lower[5][k] <= low < high <= few.upper[5][k]


def test_other_data_are_another_problem(document: Document) -> None:
    statement = json.loads(json.dumps(statement_of(quadratic())))
    statement["conditions"][0]["data"][0]["value"] += 1e-9
    assert verify_document(document, statement).finding is Finding.OTHER_PROBLEM
    changed = replace(document, statement=statement)
    assert verify_document(changed).finding is Finding.OTHER_STATEMENT


def test_an_upper_bound_that_is_not_reached_is_noticed(document: Document) -> None:
    low = replace(document, upper=document.upper * 0.999)
    assert verify_document(low).finding is Finding.INCUMBENT


def _file(found: dict[str, Any], path: Path) -> Document:
    """Write a file as a forger would, with fingerprint and digest made to match."""
    found.pop("digest")
    found["fingerprint"] = fingerprint_of(found["statement"])
    path.write_text(json.dumps(found | {"digest": fingerprint_of(found)}), encoding="utf-8")
    return read_document(path)


def _leaf(found: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    leaf: dict[str, Any] = found["leaves"][rng.integers(len(found["leaves"]))]
    return leaf


def _remove(found: dict[str, Any], rng: np.random.Generator) -> None:
    found["leaves"].remove(_leaf(found, rng))


def _shrink(found: dict[str, Any], rng: np.random.Generator) -> None:
    leaf = _leaf(found, rng)
    k = rng.integers(len(leaf["box"]))
    low, high = leaf["box"][k]
    leaf["box"][k] = [low + 0.1 * (high - low), high]


def _move(found: dict[str, Any], rng: np.random.Generator) -> None:
    leaf = _leaf(found, rng)
    k = rng.integers(len(leaf["box"]))
    low, high = leaf["box"][k]
    leaf["box"][k] = [low + 0.3 * (high - low), high + 0.3 * (high - low)]


def _raise_all(found: dict[str, Any], rng: np.random.Generator) -> None:
    found["lower"] = found["upper"] * (1.001 + rng.random())
    for leaf in found["leaves"]:
        leaf["bound"] = max(leaf["bound"], found["lower"])


def _raise_cut(found: dict[str, Any], rng: np.random.Generator) -> None:
    found["lower"] = found["upper"] * (1 - 1e-3 * rng.random())


def _lower_upper(found: dict[str, Any], rng: np.random.Generator) -> None:
    found["upper"] *= 1 - 0.01 * (0.1 + rng.random())


def _lower_bound(found: dict[str, Any], rng: np.random.Generator) -> None:
    _leaf(found, rng)["bound"] = found["lower"] * rng.random()


def _other_data(found: dict[str, Any], rng: np.random.Generator) -> None:
    for entry in found["statement"]["conditions"][0]["data"]:
        entry["value"] += 3 * entry["sd"] * rng.choice([-1, 1])


def _move_incumbent(found: dict[str, Any], rng: np.random.Generator) -> None:
    unknown = found["statement"]["unknowns"][0]
    found["incumbent"][0] = unknown["lower"] + rng.random() * 0.05 * unknown["upper"]


def _wider_bounds(found: dict[str, Any], rng: np.random.Generator) -> None:
    found["statement"]["unknowns"][0]["upper"] *= 1 + rng.random()


TAMPERINGS: tuple[Tampering, ...] = (
    _remove,
    _shrink,
    _move,
    _raise_all,
    _raise_cut,
    _lower_upper,
    _lower_bound,
    _other_data,
    _move_incumbent,
    _wider_bounds,
)


@pytest.mark.slow
@pytest.mark.parametrize("name", list(ten()))
def test_ten_certificates_pass_and_a_hundred_forgeries_fail(name: str, tmp_path: Path) -> None:
    problem = ten()[name]
    document = certificate(problem, tmp_path)
    assert verify_document(document, statement_of(problem)).finding is Finding.HOLDS
    right = json.loads((tmp_path / "certificate.json").read_text(encoding="utf-8"))
    for seed, tampering in enumerate(TAMPERINGS):
        forged = json.loads(json.dumps(right))
        tampering(forged, np.random.default_rng(seed))
        verdict = verify_document(_file(forged, tmp_path / "forged.json"))
        assert not verdict.holds, tampering.__name__
        assert verdict.finding not in (Finding.CHANGED, Finding.OTHER_STATEMENT)


@pytest.mark.slow
@pytest.mark.parametrize("level", [0, 2])
def test_a_certificate_of_an_oscillator_passes_at_any_sharpness_and_forgeries_fail(
    level: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Sharp(Sharpening):
        """Enclosures that are as sharp from the first box on as those of a long search."""

        def __init__(self, enclosure: ResidualEnclosure) -> None:
            super().__init__(enclosure)
            self.level = level

    monkeypatch.setattr(tree, "Sharpening", Sharp)
    problem = oscillator("van-der-pol")
    document = certificate(problem, tmp_path)
    assert document.lower > 0.97 * document.upper
    assert verify_document(document, statement_of(problem)).finding is Finding.HOLDS
    right = json.loads((tmp_path / "certificate.json").read_text(encoding="utf-8"))
    for seed, tampering in enumerate((_remove, _raise_all, _lower_upper, _move_incumbent)):
        forged = json.loads(json.dumps(right))
        tampering(forged, np.random.default_rng(seed))
        assert not verify_document(_file(forged, tmp_path / "forged.json")).holds, tampering


def test_a_file_that_was_edited_is_not_intact(document: Document, tmp_path: Path) -> None:
    path = tmp_path / "edited.json"
    document.write(path)
    assert read_document(path).intact
    path.write_text(
        path.read_text(encoding="utf-8").replace('"reason":"contracted"', '"reason":"bounded"', 1),
        encoding="utf-8",
    )
    assert verify_document(read_document(path)).finding is Finding.CHANGED
