"""The answers to the page: curves, sensitivities, vector fields, fits, and files."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import odefit
from odefit.explorer.guess_writing import propose
from odefit.explorer.session import Session
from odefit.reporting.curves import SEEN_COLUMNS
from tests.reporting import examples

DECAY = """# rates of two decays, with remarks that have to stay
format = 1
name = "decay"

[ode]
a = "-k*a"   # the first
b = "k*a - m*b"

[parameters]
k = { lower = 0.01, upper = 10.0, guess = 0.3, unit = "1/h" }  # fast
m = { lower = 0.01, upper = 10.0, scale = "log10" }

[parameters.unused]
fixed = 1.0

[initial]
a = { lower = 0.0, upper = 5.0, guess = 2.0 }
b = 0.0

[noise]
a = { sd = 0.1 }
b = { sd = "estimate" }

[[experiment]]
name = "one"
data = { t = [0, 1, 2, 4], a = [2.1, 1.3, 0.7, 0.3], b = [0.0, 0.6, 0.8, 0.7] }
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "decay.toml"
    path.write_text(DECAY.replace("[parameters.unused]\nfixed = 1.0\n\n", ""), encoding="utf-8")
    return path


@pytest.fixture
def session(file: Path) -> Session:
    return Session(odefit.load(file), file=file, folder=file.parent)


def values(session: Session, **changes: float) -> list[float]:
    return [changes.get(key, value) for key, value in session.values.items()]


def test_the_page_learns_bounds_scales_units_and_data(session: Session) -> None:
    data = session.description()
    k, m, a, sd = data["unknowns"]
    assert (k["low"], k["high"], k["unit"]) == (0.01, 10.0, "1/h")
    assert m["logarithmic"]
    assert (a["kind"], a["low"], a["high"], a["logarithmic"]) == ("initial", 0.0, 5.0, False)
    assert (sd["key"], sd["kind"]) == ("b_sd", "noise")
    assert data["values"][0] == 0.3
    assert data["experiments"][0]["series"]["a"]["values"] == [2.1, 1.3, 0.7, 0.3]
    assert data["file"] == "decay.toml"


def test_curves_are_those_of_the_exact_solution(session: Session) -> None:
    answer = session.curves({"values": values(session, k=0.5, a=2.0), "experiments": ["one"]})
    curves = answer["experiments"]["one"]
    t = np.array(curves["times"])
    assert t[0] == 0
    assert t[-1] == 4
    assert len(t) > 200
    np.testing.assert_allclose(curves["observables"]["a"], 2 * np.exp(-0.5 * t), rtol=1e-7)
    assert curves["states"].keys() == {"a", "b"}


def test_objective_and_residuals_are_those_of_the_forward_map(session: Session) -> None:
    vector = np.array(values(session, k=0.4))
    answer = session.curves({"values": vector.tolist(), "experiments": ["one"]})
    evaluation = odefit.ForwardMap(session.problem).evaluate(vector)
    assert not isinstance(evaluation, odefit.Failure)
    assert answer["objective"] == pytest.approx(evaluation.objective, rel=1e-8)
    assert answer["log_likelihood"] == pytest.approx(evaluation.log_likelihood, rel=1e-8)
    fit = answer["fits"]["one"]["a"]
    expected = (np.array([2.1, 1.3, 0.7, 0.3]) - 2 * np.exp(-0.4 * np.array([0, 1, 2, 4]))) / 0.1
    np.testing.assert_allclose(fit["residuals"], expected, rtol=1e-6)
    np.testing.assert_allclose(fit["low"], np.array([2.0, 1.2, 0.6, 0.2]))


def test_the_objective_is_of_all_experiments_even_if_none_is_drawn(session: Session) -> None:
    asked = {"values": values(session), "experiments": ["one"]}
    drawn = session.curves(asked)
    none = session.curves({**asked, "experiments": []})
    assert none["experiments"] == {}
    assert none["objective"] == pytest.approx(drawn["objective"], rel=1e-7)
    assert "objective" not in session.curves({**asked, "objective": False})


