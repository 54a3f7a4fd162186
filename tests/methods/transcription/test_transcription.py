"""Transcription as a method: the right answers, and honest words where there are none."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

import odefit
from odefit import (
    AdaptiveMesh,
    Control,
    Event,
    Experiment,
    InputError,
    Model,
    Problem,
    Progress,
    Result,
    SingleShooting,
    Status,
    Transcription,
)
from odefit.common.arrays import Array
from odefit.discretisation.discretisation import Discretisation
from odefit.discretisation.instance import Instance
from odefit.discretisation.refinement import refine_mesh, step_errors
from odefit.methods.estimate import Estimate
from odefit.methods.running import workers
from odefit.methods.running.checkpoint import ForeignCheckpointError
from odefit.methods.solvers import local_search as module
from odefit.methods.solvers.local_search import LocalSearch, measure_agreement
from odefit.methods.solvers.scip import Scip
from odefit.methods.solvers.solver import Answer, Limits
from odefit.methods.transcription import SCHEMES, DataMesh, ExtraTol, Ipopt, SoftCons
from tests.fitting.test_fit import TWELVE, scattered
from tests.methods.problems import decay, explosive, oscillator
from tests.methods.solvers.fakes import Fragile
from tests.methods.test_multi_start import essence
from tests.methods.transcription import instances
from tests.methods.transcription.exact import reference_of
from tests.methods.transcription.instances import needs, scan

ONE: dict[str, Any] = {"starts": 1, "screening": 1}
"""No more than one start, wherever it is."""


def fitted(problem: Problem, **options: Any) -> Result:
    return odefit.fit(problem, Transcription(**options), seed=1, jobs=1)


@cache
def best_decay() -> Array:
    return odefit.fit(decay()).best.vector


def unpolished(problem: Problem, **options: Any) -> Result:
    method = Transcription(polish=False, **options)
    return odefit.fit(problem, method, seed=1, jobs=1, polish=False)


def estimated(problem: Problem, seed: int = 1, **options: Any) -> Estimate:
    return Transcription(**options).solve(problem, Control(seed=seed, jobs=1))


@dataclass(frozen=True)
class Recorder:
    """IPOPT, and what it is asked."""

    asked: list[Instance] = field(default_factory=list)
    name: str = "recorder"
    scope: Literal["local", "global"] = "local"

    def missing(self) -> str | None:
        return None

    def solve(self, instance: Instance, limits: Limits) -> Answer:
        self.asked.append(instance)
        return Ipopt().solve(instance, limits)


# Right answers ------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("name", ["alpha-pinene", *TWELVE])
def test_the_reference_is_found_with_default_options(name: str) -> None:
    problem, truth = reference_of(name)
    result = fitted(problem)
    assert result.status is Status.CONVERGED
    assert np.max(np.abs(result.best.vector - truth) / np.abs(truth)) <= 1e-4
    assert result.assessment.local is not None
    assert result.assessment.local.optimal
    found = result.assessment.discretisation
    assert found is not None
    assert found.fine


@pytest.mark.slow
def test_a_chaotic_problem_is_solved_by_the_discretised_problem_alone() -> None:
    """From a point where the sensitivities of the true trajectories are beyond use."""
    problem, truth = reference_of("henon-heiles")
    shot = SingleShooting().run(odefit.ForwardMap(problem), 0, 1.5 * truth + 0.1, Control())
    assert shot.objective > 1.0
    start = dict(zip(problem.keys, 1.5 * truth + 0.1, strict=True))
    result = fitted(problem, shooting=False, start=start, **ONE)
    assert result.objective < 1e-12
    assert result.best.vector == pytest.approx(truth, rel=1e-6, abs=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize(("scheme", "rel"), [(s, 0.05 if s == "euler" else 1e-3) for s in SCHEMES])
def test_every_scheme_finds_the_answer_on_a_fine_mesh(scheme: str, rel: float) -> None:
    result = unpolished(decay(), scheme=scheme, mesh=80, **ONE)
    assert result.best.vector == pytest.approx(best_decay(), rel=rel)
    assert result.method.startswith(f"Transcription({SCHEMES[scheme].name}, Baseline, ")


@pytest.mark.parametrize("formulation", [ExtraTol(1e-6), SoftCons(1e4)])
@pytest.mark.parametrize(
    "mesh", [DataMesh(40), pytest.param(AdaptiveMesh(1e-3), marks=pytest.mark.slow)]
)
def test_other_formulations_and_meshes_find_the_answer(formulation: Any, mesh: Any) -> None:
    result = unpolished(decay(), formulation=formulation, mesh=mesh, **ONE)
    assert result.best.vector == pytest.approx(best_decay(), rel=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["trapezoid", "euler"])
def test_without_polishing_the_answer_is_the_minimum_of_the_discretised_problem(
    scheme: str,
) -> None:
    """A scan of the scheme's closed formula over the rate; the true minimum is elsewhere."""
    instance = instances.decay(steps=4, scheme=scheme)
    problem = instance.discretisation.problem
    result = unpolished(problem, scheme=scheme, mesh=4, **ONE)
    least = scan(instance)
    assert result.starts[0].objective == pytest.approx(least, rel=1e-5)
    found = result.assessment.discretisation
    assert found is not None
    assert found.objective == pytest.approx(least, rel=1e-5)
    assert found.shift == pytest.approx(0.0, abs=1e-6)
    true = odefit.fit(problem).best.vector
    assert abs(result.best.vector[0] - true[0]) > 1e-3 * true[0]
    assert result.objective == pytest.approx(found.true_objective)


