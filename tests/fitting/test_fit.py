"""fit(): the right answer to known problems, and a reason where there is none."""

from __future__ import annotations

import math
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from importlib import import_module
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
from odefit.methods.estimate import Certificate, Completeness, Estimate, Route
from odefit.methods.local.cost_tolerance import CostTolerance
from odefit.methods.method import Method
from odefit.problem import problem_to_mapping
from odefit.simulation import residual_table
from tests.methods.problems import decay, explosive, oscillator

TWELVE = (
    "bbg fitzhugh-nagumo harmonic lotka-volterra-f lotka-volterra-p mammillary-3-f "
    "mammillary-3-p hiv-f hiv-p crauste-f crauste-p"
).split()
"""The noiseless ones of the twelve of local-and-global-solvers."""


SLOW = {"crauste-f", "crauste-p", "fitzhugh-nagumo", "hiv-p"}


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


@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 2))])
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


@pytest.mark.slow
def test_the_same_seed_gives_the_same_result_whatever_runs_it() -> None:
    method = MultiStart(starts=6, screening=4)
    serial = odefit.fit(oscillator(), method, seed=5, jobs=1)
    with ThreadPoolExecutor(3) as executor:
        threads = odefit.fit(oscillator(), method, seed=5, executor=executor)
    assert np.array_equal(serial.best.vector, threads.best.vector)
    assert serial.objective == threads.objective
    assert [s.cost for s in serial.starts] == [s.cost for s in threads.starts]


@pytest.mark.slow
def test_every_distinct_solution_is_listed_the_best_first() -> None:
    result = odefit.fit(oscillator(), MultiStart(starts=30, screening=1), seed=1)
    objectives = [s.objective for s in result.solutions]
    assert len(objectives) > 2
    assert objectives == sorted(objectives)
    assert result.best.parameters["w"] == pytest.approx(2.3, rel=0.05)
    assert sum(s.hits for s in result.solutions) <= 30
    frequencies = [s.parameters["w"] for s in result.solutions]
    assert min(np.abs(np.diff(sorted(frequencies)))) > 1e-3


@pytest.mark.slow
def test_the_answer_is_no_worse_than_any_start() -> None:
    result = odefit.fit(decay(), seed=1)
    assert result.objective <= min(s.objective for s in result.starts) * (1 + 1e-9)


@pytest.mark.slow
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


@pytest.mark.slow
def test_two_equally_good_solutions_are_both_reported() -> None:
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


def test_known_values_are_shown_beside_the_estimates() -> None:
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


@pytest.mark.slow
def test_a_time_limit_gives_the_best_so_far() -> None:
    began = time.perf_counter()
    result = odefit.fit(oscillator(), MultiStart(starts=10**6), time_limit=0.5, jobs=1)
    assert result.status is Status.TIME_LIMIT
    assert result.solutions
    assert result.uncertainty is not None
    assert time.perf_counter() - began < 60  # not for ever


def test_an_answer_that_cannot_be_beaten_has_converged_whatever_ended_the_search() -> None:
    """The last improvement has brought it to zero."""

    @dataclass(frozen=True)
    class Late(Ends):
        def solve(self, problem: Problem, control: Control) -> Estimate:
            return replace(super().solve(problem, control), status=Status.TIME_LIMIT)

    near = Late((((0.6, 1.9), 1.0),))
    assert odefit.fit(decay(noise=0.0), near).status is Status.CONVERGED
    assert odefit.fit(decay(noise=0.0), near, polish=False).status is Status.TIME_LIMIT
    assert odefit.fit(decay(), near).status is Status.TIME_LIMIT


@pytest.mark.slow
def test_single_shooting_is_a_method_too() -> None:
    problem = decay().with_parameters(k={"guess": 1.0}, s={"guess": 1.0})
    result = odefit.fit(problem, SingleShooting())
    assert result.method == "SingleShooting"
    assert len(result.starts) == 1
    assert result.objective == pytest.approx(odefit.fit(decay()).objective, rel=1e-9)


@pytest.mark.slow
def test_a_method_that_stops_too_early_is_continued() -> None:
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


@pytest.mark.slow
def test_a_method_may_ask_for_its_answer_to_be_left_alone() -> None:
    """Unless the user says what he wants."""
    problem = decay().with_parameters(k={"guess": 5.0}, s={"guess": 9.0})
    best = odefit.fit(decay()).objective
    assert odefit.fit(problem, Final(evaluations=2)).objective > 1.01 * best
    assert odefit.fit(problem, Final(evaluations=2), polish=False).objective > 1.01 * best
    told = odefit.fit(problem, Final(evaluations=2), polish=True)
    assert told.objective == pytest.approx(best, rel=1e-9)


