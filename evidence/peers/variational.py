"""The five models of `forward_map.py` as a competent user writes them by hand.

Each has its right-hand side over any numbers (floats or CasADi symbols), and its variational
equations in NumPy, S' = J S + df/dp, with S of shape (states, unknowns) stored row by row after
the states. `tolist` makes plain floats of the few numbers that are needed one by one: that is
twice as fast as indexing the array.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Written:
    """A model written by hand."""

    unknowns: tuple[str, ...]  # keys of the unknowns, rates first: the columns of S
    rates: int  # how many of them act in the equations
    # From states and rates to right-hand sides, over any numbers
    rhs: Callable[[Any, Any], list[Any]]
    # From t, (x, S) and rates to the right-hand sides of (x, S)
    variational: Callable[[float, Array, Sequence[float]], Array]
    # Of the right-hand side by the states, from states and rates
    jacobian: Callable[[Array, Sequence[float]], Array]
    initial: Callable[[Any], list[Any]]  # from unknowns to initial values, over any numbers
    stiff: bool = False  # whether implicit methods are asked too, and a reference needs one


def _lotka_volterra_rhs(x: Sequence[Any], p: Sequence[Any]) -> list[Any]:
    r, w = x
    return [p[0] * r - p[1] * r * w, p[1] * r * w - p[2] * w]


def _lotka_volterra_jacobian(x: Array, p: Sequence[float]) -> Array:
    r, w = x.tolist()
    return np.array([[p[0] - p[1] * w, -p[1] * r], [p[1] * w, p[1] * r - p[2]]])


def _lotka_volterra(t: float, y: Array, p: Sequence[float]) -> Array:
    r, w = y[:2].tolist()
    k1, k2, k3 = p
    S = y[2:].reshape(2, 5)
    out = np.empty(12)
    out[0] = k1 * r - k2 * r * w
    out[1] = k2 * r * w - k3 * w
    dS = out[2:].reshape(2, 5)
    np.matmul(np.array([[k1 - k2 * w, -k2 * r], [k2 * w, k2 * r - k3]]), S, out=dS)
    dS[0, 0] += r
    dS[0, 1] -= r * w
    dS[1, 1] += r * w
    dS[1, 2] -= w
    return out


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


def _alpha_pinene_jacobian(x: Array, p: Sequence[float]) -> Array:
    p1, p2, p3, p4, p5 = p
    return np.array(
        [
            [-p1 - p2, 0.0, 0.0, 0.0, 0.0],
            [p1, 0.0, 0.0, 0.0, 0.0],
            [p2, 0.0, -p3 - p4, 0.0, p5],
            [0.0, 0.0, p3, 0.0, 0.0],
            [0.0, 0.0, p4, 0.0, -p5],
        ]
    )


def _alpha_pinene(t: float, y: Array, p: Sequence[float]) -> Array:
    x1, _, x3, _, x5 = y[:5].tolist()
    J = _alpha_pinene_jacobian(y, p)
    out = np.empty(30)
    np.matmul(J, y[:5], out=out[:5])  # the model is linear in its states
    dS = out[5:].reshape(5, 5)
    np.matmul(J, y[5:].reshape(5, 5), out=dS)
    dS[0, 0] -= x1
    dS[0, 1] -= x1
    dS[1, 0] += x1
    dS[2, 1] += x1
    dS[2, 2] -= x3
    dS[2, 3] -= x3
    dS[2, 4] += x5
    dS[3, 2] += x3
    dS[4, 3] += x3
    dS[4, 4] -= x5
    return out


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


def _crauste_jacobian(x: Array, p: Sequence[float]) -> Array:
    n, e, s, _, g = x.tolist()
    mu_n, d_ne, mu_ee, d_el, rho_e, d_lm, mu_ll, mu_le, mu_m, rho_p, mu_p, mu_pe, mu_pl = p
    return np.array(
        [
            [-mu_n - d_ne * g, 0.0, 0.0, 0.0, -d_ne * n],
            [d_ne * g, -2 * mu_ee * e - d_el + rho_e * g, 0.0, 0.0, d_ne * n + rho_e * e],
            [0.0, -mu_le * s, d_el - d_lm - 2 * mu_ll * s - mu_le * e, 0.0, 0.0],
            [0.0, 0.0, d_lm, -mu_m, 0.0],
            [0.0, -mu_pe * g, -mu_pl * g, 0.0, 2 * rho_p * g - mu_p - mu_pe * e - mu_pl * s],
        ]
    )


def _crauste(t: float, y: Array, p: Sequence[float]) -> Array:
    n, e, s, m, g = x = y[:5].tolist()
    out = np.empty(95)
    out[:5] = _crauste_rhs(x, p)
    dS = out[5:].reshape(5, 18)
    np.matmul(_crauste_jacobian(y[:5], p), y[5:].reshape(5, 18), out=dS)
    dS[0, 0] -= n
    dS[0, 1] -= n * g
    dS[1, 1] += n * g
    dS[1, 2] -= e * e
    dS[1, 3] -= e
    dS[1, 4] += e * g
    dS[2, 3] += s
    dS[2, 5] -= s
    dS[2, 6] -= s * s
    dS[2, 7] -= e * s
    dS[3, 5] += s
    dS[3, 8] -= m
    dS[4, 9] += g * g
    dS[4, 10] -= g
    dS[4, 11] -= e * g
    dS[4, 12] -= s * g
    return out


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


def _proteinase_jacobian(x: Array, p: Sequence[float]) -> Array:
    m, pr, s, i, _, _, e, _, _ = x.tolist()
    k3, k42, k22, k52, k6 = p
    d, a, b, c = 2 * K11 * m, K21 * e, K41 * e, K51 * e
    return np.array(
        [
            [-2 * d, 0, 0, 0, 0, 0, 2 * K12, 0, 0],
            [0, -b, 0, 0, k3, k42, -K41 * pr, 0, 0],
            [0, 0, -a, 0, k22, 0, -K21 * s, 0, 0],
            [0, 0, 0, -c, 0, 0, -K51 * i, k52, 0],
            [0, 0, a, 0, -k22 - k3, 0, K21 * s, 0, 0],
            [0, b, 0, 0, 0, -k42, K41 * pr, 0, 0],
            [d, -b, -a, -c, k22 + k3, k42, -K12 - K21 * s - K41 * pr - K51 * i, k52, 0],
            [0, 0, 0, c, 0, 0, K51 * i, -k52 - k6, 0],
            [0, 0, 0, 0, 0, 0, 0, k6, 0],
        ]
    )


def _proteinase(t: float, y: Array, p: Sequence[float]) -> Array:
    x = y[:9].tolist()
    es, ep, ei = x[4], x[5], x[7]
    out = np.empty(72)
    out[:9] = _proteinase_rhs(x, p)
    dS = out[9:].reshape(9, 7)
    np.matmul(_proteinase_jacobian(y[:9], p), y[9:].reshape(9, 7), out=dS)
    dS[1, 0] += es
    dS[4, 0] -= es
    dS[6, 0] += es
    dS[1, 1] += ep
    dS[5, 1] -= ep
    dS[6, 1] += ep
    dS[2, 2] += es
    dS[4, 2] -= es
    dS[6, 2] += es
    dS[3, 3] += ei
    dS[6, 3] += ei
    dS[7, 3] -= ei
    dS[7, 4] -= ei
    dS[8, 4] += ei
    return out


LINKS = 50  # length of the chain A1 -> A2 -> ... -> A50 -> out, first order throughout


def _chain_rhs(x: Sequence[Any], p: Sequence[Any]) -> list[Any]:
    flows = [k * a for k, a in zip(p, x, strict=True)]
    return [-flows[0], *(into - out for into, out in pairwise(flows))]


def _chain_jacobian(x: Array, p: Sequence[float]) -> Array:
    return np.diag(-np.asarray(p)) + np.diag(p[:-1], -1)


_DIAGONAL = np.arange(LINKS)


def _chain(t: float, y: Array, p: Sequence[float]) -> Array:
    # Whole rows at a time: no Jacobian is formed.
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

# By name; all but the chain are library problems, the HIV proteinase one in its "exp 4"
WRITTEN = {
    "lotka-volterra-f": Written(
        ("k1", "k2", "k3", "r", "w"),
        3,
        _lotka_volterra_rhs,
        _lotka_volterra,
        _lotka_volterra_jacobian,
        lambda u: [u[3], u[4]],
    ),
    "alpha-pinene": Written(
        ("p1", "p2", "p3", "p4", "p5"),
        5,
        _alpha_pinene_rhs,
        _alpha_pinene,
        _alpha_pinene_jacobian,
        lambda u: [100.0, 0.0, 0.0, 0.0, 0.0],
    ),
    "crauste-f": Written(
        tuple(CRAUSTE.split()),
        13,
        _crauste_rhs,
        _crauste,
        _crauste_jacobian,
        lambda u: list(u[13:]),
    ),
    "hiv-proteinase": Written(
        ("k3", "k42", "k22", "k52", "k6", "S0[exp 4]", "E0[exp 4]"),
        5,
        _proteinase_rhs,
        _proteinase,
        _proteinase_jacobian,
        lambda u: [0.0, 0.0, u[5], I0, 0.0, 0.0, u[6], 0.0, 0.0],
        stiff=True,
    ),
    "chain-50": Written(
        tuple(f"k{i}" for i in range(1, LINKS + 1)),
        LINKS,
        _chain_rhs,
        _chain,
        _chain_jacobian,
        lambda u: [1.0] + [0.0] * (LINKS - 1),
    ),
}
