"""The command ``odefit verify``."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("flint", reason="the extra odefit[certificates] is not installed")

from odefit import save
from odefit.certificates.statement import fingerprint_of
from odefit.cli.main import main
from tests.certificates.problems import quadratic, ten

STORED = Path(__file__).parents[1] / "data" / "certificate.json"
"""A certificate of a decay."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two problems, and the certificate of one."""
    folder = tmp_path_factory.mktemp("verify")
    save(quadratic(), folder / "a.toml")
    save(ten()["decay"], folder / "b.toml")
    arguments = ["--starts", "1", "--jobs", "1", "--set", "gap=0.02"]
    method = ["--method", "branch-and-bound", "--certificate", str(folder / "proof.json")]
    assert main(["fit", str(folder / "a.toml"), *method, *arguments]) == 0
    return folder


@pytest.mark.slow
def test_a_certificate_holds_for_its_problem_alone(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    proof = str(folder / "proof.json")
    assert main(["verify", proof, str(folder / "a.toml")]) == 0
    said = capsys.readouterr().out
    assert said.startswith("The certificate holds, for the given problem: no values")
    assert main(["verify", proof, str(folder / "b.toml")]) == 3
    assert "belongs to another problem than the given one" in capsys.readouterr().out


def test_the_first_leaf_that_does_not_hold_is_named(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = json.loads((folder / "proof.json").read_text(encoding="utf-8"))
    found.pop("digest")
    found["leaves"][3]["bound"] = 0.0
    path = tmp_path / "other.json"
    path.write_text(json.dumps(found | {"digest": fingerprint_of(found)}), encoding="utf-8")
    assert main(["verify", str(path)]) == 3
    said = capsys.readouterr().out
    assert "The certificate does not hold: leaf 4, k from" in said
    assert "has a bound below the lower bound" in said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "is not a JSON file"),
        ("{}", "is not a certificate; 'odefit fit PROBLEM --certificate FILE' writes one"),
        ('{"format": "odefit certificate", "version": 7}', "has version '7' of the format"),
        ('{"format": "odefit certificate", "version": 1}', "is damaged"),
    ],
)
def test_other_files_are_status_two_with_one_sentence(
    text: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "file.json"
    path.write_text(text, encoding="utf-8")
    assert main(["verify", str(path)]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1


def _infinite_box(found: dict[str, Any]) -> None:
    found["leaves"][2]["box"][0][0] = 10**400


def _name_of_lists(found: dict[str, Any]) -> None:
    found["statement"]["unknowns"][0]["name"] = [["k"]]


def _name_that_clears_a_terminal(found: dict[str, Any]) -> None:
    found["statement"]["unknowns"][0]["name"] = "k\x1b[2J"


def _no_statement(found: dict[str, Any]) -> None:
    found["statement"] = 3


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (_infinite_box, "is damaged (OverflowError"),
        (_name_of_lists, "the name of an unknown is not a text"),
        (_name_that_clears_a_terminal, "control character"),
        (_no_statement, "is damaged"),
    ],
)
def test_certificates_of_strangers_are_refused_in_one_sentence(
    change: Callable[[dict[str, Any]], None],
    said: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Their fingerprints and digests are right: who changes them computes these, too."""
    found = json.loads(STORED.read_text(encoding="utf-8"))
    found.pop("digest")
    change(found)
    found["fingerprint"] = fingerprint_of(found["statement"])
    path = tmp_path / "other.json"
    path.write_text(json.dumps(found | {"digest": fingerprint_of(found)}), encoding="utf-8")
    assert main(["verify", str(path)]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert "\x1b" not in error
    assert error.count("\n") == 1


@pytest.mark.skipif(os.name != "posix", reason="needs a device of POSIX")
def test_a_device_is_not_a_certificate(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", "/dev/zero"]) == 2
    assert "is a device or a pipe, not a file" in capsys.readouterr().err


@pytest.mark.slow
def test_certify_writes_a_certificate_for_the_answer_of_any_method(
    folder: Path, tmp_path: Path
) -> None:
    path = tmp_path / "c.json"
    arguments = ["--jobs", "1", "--certificate", str(path)]
    assert main(["fit", str(folder / "b.toml"), *arguments]) == 0
    assert main(["verify", str(path), str(folder / "b.toml")]) == 0
