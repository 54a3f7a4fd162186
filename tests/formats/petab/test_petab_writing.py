"""Problems written as PEtab: read back, and judged by PEtab's own linter."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import odefit
from odefit import Event, Experiment, InputError, Model, Parameter, Problem
from odefit.common.arrays import Array
from odefit.formats.petab import read_petab, write_petab
from odefit.problem.variants.start_ranges import ranges
from odefit.simulation import Evaluation, ForwardMap
from tests.simulation.residuals.test_residual_arrays import CASES

REFUSED = {"many conditions", "noise of everything"}


def assert_equal(problem: Problem, back: Problem, vector: Array) -> None:
    """The same unknowns in the same order, the same data, and the same residuals."""
    assert len(back.keys) == len(problem.keys)
    assert back.lower.tolist() == problem.lower.tolist()
    assert back.upper.tolist() == problem.upper.tolist()
    priors = [u.parameter.prior for u in problem.unknowns]
    assert [u.parameter.prior for u in back.unknowns] == priors
    assert back.size == problem.size
    found = [ForwardMap(p).evaluate(vector) for p in (problem, back)]
    one, other = found
    assert isinstance(one, Evaluation), one
    assert isinstance(other, Evaluation), other
    if one.log_likelihood is None:
        assert other.cost == pytest.approx(one.cost, rel=1e-8, abs=1e-10)
    else:  # standard deviations of decimal logarithms shift the cost by a constant
        assert other.log_likelihood == pytest.approx(one.log_likelihood, rel=1e-8, abs=1e-10)
    assert np.sort(other.residuals) == pytest.approx(np.sort(one.residuals), rel=1e-8, abs=1e-10)
    gradients = [e.jacobian.T @ e.residuals for e in (one, other)]
    assert gradients[1] == pytest.approx(gradients[0], rel=1e-6, abs=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("name", [n for n in CASES if n not in REFUSED])
def test_problems_with_all_features_are_read_back_as_they_were(name: str, tmp_path: Path) -> None:
    problem, vector = CASES[name]()
    assert_equal(problem, read_petab(write_petab(problem, tmp_path)).problem, vector)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(
            n,
            marks=pytest.mark.slow
            if n.startswith("rational-") or n in {"rikitake", "hiv-proteinase"}
            else (),
        )
        for n in odefit.library.names()
    ],
)
def test_library_problems_are_read_back_as_they_were(name: str, tmp_path: Path) -> None:
    problem = odefit.library.load(name)
    back = odefit.load(odefit.save(problem, tmp_path / "written.yaml"))
    random = np.random.default_rng(1)
    for _ in range(20):
        shares = random.random(len(problem.unknowns))
        vector = np.array(
            [float(r.at(np.array(u))) for r, u in zip(ranges(problem), shares, strict=True)]
        )
        if isinstance(ForwardMap(problem).evaluate(vector), Evaluation):
            assert_equal(problem, back, vector)
            return
    assert back.keys  # it cannot be integrated from any of these values
    assert back.size == problem.size


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    ["doses and switches", "an input and the time", "nonlinear algebra", "a column", "log10"],
)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of pandas, by the linter itself
def test_the_linter_of_petab_finds_nothing(name: str, tmp_path: Path) -> None:
    pytest.importorskip("petab.v2", reason="the linter is an extra package")
    from petab.v2.lint import lint_problem

    problem, _ = CASES[name]()
    found = lint_problem(str(write_petab(problem, tmp_path)))
    assert not list(found), [str(issue) for issue in found]


def decay(**more: Any) -> Problem:
    times = np.linspace(0.0, 4.0, 5)
    arguments: dict[str, Any] = {
        "model": Model(ode={"x": "-k*x"}, observables={"y": "x"}),
        "data": {"t": times, "y": 2 * np.exp(-0.5 * times)},
        "parameters": {"k": {"lower": 0.0, "guess": 0.4}},
        "initial": {"x": 2.0},
        "noise": {"y": {"sd": 0.1}},
    }
    return Problem(**{**arguments, **more})


PRIORS: dict[str, dict[str, float]] = {
    "normal": {"mean": 0.4, "sd": 0.2},
    "laplace": {"location": 0.4, "scale": 0.1},
    "log-normal": {"mean": -0.5, "sd": 0.4},
    "log-laplace": {"location": -0.5, "scale": 0.3},
    "uniform": {"lower": 0.1, "upper": 0.9},
    "log-uniform": {"lower": 0.1, "upper": 0.9},
    "cauchy": {"location": 0.4, "scale": 0.1},
    "chi-square": {"degrees": 2.5},
    "exponential": {"scale": 0.3},
    "gamma": {"shape": 2.0, "scale": 0.2},
    "rayleigh": {"scale": 0.4},
}


@pytest.mark.parametrize("family", PRIORS)
def test_priors_are_written(family: str, tmp_path: Path) -> None:
    prior = {"distribution": family, **PRIORS[family]}
    problem = decay(parameters={"k": {"upper": 5.0, "prior": prior}})
    back = read_petab(write_petab(problem, tmp_path)).problem
    assert_equal(problem, back, np.array([0.37]))
    assert back.log_prior([0.37]) == pytest.approx(problem.log_prior([0.37]))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "noise",
    [
        {"sd": 0.1, "distribution": "laplace"},
        {"sd": "estimate", "distribution": "laplace", "transform": "log10"},
        {"sd": "0.1 + 0.2*x*k", "transform": "log"},
    ],
)
def test_scales_of_noise_are_those_of_odefit(noise: dict[str, Any], tmp_path: Path) -> None:
    problem = decay(noise={"y": noise})
    vector = np.array([0.6, 0.3])[: len(problem.keys)]
    assert_equal(problem, read_petab(write_petab(problem, tmp_path)).problem, vector)


@pytest.mark.parametrize("measured", ["before", "after"])
@pytest.mark.parametrize("time", [0.0, 2.0, 2.5])
def test_events_divide_time_into_periods(time: float, measured: Any, tmp_path: Path) -> None:
    times = np.linspace(0.0, 4.0, 5)
    events = [
        Event((time,), {"x": "x + d", "d": "2*d"}, measured=measured),
        Event((time,), {"x": "x + k*d"}, measured=measured),
    ]
    problem = decay(
        model=Model(ode={"x": "-k*x"}, observables={"y": "x"}, constants={"d": 1.0}),
        data=None,
        experiments=[
            Experiment("with a dose", {"t": times, "y": times}, events=events),
            Experiment("without", {"t": times, "y": times}, constants={"d": "k"}),
        ],
    )
    assert_equal(problem, read_petab(write_petab(problem, tmp_path)).problem, np.array([0.6]))


@pytest.mark.parametrize(
    "event",
    [
        Event((), when="x < 1", assign={"x": "x + k"}),
        Event(("1.3*k",), {"x": "x + d", "d": "2*d"}),
        Event((), when="t >= 1.3*k && x < 3", assign={"d": "d + 1"}, measured="after"),
    ],
)
def test_triggers_and_estimated_times_are_events_of_the_model(event: Event, tmp_path: Path) -> None:
    times = np.linspace(0.0, 4.0, 5)
    problem = decay(
        model=Model(ode={"x": "0.1*d - k*x"}, observables={"y": "x"}, constants={"d": 1.0}),
        data=None,
        experiments=[Experiment("one", {"t": times, "y": times}, events=[event])],
    )
    assert_equal(problem, read_petab(write_petab(problem, tmp_path)).problem, np.array([0.63]))


def test_triggers_that_differ_between_experiments_are_refused(tmp_path: Path) -> None:
    data = {"t": [0.0, 1.0], "y": [2.0, 1.0]}
    event = Event((), when="x < 1", assign={"x": "2"})
    experiments = [Experiment("one", data), Experiment("two", data, events=[event])]
    with pytest.raises(InputError, match="not those of the first experiment"):
        write_petab(decay(data=None, experiments=experiments), tmp_path)


def test_a_steady_state_is_a_period_from_minus_infinity(tmp_path: Path) -> None:
    problem = decay(
        model=Model(ode={"x": "u - k*x"}, observables={"y": "x"}, constants={"u": 1.0}),
        data=None,
        experiments=[
            Experiment(
                "stimulated",
                {"t": [0.0, 1.0, 2.0], "y": [2.0, 3.0, 4.0]},
                t0=0.0,
                steady_state=True,
                events=[Event((0.0,), {"u": 3.0}, measured="after")],
            )
        ],
    )
    path = write_petab(problem, tmp_path)
    assert "-inf" in (tmp_path / "experiments.tsv").read_text()
    assert_equal(problem, read_petab(path).problem, np.array([0.6]))


def test_values_of_experiments_become_separate_parameters(tmp_path: Path) -> None:
    data = {"t": [0.0, 1.0, 2.0], "y": [2.0, 1.0, 0.4]}
    problem = decay(
        data=None,
        parameters={"k": Parameter(lower=0.1, upper=2.0, per_experiment=True)},
        initial={"x": Parameter(lower=0.0, per_experiment=True)},
        experiments=[Experiment("run 1", data), Experiment("run 2", data)],
    )
    back = read_petab(write_petab(problem, tmp_path)).problem
    assert back.keys == ("k_run_1", "k_run_2", "x_0_run_1", "x_0_run_2")
    assert_equal(problem, back, np.array([0.4, 0.7, 1.5, 2.5]))


def test_names_that_sbml_reserves_get_an_underscore(tmp_path: Path) -> None:
    problem = decay(
        model=Model(ode={"time": "-pi*time"}, observables={"y": "time"}),
        parameters={"pi": {"lower": 0.0}},
        initial={"time": 2.0},
    )
    back = read_petab(write_petab(problem, tmp_path)).problem
    assert back.keys == ("pi_",)
    assert_equal(problem, back, np.array([0.6]))


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"noise": {"y": {"sd": 0.1, "loss": "student"}}}, "cannot express student"),
        ({"noise": {"y": {"sd": 0.1, "lower_limit": 1.0}}}, "cannot express censored values"),
        (
            {"parameters": {"k": {"prior": {"mean": 0.0, "sd": 1.0, "on": "log10"}}}},
            "only densities of the value itself",
        ),
    ],
)
def test_features_that_petab_lacks_are_refused(more: Any, words: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=words):
        write_petab(decay(**more), tmp_path)
    assert not list(tmp_path.iterdir())


SUITE = Path(__file__).parents[2] / "data" / "petab" / "suite"


def log_likelihood(problem: Problem, vector: Array) -> float:
    """Return the log-likelihood; NaN where odefit does not integrate such a problem."""
    try:
        found = ForwardMap(problem).evaluate(vector)
    except InputError:
        return math.nan
    assert isinstance(found, Evaluation)
    assert found.log_likelihood is not None
    return found.log_likelihood


@pytest.mark.slow
@pytest.mark.parametrize(
    "case", sorted(p.relative_to(SUITE).as_posix() for p in SUITE.glob("v?/*"))
)
def test_the_conformity_suite_goes_through_odefit_unchanged(case: str, tmp_path: Path) -> None:
    (path,) = [p for p in (SUITE / case).glob("*.yaml") if not p.stem.endswith("_solution")]
    found = read_petab(path)
    vector = found.problem.vector(dict(found.nominal))
    for target in ("petab", "written.toml"):
        back = odefit.load(odefit.save(found.problem, tmp_path / target))
        one, other = (log_likelihood(p, vector) for p in (found.problem, back))
        assert other == pytest.approx(one, rel=1e-8, nan_ok=True)


NUMBERS = st.floats(0.01, 100.0).map(lambda x: float(f"{x:.6g}"))
FUNCTIONS = st.sampled_from(["sin", "exp", "atan", "tanh", "cos"])
TERMS = st.recursive(
    st.sampled_from(["x", "k", "a", "t"]) | NUMBERS.map(repr),
    lambda inner: st.one_of(
        st.builds("({} {} {})".format, inner, st.sampled_from("+-*"), inner),
        st.builds("{}(({})/(1 + abs({})))".format, FUNCTIONS, inner, inner),
        st.builds("piecewise({}, {} < {}, {})".format, inner, inner, inner, inner),
        inner.map("(-{})".format),
    ),
    max_leaves=6,
)


@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(observable=TERMS, sd=TERMS, value=NUMBERS)
def test_any_formula_is_read_back(observable: str, sd: str, value: float, tmp_path: Path) -> None:
    problem = decay(
        model=Model(ode={"x": "-k*x"}, observables={"y": observable}, constants={"a": value}),
        noise={"y": {"sd": f"0.1 + abs({sd})"}},
    )
    back = read_petab(write_petab(problem, tmp_path)).problem
    vector = np.array([0.7])
    found = [ForwardMap(p).evaluate_cost(vector) for p in (problem, back)]
    assert type(found[0]) is type(found[1])
    if isinstance(found[0], Evaluation):
        # Costs leave out what is constant, which a noise formula without any variable is.
        one, other = (log_likelihood(p, vector) for p in (problem, back))
        assert other == pytest.approx(one, rel=1e-9, abs=1e-9)


def test_names_and_the_unit_of_time_come_back(tmp_path: Path) -> None:
    """An observable called like its state, the problem's name and its unit of time."""
    for unit in ("min", "week", "generations", ""):
        problem = Problem(
            Model(ode={"P": "-k*P"}, observables={"P": "P", "half": "P/2"}),
            {"t": [0.0, 1.0, 2.0], "P": [1.0, 0.6, 0.4], "half": [0.5, 0.3, 0.2]},
            {"k": {"lower": 0.1, "upper": 2.0}},
            {"P": 1.0},
            noise={"P": {"sd": 0.1}, "half": {"sd": "0.1 + 0.1*P"}},
            name="decay",
            time_unit=unit,
        )
        folder = tmp_path / (unit or "none")
        write_petab(problem, folder)
        back = read_petab(folder / "problem.yaml").problem
        assert tuple(back.model.observables) == ("P", "half")
        assert (back.name, back.time_unit) == ("decay", unit)
