"""The names of the solvers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from odefit.common.errors import InputError, one_of
from odefit.methods.solvers.ampl import KNOWN_EXECUTABLES, AmplSolver
from odefit.methods.solvers.maingo import Maingo
from odefit.methods.solvers.nlpsol import Bonmin, Ipopt, Uno
from odefit.methods.solvers.scip import Scip
from odefit.methods.solvers.solver import Solver

SHIPPED: Mapping[str, Callable[[], Solver]] = {
    "ipopt": Ipopt,
    "bonmin": Bonmin,
    "uno": Uno,
    "scip": Scip,
    "maingo": Maingo,
}
"""Solvers that come with odefit or one of its extras."""

SOLVERS: Mapping[str, Callable[[], Solver]] = {
    **SHIPPED,
    **{name: partial(AmplSolver, name) for name in KNOWN_EXECUTABLES if name not in SHIPPED},
    **{f"ampl:{name}": partial(AmplSolver, name) for name in KNOWN_EXECUTABLES},
}
"""All solvers by name. ``ampl:NAME`` is the executable NAME with an AMPL interface; so is NAME
alone unless it is a solver that ships with odefit or one of its extras."""


def solver(name: str) -> Solver:
    """Return the solver `name` with its default options; refuse unknown and missing ones."""
    if name.startswith("ampl:") and name not in SOLVERS:
        chosen: Solver = AmplSolver(name.removeprefix("ampl:"))
    elif name in SOLVERS:
        chosen = SOLVERS[name]()
    else:
        raise InputError(f"unknown solver {name!r}{one_of(name, SOLVERS)}")
    if (reason := chosen.missing()) is not None:
        raise InputError(reason)
    return chosen


def available() -> tuple[str, ...]:
    """Return the names of the solvers that can run here."""
    return tuple(name for name, make in SOLVERS.items() if make().missing() is None)
