"""Mutated inputs of every kind come to no harm, and the tool that says so sees harm."""

from __future__ import annotations

import os
import pickle
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import odefit
from guarded_worker import Outcome, Watch, outcome
from input_kinds import Case, Expectation, OutputError, WrongSuccessError
from kinds_of_inputs import KINDS
from mutated_inputs import main, store, stored, table, tasks

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def watch() -> Watch:
    return Watch()


def judged(
    watch: Watch, folder: Path, run: Callable[[], str], expected: Expectation = "any"
) -> Outcome:
    inside = folder / "around" / "case"
    inside.mkdir(parents=True)
    return outcome(Case("", expected, run, "usual"), inside, watch)


def fails(error: BaseException) -> Callable[[], str]:
    def run() -> str:
        raise error

    return run


@pytest.mark.parametrize(
    ("error", "verdict"),
    [
        (odefit.InputError("file.toml: a sentence"), "refused"),
        (odefit.InputError("a sentence without a place"), "message"),
        (odefit.InputError("file.toml: "), "message"),
        (odefit.InputError([]), "message"),
        (KeyError("x"), "traceback"),
        (RecursionError(), "traceback"),
        (SystemExit(1), "traceback"),
        (MemoryError(), "memory"),
        (OutputError("x"), "output"),
        (WrongSuccessError("x"), "wrong success"),
    ],
)
def test_an_exception_has_its_verdict(
    watch: Watch, tmp_path: Path, error: BaseException, verdict: str
) -> None:
    assert judged(watch, tmp_path, fails(error)).verdict == verdict


@pytest.mark.parametrize(
    ("text", "expected", "verdict"),
    [
        ("usual", "any", "same"),
        ("other", "any", "another"),
        ("usual", "same", "same"),
        ("other", "same", "wrong success"),
        ("usual", "noticed", "wrong success"),
        ("other", "noticed", "another"),
        ("other", "refused", "wrong success"),
    ],
)
def test_a_success_is_judged_by_what_was_expected(
    watch: Watch, tmp_path: Path, text: str, expected: Expectation, verdict: str
) -> None:
    assert judged(watch, tmp_path, lambda: text, expected).verdict == verdict


def test_refusing_an_equivalent_problem_is_a_fault(watch: Watch, tmp_path: Path) -> None:
    refused = fails(odefit.InputError("file.toml: a sentence"))
    assert judged(watch, tmp_path, refused, "same").verdict == "wrong success"


def connects() -> str:
    with socket.socket() as one:
        one.settimeout(0.1)
        one.connect_ex(("127.0.0.1", 9))
    return "usual"


def starts() -> str:
    subprocess.run([sys.executable, "--version"], check=True, capture_output=True)
    return "usual"


def unpickles() -> str:
    pickle.loads(pickle.dumps(Path))
    return "usual"


@pytest.mark.parametrize("run", [connects, starts, unpickles])
def test_forbidden_actions_of_an_input_are_noticed(
    watch: Watch, tmp_path: Path, run: Callable[[], str]
) -> None:
    assert judged(watch, tmp_path, run).verdict == "forbidden"


def test_a_file_beside_the_folder_of_the_case_is_noticed(watch: Watch, tmp_path: Path) -> None:
    def reads() -> str:
        outside = tmp_path / "around" / "outside"
        outside.write_text("x", encoding="utf-8")
        return "usual"

    found = judged(watch, tmp_path, reads)
    assert (found.verdict, "outside" in found.text) == ("forbidden", True)


def test_cases_are_spread_over_the_run_and_found_again_by_number() -> None:
    todo = tasks([*KINDS], 1000)
    assert abs(len(todo) - 1000) < len(KINDS)
    assert {name for name, _ in todo[:200]} == {*KINDS}
    assert len({*todo}) == len(todo)


def test_the_table_counts_every_outcome() -> None:
    found = [(0, Outcome("refused", "", "", 2**20, 0.5)), (1, Outcome("hang", "", "", 0, 11.0))]
    last = table({"problem": found}).splitlines()[-1]
    assert last == "| all | 2 | 1 | 0 | 0 | 0 | 0 | 0 | 0 | 0 | 0 | 1 | 0 | 1 | 11.0 |"


def test_a_run_continues_from_the_file_of_its_seed_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    state = tmp_path / "state.jsonl"
    assert stored(state, 3) == {}
    for task in tasks(["table"], 5):
        store(state, 3, task, Outcome("refused", "t: no rows", "", 2**20, 0.5))
    assert (len(stored(state, 3)), stored(state, 4)) == (5, {})
    assert main(["--kinds", "table", "--count", "5", "--seed", "3", "--state", str(state)]) == 0
    assert "| all | 5 | 5 | 0 |" in capsys.readouterr().out


@pytest.mark.slow
def test_hundreds_of_mutated_inputs_do_no_harm() -> None:
    """``ODEFIT_MUTATIONS=20000`` makes as many."""
    count = os.environ.get("ODEFIT_MUTATIONS", "300")
    assert main(["--count", count, "--seed", "7"]) == 0