def test_a_failed_integration_is_a_sentence() -> None:
    model = odefit.Model(ode={"x": "k*x^2"})
    data = {"t": [0, 1, 2], "x": [1.0, 2.0, 3.0]}
    problem = odefit.Problem(model, data, {"k": {"lower": 0, "upper": 9}}, {"x": 1.0})
    session = Session(problem)
    sentence = session.curves({"values": [5.0], "experiments": ["data"]})["failure"]
    assert sentence.startswith('The integration of experiment "data" fails at t = 0.2')
    assert "failure" not in session.curves({"values": [0.1], "experiments": ["data"]})


def test_values_of_the_page_are_known_to_a_notebook(session: Session) -> None:
    session.curves({"values": values(session, k=0.9), "experiments": []})
    assert session.values["k"] == 0.9
    session.curves({"values": values(session, k=0.2), "experiments": [], "live": False})
    assert session.values["k"] == 0.9


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"values": [1.0]}, "values: expected a list of 4"),
        ({"values": "no"}, "values: expected a list"),
        ({"values": [0.3, "x", 2.0, 1.0]}, "m: expected a number, got 'x'"),
        ({"values": [99.0, 1.0, 2.0, 1.0]}, "k = 99 is outside its bounds [0.01, 10]"),
        ({"experiments": ["two"]}, "unknown experiment 'two'"),
        ({"of": "result"}, "there is no saved result to compare with"),
    ],
)
def test_a_nonsensical_request_is_answered_with_a_sentence(
    session: Session, change: dict[str, Any], sentence: str
) -> None:
    asked = {"values": values(session), "experiments": ["one"]} | change
    with pytest.raises(odefit.InputError) as error:
        session.curves(asked)
    assert sentence in str(error.value)


def test_sensitivities_are_differences_of_curves(session: Session) -> None:
    at = values(session, k=0.5)
    found = session.sensitivities({"values": at, "experiment": "one"})
    h = 1e-5
    high, low = (
        session.curves({"values": values(session, k=0.5 * np.exp(s)), "experiments": ["one"]})
        for s in (h, -h)
    )
    pair = [np.array(c["experiments"]["one"]["observables"]["b"]) for c in (high, low)]
    quotient = (pair[0] - pair[1]) / (2 * h)
    np.testing.assert_allclose(found["curves"]["b"]["k"], quotient, atol=1e-6)
    assert found["magnitudes"]["b_sd"] == 0
    assert "m" not in found["curves"]["a"]
    assert found["magnitudes"]["k"] > found["magnitudes"]["m"] > 0


def test_the_vector_field_is_that_of_the_equations(session: Session) -> None:
    at = values(session, k=0.5, m=0.2)
    asked = {"values": at, "experiment": "one", "x": "b", "y": "a", "box": [0, 1, 0, 2]}
    plane = session.plane(asked)
    B, A = np.meshgrid(plane["x"], plane["y"])
    np.testing.assert_allclose(plane["dx"], 0.5 * A - 0.2 * B)
    np.testing.assert_allclose(plane["dy"], -0.5 * A)


@pytest.mark.parametrize(
    ("ode", "sentence"),
    [
        ({"x": "-k*x", "y": "k*x - y*t"}, "depend on time"),
        ({"x": "-k*x", "y": "k*x", "z": "k*y"}, "over the two states"),
    ],
)
def test_a_missing_vector_field_is_explained(ode: dict[str, str], sentence: str) -> None:
    model = odefit.Model(ode=ode, observables={"o": "x"})
    data = {"t": [1, 2], "o": [1.0, 0.5]}
    start = dict.fromkeys(ode, 1.0)
    session = Session(odefit.Problem(model, data, {"k": {"lower": 0, "upper": 2}}, start))
    asked = {"values": [1.0], "experiment": "data", "x": "x", "y": "y", "box": [0, 1, 0, 1]}
    assert sentence in session.plane(asked)["none"]


def ended(session: Session, seconds: float = 60.0) -> dict[str, Any]:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        report = session.fit_report()
        if report["state"] in ("done", "failed"):
            return report
        time.sleep(0.02)
    raise AssertionError("the fit has not ended")


