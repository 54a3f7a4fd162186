"""What ``odefit check`` prints names everything, in plain text, whatever the problem."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from odefit import Event, Experiment, ForwardMap, library
from odefit.assessment.identifiability import local_identifiability
from odefit.cli import main
from odefit.methods.multi_start import MultiStart
from odefit.methods.running.control import Control
from odefit.problem.model import Model
from odefit.problem.problem import Problem
from odefit.reporting import description
from odefit.reporting.description import print_description
from odefit.structure.identifiability import structural_identifiability
from tests.reporting.examples import HOSTILE, troubled_problem

TIMES = np.linspace(0.0, 4.0, 9)


def description_text(problem: Problem, width: int = 88) -> str:
    """What is printed, without the spaces at the ends of lines."""
    console = Console(file=io.StringIO(), width=width, color_system=None, force_terminal=False)
    print_description(problem, console=console)
    assert isinstance(console.file, io.StringIO)
    return "\n".join(line.rstrip() for line in console.file.getvalue().splitlines()).strip("\n")


def words(text: str) -> str:
    return " ".join(text.split())


@pytest.fixture(scope="module")
def described() -> Callable[[int], str]:
    """The description of the troubled problem at any width; its findings are computed once.

    Counting the solutions of its equations and approaching its data take seconds; both are done
    for other problems below.
    """
    problem = troubled_problem()
    structure = structural_identifiability(problem, count=False)
    forward = ForwardMap(problem)
    starts = [MultiStart().start_point(forward, i, Control()) for i in range(2)]
    data = local_identifiability(forward, points=starts)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(description, "analysed", lambda *_, **__: structure)
        patch.setattr(description, "local_identifiability", lambda *_: data)
        texts = {width: description_text(problem, width) for width in (40, 80, 110)}
    return texts.__getitem__


@pytest.fixture(scope="module")
def troubled(described: Callable[[int], str]) -> str:
    return described(110)


def test_a_description_is_complete(troubled: str) -> None:
    flat = words(troubled)
    for part in (
        "3 states; 11 unknowns (8 parameters, 2 initial values, 1 standard deviation) to estimate.",
        "dgut/dt = -k_a*gut",
        "effect(t0) = alpha*0.01",
        "EC50 = 0.3",
        "delta_E = 0.3",
        "sd with each value",
        "sd 0.02 + 0.05*y_effect",
        "sd estimated, on the scale of the decimal logarithm",
        "blood[oral]",
        "at least 0",
        "1 ± 0.2",
        "1/h",
        "at t = 5: gut becomes gut + 1",
        "EC50 = 0.2; gut(t0) = 2",
        "log: spread evenly over orders of magnitude",
        "What the equations can tell (perfect data)",
        "What the data can determine",
        "not a proof",
        "From the scatter of the residuals: y_gut_sd.",
    ):
        assert part in flat, part


def test_an_unknown_has_a_row_with_everything_given_about_it(troubled: str) -> None:
    """Set in by two columns, as all that stands under a heading is."""
    rows = troubled.split("\nUnknowns\n")[1].splitlines()
    assert rows[0].split() == [
        "kind", "bounds", "guess", "starts", "from", "scale", "prior", "unit"
    ]  # fmt: skip
    found = {re.split("  +", row)[1]: re.split("  +", row)[2:] for row in rows[2:13]}
    assert found["k_a"] == ["parameter", "0 to 10", "1", "0.00833 to 10, log", "1/h"]
    assert found["K_m"] == ["parameter", "1e-06 to 100", "1e-06 to 100, log", "log10"]
    assert found["alpha"] == ["parameter", "at least 0", "0.6 to 1.4", "1 ± 0.2"]
    assert found["mu_N"][:2] == ["parameter", "none"]
    assert found["blood[oral]"][0] == "initial value"
    assert {len(row) - len(row.lstrip()) for row in rows[1:9]} == {2}


def test_names_are_never_read_as_markup(troubled: str) -> None:
    assert words(HOSTILE) in words(troubled)


@pytest.mark.parametrize("width", [40, 80])
def test_no_line_is_wider_than_the_terminal(described: Callable[[int], str], width: int) -> None:
    text = described(width)
    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text


def test_a_product_and_the_unknowns_fixed_by_priors_are_reported() -> None:
    problem = Problem(
        Model(ode={"x": "-a*b*x"}, observables={"y": "x"}),
        {"t": TIMES, "y": 2 * np.exp(-0.5 * TIMES)},
        {"a": {"lower": 0}, "b": {"lower": 0, "prior": {"mean": 1.0, "sd": 0.1}}},
        {"x": 2.0},
    )
    text = words(description_text(problem))
    assert "None of the 2 unknowns is identifiable" in text
    assert "Identifiable combination: a*b." in text
    assert text.index("Identifiable combination") < text.index("2 of 2 unknowns are not determined")
    assert "only as the product" in text
    assert "Determined only by the prior: b." in text


@pytest.mark.slow
def test_a_dae_and_an_elimination_are_distinguished() -> None:
    data = {"t": TIMES, "y": 2 * np.exp(-0.5 * TIMES)}
    parameters = {"a": {"lower": 0.1, "upper": 1.0}}
    for equation, said in (
        ("z^3 + z - a*x", "IDAS (implicit, variable order) integrates them"),
        ("z - a*x", "These are eliminated, and an ODE remains"),
    ):
        model = Model(ode={"x": "-z"}, observables={"y": "x"}, algebraic={"z": equation})
        text = words(description_text(Problem(model, data, parameters, {"x": 2.0})))
        assert f"0 = {equation}" in text
        assert said in text


def test_an_input_is_a_column() -> None:
    model = Model(ode={"x": "u - a*x"}, observables={"y": "x"}, inputs={"u": "cubic"})
    data = {"t": TIMES, "y": np.exp(-0.5 * TIMES), "u": np.cos(TIMES)}
    text = description_text(Problem(model, data, {"a": {"lower": 0}}, {"x": 1.0}))
    assert "u: column of the data, interpolated by a cubic spline" in text


def test_kinks_go_to_the_implicit_engine() -> None:
    model = Model(ode={"x": "-a*abs(x)"}, observables={"y": "x"})
    data = {"t": TIMES, "y": np.exp(-0.5 * TIMES)}
    text = words(description_text(Problem(model, data, {"a": {"lower": 0}}, {"x": 1.0})))
    assert "have kinks (abs, min, max): NDF" in text
    assert "No structural analysis: abs(...) has a kink" in text


def test_several_solutions_are_reported() -> None:
    model = Model(ode={"x": "-a*x", "z": "a*x - b*z"}, observables={"y": "z"})
    data = {"t": TIMES, "y": np.exp(-0.5 * TIMES)}
    problem = Problem(model, data, {"a": {}, "b": {}}, {"x": {}, "z": 0.0})
    text = words(description_text(problem))
    assert "a locally, 2 values" in text
    assert "2 solutions give the same outputs." in text


def test_a_count_that_takes_too_long_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("odefit.reporting.description.COUNT_WORK", 0.0)
    text = words(description_text(library.load("rational-seir")))
    assert "Whether other values give the same outputs was not decided within the limit." in text
    assert "The limit was 0 operations; in Python, odefit.identifiability(problem, " in text


def test_an_analysis_that_takes_too_long_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("odefit.reporting.description.STRUCTURE_WORK", 0.0)
    text = words(description_text(library.load("rational-seir")))
    assert "Nothing was decided within the limit." in text
    assert "The limit was 0 operations; in Python, odefit.identifiability(problem, " in text


def test_a_failure_everywhere_is_explained_not_raised() -> None:
    model = Model(ode={"x": "a*x^2"}, observables={"y": "x"})
    data = {"t": TIMES, "y": np.exp(0.2 * TIMES)}
    problem = Problem(model, data, {"a": {"lower": 1, "upper": 2}}, {"x": 2.0})
    text = words(description_text(problem))
    assert "points the model cannot be evaluated" in text
    assert 'experiment "data", t = 0.' in text
    assert "Give narrower bounds" in text


def test_nothing_to_estimate_is_described_too() -> None:
    model = Model(ode={"x": "-a*x"})
    problem = Problem(model, {"t": TIMES, "x": np.exp(-TIMES)}, {"a": 1.0}, {"x": 1.0})
    text = description_text(problem)
    assert "nothing to estimate" in text
    assert "What the data can determine" not in text
    assert "What the equations can tell" not in text


def test_the_check_command_prints_the_description(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(library.path("alpha-pinene"))]) == 0
    out, err = capsys.readouterr()
    assert "All 5 unknowns are determined, locally" in words(out)
    assert err == ""


def test_a_mistake_in_the_file_is_status_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "p.toml"
    file.write_text("format = 1\n", encoding="utf-8")
    assert main(["check", str(file)]) == 2
    assert "p.toml" in capsys.readouterr().err


def test_sums_that_the_equations_conserve_are_reported_and_events_that_change_them() -> None:
    ode = {"E": "-k*E*S + m*C", "S": "-k*E*S + m*C", "C": "k*E*S - m*C"}
    problem = Problem(
        Model(ode=ode),
        parameters={"k": {"lower": 0.0, "upper": 1.0}, "m": {"lower": 0.0, "upper": 1.0}},
        initial={"E": 1.0, "S": 2.0, "C": 0.0},
        experiments=[
            Experiment("one", {"t": TIMES, "C": TIMES}, events=[Event((2.0,), {"S": "S + 1"})])
        ],
    )
    text = description_text(problem)
    assert (
        "Conserved by the equations\n"
        "  E + C keeps its value at t0\n"
        "  S + C keeps its value at t0, but for events\n"
    ) in text
    # The analysis of perfect data covers the time before the event alone, and says so.
    assert (
        "Only the time before the first event is examined here: later data may determine more. "
        "Under 'What the data can determine', odefit check covers the data of all times."
        in words(text)
    )
