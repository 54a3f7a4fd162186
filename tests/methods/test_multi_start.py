"""Many starts: the same answer wherever they run, and as many as the evidence requires."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from typing import Any

import numpy as np
import pytest

from odefit import (
    Control,
    Model,
    MultiStart,
    Problem,
    Progress,
    SingleShooting,
    Start,
    Status,
    library,
)
from odefit.methods.estimate import Estimate
from odefit.methods.multi_start import (
    MIN_SEARCH_TOLERANCE,
    NOISE_SHARE,
    SEARCH_TOLERANCE,
    search_tolerance,
)
from odefit.methods.running import dispatch, workers
from tests.methods.problems import decay, explosive, oscillator


def essence(estimate: Estimate) -> list[tuple[Any, ...]]:
    """All of an estimate but the seconds that it took."""
    return [
        (s.index, s.start.tolist(), s.vector.tolist(), s.cost, s.status, s.message, s.evaluations)
        for s in estimate.starts
    ]


def serial(problem: Problem, method: MultiStart, seed: int = 1) -> Estimate:
    return method.solve(problem, Control(seed=seed, jobs=1))


def test_the_same_seed_gives_the_same_result() -> None:
    method = MultiStart(starts=4, screening=4)
    first, second = (serial(oscillator(), method) for _ in range(2))
    assert essence(first) == essence(second)
    assert essence(first) != essence(serial(oscillator(), method, seed=2))


@pytest.mark.parametrize(
    "problem", [oscillator, lambda: library.load("lotka-volterra-f")], ids=["oscillator", "prey"]
)
def test_threads_give_the_same_result_as_no_threads(problem: Any) -> None:
    """Integrators have a state of their own: no two threads may share one."""
    method = MultiStart(starts=8, screening=4)
    with ThreadPoolExecutor(4) as executor:
        found = method.solve(problem(), Control(seed=1, executor=executor))
    assert essence(found) == essence(serial(problem(), method))


@pytest.mark.slow
def test_worker_processes_give_the_same_result_as_one_process() -> None:
    method = MultiStart(starts=4, screening=2)
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as executor:
        found = method.solve(oscillator(), Control(seed=1, executor=executor))
        # The workers are used again, for another problem and another engine.
        other = MultiStart(SingleShooting(engine="casadi"), starts=2, screening=2)
        stiff = other.solve(oscillator(), Control(seed=1, executor=executor))
    assert essence(found) == essence(serial(oscillator(), method))
    assert essence(stiff) == essence(serial(oscillator(), other))


@pytest.mark.slow
def test_local_processes_give_the_same_result_as_one_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(workers, "POOL_AFTER_SECONDS", 0.0)
    method = MultiStart(screening=2, hits=2)
    found = method.solve(oscillator(), Control(seed=1, jobs=2))
    assert essence(found) == essence(serial(oscillator(), method))


class Backwards(Executor):
    """Finishes work in the wrong order, and only when there is much of it."""

    def __init__(self, count: int) -> None:
        self._max_workers = count // 2
        self.count = count
        self.waiting: list[tuple[Future[Any], Any, tuple[Any, ...]]] = []

    def submit(self, function: Any, /, *arguments: Any, **_: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self.waiting.append((future, function, arguments))
        if len(self.waiting) == self.count:
            while self.waiting:
                last, work, given = self.waiting.pop()
                last.set_result(work(*given))
        return future


@pytest.mark.parametrize(("count", "hits"), [pytest.param(6, 3, marks=pytest.mark.slow), (18, 2)])
def test_the_order_in_which_starts_finish_does_not_matter(
    count: int, hits: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor does it matter that the evidence may be weaker again after some more starts."""
    monkeypatch.setattr(dispatch, "BATCH_SECONDS", 0.0)
    method = MultiStart(screening=2, hits=hits, most=30)
    found = method.solve(oscillator(), Control(seed=1, executor=Backwards(count)))
    assert essence(found) == essence(serial(oscillator(), method))


def test_a_fixed_number_of_starts_is_kept() -> None:
    found = serial(decay(), MultiStart(starts=7, screening=2))
    assert [s.index for s in found.starts] == list(range(7))
    assert found.status is Status.CONVERGED
    assert found.message == "the lowest objective was reached 7 times in 7 starts"


def test_fewer_starts_are_the_first_of_more() -> None:
    few, many = (serial(oscillator(), MultiStart(starts=n, screening=4)) for n in (3, 6))
    assert essence(few) == essence(many)[:3]