def test_the_last_improvement_needs_no_improvement_of_starts() -> None:
    """The cost on a coarse mesh may be lower than any on the true trajectories."""
    problem = instances.decay(steps=4).discretisation.problem
    best = odefit.fit(problem)
    result = fitted(problem, scheme="trapezoid", mesh=3, polish=False, **ONE)
    assert result.starts[0].objective < 0.999 * best.objective
    assert result.status is Status.CONVERGED
    assert result.best.vector == pytest.approx(best.best.vector, rel=1e-6)


def dosed() -> Problem:
    """x' = -k x from its own initial value; in the second experiment x is doubled at t = 1."""
    times = np.linspace(0.0, 2.0, 9)
    factor = np.where(times > 1.0, 2.0, 1.0)
    curve = np.exp(-0.5 * times)
    return Problem(
        Model(ode={"x": "-k*x"}),
        parameters={"k": {"lower": 0.0, "upper": 5.0}},
        initial={"x": {"per_experiment": True}},
        experiments=[
            Experiment("a", {"t": times, "x": 3.0 * curve}),
            Experiment(
                "b", {"t": times, "x": 7.0 * factor * curve}, events=[Event((1.0,), {"x": "2*x"})]
            ),
        ],
    )


def test_experiments_and_events_are_fitted_together() -> None:
    """Without polishing, to the accuracy of the mesh."""
    result = unpolished(dosed(), **ONE)
    assert result.best.vector == pytest.approx([0.5, 3.0, 7.0], rel=1e-5)


def test_algebraic_equations_are_part_of_the_discretised_problem() -> None:
    """z (1 + z^2) = x with x falling linearly: z is known where x is."""
    times = np.linspace(0.0, 1.0, 11)
    x = 10.0 - 8.0 * times
    z = np.array([next(r.real for r in np.roots([1, 0, 1, -v]) if abs(r.imag) < 1e-9) for v in x])
    problem = Problem(
        Model(ode={"x": "-k"}, algebraic={"z": "z + z^3 - x"}, observables={"y": "z"}),
        {"t": times, "y": z},
        {"k": {"lower": 0.0, "upper": 9.9}},
        {"x": 10.0, "z": 2.0},
    )
    assert unpolished(problem, **ONE).best.vector == pytest.approx([8.0], rel=1e-6)


@pytest.mark.parametrize("fit", [pytest.param(fitted, marks=pytest.mark.slow), unpolished])
def test_an_estimated_standard_deviation_is_that_of_the_residuals(fit: Any) -> None:
    result = fit(scattered(), starts=2)
    assert result.best.vector == pytest.approx(
        odefit.fit(scattered(), seed=1).best.vector, rel=1e-4
    )


