"""A remedy for every mistake."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.commands import BLOW_UP, DECAY, refused, run


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("fit decay.toml --jobs 0", "--jobs: expected a positive number, got 0"),
        ("fit decay.toml --starts -1", "--starts: expected a positive number, got -1"),
        ("fit decay.toml --time-limit 0", "--time-limit: expected a positive number"),
        ("fit decay.toml --time-limit nan", "--time-limit: expected a positive number"),
        ("fit decay.toml --seed -1", "seed: expected a whole number, not negative"),
        ("fit decay.toml --seed x", "invalid int value: 'x'"),
        ("fit decay.toml --method multistart", "did you mean 'multi-start'?"),
        ("fit decay.toml --method x", "methods are: automatic, multi-start, single-shooting"),
        ("fit decay.toml --method single-shooting --starts 2", "--starts"),
        ("fit decay.toml --json .", "is a directory"),
        ("fit decay.toml --json no/r.json", "the directory no does not exist"),
        ("fit decay.toml --report no/r.html", "the directory no does not exist"),
        ("fit decay.toml --checkpoint no/c", "the directory no does not exist"),
        ("fit decay.toml --checkpoint .", "is a directory"),
        ("fit decay.toml --checkpoint data.csv", "is not a checkpoint"),
        ("fit decay.toml --colour", "there is no option --colour; see odefit fit --help"),
        ("fit decay.toml --metod multi-start", "there is no option --metod; did you mean --method"),
        ("fit decay.toml -o r.html", "a file is written by --report FILE.html|.md or --table"),
        ("profile decay.toml --output p.png", "a file is written by --plot FILE.png or --report"),
        ("profile decay.toml --only k s", "--only takes one word: write --only k,s;"),
        ("profile decay.toml --only k, s --seed 1", "--only takes one word: write --only k,s;"),
        ("simulate decay.toml --times 0 1 2", "--times takes one word: write --times 0,1,2;"),
        ("fit decay.toml other.toml", "unexpected 'other.toml'; see odefit fit --help"),
        ("fit --fix decay.toml", "PROBLEM.toml"),
        ("fit decay.toml --fix", "--fix: expected at least one argument"),
        ("decay.toml", "a command is missing, as in odefit fit decay.toml"),
        ("--fit decay.toml", "a command has no dashes: write odefit fit"),
        ("-v", "there is no option -v"),
        ("fit", "PROBLEM.toml"),
        ("fitt decay.toml", "there is no command 'fitt'; did you mean 'fit'?"),
        ("", "COMMAND"),
        ("fit missing.toml", "missing.toml: "),
        ("fit .", ".: "),
        ("fit data.csv", "data.csv: "),
        ("check missing.toml", "missing.toml: "),
        ("simulate missing.toml", "missing.toml: "),
        ("simulate decay.toml --set k", "--set k: expected NAME=VALUE"),
        ("simulate decay.toml --set k=1 s=x", "--set s=x: expected NAME=VALUE"),
        ("simulate decay.toml --set K=1 s=1", "did you mean 'k'?"),
        ("simulate decay.toml --set k=1", "no value for s; give --set s=VALUE"),
        ("simulate decay.toml --set k=1 s=1 --times 0-9", "expected FROM:TO:COUNT"),
        ("simulate decay.toml --set k=1 s=1 --times=-1:1:3", "t0 = 0"),
        ("simulate decay.toml --set k=1 s=1 --csv no/c.csv", "the directory no does not exist"),
        ("simulate decay.toml --result data.csv", "data.csv"),
        ("simulate decay.toml --result missing.json", "missing.json"),
        ("simulate blow_up.toml --set k=1", "the simulation failed: "),
    ],
)
def test_a_mistake_is_status_two_with_a_remedy(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: str, message: str
) -> None:
    before = sorted(p.name for p in folder.iterdir())
    assert message.lower() in refused(capsys, *arguments.split()).lower()
    assert sorted(p.name for p in folder.iterdir()) == before


@pytest.mark.parametrize(
    "arguments",
    [
        "fit --fix k=0.7 decay.toml --seed 1",
        "fit --fix k=7/10 --free x decay.toml --seed 1 --bounds s=2:2.5 x=1:1.01",
        "fit --bounds s=0:9 --fix=k=0.7 decay.toml --seed 1",
    ],
)
def test_a_file_may_follow_an_option_with_several_values(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: str
) -> None:
    assert run(*arguments.split()) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["k", "0.7", "fixed"] in [row[:3] for row in rows]


@pytest.mark.parametrize(
    ("replace", "by", "message"),
    [
        ("-k*x", "-kk*x", "'kk'"),
        ("-k*x", "-k*", "-k*"),
        ("-k*x", "__import__('os')", "__import__"),
        ("upper = 10.0", "upper = -1.0", "the bounds cross"),
        ("lower = 0.0 }", "units = 3 }", "units"),
        ("x = 1.0", "", "x"),
        ("[ode]", "[odes]", "odes"),
        ("data.csv", "none.csv", "none.csv"),
        ("format = 1", "format = 2", "format"),
        (
            "k = { lower = 0.0, upper = 10.0 }\ns = { lower = 0.0 }",
            "k = { fixed = 1.0 }\ns = { fixed = 2.0 }",
            "nothing to",
        ),
    ],
)
def test_a_bad_problem_file_is_status_two(
    folder: Path, capsys: pytest.CaptureFixture[str], replace: str, by: str, message: str
) -> None:
    assert replace in DECAY
    (folder / "decay.toml").write_text(DECAY.replace(replace, by), encoding="utf-8")
    assert message in refused(capsys, "fit", "decay.toml")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("t,y\n0,abc\n1,2\n", "abc"),
        ("t,z\n0,1\n1,2\n", "y"),
        ("y\n1\n2\n", "t"),
        ("", "data.csv"),
        ("t,y\n", "data.csv"),
        ("t,y\n0,\n1,\n", "y"),
        ("t,y\n0,1\n", "1 measurement"),
        ("t,y\n0,inf\n1,2\n", "inf"),
        ("t,y\nnan,1\n1,2\n", "t"),
    ],
)
def test_bad_data_are_status_two(
    folder: Path, capsys: pytest.CaptureFixture[str], data: str, message: str
) -> None:
    (folder / "data.csv").write_text(data, encoding="utf-8")
    assert message in refused(capsys, "fit", "decay.toml")


def test_all_mistakes_are_reported_at_once_one_a_line(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = DECAY.replace("-k*x", "-kk*x").replace("upper = 10.0", "upper = -1.0")
    (folder / "decay.toml").write_text(text, encoding="utf-8")
    lines = refused(capsys, "check", "decay.toml").splitlines()
    assert len(lines) >= 2
    assert all(line.startswith("error: decay.toml: ") for line in lines)


def test_data_before_t0_are_reported(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = DECAY.replace('data = "data.csv"', 'data = "data.csv"\nt0 = 0.5')
    (folder / "decay.toml").write_text(text, encoding="utf-8")
    assert "the data start at t = 0, before t0 = 0.5" in refused(capsys, "fit", "decay.toml")


def test_a_guess_at_which_the_model_blows_up_is_harmless(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = BLOW_UP.replace("lower = 1.0, upper = 3.0", "lower = 0.0, upper = 3.0, guess = 2.0")
    (folder / "blow_up.toml").write_text(text, encoding="utf-8")
    (folder / "blow_up.csv").write_text("t,x\n0,1\n1,1.25\n2,1.66\n", encoding="utf-8")
    assert run("fit", "blow_up.toml") == 0
    told = capsys.readouterr()
    assert "Please note" in told.err  # starts failed, and that is said
    assert "1 of" in told.err
    assert "Please note" not in told.out


def test_weights_are_reported_as_standard_deviations(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = refused(capsys, "fit", "decay.toml", "--weights", "w.csv")
    assert refused(capsys, "fit", "decay.toml", "--weights") == told
    assert told == (
        "error: --weights: is not an option; weights follow from standard deviations (weight w: "
        "standard deviation 1/sqrt(w)); write these in the data, for an observable y in a column "
        "y_sd, or in the problem file below [noise] as y = { sd = 0.5 }\n"
    )
