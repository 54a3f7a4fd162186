"""A mistake in what is made of a result costs neither the result nor the exit status."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cli.commands import run

ERRORS: tuple[type[Exception], ...] = (ZeroDivisionError, ValueError, np.linalg.LinAlgError)

REPORT = {
    "odefit.reporting.documents.html": (
        "report_html",
        "report_values",
        "fit_curves",
        "parameter_rows",
    ),
    "odefit.reporting.figures.fit": ("panel_figure",),
    "odefit.reporting.figures.diagnostics": ("panel_figure",),
    "odefit.reporting.sentences": ("verdict",),
}
"""Functions that the report calls, by module."""

PRINTED = {"odefit.reporting.terminal": ("print_result", "print_notes", "parameter_rows")}
"""Functions that the terminal's table calls."""


def broken(kind: type[Exception]) -> Any:
    def fails(*_: Any, **__: Any) -> Any:
        raise kind("of ours")

    return fails


def cases(table: dict[str, tuple[str, ...]]) -> list[tuple[str, str, type[Exception]]]:
    names = [(module, name) for module, functions in table.items() for name in functions]
    return [(*pair, ERRORS[i % len(ERRORS)]) for i, pair in enumerate(names)]


@pytest.mark.parametrize(
    ("module", "name", "kind"),
    [
        pytest.param(*case, marks=pytest.mark.slow if i % 2 else ())
        for i, case in enumerate(cases(REPORT | PRINTED))
    ],
)
def test_the_json_survives_failures_after_the_fit(
    module: str,
    name: str,
    kind: type[Exception],
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(import_module(module), name, broken(kind))
    files = ("--json", "r.json", "--report", "r.html", "--log", "fit.log", "--table", "t.md")
    assert run("fit", "decay.toml", *files) == 0
    found = json.loads((folder / "r.json").read_text(encoding="utf-8"))
    assert found["status"] == "converged"
    assert found["parameters"] == pytest.approx({"k": 0.69, "s": 2.01}, rel=0.02)
    assert (folder / "t.md").exists()
    assert (folder / "r.html").exists() == (module not in REPORT)
    said = capsys.readouterr().err
    assert f"mistake in odefit: {kind.__name__}: of ours. The result stands" in said
    assert "Traceback" not in said
    log = (folder / "fit.log").read_text(encoding="utf-8")
    assert "Traceback" in log
    assert "in fails" in log


@pytest.mark.slow
def test_a_result_is_printed_if_the_json_fails(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        import_module("odefit.result_data.result_file"), "to_mapping", broken(KeyError)
    )
    assert run("fit", "decay.toml", "--json", "r.json", "--report", "r.html") == 0
    captured = capsys.readouterr()
    assert "0.69" in captured.out
    assert "writing r.json failed because of a mistake in odefit: KeyError" in captured.err
    assert (folder / "r.html").exists()
    assert (folder / "r.json.checkpoint").exists()  # the fit can be gone on from


def test_a_broken_figure_costs_no_profiles(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    profiles = import_module("odefit.result.profiles").Profiles
    monkeypatch.setattr(profiles, "plot", broken(ZeroDivisionError))
    terminal = import_module("odefit.reporting.terminal")
    monkeypatch.setattr(terminal, "profile_rows", broken(ValueError))
    files = ("--json", "p.json", "--plot", "p.png", "--report", "p.md")
    assert run("profile", "decay.toml", "--jobs", "1", *files) == 0
    found = json.loads((folder / "p.json").read_text(encoding="utf-8"))
    assert len(found["profiles"]["profiles"]) == 2
    said = capsys.readouterr().err
    assert "printing the profiles failed because of a mistake in odefit: ValueError" in said
    assert "the figure failed because of a mistake in odefit: ZeroDivisionError" in said
    assert (folder / "p.md").exists()


def test_a_fit_whose_stage_fails_ends_with_the_status_of_its_answer(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        import_module("odefit.fitting.fit_result"), "assess_misfit", broken(ValueError)
    )
    assert run("fit", "decay.toml", "--json", "r.json", "--log", "fit.log") == 0
    said = " ".join(capsys.readouterr().err.split())
    assert "mistake in odefit, misfit: ValueError (of ours)" in said
    found = json.loads((folder / "r.json").read_text(encoding="utf-8"))
    assert found["failed_stages"] == [
        {"stage": "misfit", "error": "ValueError", "reason": "of ours"}
    ]
    assert "Traceback" in (folder / "fit.log").read_text(encoding="utf-8")