def test_a_checkpoint_is_continued(tmp_path: Path) -> None:
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


def test_a_fit_does_not_change_its_problem() -> None:
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


def test_one_value_after_t0_determines_a_rate() -> None:
    """The case one-point-no-t0, with t0."""
    problem = odefit.Problem(
        odefit.Model(ode={"x": "-k*x"}),
        {"t": [2.0], "x": [3.7]},
        {"k": (0.0, None)},
        {"x": 10.0},
        t0=0.0,
    )
    result = odefit.fit(problem, seed=1, jobs=1)
    assert result.best.vector == pytest.approx([np.log(10.0 / 3.7) / 2.0], rel=1e-6)  # .49713


def test_values_at_t0_alone_are_refused_where_the_states_are_known() -> None:
    problem = odefit.Problem(
        odefit.Model(ode={"x": "-k*x"}), {"t": [0.0], "x": [3.7]}, {"k": (0.0, None)}, {"x": 10.0}
    )
    with pytest.raises(odefit.InputError, match="nothing is measured after t0, so the equations"):
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
def test_meaningless_arguments_are_refused(arguments: dict[str, Any], message: str) -> None:
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


# Converged means what a user thinks -----------------------------------------------------------


def test_a_fit_without_noise_converges_where_errors_grow() -> None:
    """Bock's example: residuals of 1e-8 are those of the last digit of p."""
    result = odefit.fit(odefit.library.load("bock"))
    assert result.status is Status.CONVERGED
    assert result.best.parameters["p"] == pytest.approx(math.pi, rel=1e-12)
    # Other integrators cannot follow it, and that is told.
    assert all("No two integrators agree" in warning for warning in result.warnings)


def test_zero_under_given_noise_is_zero() -> None:
    """No measurement could tell 1e-9 of the data from nothing, whatever the unit of residuals."""
    times = np.linspace(0.0, 4.0, 9)
    plain = decay(data={"t": times, "y": 2 * np.exp(-0.7 * times)})
    given = Problem(
        plain.model, plain.data(), plain.parameters, plain.initial, noise={"y": {"sd": 1e-3}}
    )
    result = odefit.fit(given, MultiStart(), seed=1)
    assert result.status is Status.CONVERGED
    assert result.starts[0].exact
    assert len(result.starts) == 2  # as many as the zero of plain least squares needs
    assert len(result.solutions) == 1


@pytest.mark.slow
@pytest.mark.parametrize("name", odefit.library.names())
def test_the_status_is_right_for_every_problem_of_the_library(name: str) -> None:
    """Converged is what is as good as the reference, and what is zero has converged."""
    problem, reference = odefit.library.load(name), odefit.library.reference(name)
    result = odefit.fit(problem, seed=1, time_limit=20, jobs=1)
    forward = odefit.ForwardMap(problem)
    known = forward.evaluate(problem.vector({**reference.parameters, **reference.initial}))
    assert not isinstance(known, odefit.Failure)
    negligible = 2 * CostTolerance.of(forward).absolute
    if result.status is Status.CONVERGED:
        assert result.objective <= 1.001 * known.objective + negligible
    else:
        assert result.status is Status.TIME_LIMIT
        assert result.objective > negligible


def waves(frequency: float, sd: float, **more: Any) -> Problem:
    """x = sin(w t) over many periods, from a guess of w."""
    times = np.linspace(0.0, 30.0, 301)
    random = np.random.default_rng(1)
    arguments: dict[str, Any] = {
        "model": Model(ode={"x": "w*y", "y": "-w*x"}),
        "data": {"t": times, "x": np.sin(2.0 * times) + sd * random.normal(size=301)},
        "parameters": {"w": {"lower": 0.1, "upper": 6.0, "guess": frequency}},
        "initial": {"x": 0.0, "y": 1.0},
        **more,
    }
    return Problem(**arguments)


DRIVEN = Model(ode={"x": "w*cos(w*t)"})
"""The same x, driven at given times, where nothing is known of answers at other speeds."""


