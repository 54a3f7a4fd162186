"""``BranchAndBound`` from its options to what is said of its bounds."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import odefit
from odefit import BranchAndBound, Model, Problem, fit, library
from odefit.common.errors import InputError
from odefit.methods.branch_and_bound import local_minima
from odefit.methods.branch_and_bound.measure import variation
from odefit.methods.estimate import Status
from odefit.methods.local.stopping import Minimum
from odefit.methods.running.control import Control, Progress
from odefit.simulation.engines.cut_off import CountedSeconds
from tests.methods import problems
from tests.methods.branch_and_bound.batches import stopped_after

TIMES = np.linspace(0.0, 4.0, 9)


def bounded(noise: float = 0.05, **more: Any) -> Problem:
    fields = {"k": {"lower": 0.0, "upper": 10.0}, "s": {"lower": 0.0, "upper": 20.0}}
    return problems.decay(noise, parameters=fields, **more)


def one(ode: str = "-k*x", upper: float = 3.0, **more: Any) -> Problem:
    """Return a problem with a single unknown."""
    return Problem(
        Model(ode={"x": ode}),
        {"t": TIMES, "x": np.exp(-0.7 * TIMES) + 0.05 * np.sin(5 * TIMES)},
        {"k": {"lower": 0.0, "upper": upper}},
        {"x": 1.0},
        **more,
    )


@pytest.mark.slow
def test_a_certificate_in_continuous_time() -> None:
    result = fit(bounded(), BranchAndBound(starts=3), seed=1)
    assert result.status is Status.CONVERGED
    assert result.message.startswith("the bounds have met after")
    bounds = result.assessment.bounds
    assert bounds is not None
    assert bounds.closed
    assert bounds.scope == "continuous time"
    assert bounds.gap <= 1e-3 * (1 + 1e-9)
    assert bounds.lower <= result.objective * (1 + 1e-12)
    assert result.objective == pytest.approx(bounds.upper, rel=1e-6)
    assert "The bound was computed by branch and bound over boxes, with all rounding outwards." in (
        bounds.sentence
    )
    assert result.assessment.local is not None
    said = result.assessment.local.sentence
    assert "not proved" not in said
    assert (
        "No other values within the bounds of the unknowns have an objective lower by more" in said
    )


@pytest.mark.slow
def test_the_certificate_of_a_mesh_does_not_speak_of_continuous_time() -> None:
    result = fit(bounded(), BranchAndBound("trapezoid", 20, starts=1), seed=1)
    bounds, local = result.assessment.bounds, result.assessment.local
    assert bounds is not None
    assert local is not None
    assert bounds.closed
    assert bounds.scope.startswith("discretised (trapezoid, M = 20")
    assert "does not hold for continuous time" in bounds.sentence
    assert "Whether a better one exists elsewhere is not proved." in local.sentence
    assert result.assessment.discretisation is not None
    assert result.method == "BranchAndBound(trapezoid)"


def test_data_without_noise_are_closed_at_once() -> None:
    result = fit(bounded(noise=0.0), BranchAndBound(starts=3), seed=1)
    bounds = result.assessment.bounds
    assert bounds is not None
    assert bounds.closed
    assert bounds.lower == 0.0
    assert bounds.upper < 1e-6 * variation(result.problem)
    assert "equal for practical purposes" in bounds.sentence
    assert result.message == "the bounds have met after 0 boxes"


@pytest.mark.parametrize(
    "name", ["harmonic", pytest.param("lotka-volterra-f", marks=pytest.mark.slow)]
)
def test_library_problems_without_noise(name: str) -> None:
    problem = library.load(name)
    method = BranchAndBound(starts=3, bounds="propose")
    estimate = method.solve(problem, Control(1))
    assert estimate.certificate is not None
    assert estimate.certificate.closed
    assert estimate.certificate.lower == 0.0


@pytest.mark.slow
def test_alpha_pinene_is_closed_in_seconds() -> None:
    problem = library.load("alpha-pinene")
    bounds = dict.fromkeys(problem.keys, (1e-6, 1e-3))
    method = BranchAndBound("legendre", 5, bounds=bounds, starts=2)
    certificate = method.solve(problem, Control(1)).certificate
    assert certificate is not None
    assert certificate.closed
    assert certificate.upper == pytest.approx(19.87, abs=0.02)
    assert certificate.upper - certificate.lower <= 1e-3 * certificate.upper
    assert list(certificate.assumed.values()) == [(1e-6, 1e-3)] * 5


@pytest.mark.slow
def test_bounds_come_together_from_both_sides() -> None:
    estimate = BranchAndBound(starts=1, gap=1e-6).solve(bounded(), Control(1))
    certificate = estimate.certificate
    assert certificate is not None
    history = certificate.history
    assert history[0].stage == "local search"
    assert (history[-1].lower, history[-1].upper) == (certificate.lower, certificate.upper)
    for before, after in pairwise(history):
        assert before.lower <= after.lower
        assert before.upper >= after.upper
        assert before.seconds <= after.seconds


@pytest.mark.slow
def test_the_same_seed_gives_the_same_answer() -> None:
    def solved() -> Any:
        found = BranchAndBound(starts=2, gap=0.05).solve(bounded(), Control(3))
        assert found.certificate is not None
        return found, replace(found.certificate, history=())

    (first, bounds), (second, again) = solved(), solved()
    assert bounds == again
    assert first.message == second.message
    assert (first.starts[0].vector == second.starts[0].vector).all()


@pytest.mark.slow
def test_nothing_is_printed(capfd: pytest.CaptureFixture[str]) -> None:
    for method in (
        BranchAndBound(starts=1, gap=0.1),
        BranchAndBound("radau", 4, starts=1, gap=0.1),
    ):
        method.solve(one(), Control(1))
    assert capfd.readouterr() == ("", "")


def endless(**more: Any) -> BranchAndBound:
    """Its bounds cannot meet."""
    return BranchAndBound(gap=0.0, absolute_gap=0.0, starts=2, **more)


def test_a_time_limit_is_reported() -> None:
    result = fit(bounded(), endless(), seed=1, time_limit=0.3)
    assert result.status is Status.TIME_LIMIT
    assert result.message.startswith("the bounds have not met after")
    bounds, local = result.assessment.bounds, result.assessment.local
    assert bounds is not None
    assert local is not None
    assert not bounds.closed
    assert 0 <= bounds.lower < bounds.upper
    assert "not proved" in local.sentence or not local.optimal  # as far as it has come


def test_the_time_limit_of_the_method_holds_if_the_fit_has_none() -> None:
    assert fit(bounded(), endless(seconds=0.2), seed=1).status is Status.TIME_LIMIT


@pytest.mark.slow
def test_counted_seconds_end_at_the_same_box_whatever_the_workers() -> None:
    method = endless(seconds=CountedSeconds(0.5))
    here, shared = (fit(bounded(), method, seed=1, jobs=jobs) for jobs in (1, 2))
    assert here.status is shared.status is Status.TIME_LIMIT
    assert here.message == shared.message
    assert here.assessment.bounds is not None
    assert shared.assessment.bounds is not None
    assert here.assessment.bounds.lower == shared.assessment.bounds.lower


@pytest.mark.slow
def test_an_interrupt_in_the_tree_keeps_the_bound() -> None:
    estimate = endless().solve(bounded(), stopped_after(5))
    assert estimate.status is Status.INTERRUPTED
    assert estimate.message.startswith("the bounds have not met after ")
    assert estimate.certificate is not None
    assert not estimate.certificate.closed
    assert 0 < estimate.certificate.lower <= estimate.certificate.upper
    assert estimate.best is not None


def test_an_interrupt_at_the_start_still_gives_an_end() -> None:
    event = threading.Event()
    event.set()
    estimate = endless().solve(bounded(), Control(1, interrupted=event))
    assert estimate.status in (Status.INTERRUPTED, Status.FAILED)
    assert estimate.certificate is None or estimate.certificate.lower == 0.0


def test_progress_is_reported() -> None:
    said: list[Progress] = []
    control = Control(1, report=said.append)
    BranchAndBound(starts=2).solve(one(), control)
    assert any("boxes" in s.message and "<= optimum" in s.message for s in said)


@pytest.mark.slow
def test_bounds_survive_a_file_and_are_reported(tmp_path: Path) -> None:
    result = fit(one(), BranchAndBound(starts=2), seed=1)
    assert result.assessment.bounds is not None
    result.save(tmp_path / "r.json")
    again = odefit.load_result(tmp_path / "r.json")
    assert again.assessment.bounds is not None
    for name in ("lower", "upper", "gap", "scope", "sentence", "closed", "history"):
        assert getattr(again.assessment.bounds, name) == getattr(result.assessment.bounds, name)
    assert len(again.assessment.bounds.history) >= 1
    shown = " ".join(str(again).split())
    assert "continuous time" in shown
    assert "No values within the bounds of the unknowns have an objective below" in shown
    again.report(tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "No values within the bounds of the unknowns have an objective below" in page
    assert "How the bounds came together" in page


@pytest.mark.slow
@pytest.mark.parametrize(
    ("ode", "scheme", "unique"), [("-k*x^2", "trapezoid", False), ("-k^2*x + t", "simpson", True)]
)
def test_unintended_solutions_are_reported(ode: str, scheme: str, unique: bool) -> None:
    """One trapezoid of x' = -k x^2 has two ends, and the other one may fit as well."""
    result = fit(one(ode), BranchAndBound(scheme, 8, starts=1), seed=1)
    bounds = result.assessment.bounds
    assert bounds is not None
    assert ("only for the solution that Newton's method finds" in bounds.sentence) is (not unique)


