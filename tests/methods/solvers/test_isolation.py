"""Whatever a solver does, the parent gets an answer in time."""

from __future__ import annotations

import pickle
import threading

import numpy as np
import pytest

from odefit import library
from odefit.common.errors import InputError
from odefit.discretisation.discretisation import Discretisation
from odefit.discretisation.formulations import SoftCons
from odefit.discretisation.instance import Instance
from odefit.discretisation.mesh import DataMesh, UniformMesh
from odefit.discretisation.schemes import SCHEMES
from odefit.methods.solvers.isolation import solve_isolated
from odefit.methods.solvers.nlpsol import Ipopt
from odefit.methods.solvers.solver import Answer, Limits, Outcome
from tests.methods.solvers.fakes import Shy, Trouble
from tests.methods.transcription.instances import decay


def best_reported(found: Answer) -> bool:
    assert found.values is not None
    return bool((found.values == 0.5).all()) and found.lower_bound == 0.375


def test_a_solver_answers_from_its_own_process_as_it_does_here() -> None:
    instance = decay(formulation=SoftCons(1e3), start=True)
    here = Ipopt().solve(instance, Limits(20))
    there = solve_isolated(Ipopt(), instance, Limits(20))
    assert there.outcome is Outcome.SOLVED
    assert there.objective == here.objective
    assert there.iterations == here.iterations


def test_what_a_solver_reports_reaches_the_parent() -> None:
    seen: list[tuple[float, float]] = []
    instance = decay()
    found = solve_isolated(
        Trouble("fine"), instance, Limits(5), lambda best, bound: seen.append((best, bound))
    )
    assert (found.outcome, found.lower_bound, found.iterations) == (Outcome.SOLVED, 0.125, 7)
    ones = np.ones((5, 1))
    expected = [instance.discretisation.objective(level * ones, np.ones(1)) for level in (1, 0.5)]
    assert seen == [(expected[0], -np.inf), (expected[1], 0.25), (expected[1], 0.375)]


def test_a_solver_that_hangs_is_ended_and_its_best_point_is_the_answer() -> None:
    found = solve_isolated(Trouble("hang"), decay(), Limits(0.2), grace=0.3)
    assert found.outcome is Outcome.LIMIT
    assert best_reported(found)
    assert "did not stop at its time limit of 0.2 s" in found.message


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("abort", "died of SIGABRT; it wrote: terminate called"),
        ("segfault", "the solver process died of SIGSEGV"),
        ("exit", "the solver process ended by itself with status 3"),
        ("raise", "the solver failed: RuntimeError: out of ideas"),
    ],
)
def test_a_solver_that_crashes_fails_with_a_reason_and_its_best_point(
    kind: str, words: str
) -> None:
    found = solve_isolated(Trouble(kind), decay(), Limits(5))
    assert found.outcome is Outcome.FAILED
    assert best_reported(found)
    assert words in found.message


@pytest.mark.slow
def test_a_solver_that_dies_while_it_is_watched_is_asked_once_more_unwatched() -> None:
    found = solve_isolated(Shy(), decay(), Limits(30))
    assert found.outcome is Outcome.SOLVED
    assert found.message == "in peace"
    assert found.lower_bound == 0.25


@pytest.mark.slow
def test_a_crash_before_any_report_leaves_no_point_and_no_bound() -> None:
    found = solve_isolated(Trouble("abort", reports=False), decay(), Limits(5))
    assert (found.values, found.unknowns, found.lower_bound) == (None, None, None)
    assert not found.success


@pytest.mark.slow
def test_a_refusal_is_raised_here_with_all_its_messages() -> None:
    with pytest.raises(InputError) as caught:
        solve_isolated(Trouble("refuse"), decay(), Limits(5))
    assert caught.value.messages == ("no", "and no")


def test_an_interrupt_ends_the_process_and_keeps_the_best_point() -> None:
    stop = threading.Event()

    def report(best: float, bound: float) -> None:
        if bound == 0.375:
            stop.set()

    found = solve_isolated(Trouble("hang"), decay(), Limits(60), report, stop)
    assert found.outcome is Outcome.LIMIT
    assert found.message == "interrupted"
    assert best_reported(found)


@pytest.mark.slow
def test_ctrl_c_ends_the_process_and_keeps_the_best_point() -> None:
    def report(best: float, bound: float) -> None:
        if bound == 0.375:
            raise KeyboardInterrupt

    found = solve_isolated(Trouble("hang"), decay(), Limits(60), report)
    assert found.outcome is Outcome.LIMIT
    assert best_reported(found)


@pytest.mark.parametrize("scheme", ["trapezoid", "runge-kutta", "radau"])
@pytest.mark.parametrize("name", ["seasonal-lotka-volterra", "hiv-proteinase", "sir"])
def test_the_discretisation_is_the_same_on_the_other_side(name: str, scheme: str) -> None:
    problem = library.load(name)
    for mesh in (UniformMesh(13), DataMesh(20)):
        d = Discretisation(problem, SCHEMES[scheme], mesh)
        instance = pickle.loads(pickle.dumps(Instance(d, SoftCons())))
        np.testing.assert_array_equal(instance.discretisation.times, d.times)
        random = np.random.default_rng(1)
        values = random.uniform(0.5, 1.5, d.lower.shape)
        unknowns = random.uniform(0.5, 1.5, len(problem.unknowns))
        np.testing.assert_array_equal(
            instance.discretisation.defects(values, unknowns), d.defects(values, unknowns)
        )
