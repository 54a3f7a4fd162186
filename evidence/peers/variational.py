"""The five models of `forward_map.py`, written as by a competent user.

Each has its right-hand side over any numbers (floats, CasADi's or SymPy's symbols), and its
variational equations in NumPy, S' = J S + df/dp. S has the shape (states, unknowns) and is stored
row by row after the states. J and the entries of df/dp that are not zero are code that SymPy
writes, with common terms computed once; the product with J is NumPy's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import sympy  # type: ignore[import-untyped]
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Written:
    """A model written by hand."""

    unknowns: tuple[str, ...]  # keys of the unknowns, rates first: the columns of S
    rates: int  # how many of them act in the equations
    rhs: Callable[[Any, Any], list[Any]]  # from states and rates, over any numbers
    initial: Callable[[Any], list[Any]]  # from unknowns to initial values, over any numbers
    stiff: bool = False  # whether implicit methods take part, and the reference needs one

    @cached_property
    def _code(self) -> tuple[Callable[..., Any], Callable[..., Any]]:
        """Return J and both right-hand sides as functions of (t, y, p), written by SymPy."""
        m, n = len(self.unknowns), len(self.initial([0.0] * len(self.unknowns)))
        x, p = sympy.symbols(f"x:{n}"), sympy.symbols(f"p:{self.rates}")
        f = sympy.Matrix(self.rhs(x, p))
        by_states, by_rates = f.jacobian(x).tolist(), f.jacobian(p)
        places = [(i, j) for i in range(n) for j in range(self.rates) if by_rates[i, j] != 0]
        common, parts = sympy.cse([*f, *(by_rates[place] for place in places)])
        lines = [
            "def variational(t, y, p):",
            f"{', '.join(map(str, x))}, = y[:{n}].tolist()",
            f"{', '.join(map(str, p))}, = p",
            *(f"{name} = {value}" for name, value in common),
            f"out = empty({n * (1 + m)})",
            f"slopes = out[{n}:].reshape({n}, {m})",
            f"matmul(array({by_states}), y[{n}:].reshape({n}, {m}), out=slopes)",
            *(f"out[{i}] = {parts[i]}" for i in range(n)),
            *(f"slopes[{i}, {j}] += {v}" for (i, j), v in zip(places, parts[n:], strict=True)),
            "return out",
        ]
        names: dict[str, Any] = {"array": np.array, "empty": np.empty, "matmul": np.matmul}
        exec("\n    ".join(lines), names)  # noqa: S102 - what a script has
        return sympy.lambdify([*x, *p], by_states, "math"), names["variational"]

    @property
    def variational(self) -> Callable[[float, Array, Sequence[float]], Array]:
        """The right-hand sides of states and sensitivities."""
        found: Callable[[float, Array, Sequence[float]], Array] = self._code[1]
        return found

    def jacobian(self, x: Array, p: Sequence[float]) -> Array:
        """Return that of the right-hand side by the states."""
        return np.array(self._code[0](*x.tolist(), *p), dtype=float)


def _lotka_volterra_rhs(x: Sequence[Any], p: Sequence[Any]) -> list[Any]:
    r, w = x
    return [p[0] * r - p[1] * r * w, p[1] * r * w - p[2] * w]


def _alpha_pinene_rhs(x: Sequence[Any], p: Sequence[Any]) -> list[Any]:
    x1, _, x3, _, x5 = x
    p1, p2, p3, p4, p5 = p
    return [
        -(p1 + p2) * x1,
        p1 * x1,
        p2 * x1 - (p3 + p4) * x3 + p5 * x5,
        p3 * x3,
        p4 * x3 - p5 * x5,
    ]


def _crauste_rhs(x: Sequence[Any], p: Sequence[Any]) -> list[Any]:
    n, e, s, m, g = x
    mu_n, d_ne, mu_ee, d_el, rho_e, d_lm, mu_ll, mu_le, mu_m, rho_p, mu_p, mu_pe, mu_pl = p
    return [
        -mu_n * n - d_ne * n * g,
        d_ne * n * g - mu_ee * e * e - d_el * e + rho_e * e * g,
        d_el * s - s * d_lm - mu_ll * s * s - mu_le * e * s,
        d_lm * s - mu_m * m,
        rho_p * g * g - mu_p * g - mu_pe * e * g - mu_pl * s * g,
    ]


K11, K12, K21, K41, K51 = 0.1, 0.001, 100.0, 100.0, 100.0  # known rates of the HIV proteinase model
I0 = 0.004  # its inhibitor dose in "exp 4"


def _proteinase_rhs(x: Sequence[Any], p: Sequence[Any]) -> list[Any]:
    m, pr, s, i, es, ep, e, ei, _ = x
    k3, k42, k22, k52, k6 = p
    dimer = K11 * m * m - K12 * e
    substrate = K21 * s * e - k22 * es
    product = K41 * pr * e - k42 * ep
    inhibitor = K51 * i * e - k52 * ei
    return [
        -2 * dimer,
        k3 * es - product,
        -substrate,
        -inhibitor,
        substrate - k3 * es,
        product,
        dimer - substrate + k3 * es - product - inhibitor,
        inhibitor - k6 * ei,
        k6 * ei,
    ]


LINKS = 50  # length of the chain A1 -> A2 -> ... -> A50 -> out, first order throughout
_DIAGONAL = np.arange(LINKS)


def _chain_rhs(x: Sequence[Any], p: Sequence[Any]) -> list[Any]:
    flows = [k * a for k, a in zip(p, x, strict=True)]
    return [-flows[0], *(into - out for into, out in pairwise(flows))]


class _Chain(Written):
    """The chain, whose equations are written whole rows at a time: no Jacobian is formed."""

    @property
    def variational(self) -> Callable[[float, Array, Sequence[float]], Array]:
        return _chain


def _chain(t: float, y: Array, p: Sequence[float]) -> Array:
    n = LINKS
    k = np.asarray(p)
    Y = y.reshape(n + 1, n)  # states, then the rows of S
    out = np.empty((n + 1, n))
    flows = k * Y[0]
    out[0] = -flows
    out[0, 1:] += flows[:-1]
    F = k[:, None] * Y[1:]
    F[_DIAGONAL, _DIAGONAL] += Y[0]
    np.negative(F, out=out[1:])
    out[2:] += F[:-1]
    return out.ravel()


CRAUSTE = (
    "mu_N delta_NE mu_EE delta_EL rho_E delta_LM mu_LL mu_LE mu_M rho_P mu_P mu_PE mu_PL N E S M P"
)

# by name; all except the chain are library problems, HIV proteinase with its "exp 4"
WRITTEN = {
    "lotka-volterra-f": Written(
        ("k1", "k2", "k3", "r", "w"),
        3,
        _lotka_volterra_rhs,
        lambda u: [u[3], u[4]],
    ),
    "alpha-pinene": Written(
        ("p1", "p2", "p3", "p4", "p5"),
        5,
        _alpha_pinene_rhs,
        lambda u: [100.0, 0.0, 0.0, 0.0, 0.0],
    ),
    "crauste-f": Written(
        tuple(CRAUSTE.split()),
        13,
        _crauste_rhs,
        lambda u: list(u[13:]),
    ),
    "hiv-proteinase": Written(
        ("k3", "k42", "k22", "k52", "k6", "S0[exp 4]", "E0[exp 4]"),
        5,
        _proteinase_rhs,
        lambda u: [0.0, 0.0, u[5], I0, 0.0, 0.0, u[6], 0.0, 0.0],
        stiff=True,
    ),
    "chain-50": _Chain(
        tuple(f"k{i}" for i in range(1, LINKS + 1)),
        LINKS,
        _chain_rhs,
        lambda u: [1.0] + [0.0] * (LINKS - 1),
    ),
}
