"""A solver in a process of its own answers as it does here, and crashes or hangs alone."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from odefit import library
from odefit.common.errors import InputError
from odefit.discretisation.discretisation import Discretisation
from odefit.discretisation.formulations import SoftCons
from odefit.discretisation.instance import Instance
from odefit.discretisation.mesh import DataMesh, UniformMesh
from odefit.discretisation.schemes import SCHEMES
from odefit.methods.solvers import guarded_solve
from odefit.methods.solvers.guarded_solve import process_number, solve_isolated, solve_locally
from odefit.methods.solvers.nlpsol import Bonmin, Ipopt, Uno
from odefit.methods.solvers.solver import Answer, Limits, Outcome, Solver
from tests.methods.solvers.fakes import Patient, Shy, Trouble
from tests.methods.transcription.instances import decay, harmonic

HANG = Trouble("hang", scope="local")


@pytest.fixture
def process() -> int:
    """The number of the kept process, which is ready."""
    solve_locally(Ipopt(), decay(start=True), Limits())
    number = process_number()
    assert number is not None
    return number


def lives(number: int) -> bool:
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    return True


def assert_same(found: Answer, expected: Answer) -> None:
    assert found.values is not None
    assert found.unknowns is not None
    np.testing.assert_array_equal(found.values, expected.values)
    np.testing.assert_array_equal(found.unknowns, expected.unknowns)
    for name in ("outcome", "objective", "violation", "message", "iterations"):
        assert getattr(found, name) == getattr(expected, name)


@pytest.mark.parametrize("solver", [Ipopt(), Bonmin(), Uno()], ids=lambda s: str(s.name))
def test_the_answer_is_the_same_to_the_last_bit(solver: Solver, process: int) -> None:
    d, near = harmonic()
    assert near.values is not None
    assert near.unknowns is not None
    for instance in (
        decay(start=True),
        Instance(d, SoftCons(1e3), 1.1 * near.values, near.unknowns / 1.1),
        Instance(d, SoftCons(1e3), 1.2 * near.values, near.unknowns),
    ):
        assert_same(solve_locally(solver, instance, Limits()), solver.solve(instance, Limits()))
    assert process_number() == process


def test_bounds_that_were_narrowed_hold_in_the_process_too() -> None:
    instance = decay(start=True)
    d = instance.discretisation
    wide = solve_locally(Ipopt(), instance, Limits())
    d.lower = np.where(d.lower < d.upper, 1.0, d.lower)
    d.programs.clear()
    narrow = solve_locally(Ipopt(), instance, Limits())
    assert narrow.objective > wide.objective
    assert_same(narrow, Ipopt().solve(instance, Limits()))


def test_a_refusal_is_raised_here_and_costs_no_process(process: int) -> None:
    with pytest.raises(InputError, match=r"an option is not accepted: .*nonsense"):
        solve_locally(Ipopt(options={"nonsense": 1}), decay(start=True), Limits())
    assert process_number() == process


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (signal.SIGSEGV, "its process died of SIGSEGV"),
        pytest.param(
            signal.SIGKILL,
            "its process was killed, most likely because the machine ran out of memory",
            marks=pytest.mark.slow,
        ),
    ],
)
@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_a_process_that_dies_is_a_failure_with_a_reason_and_another_takes_its_place(
    number: signal.Signals, words: str, process: int
) -> None:
    def kill() -> bool:
        if lives(process):
            os.kill(process, number)
        return False

    lost = solve_locally(HANG, decay(), Limits(stop=kill))
    assert lost.outcome is Outcome.FAILED
    assert lost.message == words
    assert (lost.values, lost.unknowns) == (None, None)
    instance = decay(start=True)
    assert_same(solve_locally(Ipopt(), instance, Limits()), Ipopt().solve(instance, Limits()))
    assert process_number() not in (None, process)


def test_a_solver_that_does_not_stop_at_its_limit_is_ended(process: int) -> None:
    start = decay(start=True)
    silent = Trouble("hang", reports=False, scope="local")
    found = solve_locally(silent, start, Limits(0.1), grace=0.1)
    assert found.outcome is Outcome.LIMIT
    assert found.values is not None
    np.testing.assert_array_equal(found.values, start.values)
    assert "it did not stop at its limit of 0.1 s; its process was ended" in found.message
    assert not lives(process)


@pytest.mark.slow
def test_the_last_iterate_of_a_solver_that_hangs_is_the_answer(
    tmp_path: Path, process: int
) -> None:
    reported = tmp_path / "reported"
    hangs = Trouble("hang", file=reported, scope="local")
    found = solve_locally(hangs, decay(), Limits(stop=reported.exists), grace=0.3)
    assert found.outcome is Outcome.LIMIT
    assert found.values is not None
    assert (found.values == 0.5).all()
    assert "it did not stop when it was asked to" in found.message
    assert not lives(process)


@pytest.mark.usefixtures("process")
def test_a_solver_that_is_asked_to_stop_answers_with_its_last_iterate() -> None:
    looks = iter([False, False])
    instance = decay(start=True)
    found = solve_locally(Patient(), instance, Limits(stop=lambda: next(looks, True)), grace=60.0)
    assert found.message == "User Requested Stop"
    assert_same(found, Ipopt().solve(instance, Limits(stop=lambda: True)))


def test_an_interruption_while_the_process_starts_is_answered_with_the_start() -> None:
    answers = []

    def solve() -> None:  # a new thread has no process yet
        answers.append(solve_locally(Ipopt(), decay(start=True), Limits(stop=lambda: True)))

    thread = threading.Thread(target=solve)
    thread.start()
    thread.join()
    assert answers[0].outcome is Outcome.LIMIT
    np.testing.assert_array_equal(answers[0].values, decay(start=True).values)


def test_an_exception_on_the_way_ends_the_solve(process: int) -> None:
    def interrupted() -> bool:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        solve_locally(HANG, decay(), Limits(stop=interrupted))
    assert not lives(process)


def test_a_solver_that_cannot_be_pickled_runs_in_this_process() -> None:
    @dataclass(frozen=True)
    class Local(Ipopt):
        pass

    instance = decay(start=True)
    assert_same(solve_locally(Local(), instance, Limits()), Ipopt().solve(instance, Limits()))


def test_a_solver_runs_here_if_no_process_can_be_started(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(guarded_solve, "CAN_START", False)
    answers = []
    instance = decay(start=True)
    thread = threading.Thread(
        target=lambda: answers.append(solve_locally(Ipopt(), instance, Limits()))
    )
    thread.start()
    thread.join()
    assert_same(answers[0], Ipopt().solve(instance, Limits()))


@pytest.mark.slow
def test_unused_problems_are_dropped() -> None:
    solve_locally(Ipopt(), decay(start=True), Limits())
    kept = guarded_solve._of_thread.running
    assert kept is not None
    for steps in (5, 6):
        solve_locally(Ipopt(), decay(steps, start=True), Limits())
        assert len(kept.known) == 1


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_a_process_ends_with_its_thread() -> None:
    numbers = []

    def solve() -> None:
        solve_locally(Ipopt(), decay(start=True), Limits())
        numbers.append(process_number())

    thread = threading.Thread(target=solve)
    thread.start()
    thread.join()
    assert numbers[0] is not None
    assert any(not lives(numbers[0]) for _ in moments())


def moments() -> Iterator[None]:
    """Moments over a minute."""
    for _ in range(6000):
        yield
        time.sleep(0.01)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_nothing_is_left_running_after_a_script(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import odefit\n"
        "from odefit.methods.solvers.guarded_solve import process_number\n"
        "problem = odefit.library.load('harmonic')\n"
        "method = odefit.Transcription(starts=1, screening=1, shooting=False)\n"
        "print(odefit.fit(problem, method, jobs=1).status.value, process_number())\n",
        encoding="utf-8",
    )
    run = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, check=True, timeout=300
    )
    status, number = run.stdout.split()
    assert status == "converged"
    assert run.stderr == ""
    assert any(not lives(int(number)) for _ in moments())


def best_reported(found: Answer) -> bool:
    assert found.values is not None
    return bool((found.values == 0.5).all()) and found.lower_bound == 0.375


@pytest.mark.slow
def test_a_solver_answers_from_its_own_process_as_it_does_here() -> None:
    instance = decay(formulation=SoftCons(1e3), start=True)
    here = Ipopt().solve(instance, Limits(20))
    there = solve_isolated(Ipopt(), instance, Limits(20))
    assert there.outcome is Outcome.SOLVED
    assert there.objective == here.objective
    assert there.iterations == here.iterations


@pytest.mark.slow
def test_progress_of_a_solver_reaches_the_parent() -> None:
    seen: list[tuple[float, float]] = []
    instance = decay()
    found = solve_isolated(
        Trouble("fine"), instance, Limits(5), lambda best, bound: seen.append((best, bound))
    )
    assert (found.outcome, found.lower_bound, found.iterations) == (Outcome.SOLVED, 0.125, 7)
    ones = np.ones((5, 1))
    expected = [instance.discretisation.objective(level * ones, np.ones(1)) for level in (1, 0.5)]
    assert seen == [(expected[0], -np.inf), (expected[1], 0.25), (expected[1], 0.375)]


@pytest.mark.slow
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
def test_a_solver_that_dies_under_a_callback_is_run_again_without_one() -> None:
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


@pytest.mark.slow
def test_an_interrupt_ends_the_process_and_keeps_the_best_point() -> None:
    stop = threading.Event()

    def report(best: float, bound: float) -> None:
        if bound == 0.375:
            stop.set()

    found = solve_isolated(Trouble("hang"), decay(), Limits(60), report, stop.is_set)
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
