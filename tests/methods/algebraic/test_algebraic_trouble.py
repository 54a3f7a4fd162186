"""Data and problems that the method can do little with, or nothing: each is told so."""

from __future__ import annotations

import functools
import itertools
import re
import signal
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import odefit
from odefit import Control, Experiment, InputError, Model, Problem, Progress, Status
from odefit.methods.algebraic import Algebraic
from odefit.methods.algebraic.preparation import prepare
from odefit.methods.estimate import Estimate
from tests.methods.algebraic.models import (
    LOGISTIC,
    LOGISTIC_TRUTH,
    PREY,
    PREY_TRUTH,
    TIMES,
    best,
    integrated,
    logistic,
    named,
    prey,
    prey_rhs,
    solved,
    toy,
    worst,
)


def refused(problem: Problem, **options: Any) -> str:
    """The one line in which the problem is refused."""
    with pytest.raises(InputError) as caught:
        solved(problem, **options)
    said = str(caught.value)
    assert "\n" not in said
    return said


# Too little data --------------------------------------------------------------------------------


def test_too_few_points_for_the_derivatives_are_refused_with_the_number_needed() -> None:
    """Five unknowns and one output: derivatives up to order 4."""
    said = refused(prey(TIMES[:5]), points=1)
    assert "y: the algebraic method needs its derivatives up to order 4" in said
    assert "takes 6 measurements" in said
    assert "there are 5" in said
    assert "take another method" in said


@pytest.mark.slow
def test_as_many_points_as_needed_are_taken() -> None:
    problem = prey(TIMES[::6])
    assert problem.size == 6
    found = best(solved(problem, points=1, complete=False))
    assert worst(problem, found.vector, PREY_TRUTH) < 1e-6


def test_two_times_together_need_lower_derivatives() -> None:
    """States at both, three parameters and two states more: orders 0 to 3, not 0 to 4."""
    assert "up to order 3" in refused(prey(TIMES[:4]), points=2)
    assert "up to order 4" in refused(prey(TIMES[:4]), points=1)


def test_a_missing_value_is_not_a_measurement() -> None:
    """NaN in a row, or a column that was never measured."""
    values = np.where(np.arange(len(TIMES)) % 8 == 0, integrated(prey_rhs, [1.2, 0.4])[0], np.nan)
    assert "there are 4" in refused(prey(values=values))


def test_an_experiment_with_too_few_points_is_named() -> None:
    experiments = [
        Experiment("long", {"t": TIMES, "y": logistic(1.0)}),
        Experiment("short", {"t": TIMES[:2], "y": logistic(2.0)[:2]}),
    ]
    parameters: dict[str, Any] = {"k": {}, "j": {}}
    initial = {"x": {"per_experiment": True}}
    said = refused(Problem(LOGISTIC, None, parameters, initial, experiments=experiments))
    assert said.startswith("experiment 'short', y: ")


def test_segments_between_events_must_be_long_enough() -> None:
    events = [odefit.Event(tuple(TIMES[1::2] + 0.01), {"x": "x + 0.1"})]
    experiment = Experiment("doses", {"t": TIMES, "y": np.ones(31)}, events=events)
    problem = Problem(LOGISTIC, None, {"k": {}, "j": {}}, {"x": {}}, experiments=[experiment])
    assert "without events or corners of inputs in between" in refused(problem)


def test_outputs_that_determine_nothing_are_refused() -> None:
    model = Model(ode={"x": "-k*x"}, observables={"y": "2"})
    problem = Problem(model, {"t": TIMES, "y": np.full(31, 2.0)}, {"k": {}}, {"x": {}})
    assert "determine none of its unknowns" in refused(problem)


# Models without Taylor series -------------------------------------------------------------------


@pytest.mark.parametrize("function", ["abs(x)", "min(x, 1)", "max(x, 1, k)"])
def test_a_kink_is_refused_and_named(function: str) -> None:
    model = Model(ode={"x": f"-k*{function}"}, observables={"y": "x"})
    said = refused(Problem(model, {"t": TIMES, "y": np.exp(-TIMES)}, {"k": {}}, {"x": {}}))
    assert f"{function.split('(')[0]}(...) has a kink" in said


# Options ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("fractions", [(), (1.5,), (0.5, -0.1), (float("nan"),)])
def test_fractions_are_between_0_and_1(fractions: tuple[float, ...]) -> None:
    with pytest.raises(InputError, match="Algebraic, fractions: expected numbers between 0 and 1"):
        Algebraic(fractions=fractions)


def test_a_missing_smoother_is_refused() -> None:
    with pytest.raises(InputError, match="Algebraic, smoothers: expected at least one, or None"):
        Algebraic(smoothers=())