@pytest.mark.slow
def test_bounds_that_are_not_the_problem_s_own_are_reported() -> None:
    result = fit(bounded(), BranchAndBound(bounds={"k": (0.1, 2.0)}, starts=2), seed=1)
    bounds = result.assessment.bounds
    assert bounds is not None
    assert "these as given to the method (k from 0.1 to 2)" in bounds.sentence
    assert "s from" not in bounds.sentence


@pytest.mark.slow
def test_an_answer_beyond_the_box_is_not_called_the_best() -> None:
    """The last improvement on the trajectories knows the problem's own bounds alone."""
    result = fit(bounded(), BranchAndBound(bounds={"k": (1.0, 2.0)}, starts=2), seed=1)
    bounds, local = result.assessment.bounds, result.assessment.local
    assert bounds is not None
    assert local is not None
    if result.parameters["estimate"]["k"] < 1.0:
        assert result.objective < bounds.lower
        assert "not proved" in local.sentence


@pytest.mark.slow
def test_several_experiments_priors_and_unknown_initial_values_are_bounded() -> None:
    data = {"t": TIMES, "x": 2 * np.exp(-0.7 * TIMES) + 0.05 * np.cos(7 * TIMES)}
    other = {"t": TIMES[1:], "x": np.exp(-0.7 * TIMES[1:]) - 0.05 * np.cos(7 * TIMES[1:])}
    problem = Problem(
        Model(ode={"x": "-k*x"}),
        parameters={
            "k": {"lower": 0.0, "upper": 5.0, "prior": {"mean": 0.5, "sd": 0.5}},
        },
        initial={"x": odefit.Parameter(lower=0.0, upper=10.0, per_experiment=True)},
        experiments=[odefit.Experiment("a", data), odefit.Experiment("b", other, t0=0.0)],
        noise={"x": {"sd": 0.05}},
    )
    result = fit(problem, BranchAndBound(starts=1), seed=1)
    bounds = result.assessment.bounds
    assert bounds is not None
    assert bounds.closed
    # The prior is part of both.
    assert bounds.upper == pytest.approx(result.objective, rel=1e-5)