@pytest.mark.slow
def test_a_fit_begins_at_the_values_and_holds_what_is_frozen(session: Session) -> None:
    at = values(session, k=0.7, m=0.25)
    session.start_fit({"values": at, "frozen": ["m"], "method": "single-shooting"})
    with pytest.raises(odefit.InputError, match="a fit is running; stop it first"):
        session.start_fit({"values": at})
    report = ended(session)
    assert report["state"] == "done", report["error"]
    found = report["result"]["values"]
    assert found["m"] == 0.25
    assert found.keys() == {"k", "m", "a", "b_sd"}
    expected = odefit.fit(session.problem.with_unknowns(fix={"m": 0.25}), odefit.SingleShooting())
    assert found["k"] == pytest.approx(expected.best.parameters["k"], rel=1e-4)
    assert session.last_fit is not None
    session.close()


def test_with_all_unknowns_held_there_is_nothing_to_fit(session: Session) -> None:
    with pytest.raises(odefit.InputError, match="nothing to fit"):
        session.start_fit({"values": values(session), "frozen": list(session.values)})


def test_guesses_are_written_with_everything_else_as_it_was(session: Session, file: Path) -> None:
    before = file.read_text(encoding="utf-8")
    proposed = session.propose_guesses({"values": values(session, k=0.44, m=2.5, a=1.75)})
    assert file.read_text(encoding="utf-8") == before
    assert '+k = { lower = 0.01, upper = 10.0, guess = 0.44, unit = "1/h" }  # fast' in (
        proposed["difference"].splitlines()
    )
    assert proposed["remarks"] == ["b_sd is not written: a problem file has no guesses of noise."]
    session.write_guesses({"digest": proposed["digest"]})
    after = file.read_text(encoding="utf-8")
    changed = [(a, b) for a, b in zip(before.split("\n"), after.split("\n"), strict=True) if a != b]
    assert len(changed) == 3
    guesses = {u.key: u.parameter.guess for u in odefit.load(file).unknowns}
    assert guesses == {"k": 0.44, "m": 2.5, "a": 1.75, "b_sd": None}


def test_a_file_that_has_changed_meanwhile_is_left_alone(session: Session, file: Path) -> None:
    proposed = session.propose_guesses({"values": values(session, k=0.44)})
    theirs = file.read_text(encoding="utf-8").replace("# fast", "# slow")
    file.write_text(theirs, encoding="utf-8")
    with pytest.raises(odefit.InputError, match="has changed since the difference was shown"):
        session.write_guesses({"digest": proposed["digest"]})
    assert file.read_text(encoding="utf-8") == theirs


def test_unshown_guesses_are_not_written(session: Session, file: Path) -> None:
    before = file.read_bytes()
    with pytest.raises(odefit.InputError, match="ask for the difference first"):
        session.write_guesses({"digest": "0" * 64})
    assert file.read_bytes() == before


def test_windows_line_ends_and_subtables_survive(tmp_path: Path) -> None:
    text = DECAY.replace('m = { lower = 0.01, upper = 10.0, scale = "log10" }\n', "").replace(
        "[parameters.unused]\nfixed = 1.0", "[parameters.m]  # slow\nlower = 0.01\nupper = 10.0"
    )
    file = tmp_path / "decay.toml"
    file.write_bytes(text.replace("\n", "\r\n").encode())
    session = Session(odefit.load(file), file=file)
    proposed = session.propose_guesses({"values": values(session, m=0.5)})
    session.write_guesses({"digest": proposed["digest"]})
    after = file.read_bytes().decode()
    assert after.count("\r\n") == after.count("\n")
    assert "[parameters.m]  # slow" in after
    guesses = {u.key: u.parameter.guess for u in odefit.load(file).unknowns}
    assert guesses["m"] == 0.5


