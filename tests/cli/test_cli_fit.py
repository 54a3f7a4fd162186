"""``odefit fit``: what it prints and writes, and with which status it ends."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import odefit
from odefit.cli.fit import CERTIFY_REGION, written_out
from tests.cli.commands import refused, run
from tests.methods.checkpoints import records


def test_a_fit_prints_its_table_and_ends_with_zero(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("fit", "decay.toml") == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    for word in ("decay", "k", "s", "0.69", "converged"):
        assert word in captured.out
    assert sorted(p.name for p in folder.iterdir()) == [
        "blow_up.csv",
        "blow_up.toml",
        "data.csv",
        "decay.toml",
    ]


def test_suspicious_data_are_reported_once_and_before_the_search(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def searched(*_: object, **__: object) -> None:
        before = capsys.readouterr().err
        assert "column y: -999 occurs in 1 of" in " ".join(before.split())
        raise odefit.InputError("far enough")

    table = (folder / "data.csv").read_text(encoding="utf-8").rstrip()
    (folder / "data.csv").write_text(f"{table}\n99,-999\n", encoding="utf-8")
    assert run("fit", "decay.toml", "--jobs", "1", "--method", "single-shooting") in (0, 3)
    assert capsys.readouterr().err.count("-999") == 1
    monkeypatch.setattr("odefit.fitting.fit.fit", searched)
    assert run("fit", "decay.toml") == 2
    assert "far enough" in capsys.readouterr().err


def test_the_json_holds_what_the_design_says(folder: Path) -> None:
    assert run("fit", "decay.toml", "--json", "result.json", "--seed", "5") == 0
    found = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    assert found["format"] == 1
    assert found["problem"] == "decay"
    assert found["method"] == "Automatic"
    assert found["status"] == "converged"
    assert found["seed"] == 5
    assert found["seconds"] > 0
    assert found["parameters"] == pytest.approx({"k": 0.69, "s": 2.01}, rel=0.02)
    assert found["initial"] == {"x": 1.0}
    best = found["solutions"][0]
    assert best["parameters"] == found["parameters"]
    assert best["initial"] == found["initial"]
    assert best["objective"] == found["objective"] > 0
    assert found["log_likelihood"] is None
    assert found["assessment"]["local"]["optimal"] is True
    assert found["assessment"]["complete"]["possible"] == 1
    assert found["assessment"]["global"] is None
    assert found["uncertainty"]["standard_errors"]["k"] > 0
    assert {"odefit", "numpy"} <= set(found["versions"])
    assert isinstance(found["message"], str)
    assert not (folder / "result.json.checkpoint").exists()


@pytest.mark.slow
def test_a_certificate_can_be_requested(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Where there is none, the fit is there all the same, and says why."""
    assert run("fit", "decay.toml", "--certify") == 0
    assert "No certificate: global optimisation needs finite bounds" in " ".join(
        capsys.readouterr().err.split()
    )
    text = (folder / "decay.toml").read_text(encoding="utf-8")
    bounded = text.replace("s = { lower = 0.0 }", "s = { lower = 0.0, upper = 5.0 }")
    (folder / "bounded.toml").write_text(bounded, encoding="utf-8")
    assert run("fit", "bounded.toml", "--certify", "--json", "certified.json") == 0
    assert "Certificate: No values within the bounds" in capsys.readouterr().out
    found = json.loads((folder / "certified.json").read_text(encoding="utf-8"))
    assert found["assessment"]["global"]["closed"] is True


@pytest.mark.slow
def test_the_default_can_be_named(folder: Path) -> None:
    assert run("fit", "decay.toml", "--method", "automatic", "--json", "named.json") == 0
    named = odefit.load_result(folder / "named.json")
    default = odefit.fit(odefit.load(folder / "decay.toml"))
    assert named.method == default.method
    assert np.array_equal(named.best.vector, default.best.vector)
    assert named.assessment.complete is not None
    assert [r.name for r in named.routes] == [r.name for r in default.routes]


@pytest.mark.slow
def test_the_json_is_read_back(folder: Path) -> None:
    run("fit", "decay.toml", "--json", "result.json")
    result = odefit.load_result(folder / "result.json")
    direct = odefit.fit(odefit.load(folder / "decay.toml"))
    assert np.array_equal(result.best.vector, direct.best.vector)


