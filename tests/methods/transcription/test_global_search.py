"""A global solver's answer: how the search that it ends has ended."""

from __future__ import annotations

import time

import numpy as np
import pytest

from odefit import Control, Status
from odefit.discretisation.mesh import UniformMesh
from odefit.methods.solvers.scip import Scip
from odefit.methods.solvers.solver import Answer, Outcome, make_answer
from odefit.methods.transcription import transcription as module
from odefit.methods.transcription.transcription import Transcription
from tests.methods.transcription import instances


@pytest.mark.parametrize(
    ("outcome", "point", "late", "interrupted", "expected"),
    [
        (Outcome.SOLVED, True, False, False, Status.CONVERGED),
        (Outcome.SOLVED, True, True, False, Status.CONVERGED),
        (Outcome.LIMIT, True, True, False, Status.TIME_LIMIT),
        (Outcome.LIMIT, True, False, False, Status.NOT_CONVERGED),
        (Outcome.LIMIT, True, True, True, Status.INTERRUPTED),
        (Outcome.INFEASIBLE, False, False, False, Status.FAILED),
    ],
)
def test_the_status_says_why_the_search_has_ended(
    outcome: Outcome,
    point: bool,
    late: bool,
    interrupted: bool,
    expected: Status,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    instance = instances.decay()
    d = instance.discretisation
    values = 2.0 * np.exp(-instances.RATE * d.times)[:, None] if point else None
    unknowns = np.array([instances.RATE]) if point else None

    def solved(*_: object, **__: object) -> Answer:
        return make_answer(instance, outcome, values, unknowns, 0.0, 0.0, "done")

    monkeypatch.setattr(module, "mesh_search", lambda *_, **__: (None, None))
    monkeypatch.setattr(module, "solve_isolated", solved)
    control = Control(deadline=time.monotonic() + (-1.0 if late else 1e6))
    if interrupted:
        control.interrupted.set()
    method = Transcription(d.scheme, UniformMesh(4), solver=Scip(), polish=False, starts=1)
    assert method.solve(d.problem, control).status is expected
