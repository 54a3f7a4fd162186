"""The discretised problem in the space of its unknowns, against the whole of it."""

from __future__ import annotations

import threading
import time
from typing import Any

import numpy as np
import pytest

from odefit import Event, Experiment, Model, Problem, library
from odefit.discretisation.instance import guess_states
from odefit.discretisation.schemes import SCHEMES, Scheme
from odefit.methods import Control
from odefit.methods.solvers.local_search import LocalSearch
from odefit.methods.solvers.mesh_search import mesh_search
from odefit.methods.solvers.nlpsol import WARM_START_IPOPT
from odefit.methods.solvers.reduced_space import ReducedSpace
from odefit.methods.transcription import (
    Baseline,
    Collocation,
    Discretisation,
    Instance,
    Limits,
    UniformMesh,
)
from odefit.simulation import ForwardMap

TIMES = np.linspace(0.0, 2.0, 7)


def decay() -> Problem:
    return Problem(
        Model(ode={"x": "-k*x^2", "y": "k*x^2 - y"}, observables={"x": "x", "z": "x + s*y"}),
        {"t": TIMES, "x": 1 / (1 + 0.7 * TIMES), "z": 1 - 0.2 * TIMES},
        {"k": {"lower": 0.0, "upper": 3.0}, "s": {"lower": -2.0, "upper": 2.0}},
        {"x": {"lower": 0.5, "upper": 2.0}, "y": "0.1*k"},
        noise={"x": {"sd": 0.1}, "z": {"sd": "estimate"}},
    )


def algebraic() -> Problem:
    return Problem(
        Model(
            ode={"x": "-k*z"},
            algebraic={"z": "z^3 + z - x"},
            observables={"y": "x + z"},
        ),
        {"t": TIMES, "y": 2 - 0.5 * TIMES},
        {"k": {"lower": 0.1, "upper": 3.0}},
        {"x": 1.5},
    )


def dosed() -> Problem:
    table = {"t": TIMES, "x": np.exp(-0.5 * TIMES) + (TIMES > 1.0)}
    doses = [Event((1.0,), {"x": "x + d"})]
    return Problem(
        Model(ode={"x": "-k*x"}),
        experiments=[Experiment("run", table, events=doses)],
        parameters={"k": {"lower": 0.0, "upper": 3.0}, "d": {"lower": 0.0, "upper": 3.0}},
        initial={"x": 1.0},
    )


PROBLEMS = {"decay": decay, "algebraic": algebraic, "dosed": dosed}


def reduced(problem: Problem, scheme: Scheme | None = None, mesh: int = 3) -> tuple[Any, ...]:
    forward = ForwardMap(problem)
    d = Discretisation(problem, scheme or Collocation(3, "legendre"), UniformMesh(mesh))
    return forward, d, ReducedSpace(forward, d)


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("scheme", ["legendre", "radau", "trapezoid", "euler"])
def test_the_lifted_equations_and_derivatives_are_right(name: str, scheme: str) -> None:
    problem = PROBLEMS[name]()
    chosen = Collocation(3, "legendre") if scheme == "legendre" else SCHEMES[scheme]
    forward, d, own = reduced(problem, chosen)
    assert own.determined
    vector = np.linspace(0.6, 0.8, len(problem.unknowns))
    solved = own.solve(vector, guess_states(d, forward, vector))
    assert solved is not None
    assert np.abs(d.defects(solved.values, vector)).max() < 1e-12
    found = own.evaluate(solved)
    assert 2 * found.cost == pytest.approx(d.objective(solved.values, vector), rel=1e-10)
    for k in range(len(vector)):
        moved = []
        for h in (-1e-5, 1e-5):
            other = vector.copy()
            other[k] += h
            moved.append(own.solve(other, solved.values).values)
        slope = (moved[1] - moved[0]) / 2e-5
        assert solved.sensitivities[:, :, k] == pytest.approx(slope, rel=1e-6, abs=1e-8)


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_reduced_program_has_the_minimum_of_the_whole(name: str) -> None:
    problem = PROBLEMS[name]()
    forward, d, own = reduced(problem)
    vector = np.linspace(0.6, 0.8, len(problem.unknowns))
    found = own.minimise(vector, None, lambda: False)
    values = guess_states(d, forward, vector)
    whole = WARM_START_IPOPT.solve(Instance(d, Baseline(), values, vector), Limits())
    assert found.success
    assert found.violation < 1e-9
    assert found.objective == pytest.approx(whole.objective, rel=1e-5)
    assert found.unknowns == pytest.approx(whole.unknowns, rel=1e-3)


def test_a_start_without_a_solution_gives_nothing() -> None:
    own = reduced(decay())[2]
    assert own.minimise(np.full(4, np.nan), None, lambda: False) is None


def search(problem: Problem, **control: Any) -> tuple[Any, Any]:
    local = LocalSearch(Collocation(3, "legendre"), UniformMesh(5))
    forward, d, _ = reduced(problem, mesh=5)
    control = {"deadline": time.monotonic() + 20.0, **control}
    return mesh_search(local, forward, d, Control(seed=1, jobs=1, **control))


@pytest.mark.slow
def test_a_search_finds_the_best_on_the_mesh_and_on_true_trajectories() -> None:
    answer, true = search(library.load("alpha-pinene"))
    assert answer.success
    assert answer.objective == pytest.approx(19.876786284735665, rel=1e-9)
    assert 2 * true.cost == pytest.approx(19.87216694, rel=1e-7)


def test_a_search_is_over_at_its_deadline() -> None:
    """After it, no start is made at all."""
    assert search(library.load("bbg"), deadline=time.monotonic() - 1.0) == (None, None)


def test_an_interrupted_search_keeps_its_results_so_far() -> None:
    stop = threading.Event()
    problem = library.load("alpha-pinene")
    answer, true = search(problem, interrupted=stop, report=lambda _: stop.set())
    assert true is not None
    assert answer.unknowns == pytest.approx(true.vector)