def test_a_problem_without_a_file_is_saved_as_a_copy(tmp_path: Path) -> None:
    session = Session(odefit.library.load("harmonic"), folder=tmp_path)
    key = session.problem.keys[0]
    at = values(session, **{key: 7.5})
    with pytest.raises(odefit.InputError, match="save a copy instead"):
        session.propose_guesses({"values": at})
    session.save_copy({"values": at, "name": "copy.toml"})
    copy = odefit.load(tmp_path / "copy.toml")
    assert {u.key: u.parameter.guess for u in copy.unknowns}[key] == 7.5
    with pytest.raises(odefit.InputError, match="exists already"):
        session.save_copy({"values": at, "name": "copy.toml"})
    for name in ("../copy2.toml", "/tmp/x.toml", "copy.yaml", ".toml", ""):
        with pytest.raises(odefit.InputError, match="expected the name of a file"):
            session.save_copy({"values": at, "name": name})


def test_a_result_sets_the_sliders_and_can_be_compared(session: Session) -> None:
    result = odefit.fit(session.problem, odefit.SingleShooting())
    compared = Session(session.problem, result)
    assert compared.values == pytest.approx(
        dict(zip(result.problem.keys, result.best.vector, strict=True))
    )
    assert compared.description()["result"]["objective"] == result.objective
    asked = {"of": "result", "experiments": ["one"], "live": False}
    curve = compared.curves(asked)["experiments"]["one"]["observables"]["a"]
    table = result.simulate(compared.curves(asked)["experiments"]["one"]["times"])
    np.testing.assert_allclose(curve, table["a"], rtol=1e-7)


def test_a_problem_without_unknowns_is_refused() -> None:
    model = odefit.Model(ode={"x": "-x"})
    problem = odefit.Problem(model, {"t": [1], "x": [0.4]}, {}, {"x": 1.0}, t0=0.0)
    with pytest.raises(odefit.InputError, match="nothing to explore"):
        Session(problem)


def test_a_sum_that_is_set_back_is_drawn_from_one_measurement_to_the_next(tmp_path: Path) -> None:
    path = tmp_path / "cases.toml"
    path.write_text(
        """format = 1
[ode]
cases = "k*t"
[parameters]
k = { lower = 0.1, upper = 10.0, guess = 2.0 }
[initial]
cases = 0.0
[[experiment]]
name = "one"
t0 = 0.0
data = { t = [1, 2, 3, 4, 5, 6], cases = [1, 3, 5, 7, 9, 11] }
[[experiment.event]]
time = 1.0
every = 1.0
until = 6.0
assign = { cases = "0" }
""",
        encoding="utf-8",
    )
    session = Session(odefit.load(path))
    answer = session.curves({"values": [2.0], "experiments": ["one"]})
    lines = answer["experiments"]["one"]
    drawn = dict(zip(lines["times"], lines["observables"]["cases"], strict=True))
    assert [drawn[float(t)] for t in range(1, 7)] == pytest.approx([1, 3, 5, 7, 9, 11])
    shown = [v for v in lines["observables"]["cases"] if v is not None]
    assert np.all(np.diff(shown) > -1e-9)  # no teeth
    assert lines["observables"]["cases"][0] is None  # before the first count there is none
    assert answer["objective"] == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize(
    "text",
    [
        "format = 1\ninitial = 3\n",
        "parameters = 3\n",
        "x = " + "[" * 3000,
        "x = \x1b",
        "format = 2\n",
    ],
    ids=["number", "numbers", "deep", "control", "newer"],
)
def test_a_file_that_has_become_no_problem_meanwhile_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "decay.toml").write_text(DECAY, encoding="utf-8")
    problem = odefit.load(tmp_path / "decay.toml")
    (tmp_path / "decay.toml").write_text(text, encoding="utf-8")
    chosen = {u.key: 0.5 for u in problem.unknowns}
    with pytest.raises(odefit.InputError, match=r"decay\.toml"):
        propose(tmp_path / "decay.toml", problem, chosen)