@pytest.mark.slow
def test_a_report_is_written_and_announced_on_standard_error(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("fit", "decay.toml", "--report", "report.html", "--starts", "2") == 0
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert page.startswith("<!")
    assert "<svg" in page
    assert capsys.readouterr().err == "report: report.html\n"


def test_one_start_of_single_shooting_can_be_chosen(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("fit", "decay.toml", "--method", "single-shooting", "--json", "r.json") == 0
    assert json.loads((folder / "r.json").read_text())["method"] == "SingleShooting"
    assert "SingleShooting" in capsys.readouterr().out


def test_no_acceptable_fit_is_status_three(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = run("fit", "blow_up.toml", "--starts", "3", "--json", "r.json", "--report", "r.html")
    assert code == 3
    captured = capsys.readouterr()
    assert "all 3 starts failed" in captured.out
    assert "no report: no solution was found" in captured.err
    found = json.loads((folder / "r.json").read_text(encoding="utf-8"))
    assert found["status"] == "failed"
    assert found["solutions"] == []
    assert not (folder / "r.html").exists()


@pytest.mark.slow
def test_a_time_limit_is_status_four_and_the_best_is_written(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ("--starts", "100000", "--time-limit", "1", "--jobs", "1")
    assert run("fit", "decay.toml", "--json", "r.json", "--report", "r.html", *options) == 4
    found = json.loads((folder / "r.json").read_text(encoding="utf-8"))
    assert found["status"] == "time limit"
    assert found["parameters"]["k"] == pytest.approx(0.69, rel=0.02)
    assert (folder / "r.html").exists()
    assert "time limit" in capsys.readouterr().out
    # What was finished is kept for another day.
    assert len(records(folder / "r.json.checkpoint", "starts")) > 2


@pytest.mark.slow
def test_an_interrupted_fit_continues_from_its_checkpoint(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """After the time limit, the same command without it goes on, and cleans up."""
    run("fit", "decay.toml", "--json", "r.json", "--starts", "100000", "--time-limit", "0.7")
    stored = len(records(folder / "r.json.checkpoint", "starts"))
    assert run("fit", "decay.toml", "--json", "r.json", "--starts", str(stored)) == 0
    assert f"{stored} start" in capsys.readouterr().out
    assert not (folder / "r.json.checkpoint").exists()


@pytest.mark.slow
def test_a_checkpoint_of_another_fit_beside_the_json_is_discarded(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run("fit", "decay.toml", "--json", "r.json", "--starts", "100000", "--time-limit", "0.7")
    assert run("fit", "decay.toml", "--json", "r.json", "--seed", "1") == 0
    assert "belongs to another fit and is removed" in capsys.readouterr().err


def test_a_named_checkpoint_is_kept_and_not_overwritten(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("fit", "decay.toml", "--checkpoint", "mine") == 0
    kept = (folder / "mine").read_bytes()
    capsys.readouterr()
    error = refused(capsys, "fit", "decay.toml", "--checkpoint", "mine", "--seed", "1")
    assert "mine: belongs to another problem, method or seed" in error
    assert (folder / "mine").read_bytes() == kept


@pytest.mark.parametrize(
    ("option", "name", "words"),
    [
        ("--report", "r.docx", "a report is written as .html, .md, and '.docx' is not"),
        ("--report", "r.pdf", "write .html, and print it to PDF from a browser"),
        ("--table", "t.xlsx", "a table is written as .csv, .md, .tex, and '.xlsx' is not"),
        ("--json", "r.csv", "--table writes .csv, .tex and .md"),
    ],
)
def test_names_of_files_are_refused_before_the_fit(
    folder: Path, capsys: pytest.CaptureFixture[str], option: str, name: str, words: str
) -> None:
    (folder / "data.csv").unlink()  # which the fit would miss
    assert words in refused(capsys, "fit", "decay.toml", option, name)


def test_tables_and_reports_are_written_by_their_names(folder: Path) -> None:
    files = {"t.tex": b"% ", "r.md": b"# "}
    for name, begin in files.items():
        option = "--table" if name.startswith("t") else "--report"
        assert run("fit", "decay.toml", option, name, "--jobs", "1", "--starts", "1") == 0
        assert Path(name).read_bytes().startswith(begin)


@pytest.mark.slow
def test_a_confidence_region_can_be_requested(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (folder / "decay.toml").read_text(encoding="utf-8")
    bounded = text.replace("s = { lower = 0.0 }", "s = { lower = 0.0, upper = 5.0 }")
    (folder / "bounded.toml").write_text(bounded, encoding="utf-8")
    assert run("fit", "bounded.toml", "--certify", "region", "--json", "region.json") == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "Confidence region: All values within the bounds of the unknowns" in out
    assert "Proved 95 % intervals (likelihood ratio)" in out
    found = json.loads((folder / "region.json").read_text(encoding="utf-8"))["assessment"]
    assert found["region"]["complete"] is True
    assert found["global"]["closed"] is True
    for one in found["region"]["intervals"]:
        assert one["lower"] < one["profile"][0] < one["profile"][1] < one["upper"]


def test_the_word_region_belongs_to_certify_alone() -> None:
    assert written_out(["fit", "--certify", "region", "a.toml"]) == [
        "fit",
        CERTIFY_REGION,
        "a.toml",
    ]
    assert written_out(["fit", "a.toml", "--certify=region"]) == ["fit", "a.toml", CERTIFY_REGION]
    kept = ["fit", "--certify", "a.toml", "--json", "region"]
    assert written_out(kept) == kept
    assert written_out(["fit", "--", "--certify", "region"]) == ["fit", "--", "--certify", "region"]