# Odd data ---------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_gap_costs_accuracy_that_polishing_restores() -> None:
    """A third of the interval without measurements."""
    times = np.concatenate([TIMES[:11], TIMES[21:]])
    estimate = solved(prey(times))
    assert worst(prey(times), best(estimate).vector, PREY_TRUTH) < 1e-8


@pytest.mark.slow
def test_rows_that_are_not_measured_are_skipped() -> None:
    values = integrated(prey_rhs, [1.2, 0.4])[0]
    values[11:15] = np.nan
    problem = prey(values=values)
    assert worst(problem, best(solved(problem)).vector, PREY_TRUTH) < 1e-8


@pytest.mark.slow
def test_replicates_are_averaged() -> None:
    """Two measurements at every time, as far above the truth as below."""
    times = np.sort(np.concatenate([TIMES, TIMES]))
    sign = np.tile([1.0, -1.0], len(TIMES))
    exact = np.repeat(integrated(prey_rhs, [1.2, 0.4])[0], 2)
    problem = prey(times, exact + 1e-3 * sign)
    estimate = solved(problem, polish=False)
    assert worst(problem, best(estimate).vector, PREY_TRUTH) < 1e-6
    assert best(estimate).objective == pytest.approx(62 * 1e-6, rel=1e-3)


@pytest.mark.slow
def test_constant_outputs_are_fitted_by_a_search_and_not_called_a_solution() -> None:
    """Prey at rest shows a = b w, and no more."""
    estimate = solved(prey(values=np.full(31, 0.5)))
    values = named(prey(), best(estimate).vector)
    assert best(estimate).objective < 1e-15
    assert values["b"] * values["w"] == pytest.approx(values["a"], abs=1e-6)
    assert "none of its solutions gives a trajectory through the data" in estimate.message
    assert "the result shown is from MultiStart(SingleShooting)" in estimate.message
    assert estimate.completeness is None


@pytest.mark.slow
def test_an_output_that_is_zero_causes_no_crash() -> None:
    estimate = solved(prey(values=np.zeros(31)), Control(seed=0, deadline=time.monotonic() + 30))
    assert best(estimate).objective < 1e-15
    assert "the result shown is from MultiStart(SingleShooting)" in estimate.message


@functools.cache
def foreign() -> Estimate:
    """Decays that share parameters and initial value, and yet begin at three values."""
    experiments = [
        Experiment(f"run {i}", {"t": TIMES, "y": logistic(x)})
        for i, x in enumerate((1.0, 2.0, 3.0))
    ]
    problem = Problem(LOGISTIC, None, {"k": {}, "j": {}}, {"x": {}}, experiments=experiments)
    return solved(problem)


@pytest.mark.slow
def test_data_that_no_solution_fits_are_searched_from_many_starts_and_that_is_reported() -> None:
    message = foreign().message
    assert "none of its solutions gives a trajectory through the data" in message
    assert "the model may not describe these data" in message
    assert "the result shown is from MultiStart(SingleShooting)" in message
    assert foreign().completeness is None


@pytest.mark.slow
def test_starts_of_the_search_follow_those_of_the_equations() -> None:
    starts = foreign().starts
    assert [s.index for s in starts] == list(range(len(starts)))
    assert {s.status for s in starts if "interval" in s.message} == {Status.NOT_CONVERGED}
    assert any(s.status is Status.CONVERGED for s in starts)


@pytest.mark.slow
def test_data_of_another_model_are_not_called_explained() -> None:
    """An oscillation is no decay."""
    values = 2.0 + np.sin(3.0 * TIMES)
    problem = Problem(toy().model, {"t": TIMES, "y": values}, {"mu": {}}, {"x": {}})
    estimate = solved(problem)
    assert best(estimate).objective > 1.0
    assert "the model may not describe these data" in estimate.message
    assert "the result shown is from MultiStart(SingleShooting)" in estimate.message


@pytest.mark.slow
def test_noise_that_hides_the_derivatives_is_reported() -> None:
    """Five per cent, of which no fourth derivative can be taken."""
    noise = 0.05 * np.random.default_rng(1).normal(size=31)
    problem = prey(values=integrated(prey_rhs, [1.2, 0.4])[0] + noise)
    message = solved(problem, points=1).message
    assert re.search(r"the derivatives of the data .* that of order \d of y is", message)


def test_moderate_noise_is_explained_and_its_answer_is_the_least_squares_fit() -> None:
    """One per cent, 31 points: no grid point around the answer fits better."""
    noise = 0.01 * np.random.default_rng(1).normal(size=31)
    values = logistic(1.0) + noise
    problem = Problem(LOGISTIC, {"t": TIMES, "y": values}, {"k": {}, "j": {}}, {"x": {}})
    estimate = solved(problem)
    found = named(problem, best(estimate).vector)
    assert "leaves more than the noise" not in estimate.message
    assert best(estimate).objective < float(noise @ noise)
    steps = np.linspace(-0.02, 0.02, 5)
    for k, j, x in itertools.product(found["k"] + steps, found["j"] + steps, found["x"] + steps):
        decay = np.exp(-j * TIMES)
        model = j * x * decay / (j + k * x * (1.0 - decay))
        assert float(((model - values) ** 2).sum()) >= best(estimate).objective * (1 - 1e-9)


