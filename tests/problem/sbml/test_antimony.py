"""Models in Antimony."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import odefit
from odefit.common.packages import PURPOSES
from odefit.problem import problem_from_mapping
from odefit.problem.sbml import read_antimony, read_sbml
from odefit.simulation import Failure, ForwardMap

ENZYME = """
function bound(e, s, on)
  on*e*s
end

model enzyme  # Michaelis and Menten, with what is taken out at t = 5
  compartment cell = 2;
  species S in cell, E in cell, ES in cell, P in cell;
  binding: S + E -> ES; cell*(bound(E, S, kon) - koff*ES);
  turnover: ES -> E + P; cell*kcat*ES;
  kon = 1.5; koff = 0.2; kcat = 0.7;
  S = 4; E = 1; ES = 0; P = 0;
  total := E + ES;
  at (time >= 5): S = S + 3;
end
"""


def test_a_model_has_the_equations_that_are_written_by_hand() -> None:
    sections = read_antimony(ENZYME).mapping()
    times = np.linspace(0.0, 10.0, 21)[1:]
    (experiment,) = sections["experiment"]
    experiment["data"] = {"t": list(times), "P": [0.0] * len(times)}
    sections["observables"] = {"P": "P"}
    sections["parameters"] = {"kcat": {"lower": 0.1, "upper": 2.0}}
    del sections["constants"]["kcat"]
    problem = problem_from_mapping(sections)
    trajectories = ForwardMap(problem).trajectories(np.array([0.7]), sensitivities=False)
    assert not isinstance(trajectories, Failure)
    (found,) = trajectories

    def rate(_: float, y: np.ndarray) -> list[float]:
        s, e, es, _p = y
        bind = 1.5 * e * s - 0.2 * es
        return [-bind, -bind + 0.7 * es, bind - 0.7 * es, 0.7 * es]

    first = solve_ivp(rate, (0, 5), [4, 1, 0, 0], rtol=1e-11, atol=1e-13, t_eval=times[times <= 5])
    start = first.y[:, -1] + [3, 0, 0, 0]
    second = solve_ivp(rate, (5, 10), start, rtol=1e-11, atol=1e-13, t_eval=times[times > 5])
    expected = np.concatenate([first.y[3], second.y[3]])
    state = problem.model.states.index("P")
    np.testing.assert_allclose(found.states[:, state], expected, rtol=1e-6)


def test_an_antimony_model_equals_the_sbml_of_libantimony(tmp_path: Path) -> None:
    import antimony

    path = tmp_path / "enzyme.ant"
    path.write_text(ENZYME, encoding="utf-8")
    antimony.loadAntimonyString(ENZYME)
    expected = read_sbml(antimony.getSBMLString("enzyme"))
    assert read_antimony(path) == read_antimony(ENZYME) == expected


def test_the_last_of_several_models_is_read_and_one_without_a_name_is_a_model() -> None:
    two = "model a\n A -> ; k*A; A = 1; k = 1\nend\nmodel b\n B -> ; k*B; B = 1; k = 2\nend\n"
    assert read_antimony(two).name == "b"
    assert read_antimony("A -> ; k*A; A = 1; k = 1").name == "model"


def test_a_model_without_data_is_read_from_antimony() -> None:
    model = odefit.Model.from_antimony("A -> ; k*A; A = 1; k = 1; c = 2", parameters=["k"])
    assert model.states == ("A",)
    assert model.parameters == {"k"}
    assert model.constants["c"] == 2.0


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("A -> B; k*", 'Antimony text: line 1: In the reaction rate "k*"'),
        ("x = = 2", "Antimony text: line 1"),
        ("A -> B; k*A;\nimport 'b.ant'", "line 2: 'import' would read another file"),
        ("A -> ; k*delay(A, 2); A = 1; k = 1", "Antimony text: reaction '_J0': a delayed"),
        ("absent.ant", "absent.ant: there is no such file"),
        ("A -> B; k*A" + " " * 1_000_001, "longer than 1000000 characters"),
    ],
)
def test_an_unreadable_model_is_refused_with_the_reason(text: str, words: str) -> None:
    with pytest.raises(odefit.InputError) as caught:
        read_antimony(text)
    assert words in str(caught.value)
    assert "SBML text" not in str(caught.value)


def test_words_in_comments_import_nothing() -> None:
    assert read_antimony('// import\n/* import "x" */ A -> ; k*A; A = 1; k = 1 # import').states


def test_the_package_is_reported_if_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "antimony" in PURPOSES
    monkeypatch.setitem(__import__("sys").modules, "antimony", None)
    with pytest.raises(odefit.InputError, match=r"pip install odefit\[antimony\]"):
        read_antimony("A -> ; k*A")


OUTSIDE = "x' = -k*x; k = 1; x = 2\n"


@pytest.mark.parametrize(
    "text",
    [
        OUTSIDE + '// a comment that ends here \r import "outside.ant"\n',
        OUTSIDE + '# a comment that ends here \r import "outside.ant"\n',
        f'model a\n{OUTSIDE}end\na notes ```x"y```; import "outside.ant"\n',
        f'model a\n{OUTSIDE}end\na notes """x"y"""; import "outside.ant"\n',
        OUTSIDE + 'x is "http://a"; import "outside.ant"',
    ],
)
def test_an_import_cannot_be_hidden_behind_quotes_or_line_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "outside.ant").write_text("secret = 42; y' = -secret*y; y = 1", encoding="utf-8")
    with pytest.raises(odefit.InputError, match=r"import.* another file"):
        read_antimony(text)


@pytest.mark.parametrize(
    "text", ["x' = -é*x; x = 1", "µ' = -µ; é", "x' = -x\u2212; x = 1", "ℵ = \u0301;"]
)
def test_characters_outside_antimony_are_refused(text: str) -> None:
    with pytest.raises(odefit.InputError, match="Antimony text: "):
        read_antimony(text)


def nested(levels: int) -> str:
    first = "model m0()\n x' = -x; x = 1\nend\n"
    pairs = (f"model m{i}()\n A: m{i - 1}(); B: m{i - 1}();\nend\n" for i in range(1, levels + 1))
    return first + "".join(pairs)


def test_models_that_double_at_each_level_are_refused_before_they_are_built() -> None:
    assert len(read_antimony(nested(3)).states) == 8
    with pytest.raises(odefit.InputError, match="m9 holds more than 1000 models"):
        read_antimony(nested(60))


def test_a_statement_that_would_take_minutes_is_refused() -> None:
    with pytest.raises(odefit.InputError, match="a statement is longer than 20000 characters"):
        read_antimony(f"x' = {'+'.join(['x'] * 30_000)}; x = 1")


def test_events_of_one_trigger_go_by_priority_and_may_cancel_one_that_is_not_persistent() -> None:
    """The case sbml-events: SBML level 3 version 2 core, section 4.11."""
    file = Path(__file__).parents[2] / "cases" / "sbml-events" / "m.ant"
    sections = read_antimony(file).mapping()
    [experiment] = sections["experiment"]
    names = ("level", "valve", "bypass", "log1")
    sections["observables"] = {f"{name}_": name for name in names}
    experiment["data"] = {"t": [1.0, 3.0], "level_": [1.0, 3.0]}
    problem = problem_from_mapping(sections)
    found = odefit.simulate(problem, np.zeros(0), np.array([1.0, 3.0]))
    assert not isinstance(found, Failure)
    for name, values in {"valve": (1, 0), "bypass": (0, 0), "log1": (0, 1)}.items():
        assert found.observables[f"{name}_"].tolist() == pytest.approx(values)
