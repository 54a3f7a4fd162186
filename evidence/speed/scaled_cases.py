"""The problems of `forward_map.py`, in scaled units, with reference solutions by SciPy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from scipy import integrate

import odefit
from evidence.peers.variational import LINKS, WRITTEN, Array, Written

solve_ivp: Any = integrate.solve_ivp  # a type checker cannot resolve its many overloads here
RTOL = 1e-8


@dataclass
class Case:
    """One problem, in scaled units: states over their magnitude, unknowns over their reference."""

    name: str
    problem: odefit.Problem
    experiment: str
    written: Written
    point: Array  # reference values of the unknowns, shape (m,)
    times: Array  # data times, shape (k,)
    # Largest magnitude of each state on the trajectory, shape (n,)
    sizes: Array = field(default_factory=lambda: np.ones(0))
    # States and sensitivities at `point`, shape (k, n * (1 + m)), in scaled units
    exact: Array = field(default_factory=lambda: np.ones(0))
    failures: list[str] = field(default_factory=list)

    @property
    def t0(self) -> float:
        """Time of the initial values."""
        return self.problem.condition(self.experiment).t0

    def seeds(self) -> Array:
        """Return initial sensitivities, shape (n, m); initial values are linear in the unknowns."""
        m = len(self.point)
        at_zero = np.array(self.written.initial(np.zeros(m)), dtype=float)
        columns = [np.array(self.written.initial(e), dtype=float) - at_zero for e in np.eye(m)]
        return np.array(columns).T

    def start(self, point: Array) -> Array:
        """States and sensitivities at t0, natural units."""
        x0 = np.array(self.written.initial(point), dtype=float)
        return np.concatenate([x0, self.seeds().ravel()])

    def scales(self) -> Array:
        """Return units of states and sensitivities, shape (n * (1 + m),)."""
        return np.concatenate([self.sizes, (self.sizes[:, None] / np.abs(self.point)).ravel()])

    def error(self, found: Array) -> float:
        """Return the error as defined in `forward_map.py`; `found` is in scaled units."""
        off = np.abs(found - self.exact).max(axis=0)
        return float(np.max(off / np.maximum(np.abs(self.exact).max(axis=0), 1e-3)))


def chain() -> odefit.Problem:
    """Return the chain with rates between 0.5 and 2, twenty data times, every state observed."""
    written = WRITTEN["chain-50"]
    k = 2.0 ** np.random.default_rng(50).uniform(-1, 1, LINKS)
    times = np.linspace(3.0, 60.0, 20)
    names = [f"A{i}" for i in range(1, LINKS + 1)]
    flows = [f"{r}*{a}" for r, a in zip(written.unknowns, names, strict=True)]
    ode = {names[0]: f"-{flows[0]}"}
    ode |= {a: f"{i} - {o}" for a, i, o in zip(names[1:], flows[:-1], flows[1:], strict=True)}
    x = solve_ivp(
        lambda t, x: np.array(written.rhs(x, k)),
        (0.0, times[-1]),
        written.initial(k),
        "DOP853",
        times,
        rtol=1e-10,
        atol=1e-14,
    ).y
    return odefit.Problem(
        odefit.Model(ode=ode),
        data=pd.DataFrame({"t": times, **dict(zip(names, x, strict=True))}),
        parameters={
            r: odefit.Parameter(lower=0.01, upper=100.0, guess=float(v))
            for r, v in zip(written.unknowns, k, strict=True)
        },
        initial=dict(zip(names, written.initial(k), strict=True)),
        t0=0.0,
    )


def single(problem: odefit.Problem, experiment: str) -> odefit.Problem:
    return odefit.Problem(
        problem.model,
        parameters=problem.parameters,
        initial=problem.initial,
        experiments=[e for e in problem.experiments if e.name == experiment],
        name=problem.name,
    )


def case(name: str) -> Case:
    """A problem with its reference solution."""
    written = WRITTEN[name]
    if name == "chain-50":
        problem = chain()
        values = {u.key: u.parameter.guess or 1.0 for u in problem.unknowns}
    else:
        problem = odefit.library.load(name)
        known = odefit.library.reference(name)
        values = {**known.parameters, **known.initial}
    # of hiv-proteinase's five experiments, the fourth
    experiment = problem.experiments[3 if len(problem.experiments) > 1 else 0].name
    problem = single(problem, experiment)
    point = np.array([values[key] for key in written.unknowns])
    found = Case(name, problem, experiment, written, point, problem.condition(experiment).times)
    return solve_reference(found)


def solve_reference(c: Case) -> Case:
    """Fill in sizes and exact values, by SciPy with tight tolerances."""
    rates = c.point[: c.written.rates].tolist()
    n = len(c.written.initial(c.point))
    plain = solve_ivp(
        lambda t, x: np.array(c.written.rhs(x.tolist(), rates)),
        (c.t0, c.times[-1]),
        np.array(c.written.initial(c.point), dtype=float),
        "LSODA",
        rtol=1e-8,
        atol=1e-12,
    )
    c.sizes = np.abs(plain.y).max(axis=1)
    scales = c.scales()
    solution = solve_ivp(
        c.written.variational,
        (c.t0, c.times[-1]),
        c.start(c.point),
        "Radau" if c.written.stiff else "DOP853",
        c.times,
        args=(rates,),
        rtol=1e-11 if c.written.stiff else 3e-14,
        atol=1e-13 * scales,
        **({"jac": scipy_jacobian(c)} if c.written.stiff else {}),
    )
    if not solution.success:
        raise RuntimeError(f"{c.name}: no reference: {solution.message}")
    c.exact = solution.y.T / scales
    if len(c.sizes) != n:
        raise RuntimeError(f"{c.name}: states do not match")
    return c


def scipy_jacobian(c: Case) -> Callable[[float, Array, list[float]], Array]:
    """Return the Jacobian of the variational equations without the costly second derivatives."""
    n, m = len(c.sizes), len(c.point)

    def jacobian(t: float, y: Array, p: list[float]) -> Array:
        J = c.written.jacobian(y[:n], p)
        whole = np.zeros((n * (1 + m), n * (1 + m)))
        whole[:n, :n] = J
        whole[n:, n:] = np.kron(J, np.eye(m))
        return whole

    return jacobian
