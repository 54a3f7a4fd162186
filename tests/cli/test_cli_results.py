"""What is had of a result file: text, figures, residuals and predictions."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from odefit import Event, Experiment, InputError, Model, Problem, SingleShooting, fit
from odefit.cli import result_commands
from odefit.methods.estimate import Status
from odefit.reporting.figures.fit import plot_fit
from tests.cli.commands import DATA, DECAY, refused, run

SIGNATURES = {".svg": b"<?xml", ".pdf": b"%PDF", ".png": b"\x89PNG"}


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of a result."""
    folder = tmp_path_factory.mktemp("saved")
    (folder / "decay.toml").write_text(DECAY, encoding="utf-8")
    (folder / "data.csv").write_text(DATA, encoding="utf-8")
    path = folder / "result.json"
    assert run("fit", str(folder / "decay.toml"), "--json", str(path), "--jobs", "1") == 0
    return path


@pytest.fixture
def result(saved: Path, folder: Path) -> str:
    (folder / "result.json").write_bytes(saved.read_bytes())
    return "result.json"


def table(capsys: pytest.CaptureFixture[str]) -> pd.DataFrame:
    return pd.read_csv(io.StringIO(capsys.readouterr().out))


@pytest.mark.slow
def test_a_result_is_shown_as_the_fit_printed_it(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("fit", "decay.toml", "--json", "out.json", "--jobs", "1") == 0
    printed = capsys.readouterr()
    assert run("show", "out.json") == 0
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == (printed.out, printed.err)


@pytest.mark.slow
@pytest.mark.parametrize(
    "what",
    [
        "fit",
        "residuals",
        "parity",
        "diagnostics",
        "parameters",
        "correlation",
        "starts",
        "parallel",
    ],
)
def test_figures_are_drawn_beside_the_result(
    result: str, what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("plot", result, "--what", what) == 0
    assert capsys.readouterr().out == f"result-{what}.svg\n"
    assert "<svg" in Path(f"result-{what}.svg").read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("suffix", SIGNATURES)
def test_the_name_of_a_figure_decides_its_format(result: str, suffix: str) -> None:
    assert run("plot", result, "--log-y", "--observable", "y", "-o", f"fit{suffix}") == 0
    assert Path(f"fit{suffix}").read_bytes().startswith(SIGNATURES[suffix])


def test_a_logarithmic_axis_does_not_follow_a_model_far_below_the_measurements() -> None:
    data = {"t": [0.0, 1.0, 2.0, 50.0, 51.0], "x": [1.0, 0.4, 0.15, 0.0, 1.0]}
    event = Event((50.5,), {"x": "1"})
    problem = Problem(
        Model(ode={"x": "-k*x"}),
        parameters={"k": {"guess": 1.0}},
        initial={"x": 1.0},
        experiments=[Experiment("run", data, events=[event])],
    )
    result = fit(problem, SingleShooting())
    told: list[str] = []
    figure = plot_fit(result, log_y=True, say=told.append)
    assert told == ["1 measured values are not positive, and are left out of the logarithmic axis"]
    low, high = figure.axes[0].get_ylim()
    assert 0.02 < low < 0.15
    assert high > 1.0


UNTOLD = """format = 1
[ode]
x = "-(k1 + k2)*x"
z = "k1*x"
[parameters]
k1 = { lower = 0.01, upper = 5.0, guess = 0.4 }
k2 = { lower = 0.01, upper = 5.0, guess = 0.6 }
[initial]
x = 1.0
z = 0.0
[noise]
x = { sd = 0.02 }
[[experiment]]
data = "data.csv"
"""


@pytest.mark.slow
def test_a_missing_band_is_reported_with_the_direction_that_forbids_it_and_a_remedy(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("untold.toml").write_text(UNTOLD, encoding="utf-8")
    Path("data.csv").write_text("t,x\n0,1.0\n1,0.36\n2,0.14\n3,0.05\n", encoding="utf-8")
    arguments = ("--method", "single-shooting", "--jobs", "1", "--json", "untold.json")
    assert run("fit", "untold.toml", *arguments) == 0
    capsys.readouterr()
    assert run("predict", "untold.json", "--times", "1:2:2") == 0
    told = capsys.readouterr().err
    assert "note: no band of z, where it changes with k1, k2" in told
    assert "(The data determine k1 and k2 only as the sum k1 + k2.)" in told
    assert "give the value of one as known" in told
    # What is measured does not depend on that direction.
    assert run("plot", "untold.json", "--band", "linear") == 0
    assert capsys.readouterr().err == ""
    assert "no band" not in Path("untold-fit.svg").read_text(encoding="utf-8")
    # Bounds end a band by profile: the hidden state has one, too.
    assert run("predict", "untold.json", "--times", "1:2:2", "--by", "profile") == 0
    captured = capsys.readouterr()
    bands = pd.read_csv(io.StringIO(captured.out)).query("name == 'z' and t == 1")
    found = bands.iloc[0]
    # It has no standard error all the same, which is told.
    assert len(captured.err.strip().splitlines()) == 1
    assert captured.err.startswith("note: no standard error of z, where it changes with k1, k2")
    assert "(The data determine k1 and k2 only as the sum k1 + k2.)" in captured.err
    assert 0.0 <= found.ci_low < 0.02
    assert 0.6 < found.ci_high < 0.7


@pytest.mark.slow
def test_a_figure_is_as_wide_as_the_column_of_a_journal(result: str) -> None:
    for what in ("fit", "starts"):
        assert run("plot", result, "--what", what, "--width", "89 mm", "-o", "f.svg") == 0
        found = re.search(r'width="([\d.]+)pt"', Path("f.svg").read_text(encoding="utf-8"))
        assert found is not None
        assert float(found[1]) == pytest.approx(89 / 25.4 * 72, abs=0.1)


def test_profiles_are_drawn_once_they_are_there(
    result: str, capsys: pytest.CaptureFixture[str]
) -> None:
    told = refused(capsys, "plot", result, "--what", "profiles")
    assert "odefit profile result.json --json result.json" in told
    assert run("profile", result, "--json", result, "--jobs", "1", "--only", "k") == 0
    assert run("plot", result, "--what", "profiles", "-o", "p.svg") == 0
    assert Path("p.svg").is_file()
    capsys.readouterr()
    assert run("show", result) == 0
    assert "Profile likelihood" in capsys.readouterr().out


def test_residuals_of_a_result_and_of_a_problem_agree(
    result: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("residuals", result) == 0
    of_result = table(capsys)
    assert list(of_result.columns[:6]) == [
        "experiment", "observable", "t", "measured", "predicted", "residual",
    ]  # fmt: skip
    from odefit import load_result

    values = [f"{k}={v!r}" for k, v in load_result(result).best.parameters.items()]
    assert run("residuals", "decay.toml", "--set", *values, "-o", "r.csv") == 0
    of_problem = pd.read_csv("r.csv")
    pd.testing.assert_series_equal(of_result.residual, of_problem.residual)


def test_predictions_have_bands(result: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("predict", result, "--times", "0:8:5", "--level", "0.9") == 0
    found = table(capsys)
    y = found[found.name == "y"]
    assert y.t.tolist() == [0, 2, 4, 6, 8]
    assert (y.pi_low < y.ci_low).all()
    assert (y.ci_low < y.value).all()
    assert run("predict", result, "--experiment", "experiment 1", "-o", "p.csv") == 0
    assert len(pd.read_csv("p.csv")) == 10


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["plot", "result.json", "-o", "f.jpg"], "f.jpg: a figure is written as one of .svg, .pdf"),
        (["plot", "result.json", "--what", "fits"], "no figure 'fits'; did you mean 'fit'?"),
        (["plot", "result.json", "--width", "wide"], "width: expected "),
        (["plot", "result.json", "--what", "bounds"], "proves no bounds; fit with --certify"),
        (["plot", "result.json", "--what", "starts", "--log-y"], "--log-y: belongs to --what fit"),
        (
            ["plot", "result.json", "--what", "qq", "--observable", "z"],
            "observable: there is no 'z'",
        ),
        (
            ["plot", "result.json", "--what", "qq", "--experiment", "z"],
            "unknown experiment 'z'",
        ),
        (["plot", "decay.toml"], "is a problem, not a result; fit it first: odefit fit decay.toml"),
        (["plot", "none.json"], "none.json"),
        (["residuals", "result.json", "--set", "k=1"], "a result has its own values"),
        (["residuals", "decay.toml"], "no value for k, s"),
        (["predict", "result.json", "--level", "2"], "level: expected a number between 0 and 1"),
        (["predict", "result.json", "--experiment", "two"], "unknown experiment 'two'"),
    ],
)
def test_mistakes_are_reported(
    result: str, capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    assert words in refused(capsys, *arguments)


def test_a_prediction_beyond_the_record_of_an_input_says_so(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = {"t": [0.0, 1.0, 2.0, 3.0], "x": [1.0, 0.7, 0.5, 0.4], "u": [1.0, 1.0, 2.0, 2.0]}
    model = Model(ode={"x": "-k*u*x"}, inputs={"u": "constant"})
    fit(Problem(model, data, {"k": {"guess": 0.3}}, {"x": 1.0}), SingleShooting()).save("r.json")
    assert run("predict", "r.json", "--times", "0:3:4") == 0
    assert "note" not in capsys.readouterr().err
    assert run("predict", "r.json", "--times", "0:9:4") == 0
    said = capsys.readouterr().err
    assert "note: the input u is known until t = 3; its last value, 2, is used after" in said


DOSES = """
format = 1
[ode]
x = "-k*x"
[parameters]
k = { lower = 0.0, upper = 2.0, guess = 0.5 }
[initial]
x = 0.0
[[experiment]]
data = "d.csv"
[[experiment.event]]
time = 0.0
every = 12.0
until = 24.0
measured = "after"
assign = { x = "x + 1" }
"""


def test_a_prediction_beyond_the_last_of_repeated_doses_says_so(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("p.toml").write_text(DOSES, encoding="utf-8")
    Path("d.csv").write_text("t,x\n0,1\n12,1.1\n24,1.2\n26,0.7\n", encoding="utf-8")
    assert run("fit", "p.toml", "--method", "single-shooting", "--json", "r.json") == 0
    capsys.readouterr()
    assert run("predict", "r.json", "--times", "0:30:4") == 0
    assert "happens last" not in capsys.readouterr().err
    assert run("predict", "r.json", "--times", "0:48:5") == 0
    assert capsys.readouterr().err.startswith(
        'note: experiment "experiment 1": the event that is repeated every 12 (x becomes x + 1) '
        "happens last at t = 24, and not again up to t = 48; raise its 'until', or add its times, "
        "if it continues\n"
    )


def test_bands_of_nonnegative_quantities_end_at_zero_and_say_so(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = {"t": [0.5, 1.0], "x": [0.55, 0.42]}
    problem = Problem(
        Model(ode={"x": "-k*x"}),
        data,
        {"k": {"lower": 0.0, "upper": 20.0, "guess": 1.0}},
        {"x": 1.0},
        noise={"x": {"sd": 0.2}},
        t0=0.0,
    )
    fit(problem, SingleShooting(), jobs=1).save("r.json")
    assert run("predict", "r.json", "--times", "0:5:6", "-o", "p.csv") == 0
    table = pd.read_csv("p.csv")
    assert table.ci_low.min() == 0.0
    assert table.pi_low.min() < 0.0  # normal noise may make a measurement negative
    assert (
        "note: the linear confidence bands of x reached below zero, which the equations "
        "exclude, and are cut there" in capsys.readouterr().err
    )


def test_results_of_one_name_are_distinguished_by_their_folders() -> None:
    assert result_commands.distinct_names(["a/fit.json", "b/fit.json", "monod.json"]) == [
        "a/fit", "b/fit", "monod",
    ]  # fmt: skip
    assert result_commands.distinct_names(["x/a/fit.json", "y/a/fit.json"]) == [
        "x/a/fit",
        "y/a/fit",
    ]


def test_with_estimated_noise_the_likelihood_replaces_the_squares(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = {"t": [0.0, 1.0, 2.0, 3.0, 4.0], "x": [1.02, 0.69, 0.52, 0.33, 0.26]}
    estimated = Problem(
        Model(ode={"x": "-k*x"}),
        data,
        {"k": {"guess": 0.4}},
        {"x": 1.0},
        noise={"x": {"sd": "estimate"}},
    )
    result = fit(estimated, SingleShooting(), jobs=1)
    assert result.log_likelihood is not None
    assert (
        f"(log-likelihood: {result.log_likelihood:.5f}; weighted squares add up to the number of "
        "values where all noise is estimated)" in " ".join(str(result).split())
    )
    # The corrected standard deviation has the digits of the estimate beside it.
    row = result.parameters.loc["x_sd"]
    digits = re.search(r"x_sd +(0\.0*)(\d+) ", str(result))
    corrected = re.search(r"(0\.0*)(\d+) when corrected", str(row.note))
    assert digits is not None
    assert corrected is not None
    assert len(corrected[0].split()[0]) == len(digits[0].split()[1])

    given = Problem(
        Model(ode={"x": "-k*x"}), data, {"k": {"guess": 0.4}}, {"x": 1.0}, noise={"x": {"sd": 0.02}}
    )
    assert "(weighted sum of squared residuals: " in str(fit(given, SingleShooting(), jobs=1))


@pytest.mark.parametrize("times", ["a", ["a", 1.0], [[0.0], [1.0]], [], [0.0, None]])
def test_nonnumeric_times_are_refused_with_the_expected_form(times: object) -> None:
    data = {"t": [0.0, 1.0, 2.0], "x": [1.0, 0.7, 0.5]}
    problem = Problem(Model(ode={"x": "-k*x"}), data, {"k": {"guess": 0.3}}, {"x": 1.0})
    result = fit(problem, SingleShooting(), jobs=1)
    with pytest.raises(InputError, match=r"times: expected a number or a list of numbers, such as"):
        result.predict(times)  # type: ignore[arg-type]


def test_a_saved_result_of_a_fit_that_was_interrupted_has_profiles(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = {"t": [0.0, 1.0, 2.0, 3.0], "x": [1.02, 0.69, 0.52, 0.33]}
    problem = Problem(Model(ode={"x": "-k*x"}), data, {"k": {"guess": 0.4}}, {"x": 1.0})
    result = fit(problem, SingleShooting(), jobs=1)
    replace(result, status=Status.INTERRUPTED).save("r.json")
    assert run("profile", "r.json", "--jobs", "1") == 0
    assert "identifiable" in capsys.readouterr().out
