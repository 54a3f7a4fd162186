"""Engines for problems in which the usual ones fail at their usual tolerances."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from odefit.common.arrays import Array
from odefit.common.errors import InputError
from odefit.problem.problem import Problem
from odefit.simulation.engines.engine_choice import UNDECIDED
from odefit.simulation.engines.failure import Failure
from odefit.simulation.engines.registry import rescue_engines
from odefit.simulation.forward import ForwardMap
from odefit.simulation.nodes import Nodes
from odefit.simulation.second_opinion import better_map, second_opinion

UNCONTROLLED = "the usual engines without error control of the derivatives"
"""Engines for unbounded derivatives, such as that of a root of a state that begins at 0."""


def other_integrations(
    problem: Problem, vector: Array, stop: Callable[[], bool] = lambda: False
) -> Iterator[tuple[ForwardMap, str]]:
    """Yield forward maps that can integrate a problem at `vector`, each with a description.

    No further engine is tried once `stop` returns True, as some engines take long.
    """
    without_control = ForwardMap(problem, controlled=False)
    if not isinstance(without_control.evaluate(vector, UNDECIDED), Failure):
        yield without_control, UNCONTROLLED
    for (engine, tolerance), steps in rescue_engines():
        if stop():
            return
        try:
            forward = ForwardMap(problem, engine, tolerance, steps=steps)
            trajectories = forward.trajectories(vector, sensitivities=False)
        except InputError:
            continue  # the engine cannot integrate such equations, or is not installed
        if not isinstance(trajectories, Failure):
            how = "the usual engines" if engine == "auto" else f"the engine {engine}"
            yield (
                forward,
                how if tolerance is None else f"{how} at a relative tolerance of {tolerance:g}",
            )


def able_to_integrate(problem: Problem, vector: Array, nodes: Nodes | None = None) -> ForwardMap:
    """Return a forward map that integrates a problem at `vector`, the usual one if possible.

    The usual one is replaced if a second opinion finds its values wrong.

    It integrates the derivatives as well, unless no engine can.
    """
    usual = ForwardMap(problem, nodes=nodes)
    if nodes is not None:
        return usual
    if not isinstance(usual.evaluate(vector, UNDECIDED), Failure):
        return better_map(usual, second_opinion(usual, vector)) or usual
    without = None  # a map that integrates only the states
    if not isinstance(usual.trajectories(vector, sensitivities=False), Failure):
        without = usual
    for forward, _ in other_integrations(problem, vector):
        if not isinstance(forward.evaluate(vector, UNDECIDED), Failure):
            return forward
        without = without or forward
    return without or usual
