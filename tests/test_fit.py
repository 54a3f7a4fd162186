"""fit(): the right answer to known problems, and a reason where there is none."""

from __future__ import annotations

import math
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import odefit
from odefit import (
    Control,
    Experiment,
    InputError,
    Model,
    MultiStart,
    Problem,
    SingleShooting,
    Start,
    Status,
)
from odefit.methods.estimate import Completeness, Estimate
from odefit.problem import problem_to_mapping
from tests.methods.problems import decay, explosive, oscillator

TWELVE = (
    "bbg fitzhugh-nagumo harmonic lotka-volterra-f lotka-volterra-p mammillary-3-f "
    "mammillary-3-p hiv-f hiv-p crauste-f crauste-p"
).split()
"""The noiseless ones of the twelve of local-and-global-solvers."""


SLOW = {"crauste-f", "fitzhugh-nagumo", "hiv-p"}


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.slow if n in SLOW else ()) for n in TWELVE]
)
def test_the_noiseless_problems_are_solved(name: str) -> None:
    """Without guess; every unknown to 1e-4 of the value that made the data."""
    problem, reference = odefit.library.load(name), odefit.library.reference(name)
    result = odefit.fit(problem, seed=1)
    assert result.status is Status.CONVERGED
    assert result.objective < 1e-12
    truth = problem.vector({**reference.parameters, **reference.initial})
    assert result.best.vector == pytest.approx(truth, rel=1e-4)
    assert result.assessment.local is not None
    assert result.assessment.local.optimal


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_alpha_pinene_of_1945_is_fitted(seed: int) -> None:
    """p in [0, 1], no guess, no scale: 19.872 at the reference of FACTS.md."""
    result = odefit.fit(odefit.library.load("alpha-pinene"), seed=seed)
    assert result.status is Status.CONVERGED
    assert result.objective == pytest.approx(19.8722, abs=1e-3)
    known = {"p1": 5.926e-5, "p2": 2.963e-5, "p3": 2.048e-5, "p4": 2.753e-4, "p5": 4.017e-5}
    for name, value in known.items():
        assert result.best.parameters[name] == pytest.approx(value, rel=5e-3)
    assert result.uncertainty is not None
    assert result.uncertainty.trouble == {}
    assert result.uncertainty.degrees_of_freedom == 8 * 5 - 5


@pytest.mark.parametrize("name", ["rational-harmonic", "rational-van-der-pol", "sir"])
def test_problems_without_bounds_are_solved_too(name: str) -> None:
    problem, reference = odefit.library.load(name), odefit.library.reference(name)
    result = odefit.fit(problem, seed=1)
    truth = problem.vector({**reference.parameters, **reference.initial})
    assert result.best.vector == pytest.approx(truth, rel=1e-4)


def test_the_same_seed_gives_the_same_result_whatever_runs_it() -> None:
    method = MultiStart(starts=6, screening=4)
    serial = odefit.fit(oscillator(), method, seed=5, jobs=1)
    with ThreadPoolExecutor(3) as executor:
        threads = odefit.fit(oscillator(), method, seed=5, executor=executor)
    assert np.array_equal(serial.best.vector, threads.best.vector)
    assert serial.objective == threads.objective
    assert [s.cost for s in serial.starts] == [s.cost for s in threads.starts]


def test_every_distinct_solution_is_listed_the_best_first() -> None:
    result = odefit.fit(oscillator(), MultiStart(starts=30, screening=1), seed=1)
    objectives = [s.objective for s in result.solutions]
    assert len(objectives) > 2
    assert objectives == sorted(objectives)
    assert result.best.parameters["w"] == pytest.approx(2.3, rel=0.05)
    assert sum(s.hits for s in result.solutions) <= 30
    frequencies = [s.parameters["w"] for s in result.solutions]
    assert min(np.abs(np.diff(sorted(frequencies)))) > 1e-3


def test_the_answer_is_no_worse_than_any_start() -> None:
    result = odefit.fit(decay(), seed=1)
    assert result.objective <= min(s.objective for s in result.starts) * (1 + 1e-9)


