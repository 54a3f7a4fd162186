"""Solvers by name."""

from __future__ import annotations

import pickle

import pytest

from odefit.common.errors import InputError
from odefit.methods.solvers.registry import SOLVERS, available, solver


def test_solvers_that_ship_with_casadi_are_available() -> None:
    assert {"ipopt", "bonmin", "uno"} <= set(available())


@pytest.mark.parametrize("name", SOLVERS)
def test_every_solver_has_a_name_and_a_scope_and_can_travel(name: str) -> None:
    made = SOLVERS[name]()
    assert made.name
    assert made.scope in {"local", "global"}
    assert pickle.loads(pickle.dumps(made)) == made


def test_a_solver_that_is_absent_is_refused_with_the_remedy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(InputError, match=r"couenne is not on the PATH: .* export PATH="):
        solver("couenne")
    assert "couenne" not in available()


def test_a_misspelt_name_gets_a_suggestion() -> None:
    with pytest.raises(InputError, match=r"unknown solver 'ipotp'; did you mean 'ipopt'\?"):
        solver("ipotp")


def test_the_same_name_means_the_solver_that_ships_before_one_on_the_path() -> None:
    assert type(SOLVERS["ipopt"]()).__name__ == "Ipopt"
    assert type(SOLVERS["ampl:ipopt"]()).__name__ == "AmplSolver"