@pytest.mark.parametrize(
    ("prior", "scheme", "words"),
    [
        ({"distribution": "laplace", "location": 1.0, "scale": 1.0}, "euler", "in continuous time"),
        ({"distribution": "gamma", "shape": 0.5, "scale": 1.0}, None, "has no bound that a proof"),
        ({"distribution": "log-laplace", "location": 0.0, "scale": 2.0}, None, "take a normal"),
    ],
)
def test_priors_that_cannot_be_bounded_are_refused(
    prior: dict[str, Any], scheme: str | None, words: str
) -> None:
    problem = bounded().with_parameters(k={"lower": 0.1, "upper": 5.0, "prior": prior})
    with pytest.raises(InputError, match=words):
        BranchAndBound(scheme).solve(problem, Control(1))


# Refusals ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "part"),
    [
        ({"scheme": "trapez"}, "did you mean 'trapezoid'?"),
        ({"scheme": 3}, "scheme: expected one of euler, trapezoid"),
        ({"mesh": 0}, "mesh: expected a whole number of at least 1, got 0"),
        ({"mesh": "fine"}, "mesh: expected a whole number or a mesh"),
        ({"gap": -0.1}, "gap: expected a number of at least 0"),
        ({"gap": float("nan")}, "gap: expected"),
        ({"gap": 2.0}, "gap: expected"),
        ({"absolute_gap": -1.0}, "absolute_gap: expected"),
        ({"degree": 0}, "degree: expected a whole number of at least 1"),
        ({"starts": 0}, "starts: expected a whole number of at least 1"),
        ({"seconds": 0.0}, "seconds: expected a number above 0"),
        ({"bounds": "yes"}, "\"propose\", got 'yes'"),
        ({"bounds": [1, 2]}, '"propose", got [1, 2]'),
        ({"bounds": {"k": 3}}, "'k': expected (lower, upper), got 3"),
        ({"bounds": {"k": (2, 1)}}, "the lower bound is above the upper bound"),
        ({"bounds": {"k": (0, np.inf)}}, "'k': expected a finite number"),
    ],
)
def test_meaningless_options_are_refused(options: dict[str, Any], part: str) -> None:
    with pytest.raises(InputError) as raised:
        BranchAndBound(**options)
    assert part in str(raised.value)