# Starts -------------------------------------------------------------------------------------------


def test_a_start_where_the_model_explodes_is_harmless() -> None:
    """The solution from it has a pole at 1/200; the data are fitted first."""
    found = estimated(explosive(300.0), start={"k": 200.0}, shooting=False, **ONE)
    shot = SingleShooting().run(
        odefit.ForwardMap(explosive(300.0)), 0, np.array([200.0]), Control()
    )
    assert shot.status is Status.FAILED
    assert found.best is not None
    assert found.best.start.tolist() == [200.0]
    assert found.best.vector == pytest.approx([0.1], rel=1e-8)


@pytest.mark.slow
def test_a_start_may_be_the_answer_of_another_method() -> None:
    """Names that are no unknowns do not matter, those that are missing come from the guess."""
    other = odefit.fit(oscillator(), seed=1)
    values = {**other.best.parameters, "nonsense": 3.0}
    problem = oscillator().with_parameters(w={"guess": 1.0}, y={"guess": 0.5})
    found = estimated(problem, start=values, starts=2, screening=1)
    assert found.starts[0].start.tolist() == [other.best.parameters["w"], 0.5]
    assert found.starts[0].vector == pytest.approx(other.best.vector, abs=1e-4)


@pytest.mark.parametrize("states", ["data", "simulation", "zero"])
def test_states_start_at_the_given_values(states: Any) -> None:
    recorder = Recorder()
    problem = decay(noise=0.0, model=Model(ode={"x": "-k*x"}, observables={"y": "x"}))
    problem = problem.with_parameters(k={"lower": 0.0, "upper": 10.0})
    found = estimated(problem, solver=recorder, states=states, **ONE)
    first = recorder.asked[0]
    t = first.discretisation.times
    assert first.values is not None
    assert first.unknowns is not None
    measured = np.linspace(0.0, 4.0, 9)
    expected = {
        "zero": np.zeros(len(t)),
        "simulation": np.exp(-first.unknowns[0] * t),
        "data": np.interp(t, measured, 2 * np.exp(-0.7 * measured)),
    }
    assert first.values[:, 0] == pytest.approx(expected[states], rel=1e-6)
    assert found.status is Status.CONVERGED


@pytest.mark.slow
def test_the_same_seed_gives_the_same_result() -> None:
    options: dict[str, Any] = {"starts": 3, "screening": 2}
    first, second = (estimated(oscillator(), **options) for _ in range(2))
    assert essence(first) == essence(second)
    assert first.agreement == second.agreement
    assert essence(first) != essence(estimated(oscillator(), seed=2, **options))


@pytest.mark.slow
def test_threads_and_processes_give_the_same_result_as_one_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(workers, "POOL_AFTER_SECONDS", 0.0)
    method = Transcription(starts=4, screening=2)
    alone = method.solve(oscillator(), Control(seed=1, jobs=1))
    with ThreadPoolExecutor(3) as executor:
        threads = method.solve(oscillator(), Control(seed=1, executor=executor))
    processes = method.solve(oscillator(), Control(seed=1, jobs=2))
    assert essence(alone) == essence(threads) == essence(processes)
    assert alone.agreement == threads.agreement == processes.agreement


def test_finished_starts_are_kept_in_a_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = tmp_path / "kept"
    ran: list[int] = []
    run = LocalSearch.run

    def counted(method: LocalSearch, *rest: Any) -> Any:
        ran.append(rest[1])
        return run(method, *rest)

    monkeypatch.setattr(LocalSearch, "run", counted)
    few, many = (Transcription(starts=n, screening=2) for n in (2, 4))
    first = few.solve(oscillator(), Control(jobs=1, checkpoint=kept))
    ran.clear()
    second = many.solve(oscillator(), Control(jobs=1, checkpoint=kept))
    assert set(ran) == {2, 3}
    assert essence(second)[:2] == essence(first)


