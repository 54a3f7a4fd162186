"""Tests of the automatic method."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import odefit
from odefit import (
    Automatic,
    Control,
    Failure,
    ForwardMap,
    InputError,
    Model,
    Problem,
    Progress,
    Status,
)
from odefit.methods.automatic.evidence import EXACT_STARTS
from odefit.methods.automatic.route_table import MATCHING, MULTIPLE, SHOOTING
from odefit.methods.estimate import Estimate, Route
from odefit.methods.running.checkpoint import ForeignCheckpointError
from odefit.simulation import Evaluation
from tests.methods.checkpoints import execute, records


def solved(problem: Problem, **settings: object) -> Estimate:
    return Automatic().solve(problem, Control(jobs=1, seed=1, **settings))  # type: ignore[arg-type]


def routes(estimate: Estimate) -> dict[str, Route]:
    return {route.name: route for route in estimate.routes}


@pytest.fixture(scope="module")
def decay() -> Problem:
    """Return a decay with noise that is given: 60 values, two unknowns."""
    times = np.linspace(0.0, 5.0, 60)
    values = 2.0 * np.exp(-0.7 * times) + 0.02 * np.random.default_rng(4).standard_normal(60)
    return Problem(
        Model(ode={"x": "-k*x"}),
        {"t": times, "x": values},
        {"k": {"lower": 1e-3, "upper": 1e3}},
        {"x": {"lower": 0.1, "upper": 10.0}},
        noise={"x": {"sd": 0.02}},
    )


@pytest.fixture(scope="module")
def few() -> Problem:
    """Return a decay that is measured five times, with unknown noise."""
    data = {"t": [0, 1, 2, 3, 4], "x": [2.0, 1.01, 0.49, 0.26, 0.12]}
    unknowns = {"k": {"lower": 1e-3, "upper": 1e3}}, {"x": {"lower": 0.1, "upper": 10.0}}
    return Problem(Model(ode={"x": "-k*x"}), data, *unknowns)


def test_two_routes_at_one_optimum_as_good_as_the_noise_suffice(decay: Problem) -> None:
    found = solved(decay)
    assert found.status is Status.CONVERGED
    assert len(found.starts) == 2
    assert {name for name, r in routes(found).items() if r.hits} == {MATCHING.name, SHOOTING.name}
    assert "Chi-square is" in found.message
    assert "more than the noise explains" not in found.message
    assert routes(found)[MULTIPLE.name].message == "not needed"


def test_starts_are_numbered_in_the_order_of_the_search(few: Problem) -> None:
    found = solved(few)
    assert [s.index for s in found.starts] == list(range(len(found.starts)))
    assert sum(r.hits for r in found.routes) >= 5


@pytest.mark.parametrize("noise", ["without", pytest.param("with", marks=pytest.mark.slow)])
def test_the_prey_alone_is_fitted_over_many_periods(noise: str) -> None:
    """Single shooting over the whole time calls a wrong optimum converged."""
    times = np.linspace(0.0, 200.0, 801)
    truth = np.array([0.67, 0.42, 0.31, 0.55, 0.44])
    model = Model(ode={"x": "a*x - 0.5*x*y", "y": "-c*y + d*x*y"}, observables={"prey": "x"})
    wide = {"lower": 1e-5, "upper": 10.0}
    unknowns = dict.fromkeys("acd", wide), dict.fromkeys("xy", wide)
    empty = Problem(model, {"t": times, "prey": np.ones(801)}, *unknowns)
    simulated = odefit.simulate(empty, truth, times)
    assert not isinstance(simulated, odefit.Failure)
    values = np.array(simulated.observables["prey"])
    sd = 0.01 * float(values.mean())
    given = None
    if noise == "with":
        values = values + sd * np.random.default_rng(2).standard_normal(801)
        given = {"prey": {"sd": sd}}
    problem = Problem(model, {"t": times, "prey": values}, *unknowns, noise=given)
    result = odefit.fit(problem, seed=1, jobs=1)
    assert result.status is Status.CONVERGED
    np.testing.assert_allclose(result.best.vector, truth, rtol=1e-6 if given is None else 0.02)
    again = [s for s in result.solutions[1:] if np.allclose(s.vector, truth, rtol=0.1)]
    assert not again, "starts that reach the answer are no solutions of their own"


@pytest.mark.parametrize(
    ("other", "polynomials"), [pytest.param(3.0, False, marks=pytest.mark.slow), (8.0, True)]
)
def test_polynomials_are_solved_where_most_starts_disagree(other: float, polynomials: bool) -> None:
    """The noise is twice what is said, so that every answer is in doubt; `other` is an optimum too.

    The nearer it is to the best, the fewer starts end there.
    """
    times = np.linspace(0.0, 5.0, 200)
    noise = 0.02 * np.random.default_rng(1).standard_normal((2, 200))
    data = {"t": times, "y": np.exp(-times) + noise[0], "q": noise[1]}
    observables = {"y": "x", "q": f"(k - 1)*((k - {other})^2 + 0.3)"}
    problem = Problem(
        Model(ode={"x": "-k*x"}, observables=observables),
        data,
        {"k": {"lower": 0.1, "upper": 10.0}},
        {"x": 1.0},
        noise={"y": {"sd": 0.01}, "q": {"sd": 0.01}},
    )
    found = Automatic().solve(problem, Control(jobs=1, seed=1))
    assert len(found.starts) > 16
    assert found.starts[0].vector == pytest.approx([1.0], abs=0.01)
    assert ("algebraic method" in routes(found)) is polynomials


@pytest.mark.slow
def test_a_search_waits_for_long_trajectories(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    times = np.array([1.0, 1e2, 1e4])
    ode = {"a": "-k*a + 1e4*b*c", "b": "k*a - 1e4*b*c - 3e7*b^2", "c": "3e7*b^2"}
    bounds = {"k": {"lower": 1e-3, "upper": 1.0, "scale": "log10"}}
    start = {"a": 1.0, "b": 0.0, "c": 0.0}
    empty = Problem(Model(ode=ode), {"t": times, "a": np.ones(3)}, bounds, start)
    simulated = odefit.simulate(empty, np.array([0.04]), times)
    assert not isinstance(simulated, odefit.Failure)
    problem = empty.with_data({"data": {"t": times, "a": simulated.states["a"]}})
    monkeypatch.setattr("odefit.methods.automatic.automatic.SEARCH_STEPS", 1)
    monkeypatch.setattr("odefit.simulation.engines.steps.STEPS_FOR_OUTPUT", 0)
    found = solved(problem)
    failed = [s for s in found.starts if not np.isfinite(s.cost)]
    assert [s.index for s in failed[:3]] == [0, 1, 2]
    assert "steps are needed" in failed[0].message
    assert found.best is not None
    np.testing.assert_allclose(found.best.vector, [0.04], rtol=1e-4)


def test_the_search_depends_on_the_seed_alone(few: Problem) -> None:
    one, other = solved(few), solved(few)
    assert [s.cost for s in one.starts] == [s.cost for s in other.starts]


@pytest.mark.slow
def test_the_number_of_workers_does_not_matter() -> None:
    problem = odefit.library.load("henon-heiles")
    alone = Automatic().solve(problem, Control(seed=2, jobs=1))
    with_two = Automatic().solve(problem, Control(seed=2, jobs=2))
    assert [s.cost for s in alone.starts] == [s.cost for s in with_two.starts]
    assert [r.hits for r in alone.routes] == [r.hits for r in with_two.routes]


@pytest.mark.slow
def test_a_chaotic_system_is_fitted_exactly() -> None:
    found = solved(odefit.library.load("henon-heiles"))
    assert found.status is Status.CONVERGED
    assert found.best is not None
    assert found.best.exact
    # Rounding, which differs between processors, decides which of the routes arrive first.
    hits = sum(route.hits for route in found.routes)
    assert hits >= 2 or (hits == 1 and len(found.starts) >= EXACT_STARTS)


@pytest.mark.slow
def test_small_residuals_of_stiff_equations_are_not_taken_for_rounding() -> None:
    """Of 3e-5 of the data, where the search integrates to 1e-5."""
    times = np.linspace(0.0, 2.0, 11)
    noise = 1 + 3e-5 * np.random.default_rng(0).normal(size=11)
    values = (np.exp(-0.7 * times) + 0.3) * noise
    model = Model(ode={"x": "-k*(x - c)", "y": "1e6*(x - y)"})
    ranges = {"k": (0.1, 10.0), "c": (0.01, 2.0)}
    data = {"t": times, "x": values, "y": values}
    found = solved(Problem(model, data, ranges, {"x": 1.3, "y": 1.3}))
    assert found.status is Status.CONVERGED
    assert not any(start.exact for start in found.starts)
    assert "rounding" not in found.message


def test_results_in_a_checkpoint_are_not_computed_again(few: Problem, tmp_path: Path) -> None:
    path = tmp_path / "c"
    whole = solved(few, checkpoint=path)
    stored = records(path, "starts")
    assert {str(s.index) for s in whole.starts} <= stored.keys()
    execute(path, "DELETE FROM records WHERE key NOT IN ('0', '1')")
    again = solved(few, checkpoint=path)
    assert [s.cost for s in again.starts] == [s.cost for s in whole.starts]
    assert [r.starts for r in again.routes] == [r.starts for r in whole.routes]
    assert [s.seconds for s in again.starts[:2]] == [stored[k]["seconds"] for k in "01"]


def test_the_checkpoint_of_another_seed_is_refused(few: Problem, tmp_path: Path) -> None:
    solved(few, checkpoint=tmp_path / "c")
    with pytest.raises(ForeignCheckpointError, match="seed"):
        Automatic().solve(few, Control(seed=2, jobs=1, checkpoint=tmp_path / "c"))


def test_a_search_that_is_interrupted_returns_the_best_so_far(few: Problem) -> None:
    done: list[Progress] = []
    control = Control(jobs=1, seed=1, report=done.append)

    def interrupt(progress: Progress) -> None:
        done.append(progress)
        if progress.done == 2:
            control.interrupted.set()

    control = Control(jobs=1, seed=1, report=interrupt)
    found = Automatic().solve(few, control)
    assert found.status is Status.INTERRUPTED
    assert found.best is not None
    assert done[-1].done == len(found.starts) == 2
    assert "The caller ended the search" in found.message


def test_without_time_the_answer_is_a_start_value(few: Problem) -> None:
    """The answer is then a start value, and labelled as such."""
    found = solved(few, deadline=0.0)
    assert found.status is Status.TIME_LIMIT
    assert found.best is not None
    assert np.isfinite(found.best.objective)
    assert found.best.message == "a start value, without any search"
    assert "The time limit ended the search" in found.message


def test_a_start_value_that_fails_is_replaced(
    few: Problem, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the first starts have failed, the search is ended, and the first points fail, too."""
    tried: list[int] = []
    evaluate = ForwardMap.evaluate_cost

    def fail_twice(self: ForwardMap, *arguments: Any) -> Evaluation | Failure:
        tried.append(1)
        return Failure("data", 1.0, "it fails") if len(tried) < 3 else evaluate(self, *arguments)

    monkeypatch.setattr(ForwardMap, "evaluate_cost", fail_twice)
    found = solved(few, deadline=0.0)
    assert len(tried) == 3
    assert found.best is not None