def test_a_ridge_is_one_solution_with_a_reason() -> None:
    problem = decay(
        model=Model(ode={"x": "-k*m*x"}, observables={"y": "s*x"}),
        parameters={"k": {"lower": 0}, "m": {"lower": 0}, "s": {"lower": 0}},
    )
    result = odefit.fit(problem, MultiStart(starts=6), seed=1)
    assert len(result.solutions) == 1
    assert result.uncertainty is not None
    assert set(result.uncertainty.trouble) == {"k", "m"}
    assert np.isfinite(result.uncertainty.standard_errors[2])


def test_two_equally_good_solutions_are_both_told() -> None:
    """The sign of a never shows."""
    problem = decay(
        model=Model(ode={"x": "-a^2*x"}, observables={"y": "s*x"}),
        parameters={"a": {"lower": -3.0, "upper": 3.0}, "s": {"lower": 0}},
    )
    result = odefit.fit(problem, MultiStart(starts=12), seed=1)
    signs = {float(np.sign(s.parameters["a"])) for s in result.solutions}
    assert signs == {-1.0, 1.0}
    assert result.solutions[0].objective == pytest.approx(result.solutions[1].objective)
    assert any("as well" in w or "equally" in w for w in result.warnings)


def test_known_values_stand_beside_the_estimates() -> None:
    problem = decay(parameters={"k": {"lower": 0.0}, "s": 2.0}, initial={"x": "0.5*s"})
    best = odefit.fit(problem, MultiStart(starts=2)).best
    assert best.parameters["s"] == 2.0
    assert best.initial == {"x": 1.0}


def test_values_of_experiments_are_keyed_by_their_names() -> None:
    times = np.linspace(0, 2, 6)
    experiments = [
        Experiment(name, {"t": times, "x": x0 * np.exp(-k * times)})
        for name, k, x0 in (("a", 0.5, 1.0), ("b", 1.5, 2.0))
    ]
    problem = Problem(
        Model(ode={"x": "-k*x"}),
        parameters={"k": {"per_experiment": True, "lower": 0.0}},
        initial={"x": {"per_experiment": True}},
        experiments=experiments,
    )
    best = odefit.fit(problem, seed=1).best
    assert best.parameters == pytest.approx({"k[a]": 0.5, "k[b]": 1.5})
    assert best.initial == pytest.approx({"x[a]": 1.0, "x[b]": 2.0})


def scattered() -> Problem:
    """A decay with an unknown standard deviation."""
    plain = decay()
    return Problem(
        plain.model,
        plain.data(),
        plain.parameters,
        plain.initial,
        noise={"y": {"sd": "estimate"}},
    )


def test_an_estimated_sd_is_among_the_parameters() -> None:
    result = odefit.fit(scattered(), seed=1)
    assert result.best.parameters["y_sd"] == pytest.approx(0.04, abs=0.03)
    assert result.log_likelihood is not None
    assert result.objective == pytest.approx(9.0, rel=1e-4)


def test_a_fit_that_fails_everywhere_is_a_result_with_the_reason() -> None:
    problem = explosive().with_parameters(k={"lower": 1.0, "upper": 3.0})
    result = odefit.fit(problem, MultiStart(starts=3))
    assert result.status is Status.FAILED
    assert result.solutions == ()
    assert math.isnan(result.objective)
    assert result.uncertainty is None
    assert result.message.startswith("all 3 starts failed: ")


def test_failed_starts_are_warned_of() -> None:
    result = odefit.fit(explosive(upper=300.0), MultiStart(starts=8, screening=1), seed=1)
    failed = sum(s.status is Status.FAILED for s in result.starts)
    assert 0 < failed < 8
    assert any(f"{failed} of 8 starts failed" in w for w in result.warnings)


def test_a_time_limit_gives_the_best_so_far() -> None:
    began = time.perf_counter()
    result = odefit.fit(oscillator(), MultiStart(starts=10**6), time_limit=0.5, jobs=1)
    assert result.status is Status.TIME_LIMIT
    assert result.solutions
    assert result.uncertainty is not None
    assert time.perf_counter() - began < 60  # not for ever


def test_single_shooting_is_a_method_too() -> None:
    problem = decay().with_parameters(k={"guess": 1.0}, s={"guess": 1.0})
    result = odefit.fit(problem, SingleShooting())
    assert result.method == "SingleShooting"
    assert len(result.starts) == 1
    assert result.objective == pytest.approx(odefit.fit(decay()).objective, rel=1e-9)