@pytest.mark.slow
@pytest.mark.parametrize("noise", [0.0, 1e-4, 0.1])
def test_a_local_optimum_far_from_the_data_is_not_a_converged_fit(noise: float) -> None:
    """A wrong frequency fits nothing; how large the noise is, dense data tell by themselves."""
    wrong = odefit.fit(waves(3.0, noise, model=DRIVEN, initial={"x": 0.0}), SingleShooting())
    assert wrong.best.parameters["w"] != pytest.approx(2.0, abs=0.1)
    assert wrong.assessment.local is not None
    assert wrong.assessment.local.optimal
    assert wrong.status is Status.NOT_CONVERGED
    assert "does not describe the data" in wrong.message
    right = odefit.fit(waves(2.01, noise), SingleShooting())
    assert right.best.parameters["w"] == pytest.approx(2.0, abs=0.01)
    assert right.status is Status.CONVERGED


@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_a_better_answer_at_another_speed_replaces_one_that_does_not_fit(
    noise: float,
) -> None:
    result = odefit.fit(waves(3.0, noise), SingleShooting())
    assert result.best.parameters["w"] == pytest.approx(2.0, abs=0.01)
    assert result.status is Status.CONVERGED
    assert not result.ambiguous
    assert not result.warnings


@pytest.mark.parametrize(("sd", "warned"), [(0.1, False), (0.03, True)])
def test_a_warning_names_residuals_above_the_given_noise(sd: float, warned: bool) -> None:
    result = odefit.fit(waves(2.01, 0.1, noise={"x": {"sd": sd}}), SingleShooting())
    assert result.status is Status.CONVERGED
    assert any("larger than the given noise" in w for w in result.warnings) == warned


@dataclass(frozen=True)
class Routed(SingleShooting):
    """Tells of so many routes that ended at its answer."""

    reached: int = 1

    def solve(self, problem: Problem, control: Control) -> Estimate:
        found = super().solve(problem, control)
        routes = [Route(f"route {i}", 1, 0, 1, 0.0, 0.0, "") for i in range(self.reached)]
        return replace(found, routes=routes)


@pytest.mark.parametrize("reached", [1, 2])
def test_agreement_of_several_methods_is_accepted_although_the_model_is_not_exact(
    reached: int,
) -> None:
    """A straight line through an arc, without noise: the best that the model can do."""
    times = np.linspace(0.0, 1.0, 40)
    problem = Problem(
        Model(ode={"x": "b"}),
        {"t": times, "x": 1 + 2 * times + 0.3 * times**2},
        {"b": {"guess": 1.0}},
        {"x": {"guess": 1.0}},
    )
    result = odefit.fit(problem, Routed(reached=reached))
    accepted = reached > 1
    assert result.status is (Status.CONVERGED if accepted else Status.NOT_CONVERGED)
    said = "describes the data, but not to within the noise"
    assert any(said in w for w in result.warnings) == accepted
    assert (said in result.message) != accepted


@pytest.mark.slow
@pytest.mark.parametrize("certify", [False, True])
def test_a_proved_optimum_far_from_the_data_shows_that_the_model_is_wrong(certify: bool) -> None:
    times = np.linspace(0.0, 1.0, 40)
    problem = Problem(
        Model(ode={"x": "-b*x"}),
        {"t": times, "x": 1 + 2 * times + 0.3 * times**2},
        {"b": {"lower": -5.0, "upper": 5.0}},
        {"x": 1.0},
    )
    result = odefit.fit(problem, SingleShooting(), certify=certify)
    assert result.status is (Status.CONVERGED if certify else Status.NOT_CONVERGED)
    assert any("so the model does not describe the data" in w for w in result.warnings) == certify


def test_estimated_noise_may_cover_what_the_model_omits() -> None:
    """The arc again, now with a standard deviation that the residuals make."""
    times = np.linspace(0.0, 1.0, 40)
    problem = Problem(
        Model(ode={"x": "b"}),
        {"t": times, "x": 1 + 2 * times + 0.3 * times**2},
        {"b": {"guess": 1.0}},
        {"x": {"guess": 1.0}},
        noise={"x": {"sd": "estimate"}},
    )
    result = odefit.fit(problem, SingleShooting())
    assert result.status is Status.CONVERGED
    assert not any("describes the data" in w for w in result.warnings)


# The best that can be evaluated ---------------------------------------------------------------