@pytest.mark.parametrize("other", [{"scheme": "trapezoid"}, {"mesh": 40}, {"polish": False}])
def test_a_checkpoint_of_other_options_is_not_overwritten(
    tmp_path: Path, other: dict[str, Any]
) -> None:
    control = Control(jobs=1, checkpoint=tmp_path / "kept")
    Transcription(**ONE).solve(oscillator(), control)
    with pytest.raises(ForeignCheckpointError):
        Transcription(**ONE, **other).solve(oscillator(), control)


def test_a_time_limit_gives_the_best_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[Progress] = []
    monkeypatch.setattr(Control, "out_of_time", property(lambda _: len(done) == 2))
    control = Control(seed=1, jobs=1, report=done.append)
    found = Transcription(starts=10**6, screening=2).solve(oscillator(), control)
    assert found.status is Status.TIME_LIMIT
    assert len(found.starts) == 2
    assert found.best is not None
    assert np.isfinite(found.best.objective)


def interrupted_after(done: int, method: Transcription, problem: Problem) -> Estimate:
    """As if Ctrl-C was pressed when so many starts were finished."""
    control = Control(seed=1, jobs=1)

    def report(progress: Progress) -> None:
        if progress.done >= done:
            control.interrupted.set()

    told = Control(seed=1, jobs=1, report=report, interrupted=control.interrupted)
    return method.solve(problem, told)


def test_an_interruption_gives_the_best_so_far() -> None:
    method = Transcription(starts=10**6, screening=2)
    found = interrupted_after(2, method, oscillator())
    assert found.status is Status.INTERRUPTED
    assert len(found.starts) == 2
    assert found.best is not None
    assert np.isfinite(found.best.cost)
    assert found.agreement is None