REFUSED: dict[str, tuple[Callable[[], Problem], dict[str, Any], str]] = {
    "missing bounds": (problems.decay, {}, '"s": (0, '),
    "unknown names": (bounded, {"bounds": {"kk": (0, 1)}}, "there is no 'kk'"),
    "no box": (bounded, {"bounds": {"k": (11, 12)}}, "does not overlap"),
    "abs": (lambda: one("-k*abs(x)"), {}, "'abs' has a kink"),
    "max": (lambda: one("-k*x + max(0, sin(t))"), {}, "'max' has a kink"),
    "a power": (lambda: one("-k*x^99"), {}, "enclosure: the power 99 is larger"),
}


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("scheme", [None, "trapezoid"])
def test_problems_that_cannot_be_bounded_are_refused(name: str, scheme: str | None) -> None:
    build, options, part = REFUSED[name]
    with pytest.raises(InputError) as raised:
        fit(build(), BranchAndBound(scheme, 6, **options), seed=1)
    assert part in str(raised.value)


@pytest.mark.parametrize(
    ("noise", "scheme", "part"),
    [
        ({"sd": "estimate"}, "trapezoid", "if the standard deviations are known"),
        ({"sd": "0.1*x + k"}, "trapezoid", "if the standard deviations are known"),
        ({"distribution": "laplace", "sd": 0.1}, "trapezoid", "in continuous time bounds others"),
        ({"sd": "k"}, None, "the likelihood has no lower bound"),
    ],
)
def test_noise_without_a_lower_bound_is_refused(
    noise: dict[str, Any], scheme: str | None, part: str
) -> None:
    data = {"t": TIMES, "x": np.exp(-0.7 * TIMES)}
    problem = Problem(
        Model(ode={"x": "-k*x"}),
        data,
        {"k": {"lower": 0.0, "upper": 3.0}},
        {"x": 1.0},
        noise={"x": noise},
    )
    with pytest.raises(InputError) as raised:
        fit(problem, BranchAndBound(scheme, 6, bounds="propose" if scheme else None), seed=1)
    assert part in str(raised.value)


def test_logarithms_on_a_mesh_are_refused() -> None:
    noise = {"x": {"sd": 0.1, "transform": "log"}}
    problem = Problem(
        Model(ode={"x": "-k*x"}),
        {"t": TIMES, "x": np.exp(-0.7 * TIMES)},
        {"k": {"lower": 0.1, "upper": 3.0}},
        {"x": 1.0},
        noise=noise,
    )
    with pytest.raises(InputError, match="in continuous time only; leave out scheme"):
        fit(problem, BranchAndBound("trapezoid", 6), seed=1)


@pytest.mark.slow
def test_missing_bounds_are_proposed_and_accepted_on_request() -> None:
    with pytest.raises(InputError, match="--bounds propose") as raised:
        fit(problems.decay(), BranchAndBound(), seed=1)
    assert '"k"' not in str(raised.value)
    result = fit(problems.decay(), BranchAndBound(bounds="propose", starts=2), seed=1)
    bounds = result.assessment.bounds
    assert bounds is not None
    assert bounds.closed
    assert "s from 0 to" in bounds.sentence


@pytest.mark.slow
def test_a_pole_in_the_box_leaves_the_bounds_apart() -> None:
    problem = Problem(
        Model(ode={"x": "-x/k^2"}),
        {"t": TIMES, "x": np.exp(-0.7 * TIMES) + 0.01 * np.sin(9 * TIMES)},
        {"k": {"lower": -1.0, "upper": 3.0, "guess": 1.0}},
        {"x": 1.0},
    )
    estimate = BranchAndBound(starts=1).solve(problem, stopped_after(4))
    assert estimate.certificate is not None
    assert not estimate.certificate.closed
    assert estimate.certificate.lower <= estimate.certificate.upper