# Ends -------------------------------------------------------------------------------------------


class Interrupting:
    """Sets the flag when a message turns up."""

    def __init__(self, word: str) -> None:
        self.word = word
        self.control = Control(seed=0, report=self)

    def __call__(self, progress: Progress) -> None:
        if self.word in progress.message:
            self.control.interrupted.set()


@pytest.mark.parametrize(
    "word",
    [
        *(pytest.param(w, marks=pytest.mark.slow) for w in ("preparing", "solving")),
        "other solutions",
    ],
)
def test_an_interrupted_fit_returns_its_results_so_far(word: str) -> None:
    solved(toy())  # all that is kept on disk
    interrupting = Interrupting(word)
    found = solved(toy(), interrupting.control)
    assert found.status is Status.INTERRUPTED
    assert len(found.starts) >= 1
    assert best(found).objective < 1e-2


def test_an_interruption_during_the_preparation_leaves_nothing_on_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A search for solutions that was stopped is not taken for all of them."""
    monkeypatch.setenv("ODEFIT_CACHE", str(tmp_path))
    interrupted = threading.Event()
    interrupted.set()
    found = solved(toy(), Control(seed=0, interrupted=interrupted))
    assert found.status is Status.INTERRUPTED
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_ctrl_c_ends_with_the_best_so_far() -> None:
    def interrupt(progress: Progress) -> None:
        if "other solutions" in progress.message:
            signal.raise_signal(signal.SIGINT)

    found = solved(toy(), Control(seed=0, report=interrupt))
    assert found.status is Status.INTERRUPTED
    assert best(found).objective < 1e-5
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.slow
def test_a_time_limit_returns_the_results_so_far() -> None:
    solved(toy())
    found = solved(toy(), Control(seed=0, deadline=time.monotonic()))
    assert found.status is Status.TIME_LIMIT
    assert best(found).objective < 1e-2


def test_a_fit_that_is_short_of_time_says_so() -> None:
    result = odefit.fit(toy(), Algebraic(), time_limit=1e-3)
    assert result.status is Status.TIME_LIMIT


def test_progress_is_reported() -> None:
    seen: list[str] = []
    solved(toy(), Control(seed=0, report=lambda p: seen.append(p.message)))
    assert seen[0] == "preparing the equations"
    assert "solving the polynomial system" in seen
    assert seen[-1] == "looking for other solutions"


@pytest.mark.slow
def test_zero_outputs_of_a_model_at_rest_are_reported() -> None:
    """A model whose outputs all vanish at x(0) = 0: nothing can be said, and that is said."""
    model = Model(ode={"x": "k*x*w", "w": "-j*w*x"}, observables={"y": "x"})
    data = {"t": TIMES, "y": np.zeros(31)}
    problem = Problem(model, data, {"k": {}, "j": {}}, {"x": 0.0, "w": 1.0})
    try:
        message = solved(problem, Control(seed=0, deadline=time.monotonic() + 20)).message
    except InputError as error:
        message = str(error)
    assert "determine none" in message or "none of its solutions gives a trajectory" in message


def test_names_of_the_models_agree() -> None:
    """What the tests take for the truth is what the problems are made of."""
    assert set(prey().keys) == set(PREY_TRUTH)
    assert set(LOGISTIC_TRUTH) < {"k", "j", "x"}
    assert tuple(PREY.ode) == ("r", "w")


@pytest.mark.slow
def test_there_is_no_remark_on_other_solutions_where_an_unknown_is_held() -> None:
    times = np.linspace(0.0, 4.0, 21)
    problem = Problem(
        Model(ode={"x": "-(a + b)*x"}),
        {"t": times, "x": np.exp(-0.9 * times)},
        {"a": {}, "b": {}},
        {"x": 1.0},
    )
    result = odefit.fit(problem, Algebraic(), seed=1)
    complete = result.assessment.complete
    assert complete is not None
    assert not complete.known
    assert "their total number is not known" in complete.sentence


def test_a_division_by_zero_at_the_start_may_be_defined_later() -> None:
    times = np.linspace(0.0, 3.0, 31)
    # x = sqrt(t) from 0, where its rate 1/(2 x) is not defined; measured from t = 0.5 on.
    problem = Problem(
        Model(ode={"z": "1", "x": "k*x/z"}, observables={"y": "x"}),
        {"t": times[5:], "y": np.sqrt(times[5:])},
        {"k": {"lower": 0.1, "upper": 2.0}},
        {"z": 0.0, "x": 0.0},
        t0=0.0,
    )
    assert prepare(problem).free_states