@pytest.mark.parametrize("shooting", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_solver_s_crash_is_the_reason_of_its_start_and_the_others_go_on(
    shooting: bool, tmp_path: Path
) -> None:
    """The start itself has an end where it is improved on the integrated trajectories alone."""
    solver = Fragile(tmp_path / "crashed")
    found = estimated(oscillator(), solver=solver, starts=2, screening=1, shooting=shooting)
    first, second = found.starts
    assert first.message.startswith("Fragile: its process died of SIGSEGV")
    assert (first.status is Status.FAILED) is not shooting
    assert second.status is Status.CONVERGED
    assert found.status is Status.CONVERGED


# Meshes -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tolerance", [1e-3, 1e-5])
def test_an_adaptive_mesh_ends_with_a_small_error(
    tolerance: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the estimate at the discretised answer; on the true trajectories the errors add up."""
    answers: list[tuple[Discretisation, Answer]] = []

    def noted(forward: Any, d: Discretisation, answer: Answer) -> Any:
        answers.append((d, answer))
        return measure_agreement(forward, d, answer)

    monkeypatch.setattr(module, "measure_agreement", noted)
    options: dict[str, Any] = {"mesh": AdaptiveMesh(tolerance, steps=0), "scheme": "trapezoid"}
    start = {"w": 2.3, "y": 0.0}
    found = estimated(oscillator(), start=start, **options, **ONE).agreement
    ((d, answer),) = answers
    assert answer.values is not None
    assert answer.unknowns is not None
    assert d.steps > len(oscillator().conditions[0].times)
    errors = np.concatenate(step_errors(d, answer.values, answer.unknowns))
    assert errors.max() <= tolerance
    assert found is not None
    assert found.steps == d.steps
    assert 0.1 * errors.sum() < found.error < 1.5 * errors.sum()


def test_a_mesh_that_may_not_grow_stays_as_it_is() -> None:
    mesh = AdaptiveMesh(1e-8, steps=0, most=24)
    found = estimated(oscillator(), mesh=mesh, scheme="trapezoid", **ONE).agreement
    assert found is not None
    assert found.steps == 24
    assert found.error > 1e-3


@pytest.mark.slow
def test_a_mesh_is_sharpened_where_the_true_trajectories_contradict_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With the search on the true trajectories cut short, only a better mesh can help."""
    monkeypatch.setattr(module, "POLISHING", SingleShooting(evaluations=1))
    meshes: list[tuple[int, float]] = []

    def noted(d: Discretisation, errors: list[Array], mesh: AdaptiveMesh) -> Any:
        meshes.append((d.steps, mesh.tolerance))
        return refine_mesh(d, errors, mesh)

    monkeypatch.setattr(module, "refine_mesh", noted)
    start = {"w": 2.3, "y": 0.0}
    coarse = AdaptiveMesh(1.0, steps=0)
    found = estimated(
        oscillator(), mesh=coarse, scheme="trapezoid", start=start, shooting=False, **ONE
    )
    best = odefit.fit(oscillator(), seed=1).objective
    assert found.best is not None
    assert found.best.objective < 1.05 * best
    assert [tolerance for _, tolerance in meshes] == sorted((t for _, t in meshes), reverse=True)
    assert min(tolerance for _, tolerance in meshes) < 1e-1
    # On the mesh as it began, the answer is another.
    rough = estimated(oscillator(), mesh=24, scheme="trapezoid", start=start, shooting=False, **ONE)
    assert rough.best is not None
    assert rough.best.objective > 1.05 * best


# Bounds -------------------------------------------------------------------------------------------


@pytest.mark.slow
@needs("pyscipopt")
def test_a_global_solver_s_bounds_enclose_the_minimum_of_the_discretised_problem() -> None:
    instance = instances.decay(steps=4)
    problem = instance.discretisation.problem
    result = unpolished(problem, scheme="trapezoid", mesh=4, solver="scip", **ONE)
    bounds = result.assessment.bounds
    assert bounds is not None
    assert bounds.closed
    assert bounds.scope == "discretised (trapezoid, M = 4)"
    least = scan(instance)
    assert bounds.lower <= least * (1 + 1e-6)
    assert bounds.upper == pytest.approx(least, rel=1e-3)
    assert 0 < bounds.gap <= 1.001e-3
    assert result.status is Status.CONVERGED


@pytest.mark.slow
@needs("pyscipopt")
def test_noiseless_data_are_certified_though_their_minimum_is_zero() -> None:
    problem, truth = reference_of("harmonic")
    result = fitted(problem, scheme="trapezoid", mesh=12, solver="scip")
    bounds = result.assessment.bounds
    assert bounds is not None
    assert bounds.closed
    assert bounds.scope == "discretised (trapezoid, M = 12)"
    assert 0 <= bounds.lower <= bounds.upper
    assert result.best.vector == pytest.approx(truth, rel=1e-6)
    found = result.assessment.discretisation
    assert found is not None
    assert not found.fine


@pytest.mark.slow
@needs("pyscipopt")
def test_bounds_are_kept_when_time_is_over() -> None:
    """Alpha-pinene on the intervals between its data; no local answer is below the bound."""
    problem, _ = reference_of("alpha-pinene")
    method = Transcription(scheme="trapezoid", mesh=DataMesh(), solver="scip", starts=1)
    result = odefit.fit(problem, method, time_limit=4.0, jobs=1)
    assert result.status is Status.TIME_LIMIT
    bounds = result.assessment.bounds
    assert bounds is not None
    assert not bounds.closed
    assert 0 <= bounds.lower <= bounds.upper
    local = unpolished(problem, scheme="trapezoid", mesh=DataMesh(), starts=3)
    assert bounds.upper <= min(s.objective for s in local.starts) * (1 + 1e-4)


@pytest.mark.slow
@needs("pyscipopt")
def test_the_scope_of_a_bound_names_a_relaxed_formulation() -> None:
    problem = instances.decay(steps=2).discretisation.problem
    options: dict[str, Any] = {"scheme": "trapezoid", "mesh": 2, "solver": "scip", **ONE}
    result = unpolished(problem, formulation=ExtraTol(0.01), **options)
    bounds = result.assessment.bounds
    assert bounds is not None
    assert "ExtraTol" in bounds.scope
    assert bounds.lower < scan(instances.decay(steps=2))


@needs("pyscipopt")
def test_an_interruption_before_the_global_solver_is_at_work_gives_the_best_so_far() -> None:
    method = Transcription(scheme="trapezoid", mesh=4, solver="scip")
    found = interrupted_after(1, method, decay())
    assert found.status is Status.INTERRUPTED
    assert found.best is not None
    assert found.best.vector == pytest.approx(best_decay(), rel=0.05)
    assert found.certificate is None


@pytest.mark.slow
@needs("pyscipopt")
def test_a_discretised_problem_that_is_proved_infeasible_is_a_failure() -> None:
    """x = 1/(1 - k t) has a pole within the data; the steps of the trapezoid cannot pass it."""
    problem = explosive().with_parameters(k={"lower": 1.0, "upper": 3.0})
    result = fitted(problem, scheme="trapezoid", mesh=10, solver="scip", **ONE)
    assert result.status is Status.FAILED
    assert result.message == "SCIP: infeasible"
    assert result.solutions == ()


# Failures and mistakes ----------------------------------------------------------------------------


def test_an_infeasible_discretised_problem_fails_with_the_solver_s_words() -> None:
    problem = explosive().with_parameters(k={"lower": 1.0, "upper": 3.0})
    result = fitted(problem, scheme="trapezoid", mesh=10, starts=2)
    assert result.status is Status.FAILED
    assert result.message.startswith("all 2 starts failed: Ipopt: ")
    assert result.solutions == ()
    assert result.assessment.discretisation is None


def test_a_mesh_too_coarse_for_its_scheme_is_refused() -> None:
    with pytest.raises(InputError, match="Adams-Moulton needs at least 3 steps"):
        estimated(decay(), scheme="adams-moulton", mesh=2)


@pytest.mark.slow
@pytest.mark.parametrize("function", ["abs(x)", "min(x, k)", "max(x, k)"])
@needs("pyscipopt")
def test_a_function_that_a_global_solver_has_no_bounds_for_is_refused(function: str) -> None:
    problem = decay(model=Model(ode={"x": f"-k*{function}"}, observables={"y": "s*x"}))
    message = rf"SCIP: the model uses {function[:3]}\(\), .* take a local solver"
    with pytest.raises(InputError, match=message):
        estimated(problem, scheme="trapezoid", mesh=2, solver="scip", seconds=4.0, **ONE)


def test_a_missing_solver_is_refused_before_any_work(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By name at once; an object, which may have come from elsewhere, when it has to work."""
    elsewhere = Transcription(solver=Scip())
    monkeypatch.setattr(Scip, "missing", lambda self: 'SCIP is not here; pip install "it"')
    with pytest.raises(InputError, match='SCIP is not here; pip install "it"'):
        Transcription(solver="scip")
    with pytest.raises(InputError, match='SCIP is not here; pip install "it"'):
        elsewhere.solve(decay(), Control())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"scheme": "trapezoids"}, "unknown scheme 'trapezoids'; did you mean 'trapezoid'?"),
        ({"solver": "ipop"}, "unknown solver 'ipop'; did you mean 'ipopt'?"),
        ({"states": "dat"}, 'states: expected "data", "simulation" or "zero", got \'dat\''),
        ({"mesh": 0}, "Transcription, mesh: expected a whole number of at least 1, got 0"),
        ({"mesh": True}, "Transcription, mesh: expected a whole number of at least 1, got True"),
        ({"starts": 0}, "Transcription, starts: expected a whole number of at least 1, got 0"),
        ({"screening": 0}, "Transcription, screening: expected a whole number of at least 1"),
        ({"seconds": 0.0}, "Transcription, seconds: expected a number above 0, got 0.0"),
        ({"gap": -0.1}, "Transcription, gap: expected a number of at least 0, got -0.1"),
        ({"absolute_gap": np.nan}, "Transcription, absolute_gap: expected a number of at least 0"),
    ],
)
def test_meaningless_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        Transcription(**options)
    assert str(caught.value).startswith(message)


@pytest.mark.slow
def test_a_fit_that_reproduces_a_chaotic_system_is_recognised() -> None:
    """Errors of the search's integration grow along the trajectory."""
    found = odefit.fit(odefit.library.load("henon-heiles"), odefit.Transcription(), seed=1, jobs=1)
    assert found.status is odefit.Status.CONVERGED
    assert found.objective < 1e-20
    assert len(found.starts) < 10