def test_a_given_number_of_starts_is_run(decay: Problem) -> None:
    found = Automatic(starts=7).solve(decay, Control(jobs=1))
    assert len(found.starts) == 7


def test_starts_that_all_fail_say_why() -> None:
    """The solution of x' = k x^2 from 1 ends at 1/k, before the last measurement."""
    model = Model(ode={"x": "k*x^2"})
    data = {"t": [0.0, 1.0, 2.0], "x": [1.0, 1.0, 1.0]}
    problem = Problem(model, data, {"k": {"lower": 5.0, "upper": 9.0}}, {"x": 1.0})
    found = Automatic(most=12).solve(problem, Control(jobs=1))
    assert found.status is Status.FAILED
    assert found.message.startswith("all 12 starts failed")


@pytest.mark.parametrize("option", ["starts", "hits", "certain_hits", "doubtful_hits", "most"])
def test_options_are_checked(option: str) -> None:
    with pytest.raises(InputError, match=f"Automatic, {option}"):
        Automatic(**{option: 0})


@pytest.mark.parametrize(
    "seed", [3, *(pytest.param(s, marks=pytest.mark.slow) for s in (1, 2, 4, 5, 6))]
)
def test_starts_of_a_published_model_do_not_agree_on_a_bound_that_is_worse(seed: int) -> None:
    """With longer first steps five of five starts ended where delta is at its lower bound."""
    folder = Path(__file__).parents[2] / "data" / "petab" / "Perelson_Science1996"
    problem = odefit.load(folder / "Perelson_Science1996.yaml")
    result = odefit.fit(problem, seed=seed, jobs=1)
    assert result.status is Status.CONVERGED
    assert result.log_likelihood == pytest.approx(-222.28077, abs=1e-4)
    assert result.best.parameters["delta"] == pytest.approx(0.547, rel=1e-2)