@dataclass(frozen=True)
class Ends(Method):
    """A method that ends at given vectors, with costs of its own."""

    ends: tuple[tuple[tuple[float, ...], float], ...]
    name: str = "Ends"

    def solve(self, problem: Problem, control: Control) -> Estimate:
        starts = tuple(
            Start(i, np.array(v), np.array(v), 2 * c, Status.CONVERGED, "", 1, 0.0, c)
            for i, (v, c) in enumerate(self.ends)
        )
        return Estimate(starts, Status.CONVERGED, "given")


@pytest.mark.parametrize("polish", [pytest.param(True, marks=pytest.mark.slow), False])
def test_the_next_end_replaces_a_best_one_that_cannot_be_integrated(polish: bool) -> None:
    """x = 1/(1 - k t) has no value at t = 4 for k = 0.3."""
    method = Ends((((0.3,), 1e-9), ((0.29,), 1e-8), ((0.1,), 1e-7)))
    result = odefit.fit(explosive(), method, polish=polish)
    assert result.best.parameters["k"] == pytest.approx(0.1)
    (warning,) = result.warnings
    assert "cannot be integrated at full accuracy" in warning
    assert "instead of 2e-09" in warning


def test_an_end_that_cannot_be_integrated_is_tried_with_other_tolerances(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With so few steps, 1e-6 can be had and 1e-9 cannot; a second opinion has more."""
    monkeypatch.setattr("odefit.simulation.engines.steps.IMPLICIT_STEPS", 500)
    times = np.linspace(0.0, 20.0, 30)
    problem = Problem(
        Model(ode={"x": "y", "y": "-w*w*x - 0*abs(x)"}),
        {"t": times, "x": np.cos(1.3 * times)},
        {"w": {"lower": 0.1, "upper": 5.0}},
        {"x": 1.0, "y": 0.0},
    )
    assert isinstance(odefit.ForwardMap(problem).evaluate(np.array([1.3])), odefit.Failure)
    result = odefit.fit(problem, Ends((((1.3001,), 1e-9),)))
    assert result.best.parameters["w"] == pytest.approx(1.3, abs=1e-5)
    (warning,) = result.warnings
    assert "explicit engine, with which another integrator agrees" in warning
    assert result.uncertainty is not None
    course = result.simulate()
    assert course["x"].to_numpy() == pytest.approx(np.cos(1.3 * times), abs=1e-3)
    table = residual_table(problem, result.best.vector)  # what reports show
    assert not isinstance(table, odefit.Failure)
    (residuals,) = table
    assert np.abs(residuals.standardized).max() < 1e-3


# Whatever interrupts it -----------------------------------------------------------------------


STAGES: dict[str, Any] = {
    "run": SingleShooting,  # the last improvement
    "linear_uncertainty": import_module("odefit.fitting.fit_result"),
    "assess_misfit": import_module("odefit.fitting.fit_result"),
    "assess_goodness": import_module("odefit.fitting.fit_result"),
    "distinct_solutions": import_module("odefit.fitting.fit_result"),
}


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("raised", [True, False])
def test_an_interruption_at_any_stage_gives_the_best_so_far(
    stage: str, raised: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By Ctrl-C, or, the second time, by the exception."""
    called = getattr(STAGES[stage], stage)

    def interrupted(*arguments: Any, **options: Any) -> Any:
        monkeypatch.undo()
        if raised:
            raise KeyboardInterrupt
        signal.raise_signal(signal.SIGINT)
        return called(*arguments, **options)

    monkeypatch.setattr(STAGES[stage], stage, interrupted)
    result = odefit.fit(decay(), Ends((((0.5, 1.5), 1.0), ((0.1, 1.0), 2.0))))
    assert result.status is Status.INTERRUPTED
    assert result.solutions
    assert result.assessment.local is not None
    assert np.isfinite(result.objective)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_method_reserves_time_for_the_last_improvement() -> None:
    @dataclass(frozen=True)
    class Slow(Ends):
        def solve(self, problem: Problem, control: Control) -> Estimate:
            assert control.deadline is not None
            left.append(control.deadline - time.monotonic())
            return super().solve(problem, control)

    left: list[float] = []
    for limit in (20.0, 1000.0):
        odefit.fit(decay(), Slow((((0.5, 1.5), 1.0),)), time_limit=limit)
    assert left[0] == pytest.approx(18.0, abs=1.0)
    assert left[1] == pytest.approx(995.0, abs=1.0)


# What the equations and branch and bound know -------------------------------------------------


def flip_flop(**bounds: Any) -> Problem:
    """Absorption and elimination, of which the plasma does not tell which is which."""
    times = np.array([0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 9.0, 12.0])
    ka, ke, volume = 1.5, 0.1, 0.5
    course = 4.0 * ka / (ka - ke) * (np.exp(-ke * times) - np.exp(-ka * times)) / volume
    return Problem(
        Model(ode={"gut": "-ka*gut", "blood": "ka*gut - ke*blood"}, observables={"c": "blood/V"}),
        {"t": times, "c": course + 0.01 * np.random.default_rng(1).normal(size=10)},
        {k: {"lower": 0.001, "upper": 20.0, **bounds.get(k, {})} for k in ("ka", "ke", "V")},
        {"gut": 4.0, "blood": 0.0},
        t0=0.0,
    )


FIT: Any = import_module("odefit.fitting.fit_result")
SOLUTIONS: Any = import_module("odefit.fitting.solutions")
"""The modules whose functions and limits tests replace."""


@pytest.fixture
def ample_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SOLUTIONS, "COUNT_WORK", 3e9)
    monkeypatch.setattr(SOLUTIONS, "SEARCH_WORK", 3e9)


