"""Everything that is chosen among engines follows from their rows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import get_args

import pytest

import odefit
from docs import reference_pages
from odefit.problem.vector_field import VectorField
from odefit.simulation.engines.registry import (
    ENGINES,
    EngineName,
    accurate_engines,
    fit_engines,
    judging_engines,
    opinion_engine,
    rescue_engines,
)

DOCS = Path(__file__).parents[3] / "docs"


def field(rate: str = "-k*x", algebraic: bool = False, states: int = 1) -> VectorField:
    ode = {"x": f"{rate} + z" if algebraic else rate}
    ode |= {f"x{i}": f"-k*x{i}" for i in range(1, states)}
    extra = {"algebraic": {"z": "z^3 + z - x"}} if algebraic else {}
    model = odefit.Model(ode=ode, **extra)  # type: ignore[arg-type]
    problem = odefit.Problem(
        model,
        data={"t": [0.0, 1.0], "x": [1.0, 0.5]},
        parameters={"k": 1.0},
        initial=dict.fromkeys(ode, 1.0),
    )
    return VectorField.of(problem.model, problem.conditions)


def test_every_engine_has_a_row() -> None:
    assert {"auto", *ENGINES} == set(get_args(EngineName))


def test_fast_engines_are_tried_first_after_a_failure() -> None:
    assert [(*request, steps) for request, steps in rescue_engines()] == [
        ("bdf", None, None),
        ("heyoka", None, None),
        ("auto", 1e-6, None),
        ("bdf", 1e-6, None),
        ("bdf", 1e-4, None),
        ("local-linearization", None, 3000),
    ]


def test_an_answer_in_doubt_is_integrated_by_all_engines_with_sensitivities() -> None:
    assert accurate_engines(1e-10) == [
        ("bdf", 1e-10),
        ("casadi", 1e-10),
        ("local-linearization", None),
        ("heyoka", None),
        ("runge-kutta", 1e-10),
    ]


@pytest.mark.parametrize(
    ("used", "states", "opinion", "judges"),
    [
        ("heyoka", 1, "casadi", ["bdf", "lsoda", "casadi"]),
        ("bdf", 1, "lsoda", ["heyoka", "runge-kutta", "lsoda", "casadi", "bdf"]),
        ("bdf", 61, "casadi", ["heyoka", "runge-kutta", "casadi", "bdf"]),
        ("local-linearization", 1, "casadi", ["bdf", "lsoda", "casadi"]),
    ],
)
def test_an_engine_is_judged_by_others(
    used: EngineName, states: int, opinion: str, judges: list[str]
) -> None:
    equations = field(states=states)
    assert opinion_engine(equations, ENGINES[used]).name == opinion
    assert [name for name, _ in judging_engines(equations, ENGINES[used])] == judges


def test_only_one_engine_solves_algebraic_equations() -> None:
    equations = field(algebraic=True)
    assert [name for name, row in ENGINES.items() if row.can_integrate(equations)] == ["casadi"]
    assert judging_engines(equations, ENGINES["casadi"]) == [("casadi", 1e-11)]


def test_the_taylor_method_alone_needs_equations_without_kinks() -> None:
    equations = field("-k*abs(x)")
    assert [n for n, row in ENGINES.items() if not row.can_integrate(equations)] == ["heyoka"]


@pytest.mark.parametrize(
    ("page", "beginning"),
    [
        (reference_pages.options_page, "| `integrator` |"),
        (reference_pages.commands_page, "| `--integrator NAME` |"),
    ],
)
def test_pages_list_the_engines_that_users_may_choose(
    page: Callable[[], str], beginning: str
) -> None:
    lines = page().splitlines()
    row = next(line for line in lines if line.startswith(beginning))
    assert all(name in row for name in fit_engines())