def test_a_method_that_stops_too_early_is_driven_on() -> None:
    """The last improvement is made on any answer."""
    problem = decay().with_parameters(k={"guess": 5.0}, s={"guess": 9.0})
    result = odefit.fit(problem, SingleShooting(evaluations=2))
    assert result.status is Status.CONVERGED
    assert result.objective == pytest.approx(odefit.fit(decay()).objective, rel=1e-9)


def test_the_last_improvement_can_be_left_out() -> None:
    """Then the answer is the method's own."""
    problem = decay().with_parameters(k={"guess": 5.0}, s={"guess": 9.0})
    short = SingleShooting(evaluations=2)
    result = odefit.fit(problem, short, polish=False)
    assert result.status is Status.NOT_CONVERGED
    assert np.array_equal(result.best.vector, result.starts[0].vector)
    assert result.objective > 1.01 * odefit.fit(problem, short).objective


@dataclass(frozen=True)
class Final(SingleShooting):
    """Its answer is the one that is wanted."""

    @property
    def answer_is_final(self) -> bool:
        return True


def test_a_method_may_ask_for_its_answer_to_be_left_alone() -> None:
    """Unless the user says what he wants."""
    problem = decay().with_parameters(k={"guess": 5.0}, s={"guess": 9.0})
    best = odefit.fit(decay()).objective
    assert odefit.fit(problem, Final(evaluations=2)).objective > 1.01 * best
    assert odefit.fit(problem, Final(evaluations=2), polish=False).objective > 1.01 * best
    told = odefit.fit(problem, Final(evaluations=2), polish=True)
    assert told.objective == pytest.approx(best, rel=1e-9)


def test_a_checkpoint_is_gone_on_with(tmp_path: Path) -> None:
    path = tmp_path / "fit.checkpoint"
    first = odefit.fit(oscillator(), MultiStart(starts=4), seed=1, checkpoint=path)
    stored = path.read_bytes()
    second = odefit.fit(oscillator(), MultiStart(starts=4), seed=1, checkpoint=str(path))
    assert path.read_bytes() == stored
    assert np.array_equal(first.best.vector, second.best.vector)


def test_the_result_says_how_to_repeat_it() -> None:
    result = odefit.fit(decay(), seed=11)
    assert result.seed == 11
    assert result.seconds > 0
    assert {"odefit", "numpy", "heyoka", "casadi"} <= set(result.versions)
    assert result.problem.keys == ("k", "s")


def test_a_fit_leaves_its_problem_alone() -> None:
    problem = decay()
    before = problem_to_mapping(problem)
    odefit.fit(problem, MultiStart(starts=2))
    assert str(problem_to_mapping(problem)) == str(before)


def test_nothing_to_estimate_is_refused() -> None:
    with pytest.raises(InputError, match="there is nothing to estimate"):
        odefit.fit(decay(parameters={"k": 0.7, "s": 2.0}))


def test_more_unknowns_than_measurements_are_refused() -> None:
    problem = decay(data={"t": [0.0, 1.0], "y": [2.0, None]})
    with pytest.raises(InputError, match=r"1 measurements? cannot determine 2 unknowns"):
        odefit.fit(problem)


def test_a_prior_counts_as_a_measurement() -> None:
    problem = decay(data={"t": [0.0, 1.0], "y": [2.0, None]}).with_parameters(
        k={"prior": {"mean": 0.5, "sd": 0.1}}
    )
    result = odefit.fit(problem, seed=1)
    assert result.best.vector == pytest.approx([0.5, 2.0], rel=1e-5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"seed": -1}, "seed: expected a whole number, not negative, got -1"),
        ({"seed": 1.5}, "seed: expected a whole number"),
        ({"seed": "one"}, "seed: expected a whole number"),
        ({"time_limit": 0.0}, "time_limit: expected a positive number of seconds, got 0.0"),
        ({"time_limit": -3}, "time_limit: expected a positive number"),
        ({"time_limit": math.nan}, "time_limit: expected a positive number"),
        ({"level": 0.0}, "level: expected a number between 0 and 1"),
        ({"level": 95}, "level: expected a number between 0 and 1, got 95"),
        ({"jobs": 0}, "jobs: expected a positive whole number, got 0"),
        ({"jobs": -2}, "jobs: expected a positive whole number"),
    ],
)
def test_arguments_that_make_no_sense_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        odefit.fit(decay(), **arguments)
    assert str(caught.value).startswith(message)