@pytest.mark.slow
def test_the_page_gets_the_distinguishable_ones_of_thousands_of_measurements() -> None:
    result = examples.dense()
    session = Session(result.problem, result)
    (experiment,) = session.description()["experiments"]
    series = experiment["series"]["y"]
    assert series["count"] == 30_000
    assert len(series["values"]) == len(series["times"]) < 15_000
    request = {"values": list(session.values.values()), "experiments": [experiment["name"]]}
    answer = session.curves({**request, "parts": ["observables"]})
    assert len(answer["experiments"][experiment["name"]]["times"]) <= 4 * SEEN_COLUMNS
    assert len(answer["fits"][experiment["name"]]["y"]["residuals"]) == len(series["values"])
    # Objective and likelihood are those of all of them.
    assert answer["log_likelihood"] == pytest.approx(result.log_likelihood, rel=1e-9)


def test_parameters_have_standard_errors_from_the_result_and_units_from_the_problem() -> None:
    result = examples.dense()
    description = Session(result.problem, result).description()
    assert result.uncertainty is not None
    errors = dict(zip(result.problem.keys, result.uncertainty.standard_errors, strict=True))
    assert description["result"]["errors"] == pytest.approx(errors)
    assert description["units"] == {}


def test_a_scenario_has_other_constants_inputs_and_doses_beside_the_first() -> None:
    problem = odefit.Problem(
        odefit.Model(ode={"x": "u - k*x/v"}, constants={"v": 2.0}, inputs={"u": "constant"}),
        experiments=[
            odefit.Experiment(
                "run",
                {"t": [0.0, 1.0, 2.0, 3.0, 4.0], "u": np.zeros(5), "x": np.ones(5)},
                events=[odefit.Event((1.0,), {"x": "x + 10"})],
            )
        ],
        parameters={"k": {"guess": 1.0, "lower": 0.0}},
        initial={"x": 0.0},
    )
    session = Session(problem)
    (given,) = session.description()["givens"].values()
    single = ["event 0 0 x", "event 0 0 t"]
    assert [g["key"] for g in given] == ["v", "input u", "doses", "shift", *single]
    request = {"values": [1.0], "experiments": ["run"], "parts": ["states"]}

    def at_four(changes: dict[str, float]) -> float:
        answer = session.scenario({**request, "changes": {"run": changes}})
        value: float = answer["experiments"]["run"]["states"]["x"][-1]
        return value

    assert at_four({}) == pytest.approx(10 * np.exp(-1.5), rel=1e-6)
    assert at_four({"doses": 3.0}) == pytest.approx(30 * np.exp(-1.5), rel=1e-6)
    assert at_four({"shift": 1.0}) == pytest.approx(10 * np.exp(-1.0), rel=1e-6)
    assert at_four({"event 0 0 x": 4.0}) == pytest.approx(4 * np.exp(-1.5), rel=1e-6)
    assert at_four({"event 0 0 t": 3.0}) == pytest.approx(10 * np.exp(-0.5), rel=1e-6)
    assert at_four({"v": 1.0}) == pytest.approx(10 * np.exp(-3.0), rel=1e-6)
    with pytest.raises(odefit.InputError, match="no scenario changes 'w'"):
        at_four({"w": 1.0})
    with pytest.raises(odefit.InputError, match="expected a number"):
        session.scenario({**request, "changes": {"run": {"v": "many"}}})
    # The first stays as it was.
    first = session.curves(request)["experiments"]["run"]["states"]["x"][-1]
    assert first == pytest.approx(10 * np.exp(-1.5), rel=1e-6)


@pytest.mark.slow
def test_figures_are_those_of_the_result(file: Path) -> None:
    problem = odefit.load(file)
    none = Session(problem)
    with pytest.raises(odefit.InputError, match="there is no fit yet"):
        none.figure({"kind": "starts"})
    result = odefit.fit(problem, seed=1, jobs=1)
    session = Session(problem, result)
    for kind in ("overlay", "ensemble", "forecast", "starts", "parallel", "diagnostics"):
        assert session.figure({"kind": kind})["svg"].rstrip().endswith("</svg>")
    with pytest.raises(odefit.InputError, match="figure: 'pie' is not known"):
        session.figure({"kind": "pie"})