def scripted(costs: Sequence[float], monkeypatch: pytest.MonkeyPatch, **options: Any) -> Estimate:
    """Multi-start whose starts end at `costs` (infinite: failed), the last of them for ever."""

    def run(method: MultiStart, forward: object, index: int, control: Control) -> Start:
        cost = costs[min(index, len(costs) - 1)]
        failed = not np.isfinite(cost)
        status = Status.FAILED if failed else Status.CONVERGED
        nowhere = np.zeros(2)
        message = 'experiment "a", t = 1: no luck' if failed else "done"
        exact = cost < 1e-20
        return Start(index, nowhere, nowhere, 2 * cost, status, message, 1, 0.0, cost, exact=exact)

    monkeypatch.setattr(MultiStart, "run", run)
    return serial(decay(), MultiStart(**options))


def test_multi_start_ends_after_repeated_hits_of_the_best(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    costs = [5.0, 3.0, 5.0, 3.0, 2.0, 3.0, 2.00001, 5.0, 2.0, 3.0, 2.0, 2.0, 1.0]
    found = scripted(costs, monkeypatch, hits=5)
    assert len(found.starts) == 12
    assert found.message == "the lowest objective was reached 5 times in 12 starts"
    assert found.best is not None
    assert found.best.index == 4


def test_a_perfect_fit_needs_fewer_hits(monkeypatch: pytest.MonkeyPatch) -> None:
    found = scripted([1.0, 1e-26, 1.0, 1e-27, 0.0], monkeypatch, hits=5, zero_hits=2)
    assert len(found.starts) == 4


def test_starts_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    found = scripted([1.0 / n for n in range(1, 50)], monkeypatch, most=20)
    assert len(found.starts) == 20
    assert found.message == "the lowest objective was reached 1 time in 20 starts"


def test_starts_that_fail_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    found = scripted([np.inf, 1.0, np.inf, 1.0], monkeypatch, hits=3)
    assert found.status is Status.CONVERGED
    assert found.message.endswith("; 2 starts failed")
    assert [s.status for s in found.starts].count(Status.FAILED) == 2


def test_a_start_that_breaks_off_in_its_linear_algebra_hides_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = SingleShooting.run

    def fails_once(method: SingleShooting, forward: Any, index: int, *rest: Any) -> Start:
        if index == 1:
            raise np.linalg.LinAlgError("SVD did not converge")
        return run(method, forward, index, *rest)

    monkeypatch.setattr(SingleShooting, "run", fails_once)
    found = MultiStart(starts=3).solve(library.load("harmonic"), Control(seed=1, jobs=1))
    assert [s.status is Status.FAILED for s in found.starts] == [False, True, False]
    assert found.starts[1].message == "the search failed: LinAlgError: SVD did not converge"
    assert found.best is not None


def test_if_all_starts_fail_the_reasons_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    found = scripted([np.inf], monkeypatch, starts=6)
    assert found.status is Status.FAILED
    assert found.best is None
    assert found.message == (
        'all 6 starts failed: experiment "a", t = 1: no luck (6 times). Give narrower bounds or '
        "a guess near which the model can be integrated"
    )


def test_starts_are_drawn_until_a_point_can_be_integrated() -> None:
    """k below 1/4 of [0.05, 3]: one point in fourteen."""
    found = serial(explosive(), MultiStart(starts=4, screening=8))
    assert all(s.status is Status.CONVERGED for s in found.starts)
    assert found.best is not None
    assert found.best.vector == pytest.approx([0.1], rel=1e-8)


def test_a_real_problem_that_fails_everywhere_says_why() -> None:
    found = serial(
        explosive().with_parameters(k={"lower": 1.0, "upper": 3.0}), MultiStart(starts=3)
    )
    assert found.status is Status.FAILED
    assert found.message.startswith('all 3 starts failed: experiment "data", t = ')
    assert "without bound" in found.message


def test_the_guess_is_the_first_start() -> None:
    problem = decay().with_parameters(k={"guess": 0.9}, s={"guess": 1.1})
    found = serial(problem, MultiStart(starts=3, screening=2))
    assert found.starts[0].start.tolist() == [0.9, 1.1]
    assert found.starts[1].start.tolist() != [0.9, 1.1]


def test_a_time_limit_gives_the_best_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[Progress] = []
    monkeypatch.setattr(Control, "out_of_time", property(lambda _: len(done) == 2))
    control = Control(seed=1, jobs=1, report=done.append)
    # so many that a list of their numbers would find no room
    found = MultiStart(starts=10**15, screening=2).solve(oscillator(), control)
    assert found.status is Status.TIME_LIMIT
    assert found.best is not None
    assert len(found.starts) == 2


def test_a_past_deadline_still_gives_a_sentence() -> None:
    found = MultiStart().solve(oscillator(), Control(jobs=1, deadline=time.monotonic() - 1))
    assert found.status is Status.TIME_LIMIT
    assert found.message == "stopped before the first start was finished"
    assert found.best is None


def test_an_interruption_gives_the_best_so_far() -> None:
    control = Control(seed=1, jobs=1)
    seen: list[Progress] = []

    def report(progress: Progress) -> None:
        seen.append(progress)
        if progress.done == 3:
            control.interrupted.set()

    told = Control(seed=1, jobs=1, report=report, interrupted=control.interrupted)
    found = MultiStart(starts=10**6, screening=2).solve(oscillator(), told)
    assert found.status is Status.INTERRUPTED
    assert len(found.starts) == 3
    assert found.best is not None


def test_progress_is_reported_after_every_start() -> None:
    seen: list[Progress] = []
    MultiStart(starts=4, screening=2).solve(decay(), Control(jobs=1, report=seen.append))
    assert [p.done for p in seen] == [1, 2, 3, 4]
    assert [p.hits for p in seen] == [1, 2, 3, 4]
    assert all(p.failed == 0 and p.best == pytest.approx(seen[0].best) for p in seen)


class Broken(Executor):
    """Its workers die."""

    _max_workers = 1

    def submit(self, function: Any, /, *arguments: Any, **_: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_exception(MemoryError("killed"))
        return future


def test_an_executor_with_idle_workers_is_given_up_with_a_report(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(workers, "installed", lambda _: False)  # without processes of our own
    control, method = Control(seed=1, executor=Broken(), jobs=1), MultiStart(starts=3, screening=2)
    found = method.solve(decay(), control)
    assert essence(found) == essence(serial(decay(), method))
    (said,) = control.remarks
    assert "abandoned" in said
    assert "MemoryError: killed" in said


def test_multi_start_may_run_outside_the_main_thread() -> None:
    found: list[Estimate] = []
    thread = threading.Thread(
        target=lambda: found.append(serial(decay(), MultiStart(starts=2, screening=2)))
    )
    thread.start()
    thread.join()
    assert found[0].status is Status.CONVERGED


def test_a_user_s_executor_stays_open() -> None:
    with ThreadPoolExecutor(1) as executor:
        MultiStart(starts=2, screening=2).solve(decay(), Control(executor=executor))
        assert executor.submit(lambda: 7).result() == 7


@pytest.mark.slow
def test_threads_leave_standard_output_where_it_was(capsys: pytest.CaptureFixture[str]) -> None:
    """The stiff engine diverts what its library prints, in all threads at once."""
    import sys

    out, err = sys.stdout, sys.stderr
    method = MultiStart(SingleShooting(engine="casadi", evaluations=8), starts=8, screening=2)
    with ThreadPoolExecutor(4) as executor:
        method.solve(explosive(), Control(seed=1, executor=executor))
    assert sys.stdout is out
    assert sys.stderr is err
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == ""


class TestSearchTolerance:
    """Errors of the integration are to stay below the noise, as far as that is known."""

    @staticmethod
    def of(sd: float | None, noise: float, points: int = 401) -> float:
        times = np.linspace(0.0, 4.0, points)
        scatter = noise * np.random.default_rng(1).standard_normal(points)
        data = {"t": times, "x": np.exp(-times) + scatter}
        given = None if sd is None else {"x": {"sd": sd}}
        return search_tolerance(
            Problem(Model(ode={"x": "-k*x"}), data, {"k": {}}, {"x": 1.0}, noise=given)
        )

    def test_large_noise_leaves_the_tolerance_unchanged(self) -> None:
        assert self.of(0.1, 0.0) == SEARCH_TOLERANCE
        assert self.of(None, 0.1) == SEARCH_TOLERANCE

    def test_small_noise_lowers_it_given_or_seen(self) -> None:
        assert self.of(1e-5, 0.0) == pytest.approx(NOISE_SHARE * 1e-5, rel=1e-6)
        assert self.of(None, 1e-5) == pytest.approx(NOISE_SHARE * 1e-5, rel=0.5)

    def test_the_search_tolerance_has_a_smallest_value(self) -> None:
        assert self.of(1e-9, 0.0) == MIN_SEARCH_TOLERANCE
        assert self.of(None, 0.0) == MIN_SEARCH_TOLERANCE

    def test_few_points_show_no_noise(self) -> None:
        assert self.of(None, 0.0, 20) == SEARCH_TOLERANCE