def test_without_enclosed_residuals_there_is_no_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The answer of the local search is kept."""
    where = "odefit.methods.branch_and_bound.local_minima.upper_bounds"
    monkeypatch.setattr(where, lambda residuals: np.full(residuals.c.shape[2], np.inf))
    estimate = BranchAndBound(starts=2).solve(one(), Control(1))
    assert estimate.status is Status.FAILED
    assert estimate.certificate is None
    assert "no values of the unknowns were found" in estimate.message
    assert estimate.best is not None


def test_an_enclosed_objective_is_kept_if_the_search_from_it_is_cut_off(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    where = "odefit.methods.branch_and_bound.local_minima.minimise"
    nothing = Minimum(np.zeros(1), None, converged=False, message="cut off", evaluations=1)
    monkeypatch.setattr(where, lambda *_: nothing)
    estimate = BranchAndBound(starts=2).solve(one(), Control(1))
    assert estimate.certificate is not None
    assert np.isfinite(estimate.certificate.upper)


def test_a_search_goes_to_the_optimum_before_anything_is_enclosed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """From a given start as well: to enclose a point takes as long as hundreds of integrations."""
    points: list[float] = []
    around = local_minima.around

    def noted(enclosure: Any, vector: Any, *bounds: Any) -> Any:
        points.append(float(vector[0]))
        return around(enclosure, vector, *bounds)

    monkeypatch.setattr(local_minima, "around", noted)
    methods = BranchAndBound(), BranchAndBound(start=(2.9,))
    estimates = [method.solve(one(), Control(1)) for method in methods]
    assert len(points) <= 4
    assert points == pytest.approx([points[0]] * len(points), rel=1e-6)
    least = [estimate.certificate.upper for estimate in estimates if estimate.certificate]
    assert least == pytest.approx([least[0]] * 2, rel=1e-9)


def test_second_interrupts_and_failures_lose_nothing() -> None:
    """An exception in the middle of a search leaves the method as it is."""
    control = Control(1, report=_failing)
    with pytest.raises(RuntimeError, match="from the caller"):
        endless().solve(bounded(), control)


def _failing(progress: Progress) -> None:
    if "boxes" in progress.message:
        raise RuntimeError("from the caller")


@pytest.mark.slow
def test_a_local_answer_that_cannot_be_enclosed_is_an_upper_bound_that_is_reported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Stiff equations on a coarse mesh: the solver's word for it, and said so."""
    method = BranchAndBound("trapezoid", 20, starts=2)
    expected = fit(bounded(), method, seed=1).assessment.bounds
    assert expected is not None
    assert "local solver" not in expected.sentence
    module = "odefit.methods.branch_and_bound.search"
    monkeypatch.setattr(f"{module}.late_objective_at", lambda *_: np.inf)
    monkeypatch.setattr(f"{module}.local_minimum", lambda _, point, *__: (point, np.inf))
    result = fit(bounded(), method, seed=1)
    bounds = result.assessment.bounds
    assert bounds is not None
    assert bounds.closed
    assert bounds.upper == pytest.approx(expected.upper, rel=1e-7)
    assert "The upper bound could not be enclosed" in bounds.sentence


@pytest.mark.slow
def test_the_optimum_of_log_normal_noise_is_proved() -> None:
    """A decay, whose logarithms are a straight line: the optimum is that of linear regression."""
    times = np.array([0.5, 1.0, 2.0, 3.0, 4.0, 6.0])
    values = 10 * np.exp(-0.7 * times + 0.1 * np.array([0.3, 0.8, 0.3, -1.3, 0.9, 0.4]))
    problem = Problem(
        Model(ode={"x": "-k*x"}),
        {"t": times, "x": values},
        {"k": {"lower": 0.01, "upper": 10.0}},
        {"x": {"lower": 1.0, "upper": 100.0}},
        noise={"x": {"sd": 0.1, "distribution": "log-normal"}},
        t0=0.0,
    )
    line = np.stack([np.ones_like(times), -times], axis=1) / 0.1
    (_, rate), (least,), *_ = np.linalg.lstsq(line, np.log(values) / 0.1)
    result = odefit.fit(problem, BranchAndBound(start=(1.0, 5.0)), seed=1, jobs=1)
    bounds = result.assessment.bounds
    assert bounds is not None
    assert bounds.lower <= least * (1 + 1e-9) <= bounds.upper * (1 + 1e-6)
    assert bounds.gap <= 1e-3 * (1 + 1e-9)
    assert result.params["k"].value == pytest.approx(rate, rel=1e-5)
