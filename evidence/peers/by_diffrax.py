"""diffrax with sensitivities at the data times, in two ways, compiled for the processor.

"forward" differentiates the solver in forward mode by all unknowns; "augmented" integrates the
variational equations with the states, under the same error control.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np

from evidence.peers.variational import Array
from evidence.speed.scaled_cases import RTOL, Case

HOW = ("forward", "augmented")
MOST_STEPS = 100_000


def installed() -> bool:
    """Return whether diffrax can be imported."""
    return find_spec("diffrax") is not None


def methods(*, stiff: bool) -> tuple[str, ...]:
    """Return diffrax's recommended methods for a problem."""
    return ("Kvaerno5",) if stiff else ("Dopri8", "Tsit5")


def diffrax_trajectory(c: Case, how: str, method: str) -> Callable[[Array], Array]:
    """Return the trajectory with sensitivities, from the values of the unknowns."""
    import diffrax
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)
    n, m, k = len(c.sizes), len(c.point), len(c.times)
    sizes, units, times = (jnp.asarray(a) for a in (c.sizes, c.point, c.times))

    def slopes(states: Any, unknowns: Any) -> Any:
        natural = list(states * sizes), list((unknowns * units)[: c.written.rates])
        return jnp.stack(c.written.rhs(*natural)) / sizes

    def start(unknowns: Any) -> Any:
        begin = c.written.initial(list(unknowns * units))
        return jnp.stack([jnp.asarray(value, dtype=float) for value in begin]) / sizes

    def solved(rates: Callable[[Any, Any, Any], Any], begin: Any, unknowns: Any) -> Any:
        return diffrax.diffeqsolve(
            diffrax.ODETerm(rates),
            getattr(diffrax, method)(),
            c.t0,
            times[-1],
            None,
            begin,
            unknowns,
            saveat=diffrax.SaveAt(ts=times),
            stepsize_controller=diffrax.PIDController(rtol=RTOL, atol=1e-3 * RTOL),
            adjoint=diffrax.ForwardMode(),
            max_steps=MOST_STEPS,
        ).ys

    def states(unknowns: Any) -> Any:
        found = solved(lambda t, x, u: slopes(x, u), start(unknowns), unknowns)
        return found, found

    def forward(unknowns: Any) -> Any:
        derivatives, values = jax.jacfwd(states, has_aux=True)(unknowns)
        return jnp.hstack([values, derivatives.reshape(k, n * m)])

    def variational(_: Any, whole: Any, unknowns: Any) -> Any:
        x, directions = whole[:, 0], whole[:, 1:]

        def along(tangent: Any, unit: Any) -> Any:
            return jax.jvp(slopes, (x, unknowns), (tangent, unit))[1]

        moved = jax.vmap(along, in_axes=(1, 1), out_axes=1)(directions, jnp.eye(m))
        return jnp.hstack([slopes(x, unknowns)[:, None], moved])

    def augmented(unknowns: Any) -> Any:
        begin = jnp.hstack([start(unknowns)[:, None], jax.jacfwd(start)(unknowns)])
        found = solved(variational, begin, unknowns)
        return jnp.hstack([found[:, :, 0], found[:, :, 1:].reshape(k, n * m)])

    compiled = jax.jit(forward if how == "forward" else augmented)
    return lambda point: np.asarray(compiled(point / c.point))
