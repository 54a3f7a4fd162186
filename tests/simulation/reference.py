"""Trajectories and sensitivities by an independent route.

The equations are evaluated by Python itself, on the text of the problem file. Derivatives come
from complex steps, which have no cancellation: imag f(x + i h d) / h with h = 1e-50 is exact to
rounding. The variational equations are integrated by SciPy. Nothing of odefit's parser, algebras
or engines takes part.
"""

from __future__ import annotations

import cmath
import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.integrate import ode, solve_ivp

from odefit.problem import Parameter, Problem

Array = npt.NDArray[np.float64]
Complex = npt.NDArray[np.complex128]

STEP = 1e-50

NAME = re.compile(r"(?<![\w.])[A-Za-z_]\w*")

FUNCTIONS: dict[str, Any] = {
    name: getattr(np, {"asin": "arcsin", "acos": "arccos", "atan": "arctan"}.get(name, name))
    for name in "exp log sqrt sin cos tan asin acos atan sinh cosh tanh".split()
}
FUNCTIONS["log10"] = lambda x: np.log(x) / cmath.log(10).real


def compiled(texts: Mapping[str, str]) -> Callable[[Mapping[str, Any]], list[Any]]:
    """All texts as one Python function of a dictionary of values."""
    joined = ",".join(f"({text.replace('^', '**')})" for text in texts.values())
    # Names of a model may be words of Python, such as lambda.
    body = NAME.sub(lambda m: m[0] if m[0] in FUNCTIONS else f"{m[0]}_", joined)
    code = compile(f"[{body}]", "expressions", "eval")

    def evaluate(values: Mapping[str, Any]) -> list[Any]:
        names = {f"{name}_": value for name, value in values.items()}
        return list(eval(code, {"__builtins__": {}}, {**FUNCTIONS, **names}))

    return evaluate


def sizes(vector: Array) -> Array:
    """Magnitudes; 1 for what is zero."""
    return np.where(vector != 0, np.abs(vector), 1.0)


def advance(
    rhs: Callable[[float, Array], Array], start: float, state: Array, end: float, stiff: bool
) -> Array:
    """The state at `end`: by DOP853, or by VODE's backward differentiation formulas."""
    if stiff:
        solver = ode(rhs).set_integrator(
            "vode", method="bdf", with_jacobian=True, rtol=1e-11, atol=1e-14, nsteps=10**6
        )
        found = solver.set_initial_value(state, start).integrate(end)
        assert solver.successful()
        return np.asarray(found)
    solution = solve_ivp(rhs, (start, end), state, method="DOP853", rtol=1e-13, atol=1e-18)
    assert solution.success, solution.message
    return np.asarray(solution.y[:, -1])


class Reference:
    """One experiment of a problem, without events, inputs or algebraic equations."""

    def __init__(self, problem: Problem, experiment: int = 0) -> None:
        self.problem = problem
        self.states = list(problem.model.ode)
        self._experiment = problem.experiments[experiment]
        self._rhs = compiled({n: e.text for n, e in problem.model.ode.items()})
        self.t0 = problem.conditions[experiment].t0
        self.times = problem.conditions[experiment].times

    def _scalars(self, vector: Any) -> dict[str, Any]:
        """Constants and parameters; `vector` is (n,) or (n, directions)."""
        own = self._experiment.name
        values: dict[str, Any] = dict(self.problem.model.constants)
        for name, parameter in self.problem.parameters.items():
            if parameter.fixed is not None:
                values[name] = parameter.fixed
        for k, unknown in enumerate(self.problem.unknowns):
            if unknown.kind == "parameter" and unknown.experiment in (None, own):
                values[unknown.name] = vector[k]
        given = {n: str(e) for n, e in self._experiment.constants.items()}
        results = dict(zip(given, compiled(given)(values), strict=True)) if given else {}
        return {**values, **results}

    def _initial(self, vector: Any, scalars: Mapping[str, Any]) -> list[Any]:
        own = self._experiment.name
        found = []
        for state in self.states:
            value = self._experiment.initial.get(state, self.problem.initial[state])
            if isinstance(value, Parameter):
                if value.fixed is not None:
                    found.append(value.fixed)
                    continue
                found += [
                    vector[k]
                    for k, u in enumerate(self.problem.unknowns)
                    if u.kind == "initial" and u.name == state and u.experiment in (None, own)
                ]
            else:
                found += compiled({state: str(value)})(scalars)
        return found

    def solve(
        self,
        vector: Array,
        times: Array,
        directions: list[int],
        stiff: bool = False,
    ) -> tuple[Array, Array]:
        """States (k, n) and sensitivities (k, n, m) with respect to m of the unknowns.

        Each stretch between two times is integrated by itself: no interpolation.
        """
        n, m = len(self.states), len(directions)
        unit = sizes(vector)
        perturbed: Complex = vector[:, None] + 1j * STEP * np.diag(unit)[:, directions]
        scalars = self._scalars(perturbed)
        start = np.array([np.broadcast_to(v, (m,)) for v in self._initial(perturbed, scalars)])

        def rhs(t: float, flat: Array) -> Array:
            x, s = flat[:n], flat[n:].reshape(n, m)
            states = dict(zip(self.states, x[:, None] + 1j * STEP * s, strict=True))
            slopes = self._rhs({**scalars, **states, "t": t})
            slope = np.array([np.broadcast_to(f, (m,)) for f in slopes])
            return np.concatenate([slope[:, 0].real, (slope.imag / STEP).ravel()])

        now = np.concatenate([start[:, 0].real, (start.imag / STEP).ravel()])
        t, rows = self.t0, []
        for time in times:
            if time > t:
                now = advance(rhs, t, now, float(time), stiff)
                t = float(time)
            rows.append(now)
        flat = np.array(rows)
        return flat[:, :n], flat[:, n:].reshape(len(rows), n, m) / unit[directions]