def test_a_checkpoint_that_cannot_be_written_is_refused_early(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist"):
        odefit.fit(decay(), checkpoint=tmp_path / "no" / "file")


def test_numpy_numbers_are_numbers() -> None:
    numbers: Any = {"seed": np.int64(3), "time_limit": np.float64(60), "jobs": np.int32(1)}
    result = odefit.fit(decay(), MultiStart(starts=1), **numbers)
    assert result.status is Status.CONVERGED


# Methods that count solutions ------------------------------------------------------------------


@dataclass(frozen=True)
class Counting:
    """A method that returns given vectors, one start each, and a count."""

    vectors: tuple[tuple[float, ...], ...]
    completeness: Completeness | None
    name: str = "Counting"

    def solve(self, problem: Problem, control: Control) -> Estimate:
        forward = odefit.ForwardMap(problem)
        starts = []
        for i, values in enumerate(self.vectors):
            vector = np.array(values)
            at = forward.evaluate(vector)
            assert not isinstance(at, odefit.Failure)
            starts.append(
                Start(
                    i, vector, vector, at.objective, Status.CONVERGED, "", 1, 0.0, at.cost, {}, True
                )
            )
        return Estimate(tuple(starts), Status.CONVERGED, "given", completeness=self.completeness)


def hyperbola() -> Problem:
    """y = p q exp(-t): a product alone is determined."""
    times = np.linspace(0.0, 2.0, 6)
    return Problem(
        Model(ode={"x": "-x"}, observables={"y": "p*q*x"}),
        {"t": times, "y": 6.0 * np.exp(-times)},
        {"p": {}, "q": {"lower": 0.0, "upper": 5.0}},
        {"x": 1.0},
    )


TWO = Completeness(possible=2, found=2, real=2, lost=0, doubt=0.0)


def test_solutions_that_a_method_tells_apart_are_not_merged() -> None:
    """Two parts in 10^4 apart: one end for a search from many starts, two solutions if counted."""
    near = ((2.0, 3.0), (2.0004, 3.0 / 1.0002))
    counted = odefit.fit(hyperbola(), Counting(near, TWO), polish=False)
    assert len(counted.solutions) == 2
    searched = odefit.fit(hyperbola(), Counting(near, None), polish=False)
    assert len(searched.solutions) == 1
    assert searched.best.hits == 2


def test_solutions_on_a_ridge_are_not_merged_if_a_method_tells_them_apart() -> None:
    apart = ((2.0, 3.0), (3.0, 2.0))
    assert len(odefit.fit(hyperbola(), Counting(apart, TWO), polish=False).solutions) == 2
    assert len(odefit.fit(hyperbola(), Counting(apart, None), polish=False).solutions) == 1


def test_what_is_known_of_the_number_of_solutions_is_in_the_assessment() -> None:
    apart = ((2.0, 3.0), (3.0, 2.0))
    complete = odefit.fit(hyperbola(), Counting(apart, TWO), polish=False).assessment.complete
    assert complete is not None
    assert (complete.possible, complete.found) == (2, 2)
    assert "within the bounds" not in complete.sentence
    plain = odefit.fit(hyperbola(), Counting(apart, None), polish=False)
    assert plain.assessment.complete is None


def test_the_assessment_says_how_many_are_within_the_bounds() -> None:
    one = odefit.fit(hyperbola(), Counting(((2.0, 3.0),), TWO), polish=False)
    complete = one.assessment.complete
    assert complete is not None
    assert "2 of them real and 1 within the bounds" in complete.sentence


def test_what_is_known_of_the_number_of_solutions_survives_a_file(tmp_path: Path) -> None:
    apart = ((2.0, 3.0), (3.0, 2.0))
    result = odefit.fit(hyperbola(), Counting(apart, TWO), polish=False)
    result.save(tmp_path / "r.json")
    again = odefit.load_result(tmp_path / "r.json")
    mine, read = result.assessment.complete, again.assessment.complete
    assert mine is not None
    assert read is not None
    assert (read.possible, read.found, read.sentence) == (mine.possible, mine.found, mine.sentence)
    assert len(again.solutions) == 2
