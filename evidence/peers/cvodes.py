"""CVODES through CasADi with sensitivities at the data times, in three ways."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import casadi as ca
import numpy as np

from evidence.peers.variational import Array
from evidence.speed.scaled_cases import RTOL, Case


def casadi_model(c: Case, x: Any, u: Any) -> Any:
    """Return slopes of the scaled states `x` at scaled unknowns `u`."""
    rates = [u[j] * float(c.point[j]) for j in range(c.written.rates)]
    states = [x[i] * float(s) for i, s in enumerate(c.sizes)]
    return ca.vertcat(*c.written.rhs(states, rates)) / ca.DM(c.sizes)


def casadi_integrator(c: Case, options: dict[str, Any]) -> Any:
    """Return the integrator of the scaled states, with outputs at the data times."""
    x, u = ca.SX.sym("x", len(c.sizes)), ca.SX.sym("u", len(c.point))
    return ca.integrator(
        "F",
        "cvodes",
        {"x": x, "p": u, "ode": casadi_model(c, x, u)},
        c.t0,
        c.times.tolist(),
        {"reltol": RTOL, "abstol": 1e-3 * RTOL, "max_num_steps": 100_000, **options},
    )


def casadi_jacobian(c: Case, options: dict[str, Any]) -> Callable[[Array], Array]:
    """``ca.jacobian`` of the integrator's output, as a Function."""
    n, m, k = len(c.sizes), len(c.point), len(c.times)
    F = casadi_integrator(c, options)
    u = ca.MX.sym("u", m)
    x0 = ca.vertcat(*c.written.initial([u[j] * float(c.point[j]) for j in range(m)]))
    xf = F(x0=x0 / ca.DM(c.sizes), p=u)["xf"]
    J = ca.Function("J", [u], [xf, ca.jacobian(ca.vec(xf), u)])

    def call(point: Array) -> Array:
        values, derivatives = J(point / c.point)
        by_time = np.asarray(derivatives.full()).reshape(k, n * m)
        return np.hstack([np.asarray(values.full()).T, by_time])

    return call


def casadi_forward(c: Case, options: dict[str, Any]) -> Callable[[Array], Array]:
    """``forward(m)`` of the integrator: all directions at once."""
    n, m, k = len(c.sizes), len(c.point), len(c.times)
    F = casadi_integrator(c, options)
    forward = F.forward(m)
    seeds = c.seeds() * c.point / c.sizes[:, None]

    def call(point: Array) -> Array:
        u = point / c.point
        x0 = c.start(point)[:n] / c.sizes
        plain = F(x0=x0, p=u)
        out = forward(
            x0=x0,
            p=u,
            out_xf=plain["xf"],
            out_qf=plain["qf"],
            out_zf=plain["zf"],
            fwd_x0=seeds,
            fwd_p=np.eye(m),
        )["fwd_xf"]
        # Directions follow each other, each with all its times.
        S = np.asarray(out.full()).reshape(n, m, k).transpose(2, 0, 1)
        return np.hstack([np.asarray(plain["xf"].full()).T, S.reshape(k, n * m)])

    return call


def casadi_augmented(c: Case, options: dict[str, Any]) -> Callable[[Array], Array]:
    """Return the integrator of states with the variational equations written out in SX."""
    n, m, k = len(c.sizes), len(c.point), len(c.times)
    x, u, S = ca.SX.sym("x", n), ca.SX.sym("u", m), ca.SX.sym("S", n, m)
    f = casadi_model(c, x, u)
    dS = ca.jacobian(f, x) @ S + ca.jacobian(f, u)
    F = ca.integrator(
        "F",
        "cvodes",
        {
            "x": ca.vertcat(x, ca.vec(S)),
            "p": u,
            "ode": ca.vertcat(f, ca.densify(ca.vec(dS))),
        },
        c.t0,
        c.times.tolist(),
        {"reltol": RTOL, "abstol": 1e-3 * RTOL, "max_num_steps": 100_000, **options},
    )
    seeds = (c.seeds() * c.point / c.sizes[:, None]).T.ravel()

    def call(point: Array) -> Array:
        x0 = np.concatenate([c.start(point)[:n] / c.sizes, seeds])
        out = np.asarray(F(x0=x0, p=point / c.point)["xf"].full()).T
        derivatives = out[:, n:].reshape(k, m, n).transpose(0, 2, 1)
        return np.hstack([out[:, :n], derivatives.reshape(k, n * m)])

    return call