@pytest.mark.slow
@pytest.mark.usefixtures("ample_work")
def test_a_fit_lists_the_solutions_that_the_equations_admit() -> None:
    """Whether a start has ended there or not."""
    result = odefit.fit(flip_flop(), seed=1)
    assert result.assessment.complete is not None
    assert (result.assessment.complete.possible, result.assessment.complete.found) == (2, 2)
    assert len(result.solutions) == 2
    one, other = (s.parameters for s in result.solutions)
    assert (one["ka"], one["ke"]) == pytest.approx((other["ke"], other["ka"]), rel=1e-6)
    assert result.solutions[1].objective == pytest.approx(result.objective, rel=1e-6)
    assert any("2 different solutions fit equally well" in w for w in result.warnings)


@pytest.mark.usefixtures("ample_work")
def test_solutions_outside_the_bounds_are_reported_too() -> None:
    result = odefit.fit(flip_flop(ka={"lower": 0.3}, ke={"upper": 0.3}), seed=1)
    assert len(result.solutions) == 1
    assert result.assessment.complete is not None
    sentence = result.assessment.complete.sentence
    assert "2 of them real and 1 within the bounds. Outside the bounds: ka = 0.0" in sentence
    assert not result.warnings


@pytest.mark.usefixtures("ample_work")
def test_one_solution_is_called_the_only_one() -> None:
    result = odefit.fit(decay(noise=0.0), seed=1)
    text = str(result)
    assert "The equations admit no second solution with the same outputs." in text
    assert "others may fit as well" not in text
    assert "Certificate" not in text


@pytest.mark.slow
@pytest.mark.usefixtures("ample_work")
def test_the_estimates_do_not_depend_on_the_work_for_the_equations(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ample = odefit.fit(flip_flop(), seed=1)
    monkeypatch.setattr(SOLUTIONS, "COUNT_WORK", 0.0)
    hasty = odefit.fit(flip_flop(), seed=1)
    assert hasty.assessment.complete is None
    assert "Completeness" not in str(hasty)
    assert np.array_equal(hasty.best.vector, ample.best.vector)


@pytest.mark.slow
def test_an_answer_with_undetermined_unknowns_claims_no_count() -> None:
    """The amplitude is zero there, and the rate, which the equations determine, does nothing."""
    times = np.linspace(0.0, 4.0, 30)
    noise = np.random.default_rng(1).normal(size=30)
    flat = Problem(
        Model(ode={"x": "-k*x"}, observables={"y": "c + x"}),
        {"t": times, "y": 1.0 + 0.01 * np.abs(noise) * times},
        {"k": {"lower": 0.1, "upper": 2.0}, "c": {}},
        {"x": {"lower": 0.0}},
    )
    result = odefit.fit(flat, seed=1)
    assert result.best.initial["x"] == 0.0
    assert result.assessment.complete is None


@pytest.mark.slow
def test_only_a_default_fit_asks_the_equations() -> None:
    assert odefit.fit(decay(), MultiStart(), seed=1).assessment.complete is None


@pytest.mark.slow
def test_a_certificate_is_added_to_any_fit() -> None:
    result = odefit.fit(decay(), certify=True, seed=1, time_limit=60).assessment.bounds
    plain = odefit.fit(decay().with_parameters(s={"lower": 0.0, "upper": 5.0}), seed=1)
    proved = odefit.fit(
        decay().with_parameters(s={"lower": 0.0, "upper": 5.0}), certify=True, seed=1, time_limit=60
    )
    assert result is None  # s has no upper bound
    assert proved.assessment.bounds is not None
    assert proved.assessment.bounds.closed
    assert proved.assessment.bounds.lower <= plain.objective
    assert proved.assessment.bounds.upper == pytest.approx(plain.objective, rel=1e-6)
    assert proved.objective == pytest.approx(plain.objective, rel=1e-9)
    assert proved.assessment.local is not None
    assert "No other values within the bounds" in proved.assessment.local.sentence


@pytest.mark.parametrize(
    ("problem", "reason"),
    [
        (decay(), "needs finite bounds of all unknowns"),
        pytest.param(
            odefit.library.load("rational-hiv"),
            "branch and bound is too slow for more than 12 unknowns, and there are 15",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_a_failed_certificate_leaves_the_fit(problem: Problem, reason: str) -> None:
    method = SingleShooting(evaluations=30)
    result = odefit.fit(problem, method, certify=True, time_limit=20)
    assert result.assessment.bounds is None
    assert result.solutions
    (warning,) = (w for w in result.warnings if w.startswith("No certificate: "))
    assert reason in warning


@pytest.mark.slow
def test_a_better_point_found_by_the_proof_is_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A single start has found the wrong frequency."""
    right = odefit.fit(waves(2.01, 0.1), SingleShooting())
    bounds = Certificate(0.9 * right.objective, right.objective, "continuous time")

    def proof(*_: Any) -> tuple[Estimate, str]:
        return Estimate(right.starts, Status.CONVERGED, "", bounds), ""

    monkeypatch.setattr(FIT, "certify_answer", proof)
    result = odefit.fit(waves(3.0, 0.1), SingleShooting(), certify=True)
    assert np.array_equal(result.best.vector, right.best.vector)
    assert [s.index for s in result.starts] == [0, 1]
    assert result.status is Status.CONVERGED


@pytest.mark.slow
def test_steps_after_the_search_are_reported() -> None:
    told: list[str] = []
    odefit.fit(decay(), seed=1, certify=True, progress=lambda p: told.append(p.message))
    assert told[-3:] == [
        "improving the best answer",
        "proving bounds of the objective",
        "counting the solutions of the equations",
    ]


@pytest.mark.slow
def test_methods_have_names() -> None:
    named = odefit.fit(decay(), "multi-start", seed=1)
    assert named.method == MultiStart().name
    assert np.array_equal(named.best.vector, odefit.fit(decay(), MultiStart(), seed=1).best.vector)
    with pytest.raises(InputError, match="did you mean 'multi-start'"):
        odefit.fit(decay(), "multi-stat")


# Methods that count solutions ------------------------------------------------------------------


@dataclass(frozen=True)
class Counting(Method):
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


def test_solutions_that_a_method_distinguishes_are_not_merged() -> None:
    """Two parts in 10^4 apart: one end for a search from many starts, two solutions if counted."""
    near = ((2.0, 3.0), (2.0004, 3.0 / 1.0002))
    counted = odefit.fit(hyperbola(), Counting(near, TWO), polish=False)
    assert len(counted.solutions) == 2
    searched = odefit.fit(hyperbola(), Counting(near, None), polish=False)
    assert len(searched.solutions) == 1
    assert searched.best.hits == 2


def test_solutions_on_a_ridge_are_not_merged_if_a_method_distinguishes_them() -> None:
    apart = ((2.0, 3.0), (3.0, 2.0))
    assert len(odefit.fit(hyperbola(), Counting(apart, TWO), polish=False).solutions) == 2
    assert len(odefit.fit(hyperbola(), Counting(apart, None), polish=False).solutions) == 1


def test_the_assessment_holds_the_number_of_solutions() -> None:
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


def test_the_number_of_solutions_survives_a_file(tmp_path: Path) -> None:
    apart = ((2.0, 3.0), (3.0, 2.0))
    result = odefit.fit(hyperbola(), Counting(apart, TWO), polish=False)
    result.save(tmp_path / "r.json")
    again = odefit.load_result(tmp_path / "r.json")
    mine, read = result.assessment.complete, again.assessment.complete
    assert mine is not None
    assert read is not None
    assert (read.possible, read.found, read.sentence) == (mine.possible, mine.found, mine.sentence)
    assert len(again.solutions) == 2
